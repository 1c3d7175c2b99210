"""What several test files need: the format in plain Python, and what a key of each type stands for."""

import importlib.util
import operator
import os
import pathlib
import subprocess
import sys

import pytest

from bloomline import BloomFilter, CountingBloomFilter, ModularBloomFilter, ScalableBloomFilter, StandardBloomFilter

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
FOOTER_BYTES = 64
ALL = [BloomFilter, CountingBloomFilter, ModularBloomFilter, ScalableBloomFilter, StandardBloomFilter]


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The independent implementation of docs/format.md that also makes the goldens.
make = load("bloomline_goldens", GOLDEN / "make.py")


def key_bytes(key):
    """The rule of docs/format.md, "Keys of other types"."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return bytes(key)
    key = operator.index(key)
    return key.to_bytes(8, "little", signed=key < 0)


def standalone_of(filter, keys):
    """The standalone bytes of a filter like `filter` that holds `keys`, from the format alone."""
    lanes = make.build([key_bytes(key) for key in keys], filter.n_blocks, filter.k, filter.seed)
    return make.standalone(lanes, filter.k, filter.seed, None)


def without_count(data):
    """Standalone bytes without the number of keys, which is known for some filters only, and the checksum over it."""
    at = len(data) - FOOTER_BYTES
    return data[: at + 8] + data[at + 16 : at + 48]


def has_bits_of(filter, keys):
    """Whether `filter` has the bytes of one that holds `keys` and no other."""
    return without_count(filter.to_bytes()) == without_count(standalone_of(filter, keys))


def empty(keys=1_000, bits_per_key=12, seed=0):
    return BloomFilter.with_bits_per_key(max(keys, 1), bits_per_key, seed=seed)


def one_by_one(keys, like=None):
    """A filter of `keys`, inserted one by one, as bytes."""
    filter = empty() if like is None else like.copy()
    for key in keys:
        filter.add(key_bytes(key))
    return filter


def run_python(program, *arguments, timeout=600, **environment):
    """Runs a program in a fresh interpreter, and returns what it printed."""
    done = python(program, *arguments, timeout=timeout, **environment)
    assert done.returncode == 0, f"exit status {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


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


def python(program, *arguments, timeout=600, **environment):
    if not sys.executable:
        pytest.skip("no other Python can be started here")
    try:
        return subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **environment},
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"no end after {timeout} seconds: a deadlock?")


def command():
    """The path of the `bloomline` command; skips the test where none was built."""
    named = os.environ.get("BLOOMLINE_CLI")
    if named:
        assert os.access(named, os.X_OK), f"BLOOMLINE_CLI={named} is no executable file"
        return named
    built = [ROOT / "target" / profile / "bloomline" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        pytest.skip("no `bloomline` command: cargo build -p bloomline-cli, or set BLOOMLINE_CLI")
    return str(max(built, key=lambda path: path.stat().st_mtime))
