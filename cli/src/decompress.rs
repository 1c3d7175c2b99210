//! gzip and zstd, detected by their first bytes.
#![forbid(unsafe_code)]

use std::io::{self, BufReader, Cursor, ErrorKind, Read};

use anyhow::{Error, anyhow};
use flate2::bufread::MultiGzDecoder;

use crate::output::io_error;

/// Bytes per read: together with the hashes of their keys, they fit into the cache next to the core.
pub const READ: usize = 256 << 10;

const GZIP: &[u8] = b"\x1f\x8b\x08";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// A frame without data, with which pzstd begins; the first byte is 0x50 to 0x5f (RFC 8878, section 3.1.2).
const ZSTD_SKIPPABLE: &[u8] = b"\x50\x2a\x4d\x18";

/// A reader of what `reader` holds, decompressed if its first bytes are those of a known format.
pub fn decompressed(mut reader: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    // Byte by byte, and only while they match, so as not to wait for more than a pipe has.
    let mut masked = Vec::new();
    let begins = |magic: &[u8], first: &[u8]| magic.len() > first.len() && magic.starts_with(first);
    while begins(GZIP, &first) || begins(ZSTD, &first) || begins(ZSTD_SKIPPABLE, &masked) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => {
                masked.push(if first.is_empty() { byte[0] & 0xf0 } else { byte[0] });
                first.extend(byte);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    let (is_gzip, is_zstd) = (first == GZIP, first == ZSTD || masked == ZSTD_SKIPPABLE);
    let whole = Cursor::new(first).chain(reader);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ, whole)))
    } else if is_zstd {
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    })
}

/// An error of a reader that may decompress.
pub fn read_error(name: &str, error: &io::Error) -> Error {
    match error.kind() {
        // Decompressors return these for damaged files, the system does not.
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
