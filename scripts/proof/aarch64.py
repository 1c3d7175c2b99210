"""The AArch64 instructions that occur in kernels, after chapters C6 and C7 of Arm's manual."""

import capstone
from capstone import arm64
from capstone.arm64 import ARM64_OP_IMM, ARM64_OP_MEM
from z3 import ULT, BitVec, If, LShR, Not, SignExt, simplify

import machine
from definition import high_product, product
from machine import RETURN, STACK, UNKNOWN, Refused, byte_of, extended, joined, low, number, parts_of, truth, value

# Number and bits of a vector's elements.
ARRANGEMENTS = {
    getattr(arm64, f"ARM64_VAS_{count}{letter}"): (count, bits)
    for letter, bits in (("B", 8), ("H", 16), ("S", 32), ("D", 64))
    for count in (64 // bits, 128 // bits)
}


class Machine(machine.Machine):
    DISASSEMBLER, LONGEST = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM), 4
    DISASSEMBLER.detail = True
    RED_ZONE, STACK_ALIGNMENT = 0, 16
    ANSWER, STACK_POINTER = "x0", "sp"
    PRESERVED = ["sp", *(f"x{index}" for index in range(19, 30)), *(f"d{index}" for index in range(8, 16))]

    def __init__(self, memory, arguments):
        self.memory = memory
        self.general = [BitVec(f"initial x{index}", 64) for index in range(30)] + [value(RETURN), value(STACK)]
        self.general[: len(arguments)] = arguments
        self.vectors = [BitVec(f"initial v{index}", 128) for index in range(32)]
        self.before = self.preserved()

    def place(self, name):
        """The file, index and bits of a register."""
        name = {"sp": "x31", "fp": "x29", "lr": "x30"}.get(name, name)
        bits = {"w": 32, "x": 64, "b": 8, "h": 16, "s": 32, "d": 64, "q": 128, "v": 128}[name[0]]
        return self.general if name[0] in "wx" else self.vectors, int(name[1:]), bits

    def read_register(self, name):
        if name in ("xzr", "wzr"):
            return value(0, 64 if name[0] == "x" else 32)
        file, index, bits = self.place(name)
        return low(file[index], bits)

    def bits(self, operand):
        return 64 if operand.reg == arm64.ARM64_REG_XZR else self.place(self.instruction.reg_name(operand.reg))[2]

    def get(self, register):
        return self.read_register(self.instruction.reg_name(register))

    def set(self, operand, term):
        name = self.instruction.reg_name(operand.reg)
        if name not in ("xzr", "wzr"):
            file, index, _ = self.place(name)
            file[index] = simplify(extended(term, 128 if file is self.vectors else 64))

    def read(self, operand, bits):
        term = value(operand.imm & (1 << bits) - 1, bits) if operand.type == ARM64_OP_IMM else self.get(operand.reg)
        if operand.vas:
            count, element = ARRANGEMENTS[operand.vas]
            term = low(term, count * element)
        if operand.ext or operand.vector_index >= 0:
            raise Refused(UNKNOWN)
        shifts = {0: lambda a, _: a, arm64.ARM64_SFT_LSL: lambda a, count: a << count, arm64.ARM64_SFT_LSR: LShR}
        return simplify(shifts[operand.shift.type](term, operand.shift.value))

    def address(self, operands):
        operand = next(operand for operand in operands if operand.type == ARM64_OP_MEM)
        memory, base = operand.mem, self.get(operand.mem.base)
        address = base + memory.disp
        if memory.index:
            address += extended(self.get(memory.index), 64) << operand.shift.value
            if operand.ext not in (0, arm64.ARM64_EXT_UXTW):
                raise Refused(UNKNOWN)
        if self.instruction.writeback:
            after = [operand.imm for operand in operands if operand.type == ARM64_OP_IMM]
            file, index, _ = self.place(self.instruction.reg_name(memory.base))
            file[index] = simplify(base + after[0] if after else address)
            address = base if after else address
        return simplify(address)

    def condition(self):
        lower, equal = self.flags
        return {arm64.ARM64_CC_EQ: equal, arm64.ARM64_CC_NE: Not(equal), arm64.ARM64_CC_LO: lower,
                arm64.ARM64_CC_HS: Not(lower)}[self.instruction.cc]

    def step(self, name, operands):
        first = operands[0] if operands else None
        if name in ("ret", "b", "bl") or name.startswith("b."):
            target = self.general[30] if name == "ret" else self.read(first, 64)
            if name == "bl":
                self.general[30] = value(self.next)
            if not name.startswith("b.") or truth(self.condition()):
                self.next = number(target)
        elif name in ("cbz", "cbnz"):
            if truth((self.read(first, self.bits(first)) == 0) == (name == "cbz")):
                self.next = number(self.read(operands[1], 64))
        elif name in ("ldr", "ldp", "ldrb", "ldrsw", "str", "stp"):
            address = self.address(operands)
            for operand in operands[: 2 if name[2] == "p" else 1]:
                bits = {"ldrb": 8, "ldrsw": 32}.get(name, self.bits(operand))
                if name[0] == "l":
                    term = self.memory.load(address, bits // 8)
                    self.set(operand, SignExt(32, term) if name == "ldrsw" else term)
                else:
                    self.memory.store(address, low(self.get(operand.reg), bits))
                address = simplify(address + bits // 8)
        elif name == "cmp":
            a, b = (self.read(operand, self.bits(first)) for operand in operands)
            self.flags = ULT(a, b), a == b
        elif first.vas or self.instruction.reg_name(first.reg)[0] not in "wx":
            self.vector(name, operands)
        else:
            bits = self.bits(first)
            if name in ("mul", "umulh") and bits != 64:
                raise Refused(UNKNOWN)
            terms = [self.read(operand, bits) for operand in operands[1:]]
            if name == "movk":
                field = value(0xFFFF << operands[1].shift.value, bits)
                terms = [self.get(first.reg) & ~field | terms[0]]
            elif name == "cset":
                terms = [If(self.condition(), value(1, bits), value(0, bits))]
            elif name == "csel":
                terms = [If(self.condition(), *terms)]
            self.set(first, GENERAL[name](*terms))

    def vector(self, name, operands):
        first, last = operands[0], operands[-1]
        if first.vector_index >= 0:
            raise Refused(UNKNOWN)
        count, bits = ARRANGEMENTS[first.vas] if first.vas else (1, self.bits(first))
        if name in ("fmov", "mov"):
            self.set(first, low(extended(self.read(last, bits), 128), count * bits))
        elif name in ("movi", "dup"):
            self.set(first, joined([low(self.read(last, bits), bits)] * count))
        elif name == "ext":
            both = joined([self.read(operand, bits) for operand in operands[1:3]])
            self.set(first, low(LShR(both, 8 * last.imm), count * bits))
        elif name == "tbl":
            table = joined([self.get(operand.reg) for operand in operands[1:-1]])
            indices = parts_of(self.read(last, 8), 8)
            self.set(first, joined([If(ULT(i, table.size() // 8), byte_of(table, i), value(0, 8)) for i in indices]))
        elif name == "uqshrn":
            most = value((1 << bits) - 1, 2 * bits)
            shifted = [LShR(part, last.imm) for part in parts_of(self.read(operands[1], 2 * bits), 2 * bits)]
            self.set(first, joined([low(If(ULT(most, part), most, part), bits) for part in shifted]))
        else:
            sources = operands if name == "usra" else operands[1:]
            spread = lambda operand: [value(operand.imm, bits)] * count
            terms = [spread(o) if o.type == ARM64_OP_IMM else parts_of(self.read(o, bits), bits) for o in sources]
            self.set(first, joined([VECTOR[name](*parts) for parts in zip(*terms, strict=True)]))


def shifted_by_register(a, count):
    """`ushl`: to the left by the count's lowest byte, or to the right if that is negative."""
    count = SignExt(a.size() - 8, low(count, 8)) if a.size() > 8 else count
    return If(count >= 0, a << count, LShR(a, -count))


BOTH = {
    "and": lambda a, b: a & b, "orr": lambda a, b: a | b, "eor": lambda a, b: a ^ b, "bic": lambda a, b: a & ~b,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
}
GENERAL = BOTH | dict.fromkeys(("mov", "movk", "cset", "csel", "adrp", "fmov"), lambda a: a)
GENERAL |= {"lsr": lambda a, b: LShR(a, b & a.size() - 1), "mul": product, "umulh": high_product}
VECTOR = BOTH | {"ushl": shifted_by_register, "ushr": LShR, "usra": lambda a, b, count: a + LShR(b, count)}
