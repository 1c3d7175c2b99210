#!/usr/bin/env python3
"""Prints the modelled cycles of a lookup and of an insert on several CPUs, as a Markdown page.

mca.py DIR [BASE]

    DIR holds the assembly of bloomline and of the probe crate, for each target in TARGET/target/.
    With BASE, the same for another version, also prints the ratio to it, and fails if a ratio is above 1.03.

A cell has the cycles per lookup of llvm-mca's simulation of the loop and, after the slash, the bound set by the CPU's
width and execution units. The loop is the shortest one through the kernel, which is the one for up to eight probes.
Only the order of the instructions can change the simulated cycles by 3 %, so look at the bound, too.
"""

import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from loops import Function, faults, functions, named

# Each kernel: its target, the registers that only its loops use, the CPUs that run it, and its functions.
KERNELS = {
    "AVX-512": (
        "x86_64",
        r"%zmm\d",
        "skylake-avx512 icelake-server sapphirerapids znver4",
        {
            "lookup": "count",
            "insert": "insert_each",
            "lookup, batch": "kernel::avx512::contains_batch",
            "insert, batch": "kernel::avx512::insert_batch",
        },
    ),
    "AVX2": (
        "x86_64",
        r"%ymm\d",
        "haswell skylake icelake-server alderlake znver2 znver3 znver4",
        {
            "lookup": "count",
            "insert": "insert_each",
            "lookup, batch": "kernel::avx2::contains_batch",
            "insert, batch": "kernel::avx2::insert_batch",
        },
    ),
    "SSE4.1": (
        "x86_64",
        r"%xmm\d",
        "sandybridge silvermont btver2",
        {"lookup, the called function": "kernel::sse41::contains", "lookup, batch": "kernel::sse41::contains_batch"},
    ),
    "NEON": (
        "aarch64",
        r"\b[vqd]\d",
        "cortex-a72 neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 apple-m1",
        {"lookup": "count", "lookup, batch": "kernel::neon::contains_batch"},
    ),
}
NAMES = {
    "skylake-avx512": "Skylake-SP",
    "skylake": "Skylake",
    "icelake-server": "Ice Lake",
    "sapphirerapids": "Sapphire Rapids",
    "haswell": "Haswell",
    "alderlake": "Alder Lake",
    "sandybridge": "Sandy Bridge",
    "silvermont": "Silvermont",
    "znver2": "Zen 2",
    "znver3": "Zen 3",
    "znver4": "Zen 4",
    "btver2": "Jaguar",
    "cortex-a72": "Cortex-A72",
    "neoverse-n1": "Neoverse N1",
    "neoverse-n2": "Neoverse N2",
    "neoverse-v1": "Neoverse V1",
    "neoverse-v2": "Neoverse V2",
    "apple-m1": "Apple M1 to M4",  # LLVM has one model of them.
}
PAGE = """# Modelled cycles

Modelled, not measured. LLVM simulates the loop of a lookup or insert on each CPU, without cache misses and mispredicted
branches. A cell has the simulated cycles per lookup and, after the slash, the bound set by the CPU's width and
execution units. Divide the cycles by the clock rate in GHz for nanoseconds: 12 cycles are 4.6 ns at 2.6 GHz. Real CPUs
are slower than their models: on Zen 4, AVX-512 takes [1.51 ns](../performance.md) for a lookup modelled as 3.5 cycles.

Neoverse N1 is in AWS Graviton 2 and Ampere Altra, N2 in Azure Cobalt 100, V1 in Graviton 3, V2 in Graviton 4, Google
Axion and NVIDIA Grace. LLVM has one model for Apple M1 to M4, and none for Zen 5.

Written by `scripts/check mca` on {date}: {mca}, {rustc}."""
# The block of a hash is found by one widening multiplication. A function without one is called with the block.
LOOKUP = r"mulx?q|umulh"
RETURN = r"ret\w*"
ITERATIONS = 1000
LIMIT = 1.03


class Repeated(Function):
    """A function that its caller calls in a loop: its return jumps to its start.

    Each call's arguments are new, so that it does not wait for what the call before left in their registers.
    """

    ARGUMENTS = ["movl $1, %edi", "movl $1, %esi", "movl $1, %edx"]

    def __init__(self, function):
        super().__init__(function.name)
        self.lines = [*self.ARGUMENTS, *function.lines]
        self.labels = {label: at + len(self.ARGUMENTS) for label, at in function.labels.items()}

    def next(self, at):
        return [0] if self.has(at, RETURN) else super().next(at)


def shortest_loop(all_functions, path, register):
    """The number of lookups in the loop, and its text for llvm-mca; or none, and the reasons."""
    found, wrong = [], []
    for function in named(path, all_functions):
        per_lookup = LOOKUP
        if not any(function.has(at, LOOKUP) for at in range(len(function.lines))):
            function, per_lookup = Repeated(function), RETURN
        for at, line in enumerate(function.lines):
            loop = function.loop(at) if re.search(register, line) else []
            lookups = sum(function.has(at, per_lookup) for at in loop)
            reasons = [*faults(function, loop, [])]
            wrong += reasons
            if lookups and not reasons:
                lines = [function.lines[at] for at in loop]
                # Branch targets lie outside of the text: keep only their labels.
                labels = {line.split()[-1] for line in lines} & function.labels.keys()
                found.append((lookups, [*(f"{label}:" for label in labels), *lines]))
    if not found:
        return 0, "; ".join(dict.fromkeys(wrong)) or "no such loop"
    lookups, lines = min(found, key=lambda loop: len(loop[1]))
    return lookups, "\n".join(lines)


def modelled(target, cpu, lookups, text):
    """The cycles per lookup: simulated, and the bound."""
    command = ["llvm-mca-22", f"-mtriple={target}", f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-json"]
    # It warns that a return does not change what runs next.
    run = subprocess.run(command, input=text, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{run.stderr}{text}")
    summary = json.loads(run.stdout)["CodeRegions"][0]["SummaryView"]
    return summary["TotalCycles"] / ITERATIONS / lookups, summary["BlockRThroughput"] / lookups


def assembly(directory, target):
    return [*functions([*Path(directory, target).glob("*/release/deps/*.s")])]


def main(directory, base=None):
    failed = False
    if not base:
        mca, rustc = (subprocess.check_output([tool, "--version"], text=True) for tool in ("llvm-mca-22", "rustc"))
        print(PAGE.format(date=date.today(), mca=re.search(r"LLVM version \S+", mca)[0], rustc=rustc.split(" (")[0]))
    for kernel, (target, register, cpus, rows) in KERNELS.items():
        cpus = cpus.split()
        ours = assembly(directory, target)
        theirs = assembly(base, target) if base else []
        if not ours:
            continue
        print(f"\n| {kernel} | " + " | ".join(NAMES[cpu] for cpu in cpus) + " |")
        print("|---" * (1 + len(cpus)) + "|")
        for row, path in rows.items():
            lookups, text = shortest_loop(ours, path, register)
            old_lookups, old_text = shortest_loop(theirs, path, register)
            if not lookups:
                print(f"FAILED {kernel} {row} ({path}): {text}", file=sys.stderr)
                failed = True
                continue
            cells = []
            for cpu in cpus:
                cycles, bound = modelled(target, cpu, lookups, text)
                cells.append(f"{cycles:.1f} / {bound:.1f}")
                if old_lookups:
                    ratio = round(cycles / modelled(target, cpu, old_lookups, old_text)[0], 2)
                    cells[-1] += f" (× {ratio:.2f}{'!' * (ratio > LIMIT)})"
                    failed |= ratio > LIMIT
            print(f"| {row} | " + " | ".join(cells) + " |")
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
