//! The filter variants, each run with a program of its own operations.

use arbitrary::Arbitrary;

use super::{counting, frontier, scalable, standard};

#[derive(Arbitrary, Debug)]
pub enum Input<'a> {
    Counting(counting::Input<'a>),
    Scalable(scalable::Input<'a>),
    Frontier { expected_items: u8, grows: bool, seed: u64, operations: Vec<frontier::Operation<'a>> },
    Standard(standard::Input<'a>),
}

pub fn check(input: Input<'_>) {
    match input {
        Input::Counting(input) => counting::counting(input),
        Input::Scalable(input) => scalable::scalable(input),
        Input::Frontier { expected_items, grows, seed, operations } => {
            frontier::frontier(expected_items, grows, seed, &operations);
        }
        Input::Standard(input) => standard::standard(input),
    }
}
