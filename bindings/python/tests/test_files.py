"""Files: whole or not at all, whatever happens; between processes; mapped."""

import errno
import gzip
import io
import itertools
import mmap
import os
import pathlib
import stat
import zipfile

import pytest

import bloomline
from bloomline import BloomFilter, BloomView, DecodeError, FilterBank
from support import ALL, File, run_python

unix = pytest.mark.skipif(os.name != "posix", reason="not on this system")


def filled(cls=BloomFilter, count=1_000, **options):
    if cls is FilterBank:
        return FilterBank([filled(count=count, **options)])
    f = cls(count, **options)
    f.update(range(count))
    return f


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("cls", [*ALL, FilterBank])
def test_save_and_open(cls, tmp_path):
    class PathLike:
        def __fspath__(self):
            return str(tmp_path / "f")

    saved = filled(cls, seed=3)
    names = [PathLike(), tmp_path / "f", str(tmp_path / "f"), tmp_path / "жук 🐜.bloom", tmp_path / ("n" * 250)]
    for name in names:
        assert saved.save(name) is None
        assert pathlib.Path(name).read_bytes() == saved.to_bytes()
        for open in (cls.open, bloomline.open):
            assert type(open(name)) is (BloomView if cls is BloomFilter else cls)
            for arguments, options in (
                ((), {}), ((True,), {}), ((False,), {}), ((), {"mmap": True}), ((), {"mmap": False}),
                ((), {"verify": True}), ((), {"verify": False}), ((), {"mmap": False, "verify": True}),
            ):  # fmt: skip
                opened = open(name, *arguments, **options)
                if type(opened) is BloomView:
                    assert opened.seed == 3 and 17 in opened
                    opened = opened.to_filter()
                assert type(opened) is cls and opened.to_bytes() == saved.to_bytes()
    (tmp_path / ".bloomline-01abcf.tmp").write_text("of a process that was killed")
    saved.save(tmp_path / "f")
    assert len(files(tmp_path)) == 3, "no temporary files stay"
    for open in (cls.open, bloomline.open):
        for path in (b"f", 17):
            with pytest.raises(TypeError, match="^path: a str, os.PathLike or open binary file that can "):
                open(path)
        with pytest.raises(TypeError):
            open(tmp_path / "f", True, False)
        with pytest.raises(ValueError, match="^verify=False needs mmap=True: a copy is always verified$"):
            open(tmp_path / "f", mmap=False, verify=False)


@pytest.mark.parametrize("cls", [*ALL, FilterBank])
def test_file_objects(cls, tmp_path):
    """Those of the standard library, and of others if they can seek. They stay open, and are not changed."""
    saved, path = filled(cls, count=9_000 if cls is FilterBank else 60_000, seed=3), tmp_path / "f.gz"
    data = saved.to_bytes()
    path.write_bytes(gzip.compress(data, 1))
    with zipfile.ZipFile(tmp_path / "f.zip", "w") as archive:
        archive.writestr("f", data)
    with mmap.mmap(-1, len(data)) as mapped:
        mapped.write(data)
        of = [io.BytesIO(data), gzip.open(path), zipfile.ZipFile(tmp_path / "f.zip").open("f"), mapped,
              File(data), File(data, 50_000)]  # fmt: skip
        for file, open in itertools.product(of, (cls.open, bloomline.open)):
            for mmapped in (True, False):
                opened = open(file, mmapped)
                assert type(opened) is (BloomView if cls is BloomFilter and mmapped else cls)
                opened = opened.to_filter() if type(opened) is BloomView else opened
                assert opened.to_bytes() == saved.to_bytes() and not file.closed
        assert mapped[:] == data
        [file.close() for file in of[:4]]
    for open in (cls.open, bloomline.open):
        for wrong, error, text in (
            (File(data[:-1]), DecodeError, "^store/f: not a filter's standalone bytes, or cut short: "),
            (File(data[:99] + bytes([data[99] ^ 1]) + data[100:]), DecodeError, "^store/f: .* damaged.*: their checksum"),
            (gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data)[:-9])), EOFError, "ended before the end-of-stream"),
            (io.StringIO("ant"), TypeError, "^path: a file whose `read` returns bytes is needed, not .*StringIO.*: open it with mode"),
            (io.BufferedReader(io.FileIO(os.pipe()[0])), TypeError, r"can seek .*: pass io.BytesIO\(file.read\(\)\)"),
            (type("Async", (File,), {"read": lambda self, n: self})(data), TypeError, "^path: a file whose `read` returns bytes"),
            (type("Cut", (File,), {"read": lambda self, n: data[:9]})(data), DecodeError, "^store/f: "),
            (type("End", (File,), {"read": lambda self, n: b""})(data), DecodeError, "^store/f: .*: there are 0"),
        ):
            with pytest.raises(error, match=text):
                open(wrong)


@unix
def test_a_mapped_file_may_be_replaced_and_removed(tmp_path):
    path, old, new = tmp_path / "f.bloom", filled(), filled(count=50_000)
    old.save(path)
    view = BloomFilter.open(path)
    inode = path.stat().st_ino
    new.save(path)
    assert path.stat().st_ino != inode, "a new file, so that the mapped one stays"
    assert view.to_filter() == old and BloomFilter.open(path).to_filter() == new
    path.unlink()
    assert view.verify() is None and view.to_filter() == old


# Failures

@unix
@pytest.mark.parametrize("limit", [0, 4096, 100_000])
def test_a_file_that_may_not_grow(limit, tmp_path):
    """A limit on the size of files fails in the middle of a write, as a full disk does."""
    path = tmp_path / "f.bloom"
    filled().save(path)
    run_python("""
import errno, resource, sys
from bloomline import BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
for cls in (BloomFilter, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter):
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
@pytest.mark.parametrize("cls", [*ALL, FilterBank])
def test_paths_that_cannot_be_written(cls, tmp_path):
    (tmp_path / "file").write_text("text")
    os.mkfifo(tmp_path / "fifo")
    f = filled(cls)
    for path, code in (("absent/f", errno.ENOENT), ("absent/", errno.ENOENT), ("absent/..", errno.ENOENT),
                       ("file/f", errno.ENOTDIR), (".", errno.EISDIR), ("n" * 256, errno.ENAMETOOLONG)):  # fmt: skip
        with pytest.raises(OSError) as error:
            f.save(f"{tmp_path}/{path}")
        assert error.value.errno == code and str(tmp_path) in str(error.value), path
    with pytest.raises(OSError, match="not a regular file: .*fifo"):
        f.save(tmp_path / "fifo")
    with pytest.raises(TypeError):
        f.save(17)
    assert (tmp_path / "file").read_text() == "text" and stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert files(tmp_path) == ["fifo", "file"]
