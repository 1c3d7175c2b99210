"""Runs the code of RECIPES.md, each section as a script of its own, and of README.md, as one script.

Shell blocks run where they stand, if `bloomline` is on the PATH.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def scripts(text, *, by_section):
    """Heading and blocks of each script, in order."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE) if by_section else [text]
    blocks = {part.partition("\n")[0]: BLOCK.findall(part) for part in parts}
    return {heading: blocks for heading, blocks in blocks.items() if blocks}


RECIPES = scripts((FOLDER / "RECIPES.md").read_text(), by_section=True)
README = scripts((FOLDER / "README.md").read_text(), by_section=False)


def run(blocks, folder):
    imported = {name for _, code in blocks for name in re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)}
    for name in sorted(imported):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    if any(language == "sh" for language, _ in blocks) and shutil.which("bloomline") is None:
        pytest.skip("the command bloomline is not on the PATH")
    lines = []
    for language, code in blocks:
        shell = f"import subprocess\nsubprocess.run({['sh', '-ec', code]}, check=True)"
        lines.append(code if language == "python" else shell)
    # A file: worker processes import it.
    script = folder / "recipe.py"
    script.write_text("\n".join(lines))
    finished = subprocess.run([sys.executable, script], cwd=folder, capture_output=True, text=True, timeout=600)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_there_are_recipes():
    assert len(RECIPES) == 9


@pytest.mark.parametrize("heading", RECIPES)
def test_recipe(heading, tmp_path):
    run(RECIPES[heading], tmp_path)


@pytest.mark.parametrize("heading", README)
def test_readme(heading, tmp_path):
    run(README[heading], tmp_path)
