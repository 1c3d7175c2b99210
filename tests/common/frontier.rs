//! Programs of operations on a frontier, against a queue and a set of what it took.

use std::collections::{HashSet, VecDeque};

use arbitrary::Arbitrary;
use bloomline::variants::Frontier;

#[derive(Arbitrary, Debug)]
pub enum Operation<'a> {
    Push(&'a [u8]),
    /// So many neighbouring numbers from a first on, which meet in most programs.
    Extend(u8, u8),
    Pop,
    /// By way of standalone bytes.
    Standalone,
    /// Standalone bytes with a byte changed, and cut there.
    Damage(u16, u8),
}

/// Longer programs find nothing that shorter ones don't.
const MOST_OPERATIONS: usize = 64;

struct Model {
    frontier: Frontier<Vec<u8>>,
    /// `None` where the filter grows.
    planned: Option<u64>,
    queue: VecDeque<Vec<u8>>,
    /// All that the frontier took, also what has come out.
    accepted: HashSet<Vec<u8>>,
}

/// What of these operations holds for a frontier of so many items, which grows or does not.
pub fn frontier(expected_items: u8, grows: bool, seed: u64, operations: &[Operation<'_>]) {
    let make = if grows { Frontier::growing } else { Frontier::with_fpr };
    let frontier = make(expected_items.into(), 0.05).expect("a small filter").with_seed(seed);
    let planned = (!grows).then_some(expected_items.into());
    let mut model = Model { frontier, planned, queue: VecDeque::new(), accepted: HashSet::new() };
    for operation in operations.iter().take(MOST_OPERATIONS) {
        model.run(operation);
        model.check();
    }
    let rest: VecDeque<_> = std::iter::from_fn(|| model.frontier.pop()).collect();
    assert_eq!(rest, model.queue);
    assert!(model.accepted.iter().all(|item| model.frontier.seen(item)));
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
                let copy = Frontier::from_standalone(&bytes).expect("our own");
                assert!(copy.to_standalone() == bytes);
                assert_eq!(copy.estimated_fpr(), self.frontier.estimated_fpr());
                self.frontier = copy;
            }
            Operation::Damage(place, change) => {
                let mut bytes = self.frontier.to_standalone();
                let place = usize::from(place) % bytes.len();
                assert!(Frontier::<Vec<u8>>::from_standalone(&bytes[..place]).is_err(), "cut at {place}");
                bytes[place] ^= change.max(1);
                assert!(Frontier::<Vec<u8>>::from_standalone(&bytes).is_err(), "changed at {place}");
            }
        }
    }

    fn push(&mut self, item: Vec<u8>) {
        let was_seen = self.frontier.seen(&item);
        assert_eq!(self.frontier.push(item.clone()), !was_seen);
        if was_seen {
            return;
        }
        assert!(self.accepted.insert(item.clone()), "{item:?} was taken twice");
        self.queue.push_back(item);
    }

    /// What holds after every operation.
    fn check(&self) {
        let (frontier, accepted) = (&self.frontier, self.accepted.len() as u64);
        assert_eq!((frontier.len(), frontier.is_empty()), (self.queue.len(), self.queue.is_empty()));
        assert_eq!(frontier.accepted(), accepted);
        assert_eq!(frontier.is_over_capacity(), self.planned.is_some_and(|planned| accepted > planned));
        assert!(frontier.iter().eq(&self.queue) && frontier.into_iter().eq(&self.queue));
    }
}
