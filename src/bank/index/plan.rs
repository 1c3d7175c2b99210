//! Which banks an index has, and the slots of a file in them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bank::shape::{KEYS_BYTES, MOST_SLOTS, TRAILER_BYTES, rows_len};

/// A lookup reads a range of each bank.
const MOST_BANKS: usize = 8;

/// Slots that a filter needs in a bank of `bank_blocks` blocks. If these are more blocks than the filter's, or not a
/// divisor, its blocks are repeated.
pub(super) fn slots(n_blocks: u32, bank_blocks: u64) -> u64 {
    let (mut a, mut b) = (u64::from(n_blocks), bank_blocks);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    u64::from(n_blocks) / a.max(1)
}

/// Which of these banks is best for a filter that needs so many slots there: it needs the fewest bytes, and among these
/// the fewest slots.
fn best(slots_and_blocks: impl Iterator<Item = (u64, u64)>) -> usize {
    let cost = |(slots, bank_blocks): (u64, u64)| (slots.saturating_mul(bank_blocks), slots);
    slots_and_blocks.map(cost).enumerate().min_by_key(|&(_, cost)| cost).map_or(0, |(bank, _)| bank)
}

pub(super) fn best_bank(n_blocks: u32, banks: &[u64]) -> usize {
    best(banks.iter().map(|&bank_blocks| (slots(n_blocks, bank_blocks), bank_blocks)))
}

/// The numbers of blocks of the banks for filters of these sizes, each with how many there are. `None` if a bank would
/// have too many slots.
///
/// In a bank of few blocks, a large file has many slots, of which a lookup reads all. In one of many blocks, a small file
/// is repeated, and each bank has some slots without a file. So this begins with the pair of banks of which a lookup
/// reads the fewest bytes, among those that need at most 1.5% more than the fewest, and adds banks as long as a lookup
/// then reads less and the index stays within this limit.
pub(super) fn plan(sizes: &BTreeMap<u32, u64>) -> Option<Vec<u64>> {
    let largest = u64::from(sizes.keys().next_back().copied().unwrap_or(1));
    let steps = (0..32).flat_map(|doublings| [1 << doublings, 3 << doublings]);
    let candidates: Vec<u64> = steps.filter(|&n_blocks| n_blocks <= largest).collect();
    // For each size the number of files, and of slots in each candidate.
    let needs: Vec<(u64, Vec<u64>)> = sizes
        .iter()
        .map(|(&n_blocks, &files)| (files, candidates.iter().map(|&bank| slots(n_blocks, bank)).collect()))
        .collect();
    let with_cost = |set: Vec<usize>| cost(&needs, &candidates, &set).map(|(all, read)| (read, all, set));
    let one_or_two = |i| (0..=i).map(move |j| if i == j { [i].to_vec() } else { [i, j].to_vec() });
    let sets: Vec<_> = (0..candidates.len()).flat_map(one_or_two).filter_map(with_cost).collect();
    let fewest = sets.iter().map(|(_, all, _)| *all).min()?;
    let is_small = |(_, all, _): &(u64, u64, Vec<usize>)| all.saturating_sub(fewest) <= fewest / 64;
    let mut best = sets.into_iter().filter(is_small).min()?;
    while best.2.len() < MOST_BANKS {
        let others = (0..candidates.len()).filter(|i| !best.2.contains(i));
        let larger = others.filter_map(|i| with_cost([&best.2[..], &[i]].concat())).filter(is_small).min();
        let Some(larger) = larger.filter(|larger| larger.0 < best.0) else { break };
        best = larger;
    }
    Some(best.2.into_iter().map(|i| candidates[i]).collect())
}

/// Bytes of a set of banks, and those of them that a lookup reads.
fn cost(needs: &[(u64, Vec<u64>)], candidates: &[u64], set: &[usize]) -> Option<(u64, u64)> {
    let mut of_banks = [0_u64; MOST_BANKS];
    for (files, slots) in needs {
        let bank = best(set.iter().map(|&i| (slots[i], candidates[i])));
        of_banks[bank] = of_banks[bank].saturating_add(files.saturating_mul(slots[set[bank]]));
    }
    let (mut all, mut read) = (0_u64, 0);
    for (&n_slots, &i) in of_banks.iter().zip(set) {
        let n_slots = usize::try_from(n_slots).ok().filter(|&slots| slots <= MOST_SLOTS)?;
        let region = (rows_len(n_slots) + TRAILER_BYTES) as u64;
        let bank = region.checked_mul(candidates[i])?.checked_add((n_slots * KEYS_BYTES) as u64)?;
        all = all.checked_add(bank)?;
        read += region;
    }
    Some((all, read))
}
