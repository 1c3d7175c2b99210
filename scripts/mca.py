#!/usr/bin/env python3
"""Prints the tables of docs/performance/modelled.md: the modelled cycles of a lookup and of an insert on several CPUs.

mca.py DIR    has a folder for each target, with the assembly of bloomline and of the probe crate.

The order of the instructions alone can change the simulated cycles by 3%, so look at the bound, too.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from loops import RETURN, Function, functions

# Each kernel: its target, the registers that only its loops use, and LLVM's names of CPUs that run it.
KERNELS = {
    "AVX-512": ("x86_64", r"%zmm\d", "skylake-avx512 | icelake-server | sapphirerapids | znver4"),
    "AVX2": ("x86_64", r"%ymm\d", "haswell | skylake | icelake-server | alderlake | znver2 | znver3 | znver4"),
    "SSE4.1": ("x86_64", r"%xmm\d", "sandybridge | silvermont | btver2"),
    "NEON": ("aarch64", r"\b[vqd]\d", "cortex-a72 | neoverse-n1 | neoverse-n2 | neoverse-v1 | neoverse-v2 | apple-m1"),
}
INLINED = {"lookup": "count", "insert": "insert_each"}
FUNCTIONS = {
    "AVX-512": INLINED | {"lookup, batch": "avx512::contains_batch", "insert, batch": "avx512::insert_batch"},
    "AVX2": INLINED | {"lookup, batch": "avx2::contains_batch", "insert, batch": "avx2::insert_batch"},
    "SSE4.1": {"lookup, the called function": "sse41::contains", "lookup, batch": "sse41::contains_batch"},
    "NEON": {"lookup": "count", "lookup, batch": "neon::contains_batch"},
}
# The block of a hash is found by one widening multiplication. A function without one is called with the block.
LOOKUP = r"mulx?q|umulh"
# The first word of a hash, which a bitmap's loop finds in memory.
WORD = r"imulq|mul"
# Loops that prefetch find two blocks per lookup.
PREFETCH = r"prefetch\w*|prfm"
ITERATIONS = 1000


def repeated(function):
    """A function that its caller calls in a loop: its return leads to its start.

    Each call's arguments are new, so that it does not wait for what the call before left in their registers.
    """
    body = Function("movl $1, %edi\nmovl $1, %esi\nmovl $1, %edx\n" + function.text)
    body.next = [[0] if body.has(at, RETURN) else after for at, after in enumerate(body.next)]
    return body


def shortest_loop(directory, path, register):
    """The number of lookups in a kernel's shortest loop, which is for up to eight probes, and its instructions."""
    loops = []
    for function in functions(directory.rglob("*.s"), path):
        per_lookup = LOOKUP
        if not any(function.has(at, LOOKUP) for at in range(len(function.lines))):
            function, per_lookup = repeated(function), RETURN
        for at, line in enumerate(function.lines):
            loop = function.loop(at) if re.search(register, line) else []
            lookups = sum(function.has(at, per_lookup) for at in loop)
            words = sum(function.has(at, WORD) for at in loop)
            prefetches = any(function.has(at, PREFETCH) for at in loop)
            if words >= lookups > 0 and not prefetches and not any(function.faults(loop)):
                loops.append((lookups, [function.lines[at] for at in loop]))
    return min(loops, key=lambda loop: len(loop[1]) / loop[0], default=None)


def modelled(target, cpu, lookups, lines):
    """The cycles per lookup: simulated, and the bound."""
    command = ["llvm-mca-22", f"-mtriple={target}", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-json"]
    # Without its warnings that a return does not change what runs next.
    run = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    summary = json.loads(run.stdout)["CodeRegions"][0]["SummaryView"]
    return summary["TotalCycles"] / ITERATIONS / lookups, summary["BlockRThroughput"] / lookups


def main(folder):
    for kernel, (target, register, cpus) in KERNELS.items():
        # No installed toolchain compiles for it.
        if not Path(folder, target).exists():
            continue
        print(f"\n| {kernel} | {cpus} |\n|---" + "|---" * len(cpus.split(" | ")) + "|")
        for row, path in FUNCTIONS[kernel].items():
            loop = shortest_loop(Path(folder, target), path, register)
            if not loop:
                sys.exit(f"FAILED {kernel} {row}: {path} has no loop without calls, divisions and panics")
            cells = ["{:.1f}/{:.1f}".format(*modelled(target, cpu, *loop)) for cpu in cpus.split(" | ")]
            print(f"| {row} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1])
