"""Generates the golden values of bloomline from the text of docs/format.md alone.

This script is written from docs/format.md (and, for XXH64, from Yann Collet's specification), in a different
language than the crate and without reading the crate or the wyhash crate. tests/goldens.rs compares the crate
with these values. Where the two disagree, docs/format.md decides which one is wrong.

    python3 tests/golden/make.py           writes the .bin and .tsv files beside it, but for sizes.tsv
    python3 tests/golden/make.py --check   writes nothing; exits 1 if a file differs from what would be written
    python3 tests/golden/make.py --worked  prints the worked examples of docs/format.md: of "Keys of other types", of
                                           section 6, of modules, and of sections 7, 8 and 12

Python 3, standard library only.
"""

import math
import pathlib
import struct
import sys
import typing

WORD = (1 << 64) - 1
VERSION, HASH_ID = 2, 2
S0, S1, S2, S3 = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3
SEED_MIXER = FIRST_MULTIPLIER = 0x9E3779B97F4A7C15
SECOND_MULTIPLIER = 0xD6E8FEB86659FD93
# Lengths about 2^16, which a writer may cut to 16 bits, and a megabyte.
LONG = [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 20]
CHECK_TEXT = b"The hash of every prefix of this text, each seeded by the last.." * 2


# Section 1: key bytes to 64 bits.

def little(data):
    return int.from_bytes(data, "little")


def mum(a, b):
    product = a * b
    return (product >> 64) ^ (product & WORD)


def wyhash(key, s):
    def r4(i):
        return little(key[i:i + 4])

    def r8(i):
        return little(key[i:i + 8])

    n = len(key)
    s ^= S0
    a = b = 0
    if 1 <= n <= 3:
        a = key[0] << 16 | key[n // 2] << 8 | key[n - 1]
    elif 4 <= n <= 16:
        m = 0 if n <= 7 else 4 if n <= 15 else 8
        a = r4(0) << 32 | r4(m)
        b = r4(n - 4) << 32 | r4(n - 4 - m)
    elif n > 16:
        i = 0
        if n > 48:
            t = u = s
            while n - i > 48:
                s = mum(r8(i) ^ S1, r8(i + 8) ^ s)
                t = mum(r8(i + 16) ^ S2, r8(i + 24) ^ t)
                u = mum(r8(i + 32) ^ S3, r8(i + 40) ^ u)
                i += 48
            s ^= t ^ u
        while n - i > 16:
            s = mum(r8(i) ^ S1, r8(i + 8) ^ s)
            i += 16
        a, b = r8(n - 16), r8(n - 8)
    return mum(S1 ^ n, mum(a ^ S1, b ^ s))


def mixed(seed):
    return wyhash(seed.to_bytes(8, "little"), SEED_MIXER)


def hash_key(key, seed=0):
    return wyhash(key, mixed(seed))


def check_value():
    h = mixed(0)
    for length in range(len(CHECK_TEXT) + 1):
        h = wyhash(CHECK_TEXT[:length], h)
    return h


# Keys of other types.

def key_of(value):
    if isinstance(value, int):
        return (value % 2 ** 64).to_bytes(8, "little")
    return value.encode() if isinstance(value, str) else value


# Section 2: hash to block and bits.

def block_of(hash_, n_blocks):
    return hash_ * n_blocks >> 64


def words(hash_):
    x = hash_ * FIRST_MULTIPLIER & WORD
    y = (x ^ x >> 32) * SECOND_MULTIPLIER & WORD
    return x, y


def probes(hash_, k):
    x, y = words(hash_)
    for j in range(k):
        lane = ((x >> 61) + j) % 8
        yield lane, (x if j < 8 else y) >> (13 + 6 * lane) & 63


def mask(hash_, k):
    lanes = [0] * 8
    for lane, bit in probes(hash_, k):
        lanes[lane] |= 1 << bit
    return lanes


# Section 3: modules, each a list of lanes.

def next_hash(h):
    for _ in range(2):
        h = (h ^ h >> 32) * 0xC4CEB9FE1A85EC53 & WORD
    return h


def empty(n_modules, n_blocks):
    return [[0] * (8 * n_blocks) for _ in range(n_modules)]


def lanes_and_bits(modules, k, h):
    for lanes in modules:
        block = block_of(h, len(lanes) // 8)
        for i, bits in enumerate(mask(h, k)):
            yield lanes, 8 * block + i, bits
        h = next_hash(h)


def insert(modules, k, h):
    for lanes, i, bits in lanes_and_bits(modules, k, h):
        lanes[i] |= bits


def is_in(lanes, n_blocks, k, hash_):
    block = block_of(hash_, n_blocks)
    return all(lanes[8 * block + i] & bits == bits for i, bits in enumerate(mask(hash_, k)))


def are_in(modules, k, h):
    return all(lanes[i] & bits == bits for lanes, i, bits in lanes_and_bits(modules, k, h))


def build_modules(keys, n_modules, n_blocks, k, seed):
    modules = empty(n_modules, n_blocks)
    for key in keys:
        insert(modules, k, hash_key(key, seed))
    return modules


def build(keys, n_blocks, k, seed=0):
    """The lanes of one module."""
    return build_modules(keys, 1, n_blocks, k, seed)[0]


def short_lane(n_lanes, block, i):
    """The lane of a short filter that is lane i of a block."""
    s = n_lanes & -n_lanes
    return (s * block + i) % n_lanes


def short_blocks(n_lanes):
    return n_lanes // (n_lanes & -n_lanes)


def build_short(keys, n_lanes, k, seed=0):
    lanes = [0] * n_lanes
    for key in keys:
        hash_ = hash_key(key, seed)
        block = block_of(hash_, short_blocks(n_lanes))
        for i, bits in enumerate(mask(hash_, k)):
            lanes[short_lane(n_lanes, block, i)] |= bits
    return lanes


def shortest(lanes):
    """The lanes to write: for whole blocks, the fewest lanes that represent them; otherwise the lanes unchanged."""
    if len(lanes) % 8:
        return lanes
    n_blocks = len(lanes) // 8
    for n_lanes in range(1, 64):
        if n_lanes % 8 == 0 or short_blocks(n_lanes) != n_blocks:
            continue
        short = {short_lane(n_lanes, at // 8, at % 8): bits for at, bits in enumerate(lanes)}
        if all(bits == short[short_lane(n_lanes, at // 8, at % 8)] for at, bits in enumerate(lanes)):
            return [short[lane] for lane in range(n_lanes)]
    return lanes


def whole_blocks(lanes):
    return b"".join(bits.to_bytes(8, "little") for bits in lanes)


def lane_bytes(lanes):
    return whole_blocks(shortest(lanes))


# Sections 4 and 5: bytes.

X1, X2, X3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
X4, X5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotated(word, n):
    return (word << n | word >> (64 - n)) & WORD


def xxh64_round(accumulator, word):
    return rotated((accumulator + word * X2) & WORD, 31) * X1 & WORD


def xxh64(data, seed=0):
    at = 0
    if len(data) < 32:
        h = seed + X5
    else:
        v = [(seed + X1 + X2) & WORD, (seed + X2) & WORD, seed, (seed - X1) & WORD]
        while at + 32 <= len(data):
            v = [xxh64_round(a, little(data[at + 8 * i:at + 8 * i + 8])) for i, a in enumerate(v)]
            at += 32
        h = sum(rotated(a, n) for a, n in zip(v, (1, 7, 12, 18)))
        for a in v:
            h = (h ^ xxh64_round(0, a)) * X1 + X4 & WORD
    h = h + len(data) & WORD
    while at + 8 <= len(data):
        h = rotated(h ^ xxh64_round(0, little(data[at:at + 8])), 27) * X1 + X4 & WORD
        at += 8
    if at + 4 <= len(data):
        h = rotated(h ^ little(data[at:at + 4]) * X1 & WORD, 23) * X2 + X3 & WORD
        at += 4
    for byte in data[at:]:
        h = rotated(h ^ byte * X5 & WORD, 11) * X1 & WORD
    h = (h ^ h >> 33) * X2 & WORD
    h = (h ^ h >> 29) * X3 & WORD
    return h ^ h >> 32


def compact(lanes, k):
    return lane_bytes(lanes) + bytes([2 << 4 | k - 1])


def compact_modules(keys, n_modules, n_blocks, k):
    bodies = [whole_blocks(lanes) for lanes in build_modules(keys, n_modules, n_blocks, k, 0)]
    return b"".join(bodies) + bytes([n_modules, 3 << 4 | k - 1])


def standalone(lanes, k, seed, keys):
    body = lane_bytes(lanes)
    fields = (len(body) // 8, WORD if keys is None else keys, seed, check_value(), xxh64(body))
    footer = b"".join(field.to_bytes(8, "little") for field in fields) + bytes([VERSION, k, HASH_ID, 0, 0, 0, 0, 0])
    return body + footer + xxh64(footer).to_bytes(8, "little") + b"\x89bloom\r\n"


def standalone_modules(keys, n_modules, n_blocks, k, seed, known_keys):
    bodies = [whole_blocks(lanes) for lanes in build_modules(keys, n_modules, n_blocks, k, seed)]
    checksums = b"".join(xxh64(body, j).to_bytes(8, "little") for j, body in enumerate(bodies))
    fields = (n_blocks, WORD if known_keys is None else known_keys, seed, check_value(), xxh64(checksums))
    footer = b"".join(field.to_bytes(8, "little") for field in fields)
    footer += bytes([VERSION, k, HASH_ID, n_modules, 0, 0, 0, 0])
    return b"".join(bodies) + checksums + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blmod\r\n"


# Section 7: standard filters.

def standard_probes(hash_, size_bits, k):
    h2 = hash_ * 0x6A09E667F3BCC908 & WORD
    for j in range(k):
        word = hash_ + j * h2 + (j ** 3 - j) // 6 * 0x9E3779B97F4A7C15 & WORD
        yield word * size_bits >> 64


def standard(keys, size_bits, k, seed, known_keys):
    lanes = [0] * ((size_bits + 63) // 64)
    for key in keys:
        for bit in standard_probes(hash_key(key, seed), size_bits, k):
            lanes[bit // 64] |= 1 << bit % 64
    body = b"".join(bits.to_bytes(8, "little") for bits in lanes)
    fields = (size_bits, WORD if known_keys is None else known_keys, seed, check_value(), xxh64(body))
    footer = b"".join(field.to_bytes(8, "little") for field in fields) + bytes([VERSION, k, HASH_ID, 0, 0, 0, 0, 0])
    return body + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blstd\r\n"


# Section 8: counting filters.

def counting(inserted, removed, n_blocks, k, seed, known_keys):
    counters = [0] * (512 * n_blocks)
    for keys, step in (inserted, 1), (removed, -1):
        for key in keys:
            hash_ = hash_key(key, seed)
            for lane, bit in set(probes(hash_, k)):
                at = 512 * block_of(hash_, n_blocks) + 64 * lane + bit
                if counters[at] < 15:
                    counters[at] += step
    body = bytes(low | high << 4 for low, high in zip(counters[::2], counters[1::2]))
    fields = (n_blocks, WORD if known_keys is None else known_keys, seed, check_value(), xxh64(body))
    footer = b"".join(field.to_bytes(8, "little") for field in fields) + bytes([VERSION, k, HASH_ID, 0, 0, 0, 0, 0])
    return body + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blcnt\r\n"


# Section 9: scalable filters.

def scalable(keys, initial_capacity, fpr, growth, tightening, k, seed, sizes, n_modules=1):
    """The writer chooses the number of modules, and `sizes`, the blocks of each module of each filter."""
    filters, counts, capacities = [empty(n_modules, sizes[0])], [0], [initial_capacity]
    for key in keys:
        hash_ = hash_key(key, seed)
        if any(are_in(modules, k, hash_) for modules in filters):
            continue
        if counts[-1] == capacities[-1]:
            filters.append(empty(n_modules, sizes[len(filters)]))
            counts.append(0)
            capacities.append(growth * capacities[-1])
        insert(filters[-1], k, hash_)
        counts[-1] += 1
    assert len(filters) == len(sizes)
    data = scalable_bytes(
        filters, counts, capacities, initial_capacity, fpr, fpr, growth, tightening, len(filters), k, seed)
    return data, filters, sum(counts)


def scalable_union(parts, initial_capacity, fpr, fpr_of_all, growth, tightening, next_, k, seed):
    """Each part is a filter's keys, all of which are new, its number of blocks and its capacity."""
    filters = [[build(keys, n_blocks, k, seed)] for keys, n_blocks, _ in parts]
    counts, capacities = [len(keys) for keys, _, _ in parts], [capacity for _, _, capacity in parts]
    return scalable_bytes(filters, counts, capacities, initial_capacity, fpr, fpr_of_all, growth, tightening, next_, k, seed)


def scalable_bytes(filters, counts, capacities, initial_capacity, fpr, fpr_of_all, growth, tightening, next_, k, seed):
    in_order = [modules[j] for j in range(len(filters[0])) for modules in filters]
    body = b"".join(standalone(lanes, k, seed, None if any(lanes) else 0) for lanes in in_order)
    rows = b"".join(struct.pack("<QQ", *row) for row in zip(counts, capacities))
    further = len(filters[0]) - 1
    fields = (len(filters), fpr_of_all, initial_capacity, fpr, tightening, VERSION, growth, next_, further)
    footer = struct.pack("<QdQddBBBB4x", *fields)
    return body + rows + xxh64(rows).to_bytes(8, "little") + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blscl\r\n"


# Section 10: frontiers.

def frontier(queue, filter_, accepted, planned):
    items = b"".join(len(item).to_bytes(8, "little") + item for item in queue)
    fields = (len(queue), len(items), accepted, planned, xxh64(items + filter_))
    footer = b"".join(field.to_bytes(8, "little") for field in fields) + bytes([VERSION, 0, 0, 0, 0, 0, 0, 0])
    return items + filter_ + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blsiv\r\n"


# Section 12: banks.

def row_bytes(slots):
    return 1 if slots <= 8 else 2 if slots <= 16 else 4 if slots <= 32 else 8 * ((slots + 63) // 64)


def region_rows(filters, block):
    rows = b""
    if filters:
        for row in range(512):
            bits = sum((lanes[8 * block + row // 64] >> row % 64 & 1) << slot for slot, lanes in enumerate(filters))
            rows += bits.to_bytes(row_bytes(len(filters)), "little")
    return rows


def bank(filters, n_blocks, k, seed, known_keys):
    """`filters` are the lanes of each slot's filter, in whole blocks; `known_keys` has None for an unknown number."""
    known = b"".join((WORD if keys is None else keys).to_bytes(8, "little") for keys in known_keys)
    rows = [region_rows(filters, block) for block in range(n_blocks)]
    hashes_ = [xxh64(rows_, block) for block, rows_ in enumerate(rows)]
    fields = (n_blocks, len(filters), seed, check_value(), xxh64(known, sum(hashes_) & WORD))
    footer = b"".join(field.to_bytes(8, "little") for field in fields) + bytes([VERSION, k, HASH_ID, 0, 0, 0, 0, 0])
    regions = b"".join(rows_ + (hash_ + xxh64(footer) & WORD).to_bytes(8, "little") + bytes(56)
                       for rows_, hash_ in zip(rows, hashes_))
    return regions + known + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blbnk\r\n"


def is_set(bank_, slots, block, row, slot):
    """The bit of a slot in a bank's bytes, found without reading the other rows and slots."""
    at = block * (512 * row_bytes(slots) + 64) + row * row_bytes(slots) + slot // 8
    return bank_[at] >> slot % 8 & 1


# Section 13: indexes over files.

class Indexed(typing.NamedTuple):
    """A file of an index. The writer chooses its bank."""
    name: bytes
    size: int
    modified: int
    changed: int
    inode: int
    known_keys: object
    keys: list
    n_blocks: int = 0
    bank: int = 0
    is_read: bool = True

    def lanes(self, k, seed):
        return build(self.keys, self.n_blocks, k, seed) if self.is_read else [WORD] * 8


UNKNOWN_TIME = -(1 << 63)


def slots_of(n_blocks, bank_blocks):
    return n_blocks // math.gcd(n_blocks, bank_blocks)


def dealt(lanes, n_blocks, bank_blocks):
    """The lanes of each slot of a filter."""
    slots = slots_of(n_blocks, bank_blocks)
    of_slots, all_blocks = [[] for _ in range(slots)], slots * bank_blocks
    for b in range(all_blocks):
        block = b // (all_blocks // n_blocks)
        of_slots[b % slots] += lanes[8 * block:8 * block + 8]
    return of_slots


def index_parts(files, bank_sizes, k, seed, rule):
    """The banks, and the parts behind them, in the order of section 13."""
    files = sorted(files)
    filters = [[] for _ in bank_sizes]
    for file in files:
        if file.n_blocks:
            filters[file.bank] += dealt(file.lanes(k, seed), file.n_blocks, bank_sizes[file.bank])
    banks = [bank(some, n_blocks, k, seed, [None] * len(some)) for some, n_blocks in zip(filters, bank_sizes)]
    stored = b"".join(struct.pack("<QqqQQ", file.size, file.modified, file.changed, file.inode,
                                  WORD if file.known_keys is None else file.known_keys) for file in files)
    entries, suffixes, before = [], [], b""
    for file in files:
        shared = next((i for i, (a, b) in enumerate(zip(before, file.name)) if a != b), min(len(before), len(file.name)))
        # The writer's choice, and the largest for which 8 times the suffix is as long.
        shared = min(shared, 255, len(file.name) * 8 // 9)
        entries.append(struct.pack("<BBHI", shared, file.bank, len(file.name) - shared, file.n_blocks))
        suffixes.append(file.name[shared:])
        before = file.name
    footers = [bank_[-64:] for bank_ in banks]
    return [bank_[:-64] for bank_ in banks], stored, footers, rule.encode(), entries, suffixes


FILE_BYTES, LAYOUT = 40, 1


def index_bytes(banks, stored, footers, rule, entries, suffixes, fpr):
    end = b"".join(footers) + rule + b"".join(entries) + b"".join(suffixes)
    numbers = (len(stored) // FILE_BYTES, len(end), xxh64(stored), fpr, xxh64(end))
    footer = struct.pack("<QQQdQBBHB3x", *numbers, VERSION, len(footers), len(rule), LAYOUT)
    return b"".join(banks) + stored + end + footer + xxh64(footer).to_bytes(8, "little") + b"\x89blidx\r\n"


# The files.

ANIMALS = [b"ant", b"bee", b"cat"]
NUMBERS = [str(number).encode() for number in range(1000)]
# Not in any file, but possibly present in some.
ABSENT = [str(number).encode() for number in range(1000, 2000)]
# A type and a value of it; "int" is an integer beyond 64 bits, which readers refuse: when the files were made, it was a key.
TYPED = [
    *[("text", text) for text in (
        "", "boa", "42", "-1", " 42", "caf\u00e9", "cafe\u0301", "\ufeffboa", "\u65e5\u672c\u8a9e", "\U0001f40d",
        "a\0b", "\0", "the longest text of these, of more than forty-eight bytes",
    )],
    *[("binary", data) for data in (
        b"", b"boa", b"\0", b"\x80", b"\xff\xfe\x00\xc3", bytes(range(240, 256)), (42).to_bytes(8, "little"),
    )],
    *[(f"int{bits}", value) for bits in (8, 16, 32, 64) for value in (
        0, 1, -1, 42, -42, 2 ** (bits - 1) - 1, -2 ** (bits - 1),
    )],
    *[(f"uint{bits}", value) for bits in (8, 16, 32, 64) for value in (0, 42, 2 ** (bits - 1), 2 ** bits - 1)],
    *[("int", value) for value in (2 ** 64, 2 ** 64 + 42, -2 ** 63 - 1, -2 ** 64 - 1, 2 ** 127 - 1, -2 ** 127)],
]
# (slots, n_blocks, k, seed) of the banks whose slots have the keys of `slot_keys` and the number of `slot_known_keys`.
BANKS = [
    (0, 3, 6, 0), (9, 2, 1, 0), (17, 1, 8, 0x5EED), (33, 3, 9, 0), (100, 2, 16, 0), (512, 1, 6, 0x5EED), (513, 2, 7, 0),
    (600, 1, 12, WORD),
]
# For the worked examples: its probes wrap around from lane 7 to lane 0, and it shares a bit with "bee".
WORKED = b"boa"


def slot_keys(slot):
    return [f"{slot}-{i}".encode() for i in range(slot % 7)]


def slot_known_keys(slot):
    # Unknown for filters with keys only: a writer knows that an empty filter has none.
    return None if slot % 7 == 4 else slot % 7


class File(typing.NamedTuple):
    """A golden file, and what a reader must find in it."""
    kind: str
    data: bytes
    keys: list  # for a bank, a list for each slot; for a frontier, those taken out and those that wait
    is_in: typing.Callable  # for a bank, in how many slots
    n_modules: int
    size: int
    k: int
    seed: int
    known_keys: object
    inserts: str = "yes"
    rewritten: str = ""
    rate: str = ""
    capacity: str = ""


def lookup(filters, k, seed):
    """`filters` are the modules of each."""
    return lambda key: any(are_in(modules, k, hash_key(key, seed)) for modules in filters)


def whole(lanes, n_blocks):
    """The whole blocks of a short filter."""
    return [lanes[short_lane(len(lanes), block, i)] for block in range(n_blocks) for i in range(8)]


def compact_file(keys, n_blocks, k, n_modules=1):
    modules = build_modules(keys, n_modules, n_blocks, k, 0)
    data = compact(modules[0], k) if n_modules == 1 else compact_modules(keys, n_modules, n_blocks, k)
    return File("compact", data, keys, lookup([modules], k, 0), n_modules, n_modules * n_blocks, k, 0, None)


def compact_short_file(keys, n_lanes, k):
    lanes, n_blocks = build_short(keys, n_lanes, k), short_blocks(n_lanes)
    is_in = lookup([[whole(lanes, n_blocks)]], k, 0)
    return File("compact", compact(lanes, k), keys, is_in, 1, n_blocks, k, 0, None, "no")


def standalone_file(keys, n_blocks, k, seed, known_keys):
    lanes = build(keys, n_blocks, k, seed)
    data = standalone(lanes, k, seed, known_keys)
    return File("standalone", data, keys, lookup([[lanes]], k, seed), 1, n_blocks, k, seed, known_keys)


def standalone_short_file(keys, n_lanes, k, seed, known_keys):
    lanes, n_blocks = build_short(keys, n_lanes, k, seed), short_blocks(n_lanes)
    is_in, data = lookup([[whole(lanes, n_blocks)]], k, seed), standalone(lanes, k, seed, known_keys)
    return File("standalone", data, keys, is_in, 1, n_blocks, k, seed, known_keys, "no")


def modules_file(keys, n_modules, n_blocks, k, seed, known_keys):
    is_in = lookup([build_modules(keys, n_modules, n_blocks, k, seed)], k, seed)
    data = standalone_modules(keys, n_modules, n_blocks, k, seed, known_keys)
    return File("standalone", data, keys, is_in, n_modules, n_modules * n_blocks, k, seed, known_keys)


def standard_file(keys, size_bits, k, seed, known_keys):
    data = standard(keys, size_bits, k, seed, known_keys)
    is_in = lambda key: all(data[bit // 8] >> bit % 8 & 1 for bit in standard_probes(hash_key(key, seed), size_bits, k))
    return File("standard", data, keys, is_in, 1, size_bits, k, seed, known_keys)


def counting_file(inserted, removed, left, n_blocks, k, seed, known_keys):
    data = counting(inserted, removed, n_blocks, k, seed, known_keys)

    def is_in(key):
        hash_ = hash_key(key, seed)
        places = [512 * block_of(hash_, n_blocks) + 64 * lane + bit for lane, bit in probes(hash_, k)]
        return all(data[at // 2] >> at % 2 * 4 & 15 for at in places)
    return File("counting", data, left, is_in, 1, n_blocks, k, seed, known_keys)


def scalable_file(keys, initial_capacity, fpr, k, seed, sizes, n_modules=1):
    data, filters, inserted = scalable(keys, initial_capacity, fpr, 2, 0.85, k, seed, sizes, n_modules)
    # New filters of these rates have one module.
    return File("scalable", data, keys, lookup(filters, k, seed), n_modules, n_modules * sum(sizes), k, seed, inserted,
                "yes" if n_modules == 1 else "no", rate=str(fpr), capacity=str(initial_capacity))


def bank_file(keys, n_blocks, k, seed, known_keys):
    filters = [build(some, n_blocks, k, seed) for some in keys]
    data = bank(filters, n_blocks, k, seed, known_keys)

    def slots_with(key):
        hash_ = hash_key(key, seed)
        rows = [64 * lane + bit for lane, bit in probes(hash_, k)]
        width = row_bytes(len(filters))
        at = block_of(hash_, n_blocks) * (512 * width + 64)
        slots = (1 << len(filters)) - 1
        for row in rows:
            slots &= little(data[at + row * width:][:width])
        return slots.bit_count()
    return File("bank", data, keys, slots_with, 1, n_blocks, k, seed, known_keys)


def ruled_bank(slots, n_blocks, k, seed):
    known_keys = [slot_known_keys(slot) for slot in range(slots)]
    return bank_file([slot_keys(slot) for slot in range(slots)], n_blocks, k, seed, known_keys)


def worked_bank_file():
    return bank_file([[], [WORKED], [WORKED, ANIMALS[1]]], 1, 6, 0, [0, 1, 2])


def index_file(files, bank_sizes, k, seed, fpr, rule="", inserts="no"):
    """`inserts` is "yes" if bloomline chooses the same banks."""
    files = sorted(files)
    filters = [file.lanes(k, seed) if file.n_blocks else None for file in files]
    data = index_bytes(*index_parts(files, bank_sizes, k, seed, rule), fpr)
    for file, lanes in zip(files, filters):
        for key in (*file.keys, *ABSENT[:50]) if lanes else ():
            hash_, slots = hash_key(key, seed), slots_of(file.n_blocks, bank_sizes[file.bank])
            slot = (hash_ * slots * bank_sizes[file.bank] >> 64) % slots
            lanes_of_slot = dealt(lanes, file.n_blocks, bank_sizes[file.bank])[slot]
            is_found = is_in(lanes_of_slot, bank_sizes[file.bank], k, hash_)
            assert is_found == is_in(lanes, file.n_blocks, k, hash_) and (is_found or key not in file.keys)

    def files_with(key):
        return sum(lanes is not None and is_in(lanes, len(lanes) // 8, k, hash_key(key, seed)) for lanes in filters)
    return File("index", data, [file.keys for file in files], files_with, 1, len(bank_sizes), k, seed,
                [file.known_keys for file in files], inserts, rate=str(fpr))


ONE = [Indexed(b"empty.log", 0, 0, UNKNOWN_TIME, 0, 0, [])]
# Of several slots, of repeated blocks, and without keys; names that share much, too much to share all, and not text.
SIX = [
    Indexed(b"", 0, 0, 0, 0, None, ANIMALS, 1, 2),
    Indexed(b"logs/2026-11-26/app.log", 123_456, 1_795_651_200_123_456_789, 1_795_651_200_123_456_790, 1_234_567, 60,
            NUMBERS[:60], 5, 0),
    Indexed(b"logs/2026-11-26/app.log.1", (1 << 64) - 1, UNKNOWN_TIME, -1, WORD, None, NUMBERS[60:100], 3, 1),
    Indexed(b"logs/2026-11-27/app.log", 1, -1, (1 << 63) - 1, 1, None, NUMBERS[:90], 6, 2),
    Indexed(b"logs/2026-11-27/\xff\x80.log", 0, 1, UNKNOWN_TIME, 1 << 63, 0, []),
    Indexed(b"\xe9", 2, (1 << 63) - 1, UNKNOWN_TIME, 0, None, NUMBERS[:20], 2, 1),
]
# (n_blocks, bank) of every sixth file, in the banks of 4 and of 1 blocks that bloomline chooses.
SIZES = [(1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (16, 0)]
MANY = [
    Indexed(f"{'shared/' * (i % 5)}{i}".encode(), 1000 * i, -i, i, 20 - i, i if i % 2 else None,
            [f"{i}-{j}".encode() for j in range(4 * SIZES[i % 6][0])], *SIZES[i % 6])
    for i in range(20)
] + [
    # A folder, and a file that could not be read.
    Indexed(b"shared/", 0, UNKNOWN_TIME, UNKNOWN_TIME, 0, 0, []),
    Indexed(b"unread", 50, UNKNOWN_TIME, 1, 2, None, [b"any", b"key"], 1, 1, False),
]


def golden_files():
    in_frontier = standalone_file(ANIMALS, 2, 7, 0x5EED, None)
    thirds = [number for i, number in enumerate(NUMBERS[:400]) if i % 3]
    scalable_parts = [(NUMBERS[:20], 1, 20), (NUMBERS[20:27], 1, 20)]
    united = [[build(keys, n_blocks, 10)] for keys, n_blocks, _ in scalable_parts]
    return {
        "compact-1-block.bin": compact_file(ANIMALS, 1, 6),
        "compact-100-blocks.bin": compact_file(NUMBERS, 100, 11),
        **{f"compact-short-{n}.bin": compact_short_file(ANIMALS, n, 6) for n in (1, 2, 4)},
        **{f"compact-short-{n}.bin": compact_short_file(NUMBERS[:6 * n], n, 7) for n in (3, 5, 6, 7, 12, 37, 63)},
        "compact-2-modules.bin": compact_file(NUMBERS, 20, 7, 2),
        "compact-empty.bin": compact_file([], 1, 6),
        "standalone-empty.bin": standalone_file([], 1, 6, 0, 0),
        "standalone-100-blocks.bin": standalone_file(NUMBERS, 100, 11, 0x5EED, None),
        "standalone-short-2.bin": standalone_short_file(ANIMALS, 2, 6, 0, 3),
        "standalone-short-9.bin": standalone_short_file(NUMBERS[:50], 9, 11, 0x5EED, 50),
        "standalone-keys.bin": standalone_file([key_of(value) for _, value in TYPED], 2, 6, 0, None),
        # One module in the form of several, which readers accept and writers no longer use.
        "standalone-modules-empty.bin": modules_file([], 1, 1, 6, 0, 0)._replace(rewritten="standalone-empty.bin"),
        "standalone-2-modules.bin": modules_file([WORKED, ANIMALS[1]], 2, 1, 3, 0, 2),
        "standalone-3-modules.bin": modules_file(NUMBERS[:500], 3, 7, 6, 0x5EED, None),
        "standalone-16-modules.bin": modules_file(ANIMALS, 16, 2, 16, WORD, 3),
        "standard-1-bit.bin": standard_file(ANIMALS[:1], 1, 1, 0, 1),
        "standard-empty.bin": standard_file([], 1000, 7, 0, 0),
        "standard-10007-bits.bin": standard_file(NUMBERS, 10007, 7, 0x5EED, None),
        "standard-1024-bits.bin": standard_file(ANIMALS, 1024, 64, 0, 3),
        "counting-empty.bin": counting_file([], [], [], 1, 6, 0, 0),
        "counting-1-block.bin": counting_file(
            ANIMALS[:1] * 17 + ANIMALS[1:] * 14, ANIMALS * 13, ANIMALS, 1, 6, 0, None)._replace(inserts="no"),
        "counting-10-blocks.bin": counting_file(NUMBERS[:400], NUMBERS[:400:3], thirds, 10, 12, 0x5EED, None),
        "scalable-empty.bin": scalable_file([], 20, 0.01, 10, 0, [1]),
        "scalable-1-filter.bin": scalable_file(NUMBERS[:20], 20, 0.01, 10, 0, [1]),
        "scalable-3-filters.bin": scalable_file(NUMBERS, 150, 0.01, 10, 0x5EED, [5, 9, 19]),
        "scalable-modules.bin": scalable_file(NUMBERS, 150, 0.001, 6, 0x5EED, [3, 6, 12], n_modules=2),
        "scalable-union.bin": File(
            "scalable", scalable_union(scalable_parts, 20, 0.01, 0.02, 2, 0.85, 1, 10, 0), NUMBERS[:27],
            lookup(united, 10, 0), 1, 2, 10, 0, 27, "no", rate="0.01", capacity="20"),
        "frontier.bin": File(
            "frontier", frontier(ANIMALS[1:], in_frontier.data, 3, 100), [ANIMALS[:1], ANIMALS[1:]], in_frontier.is_in,
            1, 2, 7, 0x5EED, 3, "no", capacity="100"),
        "bank-3-slots.bin": worked_bank_file(),
        **{f"bank-{slots}-slots.bin": ruled_bank(slots, *rest) for slots, *rest in BANKS},
        "index-0-files.bin": index_file([], [1], 6, 0, 0.01, inserts="yes"),
        "index-1-file.bin": index_file(ONE, [1], 6, 0, 0.01, inserts="yes"),
        "index-6-files.bin": index_file(SIX, [1, 2, 4], 7, 0x5EED, 1e-3, "lines"),
        "index-22-files-1-unread.bin": index_file(MANY, [4, 1], 6, 0, 0.01, "w\u00f6rter", "yes"),
    }


def in_words(keys):
    """The texts, or `0..n` for the first n numbers."""
    return f"0..{len(keys)}" if len(keys) > 3 and keys == NUMBERS[:len(keys)] else b" ".join(keys).decode()


def files_table(files):
    def keys_of(name, file):
        # Not all of these keys are text.
        if name == "standalone-keys.bin":
            return "keys.tsv"
        return "|".join(map(in_words, file.keys)) if file.kind in ("bank", "frontier", "index") else in_words(file.keys)

    def shown(known_keys):
        return " ".join(map(shown, known_keys)) if isinstance(known_keys, list) else \
            "unknown" if known_keys is None else str(known_keys)
    rows = ([name, file.kind, str(file.n_modules), str(file.size), str(file.k), f"{file.seed:x}", shown(file.known_keys),
             keys_of(name, file), str(sum(file.is_in(key) for key in ABSENT)), file.inserts, file.rewritten or name,
             file.rate, file.capacity] for name, file in files.items())
    return table(["file", "kind", "modules", "size", "k", "seed", "known keys", "keys", "found", "inserts", "rewritten",
                  "rate", "capacity"], *rows)


def indexes_table():
    """What indexes store of each file, in the order of their numbers."""
    rows = [[name, rule, file.name.hex(), *map(str, (file.size, file.modified, file.changed, file.inode)),
             str(file.n_blocks) if file.is_read else "unread"]
            for name, rule, files in (("index-1-file.bin", "", ONE),
                                      ("index-6-files.bin", "lines", SIX),
                                      ("index-22-files-1-unread.bin", "w\u00f6rter", MANY)) for file in sorted(files)]
    return table(["file", "rule", "name", "size", "modified", "changed", "inode", "blocks"], *rows)


# Damaged files: what a reader must say, by the names and in words of the texts of src/error.rs.

FOOTER = 64
NAMES = {"standalone": "blocked filter", "standard": "standard filter", "counting": "counting filter",
         "scalable": "scalable filter", "frontier": "frontier", "bank": "filter bank", "index": "file index"}
# How errors name a size, where all languages name it alike.
UNITS = {"standalone-short-9.bin": "lanes of 8 bytes", "standard-1024-bits.bin": "bits",
         "counting-1-block.bin": "blocks of 256 counter bytes", "bank-3-slots.bin": "blocks of a bank"}
REPRESENTATIVES = ["standalone-short-9.bin", "standalone-2-modules.bin", "standard-1024-bits.bin",
                   "counting-1-block.bin", "scalable-1-filter.bin", "frontier.bin", "bank-3-slots.bin",
                   "index-6-files.bin"]


def word(number):
    return (number % 2 ** 64).to_bytes(8, "little")


def put(data, at, new):
    """`data` with `new` at an offset, which counts from the end if it is negative."""
    at %= len(data)
    return data[:at] + new + data[at + len(new):]


def flipped(data, at):
    at %= len(data)
    return put(data, at, bytes([data[at] ^ 0x10]))


def forged(data, at, new):
    """`data` with `new` at an offset in the footer, whose checksum is made to match."""
    data = put(data, at - FOOTER, new)
    return put(data, -16, word(xxh64(data[-FOOTER:-16])))


def with_body(data, body, checksum=None):
    """Another body before the same footer, whose checksums are made to match."""
    return forged(body + data[-FOOTER:], 32, word(xxh64(body) if checksum is None else checksum))


def damaged_anywhere(name, data):
    """What every reader of standalone bytes must refuse: the case, the bytes, words of the text, and an error if it is
    not "Damaged"."""
    yield "no bytes", b"", "there are 0, and", "Unrecognized"
    yield "less than a footer", data[-63:], "there are 63, and", "Unrecognized"
    yield "other bytes", bytes(200), "they end in 0x0000000000000000", "Unrecognized"
    yield "the first half", data[:len(data) // 2], "", "Unrecognized"
    wrong_size = "lanes of 8 bytes does not match the" if name.startswith("standalone") else ""
    yield "the first byte is missing", data[1:], wrong_size
    yield "the last byte is missing", data[:-1], "they end in 0x", "Unrecognized"
    # The oldest filter of a scalable one is read last.
    left_over = "Unrecognized" if name.startswith("scalable") else "Damaged"
    yield "a byte more at the start", b"\0" + data, "", left_over
    yield "a byte more at the end", data + b"\0", "they end in 0x", "Unrecognized"
    yield "twice", data * 2, "", left_over
    yield "a bit of the body flipped", flipped(data, 0)
    for at in (0, 8, 16, 24, 32, 41, 42, 43, 47, 48, 55):
        says = "the footer is damaged: its checksum is 0x"
        yield f"a bit of footer byte {at} flipped", flipped(data, at - FOOTER), says
    yield "a bit of the magic flipped", flipped(data, -6), "they end in 0x", "Unrecognized"
    for version in (0, 1, 3, 255):
        yield f"version {version}", forged(data, 40, bytes([version])), f"of version {version},", "Unsupported"
    yield "version 3 with its checksum elsewhere", put(data, 40 - FOOTER, b"\3"), "of version 3,", "Unsupported"
    yield "a reserved byte set", forged(data, 47, b"\1"), "cannot be "
    # Also sizes that are right if their product wraps around.
    large, right = [1 << shift for shift in (29, 31, 32, 58, 60, 61, 63)], little(data[-FOOTER:][:8])
    for size in (0, 10, 1 << 40, *large, *(right + size for size in large), (1 << 63) - 1, WORD - 7, WORD):
        says = f"size of {size} {UNITS[name]} does not match the {len(data) - FOOTER} bytes" if name in UNITS else ""
        yield f"a size of {size}", forged(data, 0, word(size)), says
    if not name.startswith(("scalable", "frontier", "index")):
        most = 64 if name.startswith("standard") else 16
        for k in (0, most + 1, 255):
            yield f"k of {k}", forged(data, 41, bytes([k])), f"the footer's k cannot be {k}"
        yield "a hash id of 3", forged(data, 42, b"\3"), "the footer's hash id cannot be 3"
        yield "another hash", forged(data, 24, word(1)), "another hash function placed the keys", "Unsupported"
        yield "another checksum of the body", forged(data, 32, word(1)), "checksum is 0x"
        if not name.startswith("bank"):
            for keys in (0, 1 << 63):
                yield f"{keys} keys", forged(data, 8, word(keys)), "", "accepted"


def damaged_kinds(name, data):
    """What is wrong in files of one kind only."""
    end = len(data) - FOOTER
    if name == "standalone-short-9.bin":
        says = "size of 9 lanes of 8 bytes does not match the 80 bytes"
        yield "9 lanes of 10", with_body(data, data[:end] + bytes(8)), says
        # From 32 bytes on, the checksum is another algorithm.
        for lanes in (0, 1, 3, 4, 5, 8, 65, 70, 71, 1001):
            error = "accepted" if 1 <= lanes <= 8 else "Damaged"
            yield f"{lanes} lanes of ones", forged(with_body(data, b"\xff" * 8 * lanes), 0, word(lanes)), "", error
        yield "a module of one", forged(data, 43, b"\1"), "the footer's reserved bytes cannot be 1"
        unrepeated = with_body(data, whole_blocks(whole([little(data[at:at + 8]) for at in range(0, end, 8)], 9)))
        yield "whole blocks, a longer form", forged(unrepeated, 0, word(72)), "", "accepted"
    elif name == "standalone-2-modules.bin":
        yield "a bit of the second module flipped", flipped(data, 64), "checksum is 0x"
        yield "a bit of the list of checksums flipped", flipped(data, end - 1), "checksum is 0x"
        yield "modules in the other order", data[64:128] + data[:64] + data[128:], "checksum is 0x"
        for modules in (0, 17, 255):
            yield f"{modules} modules", forged(data, 43, bytes([modules])), f"number of modules cannot be {modules}"
        for at in range(44, 48):
            found = 2 | 1 << 8 * (at - 43)
            yield f"footer byte {at} set", forged(data, at, b"\1"), f"number of modules cannot be {found}"
        for modules in (1, 3, 4, 5, 6, 16):
            yield f"{modules} modules", forged(data, 43, bytes([modules]))
        checksums = b"".join(word(xxh64(data[at:at + 64])) for at in (0, 64))
        yield "checksums of another seed", with_body(data, data[:128] + checksums, xxh64(checksums)), "checksum is 0x"
    elif name == "standard-1024-bits.bin":
        last_set = with_body(data, put(data[:end], 127, bytes([data[127] | 0x80])))
        yield "the last bit set", last_set, "", "accepted"
        yield "1023 bits, and a bit set beyond", forged(last_set, 0, word(1023)), "number of bits cannot be 1023"
    elif name == "counting-1-block.bin":
        for length, size in (8, 0), (64, 0), (255, 0), (257, 1), (320, 1), (512, 1):
            says = f"size of {size} blocks of 256 counter bytes does not match the {length} bytes"
            yield f"{length} bytes of {size} blocks", forged(with_body(data, bytes(length)), 0, word(size)), says
    elif name == "scalable-1-filter.bin":
        rows = end - 24
        loads = lambda row: data[:rows] + row + word(xxh64(row)) + data[end:]
        yield "a bit of the keys flipped", flipped(data, rows), "checksum is 0x"
        yield "more keys than the capacity", loads(word(21) + word(20)), "number of keys cannot be 21"
        yield "a large capacity", loads(word(19) + word(1 << 40)), "capacity of a filter cannot be"
        yield "two filters", forged(data, 0, word(2))
        for at, name, numbers in (
            (8, "false-positive rate of all", (0.0, -0.01, math.inf, math.nan)),
            (24, "false-positive rate", (0.0, 1.0, 1e-9, math.nan)), (32, "tightening", (0.4, 1.0, math.nan)),
        ):
            for number in numbers:
                yield f"{name} of {number}", forged(data, at, struct.pack("<d", number)), f"{name}, in bits, cannot be"
        for capacity in (0, 1 << 40):
            says = f"initial capacity cannot be {capacity}"
            yield f"initial capacity of {capacity}", forged(data, 16, word(capacity)), says
        for at, value, says in ((41, 1, "growth"), (41, 17, "growth"), (42, 0, "index of the next filter"),
                                (43, 2, "number of further modules")):
            yield f"{says} of {value}", forged(data, at, bytes([value])), f"{says} cannot be {value}"
        yield "a second module that is missing", forged(data, 43, b"\1")
    elif name == "frontier.bin":
        filter_ = data[22:end]
        again = lambda queue: forged(with_body(data, queue + filter_), 8, word(len(queue)))
        yield "a queue of 1 item", forged(data, 0, word(1)), "size of 1 queued items does not match"
        yield "a queue of 23 bytes", forged(data, 8, word(23))
        yield "1 item accepted", forged(data, 16, word(1)), "accepted items cannot be 1"
        for accepted in (1 << 63, WORD):
            yield f"{accepted} items accepted", forged(data, 16, word(accepted)), f"accepted items cannot be {accepted}"
        yield "an item that the filter lacks", again(put(data[:22], 8, b"cow")), "queue item 0 is"
        yield "an item that is cut", again(word(3) + b"bee" + word(4) + b"cat")
        yield "a filter that is damaged", with_body(data, data[:22] + flipped(filter_, 0)), "checksum is 0x"
    elif name == "bank-3-slots.bin":
        yield "a checksum flipped", flipped(data, 512), "region 0 is damaged"
        yield "the zeros of a region flipped", flipped(data, 560), "region 0 is damaged"
        yield "the known keys flipped", flipped(data, 576), "checksum is 0x"
        for slots in ((1 << 24) + 1, 1 << 50, WORD - 1, WORD):
            yield f"{slots} slots", forged(data, 8, word(slots)), f"number of slots cannot be {slots}"
        for slots in (0, 2, 4, 9, 1 << 24):
            yield f"{slots} slots", forged(data, 8, word(slots)), "size of 1 blocks of a bank does not match the"
        rows = bytes(byte | 0x80 for byte in data[:512])
        sealed = forged(data, 32, word(xxh64(data[576:600], xxh64(rows))))
        region = rows + word(xxh64(rows) + little(sealed[-16:-8])) + bytes(56)
        yield "bits of no slot", region + sealed[576:], "", "accepted"
    elif name == "index-6-files.bin":
        yield from damaged_index(data)


def damaged_index(data):
    """Each change is of one part, with all checksums made to match."""
    parts = index_parts(SIX, [1, 2, 4], 7, 0x5EED, "lines")
    banks, stored, footers, rule, entries, suffixes = parts
    assert index_bytes(*parts, 1e-3) == data
    files_at, footers_at = len(b"".join(banks)), len(b"".join(banks)) + len(stored)

    def made(banks=banks, stored=stored, footers=footers, rule=rule, entries=entries, suffixes=suffixes, fpr=1e-3):
        return index_bytes(banks, stored, footers, rule, entries, suffixes, fpr)

    def with_entry(file, shared=None, bank_=None, length=None, n_blocks=None):
        new = [old if value is None else value for old, value in
               zip(struct.unpack("<BBHI", entries[file]), (shared, bank_, length, n_blocks))]
        return made(entries=entries[:file] + [struct.pack("<BBHI", *new)] + entries[file + 1:])

    def in_order(*numbers):
        files = [SIX[number] for number in numbers]
        names = [file.name for file in files]
        whole_names = [struct.pack("<BBHI", 0, file.bank, len(file.name), file.n_blocks) for file in files]
        return made(entries=whole_names, suffixes=names, stored=bytes(FILE_BYTES * len(files)))

    for what, at in (("the first bank's checksum", 512), ("the last bank", files_at - 9 - 64), ("the known keys of a bank", files_at - 1)):
        yield f"a bit of {what} flipped", flipped(data, at)
    for what, at in (("a size", files_at), ("a number of keys", footers_at - 1), ("a bank's footer", footers_at + 9),
                     ("the rule", footers_at + 192), ("an entry", footers_at + 198), ("a suffix", len(data) - 65)):
        yield f"a bit of {what} flipped", flipped(data, at), "checksum is 0x"
    for name, fpr in (("0", 0.0), ("-0.1", -0.1), ("1", 1.0), ("infinity", math.inf), ("NaN", math.nan)):
        yield f"a rate of {name}", made(fpr=fpr), "false-positive rate, in bits, cannot be"
    for layout in (0, 2, 255):
        says = f"the index is of layout {layout}, and this release reads layout 1: make it again with this release"
        yield f"layout {layout}", forged(data, 44, bytes([layout])), says, "Unsupported"
    short = b"".join(stored[at:at + 16] + stored[at + 32:at + 40] for at in range(0, len(stored), FILE_BYTES))
    oldest = forged(forged(made(stored=short), 0, word(len(SIX))), 44, b"\0")
    yield "layout 0, of 24 bytes for each file", oldest, "of layout 0,", "Unsupported"
    for at in range(45, 48):
        yield f"footer byte {at} of an index set", forged(data, at, b"\1"), "reserved bytes cannot be"
    end = little(data[8 - FOOTER:][:8])
    for length, error in ((end - 1, "Damaged"), (end + 1, "Damaged"), (0, "Damaged"), (len(data) - 63, "Unrecognized"),
                          (1 << 63, "Unrecognized"), (WORD, "Unrecognized")):
        yield f"an end of {length} bytes", forged(data, 8, word(length)), "", error
    for count in (0, 2, 4, 255):
        yield f"{count} banks", forged(data, 41, bytes([count]))
    for length in (0, 4, 6, 65535):
        yield f"a rule of {length} bytes", forged(data, 42, struct.pack("<H", length))
    yield "a rule that is not UTF-8", made(rule=b"lin\xe9s"), "rule cannot be"
    without_keys = b"".join(stored[at:at + 32] + bytes(8) for at in range(0, len(stored), FILE_BYTES))
    yield "0 keys in each file", made(stored=without_keys), "", "accepted"
    yield "no bytes of files", made(stored=b"")
    yield "a file more", made(stored=stored + bytes(FILE_BYTES))
    yield "a byte of suffixes more", made(suffixes=suffixes + [b"x"])
    yield "a byte of suffixes less", made(suffixes=suffixes[:-1])
    yield "names in another order", in_order(0, 2, 1, 3, 4, 5), "name of file cannot be 2"
    yield "a name twice", in_order(0, 1, 1, 3, 4, 5), "name of file cannot be 2"
    yield "the empty name twice", with_entry(1, shared=0, length=0), "name of file cannot be 1"
    yield "a first name that shares", with_entry(0, shared=1), "name of file cannot be 0"
    yield "a name that shares more than there is", with_entry(1, shared=1), "name of file cannot be 1"
    # The writer's choice of `shared` is free below the limits.
    yield "names that share nothing", in_order(*range(6)), "", "accepted"
    for shared, says, error in (16, "", "accepted"), (17, "name of file cannot be 2", "Damaged"):
        entry = struct.pack("<BBHI", shared, 1, 2, 3)
        changed = made(entries=[*entries[:2], entry, *entries[3:]], suffixes=[*suffixes[:2], b"zz", *suffixes[3:]])
        yield f"{shared} shared bytes for 2", changed, says, error
    for bank_ in (3, 255):
        yield f"bank {bank_}", with_entry(0, bank_=bank_), "bank of file cannot be 0"
    yield "the bank of a file without keys", with_entry(4, bank_=7), "", "accepted"
    for n_blocks in (9, 8, 1 << 25, (1 << 32) - 1):
        yield f"a file of {n_blocks} blocks", with_entry(5, n_blocks=n_blocks), "bank of file cannot be 5"
    yield "a file less in its bank", with_entry(5, n_blocks=0), "number of files cannot be 6"
    yield "a file in another bank", with_entry(5, bank_=2), ""
    for what, changed, says in (
        ("another seed", forged(footers[1], 16, word(1)), "seed of a bank cannot be 1"),
        ("a slot more", forged(footers[1], 8, word(5)), "number of files cannot be 6"),
        ("2^24 slots", forged(footers[1], 8, word(1 << 24)), "number of files cannot be 6"),
        ("2^24 + 1 slots", forged(footers[1], 8, word((1 << 24) + 1)), "number of slots cannot be"),
        ("no block", forged(footers[1], 0, word(0)), "size of 0 blocks of a bank"),
        ("2^63 blocks", forged(footers[1], 0, word(1 << 63)), f"size of {1 << 63} blocks of a bank"),
        ("a third block", forged(footers[1], 0, word(4)), ""),
        ("k of 17", forged(footers[1], 41, b"\x11"), "k cannot be 17"),
        ("a wrong checksum", flipped(footers[1], 0), "the footer is damaged"),
    ):
        yield f"a bank of {what}", made(footers=[footers[0], changed, footers[2]]), says
    yield "a bank of version 3", made(footers=[put(footers[0], 40, b"\3"), *footers[1:]]), "of version 3,", "Unsupported"
    large = [forged(footer, 0, word(1 << 54)) for footer in footers]
    yield "banks whose lengths overflow together", made(footers=large), ""


def damaged_compact(one, two):
    yield one, "no bytes", b"", "not 0: the bytes were cut", "Unrecognized"
    for length in (1, 8, 24, 64):
        yield one, f"{length} bytes", one[:length], "", "Unrecognized"
    for lanes in (0, 65, 71):
        length = 8 * lanes + 1
        says = f"not {length}: the bytes were cut"
        yield one, f"{lanes} lanes", bytes(8 * lanes) + b"\x25", says, "Unrecognized"
    for data, trailers in (one, (0x00, 0x15, 0x1f, 0x30, 0x35, 0x45, 0xff)), (two, (0x26,)):
        for trailer in trailers:
            says = f"not 0x{trailer:x}: the bytes were cut"
            yield data, f"trailer {trailer:#x}", put(data, -1, bytes([trailer])), says, "Unrecognized"
    for n_modules in (0, 1, 17):
        yield two, f"{n_modules} modules", put(two, -2, bytes([n_modules])), f"number of modules cannot be {n_modules}:"
    yield two, "3 modules of 40 blocks", put(two, -2, b"\3"), "", "Unrecognized"


def damaged_table(files):
    """A change replaces the bytes from one offset to another."""
    rows = []

    def add(reader, name, case, data, says="", error="Damaged"):
        whole_ = files[name].data
        most = min(len(whole_), len(data))
        start = next((at for at in range(most) if whole_[at] != data[at]), most)
        same = next((at for at in range(most - start) if whole_[-1 - at] != data[-1 - at]), most - start)
        end = len(whole_) - same
        rows.append([case, reader, name, str(start), str(end), data[start:len(data) - same].hex(), error, says])

    for name in REPRESENTATIVES:
        data, kind = files[name].data, files[name].kind
        for row in (*damaged_anywhere(name, data), *damaged_kinds(name, data)):
            add(kind, name, *row)
        for reader in [reader for reader in NAMES if reader != kind]:
            add(reader, name, "another kind", data, f"bytes of a {NAMES[kind]}", "Unrecognized")
        add("compact", name, "standalone bytes", data, "", "Unrecognized")
    for reader in NAMES:
        name = "compact-100-blocks.bin"
        add(reader, name, "compact bytes", files[name].data, "they end in 0x", "Unrecognized")
    names = "compact-1-block.bin", "compact-2-modules.bin"
    for whole_, *row in damaged_compact(*(files[name].data for name in names)):
        add("compact", names[len(whole_) > 65], *row)
    return table(["case", "reader", "file", "from", "to", "bytes", "error", "says"], *rows)


def hash_of_each_rotation():
    """For each rotation, the first hash with it among hash_key(counter as 8 bytes, seed 0), counter 0, 1, 2..."""
    found = {}
    counter = 0
    while len(found) < 8:
        hash_ = hash_key(counter.to_bytes(8, "little"))
        found.setdefault(words(hash_)[0] >> 61, hash_)
        counter += 1
    return [found[rotation] for rotation in range(8)]


def table(*rows):
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def in_hex(words):
    return [f"{word:016x}" for word in words]


PLAIN_HASHES = [0, 1, WORD, 0x0123456789ABCDEF]


def hashes():
    """The key of length n is the bytes (131 * i + n) mod 256 for i in 0..n."""
    seeds = [0, 1, S0, WORD]
    keys = [bytes((131 * i + n) % 256 for i in range(n)) for n in (*range(151), *LONG)]
    rows = ([str(len(key)), *in_hex(hash_key(key, seed) for seed in seeds)] for key in keys)
    return table(["key length", *(f"hash, seed {seed:x}" for seed in seeds)], *rows)


def masks():
    """The last eight hashes have the rotations 0 to 7."""
    rows = ([*in_hex([hash_]), str(k), *in_hex(mask(hash_, k))]
            for hash_ in PLAIN_HASHES + hash_of_each_rotation() for k in range(1, 17))
    return table(["hash", "k", *(f"lane {i}" for i in range(8))], *rows)


def blocks():
    sizes = [1, 2, 3, 7, 100, 1000, 4097]
    rows = ([*in_hex([hash_]), *(str(block_of(hash_, n_blocks)) for n_blocks in sizes)]
            for hash_ in PLAIN_HASHES + [1 << 63, (1 << 63) - 1] + hash_of_each_rotation())
    return table(["hash", *(f"block of {n_blocks}" for n_blocks in sizes)], *rows)


def probes_of_standard_filters():
    """The bits of the first six probes, in their order."""
    rows = ([*in_hex([hash_]), str(size_bits), *map(str, standard_probes(hash_, size_bits, 6))]
            for hash_ in PLAIN_HASHES + [1 << 63, (1 << 63) - 1] + hash_of_each_rotation()
            for size_bits in (1, 64, 1000, 1 << 20, 12_345_678))
    return table(["hash", "bits", *(f"probe {j}" for j in range(6))], *rows)


def typed_keys():
    rows = []
    for type_, value in TYPED:
        shown = value.hex() if type_ == "binary" else str(value).replace("\0", "\\0")
        key = key_of(value)
        rows += [[type_, shown, key.hex(), *in_hex([hash_key(key), hash_key(key, 0x5EED)])]]
    return table(["type", "value", "key", "hash, seed 0", "hash, seed 5eed"], *rows)


def shown_mum(name, a, b):
    product = a * b
    return [
        f"{name:<14} = mum(0x{a:016x}, 0x{b:016x})",
        f"                 high word 0x{product >> 64:016x}, low word 0x{product & WORD:016x}",
        f"               = 0x{mum(a, b):016x}",
    ]


def worked_keys():
    """The example of docs/format.md, "Keys of other types"."""
    values = [("42, in 8 bits", 42), ("42, in 64 bits", 42), ("−1, in 32 bits", -1), ("2^64 − 1", WORD)]
    values += [("`42`, text", "42")]
    out = ["| value | key | hash, seed 0 |", "|---|---|---|"]
    for name, value in values:
        key = key_of(value)
        out += [f"| {name} | `{key.hex(' ')}` | `0x{hash_key(key):016x}` |"]
    return "\n".join(out + [""])


def worked_example():
    """The example of docs/format.md, section 6. The functions above compute every number in it."""
    key, k, n_blocks = WORKED, 6, 100
    seed_start = SEED_MIXER ^ S0
    seed_inner = mum(S1, seed_start)
    start, a = mixed(0) ^ S0, key[0] << 16 | key[1] << 8 | key[2]
    inner = mum(a ^ S1, start)
    hash_ = mum(S1 ^ len(key), inner)
    assert mum(S1 ^ 8, seed_inner) == mixed(0) and hash_ == hash_key(key)
    x = words(hash_)[0]
    product = hash_ * n_blocks
    bytes_ = compact(build([key], 1, k), k)
    assert len(bytes_) == 65
    out = [f"The key `{key.decode()}` (3 bytes: `{key.hex(' ')}`), with seed 0 and k = {k}, in {n_blocks} blocks."]
    out += ["", "First the seed is mixed. Its 8 bytes are all zero, so a and b are 0.", "", "```text"]
    out += [f"s              = 0x{SEED_MIXER:016x} ^ S0 = 0x{seed_start:016x}"]
    out += shown_mum("mum(S1, s)", S1, seed_start)
    out += [f"S1 ^ 8         = 0x{S1 ^ 8:016x}"]
    out += shown_mum("mixed(0)", S1 ^ 8, seed_inner)
    out += ["```", "", "Then the key is hashed. With a length of 3, b is 0.", "", "```text"]
    out += [f"s              = mixed(0) ^ S0 = 0x{start:016x}"]
    out += [f"a              = 0x{key[0]:02x} << 16 | 0x{key[1]:02x} << 8 | 0x{key[2]:02x} = 0x{a:016x}"]
    out += [f"a ^ S1         = 0x{a ^ S1:016x}"]
    out += shown_mum("mum(a ^ S1, s)", a ^ S1, start)
    out += [f"S1 ^ 3         = 0x{S1 ^ len(key):016x}"]
    out += shown_mum("hash", S1 ^ len(key), inner)
    out += ["```", "", "The hash gives the block and the bits. As k is at most 8, `y` is not needed.", "", "```text"]
    out += [f"hash × {n_blocks}   = high word 0x{product >> 64:016x}, low word 0x{product & WORD:016x}"]
    out += [f"block        = 0x{product >> 64:02x} = {block_of(hash_, n_blocks)}"]
    out += [f"x            = 0x{x:016x}"]
    out += [f"r            = x >> 61 = {x >> 61}"]
    out += ["```", "", "| probe j | lane i | shift 13 + 6·i | bit |", "|---|---|---|---|"]
    out += [f"| {j} | {i} | {13 + 6 * i} | 0x{bit:02x} = {bit} |" for j, (i, bit) in enumerate(probes(hash_, k))]
    out += ["", f"So these are the lanes of the mask, and what the key sets in block {block_of(hash_, n_blocks)}:"]
    out += ["", "```text"]
    out += [f"lane {i}       = 0x{lane:016x}" for i, lane in enumerate(mask(hash_, k))]
    out += ["```", "", "In a filter of one block the same mask stands in block 0. The compact bytes of such a"]
    out += [f"filter, with k = {k} and only this key, are the 65 bytes below: the eight lanes, then the trailer."]
    out += ["The filter is not short, because its lanes do not repeat.", "", "```text"]
    out += [f"{at:02x}  {bytes_[at:at + 8].hex(' ')}" for at in range(0, 65, 8)]
    out += ["```", ""]
    return "\n".join(out)


def worked_modules():
    """An example of two modules, of docs/format.md, sections 3 and 5."""
    out = []
    for key in (WORKED, ANIMALS[1]):
        h = hash_key(key)
        for module in range(2):
            bits = " ".join(f"{lane}:{bit}" for lane, bit in probes(h, 3))
            out += [f"{key.decode()}, module {module}   h = 0x{h:016x}   lane:bit {bits}"]
            h = next_hash(h)
    bytes_ = standalone_modules([WORKED, ANIMALS[1]], 2, 1, 3, 0, 2)
    out += [""]
    for start in (0, 64):
        set_ = [(at, bytes_[at]) for at in range(start, start + 64) if bytes_[at]]
        out += ["byte   " + "".join(f"{at:>5}" for at, _ in set_), "value  " + "".join(f"   {byte:02x}" for _, byte in set_)]
    out += [f"checksums  {bytes_[128:136].hex()} {bytes_[136:144].hex()}", ""]
    return "\n".join(out)


def worked_standard():
    """The example of docs/format.md, section 7."""
    hash_, size_bits, k = hash_key(WORKED), 1000, 4
    h2 = hash_ * 0x6A09E667F3BCC908 & WORD
    out = [f"hash         = 0x{hash_:016x}", f"h2           = 0x{h2:016x}"]
    for j, bit in enumerate(standard_probes(hash_, size_bits, k)):
        word = hash_ + j * h2 + (j ** 3 - j) // 6 * 0x9E3779B97F4A7C15 & WORD
        out += [f"probe {j}      w = 0x{word:016x}, bit {bit}"]
    return "\n".join(out + [""])


def worked_counting():
    """The example of docs/format.md, section 8."""
    body = counting([WORKED, WORKED, ANIMALS[1]], [], 1, 6, 0, None)[:256]
    return "".join(f"byte {at:<3}     = 0x{byte:02x}\n" for at, byte in enumerate(body) if byte)


def worked_bank():
    """The example of docs/format.md, section 12."""
    body = worked_bank_file().data
    rows = [(row, byte) for row, byte in enumerate(body[:512]) if byte]
    return "\n".join([
        "row    " + "".join(f"{row:>5}" for row, _ in rows),
        "value  " + "".join(f"   {byte:02x}" for _, byte in rows),
        f"checksum  {body[512:520].hex()}", "",
    ])


def check_self():
    """Compares with values from docs/format.md and from other projects' tests, to catch mistakes in this script."""
    assert len(CHECK_TEXT) == 128
    assert mixed(0) == 0xE2D7324F782038B7
    assert wyhash(b"", 0) == 0x42BC986DC5EEC4D3
    assert wyhash(b"a", 1) == 0x84508DC903C31551
    assert wyhash(b"abc", 2) == 0x0BC54887CFC9ECB1
    assert wyhash(b"message digest", 3) == 0x6E2FF3298208A67C
    assert wyhash(b"abcdefghijklmnopqrstuvwxyz", 4) == 0x9A64E42E897195B9
    assert wyhash(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 5) == 0x9199383239C32554
    assert wyhash(b"1234567890" * 8, 6) == 0x7C1CCF6BBA30F5A5
    assert xxh64(b"") == 0xEF46DB3751D8E999
    assert xxh64(b"abc") == 0x44BC2CF5AD770999
    assert xxh64(b"The quick brown fox jumps over the lazy dog") == 0x0B242D361FDA71BC
    for slots, n_blocks, k, seed in BANKS:
        bank_ = ruled_bank(slots, n_blocks, k, seed).data
        for slot in {*range(0, slots, 37), *range(slots)[-1:]}:
            lanes = build(slot_keys(slot), n_blocks, k, seed)
            for at in range(512 * n_blocks):
                assert is_set(bank_, slots, at // 512, at % 512, slot) == lanes[at // 64] >> at % 64 & 1


def main():
    check_self()
    if sys.argv[1:] == ["--worked"]:
        print(worked_keys(), worked_example(), worked_modules(), worked_standard(), worked_counting(), worked_bank(),
              sep="\n", end="")
        return 0
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(__file__).resolve().parent
    differing = []
    files = golden_files()
    values = {"hashes.tsv": hashes(), "masks.tsv": masks(), "blocks.tsv": blocks(), "keys.tsv": typed_keys(),
              "probes.tsv": probes_of_standard_filters(), "files.tsv": files_table(files),
              "indexes.tsv": indexes_table(),
              "damaged.tsv": damaged_table(files)}
    for name, content in {**values, **{name: file.data for name, file in files.items()}}.items():
        path = folder / name
        if sys.argv[1:] == []:
            path.write_bytes(content)
        elif not path.is_file() or path.read_bytes() != content:
            differing.append(name)
    for name in differing:
        print(f"{name} is not what make.py makes", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
