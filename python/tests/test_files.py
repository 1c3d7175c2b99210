"""Files: whole or not at all, whatever happens; between processes; mapped."""

import errno
import mmap
import os
import pathlib
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from bloomline import BloomFilter, BloomView, CountingBloomFilter, DecodeError, ScalableBloomFilter, StandardBloomFilter
from support import ALL, empty, python, run_python

OTHERS = ALL[1:]

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
    if cls is BloomFilter:
        assert BloomFilter.open(name, False) == f and BloomFilter.open(name, False).expected_keys is None
    else:
        with pytest.raises(TypeError):
            cls.open(name, mmap=True)


def test_save_into_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled().save("f.bloom")
    assert files(tmp_path) == ["f.bloom"] and BloomFilter.open("f.bloom").to_filter() == filled()


def test_open_maps(tmp_path):
    f = filled(seed=5)
    path = tmp_path / "f.bloom"
    f.save(path)
    for view in (BloomFilter.open(path), BloomFilter.open(path, mmap=True), BloomFilter.open(str(path), True)):
        assert type(view) is BloomView and (view.k, view.n_blocks, view.seed) == (f.k, f.n_blocks, 5)
        assert view.contains_many(range(1_000)).all() and 17 in view and view.to_filter() == f
        assert view.contains_many(range(5_000)).tolist() == f.contains_many(range(5_000)).tolist()


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


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"mmap": False}])
def test_files_that_are_no_filters(tmp_path, options):
    path = tmp_path / "f.bloom"
    data = filled().to_bytes()
    for content in (b"", b"text", data[:-1], data[1:], data + b"\0", data[64:], bytes(len(data)), filled(StandardBloomFilter).to_bytes()):
        path.write_bytes(content)
        with pytest.raises(DecodeError):
            BloomFilter.open(path, **options)
    damaged = bytearray(data)
    damaged[100] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(DecodeError, match="checksum"):
        BloomFilter.open(path, **options)
    with pytest.raises(FileNotFoundError) as error:
        BloomFilter.open(tmp_path / "absent", **options)
    assert error.value.errno == errno.ENOENT and str(error.value.filename) == str(tmp_path / "absent")
    with pytest.raises(OSError):
        BloomFilter.open(tmp_path, **options)
    with pytest.raises((OSError, ValueError), match="(?i)nul"):
        BloomFilter.open("a\0b", **options)
    for wrong in (None, 17, 1.5, path.open):
        with pytest.raises(TypeError):
            BloomFilter.open(wrong, **options)


def test_damage_is_found_unless_only_the_footer_is_read(tmp_path):
    f = filled()
    data = bytearray(f.to_bytes())
    middle = len(data) // 2 - 128
    data[middle : middle + 256] = bytes(256)
    path = tmp_path / "f.bloom"
    path.write_bytes(data)
    for open in (lambda **options: BloomFilter.open(path, **options), lambda **options: BloomView(data, **options)):
        for options in ({}, {"verify": True}):
            with pytest.raises(DecodeError, match="damaged: their checksum"):
                open(**options)
        view = open(verify=False)
        assert not view.contains_many(range(1_000)).all(), "lost keys: the risk"
        for read in (view.verify, view.to_filter):
            with pytest.raises(DecodeError, match="damaged: their checksum"):
                read()
    with pytest.raises(TypeError):
        BloomView(data, False)
    with pytest.raises(TypeError):
        BloomFilter.open(path, True, False)
    with pytest.raises(ValueError, match="verify=False needs mmap=True"):
        BloomFilter.open(path, mmap=False, verify=False)


@pytest.mark.parametrize("cls", OTHERS)
def test_other_files_that_are_no_filters(cls, tmp_path):
    path = tmp_path / "f"
    damaged = bytearray(filled(cls).to_bytes())
    damaged[7] ^= 1
    for content in (b"", b"text", filled().to_bytes(), damaged):
        path.write_bytes(content)
        with pytest.raises(DecodeError):
            cls.open(path)
    with pytest.raises(FileNotFoundError):
        cls.open(tmp_path / "absent")


@pytest.mark.parametrize("cls", ALL)
def test_pickles_travel_between_processes(cls, tmp_path):
    """Python's own hash of text differs between the two: nothing may depend on it."""
    program = """
import pickle, sys
import bloomline
f = pickle.load(open(sys.argv[1], "rb"))
assert all(word in f for word in ["ant", b"bee", 17]) and "dog" not in f
assert pickle.loads(pickle.dumps(f)) == f
f.update(["dog", 18])
pickle.dump(f, open(sys.argv[2], "wb"))
f.save(sys.argv[3])
print(hash("ant"))
"""
    f = cls(100, seed=7)
    f.update(["ant", b"bee", 17])
    sent, returned, saved = tmp_path / "sent", tmp_path / "returned", tmp_path / "saved"
    sent.write_bytes(pickle.dumps(f))
    hashes = {run_python(program, sent, returned, saved, PYTHONHASHSEED=str(seed)) for seed in (1, 2)}
    assert len(hashes) == 2
    f.update(["dog", 18])
    g = pickle.loads(returned.read_bytes())
    assert g == f and (cls is not BloomFilter or g.expected_keys == 100)
    assert cls.from_bytes(saved.read_bytes()) == f


def test_filters_in_shared_memory():
    from multiprocessing import shared_memory

    f = filled(seed=9)
    data = f.to_bytes()
    memory = shared_memory.SharedMemory(create=True, size=len(data))
    try:
        memory.buf[: len(data)] = data
        run_python("""
import sys
from multiprocessing import resource_tracker, shared_memory
from bloomline import BloomView
memory = shared_memory.SharedMemory(sys.argv[1])
resource_tracker.unregister(memory._name, "shared_memory")  # the parent owns it
buffer = memory.buf[:int(sys.argv[2])]
view = BloomView(buffer)
assert view.seed == 9 and view.contains_many(range(1000)).all()
del view
buffer.release()
memory.close()
""", memory.name, len(data))
    finally:
        memory.close()
        memory.unlink()


def test_views_of_a_mapping(tmp_path):
    f = filled()
    path = tmp_path / "f.bloom"
    f.save(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
        view = BloomView(mapping)
        assert view.to_filter() == f
        with pytest.raises(BufferError):
            mapping.close()
        assert 17 in view
        del view


# Failures

@unix
@pytest.mark.parametrize("cls", ALL)
def test_a_folder_that_is_missing(cls, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        filled(cls).save(tmp_path / "absent" / "f")
    assert error.value.errno == errno.ENOENT and str(tmp_path / "absent") in str(error.value)
    (tmp_path / "file").write_text("text")
    with pytest.raises(OSError):
        filled(cls).save(tmp_path / "file" / "f")
    with pytest.raises(OSError):
        filled(cls).save(tmp_path)
    assert (tmp_path / "file").read_text() == "text" and files(tmp_path) == ["file"]
    with pytest.raises((OSError, ValueError)):
        filled(cls).save("")
    with pytest.raises(OSError):
        filled(cls).save(tmp_path / ("n" * 256))
    with pytest.raises((OSError, ValueError), match="(?i)nul"):
        filled(cls).save("a\0b")
    with pytest.raises(TypeError):
        filled(cls).save(17)
    assert files(tmp_path) == ["file"]


NOBODY = """
import os, sys
from bloomline import BloomFilter
BloomFilter(1).contains_many([1])  # all modules are loaded: the other user may not be able to read them
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


@unix
@pytest.mark.skipif(os.stat("/").st_mode & 0o5 != 0o5, reason="other users cannot reach any folder: / is closed to them")
def test_a_folder_that_is_not_writable():
    folder = pathlib.Path(tempfile.mkdtemp())  # pytest's folders are closed to other users
    try:
        folder.chmod(0o755)
        path = folder / "f.bloom"
        filled().save(path)
        path.chmod(0o644)
        if os.getuid() != 0:
            folder.chmod(0o555)
        run_python(NOBODY + """
import errno
f = BloomFilter(10)
for name in ("f.bloom", "new.bloom"):
    try:
        f.save(os.path.join(sys.argv[1], name))
    except PermissionError as error:
        assert error.errno == errno.EACCES and sys.argv[1] in str(error), repr(error)
    else:
        raise SystemExit("saved")
assert BloomFilter.open(os.path.join(sys.argv[1], "f.bloom")).contains_many(range(1000)).all()
""", folder)
        assert files(folder) == ["f.bloom"] and BloomFilter.open(path).to_filter() == filled()
        path.chmod(0)
        run_python(NOBODY + """
for mmap in (True, False):
    try:
        BloomFilter.open(os.path.join(sys.argv[1], "f.bloom"), mmap=mmap)
    except PermissionError:
        pass
    else:
        raise SystemExit("opened")
""", folder)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@unix
@pytest.mark.parametrize("limit", [0, 4096, 100_000])
def test_a_file_that_may_not_grow(limit, tmp_path):
    """A limit on the size of files fails in the middle of a write, as a full disk does."""
    path = tmp_path / "f.bloom"
    filled().save(path)
    run_python("""
import resource, sys
import bloomline
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
for cls in (bloomline.BloomFilter, bloomline.CountingBloomFilter, bloomline.ModularBloomFilter, bloomline.ScalableBloomFilter, bloomline.StandardBloomFilter):
    f = cls(200_000)
    f.add("ant")
    for _ in range(3):
        try:
            f.save(sys.argv[1])
        except OSError as error:
            assert error.errno, repr(error)
        else:
            raise SystemExit(f"{cls} was saved")
    assert "ant" in f
""", path, limit)
    assert BloomFilter.open(path).to_filter() == filled() and files(tmp_path) == ["f.bloom"]


@unix
def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("mounting a small disk takes root; test_a_file_that_may_not_grow stands in for it")
    try:
        path, small, large = disk / "f.bloom", filled(count=1_000), filled(count=100_000)
        small.save(path)
        for _ in range(3):
            with pytest.raises(OSError) as error:
                large.save(path)
            assert error.value.errno == errno.ENOSPC and str(path) in str(error.value)
        assert files(disk) == ["f.bloom"] and BloomFilter.open(path).to_filter() == small
        small.add("new")
        small.save(path)
        assert BloomFilter.open(path).to_filter() == small
    finally:
        subprocess.run(["umount", str(disk)], check=True)


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
def test_symbolic_links_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "f.bloom"
    filled().save(target)
    link = tmp_path / "link"
    link.symlink_to("folder/f.bloom")
    new = filled(count=2_000)
    new.save(link)
    assert link.is_symlink() and os.readlink(link) == "folder/f.bloom"
    assert BloomFilter.open(target).to_filter() == BloomFilter.open(link).to_filter() == new
    assert files(tmp_path / "folder") == ["f.bloom"] and files(tmp_path) == ["folder", "link"]

    target.unlink()  # now the link leads to nothing yet
    new.save(link)
    assert link.is_symlink() and BloomFilter.open(target).to_filter() == new

    folder = tmp_path / "other"
    folder.symlink_to("folder")
    filled().save(folder / "f.bloom")
    assert folder.is_symlink() and BloomFilter.open(target).to_filter() == filled()

    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(OSError):
        filled().save(loop)
    assert loop.is_symlink()


@unix
def test_file_modes(tmp_path):
    old = os.umask(0o027)
    try:
        filled().save(tmp_path / "new")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640, "as for any new file"
        for mode in (0o600, 0o644, 0o666):
            (tmp_path / "new").chmod(mode)
            filled().save(tmp_path / "new")
            assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode, "that of the old file"
    finally:
        os.umask(old)


@unix
def test_a_device_is_not_replaced(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="not a regular file: .*fifo"):
        filled().save(fifo)
    assert stat.S_ISFIFO(fifo.stat().st_mode) and files(tmp_path) == ["fifo"]


@unix
def test_a_file_truncated_while_it_is_mapped(tmp_path):
    """Documented: lookups in a mapped file that somebody truncates end the process with SIGBUS, as any mapping does."""
    path = tmp_path / "f.bloom"
    filled(count=100_000).save(path)
    program = """
import os, sys
import numpy as np
from bloomline import BloomFilter
f = BloomFilter.open(sys.argv[1], mmap=sys.argv[2] == "True")
os.truncate(sys.argv[1], 0)
print(f.contains_many(np.arange(100_000)).all(), flush=True)
"""
    done = python(program, path, True)
    assert done.returncode == -signal.SIGBUS and done.stdout == "", done
    assert "SIGBUS" in BloomFilter.open.__doc__
    filled(count=100_000).save(path)
    assert python(program, path, False).stdout == "True\n", "a filter that was read is its own"
