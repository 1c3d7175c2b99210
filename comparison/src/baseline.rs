//! The least work that a filter of one cache line per lookup can do: read the line.

use std::hint::black_box;

use bloomline::mix;

use crate::contender::Contender;

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Reads eight bytes of each hash's line and does nothing with them.
pub struct Baseline {
    lines: Vec<Line>,
}

impl Baseline {
    pub fn new(size_bytes: usize) -> Self {
        assert!(size_bytes >= 64, "at least one line");
        // Written to, because untouched pages would all map to the same zero page.
        let lines = (0..size_bytes as u64 / 64).map(|i| Line([mix(i); 8])).collect();
        Self { lines }
    }
}

impl Contender for Baseline {
    fn name(&self) -> &str {
        "baseline"
    }

    fn byte_len(&self) -> usize {
        self.lines.len() * 64
    }

    fn supports_inserts(&self) -> bool {
        false
    }

    fn insert_all(&mut self, _hashes: &[u64]) {}

    #[inline(never)]
    fn count(&self, hashes: &[u64]) -> usize {
        let n_lines = self.lines.len() as u64;
        let mut union = 0;
        for &hash in hashes {
            let line = ((u128::from(hash) * u128::from(n_lines)) >> 64) as usize;
            // SAFETY: the high half of a product with n_lines is less than n_lines, and `new` refuses n_lines = 0.
            union |= unsafe { self.lines.get_unchecked(line) }.0[0];
        }
        black_box(union);
        0
    }

    fn count_branching(&self, hashes: &[u64]) -> usize {
        self.count(hashes)
    }
}
