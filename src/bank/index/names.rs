//! The list of names, each stored as what it does not share with the name before it.

use alloc::vec::Vec;

use crate::error::Error;
use crate::memory::reserve;

/// Bytes of an entry, without its suffix.
pub(super) const ENTRY_BYTES: usize = 8;
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
pub(super) fn encode<'a>(files: impl Iterator<Item = (&'a [u8], Entry)> + Clone, out: &mut Vec<u8>) {
    let before = core::iter::once(&[][..]).chain(files.clone().map(|(name, _)| name));
    let names = files.clone().map(|(name, _)| name);
    let shared = before.zip(names).map(|(before, name)| {
        let same = before.iter().zip(name).take_while(|(a, b)| a == b).count();
        // At least one byte in nine is the suffix.
        same.min(name.len() * MOST_SHARED / (MOST_SHARED + 1)).min(usize::from(u8::MAX))
    });
    for ((name, Entry { bank, n_blocks }), shared) in files.clone().zip(shared.clone()) {
        out.extend([shared as u8, bank]);
        out.extend(((name.len() - shared) as u16).to_le_bytes());
        out.extend(n_blocks.to_le_bytes());
    }
    for ((name, _), shared) in files.zip(shared) {
        out.extend_from_slice(&name[shared..]);
    }
}

/// Names in one piece of memory.
#[derive(Clone, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    /// Reads what [`encode`] wrote for this number of files.
    pub(super) fn decode(bytes: &[u8], files: usize) -> Result<(Self, Vec<Entry>), Error> {
        let split = files.checked_mul(ENTRY_BYTES).and_then(|len| bytes.split_at_checked(len));
        let (entries, mut suffixes) = split.ok_or_else(|| wrong(files))?;
        let (mut names, mut kept) = (Self::default(), Vec::new());
        reserve(&mut names.ends, files)?;
        reserve(&mut kept, files)?;
        let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
        for (file, &[shared, bank, a, b, n_blocks @ ..]) in entries.iter().enumerate() {
            let (shared, len) = (usize::from(shared), usize::from(u16::from_le_bytes([a, b])));
            let (start, before_len) = (names.bytes.len(), names.get(file.wrapping_sub(1)).len());
            let suffix = suffixes.split_off(..len).filter(|_| shared <= before_len.min(MOST_SHARED * len));
            let suffix = suffix.ok_or_else(|| wrong(file))?;
            reserve(&mut names.bytes, shared + len)?;
            names.bytes.extend_from_within(start - before_len..start - before_len + shared);
            names.bytes.extend_from_slice(suffix);
            names.ends.push(names.bytes.len());
            if file > 0 && names.get(file - 1) >= names.get(file) {
                return Err(wrong(file));
            }
            kept.push(Entry { bank, n_blocks: u32::from_le_bytes(n_blocks) });
        }
        if suffixes.is_empty() { Ok((names, kept)) } else { Err(wrong(files)) }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The name of a file, empty if there is no such file.
    pub(super) fn get(&self, file: usize) -> &[u8] {
        let end = self.ends.get(file).copied().unwrap_or_default();
        let start = file.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.bytes.get(start..end).unwrap_or_default()
    }
}

fn wrong(file: usize) -> Error {
    Error::damaged("the index's names are wrong at file {}: a faulty program wrote it", [file as u64])
}
