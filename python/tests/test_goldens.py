"""The bits and bytes of the goldens, which an independent implementation of the format made."""

import numpy as np
import pytest

from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    FilterBank,
    ModularBloomFilter,
    ScalableBloomFilter,
    StandardBloomFilter,
)
from support import GOLDEN, make, without_count

NUMBERS = [str(number) for number in range(1_000)]
ANIMALS = ["ant", "bee", "cat"]


def golden(name):
    return (GOLDEN / name).read_bytes()


def test_standalone_filters():
    data = golden("standalone-100-blocks.bin")
    f = BloomFilter.from_bytes(data)
    assert (f.n_blocks, f.k, f.seed, f.expected_keys) == (100, 11, 0x5EED, None)
    assert f.contains_many(NUMBERS).all() and f.to_bytes() == data
    again = f.copy()
    again.clear()
    assert again != f and again.fill_ratio == 0
    again.update(NUMBERS)
    assert again == f and again.to_bytes() == data
    view = BloomView(data)
    view.verify()
    assert view.contains_many(NUMBERS).all() and view.to_filter() == f

    g = BloomFilter.from_bytes(golden("standalone-empty.bin"))
    assert (g.n_blocks, g.k, g.seed) == (1, 6, 0) and not g.contains_many(NUMBERS).any()
    assert g.to_bytes() == golden("standalone-empty.bin")
    for name, keys in (("standalone-short-2.bin", ANIMALS), ("standalone-short-9.bin", NUMBERS[:50])):
        f = BloomFilter.from_bytes(golden(name))
        assert f.contains_many(keys).all() and f.to_bytes() == golden(name)
        assert BloomView(golden(name)).contains_many(keys).all()


def test_other_filters():
    for name, keys in (("counting-empty.bin", []), ("counting-1-block.bin", ANIMALS),
                       ("counting-10-blocks.bin", [n for i, n in enumerate(NUMBERS[:400]) if i % 3])):
        f = CountingBloomFilter.from_bytes(golden(name))
        assert f.contains_many(keys).all() and f.to_bytes() == golden(name)
    assert (f.n_blocks, f.k, f.seed) == (10, 12, 0x5EED)
    again = f.copy()
    again.clear()
    again.update(NUMBERS[:400])
    assert all(again.remove(number) for number in NUMBERS[:400:3])
    assert again == f and again.to_bytes() == golden(name)

    for name, keys in (("standard-empty.bin", []), ("standard-1-bit.bin", ["ant"]), ("standard-1024-bits.bin", ANIMALS),
                       ("standard-10007-bits.bin", NUMBERS)):
        f = StandardBloomFilter.from_bytes(golden(name))
        assert f.contains_many(keys).all() and f.to_bytes() == golden(name)
        again = f.copy()
        again.clear()
        again.update(keys)
        assert again == f
    assert (f.size_bits, f.k, f.seed) == (10_007, 7, 0x5EED)

    for name, shape, keys in (("modular-empty.bin", (1, 1, 6, 0), []), ("modular-2-modules.bin", (2, 1, 3, 0), ["boa", "bee"]),
                              ("modular-3-modules.bin", (3, 7, 6, 0x5EED), NUMBERS[:500]),
                              ("modular-16-modules.bin", (16, 2, 16, 2**64 - 1), ANIMALS)):
        f = ModularBloomFilter.from_bytes(golden(name))
        assert (f.n_modules, f.n_blocks, f.k, f.seed) == shape
        assert f.contains_many(keys).all() and f.to_bytes() == golden(name)
        again = f.copy()
        again.clear()
        again.update(keys)
        assert again == f
        for n_modules in range(1, f.n_modules + 1):
            first = make.modular([key.encode() for key in keys], n_modules, *shape[1:], None)
            assert without_count(f.truncated(n_modules).to_bytes()) == without_count(first)

    for name, made, keys in (
        ("scalable-empty.bin", ScalableBloomFilter(20), []), ("scalable-1-filter.bin", ScalableBloomFilter(20), NUMBERS[:20]),
        ("scalable-3-filters.bin", ScalableBloomFilter(150, seed=0x5EED), NUMBERS),
    ):
        f = ScalableBloomFilter.from_bytes(golden(name))
        made.update(keys)
        assert f == made and f.contains_many(keys).all()
        assert f.to_bytes() == made.to_bytes() == golden(name)


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
    try:
        import pyarrow as pa
    except ImportError:
        return
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
