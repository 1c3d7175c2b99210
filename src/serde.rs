//! serde for the filters, each as its standalone bytes, so that every data format gets the checksums of a file.

use alloc::vec::Vec;
use core::fmt;

use serde_core::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_core::ser::{Serialize, Serializer};

#[cfg(target_has_atomic = "64")]
use crate::atomic::AtomicBloomFilter;
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::key::Key;
use crate::memory::reserve;
use crate::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};

/// Serializes a filter with its `to_standalone`, and deserializes it with `$read`.
macro_rules! as_standalone_bytes {
    ($filter:ident $(<$item:ident>)?, $read:expr) => {
        impl $(<$item: Key>)? Serialize for $filter $(<$item>)? {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.to_standalone())
            }
        }

        impl<'de $(, $item: Key + TryFrom<Vec<u8>>)?> Deserialize<'de> for $filter $(<$item>)? {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Bytes { name: stringify!($filter), read: $read })
            }
        }
    };
}

#[cfg(target_has_atomic = "64")]
as_standalone_bytes!(AtomicBloomFilter, |bytes| BloomFilter::from_standalone(bytes).map(Self::from));
as_standalone_bytes!(BloomFilter, Self::from_standalone);
as_standalone_bytes!(CountingBloomFilter, Self::from_standalone);
as_standalone_bytes!(Frontier<T>, Self::from_standalone);
as_standalone_bytes!(ScalableBloomFilter, Self::from_standalone);
as_standalone_bytes!(StandardBloomFilter, Self::from_standalone);

/// Accepts bytes, or a sequence of numbers from data formats without bytes.
struct Bytes<T> {
    name: &'static str,
    read: fn(&[u8]) -> Result<T, Error>,
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
        // Grows as numbers arrive, because the length that the data claim may be forged.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            reserve(&mut bytes, 1).map_err(|error| A::Error::custom(Error::from(error)))?;
            bytes.push(byte);
        }
        (self.read)(&bytes).map_err(A::Error::custom)
    }
}
