"""The tables in `tests/golden`, which all languages read: files, damaged files, sizes, and keys of other types."""

import csv

import numpy as np
import pyarrow as pa
import pytest

from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    DecodeError,
    FilterBank,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import GOLDEN, one_by_one

CLASSES = {
    "standalone": BloomFilter, "counting": CountingBloomFilter, "scalable": ScalableBloomFilter,
    "standard": StandardBloomFilter, "bank": FilterBank,
}  # fmt: skip
ABSENT = [str(number) for number in range(1_000, 2_000)]


def golden(name):
    return (GOLDEN / name).read_bytes()


def table(name):
    with open(GOLDEN / f"{name}.tsv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


TYPED = table("keys")
# Of the kinds that Python reads, by file.
FILES = {row["file"]: row for row in table("files") if row["kind"] in CLASSES}


def keys_of(cell):
    if cell == "keys.tsv":
        return [bytes.fromhex(row["key"]) for row in TYPED if row["type"] != "int"]
    first, dots, end = cell.partition("..")
    return [str(number) for number in range(int(first), int(end))] if dots else cell.split()


def has_keys_of(f, row):
    """Whether a filter or a bank finds all keys of a file."""
    if row["kind"] != "bank":
        return f.contains_many(keys_of(row["keys"])).all()
    slots = row["keys"].split("|")
    return all(f.find_many(keys.split())[:, slot].all() for slot, keys in enumerate(slots[: len(f)]))


@pytest.mark.parametrize("name", FILES)
def test_files(name):
    row, data = FILES[name], golden(name)
    f, keys = CLASSES[row["kind"]].from_bytes(data), keys_of(row["keys"])
    facts = {"modules": "n_modules", "k": "k", "size": "size_bits" if row["kind"] == "standard" else "n_blocks"}
    for column, attribute in facts.items():
        assert getattr(f, attribute, int(row[column])) == int(row[column]), column
    assert f.seed == int(row["seed"], 16) and getattr(f, "expected_keys", None) is None and has_keys_of(f, row)
    assert f.to_bytes() == golden(row["rewritten"])
    if row["kind"] == "bank":
        assert len(f) == len(row["known keys"].split()) and f.find_many(ABSENT).sum() == int(row["found"])
        assert len(f) == 0 or FilterBank([f.get(slot) for slot in range(len(f))]).to_bytes() == data
        return
    assert f.contains_many(ABSENT).sum() == int(row["found"])
    if row["kind"] == "scalable":
        assert f.inserted_keys == int(row["known keys"]) and f.fpr >= float(row["rate"])
    if row["inserts"] == "yes":
        again = f.copy()
        again.clear()
        again.update(keys)
        assert again == f
    if row["kind"] == "standalone":
        view = BloomView(data)
        assert view.verify() is None and view.contains_many(keys).all() and view.to_filter() == f


def test_keys_removed_from_a_golden():
    f = CountingBloomFilter.from_bytes(golden("counting-10-blocks.bin"))
    again = f.copy()
    again.update(ABSENT)
    assert all(again.remove(number) for number in ABSENT) and again == f


DAMAGED = [row for row in table("damaged") if row["reader"] in CLASSES]


@pytest.mark.parametrize("row", DAMAGED, ids=[f"{row['reader']}, {row['case']}" for row in DAMAGED])
def test_damaged_files(row, tmp_path):
    data, cls, path = golden(row["file"]), CLASSES[row["reader"]], tmp_path / "f"
    data = data[: int(row["from"])] + bytes.fromhex(row["bytes"]) + data[int(row["to"]) :]
    path.write_bytes(data)
    readers = [lambda: cls.from_bytes(data), lambda: cls.open(path, mmap=False)]
    if cls is BloomFilter:
        readers += [lambda: BloomView(data), lambda: BloomFilter.open(path)]
        for unverified in (lambda: BloomView(data, verify=False), lambda: BloomFilter.open(path, verify=False)):
            try:
                view = unverified()
            except DecodeError:
                continue
            assert len(view.contains_many(ABSENT)) == len(ABSENT), "any answers, but no crash"
            readers += [view.verify, view.to_filter]
    for read in readers:
        if row["error"] == "accepted":
            f = read()
            assert f is None or has_keys_of(f, FILES[row["file"]])
        else:
            with pytest.raises(DecodeError) as error:
                read()
            assert row["says"] in str(error.value)


def test_sizes():
    for row in table("sizes"):
        options = {"most_modules": int(row["most modules"])} if row["most modules"] else {}
        make = BloomFilter if row["request"] == "rate" else BloomFilter.with_bits_per_key
        if row["error"]:
            with pytest.raises(ValueError) as error:
                make(int(row["keys"]), float(row["value"]), **options)
            assert row["says"] in str(error.value)
        elif int(row["blocks"]) < 1_000_000:
            f = make(int(row["keys"]), float(row["value"]), **options)
            blocks = row["foldable" if make is BloomFilter else "blocks"]
            assert (f.n_modules, f.n_blocks, f.k) == (int(row["modules"]), int(blocks), int(row["k"])), row


ARROW = {
    "text": [pa.string(), pa.large_string(), pa.string_view()],
    "binary": [pa.binary(), pa.large_binary(), pa.binary_view()],
}


def ways(kind, value):
    """All collections of this one key."""
    yield [value]
    yield (key for key in [value])
    if kind not in ARROW:
        yield [getattr(np, kind)(value)]
        yield np.array([value], kind)
        yield np.array([value], np.dtype(kind).newbyteorder(">"))
    elif not value.endswith(("\0", b"\0")[kind == "binary"]):  # which is padding there
        yield np.array([value])
        yield np.array([value], f">{'US'[kind == 'binary']}{len(value) + 3}")
    for of in ARROW.get(kind) or [getattr(pa, kind)()]:
        yield pa.array([value], of)
        yield pa.array([None, value], of).slice(1)


@pytest.mark.parametrize("row", TYPED, ids=[f"{row['type']} {row['value'][:24]}" for row in TYPED])
def test_keys_of_other_types(row):
    kind = row["type"]
    read = {"text": lambda text: text.replace("\\0", "\0"), "binary": bytes.fromhex}.get(kind, int)
    value = read(row["value"])
    if kind == "int":  # of more than 64 bits, which are no keys
        with pytest.raises(OverflowError, match="turn them into text"):
            BloomFilter(10).add(value)
        return
    expected = one_by_one([bytes.fromhex(row["key"])], BloomFilter(10, seed=0x5EED))
    assert value in expected
    for keys, same in zip(ways(kind, value), ways(kind, value)):
        f = BloomFilter(10, seed=0x5EED)
        f.update(keys)
        assert f == expected and expected.contains_many(same).tolist() == [True], keys
