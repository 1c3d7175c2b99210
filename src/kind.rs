//! `StandaloneKind`, which tells the type that wrote standalone bytes.

use core::fmt;

/// The kind of filter in standalone bytes, so that a program can open them as the right type.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandaloneKind {
    /// A [`BloomFilter`](crate::BloomFilter), of any number of modules.
    Blocked,
    /// A [`StandardBloomFilter`](crate::variants::StandardBloomFilter).
    Standard,
    /// A [`CountingBloomFilter`](crate::variants::CountingBloomFilter).
    Counting,
    /// A [`ScalableBloomFilter`](crate::variants::ScalableBloomFilter).
    Scalable,
    /// A [`Frontier`](crate::variants::Frontier).
    Frontier,
    /// A [`FilterBank`](crate::bank::FilterBank).
    Bank,
    /// An index over files, which a [`bank::IndexView`](crate::bank::IndexView) opens.
    Index,
}

impl StandaloneKind {
    /// Returns the kind that the last eight bytes identify, or `None` if they identify no kind. Checks nothing else, so
    /// opening the bytes may still fail.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        use StandaloneKind::*;
        let mut kinds = [Blocked, Standard, Counting, Scalable, Frontier, Bank, Index].into_iter();
        if bytes.ends_with(&MODULES_MAGIC) {
            return Some(Blocked);
        }
        kinds.find(|kind| bytes.ends_with(&kind.magic()))
    }

    /// The last eight bytes, but [`MODULES_MAGIC`] if a blocked filter has several modules. Like PNG's signature, they
    /// are a byte that is not text, a name, and the line ends that a transfer in text mode would change.
    pub(crate) fn magic(self) -> [u8; 8] {
        self.magic_and_name().0
    }

    fn magic_and_name(self) -> ([u8; 8], &'static str) {
        match self {
            Self::Blocked => (*b"\x89bloom\r\n", "blocked filter"),
            Self::Standard => (*b"\x89blstd\r\n", "standard filter"),
            Self::Counting => (*b"\x89blcnt\r\n", "counting filter"),
            Self::Scalable => (*b"\x89blscl\r\n", "scalable filter"),
            Self::Frontier => (*b"\x89blsiv\r\n", "frontier"),
            Self::Bank => (*b"\x89blbnk\r\n", "filter bank"),
            Self::Index => (*b"\x89blidx\r\n", "file index"),
        }
    }
}

/// The last eight bytes of a filter of several modules, which a reader that knows only one module refuses.
pub(crate) const MODULES_MAGIC: [u8; 8] = *b"\x89blmod\r\n";

/// For example "standard filter".
impl fmt::Display for StandaloneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.magic_and_name().1)
    }
}
