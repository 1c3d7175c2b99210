//! Says what a part of a table is: a filter in compact bytes, a filter block in LevelDB's format, or a partition index.
//!
//! ```text
//! cargo run --release --example inspect -- FILE
//! ```

use std::error::Error;
use std::{env, fs};

use bloomline::sstable::{FilterBlockReader, PartitionIndex};
use bloomline::variants::ModularView;
use bloomline::{BloomView, DecodeError, KeyEstimate};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("name the file to inspect")?;
    print!("{}", description(&fs::read(path)?)?);
    Ok(())
}

/// An index has a checksum, and few bytes end as compact ones do, so these two are tried first.
pub fn description(bytes: &[u8]) -> Result<String, Box<dyn Error>> {
    if let Ok(index) = PartitionIndex::new(bytes) {
        return Ok(format!("partition index: {} partitions, checksum valid\n", index.len()));
    }
    if let Ok(filter) = BloomView::from_compact(bytes) {
        return Ok(format!(
            "filter in compact bytes: {} bytes, k = {}, fill ratio {:.3}\n{}",
            filter.byte_len(),
            filter.k(),
            filter.fill_ratio(),
            keys_and_fpr(filter.estimated_keys(), filter.estimated_fpr())
        ));
    }
    if let Ok(filter) = ModularView::from_compact(bytes) {
        return Ok(format!(
            "filter in compact bytes: {} modules, {} bytes in all, k = {}\n{}",
            filter.n_modules(),
            filter.byte_len(),
            filter.k(),
            keys_and_fpr(filter.estimated_keys(), filter.estimated_fpr())
        ));
    }
    match FilterBlockReader::new(bytes) {
        Ok(block) => Ok(filter_block(bytes, &block)),
        Err(error) => {
            Err(format!("not a partition index or a filter in compact bytes, and no filter block: {error}")
                .into())
        }
    }
}

fn keys_and_fpr(keys: Option<KeyEstimate>, fpr: f64) -> String {
    let keys = keys.map_or("too many to estimate".into(), |estimate| {
        format!("about {} ± {:.1}", estimate.keys, estimate.standard_error)
    });
    format!("keys: {keys}\nFPR: {fpr:.3e}\n")
}

/// The keys of a filter in compact bytes, and its FPR.
fn estimates(filter: &[u8]) -> Option<(Option<KeyEstimate>, f64)> {
    if let Ok(filter) = ModularView::from_compact(filter) {
        return Some((filter.estimated_keys(), filter.estimated_fpr()));
    }
    let filter = BloomView::from_compact(filter).ok()?;
    Some((filter.estimated_keys(), filter.estimated_fpr()))
}

fn filter_block(bytes: &[u8], block: &FilterBlockReader) -> String {
    let range_log2 = bytes.last().copied().unwrap_or(0);
    let (mut n_filters, mut n_empty, mut usable) = (0, 0, Vec::new());
    // Forged offsets can name the same bytes again and again.
    let mut room = bytes.len();
    for range in 0..block.n_filters() as u64 {
        // A range that begins beyond 2^64 bytes has no offset to be asked for.
        let found = range.checked_mul(1 << range_log2).map(|offset| block.filter_of(offset));
        if matches!(found, Some(Err(DecodeError::NoFilter { .. }))) {
            n_empty += 1;
            continue;
        }
        n_filters += 1;
        usable.extend(found.and_then(Result::ok).and_then(|filter| {
            room = room.checked_sub(filter.len())?;
            estimates(filter)
        }));
    }
    let keys: Option<u64> = usable.iter().map(|(keys, _)| Some(keys.as_ref()?.keys)).sum();
    let rates = usable.iter().map(|(_, fpr)| *fpr);
    let (sum, highest) = rates.fold((0.0, 0.0_f64), |(sum, highest), fpr| (sum + fpr, highest.max(fpr)));
    format!(
        "filter block: {n_filters} filters, none for {n_empty} ranges of {} bytes\nfilters that cannot be read: \
         {}\nkeys: {}\nFPR: {:.3e} in the mean, {highest:.3e} at most\n",
        1_u64 << range_log2,
        n_filters - usable.len(),
        keys.map_or("too many to estimate".into(), |keys| format!("about {keys}")),
        sum / usable.len().max(1) as f64
    )
}
