//! Bytes of which some get lost after they were opened, because `AsRef` promises nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Clones shrink together.
#[derive(Clone)]
pub struct Shrinking {
    bytes: Vec<u8>,
    len: Arc<AtomicUsize>,
}

impl Shrinking {
    pub fn new(bytes: Vec<u8>) -> Self {
        let len = Arc::new(AtomicUsize::new(bytes.len()));
        Self { bytes, len }
    }

    pub fn shrink_to(&self, len: usize) {
        self.len.store(len, Relaxed);
    }
}

impl AsRef<[u8]> for Shrinking {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len.load(Relaxed)]
    }
}
