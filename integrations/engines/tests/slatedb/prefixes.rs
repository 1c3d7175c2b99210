//! With prefix filters, no scan and no get loses a key, whichever extractors there have been, and filters answer scans
//! of absent prefixes.

use bloomline::sizing::standard::StandardSizing;
use bloomline::variants::StandardBloomFilter;
use slatedb::IterationOrder;
use slatedb::config::ScanOptions;

use super::*;

/// An extractor with a name, and its answers for a key (`false`) or the start of a scan (`true`).
#[derive(Clone, Copy)]
struct Extractor(&'static str, fn(&[u8], bool) -> Option<usize>);

impl PrefixExtractor for Extractor {
    fn name(&self) -> &str {
        self.0
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        match target {
            PrefixTarget::Point(key) => self.1(key, false),
            PrefixTarget::Prefix(start) => self.1(start, true),
        }
    }
}

fn first<const N: usize>(bytes: &[u8], _: bool) -> Option<usize> {
    (bytes.len() >= N).then_some(N)
}

const FIRST_2: Extractor = Extractor("first 2", first::<2>);
const FIRST_3: Extractor = Extractor("first 3", first::<3>);
const FIRST_4: Extractor = Extractor("first 4", first::<4>);

const EXTRACTORS: [Extractor; 9] = [
    Extractor("first 0", first::<0>),
    FIRST_3,
    Extractor("nothing", |_, _| None),
    Extractor("to the first slash", |bytes, _| bytes.iter().position(|&byte| byte == b'/').map(|at| at + 1)),
    Extractor("to the last slash", |bytes, scan| {
        bytes.iter().rposition(|&byte| byte == b'/' && !scan).map(|at| at + 1)
    }),
    Extractor("first 2, after an a", |bytes, _| (bytes.len() >= 2 && bytes[0] == b'a').then_some(2)),
    Extractor("first 1 or 3", |bytes, _| match bytes {
        [b'a', ..] => Some(1),
        _ => (bytes.len() >= 3).then_some(3),
    }),
    Extractor("the key", |bytes, scan| (!scan).then_some(bytes.len())),
    // Breaks the contract, because the bytes may be shorter.
    Extractor("first 4 of even 3", |_, _| Some(4)),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
    Blocked,
    Standard,
}

const KINDS: [Kind; 2] = [Kind::Blocked, Kind::Standard];

/// A policy, and its count of unusable filters.
fn counted(
    kind: Kind,
    bits_per_key: f64,
    extractor: Option<Extractor>,
    whole_keys: bool,
) -> (Arc<dyn FilterPolicy>, Box<dyn Fn() -> u64>) {
    macro_rules! policy {
        ($kind:ident) => {{
            let mut policy =
                $kind::with_bits_per_key(bits_per_key).unwrap().with_whole_key_filtering(whole_keys);
            if let Some(extractor) = extractor {
                policy = policy.with_prefix_extractor(Arc::new(extractor));
            }
            (policy.clone().into(), Box::new(move || policy.unusable_filters()))
        }};
    }
    match kind {
        Kind::Blocked => policy!(Bloomline),
        Kind::Standard => policy!(BloomlineStandard),
    }
}

fn policy(kind: Kind, bits_per_key: f64, extractor: Extractor, whole_keys: bool) -> Arc<dyn FilterPolicy> {
    counted(kind, bits_per_key, Some(extractor), whole_keys).0
}

/// The filter of distinct entries.
fn filter_of(kind: Kind, bits_per_key: f64, entries: &BTreeSet<Bytes>) -> Vec<u8> {
    let entries = entries.iter().map(|entry| &entry[..]);
    match kind {
        Kind::Blocked => {
            let mut filter = Vec::new();
            bloomline::sstable::FilterPolicy::with_bits_per_key(bits_per_key)
                .unwrap()
                .create_filter(entries, &mut filter);
            filter
        }
        Kind::Standard => {
            let sizing = StandardSizing::for_bits_per_key(entries.len() as u64, bits_per_key).unwrap();
            let mut filter = StandardBloomFilter::with_sizing(sizing).unwrap();
            entries.for_each(|entry| _ = filter.insert(entry));
            filter.to_standalone()
        }
    }
}

/// Keys of few letters, so that keys begin with each other, and prefixes are keys.
fn short_key(random: u64) -> Bytes {
    (0..random % 8).map(|i| b"aab/"[(random >> (8 + 2 * i)) as usize % 4]).collect()
}

fn starts(key: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..=key.len()).map(|len| key.slice(..len))
}

fn might_start(filter: &dyn slatedb::Filter, start: Bytes) -> bool {
    filter.might_match(&FilterQuery::prefix(start))
}

fn check_sst(kind: Kind, bits_per_key: f64, extractor: Extractor, whole_keys: bool, keys: &[Bytes]) {
    let of = format!("{kind:?}, {bits_per_key} bits, {}, whole keys: {whole_keys}, {keys:?}", extractor.0);
    let policy = policy(kind, bits_per_key, extractor, whole_keys);
    let kinds =
        [ValueDeletable::Value("v".into()), ValueDeletable::Tombstone, ValueDeletable::Merge("m".into())];
    // A key has up to three versions.
    let versions = || {
        keys.iter().enumerate().flat_map(|(i, key)| {
            kinds.iter().cycle().skip(i % 3).take(1 + i / 3 % 3).map(|kind| (key.clone(), kind.clone()))
        })
    };
    let prefixes = keys
        .iter()
        .filter_map(|key| Some(key.slice(..extractor.1(key, false).filter(|&len| len <= key.len())?)));
    let entries = prefixes.chain(keys.iter().filter(|_| whole_keys).cloned()).collect();
    let bytes = filter_of(kind, bits_per_key, &entries);
    let mut builder = policy.builder();
    let [filter, again] = [(); 2].map(|()| built(&mut *builder, versions()));
    assert_eq!((encoded(&*filter), encoded(&*again)), (bytes.clone(), bytes.clone()), "{of}");

    let other_bits = self::policy(kind, 7.0, extractor, whole_keys);
    for filter in [&filter, &filter.clamp_allocated_size(), &other_bits.decode(&bytes)] {
        for key in keys {
            assert!(might_match(&**filter, key.clone()), "{key:?} of {of}");
            for start in starts(key) {
                assert!(might_start(&**filter, start.clone()), "start {start:?} of {of}");
            }
        }
    }
    let footer = if let Kind::Standard = kind { 64 } else { 0 };
    let size = (bytes.len() - footer).next_multiple_of(64);
    for filter in [&filter.clamp_allocated_size(), &other_bits.decode(&bytes)] {
        assert_eq!((encoded(&**filter), filter.size()), (bytes.clone(), size));
    }
}

#[test]
fn filters_have_every_key_and_every_prefix_once() {
    for round in 0..60 {
        let n = mix(round) % 80;
        let keys: BTreeSet<_> = (0..n).map(|i| short_key(mix(round << 32 | i))).collect();
        let keys: Vec<_> = keys.into_iter().collect();
        let bits_per_key = [10.0, 2.5, 0.5, 20.0][round as usize % 4];
        // SSTs of a sorted run.
        let splits = BTreeSet::from([0, keys.len()].map(|at| at as u64))
            .into_iter()
            .chain((0..round % 4).map(|i| mix(!(round << 8 | i)) % (keys.len() as u64 + 1)))
            .collect::<BTreeSet<_>>();
        let splits: Vec<_> = splits.into_iter().map(|at| at as usize).collect();
        for kind in KINDS {
            for extractor in EXTRACTORS {
                for whole_keys in [true, false] {
                    for sst in splits.windows(2) {
                        check_sst(kind, bits_per_key, extractor, whole_keys, &keys[sst[0]..sst[1]]);
                    }
                    check_sst(kind, bits_per_key, extractor, whole_keys, &[]);
                }
            }
        }
    }
}

#[test]
fn names_differ_with_the_extractor_and_with_whole_keys() {
    // SlateDB's own policy has one name for `x:wh=0`, and for `x` without whole keys.
    let hostile =
        ["x", "x:wh=0", "", ":", ":wh=0", ":p=", "x:p=x", ":p=x", "wh=0:p=x", "bloomline.Standard2"];
    let mut names = BTreeSet::new();
    for (kind, base) in KINDS.into_iter().zip(["bloomline.BlockedBloom2", "bloomline.Standard2"]) {
        for (whole_keys, wh) in [(true, ""), (false, ":wh=0")] {
            let extractors = hostile.map(|name| Some(Extractor(name, first::<2>)));
            for extractor in extractors.into_iter().chain([None]) {
                let policy = counted(kind, 10.0, extractor, whole_keys).0;
                // Databases have these.
                let prefix = extractor.map(|extractor| format!(":p={}", extractor.0)).unwrap_or_default();
                assert_eq!(policy.name(), format!("{base}{wh}{prefix}"));
                assert!(names.insert(policy.name().to_string()), "{}", policy.name());
                assert_eq!(policy.supports_prefix_queries(), extractor.is_some());
                assert!(!policy.supports_range_queries());
            }
        }
    }
    assert_eq!(bloomline().name(), OURS);
    let again = bloomline()
        .with_prefix_extractor(Arc::new(FIRST_2))
        .with_whole_key_filtering(false)
        .with_prefix_extractor(Arc::new(FIRST_3))
        .with_whole_key_filtering(true);
    assert_eq!(again.name(), "bloomline.BlockedBloom2:p=first 3");
}

/// A filter that cannot answer a query keeps everything, and need not be usable. The others are counted.
#[test]
fn unusable_filters_are_counted_when_a_filter_could_have_answered() {
    let (point, prefix) = (FilterQuery::point, FilterQuery::prefix);
    let range = FilterQuery::range(Bound::Unbounded, Bound::Excluded("abcde".into()));
    let [long, short] = ["abcde", "abc"].map(Bytes::from);
    let queries = [prefix(long.clone()), point(long), point(short.clone()), prefix(short), range];
    for (extractor, whole_keys, answers) in [
        (Some(FIRST_4), true, [true, true, true, false, false]),
        (Some(FIRST_4), false, [true, true, false, false, false]),
        (None, true, [false, true, true, false, false]),
        (None, false, [false; 5]),
    ] {
        for kind in KINDS {
            let (policy, unusable) = counted(kind, 10.0, extractor, whole_keys);
            let usable = built(&mut *policy.builder(), keys(10));
            let whole = encoded(&*usable);
            let mut damaged = whole.clone();
            match kind {
                Kind::Blocked => *damaged.last_mut().unwrap() ^= 0x10, // another version
                Kind::Standard => damaged[9] ^= 1,
            }
            let neighbour = [&key(0)[..4], b"/"].concat().into();
            assert_eq!(
                usable.might_match(&point(neighbour)),
                !whole_keys,
                "an absent key of a present prefix"
            );
            for (query, answers) in queries.iter().zip(answers) {
                assert_eq!(usable.might_match(query), !answers, "{query:?}");
                assert_eq!(unusable(), 0);
                let (policy, unusable) = counted(kind, 10.0, extractor, whole_keys);
                for bytes in [&b"no filter"[..], &[], &whole[1..], &damaged] {
                    let filter = policy.decode(bytes);
                    assert!(filter.might_match(query) && filter.clamp_allocated_size().might_match(query));
                    assert_eq!((filter.size(), encoded(&*filter)), (0, vec![]));
                }
                assert_eq!(unusable(), if answers { 8 } else { 0 }, "{query:?}");
            }
        }
    }
}

/// All rows of a scan.
async fn rows(mut scan: slatedb::DbIterator) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut rows = Vec::new();
    while let Some(row) = scan.next().await? {
        rows.push((row.key, row.value));
    }
    Ok(rows)
}

/// Scans prefixes of every length of some keys, half of which are absent, and gets the keys.
async fn check_scans(model: &Model, reader: &DbReader, step: usize, of: &str) -> Result<(), Error> {
    let held = model.0.iter().filter_map(|(i, held)| Some((key(*i), Bytes::from(held.clone()?))));
    let held: BTreeMap<_, _> = held.collect();
    for i in (0..2 * KEYS).step_by(step) {
        let key = key(i);
        assert_eq!(reader.get(&key).await?.as_ref(), held.get(&key), "key {i} of {of}");
        for start in [1, 2, 3, 4, 16].map(|len| key.slice(..len)) {
            let expected = held.range(start.clone()..).take_while(|(key, _)| key.starts_with(&start));
            let mut expected: Vec<_> = expected.map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(rows(reader.scan_prefix(&start, ..).await?).await?, expected, "{start:?} of {of}");
            let backwards = ScanOptions::default().with_order(IterationOrder::Descending);
            let scan = reader.scan_prefix_with_options(&start, .., &backwards).await?;
            expected.reverse();
            assert_eq!(rows(scan).await?, expected, "{start:?} backwards of {of}");
            // The part of the prefix from the key on.
            expected.retain(|(other, _)| *other >= key);
            expected.reverse();
            let scan = reader.scan_prefix(&start, key.slice(start.len()..)..).await?;
            assert_eq!(rows(scan).await?, expected, "{start:?} from the key of {of}");
        }
    }
    Ok(())
}

/// Writes with each policy, then with each policy, and compacts by each. The readers have each of them.
#[tokio::test]
async fn no_key_is_lost_or_comes_back_when_policies_change() -> Result<(), Error> {
    type Named = (&'static str, fn() -> Policies);
    let all: [Named; 7] = [
        ("none", Vec::new),
        ("bloomline", ours),
        ("first 2", || vec![policy(Kind::Blocked, 10.0, FIRST_2, true)]),
        ("x", || vec![policy(Kind::Blocked, 10.0, Extractor("x", first::<3>), false)]),
        ("x:wh=0", || vec![policy(Kind::Blocked, 10.0, Extractor("x:wh=0", first::<2>), true)]),
        ("standard, first 3, and bloomline, first 2", || {
            vec![policy(Kind::Standard, 10.0, FIRST_3, false), policy(Kind::Blocked, 5.0, FIRST_2, true)]
        }),
        ("own", || vec![Arc::new(BloomFilterPolicy::new(10).with_prefix_extractor(Arc::new(FIRST_3)))]),
    ];
    for (i, (first_name, first)) in all.iter().enumerate() {
        for (j, (second_name, second)) in all.iter().enumerate() {
            // Each of them beside each of the first, and each of the second.
            let (third_name, third) = all[(i + j) % all.len()];
            let of = format!("{first_name}, then {second_name}, compacted by {third_name}");
            let store: Store = Arc::new(InMemory::new());
            let mut model = Model::default();
            model.write_with(&store, first(), 1).await?;
            model.write_with(&store, second(), 2).await?;
            compact(&store, Some(third())).await?;
            // SSTs of the first policy beside those of the compactor.
            model.write_with(&store, first(), 3).await?;
            for (name, policies) in &all {
                let (reader, _) = reader(&store, Some(policies())).await?;
                check_scans(&model, &reader, 301, &format!("{of}, read by {name}")).await?;
                reader.close().await?;
            }
        }
    }
    Ok(())
}

/// Prefixes of 4 bytes that no key has.
fn absent_prefixes(model: &Model) -> Vec<Bytes> {
    let present: BTreeSet<_> = model.0.keys().map(|i| key(*i).slice(..4)).collect();
    (KEYS..2 * KEYS).map(|i| key(i).slice(..4)).filter(|start| !present.contains(start)).collect()
}

#[tokio::test]
async fn filters_answer_scans_of_absent_prefixes() -> Result<(), Error> {
    for kind in KINDS {
        for whole_keys in [true, false] {
            let policy = policy(kind, 10.0, FIRST_4, whole_keys);
            let store: Store = Arc::new(InMemory::new());
            let model = database(&store, vec![policy.clone()]).await?;
            assert_eq!(ssts_with_filter(&store, policy.name()).await?, [3, 3]);
            let (reader, metrics) = reader(&store, Some(vec![policy])).await?;

            let absent = absent_prefixes(&model);
            for start in &absent {
                assert!(reader.scan_prefix(start, ..).await?.next().await?.is_none());
            }
            let negatives = metrics.filters("negative", "prefix");
            let queries = negatives + metrics.filters("positive", "prefix");
            // A few prefixes lie before or after all keys of an SST.
            assert!((3 * KEYS * 95 / 100..=3 * KEYS).contains(&queries), "{queries}");
            assert!(negatives >= queries * 97 / 100, "{negatives} of {queries}");
            assert_eq!(metrics.filters("false_positive", "prefix"), queries - negatives);

            // Gets, by keys or by their prefixes.
            assert_eq!(metrics.queries(), 0);
            for start in &absent {
                assert!(reader.get([start, &b"0123456789ab"[..]].concat()).await?.is_none());
            }
            assert!(metrics.negatives() >= queries * 97 / 100, "{} of {queries}", metrics.negatives());
            reader.close().await?;
        }
    }
    Ok(())
}
