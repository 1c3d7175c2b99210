"""A filter of integers that is asked for text, and the other way around, says so: integers and text never match."""

import warnings

import numpy as np
import pytest

from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    FilterBank,
    KeyKindWarning,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import ALL, COPIES

pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
pytestmark = pytest.mark.filterwarnings("error")

NUMBERS = list(range(100, 120))
WORDS = [str(number) for number in NUMBERS]
BYTES = [word.encode() for word in WORDS]


def sources():
    """How keys are given: (name, kind, function that makes them)."""
    strings = np.array(WORDS)
    for dtype in ("i1", "u2", ">i4", "i8", "u8"):
        yield f"numpy {dtype}", "integers", lambda dtype=dtype: np.array(NUMBERS, dtype)
    yield "numpy strided", "integers", lambda: np.repeat(NUMBERS, 2)[::2]
    yield "numpy U", "text", lambda: strings
    yield "numpy U, big-endian", "text", lambda: strings.astype(">U7")
    yield "numpy S", "text", lambda: strings.astype("S")
    if hasattr(np.dtypes, "StringDType"):
        yield "numpy T", "text", lambda: strings.astype(np.dtypes.StringDType())
    for name, kind, values in (("int", "integers", NUMBERS), ("str", "text", WORDS), ("bytes", "text", BYTES)):
        yield f"list of {name}", kind, lambda values=values: list(values)
        yield f"generator of {name}", kind, lambda values=values: (value for value in values)
        yield f"numpy objects of {name}", kind, lambda values=values: np.array(values, object)
    yield "list of np.int64", "integers", lambda: list(np.array(NUMBERS))
    yield "list of np.str_", "text", lambda: list(strings)
    arrow = {
        "integers": [pa.int8(), pa.uint16(), pa.int64()],
        "text": [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view(), pa.binary(3)],
    }
    for kind, types in arrow.items():
        for type in types:
            make = lambda type=type, kind=kind: pa.array([None, *(NUMBERS if kind == "integers" else BYTES)], type)
            yield f"Arrow {type}", kind, make
            yield f"Arrow chunks of {type}", kind, lambda make=make: pa.chunked_array([make(), make().slice(0, 1), make()])
            yield f"Arrow table of {type}", kind, lambda make=make: pa.table({"key": make()})
            if type not in (pa.string_view(), pa.binary_view()):
                yield f"Arrow dictionary of {type}", kind, lambda make=make: make().dictionary_encode()
    for dtype in (None, "Int64", "category", "int32", object):
        yield f"pandas integers, {dtype}", "integers", lambda dtype=dtype: pd.Series(NUMBERS, dtype=dtype)
    for dtype in (None, "string", "category", object):
        yield f"pandas text, {dtype}", "text", lambda dtype=dtype: pd.Series(WORDS, dtype=dtype)
    yield "pandas index", "integers", lambda: pd.Index(NUMBERS)
    yield "pandas frame", "text", lambda: pd.DataFrame({"key": WORDS})
    yield "polars integers", "integers", lambda: pl.Series(NUMBERS)
    yield "polars text", "text", lambda: pl.Series(WORDS)
    yield "polars binary", "text", lambda: pl.Series(BYTES)
    yield "polars categories", "text", lambda: pl.Series(WORDS, dtype=pl.Categorical)
    yield "polars frame", "text", lambda: pl.DataFrame({"key": WORDS})
    yield "list of both", "both", lambda: [*NUMBERS, *WORDS]
    yield "objects of both", "both", lambda: np.array([*NUMBERS, *WORDS], object)


SOURCES = list(sources())
KEYS = [
    ("integers", 101), ("integers", np.int64(101)), ("integers", np.uint8(101)), ("integers", True + 100),
    ("text", "101"), ("text", b"101"), ("text", np.str_("101")), ("text", np.bytes_(b"101")),
]  # fmt: skip


def met(found):
    return any(bool(answer) for answer in (found.tolist() if isinstance(found, np.ndarray) else found.to_pylist()))


@pytest.mark.parametrize("name, inserted, make", SOURCES, ids=[name for name, *_ in SOURCES])
def test_every_pair_of_kinds_matches_or_complains(name, inserted, make):
    f = BloomFilter(1_000, 1e-6, most_modules=1)
    f.update(make())
    bank = FilterBank([f])
    for other, asked, ask in SOURCES:
        matches = inserted == asked or "both" in (inserted, asked)
        for contains_many in (f.contains_many, lambda keys: bank.find_many(keys)):
            keys = ask()
            if contains_many != f.contains_many and "Arrow" in other:
                keys = ask().slice(1, 20)  # find_many takes no nulls
            if matches:
                assert met(contains_many(keys)), other
            else:
                with pytest.raises(TypeError, match=f"^{asked} looked up in a filter of {inserted}: .*convert one side$"):
                    contains_many(keys)
    for asked, key in KEYS:
        if asked == inserted or inserted == "both":
            assert key in f and bank.find(key).tolist() == [0]
            continue
        for use in (f.__contains__, bank.find):
            with pytest.raises(TypeError, match=f"^{asked} looked up in a filter of {inserted}: .*convert one side$"):
                use(key)


@pytest.mark.parametrize("cls", ALL)
def test_keys_of_a_new_kind_are_added_with_a_warning(cls):
    for first, second in ((17, "17"), ("17", 17), (b"17", np.int8(17)), (np.str_("17"), 17)):
        f = cls(100)
        f.add(first)
        f.add(first)
        with pytest.warns(KeyKindWarning, match="added to a filter of"):
            f.add(second)
        f.add(second)
        assert first in f and second in f  # and no warning any more
        for name in ("update", "add_many"):
            g = cls(100)
            add = getattr(g, name)
            add([first])
            with pytest.warns(KeyKindWarning, match="added to a filter of"):
                add([second, second])
            add([second])
            add([first, second])
            assert f == g or cls is CountingBloomFilter
        mixed = cls(100)
        mixed.update([first, second])
        assert first in mixed and second in mixed
        with pytest.raises(KeyKindWarning):  # as an error, nothing is added
            h = cls(100)
            h.add(first)
            h.add(second)
        assert first in h
        with pytest.raises(TypeError):
            h.contains_many([second])


@pytest.mark.parametrize("cls", ALL)
def test_a_filter_without_keys_never_complains(cls):
    f = cls(100)
    for keys in ([1], ["1"], np.arange(3), pa.array(["ant", None])):
        f.contains_many(keys)
    assert 1 not in f and "1" not in f
    for none in ([], np.arange(0), np.array([], "U1"), pa.array([], pa.string()), pa.array([None, None], pa.string()), pa.array([None])):
        f.update(none)
    f.update([1])
    for none in ([], np.array([], "U1"), pa.array([None, None], pa.string()), pa.array([None])):
        f.contains_many(none)
        f.update(none)
    f.clear()
    assert "1" not in f
    f.update(["1"])
    with pytest.raises(TypeError, match="^integers looked up in a filter of text: "):
        f.contains_many([1])


def test_an_update_that_raises_has_noted_the_kinds_of_its_keys():
    f = BloomFilter(100)
    with pytest.raises(TypeError):
        f.update(["ant", 1.5])
    with pytest.raises(TypeError, match="integers looked up in a filter of text"):
        f.contains_many([1])
    with pytest.raises(TypeError, match="cast"):
        f.update(["ant", 1, 1.5])
    assert not f.contains_many([2]).any()


@pytest.mark.parametrize("cls", ALL)
def test_kinds_travel_within_the_process_and_are_not_stored(cls, tmp_path):
    f = cls(100)
    f.update(NUMBERS)
    others = [copied(f) for copied in COPIES]
    if cls in (BloomFilter, StandardBloomFilter):
        empty = cls(100)
        others += [f | empty, empty | f, cls.union([empty, f])]
        empty |= f
        others.append(empty)
        text = cls(100)
        text.update(WORDS)
        for both in (f | text, cls.union([f, text])):
            assert "101" in both and 101 in both and both.contains_many(["101"]).all()
        others.append(f & f)
        common = f & text
        assert 101 not in common and "101" not in common
    if cls is CountingBloomFilter:
        others.append(f.to_filter())
        for call in (f.remove, f.count):
            with pytest.raises(TypeError, match="text looked up in a filter of integers"):
                call("101")
        assert f == others[0]
    for other in others:
        with pytest.raises(TypeError, match="text looked up in a filter of integers"):
            other.contains_many(WORDS)
    f.save(tmp_path / "f")
    read = [cls.from_bytes(f.to_bytes()), cls.open(tmp_path / "f")]
    if cls is BloomFilter:
        read += [BloomView(f.to_bytes()), BloomView(f.to_bytes()).to_filter(), BloomFilter.open(tmp_path / "f", mmap=False)]
    for other in read:
        assert "101" not in other and not other.contains_many(WORDS).any() and 101 in other
        if cls is BloomFilter and not isinstance(other, BloomView):
            other.add("101")
            assert not other.contains_many(["102"]).any() and other.contains_many([101]).all()


def test_kinds_of_a_bank(tmp_path):
    numbers, words, none = (BloomFilter(100) for _ in range(3))
    numbers.update(NUMBERS)
    words.update(WORDS)
    bank = FilterBank([none, numbers], 8)
    for other in (bank, *(copied(bank) for copied in COPIES)):
        with pytest.raises(TypeError, match="text looked up in a filter of integers"):
            other.find_many(WORDS)
        with pytest.raises(TypeError, match="text looked up in a filter of integers"):
            other.find("101")
    with pytest.raises(TypeError, match="text looked up in a filter of integers"):
        bank.get(1).contains_many(WORDS)
    assert not bank.get(0).contains_many(WORDS).any()
    bank.save(tmp_path / "bank")
    views = FilterBank([BloomView(numbers.to_bytes())])
    for other in (FilterBank.from_bytes(bank.to_bytes()), FilterBank.open(tmp_path / "bank"), views):
        assert not other.find_many(WORDS).any() and len(other.find("101")) == 0
    bank.push(words)
    assert bank.find_many(["101"]).tolist() == [[False, False, True]] and bank.find(101).tolist() == [1]
    replaced = FilterBank([numbers])
    replaced.replace(0, words)
    assert replaced.find("101").tolist() == [0]


def test_warnings_name_the_line_that_added():
    f = BloomFilter(10)
    f.add(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f.add("1")
    assert [warning.filename for warning in caught] == [__file__] and issubclass(KeyKindWarning, UserWarning)
    assert "text" in str(caught[0].message)


def test_a_scalable_filter_keeps_its_kinds_while_it_grows():
    f = ScalableBloomFilter(10)
    f.update(np.arange(10_000))
    with pytest.raises(TypeError, match="text looked up in a filter of integers"):
        f.contains_many(WORDS)


def test_eight_bytes_may_be_an_integer():
    packed = pa.array([key.to_bytes(8, "little") for key in (1, 2)], pa.binary(8))
    f, g = BloomFilter(10), BloomFilter(10)
    f.update([1, 2])
    g.update(packed)
    assert f.contains_many(packed).to_pylist() == [True, True] and g.contains_many([1, 2]).all() and 1 in g
