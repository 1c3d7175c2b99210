//! serde for the filters, each as its standalone bytes: whatever the data format, what is stored is checked as a file is.
#![forbid(unsafe_code)]

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde_core::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde_core::ser::{Error as _, Serialize, Serializer};

use crate::error::{DecodeError, HashChanged};
use crate::family::StandardBloomFilter;
use crate::filter::BloomFilter;
use crate::view::BloomView;

/// What has standalone bytes.
trait Standalone: Sized {
    const NAME: &str;

    fn write(&self, out: &mut Vec<u8>) -> Result<(), HashChanged>;

    fn read(bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// Takes bytes, or a sequence of numbers where the data format knows no bytes.
struct Bytes<T>(PhantomData<T>);

impl<'de, T: Standalone> Visitor<'de> for Bytes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the standalone bytes of a {}", T::NAME)
    }

    fn visit_bytes<E: serde_core::de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        T::read(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<T, A::Error> {
        // Grown as numbers come, not by the length that the data claim.
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        T::read(&bytes).map_err(A::Error::custom)
    }
}

macro_rules! as_standalone_bytes {
    ($($filter:ident),*) => {$(
        impl Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut bytes = Vec::new();
                self.write(&mut bytes).map_err(S::Error::custom)?;
                serializer.serialize_bytes(&bytes)
            }
        }

        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Bytes(PhantomData))
            }
        }
    )*};
}

as_standalone_bytes!(BloomFilter, StandardBloomFilter);

impl Standalone for BloomFilter {
    const NAME: &str = "BloomFilter";

    fn write(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        self.write_standalone(out)
    }

    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let view = BloomView::from_standalone(bytes)?;
        view.verify()?;
        Ok(view.to_owned())
    }
}

impl Standalone for StandardBloomFilter {
    const NAME: &str = "StandardBloomFilter";

    fn write(&self, out: &mut Vec<u8>) -> Result<(), HashChanged> {
        self.write_standalone(out)
    }

    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::from_standalone(bytes)
    }
}
