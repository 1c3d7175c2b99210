//! The crate produces the hashes, masks and bytes of `docs/format.md`, bit for bit.
//!
//! `tests/golden/make.py` generates the values. It was written from `docs/format.md` in a different language, without
//! reading the crate, so a mistake goes unnoticed only if both make the same one. If a test here fails, stored filters
//! would be misread, so change the crate, not the values. `docs/testing.md` says what the tables have.

#[allow(dead_code, reason = "other tests measure what is kept")]
#[path = "common/allocations.rs"]
mod allocations;
#[path = "golden/table.rs"]
mod table;

use std::fmt::Debug;
use std::str::FromStr;

use allocations::allocated;
use bloomline::bank::{
    BankFooter, BankView, FileVersion, FilterBank, IndexBuilder, IndexFooter, IndexView, SlotBitmap,
};
use bloomline::sizing::standard::StandardSizing;
use bloomline::sstable::FilterPolicy;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{
    BloomFilter, BloomView, Error, FilterBuilder, Kernel, Key, OwnedView, Sizing, StandaloneFooter,
    StandaloneKind, hash_key,
};
use table::{golden, hex, rows};

const FOOTER_BYTES: usize = 64;

/// A row of files.tsv, and the file's bytes.
struct File {
    name: &'static str,
    kind: &'static str,
    n_modules: usize,
    size: u64,
    k: u32,
    seed: u64,
    /// Of each slot of a bank and each file of an index, and of other kinds one number.
    known_keys: Vec<Option<u64>>,
    keys: Vec<Vec<Vec<u8>>>,
    found: usize,
    /// Whether plain inserts of the keys make the bytes.
    inserts: bool,
    rewritten: &'static str,
    rate: &'static str,
    capacity: &'static str,
    bytes: Vec<u8>,
}

fn files() -> impl Iterator<Item = File> {
    let table = include_str!("golden/files.tsv");
    assert_eq!(rows(table).count(), 49);
    rows(table).map(|row| File {
        name: row[0],
        kind: row[1],
        n_modules: row[2].parse().unwrap(),
        size: row[3].parse().unwrap(),
        k: row[4].parse().unwrap(),
        seed: hex(row[5]),
        known_keys: row[6].split_whitespace().map(|number| number.parse().ok()).collect(),
        keys: row[7].split('|').map(keys).collect(),
        found: row[8].parse().unwrap(),
        inserts: row[9] == "yes",
        rewritten: row[10],
        rate: row[11],
        capacity: row[12],
        bytes: golden(row[0]),
    })
}

/// Texts, of which `a..b` stands for the numbers from a to b - 1, or all keys of keys.tsv.
fn keys(texts: &str) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for text in texts.split_whitespace() {
        match text.split_once("..") {
            _ if text == "keys.tsv" => keys.extend(typed_keys().map(|(_, key, _)| key)),
            None => keys.push(text.into()),
            Some((from, to)) => {
                let numbers = from.parse::<u64>().unwrap()..to.parse().unwrap();
                keys.extend(numbers.map(|number| number.to_string().into_bytes()));
            }
        }
    }
    keys
}

impl File {
    fn shape(&self) -> (Sizing, u64, Option<u64>) {
        let sizing = Sizing::new(self.size as usize, self.k).unwrap().with_modules(self.n_modules).unwrap();
        (sizing, self.seed, self.known_keys[0])
    }

    fn empty(&self) -> BloomFilter {
        BloomFilter::with_sizing(self.shape().0).unwrap().with_seed(self.seed).unwrap()
    }

    /// All keys are present, and of the texts 1000 to 1999 as many as in the table.
    fn lookups(&self, contains: impl Fn(&[u8]) -> bool) {
        assert!(self.keys.concat().iter().all(|key| contains(key)), "{}", self.name);
        let found = (1000..2000).filter(|number: &u32| contains(number.to_string().as_bytes())).count();
        assert_eq!(found, self.found, "{}", self.name);
    }

    /// `again` is what was read, and `made` a filter of the keys, which does not know how many these are.
    fn writes(&self, again: &[u8], made: &[u8]) {
        assert_same_bytes(again, &golden(self.rewritten), self.name);
        let len = if self.known_keys[0].is_some_and(|keys| keys > 0) { FOOTER_BYTES } else { 0 };
        if self.inserts {
            let [made, written] = [made, again].map(|bytes| &bytes[..bytes.len() - len]);
            assert_same_bytes(made, written, self.name);
        }
    }
}

fn filled<F: for<'a> Extend<&'a Vec<u8>>>(mut filter: F, keys: &[Vec<Vec<u8>>]) -> F {
    filter.extend(keys.iter().flatten());
    filter
}

/// Reports only the lengths and the first difference, because the bytes themselves would fill the screen.
fn assert_same_bytes(ours: &[u8], golden: &[u8], what: &str) {
    let difference = ours.iter().zip(golden).position(|(ours, golden)| ours != golden);
    assert_eq!((ours.len(), difference), (golden.len(), None), "{what}: (length, first byte that differs)");
}

#[test]
fn files_are_read_and_written() {
    for file in files() {
        match file.kind {
            "compact" | "standalone" => blocked(&file),
            "standard" => standard(&file),
            "counting" => counting(&file),
            "scalable" => scalable(&file),
            "frontier" => frontier(&file),
            "bank" => bank(&file),
            "index" => index(&file),
            other => panic!("{other}"),
        }
    }
}

fn blocked(file: &File) {
    let is_compact = file.kind == "compact";
    let view = if is_compact { BloomView::from_compact } else { BloomView::from_standalone };
    let (view, made) = (view(&file.bytes).unwrap(), filled(file.empty(), &file.keys));
    assert_eq!((view.sizing(), view.seed(), view.known_keys()), file.shape(), "{}", file.name);
    let copy = view.to_filter().unwrap();
    for kernel in Kernel::available() {
        let (view, copy) = (view.with_kernel(kernel), copy.clone().with_kernel(kernel));
        file.lookups(|key| view.contains(key));
        file.lookups(|key| copy.contains(key));
    }
    assert!(!file.inserts || made == copy, "{}", file.name);
    let owned = if is_compact { OwnedView::from_compact } else { OwnedView::from_standalone };
    assert!(*owned(&file.bytes).unwrap().as_view() == view);
    if is_compact {
        file.writes(&copy.to_compact(), &made.to_compact());
        assert!(BloomFilter::from_compact(&file.bytes).unwrap() == copy);
        let mut bytes = Vec::new();
        copy.write_compact(&mut bytes).unwrap();
        assert_eq!((&bytes, copy.compact_len()), (&file.bytes, bytes.len()));
    } else {
        view.verify().unwrap();
        assert_eq!(StandaloneKind::of(&file.bytes), Some(StandaloneKind::Blocked));
        file.writes(&copy.to_standalone(), &made.to_standalone());
        assert!(BloomFilter::from_standalone(&file.bytes).unwrap() == copy);
        let mut bytes = Vec::new();
        copy.write_standalone(&mut bytes).unwrap();
        assert_same_bytes(&bytes, &golden(file.rewritten), file.name);
    }
}

fn standard(file: &File) {
    let filter = StandardBloomFilter::from_standalone(&file.bytes).unwrap();
    let found = (filter.bit_len(), filter.k(), filter.seed(), filter.known_keys());
    assert_eq!(found, (file.size, file.k, file.seed, file.known_keys[0]), "{}", file.name);
    file.lookups(|key| filter.contains(key));
    let sizing = StandardSizing::new(file.size, file.k).unwrap();
    let empty = StandardBloomFilter::with_sizing(sizing).unwrap().with_seed(file.seed).unwrap();
    let made = filled(empty, &file.keys);
    assert!(made == filter, "{}", file.name);
    file.writes(&filter.to_standalone(), &made.to_standalone());
}

fn counting(file: &File) {
    let filter = CountingBloomFilter::from_standalone(&file.bytes).unwrap();
    let bits = filter.as_filter();
    assert_eq!((bits.sizing(), bits.seed(), bits.known_keys()), file.shape(), "{}", file.name);
    file.lookups(|key| filter.contains(key));
    let empty = CountingBloomFilter::with_sizing(file.shape().0).unwrap().with_seed(file.seed).unwrap();
    let made = filled(empty, &file.keys);
    assert!(!file.inserts || made == filter, "{}", file.name);
    file.writes(&filter.to_standalone(), &made.to_standalone());
}

fn scalable(file: &File) {
    let filter = ScalableBloomFilter::from_standalone(&file.bytes).unwrap();
    let blocks: usize = filter.filters().iter().map(BloomFilter::n_blocks).sum();
    let first = &filter.filters()[0];
    let found = (first.n_modules(), blocks as u64, first.k(), filter.seed(), Some(filter.inserted_keys()));
    assert_eq!(found, (file.n_modules, file.size, file.k, file.seed, file.known_keys[0]), "{}", file.name);
    file.lookups(|key| filter.contains(key));
    let (capacity, rate) = (file.capacity.parse().unwrap(), file.rate.parse().unwrap());
    let empty = ScalableBloomFilter::with_fpr(capacity, rate).unwrap().with_seed(file.seed).unwrap();
    let made = filled(empty, &file.keys);
    assert!(!file.inserts || made == filter, "{}", file.name);
    file.writes(&filter.to_standalone(), &made.to_standalone());
}

/// The second half of its keys waits in the queue.
fn frontier(file: &File) {
    let mut frontier = Frontier::<Vec<u8>>::from_standalone(&file.bytes).unwrap();
    assert_eq!(Some(frontier.accepted()), file.known_keys[0]);
    file.lookups(|key| frontier.contains(key));
    file.writes(&frontier.to_standalone(), &[]);
    for item in &file.keys[1] {
        assert_eq!(frontier.pop().as_ref(), Some(item));
    }
    assert_eq!(frontier.pop(), None);
}

fn bank(file: &File) {
    let view = BankView::from_standalone(&file.bytes[..]).unwrap();
    let slots = file.known_keys.len();
    let sizing = Sizing::new(file.size as usize, file.k).unwrap();
    assert_eq!((view.slots(), view.sizing(), view.seed()), (slots, sizing, file.seed), "{}", file.name);
    assert_eq!(StandaloneKind::of(&file.bytes), Some(StandaloneKind::Bank));
    let footer = BankFooter::read(&file.bytes).unwrap();
    let mut bitmap = SlotBitmap::new();
    for (slot, (keys, &known_keys)) in file.keys.iter().zip(&file.known_keys).enumerate() {
        let filter = view.to_filter(slot).unwrap();
        let mut made = BloomFilter::with_sizing(view.sizing()).unwrap().with_seed(file.seed).unwrap();
        made.extend(keys);
        assert!(filter == made, "{}, slot {slot}", file.name);
        assert_eq!(filter.known_keys(), known_keys, "{}, slot {slot}", file.name);
        for key in keys {
            for kernel in Kernel::available() {
                assert!(view.with_kernel(kernel).find(key, &mut bitmap) && bitmap.contains(slot));
            }
            let hash = footer.hash_key(key);
            let range = footer.range(hash);
            let region = &file.bytes[range.start as usize..range.end as usize];
            assert!(footer.find_in_range(region, hash, &mut bitmap).unwrap() && bitmap.contains(slot));
        }
    }
    let found = (1000..2000).map(|number: u32| {
        view.find(number.to_string(), &mut bitmap);
        bitmap.iter().count()
    });
    assert_eq!(found.sum::<usize>(), file.found, "{}", file.name);
    let again = FilterBank::from_standalone(&file.bytes).unwrap().to_standalone();
    // Pushed one by one into a larger bank, with the numbers of keys that the standalone bytes have.
    let mut made =
        FilterBank::with_capacity(view.sizing(), slots + 70).unwrap().with_seed(file.seed).unwrap();
    for slot in 0..slots {
        assert_eq!(made.push(&view.to_filter(slot).unwrap()), Ok(slot));
    }
    assert_same_bytes(&again, &file.bytes, file.name);
    assert_same_bytes(&made.to_standalone(), &file.bytes, file.name);
}

fn index(file: &File) {
    let name = file.name;
    assert_eq!(StandaloneKind::of(&file.bytes), Some(StandaloneKind::Index));
    let view = IndexView::from_standalone(&file.bytes).unwrap();
    let footer = view.footer();
    let len = IndexFooter::read_len(&file.bytes[file.bytes.len() - FOOTER_BYTES..]).unwrap() as usize;
    let elsewhere = IndexFooter::read(&file.bytes[file.bytes.len() - len..]).unwrap();
    assert_eq!((footer.files(), footer.fpr()), (file.known_keys.len(), file.rate.parse().unwrap()), "{name}");
    assert_eq!((footer.ranges(0).count() as u64, footer.seed()), (file.size, file.seed), "{name}");
    let mut again = IndexBuilder::with_fpr(footer.fpr()).unwrap().with_rule(footer.rule()).unwrap();
    let empty = again.filter_builder().finish().unwrap();
    let mut found = SlotBitmap::new();
    let stored = rows(include_str!("golden/indexes.tsv")).filter(|row| row[0] == name);
    let mut numbers = 0..footer.files();
    for (row, number) in stored.zip(numbers.by_ref()) {
        let [rule, file_name, size, modified, changed, inode, n_blocks] = row[1..] else { panic!("{row:?}") };
        let mut version = FileVersion::new(size.parse().unwrap(), Some(modified.parse().unwrap()));
        version.changed = Some(changed.parse().unwrap()).filter(|&changed| changed != i64::MIN);
        version.inode = Some(inode.parse().unwrap()).filter(|&inode| inode != 0);
        assert_eq!((footer.rule(), footer.name(number)), (rule, Some(&from_hex(file_name)[..])), "{name}");
        assert_eq!((view.version(number), view.known_keys(number)), (Some(version), file.known_keys[number]));
        let filter = view.to_filter(number).unwrap();
        match n_blocks {
            "unread" => {
                let filter = filter.as_ref().unwrap();
                assert_eq!((filter.n_blocks(), filter.k(), filter.fill_ratio()), (1, file.k, 1.0), "{name}");
            }
            "0" => assert!(filter.is_none()),
            n_blocks => {
                let n_blocks = n_blocks.parse().unwrap();
                let made = BloomFilter::with_blocks(n_blocks, file.k).unwrap().with_seed(file.seed).unwrap();
                assert!(filter.as_ref() == Some(&filled(made, &file.keys[number..=number])), "{name}");
            }
        }
        for key in &file.keys[number] {
            assert!(view.find(key, &mut found).unwrap() && found.contains(number), "{name}: {number}");
        }
        if file.inserts {
            let filter = (n_blocks != "unread").then(|| filter.unwrap_or_else(|| empty.clone()));
            again.insert(footer.name(number).unwrap(), version, filter).unwrap();
        }
    }
    assert_eq!(numbers.next(), None, "{name}");
    let found = (1000..2000).map(|number: u32| {
        let hash = elsewhere.hash_key(number.to_string());
        let ranges =
            elsewhere.ranges(hash).map(|range| &file.bytes[range.start as usize..range.end as usize]);
        let any = elsewhere.find_in_ranges(hash, ranges, &mut found).unwrap();
        assert_eq!(view.find(number.to_string(), &mut SlotBitmap::new()), Ok(any));
        found.count()
    });
    assert_eq!(found.sum::<usize>(), file.found, "{name}");
    // If this fails alone, the builder chooses other banks, which it may. Then give make.py their numbers of blocks.
    if file.inserts {
        assert_same_bytes(&again.to_standalone().unwrap(), &file.bytes, name);
    }
}

/// What each reader of a kind says: an error, or whether it has these keys.
fn opened(reader: &str, bytes: &[u8], keys: &[Vec<u8>]) -> Vec<Result<bool, Error>> {
    fn verified(view: BloomView<'_>) -> Result<BloomView<'_>, Error> {
        view.verify().map(|()| view)
    }
    let in_view = |view: BloomView<'_>| keys.iter().all(|key| view.contains(key));
    let in_filter = |filter: BloomFilter| in_view(filter.as_view());
    let in_owned = |view: OwnedView<&[u8]>| in_view(*view.as_view());
    let in_index = |view: IndexView<'_>| {
        let mut found = SlotBitmap::new();
        let found = keys.iter().all(|key| view.find(key, &mut found) == Ok(true));
        // A forged number of keys makes no filter empty, which would accept another seed.
        let mut filters = (0..view.footer().files()).filter_map(|file| view.to_filter(file).unwrap());
        let found = found && filters.all(|filter| filter.known_keys() != Some(0));
        view.verify().map(|()| found)
    };
    let in_bank = |view: BankView<'_>| keys.iter().all(|key| view.find(key, &mut SlotBitmap::new()));
    macro_rules! in_variant {
        ($filter:ty) => {
            <$filter>::from_standalone(bytes).map(|filter| keys.iter().all(|key| filter.contains(key)))
        };
    }
    match reader {
        "compact" => vec![
            BloomView::from_compact(bytes).map(in_view),
            OwnedView::from_compact(bytes).map(in_owned),
            BloomFilter::from_compact(bytes).map(in_filter),
        ],
        "standalone" => vec![
            BloomView::from_standalone(bytes).map(in_view),
            BloomView::from_standalone_unverified(bytes).and_then(verified).map(in_view),
            OwnedView::from_standalone(bytes).map(in_owned),
            OwnedView::from_standalone_unverified(bytes)
                .and_then(|view| verified(*view.as_view()).map(in_view)),
            BloomFilter::from_standalone(bytes).map(in_filter),
        ],
        "standard" => vec![in_variant!(StandardBloomFilter)],
        "counting" => vec![in_variant!(CountingBloomFilter)],
        "scalable" => vec![in_variant!(ScalableBloomFilter)],
        "frontier" => vec![in_variant!(Frontier::<Vec<u8>>)],
        "bank" => vec![
            BankView::from_standalone(bytes).map(in_bank),
            BankView::from_standalone_unverified(bytes)
                .and_then(|view| view.verify().map(|()| in_bank(view))),
            FilterBank::from_standalone(bytes)
                .map(|bank| keys.iter().all(|key| bank.as_view().find(key, &mut SlotBitmap::new()))),
        ],
        "index" => vec![
            IndexView::from_standalone(bytes).and_then(in_index),
            IndexView::from_standalone_unverified(bytes).and_then(in_index),
        ],
        other => panic!("{other}"),
    }
}

#[test]
fn damaged_files_are_refused_and_harmless_ones_read() {
    let files: Vec<_> = files().collect();
    let damaged = include_str!("golden/damaged.tsv");
    assert_eq!(rows(damaged).count(), 655);
    let mut wrong = Vec::new();
    for row in rows(damaged) {
        let &[case, reader, name, from, to, new, error, says] = &row[..] else { panic!("{row:?}") };
        let file = files.iter().find(|file| file.name == name).unwrap();
        let [from, to] = [from, to].map(|at| at.parse::<usize>().unwrap());
        let bytes = [&file.bytes[..from], &from_hex(new), &file.bytes[to..]].concat();
        let keys = file.keys.concat();
        // Of all readers, and of the answers. Forged numbers must not request memory.
        let (allocated, all) = allocated(|| opened(reader, &bytes, &keys));
        assert!(
            allocated <= 8 * bytes.len() + 4096 || error == "accepted",
            "{name}: {case}: {allocated} bytes"
        );
        if error == "Unsupported" {
            let footer = match reader {
                "bank" => BankFooter::read(&bytes).map(drop),
                "index" => IndexFooter::read(&bytes).map(drop),
                "scalable" | "frontier" => all[0].map(drop),
                _ => StandaloneFooter::read(&bytes).map(drop),
            };
            assert_eq!(footer, all[0].map(drop), "{name}: {case}");
        }
        for found in all {
            let is_right = match found {
                Ok(has_keys) => error == "accepted" && has_keys,
                Err(found) => error == format!("{:?}", found.kind()) && found.to_string().contains(says),
            };
            if !is_right {
                wrong.push(format!("{name}, read as {reader}: {case}: not {error}, {says:?}, but {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Of the crate, because the format leaves sizes to writers. Its appendix says how they are computed. `sizing` compares the
/// model with a brute-force sum.
#[test]
fn sizes_are_those_that_every_language_computes() {
    let sizes = include_str!("golden/sizes.tsv");
    assert_eq!(rows(sizes).count(), 341);
    for row in rows(sizes) {
        let &[request, value, keys, most_modules, modules, blocks, k, foldable, length, tail, error, says] =
            &row[..]
        else {
            panic!("{row:?}")
        };
        let (value, keys, most_modules) =
            (value.parse().unwrap(), keys.parse().unwrap(), most_modules.parse().ok());
        let sizing = match (request, most_modules) {
            ("rate", None) => Sizing::for_fpr(keys, value),
            ("rate", Some(most)) => Sizing::for_fpr_within(keys, value, most),
            (_, None) => Sizing::for_bits_per_key(keys, value),
            (_, Some(most)) => Sizing::for_bits_per_key_within(keys, value, most),
        };
        match sizing {
            Ok(sizing) => {
                let found = [
                    sizing.n_modules(),
                    sizing.n_blocks(),
                    sizing.k() as usize,
                    sizing.rounded_to_fold().n_blocks(),
                ];
                assert_eq!(found.map(|number| number.to_string()), [modules, blocks, k, foldable], "{row:?}");
            }
            Err(found) => {
                assert_eq!(format!("{:?}", found.kind()), error, "{row:?}");
                assert!(found.to_string().contains(says), "{row:?}: {found}");
            }
        }
        // As slow as the rest under miri.
        if !tail.is_empty() && !cfg!(miri) {
            let builder = match request {
                "rate" => FilterBuilder::with_fpr(value),
                _ => FilterBuilder::with_bits_per_key(value),
            };
            let mut builder = match most_modules {
                None => builder.unwrap(),
                Some(most) => builder.unwrap().with_most_modules(most).unwrap(),
            };
            builder.extend(0..keys);
            let mut built = Vec::new();
            builder.finish_compact(&mut built).unwrap();
            assert_eq!(built.len(), length.parse().unwrap(), "{row:?}");
            assert!(built.ends_with(&from_hex(tail)), "{row:?}");
        }
    }
}

#[test]
fn hashes_match_the_format() {
    let table = include_str!("golden/hashes.tsv");
    let names = table.lines().next().unwrap().split('\t').skip(1);
    let seeds: Vec<u64> = names.map(|name| hex(name.trim_start_matches("hash, seed "))).collect();
    assert_eq!((seeds.len(), rows(table).count()), (4, 155));
    for row in rows(table) {
        let length: usize = row[0].parse().unwrap();
        if cfg!(miri) && length > 150 {
            continue; // minutes under miri
        }
        let key: Vec<u8> = (0..length).map(|i| (131 * i + length) as u8).collect();
        for (&seed, hash) in seeds.iter().zip(&row[1..]) {
            assert_eq!(hash_key(&key, seed), hex(hash), "key of {length} bytes, seed {seed:#x}");
        }
    }
}

/// For each row of keys.tsv, its type and value, the key that they make here, and the golden key, hash, and hash with
/// seed 0x5eed.
fn typed_keys() -> impl Iterator<Item = (String, Vec<u8>, [&'static str; 3])> {
    rows(include_str!("golden/keys.tsv")).map(|row| {
        let [type_, value, golden @ ..] = &row[..] else { panic!("{row:?}") };
        let key = match *type_ {
            "text" => bytes_of(&value.replace("\\0", "\0")),
            "binary" => bytes_of(&from_hex(value)),
            "int8" => integer::<i8>(value),
            "int16" => integer::<i16>(value),
            "int32" => integer::<i32>(value),
            "int64" => integer::<i64>(value),
            "uint8" => integer::<u8>(value),
            "uint16" => integer::<u16>(value),
            "uint32" => integer::<u32>(value),
            "uint64" => integer::<u64>(value),
            // An integer beyond 64 bits is not a key today, but it was when the files were made.
            "int" => bytes_of(&(value.parse::<i128>().unwrap() as u64)),
            other => panic!("{other}"),
        };
        (format!("{type_} {value}"), key, golden.try_into().unwrap())
    })
}

fn integer<T: Key + FromStr<Err: Debug>>(value: &str) -> Vec<u8> {
    bytes_of(&value.parse::<T>().unwrap())
}

fn bytes_of(key: &impl Key) -> Vec<u8> {
    key.key_bytes().as_ref().to_vec()
}

fn from_hex(digits: &str) -> Vec<u8> {
    let bytes = digits.as_bytes().chunks(2).map(|byte| str::from_utf8(byte).unwrap());
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn keys_of_other_types_match_the_format() {
    assert_eq!(typed_keys().count(), 70);
    for (value, key, [golden, hash, seeded]) in typed_keys() {
        assert_eq!(key.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), golden, "{value}");
        assert_eq!(hash_key(&key, 0), hex(hash), "{value}");
        assert_eq!(hash_key(&key, 0x5eed), hex(seeded), "{value}");
    }
}

/// The eight lanes of a filter of one block. Compact bytes store repeated lanes once, so this repeats them.
fn lanes_of_one_block(filter: &BloomFilter) -> [u64; 8] {
    let bytes = filter.to_compact();
    let (written, trailer) = bytes.as_chunks::<8>();
    assert_eq!(trailer.len(), 1);
    core::array::from_fn(|i| u64::from_le_bytes(written[i % written.len()]))
}

fn empty(n_blocks: usize, k: u32) -> BloomFilter {
    BloomFilter::with_blocks(n_blocks, k).expect("a small filter")
}

#[test]
fn masks_of_every_kernel_match_the_format() {
    let masks = include_str!("golden/masks.tsv");
    assert_eq!(rows(masks).count(), 12 * 16);
    for row in rows(masks) {
        let (hash, k) = (hex(row[0]), row[1].parse().unwrap());
        let mask: Vec<u64> = row[2..].iter().map(|lane| hex(lane)).collect();
        for kernel in Kernel::available() {
            let mut filter = empty(1, k).with_kernel(kernel);
            filter.insert_hash(hash);
            assert_eq!(lanes_of_one_block(&filter), *mask, "{kernel}: hash {hash:#x}, k {k}");

            let mut batch = empty(1, k).with_kernel(kernel);
            batch.insert_batch(&[hash]);
            assert_eq!(lanes_of_one_block(&batch), *mask, "{kernel}: batch of hash {hash:#x}, k {k}");
        }
    }
}

#[test]
fn blocks_match_the_format() {
    let table = include_str!("golden/blocks.tsv");
    let names = table.lines().next().unwrap().split('\t').skip(1);
    let sizes: Vec<usize> = names.map(|name| name.trim_start_matches("block of ").parse().unwrap()).collect();
    assert_eq!((sizes.len(), rows(table).count()), (7, 14));
    for row in rows(table) {
        let hash = hex(row[0]);
        for (&n_blocks, block) in sizes.iter().zip(&row[1..]) {
            if cfg!(miri) && n_blocks > 100 {
                continue; // minutes under miri
            }
            let mut filter = empty(n_blocks, 8);
            filter.insert_hash(hash);
            let bytes = filter.to_compact();
            let lanes = &bytes[..bytes.len() - 1];
            let changed =
                lanes.chunks(64).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
            let changed: Vec<usize> = changed.map(|(i, _)| i).collect();
            assert_eq!(changed, [block.parse().unwrap()], "hash {hash:#x} in {n_blocks} blocks");
        }
    }
}

/// Short filters are written by builders and policies, which choose the number of lanes.
#[test]
fn builders_and_policies_write_the_golden_bytes() {
    for file in files().filter(|file| file.kind == "compact" && !file.inserts && file.k == 7) {
        // With this many bits per key the builder chooses k = 7.
        let mut built = Vec::new();
        let builder = FilterBuilder::with_bits_per_key(64.0 / 6.0).unwrap();
        filled(builder, &file.keys).finish_compact(&mut built).unwrap();
        assert_same_bytes(&built, &file.bytes, file.name);
    }
    let file = files().find(|file| file.name == "compact-2-modules.bin").unwrap();
    let (policy, mut filter) = (FilterPolicy::with_bits_per_key(20.0).unwrap(), Vec::new());
    policy.create_filter(&file.keys[0], &mut filter);
    assert_same_bytes(&filter, &file.bytes, file.name);
    assert!(file.keys[0].iter().all(|key| policy.key_may_match(key, &file.bytes)));
    assert!(!policy.key_may_match("absent", &file.bytes));
}

#[test]
fn compact_bytes_are_read_with_the_given_seed() {
    let file = files().find(|file| file.name == "standalone-100-blocks.bin").unwrap();
    let lanes = &file.bytes[..file.bytes.len() - FOOTER_BYTES];
    let bytes = [lanes, &[0x2a]].concat();
    assert_same_bytes(&filled(file.empty(), &file.keys).to_compact(), &bytes, "100 blocks with a seed");
    let view = BloomView::from_compact_with_seed(&bytes, file.seed).unwrap();
    assert_eq!((view.sizing(), view.seed(), view.known_keys()), file.shape());
    file.lookups(|key| view.contains(key));
}

/// Tables store the name. A database silently ignores the filters of a table if the name differs.
#[test]
fn the_policy_name_never_changes() {
    assert_eq!(bloomline::sstable::FilterPolicy::NAME, "bloomline.BlockedBloom2");
}

#[test]
fn mix_is_one_step_of_splitmix64() {
    // The generator's first outputs from state 0, as published. Its state grows by this constant.
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let outputs = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
    for (i, output) in (0..).zip(outputs) {
        assert_eq!(bloomline::mix(GAMMA.wrapping_mul(i)), output);
    }
}
