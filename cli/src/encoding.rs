//! Text in UTF-16 or UTF-32, detected by its first bytes.
#![forbid(unsafe_code)]

use std::io::{Cursor, ErrorKind, Read};

use anyhow::{Result, ensure};
use encoding_rs_io::DecodeReaderBytes;

use crate::decompress::read_error;

/// UTF-32 is before UTF-16, because a mark of UTF-16 begins one of its marks.
const MARKS: [(&[u8], &str); 4] = [
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// Bytes that are read to find the encoding, and bytes without which a text without a mark is none of these.
const READ: usize = 256;
const ENOUGH: usize = 64;

/// A reader of the same text, in UTF-8 if it is UTF-16 and `decodes`. Other text of these encodings is an error.
pub fn utf_8(name: &str, mut reader: Box<dyn Read + Send>, decodes: bool) -> Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    // Only while they could begin such a text. Otherwise this could wait for more than a pipe has.
    while first.len() < READ && is_undecided(&first) {
        let (mut buffer, room) = ([0; READ], READ - first.len());
        match reader.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(n) => first.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(read_error(name, &error)),
        }
    }
    let found = encoding(&first);
    let whole = Cursor::new(first).chain(reader);
    let Some((encoding, missing_mark)) = found else { return Ok(Box::new(whole)) };
    ensure!(
        decodes && encoding != "UTF-32",
        "{name}: is {encoding} (convert its text with `iconv -f {encoding} -t UTF-8`)"
    );
    Ok(Box::new(DecodeReaderBytes::new(missing_mark.chain(whole))))
}

/// The encoding by the name that `iconv` has for it, and the mark that such text would begin with if it has none.
fn encoding(first: &[u8]) -> Option<(&'static str, &'static [u8])> {
    if let Some((_, encoding)) = MARKS.iter().find(|(mark, _)| first.starts_with(mark)) {
        return Some((encoding, b""));
    }
    match first.len() >= ENOUGH {
        true if is_utf_16(first, u16::from_le_bytes) => Some(("UTF-16LE", b"\xff\xfe")),
        true if is_utf_16(first, u16::from_be_bytes) => Some(("UTF-16BE", b"\xfe\xff")),
        _ => None,
    }
}

fn is_undecided(first: &[u8]) -> bool {
    let is_in_mark = MARKS.iter().any(|(mark, _)| mark.starts_with(first));
    // An empty line may be all that a pipe has.
    let is_in_unit = first.len() == 1 && first != b"\n";
    is_in_mark || is_in_unit || is_utf_16(first, u16::from_le_bytes) || is_utf_16(first, u16::from_be_bytes)
}

/// Whether nine of ten units are ASCII text. Integers, of whatever size, are often below 128 too, but not all of them are
/// codes of letters and spaces.
fn is_utf_16(text: &[u8], unit: impl Fn([u8; 2]) -> u16) -> bool {
    let units = || text.as_chunks().0.iter().map(|&bytes| unit(bytes));
    let is_control = |unit: u16| unit < 32 && !matches!(unit, 9..=13 | 27) || unit == 127;
    let n_ascii = units().filter(|&unit| unit < 128).count();
    n_ascii > 0 && n_ascii * 10 >= units().count() * 9 && !units().any(is_control)
}
