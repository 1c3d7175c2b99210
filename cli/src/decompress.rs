//! Compressed input, detected by its first bytes.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail, ensure};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::{LzipReader, XzReader};

use crate::output::io_error;

/// Bytes per read. Together with the hashes of their keys, they fit into the L2 cache.
pub const READ: usize = 256 << 10;

/// Memory to decompress xz with, in KiB. It has room for a dictionary of 128 MiB, twice as large as `xz -9` makes, and as
/// large as the window up to which zstd reads. Otherwise a header of a few bytes could ask for 4 GiB.
const XZ_MEMORY: u32 = 129 << 10;

#[derive(Clone, Copy)]
pub enum Format {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lzip,
    Lz4,
    /// A format that is not read here, and a command that reads it.
    Other(&'static str, &'static str),
}

/// The first bytes of a format, each between those of two texts.
struct Magic {
    lowest: &'static [u8],
    highest: &'static [u8],
    format: Format,
}

/// None of them is the beginning of another one.
const FORMATS: [Magic; 15] = [
    one(b"\x1f\x8b\x08", Format::Gzip),
    one(b"\x28\xb5\x2f\xfd", Format::Zstd),
    // A frame without data, with which pzstd begins (RFC 8878, section 3.1.2).
    between(b"\x50\x2a\x4d\x18", b"\x5f\x2a\x4d\x18", Format::Zstd),
    // A block size, and then six bytes that begin a block or the end of the data. Text begins with all ten only by chance.
    between(b"BZh1\x31\x41\x59\x26\x53\x59", b"BZh9\x31\x41\x59\x26\x53\x59", Format::Bzip2),
    between(b"BZh1\x17\x72\x45\x38\x50\x90", b"BZh9\x17\x72\x45\x38\x50\x90", Format::Bzip2),
    one(b"\xfd7zXZ\0", Format::Xz),
    one(b"LZIP\x01", Format::Lzip),
    one(b"\x04\x22\x4d\x18", Format::Lz4),
    // The older frames, which the Linux kernel uses. They have no checksum and no end.
    one(b"\x02\x21\x4c\x18", Format::Other("compressed by lz4 -l", "lz4 -dc")),
    // The default parameters, a dictionary of up to 4 GiB in whole 64 KiB, and no length. It has no checksum.
    between(
        b"\x5d\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x5d\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        Format::Other("compressed by lzma", "xz -dc"),
    ),
    one(b"\x1f\x9d", Format::Other("compressed by compress", "gzip -dc")),
    one(b"PK\x03\x04", Format::Other("a zip archive", "unzip -p")),
    one(b"7z\xbc\xaf\x27\x1c", Format::Other("a 7z archive", "7z x -so")),
    one(b"Rar!\x1a\x07\0", Format::Other("a rar archive", "unrar p -inul")),
    one(b"Rar!\x1a\x07\x01", Format::Other("a rar archive", "unrar p -inul")),
];

const fn one(magic: &'static [u8], format: Format) -> Magic {
    between(magic, magic, format)
}

const fn between(lowest: &'static [u8], highest: &'static [u8], format: Format) -> Magic {
    Magic { lowest, highest, format }
}

impl Magic {
    fn may_begin(&self, first: &[u8]) -> bool {
        let mut bounds = self.lowest.iter().zip(self.highest);
        first
            .iter()
            .all(|byte| bounds.next().is_some_and(|(lowest, highest)| (lowest..=highest).contains(&byte)))
    }
}

/// What a file is compressed as.
pub fn format_of(path: &Path) -> Result<Option<Format>> {
    let format = File::open(path).and_then(|file| Ok(detected(file)?.0));
    format.map_err(|error| io_error(path.display(), &error))
}

/// A reader of the content of `reader`, which it decompresses if it begins like a known format.
pub fn decompressed(name: &str, reader: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
    let (format, whole) = detected(reader).map_err(|error| io_error(name, &error))?;
    let buffered = |whole| BufReader::with_capacity(READ, whole);
    let content: Box<dyn Read + Send> = match format {
        None => return Ok(Box::new(whole)),
        Some(Format::Gzip) => Box::new(Members::<GzDecoder<_>>::new(buffered(whole))),
        Some(Format::Zstd) => Box::new(zstd::Decoder::new(whole).map_err(|error| io_error(name, &error))?),
        Some(Format::Bzip2) => Box::new(MultiBzDecoder::new(buffered(whole))),
        Some(Format::Xz) => Box::new(XzReader::new_mem_limit(buffered(whole), true, XZ_MEMORY)),
        Some(Format::Lzip) => Box::new(LzipReader::new(buffered(whole))),
        Some(Format::Lz4) => Box::new(Members::<FrameDecoder<_>>::new(buffered(whole))),
        Some(Format::Other(what, command)) => bail!("{name}: is {what} (decompress it with `{command}`)"),
    };
    let (format, whole) = detected(content).map_err(|error| read_error(name, &error))?;
    ensure!(format.is_none(), "{name}: is compressed twice (decompress it once)");
    Ok(Box::new(whole))
}

/// The format that the reader begins with, and a reader of the same bytes.
fn detected<R: Read>(mut reader: R) -> io::Result<(Option<Format>, impl Read + use<R>)> {
    let mut first = Vec::new();
    // Byte by byte, and only while they match. Otherwise this could wait for more than a pipe has.
    #[expect(clippy::unbuffered_bytes, reason = "of at most 13 bytes")]
    let mut bytes = reader.by_ref().bytes();
    let format = loop {
        match FORMATS.iter().find(|magic| magic.may_begin(&first)) {
            Some(magic) if magic.lowest.len() > first.len() => (),
            found => break found.map(|magic| magic.format),
        }
        let Some(byte) = bytes.next().transpose()? else { break None };
        first.push(byte);
    };
    Ok((format, Cursor::new(first).chain(reader)))
}

/// One of the parts of a file that are each compressed alone.
trait Member: Read {
    type File: BufRead;
    fn begin(file: Self::File) -> Self;
    fn end(self) -> Self::File;
}

impl<R: BufRead> Member for GzDecoder<R> {
    type File = R;

    fn begin(file: R) -> Self {
        Self::new(file)
    }

    fn end(self) -> R {
        self.into_inner()
    }
}

/// One decoder for each frame, because it has no way to tell whether more follow.
impl<R: BufRead> Member for FrameDecoder<Cut<R>> {
    type File = R;

    fn begin(file: R) -> Self {
        Self::new(Cut(file))
    }

    fn end(self) -> R {
        self.into_inner().0
    }
}

/// A file whose end is an error, because lz4_flex takes it for the end of a frame wherever it is.
struct Cut<R>(R);

impl<R: Read> Read for Cut<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::Error::other("the last frame is cut short")),
            n => Ok(n),
        }
    }
}

/// The members of a file, one after another. Zeros may follow the last, because tapes are written in whole blocks.
struct Members<M>(Option<M>);

impl<M: Member> Members<M> {
    fn new(file: M::File) -> Self {
        Self(Some(M::begin(file)))
    }

    /// Goes to the next member, or returns `false` at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        let Some(mut file) = self.0.take().map(M::end) else { return Ok(false) };
        match file.fill_buf()?.first() {
            None => return Ok(false),
            Some(0) => (),
            Some(_) => {
                *self = Self::new(file);
                return Ok(true);
            }
        }
        while let padding @ [_, ..] = file.fill_buf()? {
            if padding.iter().any(|&byte| byte != 0) {
                return Err(io::Error::other("the padding after its last member has other bytes than zeros"));
            }
            let n = padding.len();
            file.consume(n);
        }
        Ok(false)
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.0 else { return Ok(0) };
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() || !self.next()? {
                return Ok(n);
            }
        }
    }
}

/// An error of a reader that may decompress.
pub fn read_error(name: &str, error: &io::Error) -> Error {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::OutOfMemory if text.contains("mem_limit") => {
            anyhow!("{name}: its dictionary is larger than 128 MiB (decompress it with `xz -dc`)")
        }
        // Decompressors return these for damaged files, but the system never does.
        ErrorKind::UnexpectedEof
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidData
        | ErrorKind::Unsupported
        | ErrorKind::Other => {
            let remedy = if text.contains("too much memory") {
                "decompress it with `zstdcat --long=31`"
            } else {
                "compress or fetch it again, or use --raw if it is not compressed"
            };
            anyhow!("{name}: cannot be decompressed: {text} ({remedy})")
        }
        _ => io_error(name, error),
    }
}
