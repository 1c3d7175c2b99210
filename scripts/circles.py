"""Fails if files of a crate import each other, also through a `mod.rs`. Arguments: the folders of crates' sources."""
import graphlib, pathlib, re, sys
for folder in map(pathlib.Path, sys.argv[1:]):
    paths = {tuple(p.relative_to(folder).with_suffix("").parts): p for p in sorted(folder.rglob("*.rs"))}
    files = {tuple(part for part in name if part not in ("mod", "lib", "main")): p for name, p in paths.items()}
    imports = {module: set() for module in files}
    for module, path in files.items():
        text = re.sub(r"//.*|#\[cfg\(test\)\]\nmod tests \{[^\0]*", "", path.read_text())
        for path, names in re.findall(r"\b((?:(?:pub(?:\(\w+\))? )?use \w+|crate|super|self)(?:::\w+)+)(?:::\{([^}]*))?", text):
            first, *rest = path.removeprefix("use ").split()[-1].split("::")
            start = {"crate": (), "self": module, "super": module[:-1]}.get(first, (*module, first))
            for name in names.split(",") or [""]:
                to = (*start, *rest, name.strip().split("::")[0])
                found = next(to[:n] for n in range(len(to), -1, -1) if to[:n] in files)
                if found != module and (first in ("crate", "super") or found[:-1] == module): imports[module].add(found)
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        sys.exit(f"{folder}: these import each other: " + ", ".join("::".join(m) or "the root" for m in error.args[1]))
