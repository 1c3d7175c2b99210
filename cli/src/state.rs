//! States of `dedup`: a filter and what it was made for, as `docs/format.md` specifies in section 11.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::{Error, Result, anyhow, ensure};
use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, DecodeError, Sizing, StandaloneKind};
use xxhash_rust::xxh64::xxh64;

/// What `dedup` has printed so far, and how well it remembers.
pub struct State {
    pub filter: Filter,
    /// Lines that it was made for, at least 1; of a growing one, before it grows for the first time.
    pub capacity: u64,
    /// Lines put into the filter: the new ones.
    pub lines: u64,
    /// The requested false-positive rate.
    pub fpr: f64,
}

pub enum Filter {
    /// Takes a certain number of lines at the requested rate.
    Fixed(BloomFilter),
    /// Takes any number.
    Growing(ScalableBloomFilter),
}

const MAGIC: [u8; 8] = *b"\x89bldup\r\n";
const VERSION: u8 = 1;
const FOOTER_BYTES: usize = 64;

impl State {
    /// Whether the bytes end like a state. Checks nothing else.
    pub fn is_state(bytes: &[u8]) -> bool {
        bytes.ends_with(&MAGIC)
    }

    /// Reads a state and verifies all its checksums. `name` is for errors.
    pub fn from_bytes(name: impl Display, bytes: &[u8]) -> Result<Self> {
        let wrong = |what: String| anyhow!("{name}: {what} (restore a copy of the state, or remove it)");
        ensure!(
            StandaloneKind::of(bytes).is_none(),
            "{name}: a filter, not a state of dedup (make one of it with `bloomline grow -o STATE {name}`)"
        );
        ensure!(Self::is_state(bytes), "{name}: not a state of dedup (name another file)");
        let (filter, footer) = bytes
            .split_last_chunk::<FOOTER_BYTES>()
            .ok_or_else(|| wrong(format!("a state cut to {} bytes", bytes.len())))?;
        let word = |at: usize| u64::from_le_bytes(footer.as_chunks::<8>().0[at]);
        let version = footer[40];
        ensure!(
            version == VERSION,
            "{name}: a state of version {version}, not {VERSION} (use the bloomline that wrote it)"
        );
        let (stored, computed) = (word(6), xxh64(&footer[..48], 0));
        if stored != computed {
            return Err(wrong(format!("damaged: the footer's checksum is {computed:#x}, not {stored:#x}")));
        }
        let (capacity, lines, fpr) = (word(0), word(1), f64::from_bits(word(2)));
        let is_valid = capacity > 0 && fpr > 0.0 && fpr < 1.0 && footer[24..40] == [0; 16];
        if !is_valid || footer[41..48] != [0; 7] {
            return Err(wrong("the footer holds values that no bloomline writes".into()));
        }
        let decoded = |error| match error {
            DecodeError::OutOfMemory { .. } => Error::new(error).context(name.to_string()),
            _ => wrong(error.to_string()),
        };
        let filter = if StandaloneKind::of(filter) == Some(StandaloneKind::Scalable) {
            let filter = ScalableBloomFilter::from_standalone(filter).map_err(decoded)?;
            let held = filter.inserted_keys();
            if lines > held || filter.fpr() > fpr * (1.0 + 1e-9) {
                let rate = filter.fpr();
                return Err(wrong(format!(
                    "{lines} lines at a false-positive rate of {fpr:e}, in a filter of {held} at {rate:e}"
                )));
            }
            Filter::Growing(filter)
        } else {
            Filter::Fixed(BloomFilter::from_standalone(filter).map_err(decoded)?)
        };
        Ok(Self { filter, capacity, lines, fpr })
    }

    /// Writes the filter's standalone bytes, then the footer.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        match &self.filter {
            Filter::Fixed(filter) => filter.write_standalone(&mut out)?,
            Filter::Growing(filter) => filter.write_standalone(&mut out)?,
        }
        let words = [self.capacity, self.lines, self.fpr.to_bits(), 0, 0, VERSION.into()];
        let signed = words.map(u64::to_le_bytes);
        let checksum = xxh64(signed.as_flattened(), 0).to_le_bytes();
        out.write_all([signed.as_flattened(), &checksum, &MAGIC].concat().as_slice())
    }

    /// Whether `fpr` is the requested rate, in other digits perhaps: 0.0001 % and 1e-6 differ in the last bit.
    pub fn requests(&self, fpr: f64) -> bool {
        (fpr / self.fpr - 1.0).abs() < 1e-9
    }

    /// The most lines that can be put in at the requested rate, by the model; `None` if it grows. It takes up to 30 ms.
    ///
    /// The model does not depend on which lines came: a small filter's own rate is above it by chance half the time.
    pub fn most_lines(&self) -> Option<u64> {
        // A filter takes the lines that it was sized for: at the lowest rates, the model is off by 1/5,000.
        const ROUNDING: f64 = 1.001;
        const STEPS: u64 = 16;
        let Filter::Fixed(filter) = &self.filter else { return None };
        let sizing = Sizing::with_blocks(filter.n_blocks(), filter.k()).ok()?;
        let rate = |lines: u64| usize::try_from(lines).map_or(1.0, |lines| sizing.fpr(lines));
        let takes = |lines| rate(lines) <= self.fpr * ROUNDING;
        // At 512 lines a bit, every block is full.
        let mut too_many = 512 * 512 * filter.n_blocks() as u64;
        let mut enough = if self.capacity < too_many && takes(self.capacity) { self.capacity } else { 0 };
        while too_many - enough > 1 + enough / 1_000_000 {
            let middle = enough + (too_many - enough) / 2;
            (enough, too_many) = if takes(middle) { (middle, too_many) } else { (enough, middle) };
        }
        // Of these, some are dropped, and not put in: the mean of the rate while the filter fills. Four standard errors
        // less, so that nobody is told that there are too many by chance.
        let rates = (0..STEPS).map(|step| rate(enough / STEPS * step + enough / (2 * STEPS)));
        let dropped = rates.sum::<f64>() / STEPS as f64 * enough as f64;
        Some(enough - (dropped - 4.0 * dropped.sqrt()).max(0.0) as u64)
    }

    /// Whether more lines were put in than keep the requested rate.
    pub fn is_overfull(&self) -> bool {
        self.most_lines().is_some_and(|most| self.lines > most)
    }
}

impl Filter {
    pub fn seed(&self) -> u64 {
        match self {
            Self::Fixed(filter) => filter.seed(),
            Self::Growing(filter) => filter.seed(),
        }
    }

    /// By the bits that are set: that of these lines, where the model's is the mean over all lines.
    pub fn estimated_fpr(&self) -> f64 {
        match self {
            Self::Fixed(filter) => filter.estimated_fpr(),
            Self::Growing(filter) => filter.estimated_fpr(),
        }
    }
}
