"""The bits and bytes of the goldens, which an independent implementation of the format made."""

import numpy as np
import pyarrow as pa
import pytest

from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    FilterBank,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import GOLDEN, make

NUMBERS = [str(number) for number in range(1_000)]
ANIMALS = ["ant", "bee", "cat"]


def golden(name):
    return (GOLDEN / name).read_bytes()


NONE = []
# Not by inserts alone: lanes of short filters repeat, and keys that fill their counters leave some behind.
NOT_BY_INSERTS = ["standalone-short-2.bin", "standalone-short-9.bin", "counting-1-block.bin"]
FILTERS = [
    (BloomFilter, "standalone-empty.bin", {"n_blocks": 1, "k": 6, "seed": 0}, NONE),
    (BloomFilter, "standalone-100-blocks.bin", {"n_blocks": 100, "n_modules": 1, "k": 11, "seed": 0x5EED, "expected_keys": None}, NUMBERS),
    (BloomFilter, "standalone-short-2.bin", {}, ANIMALS),
    (BloomFilter, "standalone-short-9.bin", {}, NUMBERS[:50]),
    (BloomFilter, "standalone-2-modules.bin", {"n_modules": 2, "n_blocks": 2, "k": 3, "seed": 0}, ["boa", "bee"]),
    (BloomFilter, "standalone-3-modules.bin", {"n_modules": 3, "n_blocks": 21, "k": 6, "seed": 0x5EED}, NUMBERS[:500]),
    (BloomFilter, "standalone-16-modules.bin", {"n_modules": 16, "n_blocks": 32, "k": 16, "seed": 2**64 - 1}, ANIMALS),
    (CountingBloomFilter, "counting-empty.bin", {}, NONE),
    (CountingBloomFilter, "counting-1-block.bin", {}, ANIMALS),
    (CountingBloomFilter, "counting-10-blocks.bin", {"n_blocks": 10, "k": 12, "seed": 0x5EED},
     [n for i, n in enumerate(NUMBERS[:400]) if i % 3]),
    (StandardBloomFilter, "standard-empty.bin", {}, NONE),
    (StandardBloomFilter, "standard-1-bit.bin", {}, ["ant"]),
    (StandardBloomFilter, "standard-1024-bits.bin", {}, ANIMALS),
    (StandardBloomFilter, "standard-10007-bits.bin", {"size_bits": 10_007, "k": 7, "seed": 0x5EED}, NUMBERS),
    (ScalableBloomFilter, "scalable-empty.bin", {}, NONE),
    (ScalableBloomFilter, "scalable-1-filter.bin", {}, NUMBERS[:20]),
    (ScalableBloomFilter, "scalable-3-filters.bin", {"seed": 0x5EED}, NUMBERS),
]


@pytest.mark.parametrize("cls, name, facts, keys", FILTERS, ids=[name for _, name, *_ in FILTERS])
def test_filters(cls, name, facts, keys):
    data = golden(name)
    f = cls.from_bytes(data)
    assert {fact: getattr(f, fact) for fact in facts} == facts
    assert f.contains_many(keys).all() and f.to_bytes() == data
    again = f.copy()
    again.clear()
    assert not keys or again != f and not again.contains_many(keys).any()
    again.update(keys)
    assert again == f or name in NOT_BY_INSERTS
    if cls is BloomFilter:
        view = BloomView(data)
        view.verify()
        assert view.contains_many(keys).all() and view.to_filter() == f


def test_one_module_in_the_form_of_several():
    empty = golden("standalone-empty.bin")
    assert BloomFilter.from_bytes(golden("standalone-modules-empty.bin")).to_bytes() == empty


def test_keys_removed_from_a_golden():
    f = CountingBloomFilter.from_bytes(golden("counting-10-blocks.bin"))
    again = f.copy()
    again.update(NUMBERS[:400:3])
    assert all(again.remove(number) for number in NUMBERS[:400:3]) and again == f


def test_banks():
    boa = golden("bank-3-slots.bin")
    banks = [(boa, 1, 6, 0, [[], [b"boa"], [b"boa", b"bee"]])]
    for slots, *shape in make.BANKS:
        banks.append((golden(f"bank-{slots}-slots.bin"), *shape, [make.slot_keys(slot) for slot in range(slots)]))
    assert len(banks) == len(list(GOLDEN.glob("bank-*.bin")))
    for data, n_blocks, k, seed, keys in banks:
        bank = FilterBank.from_bytes(data)
        assert (len(bank), bank.n_blocks, bank.k, bank.seed) == (len(keys), n_blocks, k, seed)
        assert bank.to_bytes() == data
        probes = [b"boa", b"bee", *(f"{slot}-{i}" for slot in range(0, 600, 7) for i in range(6))]
        filters = [make.build(some, n_blocks, k, seed) for some in keys]
        hashes = [make.hash_key(probe if isinstance(probe, bytes) else probe.encode(), seed) for probe in probes]
        expected = [[make.is_in(lanes, n_blocks, k, hash) for lanes in filters] for hash in hashes]
        assert bank.find_many(probes).tolist() == expected
        assert [bank.find(probe).tolist() for probe in probes[:9]] == [
            [slot for slot, found in enumerate(row) if found] for row in expected[:9]
        ]
        for slot, some in list(enumerate(keys))[-70:]:
            assert bank.find_many(some)[:, slot].all()
        if keys:
            again = FilterBank([bank.get(slot) for slot in range(len(keys))])
            assert again.to_bytes() == data


def typed_keys():
    """The table of keys of other types: type, value, key, hash with seed 0, hash with seed 0x5eed."""
    lines = golden("keys.tsv").decode().splitlines()[1:]
    for line in lines:
        kind, value, key, *hashes = line.split("\t")
        if kind == "text":
            value = value.replace("\\0", "\0")
        elif kind == "binary":
            value = bytes.fromhex(value)
        else:
            value = int(value)
        yield kind, value, bytes.fromhex(key), [int(hash, 16) for hash in hashes]


TYPED = [row for row in typed_keys() if row[0] != "int"]
# Of more than 64 bits, which are no keys.
LARGE = [value for kind, value, *_ in typed_keys() if kind == "int"]


def probe(n_blocks, seed, hash):
    """A filter of `n_blocks` blocks and k = 11 with the bits of one hash, by the independent implementation."""
    block, lanes = make.block_of(hash, n_blocks), [0] * (8 * n_blocks)
    lanes[8 * block : 8 * block + 8] = make.mask(hash, 11)
    return BloomFilter.from_bytes(make.standalone(lanes, 11, seed, None))


def ways(kind, value):
    """All that this value may be to the package: single keys, and collections of one key."""
    yield [value]
    yield (key for key in [value])
    if kind == "text":
        yield [value.encode()]
        if not value.endswith("\0"):  # which are padding there
            yield np.array([value])
            yield np.array([value], f">U{len(value) + 3}")
    elif kind == "binary":
        if not value.endswith(b"\0"):
            yield np.array([value])
            yield np.array([value], f"S{len(value) + 3}")
    else:
        yield [getattr(np, kind)(value)]
        yield np.array([value], kind)
        yield np.array([value], np.dtype(kind).newbyteorder(">"))
    types = {
        "text": [pa.string(), pa.large_string(), pa.string_view()],
        "binary": [pa.binary(), pa.large_binary(), pa.binary_view()] + ([pa.binary(len(value))] if kind == "binary" and value else []),
    }.get(kind) or [getattr(pa, kind)()]
    for type in types:
        yield pa.array([value], type)
        yield pa.array([None, value], type).slice(1)
        yield pa.chunked_array([pa.array([value], type).dictionary_encode()] if not pa.types.is_binary_view(type) and not pa.types.is_string_view(type)
                               else [pa.array([value], type)])


def test_the_table_is_whole():
    kinds = {kind for kind, *_ in TYPED}
    assert kinds == {"text", "binary", *(sign + "int" + str(bits) for sign in ("", "u") for bits in (8, 16, 32, 64))}
    assert len(TYPED) >= 64 and len(LARGE) >= 6
    for value in LARGE:
        with pytest.raises(OverflowError, match="turn them into text"):
            BloomFilter(10).add(value)


@pytest.mark.parametrize("kind, value, key, hashes", TYPED, ids=lambda part: repr(part)[:24])
def test_keys_of_other_types(kind, value, key, hashes):
    for seed, hash in zip((0, 0x5EED), hashes):
        expected = probe(100, seed, hash)
        for keys in (*ways(kind, value), [key]):
            f = expected.copy()
            f.clear()
            f.update(keys)
            assert f == expected, keys
        for keys in (*ways(kind, value), [key]):
            assert all(expected.contains_many(keys).tolist()), keys
            view = BloomView(expected.to_bytes())
            assert all(view.contains_many(keys if not hasattr(keys, "send") else [value]).tolist())
        assert value in expected and expected.contains_many([value, "an absent key"]).tolist() == [True, False]
        f = expected.copy()
        f.clear()
        assert f.add(value) and f == expected


def test_the_golden_file_of_all_types():
    f = BloomFilter.from_bytes(golden("standalone-keys.bin"))
    values = [value for _, value, *_ in TYPED]
    assert f.contains_many(values).all()
    again = f.copy()
    again.clear()
    again.update(values)
    assert again == f and again.to_bytes() == golden("standalone-keys.bin")
