"""Views, also closed: the buffer is free, no thread reads memory that is gone, and no answer is wrong."""

import gc
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import bloomline
from bloomline import BloomFilter, BloomView, DecodeError, FilterBank, FilterBuilder
from support import COPIES, GOLDEN, buffers

CLOSED = "^the view is closed: open it again$"


def filled(count=1_000):
    f = BloomFilter(count)
    f.update(np.arange(count))
    return f


def test_a_view_answers_as_its_filter():
    f = BloomFilter(1_000, seed=5)
    f.update([*(str(number) for number in range(500)), *range(100)])
    data, keys = f.to_bytes(), [str(number) for number in range(600)]
    for buffer in (*buffers(data), memoryview(b"x" + data)[1:]):
        view = BloomView(buffer)
        assert (view.k, view.n_blocks, view.seed, view.size_bytes) == (f.k, f.n_blocks, f.seed, f.size_bytes)
        assert "3" in view and 99 in view and "absent" not in view
        for asked in (keys, np.arange(200)):
            assert view.contains_many(asked).tolist() == f.contains_many(asked).tolist()
        assert view.verify() is None
        owned = view.to_filter()
        assert owned == f and owned.expected_keys is None
        owned.add("another")
        assert "another" not in view
    with pytest.raises(TypeError):
        1.5 in view
    for wrong in ("text", memoryview(data + data)[::2]):
        with pytest.raises((TypeError, ValueError, BufferError)):
            BloomView(wrong)
    with pytest.raises(TypeError):
        BloomView(data, False)


def test_a_view_follows_its_buffer():
    whole = filled().to_bytes()
    data = bytearray(whole)
    view = BloomView(data)
    data[:500] = bytes(500)
    assert not view.contains_many(np.arange(1_000)).all(), "lost keys: the risk"
    for read in (view.verify, view.to_filter):
        with pytest.raises(DecodeError, match="damaged: their checksum is 0x[0-9a-f]{16}, stored 0x[0-9a-f]{16}"):
            read()
    data[:] = whole
    assert view.verify() is None and view.contains_many(np.arange(1_000)).all()


def test_a_view_holds_its_buffer():
    data = bytearray(filled().to_bytes())
    view = BloomView(data)
    with pytest.raises(BufferError):
        data.append(0)
    del view
    data.append(0)
    view = BloomView(bytes(data[:-1]))  # the only reference to these bytes
    del data
    gc.collect()
    rest = [bytes(1_000 + length) for length in range(1_000)]  # would reuse the memory
    assert view.contains_many(np.arange(1_000)).all() and rest


def test_views_are_compared_by_content(tmp_path):
    f, seeded = filled(), BloomFilter(1_000, seed=1)
    f.save(tmp_path / "f")
    view, mapped, other = BloomView(f.to_bytes()), BloomFilter.open(tmp_path / "f"), BloomView(seeded.to_bytes())
    for same in (f, view, mapped, BloomView(bytearray(f.to_bytes()))):
        assert view == same and same == view and not view != same and not same != view
    for different in (filled(999), seeded, other, f.to_bytes(), None, 17):
        assert view != different and different != view and not view == different
    with pytest.raises(TypeError, match="unhashable"):
        hash(view)
    view.close()
    assert view == view and view != mapped and mapped != view and view != f and f != view


@pytest.mark.parametrize("copied", COPIES[1:])
def test_what_cannot_be_pickled_says_what_to_do(copied):
    for cannot, remedy in ((BloomView(filled().to_bytes()), "open its file again there, or use its `to_filter()`"),
                           (bloomline.open(GOLDEN / "index-6-files.bin"), "open its file again there"),
                           (FilterBuilder(), "call `finish()`, and pickle or copy its filter")):  # fmt: skip
        with pytest.raises(TypeError) as error:
            copied(cannot)
        assert str(error.value) == f"a {type(cannot).__name__} cannot be pickled or copied: {remedy}"


def uses(view):
    properties = "k", "n_blocks", "n_modules", "size_bytes", "seed", "fill_ratio"
    named = {name: lambda name=name: getattr(view, name) for name in properties}
    return named | {
        "in": lambda: 17 in view,
        "contains_many": lambda: view.contains_many(np.arange(10)),
        "of nothing": lambda: view.contains_many([]),
        "verify": view.verify,
        "to_filter": view.to_filter,
        "with": lambda: view.__enter__(),
        "estimated_keys": view.estimated_keys,
        "estimated_union": lambda: filled().estimated_union(view),
        "estimated_fpr": view.estimated_fpr,
        "bank": lambda: FilterBank([view]),
        "bank of others": lambda: FilterBank([filled(), view, filled()]),
    }


def test_with_lets_go_of_a_buffer():
    data = bytearray(filled().to_bytes())
    with pytest.raises(LookupError, match="mine"), BloomView(data) as view:
        assert type(view) is BloomView and 17 in view and not view.closed
        with pytest.raises(BufferError):
            data.append(0)
        raise LookupError("mine")
    data.append(0)
    assert view.closed and repr(view) == "BloomView(closed)"
    for name, use in uses(view).items():
        with pytest.raises(ValueError, match=CLOSED):
            use()
            pytest.fail(name)
    view.close()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the mappings")
def test_with_unmaps_a_file(tmp_path):
    path = tmp_path / "f.bloom"
    filled(100_000).save(path)

    def is_mapped():
        return str(path) in Path("/proc/self/maps").read_text()

    for open in (BloomFilter.open, bloomline.open):
        with open(path) as view:
            assert is_mapped() and 17 in view
        assert not is_mapped()
        with pytest.raises(ValueError, match=CLOSED):
            17 in view
        assert 17 in open(path)


def test_an_iterator_may_close_the_view_that_reads_it():
    view = BloomView(filled().to_bytes())

    def keys():
        yield from range(10_000)
        view.close()
        yield 17

    with pytest.raises(ValueError, match=CLOSED):
        view.contains_many(keys())


def test_shared_memory_can_be_closed_after_with():
    from multiprocessing import shared_memory

    data = filled().to_bytes()
    memory = shared_memory.SharedMemory(create=True, size=len(data))
    try:
        memory.buf[: len(data)] = data
        with BloomView(memory.buf[: len(data)]) as view:
            assert view.contains_many(np.arange(1_000)).all()
        gc.collect()
        memory.close()
    finally:
        memory.unlink()


@pytest.mark.parametrize("keys", [np.arange(200_000), list(range(3_000)), 17], ids=["array", "list", "one"])
def test_threads_look_up_while_the_view_is_closed(tmp_path, keys):
    """Each call answers rightly or raises; once `close` has returned, each raises."""
    path = tmp_path / "f.bloom"
    f = filled(200_000)
    f.save(path)
    data = bytearray(f.to_bytes())
    count = 1 if isinstance(keys, int) else len(keys)
    for round in range(10):
        view = BloomFilter.open(path) if round % 2 else BloomView(data)
        problems, answered, closed = [], [0] * 3, threading.Event()

        def look_up(thread):
            while True:
                was_closed = closed.is_set()
                try:
                    found = int(keys in view) if count == 1 else int(view.contains_many(keys).sum())
                except ValueError as error:
                    if str(error) != "the view is closed: open it again":
                        problems.append(error)
                    return
                if was_closed or found != count:
                    problems.append((was_closed, found))
                    return
                answered[thread] += 1

        threads = [threading.Thread(target=look_up, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        while min(answered) == 0 and not problems:
            time.sleep(0.001)
        view.close()
        if round % 2 == 0:
            data.append(0)  # would be a BufferError if anything still held it
            data.pop()
        elif sys.platform == "linux":
            assert str(path) not in Path("/proc/self/maps").read_text()
        closed.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a deadlock"
        assert not problems


def test_threads_put_a_view_into_banks_while_it_is_closed():
    """A bank holds several views and filters at once: no order of them may wait forever."""
    f = filled()
    data = f.to_bytes()
    for _ in range(20):
        views, bank = [BloomView(data), BloomView(data)], FilterBank([f])
        unexpected = []

        def push(order):
            try:
                for _ in range(50):
                    FilterBank([*views[::order], f, views[0]])
                    bank.replace(0, views[::order][0])
            except ValueError as error:
                if "the view is closed" not in str(error):
                    unexpected.append(error)

        threads = [threading.Thread(target=push, args=(order,)) for order in (1, -1)]
        threads += [threading.Thread(target=view.close) for view in views]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a deadlock"
        assert not unexpected and 17 in bank.get(0)
