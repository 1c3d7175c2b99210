#!/usr/bin/env python3
"""Drops the repeats among the JSON Lines of documents/*.gz with other tools, and judges what was kept.

corpus.py judge UNIT                             how much of the text in the file `kept` is new, and how much of the new lacks
corpus.py dolma|datatrove|text_dedup UNIT SIZE   runs a tool, with a filter for SIZE keys, or datatrove's, of SIZE bytes
corpus.py NAME_kept UNIT                         writes the file `kept`

A UNIT is `documents` or, for dolma, `paragraphs`.
"""

import gzip
import importlib.util
import json
import os
import sys
from pathlib import Path


def lines(folder):
    return (line for path in sorted(Path(folder).glob("*.gz")) for line in gzip.open(path, "rt", newline="\n"))


def keep(texts):
    with open("kept", "w") as kept:
        kept.writelines(json.dumps({"text": text}) + "\n" for text in texts)


def judge(unit):
    def keys(lines):
        for text in (json.loads(line)["text"] for line in lines):
            paragraphs = (paragraph.removesuffix("\r") for paragraph in text.split("\n"))
            yield from [text] if unit == "documents" else filter(str.strip, paragraphs)

    n_kept, new = 0, set(keys(lines("documents")))
    n_new = len(new)
    for key in keys(open("kept", newline="\n")):
        n_kept += 1
        new.discard(key)
    print(f"    {n_kept} {unit} kept: {len(new)} of {n_new} new ones dropped, {n_kept - n_new + len(new)} repeats kept")


def dolma(unit, n_keys):
    # Only its compiled module, because the package imports many others.
    folder = Path(importlib.util.find_spec("dolma").origin).parent
    spec = importlib.util.spec_from_file_location("dolma", next(folder.glob("dolma*.so")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    what = {"documents": {"key": "$.text"}, "paragraphs": {}}[unit] | {"attribute_name": "seen"}
    size = {"size_in_bytes": 0, "estimated_doc_count": int(n_keys), "desired_false_positive_rate": 1e-6}
    config = {
        "documents": [f"{Path.cwd()}/documents/*.gz"],
        "work_dir": {"input": "in", "output": "out"},
        "processes": 1,
        "dedupe": {"name": unit, "skip_empty": unit == "paragraphs", unit: what},
        "bloom_filter": {"file": f"{unit}.dolma", "read_only": False} | size,
    }
    module.deduper_entrypoint(json.dumps(config))


def dolma_kept(unit):
    def texts():
        for line, attributes in zip(lines("documents"), lines(f"attributes/{unit}")):
            text, seen = json.loads(line)["text"], json.loads(attributes)["attributes"].get("seen", [])
            starts, ends = [0] + [end for _, end, _ in seen], [start for start, _, _ in seen] + [len(text)]
            if unit == "paragraphs":
                yield "".join(text[start:end] for start, end in zip(starts, ends))
            elif not seen:
                yield text

    keep(texts())


def datatrove(unit, n_bytes):
    from datatrove.data import Document
    from datatrove.pipeline.dedup.bloom_filter import BloomFilterConfig, SingleBloomFilter

    documents = (Document(text=json.loads(line)["text"], id="") for line in lines("documents"))
    # Its own choice of k, for the number of n-grams, is 8 times too high.
    step = SingleBloomFilter(".", BloomFilterConfig(m_bytes=int(n_bytes), k=11))
    keep(document.text for document in step.run(documents))


def datatrove_kept(unit):
    pass


def text_dedup(unit, n_keys):
    options = {"path": "json", "data_files": "documents/*.gz", "split": "train", "column": "text", "num_proc": 1}
    options |= {"initial_capacity": n_keys, "output": "text_dedup"}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    os.execv(sys.executable, [sys.executable, "-m", "text_dedup.bloom_filter", *arguments])


def text_dedup_kept(unit):
    from datasets import load_from_disk

    keep(load_from_disk("text_dedup")["text"])


globals()[sys.argv[1]](*sys.argv[2:])
