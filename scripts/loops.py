#!/usr/bin/env python3
"""Checks the instructions of a function or of its loops in a compiler's assembly.

loops.py check BUILD FILE...    checks the lines of standard input that begin with BUILD, each of the form

    BUILD FUNCTION SCOPE MNEMONIC...

    SCOPE is `whole`, or `loop`: the shortest cycle from each instruction of the first mnemonic back to itself.
    MNEMONICs are regular expressions; each must match an instruction in the scope, which must not call, divide or panic.
    FUNCTION is the end of a Rust path, such as `kernel::avx2::contains`, or an unmangled name.
"""

import re
import sys

CALL = r"call\w*|bl|blr"
DIVISION = r"i?div\w*|[us]div"
PANIC = r"panic|slice_index|unwrap|expect_failed"
JUMP = r"j\w+|b|b\.\w+|cbn?z|tbn?z"
NO_RETURN = r"jmpq?|b|br|ret\w*|ud2|brk"


class Function:
    def __init__(self, name):
        self.name, self.lines, self.labels = name, [], {}

    def mnemonic(self, at):
        return self.lines[at].split()[0]

    def has(self, at, mnemonic):
        return re.fullmatch(mnemonic, self.mnemonic(at)) is not None

    def next(self, at):
        target = self.labels.get(self.lines[at].split()[-1])
        if target is not None and self.has(at, JUMP):
            yield target
        if at + 1 < len(self.lines) and not self.has(at, NO_RETURN):
            yield at + 1

    def loop(self, through):
        """The shortest cycle through an instruction, in order; empty if there is none."""
        came_from, reached = {}, [through]
        for at in reached:
            for after in self.next(at):
                if after == through:
                    cycle = [at]
                    while cycle[-1] != through:
                        cycle.append(came_from[cycle[-1]])
                    return cycle[::-1]
                if after not in came_from:
                    came_from[after] = at
                    reached.append(after)
        return []

    def loops(self, mnemonic):
        loops = (self.loop(at) for at in range(len(self.lines)) if self.has(at, mnemonic))
        return sorted({tuple(sorted(loop)): loop for loop in loops if loop}.values(), key=len)

    def leads_to(self, at):
        """The first instruction from here that calls, returns or branches conditionally."""
        while not self.has(at, f"{CALL}|{NO_RETURN}") or self.has(at, "jmp|b"):
            after = [*self.next(at)]
            if len(after) != 1:
                break
            at = after[0]
        return self.lines[at]

    def text(self, part):
        labels = {at: label for label, at in self.labels.items() if label.startswith(".LBB")}
        return "\n".join(
            (f"{labels[at]}:\n" if at in labels else "") + f"    {self.lines[at]}" for at in part
        )


def functions(files):
    for file in files:
        function = None
        for line in open(file):
            line = line.split("//")[0].strip()
            label = re.fullmatch(r"([^\s:]+):", line)
            if label and not label[1].startswith(".L"):
                function = Function(label[1])
            elif label and label[1].startswith(".Lfunc_end") and function:
                yield function
                function = None
            elif label and function:
                function.labels[label[1]] = len(function.lines)
            elif function and line and line[0] not in ".#":
                function.lines.append(" ".join(line.split()))


def named(path, functions):
    mangled = "".join(f"{len(name)}{name}" for name in path.split("::"))
    # A hash follows, or the types of a generic instance.
    pattern = rf".*{mangled}(17h[0-9a-f]+E|[A-Z].*)?" if "::" in path else re.escape(path)
    return [function for function in functions if re.fullmatch(pattern, function.name)]


def faults(function, part, mnemonics):
    for mnemonic in mnemonics:
        if not any(function.has(at, mnemonic) for at in part):
            yield f"no {mnemonic}"
    for what, mnemonic in ("calls", CALL), ("divides", DIVISION):
        for at in part:
            if function.has(at, mnemonic):
                yield f"{what}: {function.lines[at]}"
    for at in part:
        for line in [function.lines[at], *map(function.leads_to, function.next(at))]:
            if re.search(PANIC, line):
                yield f"can panic: {line}"


def check(build, files):
    failed = False
    all_functions = [*functions(files)]
    for row in sys.stdin:
        row = row.split()
        if not row or row[0] != build:
            continue
        _, path, scope, *mnemonics = row
        found = named(path, all_functions)
        if not found:
            print(f"FAILED {build}: function {path} not found")
            failed = True
        for function in found:
            everything = range(len(function.lines))
            parts = [everything] if scope == "whole" else function.loops(mnemonics[0])
            wrong = [] if parts else [f"no loop with {mnemonics[0]}"]
            for part in parts:
                wrong += faults(function, part, mnemonics)
            if wrong:
                failed = True
                print(f"FAILED {build}: {path} ({scope}) " + "; ".join(dict.fromkeys(wrong)))
                print(function.text(everything))
            else:
                sizes = " and ".join(str(len(part)) for part in parts)
                print(f"ok {build}: {path} ({scope}, {sizes} instructions)")
    return failed


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", build, *files]:
            sys.exit(check(build, files))
        case _:
            sys.exit(__doc__)
