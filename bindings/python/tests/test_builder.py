"""Keys of unknown number: FilterBuilder, and ScalableBloomFilter with its unions and its limits."""

import sys

import numpy as np
import pytest

from bloomline import BloomFilter, FilterBuilder, KeyKindWarning, ScalableBloomFilter
from support import linux, with_little_memory


def test_a_builder_makes_the_filter_that_fits():
    builder = FilterBuilder(0.01, seed=7)
    assert len(builder) == 0 and builder.add("ant") is None and len(builder) == 1
    keys = ["ant", b"bee", *range(5_000)]
    builder.clear()
    assert builder.update(keys) is None and builder.update(np.arange(2_000)) is None
    f = builder.finish()
    assert type(f) is BloomFilter and (f.expected_keys, f.fpr, f.seed) == (5_002, 0.01, 7), "repeats do not count"
    assert f.contains_many(keys).all() and 0.9 < f.size_bytes / BloomFilter(5_002).size_bytes < 1.1
    again = f.copy()
    again.clear()
    again.update(keys)
    assert again == f and len(builder) == 0, "and the builder can be used again"
    builder.add("cat")
    f = builder.finish()
    assert "cat" in f and "ant" not in f and f.expected_keys == 1
    builder = FilterBuilder.with_bits_per_key(20, seed=3)
    builder.update(range(1_000))
    f = builder.finish()
    assert builder.fpr is f.fpr is None and builder.seed == f.seed == 3
    assert 8 * f.size_bytes == pytest.approx(20_000, abs=512) and builder.finish().expected_keys == 0


def test_a_builder_takes_8_bytes_per_key():
    builder = FilterBuilder()
    builder.update(np.arange(100_000))
    assert builder.size_bytes == 800_000 and 800_000 < sys.getsizeof(builder) < 801_000
    assert repr(builder) == "FilterBuilder(len=100000, fpr=0.01, seed=0)" and builder.fpr == 0.01


def test_a_builder_refuses_what_filters_refuse():
    for make, text in (
        (lambda: FilterBuilder(0), "^a false-positive rate must be between 0 and 1"),
        (lambda: FilterBuilder.with_bits_per_key(65), "^bits per key must be "),
        (lambda: FilterBuilder(seed=-1), "^seed: an integer from 0 to 18446744073709551615 is needed, not -1"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    builder = FilterBuilder()
    for use in (lambda: builder.add(1.5), lambda: builder.update(["ant", None])):
        with pytest.raises(TypeError, match="cannot be keys"):
            use()
    assert len(builder) == 1, "the keys before the error"
    with pytest.raises(TypeError):
        "ant" in builder


def scalable(keys, **options):
    f = ScalableBloomFilter(100, 0.01, **options)
    f.update(keys)
    return f


def test_union_of_scalable_filters():
    f, g, h = scalable(range(1_000)), scalable(range(1_000, 3_000)), scalable(["ant"])
    before = [x.to_bytes() for x in (f, g, h)]
    united = ScalableBloomFilter.union(x for x in (f, g, h))
    assert united.contains_many(range(3_000)).all() and "ant" in united and 0.01 < united.fpr < 0.03
    united.update(range(3_000, 9_000))
    assert united.contains_many(range(9_000)).all(), "a union keeps growing"
    assert [x.to_bytes() for x in (f, g, h)] == before
    assert ScalableBloomFilter.union([f]) == f and ScalableBloomFilter.union([f]) is not f
    for filters, error, text in (
        ([], ValueError, "at least one filter"), ([f, BloomFilter(100)], TypeError, "ScalableBloomFilter objects"),
        ([f, ScalableBloomFilter(100, 1e-6)], ValueError, "fpr = .*make both with the same fpr"),
        ([f, scalable(["ant"], seed=5)], ValueError, "seeds 0x0 and 0x5"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            ScalableBloomFilter.union(filters)


@linux
def test_memory_for_growth_that_cannot_be_had_is_an_error():
    """The process used to end."""
    with_little_memory("""
import numpy as np
from bloomline import FilterBuilder, ScalableBloomFilter
f = ScalableBloomFilter(10_000_000)
keys = np.arange(9_999_000)
f.update(keys)
other, small = f.copy(), ScalableBloomFilter(100)
small.add(17)
limit(8 << 20)
text = "out of memory: cannot allocate"
refused(lambda: f.update(range(10_000_000, 20_000_000)), text)
for key in range(20_000_000, 20_000_100):
    try:
        f.add(key)
    except MemoryError as error:
        assert str(error).endswith(": the filter keeps the keys before"), repr(error)
refused(lambda: ScalableBloomFilter.union([f, other]), text)
refused(lambda: ScalableBloomFilter.union([small, other]), text)
assert f.contains_many(keys[::100]).all()
limit(1 << 30)
f.update(np.arange(10_000_000, 10_100_000))
assert f.contains_many(np.arange(10_000_000, 10_100_000)).all()

builder = FilterBuilder()
limit(64 << 20)
refused(lambda: builder.update(range(100_000_000)), text)
n = len(builder)
assert n > 1_000_000
limit(1 << 30)
assert builder.finish().contains_many(np.arange(n)).all()
""")


def test_kinds_of_keys_go_along():
    builder = FilterBuilder()
    builder.update(range(10))
    f = builder.finish()
    with pytest.raises(TypeError, match="text looked up in a filter of integers"):
        f.contains_many(["ant"])
    builder.update(["ant"])  # without a warning: the builder was empty again
    with pytest.raises(TypeError, match="integers looked up in a filter of text"):
        builder.finish().contains_many([1])
    builder.add("ant")
    with pytest.warns(KeyKindWarning, match="integers added to a filter of text"):
        builder.add(17)
    with pytest.warns(KeyKindWarning, match="text added to a filter of integers"):
        builder.clear()
        builder.add(17)
        builder.update(["ant"])
    united = ScalableBloomFilter.union([scalable([1]), scalable([2])])
    with pytest.raises(TypeError, match="text looked up in a filter of integers"):
        united.contains_many(["ant"])
    ScalableBloomFilter.union([united, scalable(["ant"])]).contains_many(["ant"])
