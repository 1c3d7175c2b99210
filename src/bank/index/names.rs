//! The list of names, each stored as what it does not share with the name before it.

use alloc::vec::Vec;

use crate::error::Error;
use crate::memory::reserve;

/// Bytes of an entry, without its suffix.
const ENTRY_BYTES: usize = 8;
/// A name shares at most this many bytes for each byte of its suffix, so that few forged bytes cannot be long names.
const MOST_SHARED: usize = 8;

/// What the entry of a file stores.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) bank: u8,
    /// 0 if the file has no keys.
    pub(super) n_blocks: u32,
}

/// Appends the entries of files in ascending order of their names, then the suffixes.
pub(super) fn encode<'a>(files: impl Iterator<Item = (&'a [u8], Entry)>, out: &mut Vec<u8>) {
    let (mut before, mut suffixes) = (&[][..], Vec::new());
    for (name, Entry { bank, n_blocks }) in files {
        let same = before.iter().zip(name).take_while(|(a, b)| a == b).count();
        // At least one byte in nine is the suffix's.
        let shared = same.min(name.len() * MOST_SHARED / (MOST_SHARED + 1)).min(usize::from(u8::MAX));
        out.extend([shared as u8, bank]);
        out.extend(((name.len() - shared) as u16).to_le_bytes());
        out.extend(n_blocks.to_le_bytes());
        suffixes.extend_from_slice(&name[shared..]);
        before = name;
    }
    out.extend(suffixes);
}

/// Reads what [`encode`] wrote for this number of files.
pub(super) fn decode(bytes: &[u8], files: u64) -> Result<(Vec<Vec<u8>>, Vec<Entry>), Error> {
    let len = usize::try_from(files).ok().and_then(|files| files.checked_mul(ENTRY_BYTES));
    let split = len.and_then(|len| bytes.split_at_checked(len));
    let (listed, mut suffixes) = split.ok_or(Error::impossible("number of files", files))?;
    let (mut names, mut entries) = (Vec::<Vec<u8>>::new(), Vec::new());
    reserve(&mut names, listed.len() / ENTRY_BYTES)?;
    reserve(&mut entries, listed.len() / ENTRY_BYTES)?;
    for &[shared, bank, a, b, n_blocks @ ..] in listed.as_chunks::<ENTRY_BYTES>().0 {
        let wrong = Error::impossible("name of file", names.len() as u64);
        let (shared, len) = (usize::from(shared), usize::from(u16::from_le_bytes([a, b])));
        let before = names.last().map_or(&[][..], Vec::as_slice);
        let start = before.get(..shared).filter(|_| shared <= MOST_SHARED * len).ok_or(wrong)?;
        let suffix = suffixes.split_off(..len).ok_or(wrong)?;
        let mut name = Vec::new();
        reserve(&mut name, shared + len)?;
        name.extend_from_slice(start);
        name.extend_from_slice(suffix);
        if !names.is_empty() && *before >= *name {
            return Err(wrong);
        }
        names.push(name);
        entries.push(Entry { bank, n_blocks: u32::from_le_bytes(n_blocks) });
    }
    if suffixes.is_empty() { Ok((names, entries)) } else { Err(Error::impossible("number of files", files)) }
}
