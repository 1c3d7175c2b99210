"""Indexes over files, which the command line and Rust write: the goldens, damage, other classes."""

import os
import sys
from pathlib import Path

import pytest

import bloomline
from bloomline import BloomView, DecodeError, FileIndex
from support import GOLDEN
from test_goldens import ABSENT, keys_of, table
from test_messages import KINDS, message

INDEX = GOLDEN / "index-6-files.bin"
INDEXES = {row["file"]: row for row in table("files") if row["kind"] == "index"}
DAMAGED = [row for row in table("damaged") if row["reader"] == "index"]


def has_keys_of(index, row):
    """Whether an index finds all keys of a golden, by the names that its table lists."""
    names = [os.fsdecode(bytes.fromhex(of["name"])) for of in table("indexes") if of["file"] == row["file"]]
    keys = row["keys"].split("|") if names else []
    assert len(index) == len(names) == len(keys)
    found = {key: index.find(key) for key in {key for cell in keys for key in keys_of(cell)} | set(ABSENT)}
    assert all(of == [name for name in names if name in of] for of in found.values()), "in order, once"
    assert sum(len(found[key]) for key in ABSENT) == int(row["found"])
    return all(name in found[key] for name, cell in zip(names, keys) for key in keys_of(cell))


@pytest.mark.parametrize("name", INDEXES)
def test_goldens(name):
    row = INDEXES[name]
    rule = next((of["rule"] for of in table("indexes") if of["file"] == name), "")
    for mmap, verify in ((True, True), (True, False), (False, True)):
        index = bloomline.open(GOLDEN / name, mmap, verify=verify)
        assert type(index) is FileIndex and has_keys_of(index, row)
        assert (index.rule, index.fpr) == (rule, float(row["rate"]))
        assert repr(index) == f'FileIndex(files={len(index)}, fpr={index.fpr}, rule="{rule}")'


def test_keys():
    index = bloomline.open(INDEX)
    assert index.find("ant") == index.find(b"ant") == [""] and index.find(17) == []
    assert index.find("17") == [os.fsdecode(name) for name in (
        b"logs/2026-11-26/app.log", b"logs/2026-11-27/app.log", b"\xe9")]  # fmt: skip
    for wrong in (None, 1.5, True, ["ant"]):
        with pytest.raises(TypeError):
            index.find(wrong)
    with pytest.raises(TypeError):
        FileIndex()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the mappings")
def test_is_mapped_unless_told_otherwise(tmp_path):
    path = tmp_path / "f.index"
    path.write_bytes(INDEX.read_bytes())
    is_mapped = lambda: str(path) in Path("/proc/self/maps").read_text()
    copied = bloomline.open(path, mmap=False)
    assert not is_mapped()
    mapped = bloomline.open(path)
    assert is_mapped()
    del mapped
    assert not is_mapped()
    path.write_bytes(b"")
    assert copied.find("ant") == [""]


@pytest.mark.parametrize("row", DAMAGED, ids=[row["case"] for row in DAMAGED])
def test_damaged_goldens(row, tmp_path):
    data, path = (GOLDEN / row["file"]).read_bytes(), tmp_path / "f"
    path.write_bytes(data[: int(row["from"])] + bytes.fromhex(row["bytes"]) + data[int(row["to"]) :])
    for mmap in (True, False):
        if row["error"] == "accepted":
            assert len(bloomline.open(path, mmap)) == 6
        elif row["case"] != "another kind":  # which opens as its class
            text = message(DecodeError, bloomline.open, path, mmap)
            assert text.startswith(f"{path}: ") and row["says"] in text


def test_damage_is_an_error_and_no_shorter_list(tmp_path):
    path, data = tmp_path / "f.index", INDEX.read_bytes()
    keys = ["ant", *(str(number) for number in range(0, 100, 3))]
    index, refused = bloomline.open(INDEX), 0
    expected = {key: index.find(key) for key in keys}
    for at in range(0, len(data), 41):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            index = bloomline.open(path, verify=False)
        except DecodeError:
            continue
        for key, names in expected.items():
            try:
                assert index.find(key) == names
            except DecodeError as error:
                assert str(error).startswith(f"{path}: ") and " damaged" in str(error)
                refused += 1
    assert refused > 100


@pytest.mark.parametrize("cls", KINDS)
def test_another_class(cls):
    text = "these are the bytes of a file index: open them as one, a FileIndex, with bloomline.open"
    for options in ({}, {"mmap": False}):
        assert message(DecodeError, cls.open, INDEX, **options) == f"{INDEX}: {text}"
    for read in (cls.from_bytes, BloomView):
        assert message(DecodeError, read, INDEX.read_bytes()) == text
