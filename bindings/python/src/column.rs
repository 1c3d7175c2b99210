//! Hashes columns of keys in borrowed memory, as "Keys of other types" in `docs/format.md` specifies.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::ops::Range;
use std::time::{Duration, Instant};

use bloomline::{Error, hash_key};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::{no_room, not_grown};

/// Keys per batch. Large enough for lookups to overlap their waits for memory, but small enough for the hashes to fit
/// in the L2 cache and for other threads to get the lock soon. With 2048, lookups are 3 to 7% slower, and with 16384 no
/// faster (Zen 4, 2026-11).
pub const BATCH: usize = 8192;

/// How often a loop checks for Ctrl-C, which needs the GIL.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(100);

/// Why a value cannot be read.
pub enum Invalid {
    /// It lies outside of the column's buffers.
    Outside,
    /// It has a code that is not a character, such as half of a surrogate pair.
    NotUnicode(u32),
}

impl Invalid {
    /// The error for the value of this name.
    pub fn of(self, value: impl Display) -> PyErr {
        PyValueError::new_err(match self {
            Self::Outside => format!("malformed Arrow array: {value} lies outside of its buffers"),
            Self::NotUnicode(code) => {
                format!("{value} contains {code:#x}, which is not a character and has no UTF-8 form")
            }
        })
    }
}

/// Values that can be hashed.
pub trait Column: Sync {
    fn len(&self) -> usize;

    /// The hash of a value, or `None` for null. `text` is a buffer for conversions.
    fn hash(&self, i: usize, seed: u64, text: &mut Vec<u8>) -> Result<Option<u64>, Invalid>;

    /// Writes the hashes of a range of values to `batch`, up to the first error. A method of the trait, so that the
    /// loop is compiled for each type of column.
    fn hash_batch(&self, range: Range<usize>, seed: u64, batch: &mut Batch) -> Result<(), Invalid> {
        let Batch { hashes, nulls, text, .. } = batch;
        let (start, mut failed) = (range.start, None);
        hashes.clear();
        nulls.clear();
        hashes.extend(range.map(|i| match self.hash(i, seed, text) {
            Ok(Some(hash)) => hash,
            Ok(None) => {
                nulls.push(i - start);
                0
            }
            Err(invalid) => {
                failed.get_or_insert((i - start, invalid));
                0
            }
        }));
        failed.map_or(Ok(()), |(valid, invalid)| {
            hashes.truncate(valid);
            nulls.retain(|null| *null < valid);
            Err(invalid)
        })
    }
}

/// Hashes of consecutive keys.
pub struct Batch {
    /// A null has a hash without meaning.
    pub hashes: Vec<u64>,
    /// The indices of nulls, in ascending order.
    pub nulls: Vec<usize>,
    /// The kinds of the keys that are not null.
    pub kinds: u8,
    /// The kinds of the keys of all batches so far.
    pub all_kinds: u8,
    /// The number of keys of all batches so far, nulls included.
    pub n_before: usize,
    pub signals: Signals,
    text: Vec<u8>,
}

impl Batch {
    pub fn new() -> Self {
        let (hashes, nulls, text) = (Vec::new(), Vec::new(), Vec::new());
        Self { hashes, nulls, kinds: 0, all_kinds: 0, n_before: 0, signals: Signals::new(), text }
    }
}

/// Lets Ctrl-C end a long call.
pub struct Signals {
    checked: Instant,
}

impl Signals {
    pub fn new() -> Self {
        Self { checked: Instant::now() }
    }

    /// Runs Python's signal handlers, at most every 100 ms. Do not call it with a filter's lock held, because a handler
    /// may use the filter.
    pub fn check(&mut self) -> PyResult<()> {
        if self.checked.elapsed() < BETWEEN_SIGNALS {
            return Ok(());
        }
        Python::attach(|py| py.check_signals())?;
        self.checked = Instant::now();
        Ok(())
    }
}

/// Receives hashes, batch by batch. Called detached, so it may wait for a filter's lock.
pub trait Sink: Send {
    /// Makes room for more keys.
    fn reserve(&mut self, _additional: usize) -> PyResult<()> {
        Ok(())
    }

    fn take(&mut self, batch: &mut Batch) -> PyResult<()>;
}

/// Inserts keys. Skips nulls.
pub struct Inserts<F>(pub F);

impl<F: FnMut(&[u64], u8) -> Result<(), Error> + Send> Sink for Inserts<F> {
    fn take(&mut self, Batch { hashes, nulls, kinds, .. }: &mut Batch) -> PyResult<()> {
        for &null in nulls.iter().rev() {
            hashes.swap_remove(null);
        }
        (self.0)(hashes, *kinds).map_err(not_grown)
    }
}

/// Keeps the hashes of keys, none of which may be null.
#[derive(Default)]
pub struct Hashes(pub Vec<u64>);

impl Sink for Hashes {
    fn reserve(&mut self, additional: usize) -> PyResult<()> {
        let bytes = self.0.len().saturating_add(additional).saturating_mul(size_of::<u64>());
        self.0.try_reserve(additional).map_err(|_| no_room(bytes))
    }

    fn take(&mut self, Batch { hashes, nulls, .. }: &mut Batch) -> PyResult<()> {
        if let Some(null) = nulls.first() {
            let null = self.0.len() + null;
            let text = format!("keys[{null}] is null: drop the nulls, or put a key in their place");
            return Err(PyTypeError::new_err(text));
        }
        self.reserve(hashes.len())?;
        self.0.extend_from_slice(hashes);
        Ok(())
    }
}

/// Hashes all values of a column, which are of one kind.
pub fn hash_all(
    column: &dyn Column,
    kind: u8,
    seed: u64,
    batch: &mut Batch,
    sink: &mut impl Sink,
) -> PyResult<()> {
    sink.reserve(column.len())?;
    for start in (0..column.len()).step_by(BATCH) {
        let end = column.len().min(start + BATCH);
        let hashed = column.hash_batch(start..end, seed, batch);
        let n = batch.hashes.len();
        batch.kinds = if batch.nulls.len() < n { kind } else { 0 };
        sink.take(batch)?;
        batch.all_kinds |= batch.kinds;
        batch.n_before += n;
        hashed.map_err(|invalid| invalid.of(format_args!("keys[{}]", batch.n_before)))?;
        batch.signals.check()?;
    }
    Ok(())
}

/// Integers of N bytes in the machine's byte order, at any alignment.
pub struct Integers<'a, const N: usize, F> {
    pub values: &'a [[u8; N]],
    /// Extends the value to 64 bits, with its sign.
    pub widen: F,
}

impl<const N: usize, F: Fn([u8; N]) -> u64 + Sync> Column for Integers<'_, N, F> {
    fn len(&self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn hash(&self, i: usize, seed: u64, _: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        Ok(Some(hash_key((self.widen)(self.values[i]), seed)))
    }
}

/// `$make`, with `$values` as an array of integers and `$widen` as the function that widens one, for bytes of the type
/// `$kind` (`b'i'` or `b'u'`) and `$width` bytes. Any other type is treated as 64 bits.
macro_rules! integers {
    ($kind:expr, $width:expr, $bytes:expr, |$values:ident, $widen:ident| $make:expr) => {
        match ($kind, $width) {
            (b'i', 1) => integers!($bytes, $values, $widen, i8, $make),
            (b'u', 1) => integers!($bytes, $values, $widen, u8, $make),
            (b'i', 2) => integers!($bytes, $values, $widen, i16, $make),
            (b'u', 2) => integers!($bytes, $values, $widen, u16, $make),
            (b'i', 4) => integers!($bytes, $values, $widen, i32, $make),
            (b'u', 4) => integers!($bytes, $values, $widen, u32, $make),
            _ => integers!($bytes, $values, $widen, u64, $make),
        }
    };
    ($bytes:expr, $values:ident, $widen:ident, $Integer:ty, $make:expr) => {{
        let ($values, $widen) = ($bytes.as_chunks().0, |value| <$Integer>::from_ne_bytes(value) as u64);
        $make
    }};
}
pub(crate) use integers;

/// Values of `width` bytes each.
pub struct Fixed<'a> {
    pub bytes: &'a [u8],
    pub width: usize,
    pub len: usize,
    /// Trailing zeros are not part of a value, because numpy's `S` pads with them.
    pub ends_at_zeros: bool,
}

impl Column for Fixed<'_> {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn hash(&self, i: usize, seed: u64, _: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let mut value = &self.bytes[i * self.width..][..self.width];
        while self.ends_at_zeros
            && let [rest @ .., 0] = value
        {
            value = rest;
        }
        Ok(Some(hash_key(value, seed)))
    }
}

/// numpy's `U`: `width` characters of 4 bytes each, in the machine's byte order, padded with zeros.
pub struct Utf32<'a> {
    pub characters: &'a [[u8; 4]],
    pub width: usize,
    pub len: usize,
}

impl Column for Utf32<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, i: usize, seed: u64, text: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let mut value = &self.characters[i * self.width..][..self.width];
        while let [rest @ .., [0, 0, 0, 0]] = value {
            value = rest;
        }
        let codes = value.iter().map(|character| u32::from_ne_bytes(*character));
        text.clear();
        // For ASCII, the compiler makes this a loop of vector instructions.
        if codes.clone().fold(0, |all, code| all | code) < 0x80 {
            text.extend(codes.map(|code| code as u8));
        } else {
            for code in codes {
                let character = char::from_u32(code).ok_or(Invalid::NotUnicode(code))?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Ok(Some(hash_apart(text, seed)))
    }
}

/// Tried: inlined here. The compiler then does not inline `hash_key` into `Offsets`, which makes Arrow text 4% slower.
#[inline(never)]
fn hash_apart(bytes: &[u8], seed: u64) -> u64 {
    hash_key(bytes, seed)
}

/// Arrow's strings and binary values. Value i is `data[offset i..offset i + 1]`.
pub struct Offsets<'a, const N: usize, F> {
    /// One more than there are values.
    pub offsets: &'a [[u8; N]],
    pub data: &'a [u8],
    pub widen: F,
}

impl<const N: usize, F: Fn([u8; N]) -> usize + Sync> Column for Offsets<'_, N, F> {
    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    fn hash(&self, i: usize, seed: u64, _: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let [start, end] = [i, i + 1].map(|i| (self.widen)(self.offsets[i]));
        let value = self.data.get(start..end).ok_or(Invalid::Outside)?;
        Ok(Some(hash_key(value, seed)))
    }
}

/// Arrow's string and binary views. A view has a length, then the value if that has up to 12 bytes, or else its prefix,
/// buffer and offset.
pub struct Views<'a> {
    pub views: &'a [[u8; 16]],
    pub buffers: Vec<&'a [u8]>,
}

impl Column for Views<'_> {
    fn len(&self) -> usize {
        self.views.len()
    }

    #[inline]
    fn hash(&self, i: usize, seed: u64, _: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let view = &self.views[i];
        // A negative number becomes one that is too large for any buffer.
        let field = |i: usize| i32::from_ne_bytes(view.as_chunks().0[i]) as usize;
        let len = field(0);
        let value = if len <= 12 {
            Some(&view[4..4 + len])
        } else {
            self.buffers.get(field(2)).and_then(|buffer| buffer.get(field(3)..)?.get(..len))
        };
        Ok(Some(hash_key(value.ok_or(Invalid::Outside)?, seed)))
    }
}

/// Indices into a column of values.
pub struct Dictionary<'a, const N: usize, F> {
    pub indices: Integers<'a, N, F>,
    pub values: Values<'a>,
}

/// The values of a dictionary.
pub enum Values<'a> {
    Hashed(Vec<Option<u64>>),
    Unhashed(Box<dyn Column + 'a>),
}

impl<'a> Values<'a> {
    /// Hashes each value once, but only if the dictionary has no more values than there are indices.
    pub fn new(
        values: Box<dyn Column + 'a>,
        n_indices: usize,
        seed: u64,
        batch: &mut Batch,
    ) -> PyResult<Self> {
        if values.len() > n_indices {
            return Ok(Self::Unhashed(values));
        }
        let mut hashed = Vec::new();
        for start in (0..values.len()).step_by(BATCH) {
            if let Err(invalid) = values.hash_batch(start..values.len().min(start + BATCH), seed, batch) {
                return Err(
                    invalid.of(format_args!("value {} of the dictionary", start + batch.hashes.len()))
                );
            }
            hashed.extend(batch.hashes.iter().copied().map(Some));
            batch.nulls.iter().for_each(|null| hashed[start + null] = None);
            batch.signals.check()?;
        }
        Ok(Self::Hashed(hashed))
    }
}

impl<const N: usize, F: Fn([u8; N]) -> u64 + Sync> Column for Dictionary<'_, N, F> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    #[inline]
    fn hash(&self, i: usize, seed: u64, text: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let index =
            usize::try_from((self.indices.widen)(self.indices.values[i])).map_err(|_| Invalid::Outside)?;
        match &self.values {
            Values::Hashed(hashes) => hashes.get(index).copied().ok_or(Invalid::Outside),
            Values::Unhashed(values) if index < values.len() => values.hash(index, seed, text),
            Values::Unhashed(_) => Err(Invalid::Outside),
        }
    }
}

/// A column of which some values are null. Nulls need not be readable.
pub struct Nullable<'a, C> {
    pub column: C,
    /// A bit for each value, from bit `offset` on, which is 0 for null.
    pub validity: &'a [u8],
    pub offset: usize,
}

impl<C: Column> Column for Nullable<'_, C> {
    fn len(&self) -> usize {
        self.column.len()
    }

    #[inline]
    fn hash(&self, i: usize, seed: u64, text: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        let bit = self.offset + i;
        if self.validity[bit / 8] >> (bit % 8) & 1 == 0 {
            return Ok(None);
        }
        self.column.hash(i, seed, text)
    }
}

/// Arrow's type null.
pub struct Nulls(pub usize);

impl Column for Nulls {
    fn len(&self) -> usize {
        self.0
    }

    fn hash(&self, _: usize, _: u64, _: &mut Vec<u8>) -> Result<Option<u64>, Invalid> {
        Ok(None)
    }
}
