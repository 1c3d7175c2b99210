"""Section 2 of docs/format.md, in the language of the proof."""

from z3 import BitVec, BitVecVal, If, LShR, simplify

# Products are opaque: the definition and the machine code have the same ones. By name: which half, and the factors.
products = {}


def product(a, b):
    """(a × b) modulo 2^64."""
    return _opaque("product", a, b)


def high_product(a, b):
    """(a × b) >> 64."""
    return _opaque("high", a, b)


def _opaque(half, a, b):
    a, b = sorted((simplify(a), simplify(b)), key=lambda factor: factor.sexpr())
    name = f"{half}({a.sexpr()}, {b.sexpr()})"
    products[name] = half, a, b
    return BitVec(name, 64)


def words(hash):
    x = product(hash, BitVecVal(0x9E3779B97F4A7C15, 64))
    y = product(x ^ LShR(x, 32), BitVecVal(0xD6E8FEB86659FD93, 64))
    return x, y


def mask(hash, k):
    x, y = words(hash)
    lanes = [BitVecVal(0, 64)] * 8
    for j in range(k):
        w = x if j < 8 else y
        for i in range(8):
            is_lane = (LShR(x, 61) + j) & 7 == i
            lanes[i] |= If(is_lane, BitVecVal(1, 64) << (LShR(w, 13 + 6 * i) & 63), 0)
    return lanes
