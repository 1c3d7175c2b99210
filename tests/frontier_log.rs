//! A frontier over capacity warns once, even if it is saved and restored.

#[path = "common/warnings.rs"]
mod warnings;

use bloomline::variants::Frontier;

/// Pushes this number of new items.
fn push(frontier: &mut Frontier<String>, items: u64) {
    let last = frontier.accepted() + items;
    (frontier.accepted()..last).for_each(|i| assert!(frontier.insert(i.to_string())));
}

#[test]
fn a_frontier_over_capacity_warns_once() {
    warnings::keep();
    let restored =
        |frontier: &Frontier<String>| Frontier::from_standalone(&frontier.to_standalone()).unwrap();

    let mut frontier = Frontier::with_fpr(100, 1e-6).unwrap();
    push(&mut frontier, 100);
    let mut before = restored(&frontier);
    assert_eq!(warnings::kept().len(), 0);
    push(&mut frontier, 1);
    assert!(frontier.is_over_capacity());
    assert_eq!(
        warnings::kept(),
        [
            "WARN: a frontier for 100 items is over capacity and drops more new items than requested: make it larger, \
             or let it grow"
        ]
    );
    assert!(!frontier.insert("0".to_owned()));
    push(&mut frontier, 50);
    push(&mut restored(&frontier), 50);
    assert_eq!(warnings::kept().len(), 1, "warned again");
    push(&mut before, 50);
    assert_eq!(warnings::kept().len(), 2, "restored from before the warning");
}
