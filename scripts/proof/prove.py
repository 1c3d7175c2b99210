"""Proves that the machine code of kernels equals the definition, for every hash and every block: docs/proof.md."""

import argparse
import functools
import itertools
import multiprocessing
import os
import subprocess
import sys

from z3 import BitVec, Concat, If, LShR, Or, SolverFor, is_true, simplify, substitute

import aarch64
import x86_64
from agree import disagreement
from definition import high_product, mask, words
from machine import BLOCK, FILTER, FILTER_BYTES, N_BLOCKS, Memory, Program, Refused
from machine import is_possible, low, number, reached, taken, value

# And the numbers of the kernels, as `src/kernel/mod.rs` lists them, and a filter's bytes.
MACHINES = {"EM_X86_64": (x86_64.Machine, range(5), FILTER_BYTES), "EM_AARCH64": (aarch64.Machine, range(3), 72)}
HASH = BitVec("hash", 64)
LANES = [BitVec(f"lane {i}", 64) for i in range(8)]
# The words of a filter are unknown, but for the fields that choose the kernel and k.
FIELDS = {FILTER + at: BitVec(f"filter {at}", 64) for at in range(0, FILTER_BYTES, 8)}
# Where accessors may leave a second answer.
ANSWER = range(0x3000_0000_0000, 0x3000_0000_0008)


class Kernels:
    """The functions of a program that look up and insert a hash. Accessors show where a filter has its fields."""

    def __init__(self, path):
        self.program = Program(path)
        self.interpreter, self.kernel_ids, bytes_of_filter = MACHINES[self.program.architecture]
        size = self.program.constant(self.program.symbols["FILTER_BYTES"], 8)
        assert int.from_bytes(size, "little") == bytes_of_filter, f"a filter has {size!r} bytes"
        # Where the assembly's constants are, of which a filter keeps the address. 1024 bytes for each k up to 8.
        statics = [at for name, at in self.program.symbols.items() if "7inlined9CONSTANTS" in name]
        self.constants = statics[0] if statics else None
        # `kernel` reads a table next, which needs a known kernel.
        self.places = {name: self.loads(name)[0] for name in ("kernel", "k", "keys")}
        # Of all modules, then of one.
        self.n_blocks = *self.loads("n_blocks"), *self.loads("n_modules")
        loaded = self.loads("contains", HASH)
        of_constants = [at for at in FIELDS if at in loaded] if statics else [None]
        # The fastest kernel first, because the others do without the constants.
        if not any(map(self.runs, itertools.product(self.kernel_ids, of_constants, loaded, (1, -1), FIELDS))):
            raise Refused(f"{path}: no kernel can be read; the last one is refused with {self.refused}")

    def machine(self, fields, second, writable=(), block=None):
        memory = Memory(self.program, fields, writable, block)
        return self.interpreter(memory, [value(FILTER), second])

    def loads(self, function, second=value(ANSWER.start)):
        """Where a function reads a filter, until it needs to know a field."""
        machine = self.machine(FIELDS, second, [ANSWER])
        try:
            machine.run(self.program.symbols[function])
        except Refused:
            pass
        return [at for at in machine.memory.loaded if at in range(FILTER, FILTER + FILTER_BYTES)]

    def runs(self, places):
        """Whether a kernel runs with the address of the constants, what is inlined of one module, and beside it of two,
        and the blocks there, for which there are no accessors."""
        kernel_id, self.places["constants"], self.places["one"], beside, self.blocks = places
        self.places["two"] = self.places["one"] + beside
        try:
            self.run(self.fields(kernel_id, 1), "contains")
            return True
        except Refused as refused:
            self.refused = refused
        return False

    def fields(self, kernel_id, k):
        memory = Memory(self.program, FIELDS, [range(FILTER, FILTER + FILTER_BYTES)])
        # Nothing is inlined of two modules, which is the number of the last kernel, `reference`.
        for name, field in (("kernel", kernel_id), ("one", kernel_id), ("two", self.kernel_ids[-1]), ("k", k)):
            memory.store(value(self.places[name]), value(field, 8))
        if self.places["constants"] is not None:
            memory.store(value(self.places["constants"]), value(self.constants + (k - 1) % 8 * 1024))
        return memory.words | dict.fromkeys(self.n_blocks, N_BLOCKS)

    def name(self, kernel_id):
        machine = self.machine(self.fields(kernel_id, 1), value(ANSWER.start), [ANSWER])
        start = number(machine.run(self.program.symbols["kernel"]))
        return self.program.constant(start, number(machine.memory.words[ANSWER.start])).decode()

    def run(self, fields, function):
        """The answer, and memory afterwards."""
        lanes = {BLOCK + 8 * i: lane for i, lane in enumerate(LANES)}
        keys = self.places["keys"]
        writable = [range(BLOCK, BLOCK + 64), range(keys, keys + 8)] if function == "insert" else []
        block = simplify(FIELDS[self.blocks] + (high_product(HASH, N_BLOCKS) << 6))
        for taken[0] in (True, False):
            reached.clear()
            machine = self.machine(fields | lanes, HASH, writable, block)
            after = low(machine.run(self.program.symbols[function]), 8), machine.memory.words
            if not reached:
                return after
            if taken[0]:
                (condition,), (answer, words) = reached, after
        merged = {at: If(condition, words.get(at, word), word) for at, word in after[1].items()}
        return If(condition, answer, after[0]), merged

    def results(self, kernel_id, k, function):
        """The answer and the lanes that a function leaves."""
        answer, after = self.run(self.fields(kernel_id, k), function)
        if function == "insert":
            is_known = low(self.machine(after, value(0)).run(self.program.symbols["keys"]), 8)
            if not is_true(simplify(is_known == 0)):
                raise Refused("leaves the number of keys known")
        return [answer] + [after[BLOCK + 8 * i] for i in range(8)]


def defined(k, function):
    """What `results` must equal."""
    masks, missing = mask(HASH, k), value(0)
    for bits, lane in zip(masks, LANES):
        missing |= bits & ~lane
    answer = missing == 0 if function == "contains" else missing != 0
    after = [lane | bits for lane, bits in zip(LANES, masks)] if function == "insert" else LANES
    return [If(answer, value(1, 8), value(0, 8)), *after]


def refutation(results, expected):
    """Inputs that show a difference, or None. Each rotation on its own: that is what tables are indexed by."""
    x, y = words(HASH)
    for rotation in range(8):
        split = x, Concat(value(rotation, 3), BitVec("below", 61))
        solver = SolverFor("QF_BV")
        pairs = [(substitute(a, split), substitute(b, split)) for a, b in zip(results, expected)]
        solver.add(Or([simplify(a) != simplify(b) for a, b in pairs]))
        if is_possible(solver):
            return counterexample(results, expected, x, y)
    return None


def counterexample(results, expected, x, y):
    """A hash, lanes, and what is defined for them. The second word is computed, so that the hash is a real one."""
    solver = SolverFor("QF_BV")
    solver.add(Or([a != b for a, b in zip(results, expected)]), y == (x ^ LShR(x, 32)) * 0xD6E8FEB86659FD93)
    if not is_possible(solver):
        raise Refused("no counterexample with these two words, so the proof must know more about their products")
    x, *rest = (solver.model().eval(term, model_completion=True).as_long() for term in (x, *LANES, *expected))
    lanes, after = (", ".join(f"{lane:#x}" for lane in lanes) for lanes in (rest[:8], rest[9:]))
    hash = x * pow(0x9E3779B97F4A7C15, -1, 1 << 64) % (1 << 64)
    return f"hash {hash:#x} and lanes {lanes}: the answer is {rest[8]}, and the lanes become {after}"


def check(path, kernel_id, function, inputs, runner):
    """Returns whether a function is proved for each k, and the report."""
    kernels = load(path)
    kernel = kernels.name(kernel_id)
    runs = inputs and kernel in available(path, runner)
    for k in range(1, 17):
        here = f"{path}: {kernel}, {function}, k = {k}"
        try:
            results = kernels.results(kernel_id, k, function)
            found = refutation(results, defined(k, function))
        except Refused as refused:
            return False, f"{here}: {refused}"
        if found:
            return False, f"{here}: not as defined for {found}"
        if runs and (case := disagreement(results, [*runner, path, kernel, str(k), function], inputs // 32)):
            return False, f"{here}: the interpreter computes what this CPU does not, {case}"
    agrees = f"agrees with the CPU on {inputs // 2:,} inputs" if runs else "not compared with a CPU"
    return True, f"{os.path.basename(path):10} {kernel:10} {function:9} proved for k = 1 to 16; {agrees}"


load = functools.cache(Kernels)


@functools.cache
def available(path, runner):
    """The kernels that this CPU has, or the one that is emulated."""
    if load(path).program.architecture != "EM_X86_64" and not runner:
        return []
    return subprocess.run([*runner, path], capture_output=True, check=True, text=True).stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM[:KERNEL,...]", help="and which kernels of it")
    parser.add_argument("--inputs", type=int, default=6400, help="random ones, on which each kernel is compared with the CPU")
    parser.add_argument("--runner", default="", help="what runs programs for AArch64")
    arguments = parser.parse_args()
    jobs = []
    for argument in arguments.programs:
        path, _, chosen = argument.partition(":")
        kernels = load(path)
        runner = tuple(arguments.runner.split()) if kernels.program.architecture == "EM_AARCH64" else ()
        kernel_ids = {kernels.name(kernel_id): kernel_id for kernel_id in kernels.kernel_ids}
        for name in chosen.split(",") if chosen else kernel_ids:
            jobs += [(path, kernel_ids[name], function, arguments.inputs, runner) for function in ("contains", "insert")]
    with multiprocessing.Pool() as pool:
        reports = pool.starmap(check, jobs, chunksize=1)
    for _, report in reports:
        print(report)
    sys.exit(not all(proved for proved, _ in reports))


if __name__ == "__main__":
    main()
