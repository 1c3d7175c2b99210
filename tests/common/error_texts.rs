//! What errors say, in the words that users read.

use std::fmt::Display;

use bloomline::{Error, ErrorKind};

/// The error of a result, for tests that do not need its value.
pub trait Refusal {
    /// The error's text, or "accepted".
    fn text(self) -> String;
    fn kind(self) -> Option<ErrorKind>;
}

impl<T> Refusal for Result<T, Error> {
    fn text(self) -> String {
        self.map_or_else(|error| error.to_string(), |_| "accepted".into())
    }

    fn kind(self) -> Option<ErrorKind> {
        self.err().map(|error| error.kind())
    }
}

/// The number, of six digits, that follows these words in an error's text.
fn number_after(words: &str, text: &str) -> f64 {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("no {words:?}: {text}"));
    rest.split([' ', ',', ':']).next().and_then(|number| number.parse().ok()).expect("a number")
}

/// The lowest rate that an error names, or 1 if none below is in reach.
pub fn lowest(text: &str) -> f64 {
    if text.contains("as any below 1 is") { 1.0 } else { number_after("request at least ", text) }
}

/// Whether this number follows these words in an error's text.
pub fn shows(text: &str, words: &str, number: f64) -> bool {
    let shown = number_after(words, text);
    shown == number || (shown / number - 1.0).abs() < 1e-5 || shown.is_nan() && number.is_nan()
}

/// How the texts of these errors begin.
pub const DAMAGED: &str = "the bytes are damaged: their checksum is 0x";
pub const FOOTER_DAMAGED: &str = "the footer is damaged: its checksum is 0x";
pub const OTHER_HASH: &str = "another hash function placed the keys (check value 0x";

pub const NO_CHECKSUM: &str =
    "these are compact bytes or a filter in memory, which have no checksum: verify that of their container";

macro_rules! texts {
    ($($name:ident($($number:ident: $type:ty),*): $text:literal;)*) => {$(
        pub fn $name($($number: $type),*) -> String {
            format!($text)
        }
    )*};
}

texts! {
    too_short(found: usize, least: usize):
        "the bytes were cut, or are something else: there are {found}, and at least {least} are needed";
    not_standalone(end: u64): "not a filter's standalone bytes, or cut short: they end in {end:#018x}";
    of_kind(kind: impl Display): "these are the bytes of a {kind}: open them as one";
    newer(version: u8):
        "the bytes are of version {version}, or damaged, and this release reads up to 2: upgrade bloomline, or rebuild \
         the filter";
    impossible(field: &str, found: u64):
        "the footer's {field} cannot be {found}: a faulty or newer program wrote the filter";
    impossible_modules(found: u8):
        "in compact bytes, the number of modules cannot be {found}: they are damaged, or a faulty or newer program wrote \
         them";
    wrong_size(stored: u64, unit: &str, found_bytes: usize):
        "the footer's size of {stored} {unit} does not match the {found_bytes} bytes before it: the bytes were cut or \
         joined";
    damaged(computed: u64, stored: u64):
        "the bytes are damaged: their checksum is {computed:#018x}, stored {stored:#018x}";
    wrong_length(found: usize):
        "a compact filter has 8·L + 1 bytes, L being 1 to 63 or a multiple of 8, or 64·B + 2 in B blocks of several \
         modules, not {found}: the bytes were cut, or are something else";
    wrong_trailer(found: u8):
        "a compact filter ends in a byte from 0x20 to 0x2f, or 0x30 to 0x3f if it has several modules, not \
         {found:#x}: the bytes were cut or damaged, or are of a newer version";
    wrong_range(expected: usize, found: usize):
        "a lookup needs {expected} bytes, not {found}: pass those of the range, no more and no fewer";
    wrong_item(index: usize): "queue item {index} is of another type or not in the filter";

    different_size(ours: usize, theirs: usize, units: &str):
        "filters of {ours} and {theirs} {units} cannot be combined: build both with one size";
    different_k(ours: u32, theirs: u32):
        "filters with k = {ours} and k = {theirs} cannot be combined: build both with one size";
    different_seed(ours: u64, theirs: u64):
        "filters with seeds {ours:#x} and {theirs:#x} cannot be combined: build both with one seed";

    too_late(seed: u64):
        "seed {seed:#x} comes too late: set the seed before the first key, or after clearing the filter";
    not_folded(n_blocks: usize, factor: usize):
        "{n_blocks} blocks cannot be folded by {factor}: use a factor that divides {n_blocks}";
    probes(k: u32, most: u32): "probes per key must be 1 to {most}, not {k}";
    n_blocks(n_blocks: usize, most: u64): "a filter has 1 to {most} blocks of 64 bytes on this machine, not {n_blocks}";
    bits_per_key(value: impl Display): "bits per key must be above 0 and at most 64, not {value}";
    not_a_rate(value: impl Display): "a false-positive rate must be between 0 and 1, both excluded, not {value}";
    low_rate(value: impl Display, lowest: impl Display):
        "a false-positive rate of {value} is out of reach: request at least {lowest}, or use an exact structure";
    too_many_keys(keys: u64, bits_per_key: f64):
        "{keys} keys of {bits_per_key} bits each exceed this machine's address space: split the keys over several \
         filters";
    n_modules(n_modules: usize): "the number of modules must be 1 to 16, not {n_modules}";
    not_divided(n_blocks: usize, n_modules: usize):
        "{n_blocks} blocks cannot be divided among {n_modules} modules: use a multiple of {n_modules}";
    one_module_of_a_bank(n_modules: usize):
        "a bank's filters have one module, not {n_modules}: rebuild the filter by with_most_modules(1) or \
         for_fpr_within(.., 1)";
    one_module_of_counters(n_modules: usize):
        "a counting filter has one module, not {n_modules}: compute the size for at most one module";
    one_module_of_ranges(n_modules: usize):
        "a filter of {n_modules} modules cannot be asked by ranges: rebuild it by with_most_modules(1) or \
         for_fpr_within(.., 1)";
    two_modules_grow(n_modules: usize):
        "a filter that grows has at most 2 modules, not {n_modules}: rebuild the filter with a size for so many";
}
