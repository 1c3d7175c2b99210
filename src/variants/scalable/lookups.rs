//! Lookups of one key in filters of one or two modules.

use crate::filter::BloomFilter;

/// Returns whether any of the filters, which have `n_modules` modules each, has the hash.
#[inline(always)]
pub(super) fn contain(filters: &[BloomFilter], n_modules: usize, hash: u64) -> bool {
    match n_modules {
        1 => BloomFilter::any_first_contains(filters, hash),
        _ => modules_contain(filters, hash),
    }
}

// Does not panic, so that the compiler knows that it changes nothing, and keeps what a loop around it has loaded.
#[inline(never)]
pub(super) fn modules_contain(filters: &[BloomFilter], hash: u64) -> bool {
    // For an absent key, the first modules are mostly all that is read, with one mask.
    BloomFilter::any_first_contains(filters, hash)
        && filters
            .chunks(MOST_FOUND)
            .any(|filters| any_contains(filters, BloomFilter::which_first_contain(filters, hash), hash))
}

/// Filters that [`BloomFilter::which_first_contain`] can tell apart.
pub(super) const MOST_FOUND: usize = u64::BITS as usize;

/// Returns whether any of the filters, whose first module was `found` to have the hash, has it.
#[inline(always)]
pub(super) fn any_contains(filters: &[BloomFilter], mut found: u64, hash: u64) -> bool {
    // Mostly one bit is set. A loop over all filters, which ends at a hit, would end at an unpredictable filter.
    while found != 0 {
        let filter = filters.iter().nth_back(found.trailing_zeros() as usize);
        if filter.is_some_and(|filter| filter.others_contain(hash)) {
            return true;
        }
        found &= found - 1;
    }
    false
}
