#!/usr/bin/env python3
"""api.py FOLDER: prints the public items, methods and implementations of traits, from `cargo doc`'s pages in FOLDER."""

import html
import re
import sys
from pathlib import Path

# What a type has from elsewhere: methods of slices, an aliased type, auto traits, which tests/api.rs asserts, and traits
# of all types.
OTHERS = re.compile(r'<h2 id="(?:aliased-type|(?:deref-methods|synthetic|blanket)-).*?(?=<h2 id="|\Z)', re.S)
CODE = re.compile(r'<pre class="rust item-decl">(.*?)</pre>|<h[34] class="code-header">(.*?)</h[34]>', re.S)
# Not the methods of traits, nor what says nothing.
LISTED = re.compile(r"pub |type |impl<|impl (?!StructuralPartialEq).* for ")


def text(code):
    """As on one line, however the page breaks it."""
    code = re.sub(r"<summary.*?</summary>|<.*?>|ⓘ", "", code, flags=re.S)
    return re.sub(r"(?<=\() |,? (?=\))", "", " ".join(html.unescape(code).split()))


lines = set()
for page in Path(sys.argv[1]).glob("bloomline/**/*.html"):
    *modules, item = page.relative_to(sys.argv[1]).with_suffix("").parts
    name = "::".join([*modules, item.partition(".")[2]])
    for declaration, part in CODE.findall(OTHERS.sub("", page.read_text())):
        if declaration or LISTED.match(part := text(part)):
            lines.add(f"{name}\t{text(declaration) or part}")
print("item\tdeclaration", *sorted(lines), sep="\n")
