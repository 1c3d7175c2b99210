//! The layout of RocksDB's filters since format version 5, written for this comparison from its description.
//!
//! The low half of the hash selects a line of 512 bits. The high half selects k bits in it: it is multiplied by the
//! golden ratio after each.

use crate::contender::{Contender, act_on};

const GOLDEN: u32 = 0x9e37_79b9;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u32; 16]);

/// The number of probes that RocksDB chooses for `bits_per_key`.
pub fn probes_for(bits_per_key: f64) -> u32 {
    const ONE_MORE_ABOVE: [f64; 11] = [2.08, 3.58, 5.1, 6.64, 8.3, 10.07, 11.72, 14.001, 16.05, 18.3, 22.001];
    const HALVED_ABOVE: f64 = 25.501;
    if bits_per_key > 50.0 {
        24
    } else if bits_per_key > HALVED_ABOVE {
        ((1000.0 * bits_per_key) as u32 - 1) / 2000 - 1
    } else {
        1 + ONE_MORE_ABOVE.iter().filter(|&&above| bits_per_key > above).count() as u32
    }
}

pub struct RocksDb {
    name: String,
    lines: Vec<Line>,
    probes: u32,
    #[cfg(target_arch = "x86_64")]
    avx2: bool,
}

impl RocksDb {
    pub fn new(name: impl Into<String>, size_bytes: usize, probes: u32) -> Self {
        assert!((1..=u32::MAX as usize).contains(&(size_bytes / 64)), "1 to 2^32 - 1 lines");
        Self {
            name: name.into(),
            lines: vec![Line([0; 16]); size_bytes / 64],
            probes,
            #[cfg(target_arch = "x86_64")]
            avx2: std::arch::is_x86_feature_detected!("avx2"),
        }
    }

    #[inline(always)]
    fn line_index(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * self.lines.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> &Line {
        // SAFETY: the high half of a product with the number of lines is less than that number, which `new` checked to
        // be 1 to 2^32 - 1. RocksDB has no bounds check either.
        unsafe { self.lines.get_unchecked(self.line_index(hash)) }
    }

    #[inline(always)]
    fn contains_scalar(&self, hash: u64) -> bool {
        let line = &self.line(hash).0;
        let mut bits = (hash >> 32) as u32;
        for _ in 0..self.probes {
            let bit = bits >> 23;
            if line[bit as usize / 32] & (1 << (bit % 32)) == 0 {
                return false;
            }
            bits = bits.wrapping_mul(GOLDEN);
        }
        true
    }

    #[inline(never)]
    fn count_scalar(&self, hashes: &[u64]) -> usize {
        hashes.iter().map(|&hash| usize::from(self.contains_scalar(hash))).sum()
    }

    #[inline(never)]
    fn count_branching_scalar(&self, hashes: &[u64]) -> usize {
        let mut count = 0;
        for &hash in hashes {
            if self.contains_scalar(hash) {
                count += act_on(hash);
            }
        }
        count
    }
}

impl Contender for RocksDb {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> usize {
        self.lines.len() * 64
    }

    #[inline(never)]
    fn insert_all(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            let index = self.line_index(hash);
            // SAFETY: as in `line`.
            let line = &mut unsafe { self.lines.get_unchecked_mut(index) }.0;
            let mut bits = (hash >> 32) as u32;
            for _ in 0..self.probes {
                let bit = bits >> 23;
                line[bit as usize / 32] |= 1 << (bit % 32);
                bits = bits.wrapping_mul(GOLDEN);
            }
        }
    }

    fn count(&self, hashes: &[u64]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `new` detected AVX2 on this CPU.
            return unsafe { avx2::count(self, hashes) };
        }
        self.count_scalar(hashes)
    }

    fn count_branching(&self, hashes: &[u64]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: `new` detected AVX2 on this CPU.
            return unsafe { avx2::count_branching(self, hashes) };
        }
        self.count_branching_scalar(hashes)
    }
}

/// Eight probes at once. The loops are in this module, so that the lookup is inlined as in a build for AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{GOLDEN, Line, RocksDb};
    use crate::contender::act_on;

    /// The golden ratio to the powers 0 to 8.
    const POWERS: [u32; 9] = {
        let mut powers = [1_u32; 9];
        let mut i = 1;
        while i < 9 {
            powers[i] = powers[i - 1].wrapping_mul(GOLDEN);
            i += 1;
        }
        powers
    };

    #[inline]
    #[target_feature(enable = "avx2")]
    fn contains(line: &Line, mut bits: u32, probes: u32) -> bool {
        let start: *const __m256i = line.0.as_ptr().cast();
        // SAFETY: both halves of 32 bytes are in the line, and the load needs no alignment.
        let (low, high) = unsafe { (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) };
        // SAFETY: the first eight powers are 32 bytes, and the load needs no alignment.
        let powers = unsafe { _mm256_loadu_si256(POWERS.as_ptr().cast()) };
        let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mut left = probes as i32;
        loop {
            let products = _mm256_mullo_epi32(_mm256_set1_epi32(bits as i32), powers);
            let word = _mm256_srli_epi32::<28>(products);
            let from_low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, word));
            let from_high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, word));
            let words =
                _mm256_castps_si256(_mm256_blendv_ps(from_low, from_high, _mm256_castsi256_ps(products)));
            let bit = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(products));
            let used = _mm256_srli_epi32::<31>(_mm256_cmpgt_epi32(_mm256_set1_epi32(left), numbers));
            let found = _mm256_testc_si256(words, _mm256_sllv_epi32(used, bit)) != 0;
            if left <= 8 {
                return found;
            }
            if !found {
                return false;
            }
            bits = bits.wrapping_mul(POWERS[8]);
            left -= 8;
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    pub(super) fn count(filter: &RocksDb, hashes: &[u64]) -> usize {
        let mut count = 0;
        for &hash in hashes {
            let line = filter.line(hash);
            count += usize::from(contains(line, (hash >> 32) as u32, filter.probes));
        }
        count
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    pub(super) fn count_branching(filter: &RocksDb, hashes: &[u64]) -> usize {
        let mut count = 0;
        for &hash in hashes {
            let line = filter.line(hash);
            if contains(line, (hash >> 32) as u32, filter.probes) {
                count += act_on(hash);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use bloomline::mix;

    use super::*;

    #[test]
    fn scalar_and_avx2_agree() {
        for probes in 1..=24 {
            let mut filter = RocksDb::new("", 64 * 100, probes);
            let keys: Vec<u64> = (0..64 * 100 * 8 / 10).map(mix).collect();
            filter.insert_all(&keys);
            assert_eq!(filter.count(&keys), keys.len());
            for i in 0..20_000 {
                let hash = [mix((1 << 40) + i)];
                assert_eq!(filter.count(&hash), filter.count_scalar(&hash), "{probes} probes, {hash:x?}");
                assert_eq!(filter.count(&hash), filter.count_branching(&hash));
                assert_eq!(filter.count(&hash), filter.count_branching_scalar(&hash));
            }
        }
    }

    #[test]
    fn fpr_is_the_published_one() {
        let keys: Vec<u64> = (0..1_000_000).map(mix).collect();
        let mut filter = RocksDb::new("", 10 * keys.len() / 8, probes_for(10.0));
        filter.insert_all(&keys);
        let absent: Vec<u64> = (0..4_000_000).map(|i| mix((1 << 40) + i)).collect();
        let fpr = filter.count(&absent) as f64 / absent.len() as f64;
        assert!((0.0094..0.0099).contains(&fpr), "{fpr}");
    }

    #[test]
    fn probes_are_those_of_the_description() {
        let probes = [6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 50.0, 100.0].map(probes_for);
        assert_eq!(probes, [4, 5, 6, 8, 8, 9, 11, 12, 23, 24]);
    }
}
