#!/usr/bin/env python3
"""Compares bloomline with the other Bloom filters on PyPI.

    pip install bindings/python pyarrow
    pip install rbloom abloom fastbloom-rs pybloomfiltermmap3 pybloom-live bloom-filter2 pyprobables
    python bindings/python/benches/compare.py --keys 10_000_000 --out bindings/python/benches/results

Writes compare.md. A library that cannot be imported is left out, with the reason; pybloomfiltermmap3 has no wheel and
needs a C compiler. At 10 million keys it takes 6 to 10 minutes and 5 GB of memory.
"""

import argparse
import gc
import hashlib
import importlib
import importlib.metadata
import os
import pickle
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any, Callable

import numpy as np
import pyarrow as pa

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FPR = 0.01
ROUNDS = 10


# Keys: what `bloomline::mix` makes of 0, 1, 2, ..., without the sign (bloom-filter2 never returns from a negative
# integer). Text is "user:" and the integer in 19 digits: 24 bytes.


def int_keys(start, stop):
    word = np.arange(start, stop, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(1)).view(np.int64)


def text_bytes(ints):
    text = np.full((len(ints), 24), ord("0"), dtype=np.uint8)
    text[:, :5] = np.frombuffer(b"user:", dtype=np.uint8)
    rest = ints.copy()
    for place in range(23, 4, -1):
        rest, digit = np.divmod(rest, 10)
        text[:, place] += digit.astype(np.uint8)
    return text


def text_column(ints):
    offsets = np.arange(len(ints) + 1, dtype=np.int32) * 24
    data = pa.py_buffer(text_bytes(ints))
    return pa.StringArray.from_buffers(len(ints), pa.py_buffer(offsets), data)


def objects(kind, column):
    """The column as a list of new objects. New, since Python keeps the hash of a str that it has hashed once."""
    if kind == "int64":
        return column.tolist()
    text = column.buffers()[2].to_pybytes().decode()
    return [text[i : i + 24] for i in range(0, len(text), 24)]


# Libraries


def update_each(f, keys):
    add = f.add
    for key in keys:
        add(key)


def contains_each(f, keys):
    return [key in f for key in keys]


def sha256(key):
    """The hash function that rbloom's documentation gives for filters that are saved."""
    return int.from_bytes(hashlib.sha256(pickle.dumps(key)).digest()[:16], sys.byteorder, signed=True)


@dataclass
class Library:
    name: str
    distribution: str
    module: Any
    size_bytes: Callable[[Any], float]
    update: Callable = update_each
    contains: Callable = contains_each
    make: Callable[[Any, int], Any] = lambda module, n: module.BloomFilter(n, FPR)
    column: bool = False
    # A slow one gets 1/nth of the keys, in a filter that is made for so many.
    nth: int = 1
    # What integers must be turned into; the time for it is not counted.
    int_type: type = int

    def label(self, n_keys):
        if self.distribution == "bloomline":
            return "bloomline, numpy and Arrow" if self.column else "bloomline, lists"
        return self.name if self.nth == 1 else f"{self.name} ({n_keys:,})"

    def keys(self, kind, column):
        if self.column:
            return column
        keys = objects(kind, column)
        return list(map(self.int_type, keys)) if kind == "int64" and self.int_type is not int else keys


def with_update(f, keys):
    f.update(keys)


def fastbloom_update(f, keys):
    (f.add_int_batch if isinstance(keys[0], int) else f.add_str_batch)(keys)


def fastbloom_contains(f, keys):
    return (f.contains_int_batch if isinstance(keys[0], int) else f.contains_str_batch)(keys, check_type=False)


def contains_many(f, keys):
    return f.contains_many(keys)


def abloom(name, **options):
    make = lambda module, n: module.BloomFilter(n, FPR, **options)
    return Library(name, "abloom", "abloom", lambda f: f.byte_count, with_update, make=make)


def rbloom(name, *hash, nth=1):
    make = lambda module, n: module.Bloom(n, FPR, *hash)
    return Library(name, "rbloom", "rbloom", lambda f: f.size_in_bits / 8, with_update, make=make, nth=nth)


OURS = "bloomline", "bloomline", "bloomline", lambda f: f.size_bytes, with_update, contains_many
LIBRARIES = [
    Library(*OURS, column=True),
    Library(*OURS),
    abloom("abloom"),
    abloom("abloom, serializable", serializable=True),
    rbloom("rbloom"),
    Library(
        "fastbloom-rs",
        "fastbloom-rs",
        "fastbloom_rs",
        lambda f: f.config().size() / 8,
        fastbloom_update,
        fastbloom_contains,
    ),
    Library(
        "pybloomfiltermmap3", "pybloomfiltermmap3", "pybloomfilter", lambda f: f.num_bits / 8, with_update, nth=2
    ),
    rbloom("rbloom, SHA-256", sha256, nth=10),
    Library("pybloom-live", "pybloom-live", "pybloom_live", lambda f: f.num_bits / 8, nth=20),
    Library("bloom-filter2", "bloom-filter2", "bloom_filter2", lambda f: f.num_bits_m / 8, nth=100),
    Library("pyprobables", "pyprobables", "probables", lambda f: f.bloom_length, nth=100, int_type=str),
]


def installed():
    libraries, left_out = [], {}
    for library in LIBRARIES:
        try:
            library.module = importlib.import_module(library.module)
            libraries.append(library)
        except ImportError as error:
            left_out[library.distribution] = str(error)
    return libraries, left_out


# Measuring


def timed(call, *arguments):
    gc.collect()
    gc.disable()
    started = time.perf_counter_ns()
    answer = call(*arguments)
    elapsed = time.perf_counter_ns() - started
    gc.enable()
    return elapsed, answer


def in_turn(contestants, i):
    """Each round begins with another one."""
    contestants = list(contestants)
    i %= len(contestants)
    return contestants[i:] + contestants[:i]


def compare(kind, libraries, n_keys):
    """Builds a filter by each library and looks up as many present and as many absent keys, a tenth in each round."""
    filters = [library.make(library.module, n_keys // library.nth) for library in libraries]
    times = {phase: [[] for _ in libraries] for phase in ["update", "present", "absent"]}
    false_positives = [0] * len(libraries)
    for phase in times:
        for round in range(ROUNDS):
            columns = {}
            for i in in_turn(range(len(libraries)), round):
                library, f = libraries[i], filters[i]
                n = n_keys // library.nth // ROUNDS
                if n not in columns:
                    start = round * n + (n_keys if phase == "absent" else 0)
                    ints = int_keys(start, start + n)
                    columns[n] = ints if kind == "int64" else text_column(ints)
                keys = library.keys(kind, columns[n])
                elapsed, found = timed(library.update if phase == "update" else library.contains, f, keys)
                times[phase][i].append(elapsed / n)
                if phase == "present" and np.count_nonzero(found) != n:
                    sys.exit(f"{library.name} lost {n - np.count_nonzero(found)} of {n} keys")
                if phase == "absent":
                    false_positives[i] += np.count_nonzero(found)
                del keys, found
            print(f"{kind} {phase} {round + 1}/{ROUNDS}", file=sys.stderr)
    rows = []
    for i, library in enumerate(libraries):
        n = n_keys // library.nth // ROUNDS * ROUNDS
        rows.append(
            {
                "label": library.label(n),
                "ns": {phase: median(all[i]) for phase, all in times.items()},
                "ratio": {phase: median(b / a for a, b in zip(all[0], all[i])) for phase, all in times.items()},
                "bits_per_key": library.size_bytes(filters[i]) * 8 / (n_keys // library.nth),
                "fpr": false_positives[i] / n,
            }
        )
    return rows


def fast(libraries):
    return [library for library in libraries if library.distribution != "bloomline" and library.nth == 1]


def one_key(libraries):
    """`key in f`: nanoseconds a lookup, the loop included, for one object again and again and for new objects."""
    n = 100_000
    column = text_column(int_keys(0, n))
    contestants = [libraries[0], *fast(libraries)]
    filters = [library.make(library.module, n) for library in contestants]
    for library, f in zip(contestants, filters):
        library.update(f, objects("text", column))

    def again(f, keys):
        key = keys[0]
        for _ in keys:
            key in f

    def each(f, keys):
        for key in keys:
            key in f

    times = {library.name: ([], []) for library in contestants}
    for round in range(5 * ROUNDS):
        for i in in_turn(range(len(contestants)), round):
            for loop, measured in zip([again, each], times[contestants[i].name]):
                measured.append(timed(loop, filters[i], objects("text", column))[0] / n)
    return times


# Writing


PHASES = ["update", "present", "absent"]


def table_of_libraries(tables):
    """A row for each library, with the figures of both kinds of keys."""
    columns = ["filter (keys)", *PHASES, "bits per key", "FPR, %"]
    lines = [f"| {' | '.join(columns)} |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    for rows in zip(*tables.values()):
        times = ("/".join(nanoseconds(row["ns"][phase]) for row in rows) for phase in PHASES)
        fpr = "/".join(f"{100 * row['fpr']:.2f}" for row in rows)
        lines.append(f"| {rows[0]['label']} | {' | '.join(times)} | {rows[0]['bits_per_key']:.2f} | {fpr} |")
    return lines


def nanoseconds(ns):
    return f"{ns:.1f}" if ns < 100 else f"{ns:,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000, metavar="N", help="default: 10_000_000")
    parser.add_argument("--out", type=Path, default=HERE / "results", metavar="FOLDER")
    arguments = parser.parse_args()
    n_keys = arguments.keys
    if n_keys < 1_000_000:
        parser.error(f"--keys {n_keys} is too few to time; give 1_000_000 at least")

    libraries, left_out = installed()
    single = one_key(libraries)
    tables = {kind: compare(kind, libraries, n_keys) for kind in ["int64", "text"]}
    # The first two rows are ours: columns and lists.
    next_best = [min(row["ratio"][phase] for row in rows[2:]) for rows in tables.values() for phase in PHASES]

    packages = ["numpy", "pyarrow", *dict.fromkeys(library.distribution for library in libraries)]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    lines = [
        "# bloomline beside other Python libraries",
        "",
        f"Columns of keys are {min(next_best):.0f} to {max(next_best):.0f} times as fast as lists in the next fastest library.",
        "For single keys, where the call costs more than the lookup, abloom is faster.",
        "",
        f"Generated by `bindings/python/benches/compare.py --keys {n_keys:_}` on {datetime.now(timezone.utc):%Y-%m-%d}, with",
        f"{versions}, and Python {platform.python_version()}.",
        f"CPU: {subprocess.check_output(ROOT / 'scripts' / 'cpu', text=True).strip()},",
        f"{os.cpu_count()} cores, load average at the end {os.getloadavg()[0]:.1f}.",
        *(f"Not installed: {name} ({error})." for name, error in left_out.items()),
        "One thread. Libraries take turns within each of ten rounds. Times are medians, and ratios are medians of the",
        "ratios within a round.",
        "",
        "## Single keys",
        "",
        "| `key in f` of 100,000 keys, ns with the loop | the same str | a new str |",
        "|---|---:|---:|",
        *(f"| {name} | {median(again):.0f} | {median(each):.0f} |" for name, (again, each) in single.items()),
        "",
        "Python keeps the hash of a str, so libraries that use it compute it only for new objects.",
        "",
        "## Many keys",
        "",
        f"Filters for {n_keys:,} keys at 1% are filled, then as many present and as many absent keys are looked up.",
        "Times are nanoseconds per key, of integers of 64 bits/text of 24 bytes. Slow libraries get fewer keys, in",
        "brackets, and so a smaller filter, which is faster. Each library gets lists of Python objects, made before",
        "the clock starts, in its fastest documented way. By default, rbloom and abloom use Python's hash, which for",
        "str differs from process to process.",
        "",
        *table_of_libraries(tables),
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "compare.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
