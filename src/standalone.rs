//! Standalone bytes, for files and networks (section 5 of the format). Variants encode theirs in their own files, with
//! the same methods.

use xxhash_rust::xxh64::xxh64;

use crate::blocks::BlockSlice;
use crate::error::Error;
use crate::footer::{self, CHECKSUM_BYTES, StandaloneFooter, checksum, split_filter};
use crate::hash::Seed;
use crate::kind::StandaloneKind;
use crate::lanes::{LANE_BYTES, Lanes, with_fewest_lanes};
use crate::mask::ProbeCount;
use crate::modules::{MOST_MODULES, Modules};

/// The checksums of modules, in order.
pub(crate) type ModuleChecksums = [[u8; CHECKSUM_BYTES]];

/// Calls `write` with the lanes, then with the checksums and the footer that follow them.
pub(crate) fn encode<E>(
    modules: Modules<'_>,
    k: ProbeCount,
    seed: Seed,
    keys: Option<u64>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    with_fewest_lanes([modules], |[lanes]| {
        write(lanes.as_bytes())?;
        write_tail(lanes.as_bytes().len(), computed_checksums(lanes), k, seed, keys, &mut write)
    })
}

/// The length of what [`encode`] writes.
pub(crate) fn len(modules: Modules<'_>) -> usize {
    with_fewest_lanes([modules], |[lanes]| lanes.as_bytes().len()) + tail_len(modules.n_modules())
}

/// The length of what [`write_tail`] writes.
pub(crate) fn tail_len(n_modules: usize) -> usize {
    StandaloneFooter::LEN + if n_modules == 1 { 0 } else { CHECKSUM_BYTES * n_modules }
}

/// The checksum of each module.
pub(crate) fn computed_checksums(lanes: Lanes<'_>) -> impl Iterator<Item = u64> {
    let module_len = lanes.as_bytes().len() / lanes.n_modules();
    lanes.as_bytes().chunks_exact(module_len).zip(0..).map(|(module, number)| xxh64(module, number))
}

/// Calls `write` with what follows the lanes of modules that have these checksums.
pub(crate) fn write_tail<E>(
    lanes_len: usize,
    computed: impl Iterator<Item = u64>,
    k: ProbeCount,
    seed: Seed,
    keys: Option<u64>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let (mut checksums, mut n_modules) = ([[0; CHECKSUM_BYTES]; MOST_MODULES], 0);
    for (checksum, computed) in checksums.iter_mut().zip(computed) {
        *checksum = computed.to_le_bytes();
        n_modules += 1;
    }
    let (n_lanes, k, seed) = ((lanes_len / LANE_BYTES) as u64, k.get(), seed.get());
    let footer = |contents| StandaloneFooter::new(StandaloneKind::Blocked, n_lanes, k, seed, keys, contents);
    if n_modules == 1 {
        return write(&footer(u64::from_le_bytes(checksums[0])).to_bytes());
    }
    let checksums = checksums[..n_modules].as_flattened();
    write(checksums)?;
    let footer = StandaloneFooter { n_modules, has_checksums: true, ..footer(checksum(checksums)) };
    write(&footer.to_bytes())
}

/// The lanes, k, the modules' checksums and the footer.
pub(crate) fn read_standalone(
    bytes: &[u8],
) -> Result<(Lanes<'_>, ProbeCount, &ModuleChecksums, StandaloneFooter), Error> {
    let (body, footer) = split_filter(bytes, StandaloneKind::Blocked)?;
    let k = footer.probe_count(ProbeCount::new)?;
    footer.check_size(body)?;
    let wrong_size = || footer.wrong_size(body);
    if !footer.has_checksums {
        // The checksum of the only module is the footer's.
        let checksum = &bytes[body.len()..][StandaloneFooter::BODY_CHECKSUM];
        return Ok((Lanes::new(body).ok_or_else(wrong_size)?, k, checksum.as_chunks().0, footer));
    }
    let n_modules = footer.n_modules;
    let lanes_len = body.len().checked_sub(CHECKSUM_BYTES * n_modules).ok_or_else(wrong_size)?;
    let (lanes, checksums) = body.split_at(lanes_len);
    let blocks = BlockSlice::new(lanes.as_chunks().0).ok_or_else(wrong_size)?;
    let modules = Modules::new(blocks, n_modules).ok_or_else(wrong_size)?;
    footer::verify(checksums, footer.body_checksum)?;
    Ok((Lanes::Blocks(modules), k, checksums.as_chunks().0, footer))
}

/// Splits off the last of several filters' standalone bytes.
pub(crate) fn split_last_standalone(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let (before, footer) = split_filter(bytes, StandaloneKind::Blocked)?;
    let start = footer.body_len().and_then(|lanes| before.len().checked_sub(lanes));
    let start = start.ok_or_else(|| footer.wrong_size(before))?;
    Ok(bytes.split_at(start))
}

/// The methods that write standalone bytes, by a filter's `encode` and `standalone_len`.
macro_rules! standalone_io {
    () => {
        /// Returns the standalone bytes, with checksums, for a file or a network.
        #[doc(alias = "to_bytes")]
        #[must_use]
        pub fn to_standalone(&self) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(self.standalone_len());
            let Ok(()) = self.encode(|part| {
                bytes.extend_from_slice(part);
                Ok::<_, core::convert::Infallible>(())
            });
            bytes
        }

        /// Writes the standalone bytes to a file, a socket, a `Vec` or any other writer, and flushes it. Copies at most
        /// a small part at a time. Requires the feature `std`.
        ///
        /// # Errors
        ///
        /// The writer's errors.
        #[doc(alias = "save")]
        #[cfg(feature = "std")]
        pub fn write_standalone(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
            self.encode(|part| out.write_all(part))?;
            out.flush()
        }
    };
}
pub(crate) use standalone_io;
