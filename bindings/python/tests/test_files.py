"""Files: of every writer and size; whole or not at all, whatever happens; between processes; mapped."""

import errno
import os
import pathlib
import pickle
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

import bloomline
from bloomline import BloomFilter, BloomView, DecodeError, FilterBank, FilterBuilder
from support import ALL, buffers, run_python

unix = pytest.mark.skipif(os.name != "posix", reason="not on this system")


def filled(cls=BloomFilter, count=1_000, **options):
    f = cls(count, **options)
    f.update(range(count))
    return f


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("cls", ALL)
def test_save_and_open(cls, tmp_path):
    f = filled(cls, seed=3)
    for name in (tmp_path / "f.bloom", str(tmp_path / "g.bloom"), tmp_path / "жук 🐜.bloom", tmp_path / ("n" * 250)):
        assert f.save(name) is None
        assert pathlib.Path(name).read_bytes() == f.to_bytes()
        options = {"mmap": False} if cls is BloomFilter else {}
        g = cls.open(name, **options)
        assert type(g) is cls and g == f and 17 in g
        g.add("another")
        assert g != f
    assert len(files(tmp_path)) == 4, "no temporary files stay"
    if cls is not BloomFilter:
        return
    assert BloomFilter.open(name, False) == f and BloomFilter.open(name, False).expected_keys is None
    for view in (BloomFilter.open(name), BloomFilter.open(name, mmap=True), BloomFilter.open(str(name), True)):
        assert type(view) is BloomView and (view.k, view.n_blocks, view.seed) == (f.k, f.n_blocks, 3)
        assert view.contains_many(range(5_000)).tolist() == f.contains_many(range(5_000)).tolist()
        assert 17 in view and view.to_filter() == f


@pytest.mark.parametrize("cls", [*ALL, FilterBank])
def test_every_class_opens_what_a_bloom_filter_opens(cls, tmp_path):
    class PathLike:
        def __fspath__(self):
            return str(tmp_path / "f")

    saved = FilterBank([filled()]) if cls is FilterBank else filled(cls)
    saved.save(PathLike())
    for open in (cls.open, bloomline.open):
        for path in (PathLike(), tmp_path / "f", str(tmp_path / "f")):
            for arguments, options in (
                ((), {}), ((True,), {}), ((False,), {}), ((), {"mmap": True}), ((), {"mmap": False}),
                ((), {"verify": True}), ((), {"verify": False}), ((), {"mmap": False, "verify": True}),
            ):  # fmt: skip
                opened = open(path, *arguments, **options)
                opened = opened.to_filter() if type(opened) is BloomView else opened
                assert type(opened) is cls and opened.to_bytes() == saved.to_bytes()
        for path in (b"f", 17):
            with pytest.raises(TypeError, match="^path: a str or os.PathLike is needed, not "):
                open(path)
        with pytest.raises(TypeError):
            open(tmp_path / "f", True, False)
        for wrong in ({"mmap": 1}, {"verify": None}):
            with pytest.raises(TypeError, match="^(mmap|verify): True or False is needed, not "):
                open(tmp_path / "f", **wrong)
        with pytest.raises(ValueError, match="^verify=False needs mmap=True: a copy is always verified$"):
            open(tmp_path / "f", mmap=False, verify=False)


CLI = os.environ.get("BLOOMLINE_CLI")


def by_filter(path, keys, fpr):
    f = BloomFilter(len(keys), fpr)
    f.update(keys)
    f.save(path)


def by_builder(path, keys, fpr):
    builder = FilterBuilder(fpr)
    builder.update(keys)
    builder.finish().save(path)


def by_command_line(path, keys, fpr):
    command = [CLI, "build", "-q", "--fpr", str(fpr), "-o", path]
    subprocess.run(command, input="\n".join(keys), text=True, check=True)


@pytest.mark.parametrize("write", [
    by_filter, by_builder, pytest.param(by_command_line, marks=pytest.mark.skipif(not CLI, reason="BLOOMLINE_CLI is not set")),
])
@pytest.mark.parametrize("count", [100, 100_000])
@pytest.mark.parametrize("fpr", [0.01, 0.001, 0.0001, 1e-6])
def test_a_file_of_any_rate_opens_and_answers_alike(write, fpr, count, tmp_path):
    """The rate and the number of keys choose the number of modules. Readers must not have to know it."""
    path = tmp_path / "f.bloom"
    keys = np.array([f"user{number}" for number in range(3 * count)])
    write(path, keys[:count], fpr)
    f = BloomFilter.open(path, mmap=False)
    found = f.contains_many(keys)
    assert type(f) is BloomFilter and found[:count].all() and found[count:].mean() < 2 * fpr + 3 / count
    data = f.to_bytes()
    assert data == path.read_bytes()
    others = [bloomline.open(path, mmap=False), f.copy(), pickle.loads(pickle.dumps(f)), f | f, f & f, BloomFilter.union([f])]
    others += [BloomFilter.from_bytes(buffer) for buffer in buffers(data)]
    assert all(other == f for other in others)
    views = [BloomView(buffer) for buffer in buffers(data)] + [open(path) for open in (bloomline.open, BloomFilter.open)]
    for other in [*others, *views, BloomFilter.open(path, verify=False)]:
        assert (other.n_modules, other.n_blocks, other.k) == (f.n_modules, f.n_blocks, f.k)
        assert (other.contains_many(keys) == found).all() and [key in other for key in keys[-9:]] == [*found[-9:]]
    assert all(view.to_filter() == f for view in views)
    if CLI:
        checked = subprocess.run([CLI, "check", path], input="\n".join(keys), text=True, check=True, capture_output=True)
        assert checked.stdout.split() == keys[found].tolist()


@unix
def test_a_mapped_file_may_be_replaced_and_removed(tmp_path):
    path, old, new = tmp_path / "f.bloom", filled(), filled(count=50_000)
    old.save(path)
    view = BloomFilter.open(path)
    inode = path.stat().st_ino
    new.save(path)
    assert path.stat().st_ino != inode, "a new file, so that the mapped one stays"
    view.verify()
    assert view.to_filter() == old and view.contains_many(range(1_000)).all()
    assert BloomFilter.open(path).to_filter() == new
    path.unlink()
    view.verify()
    assert view.to_filter() == old


def test_opening_unverified_reads_only_the_footer(tmp_path):
    """A sparse file of 64 GiB opens at once and answers; verifying it would take a minute."""
    from support import FOOTER_BYTES, make

    f = BloomFilter.with_bits_per_key(512, 8)
    footer = bytearray(f.to_bytes()[-FOOTER_BYTES:])
    size = 1 << 36
    footer[:8] = (size // 8).to_bytes(8, "little")
    footer[48:56] = make.xxh64(bytes(footer[:48])).to_bytes(8, "little")
    path = tmp_path / "huge.bloom"
    with open(path, "wb") as file:
        try:
            file.seek(size)
            file.write(footer)
        except OSError:
            pytest.skip("this file system has no sparse files of this size")
    view = BloomFilter.open(path, verify=False)
    assert view.n_blocks == size // 64 and view.size_bytes == size
    assert not view.contains_many(np.arange(20)).any() and "ant" not in view


def test_damage_is_found_unless_only_the_footer_is_read(tmp_path):
    f = filled()
    whole, path = f.to_bytes(), tmp_path / "f.bloom"
    data, middle = bytearray(whole), len(whole) // 2 - 128
    data[middle : middle + 256] = bytes(256)
    text = "damaged: their checksum is 0x[0-9a-f]{16}, stored 0x[0-9a-f]{16}"
    path.write_bytes(data)
    for open in (lambda **options: BloomFilter.open(path, **options), lambda **options: BloomView(data, **options)):
        for options in ({}, {"verify": True}):
            with pytest.raises(DecodeError, match=text):
                open(**options)
        view = open(verify=False)
        assert not view.contains_many(range(1_000)).all(), "lost keys: the risk"
        for read in (view.verify, view.to_filter):
            with pytest.raises(DecodeError, match=text):
                read()
    data[:] = whole
    view.verify()
    for wrong in (whole[:-20] + b"?" + whole[-19:], whole[:-1], b""):
        for verify in (True, False):
            with pytest.raises(DecodeError):
                BloomView(wrong, verify=verify)
    with pytest.raises(TypeError):
        BloomView(data, False)
    with pytest.raises(TypeError):
        BloomFilter.open(path, True, False)
    with pytest.raises(ValueError, match="verify=False needs mmap=True"):
        BloomFilter.open(path, mmap=False, verify=False)


# Failures

@unix
@pytest.mark.parametrize("cls", ALL)
def test_a_folder_that_is_missing(cls, tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(FileNotFoundError) as error:
        filled(cls).save(tmp_path / "absent" / "f")
    assert error.value.errno == errno.ENOENT and str(tmp_path / "absent") in str(error.value)
    for wrong in (tmp_path / "file" / "f", tmp_path, "", tmp_path / ("n" * 256)):
        with pytest.raises((OSError, ValueError)):
            filled(cls).save(wrong)
    with pytest.raises(TypeError):
        filled(cls).save(17)
    assert (tmp_path / "file").read_text() == "text" and files(tmp_path) == ["file"]


@unix
@pytest.mark.parametrize("limit", [0, 4096, 100_000])
def test_a_file_that_may_not_grow(limit, tmp_path):
    """A limit on the size of files fails in the middle of a write, as a full disk does."""
    path = tmp_path / "f.bloom"
    filled().save(path)
    run_python("""
import errno, resource, sys
import bloomline
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
for cls in (bloomline.BloomFilter, bloomline.CountingBloomFilter, bloomline.ScalableBloomFilter, bloomline.StandardBloomFilter):
    f = cls(200_000)
    f.add("ant")
    for _ in range(3):
        try:
            f.save(sys.argv[1])
        except OSError as error:
            assert error.errno == errno.EFBIG and sys.argv[1] in str(error), repr(error)
        else:
            raise SystemExit(f"{cls} was saved")
    assert "ant" in f
""", path, limit)
    assert BloomFilter.open(path).to_filter() == filled() and files(tmp_path) == ["f.bloom"]


@unix
def test_a_killed_save_leaves_the_old_file_or_the_new(tmp_path):
    path = tmp_path / "f.bloom"
    filters = [filled(count=count) for count in (100_000, 300_000)]
    filters[0].save(path)
    program = """
import sys
from bloomline import BloomFilter
filters = [BloomFilter(count) for count in (100_000, 300_000)]
for f, count in zip(filters, (100_000, 300_000)):
    f.update(range(count))
print("ready", flush=True)
while True:
    for f in reversed(filters):
        f.save(sys.argv[1])
"""
    for attempt in range(8):
        with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.003 + 0.0047 * attempt)
            child.kill()
            assert child.wait() == -signal.SIGKILL
        assert BloomFilter.open(path, mmap=False) in filters
    left = [name for name in files(tmp_path) if name != "f.bloom"]
    assert all(name.startswith(".") for name in left), "hidden, and documented"
    filters[1].save(path)
    assert BloomFilter.open(path).to_filter() == filters[1]


@unix
def test_a_device_is_not_replaced(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="not a regular file: .*fifo"):
        filled().save(fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and files(tmp_path) == ["fifo"]
