"""The stubs agree with the module, and type checkers accept the sample as it says."""

import ast
import inspect
import pathlib
import subprocess
import sys

import bloomline
import pytest

HERE = pathlib.Path(__file__).parent


def run(*arguments, cwd):
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_mypy(tmp_path):
    pytest.importorskip("mypy")
    run("mypy", "--strict", f"--cache-dir={tmp_path}", str(HERE / "typing_sample.py"), cwd=tmp_path)


def test_stubs_match_the_module(tmp_path):
    pytest.importorskip("mypy")
    # Not all of `bloomline`: `bloomline.spark` needs pyspark.
    run("mypy.stubtest", "bloomline._native", cwd=tmp_path)


def test_stubs_have_the_docstrings_of_the_module():
    tree = ast.parse(pathlib.Path(bloomline.__file__).with_name("_native.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def methods(node):
        yield from (member for member in node.body if isinstance(member, ast.FunctionDef))
        for base in node.bases:
            yield from methods(classes[base.id]) if base.id in classes else ()

    def check(stub, real):
        # Lines are wrapped differently, so words are compared.
        assert (ast.get_docstring(stub) or "").split() == inspect.getdoc(real).split()

    check(next(node for node in tree.body if getattr(node, "name", "") == "open"), bloomline.open)
    for name in set(classes) & set(bloomline.__all__):
        cls, documented = getattr(bloomline, name), {}
        check(classes[name], cls)
        for method in methods(classes[name]):
            if ast.get_docstring(method):
                documented.setdefault(method.name, method)
        for public in (public for public in vars(cls) if not public.startswith("_")):
            check(documented[public], getattr(cls, public))


def test_pyright(tmp_path):
    pytest.importorskip("basedpyright")
    (tmp_path / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "standard", "reportUnnecessaryTypeIgnoreComment": "error", "enableTypeIgnoreComments": false}'
    )
    sample = tmp_path / "typing_sample.py"
    sample.write_text((HERE / "typing_sample.py").read_text())
    run("basedpyright", "--pythonpath", sys.executable, "-p", str(tmp_path), cwd=tmp_path)
