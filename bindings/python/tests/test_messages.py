"""Errors as a user reads them: what was wrong, with the argument, the class or the path, and what to do."""

import errno
import io
import math
import mmap
import operator
import os
from functools import partial

import numpy as np
import pytest

import bloomline
from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    DecodeError,
    FilterBank,
    FilterBuilder,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import ALL

KINDS = {
    BloomFilter: "blocked filter",
    CountingBloomFilter: "counting filter",
    ScalableBloomFilter: "scalable filter",
    StandardBloomFilter: "standard filter",
    FilterBank: "filter bank",
}


def one_of(cls):
    if cls is FilterBank:
        return FilterBank([one_of(BloomFilter)])
    f = cls(1_000)
    f.update(range(1_000))
    return f


def message(expected, use, *arguments, **options):
    with pytest.raises(expected) as error:
        use(*arguments, **options)
    return str(error.value)


def many(f):
    """All calls that read many keys."""
    return f.update, f.contains_many, BloomView(f.to_bytes()).contains_many, FilterBank([f]).find_many


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize("wanted", KINDS)
def test_another_class(cls, wanted, tmp_path):
    if cls is wanted:
        return
    data, name = one_of(cls).to_bytes(), cls.__name__
    path = tmp_path / "f"
    path.write_bytes(data)
    text = f"these are the bytes of a {KINDS[cls]}: open them as one, with {name}"
    for read in (wanted.from_bytes, *([BloomView] if wanted is BloomFilter else [])):
        assert message(DecodeError, read, data) == f"{text}.from_bytes"
    for options in ({}, {"mmap": False}):
        assert message(DecodeError, wanted.open, path, **options) == f"{path}: {text}.open or bloomline.open"


def test_files_of_no_class(tmp_path):
    path = tmp_path / "f"
    compact = one_of(BloomFilter).to_bytes()[:-64] + b"\x25"  # docs/format.md, section 4
    looks = {
        b"": "there are 0, and at least",
        b"ant": "this looks like text: pass its lines to `update`, without their ends",
        b"ant\nbee\n" * 30: "this looks like text",
        "жук\n".encode() * 50: "this looks like text",
        b"\x89bldup\r\n": "this is a state of `bloomline dedup`, which only the command line reads",
        bytes(500) + b"\x89bldup\r\n": "a state of `bloomline dedup`",
        bytes(500) + b"\x89blsiv\r\n": "these are the bytes of a frontier: open them as one, which only Rust reads",
        compact: "this may be a compact filter, which Python does not read: write standalone bytes instead",
        bytes(500): "they end in 0x0000000000000000",
    }
    for content, text in looks.items():
        path.write_bytes(content)
        for open in (bloomline.open, BloomFilter.open, StandardBloomFilter.open, FilterBank.open):
            read = message(DecodeError, open, path)
            assert read.startswith(f"{path}: ") and text in read and read.count(";") <= 1, read


def test_what_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opens = [bloomline.open, partial(BloomFilter.open, mmap=False), *(cls.open for cls in KINDS)]
    for open in opens:
        for path in (".", str(tmp_path)):
            with pytest.raises((IsADirectoryError, PermissionError)) as error:
                open(path)
            assert error.value.filename == path and (os.name != "posix" or error.value.errno == errno.EISDIR)
        with pytest.raises(FileNotFoundError) as error:
            open("absent")
        assert error.value.filename == "absent"
    for use in (*opens, *(one_of(cls).save for cls in KINDS)):
        with pytest.raises((OSError, ValueError), match="(?i)nul"):
            use("a\0b")
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        for open in (bloomline.open, BloomFilter.open):
            for path in ("pipe", "/dev/null"):
                text = message(OSError, open, path)
                assert text.startswith("not a regular file, which cannot be mapped: ") and path in text
    for path in ("f.bloom", tmp_path):
        text = "a buffer of bytes is needed, not a path: `open` takes a path"
        assert message(TypeError, BloomView, path) == text == message(TypeError, BloomFilter.from_bytes, path)


@pytest.mark.parametrize("cls", ALL)
def test_arguments_are_named(cls):
    keys = "initial_capacity" if cls is ScalableBloomFilter else "expected_keys"
    needed = "an integer from 0 to 18446744073709551615 is needed, not"
    for wrong, shown in ((1e6, "1000000.0"), ("1000", "'1000'"), (None, "None"), ([0] * 99, "an object of type list")):
        assert message(TypeError, cls, wrong) == f"{keys}: {needed} {shown}"
        assert message(TypeError, cls, 10, seed=wrong) == f"seed: {needed} {shown}"
    for wrong in (-1, -(2**70), 2**64):
        assert message(ValueError, cls, **{keys: wrong}) == f"{keys}: {needed} {wrong}"
        assert message(ValueError, cls, 10, seed=wrong) == f"seed: {needed} {wrong}"
    assert "2 positional arguments but 3 were given" in message(TypeError, cls, 10, 0.01, 7)
    assert message(TypeError, cls, 10, "1%") == "fpr: a number is needed, not '1%'"
    for wrong in (0, math.nan):
        text = f"a false-positive rate must be between 0 and 1, both excluded, not {wrong}"
        assert message(ValueError, cls, 10, wrong).lower() == text
    text = message(MemoryError, cls, 2**50)
    assert text.startswith("out of memory: cannot allocate ")
    assert text.endswith(" bytes: expect fewer keys, or allow a higher fpr")
    if cls is not ScalableBloomFilter:
        assert message(TypeError, cls.with_bits_per_key, 10, "8") == "bits_per_key: a number is needed, not '8'"
        text = "bits per key must be above 0 and at most 64"
        assert message(ValueError, cls.with_bits_per_key, 10, math.nan).startswith(text)


def test_other_arguments_are_named():
    f, bank = BloomFilter(1_000), FilterBank([BloomFilter(1_000)])
    view = BloomView(f.to_bytes())
    makers = [partial(BloomFilter, 10, 0.01), partial(BloomFilter.with_bits_per_key, 10, 10)]
    makers += [partial(FilterBuilder, 0.01), partial(FilterBuilder.with_bits_per_key, 10)]
    slots = [bank.get, bank.clear, lambda slot: bank.replace(slot, f)]
    lookups = [f.contains_many, view.contains_many]
    opens = [bloomline.open, *(cls.open for cls in KINDS)]
    banks = lambda capacity: FilterBank([f], capacity)
    united = {cls: cls.__name__ for cls in (StandardBloomFilter, ScalableBloomFilter)}
    united[BloomFilter] = "BloomFilter and BloomView"
    modules = "most_modules: an integer from 1 to 16 is needed, not"
    counts = "an integer from 0 to 18446744073709551615 is needed, not"
    for error, uses, arguments, options, text in (
        (ValueError, [f.fold], [-1], {}, f"factor: {counts} -1"),
        (TypeError, [f.fold], [2.0], {}, f"factor: {counts} 2.0"),
        (ValueError, [f.fold], [7], {}, "20 blocks cannot be folded by 7: use a factor that divides 20"),
        (ValueError, [f.shrink_to_fpr], [3], {}, "a false-positive rate must be between 0 and 1, both excluded, not 3"),
        (TypeError, [f.shrink_to_fpr, FilterBuilder], ["x"], {}, "fpr: a number is needed, not 'x'"),
        (TypeError, [FilterBuilder.with_bits_per_key], ["x"], {}, "bits_per_key: a number is needed, not 'x'"),
        (ValueError, makers, [], {"most_modules": 17}, "the number of modules must be 1 to 16, not 17"),
        (ValueError, makers, [], {"most_modules": -1}, f"{modules} -1"),
        (TypeError, makers, [], {"most_modules": 2.0}, f"{modules} 2.0"),
        (ValueError, [banks], [-1], {}, f"capacity: {counts} -1"),
        (TypeError, [banks], [1.5], {}, f"capacity: {counts} 1.5"),
        (ValueError, [bank.reserve], [-1], {}, f"additional: {counts} -1"),
        (TypeError, [bank.reserve], [1.5], {}, f"additional: {counts} 1.5"),
        (TypeError, slots, [1.0], {}, "slot: an integer is needed, not 1.0"),
        (TypeError, lookups, [[1]], {"nulls": 0}, "nulls: True, False or None is needed, not 0"),
        (TypeError, [bank.find_many], [[1]], {"packed": 1}, "packed: True or False is needed, not 1"),
        # As the builtin `open` takes them.
        (TypeError, opens, ["f", "rb"], {}, "mmap: True or False is needed, not 'rb'"),
        (TypeError, opens, ["f"], {"verify": None}, "verify: True or False is needed, not None"),
        (TypeError, [f.save, bank.save], [b"f"], {}, "path: a str or os.PathLike is needed, not b'f'"),
        (TypeError, opens, [b"f"], {}, "path: a str, os.PathLike or open binary file that can seek is needed, not b'f'"),
        (TypeError, [FilterBank], [f], {},
         "filters: an iterable of BloomFilter and BloomView objects is needed, not an object of type BloomFilter"),
        *((TypeError, [cls.union], [5], {}, f"filters: an iterable of {classes} objects is needed, not 5")
          for cls, classes in united.items()),
        *((TypeError, [cls.union], [[cls(10), wrong]], {},
           f"a union is made of {classes} objects, not {type(wrong).__name__}")
          for cls, classes in united.items() for wrong in (17, b"bytes", bank, view)
          if type(wrong).__name__ not in classes),
        (TypeError, [f.estimated_union, view.estimated_intersection], [{"ant"}], {},
         "other: a BloomFilter or a BloomView is needed, not {'ant'}"),
    ):  # fmt: skip
        for use in uses:
            assert message(error, use, *arguments, **options) == text


def test_filters_that_cannot_be_combined():
    with_bits = BloomFilter.with_bits_per_key
    f = with_bits(1_000, 10)
    f.add("ant")
    before = f.to_bytes()
    for other, text in (
        (with_bits(500, 20, most_modules=1), "filters with k = 7 and k = 11 {}: build both with one size"),
        (with_bits(1_050, 10), "filters of 20 and 21 blocks {}: build both with one size"),
        (with_bits(1_000, 10, seed=255), "filters with seeds 0x0 and 0xff {}: build both with one seed"),
    ):
        for use in (operator.or_, operator.and_, operator.ior, operator.iand, lambda f, g: BloomFilter.union([f, g])):
            assert message(ValueError, use, f, other) == text.format("cannot be combined")
        assert message(ValueError, f.estimated_union, other) == text.format("cannot be combined")
    assert f.to_bytes() == before
    text = "filters of 20 and 40 blocks cannot be combined: fold the larger one by 2"
    assert message(ValueError, f.estimated_intersection, with_bits(2_000, 10)) == text
    for fpr in ("0.1", "0.00001"):  # with another k, and with the same k in two modules
        scalable = [ScalableBloomFilter(1_000), ScalableBloomFilter(1_000, float(fpr))]
        assert message(ValueError, ScalableBloomFilter.union, scalable) == (
            f"filters with fpr = 0.01 and fpr = {fpr} cannot be combined: make both with the same fpr"
        )


def test_what_has_no_keys():
    pd, pl, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    f = BloomFilter(1_000)
    pandas, polars = pd.DataFrame({"a": [1, 2], "b": [3, 4]}), pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    iterable = "an iterable of keys is needed, not {}: put a single key in a list".format
    for keys, text in (
        (polars.lazy(), "a polars LazyFrame has no keys: call .collect() and select one column"),
        (polars.lazy().group_by("a"), "a polars LazyGroupBy has no keys: pass one column"),
        (polars.group_by("a"), "a polars GroupBy has no keys: pass one column"),
        (pl.col("a"), "a polars Expr has no keys: "),
        (pandas.groupby("a"), "a pandas DataFrameGroupBy has no keys: pass one column of the DataFrame that was "),
        (pandas.groupby("a")["b"], "a pandas SeriesGroupBy has no keys: pass one column"),
        (pd.MultiIndex.from_frame(pandas), "a pandas MultiIndex has no keys: join its levels"),
        (pd.DataFrame(), "a table without columns has no keys"),
        (pl.DataFrame(), "a table without columns has no keys"),
        (pandas, "2 columns (a, b) are not keys: select one of them"),
        (polars, "2 columns (a, b) are not keys: select one of them"),
        (duckdb.connect(), "a duckdb DuckDBPyConnection has no keys: pass con.sql(query), not con.execute(query)"),
        (17, iterable("int")), (None, iterable("NoneType")), (object(), iterable("object")),
        ("ant", iterable("str")), (b"ant", iterable("bytes")),
        (io.StringIO("ant\n"), "a file (StringIO) is no keys: pass (line.rstrip(\"\\n\") for line in file), because "),
        (mmap.mmap(-1, 9), "a file (mmap) is no keys: "),
        ([1, None], "keys[1]: objects of type NoneType cannot be keys: drop None, or "),
        (np.ma.masked_array([1, 2], [0, 1]), "masked arrays cannot be keys: drop the masked values with .compressed()"),
        (pd.Series([1, None]), "pandas columns of float64 cannot be keys: cast integers with missing values with "),
    ):  # fmt: skip
        for use in many(f):
            assert message(TypeError, use, keys).startswith(text), text


def test_types_have_the_names_that_their_library_gives_them():
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    duckdb = pytest.importorskip("duckdb")
    f, connection = BloomFilter(1_000), duckdb.connect()
    cast, select = "cast them to text, bytes or integers of at most 64 bits", "select one of their fields, or if this is a "
    row, struct = pa.array([{"a": 1}]), pd.ArrowDtype(pa.struct({"a": pa.int64()}))
    columns = [
        (connection.sql("SELECT 42::HUGEINT"), "columns of HUGEINT (decimals in Arrow)", cast),
        (connection.sql("SELECT sum(42)"), "columns of HUGEINT (decimals in Arrow)", cast),
        (connection.sql("SELECT {'a': 1}"), "columns of STRUCT(a INTEGER) (structs in Arrow)", select),
        (pl.Series([1.5]), "columns of Float64 (floats in Arrow)", cast),
        (pl.DataFrame({"a": [1.5]}), "columns of Float64 (floats in Arrow)", cast),
        (pl.Series([{"a": 1}]), "columns of Struct({'a': Int64}) (structs in Arrow)", select),
        # Their Arrow data are the addresses of the objects.
        (pl.Series([object()], dtype=pl.Object), "columns of Object", cast),
        (pl.Series("a", ["ant", None], dtype=pl.Object).to_frame(), "columns of Object", cast),
        (pa.array([1.5]), "columns of double (floats in Arrow)", cast),
        (pa.table({"a": [1.5]}), "columns of double (floats in Arrow)", cast),
        (row, "columns of struct<a: int64> (structs in Arrow)", select),
        (pa.chunked_array([row]), "columns of struct<a: int64> (structs in Arrow)", select),
        (pa.table({"a": row}), "columns of struct<a: int64> (structs in Arrow)", select),
        (pd.Series([True]), "pandas columns of bool", cast),
        (pd.Series([1.5]).astype("category"), "pandas columns of category (floats in Arrow)", cast),
        (pd.Series([1.5], dtype="Float64"), "pandas columns of Float64 (floats in Arrow)", cast),
        (pd.Series([{"a": 1}], dtype=struct), "pandas columns of struct<a: int64>[pyarrow] (structs in Arrow)", select),
        (np.array([1.5]), "numpy arrays of float64", cast),
        ([1.5], "keys[0]: objects of type float", cast),
    ]
    if hasattr(pl, "Int128"):
        columns.append((pl.Series([1], dtype=pl.Int128), 'columns of Int128 (values of type "_pli128" in Arrow)', cast))
    for keys, name, remedy in columns:
        for use in many(f):
            assert message(TypeError, use, keys).startswith(f"{name} cannot be keys: {remedy}"), name
    text = f"integers below -2^63 or above 2^64 - 1, such as {2**64}, cannot be keys: turn them into text"
    assert message(OverflowError, f.add, 2**64) == text
    assert message(OverflowError, f.update, [1, 2**64]) == f"keys[1]: {text}"


def test_a_bad_key_is_named_with_its_position():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    f, far = BloomFilter(1_000), 70_000
    before = [str(number) for number in range(far)]
    holes = [None if number % 3 else key for number, key in enumerate(before)]
    refused = [
        (TypeError, [*before, 1.5]), (TypeError, (*before, True)), (TypeError, (key for key in [*before, None])),
        (TypeError, dict.fromkeys([*before, 1.5])), (TypeError, np.array([*before, None], object)),
        (TypeError, pd.Series([*holes, 1.5], dtype=object)), (TypeError, pd.Index([*before, 1.5], dtype=object)),
        (OverflowError, [*before, 2**64]), (ValueError, np.array([*before, "\ud800"])),
        (ValueError, np.repeat(np.array([*before, "\ud800"]), 2)[::2]),
    ]
    for error, keys in refused:
        uses = (f.update, f.add_many, f.contains_many, FilterBank([f]).find_many)
        # A generator ends with its first use, and a bank refuses nulls first.
        uses = uses[:1] if hasattr(keys, "__next__") else uses[:3] if isinstance(keys, pd.Series) else uses
        for use in uses:
            text = message(error, use, keys)
            assert text.startswith((f"keys[{far}]: ", f"keys[{far}] contains 0xd800")), text
    valid = pa.array([*before, None])
    for keys in (valid, pa.chunked_array([valid[:9], valid[9:]])):
        assert message(TypeError, FilterBank([f]).find_many, keys).startswith(f"keys[{far}] is null: ")

    class Raises:
        def __index__(self):
            raise LookupError("not ours")

    for key in ("\ud800", Raises()):
        with pytest.raises((UnicodeEncodeError, LookupError)) as raised:
            f.update([1, 2, key])
        assert getattr(raised.value, "__notes__", ["keys[2]"]) == ["keys[2]"]
