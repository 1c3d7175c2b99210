"""Fails if files of a crate import each other, also through a `mod.rs`. Arguments: the folders of crates' sources."""
import graphlib, pathlib, re, sys
for folder in map(pathlib.Path, sys.argv[1:]):
    parts = {path: path.relative_to(folder).with_suffix("").parts for path in folder.rglob("*.rs")}
    files = {tuple(part for part in parts[path] if part not in ("mod", "lib", "main")): path for path in parts}
    imports = {module: set() for module in files}
    for module, path in files.items():
        code = re.sub(r"//.*|pub\(in [\w:]+\)|#\[cfg\(test\)\]\nmod tests \{[^\0]*", "", path.read_text())
        for start, names in re.findall(r"((?:\buse \w+|\bcrate|\bsuper|\bself)(?:::\w+)+)(?:::\{([^}]*))?", code):
            first, *rest = start.removeprefix("use ").split("::")
            base = {"crate": (), "self": module, "super": module[:-1]}.get(first, (*module, first))
            for name in names.split(","):
                to = (*base, *rest, name.strip().split("::")[0])
                found = next(to[:n] for n in range(len(to), -1, -1) if to[:n] in files)
                # Paths into other crates are found as the module itself.
                if found != module and (first in ("crate", "super") or found[:-1] == module):
                    imports[module].add(found)
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        sys.exit(f"{folder}: these files import each other: " + ", ".join("::".join(m) or "lib" for m in error.args[1]))
