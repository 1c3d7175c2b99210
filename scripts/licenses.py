"""Prints the licence texts of all crates that a library or program contains, and of Rust's standard library. Fails if a
crate has none. Where one of several licences is enough, MIT is. Arguments: the manifest, and the target if not the host."""
import html, json, pathlib, re, subprocess, sys
def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
def crates(manifest, target):
    """The name, the licence, and the texts by their files, of each crate from a registry."""
    place = ["--locked", "--manifest-path", manifest]
    parts = ["--target", target, "--edges=normal,no-proc-macro", "--prefix=none", "--format={p}", "--no-dedupe"]
    linked = set(run("cargo", "tree", *place, *parts).splitlines())
    packages = run("cargo", "metadata", *place, "--filter-platform", target, "--format-version=1")
    for package in json.loads(packages)["packages"]:
        if package["source"] and (name := f"{package['name']} v{package['version']}") in linked:
            files = sorted(pathlib.Path(package["manifest_path"]).parent.iterdir())
            is_text = re.compile("licen[cs]e|copying|copyright|notice", re.I).match
            texts = {file.name: file.read_text("utf-8") for file in files if file.is_file() and is_text(file.name)}
            yield name, package["license"], texts
def standard_library(target):
    folder = pathlib.Path(run("rustc", "--print", "sysroot").strip(), "share/doc/rust")
    own, *parts = (folder / "COPYRIGHT-library.html").read_text("utf-8").split("<h3>📦 ")
    own = re.sub(r"\s*\n\s*", "\n", re.sub("<[^>]*>", "", own.partition("</ul>")[2]))
    texts = {name: (folder / f"licenses/{name}.txt").read_text("utf-8") for name in ("MIT", "Unicode-3.0")}
    if "musl" in target:
        yield "musl", "MIT", {"MIT": texts["MIT"].replace("<year> <copyright holders>", "2005-2020 Rich Felker, et al.")}
    yield "Rust's standard library", "all of these", {"COPYRIGHT": html.unescape(own), **texts}
    for part in parts:
        texts = re.findall(r"<summary><code>(.*?)</code></summary>\s*<pre>(.*?)</pre>", part, re.S)
        licence = re.search("License:</b> (.*?)</p>", part)[1]
        yield f"{part.partition('<')[0]}, of the standard library", licence, {k: html.unescape(v) for k, v in texts}
target = [*sys.argv[2:], re.search("host: (.*)", run("rustc", "-vV"))[1]][0]
names = {}
for name, licence, texts in [*crates(sys.argv[1], target), *standard_library(target)]:
    mit = {file: text for file, text in texts.items() if re.search("mit|copyright|notice", file, re.I)}
    if re.search("MIT|/", licence) and " AND " not in licence and re.search("mit", " ".join(mit), re.I):
        texts = mit
    for text in texts.values():
        # Texts that differ in their line breaks alone are one.
        names.setdefault(" ".join(text.split()), (text.strip(), []))[1].append(f"{name} ({licence})")
    if not texts and "standard library" not in name:
        sys.exit(f"{name} ({licence}) has no licence text")
sys.stdout.reconfigure(encoding="utf-8")
for text, of in names.values():
    print("=" * 80, *of, "", text, "", sep="\n")
