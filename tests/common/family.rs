//! The other members of the family: each driven by a program of its own operations.

use arbitrary::Arbitrary;

use super::{counting, scalable, sieve, standard};

#[derive(Arbitrary, Debug)]
pub enum Input<'a> {
    Counting(counting::Input<'a>),
    Scalable(scalable::Input<'a>),
    Sieve { expected_items: u8, grows: bool, seed: u64, operations: Vec<sieve::Operation<'a>> },
    Standard(standard::Input<'a>),
}

pub fn check(input: Input<'_>) {
    match input {
        Input::Counting(input) => counting::counting(input),
        Input::Scalable(input) => scalable::scalable(input),
        Input::Sieve { expected_items, grows, seed, operations } => {
            sieve::sieve(expected_items, grows, seed, &operations);
        }
        Input::Standard(input) => standard::standard(input),
    }
}
