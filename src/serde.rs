//! serde for the filters, each as its standalone bytes: whatever the data format, what is stored is checked as a file is.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;

use serde_core::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_core::ser::{Error as _, Serialize, Serializer};

#[cfg(target_has_atomic = "64")]
use crate::atomic::AtomicBloomFilter;
use crate::error::{DecodeError, HashChanged};
use crate::filter::BloomFilter;
use crate::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};

/// Serializes `$of` by what `$write` appends, and deserializes it by `$read`.
macro_rules! as_standalone_bytes {
    ($name:literal, [$($of:tt)*] $([$($generic:tt)*])?, $write:expr, $read:expr) => {
        impl $(<$($generic)*: AsRef<[u8]>>)? Serialize for $($of)* {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let write: fn(&Self, &mut Vec<u8>) -> Result<(), HashChanged> = $write;
                let mut bytes = Vec::new();
                write(self, &mut bytes).map_err(S::Error::custom)?;
                serializer.serialize_bytes(&bytes)
            }
        }

        impl<'de $(, $($generic)*: AsRef<[u8]> + TryFrom<Vec<u8>>)?> Deserialize<'de> for $($of)* {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Bytes { name: $name, read: $read })
            }
        }
    };
}

as_standalone_bytes!(
    "BloomFilter",
    [BloomFilter],
    BloomFilter::write_standalone,
    BloomFilter::from_standalone
);
#[cfg(target_has_atomic = "64")]
as_standalone_bytes!(
    "BloomFilter",
    [AtomicBloomFilter],
    |filter, out| filter.to_filter().write_standalone(out),
    |bytes| BloomFilter::from_standalone(bytes).map(AtomicBloomFilter::from)
);
as_standalone_bytes!(
    "CountingBloomFilter",
    [CountingBloomFilter],
    CountingBloomFilter::write_standalone,
    CountingBloomFilter::from_standalone
);
as_standalone_bytes!(
    "ScalableBloomFilter",
    [ScalableBloomFilter],
    ScalableBloomFilter::write_standalone,
    ScalableBloomFilter::from_standalone
);
as_standalone_bytes!("Frontier", [Frontier<T>] [T], Frontier::write_standalone, Frontier::from_standalone);
as_standalone_bytes!(
    "StandardBloomFilter",
    [StandardBloomFilter],
    StandardBloomFilter::write_standalone,
    StandardBloomFilter::from_standalone
);

/// Takes bytes, or a sequence of numbers where the data format knows no bytes.
struct Bytes<T> {
    name: &'static str,
    read: fn(&[u8]) -> Result<T, DecodeError>,
}

impl<'de, T> Visitor<'de> for Bytes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the standalone bytes of a {}", self.name)
    }

    fn visit_bytes<E: serde_core::de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.read)(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<T, A::Error> {
        // Grown as numbers come, not by the length that the data claim.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        (self.read)(&bytes).map_err(A::Error::custom)
    }
}
