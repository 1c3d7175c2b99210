//! What holds for the standalone bytes of every variant. Not a part of `mod.rs`, because writing them needs `std`.

use std::fmt::Debug;
use std::io;

use bloomline::Error;
use bloomline::variants::{CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter};

use crate::common::allocations::allocated;
use crate::common::decode::{every_change_and_truncation_is_detected, forge_footer};
use crate::common::error_texts::{Refusal, impossible, too_late};

pub trait Standalone: Debug + Sized {
    fn read(bytes: &[u8]) -> Result<Self, Error>;
    fn bytes(&self) -> Vec<u8>;
    fn write(&self, to: &mut [u8]) -> io::Result<()>;
    fn seeded(self, seed: u64) -> Result<Self, Error>;
}

macro_rules! standalone {
    ($($filter:ty),*) => {$(
        impl Standalone for $filter {
            fn read(bytes: &[u8]) -> Result<Self, Error> {
                Self::from_standalone(bytes)
            }
            fn bytes(&self) -> Vec<u8> {
                self.to_standalone()
            }
            fn write(&self, to: &mut [u8]) -> io::Result<()> {
                self.write_standalone(to)
            }
            fn seeded(self, seed: u64) -> Result<Self, Error> {
                self.with_seed(seed)
            }
        }
    )*};
}

standalone!(CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter);

/// Checks the bytes of a filter that has keys.
pub fn check<F: Standalone>(filter: F) {
    let standalone = filter.bytes();
    assert!(F::read(&standalone).unwrap().bytes() == standalone);
    every_change_and_truncation_is_detected(&standalone, F::read);
    writing_makes_no_copy(&filter, &standalone);

    // A footer that claims that there are no keys does not make a filter empty, for which the seed could be chosen.
    assert_eq!(filter.seeded(1).text(), too_late(1));
    match F::read(&forge_footer(&standalone, 8, &[0; 8])) {
        Ok(forged) => assert_eq!(forged.seeded(1).text(), too_late(1)),
        Err(error) => assert_eq!(error.to_string(), impossible("false-positive rate of all, in bits,", 0)),
    }
}

fn writing_makes_no_copy<F: Standalone>(filter: &F, standalone: &[u8]) {
    let mut file = standalone.repeat(2);
    let (bytes, written) = allocated(|| filter.write(&mut file[1..]));
    written.unwrap();
    assert_eq!(bytes, 0);
    assert_eq!(&file[1..=standalone.len()], standalone);
    assert!(filter.write(&mut file[1..standalone.len()]).is_err());
    let (bytes, again) = allocated(|| filter.bytes());
    assert!(again == standalone && bytes <= standalone.len() + 56, "{bytes} bytes");
}
