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
    """How keys are given: name, kind, and a function that makes them."""
    arrays = {"integers": np.array(NUMBERS), "text": np.array(WORDS)}
    for kind, dtypes in (("integers", ("i1", "u2", ">i4", "i8", "u8")), ("text", ("U", ">U7", "S", "T"))):
        for dtype in dtypes if hasattr(np.dtypes, "StringDType") else dtypes[:3]:
            yield f"numpy {dtype}", kind, lambda kind=kind, dtype=dtype: arrays[kind].astype(dtype)
    for name, kind, values in (("int", "integers", NUMBERS), ("str", "text", WORDS), ("bytes", "text", BYTES),
                               ("np.int64", "integers", list(arrays["integers"])),
                               ("np.str_", "text", list(arrays["text"])),
                               ("both", "both", [*NUMBERS, *WORDS])):  # fmt: skip
        yield f"list of {name}", kind, lambda values=values: list(values)
        yield f"generator of {name}", kind, lambda values=values: (value for value in values)
        yield f"numpy objects of {name}", kind, lambda values=values: np.array(values, object)
        yield f"pandas objects of {name}", kind, lambda values=values: pd.Series(values, dtype=object)
    strings = [pa.string(), pa.large_string(), pa.binary(), pa.binary(3), pa.string_view(), pa.binary_view()]
    for kind, values, types in (("integers", NUMBERS, [pa.int8(), pa.uint16(), pa.int64()]), ("text", BYTES, strings)):
        for type in types:
            make = lambda type=type, values=values: pa.array(values, type)
            yield f"Arrow {type}", kind, make
            yield f"Arrow chunks of {type}", kind, lambda make=make: pa.chunked_array([make(), make()[:1], make()])
            yield f"Arrow table of {type}", kind, lambda make=make: pa.table({"key": make()})
            if type not in strings[4:]:
                yield f"Arrow dictionary of {type}", kind, lambda make=make: make().dictionary_encode()
    for kind, values, dtypes in (("integers", NUMBERS, (None, "Int64", "category", "int32")),
                                 ("text", WORDS, (None, "string", "category"))):  # fmt: skip
        for dtype in dtypes:
            yield f"pandas {kind}, {dtype}", kind, lambda values=values, dtype=dtype: pd.Series(values, dtype=dtype)
        yield f"pandas index of {kind}", kind, lambda values=values: pd.Index(values)
        yield f"pandas frame of {kind}", kind, lambda values=values: pd.DataFrame({"key": values})
        yield f"polars {kind}", kind, lambda values=values: pl.Series(values)
        yield f"polars frame of {kind}", kind, lambda values=values: pl.DataFrame({"key": values})
    yield "polars binary", "text", lambda: pl.Series(BYTES)
    yield "polars categories", "text", lambda: pl.Series(WORDS, dtype=pl.Categorical)


SOURCES = list(sources())
KEYS = {
    "integers": [101, np.int64(101), np.uint8(101), True + 100],
    "text": ["101", b"101", np.str_("101"), np.bytes_(b"101")],
}


def looks_up(look_up, asked, inserted):
    """A lookup finds keys, or if they are of the other kind it is an error."""
    if asked == inserted or "both" in (asked, inserted):
        assert any(look_up())
    else:
        with pytest.raises(TypeError, match=f"^{asked} looked up in a filter of {inserted}: .*convert one side$"):
            look_up()


@pytest.mark.parametrize("name, kind, make", SOURCES, ids=[name for name, *_ in SOURCES])
def test_kinds_match_or_complain(name, kind, make):
    """Keys of all sources as those that were added, and as those that are looked up."""
    f = BloomFilter(1_000, 1e-6, most_modules=1)
    f.update(make())
    bank = FilterBank([f])
    for other, values in (("integers", NUMBERS), ("text", WORDS)):
        g = BloomFilter(1_000, 1e-6, most_modules=1)
        g.update(values)
        looks_up(lambda: f.contains_many(values), other, kind)
        looks_up(lambda: bank.find_many(values)[:, 0], other, kind)
        looks_up(lambda: g.contains_many(make()).tolist(), kind, other)
        looks_up(lambda: FilterBank([g]).find_many(make())[:, 0], kind, other)
        for key in KEYS[other]:
            looks_up(lambda: [key in f], other, kind)
            looks_up(lambda: bank.find(key) == [0], other, kind)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("first, second", [(17, "17"), ("17", 17), (b"17", np.int8(17)), (np.str_("17"), 17)])
def test_keys_of_a_new_kind_are_added_with_a_warning(cls, first, second):
    for name, one in (("add", lambda key: key), ("update", lambda key: [key, key]), ("add_many", lambda key: [key])):
        f = cls(100)
        add = getattr(f, name)
        add(one(first))
        add(one(first))
        with pytest.warns(KeyKindWarning, match="added to a filter of"):
            add(one(second))
        add(one(second))
        assert first in f and second in f  # and no warning any more
    f = cls(100)
    f.update([first, second])
    assert first in f and second in f
    f = cls(100)
    f.add(first)
    with pytest.raises(KeyKindWarning):  # as an error, nothing is added
        f.add(second)
    assert first in f
    with pytest.raises(TypeError):
        f.contains_many([second])


@pytest.mark.parametrize("cls", ALL)
def test_a_filter_without_keys_never_complains(cls):
    f = cls(100)
    for keys in ([1], ["1"], np.arange(3), pa.array(["ant", None])):
        assert not any(f.contains_many(keys).tolist()[:1])
    assert 1 not in f and "1" not in f
    none = [[], np.arange(0), np.array([], "U1"), pa.array([], pa.string()), pa.array([None], pa.string()), pa.nulls(1)]
    for keys in none:
        f.update(keys)
    f.update([1])
    for keys in none:
        f.contains_many(keys)
        f.update(keys)
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
        others += [f & f, (f | text) & f]
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
