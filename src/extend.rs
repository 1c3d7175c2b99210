//! `Extend` by batches, which overlap the waits for memory.

/// Hashes of a batch, on the stack.
const BATCH: usize = 256;

/// Calls `insert` with all hashes, in batches. If the iterator panics, no hash that it returned before is lost.
// Not inlined, so that an extension by a few keys can be.
#[inline(never)]
pub(crate) fn in_batches(hashes: impl Iterator<Item = u64>, insert: impl FnMut(&[u64])) {
    let mut batch = Batch { hashes: [0; BATCH], len: 0, insert };
    for hash in hashes {
        batch.hashes[batch.len % BATCH] = hash;
        batch.len += 1;
        if batch.len == BATCH {
            batch.flush();
        }
    }
}

/// Whether there may be so many keys that clearing the batch costs little beside the inserts.
pub(crate) fn are_many(keys: &impl Iterator) -> bool {
    keys.size_hint().1.is_none_or(|most| most >= BATCH / 4)
}

struct Batch<F: FnMut(&[u64])> {
    hashes: [u64; BATCH],
    len: usize,
    insert: F,
}

impl<F: FnMut(&[u64])> Batch<F> {
    fn flush(&mut self) {
        (self.insert)(&self.hashes[..self.len]);
        self.len = 0;
    }
}

impl<F: FnMut(&[u64])> Drop for Batch<F> {
    fn drop(&mut self) {
        self.flush();
    }
}
