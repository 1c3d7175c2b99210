//! Programs of operations on a frontier, compared with a queue and with the set of accepted items.

use std::collections::{HashSet, VecDeque};

use arbitrary::Arbitrary;
use bloomline::variants::Frontier;

#[derive(Arbitrary, Debug)]
pub enum Operation<'a> {
    Push(&'a [u8]),
    /// Consecutive numbers. Has the first number and their count, both small, so that most programs repeat some.
    Extend(u8, u8),
    Pop,
    /// Replaces the frontier by the copy decoded from its standalone bytes.
    Standalone,
    /// Changes a byte of the standalone bytes, and truncates them at that byte.
    Damage(u16, u8),
}

/// Longer programs find no more bugs than shorter ones.
const MOST_OPERATIONS: usize = 64;

struct Model {
    frontier: Frontier<Vec<u8>>,
    /// `None` if the filter grows.
    capacity: Option<u64>,
    queue: VecDeque<Vec<u8>>,
    /// Every item that the frontier accepted, including popped ones.
    accepted: HashSet<Vec<u8>>,
}

/// Runs the operations on a frontier for `expected_items` items, of fixed size or growing, and checks it after each.
pub fn check(expected_items: u8, grows: bool, seed: u64, operations: &[Operation<'_>]) {
    let make = if grows { Frontier::growing } else { Frontier::with_fpr };
    let frontier = make(expected_items.into(), 0.05).expect("a small filter").with_seed(seed).unwrap();
    let capacity = (!grows).then_some(expected_items.into());
    let mut model = Model { frontier, capacity, queue: VecDeque::new(), accepted: HashSet::new() };
    for operation in operations.iter().take(MOST_OPERATIONS) {
        model.run(operation);
        model.check();
    }
    let rest: VecDeque<_> = std::iter::from_fn(|| model.frontier.pop()).collect();
    assert_eq!(rest, model.queue);
    assert!(model.accepted.iter().all(|item| model.frontier.contains(item)));
}

impl Model {
    fn run(&mut self, operation: &Operation<'_>) {
        match *operation {
            Operation::Push(item) => self.push(item.to_vec()),
            Operation::Extend(first, count) => {
                let numbers = first..first.saturating_add(count % 32);
                numbers.for_each(|number| self.push(number.to_string().into()));
            }
            Operation::Pop => assert_eq!(self.frontier.pop(), self.queue.pop_front()),
            Operation::Standalone => {
                let bytes = self.frontier.to_standalone();
                let copy = Frontier::from_standalone(&bytes).expect("our own bytes");
                assert!(copy.to_standalone() == bytes);
                assert_eq!(copy.estimated_fpr(), self.frontier.estimated_fpr());
                self.frontier = copy;
            }
            Operation::Damage(place, change) => {
                let read = Frontier::<Vec<u8>>::from_standalone;
                super::damaged(self.frontier.to_standalone(), place.into(), change, read);
            }
        }
    }

    fn push(&mut self, item: Vec<u8>) {
        let was_seen = self.frontier.contains(&item);
        assert_eq!(self.frontier.insert(item.clone()), !was_seen);
        if was_seen {
            return;
        }
        assert!(self.accepted.insert(item.clone()), "{item:?} was accepted twice");
        self.queue.push_back(item);
    }

    /// Checks what holds after every operation.
    fn check(&self) {
        let (frontier, accepted) = (&self.frontier, self.accepted.len() as u64);
        assert_eq!((frontier.len(), frontier.is_empty()), (self.queue.len(), self.queue.is_empty()));
        assert_eq!(frontier.accepted(), accepted);
        assert_eq!(frontier.is_over_capacity(), self.capacity.is_some_and(|capacity| accepted > capacity));
        assert!(frontier.iter().eq(&self.queue));
    }
}
