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


def test_merges_and_folds_agree(bloomline, tmp_path):
    parts = []
    for i in range(3):
        f = BloomFilter.with_bits_per_key(512 * 64, 1)
        f.update(WORDS[i::3])
        f.save(tmp_path / str(i))
        parts.append(f)
    bloomline("merge", "-o", tmp_path / "merged", *(tmp_path / str(i) for i in range(3)))
    whole = BloomFilter.union(parts)
    assert BloomFilter.open(tmp_path / "merged", mmap=False) == whole
    bloomline("fold", "-o", tmp_path / "folded", "--factor", 8, tmp_path / "merged")
    whole.fold(8)
    assert BloomFilter.open(tmp_path / "folded", mmap=False) == whole and whole.contains_many(WORDS).all()


def test_integers_are_keys_of_eight_bytes(bloomline, tmp_path):
    """What the format's "Keys of other types" says, by the command's option for keys of one length."""
    path, numbers = tmp_path / "f.bloom", np.array([0, 1, -1, 2**62, -(2**63), 10], "<i8")
    bloomline("build", "-q", "-o", path, "--keys", 100, "--length", 8, input=numbers.tobytes())
    f = BloomFilter.open(path, mmap=False)
    assert f.contains_many(numbers).all() and 1 in f and 2 not in f
    g = BloomFilter(100)
    g.update(numbers.astype(">i8"))
    assert f == g
    g.save(path)
    assert bloomline("check", "--length", 8, path, input=numbers.tobytes()) == numbers.tobytes()
