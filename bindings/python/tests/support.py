"""What several test files need: what a key of each type stands for, and Python processes of their own."""

import copy
import io
import operator
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bloomline import BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
COPIES = [lambda f: f.copy(), copy.copy, copy.deepcopy,
          *(lambda f, protocol=protocol: pickle.loads(pickle.dumps(f, protocol)) for protocol in range(6))]
ALL = [BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter]


def key_bytes(key):
    """The rule of docs/format.md, "Keys of other types"."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return bytes(key)
    key = operator.index(key)
    return key.to_bytes(8, "little", signed=key < 0)


def empty(keys=1_000, bits_per_key=12, seed=0):
    return BloomFilter.with_bits_per_key(max(keys, 1), bits_per_key, seed=seed)


def one_by_one(keys, like=None):
    """A filter of `keys`, inserted one by one, as bytes."""
    filter = empty() if like is None else like.copy()
    for key in keys:
        filter.add(key_bytes(key))
    return filter


def buffers(data):
    """What may hold bytes."""
    return data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), memoryview(data).cast("Q")


def run_python(program, *arguments, timeout=600):
    """Runs a program in a fresh interpreter, and returns what it printed."""
    if not sys.executable:
        pytest.skip("no other Python can be started here")
    try:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        pytest.fail(f"no end after {timeout} seconds: a deadlock?")
    assert done.returncode == 0, f"exit status {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


class File(io.BytesIO):
    """A file object as of an object store: it gives few bytes at a time, and notes what it was asked for."""

    name = "store/f"

    def __init__(self, data, piece=1 << 30):
        super().__init__(data)
        self.piece, self.len, self.reads = piece, len(data), []

    def read(self, size=-1, /):
        start = self.tell()
        assert 0 <= size <= self.len - start, "no more than there is, whatever a footer claims"
        read = super().read(min(size, self.piece))
        self.reads += [(start, len(read))] if size else []
        return read


HAMMER = """
import sys, threading, time
raised = []

def run_at_once(jobs, seconds):
    stop = time.monotonic() + seconds

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
"""


def hammer(program, *arguments):
    """Runs a program that calls `run_at_once`, in a process of its own: where threads wait for a filter and for the
    interpreter crosswise, all of Python stops."""
    run_python(HAMMER + program, *arguments)


LITTLE_MEMORY = """
import resource, sys

def limit(more):
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))

def refused(use, text="out of memory"):
    try:
        use()
    except MemoryError as error:
        assert text in str(error), repr(error)
    else:
        raise AssertionError(f"{use}: no error")
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory in use")


def with_little_memory(program, *arguments, timeout=600):
    """Runs a program that may call `limit`, with how many bytes it may allocate from then on, and `refused`."""
    return run_python(LITTLE_MEMORY + program, *arguments, timeout=timeout)
