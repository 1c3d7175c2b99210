"""Ctrl-C ends a call on one large array within half a second, whatever the array is."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

LIMIT = 0.5

# Large columns that take no memory: pages of zeros that nobody writes, or one item repeated.
COLUMNS = {
    "numpy integers": "np.zeros(1_500_000_000, 'i1')",
    "numpy integers, strided": "np.zeros(3_000_000_000, 'i1')[::3]",
    "numpy integers, byte-swapped": "np.broadcast_to(np.zeros(1, '>i8'), 10**9)",
    "numpy U": "np.zeros(400_000_000, 'U4')",
    "numpy S": "np.zeros(1_000_000_000, 'S4')",
    "numpy objects": "np.broadcast_to(np.array('ant', object), 10**8)",
    "Arrow integers": "arrow(pa.int8(), 1_500_000_000)",
    "Arrow fixed width": "arrow(pa.binary(16), 300_000_000)",
    "Arrow text": "pa.Array.from_buffers(pa.string(), 10**9, [None, pa.py_buffer(np.zeros(10**9 + 1, 'i4')), pa.py_buffer(b'')])",
    "Arrow views": "pa.Array.from_buffers(pa.string_view(), 300_000_000, [None, pa.py_buffer(np.zeros(600_000_000, 'u8'))])",
    "Arrow nulls": "pa.nulls(1_500_000_000)",
    "Arrow chunks": "pa.chunked_array([pa.array([1] * 1_000)] * 3_000_000)",
    "Arrow dictionary": "pa.DictionaryArray.from_arrays(arrow(pa.int8(), 1_500_000_000), pa.array(['ant']), safe=False)",
    "Arrow dictionary of many values": "pa.DictionaryArray.from_arrays(arrow(pa.int32(), 10**9), arrow(pa.binary(8), 8 * 10**8), safe=False)",
    "list": "['ant'] * 30_000_000",
    "generator": "(i for i in range(10**9))",
    "range": "range(10**9)",
    "pandas": "pd.Series(np.zeros(1_500_000_000, 'i1'), copy=False)",
    "pandas objects": "pd.Series(np.broadcast_to(np.array('ant', object), 10**8), dtype=object, copy=False)",
    "pandas index": "pd.Index(np.broadcast_to(np.array('ant', object), 10**8), dtype=object)",
    "polars": "pl.from_arrow(arrow(pa.int8(), 1_500_000_000))",
}  # fmt: skip

def available():
    """KiB of memory."""
    with open("/proc/meminfo") as file:
        return int(re.search(r"MemAvailable:\s+(\d+)", file.read())[1])


CHILD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, pyarrow as pa
from bloomline import BloomFilter, FilterBank
if "pd." in sys.argv[1]:
    import pandas as pd
if "pl." in sys.argv[1]:
    import polars as pl

def arrow(type, length):
    return pa.Array.from_buffers(type, length, [None, pa.py_buffer(np.zeros(length * (type.bit_width // 8), "u1"))])

f = BloomFilter(1000)
bank = FilterBank([f])  # whose answers for all keys have room
rows = FilterBank([f] * 20_000)
keys = eval(sys.argv[1])
for call in map(eval, sys.argv[2:]):
    # Made once, because 100,000,000 objects take pandas seconds. But an interrupted generator has ended.
    keys = eval(sys.argv[1]) if hasattr(keys, "send") else keys
    try:
        print("ready", flush=True)
        call(keys)
        print("the call ended too early", flush=True)
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
"""


def ends_in_time(make, *calls):
    """Whether each call ends in time at a Ctrl-C; on a busy machine, one time of three."""
    return any(interrupt(make, *calls) < LIMIT for _ in range(3))


def interrupt(make, *calls):
    """Presses Ctrl-C in the midst of each call, and returns how many seconds it went on at most."""
    command = [sys.executable, "-c", CHILD, make, *calls]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(120, child.kill)
        watchdog.start()
        try:
            times = []
            for call in calls:
                assert child.stdout.readline() == "ready\n", child.communicate()
                time.sleep(0.15)
                sent = time.monotonic()
                os.kill(child.pid, signal.SIGINT)
                line = child.stdout.readline()
                assert line[:1].isdigit(), (call, line, child.communicate())
                times.append(float(line) - sent)
            return max(times)
        finally:
            watchdog.cancel()
            child.kill()


pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process"),
    pytest.mark.skipif(not os.path.exists("/proc/meminfo") or available() < 16 << 20, reason="needs 16 GiB"),
]


@pytest.mark.parametrize("column", COLUMNS)
def test_ctrl_c(column):
    pytest.importorskip("pyarrow")
    for package in ("pandas", "polars"):
        if column.startswith(package):
            pytest.importorskip(package)
    calls = ["f.update", "f.add_many", "f.contains_many"]
    if column != "Arrow nulls":  # which a bank refuses
        calls.append("bank.find_many")
    assert ends_in_time(COLUMNS[column], *calls)


def test_ctrl_c_while_a_bank_fills_its_rows():
    assert ends_in_time("np.zeros(60_000, 'i8')", "rows.find_many")
    assert ends_in_time("np.zeros(500_000, 'i8')", "lambda keys: rows.find_many(keys, packed=True)")
