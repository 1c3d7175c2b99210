"""Files travel between Python and the `bloomline` command, both ways."""

import subprocess

import numpy as np
import pytest

from bloomline import BloomFilter
from support import command

WORDS = [f"https://example.org/{i}/жук" for i in range(2_000)]


@pytest.fixture(scope="module")
def bloomline():
    path = command()

    def run(*arguments, input=b""):
        done = subprocess.run([path, *map(str, arguments)], input=input, capture_output=True, timeout=600)
        assert done.returncode in (0, 1), done.stderr.decode()
        return done.stdout

    return run


def lines(words):
    return "".join(word + "\n" for word in words).encode()


def test_the_command_reads_what_python_saves(bloomline, tmp_path):
    path = tmp_path / "f.bloom"
    f = BloomFilter(2_000, 0.001, seed=0x5EED)
    f.update(WORDS[::2])
    f.save(path)
    assert bloomline("check", path, input=lines(WORDS[::2])) == lines(WORDS[::2])
    absent = [word for word in WORDS if word not in f]
    assert len(absent) > 900 and bloomline("check", "-v", path, input=lines(WORDS)) == lines(absent)
    assert str(f.n_blocks) in bloomline("info", "--json", path).decode()


def test_both_write_the_same_bytes(bloomline, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    bloomline("build", "-q", "-o", theirs, "--keys", len(WORDS), "--fpr", "0.5%", input=lines(WORDS))
    f = BloomFilter(len(WORDS), 0.005)
    f.update(WORDS)
    f.save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert BloomFilter.open(theirs).contains_many(np.array(WORDS)).all()
