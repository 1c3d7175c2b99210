//! All types of `api.tsv`, the public API, can be sent to threads, shared between them, moved and used after a panic.

use std::any::type_name;
use std::collections::BTreeSet;
use std::panic::{RefUnwindSafe, UnwindSafe};

use bloomline::bank::{
    BankFooter, BankView, FileVersion, FilterBank, IndexBuilder, IndexFooter, IndexView, SlotBitmap, SlotIter,
};
use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{
    AlignedBytes, AtomicBloomFilter, BloomFilter, BloomView, Error, ErrorKind, FilterBuilder, Kernel,
    KeyEstimate, Owned, Sizing, StandaloneFooter, StandaloneKind,
};

/// The name of a type that has all auto traits, without its path and parameters.
fn name<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() -> &'static str {
    let path = type_name::<T>().split('<').next().unwrap();
    path.rsplit("::").next().unwrap()
}

macro_rules! names {
    ($($type:ty),* $(,)?) => { BTreeSet::from([$(name::<$type>()),*]) };
}

#[test]
fn every_type_has_all_auto_traits() {
    let names = names![
        AlignedBytes,
        AtomicBloomFilter,
        BankFooter,
        BankView,
        BloomFilter,
        BloomView,
        CountingBloomFilter,
        Error,
        ErrorKind,
        FileVersion,
        FilterBank,
        FilterBuilder,
        FilterPolicy,
        Frontier<String>,
        IndexBuilder,
        IndexFooter,
        IndexView,
        Kernel,
        KeyEstimate,
        Owned<BloomView<'static>, Vec<u8>>,
        Owned<IndexView<'static>, Vec<u8>>,
        ScalableBloomFilter,
        Sizing,
        SlotBitmap,
        SlotIter,
        StandaloneFooter,
        StandaloneKind,
        StandardBloomFilter,
        StandardSizing,
    ];
    let declarations = include_str!("api.tsv").lines().filter_map(|line| line.split_once('\t'));
    let types = declarations.filter(|(_, item)| item.contains("pub struct ") || item.contains("pub enum "));
    assert_eq!(types.map(|(path, _)| path.rsplit("::").next().unwrap()).collect::<BTreeSet<_>>(), names);
}
