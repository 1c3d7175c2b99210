//! The measurements, as the benchmark saves them.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::race::median;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    Absent,
    Present,
    Mixed,
    Insert,
}

impl Workload {
    pub const ALL: [Self; 4] = [Self::Absent, Self::Present, Self::Mixed, Self::Insert];

    pub fn title(self) -> &'static str {
        match self {
            Self::Absent => "Lookups of absent keys",
            Self::Present => "Lookups of present keys",
            Self::Mixed => "Lookups of present and absent keys in random order, with a branch on the answer",
            Self::Insert => "Inserts",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    pub machine: Machine,
    pub command: String,
    pub quick: bool,
    pub entries: Vec<Entry>,
    pub timings: Vec<Timing>,
    pub key_timings: Vec<KeyTiming>,
    pub builds: Vec<BuildTiming>,
    pub key_builds: Vec<KeyBuild>,
    pub by_k: Vec<KTiming>,
    pub rates: Vec<Rate>,
}

/// A contender's size and false-positive rate at 1 MiB.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    pub contender: String,
    pub rehashes: bool,
    pub bits_per_key: f64,
    pub fpr: f64,
}

/// Nanoseconds per operation, by round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timing {
    pub size_bytes: usize,
    pub workload: Workload,
    /// Timings with the same number ran in interleaved rounds.
    pub race: usize,
    pub contender: String,
    pub rounds: Vec<f64>,
}

/// Looking up absent keys of one shape, hashing included.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyTiming {
    pub shape: String,
    pub size_bytes: usize,
    pub contender: String,
    pub rounds: Vec<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BuildTiming {
    pub contender: String,
    pub keys: u64,
    pub rounds: Vec<f64>,
}

/// Building a filter from keys and serializing it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyBuild {
    pub contender: String,
    pub shape: String,
    pub rounds: Vec<f64>,
    /// Peak memory per key beyond that of the result.
    pub scratch_bytes: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KTiming {
    pub contender: String,
    pub k: u32,
    pub rounds: Vec<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rate {
    pub contender: String,
    pub bits_per_key: f64,
    pub k: u32,
    pub positives: u64,
    pub queried: u64,
}

impl Rate {
    pub fn fpr(&self) -> f64 {
        self.positives as f64 / self.queried as f64
    }
}

impl Results {
    pub fn entry(&self, contender: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contender == contender)
    }

    fn timings_of(
        &self,
        size_bytes: usize,
        workload: Workload,
        contender: &str,
    ) -> impl Iterator<Item = &Timing> {
        self.timings.iter().filter(move |timing| {
            timing.size_bytes == size_bytes && timing.workload == workload && timing.contender == contender
        })
    }

    /// Median of the rounds.
    pub fn nanoseconds(&self, size_bytes: usize, workload: Workload, contender: &str) -> Option<f64> {
        median(self.timings_of(size_bytes, workload, contender).next()?.rounds.iter().copied())
    }

    /// The median over all rounds of `one`'s time divided by `other`'s in the same round.
    pub fn ratio(&self, size_bytes: usize, workload: Workload, one: &str, other: &str) -> Option<f64> {
        self.timings_of(size_bytes, workload, one).find_map(|one| {
            let mut others = self.timings_of(size_bytes, workload, other);
            let other = others.find(|other| other.race == one.race)?;
            median(one.rounds.iter().zip(&other.rounds).map(|(one, other)| one / other))
        })
    }

    fn key_rounds(&self, size_bytes: usize, shape: &str, contender: &str) -> Option<&[f64]> {
        let is_of = |timing: &&KeyTiming| {
            timing.size_bytes == size_bytes && timing.shape == shape && timing.contender == contender
        };
        Some(&self.key_timings.iter().find(is_of)?.rounds)
    }

    /// Like [`nanoseconds`](Self::nanoseconds), for absent keys of a shape.
    pub fn key_nanoseconds(&self, size_bytes: usize, shape: &str, contender: &str) -> Option<f64> {
        median(self.key_rounds(size_bytes, shape, contender)?.iter().copied())
    }

    /// Like [`ratio`](Self::ratio), for absent keys of a shape.
    pub fn key_ratio(&self, size_bytes: usize, shape: &str, one: &str, other: &str) -> Option<f64> {
        let rounds = |contender| self.key_rounds(size_bytes, shape, contender);
        median(rounds(one)?.iter().zip(rounds(other)?).map(|(one, other)| one / other))
    }

    /// The measured sizes, in ascending order.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.timings.iter().map(|timing| timing.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Contenders of a workload, in the order of the line-up.
    pub fn contenders(&self, workload: Workload) -> Vec<&str> {
        let mut contenders: Vec<&str> = Vec::new();
        for timing in self.timings.iter().filter(|timing| timing.workload == workload) {
            if !contenders.contains(&timing.contender.as_str()) {
                contenders.push(&timing.contender);
            }
        }
        contenders
    }
}

/// A size as a whole number of the largest unit possible.
pub fn size_text(size_bytes: usize) -> String {
    match size_bytes {
        _ if size_bytes.is_multiple_of(1 << 30) => format!("{} GiB", size_bytes >> 30),
        _ if size_bytes.is_multiple_of(1 << 20) => format!("{} MiB", size_bytes >> 20),
        _ if size_bytes.is_multiple_of(1 << 10) => format!("{} KiB", size_bytes >> 10),
        _ => format!("{size_bytes} bytes"),
    }
}
