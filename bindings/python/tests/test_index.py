"""Indexes over files: the goldens, those made here, file objects, keys that a rule excludes, damage, other classes."""

import itertools
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bloomline
from bloomline import BloomFilter, BloomView, DecodeError, FileIndex, FilterBuilder
from support import GOLDEN, File
from test_goldens import ABSENT, keys_of, table
from test_messages import KINDS, message

pa = pytest.importorskip("pyarrow")

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
        data = (GOLDEN / name).read_bytes()
        of_file = FileIndex.open(File(data, 999), mmap, verify=verify)
        assert index.to_bytes() == data == of_file.to_bytes() and has_keys_of(of_file, row)
        assert type(index) is FileIndex and has_keys_of(index, row)
        assert (index.rule, index.fpr) == (rule, float(row["rate"]))
        assert repr(index) == f'FileIndex(files={len(index)}, fpr={index.fpr}, rule="{rule}")'


def test_keys():
    index = bloomline.open(INDEX)
    assert index.find("ant") == index.find(b"ant") == [""] and index.names == sorted(index.names)
    assert index.find("17") == [os.fsdecode(name) for name in (
        b"logs/2026-11-26/app.log", b"logs/2026-11-27/app.log", b"\xe9")]  # fmt: skip
    keys = ["ant", "17", "absent", ""]
    for many in (keys, np.array(keys), pa.array(keys)):
        assert index.find_many(many) == [index.find(key) for key in keys]
    for use, wrong in itertools.product((index.find, index.find_many), (None, 1.5, True)):
        with pytest.raises(TypeError):
            use(wrong if use == index.find else [wrong])
    with pytest.raises(TypeError, match=r"^keys\[1\] is null"):
        index.find_many(pa.array(["ant", None]))
    with index as same, pytest.raises(ZeroDivisionError):
        assert same is index and not index.closed
        1 / 0
    index.close()
    assert index.closed and repr(index) == "FileIndex(closed)"
    for use in (lambda: index.find("ant"), lambda: index.find_many([]), lambda: index.names, lambda: len(index),
                lambda: index.rule, lambda: index.fpr, index.to_bytes, index.__enter__):  # fmt: skip
        assert message(ValueError, use) == "the index is closed: open it again"


def made(files, fpr=0.001, **options):
    """An index of keys, each filter of which is a BloomFilter or a view."""
    builder, filters = FilterBuilder.for_index(fpr), {}
    for number, (name, keys) in enumerate(files.items()):
        builder.update(keys)
        filter = builder.finish()
        filters[name] = BloomView(filter.to_bytes()) if number % 2 else filter
    return FileIndex(filters, fpr, **options)


def test_made_in_python(tmp_path):
    names = ["b", "a/ü", b"\xff", pathlib.Path("c")]
    index = made({name: range(i, 5_000, 7 * i + 1) for i, name in enumerate(names)})
    decoded = [os.fsdecode(name) for name in names]
    assert index.names == sorted(decoded, key=os.fsencode) and (index.rule, index.fpr) == ("", 0.001)
    assert all(set(index.find(i)) >= {name for j, name in enumerate(decoded) if i in range(j, 5_000, 7 * j + 1)}
               for i in range(5_000)) and not index.find(5_001)  # fmt: skip
    index.save(tmp_path / "f.index")
    assert FileIndex.open(tmp_path / "f.index").to_bytes() == index.to_bytes() == (tmp_path / "f.index").read_bytes()
    assert FileIndex([("read", FilterBuilder.for_index(0.01).finish()), ("not read", None)], 0.01, rule="lines").find("ant") == ["not read"]
    assert message(TypeError, FileIndex, {"f": 3}, 0.01) == "an index is made of BloomFilter and BloomView objects, not int"
    text = message(ValueError, FileIndex, {"f": BloomFilter(10, 0.3)}, 0.01)
    assert text.startswith("the filter of f: filters with k = 6 and k = ") and text.endswith(" (see FilterBuilder.for_index)")
    with pytest.raises(TypeError, match="integers and text never match"):
        made({"f": range(9)}).find("ant")


def test_a_key_that_the_rule_excludes_is_an_error():
    never, files = "integers and text never match", {"f": ["ant"]}
    for rule, wrong, right in (
        ("lines", {2100: never, "ant\n": "has an end of line"}, ["ant", "an ant", b"\0", b"12345678", "Ant\r"]),
        ("lines --null", {2100: never, "ant\0": "has an end of line"}, ["ant\n"]),
        ("lines --csv --column 2", {2100: never}, ["ant\n"]),
        ("lines --integers", {"2100": never}, [2100]),
        ("lines --column 'a --integers --csv'", {2100: never, "ant\n": "has an end of line"}, ["ant"]),
        ("lines --length 8", {}, [2100, "ant", "a line\n"]),
        ("words 2", {2100: never, **dict.fromkeys(
            ["an ant", b"a/b", "", "ant.", "-ant", "a:b", "web:80", "10:00:01", "::1"], "is not one word")},
         ["ant", "Ant", "жук", "a-b.c", "fe80::1", "ab:cd:ef", "1:2:3:4:5:6", "an IPv4 address", "a UUID"]),
        ("words 2 --ignore-case", {"Ant": "capital letters"}, ["ant", "a UUID"]),
        ("search words", {}, ["an ant"]),
        ("", {}, [2100, "an ant\n"]), ("wörter", {}, [2100, "an ant\n"]),
    ):  # fmt: skip
        index = FileIndex.open(File(made(files, rule=rule).to_bytes()))
        assert index.rule == rule and all(index.find(key) == index.find_many([key])[0] for key in right)
        for key, text in wrong.items():
            assert text in message(TypeError if text is never else ValueError, index.find, key)
            if text is never:
                message(TypeError, index.find_many, [key])


def test_an_index_in_a_store_is_not_loaded():
    """Opening reads the end, and a lookup one range of each bank, which is checked. Threads may share the file."""
    index = made({f"logs/{i:05}.log": range(i * 100, i * 100 + 20 + i) for i in range(4_000)}, 0.0001)
    data = index.to_bytes()
    file = File(data, 40_000)
    opened = bloomline.open(file)
    assert len(file.reads) < 7 and sum(length for _, length in file.reads) < 200_000 < len(data) / 20
    file.reads.clear()
    assert opened.find(40_000) == index.find(40_000)
    assert len(file.reads) < 40 and sum(length for _, length in file.reads) < len(data) / 20
    first, length = file.reads[0]
    keys = range(0, 400_000, 1_001)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened.find, keys)) == index.find_many(keys) == opened.find_many(keys)
    cut = FileIndex.open(File(data[-length - 70_000 :]))
    for key in keys:
        with pytest.raises(DecodeError, match="^store/f: "):
            cut.find(key)
    for change in (lambda: data[: first + 9] + bytes([data[first + 9] ^ 1]) + data[first + 10 :], lambda: data[:first],
                   lambda: b"a" + data):  # fmt: skip
        file.seek(0)
        file.truncate()
        file.write(change())
        for call in (lambda: opened.find(40_000), opened.to_bytes):
            with pytest.raises(DecodeError, match="^store/f: "):
                call()
    file.close()
    assert message(ValueError, opened.find, 40_000) == "I/O operation on closed file."


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
            assert len(FileIndex.open(path, mmap)) == 6
        else:
            text = message(DecodeError, FileIndex.open, path, mmap)
            assert text.startswith(f"{path}: ") and row["says"] in text
            # Of a file object, it reads the names, and lookups find damage elsewhere, unless they do not read it.
            keys = [str(key) for key in range(0, 100, 3)]
            try:
                found = FileIndex.open(File(path.read_bytes()), mmap).find_many(keys)
            except DecodeError as error:
                assert row["says"] in str(error)
            else:
                assert mmap and found == bloomline.open(INDEX).find_many(keys)


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
