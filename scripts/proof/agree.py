"""Whether the interpreters tell the truth: what they computed, on random inputs, against what the CPU does."""

import random
import subprocess
from functools import reduce

from z3 import is_bv, is_bv_value

from definition import products

# What z3's terms mean, of Python's integers. `bits` are those of the operands.
OPERATIONS = {
    "bvor": lambda bits, *parts: reduce(int.__or__, parts),
    "bvand": lambda bits, *parts: reduce(int.__and__, parts),
    "bvxor": lambda bits, *parts: reduce(int.__xor__, parts),
    "bvadd": lambda bits, *parts: sum(parts),
    "bvmul": lambda bits, a, b: a * b,
    "bvnot": lambda bits, a: ~a,
    "bvshl": lambda bits, a, b: a << min(b, bits),
    "bvlshr": lambda bits, a, b: a >> min(b, bits),
    "ext_rotate_left": lambda bits, a, b: a << b % bits | a >> bits - b % bits,
    "ext_rotate_right": lambda bits, a, b: a >> b % bits | a << bits - b % bits,
    "bvsle": lambda bits, a, b: a ^ 1 << bits - 1 <= b ^ 1 << bits - 1,
    "bvule": lambda bits, a, b: a <= b,
    "=": lambda bits, a, b: a == b,
    "not": lambda bits, a: not a,
    "and": lambda bits, *parts: all(parts),
    "or": lambda bits, *parts: any(parts),
    "if": lambda bits, condition, a, b: a if condition else b,
}


def evaluated(term, known):
    """A term's value for each input. `known` has those of variables, by name, and keeps those of terms, by identity."""
    name, identity = term.decl().name(), term.get_id()
    if name in known:
        return known[name]
    if identity not in known:
        known[identity] = list(values(term, name, known))
    return known[identity]


def values(term, name, known):
    if is_bv_value(term):
        return [term.as_long()] * len(known["hash"])
    if name in products:
        half, *factors = products[name]
        pairs = zip(*(evaluated(factor, known) for factor in factors))
        return [a * b >> 64 if half == "high" else a * b & (1 << 64) - 1 for a, b in pairs]
    parts = term.children()
    inputs = zip(*(evaluated(part, known) for part in parts))
    if name == "extract":
        high, low = term.params()
        return [part >> low & (1 << high - low + 1) - 1 for part, in inputs]
    if name == "concat":
        sizes = [part.size() for part in parts]
        return [reduce(lambda all, part: all << part[0] | part[1], zip(sizes, input), 0) for input in inputs]
    bits = parts[-1].size() if is_bv(parts[-1]) else 1
    compute, mask = OPERATIONS[name], (1 << bits) - 1
    return [compute(bits, *input) & mask if is_bv(term) else compute(bits, *input) for input in inputs]


def disagreement(results, command, n_inputs):
    """An input for which a program returns other results than these terms, with both, or None."""
    draw = random.Random(" ".join(command[-3:])).getrandbits
    # Full enough for both answers.
    hashes = [draw(64) for _ in range(n_inputs)]
    lanes = [[draw(64) | draw(64) | draw(64) for _ in range(n_inputs)] for _ in range(8)]
    known = {"hash": hashes} | {f"lane {i}": lane for i, lane in enumerate(lanes)}
    ours = list(zip(*(evaluated(term, known) for term in results)))
    cases = b"".join(word.to_bytes(8, "little") for case in zip(hashes, *lanes) for word in case)
    theirs = subprocess.run(command, input=cases, capture_output=True, check=True).stdout
    for case, (answer, *block) in enumerate(ours):
        result = bytes([answer]) + b"".join(lane.to_bytes(8, "little") for lane in block)
        if result != theirs[65 * case : 65 * case + 65]:
            return f"hash {hashes[case]:#x}, lanes {[hex(lane[case]) for lane in lanes]}"
    return None if len(theirs) == 65 * n_inputs else "which ends early"
