"""The x86-64 instructions that occur in kernels, after volume 2 of Intel's manual."""

import re

import capstone
from capstone.x86 import X86_OP_IMM, X86_OP_MEM
from z3 import ULT, BitVec, BoolVal, Concat, Extract, If, LShR, Not, Or, RotateLeft, RotateRight, SignExt, simplify

import machine
from definition import high_product, product
from machine import RETURN, STACK, UNKNOWN, Refused, byte_of, each, extended, joined, low, number, parts_of, truth, value

GENERAL = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
# The register and the bits that each name stands for.
NAMES = {}
for name in GENERAL:
    of_8086 = ["e" + name[1:], name[1:], name[1:].rstrip("x") + "l"]
    parts = [name + "d", name + "w", name + "b"] if name[1:].isdigit() else of_8086
    NAMES |= {part: (name, bits) for part, bits in zip([name, *parts], (64, 32, 16, 8))}


class Machine(machine.Machine):
    DISASSEMBLER, LONGEST = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64), 15
    DISASSEMBLER.detail = True
    RED_ZONE, STACK_ALIGNMENT = 128, 8
    ANSWER, STACK_POINTER, PRESERVED = "rax", "rsp", ["rbx", "rbp", "rsp", *GENERAL[12:]]

    def __init__(self, memory, arguments):
        self.memory = memory
        self.general = {name: BitVec(f"initial {name}", 64) for name in GENERAL}
        self.general |= dict(zip(("rdi", "rsi"), arguments), rsp=value(STACK))
        self.vectors = [BitVec(f"initial zmm{index}", 512) for index in range(32)]
        self.masks = [BitVec(f"initial k{index}", 64) for index in range(8)]
        self.zero = self.carry = None
        self.before = self.preserved()
        self.push(value(RETURN))

    def push(self, term):
        self.general["rsp"] = simplify(self.general["rsp"] - 8)
        self.memory.store(self.general["rsp"], term)

    def pop(self):
        self.general["rsp"] = simplify(self.general["rsp"] + 8)
        return self.memory.load(self.general["rsp"] - 8, 8)

    def read_register(self, name):
        if name in NAMES:
            return low(self.general[NAMES[name][0]], NAMES[name][1])
        if name[0] == "k":
            return self.masks[int(name[1:])]
        return low(self.vectors[int(name[3:])], {"x": 128, "y": 256, "z": 512}[name[0]])

    def name_of(self, operand):
        return self.instruction.reg_name(operand.reg) if operand.type not in (X86_OP_IMM, X86_OP_MEM) else ""

    def address(self, operand):
        memory, address = operand.mem, value(operand.mem.disp)
        for register, scale in ((memory.base, 1), (memory.index, memory.scale)):
            if register:
                name = self.instruction.reg_name(register)
                address += (value(self.next) if name == "rip" else self.read_register(name)) * scale
        if memory.segment:
            raise Refused(UNKNOWN)
        return simplify(address)

    def is_aligned(self, operand):
        """Whether it must be. With AVX only what says so; before it, all vectors but what says that it need not be."""
        name = self.instruction.mnemonic
        is_of_avx = name[0] == "v"
        return operand.size >= 16 and (name[4:7] in ("dqa", "aps") if is_of_avx else name[3:] not in ("dqu", "ups"))

    def read(self, operand, bits=None):
        if operand.type == X86_OP_IMM:
            return value(operand.imm, bits or 8)
        if operand.type == X86_OP_MEM:
            term = self.memory.load(self.address(operand), operand.size, self.is_aligned(operand))
            broadcast = re.search(r"\{1to(\d+)\}", self.instruction.op_str)
            return joined([term] * int(broadcast[1])) if broadcast else term
        return self.read_register(self.name_of(operand))

    def write(self, operand, term):
        name = self.name_of(operand)
        if not name:
            self.memory.store(self.address(operand), simplify(term), self.is_aligned(operand))
        elif name in NAMES:
            register, bits = NAMES[name]
            if bits < 32:
                term = Concat(Extract(63, bits, self.general[register]), term)
            self.general[register] = simplify(extended(term, 64))
        elif name[0] == "k":
            self.masks[int(name[1:])] = simplify(extended(term, 64))
        else:
            index = int(name[3:])
            if self.instruction.mnemonic[0] != "v":
                # Instructions older than AVX leave the upper bits.
                term = Concat(Extract(511, 128, self.vectors[index]), term)
            self.vectors[index] = simplify(extended(term, 512))

    def condition(self, suffix):
        zero, carry = self.zero, self.carry
        if zero is None:
            raise Refused("depends on flags that the instructions before it leave undefined")
        return {"e": zero, "ne": Not(zero), "b": carry, "ae": Not(carry), "a": Not(Or(carry, zero))}[suffix]

    def step(self, name, operands):
        first, second, third = (*operands, None, None, None)[:3]
        bits = 8 * first.size if operands else 0
        if name in ARITHMETIC:
            a, b = self.read(first), self.read(second, bits)
            result = simplify(ARITHMETIC[name](a, b))
            self.zero = result == 0
            self.carry = ULT(result, a) if name == "add" else ULT(a, b) if name in ("sub", "cmp") else BoolVal(False)
            if name not in ("cmp", "test"):
                self.write(first, result)
        elif name in ("shl", "shr"):
            a, count = self.read(first), extended(self.read(second), bits) & (63 if bits == 64 else 31)
            self.write(first, a << count if name == "shl" else LShR(a, count))
            self.zero = self.carry = None
        elif name in ("mov", "movabs", "movzx"):
            self.write(first, extended(self.read(second, bits), bits))
        elif name == "movsxd":
            self.write(first, SignExt(32, self.read(second)))
        elif name == "lea":
            self.write(first, low(self.address(second), bits))
        elif name == "not":
            self.write(first, ~self.read(first))
        elif name == "imul" and second and not third and bits == 64:
            self.write(first, product(self.read(first), self.read(second)))
            self.zero = self.carry = None
        elif name == "mul" and bits == 64:
            a, b = self.general["rax"], self.read(first)
            self.general |= {"rax": product(a, b), "rdx": high_product(a, b)}
            self.zero = self.carry = None
        elif name == "mulx" and bits == 64:
            a, b = self.general["rdx"], self.read(third)
            self.write(second, product(a, b))
            self.write(first, high_product(a, b))
        elif name == "push":
            self.push(self.read(first, 64))
        elif name == "pop":
            self.write(first, self.pop())
        elif name == "call":
            target = number(self.read(first, 64))
            self.push(value(self.next))
            self.next = target
        elif name == "ret":
            self.next = number(self.pop())
        elif name == "jmp" or name[0] == "j" and truth(self.condition(name[1:])):
            self.next = number(self.read(first, 64))
        elif name.startswith("set"):
            self.write(first, If(self.condition(name[3:]), value(1, 8), value(0, 8)))
        elif name.startswith("cmov"):
            self.write(first, If(self.condition(name[4:]), self.read(second), self.read(first)))
        elif name in ("kmovw", "kmovd"):
            self.write(first, low(self.read(second), 16 if name == "kmovw" else 32))
        elif name == "kortestw":
            either = low(self.read(first) | self.read(second), 16)
            self.zero, self.carry = either == 0, either == 0xFFFF
        elif name == "vzeroupper":
            self.vectors[:16] = [extended(low(vector, 128), 512) for vector in self.vectors[:16]]
        elif name[0] != "j" and name != "nop":
            self.vector(name.removeprefix("v"), operands)

    def vector(self, name, operands):
        first, last = operands[0], operands[-1]
        writemask = next((name for name in map(self.name_of, operands[1:]) if name.startswith("k")), None)
        if writemask and (name not in VECTOR or name[-1] != "q" or "{z}" in self.instruction.op_str):
            raise Refused(UNKNOWN)
        if name in ("movdqa", "movdqu", "movdqa64", "movdqu64", "movaps"):
            self.write(first, self.read(last))
        elif name == "movq":
            self.write(first, extended(low(self.read(last), 64), 8 * first.size))
        elif name in ("movmskps", "pmovmskb"):
            signs = [part >> part.size() - 1 for part in parts_of(self.read(last), 32 if name == "movmskps" else 8)]
            self.write(first, extended(joined([low(sign, 1) for sign in signs]), 8 * first.size))
        elif name == "ptest":
            a, b = self.read(first), self.read(last)
            self.zero, self.carry = a & b == 0, ~a & b == 0
        elif name == "extracti128":
            self.write(first, parts_of(self.read(operands[1]), 128)[number(self.read(last)) & 1])
        elif name == "pbroadcastq":
            self.write(first, joined([low(self.read(last), 64)] * (first.size // 8)))
        elif (relation := re.fullmatch("p(cmp|test)(.*)([bdq])", name)):
            bits, holds = {"b": 8, "d": 32, "q": 64}[relation[3]], RELATION[relation[2]]
            pairs = zip(*(parts_of(self.read(operand), bits) for operand in operands[-2:]), strict=True)
            bits = 1 if self.name_of(first).startswith("k") else bits
            self.write(first, joined([If(holds(a, b), value(-1, bits), value(0, bits)) for a, b in pairs]))
        else:
            # Those of AVX do not read what they write, with one exception.
            reads_first = self.instruction.mnemonic[0] != "v" or name == "pternlogq"
            sources = [first] * reads_first + [operand for operand in operands[1:] if self.name_of(operand) != writemask]
            result = VECTOR[name](*map(self.read, sources))
            if writemask:
                triples = zip(parts_of(self.read_register(writemask), 1), parts_of(result, 64), parts_of(self.read(first), 64))
                result = joined([If(bit == 1, new, old) for bit, new, old in triples])
            self.write(first, result)


def each_128_bits(function):
    return lambda a, b, *rest: joined([function(x, y, *rest) for x, y in zip(parts_of(a, 128), parts_of(b, 128), strict=True)])


def shuffled_bytes(table, control):
    return joined([If(index >= 0, byte_of(table, index & 15), value(0, 8)) for index in parts_of(control, 8)])


def shuffled_singles(a, b, control):
    sources = [parts_of(source, 32) for source in (a, a, b, b)]
    return joined([source[number(control) >> 2 * i & 3] for i, source in enumerate(sources)])


def shifted_words(a, count):
    # An immediate, not a vector.
    if count.size() != 8:
        raise Refused(UNKNOWN)
    return each(16, lambda part: LShR(part, number(count)))(a)


def blended_words(a, b, control):
    pairs = zip(parts_of(a, 16), parts_of(b, 16))
    return joined([pair[number(control) >> i & 1] for i, pair in enumerate(pairs)])


def ternary(a, b, c, control):
    result = value(0, a.size())
    for row in range(8):
        if number(control) >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


ARITHMETIC = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "cmp": lambda a, b: a - b, "and": lambda a, b: a & b,
    "test": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}
RELATION = {
    "eq": lambda a, b: a == b, "neq": lambda a, b: a != b, "ltu": ULT, "m": lambda a, b: a & b != 0,
    "nm": lambda a, b: a & b == 0,
}
VECTOR = {
    "psrlvq": each(64, LShR), "psllvq": each(64, lambda a, b: a << b), "psllvw": each(16, lambda a, b: a << b),
    "prolvq": each(64, RotateLeft), "prorvq": each(64, RotateRight), "pmullw": each(16, lambda a, b: a * b),
    "psrlw": shifted_words,
    "pshufb": each_128_bits(shuffled_bytes), "shufps": each_128_bits(shuffled_singles),
    "punpcklqdq": each_128_bits(lambda a, b: Concat(low(b, 64), low(a, 64))),
    "pblendw": each_128_bits(blended_words), "pternlogq": ternary, "pand": lambda a, b: a & b, "pandn": lambda a, b: ~a & b,
    "por": lambda a, b: a | b, "pxor": lambda a, b: a ^ b,
}
VECTOR["pshufd"] = lambda a, control: VECTOR["shufps"](a, a, control)
VECTOR |= {"pandq": VECTOR["pand"], "porq": VECTOR["por"], "xorps": VECTOR["pxor"]}
