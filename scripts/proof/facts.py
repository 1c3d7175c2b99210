"""Proves the arithmetic that `unsafe` and the decoders rest on, for all values: docs/testing.md."""

import sys

from z3 import And, BitVecs, BitVecVal, BoolVal, If, Implies, Ints, Not, Solver, UDiv, ULE, ULT, URem, ZeroExt, unsat

failed = False


def prove(fact, claim):
    global failed
    solver = Solver()
    solver.add(Not(claim))
    proved = solver.check() == unsat
    failed |= not proved
    print(f"{fact}: {'proved' if proved else 'NOT PROVED'}", flush=True)


def block_of_a_hash():
    hash, n, index, rest = Ints("hash n index rest")
    word = 2**64
    is_index = And(hash * n == index * word + rest, 0 <= rest, rest < word)
    prove("(hash × n) >> 64 is below n", Implies(And(0 <= hash, hash < word, n >= 1, is_index), And(0 <= index, index < n)))


def lanes_of_short_filters():
    """By trying all: a hash only chooses the block, which is below n_blocks."""
    avx2 = avx512 = True
    for n_lanes in (n for n in range(1, 64) if n % 8):
        stride = n_lanes & -n_lanes
        for first in range(0, n_lanes, stride):
            for i in range(8):
                defined = (first + i) % n_lanes
                # As `short_block` of each kernel computes it.
                step = i % n_lanes if n_lanes < 8 else i
                wrapped = [min(first + step, first + step - n_lanes & (1 << bits) - 1) for bits in (32, 64)]
                avx2 &= wrapped[0] == defined
                if n_lanes >= 8:
                    start = min(first, n_lanes - 8)
                    index = i + first - start
                    avx512 &= start + 8 <= n_lanes and (start + index if index < 8 else index - 8) == defined
                elif n_lanes >= 4:
                    index = wrapped[1] + (8 - (n_lanes - 4) if wrapped[1] >= 4 else 0)
                    avx512 &= index in (*range(4), *range(8, 12)) and (index if index < 4 else index - 8 + n_lanes - 4) == defined
                else:
                    avx512 &= wrapped[1] == defined
    prove("AVX2 gathers lane (s·b + i) mod L of short filters of L = 1 to 63 lanes", BoolVal(avx2))
    prove("AVX-512 loads lane (s·b + i) mod L of short filters of L = 1 to 63 lanes, and none past the last", BoolVal(avx512))


def folding():
    product, small, large, folded, factor, rest, of_large, of_folded = Ints("hash×n small large folded f rest of_large of_folded")
    word = 2**64
    is_small = And(product == small * word + rest, 0 <= rest, rest < word)
    is_large = And(factor * product == large * word + of_large, 0 <= of_large, of_large < word)
    is_folded = And(large == folded * factor + of_folded, 0 <= of_folded, of_folded < factor)
    claim = Implies(And(product >= 0, is_small, is_large, is_folded), folded == small)
    prove("((hash × f·n) >> 64) / f = (hash × n) >> 64", claim)


def sizes():
    for bits in (32, 64):
        most = (1 << bits - 1) - 1
        n_blocks, address = BitVecs("n_blocks address", bits)
        n_bytes = ZeroExt(bits, n_blocks) * 64 + 56
        fits = Implies(ULE(n_blocks, (most - 64 - 56) // 64), ULE(n_bytes, most))
        prove(f"the allocation of up to MAX_BLOCKS blocks fits an isize of {bits} bits", fits)
        offset = URem(-address, 64)
        prove(f"its first block begins at most 56 bytes on, with {bits} bits", Implies(address & 7 == 0, ULE(offset, 56)))
        size_bits, bit = BitVecs("size_bits bit", 64)
        n_bytes = (UDiv(size_bits, 64) + If(size_bits & 63 != 0, BitVecVal(1, 64), 0)) * 8
        is_stored = And(ULE(n_bytes, most), ULT(bit, size_bits))
        prove(f"each bit of a standard filter is in its bytes, with {bits} bits", Implies(is_stored, ULT(UDiv(bit, 8), n_bytes)))
    exactly = ZeroExt(8, size_bits) + 63 & ~63
    prove("the bytes of a standard filter do not overflow 64 bits", ZeroExt(8, n_bytes) * 8 == exactly)


block_of_a_hash()
lanes_of_short_filters()
folding()
sizes()
sys.exit(failed)
