"""Banks answer as their filters do, one by one; bytes, files, damage, threads."""

import doctest

import numpy as np
import pytest

from bloomline import BloomFilter, BloomView, DecodeError, FilterBank, StandardBloomFilter
from support import COPIES, buffers, hammer, linux, with_little_memory


def filled(slots, size=30, seed=0):
    """Slot s has the numbers from s to s + 9."""
    filters = [BloomFilter(size, seed=seed) for _ in range(slots)]
    for slot, f in enumerate(filters):
        f.update(range(slot, slot + 10))
    return filters


def rows(filters, keys):
    """The answers of the filters."""
    return np.array([f.contains_many(keys) for f in filters]).T.reshape(len(keys), len(filters))


def check(bank, filters, probes):
    """The bank has these filters and their answers."""
    expected = rows(filters, probes)
    found = bank.find_many(probes)
    assert found.dtype == np.bool_ and found.shape == expected.shape and (found == expected).all()
    packed = bank.find_many(probes, packed=True)
    bits = np.packbits(expected, axis=1, bitorder="little")
    assert packed.dtype == np.uint8 and packed.shape == bits.shape and (packed == bits).all()
    for key, row in zip(probes, expected):
        slots = bank.find(key)
        assert slots.dtype == np.intp and slots.tolist() == np.flatnonzero(row).tolist()
    assert len(bank) == len(filters)
    assert all(bank.get(slot) == f for slot, f in enumerate(filters))


def refused(uses, error, text, argument):
    for use in uses:
        with pytest.raises(error, match=text):
            use(argument)


def test_the_example_of_the_class():
    example = doctest.DocTestParser().get_doctest(FilterBank.__doc__, {}, "FilterBank", None, None)
    assert len(example.examples) == 7
    done = doctest.DocTestRunner().run(example)
    assert (done.attempted, done.failed) == (7, 0)


@pytest.mark.parametrize("slots", [1, 3, 8, 9, 64, 65, 70, 130])
def test_answers_are_those_of_the_filters(slots):
    filters = filled(slots, seed=2**64 - 1)
    filters[-1].clear()
    filters[-1].update([*range(5), "ant", b"bee", ""])
    bank = FilterBank(f if slot % 3 else BloomView(f.to_bytes()) for slot, f in enumerate(filters))
    assert (bank.k, bank.n_blocks, bank.seed) == (filters[0].k, filters[0].n_blocks, 2**64 - 1)
    check(bank, filters, [*range(slots + 20), "ant", b"bee", "cat"])
    check(FilterBank.from_bytes(bank.to_bytes()), filters, [*range(slots + 20), ""])


def test_a_bank_is_a_list_of_filters():
    filters = filled(8)
    bank = FilterBank(filters[:3])
    for slot in range(3, 8):
        assert bank.push(filters[slot]) == slot
    with pytest.raises(ValueError, match="^the bank has room for 8 slots, not 9: reserve more, or replace a filter$"):
        bank.push(filters[0])
    assert bank.reserve(9) is None and bank.capacity >= 17
    for changed in (bank.copy(), FilterBank.from_bytes(bank.to_bytes())):
        changed.replace(1, filters[2])
        changed.replace(2, BloomView(filters[1].to_bytes()))
        changed.clear(7)
        check(changed, [filters[0], filters[2], filters[1], *filters[3:7], BloomFilter(30)], range(30))
    check(bank, filters, range(30))


def test_larger_filters_are_folded():
    small, large, larger, odd, tiny = (BloomFilter.with_bits_per_key(8 * n, 64, most_modules=1) for n in (5, 10, 30, 7, 1))
    filters = [large, small, larger]
    for number, f in enumerate(filters):
        f.update(range(number, number + 20))
    bank = FilterBank([large, small])
    assert bank.push(BloomView(larger.to_bytes())) == 2
    assert (large.n_blocks, larger.n_blocks, bank.n_blocks) == (10, 30, 5), "the filters themselves stay"
    puts = [bank.push, lambda f: bank.replace(0, f), lambda f: FilterBank([small, odd, f])]
    for wrong in (odd, tiny):
        text = "^a filter of [17] blocks does not fit into a bank of 5: build it with as many, or a multiple$"
        refused(puts[:2] if wrong is tiny else puts, ValueError, text, wrong)
    large.fold(2), larger.fold(6)
    check(bank, filters, range(100))


def test_sizes_and_properties():
    filters = filled(70, seed=3)
    f = filters[0]
    for capacity, expected in ((None, 128), (0, 128), (5, 128), (np.int8(100), 128), (129, 192)):
        bank = FilterBank(filters, capacity)
        assert (len(bank), bank.capacity, bank.seed) == (70, expected, 3)
        assert bank.size_bytes == expected * (f.size_bytes + 8)
    assert repr(bank) == f"FilterBank(slots=70, capacity=192, n_blocks={f.n_blocks}, k={f.k}, seed=3)"
    for name in ("k", "n_blocks", "size_bytes", "seed", "capacity"):
        with pytest.raises(AttributeError):
            setattr(bank, name, 1)
    assert bank.get(3).expected_keys is None
    filters[3].add(10**6)
    assert 3 not in bank.find(10**6), "the bank has a copy"


def test_wrong_arguments_are_errors():
    filters = filled(9)
    bank = FilterBank(filters)
    puts = [bank.push, lambda f: bank.replace(0, f), lambda f: FilterBank([filters[0], f])]
    for wrong in (None, "text", 17, StandardBloomFilter(30), bank):
        text = f"^a bank is made of BloomFilter and BloomView objects, not {type(wrong).__name__}$"
        refused(puts, TypeError, text, wrong)
    refused(puts, ValueError, "seeds 0x", BloomFilter(30, seed=1))
    two = BloomFilter.with_bits_per_key(2 * 16, 32, most_modules=1)
    refused(puts, ValueError, r"^filters with k = \d+ and k = \d+ cannot be combined: build both ", two)
    text = r"^a bank's filters have one module, not 2: rebuild the filter by with_most_modules\(1\) or "
    refused(puts, ValueError, text, BloomFilter(1_000, 1e-4))
    refused([FilterBank], ValueError, "^a bank needs at least one filter, which gives it its size$", [])
    for slot in (9, -1, 2**63, 2**64, -(2**70)):
        gets = [bank.get, bank.clear, lambda slot: bank.replace(slot, filters[0])]
        refused(gets, IndexError, f"^slot {slot} does not exist: the bank has 9$", slot)
    rooms = [bank.reserve, lambda capacity: FilterBank(filters, capacity)]
    for wrong in (-1, 2**64):
        refused(rooms, ValueError, f"is needed, not {wrong}", wrong)
    for huge in (2**63, 2**64 - 1, 2**55, 2**24 + 1):
        refused(rooms, ValueError, "a bank has at most 16777216 slots", huge)
    for use in (iter, lambda bank: 5 in bank):  # it is no set of keys, and `in` would find no filter that equals one
        refused([use], TypeError, None, bank)
    for key in (None, 1.5, True, [1]):
        refused([bank.find], TypeError, None, key)
    refused([lambda packed: bank.find_many([1], packed)], TypeError, None, True)
    check(bank, filters, range(30))


def test_keys_of_any_collection():
    pa = pytest.importorskip("pyarrow")
    filters = filled(20)
    bank = FilterBank(filters)
    numbers = np.arange(20_000)
    expected = rows(filters, numbers)
    for keys in (numbers, numbers.astype(np.int16), numbers.astype(">u4"), numbers.tolist(), (int(n) for n in numbers),
                 pa.array(numbers), pa.chunked_array([numbers[:7], numbers[7:]])):  # fmt: skip
        assert (bank.find_many(keys) == expected).all()
    for keys in ([], np.array([], "U"), pa.array([], pa.string()), iter(())):
        assert bank.find_many(keys).shape == (0, 20) and bank.find_many(keys, packed=True).shape == (0, 3)
    finds = [bank.find_many, lambda keys: bank.find_many(keys, packed=True)]
    for keys in (pa.array([1, None, 3]), pa.chunked_array([pa.array([1]), pa.array([None, 2])])):
        refused(finds, TypeError, r"^keys\[1\] is null: drop the nulls", keys)
    refused(finds, TypeError, r"^keys\[10000\] is null", pa.array([*range(10_000), None]))
    # Missing values are one error, however they are given, as in the other calls.
    for keys in ([1, None], (1, None), np.array([1, None], object), np.ma.array([1, 2], mask=[0, 1])):
        refused([*finds, filters[0].contains_many, filters[0].update], TypeError, "drop (None|the masked values)", keys)


def test_answers_without_room_are_an_error_before_the_keys_are_read():
    """The limit has room for the hashes of the keys, but not for the answers: a terabyte, or packed an eighth of it."""
    pytest.importorskip("resource")
    grown = with_little_memory("""
import mmap
import numpy as np, pyarrow as pa
from bloomline import BloomFilter, FilterBank
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
bank = FilterBank([BloomFilter(10)] * 1_000)
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
n = 10**9
mapped = pa.Array.from_buffers(pa.int8(), n, [None, pa.py_buffer(mmap.mmap(-1, n))])
before = peak()
for keys in (np.broadcast_to(np.int64(1), n), mapped, pa.chunked_array([mapped]), range(n)):
    for packed, bytes in ((False, 1_000 * n), (True, 125 * n)):
        refused(lambda: bank.find_many(keys, packed=packed), f"cannot allocate {bytes} bytes for the answers")
print(peak() - before)
""", timeout=60)
    assert int(grown) < 50, grown


def test_an_iterable_may_change_the_bank_that_it_is_looked_up_in():
    filters = filled(7)
    bank = FilterBank(filters, 64)

    def numbers():
        for number in range(3_000):
            if number % 1_000 == 0:
                bank.push(filters[0])
            yield number

    found = bank.find_many(numbers())
    assert (found == rows(filters + filters[:1] * 3, range(3_000))).all()


# Bytes and files

def test_bytes_round_trip(tmp_path):
    filters = filled(20, seed=9)
    bank = FilterBank(filters, 100)
    data = bank.to_bytes()
    for buffer in buffers(data):
        read = FilterBank.from_bytes(buffer)
        assert read.to_bytes() == data and read.capacity == 32
        read.push(filters[0])
    for path in (tmp_path / "b", str(tmp_path / "b")):
        assert bank.save(path) is None
        assert (tmp_path / "b").read_bytes() == data
        check(FilterBank.open(path), filters, range(40))
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    for copy in COPIES:
        copied = copy(bank)
        assert copied.to_bytes() == data and type(copied) is FilterBank
        assert copied == bank and not copied != bank
        copied.clear(0)
        assert copied != bank and not copied == bank
    assert all(copy(bank).capacity == bank.capacity for copy in COPIES[:3]), "pickles have no room to spare"
    assert bank.to_bytes() == data
    refused([FilterBank.from_bytes], TypeError, None, "text")
    refused([hash], TypeError, "unhashable", bank)
    assert all(bank != other for other in (FilterBank(filters[1:]), filters[0], data, None))


def test_damage_of_a_view_gets_no_valid_checksum():
    filters = filled(3)
    damaged = bytearray(filters[0].to_bytes())
    damaged[0] ^= 1
    view = BloomView(damaged, verify=False)
    bank = FilterBank(filters)
    for use in (bank.push, lambda view: bank.replace(1, view), lambda view: FilterBank([filters[0], view])):
        with pytest.raises(DecodeError, match="damaged: their checksum"):
            use(view)
    check(bank, filters, range(30))


# Memory and threads

@linux
def test_memory_that_cannot_be_had_is_an_error(tmp_path):
    with_little_memory("""
import numpy as np
from bloomline import BloomFilter, FilterBank
bank = FilterBank([BloomFilter(10**7)] * 8)
wide = FilterBank([BloomFilter(1)] * 4_000)
data, keys, path = bank.to_bytes(), np.arange(10**7), sys.argv[1]
bank.save(path)
f = bank.get(0)
limit(8 << 20)
for use in (bank.copy, bank.to_bytes, lambda: FilterBank.from_bytes(data), lambda: FilterBank.open(path),
            lambda: bank.reserve(9), lambda: bank.get(0), lambda: FilterBank([f])):
    refused(use)
for use in (lambda: bank.find_many(keys), lambda: wide.find_many(keys[:100_000])):
    refused(use, "cannot allocate")
assert len(bank) == 8 and bank.find("ant").tolist() == []
""", tmp_path / "b")


def test_threads_may_do_anything_at_once(tmp_path):
    hammer("""
import pickle
import numpy as np
from bloomline import BloomFilter, FilterBank
filters, keys = [BloomFilter(1_000) for _ in range(5)], np.arange(1_000)
for f in filters: f.update(keys)
bank, path = FilterBank(filters, 64), sys.argv[1]
a, b, c = filters[:3]

def unite(a, b):
    for _ in range(50):
        a |= b
        b |= a

def push():
    slot = bank.push(filters[0])
    if slot > 60:
        bank.reserve(64)

run_at_once([
    lambda: unite(a, b), lambda: unite(b, a), lambda: unite(c, a),
    lambda: FilterBank(filters), lambda: FilterBank(reversed(filters)), lambda: FilterBank(filters + filters),
    lambda: filters[3].update(range(2_000, 2_100)),
    push, lambda: bank.replace(1, filters[1]), lambda: bank.clear(4),
    lambda: bank.find_many(keys)[:, :4].all() or raised.append("a key was lost"),
    lambda: [0 in bank.find(17) or raised.append("a key was lost") for _ in range(100)],
    lambda: pickle.loads(pickle.dumps(bank)).find_many(keys)[:, :4].all() or raised.append("a pickled key was lost"),
    lambda: bank.copy(), lambda: bank.save(path), lambda: bank.get(2),
    lambda: [(len(bank), bank.capacity, bank.size_bytes, repr(bank)) for _ in range(100)],
], 2)
assert FilterBank.open(path).find_many(keys)[:, :4].all()
""", tmp_path / "b")
