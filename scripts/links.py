#!/usr/bin/env python3
"""Checks the links of the documentation, without a network.

links.py markdown                in each Markdown file under version control: a relative link leads to a file of the
                                 repository, an #anchor to a heading, and a code block that no doctest compiles is tagged
links.py rustdoc FOLDER          in what `cargo doc` has written: a relative link leads to a file, an #anchor to an id
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r" *(?:> ?|[-*] +)*(`{3,}|~{3,}) *([^`]*)$")
LINK = re.compile(r"\]\(<?([^\s)>]+)>?(?: +\"[^\"]*\")?\)|^ {0,3}\[[^\]]+\]: *<?([^\s>]+)|\b(?:href|src|srcset)=\"([^\"]+)\"")
# A link from a place outside of the repository to a file in it.
REPOSITORY = re.compile(r"^repository = \"(.*?)(?:\.git)?/?\"", re.M)


def read(path):
    return Path(path).read_text(encoding="utf-8")


def lines_and_fences(path):
    """(number, line) of prose, and (number, tag) of each code block."""
    prose, fences, fence = [], [], None
    for number, line in enumerate(read(path).splitlines(), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
            fences.append((number, mark[2].strip()))
        elif fence is None:
            prose.append((number, line))
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = None
    if fence is not None:
        fences.append((number, "not closed"))
    return prose, fences


def links(path):
    for number, line in lines_and_fences(path)[0]:
        # A link may be around code, but not in it.
        for found in LINK.finditer(re.sub(r"`[^`]*`", "code", line)):
            yield number, next(filter(None, found.groups()))


@cache
def anchors(path):
    """GitHub's names of the headings, and the ids given in HTML."""
    found = set()
    for _, line in lines_and_fences(path)[0]:
        found.update(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", line))
        heading = re.match(r"#{1,6} +(.*?)(?: +#+)?$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = 0
            while name in found:
                count += 1
                name = f"{slug}-{count}"
            found.add(name)
    return found


def is_external(link):
    return re.match(r"[a-z][a-z0-9+.-]*:|//", link) is not None


def markdown():
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    files = {Path(name).resolve() for name in tracked if name and Path(name).exists()}
    folders = {folder for file in files for folder in file.parents}
    root = Path.cwd().resolve()
    repository = REPOSITORY.search(read("Cargo.toml"))
    doctested = {
        (source.parent / name).resolve()
        for source in files
        if source.suffix == ".rs"
        for name in re.findall(r"doc = include_str!\(\"([^\"]+)\"\)", read(source))
    }
    for path in sorted(file for file in files if file.suffix == ".md"):
        name = path.relative_to(root)
        for number, tag in lines_and_fences(path)[1]:
            if tag == "not closed":
                yield f"{name}: the last code block is not closed"
            elif path not in doctested and (not tag or tag.startswith("rust")):
                yield f"{name}:{number}: no doctest compiles this code block: tag it text, console, sh, c, ..."
        for number, link in links(path):
            target, _, anchor = link.partition("#")
            to = (path.parent / unquote(target)).resolve() if target else path
            if is_external(link):
                in_repository = repository and re.match(
                    re.escape(repository[1]) + r"/(?:blob|tree|raw)/[^/]+/(.*)", target
                )
                if not in_repository:
                    continue
                to = root / unquote(in_repository[1])
            if to not in files and to not in folders:
                yield f"{name}:{number}: there is no {link}"
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                yield f"{name}:{number}: no heading of {target or name} is #{anchor}"


@cache
def ids(path):
    return set(re.findall(r"\bid=\"([^\"]+)\"", read(path)))


def rustdoc(folder):
    for path in sorted(Path(folder).rglob("*.html")):
        # Other pages are made by scripts in the browser.
        if path.relative_to(folder).parts[0] in ("src", "static.files") or path.parent == Path(folder):
            continue
        for link in sorted(set(re.findall(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"", read(path)))):
            target, _, anchor = link.partition("#")
            if is_external(link):
                continue
            to = (path.parent / unquote(target)).resolve() if target else path
            if to.is_dir():
                to /= "index.html"
            if not to.is_file():
                yield f"{path}: there is no {link}"
            # rustdoc percent-encodes some ids as well.
            elif anchor and "/src/" not in str(to) and not {anchor, unquote(anchor)} & ids(to):
                yield f"{path}: there is no id for {link}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["markdown"]:
            faults = markdown()
        case ["rustdoc", folder]:
            faults = rustdoc(folder)
        case _:
            sys.exit(__doc__)
    faults = [*faults]
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(1 if faults else 0)
