//! Compact and standalone bytes, as `docs/format.md` specifies them.
#![forbid(unsafe_code)]

use alloc::vec::Vec;

use xxhash_rust::xxh64::xxh64;

use crate::blocks::{BlockSlice, LANES};
use crate::error::{DecodeError, HashChanged};
use crate::hash::{self, Seed};
use crate::mask::ProbeCount;
use crate::short::{self, Lane, MOST_LANES, ShortLanes};
use crate::sizing::StandardProbeCount;

/// The version that this crate writes, and the newest that it reads.
const VERSION: u8 = 1;

const LANE_BYTES: usize = 8;
pub(crate) const FOOTER_BYTES: usize = 64;
/// As in PNG's: a byte that is no text, the name, and the line ends that a text-mode transfer would change.
const MAGIC: [u8; 8] = *b"\x89bloom\r\n";
/// The same of a standard filter.
const STANDARD_MAGIC: [u8; 8] = *b"\x89blstd\r\n";
/// The same of a counting filter.
const COUNTING_MAGIC: [u8; 8] = *b"\x89blcnt\r\n";
/// Blocks of counters for each block of bits.
pub(crate) const COUNTER_BLOCKS: usize = 4;
/// The same of a scalable filter.
const SCALABLE_MAGIC: [u8; 8] = *b"\x89blscl\r\n";
/// The same of a frontier.
const FRONTIER_MAGIC: [u8; 8] = *b"\x89blsiv\r\n";
/// Stored in place of a count of keys that is not known.
const UNKNOWN_KEYS: u64 = u64::MAX;

/// Lanes read in place.
#[derive(Clone, Copy)]
pub(crate) enum Lanes<'a> {
    /// Whole blocks.
    Blocks(BlockSlice<'a>),
    /// Fewer lanes than fill whole blocks.
    Short(ShortLanes<'a>),
}

impl<'a> Lanes<'a> {
    /// `None` for a length that no filter has.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        if let (blocks, []) = bytes.as_chunks() {
            return BlockSlice::new(blocks).map(Self::Blocks);
        }
        match bytes.as_chunks() {
            (lanes, []) => ShortLanes::new(lanes).map(Self::Short),
            _ => None,
        }
    }

    fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Blocks(blocks) => blocks.as_slice().as_flattened(),
            Self::Short(short) => short.as_bytes(),
        }
    }

    /// The lanes by themselves.
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        let (lanes, _) = self.as_bytes().as_chunks();
        lanes.iter().copied().map(u64::from_le_bytes)
    }
}

/// Calls `write` with the fewest lanes that stand for these blocks.
pub(crate) fn with_fewest_lanes<T>(blocks: BlockSlice<'_>, write: impl FnOnce(Lanes<'_>) -> T) -> T {
    let mut room = [Lane::default(); MOST_LANES];
    write(short::shortest(blocks, &mut room).map_or(Lanes::Blocks(blocks), Lanes::Short))
}

/// The same for two filters of as many blocks: calls `read` with the fewest lanes that stand for their union, and what
/// each has of them.
pub(crate) fn with_fewest_lanes_of_both<T>(
    ours: BlockSlice<'_>,
    theirs: BlockSlice<'_>,
    read: impl FnOnce(Lanes<'_>, Lanes<'_>) -> T,
) -> T {
    let mut rooms = [[Lane::default(); MOST_LANES]; 2];
    match short::shortest_of_both(ours, theirs, &mut rooms) {
        Some([ours, theirs]) => read(Lanes::Short(ours), Lanes::Short(theirs)),
        None => read(Lanes::Blocks(ours), Lanes::Blocks(theirs)),
    }
}

pub(crate) fn write_compact(out: &mut Vec<u8>, blocks: BlockSlice<'_>, k: ProbeCount) {
    with_fewest_lanes(blocks, |lanes| {
        out.reserve(lanes.as_bytes().len() + 1);
        out.extend_from_slice(lanes.as_bytes());
    });
    out.push(trailer(k));
}

/// [`write_compact`] of blocks that are to share so many lanes: fewer than they have, or all.
pub(crate) fn write_compact_lanes(out: &mut Vec<u8>, blocks: BlockSlice<'_>, n_lanes: usize, k: ProbeCount) {
    let start = out.len();
    out.reserve(n_lanes * LANE_BYTES + 1);
    if n_lanes.is_multiple_of(LANES) {
        out.extend_from_slice(blocks.as_slice().as_flattened());
    } else {
        out.resize(start + n_lanes * LANE_BYTES, 0);
        let (lanes, _) = out[start..].as_chunks_mut();
        short::unite(blocks, lanes);
    }
    out.push(trailer(k));
}

fn trailer(k: ProbeCount) -> u8 {
    (VERSION << 4) | (k.get() - 1) as u8
}

pub(crate) fn compact_size(blocks: BlockSlice<'_>) -> usize {
    with_fewest_lanes(blocks, |lanes| lanes.as_bytes().len() + 1)
}

#[inline]
pub(crate) fn read_compact(bytes: &[u8]) -> Result<(Lanes<'_>, ProbeCount), DecodeError> {
    let length = DecodeError::Length { found: bytes.len() };
    let (&trailer, lanes) = bytes.split_last().ok_or(length)?;
    let lanes = Lanes::new(lanes).ok_or(length)?;
    check_version(trailer >> 4)?;
    Ok((lanes, ProbeCount::from_four_bits(trailer)))
}

#[inline]
fn check_version(found: u8) -> Result<(), DecodeError> {
    if found == VERSION { Ok(()) } else { Err(DecodeError::Version { found, newest: VERSION }) }
}

/// What the footer of standalone bytes says of the filter.
pub(crate) struct Footer {
    pub(crate) k: ProbeCount,
    pub(crate) seed: Seed,
    pub(crate) keys: Option<u64>,
    pub(crate) lanes_checksum: u64,
}

/// Calls `write` with the lanes and the footer that follows them. Fails rather than let a filter that was made with
/// another hash leave the process.
pub(crate) fn with_standalone<T>(
    blocks: BlockSlice<'_>,
    k: ProbeCount,
    seed: Seed,
    keys: Option<u64>,
    write: impl FnOnce(&[u8], [u8; FOOTER_BYTES]) -> T,
) -> Result<T, HashChanged> {
    hash::check_output()?;
    Ok(with_fewest_lanes(blocks, |lanes| {
        let lanes = lanes.as_bytes();
        let fields = Fields { size: (lanes.len() / LANE_BYTES) as u64, k: k.get() as u8, seed, keys };
        write(lanes, footer(lanes, MAGIC, fields))
    }))
}

/// The bytes that `write` appends. Panics where it refuses.
pub(crate) fn bytes_or_panic(write: impl FnOnce(&mut Vec<u8>) -> Result<(), HashChanged>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match write(&mut bytes) {
        Ok(()) => bytes,
        Err(changed) => panic!("{changed}"),
    }
}

/// What the footers of all kinds of standalone bytes say of the filter.
struct Fields {
    /// Of the lanes, in the unit of the kind.
    size: u64,
    k: u8,
    seed: Seed,
    keys: Option<u64>,
}

fn write_with_footer(out: &mut Vec<u8>, lanes: &[u8], magic: [u8; 8], fields: Fields) {
    out.reserve(lanes.len() + FOOTER_BYTES);
    out.extend_from_slice(lanes);
    out.extend(footer(lanes, magic, fields));
}

fn footer(lanes: &[u8], magic: [u8; 8], fields: Fields) -> [u8; FOOTER_BYTES] {
    let words = [
        fields.size,
        fields.keys.unwrap_or(UNKNOWN_KEYS),
        fields.seed.get(),
        hash::CHECK_VALUE,
        xxh64(lanes, 0),
        u64::from_le_bytes([VERSION, fields.k, hash::HASH_ID, 0, 0, 0, 0, 0]),
    ];
    signed_footer(words, magic)
}

/// The words, their checksum and the magic.
fn signed_footer(words: [u64; 6], magic: [u8; 8]) -> [u8; FOOTER_BYTES] {
    let words = words.map(u64::to_le_bytes);
    let checksum = xxh64(words.as_flattened(), 0).to_le_bytes();
    let [a, b, c, d, e, f] = words;
    bytemuck::cast([a, b, c, d, e, f, checksum, magic])
}

pub(crate) fn read_standalone(bytes: &[u8]) -> Result<(Lanes<'_>, Footer), DecodeError> {
    let (lanes, fields, lanes_checksum) = read_footer(bytes, MAGIC)?;
    let Fields { size: n_lanes, k, seed, keys } = fields;
    let k = probe_count(k)?;
    let wrong_lanes = DecodeError::Lanes { stored: n_lanes, found_bytes: lanes.len() };
    if n_lanes.checked_mul(LANE_BYTES as u64) != Some(lanes.len() as u64) {
        return Err(wrong_lanes);
    }
    let lanes = Lanes::new(lanes).ok_or(wrong_lanes)?;
    Ok((lanes, Footer { k, seed, keys, lanes_checksum }))
}

fn probe_count(k: u8) -> Result<ProbeCount, DecodeError> {
    ProbeCount::new(u32::from(k)).map_err(|_| DecodeError::Footer { field: "k", found: u64::from(k) })
}

/// The bytes before the footer, what it says, and its checksum of them. Neither size nor k is checked here.
fn read_footer(bytes: &[u8], magic: [u8; 8]) -> Result<(&[u8], Fields, u64), DecodeError> {
    hash::check_output()?;
    let (lanes, words) = split_footer(bytes, magic)?;
    let [_, k, hash_id, reserved @ ..] = words[5].to_le_bytes();
    if hash_id != hash::HASH_ID {
        return Err(DecodeError::Footer { field: "hash id", found: u64::from(hash_id) });
    }
    if reserved != [0; 5] {
        return Err(DecodeError::Footer { field: "reserved bytes", found: words[5] >> 24 });
    }
    let stored = words[3];
    if stored != hash::CHECK_VALUE {
        return Err(DecodeError::HashValue { stored, expected: hash::CHECK_VALUE });
    }
    let keys = Some(words[1]).filter(|&keys| keys != UNKNOWN_KEYS);
    Ok((lanes, Fields { size: words[0], k, seed: Seed::new(words[2]), keys }, words[4]))
}

/// The bytes before the footer, and its words before their checksum. The first byte of the last word is the version.
fn split_footer(bytes: &[u8], magic: [u8; 8]) -> Result<(&[u8], [u64; 6]), DecodeError> {
    let too_short = DecodeError::TooShort { found: bytes.len(), least: LANE_BYTES + FOOTER_BYTES };
    let (before, footer) = bytes.split_last_chunk::<FOOTER_BYTES>().ok_or(too_short)?;
    let (words, _) = footer.as_chunks::<8>();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    if words[7] != magic {
        return Err(DecodeError::Magic { found: words[7] });
    }
    check_version(words[5][0])?;
    let (stored, computed) = (word(6), xxh64(&footer[..48], 0));
    if stored != computed {
        return Err(DecodeError::FooterChecksum { stored, computed });
    }
    Ok((before, core::array::from_fn(word)))
}

/// Compares the lanes with the checksum of their footer.
pub(crate) fn verify_lanes(lanes: Lanes<'_>, stored: u64) -> Result<(), DecodeError> {
    verify_bytes(lanes.as_bytes(), stored)
}

fn verify_bytes(lanes: &[u8], stored: u64) -> Result<(), DecodeError> {
    let computed = xxh64(lanes, 0);
    if computed == stored { Ok(()) } else { Err(DecodeError::LanesChecksum { stored, computed }) }
}

/// What stands in the standalone bytes of a standard filter, beside its lanes.
pub(crate) struct Standard {
    pub(crate) size_bits: u64,
    pub(crate) k: StandardProbeCount,
    pub(crate) seed: Seed,
    pub(crate) keys: Option<u64>,
}

/// `lanes` are blocks: what is written ends with the lane of the last bit.
pub(crate) fn write_standard(
    out: &mut Vec<u8>,
    lanes: BlockSlice<'_>,
    standard: Standard,
) -> Result<(), HashChanged> {
    hash::check_output()?;
    let Standard { size_bits, k, seed, keys } = standard;
    let lanes = &lanes.as_slice().as_flattened()[..size_bits.div_ceil(64) as usize * LANE_BYTES];
    write_with_footer(out, lanes, STANDARD_MAGIC, Fields { size: size_bits, k: k.get() as u8, seed, keys });
    Ok(())
}

/// Reads the lanes as well: who opens these bytes copies them anyhow.
pub(crate) fn read_standard(bytes: &[u8]) -> Result<(&[u8], Standard), DecodeError> {
    let (lanes, fields, lanes_checksum) = read_footer(bytes, STANDARD_MAGIC)?;
    let Fields { size: size_bits, k, seed, keys } = fields;
    let k = StandardProbeCount::new(u32::from(k))
        .map_err(|_| DecodeError::Footer { field: "k", found: u64::from(k) })?;
    let n_lanes = size_bits.div_ceil(64);
    if n_lanes == 0 || n_lanes.checked_mul(LANE_BYTES as u64) != Some(lanes.len() as u64) {
        return Err(DecodeError::Bits { stored: size_bits, found_bytes: lanes.len() });
    }
    verify_bytes(lanes, lanes_checksum)?;
    let last_lane = lanes.last_chunk().map_or(0, |lane| u64::from_le_bytes(*lane));
    if !size_bits.is_multiple_of(64) && last_lane >> (size_bits % 64) != 0 {
        return Err(DecodeError::Footer { field: "number of bits", found: size_bits });
    }
    Ok((lanes, Standard { size_bits, k, seed, keys }))
}

/// `counters` are blocks, four for each of the filter.
pub(crate) fn write_counting(
    out: &mut Vec<u8>,
    counters: BlockSlice<'_>,
    k: u32,
    seed: Seed,
    keys: Option<u64>,
) -> Result<(), HashChanged> {
    hash::check_output()?;
    let counters = counters.as_slice();
    let fields = Fields { size: (counters.len() / COUNTER_BLOCKS) as u64, k: k as u8, seed, keys };
    write_with_footer(out, counters.as_flattened(), COUNTING_MAGIC, fields);
    Ok(())
}

/// Reads the counters as well, as [`read_standard`] does the lanes.
pub(crate) fn read_counting(bytes: &[u8]) -> Result<(BlockSlice<'_>, Footer), DecodeError> {
    let (counters, fields, lanes_checksum) = read_footer(bytes, COUNTING_MAGIC)?;
    let Fields { size: n_blocks, k, seed, keys } = fields;
    let k = probe_count(k)?;
    let wrong_blocks = DecodeError::Blocks { stored: n_blocks, found_bytes: counters.len() };
    let (blocks, odd) = counters.as_chunks();
    if n_blocks.checked_mul(COUNTER_BLOCKS as u64) != Some(blocks.len() as u64) || !odd.is_empty() {
        return Err(wrong_blocks);
    }
    verify_bytes(counters, lanes_checksum)?;
    Ok((BlockSlice::new(blocks).ok_or(wrong_blocks)?, Footer { k, seed, keys, lanes_checksum }))
}

/// What stands in the footer of a scalable filter's standalone bytes.
pub(crate) struct Scalable {
    pub(crate) n_filters: u64,
    pub(crate) keys: u64,
    pub(crate) initial_capacity: u64,
    pub(crate) fpr: f64,
    pub(crate) growth: u8,
    pub(crate) tightening: f64,
}

/// Ends the standalone bytes of the filters.
pub(crate) fn write_scalable(out: &mut Vec<u8>, scalable: Scalable) {
    let Scalable { n_filters, keys, initial_capacity, fpr, growth, tightening } = scalable;
    let last = u64::from_le_bytes([VERSION, growth, 0, 0, 0, 0, 0, 0]);
    let words = [n_filters, keys, initial_capacity, fpr.to_bits(), tightening.to_bits(), last];
    out.extend(signed_footer(words, SCALABLE_MAGIC));
}

/// The standalone bytes of the filters, one after another, and the footer.
pub(crate) fn read_scalable(bytes: &[u8]) -> Result<(&[u8], Scalable), DecodeError> {
    let (filters, words) = split_footer(bytes, SCALABLE_MAGIC)?;
    let [_, growth, reserved @ ..] = words[5].to_le_bytes();
    if reserved != [0; 6] {
        return Err(DecodeError::Footer { field: "reserved bytes", found: words[5] >> 16 });
    }
    let [n_filters, keys, initial_capacity, fpr, tightening, _] = words;
    let (fpr, tightening) = (f64::from_bits(fpr), f64::from_bits(tightening));
    Ok((filters, Scalable { n_filters, keys, initial_capacity, fpr, growth, tightening }))
}

/// What stands before the last of several filters' standalone bytes, and that filter's.
pub(crate) fn split_last_standalone(bytes: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (before, Fields { size: n_lanes, .. }, _) = read_footer(bytes, MAGIC)?;
    let start = usize::try_from(n_lanes)
        .ok()
        .and_then(|n_lanes| n_lanes.checked_mul(LANE_BYTES))
        .and_then(|lanes| before.len().checked_sub(lanes))
        .ok_or(DecodeError::Lanes { stored: n_lanes, found_bytes: before.len() })?;
    Ok(bytes.split_at(start))
}

/// The least bytes of a frontier: an empty queue, a filter of one lane, and two footers.
pub(crate) const LEAST_FRONTIER_BYTES: usize = LANE_BYTES + 2 * FOOTER_BYTES;

/// What the footer of a frontier says of the bytes before it.
pub(crate) struct FrontierFooter {
    /// In the queue.
    pub(crate) items: u64,
    pub(crate) queue_bytes: u64,
    pub(crate) accepted: u64,
    pub(crate) planned: u64,
    /// Of the queue's bytes and the filter's.
    pub(crate) checksum: u64,
}

impl FrontierFooter {
    pub(crate) fn to_bytes(&self) -> [u8; FOOTER_BYTES] {
        let Self { items, queue_bytes, accepted, planned, checksum } = *self;
        signed_footer([items, queue_bytes, accepted, planned, checksum, VERSION.into()], FRONTIER_MAGIC)
    }

    pub(crate) fn read(footer: &[u8; FOOTER_BYTES]) -> Result<Self, DecodeError> {
        let (_, [items, queue_bytes, accepted, planned, checksum, last]) =
            split_footer(footer, FRONTIER_MAGIC)?;
        if last != u64::from(VERSION) {
            return Err(DecodeError::Footer { field: "reserved bytes", found: last >> 8 });
        }
        // More than are ever counted to: the count goes on from here, and must not run over.
        if accepted < items || accepted > u64::MAX / 2 {
            return Err(DecodeError::Footer { field: "number of accepted items", found: accepted });
        }
        Ok(Self { items, queue_bytes, accepted, planned, checksum })
    }
}
