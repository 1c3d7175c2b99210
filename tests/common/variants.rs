//! The filter variants, each run with a program of its own operations.

use arbitrary::Arbitrary;

use super::{counting_programs, frontier_programs, scalable_programs, standard_programs};

#[derive(Arbitrary, Debug)]
pub enum Input<'a> {
    Counting(counting_programs::Input<'a>),
    Scalable(scalable_programs::Input<'a>),
    Frontier { expected_items: u8, grows: bool, seed: u64, operations: Vec<frontier_programs::Operation<'a>> },
    Standard(standard_programs::Input<'a>),
}

pub fn check(input: Input<'_>) {
    match input {
        Input::Counting(input) => counting_programs::check(input),
        Input::Scalable(input) => scalable_programs::check(input),
        Input::Frontier { expected_items, grows, seed, operations } => {
            frontier_programs::check(expected_items, grows, seed, &operations);
        }
        Input::Standard(input) => standard_programs::check(input),
    }
}
