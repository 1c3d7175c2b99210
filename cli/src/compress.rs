//! Compressed output, in the formats that `decompress.rs` reads.
#![forbid(unsafe_code)]

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::FrameEncoder;
use lzma_rust2::{LzipOptions, LzipWriter, XzOptions, XzWriter};

use crate::decompress::Format;

/// A member of a file, which can have several. At the default level of the format's own program.
pub fn compress(format: Format, text: &[u8]) -> io::Result<Vec<u8>> {
    let to = Vec::new();
    match format {
        Format::Gzip => written(GzEncoder::new(to, flate2::Compression::default()), text)?.finish(),
        Format::Zstd => zstd::encode_all(text, zstd::DEFAULT_COMPRESSION_LEVEL),
        Format::Bzip2 => written(BzEncoder::new(to, bzip2::Compression::best()), text)?.finish(),
        Format::Xz => written(XzWriter::new(to, XzOptions::with_preset(6))?, text)?.finish(),
        Format::Lzip => written(LzipWriter::new(to, LzipOptions::with_preset(6)), text)?.finish(),
        Format::Lz4 => Ok(written(FrameEncoder::new(to), text)?.finish()?),
        Format::Other(what, _) => Err(io::Error::other(what)),
    }
}

fn written<W: Write>(mut encoder: W, text: &[u8]) -> io::Result<W> {
    encoder.write_all(text).map(|()| encoder)
}
