"""Whether the interpreters tell the truth: what they computed, on random inputs, against what the CPU does."""

import random
import subprocess

from z3 import BitVec, is_bv_value, simplify, substitute

from definition import products
from machine import joined, number, value


def disagreement(terms, command, n_inputs):
    """An input for which a program returns other results than these terms, or None."""
    draw = random.Random(" ".join(command[-3:])).getrandbits
    # Full enough for both answers.
    cases = [[draw(64), *(draw(64) | draw(64) | draw(64) for _ in range(8))] for _ in range(n_inputs)]
    sent = b"".join(word.to_bytes(8, "little") for case in cases for word in case)
    theirs = subprocess.run(command, input=sent, capture_output=True, check=True).stdout
    for at, case in enumerate(cases):
        ours = number(evaluated(joined(terms), dict(zip(["hash", *(f"lane {i}" for i in range(8))], case))))
        if ours.to_bytes(65, "little") != theirs[65 * at : 65 * at + 65]:
            return f"hash {case[0]:#x}, lanes {list(map(hex, case[1:]))}"
    return None if len(theirs) == 65 * n_inputs else "which ends early"


def evaluated(term, words):
    """A term where these variables have these values, and products follow from their factors."""
    known = [(BitVec(name, 64), value(word)) for name, word in words.items()]
    for name, (half, *factors) in products.items():
        a, b = (simplify(substitute(factor, known)) for factor in factors)
        if is_bv_value(a) and is_bv_value(b):
            product = a.as_long() * b.as_long()
            known.append((BitVec(name, 64), value(product >> 64 if half == "high" else product)))
    return substitute(term, known)
