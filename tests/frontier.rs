//! The frontier: nothing is visited twice, no more is skipped than was asked for, and a crash leaves a crawl that goes on.

mod common;

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;

use arbitrary::{Arbitrary, Unstructured};
use bloomline::variants::{Frontier, ScalableBloomFilter};
use bloomline::{BloomFilter, BloomView, DecodeError, RestoreError, SizingError, mix};
use common::allocations::{allocated, kept};
use common::decode::{forge_footer, forge_frontier, frontier_decoder_survives};
use proptest::prelude::*;

const FOOTER_BYTES: usize = 64;

fn with_fpr<T: AsRef<[u8]>>(expected_items: usize, fpr: f64) -> Frontier<T> {
    Frontier::with_fpr(expected_items, fpr).expect("a small frontier")
}

/// Three animals went in, one came out.
fn sample() -> Frontier<String> {
    let mut frontier = with_fpr(100, 0.01).with_seed(0x5eed);
    frontier.extend(["ant", "bee", "cat", "bee"].map(String::from));
    assert_eq!(frontier.pop().as_deref(), Some("ant"));
    frontier
}

fn restored(bytes: &[u8]) -> Result<Frontier<String>, DecodeError> {
    Frontier::from_standalone(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: common::cases(500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_comes_out_twice(
        expected_items in 0..100_u8, grows: bool, seed: u64, bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let operations = Vec::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes will do");
        common::frontier::frontier(expected_items, grows, seed, &operations);
    }

    #[test]
    fn forged_bytes_are_an_error_or_a_frontier(
        offset in 0..40_usize, footer in prop::collection::vec(any::<u8>(), 1..9),
        queue in prop::collection::vec(0..12_u8, 0..60), items in 0..5_u64,
    ) {
        let standalone = sample().to_standalone();
        let footer = &footer[..footer.len().min(40 - offset)];
        frontier_decoder_survives(&forge_footer(&standalone, offset, footer));
        frontier_decoder_survives(&forge_frontier(&queue, items));
    }
}

#[test]
fn items_come_out_in_order_and_once() {
    let mut frontier = with_fpr(100, 1e-6);
    assert!(frontier.is_empty() && !frontier.seen("ant"));
    assert!(frontier.push("ant") && frontier.push("bee") && !frontier.push("ant"));
    assert_eq!((frontier.len(), frontier.accepted(), frontier.pop()), (2, 2, Some("ant")));
    assert!(frontier.seen("ant") && !frontier.push("ant"), "what came out stays seen");
    frontier.extend(["cat", "bee"]);
    assert_eq!(frontier.iter().collect::<Vec<_>>(), [&"bee", &"cat"]);
    assert_eq!((frontier.pop(), frontier.pop(), frontier.pop()), (Some("bee"), Some("cat"), None));
    assert_eq!((frontier.len(), frontier.accepted()), (0, 3));
    let debug = format!("{:?}", sample());
    assert!(debug.starts_with("Frontier { len: 2, accepted: 3, filter: BloomFilter { n_blocks: "), "{debug}");
}

#[test]
fn the_filter_is_of_the_size_asked_for() {
    for (expected_items, fpr) in [(0, 0.5), (1_000, 0.01), (50_000, 0.001)] {
        let filter = BloomFilter::with_fpr(expected_items, fpr).unwrap();
        let frontier: Frontier<String> = with_fpr(expected_items, fpr);
        assert_eq!((frontier.size_bytes(), frontier.estimated_fpr()), (filter.size_bytes(), 0.0));
        let filter = ScalableBloomFilter::with_fpr(expected_items, fpr).unwrap();
        let frontier = Frontier::<String>::growing(expected_items, fpr).unwrap();
        assert_eq!((frontier.size_bytes(), frontier.estimated_fpr()), (filter.size_bytes(), 0.0));
    }
    assert!(matches!(Frontier::<String>::growing(10, 1e-9), Err(SizingError::ScalableFpr { .. })));
    assert_eq!(Frontier::<String>::with_fpr(10, 1.0).unwrap_err(), SizingError::Fpr { value: 1.0 });
}

#[test]
fn a_frontier_tells_when_it_is_past_its_plan() {
    let mut frontier: Frontier<String> = with_fpr(1_000, 1e-6);
    for i in 0..1_100 {
        assert_eq!(frontier.is_past_plan(), i > 1_000, "after {i} items");
        assert!(frontier.push(i.to_string()));
        frontier.pop();
    }
    assert!(restored(&frontier.to_standalone()).unwrap().is_past_plan());
    assert!(!sample().is_past_plan());
    let mut frontier = Frontier::growing(10, 0.01).unwrap();
    frontier.extend((0..1_000).map(|i| i.to_string()));
    assert!(frontier.accepted() > 900 && !frontier.is_past_plan());
}

#[test]
fn frontiers_of_other_seeds_drop_other_items() {
    let skipped = |frontier: Result<Frontier<String>, SizingError>, seed| {
        let mut frontier = frontier.unwrap().with_seed(seed);
        (0..3_000).filter(|i: &u32| !frontier.push(i.to_string())).collect::<HashSet<_>>()
    };
    for make in [Frontier::with_fpr, Frontier::growing] {
        let (one, other) = (skipped(make(1_000, 0.1), 1), skipped(make(1_000, 0.1), 2));
        assert!(one.len() > 20 && other.len() > 20, "{} and {}", one.len(), other.len());
        let both = one.intersection(&other).count();
        assert!(both < one.len() / 2, "{both} of {} and {}", one.len(), other.len());
    }
}

#[test]
#[should_panic(expected = "before its first key")]
fn the_seed_of_a_frontier_with_items_stays() {
    let _ = sample().with_seed(1);
}

/// In no more memory than it takes.
fn url(i: u64) -> String {
    let site = mix(i % 5_000) % 100_000_000;
    format!("https://www.site-{site}.example/articles/{:016x}/{i}.html", mix(i)).into_boxed_str().into()
}

/// Pushes `distinct` URLs and four repeats for each: no more is skipped than the filter's bits say, and it takes less
/// memory than a set.
fn crawl(make: impl FnOnce() -> Result<Frontier<String>, SizingError>, distinct: u64, fpr: f64) {
    let mut set = HashSet::new();
    let set_bytes = kept(|| (0..distinct).for_each(|i| _ = set.insert(url(i))));
    let mut frontier = None;
    let empty_bytes = kept(|| frontier = make().ok());
    let mut frontier = frontier.expect("a small frontier");
    assert!(
        (frontier.size_bytes()..frontier.size_bytes() + 512).contains(&empty_bytes),
        "{empty_bytes} bytes"
    );

    let mut visited = HashSet::new();
    let (mut skipped, mut expected) = (0, 0.0);
    for i in 0..distinct {
        let step = distinct / 500;
        if i % step == step / 2 {
            expected += step as f64 * frontier.estimated_fpr();
        }
        for push in 0..5 {
            // One that is new, and others from anywhere before it.
            let item = if push == 0 { url(i) } else { url(mix(5 * i + push) % (i + 1)) };
            let was_new = frontier.push(item);
            assert!(push == 0 || !was_new, "a repeat was taken");
            skipped += u64::from(push == 0 && !was_new);
        }
        if i % 2 == 0 {
            assert!(frontier.pop().is_none_or(|url| visited.insert(url)), "visited twice");
        }
    }
    while let Some(url) = frontier.pop() {
        assert!(visited.insert(url), "visited twice");
    }
    assert_eq!((visited.len() as u64, frontier.accepted()), (distinct - skipped, distinct - skipped));
    assert!(visited.is_subset(&set));
    println!(
        "{distinct} items at {fpr}: {skipped} skipped, {:.4} of the rate asked for, {expected:.0} by the bits; filter {} \
         bytes, set {set_bytes}, 1/{:.0}",
        skipped as f64 / distinct as f64 / fpr,
        frontier.size_bytes(),
        set_bytes as f64 / frontier.size_bytes() as f64
    );
    let tolerance = 0.02 * expected + 3.5 * expected.sqrt();
    assert!((skipped as f64 - expected).abs() <= tolerance, "{skipped}, not {expected}");
    assert!(skipped as f64 <= 1.1 * fpr * distinct as f64);
    assert!(frontier.estimated_fpr() <= 1.05 * fpr);
    assert!(20 * frontier.size_bytes() <= set_bytes);
}

fn crawls(distinct: usize) {
    crawl(|| Frontier::with_fpr(distinct, 0.01), distinct as u64, 0.01);
    crawl(|| Frontier::with_fpr(distinct, 0.001), distinct as u64, 0.001);
    crawl(|| Frontier::growing(distinct / 10, 0.01), distinct as u64, 0.01);
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn a_crawl_skips_no_more_than_was_asked() {
    crawls(20_000);
}

#[test]
#[ignore = "5 million pushes, three times: 15 s in release"]
fn a_crawl_of_a_million_urls_skips_no_more_than_was_asked() {
    crawls(1_000_000);
}

#[test]
fn standalone_bytes_are_those_of_the_format() {
    let golden = include_bytes!("golden/frontier.bin");
    assert!(sample().to_standalone() == golden);
    let mut frontier = restored(golden).unwrap();
    assert_eq!((frontier.accepted(), frontier.len()), (3, 2));
    assert!(["ant", "bee", "cat"].iter().all(|animal| frontier.seen(animal)));
    assert_eq!(
        [frontier.pop(), frontier.pop(), frontier.pop()],
        [Some("bee".into()), Some("cat".into()), None]
    );
    assert!(matches!(BloomView::from_standalone(golden), Err(DecodeError::Magic { .. })));
    let filter = include_bytes!("golden/standalone-100-blocks.bin");
    assert_eq!(restored(filter).unwrap_err(), DecodeError::Magic { found: *b"\x89bloom\r\n" });
}

#[test]
#[cfg_attr(miri, ignore = "hours under miri")]
fn every_changed_byte_and_every_cut_is_noticed() {
    let standalone = sample().to_standalone();
    for position in 0..standalone.len() {
        for change in 1..=255 {
            let mut damaged = standalone.clone();
            damaged[position] ^= change;
            assert!(restored(&damaged).is_err(), "byte {position}, {change:#x}");
        }
        let (first, last) = standalone.split_at(position);
        assert!(restored(first).is_err(), "the first {position} bytes");
        assert!(position == 0 || restored(last).is_err(), "from {position} on");
    }
    assert!(restored(&standalone.repeat(2)).is_err());
}

#[test]
fn each_check_says_what_is_wrong() {
    let standalone = sample().to_standalone();
    let open = |bytes: &[u8]| restored(bytes).unwrap_err();
    let forge = |offset, bytes: &[u8]| open(&forge_footer(&standalone, offset, bytes));
    assert_eq!(open(&[0; 63]), DecodeError::TooShort { found: 63, least: 136 });
    assert_eq!(open(&[0; 64]), DecodeError::Magic { found: [0; 8] });
    assert_eq!(forge(40, &[2]), DecodeError::Version { found: 2, newest: 1 });
    assert_eq!(forge(41, &[1]), DecodeError::Footer { field: "reserved bytes", found: 1 });
    assert_eq!(forge(47, &[1]), DecodeError::Footer { field: "reserved bytes", found: 1 << 48 });
    // Counting on from the highest would run over.
    for found in [1, (1 << 63), u64::MAX] {
        let error = DecodeError::Footer { field: "number of accepted items", found };
        assert_eq!(forge(16, &found.to_le_bytes()), error);
    }
    assert!(matches!(forge(32, &[1]), DecodeError::BodyChecksum { .. }));
    // One that grows has another filter.
    assert_eq!(forge(24, &[0xff; 8]), DecodeError::Magic { found: *b"\x89bloom\r\n" });

    let found_bytes = (standalone.len() - FOOTER_BYTES) as u64;
    // Two items of three letters and their lengths.
    let queue_bytes: u64 = 2 * (8 + 3);
    for stored in [0, 1, 3, 1 << 40, u64::MAX / 2] {
        let forged = [stored.to_le_bytes(), queue_bytes.to_le_bytes(), (u64::MAX / 2).to_le_bytes()].concat();
        let (bytes, error) = allocated(|| forge(0, &forged));
        assert_eq!(error, DecodeError::Queue { items: stored, queue_bytes, found_bytes });
        assert!(bytes <= standalone.len() + 256, "{bytes} bytes");
    }
    for stored in [0, 21, 23, found_bytes + 1, u64::MAX] {
        let error = forge(8, &stored.to_le_bytes());
        assert_eq!(error, DecodeError::Queue { items: 2, queue_bytes: stored, found_bytes });
    }
    for length in [4, 1 << 40, u64::MAX] {
        let mut queue = standalone[..queue_bytes as usize].to_vec();
        queue[..8].copy_from_slice(&u64::to_le_bytes(length));
        let (bytes, error) = allocated(|| open(&forge_frontier(&queue, 2)));
        assert!(matches!(error, DecodeError::Queue { items: 2, .. }), "{error:?}");
        assert!(bytes < 2_000, "{bytes} bytes");
    }
    assert_eq!(
        DecodeError::Queue { items: 3, queue_bytes: 22, found_bytes: 150 }.to_string(),
        "the footer speaks of a queue of 3 items in 22 bytes, which the 150 bytes before it are not"
    );
    assert_eq!(
        DecodeError::BodyChecksum { stored: 1, computed: 2 }.to_string(),
        "queue or filter are damaged: their checksum is 0x0000000000000002, stored 0x0000000000000001"
    );
    assert_eq!(
        DecodeError::Item { index: 3 }.to_string(),
        "item 3 of the queue cannot be had back: its bytes are damaged, or are not those of this type"
    );
}

/// Takes bytes for others than they are.
struct Lowercase(Vec<u8>);

impl AsRef<[u8]> for Lowercase {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Lowercase {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.to_ascii_lowercase())
    }
}

#[test]
fn items_that_are_not_those_saved_are_refused() {
    let mut frontier: Frontier<&[u8]> = with_fpr(1_000, 1e-6);
    frontier.extend([&b"ant"[..], b"\xff", b""]);
    let bytes = frontier.to_standalone();
    assert_eq!(restored(&bytes).unwrap_err(), DecodeError::Item { index: 1 });
    let copy = Frontier::<Box<[u8]>>::from_standalone(&bytes).unwrap();
    assert!(copy.iter().map(|item| &**item).eq(frontier.iter().copied()));

    // Visited twice, were it taken: the filter need not have seen what such a type makes of it.
    let mut frontier = with_fpr(1, 0.9);
    frontier.extend(["ant", "Bee"]);
    let error = Frontier::<Lowercase>::from_standalone(&frontier.to_standalone()).map(|_| ());
    assert_eq!(error, Err(DecodeError::Item { index: 1 }));
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn restore(path: &Path) -> Result<Frontier<String>, RestoreError> {
    Frontier::restore(path)
}

#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn a_saved_frontier_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    let mut frontier = sample();
    for round in 0..3 {
        frontier.push(round.to_string());
        frontier.save(&path).unwrap();
        assert!(fs::read(&path).unwrap() == frontier.to_standalone());
        let copy = restore(&path).unwrap();
        assert!(copy.iter().eq(&frontier) && copy.to_standalone() == frontier.to_standalone());
        assert_eq!(names(directory.path()), ["crawl.frontier"]);
    }
}

/// The queue may be most of the memory that there is.
#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn saving_takes_no_second_queue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    let mut frontier = with_fpr(1_000, 0.01);
    frontier.extend((0..1_000).map(|i| format!("{i:01000}")));
    let (bytes, saved) = allocated(|| frontier.save(&path));
    saved.unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 1_000_000);
    assert!(bytes < 3 * frontier.size_bytes() + 20_000, "{bytes} bytes");
    let (bytes, copy) = allocated(|| restore(&path));
    assert_eq!(copy.unwrap().len(), frontier.len());
    assert!(bytes < 1_200_000, "{bytes} bytes");
}

#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn a_save_that_fails_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing").join("crawl.frontier");
    assert_eq!(sample().save(&missing).unwrap_err().kind(), ErrorKind::NotFound);
    // A file cannot take the place of a directory.
    let path = directory.path().join("crawl.frontier");
    fs::create_dir(&path).unwrap();
    sample().save(&path).unwrap_err();
    assert_eq!(names(directory.path()), ["crawl.frontier"]);
    assert!(path.is_dir());
}

#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn what_a_killed_save_left_is_neither_read_nor_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    for number in 0..2 {
        fs::write(directory.path().join(format!("crawl.frontier.{number}.tmp")), "half a sie").unwrap();
    }
    sample().save(&path).unwrap();
    assert!(restore(&path).unwrap().to_standalone() == sample().to_standalone());
    assert_eq!(names(directory.path()), ["crawl.frontier", "crawl.frontier.0.tmp", "crawl.frontier.1.tmp"]);
    assert_eq!(fs::read(directory.path().join("crawl.frontier.0.tmp")).unwrap(), b"half a sie");
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "miri has no files")]
fn links_stay_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("disk")).unwrap();
    // To a file that is not there yet, by way of another link.
    symlink("disk/crawl.frontier", at("link")).unwrap();
    symlink(at("link"), at("other link")).unwrap();
    for _ in 0..2 {
        sample().save(at("other link")).unwrap();
        assert!(fs::symlink_metadata(at("other link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(names(&at("disk")), ["crawl.frontier"]);
        assert_eq!(names(directory.path()), ["disk", "link", "other link"]);
        assert!(restore(&at("link")).unwrap().iter().eq(&sample()));
    }
    let mode = |name| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    for permissions in [0o600, 0o640] {
        fs::set_permissions(at("link"), PermissionsExt::from_mode(permissions)).unwrap();
        sample().save(at("link")).unwrap();
        assert_eq!(mode("disk/crawl.frontier"), permissions);
    }
    // A link to itself leads nowhere.
    symlink("circle", at("circle")).unwrap();
    assert!(restore(&at("circle")).is_err());
    _ = sample().save(at("circle"));
}

#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn what_is_no_frontier_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    let error = restore(&path).unwrap_err();
    assert!(matches!(&error, RestoreError::Io(error) if error.kind() == ErrorKind::NotFound));
    assert!(error.to_string().starts_with("the frontier's file cannot be read: "), "{error}");

    let standalone = sample().to_standalone();
    for length in 0..standalone.len() {
        fs::write(&path, &standalone[..length]).unwrap();
        let RestoreError::Decode(error) = restore(&path).unwrap_err() else { panic!("{length} bytes") };
        assert_eq!(Err(error), restored(&standalone[..length]).map(|_| ()));
    }
    fs::write(&path, [0; 10]).unwrap();
    assert_eq!(
        restore(&path).unwrap_err().to_string(),
        "the file is not a frontier that can be restored: a standalone filter or frontier of this kind has at least \
         136 bytes, not 10"
    );
    assert!(matches!(restore(directory.path()), Err(RestoreError::Io(_) | RestoreError::Decode(_))));
}

#[test]
#[cfg_attr(miri, ignore = "miri has no files")]
fn saves_at_the_same_time_leave_one_of_them_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    let of = |thread: usize| {
        let mut frontier = with_fpr(1_000, 0.01);
        frontier.extend((0..100 * (thread + 1)).map(|i| i.to_string()));
        frontier
    };
    let written: HashSet<Vec<u8>> = (0..4).map(|thread| of(thread).to_standalone()).collect();
    of(0).save(&path).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || (0..20).for_each(|_| of(thread).save(path).unwrap()));
        }
        for _ in 0..100 {
            assert!(written.contains(&restore(&path).unwrap().to_standalone()));
        }
    });
    assert_eq!(names(directory.path()), ["crawl.frontier"]);
}

const KILLED: &str = "BLOOMLINE_KILLED_FRONTIER";
const SAVING: &str = "about to save";
const STEADY: u64 = 10_000;

/// The frontier after so many items, of which all but [`STEADY`] and half of the others have come out.
fn after(accepted: u64) -> Frontier<String> {
    let mut frontier = with_fpr(200_000, 0.001);
    step(&mut frontier, accepted);
    frontier
}

fn step(frontier: &mut Frontier<String>, accepted: u64) {
    for i in frontier.accepted()..accepted {
        assert!(frontier.push(format!("https://www.example.org/articles/{i}")));
        if i >= STEADY && i % 2 == 0 {
            frontier.pop();
        }
    }
}

/// What the test below runs in another process: saves until it is killed. By itself nothing.
#[test]
fn saves_until_killed() {
    let Some(path) = env::var_os(KILLED) else { return };
    let mut frontier = restore(Path::new(&path)).unwrap_or_else(|_| after(STEADY));
    loop {
        println!("{SAVING}");
        let accepted = frontier.accepted() + 10;
        step(&mut frontier, accepted);
        frontier.save(&path).unwrap();
    }
}

/// Not where the tests are emulated: the other process would not be.
#[test]
#[cfg(all(unix, target_arch = "x86_64"))]
#[cfg_attr(miri, ignore = "miri has no processes")]
fn a_kill_at_any_moment_leaves_a_whole_frontier() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.frontier");
    let (mut cut_short, mut kills, mut accepted) = (0, 0, 0);
    while (kills < 20 || cut_short < 5) && kills < 500 {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", "saves_until_killed"]).env(KILLED, &path);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut saves = output.filter(|line| line.ends_with(SAVING));
        // The first save may be the last.
        assert!(saves.nth(kills as usize % 4).is_some(), "it ended by itself");
        thread::sleep(Duration::from_micros(mix(kills) % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        match restore(&path) {
            Err(RestoreError::Io(error)) if error.kind() == ErrorKind::NotFound => assert_eq!(accepted, 0),
            Err(error) => panic!("after {kills} kills: {error}"),
            Ok(frontier) => {
                assert!(frontier.accepted() >= accepted, "an older file came back");
                accepted = frontier.accepted();
                assert!(
                    frontier.to_standalone() == after(accepted).to_standalone(),
                    "queue and filter differ"
                );
            }
        }
        for name in names(directory.path()).iter().filter(|name| name.ends_with(".tmp")) {
            cut_short += 1;
            fs::remove_file(directory.path().join(name)).unwrap();
        }
    }
    println!("{kills} kills, {cut_short} of them while a file was written, {accepted} items");
    assert!(cut_short >= 5 && accepted > STEADY, "{cut_short} saves of {kills} cut short, {accepted} items");
}
