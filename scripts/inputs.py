#!/usr/bin/env python3
"""Whether a check must run again: a digest of what it depends on.

inputs.py CHECK       prints the digest; scripts/checked/CHECK has that with which the check last passed
inputs.py names       prints the public names of the core crate that are in it

In the digest are the files below, with those that are not under version control yet, and the core's public names:
functions with their signatures, types with their fields, variants and attributes, implementations of traits. Not in it:

- what the core's functions do, which the core's own tests hold;
- whether a type is Send, which its private fields decide; attributes of several lines; names that a macro makes;
- the version of the compiler and of Python's packages. The workflow runs these checks always, with the newest.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

FILES = {
    "datafusion": ["datafusion", "scripts/checks/datafusion.sh"],
    "engines": ["adapters", "scripts/checks/engines.sh"],
    "spark": ["python", "scripts/checks/python.sh"],
}
# The core's features and dependencies, and keys that must have the same hash in every language.
FILES_OF_ALL = ["Cargo.toml", "tests/golden/keys.tsv"]

# Needs code as rustfmt writes it, which .ci/run checks first. Implementations for private types are included.
NAMES = re.compile(
    r"""(?:^\ *\#\[[^\n]*\]\n)*
        (?: ^(\ *)pub\ (?:enum|trait)\ .*?^\1\}
          | ^\ *pub\ use\ .*?;$
          | ^\ *pub\ \w+:\ .*?,$
          | ^\ *type\ .*?;$
          | ^\ *(?:pub|(?:unsafe\ )?impl)[\ <].*?[;{}]$
          | ^\w+!.*?;$ )""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def names():
    for path in sorted(Path("src").rglob("*.rs")):
        lines = path.read_text(encoding="utf-8").splitlines()
        code = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
        yield from (found[0] for found in NAMES.finditer(code))


def files(roots):
    """Without git, as in an unpacked archive: all files that no tool made."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *roots]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        found = {Path(path) for path in listed if path}
    except (FileNotFoundError, subprocess.CalledProcessError):
        below = (path for root in map(Path, roots) for path in [root, *root.rglob("*")])
        made = {"target", "__pycache__"}
        found = {path for path in below if not any(part in made or part[0] == "." for part in path.parts)}
    return sorted(path.as_posix() for path in found if path.is_file())


def digest(check):
    roots = FILES[check] + FILES_OF_ALL
    listed = files(roots)
    public = [*names()]
    # What is not found would not be seen to change either.
    for root in roots:
        if not any(f"{name}/".startswith(f"{root}/") for name in listed):
            sys.exit(f"inputs.py: no files in {root}, so no digest for {check}")
    if len(public) < 100:
        sys.exit(f"inputs.py: only {len(public)} public names in src, so no digest for {check}")
    parts = [f"{name} {hashlib.sha256(Path(name).read_bytes()).hexdigest()}" for name in listed]
    return hashlib.sha256("\n".join(parts + public).encode()).hexdigest()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["names"]:
            print(*names(), sep="\n")
        case [check] if check in FILES:
            print(digest(check))
        case _:
            sys.exit(__doc__)
