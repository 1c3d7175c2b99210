"""The stubs agree with the module, and type checkers take the sample as it says."""

import pathlib
import subprocess
import sys

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


def test_pyright(tmp_path):
    pytest.importorskip("basedpyright")
    (tmp_path / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "standard", "reportUnnecessaryTypeIgnoreComment": "error", "enableTypeIgnoreComments": false}'
    )
    sample = tmp_path / "typing_sample.py"
    sample.write_text((HERE / "typing_sample.py").read_text())
    run("basedpyright", "--pythonpath", sys.executable, "-p", str(tmp_path), cwd=tmp_path)
