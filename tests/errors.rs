//! Every error of the crate, with its kind and all of its text.

mod common;

use std::io;

use bloomline::bank::{BankView, FilterBank};
use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{AlignedBytes, BloomFilter, BloomView, ErrorKind, OwnedView, Sizing, StandaloneFooter};
use common::decode::forge_footer as forge;
use common::error_texts::*;
use common::{of_modules, standard_programs::with_bits};
use xxhash_rust::xxh64::xxh64;

macro_rules! assert_errors {
    ($kind:ident: $($result:expr => $text:expr,)*) => {$(
        let error = $result.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::$kind, $text.into()));
    )*};
}

fn of_blocks(n_blocks: usize) -> BloomFilter {
    BloomFilter::with_blocks(n_blocks, 6).unwrap()
}

fn filled(n_blocks: usize) -> BloomFilter {
    let mut filter = of_blocks(n_blocks);
    filter.extend(0..99);
    filter
}

#[test]
fn arguments_out_of_range() {
    let most = (isize::MAX as u64 - 120) / 64;
    let mut full = of_blocks(1);
    full.extend(0..9_999);
    assert_errors! { Argument:
        Sizing::for_bits_per_key(9, 1e3) => bits_per_key(1000),
        Sizing::for_fpr(9, 1.5) => not_a_rate(1.5),
        Sizing::for_fpr_within(9, 1e-12, 1) => low_rate("1e-12", "1.263e-8"),
        Sizing::for_bits_per_key(1 << 63, 9.933) => too_many_keys(1 << 63, 9.933),
        Sizing::new(1, 17) => probes(17, 16),
        StandardSizing::new(1, 65) => probes(65, 64),
        Sizing::new(0, 6) => n_blocks(0, most),
        StandardSizing::new(0, 6) =>
            format!("a standard filter has 1 to {} bits on this machine, not 0", most.saturating_mul(512)),
        Sizing::new(9, 6).unwrap().with_modules(17) => n_modules(17),
        Sizing::new(10, 6).unwrap().with_modules(3) => not_divided(10, 3),
        of_blocks(10).fold(3) => not_folded(10, 3),
        of_blocks(10).fold(0) => not_folded(10, 0),
        of_blocks(10).as_view().to_resized(0) => n_blocks(0, most),
        of_modules(3, 4, 6).as_view().to_resized(16) => not_divided(16, 3),
        of_blocks(10).shrink_to_fpr(f64::NAN) => not_a_rate("NaN"),
        filled(3).with_seed(9) => too_late(9),
        CountingBloomFilter::with_sizing(of_modules(2, 1, 6).sizing()) => one_module_of_counters(2),
        ScalableBloomFilter::from_filter(of_modules(3, 1, 6), 9, 0.1) => two_modules_grow(3),
        ScalableBloomFilter::from_filter(full, 9, 0.5) =>
            "a false-positive rate of 0.5 is out of reach, as any below 1 is: make a larger filter, or for fewer keys",
    }
    let mut bank = FilterBank::from_filters([&of_blocks(4), &of_blocks(4)]).unwrap();
    let none: [&BloomFilter; 0] = [];
    assert_errors! { Argument:
        FilterBank::from_filters(none) => "a bank needs at least one filter, which gives it its size",
        bank.push_all(&vec![of_blocks(4); 7]) =>
            "the bank has room for 8 slots, not 9: reserve more, or replace a filter",
        bank.clear_slot(2) => "slot 2 does not exist: the bank has 2",
        bank.try_reserve(1 << 24) => "a bank has at most 16777216 slots, not 16777218: split the filters over several banks",
        bank.push(&of_modules(2, 2, 6)) => one_module_of_a_bank(2),
    }
}

#[test]
fn filters_that_do_not_match() {
    let mut filter = of_blocks(8);
    assert_errors! { Mismatch:
        filter.union_with(&of_blocks(9)) => different_size(8, 9, "blocks"),
        filter.union_with(&of_blocks(24)) => "filters of 8 and 24 blocks cannot be combined: fold the larger one by 3",
        filter.union_with(&BloomFilter::with_blocks(24, 7).unwrap()) => different_k(6, 7),
        filter.union_with(&of_blocks(24).with_seed(9).unwrap()) => different_seed(0, 9),
        filter.union_with(&of_modules(2, 4, 6)) => different_size(1, 2, "modules"),
        filter.union_with(&BloomFilter::with_blocks(8, 7).unwrap()) => different_k(6, 7),
        filter.union_with(&of_blocks(8).with_seed(9).unwrap()) => different_seed(0, 9),
        filter.as_view().estimated_union(&of_blocks(24)) =>
            "filters of 8 and 24 blocks cannot be combined: fold the larger one by 3",
        filter.as_view().estimated_intersection(&of_modules(2, 4, 6)) => different_size(1, 2, "modules"),
        with_bits(500, 6).unwrap().union_with(&with_bits(1000, 6).unwrap()) => different_size(500, 1000, "bits"),
        FilterBank::from_filters([&of_blocks(4), &of_blocks(6)]) =>
            "a filter of 6 blocks does not fit into a bank of 4: build it with as many, or a multiple",
    }
}

#[test]
fn bytes_that_are_something_else() {
    let (filter, standard) = (filled(3).to_standalone(), with_bits(9, 6).unwrap().to_standalone());
    let footer = |bytes: &[u8]| StandaloneFooter::read(bytes).unwrap();
    assert_errors! { Unrecognized:
        BloomView::from_compact(&[0; 63]) => wrong_length(63),
        BloomView::from_compact(&[0x35; 9]) => wrong_trailer(0x35),
        BloomView::from_standalone(&[0; 3]) => too_short(3, 72),
        BloomView::from_standalone(&b"\0bloom\r\n".repeat(9)) => not_standalone(0x0062_6c6f_6f6d_0d0a),
        BloomView::from_standalone(&standard) => of_kind("standard filter"),
        footer(&standard).range(7) => of_kind("standard filter"),
    }
    assert_errors! { Unsupported:
        BloomView::from_standalone(&forge(&filter, 40, &[1])) =>
            "the bytes are of version 1, which no release wrote: rebuild the filter",
        BloomView::from_standalone(&forge(&filter, 40, &[3])) => newer(3),
        BloomView::from_standalone(&forge(&filter, 24, &[0; 8])) =>
            "another hash function placed the keys (check value 0x0000000000000000, ours 0x6ff1536b5257c17e): rebuild \
             the filter",
    }
    assert_errors! { NoChecksum:
        of_blocks(3).as_view().verify() => NO_CHECKSUM,
        BloomView::from_compact(&of_blocks(3).to_compact()).unwrap().verify() => NO_CHECKSUM,
        OwnedView::from_compact(of_blocks(3).to_compact()).unwrap().as_view().verify() => NO_CHECKSUM,
        FilterBank::from_filters([&of_blocks(3)]).unwrap().as_view().verify() => NO_CHECKSUM,
    }
    assert_errors! { Argument:
        footer(&of_modules(2, 3, 6).to_standalone()).range(7) => one_module_of_ranges(2),
        footer(&filter).contains_in_range(&[0; 63], 7) => wrong_range(64, 63),
    }
    assert_errors! { OutOfMemory:
        AlignedBytes::zeroed(usize::MAX) => format!("out of memory: cannot allocate {} bytes", usize::MAX),
    }
}

#[test]
fn damaged_bytes() {
    let filter = filled(3).to_standalone();
    let bank = FilterBank::from_filters([&filled(3)]).unwrap().to_standalone();
    let growing = ScalableBloomFilter::with_fpr(9, 0.1).unwrap().to_standalone();
    let mut frontier = Frontier::with_fpr(9, 0.1).unwrap();
    frontier.extend(["ant", "bee"].map(String::from));
    let frontier = frontier.to_standalone();
    let mut standard = with_bits(9, 6).unwrap();
    standard.extend(0..99);
    let standard = standard.to_standalone();
    let flipped = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    let checksums = |bytes: &[u8], more| {
        let [computed, stored] = [&flipped(bytes, 0), bytes].map(|bytes| xxh64(bytes, 0).wrapping_add(more));
        format!("{computed:#018x}, stored {stored:#018x}")
    };
    let of_footer = u64::from_le_bytes(bank[bank.len() - 16..][..8].try_into().unwrap());
    let of_lanes = |size: u8| StandaloneFooter::read(&forge(&filter, 0, &[size])).unwrap();
    assert_errors! { Damaged:
        BloomView::from_standalone(&flipped(&filter, 0)) =>
            format!("the bytes are damaged: their checksum is {}", checksums(&filter[..192], 0)),
        BloomView::from_standalone(&flipped(&filter, 192)) =>
            format!("the footer is damaged: its checksum is {}", checksums(&filter[192..240], 0)),
        BankView::from_standalone(&flipped(&bank, 0)) => format!(
            "the bank's region 0 is damaged, or these are other bytes: their checksum is {}",
            checksums(&bank[..512], of_footer)
        ),
        Frontier::<[u8; 4]>::from_standalone(&frontier) => wrong_item(0),

        BloomView::from_standalone(&forge(&filter, 41, &[0])) => impossible("k", 0),
        BloomView::from_standalone(&forge(&filter, 41, &[17])) => impossible("k", 17),
        BloomView::from_standalone(&forge(&filter, 42, &[7])) => impossible("hash id", 7),
        BloomView::from_standalone(&forge(&filter, 45, &[1])) => impossible("reserved bytes", 1 << 16),
        BloomView::from_standalone(&forge(&of_modules(2, 1, 6).to_standalone(), 43, &[17])) =>
            impossible("number of modules", 17),
        BloomView::from_compact(&[&[0; 128][..], &[17, 0x35]].concat()) => impossible_modules(17),
        of_lanes(0).range(7) => impossible("number of lanes", 0),
        of_lanes(65).range(7) => impossible("number of lanes", 65),
        BankView::from_standalone(&forge(&bank, 11, &[1])) => impossible("number of slots", (1 << 24) + 1),
        ScalableBloomFilter::from_standalone(&forge(&growing, 41, &[17])) => impossible("growth", 17),
        StandardBloomFilter::from_standalone(&forge(&standard, 0, &[1])) => impossible("number of bits", 1),
        Frontier::<String>::from_standalone(&forge(&frontier, 41, &[1])) => impossible("reserved bytes", 1),
        Frontier::<String>::from_standalone(&forge(&frontier, 16, &[1])) => impossible("number of accepted items", 1),

        BloomView::from_standalone(&forge(&filter, 0, &[1])) => wrong_size(1, "lanes of 8 bytes", 192),
        StandardBloomFilter::from_standalone(&forge(&standard, 0, &[99])) => wrong_size(99, "bits", 8),
        BankView::from_standalone(&forge(&bank, 0, &[9])) => wrong_size(9, "blocks of a bank", bank.len() - 64),
        Frontier::<String>::from_standalone(&forge(&frontier, 0, &[1])) =>
            wrong_size(1, "queued items", frontier.len() - 64),
        Frontier::<String>::from_standalone(&forge(&frontier, 8, &[0xff])) =>
            wrong_size(255, "bytes of queue", frontier.len() - 64),
    }
}

/// What `?` makes of an error where a function returns an [`io::Error`].
#[test]
fn as_io_errors() {
    let errors = [
        (Sizing::new(0, 6).map(drop), io::ErrorKind::InvalidInput),
        (BloomView::from_compact(&[]).map(drop), io::ErrorKind::InvalidData),
        (AlignedBytes::zeroed(usize::MAX).map(drop), io::ErrorKind::OutOfMemory),
    ];
    for (result, kind) in errors {
        let error = result.unwrap_err();
        let (of_io, text) = (io::Error::from(error), error.to_string());
        assert_eq!((of_io.kind(), of_io.to_string()), (kind, text));
    }
}
