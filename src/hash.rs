//! From key bytes to the 64-bit hash that determines everything else.

use crate::error::Error;
use crate::key::Key;

/// Identifies wyhash final version 3 with the mixed seed in standalone bytes.
pub(crate) const HASH_ID: u8 = 2;

/// Standalone bytes contain this value, so that the filter of a writer with a faulty hash is an error, and loses no
/// key.
pub(crate) const CHECK_VALUE: u64 = 0x6ff1_536b_5257_c17e;

const SECRET: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

/// wyhash final version 3. Section 1 of the format explains the names.
///
/// Keys of up to 96 bytes are hashed without a loop, because a CPU often mispredicts the end of a loop if lengths vary.
/// A branch on the length costs a misprediction if lengths vary, but saves work if they do not. Without the branch at 32
/// bytes, lookups of URLs take 0.85 of the time on Emerald Rapids, but keys of 24 bytes need 1.34 times as long. Without
/// the branch at 48 bytes, it is 0.9 for 20 to 80 bytes and 1.4 for 40 bytes. So both stay. Keys of 65 to 80 and of 81 to
/// 96 bytes have code without a branch between them. This gives 0.8 for 65 to 96 bytes and 1.2 for 72 bytes, but keys
/// that long seldom have one length.
#[inline]
const fn wyhash(key: &[u8], seed: u64) -> u64 {
    let len = key.len();
    let mut s = seed ^ SECRET[0];
    if len > 16
        && let Some(first) = key.first_chunk()
        && let Some(last) = key.last_chunk()
    {
        let t = round(first, SECRET[1], s);
        if len <= 32 {
            s = t;
        } else if len <= 48 {
            s = round(up_to(key, 32), SECRET[1], t);
        } else {
            let (u, v) = (round(up_to(key, 32), SECRET[2], s), round(up_to(key, 48), SECRET[3], s));
            s = t ^ u ^ v;
            if len > 64 {
                if len > 96 {
                    return after_48(key, t, u, v);
                }
                let shorter = round(up_to(key, 64), SECRET[1], s);
                let longer = round(up_to(key, if len < 80 { len } else { 80 }), SECRET[1], shorter);
                s = if len > 80 { longer } else { shorter };
            }
        }
        return finish(halves(last), s, len);
    }
    let words = if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        let (a, b) = (u64::from_le_bytes(*first).rotate_left(32), u64::from_le_bytes(*last));
        if len < 16 {
            (a, b)
        } else {
            // Exchanges the low halves.
            let difference = (a ^ b) << 32 >> 32;
            (a ^ difference, b ^ difference)
        }
    } else if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64);
        (first << 32 | first, last << 32 | last)
    } else if len > 0 {
        ((key[0] as u64) << 16 | (key[len / 2] as u64) << 8 | key[len - 1] as u64, 0)
    } else {
        (0, 0)
    };
    finish(words, s, len)
}

/// The hash of a key of more than 96 bytes, given the three states after its first 48. Not inlined, and the last that
/// its caller does, because otherwise callers would save registers even for short keys.
#[inline(never)]
const fn after_48(key: &[u8], mut s: u64, mut t: u64, mut u: u64) -> u64 {
    let mut rest = key.split_at(48).1;
    while rest.len() > 48
        && let Some((first, after)) = rest.split_first_chunk()
        && let Some((second, after)) = after.split_first_chunk()
        && let Some((third, after)) = after.split_first_chunk()
    {
        s = round(first, SECRET[1], s);
        t = round(second, SECRET[2], t);
        u = round(third, SECRET[3], u);
        rest = after;
    }
    s ^= t ^ u;
    while rest.len() > 16
        && let Some((first, after)) = rest.split_first_chunk()
    {
        s = round(first, SECRET[1], s);
        rest = after;
    }
    finish(halves(up_to(key, key.len())), s, key.len())
}

#[inline]
const fn finish((a, b): (u64, u64), s: u64, len: usize) -> u64 {
    mum(SECRET[1] ^ len as u64, mum(a ^ SECRET[1], b ^ s))
}

/// The 16 bytes before `end` of a key that is at least as long.
#[inline]
const fn up_to(key: &[u8], end: usize) -> &[u8; 16] {
    match key.split_at(end).0.last_chunk() {
        Some(bytes) => bytes,
        None => &[0; 16],
    }
}

#[inline]
const fn round(bytes: &[u8; 16], secret: u64, state: u64) -> u64 {
    let (low, high) = halves(bytes);
    mum(low ^ secret, high ^ state)
}

#[inline]
const fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*bytes);
    (both as u64, (both >> 64) as u64)
}

/// The high word of the 128-bit product, from four products of 32-bit halves.
#[cfg(any(target_arch = "wasm32", test))]
#[inline]
const fn high_word_by_halves(a: u64, b: u64) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    let (a_high, a_low, b_high, b_low) = (a >> 32, a & LOW, b >> 32, b & LOW);
    let middle = a_high * b_low + ((a_low * b_low) >> 32);
    let other = a_low * b_high + (middle & LOW);
    // The low half of `other` is subtracted, though the shift drops it, because LLVM turns the usual sum into a 128-bit
    // product.
    let carry = (other - (a.wrapping_mul(b) >> 32)) >> 32;
    a_high * b_high + (middle >> 32) + carry
}

#[inline]
const fn mum(a: u64, b: u64) -> u64 {
    // WebAssembly has no 128-bit product, and the function that LLVM calls for it is slower than half words.
    #[cfg(target_arch = "wasm32")]
    return high_word_by_halves(a, b) ^ a.wrapping_mul(b);
    #[cfg(not(target_arch = "wasm32"))]
    {
        let product = a as u128 * b as u128;
        (product >> 64) as u64 ^ product as u64
    }
}

// A build whose hash is not the format's does not compile.
const _: () = {
    let text = b"The hash of every prefix of this text, each seeded by the last..\
                 The hash of every prefix of this text, each seeded by the last..";
    let (mut hash, mut length) = (Seed::DEFAULT.mixed, 0);
    while length <= text.len() {
        hash = wyhash(text.split_at(length).0, hash);
        length += 1;
    }
    assert!(hash == CHECK_VALUE);
};

/// A filter's seed, mixed so that no seed is weak. Unmixed, the seed 0xa0761d6478bd642f gives every key of up to three
/// bytes the hash 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    given: u64,
    mixed: u64,
}

impl Seed {
    /// Seed 0, mixed in advance, so that opening a filter in an SSTable's bytes hashes nothing.
    pub(crate) const DEFAULT: Self = Self::mixed(0);

    #[inline]
    pub(crate) fn new(seed: u64) -> Self {
        if seed == 0 { Self::DEFAULT } else { Self::mixed(seed) }
    }

    /// The seed of a filter, which must not have keys yet, because they would no longer be found.
    pub(crate) fn of_empty(seed: u64, is_empty: bool) -> Result<Self, Error> {
        let text =
            "seed {hex} comes too late: set the seed before the first key, or after clearing the filter";
        is_empty.then(|| Self::new(seed)).ok_or(Error::argument(text, [seed]))
    }

    const fn mixed(seed: u64) -> Self {
        Self { given: seed, mixed: wyhash(&seed.to_le_bytes(), 0x9E37_79B9_7F4A_7C15) }
    }

    pub(crate) fn get(self) -> u64 {
        self.given
    }

    #[inline]
    pub(crate) fn hash(self, key: impl Key) -> u64 {
        wyhash(key.key_bytes().as_ref(), self.mixed)
    }
}

/// Hashes `key` as a filter with this `seed` does, to 64 well-mixed bits, which are the same on every CPU.
///
/// Use it if no filter is open yet, or to hash a key once for many filters of one seed. `seed` must be the filters'
/// seed, which is 0 unless [`with_seed`](crate::BloomFilter::with_seed) set it, because lookups by a hash under a wrong
/// seed miss inserted keys, with no error. The `hash_key` method of a filter, view or builder uses the right seed.
///
/// Does not resist attackers who choose the keys, even if the seed is secret, because some keys have the same hash
/// under every seed.
///
/// # Examples
///
/// ```
/// let tables = [bloomline::BloomFilter::with_blocks(1, 6)?, bloomline::BloomFilter::with_blocks(9, 6)?];
/// let hash = bloomline::hash_key("user4291", 0);
/// assert!(!tables.iter().any(|filter| filter.contains_hash(hash)));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[inline]
#[must_use]
pub fn hash_key(key: impl Key, seed: u64) -> u64 {
    Seed::new(seed).hash(key)
}

/// Mixes a weak 64-bit hash, for use with the `*_hash` methods.
///
/// These methods need 64 well-mixed bits. The high bits pick the block, so identity hashes or zero-extended 32-bit
/// hashes would put every key into one block. Different inputs give different outputs. This is one step of SplitMix64
/// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
///
/// Not for integer keys, because `insert(42)` and `insert_hash(mix(42))` set different bits. Python, SQL and the
/// command line hash integers as [`hash_key`] does, so they do not find integers that were mixed instead.
///
/// # Examples
///
/// ```
/// let mut rows = bloomline::BloomFilter::with_fpr(1_000, 0.01)?;
/// let hash_of_the_join = 0x2a; // 64 bits that your program has already, of unknown quality
/// rows.insert_hash(bloomline::mix(hash_of_the_join));
/// assert!(rows.contains_hash(bloomline::mix(hash_of_the_join)));
/// # Ok::<(), bloomline::Error>(())
/// ```
#[inline]
#[must_use]
pub fn mix(weak: u64) -> u64 {
    let word = weak.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn key(len: usize, fill: u64) -> Vec<u8> {
        (0..len as u64).map(|i| mix(fill ^ i << 32) as u8).collect()
    }

    #[test]
    fn high_words_by_halves_are_those_of_the_product() {
        let edges = [0, 1, u64::from(u32::MAX), 1 << 32, SECRET[0], u64::MAX - 1, u64::MAX];
        let numbers = || edges.into_iter().chain((0..1000).map(mix));
        for (a, b) in numbers().flat_map(|a| numbers().map(move |b| (a, b))) {
            assert_eq!(
                high_word_by_halves(a, b),
                ((u128::from(a) * u128::from(b)) >> 64) as u64,
                "{a} × {b}"
            );
        }
    }

    fn is_for_every_seed(holds: impl Fn(u64) -> bool) -> bool {
        (0..100).map(mix).all(holds)
    }

    /// `tests/hash.rs` compares mixed seeds, which reach none of these states.
    #[test]
    fn extreme_states_have_the_hash_of_the_oracle() {
        for seed in [0, 1, SECRET[0], u64::MAX] {
            for len in 0..=400 {
                let key = key(len, seed);
                assert_eq!(wyhash(&key, seed), ::wyhash::final3::wyhash(&key, seed, SECRET), "{len} bytes");
            }
        }
    }

    /// As docs/SECURITY.md says, a zero factor removes the seed from the product. This is part of the format, so it cannot
    /// be fixed within version 2.
    #[test]
    fn some_keys_have_one_hash_under_every_seed() {
        let zero = SECRET[1].to_le_bytes();
        for (len, fill) in (0..=200).flat_map(|len| (0..4).map(move |fill| (len, fill))) {
            let mut key = key(len, fill);
            match len {
                // No key of up to 7 bytes, because its word is below 2^24 or has equal halves.
                0..=7 => continue,
                8..=15 => key[..8].copy_from_slice(&SECRET[1].rotate_left(32).to_le_bytes()),
                16 => {
                    key[..4].copy_from_slice(&zero[4..]);
                    key[8..12].copy_from_slice(&zero[..4]);
                }
                _ => key[len - 16..len - 8].copy_from_slice(&zero),
            }
            assert!(is_for_every_seed(|seed| hash_key(&key, seed) == 0), "{len} bytes");
        }
    }

    /// The same in a round of 16 or 48 bytes. Then the rest of the key alone determines the hash, whatever the seed.
    #[test]
    fn some_keys_have_equal_hashes_under_every_seed() {
        for len in 17..=200 {
            let (mut start, mut end) = (0, 0);
            while len - end > 16 {
                (start, end) = (end, end + if len - end > 48 { 48 } else { 16 });
            }
            let of = |fill| {
                let mut key = key(len, fill);
                key[len - 16..].fill(1);
                for (third, zero) in key[start..end].chunks_mut(16).zip(&SECRET[1..]) {
                    third[..8].copy_from_slice(&zero.to_le_bytes());
                }
                key
            };
            let hash = hash_key(of(0), 0);
            assert!(hash != 0 && (len < 32 || of(0) != of(1)));
            assert!(is_for_every_seed(|seed| hash_key(of(seed), seed) == hash), "{len} bytes");
        }
    }
}
