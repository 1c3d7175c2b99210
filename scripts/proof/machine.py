"""What the interpreters of machine code share. They run it on symbols, along one path: the hash and the block may choose
between two."""

from elftools.elf.elffile import ELFFile
from z3 import BitVec, BitVecVal, BoolVal, Concat, Extract, If, LShR, Not, Solver
from z3 import is_bv_value, sat, simplify, unknown

# Where the stack begins, the filter's own fields are, and the block of the hash is.
STACK, FILTER, BLOCK = 0x7FFF_0000_0000, 0x1000_0000_0000, 0x2000_0000_0000
FILTER_BYTES = 88
# Of a filter with one module.
N_BLOCKS = BitVec("number of blocks", 64)
RETURN = 0xFFFF_FFFF_FFFF_0000
RELATIVE = (8, 1027)  # relocations by the address that the program is loaded at, of x86-64 and AArch64
# Whether the branch is taken that the hash and the block decide, and under which condition, once it was reached.
taken, reached = [True], []


class Refused(Exception):
    """The code does what a kernel must not do, or what the interpreter does not know."""


UNKNOWN = "the interpreter does not know this: add it, from the vendor's manual"


def value(number, bits=64):
    return BitVecVal(number, bits)


def number(term):
    term = simplify(term)
    if not is_bv_value(term):
        raise Refused("what must be a constant depends on the hash, the block or the filter")
    return term.as_long()


def truth(condition):
    can_be = [is_possible(Solver(), case, N_BLOCKS != 0) for case in (condition, Not(condition))]
    if not all(can_be):
        return can_be[0]
    if reached or "filter" in condition.sexpr():
        raise Refused("the filter decides a branch, or the hash and the block decide two")
    reached.append(condition if taken[0] else Not(condition))
    return taken[0]


def is_possible(solver, *conditions):
    answer = solver.check(*conditions)
    if answer == unknown:
        raise Refused(f"z3 gives up: {solver.reason_unknown()}")
    return answer == sat


def extended(term, bits):
    missing = bits - term.size()
    return Concat(value(0, missing), term) if missing else term


def low(term, bits):
    return simplify(Extract(bits - 1, 0, term))


def joined(parts):
    """Of parts, the lowest first."""
    return simplify(Concat(*reversed(parts))) if len(parts) > 1 else simplify(parts[0])


def parts_of(term, bits):
    return [simplify(Extract(start + bits - 1, start, term)) for start in range(0, term.size(), bits)]


def each(bits, function):
    """A vector instruction that does the same in each element."""
    return lambda *vectors: joined([function(*parts) for parts in zip(*(parts_of(v, bits) for v in vectors), strict=True)])


def byte_of(table, index):
    """A byte of a vector that is used as a table."""
    return Extract(7, 0, LShR(table, extended(index, table.size()) << 3))


class Program:
    """An executable or shared object, loaded at 0: its code, and its constants as the dynamic linker leaves them."""

    def __init__(self, path):
        with open(path, "rb") as file:
            elf = ELFFile(file)
            self.architecture = elf["e_machine"]
            segments = list(elf.iter_segments())
            loaded = [segment for segment in segments if segment["p_type"] == "PT_LOAD"]
            self.bytes = bytearray(max(segment["p_vaddr"] + segment["p_memsz"] for segment in loaded))
            for segment in loaded:
                data = segment.data()
                self.bytes[segment["p_vaddr"] : segment["p_vaddr"] + len(data)] = data
            for section in elf.iter_sections():
                for entry in section.iter_relocations() if section["sh_type"] == "SHT_RELA" else ():
                    # What depends on other libraries becomes an address that cannot be read.
                    at, is_relative = entry["r_offset"], entry["r_info_type"] in RELATIVE
                    self.bytes[at : at + 8] = (entry["r_addend"] if is_relative else (1 << 64) - 1).to_bytes(8, "little")
            # Not writable, or only until relocated.
            self.constants = [
                range(segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"])
                for segment in segments
                if segment["p_type"] == "PT_GNU_RELRO" or segment in loaded and not segment["p_flags"] & 2
            ]
            symbols = elf.get_section_by_name(".symtab").iter_symbols()
            self.symbols = {symbol.name: symbol["st_value"] for symbol in symbols}

    def constant(self, at, size):
        if not any(at in place and at + size - 1 in place for place in self.constants):
            raise Refused(f"reads {size} bytes at {at:#x}, which are not constant")
        return bytes(self.bytes[at : at + size])


class Memory:
    """The stack, the filter, the block and the program's constants. All other memory is refused."""

    def __init__(self, program, words, writable=(), block=None):
        """`words` by address; `writable` are ranges besides the stack; `block` is the term of the block's address."""
        self.program, self.words, self.block, self.loaded = program, dict(words), block, []
        self.writable, self.lowest = (range(STACK - 4096, STACK), *writable), STACK

    def places(self, address):
        """All values that an address can have, each with its condition."""
        address = simplify(address)
        if self.block is not None and is_bv_value(simplify(address - self.block)):
            address = simplify(address - self.block + BLOCK)
        if is_bv_value(address):
            return [(BoolVal(True), address.as_long())]
        solver, places = Solver(), []
        while is_possible(solver):
            at = solver.model().eval(address, model_completion=True)
            places.append((address == at, at.as_long()))
            solver.add(address != at)
            if len(places) > 8:
                raise Refused(f"an address has more values than there are rotations: {address}")
        return places

    def check(self, at, size, is_aligned):
        """Blocks can begin anywhere, filters at 8 bytes. The stack is aligned to 16 bytes, constants as in the program."""
        is_of_stack = at in self.writable[0]
        if is_aligned and (at % size or at >= FILTER and not (is_of_stack and size == 16)):
            raise Refused(f"requires alignment, which {at:#x} does not have")
        if is_of_stack:
            self.lowest = min(self.lowest, at)

    def load(self, address, size, is_aligned=False):
        result = None
        for condition, at in self.places(address):
            self.check(at, size, is_aligned)
            self.loaded.append(at)
            if at < FILTER:
                part = value(int.from_bytes(self.program.constant(at, size), "little"), 8 * size)
            else:
                words = range(at & -8, at + size, 8)
                if not all(word in self.words for word in words):
                    raise Refused(f"reads {size} bytes at {at:#x}, which are neither an argument nor written before")
                start = 8 * (at & 7)
                part = Extract(start + 8 * size - 1, start, joined([self.words[word] for word in words]))
            result = part if result is None else If(condition, part, result)
        return simplify(result)

    def store(self, address, term, is_aligned=False):
        size = term.size() // 8
        for condition, at in self.places(address):
            self.check(at, size, is_aligned)
            if not any(at in place and at + size - 1 in place for place in self.writable):
                raise Refused(f"writes {size} bytes at {at:#x}, which it must not change")
            words = range(at & -8, at + size, 8)
            old = joined([self.words.get(word, BitVec(f"unwritten {word}", 64)) for word in words])
            start = 8 * (at & 7)
            ends = old.size() - start - 8 * size
            new = [Extract(start - 1, 0, old)] if start else []
            new += [term] + ([Extract(old.size() - 1, old.size() - ends, old)] if ends else [])
            for word, part in zip(words, parts_of(If(condition, joined(new), old), 64)):
                self.words[word] = part


class Machine:
    def run(self, entry):
        """Runs a function until it returns, and returns its answer."""
        at = entry
        while at != RETURN:
            code = self.memory.program.constant(at, self.LONGEST)
            instruction = next(self.DISASSEMBLER.disasm(code, at, 1), None)
            if instruction is None:
                raise Refused(f"no instruction at {at:#x}")
            self.instruction, self.next = instruction, at + instruction.size
            self.memory.lowest, stack_pointer = STACK, number(self.read_register(self.STACK_POINTER))
            try:
                self.step(instruction.mnemonic, instruction.operands)
                if number(self.read_register(self.STACK_POINTER)) % self.STACK_ALIGNMENT:
                    raise Refused("leaves the stack pointer unaligned")
                # Handlers of signals overwrite what lies below.
                if self.memory.lowest < min(stack_pointer, number(self.read_register(self.STACK_POINTER))) - self.RED_ZONE:
                    raise Refused(f"uses the stack at {self.memory.lowest:#x}, too far below the stack pointer")
            except Exception as error:
                reason = error if isinstance(error, Refused) else f"{UNKNOWN} ({error!r})"
                raise Refused(f"{at:#x}: {instruction.mnemonic} {instruction.op_str}: {reason}") from error
            at = self.next
        for name, term in self.preserved().items():
            if not term.eq(self.before[name]):
                raise Refused(f"{name} is not what it was before the call")
        return self.read_register(self.ANSWER)

    def preserved(self):
        return {name: self.read_register(name) for name in self.PRESERVED}
