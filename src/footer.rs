//! The footer of 64 bytes that ends all standalone bytes, and lookups that need no more than the footer and one block.
//! The first fields of a footer differ between kinds.

use core::ops::Range;

use xxhash_rust::xxh64::xxh64;

use crate::blocks::LANES;
use crate::error::{Error, ErrorKind};
use crate::hash;
use crate::kernel::Kernel;
use crate::kind::{MODULES_MAGIC, StandaloneKind};
use crate::lanes::{LANE_BYTES, Lanes};
use crate::mask::{ProbeCount, below};
use crate::modules::MOST_MODULES;

/// The version that this crate writes, and the only one that it reads.
pub(crate) const VERSION: u8 = 2;
const FOOTER_BYTES: usize = StandaloneFooter::LEN;
/// Stored if the number of keys is not known.
pub(crate) const UNKNOWN_KEYS: u64 = u64::MAX;

/// The footer of a single filter's standalone bytes. It describes the filter without opening it, finds the filter at
/// the end of a larger file, and finds the few bytes that one lookup needs.
///
/// # Examples
///
/// ```
/// use bloomline::{BloomFilter, BloomView, StandaloneFooter, StandaloneKind};
///
/// let mut file = b"rows".repeat(16); // a multiple of 64, so that each block of the filter is one cache line
/// BloomFilter::with_blocks(100, 6)?.write_standalone(&mut file)?;
/// let footer = StandaloneFooter::read(&file)?;
/// assert_eq!((footer.kind, footer.size, footer.n_modules, footer.k), (StandaloneKind::Blocked, 800, 1, 6));
///
/// let filter = file.len().checked_sub(footer.standalone_len().ok_or("damaged")?).ok_or("damaged")?;
/// assert_eq!(BloomView::from_standalone(&file[filter..])?.n_blocks(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandaloneFooter {
    /// The kind of filter, which is blocked, standard or counting.
    pub kind: StandaloneKind,
    /// Version of the format, 2.
    pub version: u8,
    /// The hash that placed the keys, 2 for wyhash final version 3.
    pub hash_id: u8,
    /// Lanes of 64 bits of a blocked filter, of all its modules, bits of a standard filter, or blocks of a counting
    /// filter.
    pub size: u64,
    /// Modules of a blocked filter, 1 to 16, and 1 for all others.
    pub n_modules: usize,
    /// Probes per key, in each module, as stored.
    pub k: u32,
    /// The seed that keys were hashed with.
    pub seed: u64,
    /// Number of distinct keys, if known.
    pub known_keys: Option<u64>,
    /// XXH64 of the bytes before the footer, or of the modules' checksums if there are several.
    pub body_checksum: u64,
    /// Whether a checksum for each module is before the footer.
    pub(crate) has_checksums: bool,
}

/// The checksum of a module.
pub(crate) const CHECKSUM_BYTES: usize = size_of::<u64>();

impl StandaloneFooter {
    /// Length of a footer, in bytes.
    pub const LEN: usize = 64;

    /// Where the checksum of the body is.
    pub(crate) const BODY_CHECKSUM: Range<usize> = 32..40;

    /// Reads the footer at the end of `bytes`, which may begin before the filter or after its start, because the last
    /// 64 bytes are enough. Size and k are as stored. They are checked only when the filter is opened.
    ///
    /// # Errors
    ///
    /// If there are fewer than 64 bytes, if the last eight do not identify a single filter, if the footer is damaged,
    /// of a different version or has reserved bytes that are not zero, or if a different hash function placed the keys.
    ///
    /// [`ErrorKind::Unrecognized`] for a scalable filter, a frontier, a bank or an index, because their footers have
    /// different fields. [`StandaloneKind::of`] recognises them. [`BankFooter`](crate::bank::BankFooter) reads a bank's
    /// footer, and [`IndexFooter`](crate::bank::IndexFooter) an index's.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let has_this_footer = |kind: &_| matches!(kind, StandaloneKind::Standard | StandaloneKind::Counting);
        let kind = StandaloneKind::of(bytes).filter(has_this_footer).unwrap_or(StandaloneKind::Blocked);
        split_filter(bytes, kind).map(|(_, footer)| footer)
    }

    /// The range of bytes that a lookup of a hash needs, counted from the start of the filter's standalone bytes. This
    /// is one block of 64 bytes, or all lanes of a short filter, up to 504 bytes.
    ///
    /// # Errors
    ///
    /// If this is not the footer of a blocked filter, or no filter has its size, or if it has several modules, because
    /// one range is not enough for them.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::{BloomFilter, StandaloneFooter, hash_key};
    ///
    /// let mut filter = BloomFilter::with_fpr(1_000, 0.01)?;
    /// filter.insert("ant");
    /// let object = filter.to_standalone(); // in an object store
    ///
    /// let footer = StandaloneFooter::read(&object[object.len() - 64..])?;
    /// let hash = hash_key("ant", footer.seed);
    /// let range = footer.range(hash)?;
    /// let bytes = &object[range.start as usize..range.end as usize]; // a GET of this range
    /// assert!(footer.contains_in_range(bytes, hash)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range(&self, hash: u64) -> Result<Range<u64>, Error> {
        if self.kind != StandaloneKind::Blocked {
            return Err(unrecognized(self.kind.magic()));
        }
        if self.n_modules != 1 {
            let text = "a filter of {} modules cannot be asked by ranges: rebuild it by with_most_modules(1) or for_fpr_within(.., 1)";
            return Err(Error::argument(text, [self.n_modules as u64]));
        }
        let wrong_size = || Error::impossible("number of lanes", self.size);
        let len = self.size.checked_mul(8).filter(|&len| len != 0).ok_or_else(wrong_size)?;
        if !self.size.is_multiple_of(8) {
            return if self.size < 64 { Ok(0..len) } else { Err(wrong_size()) };
        }
        let block = below(self.size / 8, hash);
        Ok(64 * block..64 * (block + 1))
    }

    /// Returns whether the key of a hash is possibly present, from the bytes of its [`range`](Self::range). `false` means
    /// definitely absent.
    ///
    /// These bytes have no checksum, so rely on a checksum of the store or the connection. **Damaged bits lose keys,
    /// and so do the bytes of a different filter**, because this method cannot tell them apart. So read the footer and
    /// the range from one version of the file.
    ///
    /// # Errors
    ///
    /// As [`range`](Self::range), and if the bytes do not have the range's length, or if no filter has the footer's k.
    /// Treat the key as possibly present.
    pub fn contains_in_range(&self, bytes: &[u8], hash: u64) -> Result<bool, Error> {
        let range = self.range(hash)?;
        let expected = (range.end - range.start) as usize;
        let lanes = Lanes::new(bytes).filter(|_| bytes.len() == expected);
        let lanes = lanes.ok_or_else(|| wrong_range(expected, bytes))?;
        let (k, kernel) = (self.probe_count(ProbeCount::new)?, Kernel::active());
        // One block is enough, because the mask of a hash is the same in a filter of any size.
        Ok(lanes.with_blocks(|modules| kernel.contains(modules.blocks, hash, k)))
    }

    /// Length of the filter's standalone bytes in bytes, this footer included, or `None` if it exceeds `usize`. It is
    /// computed from the size as stored, so the file may be shorter.
    pub fn standalone_len(&self) -> Option<usize> {
        self.body_len()?.checked_add(Self::LEN)
    }

    /// Length of the bytes before the footer, or `None` if it exceeds `usize`.
    pub(crate) fn body_len(&self) -> Option<usize> {
        let (units, unit_bytes) = match self.kind {
            StandaloneKind::Standard => (self.size.div_ceil(64), LANE_BYTES),
            // Four bits for each of a block's 512.
            StandaloneKind::Counting => (self.size, 256),
            _ => (self.size, LANE_BYTES),
        };
        let checksums = if self.has_checksums { CHECKSUM_BYTES * self.n_modules } else { 0 };
        usize::try_from(units).ok()?.checked_mul(unit_bytes)?.checked_add(checksums)
    }

    /// The footer of a filter of one module whose bytes before it have this [`checksum`].
    pub(crate) fn new(
        kind: StandaloneKind,
        size: u64,
        k: u32,
        seed: u64,
        known_keys: Option<u64>,
        body_checksum: u64,
    ) -> Self {
        let (version, hash_id) = (VERSION, hash::HASH_ID);
        let (n_modules, has_checksums) = (1, false);
        Self { kind, version, hash_id, size, n_modules, k, seed, known_keys, body_checksum, has_checksums }
    }

    pub(crate) fn to_bytes(self) -> [u8; FOOTER_BYTES] {
        let (size, modules, magic) = match self.has_checksums {
            false => (self.size, 0, self.kind.magic()),
            true => (self.size / (LANES * self.n_modules) as u64, self.n_modules as u8, MODULES_MAGIC),
        };
        let fields = [
            size,
            self.known_keys.unwrap_or(UNKNOWN_KEYS),
            self.seed,
            hash::CHECK_VALUE,
            self.body_checksum,
            u64::from_le_bytes([self.version, self.k as u8, self.hash_id, modules, 0, 0, 0, 0]),
        ];
        seal(fields, magic)
    }

    /// The stored k, if `new` accepts it.
    pub(crate) fn probe_count<K>(&self, new: impl FnOnce(u32) -> Result<K, Error>) -> Result<K, Error> {
        new(self.k).map_err(|_| Error::impossible("k", self.k))
    }

    /// Fails if the body is empty, or not as long as the stored size requires.
    pub(crate) fn check_size(&self, body: &[u8]) -> Result<(), Error> {
        let fits = self.size != 0 && self.body_len() == Some(body.len());
        if fits { Ok(()) } else { Err(self.wrong_size(body)) }
    }

    pub(crate) fn wrong_size(&self, body: &[u8]) -> Error {
        let unit = match self.kind {
            StandaloneKind::Standard => "bits",
            StandaloneKind::Counting => "blocks of 256 counter bytes",
            _ => "lanes of 8 bytes",
        };
        Error::wrong_size(unit, self.size, body.len())
    }
}

/// The bytes before a filter's footer, and the footer.
pub(crate) fn split_filter(bytes: &[u8], kind: StandaloneKind) -> Result<(&[u8], StandaloneFooter), Error> {
    let (body, [size, keys, seed, check_value, body_checksum, last]) = split(bytes, kind)?;
    let [version, k, hash_id, ..] = last.to_le_bytes();
    if hash_id != hash::HASH_ID {
        return Err(Error::impossible("hash id", hash_id));
    }
    if check_value != hash::CHECK_VALUE {
        let text =
            "another hash function placed the keys (check value {word}, ours {word}): rebuild the filter";
        return Err(Error::new(ErrorKind::Unsupported, text, [check_value, hash::CHECK_VALUE]));
    }
    let known_keys = Some(keys).filter(|&keys| keys != UNKNOWN_KEYS);
    let footer = StandaloneFooter::new(kind, size, k.into(), seed, known_keys, body_checksum);
    let footer = StandaloneFooter { version, hash_id, ..footer };
    let found = last >> 24;
    match bytes.ends_with(&MODULES_MAGIC) {
        false if found == 0 => Ok((body, footer)),
        false => Err(Error::impossible("reserved bytes", found)),
        true if (1..=MOST_MODULES as u64).contains(&found) => {
            // A forged number of blocks that overflows matches no number of bytes.
            let size = size.saturating_mul(LANES as u64 * found);
            Ok((body, StandaloneFooter { size, n_modules: found as usize, has_checksums: true, ..footer }))
        }
        true => Err(Error::impossible("number of modules", found)),
    }
}

/// The bytes of a footer, which are the fields, their checksum and the magic.
pub(crate) fn seal(fields: [u64; 6], magic: [u8; 8]) -> [u8; FOOTER_BYTES] {
    let fields = fields.map(u64::to_le_bytes);
    let checksum = xxh64(fields.as_flattened(), 0).to_le_bytes();
    let [a, b, c, d, e, f] = fields;
    bytemuck::cast([a, b, c, d, e, f, checksum, magic])
}

/// The bytes before the footer, and the fields before its checksum. The first byte of the last field is the version.
pub(crate) fn split(bytes: &[u8], kind: StandaloneKind) -> Result<(&[u8], [u64; 6]), Error> {
    let footer = bytes.split_last_chunk::<FOOTER_BYTES>();
    let (before, footer) = footer.ok_or_else(|| too_short(bytes, LANE_BYTES + FOOTER_BYTES))?;
    let (fields, _) = footer.as_chunks::<8>();
    let field = |i: usize| u64::from_le_bytes(fields[i]);
    if StandaloneKind::of(&fields[7]) != Some(kind) {
        return Err(unrecognized(fields[7]));
    }
    if fields[5][0] != VERSION {
        return Err(wrong_version(fields[5][0]));
    }
    let (stored, computed) = (field(6), xxh64(&footer[..48], 0));
    if stored != computed {
        let text = "the footer is damaged: its checksum is {word}, stored {word}";
        return Err(Error::damaged(text, [computed, stored]));
    }
    Ok((before, core::array::from_fn(field)))
}

pub(crate) fn checksum(body: &[u8]) -> u64 {
    xxh64(body, 0)
}

/// Compares the bytes before a footer with their checksum.
pub(crate) fn verify(body: &[u8], stored: u64) -> Result<(), Error> {
    compare(stored, checksum(body))
}

/// Fails unless the stored checksum of bytes is the computed one.
pub(crate) fn compare(stored: u64, computed: u64) -> Result<(), Error> {
    let text = "the bytes are damaged: their checksum is {word}, stored {word}";
    if computed == stored { Ok(()) } else { Err(Error::damaged(text, [computed, stored])) }
}

pub(crate) fn too_short(bytes: &[u8], least: usize) -> Error {
    let text = "the bytes were cut, or are something else: there are {}, and at least {} are needed";
    Error::new(ErrorKind::Unrecognized, text, [bytes.len(), least].map(|n| n as u64))
}

pub(crate) fn wrong_range(expected: usize, bytes: &[u8]) -> Error {
    let text = "a lookup needs {} bytes, not {}: pass those of the range, no more and no fewer";
    Error::argument(text, [expected, bytes.len()].map(|n| n as u64))
}

fn unrecognized(magic: [u8; 8]) -> Error {
    let text = match StandaloneKind::of(&magic) {
        Some(_) => "these are the bytes of a {kind}: open them as one",
        None => "not a filter's standalone bytes, or cut short: they end in {word}",
    };
    Error::new(ErrorKind::Unrecognized, text, [u64::from_be_bytes(magic)])
}

fn wrong_version(found: u8) -> Error {
    let text = if found < VERSION {
        "the bytes are of version {}, which no release wrote: rebuild the filter"
    } else {
        "the bytes are of version {}, or damaged, and this release reads up to {}: upgrade bloomline, or rebuild the filter"
    };
    Error::new(ErrorKind::Unsupported, text, [found.into(), VERSION.into()])
}
