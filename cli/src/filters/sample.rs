//! What the keys of a sample tell of a corpus.
#![forbid(unsafe_code)]

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::ahead::in_order;
use crate::filters::build::Request;
use crate::filters::distinct::Distinct;
use crate::input::Input;
use crate::keys::Keys;
use crate::numbers::{counted, grouped, percent, size};

/// The rates whose sizes are shown.
const RATES: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-6];

pub struct Sample {
    unit: &'static str,
    /// Of the lines, after decompression.
    n_bytes: u64,
    /// Lines or paragraphs, keys, and distinct keys, which are estimated if they are many.
    n_texts: u64,
    n_keys: u64,
    n_distinct: u64,
    /// For each rate, a new text is dropped with this probability in the mean.
    drops: [f64; 4],
}

impl Sample {
    pub fn read(input: &Input) -> Result<Self> {
        let (mut distinct, mut drops) = (Distinct::default(), [0.0; 4]);
        let (mut n_bytes, mut n_texts, mut n_keys) = (0, 0, 0);
        let is_whole = in_order(Keys::new(input, "counting", false), 0, |chunk, hashes, hashed| {
            hashed?;
            distinct.add(hashes);
            n_bytes += chunk.n_bytes() as u64;
            n_keys += hashes.len() as u64;
            let mut add = |n_keys: usize| {
                n_texts += 1;
                let fewest = input.seen.fewest(n_keys);
                drops.iter_mut().zip(RATES).for_each(|(drops, rate)| *drops += tail(n_keys, fewest, rate));
            };
            match chunk.units() {
                Some(units) => units.iter().filter(|unit| !unit.is_blank).for_each(|unit| add(unit.n_keys)),
                None => hashes.iter().for_each(|_| add(1)),
            }
            Ok(true)
        })?;
        ensure!(is_whole && n_texts > 0, "the sample has no line that can be read (name other files)");
        distinct.tidy();
        let n_distinct = distinct.at_most() as u64;
        let drops = drops.map(|drops| drops / n_texts as f64);
        Ok(Self { unit: input.record(), n_bytes, n_texts, n_keys, n_distinct, drops })
    }

    fn keys_per_gb(&self) -> u64 {
        (self.n_distinct as f64 * 1e9 / self.n_bytes.max(1) as f64) as u64
    }

    /// Bytes of a filter for the keys of 1 GB.
    fn sizes(&self) -> Result<[u64; 4]> {
        let mut sizes = [0; 4];
        for (size, rate) in sizes.iter_mut().zip(RATES) {
            *size = Request::of_rate(rate).sizing(self.keys_per_gb() as usize)?.byte_len() as u64;
        }
        Ok(sizes)
    }

    pub fn json(&self) -> Result<Value> {
        let per_rate = self.sizes()?.into_iter().zip(self.drops).zip(RATES);
        let rates: Vec<_> = per_rate
            .map(|((bytes, drops), rate)| json!({"false_positive_rate": rate, "bytes_per_gb": bytes, "dropped_if_new": drops}))
            .collect();
        Ok(json!({
            "bytes": self.n_bytes,
            "texts": self.n_texts,
            "keys": self.n_keys,
            "distinct_keys": self.n_distinct,
            "keys_per_gb": self.keys_per_gb(),
            "rates": rates,
        }))
    }

    pub fn table(&self) -> Result<String> {
        let keys = [self.n_keys, self.n_distinct, self.keys_per_gb()].map(grouped);
        let mut table = format!(
            "sample                  {} of {}\n\
             keys                    {}, {} distinct, {} per GB\n\n\
             FPR        size for 1 GB of lines   a new {} is dropped\n",
            counted(self.n_texts, self.unit),
            size(self.n_bytes),
            keys[0],
            keys[1],
            keys[2],
            self.unit
        );
        for ((bytes, drops), rate) in self.sizes()?.into_iter().zip(self.drops).zip(RATES) {
            let drops = if drops < 1e-20 { "under 1e-20".into() } else { percent(drops) };
            table += &format!("{:<10}{:>23}   {drops}\n", percent(rate), size(bytes));
        }
        Ok(table)
    }
}

/// The probability that at least `fewest` of `n` keys are found by mistake.
fn tail(n: usize, fewest: usize, rate: f64) -> f64 {
    let choose = |sum: f64, i: usize| sum * (n + 1 - i) as f64 / i as f64 * rate;
    let mut term = (1..=fewest).fold((1.0 - rate).powf((n - fewest.min(n)) as f64), choose);
    let mut sum = 0.0;
    for i in fewest + 1..=n + 1 {
        sum += term;
        if term < 1e-12 * sum || term == 0.0 {
            break;
        }
        term = choose(term, i) / (1.0 - rate);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_binomials() {
        for (n, fewest, rate, expected) in [
            (1, 1, 0.01, 0.01),
            (10, 10, 0.5, 0.5_f64.powi(10)),
            (10, 1, 0.1, 1.0 - 0.9_f64.powi(10)),
            (4, 3, 0.5, 5.0 / 16.0),
            (0, 1, 0.01, 0.0),
        ] {
            assert!((tail(n, fewest, rate) - expected).abs() < 1e-12, "{n}, {fewest}, {rate}");
        }
    }
}
