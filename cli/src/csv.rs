//! Rows of CSV, where fields can be quoted (RFC 4180).
//!
//! Rows end with a newline outside of quotes, and a CR before it belongs to the end. Only rows with a quote are parsed,
//! because `keys.rs` finds the fields of rows without one much faster.
#![forbid(unsafe_code)]

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter};

/// The UTF-8 byte-order mark at the beginning of a file, or nothing. Editors on Windows write it first, to tell the
/// encoding. A file with it and one without have the same keys.
pub fn bom(bytes: &[u8]) -> &[u8] {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    if bytes.starts_with(BOM) { BOM } else { b"" }
}

/// The header at the beginning of a file, without its end.
pub fn header(bytes: &[u8]) -> &[u8] {
    let row = &bytes[bom(bytes).len()..];
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

pub struct Csv {
    reader: Reader,
    field: Vec<u8>,
    /// Whether the beginning of a row with a quote has been read.
    pub is_in_row: bool,
}

impl Csv {
    pub fn new(delimiter: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        Self { reader, field: vec![0; 4096], is_in_row: false }
    }

    fn begin_row(&mut self) {
        self.reader.reset();
        // Otherwise it would treat the beginning of any row as the file's, and remove a byte-order mark.
        self.reader.read_field(b"\n", &mut self.field);
    }

    /// Appends where rows end. The first one begins at `start`, and the bytes before `searched` were read before, but do
    /// not end it. Returns whether there is a quote.
    pub fn find_ends(
        &mut self,
        bytes: &[u8],
        mut start: usize,
        searched: usize,
        ends: &mut Vec<usize>,
    ) -> bool {
        let (mut at, mut has_quotes) = (searched, self.is_in_row);
        loop {
            if !self.is_in_row {
                let quote = memchr(b'"', &bytes[at..]).map(|n| at + n);
                ends.extend(memchr_iter(b'\n', &bytes[at..quote.unwrap_or(bytes.len())]).map(|n| at + n + 1));
                if quote.is_none() {
                    return has_quotes;
                }
                start = ends.last().map_or(start, |&end| end);
                (at, has_quotes, self.is_in_row) = (start, true, true);
                self.begin_row();
            }
            let Some(n) = self.row_end(&bytes[at..]) else { return true };
            at += n;
            ends.push(at);
            self.is_in_row = false;
        }
    }

    fn row_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        // Without input, the reader would end the row.
        while at < bytes.len() {
            let (result, n, _) = self.reader.read_field(&bytes[at..], &mut self.field);
            at += n;
            if let ReadFieldResult::Field { record_end: true } = result {
                return Some(at);
            }
        }
        None
    }

    /// A field of a row, counted from 1, without quotes. The row is given without its end.
    pub fn field(&mut self, row: &[u8], number: usize) -> Option<&[u8]> {
        self.begin_row();
        // No field is longer than its row.
        self.field.resize(self.field.len().max(row.len()), 0);
        let (mut rest, mut n) = (row, 1);
        loop {
            let (mut result, n_read, len) = self.reader.read_field(rest, &mut self.field);
            rest = &rest[n_read..];
            if let ReadFieldResult::InputEmpty = result {
                result = self.reader.read_field(b"\n", &mut self.field[len..]).0;
            }
            match result {
                ReadFieldResult::Field { .. } if n == number => return Some(&self.field[..len]),
                ReadFieldResult::Field { record_end: false } => n += 1,
                _ => return None,
            }
        }
    }
}
