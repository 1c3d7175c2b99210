//! Checksums of a bank. The footer depends on all regions, and each region's checksum on the footer, so that a region
//! of a different bank is an error.

use xxhash_rust::xxh64::xxh64;

use super::shape::TRAILER_BYTES;
use crate::error::Error;
use crate::footer::{self, StandaloneFooter};

/// The checksums that a footer stores.
#[derive(Clone, Copy)]
pub(super) struct Checksums {
    contents: u64,
    footer: u64,
}

impl Checksums {
    pub(super) fn of_footer(footer: &[u8; StandaloneFooter::LEN]) -> Self {
        let (fields, _) = footer.as_chunks();
        Self { contents: u64::from_le_bytes(fields[4]), footer: u64::from_le_bytes(fields[6]) }
    }

    /// The checksum of a region whose rows have this hash.
    pub(super) fn of_region(self, hash: u64) -> u64 {
        hash.wrapping_add(self.footer)
    }

    /// Compares a region, including the 64 bytes behind its rows, with its checksum. Returns the hash of its rows.
    pub(super) fn verify_region(self, region: &[u8], block: usize) -> Result<u64, Error> {
        let (rows, trailer) =
            region.split_last_chunk::<TRAILER_BYTES>().expect("a region of a checked length");
        let (stored, zeros) = trailer.split_first_chunk().expect("64 bytes");
        let hash = region_hash(rows, block);
        let (stored, computed) = (u64::from_le_bytes(*stored), self.of_region(hash));
        if stored != computed || zeros.iter().any(|&byte| byte != 0) {
            let text = "the bank's region {} is damaged, or these are other bytes: their checksum is {word}, stored {word}";
            return Err(Error::damaged(text, [block as u64, computed, stored]));
        }
        Ok(hash)
    }

    pub(super) fn verify<'a>(
        self,
        regions: impl Iterator<Item = &'a [u8]>,
        known_keys: &[u8],
    ) -> Result<(), Error> {
        let mut hashes = regions.enumerate().map(|(block, region)| self.verify_region(region, block));
        let sum = hashes.try_fold(0, |sum, hash| hash.map(|hash| u64::wrapping_add(sum, hash)))?;
        footer::compare(self.contents, xxh64(known_keys, sum))
    }
}

pub(super) fn region_hash(rows: &[u8], block: usize) -> u64 {
    xxh64(rows, block as u64)
}

/// The checksum of the known keys and of regions whose rows have these hashes.
pub(super) fn contents(region_hashes: impl Iterator<Item = u64>, known_keys: &[u8]) -> u64 {
    xxh64(known_keys, region_hashes.fold(0, u64::wrapping_add))
}
