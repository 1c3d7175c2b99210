//! How many modules a filter gets.
#![forbid(unsafe_code)]

use bloomline::sizing::{MAX_MODULES, MODULAR_FPR, ModularSizing};
use bloomline::{BuildError, Sizing};
use clap::Args;

use crate::numbers;

/// As many bits per key reach [`MODULAR_FPR`] with modules.
const MANY_BITS: f64 = 15.0;

#[derive(Args)]
pub struct Modules {
    /// Use at most N modules, 1 to 4 [default: 4 up to 0.1%, or from 15 bits; else 1]
    #[arg(id = "modules", long = "modules", value_name = "N", value_parser = numbers::count, allow_negative_numbers = true)]
    most: Option<usize>,
}

/// What a filter is sized for.
#[derive(Clone, Copy)]
pub enum Request {
    Fpr(f64),
    BitsPerKey(f64),
}

impl Modules {
    pub fn most(&self, request: Request) -> usize {
        let are_worth_it = match request {
            Request::Fpr(fpr) => fpr <= MODULAR_FPR,
            Request::BitsPerKey(bits) => bits >= MANY_BITS,
        };
        self.most.unwrap_or(if are_worth_it { MAX_MODULES } else { 1 })
    }

    pub fn sizing(&self, keys: usize, request: Request) -> Result<ModularSizing, BuildError> {
        match (request, self.most(request)) {
            // The size of blocked filters, which do not count keys of the same hash: it matters from 10^15 keys on.
            (Request::Fpr(fpr), 1) => {
                let sizing = Sizing::for_fpr(keys, fpr)?;
                ModularSizing::new(1, sizing.n_blocks(), sizing.k())
            }
            (Request::Fpr(fpr), most) => ModularSizing::for_fpr(keys, fpr, most),
            (Request::BitsPerKey(bits), most) => ModularSizing::for_bits_per_key(keys, bits, most),
        }
    }
}
