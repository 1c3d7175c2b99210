"""The filters themselves: names, keys, set operations, errors, equality, pickle, threads."""

import builtins
import copy
import enum
import itertools
import math
import operator
import sys
import threading
import time
import weakref
from importlib.metadata import version

import numpy as np
import pytest

import bloomline
from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    FilterBank,
    FilterBuilder,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import ALL, COPIES, buffers, empty, hammer, linux, one_by_one, run_python, with_little_memory

COMBINING = [BloomFilter, StandardBloomFilter]
KEYS = ["ant", b"bee", 17, "", b"", -1, 2**63, 2**64 - 5, "жук", "a\0", "🐜" * 40]


def names(count, prefix="key"):
    return [f"{prefix} {number}" for number in range(count)]


def filled(cls, keys, **options):
    f = cls(1_000, **options)
    f.update(keys)
    return f


def test_the_package_exports_what_it_documents():
    names = {}
    exec("from bloomline import *", names)
    assert names.keys().isdisjoint(vars(builtins)) and callable(bloomline.open)
    for name in {*bloomline.__all__} - {"__version__"}:
        cls = getattr(bloomline, name)
        assert cls.__module__ == "bloomline", "pickles and messages name the public module"
        assert cls.__doc__ and names[name] is cls
    assert bloomline.__version__ == version("bloomline")


@pytest.mark.parametrize("cls", ALL)
def test_the_requested_rate(cls):
    f = cls(1_000, 0.02)
    assert f.fpr == 0.02 and cls(1_000).fpr == 0.01
    for same in (*(copied(f) for copied in COPIES), f | f if cls in COMBINING else f):
        assert same.fpr == 0.02
    if cls is ScalableBloomFilter:
        assert cls.from_bytes(f.to_bytes()).fpr == 0.02
        return
    assert cls.from_bytes(f.to_bytes()).fpr is None
    assert cls.with_bits_per_key(1_000, 8).fpr is None
    assert cls._restore(f.to_bytes(), 1_000).expected_keys == 1_000, "pickles of before"
    if cls is CountingBloomFilter:
        assert f.to_filter().fpr == 0.02


def test_weak_references_and_sizes_for_python():
    f = BloomFilter(1_000_000)
    objects = [cls(100_000) for cls in ALL] + [FilterBank([f]), FilterBuilder()]
    for filter in [*objects, BloomView(f.to_bytes())]:
        assert weakref.ref(filter)() is filter
        weakref.WeakValueDictionary(key=filter)
    for filter in objects:
        assert filter.size_bytes <= sys.getsizeof(filter) < filter.size_bytes + 1_000, type(filter)
    view = BloomView(f.to_bytes())
    assert sys.getsizeof(view) < 1_000, "as of a memoryview: the bytes are the buffer's"
    reference = weakref.ref(view)
    del view
    assert reference() is None


def test_sizes_and_properties():
    f = BloomFilter(1_000, 0.01, seed=7)
    assert (f.seed, f.expected_keys, f.fill_ratio, f.k, f.size_bytes) == (7, 1_000, 0.0, 7, 64 * f.n_blocks)
    assert BloomFilter(1_000) == BloomFilter(expected_keys=1_000, fpr=0.01, seed=0)
    g = BloomFilter.with_bits_per_key(1_000, 10, seed=7)
    assert (g.size_bytes, g.expected_keys, g.seed) == (64 * math.ceil(10_000 / 512), 1_000, 7)
    assert [type(value) for value in (f.k, f.n_blocks, f.size_bytes, f.seed)] == [int] * 4
    for name in ("k", "n_blocks", "size_bytes", "seed", "fill_ratio", "expected_keys"):
        with pytest.raises(AttributeError):
            setattr(f, name, 1)
    for other in (f, BloomView(f.to_bytes()), *(cls(1_000) for cls in ALL)):
        text = repr(other)
        assert type(other).__name__ in text and " at 0x" not in text and "\n" not in text and len(text) < 150, text
    f = BloomFilter(1_000_000, 1e-6, seed=7)
    assert repr(f) == f"BloomFilter(expected_keys=1000000, n_blocks={f.n_blocks}, n_modules=2, k=8, seed=7)"
    assert repr(BloomView(f.to_bytes())) == f"BloomView(n_blocks={f.n_blocks}, n_modules=2, k=8, seed=7)"


@pytest.mark.parametrize("most_modules, n_modules", [(None, 2), (1, 1), (4, 3)])
def test_modules(most_modules, n_modules):
    keys, most = np.arange(100_000), {"most_modules": most_modules}
    filters = [BloomFilter(len(keys), 0.0001, **most), BloomFilter.with_bits_per_key(len(keys), 20, **most)]
    for builder in (FilterBuilder(0.0001, **most), FilterBuilder.with_bits_per_key(20, **most)):
        builder.update(keys)
        filters.append(builder.finish())
    assert [f.n_modules for f in filters] == [n_modules] * 4


# Keys

@pytest.mark.parametrize("cls", ALL)
def test_add_update_and_contains(cls):
    f = cls(1_000)
    assert not any(key in f for key in KEYS)
    with pytest.warns(bloomline.KeyKindWarning):
        assert [f.add(key) for key in KEYS] == [True, True, True, True, False, *[True] * 6], "'' and b'' are one key"
    assert not any(f.add(key) for key in KEYS)
    assert all(key in f for key in KEYS)
    assert "absent" not in f and 18 not in f
    assert f.update(["dog", "elk"]) is None
    found = f.contains_many(["dog", "elk", "absent", *KEYS])
    assert isinstance(found, np.ndarray) and found.dtype == np.bool_
    assert found.tolist() == [True, True, False, *[True] * len(KEYS)]
    assert f.contains_many([]).shape == (0,) and f.contains_many([]).dtype == np.bool_
    assert f.add_many(["fox", "dog", "gnu", "fox", "gnu"]).tolist() == [True, False, True, False, False]
    assert cls is not CountingBloomFilter or [f.count(key) for key in ("fox", "dog", "gnu")] == [2, 2, 2]
    f.clear()
    assert f == cls(1_000) and "ant" not in f


@pytest.mark.parametrize("cls", ALL)
def test_one_value_is_one_key_whatever_its_type(cls):
    class Number(enum.IntEnum):
        SEVENTEEN = 17

    class Index:
        def __index__(self):
            return 17

    text, binary = type("Text", (str,), {}), type("Binary", (bytes,), {})
    f = cls(100)
    f.update([17, "é", -1])
    scalars = (np.dtype(kind + width).type(17) for kind in "iu" for width in "1248")
    for key in (*scalars, np.longlong(17), Number.SEVENTEEN, Index(), (17).to_bytes(8, "little"),
                2**64 - 1, np.uint64(2**64 - 1), b"\xff" * 8, np.int8(-1),
                text("é"), "é".encode(), binary("é".encode()), np.str_("é"), np.bytes_("é".encode())):  # fmt: skip
        assert key in f, repr(key)
    for key in ("17", -17, b"\x11", np.uint8(255)):
        assert key not in f, repr(key)


REFUSED = [True, False, None, 1.0, bytearray(b"ant"), memoryview(b"ant"), 1j, (1,), [1], {1}, object(), np.float64(1),
           np.bool_(True), np.datetime64(1, "s"), np.timedelta64(1, "s"), np.void(b"a"), np.array([True]), np.array(True)]


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: type(key).__name__ + repr(key)[:12])
@pytest.mark.parametrize("cls", ALL)
def test_other_keys_are_refused(cls, key):
    f = cls(100)
    calls = [lambda: f.add(key), lambda: key in f, lambda: f.update([key]), lambda: f.contains_many([key])]
    if cls is CountingBloomFilter:
        calls += [lambda: f.remove(key), lambda: f.count(key)]
    for call in calls:
        with pytest.raises(TypeError, match="(?i)cast.*(integer|text)|(integer|text).*cast") as error:
            call()
        assert type(key).__name__ in str(error.value)
    assert f == cls(100)


def test_errors_of_a_key_are_passed_on():
    class Broken:
        def __index__(self):
            raise LookupError("broken")

    class NoInteger:
        def __index__(self):
            return "17"

    f = empty()
    for call in (f.add, f.__contains__, lambda key: f.update([key]), lambda key: f.contains_many([key])):
        for key, error in ((Broken(), LookupError), (NoInteger(), TypeError), ("\ud800", UnicodeEncodeError)):
            with pytest.raises(error):
                call(key)
    assert f == empty()


def test_update_keeps_the_keys_before_an_error():
    def keys():
        yield from names(3_000)
        raise LookupError("the source failed")

    for failing, error in ((keys(), LookupError), ([*names(3_000), 1.5, "never"], TypeError)):
        f = empty(3_000)
        with pytest.raises(error):
            f.update(failing)
        assert f == one_by_one(names(3_000), empty(3_000))


@pytest.mark.parametrize("cls", ALL)
def test_add_many_is_add_of_each(cls):
    # More than its capacity and than a batch, and each of three keys is one of the two before it.
    keys, f, g = np.arange(30_000) // 3 * 2 + np.arange(30_000) % 2, cls(3_000), cls(3_000)
    assert f.add_many(keys).tolist() == [g.add(int(key)) for key in keys] and f == g
    f = cls(100)
    with pytest.raises(TypeError):
        f.add_many([-1, None, -2])
    assert -1 in f and -2 not in f


def test_update_takes_what_can_be_iterated_once():
    expected = one_by_one(names(2_500), empty(2_500))
    for keys in (
        names(2_500), tuple(names(2_500)), set(names(2_500)), dict.fromkeys(names(2_500)), iter(names(2_500)),
        dict.fromkeys(names(2_500)).keys(), (key for key in names(2_500)), map(str, names(2_500)),
        dict(enumerate(names(2_500))).values(),
    ):  # fmt: skip
        f = empty(2_500)
        f.update(keys)
        assert f == expected, type(keys)
    assert expected.contains_many(key for key in names(2_500)).all()


def test_a_generator_may_use_the_filter_that_it_fills():
    f = empty(5_000)

    def keys():
        for key in names(3_000):
            assert key not in f or True
            f.add(key + " by itself")
            yield key

    f.update(keys())
    assert all(key in f and key + " by itself" in f for key in names(3_000))
    found = f.contains_many(key for key in names(3_000) if f.contains_many([key]).all())
    assert len(found) == 3_000 and found.all()

    def clearing():
        yield "before"
        f.clear()
        yield "after"

    f.update(clearing())
    assert "after" in f


# Set operations, copies and bytes

@pytest.mark.parametrize("cls", COMBINING)
def test_unions_and_intersections(cls):
    f, g = filled(cls, ["ant", "bee"]), filled(cls, ["bee", "cat"])
    both, common = f | g, f & g
    assert type(both) is type(common) is cls and both == filled(cls, ["ant", "bee", "cat"]) == g | f
    assert "bee" in common and "ant" not in common and "cat" not in common and g & cls(1_000) == cls(1_000)
    assert f == filled(cls, ["ant", "bee"]) == f | f == f & f and g == filled(cls, ["bee", "cat"])
    for combine, expected in ((operator.ior, both), (operator.iand, common)):
        h = f.copy()
        assert combine(h, g) is h and h == expected and combine(h, h) == expected
    views = [] if cls is BloomFilter else [BloomView(empty().to_bytes())]
    for other in (3, None, "text", {"ant"}, *views, CountingBloomFilter(100)):
        for operation in (operator.or_, operator.ior, operator.and_, operator.iand):
            with pytest.raises(TypeError):
                operation(f, other)


def test_filters_of_several_sizes_and_views_are_combined_in_any_order():
    filters = [BloomFilter.with_bits_per_key(keys, 10.24, seed=3) for keys in (50, 100, 400)]
    for number, f in enumerate(filters):
        f.update([*names(30, number), "all"])
    before = [f.to_bytes() for f in filters]
    united = filters[2] | filters[0] | filters[1]
    assert united.n_blocks == 8 and united.contains_many([*names(30, 0), *names(30, 1), *names(30, 2)]).all()
    views = [BloomView(f.to_bytes()) for f in filters]
    for a, b, c in itertools.permutations(range(3)):
        for parts in ([filters[a], filters[b], filters[c]], [filters[a], views[b], filters[c]]):
            assert BloomFilter.union(parts) == united == (parts[0] | parts[1]) | parts[2]
            expected = None if parts[1] is views[2] else 400
            assert BloomFilter.union(parts).expected_keys == expected
            grown = filters[a].copy()
            for part in parts[1:]:
                same, grown = grown, operator.ior(grown, part)
                assert same is grown
            assert grown == united and grown.expected_keys == copy.copy(grown).expected_keys == expected
            common = filters[a].copy()
            for part in parts[1:]:
                common &= part
            assert common == (parts[0] & parts[1]) & parts[2] and "all" in common and common.n_blocks == 8
    sizes = [BloomFilter.with_bits_per_key(keys, 10.24) for keys in (100, 150, 300)]
    assert len({BloomFilter.union(parts).n_blocks for parts in itertools.permutations(sizes)}) == 1
    assert BloomFilter.union(views) == united == views[0] | (views[2] | filters[1])
    assert views[0] | views[2] == filters[0] | filters[2] and views[2] & views[0] == filters[0] & filters[2]
    assert views[0] & filters[2] == filters[0] & filters[2] and [f.to_bytes() for f in filters] == before
    with BloomView(before[0]) as closed:
        pass
    for use in (lambda: filters[0] | closed, lambda: closed & filters[0], lambda: BloomFilter.union([closed])):
        with pytest.raises(ValueError, match="^the view is closed"):
            use()
    damaged = BloomView(bytes([before[0][0] ^ 1]) + before[0][1:], verify=False)
    with pytest.raises(bloomline.DecodeError, match="damaged"):
        filters[0] | damaged
    assert filters[0] != damaged and [f.to_bytes() for f in filters] == before


@pytest.mark.parametrize("cls", COMBINING)
def test_union_of_many(cls):
    parts, whole = [filled(cls, names(50, i), seed=3) for i in range(10)], cls(1_000, seed=3)
    for i in range(10):
        whole.update(names(50, i))
    before = [part.to_bytes() for part in parts]
    assert cls.union(parts) == whole == cls.union(iter(parts)) == cls.union(part for part in [*parts, *parts])
    single = cls.union(parts[:1])
    assert single == parts[0]
    single.add("another")
    assert [part.to_bytes() for part in parts] == before
    with pytest.raises(ValueError, match="^a union needs at least one filter$"):
        cls.union([])

    def failing():
        yield parts[0]
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        cls.union(failing())


def test_fold_and_shrink():
    f = BloomFilter.with_bits_per_key(5_000, 10.24)
    f.update(names(100))
    assert f.fold(1) is None and f.n_blocks == 100
    f.fold(5)
    smaller = BloomFilter.with_bits_per_key(1_000, 10.24)
    smaller.update(names(100))
    assert f == smaller and f.n_blocks == 20
    assert f.shrink_to_fpr(0.01) is None and f.n_blocks < 20
    size = f.n_blocks
    assert f.estimated_fpr() <= 0.01 and f.contains_many(names(100)).all()
    f.shrink_to_fpr(1e-9)
    assert f.n_blocks == size


@pytest.mark.parametrize("cls", ALL)
def test_equality_and_hash(cls):
    f, g = cls(1_000), cls(1_000)
    assert f == g and not f != g and f == f
    f.add("ant")
    assert f != g and not f == g
    g.add("ant")
    assert f == g
    others = [other(1_000) for other in ALL]
    for other in (None, 3, "ant", f.to_bytes(), object(), cls(1_000, seed=1), cls(9_000), *others):
        assert f != other and not f == other
    with pytest.raises(TypeError, match="unhashable"):
        hash(f)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError):
            compare(f, g)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("copied", COPIES)
def test_copies_and_pickles_are_equal_and_apart(cls, copied):
    for f in (cls(1_000, 0.001, seed=2**64 - 2), filled(cls, names(700), seed=2**64 - 2)):
        g = copied(f)
        assert g is not f and type(g) is cls and g == f and g.to_bytes() == f.to_bytes() and g.seed == f.seed
        assert cls is ScalableBloomFilter or g.expected_keys == f.expected_keys == 1_000
    g.add("another key")
    assert g != f and "another key" not in f
    f.clear()
    assert "key 3" in g
    shared = copy.deepcopy([f, f])
    assert shared[0] is shared[1]


@pytest.mark.parametrize("cls", ALL)
def test_bytes_round_trip(cls):
    f = filled(cls, names(300), seed=9)
    data = f.to_bytes()
    assert type(data) is bytes
    for buffer in buffers(data):
        read = cls.from_bytes(buffer)
        assert read == f and read.to_bytes() == data
        read.add("more")
    assert f.to_bytes() == data
    if cls is BloomFilter:
        assert f.expected_keys == 1_000 and cls.from_bytes(data).expected_keys is None
    for wrong in ("text", None, 17, [1, 2]):
        with pytest.raises(TypeError):
            cls.from_bytes(wrong)
    with pytest.raises((ValueError, BufferError)):
        cls.from_bytes(memoryview(data + data)[::2])


# What each class has of its own

def test_estimates():
    for cls in (BloomFilter, StandardBloomFilter, CountingBloomFilter):
        f = filled(cls, range(1_000))
        estimate, error = f.estimated_keys()
        assert isinstance(estimate, float) and 0 < error < 100 and abs(estimate - 1_000) < 5 * error
        assert 0.4 < f.fill_ratio < 0.6 and 0.005 < f.estimated_fpr() < 0.02
        f.update(range(100_000))
        assert f.estimated_keys() == (math.inf, math.inf) and f.fill_ratio == f.estimated_fpr() == 1.0


def test_estimates_of_two_filters():
    f, g, full = BloomFilter(2_000), BloomFilter(2_000), BloomFilter(2_000)
    f.update(range(1_500))
    g.update(range(1_000, 2_000))
    full.update(range(200_000))
    views = [BloomView(x.to_bytes()) for x in (f, g)]
    for ours, theirs in itertools.product((f, views[0]), (g, views[1])):
        assert ours.estimated_union(theirs) == (f | g).estimated_keys() == theirs.estimated_union(ours)
        common, error = ours.estimated_intersection(theirs)
        assert 0 < error < 100 and abs(common - 500) < 5 * error and type(common) is float
        assert ours.estimated_union(full) == (math.inf, math.inf)
        assert ours.estimated_keys() == f.estimated_keys() == ours.estimated_union(ours)
        assert (ours.fill_ratio, ours.estimated_fpr()) == (f.fill_ratio, f.estimated_fpr())


def test_counting():
    f = CountingBloomFilter(1_000)
    assert f.count("ant") == 0 and not f.remove("ant")
    f.update(["ant", "ant", "bee", 17, np.int8(17), b"\x11" + b"\0" * 7, *["cat"] * 20])
    assert [f.count(key) for key in ("ant", "bee", "dog", 17, "cat")] == [2, 1, 0, 3, 15]
    plain = f.to_filter()
    assert type(plain) is BloomFilter and plain == one_by_one(["ant", "bee", 17, "cat"], BloomFilter(1_000))
    shape = lambda f: (f.k, f.n_blocks, f.fill_ratio, f.estimated_fpr())
    assert shape(f) == shape(plain)
    assert f.remove("ant") and "ant" in f and f.remove("ant") and "ant" not in f and not f.remove("ant")
    assert "bee" in f and "ant" in plain
    assert f.remove("cat") and f.count("cat") == 15, "saturated"
    assert f.remove_many(iter(["bee", "bee", "cat", "dog"])).tolist() == [True, False, True, False]
    assert "bee" not in f and "cat" in f
    pa = pytest.importorskip("pyarrow")
    for keys in ([17, None], pa.array([17, None]), iter([17, 1.5])):
        with pytest.raises(TypeError, match=r"keys\[1\]|NoneType"):
            f.remove_many(keys)
    assert f.count(17) == 3, "an error leaves all keys"
    assert f.remove_many(pa.array([17, 17, 17, 17, 18])).tolist() == [True, True, True, False, False] and 17 not in f
    g = filled(CountingBloomFilter, range(1_000))
    for keys in (["ant"] * 1_000, pa.array(names(1_000))):
        with pytest.raises(TypeError, match="text looked up in a filter of integers"):
            g.remove_many(keys)
    assert g == filled(CountingBloomFilter, range(1_000)), "no false positive was removed"


def test_scalable():
    f = ScalableBloomFilter(100, 0.01)
    assert (f.fpr, f.inserted_keys, f.seed) == (0.01, 0, 0)
    size = f.size_bytes
    f.update(names(5_000))
    assert f.size_bytes > 10 * size and 4_900 < f.inserted_keys <= 5_000 and 0 < f.estimated_fpr() < 0.01
    again = ScalableBloomFilter.from_bytes(f.to_bytes())
    assert again == f and (again.fpr, again.inserted_keys) == (f.fpr, f.inserted_keys)
    f.clear()
    assert f.size_bytes == size and f.inserted_keys == 0 and f == ScalableBloomFilter(100, 0.01)


def test_standard():
    f = StandardBloomFilter(1_000, 0.01)
    assert 9 < f.size_bits / 1_000 < 10 and f.size_bytes == 64 * math.ceil(f.size_bits / 512) and f.k == 7


# Memory and threads

@linux
def test_memory_that_cannot_be_had_is_an_error(tmp_path):
    with_little_memory("""
import operator
from bloomline import BloomFilter, BloomView, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter
for cls in (BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter):
    f = cls(6 * 10**7)
    f.add("ant")
    data = f.to_bytes()
    uses = [lambda: cls(6 * 10**7), lambda: cls.from_bytes(data), f.copy, f.to_bytes]
    if hasattr(cls, "union"):
        uses += [lambda: cls.union([f])]
    if hasattr(f, "__or__"):
        uses += [lambda: f | f, lambda: f & f]
    if cls is BloomFilter:
        f.save(sys.argv[1])
        small = f.copy()
        small.fold(2)
        uses += [lambda: cls.open(sys.argv[1], mmap=False), BloomView(data).to_filter, lambda: f.fold(2)]
        uses += [lambda: operator.ior(small, f), lambda: f | BloomView(data)]
    if cls is CountingBloomFilter:
        uses += [f.to_filter]
    limit(16 << 20)
    for use in uses:
        refused(use)
    assert "ant" in f
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    del f, data, uses, use
""", tmp_path / "f.bloom")


@pytest.mark.parametrize("cls", ALL)
def test_threads_may_do_anything_at_once(cls):
    hammer("""
import operator, pickle
import numpy as np
import bloomline

cls = getattr(bloomline, sys.argv[1])
f, other, keys = cls(5_000), cls(5_000), np.arange(1_000)
f.update([*keys, "text"])  # of both kinds: text looked up before any is added is an error
other.update(np.arange(1_000, 2_000))
jobs = [
    lambda: f.update(np.arange(2_000, 5_000)),
    lambda: f.update(["a", "b", 17]),
    lambda: [f.add(str(i)) for i in range(100)],
    lambda: [str(i) in f for i in range(100)],
    lambda: f.contains_many(keys).all() or raised.append("a key was lost"),
    lambda: pickle.loads(pickle.dumps(f)).contains_many(keys).all() or raised.append("a pickled key was lost"),
    lambda: f.copy() == f,
    lambda: f.estimated_fpr(),
    lambda: [(f.size_bytes, f.seed, repr(f)) for _ in range(100)],
    lambda: f == other, lambda: other == f,
]
if hasattr(f, "estimated_keys"):
    jobs += [f.estimated_keys, lambda: [f.k for _ in range(100)]]
if hasattr(f, "__ior__"):
    jobs += [lambda: operator.ior(f, other), lambda: operator.ior(other, f), lambda: operator.ior(f, f)]
    jobs += [lambda: f | other, lambda: f & other, lambda: operator.iand(f, f), lambda: f & f]
if cls is bloomline.BloomFilter:
    view, small = bloomline.BloomView(f.to_bytes()), f.copy()
    small.fold(2)
    jobs += [lambda: f.estimated_union(other), lambda: other.estimated_intersection(f), lambda: f == view]
    jobs += [lambda: operator.ior(small.copy(), f), lambda: f & small, lambda: view.estimated_union(f), lambda: view | f]
if hasattr(f, "remove"):
    jobs += [lambda: f.remove("never") and raised.append("removed"), lambda: [f.count(17) for _ in range(100)]]
run_at_once(jobs, 1.2)
assert f.contains_many(np.arange(1_000)).all() and f.contains_many(np.arange(2_000, 5_000)).all()
assert f.contains_many([str(i) for i in range(100)]).all() and "a" in f and 17 in f
""", cls.__name__)


def test_lookups_wait_for_a_detached_fold():
    """In a process of its own, which would end if a lookup read blocks that a fold has freed."""
    run_python("""
import sys, threading
from bloomline import BloomFilter

sys.setswitchinterval(1e-4)
keys = [f"key{i}" for i in range(50)]
for _ in range(3_000):
    f, folded = BloomFilter.with_bits_per_key(1 << 17, 32, most_modules=1), []
    f.update(keys)

    def fold():
        while f.n_blocks % 2 == 0:
            f.fold(2)
        folded.append(True)

    thread = threading.Thread(target=fold)
    thread.start()
    while not folded:
        assert all(key in f for key in keys)
    thread.join()
""")


def test_threads_may_fold_a_filter_in_use():
    hammer("""
import operator
import numpy as np
from bloomline import BloomFilter

f, keys = BloomFilter.with_bits_per_key(512 * 64, 12), np.arange(2_000)
f.update(keys)
g, size = f.copy(), f.n_blocks

def fold():
    time.sleep(0.05)
    if f.n_blocks % 2 == 0:
        f.fold(2)

def check():
    assert f.contains_many(keys).all() and 17 in f

run_at_once([fold, lambda: operator.ior(f, g), check, check, lambda: f.add("key"), lambda: f.update(keys),
             lambda: BloomFilter.from_bytes(f.to_bytes()), lambda: f.n_blocks], 1)
fold()
assert f.n_blocks < size and f.contains_many(keys).all() and "key" in f
""")


@pytest.mark.parametrize("cls, call", [
    *((cls, call) for cls in ALL for call in ("update", "contains_many")),
    (BloomView, "contains_many"), (FilterBank, "replace"),
])
def test_the_interpreters_lock_is_released(cls, call):
    """With a switch interval of an hour another thread runs only if the call itself releases the lock."""
    many = 100_000 if cls is CountingBloomFilter else 500_000
    arguments = [np.arange(many)]
    if cls is BloomView:
        f = BloomView(BloomFilter(many).to_bytes())
    elif cls is FilterBank:
        f, arguments = FilterBank([BloomFilter(20_000)]), [0, BloomFilter(20_000)]
    else:
        f = cls(many)
    running, ticks = True, 0

    def tick():
        nonlocal ticks
        while running:
            ticks += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    try:
        sys.setswitchinterval(3600)
        thread.start()
        for _ in range(2_000):
            before = ticks
            getattr(f, call)(*arguments)
            if ticks > before:
                break
        else:
            pytest.fail("no other thread made progress")
    finally:
        running = False
        sys.setswitchinterval(interval)
        thread.join()
