//! The WebAssembly under `bindings/js/src/`. JavaScript writes keys to memory of this module, and reads answers there. See
//! [`Staging`].

use std::cell::RefCell;

use bloomline::bank::{BankView, SlotBitmap};
use bloomline::{AlignedBytes, BloomFilter, BloomView, Error, KeyEstimate, Owned, OwnedView, Sizing};
use wasm_bindgen::prelude::*;

/// The standard library's allocator, but built for size.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The most keys in a batch, so few that their hashes and answers stay in the L1 cache.
const MOST: usize = 1024;

/// What a batch of keys is stored as.
#[wasm_bindgen]
#[derive(Clone, Copy)]
pub enum Kind {
    /// UTF-8, end to end, with the length of each text in UTF-16 units.
    Text,
    /// Byte strings end to end, with the length of each.
    Bytes,
    Int32,
    Uint32,
    Int64,
}

/// Where JavaScript writes keys and reads answers.
struct Staging {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    hashes: Vec<u64>,
    found: Vec<bool>,
}

thread_local! {
    static STAGING: RefCell<Staging> = const {
        RefCell::new(Staging { bytes: Vec::new(), lengths: Vec::new(), hashes: Vec::new(), found: Vec::new() })
    };
}

/// Makes room for `len` bytes of keys, and returns where they are, where the lengths and the answers are, and the most
/// keys of a batch.
#[wasm_bindgen]
pub fn stage(len: usize) -> Result<Vec<usize>, JsError> {
    STAGING.with_borrow_mut(|Staging { bytes, lengths, hashes, found }| {
        if len > bytes.len() {
            *bytes = zeroed(len)?;
            spare()?;
        }
        lengths.resize(MOST, 0);
        hashes.resize(MOST, 0);
        found.resize(MOST, false);
        Ok(vec![bytes.as_ptr().addr(), lengths.as_ptr().addr(), found.as_ptr().addr(), MOST])
    })
}

/// Calls `with` with the key of the first `len` staged bytes.
fn staged<R>(len: usize, with: impl FnOnce(&[u8]) -> R) -> R {
    STAGING.with_borrow(|staging| with(&staging.bytes[..len]))
}

impl Staging {
    /// Hashes `count` keys in the first `len` bytes.
    fn hash(
        &mut self,
        kind: Kind,
        count: usize,
        len: usize,
        hash: impl Fn(&[u8]) -> u64,
    ) -> Result<(), JsError> {
        let mut rest = &self.bytes[..len];
        for (hashed, &length) in self.hashes[..count].iter_mut().zip(&self.lengths) {
            let len = match kind {
                Kind::Text => utf8_len(rest, length as usize),
                Kind::Bytes => length as usize,
                Kind::Int32 | Kind::Uint32 => 4,
                Kind::Int64 => 8,
            };
            let (key, after) =
                rest.split_at_checked(len).ok_or_else(|| JsError::new("a batch of keys is too short"))?;
            *hashed = match (kind, <[u8; 4]>::try_from(key)) {
                (Kind::Int32, Ok(key)) => hash(&i64::from(i32::from_le_bytes(key)).to_le_bytes()),
                (Kind::Uint32, Ok(key)) => hash(&u64::from(u32::from_le_bytes(key)).to_le_bytes()),
                _ => hash(key),
            };
            rest = after;
        }
        Ok(())
    }
}

/// The length in bytes of the text that `bytes` starts with and that has this many UTF-16 units.
fn utf8_len(bytes: &[u8], units: usize) -> usize {
    let units_at = |&byte: &u8| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0);
    let mut seen = 0;
    // The text ends before the first character beyond it.
    let past = bytes.iter().position(|byte| {
        seen += units_at(byte);
        seen > units
    });
    past.unwrap_or(bytes.len())
}

/// A size's blocks, modules and k.
#[wasm_bindgen]
pub fn size_for_fpr(
    expected_keys: u32,
    fpr: f64,
    most_modules: Option<usize>,
) -> Result<Vec<usize>, JsError> {
    let keys = expected_keys.into();
    let sizing = match most_modules {
        None => Sizing::for_fpr(keys, fpr),
        Some(most) => Sizing::for_fpr_within(keys, fpr, most),
    };
    Ok(numbers_of(sizing?.rounded_to_fold()))
}

#[wasm_bindgen]
pub fn size_for_bits_per_key(
    expected_keys: u32,
    bits_per_key: f64,
    most_modules: Option<usize>,
) -> Result<Vec<usize>, JsError> {
    let keys = expected_keys.into();
    let sizing = match most_modules {
        None => Sizing::for_bits_per_key(keys, bits_per_key),
        Some(most) => Sizing::for_bits_per_key_within(keys, bits_per_key, most),
    };
    Ok(numbers_of(sizing?))
}

#[wasm_bindgen]
pub fn size_of_blocks(blocks: usize, modules: usize, k: u32) -> Result<Vec<usize>, JsError> {
    Ok(numbers_of(size(blocks, modules, k)?))
}

fn size(blocks: usize, modules: usize, k: u32) -> Result<Sizing, Error> {
    Sizing::new(blocks, k)?.with_modules(modules)
}

fn numbers_of(sizing: Sizing) -> Vec<usize> {
    vec![sizing.n_blocks(), sizing.n_modules(), sizing.k() as usize]
}

/// The false-positive rate of a size.
#[wasm_bindgen]
pub fn fpr(blocks: usize, modules: usize, k: u32, keys: u32) -> Result<f64, JsError> {
    Ok(size(blocks, modules, k)?.expected_fpr(keys.into()))
}

/// The bytes of a file, which JavaScript writes part by part.
#[wasm_bindgen]
pub struct Bytes {
    memory: AlignedBytes,
    len: usize,
}

#[wasm_bindgen]
impl Bytes {
    #[wasm_bindgen(constructor)]
    pub fn new(capacity: usize) -> Result<Self, JsError> {
        let memory = AlignedBytes::zeroed(capacity)?;
        spare()?;
        Ok(Self { memory, len: 0 })
    }

    pub fn start(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// Makes room for this many more bytes.
    pub fn reserve(&mut self, additional: usize) -> Result<(), JsError> {
        let needed = self.len.saturating_add(additional);
        if needed > self.memory.len() {
            let mut larger = AlignedBytes::zeroed(needed.max(self.memory.len().saturating_mul(2)))
                .or_else(|_| AlignedBytes::zeroed(needed))?;
            spare()?;
            larger[..self.len].copy_from_slice(self.as_ref());
            self.memory = larger;
        }
        Ok(())
    }

    /// Counts this many bytes as written.
    pub fn advance(&mut self, written: usize) {
        self.len = self.len.saturating_add(written).min(self.memory.len());
    }
}

impl Bytes {
    fn copy_of(bytes: &[u8]) -> Result<Self, JsError> {
        let memory = AlignedBytes::copy_of(bytes)?;
        spare()?;
        Ok(Self { len: memory.len(), memory })
    }

    /// Frees memory that was reserved but not needed, because the length was not known.
    fn shrunk(self) -> Result<Self, JsError> {
        let fits = self.memory.len() == self.len;
        let memory = if fits { self.memory } else { AlignedBytes::copy_of(&self.memory[..self.len])? };
        Ok(Self { memory, len: self.len })
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

#[wasm_bindgen]
pub struct Filter(Bits);

enum Bits {
    Owned(BloomFilter),
    /// The filter's bytes, as opened, until the first change.
    Opened(OwnedView<Bytes>),
}

impl Filter {
    fn owned(filter: BloomFilter) -> Result<Self, JsError> {
        spare()?;
        Ok(Self(Bits::Owned(filter)))
    }

    fn view(&self) -> BloomView<'_> {
        match &self.0 {
            Bits::Owned(filter) => filter.as_view(),
            Bits::Opened(view) => *view.as_view(),
        }
    }

    fn filter(&mut self) -> Result<&mut BloomFilter, JsError> {
        if let Bits::Opened(view) = &self.0 {
            *self = Self::owned(view.as_view().to_filter()?)?;
        }
        match &mut self.0 {
            Bits::Owned(filter) => Ok(filter),
            Bits::Opened(_) => Err(JsError::new("the filter is read-only")),
        }
    }
}

#[wasm_bindgen]
impl Filter {
    #[wasm_bindgen(constructor)]
    pub fn new(blocks: usize, modules: usize, k: u32, seed: u64) -> Result<Self, JsError> {
        Self::owned(BloomFilter::with_sizing(size(blocks, modules, k)?)?.with_seed(seed)?)
    }

    pub fn open(bytes: Bytes) -> Result<Self, JsError> {
        Ok(Self(Bits::Opened(OwnedView::from_standalone(bytes.shrunk()?)?)))
    }

    pub fn hash(&self, len: usize) -> u64 {
        staged(len, |key| self.view().hash_key(key))
    }

    pub fn contains(&self, len: usize) -> bool {
        staged(len, |key| self.view().contains(key))
    }

    pub fn contains_batch(&self, kind: Kind, count: usize, len: usize) -> Result<(), JsError> {
        let view = self.view();
        STAGING.with_borrow_mut(|keys| {
            keys.hash(kind, count, len, |key| view.hash_key(key))?;
            view.contains_batch(&keys.hashes[..count], &mut keys.found[..count]);
            Ok(())
        })
    }

    pub fn insert(&mut self, len: usize) -> Result<bool, JsError> {
        let filter = self.filter()?;
        Ok(staged(len, |key| filter.insert(key)))
    }

    pub fn insert_batch(&mut self, kind: Kind, count: usize, len: usize) -> Result<(), JsError> {
        let filter = self.filter()?;
        STAGING.with_borrow_mut(|keys| {
            keys.hash(kind, count, len, |key| filter.hash_key(key))?;
            for &hash in &keys.hashes[..count] {
                filter.insert_hash(hash);
            }
            Ok(())
        })
    }

    pub fn union(&self, other: &Filter) -> Result<Self, JsError> {
        let mut union = self.view().to_filter()?;
        union.union_with(other.view())?;
        Self::owned(union)
    }

    pub fn fold(&mut self, factor: usize) -> Result<(), JsError> {
        Ok(self.filter()?.fold(factor)?)
    }

    pub fn clear(&mut self) -> Result<(), JsError> {
        self.filter()?.clear();
        Ok(())
    }

    pub fn modules(&self) -> usize {
        self.view().n_modules()
    }

    pub fn k(&self) -> u32 {
        self.view().k()
    }

    pub fn blocks(&self) -> usize {
        self.view().n_blocks()
    }

    pub fn byte_len(&self) -> usize {
        self.view().byte_len()
    }

    pub fn seed(&self) -> u64 {
        self.view().seed()
    }

    pub fn known_keys(&self) -> Option<f64> {
        self.view().known_keys().map(|keys| keys as f64)
    }

    pub fn estimated_fpr(&self) -> f64 {
        self.view().estimated_fpr()
    }

    pub fn estimated_keys(&self) -> Option<Vec<f64>> {
        self.view().estimated_keys().map(numbers)
    }

    pub fn fill_ratio(&self) -> f64 {
        self.view().fill_ratio()
    }

    pub fn estimated_union(&self, other: &Filter) -> Result<Option<Vec<f64>>, JsError> {
        Ok(self.view().estimated_union(other.view())?.map(numbers))
    }

    pub fn estimated_intersection(&self, other: &Filter) -> Result<Option<Vec<f64>>, JsError> {
        Ok(self.view().estimated_intersection(other.view())?.map(numbers))
    }

    pub fn to_standalone(&self) -> Result<Bytes, JsError> {
        match &self.0 {
            Bits::Owned(filter) => {
                room(filter.standalone_len())?;
                Bytes::copy_of(&filter.to_standalone())
            }
            Bits::Opened(view) => Bytes::copy_of(view.get_ref().as_ref()),
        }
    }
}

/// An estimate and its standard error.
fn numbers(estimate: KeyEstimate) -> Vec<f64> {
    vec![estimate.keys as f64, estimate.standard_error]
}

/// Fails unless 1 MiB can still be allocated, because the program ends if a small allocation fails.
fn spare() -> Result<(), JsError> {
    room(1 << 20).map(drop)
}

/// Returns an error if memory runs out, where `vec!` would end the program.
fn zeroed(len: usize) -> Result<Vec<u8>, JsError> {
    let mut bytes = room(len)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

fn room(len: usize) -> Result<Vec<u8>, JsError> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| JsError::new(&format!("out of memory: cannot allocate {len} bytes")))?;
    Ok(bytes)
}

#[wasm_bindgen]
pub struct Bank(Owned<BankView<'static>, Bytes>);

#[wasm_bindgen]
impl Bank {
    pub fn open(bytes: Bytes) -> Result<Self, JsError> {
        Ok(Self(Owned::from_standalone(bytes.shrunk()?)?))
    }

    pub fn find(&self, len: usize) -> Vec<u32> {
        let mut found = SlotBitmap::new();
        staged(len, |key| self.0.as_view().find(key, &mut found));
        found.iter().map(|slot| slot as u32).collect()
    }

    pub fn slots(&self) -> usize {
        self.0.as_view().slots()
    }

    pub fn k(&self) -> u32 {
        self.0.as_view().sizing().k()
    }

    pub fn blocks(&self) -> usize {
        self.0.as_view().sizing().n_blocks()
    }

    pub fn byte_len(&self) -> usize {
        self.0.as_view().byte_len()
    }

    pub fn seed(&self) -> u64 {
        self.0.as_view().seed()
    }
}
