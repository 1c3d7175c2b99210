#!/usr/bin/env python3
"""Checks the documentation, without a network: each link leads to a file, and its #anchor exists there.

links.py markdown          in the Markdown files under version control, whose code blocks must be tagged or doctests
links.py names             the tests, checks and files that docs/testing.md and CONTRIBUTING.md name exist, and docs/testing.md
                           names them all
links.py rustdoc FOLDER    in the crate's pages that `cargo doc` has written to FOLDER
links.py site FOLDER       in the pages that mdbook has written to FOLDER
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

# What begins or ends a code block, also in a quotation or a list, and its tag.
FENCE = re.compile(r" *(?:> ?|[-*] +)*(`{3,}|~{3,}) *([^`]*?) *$")
# A list of names after their kind.
NAMES = re.compile(r"\b(check|fuzz)s? ((?:`[^`]+`(?:, and |, | and )?)+)".replace(" ", r"\s+"), re.I)
LINK = re.compile(r"(?:\]\(|^ {0,3}\[[^\]]+\]: *|\b(?:href|src|srcset)=\")<?([^\s)>\"]+)")


def prose_and_blocks(path):
    """(number, line) of each line of prose, (number, tag) of each code block, and the fence of a block that is not closed."""
    prose, blocks, fence = [], [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark = FENCE.match(line)
        if fence:
            fence = None if mark and mark[1].startswith(fence) and not mark[2] else fence
        elif mark:
            fence = mark[1]
            blocks.append((number, mark[2]))
        else:
            prose.append((number, line))
    return prose, blocks, fence


def broken_links(pages, files):
    """`pages` has the links of each page, with their places, and its anchors; `files` is all that links may lead to."""
    for path, (links, _) in pages.items():
        for place, link in links:
            if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
                continue
            target, _, anchor = link.partition("#")
            to = (path.parent / unquote(target)).resolve() if target else path
            if to not in files:
                yield f"{place}: there is no {link}"
            elif anchor and to in pages and unquote(anchor) not in pages[to][1]:
                yield f"{place}: there is no anchor {link}"


def markdown(root):
    names = subprocess.check_output(["git", "ls-files", "--cached", "--others", "--exclude-standard"], text=True)
    files = {root / name for name in names.splitlines() if Path(name).exists()}
    sources = [(file.parent, file.read_text()) for file in files if file.suffix == ".rs"]
    included = [(folder, name) for folder, text in sources for name in re.findall(r'doc = include_str!\("([^"]+)"\)', text)]
    doctested = {(folder / name).resolve() for folder, name in included}
    # Pages that are read elsewhere, as on crates.io, link to files by the repository's address.
    address = re.search(r"^repository = \"(.*?)(?:\.git)?/?\"", Path("Cargo.toml").read_text(), re.M)
    in_repository = re.escape(address[1] if address else "no address") + "/(?:blob|tree|raw)/[^/]+"
    pages = {}
    for path in sorted(file for file in files if file.suffix == ".md"):
        prose, blocks, fence = prose_and_blocks(path)
        if fence:
            yield f"{path}: the last code block is not closed"
        for number, tag in blocks:
            if path not in doctested and (not tag or tag.startswith("rust")):
                yield f"{path}:{number}: no doctest compiles this code block: tag it text, console, sh, c, ..."
        links = [
            (f"{path}:{number}", re.sub(in_repository, str(root), link))
            for number, line in prose
            # A link may be around code, but not in it.
            for link in LINK.findall(re.sub("`[^`]*`", "code", line))
        ]
        # As GitHub makes them of headings that have no links and are unique in their file.
        headings = [line.strip("# ").lower() for _, line in prose if re.match("#{1,6} ", line)]
        anchors = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}
        pages[path] = links, anchors
    yield from broken_links(pages, files | {folder for file in files for folder in file.parents})


def names(root):
    folders = {"test": "tests", "fuzz": "fuzz/fuzz_targets", "bench": "benches"}
    known = {kind: {path.stem for path in (root / folder).glob("*.rs")} for kind, folder in folders.items()}
    checks = "".join(path.read_text() for path in root.glob("scripts/checks/*.sh"))
    known["check"] = set(re.findall(r"^## (\w+)", checks, re.M))
    tracked = subprocess.check_output(["git", "ls-files", "*/tests/*", "*/src/test/*"], text=True)
    known["tests in"] = {match[0] for match in re.finditer(r"^\S+?/tests?(?=/)", tracked, re.M)}
    for page in (root / "docs/testing.md", root / "docs/CONTRIBUTING.md"):
        text = page.read_text()
        # Without asides and the targets of links.
        plain = re.sub(r"[\[\]]|\s*\([^()]*\)", "", text).replace("`scripts/check ", "check `")
        named = [(kind.lower(), name) for kind, list in NAMES.findall(plain) for name in re.findall(r"`([a-z_0-9]+)", list)]
        named += re.findall(r"--(test|bench) ([a-z_0-9]+)", text)
        if page.name == "testing.md":
            cells = re.findall(r"^\|.* \| (.*) \|$", NAMES.sub("", plain), re.M)
            named += [("test", name) for cell in cells for name in re.findall(r"(?<!crate )`([a-z_0-9]+)`(?! crate)", cell)]
            words = {word for code in re.findall("`([^`]+)`", text) for word in code.split()}
            for kind in ("test", "fuzz", "check", "tests in"):
                yield from (f"{page} does not name {kind} {name}" for name in sorted(known[kind] - words))
        yield from (f"{page}: there is no {kind} {name}" for kind, name in named if name not in known[kind])
        if page.name == "CONTRIBUTING.md":
            sources = [path for path in (root / "src").rglob("*.rs") if path.name not in ("lib.rs", "mod.rs")]
            yield from (f"{page} does not name src/**/{path.name}" for path in sources if f"`{path.name}`" not in text)
        for path in re.findall(r"`(\.?[\w-]+/[\w./-]*|[\w-]+\.(?:rs|toml|md|py))`", text):
            if "NAME" not in path and not (root / path).exists() and not any((root / "src").rglob(path)):
                yield f"{page}: there is no {path}"


def html(root, paths):
    pages = {}
    for path in sorted(paths):
        links = set(re.findall(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"", path.read_text()))
        # rustdoc percent-encodes some ids.
        ids = {unquote(found) for found in re.findall(r"\bid=\"([^\"]+)\"", path.read_text())}
        pages[path] = [(path, link) for link in sorted(links)], ids
    yield from broken_links(pages, {*root.rglob("*")})


if __name__ == "__main__":
    root = Path(*sys.argv[2:]).resolve()
    faults = {
        "markdown": markdown,
        "names": names,
        "rustdoc": lambda root: html(root, root.glob("bloomline/**/*.html")),
        # What cargo doc wrote is checked by itself.
        "site": lambda root: html(root, (path for path in root.rglob("*.html") if root / "api" not in path.parents)),
    }[sys.argv[1]](root)
    sys.exit("\n".join(faults).replace(f"{root}/", "") or None)
