"""Properties of arbitrary keys, partitions and bytes, by hypothesis with fixed examples."""

import os
import tempfile
from functools import partial

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bloomline import BloomFilter, BloomView, DecodeError, StandardBloomFilter
from support import ALL, FOOTER_BYTES, has_bits_of, key_bytes, make, without_count


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)
integers = st.integers(-1_000, 1_000) | st.integers(-(2**63), 2**64 - 1)
keys = st.one_of(texts, st.binary(max_size=70), integers)
lists = st.lists(keys, max_size=60)
seeds = st.integers(0, 2**64 - 1)
sizes = st.tuples(st.integers(0, 300), st.sampled_from([0.5, 3, 10, 12.5, 64]))


def sized(size, seed=0):
    return BloomFilter.with_bits_per_key(*size, seed=seed)


@given(lists, lists, sizes, seeds)
def test_bits_and_answers_are_those_of_the_format(keys, others, size, seed):
    f, g = sized(size, seed), sized(size, seed)
    f.update(keys)
    assert has_bits_of(f, keys)
    changed = [g.add(key) for key in keys]
    assert g == f
    assert len(set(map(key_bytes, keys))) >= sum(changed) >= bool(keys)
    n_modules = f.n_modules
    modules = make.build_modules([key_bytes(key) for key in keys], n_modules, f.n_blocks // n_modules, f.k, seed)
    expected = [make.are_in(modules, f.k, make.hash_key(key_bytes(key), seed)) for key in keys + others]
    for filter in (f, BloomView(f.to_bytes())):
        assert filter.contains_many(keys + others).tolist() == expected


@given(lists, lists, st.sampled_from(ALL), seeds)
def test_no_key_is_lost(keys, others, cls, seed):
    f = cls(20, seed=seed)
    f.update(keys)
    assert f.contains_many(keys).all() and all(key in f for key in keys)
    f.update(others)
    assert f.contains_many(keys + others).all()
    read = cls.from_bytes(f.to_bytes())
    assert read == f and read.contains_many(others + keys).all()
    assert f.contains_many(others).tolist() == [key in f for key in others]


@given(st.lists(st.lists(keys, max_size=20), min_size=1, max_size=8), st.randoms(use_true_random=False), sizes, seeds,
       st.sampled_from([sized, lambda size, seed: StandardBloomFilter.with_bits_per_key(*size, seed=seed)]))
def test_partitions_merge_to_the_whole(parts, random, size, seed, make):
    whole = make(size, seed)
    whole.update(key for part in parts for key in part)
    filters = []
    for part in parts:
        filters.append(make(size, seed))
        filters[-1].update(part)
    assert type(whole).union(filters) == whole
    while len(filters) > 1:  # any tree of merges, in any order, some of them after a round trip
        random.shuffle(filters)
        f, g = filters.pop(), filters.pop()
        if random.random() < 0.3:
            f = type(f).from_bytes(f.to_bytes())
        if random.random() < 0.5:
            f |= g
        else:
            f = f | g
        filters.append(f)
    assert filters[0] == whole and without_count(filters[0].to_bytes()) == without_count(whole.to_bytes())
    assert filters[0].contains_many([key for part in parts for key in part]).all()


# Bytes

def filled(cls, seed=0x5EED):
    f = cls(60, seed=seed)
    f.update(range(50))
    return f


VALID = {cls: filled(cls).to_bytes() for cls in ALL}


def mapped(data, mmap, **options):
    """Opens `data` as a file."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(data)
    try:
        return BloomFilter.open(file.name, mmap=mmap, **options)
    finally:
        os.unlink(file.name)


def read_all_ways(data):
    """What each reader makes of `data`: a filter, or None for an error. Any other exception is a failure."""
    def attempt(read, *arguments):
        try:
            return read(*arguments)
        except DecodeError as error:
            assert str(error)
            return None

    owned, read = attempt(BloomFilter.from_bytes, data), attempt(mapped, data, False)
    assert (owned is None) == (read is None) and (owned is None or owned == read)
    for view in (attempt(BloomView, data), attempt(mapped, data, True)):
        assert (view is None) == (owned is None) and (view is None or view.to_filter() == owned)
    view, opened = attempt(partial(BloomView, verify=False), data), attempt(partial(mapped, verify=False), data, True)
    assert (view is None) == (opened is None)
    for view in (view, opened):
        if view is not None:
            assert len(view.contains_many(np.arange(100))) == 100  # of damaged lanes: any answer, but no crash
            try:
                view.verify()
            except DecodeError:
                assert owned is None
            else:
                assert view.to_filter() == owned
    return owned, [attempt(cls.from_bytes, data) for cls in ALL[1:]]


@given(st.binary(max_size=300))
@example(b"")
def test_arbitrary_bytes_are_an_error(data):
    assert read_all_ways(data) == (None, [None] * 3), "a checksum of 64 bits does not match by chance"


@given(st.sampled_from(ALL), st.data())
@settings(max_examples=300)
def test_changed_bytes_are_an_error(cls, data):
    valid = VALID[cls]
    kind = data.draw(st.sampled_from(["flip", "cut", "cut the start", "extend", "overwrite"]))
    at = data.draw(st.integers(0, len(valid) - 1) | st.integers(len(valid) - FOOTER_BYTES, len(valid) - 1))
    changed = bytearray(valid)
    if kind == "flip":
        changed[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del changed[at:]
    elif kind == "cut the start":
        del changed[: at + 1]
    elif kind == "extend":
        changed += data.draw(st.binary(min_size=1, max_size=80))
    else:
        written = data.draw(st.binary(min_size=1, max_size=8))
        changed[at : at + len(written)] = written
    owned, others = read_all_ways(bytes(changed))
    if bytes(changed) == valid:
        assert sum(f is not None for f in [owned, *others]) == 1
    else:
        assert (owned, others) == (None, [None] * 3)
