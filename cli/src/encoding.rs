//! Text in UTF-16 or UTF-32, detected by its first bytes.
#![forbid(unsafe_code)]

use std::io::{Cursor, Read};

use anyhow::{Result, ensure};
use encoding_rs_io::DecodeReaderBytes;

use crate::decompress::read_error;

/// UTF-32 comes first, because one of its marks begins with a mark of UTF-16.
const MARKS: [(&[u8], &str); 4] = [
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// The most bytes that are read to find the encoding, and the fewest by which a text without a mark is known as UTF-16.
const SEEN: usize = 256;
const ENOUGH: usize = 64;

/// A reader of the same text, and whether it is UTF-16 that is converted to UTF-8, as it is if `decodes`. Other UTF-16, and
/// UTF-32, are errors.
pub fn utf_8(
    name: &str,
    mut reader: Box<dyn Read + Send>,
    decodes: bool,
) -> Result<(Box<dyn Read + Send>, bool)> {
    let mut first = Vec::new();
    // Byte by byte, and only while they could begin such a text. Otherwise this could wait for more than a pipe has.
    #[expect(clippy::unbuffered_bytes, reason = "of at most 256 bytes")]
    let mut bytes = reader.by_ref().bytes();
    while first.len() < SEEN && is_undecided(&first) {
        let Some(byte) = bytes.next() else { break };
        first.push(byte.map_err(|error| read_error(name, &error))?);
    }
    let found = encoding(&first);
    let whole = Cursor::new(first).chain(reader);
    let Some((encoding, missing_mark)) = found else { return Ok((Box::new(whole), false)) };
    ensure!(
        decodes && encoding != "UTF-32",
        "{name}: is {encoding} (convert its text with `iconv -f {encoding} -t UTF-8`)"
    );
    Ok((Box::new(DecodeReaderBytes::new(missing_mark.chain(whole))), true))
}

/// The encoding by the name that `iconv` has for it, and the mark that such text would begin with if it has none.
fn encoding(first: &[u8]) -> Option<(&'static str, &'static [u8])> {
    if let Some((_, encoding)) = MARKS.iter().find(|(mark, _)| first.starts_with(mark)) {
        return Some((encoding, b""));
    }
    match first.len() >= ENOUGH {
        true if is_utf_16(first, u16::from_le_bytes, 9) => Some(("UTF-16LE", b"\xff\xfe")),
        true if is_utf_16(first, u16::from_be_bytes, 9) => Some(("UTF-16BE", b"\xfe\xff")),
        _ => None,
    }
}

fn is_undecided(first: &[u8]) -> bool {
    let is_in_mark = MARKS.iter().any(|(mark, _)| mark.starts_with(first));
    // An empty line may be all that a pipe has.
    let is_in_unit = first.len() == 1 && first != b"\n";
    is_in_mark
        || is_in_unit
        || is_utf_16(first, u16::from_le_bytes, 5)
        || is_utf_16(first, u16::from_be_bytes, 5)
}

/// Whether at least so many of ten units are Latin letters and the like, whose upper byte is zero, and none is a
/// control character. Small integers have a zero upper byte too, but some of them are control characters.
fn is_utf_16(text: &[u8], unit: impl Fn([u8; 2]) -> u16, of_ten: usize) -> bool {
    let units = || text.as_chunks().0.iter().map(|&bytes| unit(bytes));
    let is_control = |unit: u16| matches!(unit, 0..=8 | 14..=26 | 28..=31 | 127..=159);
    let n_latin = units().filter(|&unit| unit < 256).count();
    n_latin > 0 && n_latin * 10 >= units().count() * of_ten && !units().any(is_control)
}
