//! The union of growing filters.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::filter::{Load, ScalableBloomFilter};
use crate::error::Error;
use crate::filter::BloomFilter;
use crate::mask::ProbeCount;
use crate::view::{check_modules, check_placing};

impl ScalableBloomFilter {
    /// Adds the keys of `other`. Both must have the same k and seed, as filters made with the same arguments have.
    ///
    /// A filter of `other` is united with one of the same size here, if that has room for its keys. Otherwise it is
    /// added, which makes lookups slower. So ten filters with few keys for their initial capacity unite to one, but ten
    /// full ones to ten. New keys go into whatever has room, then into filters of the series that this filter was made
    /// for, from the first that is larger than any there is.
    ///
    /// If a filter is added, [`fpr`](Self::fpr) rises by its rate, to at most the sum of the rates of both. Keys
    /// inserted into both count twice in [`inserted_keys`](Self::inserted_keys). Copies the filters that it adds.
    /// Aborts if out of memory, as `Vec` does.
    ///
    /// # Errors
    ///
    /// If the filters differ in k or seed. Then nothing is changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use bloomline::variants::ScalableBloomFilter;
    ///
    /// let mut monday = ScalableBloomFilter::with_fpr(1_000, 0.01)?;
    /// let mut tuesday = monday.clone();
    /// monday.insert("ant");
    /// tuesday.insert("bee");
    /// monday.union_with(&tuesday)?;
    /// assert!(monday.contains("ant") && monday.contains("bee"));
    /// assert_eq!((monday.filters().len(), monday.fpr()), (1, 0.01));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    // The filter keeps `fpr` because `fpr` is at least the sum of the rates of all filters, each with all keys that it
    // has room for, and of the filters that will be added. A union into an existing filter does not change its
    // capacity, and so not its rate at capacity. The filters that are added have at most the rate of `other` less the
    // rates of its filters to come. A skipped index has no filter, and so no rate.
    #[doc(alias = "merge")]
    pub fn union_with(&mut self, other: &Self) -> Result<(), Error> {
        check_modules([self.n_modules(), other.n_modules()])?;
        check_placing([self.series.k, other.series.k].map(ProbeCount::get), [self.seed, other.seed])?;
        let (kernel, n_filters) = (self.filters[0].kernel(), self.filters.len());
        // By size and room, because forged bytes can have many filters, so a search through all would be quadratic.
        let entry =
            |(at, (filter, load)): (usize, (&BloomFilter, &Load))| (filter.n_blocks(), load.room(), at);
        let mut rooms: BTreeSet<_> = self.filters.iter().zip(self.loads()).enumerate().map(entry).collect();
        let mut loads: Vec<_> = self.loads().copied().collect();
        for (filter, load) in other.filters.iter().zip(other.loads()) {
            if filter.known_keys() == Some(0) {
                continue;
            }
            let n_blocks = filter.n_blocks();
            let tightest = rooms.range((n_blocks, load.keys, 0)..=(n_blocks, u64::MAX, usize::MAX)).next();
            let at = if let Some(&(_, room, at)) = tightest {
                self.filters[at].union_with(filter)?;
                rooms.remove(&(n_blocks, room, at));
                loads[at].keys += load.keys;
                at
            } else {
                self.filters.push(filter.clone().with_kernel(kernel));
                loads.push(*load);
                loads.len() - 1
            };
            rooms.insert((n_blocks, loads[at].room(), at));
        }
        self.newest = loads.pop().unwrap_or(self.newest);
        self.older = loads;
        if self.filters.len() > n_filters {
            self.sort_older();
            self.fpr = (self.fpr + other.fpr - other.series.rate_from(other.next)).min(f64::MAX);
            let largest = self.filters.iter().map(|filter| filter.blocks.module_blocks()).max();
            while self.series.module_blocks(self.next).is_ok_and(|n_blocks| Some(n_blocks) <= largest) {
                self.fpr -= self.series.fpr(self.next);
                self.next += 1;
            }
        }
        Ok(())
    }

    /// Sorts all filters but the last by size.
    fn sort_older(&mut self) {
        let newest = self.filters.pop();
        let mut older: Vec<_> = self.filters.drain(..).zip(self.older.drain(..)).collect();
        older.sort_by_key(|(filter, _)| filter.n_blocks());
        (self.filters, self.older) = older.into_iter().unzip();
        self.filters.extend(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::super::series::Series;
    use super::*;
    use crate::hash::mix;
    use crate::limits::SCALABLE_MIN_FPR;

    /// All full, so that a union adds all.
    fn with_filters(n_filters: u32, fpr: f64, tightening: f64) -> ScalableBloomFilter {
        let mut filter =
            ScalableBloomFilter::with_series(Series::new(1, fpr, 2, tightening).unwrap()).unwrap();
        for number in 0.. {
            filter.insert_hash(mix(number));
            if filter.filters.len() as u32 == n_filters && filter.loads().all(Load::is_full) {
                break;
            }
        }
        filter
    }

    /// The rates of the existing filters, and of all that a process can have.
    #[test]
    fn the_rates_of_a_union_add_up_to_the_reported_rate_at_most() {
        let mut united = 0;
        for rates in [
            [0.6, 0.3],
            [0.3, 0.3],
            [0.02, 0.01],
            [0.01, 0.01],
            [1e-5, 1.1e-5],
            [1e-5, 1e-5],
            [SCALABLE_MIN_FPR; 2],
        ] {
            for tightenings in [[0.5, 0.5], [0.85, 0.85], [0.5, 0.85], [0.85, 0.8], [0.98, 0.999]] {
                for numbers in [[1, 1], [1, 5], [5, 1], [3, 4]] {
                    let [mut filter, other] =
                        [0, 1].map(|i| with_filters(numbers[i], rates[i], tightenings[i]));
                    let existing = [&filter, &other].map(|filter| -> f64 {
                        (0..filter.next).map(|index| filter.series.fpr(index)).sum()
                    });
                    if filter.union_with(&other).is_ok() {
                        let all = existing.iter().sum::<f64>() + filter.series.rate_from(filter.next);
                        assert!(
                            all <= filter.fpr * (1.0 + 1e-12) && filter.fpr <= rates[0] + rates[1],
                            "{rates:?}, {tightenings:?}, {numbers:?}: {all} of {}",
                            filter.fpr
                        );
                        united += 1;
                    }
                }
            }
        }
        assert!(united >= 60, "{united}");
    }
}
