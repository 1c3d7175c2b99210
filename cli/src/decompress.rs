//! Compressed input, detected by its first bytes.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use anyhow::{Error, Result, anyhow, bail};
use flate2::bufread::GzDecoder;

use crate::output::io_error;

/// Bytes per read. Together with the hashes of their keys, they fit into the L2 cache.
pub const READ: usize = 256 << 10;

#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zstd,
    /// A format that is not read here, by the name of its command.
    Other(&'static str),
}

/// The first bytes after [`without_variant`]. None of them is the beginning of a longer one.
const FORMATS: [(&[u8], Format); 11] = [
    (b"\x1f\x8b\x08", Format::Gzip),
    (b"\x28\xb5\x2f\xfd", Format::Zstd),
    // A frame without data, with which pzstd begins (RFC 8878, section 3.1.2).
    (b"\x50\x2a\x4d\x18", Format::Zstd),
    (b"\xfd7zXZ\0", Format::Other("xz")),
    (b"LZIP\x01", Format::Other("lzip")),
    // compress, and zip with one file, which gzip reads too.
    (b"\x1f\x9d", Format::Other("gzip")),
    (b"PK\x03\x04", Format::Other("gzip")),
    // The last six bytes begin a block or the end of the data. Text begins with all ten only by chance.
    (b"BZh1\x31\x41\x59\x26\x53\x59", Format::Other("bzip2")),
    (b"BZh1\x17\x72\x45\x38\x50\x90", Format::Other("bzip2")),
    (b"\x04\x22\x4d\x18", Format::Other("lz4")),
    // The older frames, which the Linux kernel uses.
    (b"\x02\x21\x4c\x18", Format::Other("lz4")),
];

/// Frames that zstd skips begin with 0x50 to 0x5f, and bzip2 names its block size, 1 to 9.
fn without_variant(at: usize, byte: u8) -> u8 {
    match (at, byte) {
        (0, 0x50..=0x5f) => 0x50,
        (3, b'1'..=b'9') => b'1',
        _ => byte,
    }
}

/// A reader of what `reader` holds, decompressed if it begins like a known format.
pub fn decompressed(name: &str, mut reader: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>> {
    let (mut first, mut compared) = (Vec::new(), Vec::new());
    let begins = |compared: &[u8]| {
        FORMATS.iter().any(|(magic, _)| magic.len() > compared.len() && magic.starts_with(compared))
    };
    // Byte by byte, and only while they match. Otherwise this could wait for more than a pipe has.
    #[expect(clippy::unbuffered_bytes, reason = "of at most ten bytes")]
    let mut bytes = reader.by_ref().bytes();
    while begins(&compared) {
        let Some(byte) = bytes.next() else { break };
        let byte = byte.map_err(|error| io_error(name, &error))?;
        compared.push(without_variant(first.len(), byte));
        first.push(byte);
    }
    let whole = Cursor::new(first).chain(reader);
    Ok(match FORMATS.iter().find(|(magic, _)| *magic == compared).map(|(_, format)| *format) {
        None => Box::new(whole),
        Some(Format::Gzip) => Box::new(Members::new(BufReader::with_capacity(READ, whole))),
        Some(Format::Zstd) => Box::new(zstd::Decoder::new(whole).map_err(|error| io_error(name, &error))?),
        Some(Format::Other(tool)) => {
            bail!(
                "{name}: compressed by {tool} (pipe it through `{tool} -dc`, recompress it by gzip, or use --raw to read it as it is)"
            )
        }
    })
}

/// The members of a gzip file, one after another. Zeros may follow the last, as a tape is written in whole blocks.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Members<R> {
    fn new(file: R) -> Self {
        Self(Some(GzDecoder::new(file)))
    }

    /// Goes to the next member, or returns `false` at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        let Some(mut file) = self.0.take().map(GzDecoder::into_inner) else { return Ok(false) };
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

impl<R: BufRead> Read for Members<R> {
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
    match error.kind() {
        // Decompressors return these for damaged files, but the system never does.
        ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::Other => {
            let text = error.to_string();
            let remedy = if text.contains("too much memory") {
                "pipe it through `zstdcat --long=31`"
            } else {
                "compress or fetch it again, or use --raw if it is not compressed"
            };
            anyhow!("{name}: cannot be decompressed: {text} ({remedy})")
        }
        _ => io_error(name, error),
    }
}
