#!/usr/bin/env python3
"""Checks the instructions of functions and of their loops in a compiler's assembly.

loops.py BUILD FILE...    checks the lines of standard input that begin with BUILD, each of the form

    BUILD FUNCTION SCOPE MNEMONIC...

    SCOPE is `whole`, or `loop`: the shortest cycle from each instruction of the first mnemonic back to itself.
    MNEMONICs are regular expressions; each must match an instruction in the scope. The scope must not call, divide or
    panic.
    FUNCTION is the end of a Rust path, such as `kernel::avx2::contains`, or an unmangled name.
"""

import re
import sys
from pathlib import Path

# All that has instructions; statics and constants have other types.
FUNCTION = re.compile(r"^\t\.type\t(\S+),@function\n(.*?)^\.Lfunc_end", re.M | re.S)
CALL = r"call\w*|bl|blr"
DIVISION = r"i?div\w*|[us]div"
PANIC = r"panic|slice_index|unwrap|expect_failed"
JUMP = r"j\w+|b|b\.\w+|cbn?z|tbn?z"
RETURN = r"ret\w*"
NO_FALL_THROUGH = rf"jmpq?|b|br|{RETURN}|ud2|brk"


class Function:
    """The instructions of a function and, for each, the indices of those that can run next."""

    def __init__(self, text):
        self.text = text
        self.lines, self.next, labels = [], [], {}
        for line in text.splitlines():
            line = " ".join(line.split("//")[0].split())
            if line.endswith(":"):
                labels[line[:-1]] = len(self.lines)
            elif line and line[0] not in ".#":
                self.lines.append(line)
        for at, line in enumerate(self.lines):
            target = labels.get(line.split()[-1])
            jump = [target] if target is not None and self.has(at, JUMP) else []
            fall_through = [] if self.has(at, NO_FALL_THROUGH) or at + 1 == len(self.lines) else [at + 1]
            self.next.append(jump + fall_through)

    def has(self, at, mnemonic):
        return re.fullmatch(mnemonic, self.lines[at].split()[0]) is not None

    def loop(self, through):
        """The shortest cycle through an instruction, in order; empty if there is none."""
        paths, seen = [[through]], set()
        for path in paths:
            for after in self.next[path[-1]]:
                if after == through:
                    return path
                if after not in seen:
                    seen.add(after)
                    paths.append([*path, after])
        return []

    def scope(self, scope, mnemonic):
        if scope == "whole":
            return [range(len(self.lines))]
        loops = [self.loop(at) for at in range(len(self.lines)) if self.has(at, mnemonic)]
        return sorted({frozenset(loop): loop for loop in loops if loop}.values(), key=len)

    def leads_to(self, at):
        """The first instruction from here that calls, returns or branches conditionally."""
        while not self.has(at, f"{CALL}|{RETURN}") and len(self.next[at]) == 1:
            at = self.next[at][0]
        return self.lines[at]

    def faults(self, part, mnemonics=()):
        missing = [f"no {mnemonic}" for mnemonic in mnemonics if not any(self.has(at, mnemonic) for at in part)]
        slow = [f"calls or divides: {self.lines[at]}" for at in part if self.has(at, f"{CALL}|{DIVISION}")]
        reached = [line for at in part for line in [self.lines[at], *map(self.leads_to, self.next[at])]]
        return missing + slow + [f"can panic: {line}" for line in reached if re.search(PANIC, line)]


def functions(files, path):
    """The functions, or instances of a generic function, with this path."""
    mangled = "".join(f"{len(name)}{name}" for name in path.split("::"))
    # A hash follows, or the types of a generic instance.
    pattern = rf".*{mangled}(17h[0-9a-f]+E|[A-Z].*)?" if "::" in path else re.escape(path)
    found = [pair for file in files for pair in FUNCTION.findall(Path(file).read_text())]
    return [Function(text) for name, text in found if re.fullmatch(pattern, name)]


def reports(build, *files):
    for path, scope, *mnemonics in (row.split()[1:] for row in sys.stdin if row.split()[:1] == [build]):
        instances = functions(files, path)
        if not instances:
            yield f"FAILED {build}: function {path} not found"
        for function in instances:
            parts = function.scope(scope, mnemonics[0])
            faults = [fault for part in parts for fault in function.faults(part, mnemonics)]
            if parts and not faults:
                yield f"ok {build}: {path} ({scope}, {' and '.join(str(len(part)) for part in parts)} instructions)"
            else:
                reasons = "; ".join(dict.fromkeys(faults)) or f"no loop with {mnemonics[0]}"
                yield f"FAILED {build}: {path} ({scope}) {reasons}\n{function.text}"


if __name__ == "__main__":
    found = list(reports(*sys.argv[1:]))
    print(*found, sep="\n")
    sys.exit(any(report.startswith("FAILED") for report in found))
