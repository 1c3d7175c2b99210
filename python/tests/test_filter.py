"""The filters themselves: names, sizes, set operations, errors, equality, pickle, threads."""

import builtins
import copy
import enum
import math
import operator
import pickle
import sys
import threading
import time
import weakref

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
    ModularBloomFilter,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import ALL, empty, has_bits_of, make, one_by_one, python, run_python, without_count

COMBINING = [BloomFilter, StandardBloomFilter]
UNITING = [*COMBINING, ModularBloomFilter]
KEYS = ["ant", b"bee", 17, "", b"", -1, 2**63, 2**64 - 5, "жук", "a\0", "🐜" * 40]


def names(count, prefix="key"):
    return [f"{prefix} {number}" for number in range(count)]


def test_the_package_exports_what_it_documents():
    assert {*bloomline.__all__} - {"__version__"} == {
        *(cls.__name__ for cls in ALL), "BloomView", "DecodeError", "FilterBank", "FilterBuilder", "KeyKindWarning",
    }
    for name in bloomline.__all__:
        assert hasattr(bloomline, name)
    for cls in [*ALL, BloomView, DecodeError, FilterBank, FilterBuilder]:
        assert cls.__module__ == "bloomline", "pickles and messages name the public module"
        assert cls.__doc__
    assert issubclass(DecodeError, ValueError)


def test_a_star_import_leaves_the_builtins():
    names = {}
    exec("from bloomline import *", names)
    assert names.keys().isdisjoint(vars(builtins)) and names["BloomFilter"] is BloomFilter
    assert callable(bloomline.open)


def test_version():
    from importlib.metadata import version

    assert bloomline.__version__ == version("bloomline")


@pytest.mark.parametrize("cls", ALL)
def test_the_requested_rate(cls):
    f = cls(1_000, 0.02)
    assert f.fpr == 0.02 and cls(1_000).fpr == 0.01
    for same in (f.copy(), copy.deepcopy(f), pickle.loads(pickle.dumps(f)), f | f if cls in UNITING else f):
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
        reference = weakref.ref(filter)
        assert reference() is filter
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
    assert (f.seed, f.expected_keys, f.fill_ratio) == (7, 1_000, 0.0)
    assert f.size_bytes == 64 * f.n_blocks
    assert 9 < 8 * f.size_bytes / 1_000 < 11 and f.k == 7
    assert BloomFilter(1_000) == BloomFilter(1_000, fpr=0.01, seed=0)
    assert BloomFilter(expected_keys=1_000).n_blocks == f.n_blocks
    assert f.estimated_fpr() == 0.0 and f.estimated_keys() == (0.0, pytest.approx(0.29, abs=0.01))
    g = BloomFilter.with_bits_per_key(1_000, 10, seed=7)
    assert g.size_bytes == 64 * math.ceil(10_000 / 512) and g.expected_keys == 1_000 and g.seed == 7
    assert BloomFilter(0).n_blocks == 2
    assert [type(value) for value in (f.k, f.n_blocks, f.size_bytes, f.seed)] == [int] * 4
    for name in ("k", "n_blocks", "size_bytes", "seed", "fill_ratio", "expected_keys"):
        with pytest.raises(AttributeError):
            setattr(f, name, 1)
    assert not hasattr(f, "known_keys")


def test_seed_is_keyword_only_and_of_64_bits():
    for cls in ALL:
        with pytest.raises(TypeError):
            cls(1_000, 0.01, 7)
        assert cls(10, seed=2**64 - 1).seed == 2**64 - 1
        for seed in (-1, 2**64):
            with pytest.raises(ValueError, match=str(seed)):
                cls(10, seed=seed)
        with pytest.raises(TypeError):
            cls(10, seed=1.5)
    assert one_by_one(["ant"], BloomFilter(10, seed=1)) != one_by_one(["ant"], BloomFilter(10, seed=2))


def test_bits_are_those_of_the_format():
    for seed in (0, 0x5EED):
        for bits_per_key in (4, 12, 40):
            f = BloomFilter.with_bits_per_key(200, bits_per_key, seed=seed)
            for key in KEYS:
                f.add(key)
            assert has_bits_of(f, KEYS)


@pytest.mark.parametrize("cls", ALL)
def test_add_update_and_contains(cls):
    f = cls(1_000)
    assert not any(key in f for key in KEYS)
    assert [f.add(key) for key in KEYS] == [True, True, True, True, False, *[True] * 6], "'' and b'' are one key"
    assert not any(f.add(key) for key in KEYS)
    assert all(key in f for key in KEYS)
    assert "absent" not in f and 18 not in f
    assert f.update(["dog", "elk"]) is None
    found = f.contains_many(["dog", "elk", "absent", *KEYS])
    assert isinstance(found, np.ndarray) and found.dtype == np.bool_
    assert found.tolist() == [True, True, False, *[True] * len(KEYS)]
    assert f.contains_many([]).shape == (0,) and f.contains_many([]).dtype == np.bool_
    f.clear()
    assert f == cls(1_000) and "ant" not in f


@pytest.mark.parametrize("cls", ALL)
def test_one_value_is_one_key_whatever_its_type(cls):
    class Number(enum.IntEnum):
        SEVENTEEN = 17

    class Index:
        def __index__(self):
            return 17

    f = cls(100)
    f.update([17, "text"])  # of both kinds: lookups of a kind that it lacks are errors
    for key in (
        np.int8(17), np.uint8(17), np.int64(17), np.uint64(17), Number.SEVENTEEN, Index(),
        (17).to_bytes(8, "little"),
    ):
        assert key in f, repr(key)
    assert "17" not in f and -17 not in f and b"\x11" not in f
    f.add(-1)
    assert 2**64 - 1 in f and b"\xff" * 8 in f and np.int8(-1) in f and np.uint8(255) not in f

    class Text(str):
        pass

    class Binary(bytes):
        pass

    f.add("é")
    assert Text("é") in f and "é".encode() in f and Binary("é".encode()) in f and np.str_("é") in f
    assert np.bytes_("é".encode()) in f


@pytest.mark.parametrize("key", [2**64, 17 + 2**64, 17 - 2**64, -(2**63) - 1, 2**200, -(2**200), 10**5_000],
                         ids=lambda key: f"{key.bit_length()} bits")
@pytest.mark.parametrize("cls", ALL)
def test_integers_of_more_than_64_bits_are_no_keys(cls, key):
    f = cls(10)
    for use in (f.add, f.__contains__, lambda key: f.update([key]), lambda key: f.contains_many([key]),
                lambda key: f.update(np.array([key], object))):
        with pytest.raises(OverflowError, match=r"below -2\^63 or above 2\^64 - 1.*text"):
            use(key)
    assert f == cls(10)


REFUSED = [True, False, None, 1.0, bytearray(b"ant"), memoryview(b"ant"), 1j, (1,), [1], {1}, object(), np.float64(1), np.bool_(True),
           np.datetime64(1, "s"), np.timedelta64(1, "s")]


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


def test_text_that_is_no_text():
    f = empty()
    for call in (f.add, f.__contains__, lambda key: f.update([key]), lambda key: f.contains_many([key])):
        with pytest.raises(UnicodeEncodeError):
            call("\ud800")
    assert f == empty()


def test_an_index_that_raises():
    class Broken:
        def __index__(self):
            raise LookupError("broken")

    class NoInteger:
        def __index__(self):
            return "17"

    f = empty()
    for call in (f.add, f.__contains__, lambda key: f.update([key])):
        with pytest.raises(LookupError, match="broken"):
            call(Broken())
        with pytest.raises(TypeError):
            call(NoInteger())


def test_update_keeps_the_keys_before_an_error():
    def keys():
        yield from names(3_000)
        raise LookupError("the source failed")

    f = empty(3_000)
    with pytest.raises(LookupError, match="the source failed"):
        f.update(keys())
    assert f == one_by_one(names(3_000), empty(3_000))

    g = empty(3_000)
    with pytest.raises(TypeError):
        g.update([*names(3_000), 1.5, "never"])
    assert g == f


def test_update_takes_what_can_be_iterated_once():
    expected = one_by_one(names(2_500), empty(2_500))
    for keys in (
        names(2_500), tuple(names(2_500)), set(names(2_500)), dict.fromkeys(names(2_500)), iter(names(2_500)),
        dict.fromkeys(names(2_500)).keys(), (key for key in names(2_500)), map(str, names(2_500)),
        dict(enumerate(names(2_500))).values(),
    ):
        f = empty(2_500)
        f.update(keys)
        assert f == expected, type(keys)
    numbers = empty()
    numbers.update(range(-5, 1_000))
    assert numbers == one_by_one(range(-5, 1_000))
    assert numbers.contains_many(range(-7, 1_000)).tolist() == [False, False] + [True] * 1_005
    assert expected.contains_many(key for key in names(2_500)).all()


@pytest.mark.parametrize("cls", ALL)
def test_a_single_key_is_no_collection_of_keys(cls):
    f = cls(10)
    for keys in ("text", b"bytes", 17, None, 1.5, object()):
        for call in (f.update, f.contains_many):
            with pytest.raises(TypeError, match="list" if isinstance(keys, (str, bytes)) else type(keys).__name__):
                call(keys)
    assert f == cls(10)


def test_a_generator_may_use_the_filter_that_it_fills():
    f = empty(5_000)
    f.update(key for key in names(5_000) if key not in f or True)
    assert f == one_by_one(names(5_000), empty(5_000))

    def keys():
        for key in names(3_000, "new"):
            f.add(key + " by itself")
            yield key

    f.update(keys())
    assert all(key in f and key + " by itself" in f for key in names(3_000, "new"))
    found = f.contains_many(key for key in names(3_000, "new") if f.contains_many([key]).all())
    assert len(found) == 3_000 and found.all()

    def clearing():
        yield "before"
        f.clear()
        yield "after"

    f.update(clearing())
    assert "after" in f


@pytest.mark.parametrize("cls", COMBINING)
def test_set_operations(cls):
    def filled(*keys):
        f = cls(100)
        f.update(keys)
        return f

    f, g = filled("ant", "bee"), filled("bee", "cat")
    both = f | g
    assert both == filled("ant", "bee", "cat") and type(both) is cls
    assert f == filled("ant", "bee") and g == filled("bee", "cat")
    common = f & g
    assert "bee" in common and "ant" not in common and "cat" not in common
    assert f == filled("ant", "bee") and g == filled("bee", "cat")

    same = f
    f |= g
    assert f is same and f == both
    f &= g
    assert f is same and f == g
    f |= f
    f &= f
    assert f is same and f == g
    assert f | f == f & f == g
    assert filled("ant") | cls(100) == filled("ant") and filled("ant") & cls(100) == cls(100)
    for other in (3, None, "text", {"ant"}, BloomView(empty().to_bytes()), CountingBloomFilter(100)):
        for operation in (operator.or_, operator.and_, operator.ior, operator.iand):
            with pytest.raises(TypeError):
                operation(filled("ant"), other)


@pytest.mark.parametrize("cls", UNITING)
def test_union_of_many(cls):
    f, g, both = cls(100), cls(100), cls(100)
    f.add("ant"), g.add("bee"), both.update(["ant", "bee"])
    assert f | g == g | f == f | f | g == both and type(f | g) is cls and f != both
    f |= g
    f |= f
    assert f == both and g != both
    for other in (3, None, "text", {"ant"}, BloomView(empty().to_bytes()), CountingBloomFilter(100)):
        for operation in (operator.or_, operator.ior):
            with pytest.raises(TypeError):
                operation(f, other)

    parts = []
    for i in range(10):
        part = cls(1_000, seed=3)
        part.update(names(50, i))
        parts.append(part)
    whole = cls(1_000, seed=3)
    for i in range(10):
        whole.update(names(50, i))
    before = [part.to_bytes() for part in parts]
    assert cls.union(parts) == whole == cls.union(iter(parts)) == cls.union(part for part in [*parts, *parts])
    assert [part.to_bytes() for part in parts] == before
    single = cls.union(parts[:1])
    assert single == parts[0] and single is not parts[0]
    single.add("another")
    assert single != parts[0]
    with pytest.raises(ValueError, match="(?i)at least one|no filter|empty"):
        cls.union([])
    for wrong in (17, None, [17], [parts[0], "text"], parts[0]):
        with pytest.raises(TypeError):
            cls.union(wrong)

    def failing():
        yield parts[0]
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        cls.union(failing())


def test_mismatches_are_errors_with_the_numbers():
    f = BloomFilter.with_bits_per_key(1_000, 10)
    others = [
        (BloomFilter.with_bits_per_key(2_000, 10), f"{f.n_blocks} and {2 * f.n_blocks - 1}|{f.n_blocks} and {2 * f.n_blocks}"),
        (BloomFilter.with_bits_per_key(500, 20), f"k = {f.k} and k = "),
        (BloomFilter.with_bits_per_key(1_000, 10, seed=255), "0x0 and 0xff"),
    ]
    f.add("ant")
    for g, text in others:
        g.add("bee")
        before = f.to_bytes(), g.to_bytes()
        for operation in (operator.or_, operator.and_, operator.ior, operator.iand, lambda f, g: BloomFilter.union([f, g])):
            with pytest.raises(ValueError, match=text):
                operation(f, g)
        assert (f.to_bytes(), g.to_bytes()) == before
    with pytest.raises(ValueError, match="filters of .* and .* bits"):
        StandardBloomFilter(1_000) | StandardBloomFilter(2_000)


@pytest.mark.parametrize("cls", ALL)
def test_wrong_sizes_are_errors_with_the_numbers(cls):
    for fpr in (0, 1, -0.5, 1.5):
        with pytest.raises(ValueError, match=rf"between 0 and 1, both excluded, not {fpr}"):
            cls(1_000, fpr)
    for fpr in (math.nan, math.inf):
        with pytest.raises(ValueError, match="(?i)nan|inf"):
            cls(1_000, fpr)
    with pytest.raises(ValueError, match="1e-20"):
        cls(1_000, 1e-20)
    for count in (-1, -(2**70)):
        with pytest.raises(ValueError, match=str(count)):
            cls(count)
    for count in (2**64 - 1, 2**64, 2**200):
        with pytest.raises(ValueError):
            cls(count)
    with pytest.raises((ValueError, MemoryError)):
        cls(2**62)
    with pytest.raises(MemoryError, match="out of memory: cannot allocate [0-9]+ bytes"):
        cls(2**50)
    for count in (None, "1000", 1.5):
        with pytest.raises(TypeError):
            cls(count)
    with pytest.raises(TypeError):
        cls()
    if cls is not ScalableBloomFilter:
        for bits in (0, -1, 64.5, math.nan):
            with pytest.raises(ValueError, match="(?i)above 0 and at most 64"):
                cls.with_bits_per_key(10, bits)
        assert cls.with_bits_per_key(10, 64, seed=9).seed == 9
    else:
        assert not hasattr(cls, "with_bits_per_key")


def test_memory_that_cannot_be_had_is_an_error():
    """2^50 bits are within the address space, so the allocator must refuse; with a limit on it, less suffices."""
    run_python("""
import resource
from bloomline import BloomFilter, CountingBloomFilter, ModularBloomFilter, StandardBloomFilter
resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29))
for make in (BloomFilter, CountingBloomFilter, ModularBloomFilter, StandardBloomFilter):
    try:
        make(10**10)
    except MemoryError as error:
        assert "cannot allocate" in str(error), repr(error)
    else:
        raise SystemExit(f"{make}: no error")
big = BloomFilter(8 * 10**8)
for name, use in (("copy", big.copy), ("to_bytes", big.to_bytes), ("|", lambda: big | big), ("&", lambda: big & big),
                  ("union", lambda: BloomFilter.union([big]))):
    print(name, flush=True)
    try:
        use()
    except MemoryError as error:
        print(repr(error), flush=True)
    else:
        raise SystemExit("no error")
big.add("ant")
assert "ant" in big
""")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory in use")
def test_memory_for_a_copy_that_cannot_be_had_is_an_error(tmp_path):
    run_python("""
import resource, sys
from bloomline import BloomFilter, BloomView, CountingBloomFilter, ModularBloomFilter, ScalableBloomFilter, StandardBloomFilter
for cls in (BloomFilter, CountingBloomFilter, ModularBloomFilter, ScalableBloomFilter, StandardBloomFilter):
    f = cls(6 * 10**7)
    f.add("ant")
    data = f.to_bytes()
    uses = [lambda: cls.from_bytes(data), f.copy, f.to_bytes]
    if cls is BloomFilter:
        f.save(sys.argv[1])
        uses += [lambda: cls.open(sys.argv[1], mmap=False), BloomView(data).to_filter, lambda: f.fold(2)]
    if cls is CountingBloomFilter:
        uses += [f.to_filter]
    if cls is ModularBloomFilter:
        uses += [lambda: f.truncated(1), lambda: f.fold(2)]
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))
    for i, use in enumerate(uses):
        try:
            use()
        except MemoryError as error:
            assert "out of memory" in str(error), repr(error)
        else:
            raise SystemExit(f"{cls}, use {i}: no error")
    assert "ant" in f
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    del f, data, uses, use
""", tmp_path / "f.bloom")


def test_sizes_for_a_guessed_number_of_keys_can_be_folded():
    f = BloomFilter(5_000_000)
    assert f.n_blocks == 97_200  # 97,007, a prime, rounded up
    f.update(names(100))
    f.fold(9)
    assert f.n_blocks == 10_800 and has_bits_of(f, names(100))
    assert BloomFilter.with_bits_per_key(5_000_000, 9.9335).n_blocks == 97_007
    assert CountingBloomFilter(1_000, 0.5).n_blocks == BloomFilter(1_000, 0.5).n_blocks == 4


def test_fold_and_shrink():
    f = BloomFilter.with_bits_per_key(512 * 12, 12)
    f.update(names(100))
    assert f.n_blocks == 144
    f.fold(1)
    assert f.n_blocks == 144
    f.fold(12)
    assert f.n_blocks == 12 and has_bits_of(f, names(100))
    for factor in (0, 5, 24):
        with pytest.raises(ValueError, match=f"12 blocks cannot be folded by {factor}"):
            f.fold(factor)
    for factor in (-1, 2**70):
        with pytest.raises(ValueError, match=str(factor)):
            f.fold(factor)
    with pytest.raises(TypeError):
        f.fold(1.5)
    g = BloomFilter.with_bits_per_key(512 * 12, 12)
    g.update(names(100))
    g.shrink_to_fpr(0.01)
    assert g.n_blocks < 144 and 144 % g.n_blocks == 0 and g.estimated_fpr() <= 0.01
    assert has_bits_of(g, names(100))
    size = g.n_blocks
    g.shrink_to_fpr(1e-9)
    assert g.n_blocks == size
    for fpr in (0, 1, -1, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            g.shrink_to_fpr(fpr)


def test_estimates():
    f = BloomFilter(10_000)
    f.update(range(10_000))
    estimate, error = f.estimated_keys()
    assert isinstance(estimate, float) and isinstance(error, float)
    assert 0 < error < 100 and abs(estimate - 10_000) < 5 * error
    assert 0.4 < f.fill_ratio < 0.5
    assert 0.008 < f.estimated_fpr() < 0.0105
    full = BloomFilter(1)
    full.update(range(10_000))
    assert full.estimated_keys() == (math.inf, math.inf) and full.fill_ratio == full.estimated_fpr() == 1.0


@pytest.mark.parametrize("cls", ALL)
def test_equality_and_hash(cls):
    f, g = cls(1_000), cls(1_000)
    assert f == g and not f != g
    f.add("ant")
    assert f != g and not f == g
    g.add("ant")
    assert f == g
    assert f != cls(1_000, seed=1) and f != cls(9_000)
    for other in (None, 3, "ant", f.to_bytes(), object()):
        assert f != other and not f == other
    for other in ALL:
        assert (f == other(1_000)) is False
    with pytest.raises(TypeError, match="unhashable"):
        hash(f)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError):
            compare(f, g)
    assert f == f


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("copied", [lambda f: f.copy(), copy.copy, copy.deepcopy,
                                    *(lambda f, protocol=protocol: pickle.loads(pickle.dumps(f, protocol)) for protocol in range(6))])
def test_copies_and_pickles_are_equal_and_apart(cls, copied):
    f = cls(1_000, 0.001, seed=2**64 - 2)
    for g in (copied(f), copied(f)):
        assert g == f and type(g) is cls
    f.update(names(700))
    g = copied(f)
    assert g is not f and g == f and g.to_bytes() == f.to_bytes() and g.seed == f.seed
    if cls is BloomFilter:
        assert g.expected_keys == f.expected_keys == 1_000
    g.add("another key")
    assert g != f and "another key" not in f
    f.clear()
    assert "key 3" in g
    shared = copy.deepcopy([f, f])
    assert shared[0] is shared[1]


@pytest.mark.parametrize("cls", ALL)
def test_bytes_round_trip(cls):
    f = cls(500, seed=9)
    f.update(names(300))
    data = f.to_bytes()
    assert type(data) is bytes
    for buffer in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), memoryview(data).cast("Q")):
        read = cls.from_bytes(buffer)
        assert read == f and read.to_bytes() == data
        assert all(read.contains_many(names(300)))
        read.add("more")
    if cls is BloomFilter:
        assert f.expected_keys == 500 and cls.from_bytes(data).expected_keys is None
    for wrong in ("text", None, 17, [1, 2]):
        with pytest.raises(TypeError):
            cls.from_bytes(wrong)
    with pytest.raises((ValueError, BufferError)):
        cls.from_bytes(memoryview(data + data)[::2])
    for other in ALL:
        if other is not cls:
            with pytest.raises(DecodeError, match="^these are the bytes of a "):
                other.from_bytes(data)


@pytest.mark.parametrize("cls", ALL)
def test_damaged_bytes_are_an_error(cls):
    f = cls(50)
    f.update(names(30))
    data = f.to_bytes()
    for at in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        with pytest.raises(DecodeError, match=r"\d"):
            cls.from_bytes(damaged)
    for end in range(0, len(data), 13):
        with pytest.raises(DecodeError, match=r"\d"):
            cls.from_bytes(data[:end])
    with pytest.raises(DecodeError, match="there are 0, and at least (72|320) are needed"):
        cls.from_bytes(b"")
    with pytest.raises(DecodeError):
        cls.from_bytes(data + b"\0")


def test_repr():
    f = BloomFilter(1_000, seed=7)
    for filter in (f, BloomView(f.to_bytes()), CountingBloomFilter(1_000), ScalableBloomFilter(1_000), StandardBloomFilter(1_000),
                   ModularBloomFilter(1_000_000, 1e-9)):
        text = repr(filter)
        assert type(filter).__name__ in text and " at 0x" not in text and "\n" not in text and len(text) < 150, text
    assert str(f.n_blocks) in repr(f) and f"k={f.k}" in repr(f).replace(" ", "").replace(":", "="), repr(f)


def test_views():
    f = BloomFilter(1_000, seed=5)
    f.update([*names(500), *range(100)])
    data = f.to_bytes()
    for buffer in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), memoryview(data).cast("Q"),
                   memoryview(b"x" + data)[1:]):
        view = BloomView(buffer)
        assert (view.k, view.n_blocks, view.seed, view.size_bytes) == (f.k, f.n_blocks, f.seed, f.size_bytes)
        assert "key 3" in view and 99 in view and "absent" not in view
        assert view.contains_many(names(600)).tolist() == f.contains_many(names(600)).tolist()
        assert view.contains_many(np.arange(200)).tolist() == f.contains_many(np.arange(200)).tolist()
        assert view.verify() is None
        owned = view.to_filter()
        assert owned == f and owned.expected_keys is None
        owned.add("another")
        assert "another" not in view
    for name in ("add", "update", "clear", "__ior__", "__or__"):
        assert not hasattr(view, name)
    with pytest.raises(TypeError):
        1.5 in BloomView(data)
    with pytest.raises(TypeError):
        BloomView("text")
    with pytest.raises((ValueError, BufferError)):
        BloomView(memoryview(data + data)[::2])


def test_a_view_holds_its_buffer():
    f = empty()
    f.update(names(100))
    data = bytearray(f.to_bytes())
    view = BloomView(data)
    with pytest.raises(BufferError):
        data.append(0)
    assert view.contains_many(names(100)).all()
    del view
    data.append(0)
    view = BloomView(bytes(data[:-1]))  # the only reference to these bytes
    del data
    assert view.contains_many(names(100)).all()


def test_views_check_all_bytes_or_the_lanes_on_demand():
    f = empty()
    f.update(names(100))
    data = bytearray(f.to_bytes())
    data[3] ^= 1
    with pytest.raises(DecodeError, match="checksum is 0x[0-9a-f]{16}, stored 0x[0-9a-f]{16}"):
        BloomView(data)
    view = BloomView(data, verify=False)
    with pytest.raises(DecodeError, match="checksum is 0x[0-9a-f]{16}, stored 0x[0-9a-f]{16}"):
        view.verify()
    data[3] ^= 1
    view.verify()
    data[-20] ^= 1
    for verify in (True, False):
        with pytest.raises(DecodeError):
            BloomView(data, verify=verify)
        with pytest.raises(DecodeError):
            BloomView(data[:-1], verify=verify)
        with pytest.raises(DecodeError, match="there are 0, and at least 72 are needed"):
            BloomView(b"", verify=verify)


def test_counting():
    f = CountingBloomFilter(1_000)
    assert f.size_bytes >= 5 * 64 * f.n_blocks or f.size_bytes == 64 * f.n_blocks
    assert f.count("ant") == 0 and not f.remove("ant")
    f.update(["ant", "ant", "bee", 17, np.int8(17), b"\x11" + b"\0" * 7])
    assert (f.count("ant"), f.count("bee"), f.count("cat"), f.count(17)) == (2, 1, 0, 3)
    plain = f.to_filter()
    assert type(plain) is BloomFilter and plain == one_by_one(["ant", "bee", 17], BloomFilter(1_000))
    assert f.remove("ant") and "ant" in f and f.remove("ant") and "ant" not in f and not f.remove("ant")
    assert "bee" in f and "ant" in plain
    f.update(["cat"] * 20)
    assert f.count("cat") == 15
    for name in ("__or__", "__and__", "union", "fold"):
        assert not hasattr(f, name)
    left = CountingBloomFilter(1_000)
    left.update(names(500))
    left.update(names(300, "gone"))
    for key in names(300, "gone"):
        assert left.remove(key)
    again = CountingBloomFilter(1_000)
    again.update(names(500))
    assert left == again and left.to_filter() == again.to_filter()
    assert 0 < left.estimated_fpr() == left.to_filter().estimated_fpr()


def test_scalable():
    f = ScalableBloomFilter(100, 0.01)
    assert (f.fpr, f.inserted_keys, f.seed) == (0.01, 0, 0)
    size = f.size_bytes
    f.update(names(5_000))
    assert f.size_bytes > 10 * size and 4_900 < f.inserted_keys <= 5_000
    assert f.contains_many(names(5_000)).all() and f.estimated_fpr() < 0.01
    inserted = f.inserted_keys
    f.update(names(5_000))
    assert f.inserted_keys == inserted and not f.add("key 17")
    again = ScalableBloomFilter.from_bytes(f.to_bytes())
    assert again == f and (again.fpr, again.inserted_keys) == (f.fpr, f.inserted_keys)
    f.clear()
    assert f.size_bytes == size and f.inserted_keys == 0 and f == ScalableBloomFilter(100, 0.01)
    for name in ("with_bits_per_key", "k", "n_blocks", "__or__", "__and__"):
        assert not hasattr(f, name)


def test_standard():
    f = StandardBloomFilter(1_000, 0.01)
    assert 9 < f.size_bits / 1_000 < 10 and f.size_bytes == 64 * math.ceil(f.size_bits / 512) and f.k == 7
    f.update(names(1_000))
    estimate, error = f.estimated_keys()
    assert abs(estimate - 1_000) < 5 * error and 0.005 < f.estimated_fpr() < 0.02 and 0.4 < f.fill_ratio < 0.6
    lanes = make.standard([key.encode() for key in names(1_000)], f.size_bits, f.k, 0, None)
    assert without_count(f.to_bytes()) == without_count(lanes)
    for name in ("n_blocks", "fold"):
        assert not hasattr(f, name)


def test_modular():
    f = ModularBloomFilter(100_000, 0.0001, seed=5)
    assert (f.n_modules, f.k, f.n_blocks, f.fpr, f.expected_keys) == (3, 4, 1_284, 0.0001, 100_000)
    assert f.size_bytes == 64 * 3 * 1_284 < 0.9 * BloomFilter(100_000, 0.0001).size_bytes
    assert ModularBloomFilter(100_000, 0.0001, max_modules=2).n_modules == 2
    assert ModularBloomFilter.with_bits_per_key(100_000, 20, max_modules=2).n_modules == 2
    one = ModularBloomFilter(100_000, 0.0001, max_modules=1)
    assert (one.n_modules, one.n_blocks, one.k) == (1, BloomFilter(100_000, 0.0001).n_blocks, 12)

    small = ModularBloomFilter.with_bits_per_key(3_000, 20, seed=5)
    keys = names(3_000)
    small.update(keys)
    data = make.modular([key.encode() for key in keys], small.n_modules, small.n_blocks, small.k, 5, None)
    assert small.n_modules == 2 and without_count(small.to_bytes()) == without_count(data)

    f.update(range(100_000))
    estimate, error = f.estimated_keys()
    assert abs(estimate - 100_000) < 5 * error and error < 200 and 0.00008 < f.estimated_fpr() < 0.000105
    for n_modules in (3, 2, 1):
        first = f.truncated(n_modules)
        assert first.contains_many(np.arange(100_000)).all() and (first.n_modules, first.seed) == (n_modules, 5)
        assert (first.expected_keys, first.fpr) == (100_000, None) and f.fpr == 0.0001
        assert first.estimated_fpr() == pytest.approx(f.estimated_fpr() ** (n_modules / 3), rel=0.05)
        first.add(-1)
        assert -1 in first and -1 not in f
    with pytest.raises(TypeError, match="text looked up in a filter of integers"):
        f.truncated(1).contains_many(["ant"])
    folded = f.copy()
    folded.fold(4)
    assert folded.n_blocks == 321 and folded.contains_many(np.arange(100_000)).all() and folded != f
    for name in ("fill_ratio", "size_bits", "shrink_to_fpr", "__and__"):
        assert not hasattr(f, name)


def run_at_once(*jobs):
    """Runs functions in threads that start together; raises what they raised."""
    barrier, raised = threading.Barrier(len(jobs)), []

    def run(job):
        barrier.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "deadlock"
    if raised:
        raise raised[0]


@pytest.mark.parametrize("cls", ALL)
def test_no_key_is_lost_between_threads(cls):
    f, count, most = cls(100_000), 4, 20_000
    arrays = [np.arange(i * most, (i + 1) * most) for i in range(count)]

    def build(i):
        f.update(arrays[i])
        for key in names(300, i):
            f.add(key)
            assert key in f

    run_at_once(*(lambda i=i: build(i) for i in range(count)))
    everything = np.concatenate(arrays)
    assert f.contains_many(everything).all()
    assert all(f.contains_many(names(300, i)).all() for i in range(count))
    if cls is not ScalableBloomFilter:  # in which the order of keys decides in which of its filters they are
        g = cls(100_000)
        g.update(everything)
        for i in range(count):
            g.update(names(300, i))
        assert g == f


@pytest.mark.parametrize("cls", ALL)
def test_threads_may_do_anything_at_once(cls):
    """In a process of its own: where threads wait for a filter and for the interpreter crosswise, all of Python stops."""
    run_python("""
import copy, operator, pickle, sys, threading, time
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
    lambda: f == other,
]
if hasattr(f, "estimated_keys"):
    jobs += [f.estimated_keys, lambda: [f.k for _ in range(100)]]
if hasattr(f, "__ior__"):
    jobs += [lambda: operator.ior(f, other), lambda: operator.ior(other, f), lambda: f | other]
if hasattr(f, "__iand__"):
    jobs += [lambda: f & other]
if hasattr(f, "truncated"):
    jobs += [lambda: f.truncated(1)]
if hasattr(f, "remove"):
    jobs += [lambda: f.remove("never") and raised.append("removed"), lambda: [f.count(17) for _ in range(100)]]
raised, stop = [], time.monotonic() + 1.2

def repeat(job):
    try:
        # Once at least: a busy machine may start a thread late.
        job()
        while time.monotonic() < stop:
            job()
    except BaseException as error:
        raised.append(repr(error))

threads = [threading.Thread(target=repeat, args=(job,)) for job in jobs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not raised, raised
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
    f, folded = BloomFilter.with_bits_per_key(1 << 17, 32), []
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
    run_python("""
import operator, threading, time
import numpy as np
from bloomline import BloomFilter

f, keys = BloomFilter.with_bits_per_key(512 * 64, 12), np.arange(2_000)
f.update(keys)
g, size, raised, stop = f.copy(), f.n_blocks, [], time.monotonic() + 1

def fold():
    time.sleep(0.05)
    if f.n_blocks % 2 == 0:
        f.fold(2)

def unite():
    try:
        operator.ior(f, g)
    except ValueError as error:
        assert "cannot be combined" in str(error)

def check():
    assert f.contains_many(keys).all() and 17 in f

def repeat(job):
    try:
        # Once at least: a busy machine may start a thread late.
        job()
        while time.monotonic() < stop:
            job()
    except BaseException as error:
        raised.append(repr(error))

jobs = [fold, unite, check, check, lambda: f.add("key"), lambda: f.update(keys), lambda: BloomFilter.from_bytes(f.to_bytes()), lambda: f.n_blocks]
threads = [threading.Thread(target=repeat, args=(job,)) for job in jobs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not raised, raised
assert f.n_blocks < size and f.contains_many(keys).all() and "key" in f
""")


def test_opposite_unions_do_not_deadlock():
    """In a process of its own, because a deadlock that holds the interpreter's lock could not be interrupted."""
    run_python("""
import threading
from bloomline import BloomFilter, StandardBloomFilter
for cls in (BloomFilter, StandardBloomFilter):
    f, g = cls(100_000), cls(100_000)
    f.update(range(1000)), g.update(range(1000, 2000))
    def unite(a, b):
        for _ in range(1000):
            a |= b
            a &= b
            a |= a
            a == b, b == a, a | b, a & a
    threads = [threading.Thread(target=unite, args=pair) for pair in ((f, g), (g, f), (f, f))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    for h in (f, g):
        assert h.n_blocks if cls is BloomFilter else h.size_bits
    f |= g
    g |= f
    assert f == g
""")


@pytest.mark.parametrize("cls, call", [
    *((cls, call) for cls in ALL for call in ("update", "contains_many")), (BloomView, "contains_many"), (FilterBank, "replace"),
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


def test_control_c_ends_a_long_update():
    """The source of keys is Python code, in which the interpreter looks for signals."""
    done = python("""
import itertools, os, signal
from bloomline import BloomFilter
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
f = BloomFilter(1000)
def keys():
    yield from range(100_000)
    os.kill(os.getpid(), signal.SIGINT)
    yield from itertools.count()
try:
    f.update(keys())
except KeyboardInterrupt:
    assert 0 in f and 100 in f
    print("interrupted")
""")
    assert done.stdout == "interrupted\n", done


def test_filters_survive_a_fork():
    run_python("""
import os, sys, threading
from bloomline import BloomFilter
import numpy as np
f = BloomFilter(100_000)
f.update(np.arange(50_000))
child = os.fork()
if child == 0:
    f.update(np.arange(50_000, 60_000))
    os._exit(0 if f.contains_many(np.arange(60_000)).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not f.contains_many(np.arange(50_000, 60_000)).all()
""")
