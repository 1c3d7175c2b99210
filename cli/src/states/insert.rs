//! Inserts what is new of a chunk.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::mem;

use anyhow::{Error, anyhow};
use bloomline::ErrorKind;

use crate::input::SeenRule;
use crate::state::{Filter, State};
use crate::texts::Unit;

/// Why no more lines are taken.
pub enum Stop {
    Full,
    Refused(bloomline::Error),
}

/// What was inserted of a chunk, and how surely what was dropped before was seen.
#[derive(Default)]
pub struct Inserted {
    /// For each line, or each of its units, whether it is new, and of units the share of their keys that was found.
    pub is_new: Vec<bool>,
    pub shares: Vec<f64>,
    pub n_lines: u64,
    pub n_printed: u64,
    found: Vec<bool>,
    /// Of what was printed and would have been dropped if one more key had been found by mistake, how many texts have so
    /// many absent keys. Rounded up by an eighth at most.
    by_one: BTreeMap<usize, u64>,
    /// In how many ways two, or three and more, keys could have been found by mistake in the others.
    ways: [f64; 2],
}

impl Inserted {
    /// Inserts the keys of what is new. Returns how many keys are new, and why it stopped before the last line.
    ///
    /// All keys of a text are looked up before any is inserted, so that a text that repeats itself is not dropped for
    /// that. The keys of dropped texts are not inserted, so that what is dropped is always similar to what was printed.
    pub fn insert(
        &mut self,
        filter: &mut Filter,
        units: Option<&[Unit]>,
        hashes: &[u64],
        room: u64,
        rule: &SeenRule,
    ) -> (u64, Option<Stop>) {
        let Self { is_new, shares, found, by_one, ways, .. } = self;
        let Some(units) = units else {
            let (n_new, stop) = insert_all(filter, hashes, room, is_new);
            *by_one.entry(1).or_default() += n_new;
            (self.n_lines, self.n_printed) = (is_new.len() as u64, n_new);
            return (n_new, stop);
        };
        is_new.clear();
        shares.clear();
        let (mut n_new, mut rest, mut stop) = (0, hashes, None);
        let (mut n_lines, mut n_printed, mut is_inserted) = (0, 0, Vec::new());
        // Much faster in batches of many texts.
        let has_one = units.iter().all(|unit| unit.n_keys <= 1) && hashes.len() as u64 <= room;
        if has_one {
            (n_new, stop) = insert_all(filter, hashes, room, &mut is_inserted);
            *by_one.entry(1).or_default() += n_new;
        }
        let mut ask = |filter: &Filter, keys: &[u64]| {
            found.resize(keys.len(), false);
            filter.contains_batch(keys, found);
            found.iter().filter(|&&found| found).count()
        };
        let mut answers = mem::take(&mut is_inserted).into_iter();
        for line in units.chunk_by(|one, next| one.line == next.line) {
            let n_keys: usize = line.iter().map(|unit| unit.n_keys).sum();
            let left = room - n_new;
            if !has_one && left < n_keys as u64 && left < (n_keys - ask(filter, &rest[..n_keys])) as u64 {
                stop = Some(Stop::Full);
            }
            // Without memory, the rest of the line is printed, and then no more is read.
            if stop.is_some() && answers.len() == 0 {
                break;
            }
            for unit in line {
                let keys = rest.split_off(..unit.n_keys).expect("hashes of all units");
                let n_found = match keys {
                    [] => 0,
                    [_] if has_one => usize::from(answers.next() == Some(false)),
                    keys => ask(filter, keys),
                };
                let share = unit.share(n_found);
                let is_seen = rule.is_seen(share);
                if !has_one && !is_seen && !keys.is_empty() {
                    let (n_absent, fewest) = (keys.len() - n_found, rule.fewest(keys.len()));
                    let ways_of = |n: usize| (1..=n).map(|i| n_absent as f64 / i as f64).product::<f64>();
                    match fewest.saturating_sub(n_found) {
                        0 | 1 => *by_one.entry(rounded_up(n_absent)).or_default() += 1,
                        2 => ways[0] += ways_of(2),
                        _ => ways[1] += ways_of(3),
                    }
                    let (n, stopped) = insert_all(filter, keys, u64::MAX, &mut is_inserted);
                    n_new += n;
                    stop = stop.or(stopped);
                }
                is_new.push(!is_seen);
                shares.push(share);
                n_lines += u64::from(!unit.is_blank);
                n_printed += u64::from(!unit.is_blank && !is_seen);
            }
        }
        (self.n_lines, self.n_printed) = (n_lines, n_printed);
        (n_new, stop)
    }

    /// An upper bound, by the model, of how many new texts were dropped on average while the last `n_keys` were inserted.
    pub fn expected_drops(&self, state: &State, n_keys: u64) -> f64 {
        // For each one that was printed, as many were dropped as the odds of that are.
        let (rate, mean) =
            (state.filter.estimated_fpr(), state.expected_drops(n_keys) / n_keys.max(1) as f64);
        let odds = |n: f64, rate: f64| (n * rate.ln_1p()).exp_m1();
        let by_one = self.by_one.iter().map(|(&n, &texts)| {
            let now = odds(n as f64, rate / (1.0 - rate));
            // Where they rise steeply, their mean is above those of the mean rate.
            texts as f64 * if n > 1 && now > 0.25 { now } else { odds(n as f64, mean) }
        });
        by_one.sum::<f64>() + self.ways[0] * rate.powi(2) + self.ways[1] * rate.powi(3)
    }
}

/// To four significant bits.
fn rounded_up(n: usize) -> usize {
    n.next_multiple_of(1 << n.max(1).ilog2().saturating_sub(3))
}

/// Inserts keys while fewer than `room` are new. Returns the number of new ones, and why it stopped before the last
/// key. `is_new` says for each inserted key whether it was new.
pub fn insert_all(
    filter: &mut Filter,
    hashes: &[u64],
    room: u64,
    is_new: &mut Vec<bool>,
) -> (u64, Option<Stop>) {
    const AHEAD: usize = 32;
    is_new.clear();
    let mut n_new = 0;
    let filter = match filter {
        Filter::Fixed(filter) => filter,
        // There is always room in it.
        Filter::Growing(filter) => {
            let inserted = filter.try_insert_batch(hashes, |new| {
                n_new += u64::from(new);
                is_new.push(new);
            });
            return (n_new, inserted.err().map(Stop::Refused));
        }
    };
    for (i, &hash) in hashes.iter().enumerate() {
        if n_new == room && !filter.contains_hash(hash) {
            return (n_new, Some(Stop::Full));
        }
        hashes.get(i + AHEAD).into_iter().for_each(|&later| filter.prefetch_insert(later));
        is_new.push(filter.insert_hash(hash));
        n_new += u64::from(is_new[i]);
    }
    (n_new, None)
}

pub fn refused(error: bloomline::Error) -> Error {
    if error.kind() != ErrorKind::OutOfMemory {
        return error.into();
    }
    anyhow!("{error} for more keys (free some memory)")
}
