//! What the commands do with filters of every kind.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::HashSet;

use bloomline::bank::FilterBank;
use bloomline::variants::{CountingBloomFilter, Frontier, ScalableBloomFilter, StandardBloomFilter};
use bloomline::{BloomFilter, Sizing};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use common::{Place, footer, lines, objects, stderr, stdout};

fn blocks(n_blocks: usize, keys: std::ops::Range<u64>) -> BloomFilter {
    let mut filter = BloomFilter::with_blocks(n_blocks, 6).unwrap();
    filter.extend(lines(keys).lines());
    filter
}

/// An empty filter of `n_modules` modules, of as many blocks each.
fn modules(n_modules: usize, of_each: usize, k: u32) -> BloomFilter {
    let sizing = Sizing::new(n_modules * of_each, k).unwrap().with_modules(n_modules).unwrap();
    BloomFilter::with_sizing(sizing).unwrap()
}

/// Fails unless an object has these fields. Fractions are as precise as JSON is read.
#[track_caller]
fn has(object: &Value, fields: Value) {
    for (name, value) in fields.as_object().unwrap() {
        let found = &object[name];
        let is_equal = match value {
            Value::Number(number) if number.is_f64() => {
                found.as_f64().is_some_and(|found| (found / number.as_f64().unwrap() - 1.0).abs() < 1e-12)
            }
            _ => found == value,
        };
        assert!(is_equal, "{name}: {found}, not {value}");
    }
}

/// A file of each kind but a state, with these keys.
fn all_kinds(place: &Place, keys: &str) {
    macro_rules! write {
        ($($name:ident: $filter:expr,)*) => {$(
            let mut $name = $filter;
            $name.extend(keys.lines());
            place.write(stringify!($name), $name.to_standalone());
        )*};
    }
    write! {
        standard: StandardBloomFilter::with_fpr(1000, 0.01).unwrap(),
        counting: CountingBloomFilter::with_fpr(1000, 0.01).unwrap(),
        modules: modules(2, 10, 3),
        scalable: ScalableBloomFilter::with_fpr(300, 0.01).unwrap(),
        frontier: Frontier::with_fpr(1000, 0.01).unwrap(),
        growing: Frontier::growing(1000, 0.01).unwrap(),
    }
    frontier.pop();
    place.write("frontier", frontier.to_standalone());
}

#[test]
fn info_says_what_a_file_is() {
    let place = Place::new();
    all_kinds(&place, &lines(0..1000));
    place.write("blocked", blocks(1, 0..30).to_standalone());
    let blocked = BloomFilter::from_standalone(&place.read("blocked")).unwrap();
    let standard = StandardBloomFilter::from_standalone(&place.read("standard")).unwrap();
    let scalable = ScalableBloomFilter::from_standalone(&place.read("scalable")).unwrap();
    for (name, texts, fields) in [
        (
            "blocked",
            &["blocked filter", "128 bytes\n", "1 block of 64 bytes, k = 6", "2, wyhash final version 3"][..],
            json!({"blocks": 1, "k": 6, "seed": 0, "version": 2, "hash": 2, "known_keys": null,
                "false_positive_rate": blocked.estimated_fpr(), "fill_ratio": blocked.fill_ratio()}),
        ),
        (
            "standard",
            &["standard filter", "9,596 bits, k = 7", "valid", "distinct keys    about "],
            json!({"kind": "standard", "bits": 9596, "k": 7, "false_positive_rate": standard.estimated_fpr(),
                "estimated_keys": standard.estimated_keys().unwrap().keys}),
        ),
        (
            "counting",
            &["counting filter", "20 blocks of 64 bytes and 256 of counters, k = 7", "0"],
            json!({"kind": "counting", "saturated_counters": 0}),
        ),
        (
            "modules",
            &["blocked filter\n", "20 blocks of 64 bytes in 2 modules, k = 3", "2, wyhash", "fill ratio "],
            json!({"kind": "blocked", "modules": 2}),
        ),
        (
            "scalable",
            &["scalable filter", "capacity         300 keys at first", "requested FPR    1%", "3 filters"],
            json!({"filters": 3, "inserted_keys": scalable.inserted_keys(), "initial_capacity": 300,
                "requested_false_positive_rate": 0.01, "false_positive_rate": scalable.estimated_fpr()}),
        ),
        (
            "frontier",
            &["frontier", "995, exact", "996, exact", "1,000 items"],
            json!({"queued_items": 995, "accepted_items": 996, "capacity": 1000}),
        ),
        ("growing", &["frontier", "capacity         grows"], json!({"kind": "frontier", "capacity": null})),
    ] {
        let info = place.prints(format!("info {name}"));
        for text in texts.iter().chain(&["checksum         valid", "FPR  "]) {
            assert!(info.contains(text), "{info}");
        }
        let info = place.json(format!("info --as-json {name}"));
        has(&info, fields);
        has(&info, json!({"file": name, "is_intact": true, "bytes": place.read(name).len()}));
    }
    place.run("info --plot p.svg blocked").success();
    let plot = place.text("p.svg");
    assert!(plot.contains("bits set") && plot.contains("Poisson"));
    // Each of the 1,000 keys is in a block of both modules, so each block has 100.
    place.run("info --plot p.svg modules").success();
    assert!(place.text("p.svg").contains("How full the 20 blocks are, k = 3"));
    let per_block =
        place.text("p.svg").split("model: ").nth(1).and_then(|text| text[..5].trim().parse::<f64>().ok());
    assert!(per_block.is_some_and(|keys| (95.0..105.0).contains(&keys)), "{per_block:?}");
    place.remove("p.svg");
    place.feed("build -q -o f", lines(0..777)).success();
    place.run("info f").stdout(contains("777, exact"));
    // Cut ones are errors that name the file.
    for name in ["standard", "counting", "modules", "scalable", "frontier"] {
        let bytes = place.read(name);
        place.write("cut", &bytes[8..]);
        place.refuses("info cut", &["cut: "]);
    }
    for name in ["standard", "scalable", "frontier"] {
        place.refuses(format!("info --plot p.svg {name}"), &["omit --plot"]);
        assert!(!place.path("p.svg").exists());
    }
}

#[test]
fn golden_banks_are_described_and_not_used_as_filters() {
    let place = Place::new();
    let golden = |slots: usize| {
        let path = format!("{}/../tests/golden/bank-{slots}-slots.bin", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).unwrap()
    };
    let bank = |filters: &[BloomFilter]| FilterBank::from_filters(filters).unwrap().to_standalone();
    let keys = json!([0, 1, 2, 3, null, 5, 6, 0, 1]);
    for (name, bytes, shape, known_keys, text) in [
        ("range", golden(3), (3, 1, 6), json!([0, 1, 2]), "0 to 2 per slot, exact\n"),
        ("both", golden(9), (9, 2, 1), keys, "0 to 6 per slot, exact; unknown for 1 slot\n"),
        ("unknown", bank(&[blocks(4, 0..9)]), (1, 4, 6), json!([null]), "unknown for 1 slot\n"),
        ("equal", bank(&[blocks(1, 0..0)]), (1, 1, 6), json!([0]), "0 per slot, exact\n"),
    ] {
        place.write(name, bytes);
        let info = place.json(format!("info --as-json {name}"));
        let (slots, n_blocks, k) = shape;
        has(&info, json!({"kind": "bank", "known_keys": known_keys, "slots": slots}));
        has(&info, json!({"blocks": n_blocks, "k": k, "seed": 0}));
        let text = contains("filter bank").and(contains(format!("distinct keys    {text}")));
        let text =
            text.and(contains(format!("slots            {slots}\n"))).and(contains("checksum         valid"));
        let shape = contains(format!("shape            {n_blocks} block"))
            .and(contains(format!(" of 64 bytes per slot, k = {k}\n")));
        place.run(format!("info {name}")).success().stdout(text.and(shape));
    }
    place.write("f", blocks(2, 0..9).to_standalone());
    place.write("keys", lines(0..9));
    for (arguments, text) in [
        ("check range keys", "range: a filter bank cannot be queried (give a filter"),
        ("merge -o g f range", "range: a filter bank cannot be merged (give"),
        ("estimate range f", "range: a filter bank cannot be compared (give"),
        ("fold --factor 2 -o g range", "range: a filter bank, not a blocked filter (give"),
        ("build --like range -o g keys", "range: a filter bank, not a blocked filter (give"),
        ("grow -o g range", "range: a filter bank, not a blocked filter (give"),
        ("dedup --state range keys", "range: not a state of dedup"),
        ("info --plot p.svg range", "(omit --plot)"),
    ] {
        place.refuses(arguments, &[text]);
    }
    // A damaged one is described all the same, unless the footer is.
    place.damage("range", 100, "damaged");
    let remedy = "(rebuild it, or fetch it again)\n";
    let text = contains("INVALID: the file is damaged").and(contains("per slot, exact"));
    place.run("info damaged").code(2).stdout(text).stderr(contains(remedy));
    place.refuses("check damaged keys", &[remedy]);
    place.write("cut", &place.read("damaged")[8..]);
    place.refuses("info cut", &["cut: the footer's size of 1 blocks of a bank"]);
}

#[test]
fn info_describes_several_files() {
    let place = Place::new();
    for (name, n_blocks) in [("a", 1), ("b", 2)] {
        place.write(name, blocks(n_blocks, 0..9).to_standalone());
    }
    place.damage("a", 3, "damaged");
    place.write("text", "ant\n");
    let [a, b] = ["a", "b"].map(|name| place.prints(format!("info {name}")));
    assert!(a.starts_with("kind "), "{a}");
    place.run("info a b").success().stdout(format!("a:\n{a}\nb:\n{b}"));
    let info = place.run("info no a text damaged b").code(2);
    let (described, errors) = (stdout(&info), stderr(&info));
    assert!(described.starts_with(&format!("a:\n{a}\ndamaged:\n")), "{described}");
    assert!(described.ends_with(&format!("\n\nb:\n{b}")) && described.contains("INVALID"), "{described}");
    let names: Vec<_> = errors.lines().map(|error| error.split(": ").nth(1).unwrap()).collect();
    assert_eq!(names, ["no", "text", "damaged"], "{errors}");
    let objects = objects(&place.run("info --as-json no a damaged b").code(2).get_output().stdout);
    assert_eq!(objects.len(), 3);
    for (info, (name, is_intact)) in objects.iter().zip([("a", true), ("damaged", false), ("b", true)]) {
        has(info, json!({"file": name, "is_intact": is_intact}));
    }
    place.refuses("info --plot p.svg a b", &["--plot: shows one filter, not 2"]);
    place.sh("$b info a b | head -n 1").success().stdout("a:\n").stderr("");
    place.sh("$b info a b >/dev/full").code(2).stderr(contains("standard output: "));
}

#[test]
fn check_selects_as_grep_does_by_filters_of_every_kind() {
    let place = Place::new();
    let (present, missing) = (lines(0..1000), lines(1000..3000));
    all_kinds(&place, &present);
    place.write("keys", &present);
    place.write("both", missing.clone() + present.trim_end());
    place.run("build -q -o blocked keys").success();
    for name in ["blocked", "standard", "counting", "modules", "scalable"] {
        let output = place.prints(format!("check {name} both"));
        let selected: HashSet<&str> = output.lines().collect();
        assert!(present.lines().all(|line| selected.contains(line)), "{name}");
        assert!((1001..1060).contains(&selected.len()), "{name}: {}", selected.len());
        let others = place.prints(format!("check -v {name} both"));
        assert!(others.lines().all(|line| !selected.contains(line)));
        assert_eq!(others.lines().count() + selected.len(), 3000);
        place.run(format!("check -c {name} both")).stdout(format!("{}\n", selected.len()));
        place.run(format!("check -vc {name} keys")).code(1).stdout("0\n");
        place.damage(name, 3, "damaged");
        place.refuses("check damaged keys", &["damaged: "]);
    }
    for name in ["frontier", "growing"] {
        place.refuses(format!("check {name} keys"), &["a frontier", "(give a filter"]);
    }
    place.feed("check -v blocked", "").code(1).stdout("");
    // In order, with duplicates, the last line ended; the filter from a pipe.
    place.sh("printf 'x\\nx\\ny' >l; $b build -q -o g l; cat g | $b check /dev/stdin l").stdout("x\nx\ny\n");
    place.run("check --no-verify g l").stdout("x\nx\ny\n");
}

#[test]
fn check_counts_each_file_as_grep_does() {
    let place = Place::new();
    place.write("a", "ant\nbee\n");
    place.write("b", "");
    place.write("c", "bee\ncat\nant");
    place.sh("printf 'ant\\nbee\\n' | $b build -q -o f").success();
    place.run("check -c f a b c a").success().stdout("a:2\nb:0\nc:2\na:2\n");
    place.feed("check -c f a -", "ant\n").success().stdout("a:2\n(standard input):1\n");
    place.run("check -c f c").success().stdout("2\n");
    place.run("check -c f b b").code(1).stdout("b:0\nb:0\n");
    place.run("check -cv f a c").success().stdout("a:0\nc:1\n");
}

#[test]
fn check_counts_as_json() {
    let place = Place::new();
    place.write("a", "ant\nbee\nant");
    place.write("b", "cat\n");
    place.sh("printf 'ant\\nbee\\n' | $b build -q --fpr 1e-6 -o f").success();
    let a = json!({"file": "a", "lines": 3, "possibly_present": 3, "definitely_absent": 0});
    let b = json!({"file": "b", "lines": 1, "possibly_present": 0, "definitely_absent": 1});
    let mut expected = json!({"lines": 4, "possibly_present": 3, "definitely_absent": 1});
    expected["filter"] = "f".into();
    expected["files"] = json!([a, b]);
    for more in ["", "-v"] {
        assert_eq!(place.json(format!("check --as-json f a b {more}")), expected);
    }
    // The status is that of the selection.
    place.run("check --as-json f b").code(1).stdout(contains("\"file\": \"b\""));
    place.run("check --as-json -v f a").code(1);
    place.feed("check --as-json f", "ant\n").success().stdout(contains("\"file\": \"standard input\""));
    for options in ["-q --as-json", "-c --as-json"] {
        place.refuses(format!("check f a {options}"), &["cannot be used with"]);
    }
}

#[test]
fn a_quiet_check_stops_at_the_first_line() {
    let place = Place::new();
    place.write("a", "cat\r\nant\n");
    place.write("b", "ant\n");
    place.sh("printf 'ant\\n' | $b build -q --fpr 1e-6 -o f").success();
    let check = |arguments: &str| place.run(format!("check -q f {arguments}")).stdout("").stderr("");
    check("a b").success();
    check("-c a b").success();
    check("-v b").code(1);
    check("-v a").success();
    // What comes later is not read, and an error before the first line is one.
    place.write("cut.gz", b"\x1f\x8b\x08\0");
    check("b cut.gz").success();
    place.refuses("check -q f cut.gz b", &["cut.gz: "]);
    // Of input that does not end.
    place.sh("mkfifo in; $b check -q f <in & exec 3>in; echo ant >&3; wait $!").success().stdout("");
}

#[test]
fn filters_of_different_sizes_are_merged_and_compared() {
    let place = Place::new();
    for (name, n_blocks, keys) in [("large", 240, 0..600), ("small", 60, 400..1000), ("odd", 45, 0..9)] {
        place.write(name, blocks(n_blocks, keys).to_standalone());
    }
    let folds = contains("large: folded by 4, to the 60 blocks of small");
    for order in ["large small", "small large"] {
        place
            .run(format!("merge -o both {order}"))
            .success()
            .stderr(contains("both: FPR ").and(contains("folded").not()))
            .stderr(contains(
                "small: its 60 blocks repeat 4 times in both, so each of its keys raises the FPR as 4 do\n",
            ));
        let estimated = place.json("info --as-json both")["estimated_keys"].as_u64().unwrap();
        assert!((970..1_030).contains(&estimated), "{estimated}");
        let mut both = blocks(240, 0..600);
        both.union_with(&blocks(60, 400..1000)).unwrap();
        assert_eq!(place.read("both"), both.to_standalone());
        let text = stdout(&place.run(format!("estimate {order}")).success().stderr(folds.clone()));
        let keys = |row: usize| -> u64 {
            let word = text.lines().nth(row).unwrap().split("about ").nth(1).unwrap();
            word.split(' ').next().unwrap().replace(',', "").parse().unwrap()
        };
        assert!([0, 1].map(keys).iter().all(|keys| (550..650).contains(keys)), "{text}");
        assert!((950..1050).contains(&keys(2)) && (150..250).contains(&keys(3)), "{text}");
    }
    place.run("merge -o both small large small").success().stderr(contains("large: ").not());
    // Neither of 60 and 45 blocks is a multiple of the other, but 720 is of both.
    place.write("largest", blocks(720, 0..9).to_standalone());
    let orders = ["small odd largest", "odd largest small", "largest small odd"];
    let merged = orders.map(|order| {
        place.run(format!("merge -o both {order}")).success();
        place.read("both")
    });
    assert!(merged.iter().all(|bytes| *bytes == merged[0]));
    place.write("k", BloomFilter::with_blocks(60, 7).unwrap().to_standalone());
    place.write("seed", BloomFilter::with_blocks(60, 6).unwrap().with_seed(9).unwrap().to_standalone());
    for (name, texts) in [
        ("odd", ["45 blocks, k = 6", "60 blocks, k = 6"]),
        ("k", ["60 blocks, k = 7", "60 blocks, k = 6"]),
        ("seed", ["seed 9", "seed 0"]),
    ] {
        for command in ["merge -o g", "estimate"] {
            let texts = [&texts[..], &["cannot be combined with the ", " of small", "--like"]].concat();
            place.refuses(format!("{command} small {name}"), &texts);
        }
    }
    let merged = place.json("merge --as-json -o both large small");
    has(&merged, json!({"file": "both", "blocks": 240, "folded": []}));
    let estimate = place.json("estimate --as-json large small");
    assert_eq!(estimate["first"]["file"], "large");
    assert!((550..650).contains(&estimate["second"]["keys"].as_u64().unwrap()));
    assert!((950..1050).contains(&estimate["union"]["keys"].as_u64().unwrap()));
    assert!(estimate["intersection"]["standard_error"].as_f64().unwrap() > 1.0);
}

#[test]
fn fold_says_what_can_be_had() {
    let place = Place::new();
    place.write("f", blocks(60, 0..500).to_standalone());
    place.write("prime", blocks(97, 0..500).to_standalone());
    let factors = "(give --fpr, or --factor 2 for 1.92 kB, 3 for 1.28 kB, 4 for 960 B, 5 for 768 B,";
    for wrong in ["7", "0", "61"] {
        place.refuses(format!("fold -o g --factor {wrong} f"), &[factors]);
    }
    place.refuses("fold -o g f", &["f: say how far to fold (give --fpr, or --factor 2 for"]);
    // Of many, those near the one requested.
    for (n_blocks, wrong, first, last) in [
        (720, 100, "45 for 1.02 kB, 48 for 960 B, ", ", 720 for 64 B; 29 factors in all, to 720)\n"),
        (120, 7, "2 for 3.84 kB, 3 for 2.56 kB, ", ", 30 for 256 B; 15 factors in all, to 120)\n"),
    ] {
        place.write("many", blocks(n_blocks, 0..9).to_standalone());
        let first = format!("--factor {first}");
        place.refuses(format!("fold -o g --factor {wrong} many"), &[&first, last]);
    }
    place.refuses("fold -o g --factor 2 prime", &["(give --fpr, or --factor 97 for 64 B; ", "--keys"]);
    place.write("one", blocks(1, 0..9).to_standalone());
    for more in ["", "--factor 2"] {
        place.refuses(format!("fold -o g one {more}"), &["(keep it as it is)"]);
    }
    // In place of a fold by 1, what stands in its way.
    let text = contains("g: not folded: by 97, the least factor of its blocks, FPR would be 100%\n");
    place.run("fold -o g --fpr 1% prime").success().stderr(text);
    assert_eq!(place.read("g"), place.read("prime"));
    let folded = place.json("fold --as-json -o g --factor 4 f");
    has(&folded, json!({"file": "g", "factor": 4, "blocks": 15, "bytes": 15 * 64 + 64}));
    all_kinds(&place, "ant\n");
    for name in ["standard", "counting", "scalable", "frontier"] {
        place.refuses(format!("fold -o g --factor 2 {name}"), &[&format!("{name}: a {name}")]);
    }
}

/// As many keys for each rate, or for so many bits, and the modules that are worth it.
#[test]
fn filters_of_low_rates_have_several_modules() {
    let place = Place::new();
    let text = lines(0..10_000);
    place.write("keys", &text);
    let built = |more: &str| (place.json(format!("build --as-json -o f {more} keys")), place.read("f"));
    let of = |sizing: Sizing| {
        let mut filter = BloomFilter::with_sizing(sizing).unwrap();
        filter.extend(text.lines());
        filter
    };
    for (fpr, most, n_modules) in [
        (0.001, None, 1),
        (1e-4, None, 2),
        (1e-6, None, 2),
        (1e-9, None, 3),
        (1e-12, None, 4),
        (1e-6, Some(1), 1),
        (0.001, Some(4), 3),
        (1e-6, Some(3), 3),
    ] {
        let sizing = most
            .map_or_else(|| Sizing::for_fpr(10_000, fpr), |most| Sizing::for_fpr_within(10_000, fpr, most));
        let most = most.map_or(String::new(), |most| format!("--modules {most}"));
        let more = &format!("--fpr {fpr} {most}");
        let expected = of(sizing.unwrap());
        let (figures, bytes) = built(more);
        assert!(bytes == expected.to_standalone(), "{more}: {figures}");
        has(&figures, json!({"file": "f", "lines": 10_000, "known_keys": 10_000, "modules": n_modules}));
        has(&figures, json!({"bytes": bytes.len(), "blocks": expected.n_blocks()}));
        has(&figures, json!({"k": expected.k(), "estimated_keys": expected.estimated_keys().unwrap().keys}));
        let rates = [expected.estimated_fpr(), expected.fill_ratio(), fpr];
        let fields = ["false_positive_rate", "fill_ratio", "requested_false_positive_rate"];
        fields.iter().zip(rates).for_each(|(field, rate)| has(&figures, json!({ *field: rate })));
        assert!(rates[0] < 1.2 * fpr, "{figures}");
        // Repeated keys count once.
        place.run(format!("build -q -o f {more} keys keys")).success();
        assert!(place.read("f") == bytes);
        // From a pipe, the same bits.
        let modules = if n_modules == 1 { String::new() } else { format!(" in {n_modules} modules") };
        let says = contains("20,000 lines, 10,000 distinct keys; ").and(contains(format!("{modules}, FPR ")));
        place.feed(format!("build -o g {more}"), text.repeat(2)).success().stderr(says);
        let piped = BloomFilter::from_standalone(&place.read("g")).unwrap();
        assert!(piped == expected && piped.known_keys() == Some(10_000), "{more}");
        // For a guessed number, one that can be folded.
        let (figures, bytes) = built(&format!("{more} --keys 10k"));
        has(&figures, json!({"lines": 10_000, "known_keys": null}));
        assert!(bytes == of(sizing.unwrap().rounded_to_fold()).to_standalone(), "{more}");
    }
    for (more, sizing) in [
        ("--bits-per-key 20", Sizing::for_bits_per_key(10_000, 20.0)),
        ("--bits-per-key 20 --modules 1", Sizing::for_bits_per_key_within(10_000, 20.0, 1)),
    ] {
        let (figures, bytes) = built(more);
        has(&figures, json!({"requested_false_positive_rate": null}));
        assert!(bytes == of(sizing.unwrap()).to_standalone(), "{more}");
    }
    // Too many keys are noticed, and what is there stays.
    let build = "build -o f --fpr 1e-4 --keys 5000 keys";
    place.refuses(build, &["not the requested 0.01%; nothing was written (raise --keys"]);
}

#[test]
fn filters_of_several_modules_are_merged_folded_and_compared() {
    let place = Place::new();
    let keys = 1000;
    let of = |n_modules, of_each, k, range| {
        let mut filter = modules(n_modules, of_each, k);
        filter.extend(lines(range).lines());
        filter.to_standalone()
    };
    place.write("large", of(3, 240, 4, 0..6 * keys));
    place.write("same", of(3, 240, 4, 4 * keys..10 * keys));
    let merged = place.json("merge --as-json -o both large same");
    assert!(place.read("both") == of(3, 240, 4, 0..10 * keys));
    has(&merged, json!({"kind": "blocked", "modules": 3, "blocks": 720, "k": 4, "folded": []}));
    place.write("small", of(3, 60, 4, 0..keys));
    let folds = contains("large: folded by 4, to the 3 modules of 60 blocks of small");
    place.run("estimate small large").success().stderr(folds);

    for factor in [2, 240] {
        let folded = place.json(format!("fold --as-json -o g --factor {factor} large"));
        assert!(place.read("g") == of(3, 240 / factor as usize, 4, 0..6 * keys));
        has(&folded, json!({"modules": 3, "bytes": place.read("g").len()}));
    }
    for (factor, size) in [(7, "2 for 23 kB, "), (720, "240 for 192 B; 19 factors in all, to 240)\n")] {
        let text =
            format!("large: 3 modules of 240 blocks cannot be folded by {factor} (give --fpr, or --factor ");
        place.refuses(format!("fold -o g --factor {factor} large"), &[&text, size]);
    }
    // As far as the rate allows.
    let mut filter = BloomFilter::from_standalone(&place.read("large")).unwrap();
    place.write("g", filter.to_standalone());
    place.run("fold -o g --fpr 0.1% g").success().stderr(contains("g: folded by "));
    filter.shrink_to_fpr(0.001).unwrap();
    assert!(place.read("g") == filter.to_standalone() && filter.n_blocks() < 720);

    // With none of another shape; the errors say what to do.
    place.write("f", blocks(60, 0..9).to_standalone());
    place.write("two", of(2, 30, 4, 0..9));
    place.write("k", of(3, 60, 5, 0..9));
    place.write("odd", of(3, 45, 4, 0..9));
    for (name, shape) in [
        ("f", "60 blocks, k = 6"),
        ("two", "2 modules of 30 blocks, k = 4"),
        ("k", "3 modules of 60 blocks, k = 5"),
        ("odd", "3 modules of 45 blocks, k = 4"),
    ] {
        let why = format!("{name}: {shape}, cannot be combined with the 3 modules of 60 blocks, k = 4");
        for command in ["merge -o g", "estimate"] {
            place.refuses(format!("{command} small {name}"), &[&why, "--like"]);
        }
    }
    let text = "large: has 3 modules, and only filters of one or two can grow (build it with --modules 2)";
    place.refuses("grow -o g large", &[text]);
    place.refuses("dedup --state large", &["of too many modules to make one of it (name another file)"]);
    // The one that is like it can.
    place.write("keys", lines(3 * keys..9 * keys));
    place.run("build -q -o new --like large keys").success();
    assert!(place.read("new") == of(3, 240, 4, 3 * keys..9 * keys));
    place.run("merge -o g large new").success();
    assert!(place.read("g") == of(3, 240, 4, 0..9 * keys));
    place.refuses("build -o g --like two keys", &["(give --like a larger filter, or give --allow-overfull)"]);
    // A damaged one is none.
    place.damage("large", 3, "damaged");
    for arguments in ["merge large damaged", "fold --factor 2 damaged", "fold --fpr 1% damaged"] {
        place.refuses(format!("{arguments} -o g"), &["damaged: the bytes are damaged: "]);
    }
}

#[test]
fn scalable_filters_are_merged_and_compared() {
    let place = Place::new();
    let scalable = |capacity, fpr, range| {
        let mut filter = ScalableBloomFilter::with_fpr(capacity, fpr).unwrap();
        filter.extend(lines(range).lines());
        filter.to_standalone()
    };
    place.write("a", scalable(100, 0.01, 0..600));
    place.write("b", scalable(200, 0.01, 400..1000));
    place.run("merge -o both a b").success().stderr(contains("requested 1.28%"));
    let both = ScalableBloomFilter::from_standalone(&place.read("both")).unwrap();
    assert!(lines(0..1000).lines().all(|line| both.contains(line)));
    assert!((both.fpr() - 0.0128).abs() < 1e-4 && both.estimated_fpr() < both.fpr());
    // Keys may be in filters of different sizes, so the bits of the two cannot be compared.
    let estimate = place.json("estimate --as-json a b");
    let [a, b] = ["first", "second"].map(|side| estimate[side]["at_most"].as_u64().unwrap());
    assert!((580..=600).contains(&a) && (580..=600).contains(&b));
    assert_eq!(estimate["union"]["at_most"], a + b);
    assert_eq!(estimate["intersection"]["at_most"], a.min(b));
    assert!(estimate["union"]["keys"].is_null());
    let text = contains("union         at most 1,2");
    place.run("estimate a b").success().stdout(text).stderr(contains("only upper bounds"));
    // Until they have grown, they can.
    for fpr in [0.01, 1e-4] {
        place.write("c", scalable(1000, fpr, 0..600));
        place.write("d", scalable(1000, fpr, 400..1000));
        let estimate = place.json("estimate --as-json c d");
        assert!((950..1050).contains(&estimate["union"]["keys"].as_u64().unwrap()), "{estimate}");
    }
    // One of fixed size does not take the keys of one that grows.
    place.write("f", blocks(60, 0..9).to_standalone());
    for order in ["a f", "f a"] {
        place.refuses(format!("merge -o g {order}"), &["grow"]);
    }
    assert!(place.json("estimate --as-json a f")["union"]["keys"].is_null());
}

#[test]
fn charts_are_svg() {
    let place = Place::new();
    place.write("f", blocks(60, 0..500).to_standalone());
    for name in ["x.png", "x.PDF", "x.svgz"] {
        for command in ["info f", "plan --keys 9 --fpr 1%"] {
            place.refuses(format!("{command} --plot {name}"), &[name, "x.svg"]);
        }
    }
    place.run("info f --plot x.SVG").success();
    assert_eq!(place.files(), ["f", "x.SVG"]);
}

#[test]
fn standard_output_has_one_format() {
    let place = Place::new();
    place.write("f", blocks(60, 0..500).to_standalone());
    for (command, text) in [("plan --keys 9 --fpr 1%", "k, probes"), ("info f", "k = 6")] {
        place.run(format!("{command} --plot p.svg")).success().stdout(contains(text));
        for output in ["-", "/dev/stdout"] {
            let plot = format!("{command} --plot {output}");
            place.run(&plot).success().stderr("").stdout(place.text("p.svg"));
            let text = "--as-json: standard output is for the chart (write the chart to a file)";
            place.refuses(format!("{plot} --as-json"), &[text]);
        }
        place.json(format!("{command} --as-json --plot p.svg"));
    }
    for command in ["fold --factor 4 f", "merge f f", "build f"] {
        for output in ["-", "/dev/stdout"] {
            let text = "--as-json: standard output is for the filter";
            place.refuses(format!("{command} --as-json -o {output}"), &[text]);
        }
    }
}

#[test]
fn plan_shows_the_modules_that_build_makes() {
    let place = Place::new();
    let plan = |more: &str| {
        let plan = format!("plan {more}");
        let text = place.prints(&plan);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        (place.json(format!("{plan} --as-json")), text)
    };
    // Down to the lowest rate.
    for (more, n_modules) in [("1%", 1), ("1e-4", 2), ("5.5e-13", 4), ("1e-4 --modules 1", 1)] {
        let (figures, text) = plan(&format!("--keys 1000 --fpr {more}"));
        let built = place.json(format!("build --as-json -o f --keys 1000 --fpr {more} /dev/null"));
        has(&figures, json!({"modules": n_modules, "blocks": built["blocks"], "k": built["k"]}));
        assert_eq!(text.contains("modules "), n_modules > 1, "{text}");
    }
    let (figures, text) = plan("--keys 1e6 --fpr 0.01% --modules 4");
    let sizing = Sizing::for_fpr_within(1_000_000, 1e-4, 4).unwrap().rounded_to_fold();
    has(&figures, json!({"false_positive_rate": sizing.expected_fpr(1_000_000)}));
    assert!((figures["lines_if_absent"].as_f64().unwrap() - 1.05).abs() < 0.005);
    for row in [
        "bits per key                         19.72             19.17",
        "modules                                  3                 -",
        "k, probes per key                    3 × 4                13",
        "blocks of 64 bytes                  38,520                 -",
        "cache lines, absent key               1.05          up to 13",
        "cache lines, present key                 3          up to 13",
    ] {
        assert!(text.lines().any(|line| line == row), "{row}\n{text}");
    }
    let figures = plan("--keys 1e6 --bytes 1241728").0;
    has(&figures, json!({"keys": 1_000_000, "blocks": 19_402, "k": 6, "bits_per_key": 9.933_824}));
    assert!((figures["false_positive_rate"].as_f64().unwrap() - 0.01).abs() < 1e-5);
    assert_eq!(figures["standard"]["bytes"], 1_241_728);
    assert!(figures["standard"]["false_positive_rate"].as_f64().unwrap() < 0.01);
    // Of at most as many bytes, and as good as they allow.
    for (bytes, n_blocks) in [(3_000_000, 46_874), (3_000_064, 46_876), (64, 1), (192, 3)] {
        let keys = bytes / 3;
        let figures = plan(&format!("--keys {keys} --bytes {bytes}")).0;
        assert_eq!(figures["blocks"], n_blocks);
        let figures = plan(&format!("--bytes {bytes} --fpr 1e-4")).0;
        let [keys, found] = ["keys", "blocks"].map(|field| figures[field].as_u64().unwrap());
        assert!(figures["false_positive_rate"].as_f64().unwrap() <= 1e-4 && found <= n_blocks, "{figures}");
        let more = Sizing::for_fpr(keys + 1 + keys / 10_000, 1e-4).unwrap();
        assert!(more.n_blocks() as u64 > n_blocks, "{figures}");
    }
    // Few keys get other modules than many.
    for (request, most) in [("1664 --fpr 7.3e-5", 626), ("7104 --fpr 1.65479e-3", 4_220)] {
        let figures = plan(&format!("--bytes {request} --modules 3")).0;
        assert!(figures["keys"].as_u64().unwrap() >= most, "{figures}");
    }
    place.run("plan --keys 1e6 --fpr 1e-12 --plot p.svg").success();
    assert!(place.text("p.svg").contains("MB, 4 modules, k = "));
}

/// Runs dedup with a state, and returns what it prints.
fn dedup(place: &Place, state: &str, more: &str, input: String) -> String {
    stdout(&place.feed(format!("dedup -q --state {state} {more}"), input).success())
}

#[test]
fn states_are_described_queried_and_merged() {
    let place = Place::new();
    for (more, kind, shape) in [
        (
            "--keys 1000 --fpr 1e-4",
            "state of dedup, of fixed size",
            "40 blocks of 64 bytes in 2 modules, k = 7",
        ),
        ("--grow --keys 100 --fpr 1e-4", "state of dedup, which grows", "3 filters of 2 modules, "),
    ] {
        for name in ["a", "b"] {
            let _ = std::fs::remove_file(place.path(name));
        }
        dedup(&place, "a", more, lines(0..500));
        dedup(&place, "b", more, lines(300..900));
        let text = contains(kind).and(contains(shape)).and(contains("keys             at most 500\n"));
        let text = text.and(contains("requested FPR    0.01%")).and(contains("checksum         valid"));
        place.run("info a").success().stdout(text);
        let info = place.json("info --as-json a");
        let is_growing = kind.ends_with("grows");
        has(&info, json!({"kind": "state", "keys": 500, "is_growing": is_growing}));
        has(
            &info,
            json!({"capacity": if is_growing { 100 } else { 1000 }, "requested_false_positive_rate": 1e-4}),
        );
        place.feed("check a", lines(490..510)).stdout(lines(490..500));
        // No line would be found, whatever the state holds.
        place.refuses("check --integers a b", &["a: its keys are text (omit --integers)"]);
        assert_eq!(info["key_options"], "whole lines as keys");
        place.refuses("fold -o g --factor 2 a", &["a: a state of dedup, not a blocked filter"]);

        let estimate = place.json("estimate --as-json a b");
        if is_growing {
            let sides = ["first", "second"].map(|side| estimate[side]["at_most"].as_u64().unwrap());
            assert_eq!(sides, [500, 600]);
            assert_eq!(estimate["union"], json!({"keys": null, "at_most": 1100}));
        } else {
            assert!((880..920).contains(&estimate["union"]["keys"].as_u64().unwrap()), "{estimate}");
        }
        let merged = place.json("merge --as-json -o a a b");
        let requested = if is_growing { 1.385_905_376_264e-4 } else { 1e-4 };
        has(&merged, json!({"kind": "state", "requested_false_positive_rate": requested}));
        // The bits show that 200 lines are in both, where there is but one filter.
        let n = merged["keys"].as_u64().unwrap();
        assert!(if is_growing { n == 1100 } else { (900..960).contains(&n) }, "{n}");
        assert_eq!(dedup(&place, "a", "", lines(0..950)), lines(900..950));
    }
    // A folded state is for as many lines as the smaller.
    for order in ["small large", "large small"] {
        dedup(&place, "small", "--keys 1030 --fpr 1e-4", lines(0..9));
        dedup(&place, "large", "--keys 2060 --fpr 1e-4", lines(9..20));
        let merged = place.json(format!("merge --as-json --replace-state -o m {order}"));
        has(&merged, json!({"capacity": 1030, "keys": 20, "folded": [{"file": "large", "factor": 2}]}));
    }
    dedup(&place, "none", "--fpr 1e-4", String::new());
    place.run("merge -o a a none").success().stderr(contains("requested 0.0139%"));
    // Rates that add up to more than 1.
    for name in ["half", "more"] {
        dedup(&place, name, "--grow --keys 9 --fpr 0.6", lines(0..9));
    }
    place.run("merge -o half half".to_owned() + &" more".repeat(12)).success();
    place.run("info half").success().stdout(contains("requested FPR    100%"));
    // Many states with room are one filter, which goes on as each of them.
    let mut merge = "merge -o month".to_owned();
    for i in 0..20 {
        dedup(&place, &format!("day{i}"), "--grow --keys 1000 --fpr 1e-4", lines(40 * i..40 * (i + 1)));
        merge += &format!(" day{i}");
    }
    place.run(merge).success().stderr(contains("at most 800 keys").and(contains("requested 0.01%")));
    let shape = contains("1 filter of 2 modules, ").and(contains("inserted keys    800\n"));
    place.run("info month").success().stdout(shape);
    assert_eq!(dedup(&place, "month", "", lines(0..1_000)), lines(800..1_000));
    place.run("info month").success().stdout(contains("1 filter of 2 modules, "));
    // More lines than a fixed state takes: dedup refuses it, and merge says so before.
    for (name, range) in [("c", 0..900), ("d", 900..1800)] {
        dedup(&place, name, "--keys 1000", lines(range));
    }
    let say = contains("c: at most 1,8")
        .and(contains("more keys than it takes"))
        .and(contains("`bloomline grow --fpr 0.0854% c`"));
    place.run("merge -o c c d").success().stderr(say);
    // A state is not mixed with what is none.
    place.write("f", blocks(60, 0..9).to_standalone());
    for order in ["c f", "f c"] {
        let text = "f: not a state of dedup, as c is (merge states with states";
        place.refuses(format!("merge -o g {order}"), &[text]);
    }
}

#[test]
fn merging_into_a_state_waits_for_dedup() {
    let place = Place::new();
    dedup(&place, "a", "", lines(0..10));
    dedup(&place, "b", "", lines(10..20));
    // Had merge not waited, dedup would replace what it wrote.
    let line = "mkfifo in; ($b dedup -q --state a <in >out) & exec 3>in; echo ant >&3; \
                until [ -s out ]; do sleep 0.01; done; $b merge -o a a b 2>notes 3>&- & \
                until [ -s notes ]; do sleep 0.01; done; exec 3>&-; wait; cat notes";
    place.sh(line).success().stdout(contains("in use by another run").and(contains("a: at most 21 keys")));
    assert_eq!(dedup(&place, "a", "", lines(0..21) + "ant\n"), lines(20..21));
}

#[test]
fn forged_numbers_are_no_panic() {
    let place = Place::new();
    let mut growing = ScalableBloomFilter::with_fpr(9, 0.01).unwrap();
    growing.extend(lines(0..100).lines());
    place.write("growing", growing.to_standalone());
    // A state of 2^64 - 1 lines.
    let footer = footer(9, u64::MAX, 0.01, [0, 0, 1]);
    place.write("state", [blocks(60, 0..9).to_standalone(), footer].concat());
    place.run("info state").success().stdout(contains("18,446,744,073,709,551,615"));
    place.json("estimate --as-json state growing");
    place.run("merge -o g state state").success();
}

/// The fields of a JSON value, and of those in it.
fn fields(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(object) => {
            object.iter().flat_map(|(name, value)| [vec![&**name], fields(value)].concat()).collect()
        }
        Value::Array(values) => values.iter().flat_map(fields).collect(),
        _ => Vec::new(),
    }
}

/// Fails if the help of a command does not name all fields.
#[track_caller]
fn are_documented(place: &Place, command: &str, json: &Value) {
    let help = place.prints(format!("help {command}"));
    let (_, help) = help.split_once("Print help").unwrap();
    let words: HashSet<_> =
        help.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect();
    fields(json).iter().for_each(|field| assert!(words.contains(field), "{command}: {field}"));
}

#[test]
fn fields_of_json_are_documented() {
    let place = Place::new();
    place.write("keys", lines(0..9));
    place.write("f", blocks(4, 0..9).to_standalone());
    place.write("g", blocks(2, 0..9).to_standalone());
    for more in ["--keys 10", "--grow"] {
        dedup(&place, "s", more, lines(0..9));
        are_documented(&place, "info", &place.json("info --as-json s"));
        place.remove("s");
    }
    for line in [
        "build -o h keys",
        "build -o h --keys 1000 --fpr 1e-4 keys",
        "check f keys",
        "estimate f g",
        "fold -o h --factor 2 f",
        "info f",
        "merge -o h f g",
        "plan --keys 9 --fpr 1%",
        "plan --keys 1000 --fpr 1e-4",
    ] {
        let command = line.split(' ').next().unwrap();
        are_documented(&place, command, &place.json(format!("{line} --as-json")));
    }
}

#[test]
fn goldens_are_described() {
    let place = Place::new();
    let (mut kinds, mut n) = (HashSet::new(), 0);
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden")).unwrap() {
        let path = entry.unwrap().path();
        let (name, path) = (path.file_name().unwrap().to_str().unwrap(), path.to_str().unwrap());
        let (Some((kind, _)), true) = (name.split_once(['-', '.']), name.ends_with(".bin")) else { continue };
        if kind == "compact" {
            continue; // no file, but a part of one
        }
        let info = place.json(format!("info --as-json {path}"));
        assert_eq!(info["kind"], if kind == "standalone" { "blocked" } else { kind }, "{name}");
        assert_eq!(info["false_positive_rate"].is_number(), !["bank", "index"].contains(&kind), "{info}");
        assert_eq!(info["is_intact"], true, "{info}");
        are_documented(&place, "info", &info);
        kinds.insert(kind.to_owned());
        n += 1;
    }
    assert!(kinds.len() == 7 && n > 25, "{n}: {kinds:?}");
}
