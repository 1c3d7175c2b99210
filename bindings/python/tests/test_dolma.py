"""The mixer of dolma 1.2.1 reads what `bloomline dedup --spans` writes."""

import gzip
import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

DOLMA = importlib.util.find_spec("dolma")
pytestmark = [
    pytest.mark.skipif(DOLMA is None, reason="dolma is not installed"),
    pytest.mark.skipif(shutil.which("bloomline") is None, reason="the command bloomline is not on the PATH"),
]


def mix(config):
    # Only its compiled module, because the package imports many others.
    spec = importlib.util.spec_from_file_location("dolma", next(Path(DOLMA.origin).parent.glob("dolma*.so")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.mixer_entrypoint(json.dumps(config))


def test_mixer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "caf\u00e9", "text": "\U0001f600 one\ntwo\r\n\nth\u00e9\tree"},
        {"text": "two\n\U0001f600 one\n\u00e9\U0001f600 new\nth\u00e9\tree", "id": 7},
        {"id": None, "text": ""},
        {"text": "\U0001f600 one\nfour\n"},
    ]
    Path("x/documents").mkdir(parents=True)
    with gzip.open("x/documents/0.jsonl.gz", "wt") as documents:
        documents.writelines(json.dumps(row) + "\n" for row in rows)
    Path("x/attributes").mkdir()
    command = "bloomline dedup -q --json text --paragraphs --spans --output-dir x/attributes/seen x/documents/0.jsonl.gz"
    subprocess.run(command.split(), check=True)
    stream = {
        "name": "mixed",
        "documents": ["x/documents/*.gz"],
        "attributes": ["seen"],
        "span_replacement": [{"span": "$.attributes.seen", "replacement": "", "min_score": 1}],
        "output": {"path": "x/mixed", "max_size_in_bytes": 1 << 30},
    }
    mix({"work_dir": {"input": "x/in", "output": "x/out"}, "processes": 1, "shuffle": False, "streams": [stream]})
    with gzip.open("x/mixed/documents/0.jsonl.gz", "rt") as mixed:
        texts = [json.loads(line)["text"] for line in mixed]
    assert texts == [rows[0]["text"], "\u00e9\U0001f600 new\n", "", "four\n"]
