//! Contenders timed in turns, so that what slows the machine down slows them all.

use std::time::{Duration, Instant};

/// What one turn of one contender should take, about.
const TURN: Duration = Duration::from_millis(1);

/// Runs `turn`, which gives nanoseconds per operation, for every contender in every round, each round from another
/// one on. Times of each contender, by round.
pub fn race<C>(contenders: &mut [C], rounds: usize, mut turn: impl FnMut(&mut C) -> f64) -> Vec<Vec<f64>> {
    let n = contenders.len();
    let mut times = vec![Vec::with_capacity(rounds); n];
    for round in 0..rounds {
        for i in 0..n {
            let i = (i + round) % n;
            times[i].push(turn(&mut contenders[i]));
        }
    }
    times
}

/// Nanoseconds per operation of `pass`, which does `operations`: once to warm the caches, then for about a
/// millisecond.
pub fn time_repeatedly(operations: usize, mut pass: impl FnMut()) -> f64 {
    let start = Instant::now();
    pass();
    let warm_up = start.elapsed().max(Duration::from_nanos(1));
    let passes = (TURN.as_nanos() / warm_up.as_nanos()).clamp(1, 10_000) as usize;
    let start = Instant::now();
    for _ in 0..passes {
        pass();
    }
    nanoseconds(start.elapsed(), passes * operations)
}

/// Nanoseconds per operation of `pass`, which does `operations`.
pub fn time_once(operations: usize, pass: impl FnOnce()) -> f64 {
    let start = Instant::now();
    pass();
    nanoseconds(start.elapsed(), operations)
}

fn nanoseconds(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}

/// The median; `None` of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
