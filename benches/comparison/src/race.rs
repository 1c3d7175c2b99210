//! Contenders timed in interleaved rounds, so that a slowdown of the machine affects all of them.

use std::time::{Duration, Instant};

use bloomline::mix;

use crate::queries::{Queries, Reorder};
use crate::results::Column;

/// Approximate time of one contender's turn in a round.
const TURN: Duration = Duration::from_millis(1);

/// Runs `turn`, which returns nanoseconds per operation, for every contender in every round. Returns column `name` of
/// `table`.
///
/// The order changes with each round, because the contender before leaves its data in the caches.
pub fn race<C>(
    table: &str,
    name: impl Into<String>,
    contenders: &mut [(impl ToString, C)],
    rounds: usize,
    mut turn: impl FnMut(&mut C) -> f64,
) -> Column {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    for round in 0..rounds {
        order.sort_by_cached_key(|&i| mix((round << 32 | i) as u64));
        for &i in &order {
            times[i].push(turn(&mut contenders[i].1));
        }
    }
    let names = contenders.iter().map(|(name, _)| name.to_string());
    Column { table: table.to_owned(), name: name.into(), values: names.zip(times).collect() }
}

/// Nanoseconds per query of `pass`, which runs all queries. Calls it once to warm the caches, then for about a
/// millisecond, in a new order each time.
pub fn time_repeatedly<Q: Clone + Reorder>(queries: &mut Queries<Q>, mut pass: impl FnMut(&Q)) -> f64 {
    let n = queries.n;
    let mut time = |seed| {
        let queries = queries.reordered(seed);
        let start = Instant::now();
        pass(queries);
        start.elapsed()
    };
    let warm_up = time(0).max(Duration::from_nanos(1));
    let passes = (TURN.as_nanos() / warm_up.as_nanos()).clamp(1, 10_000) as u64;
    let elapsed = (1..=passes).map(time).sum();
    nanoseconds(elapsed, passes as usize * n)
}

/// Nanoseconds per operation of `pass`, which performs `operations` of them.
pub fn time_once(operations: usize, pass: impl FnOnce()) -> f64 {
    let start = Instant::now();
    pass();
    nanoseconds(start.elapsed(), operations)
}

fn nanoseconds(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}
