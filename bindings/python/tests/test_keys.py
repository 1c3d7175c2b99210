"""Every kind of `keys` has the bits and the answers of its values, one by one."""

import array
import datetime
import decimal
import os
import uuid

import numpy as np
import pytest

from bloomline import BloomFilter, BloomView, CountingBloomFilter, FilterBank
from support import ALL, empty, key_bytes, one_by_one, run_python, with_little_memory

pa = pytest.importorskip("pyarrow")

WORDS = ["", "a", "ant", "a\0", "\0", "жук", "🐜", "twelve bytes", "thirteen byte",
         "a longer string, of 33 characters", "x" * 300]
LENGTHS = [0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 10_000]


def check(keys, values=None, stream=None):
    """`keys` must act as the list `values`, in which None is a null. `stream` makes another one where `keys` can be
    read once only."""
    values = keys.tolist() if values is None else values
    stream = stream or (lambda: keys)
    present = [value for value in values if value is not None]

    f = empty(len(values))
    assert f.update(keys) is None
    assert f == one_by_one(present, empty(len(values))), "the bits differ from those of single inserts"

    half = one_by_one(present[::2], empty(len(values)))
    found = [None if value is None else key_bytes(value) in half for value in values]
    whole = half.copy()
    new = [None if value is None else whole.add(key_bytes(value)) for value in values]
    for nulls in (None, False, True):
        more = half.copy()
        calls = [(half.contains_many, found), (BloomView(half.to_bytes()).contains_many, found), (more.add_many, new)]
        for call, expected in calls:
            answers = call(stream(), nulls=nulls)
            if is_arrow(keys):
                assert isinstance(answers, pa.BooleanArray), type(answers)
                answers.validate(full=True)
                null = nulls
            else:
                assert isinstance(answers, np.ndarray) and answers.dtype == np.bool_ and answers.shape == (len(values),)
                null = bool(nulls)
            assert answers.tolist() == [null if answer is None else answer for answer in expected]
        assert more == whole


def is_arrow(keys):
    """Whether the answers are an Arrow array, which depends on the type of the keys only."""
    exports = hasattr(keys, "__arrow_c_stream__") or hasattr(keys, "__arrow_c_array__")
    packages = {cls.__module__.split(".")[0] for cls in type(keys).__mro__}
    return exports and packages.isdisjoint(["pandas", "polars"])


def refused(keys, *names, error=TypeError):
    """`keys` is an error that has one word of each of `names`, whose words are divided by bars."""
    f = empty()
    for call in (f.update, f.contains_many, BloomView(f.to_bytes()).contains_many):
        with pytest.raises(error) as raised:
            call(keys)
        text = str(raised.value).lower()
        for name in names:
            assert any(word in text for word in name.lower().split("|")), f"{name!r} is not in {text!r}"
    assert f == empty()


# numpy

INTEGERS = [np.dtype(order + kind + width) for kind in "iu" for width in "1248" for order in "<>"]
INTEGERS += [np.dtype("longlong")]


def integers(dtype, count=1_000):
    info = np.iinfo(dtype)
    random = np.random.default_rng(17)
    values = random.integers(info.min, info.max, count, dtype=dtype.newbyteorder("="), endpoint=True)
    values[:6] = [info.min, info.max, 0, 1, info.max // 2, info.min // 2]
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.str)
def test_numpy_integers(dtype):
    keys = integers(dtype)
    assert keys.dtype == dtype
    table = keys[:600].reshape(200, 3)
    records = np.zeros(100, [("flag", "u1"), ("key", dtype)])  # packed: the keys are not aligned
    records["key"] = keys[:100]
    frozen = keys.copy()
    frozen.flags.writeable = False
    for some in (keys, keys[::2], keys[::-1], keys[5::-3], keys[3:4], keys[:0], np.broadcast_to(keys[5], 70),
                 table[:, 1], np.asfortranarray(table)[7], records["key"], frozen):  # fmt: skip
        check(some)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_around_batches(length):
    numbers = np.arange(length)
    values = [None if i % 3 == 1 else str(i) for i in range(length)]
    for keys in (numbers * 3, numbers.astype(">u4")[::-1], numbers.astype("S"), numbers.astype("U")):
        check(keys)
    check(pa.array(numbers), numbers.tolist())
    check(pa.array(values, pa.string()), values)
    check(list(range(length)), list(range(length)))


@pytest.mark.parametrize("order", "<>")
def test_numpy_text(order):
    records = np.zeros(50, [("flag", "u1"), ("key", f"{order}U3")])
    records["key"] = [str(i) for i in range(50)]
    check(records["key"])
    for words in (WORDS, WORDS[:4], ["", ""], ["a\0b", "\0\0", "a\0\0", "b" * 9], ["é" * n for n in range(40)],
                  ["é" * n + "x" for n in range(40)], ["\U0010ffff", "\ud7ff", "\ue000", "\uffff"]):  # fmt: skip
        keys = np.array(words, dtype=f"{order}U{max(map(len, words)) + 2}")
        assert keys.tolist() == [word.rstrip("\0") for word in words]
        check(keys)
        check(keys[::-2])
        check(np.repeat(keys, 300)[1:])


def test_numpy_bytes():
    for width in (1, 2, 3, 4, 7, 8, 9, 16, 17, 48, 49, 200):
        keys = np.frombuffer(np.random.default_rng(3).bytes(width * 200), f"S{width}").copy()
        keys[7:10] = b"", b"\0a"[:width], b"a\0"[:width]
        check(keys)
        check(keys[::-3])
    for kind in ("S0", "U0"):  # of no width, where this numpy has such arrays
        check(np.zeros(5, np.dtype([("key", kind)]))["key"])


def test_numpy_text_that_is_no_text():
    for code in (0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF):
        refused(np.array([97, code, 98, 99], "u4").view("U2"), error=ValueError)
    f = empty()
    with pytest.raises(ValueError):
        f.update(np.array(["ant", "bee", "\ud800", "cat"]))
    assert f == one_by_one(["ant", "bee"])


def test_numpy_objects():
    check(np.array(["ant", b"bee", 17, 2**64 - 1, -2, np.int8(3), "жук"], dtype=object)[::-2])
    for wrong in (None, 1.5, True, bytearray(b"ant")):
        f = empty()
        with pytest.raises(TypeError, match="(?i)cast"):
            f.update(np.array(["ant", wrong, "bee"], dtype=object))
        assert f == one_by_one(["ant"])


@pytest.mark.parametrize("dtype", "f2 f4 f8 g c8 c16 ? M8[s] M8[D] m8[ns] V8 V16 V0".split())
def test_other_numpy_types_are_refused(dtype):
    refused(np.zeros(3, dtype), "cast", np.dtype(dtype).str[1:] if dtype[0] == "V" else np.dtype(dtype).name)


@pytest.mark.parametrize("dtype", ["f8", "?", "M8[s]", "V8", "i2", "S3", "U3", "O"])
def test_an_empty_array_is_an_empty_list(dtype):
    check(np.zeros(0, dtype))
    check(np.zeros(9, dtype)[:0])
    check(np.ma.zeros(0, dtype))
    assert FilterBank([empty()]).find_many(np.zeros(0, dtype)).shape == (0, 1)


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3), (1, 1), (2, 1, 2)])
def test_arrays_of_other_dimensions_are_refused(shape):
    for dtype in ("i8", "S3", "U3", "O"):
        refused(np.zeros(shape, dtype), error=(TypeError, ValueError))


def test_other_arrays():
    check(array.array("q", range(-50, 50)))
    check(np.arange(200).astype(np.uint16).view(type("Sub", (np.ndarray,), {})))
    check(range(1_000), list(range(1_000)))
    if hasattr(np.dtypes, "StringDType"):
        check(np.array(WORDS, np.dtypes.StringDType()), WORDS)

    class Masked:
        def __array__(self, dtype=None, copy=None):
            return np.ma.array([1, 2], mask=[False, True])

    refused(Masked(), "masked")


# Arrow

TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BINARIES = [pa.binary(), pa.large_binary(), pa.binary_view()]
ARROW_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FIXED = [pa.binary(width) for width in (1, 3, 8, 17)]
KINDS = [*TEXTS, *BINARIES, *ARROW_INTEGERS, *FIXED]


def values_of(kind, count=200):
    if kind in TEXTS:
        return [WORDS[i % len(WORDS)] + str(i // len(WORDS)) * (i % 3) for i in range(count)]
    if kind in BINARIES:
        return [b"\xff\0"[: i % 3] + bytes([i % 256]) * (i % 21) for i in range(count)]
    if kind in FIXED:
        random = np.random.default_rng(kind.byte_width)
        return [random.bytes(kind.byte_width) for _ in range(count)]
    return integers(np.dtype(kind.to_pandas_dtype()), count).tolist()


def with_nulls(values, every=5, first=2):
    return [None if i % every == first else value for i, value in enumerate(values)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrow(kind):
    values = values_of(kind)
    assert len(set(values)) > 100
    for some in (values, with_nulls(values), [], [None], [None] * 9):
        check(pa.array(some, kind), some)
    column = pa.array([None, *values, None], kind).slice(1, 200)
    assert column.buffers()[0] is not None and column.null_count == 0
    check(column, values)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrow_slices(kind):
    whole = values_of(kind, 150)
    for values in (whole, with_nulls(whole, 3, 1)):
        column = pa.array(values, kind)
        for start in (*range(18), 63, 64, 65, 149, 150):
            for length in (0, 1, 2, 7, 8, 9, 31, 64, 67, 150):
                some = values[start : start + length]
                f = empty()
                f.update(column.slice(start, length))
                assert f == one_by_one(value for value in some if value is not None), (start, length)
                found = f.contains_many(column.slice(start, length))
                assert found.tolist() == [None if value is None else True for value in some]
    check(column.slice(3, 99).slice(4, 60), values[7:67])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrow_chunks(kind):
    values = with_nulls(values_of(kind, 90), 7, 3)
    full, column = values_of(kind, 90), pa.array(values, kind)
    blank = column.slice(0, 0)
    chunks = [blank, column.slice(0, 5), blank, blank, column.slice(5, 71), column.slice(76), blank]
    check(pa.chunked_array(chunks), values)
    check(pa.chunked_array([], kind), [])
    check(pa.chunked_array([blank, blank]), [])
    check(pa.chunked_array([pa.array(full[:1], kind), pa.array(full[1:], kind)]), full)
    check(pa.chunked_array([full, [None, None], full], kind), [*full, None, None, *full])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrow_dictionary_values(kind):
    words = with_nulls(values_of(kind, 60), 9, 4)
    positions = [(11 * i) % 40 if i % 5 else None for i in range(100)]
    for offset in (0, 3, 20):  # of a dictionary that is itself a slice
        dictionary = pa.array(words, kind).slice(offset)
        keys = pa.DictionaryArray.from_arrays(pa.array(positions, pa.int32()), dictionary)
        values = [None if position is None else words[position + offset] for position in positions]
        check(keys, values)
        check(keys.slice(3, 50), values[3:53])


@pytest.mark.parametrize("index", ARROW_INTEGERS, ids=str)
def test_arrow_dictionary_indices(index):
    words = [*WORDS, None, "last"]
    positions = [(7 * i) % len(words) if i % 6 else None for i in range(120)]
    keys = pa.DictionaryArray.from_arrays(pa.array(positions, index), pa.array(words))
    values = [None if position is None else words[position] for position in positions]
    assert keys.to_pylist() == values and values.count(None) > 20
    for start in (0, 1, 7, 8, 13):
        check(keys.slice(start, 77), values[start : start + 77])


def test_arrow_dictionaries():
    lists = [["ant", "bee", None], ["bee", "cat", "ant"], [], [None], ["dog"] * 40]
    check(pa.chunked_array([pa.array(words, pa.string()).dictionary_encode() for words in lists]), sum(lists, []))
    for none in ([], [None, None]):
        check(pa.DictionaryArray.from_arrays(pa.array(none, pa.int8()), pa.array([], pa.string())), none)
    # Each row counts, and no value that no row has.
    f = CountingBloomFilter(100)
    f.update(pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 2], pa.int8()), ["ant", "never", "bee"]))
    assert [f.count(word) for word in ("ant", "never", "bee")] == [2, 0, 1]


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


class OnlyStream:
    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream.__arrow_c_stream__(requested_schema)


class AsBatch(OnlyArray):
    """A struct array, handed over as a record batch, whose schema says that no row is null."""

    def __arrow_c_array__(self, requested_schema=None):
        structs = self.array
        return pa.schema(list(structs.type)).__arrow_c_schema__(), structs.__arrow_c_array__()[1]


def test_what_exports_one_column_is_that_column():
    values = with_nulls(values_of(pa.string()))
    column = pa.array(values)
    chunks = pa.chunked_array([values[:30], values[30:]])
    batch, table = pa.record_batch([column], ["key"]), pa.table({"key": chunks})
    structs = pa.StructArray.from_arrays([column], ["key"])
    for keys in (OnlyArray(column), OnlyStream(chunks), batch, OnlyArray(batch), table, AsBatch(structs),
                 pa.table({"key": column.dictionary_encode()})):  # fmt: skip
        check(keys, values)
    for keys in (batch.slice(3, 100), table.slice(3, 100), AsBatch(structs.slice(3, 100))):
        check(keys, values[3:103])
    check(table.to_reader(max_chunksize=9), values, table.to_reader)
    check(pa.table({"key": pa.array([], pa.int8())}), [])

    two = pa.table({"id": [1, 2], "name of it": ["a", "b"]})
    for keys in (two, two.to_batches()[0], OnlyArray(two.to_batches()[0]), two.slice(0, 0)):
        refused(keys, "id", "name of it", "column")
    refused(pa.table({}), "column")


def test_structs_are_refused():
    """Over the C interface a column of structs looks like a table, but it may have nulls."""
    structs, inner = pa.array([{"key": i} for i in range(40)]), pa.array([{"x": 1}])
    for keys in (structs, structs.slice(3, 30), structs.slice(0, 0), pa.chunked_array([structs.slice(1)]),
                 OnlyArray(structs), pa.array([{"a": 1, "b": "ant"}]), pa.array([{"y": {"x": 1}}]),
                 pa.table({"key": inner}), pa.record_batch([inner], ["key"]),
                 pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), inner)):  # fmt: skip
        refused(keys, "struct", "select")
    mask = pa.array([i % 4 == 1 for i in range(40)])
    refused(AsBatch(pa.StructArray.from_arrays([pa.array(range(40))], ["key"], mask=mask)), "null", error=ValueError)


def test_extension_types():
    """Those that are numbers only in memory are refused. Others have the keys of their storage."""
    refused(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())), "cast", "bool")
    if hasattr(pa, "opaque"):
        opaque = pa.opaque(pa.binary(16), "hugeint", "DuckDB")
        refused(pa.ExtensionArray.from_storage(opaque, pa.array([None], opaque.storage_type)), "cannot be keys")
    pd = pytest.importorskip("pandas")
    refused(pd.Series(pd.period_range("2026", periods=3, freq="M")), "cast", "period")
    fixed = pa.array([b"0123456789abcdef"], pa.binary(16))
    check(pa.ExtensionArray.from_storage(Fixed(), fixed), fixed.to_pylist())


class Fixed(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.binary(16), "of this test")

    def __arrow_ext_serialize__(self):
        return b""


def test_uuids_are_refused_because_libraries_differ():
    """As bytes in Arrow and as text in DuckDB, they would never match. Both have keys once they are cast."""
    pd, pl, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    ids = [uuid.UUID(int=7 << 70 | i) for i in range(3)]
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([of.bytes for of in ids], pa.binary(16)))
    connection = duckdb.connect()
    relation = lambda sql: connection.sql(f"SELECT {sql} AS id FROM (VALUES {', '.join(f'({str(of)!r})' for of in ids)}) t(v)")
    for lossless in ("false", "true"):
        connection.execute(f"SET arrow_lossless_conversion = {lossless}")
        refused(relation("v::UUID"), "text on both sides", "16 bytes", "uuid")
    for keys in (column, pa.chunked_array([column, column]), pa.DictionaryArray.from_arrays([0], column), pa.table({"id": column}), ids,
                 np.array(ids), pd.Series(ids), pd.Series(ids, dtype=pd.ArrowDtype(pa.uuid()))):  # fmt: skip
        refused(keys, "text on both sides", "16 bytes", "uuid")
    refused(pl.Series(ids), "object")
    check(relation("v::UUID::VARCHAR"), [str(of) for of in ids], lambda: relation("v"))
    check(column.storage, [of.bytes for of in ids])


OTHERS = [
    (pa.array([1.5]), "double|float"),
    (pa.array([1.5], pa.float32()), "float"),
    (pa.array(np.array([1.5], np.float16)), "float"),
    (pa.array([True]), "bool"),
    (pa.array([decimal.Decimal("1.5")]), "decimal"),
    (pa.array([decimal.Decimal("1.5")], pa.decimal256(5, 2)), "decimal"),
    (pa.array([datetime.date(2026, 1, 1)]), "date"),
    (pa.array([1], pa.date64()), "date"),
    (pa.array([1], pa.time32("s")), "time"),
    (pa.array([1], pa.time64("us")), "time"),
    (pa.array([1], pa.timestamp("us")), "timestamp"),
    (pa.array([1], pa.timestamp("ns", "UTC")), "timestamp"),
    (pa.array([1], pa.duration("s")), "duration"),
    (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "interval"),
    (pa.array([[1]]), "list"),
    (pa.array([[1]], pa.large_list(pa.int8())), "list"),
    (pa.array([[1]], pa.list_(pa.int8(), 1)), "list"),
    (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "map|list"),
    (pa.array([{"a": 1, "b": 2}]), "a"),
    (pa.array([1.5, 1.5]).dictionary_encode(), "double|float"),
    (pa.array([datetime.date(2026, 1, 1)]).dictionary_encode(), "date"),
    (pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]), "union"),
    (pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])), "run"),
]


@pytest.mark.parametrize("keys, name", OTHERS, ids=[str(keys.type).replace(" ", "") for keys, _ in OTHERS])
def test_other_arrow_types_are_refused(keys, name):
    chunks = [pa.chunked_array([keys]), pa.chunked_array([], keys.type)]
    for column in (keys, keys.slice(0, 0), *chunks, pa.table({"key": keys})):
        refused(column, "cast|columns", name)


@pytest.mark.parametrize("cls", ALL)
def test_bits_of_chunks_that_end_within_bytes(cls):
    """Answers of a stream are bits in a row, wherever its chunks end, with and without nulls."""
    random = np.random.default_rng(5)
    f = cls(2_000)
    f.update(np.arange(0, 60_000, 7))
    odd = [3, 0, 5, 8, 0, 9, 7, 1, 64, 8191, 8192, 8193, 1, 17]
    for lengths in ([1] * 70, odd, random.integers(0, 40, 99), [8192, 8, 8193]):
        for null in (0, 0.2):
            values = random.integers(0, 60_000, sum(lengths))
            column = pa.array(values, mask=random.random(len(values)) < null)
            ends = np.cumsum(lengths)
            chunks = pa.chunked_array([column.slice(end - n, n) for end, n in zip(ends, lengths)], pa.int64())
            expected = f.contains_many(values)
            for nulls in (None, False, True):
                found = f.contains_many(chunks, nulls=nulls)
                found.validate(full=True)
                want = pa.array(expected, mask=~np.array(column.is_valid()))
                assert found.equals(want if nulls is None else want.fill_null(nulls)), (lengths, null, nulls)
                assert found.null_count == (column.null_count if nulls is None else 0)


def test_failing_sources():
    class Array:
        def __init__(self, answer):
            self.answer = answer

        def __arrow_c_array__(self, requested_schema=None):
            if self.answer is LookupError:
                raise LookupError("no array")
            return self.answer

    class Stream(Array):
        __arrow_c_stream__ = Array.__arrow_c_array__

    schema, values = pa.array([1]).__arrow_c_array__()
    for source in (Array, Stream):
        pairs = (None, None), (values, schema), (schema, schema), (values, values)
        for answer in (None, 17, (), (schema,), schema, values, *pairs):
            refused(source(answer), error=(TypeError, ValueError))
        refused(source(LookupError), "no array", error=LookupError)


def test_a_capsule_is_consumed_once():
    """The consumer moves the array out of its capsule and releases it: again is an error, not a second release."""
    class Again:
        def __init__(self, method, capsule):
            setattr(type(self), method, lambda self, requested_schema=None: capsule)

    f = empty()
    array, stream = pa.array(["ant", "bee"]), pa.chunked_array([["cat"]])
    for method, keys in (("__arrow_c_array__", array), ("__arrow_c_stream__", stream)):
        again = Again(method, getattr(keys, method)())
        f.update(again)
        with pytest.raises((TypeError, ValueError)):
            f.update(again)
    assert f == one_by_one(["ant", "bee", "cat"])


# Other packages

def test_polars():
    pl = pytest.importorskip("polars")
    words = with_nulls(WORDS * 20, 11, 3)
    for values, dtype in (
        (words, pl.String), (words, pl.Categorical), (words, pl.Enum(WORDS)),
        ([None if word is None else word.encode() for word in words], pl.Binary),
        *((with_nulls(integers(np.dtype(name)).tolist()), getattr(pl, name.replace("int", "Int").replace("uI", "UI")))
          for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    ):  # fmt: skip
        column = pl.Series("key", values, dtype)
        check(column, values)
        check(column.slice(3, 71), values[3:74])
        check(column.to_frame(), values)
        check(pl.concat([column, column.slice(0, 0), column.slice(9)], rechunk=False), values + values[9:])
        check(column.drop_nulls(), [value for value in values if value is not None])
        check(column.slice(0, 0), [])
    frame = pl.DataFrame({"key": words, "n": range(len(words))})
    check(frame.filter(pl.col("n") % 3 == 0)["key"], words[::3])
    absent = "not a word"
    frame = pl.DataFrame({"key": ["ant", None, absent]})
    for nulls, height in ((False, 1), (True, 2)):
        assert frame.filter(one_by_one(["ant"]).contains_many(frame["key"], nulls=nulls)).height == height


def test_pandas():
    """`.array`, `.values` and `.unique()` of a column are keys as the column is, with nulls or without."""
    pd = pytest.importorskip("pandas")
    words, mixed = WORDS * 3, [1, "ant", b"bee", 2**64 - 1, -3] * 3
    arrow = [pd.ArrowDtype(pa.string()), pd.ArrowDtype(pa.large_string())]
    columns = [pd.Series(words, dtype=dtype) for dtype in (None, object, "string", "string[python]", "category", *arrow)]
    columns += [pd.Series(range(40), dtype=of) for of in ("Int64", "UInt8", "int32", "int16[pyarrow]", "category")]
    columns += [pd.Series(mixed, dtype=object), pd.Series(pd.Categorical([1, "ant", 1])),
                pd.Series(pd.arrays.SparseArray([1, 2, 0, 0, 7]))]  # fmt: skip
    for column in columns:
        arrays = [column.array, column.values, column.unique()]
        for keys in (column, *arrays, pd.Index(column), column.to_frame(), column[::-2]):
            check(keys, [value for row in keys.values for value in row] if hasattr(keys, "columns") else list(keys))
        if str(column.dtype).startswith(("int32", "Sparse")):
            continue  # has no nulls
        holes = column.copy()
        holes[1::4] = None
        for keys in (holes, holes.array, pd.Index(holes), holes.to_frame()):
            check(keys, [None if pd.isna(value) else value for value in holes])
    for index in (pd.RangeIndex(5), pd.Index([3, 4]), pd.RangeIndex(7).unique()):
        check(index, list(index))
    check(pd.Series(["ant", "bee"], ["columns", "key"]), ["ant", "bee"])
    check(type("Column", (pd.Series,), {})(words), words)

    f = one_by_one(["ant"])
    nulls = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan")]
    assert f.contains_many(pd.Series(["ant", *nulls], dtype=object), nulls=True).all()
    frame = pd.DataFrame({"key": ["ant", None, "cat"]})
    mask = f.contains_many(frame["key"])
    assert frame[mask]["key"].tolist() == ["ant"] and len(frame[~mask]) == 2


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    for sql, values in (
        ("i", range(5_000)), ("(i - 60)::TINYINT", range(-60, 60)), ("i::UBIGINT", range(9)),
        ("'key ' || i", [f"key {i}" for i in range(5_000)]),
        ("CASE WHEN i % 3 <> 1 THEN 'a key of more than twelve bytes ' || i END",
         [None if i % 3 == 1 else f"a key of more than twelve bytes {i}" for i in range(3_000)]),
        ("i::VARCHAR::BLOB", [str(i).encode() for i in range(50)]),
        ("['ant', 'bee'][i % 2 + 1]::ENUM('ant', 'bee')", ["ant", "bee"] * 25),
    ):  # fmt: skip
        keys = lambda: connection.sql(f"SELECT {sql} FROM range({len(values)}) t(i) ORDER BY i")
        check(keys(), list(values), keys)
    refused(connection.sql("SELECT 1 AS first, 2 AS second"), "first", "second")


def test_without_pyarrow_only_arrow_data_has_no_answers():
    pytest.importorskip("pandas"), pytest.importorskip("polars")
    run_python("""
import sys
sys.modules["pyarrow"] = None  # importing it fails
import numpy as np, pandas as pd, polars as pl
from bloomline import BloomFilter, BloomView
f = BloomFilter(10)
for column in (pd.Series(["ant", "bee"]), pd.Series([1, 2]), pd.Index(["cat"]), pd.Series(["dog"], dtype=object),
               pd.Series(["elk"], dtype="category")):
    f.update(column)
    assert f.contains_many(column).all(), column
assert all(key in f for key in ["ant", "bee", 1, 2, "cat", "dog", "elk"])
f.clear()
f.update(pl.Series(["ant", None, "bee"]))
found = f.contains_many(pl.Series(["ant", None, "cat", None]))
assert type(found) is np.ndarray and found.tolist() == [True, False, False, False]

class Column:
    def __init__(self, name):
        setattr(type(self), name, lambda self, requested_schema=None: pl.Series(["ant"]).__arrow_c_stream__())

for call in (f.contains_many, f.add_many, BloomView(f.to_bytes()).contains_many):
    for name in ("__arrow_c_stream__", "__arrow_c_array__"):
        try:
            call(Column(name))
        except ImportError as error:
            assert "pyarrow" in str(error) and "numpy" in str(error), error
        else:
            raise SystemExit("no error")
f.update(Column("__arrow_c_stream__"))
""")


# Memory

def test_answers_that_do_not_fit_into_memory_are_an_error():
    """A column may have no memory of its own: here all its values are one."""
    with_little_memory("""
import numpy as np
from bloomline import BloomFilter
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
f = BloomFilter(10)
for length in (2**40, 2**62):
    for call in (f.contains_many, f.add_many):
        refused(lambda: call(np.broadcast_to(np.int8(1), length)), str(length))
assert f == BloomFilter(10)
""")


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="only Linux resets the peak")
def test_columns_are_read_in_place():
    """Peak memory grows by the answers, a byte each, not by the columns: 64 to 160 MB each."""
    grown = run_python(r"""
import re
import numpy as np, pyarrow as pa
from bloomline import BloomFilter
memory = lambda name: int(re.search(name + r":\s+(\d+) kB", open("/proc/self/status").read())[1]) // 1024
f = BloomFilter(1000)
f.contains_many(np.arange(10)), f.contains_many(pa.array(["ant"])), f.contains_many(pa.array([1, None]))
count = 4_000_000
offsets = pa.py_buffer(np.arange(0, 24 * (count + 1), 24, dtype=np.int32))
text = pa.py_buffer(np.full(24 * count, 97, np.uint8))
columns = {
    "int64": np.arange(2 * count),
    "big-endian": np.ones(2 * count, ">i8"),
    "strided": np.ones(4 * count, np.int64)[::2],
    "S24": np.full(count, b"a" * 24),
    "string": pa.Array.from_buffers(pa.string(), count, [None, offsets, text]),
    "nulls": pa.Array.from_buffers(pa.string(), count, [pa.py_buffer(b"\xfd" * (count // 8)), offsets, text]),
}
for name, column in columns.items():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again from here
    before = memory("VmRSS")
    f.update(column)
    f.contains_many(column)
    print(name, memory("VmHWM") - before)
""")
    for line in grown.splitlines():
        name, megabytes = line.rsplit(" ", 1)
        assert int(megabytes) < 25, grown


# Integers

TOO_LARGE = [2**64, -(2**63) - 1, (7 << 64) | 42, 17 - 2**64, 10**5_000, -(2**200)]


class Index:
    def __init__(self, index):
        self.index = index

    def __index__(self):
        return self.index


class Number(int):
    def __and__(self, other):
        return 0


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: f"{number.bit_length()} bits")
def test_integers_out_of_range_are_an_error_on_every_path(number):
    counting, bank, view = CountingBloomFilter(100), FilterBank([BloomFilter(100)]), BloomView(empty().to_bytes())
    f = empty()

    def overflows(calls, keys):
        for call in calls:
            for key in keys:
                with pytest.raises(OverflowError, match=r"below -2\^63 or above 2\^64 - 1.*text"):
                    call(key)

    one = [f.add, f.__contains__, view.__contains__, counting.add, counting.remove, counting.count, bank.find]
    many = [f.update, f.contains_many, counting.update, bank.find_many, view.contains_many]
    overflows(one, [number, Index(number), Number(number)])
    overflows(many, [[number], (number,), {number: 0}, {number}, np.array([number], object)])
    overflows([f.update], [iter([number])])
    assert f == empty()
    with pytest.raises(OverflowError):
        f.update([5, 6, number, 7])
    assert f == one_by_one([5, 6])
    pd = pytest.importorskip("pandas")
    column = pd.Series([number], dtype=object)
    overflows(many, [column, column.array, column.unique(), column.astype("category"), column.to_frame()])
    overflows(many, [pd.Index(column)])


def test_where_an_index_ends():
    f = empty()
    for value in (-1, -2**63, 2**63 - 1, 2**63, 2**64 - 1):
        f.add(value)
        for key in (value, Number(value), Index(value), np.array(value)[()]):
            assert key in f and f.contains_many([key]).all()
    assert 0 not in f


def test_a_class_without_a_module():
    class Keys(list):
        __module__ = None

    f = empty()
    f.update(Keys(WORDS))
    assert f == one_by_one(WORDS)
