//! How many modules a filter gets.
#![forbid(unsafe_code)]

use bloomline::sizing::{self, MAX_MODULES, MODULAR_FPR, ModularSizing};
use bloomline::{BuildError, Sizing};
use clap::Args;

use crate::numbers;

/// The default of policies and growing filters too. With four modules, a present key would cost twice as much, but few
/// more bits would be saved.
const DEFAULT_MODULES: usize = 2;

#[derive(Args)]
pub struct Modules {
    /// Use at most N modules, 1 to 4 [default: 2 up to 0.1%, or from 15.73 bits; else 1]
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
            // The bits of one module at the rate from which two are worth it.
            Request::BitsPerKey(bits) => sizing::bits_per_key(MODULAR_FPR).is_ok_and(|least| bits >= least),
        };
        self.most.unwrap_or(if are_worth_it { DEFAULT_MODULES } else { 1 })
    }

    pub fn sizing(&self, keys: usize, request: Request) -> Result<ModularSizing, BuildError> {
        match (request, self.most(request)) {
            // The size of a blocked filter, which ignores that two keys can have one hash. The difference matters from
            // 10^15 keys on.
            (Request::Fpr(fpr), 1) => {
                let sizing = Sizing::for_fpr(keys, fpr)?;
                ModularSizing::new(1, sizing.n_blocks(), sizing.k())
            }
            (Request::Fpr(fpr), most) => match ModularSizing::for_fpr(keys, fpr, most) {
                // Two modules may be too few for so low a rate.
                Err(_) if self.most.is_none() => ModularSizing::for_fpr(keys, fpr, MAX_MODULES),
                sizing => sizing,
            },
            (Request::BitsPerKey(bits), most) => ModularSizing::for_bits_per_key(keys, bits, most),
        }
    }
}
