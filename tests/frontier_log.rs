//! A frontier over capacity warns once, even if it is saved and restored.

use std::sync::Mutex;

use bloomline::variants::Frontier;
use log::{LevelFilter, Log, Metadata, Record};

struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl Log for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

/// Pushes this number of new items.
fn push(frontier: &mut Frontier<String>, items: u64) {
    let last = frontier.accepted() + items;
    (frontier.accepted()..last).for_each(|i| assert!(frontier.insert(i.to_string())));
}

#[test]
fn a_frontier_over_capacity_warns_once() {
    log::set_logger(&WARNINGS).unwrap();
    log::set_max_level(LevelFilter::Warn);
    let warnings = || WARNINGS.0.lock().unwrap().clone();
    let restored =
        |frontier: &Frontier<String>| Frontier::from_standalone(&frontier.to_standalone()).unwrap();

    let mut frontier = Frontier::with_fpr(100, 1e-6).unwrap();
    push(&mut frontier, 100);
    let mut before = restored(&frontier);
    assert_eq!(warnings().len(), 0);
    push(&mut frontier, 1);
    assert!(frontier.is_over_capacity());
    assert_eq!(
        warnings(),
        [
            "WARN: a frontier for 100 items is over capacity and drops more new items than requested: make it larger, \
             or let it grow"
        ]
    );
    assert!(!frontier.insert("0".to_owned()));
    push(&mut frontier, 50);
    push(&mut restored(&frontier), 50);
    assert_eq!(warnings().len(), 1, "warned again");
    push(&mut before, 50);
    assert_eq!(warnings().len(), 2, "restored from before the warning");
}
