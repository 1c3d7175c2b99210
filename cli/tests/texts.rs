//! JSON Lines, paragraphs and n-grams, beside sets of the texts that were written.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::HashSet;
use std::fs;
use std::ops::Range;

use bloomline::{BloomFilter, hash_key, mix};
use common::{ON_ONE_CORE, Place, footer, stderr, stdout};
use predicates::str::contains;
use serde_json::Value;

/// The words of section 14 of docs/format.md, and their n-grams.
struct Words(Vec<(u32, u32)>);

impl Words {
    fn new() -> Self {
        let format = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/format.md")).unwrap();
        let list = format.split("```").find(|list| list.starts_with("text\n80-A9 ")).unwrap();
        let code = |text| u32::from_str_radix(text, 16).unwrap();
        let ends = list.split_whitespace().skip(1).map(|text| text.split_once('-').unwrap_or((text, text)));
        Self(ends.map(|(first, last)| (code(first), code(last))).collect())
    }

    fn of(&self, text: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for letter in text.chars().map(|letter| letter.to_ascii_lowercase()) {
            let code = u32::from(letter);
            let separates = || self.0.iter().any(|&(first, last)| (first..=last).contains(&code));
            let is_letter = letter.is_ascii_alphanumeric() || letter == '_' || code > 0x7f && !separates();
            let is_alone = matches!(code, 0x2e80..=0xa4cf | 0xf900..=0xfaff | 0x20000..=0x3ffff);
            if is_alone || !is_letter {
                words.push(String::new());
            }
            words.last_mut().unwrap().extend(is_letter.then_some(letter));
            words.extend(is_alone.then(String::new));
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn ngrams(&self, text: &str, n: usize) -> Vec<String> {
        let words = self.of(text);
        match words.len() {
            0 => vec![text.into()],
            n_words => words.windows(n.min(n_words)).map(|words| words.join(" ")).collect(),
        }
    }

    fn share(&self, text: &str, n: usize, seen: &HashSet<String>) -> f64 {
        let ngrams = self.ngrams(text, n);
        ngrams.iter().filter(|ngram| seen.contains(*ngram)).count() as f64 / ngrams.len() as f64
    }

    fn are_new(&self, n: usize, overlap: f64) -> impl FnMut(&str) -> bool {
        let mut seen = HashSet::new();
        move |text| {
            let share = self.share(text, n, &seen);
            let is_new = share == 0.0 || share < overlap;
            seen.extend(self.ngrams(text, n).into_iter().filter(|_| is_new));
            is_new
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 += 1;
        mix(self.0) as usize % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn text(&mut self) -> String {
        let words =
            "The the x_1 été ÉTÉ 漢字 😀 \"q\" \\ / \u{a0} 𝒳 don't \0 \u{20000} \u{7f} \u{2028} null \\u0061";
        let between = [" ", " ", " ", " 1 ", ", ", "\t", "\n", "\n", "\n\n", "\r\n", "\n\n\n", " \n"];
        let parts: Vec<_> = words.split(' ').chain(between).collect();
        // Many are the same, or begin as others do.
        let seed = [self.below(900), self.below(usize::MAX)][self.below(2)];
        let (mut random, is_cut) = (Self(mix(seed as u64)), self.below(4) == 0);
        (0..random.below(60) >> u32::from(is_cut)).map(|_| random.one_of(&parts)).collect()
    }

    /// A letter in JSON, written in one of the ways.
    fn written(&mut self, letter: char) -> String {
        match letter {
            _ if self.below(9) == 0 || letter == '\0' => {
                let unit = |unit: &u16| format!("\\u{unit:04x}").replace('d', self.one_of(&["d", "D"]));
                letter.encode_utf16(&mut [0; 2]).iter().map(unit).collect()
            }
            '\n' | '\r' | '\t' | '"' | '\\' => letter.escape_default().collect(),
            _ => letter.into(),
        }
    }
}

/// A line of JSON, whose field `t` has these letters.
struct Document {
    before: String,
    letters: Vec<(char, String)>,
    after: String,
}

impl Document {
    fn new(text: &str, is_text: bool, random: &mut Random) -> Self {
        let name = random.one_of(&[
            r#""id" :7, "é":"\ud83d\ude00 \" }", "t":"#,
            r#""t":"another", "\u0074": "#,
            "\"o\":{\"t\":\"inner\",\"x\":[[],{}]} ,\t\"n\":-1.50E+2,\"t\" :",
        ]);
        let end = random.one_of(&["}", " }\r", r#", "z":"t"}"#, r#","a":[1,"t"]}"#]);
        let quote = if is_text { "\"" } else { "" };
        let letter = |letter| (letter, if is_text { random.written(letter) } else { letter.into() });
        let letters = text.chars().map(letter).collect();
        let document = Self { before: format!("{{{name}{quote}"), letters, after: format!("{quote}{end}\n") };
        let json: Value = serde_json::from_str(&document.with(&document.letters)).unwrap();
        assert!(!is_text || json["t"] == text, "{json}");
        document
    }

    fn text(&self) -> String {
        self.letters.iter().map(|(letter, _)| letter).collect()
    }

    /// Its line with some of its letters.
    fn with(&self, letters: &[(char, String)]) -> String {
        let written = letters.iter().map(|(_, written)| written.as_str());
        // In place of a number.
        let written = written.chain((letters.is_empty() && !self.before.ends_with('"')).then_some("\"\""));
        [&*self.before].into_iter().chain(written).chain([&*self.after]).collect()
    }
}

fn documents(n: usize, seed: u64) -> Vec<Document> {
    let mut random = Random(mix(seed));
    let values = ["1e5", "100000", "-0", "0", "1.0", "true", "false"];
    let document = |_| match random.below(12) {
        0 => Document::new(random.one_of(&values), false, &mut random),
        _ => Document::new(&random.text(), true, &mut random),
    };
    (0..n).map(document).collect()
}

fn text<'a>(documents: impl IntoIterator<Item = &'a Document>) -> String {
    documents.into_iter().map(|it| it.with(&it.letters)).collect()
}

/// Prints these bytes, whatever number of threads reads, and from a pipe too.
#[track_caller]
fn prints(place: &Place, command: &str, files: &str, expected: &str) {
    for program in ["$b", ON_ONE_CORE] {
        for line in [format!("{program} {command} {files}"), format!("cat {files} | {program} {command}")] {
            let found = String::from_utf8(place.shell(&line).output().unwrap().stdout).unwrap();
            let other = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
            assert!(found == expected, "{line}: {other:?}");
        }
    }
}

/// Writes documents to three files, and returns their names.
fn write(place: &Place, documents: &[Document]) -> &'static str {
    let parts = documents.chunks(documents.len().div_ceil(3));
    parts.zip(["a", "b", "c"]).for_each(|(part, name)| _ = place.write(name, text(part)));
    "a b c"
}

/// What `dedup --paragraphs` prints.
fn kept(documents: &[Document], by: &str, keeps_empty: bool, mut is_new: impl FnMut(&str) -> bool) -> String {
    let mut printed = String::new();
    for document in documents {
        let (mut start, mut n_separator, mut letters, mut has_some) = (0, 0, Vec::new(), false);
        for paragraph in document.text().split(by) {
            let end = start + paragraph.chars().count();
            let is_blank = paragraph.trim_ascii().is_empty();
            if is_blank || is_new(paragraph.trim_matches(['\r', '\n'])) {
                has_some |= !is_blank;
                letters.extend_from_slice(&document.letters[start - n_separator..end]);
                n_separator = by.len();
            }
            start = end + by.len();
        }
        printed += &if has_some || keeps_empty { document.with(&letters) } else { String::new() };
    }
    printed
}

#[test]
fn new_texts_and_paragraphs_are_printed() {
    let (place, documents, words) = (Place::new(), documents(4000, 2), Words::new());
    let (files, mut seen) = (write(&place, &documents), HashSet::new());
    let once = text(documents.iter().filter(|it| seen.insert(it.text())));
    prints(&place, "dedup -q --json t", files, &once);
    for (separator, options, least) in [
        ("\n", "", 0),
        ("\n\n", r"--separator '\n\n' --keep-empty", 0),
        (", ", "--separator ', '", 0),
        ("\n", "--keep-empty --min-words 3", 3),
    ] {
        let mut seen = HashSet::new();
        let is_new = |paragraph: &str| words.of(paragraph).len() < least || seen.insert(paragraph.to_owned());
        let expected = kept(&documents, separator, options.contains("keep"), is_new);
        prints(&place, &format!("dedup -q --json t --paragraphs {options}"), files, &expected);
    }
}

#[test]
fn texts_without_new_ngrams_are_dropped() {
    let (place, documents, words) = (Place::new(), documents(3000, 3), Words::new());
    let files = write(&place, &documents);
    for (n, share, overlap) in [(1, "100%", 1.0), (2, "0.2", 0.2), (5, "80%", 0.8), (13, "1e-9", 1e-9)] {
        let mut is_new = words.are_new(n, overlap);
        let expected = text(documents.iter().filter(|it| is_new(&it.text())));
        let dedup = format!("dedup -q --json t --ngrams {n} --overlap {share}");
        prints(&place, &dedup, files, &expected);
        let expected = kept(&documents, "\n", false, words.are_new(n, overlap));
        prints(&place, &format!("{dedup} --paragraphs"), files, &expected);
    }
    // Of lines too, in which bytes that are not UTF-8 are between words.
    let input = b"a b\xffc\nB C\nb.c d\nA\n\n.\n\n".as_slice();
    place.feed("dedup -q --ngrams 2", input).success().stdout(b"a b\xffc\nb.c d\nA\n\n.\n".as_slice());
}

#[test]
fn a_filter_of_ngrams() {
    let (place, documents, words) = (Place::new(), documents(2001, 4), Words::new());
    let (first, second) = documents.split_at(667);
    write(&place, &documents);
    for (n, overlap) in [(2, 0.5), (5, 0.999)] {
        let seen: HashSet<_> = first.iter().flat_map(|it| words.ngrams(&it.text(), n)).collect();
        place.run(format!("build -q -o f --fpr 1e-9 --json t --ngrams {n} a")).success();
        let filter = BloomFilter::from_standalone(&place.read("f")).unwrap();
        assert_eq!(filter.seed(), hash_key(format!("--ngrams {n}").as_bytes(), 0));
        assert!(seen.iter().all(|ngram| filter.contains(ngram.as_str())));
        let n_keys = filter.estimated_keys().unwrap().keys as f64;
        assert!((n_keys / seen.len() as f64 - 1.0).abs() < 0.02, "{n_keys}");
        let is_seen = |it: &&Document| words.share(&it.text(), n, &seen) >= overlap;
        let check = format!("check --json t --ngrams {n} --overlap {overlap}");
        prints(&place, &format!("{check} f"), "b c", &text(second.iter().filter(is_seen)));
        prints(&place, &format!("{check} -v f"), "b c", &text(second.iter().filter(|it| !is_seen(it))));
        // Filters of other keys.
        let text = format!("f: its keys are n-grams of {n} words (give --ngrams {n}, or build it again)");
        for options in ["--json t --ngrams 3", "--json t", "", "--integers"] {
            place.refuses(format!("check {options} f second"), &[&text]);
            place.refuses(format!("build -o g --like f {options} b"), &[&text]);
        }
    }
    place.run("build -q -o f --json t a").success();
    place.refuses("check --ngrams 3 f a", &["f: its keys are no n-grams (omit --ngrams, or build"]);
}

#[test]
fn spans_are_of_the_parts_that_were_seen() {
    let (place, documents) = (Place::new(), documents(2000, 5));
    let (files, mut seen) = (write(&place, &documents), HashSet::new());
    let mut expected = String::new();
    for document in &documents {
        let (mut chars, mut bytes, mut start) = (Vec::new(), Vec::new(), [0, 0]);
        for paragraph in document.text().split_inclusive('\n') {
            let end = [start[0] + paragraph.chars().count(), start[1] + paragraph.len()];
            let key = paragraph.trim_matches(['\r', '\n']);
            if !key.trim_ascii().is_empty() && !seen.insert(key.to_owned()) {
                chars.push([start[0], end[0], 1]);
                bytes.push([start[1], end[1]]);
            }
            start = end;
        }
        let id = &serde_json::from_str::<Value>(&text([document])).unwrap()["id"];
        let record = format!("{{\"id\":{id},\"attributes\":{{\"seen\":{chars:?}}},\"bytes\":{bytes:?}}}\n");
        expected += &record.replace(", ", ",");
    }
    prints(&place, "dedup -q --json t --paragraphs --spans", files, &expected);
    place.feed("build -q -o f --ngrams 1 --json t", r#"{"t":"a"}"#).success();
    let line = "{\"t\":\"a é\",\"id\":\"x\"}\n";
    for (overlap, chars, bytes) in [("50%", "[0,3,0.5]", "[0,4]"), ("51%", "", "")] {
        let spans = format!("{{\"id\":\"x\",\"attributes\":{{\"seen\":[{chars}]}},\"bytes\":[{bytes}]}}\n");
        let check = format!("check --spans --json t --ngrams 1 --overlap {overlap} f");
        place.feed(check, line).stdout(spans);
    }
    // Each line has a record, so that records and lines can be read side by side.
    let skipped = place.feed("dedup -q --spans --skip-short --json t", format!("{line}\n{line}")).success();
    assert_eq!(stdout(&skipped).lines().count(), 3);
    place.refuses("dedup --spans --json t --integers", &["--integers"]);
}

#[test]
fn a_field_has_a_name_or_a_path() {
    let place = Place::new();
    for (field, line, key) in [
        ("t", r#"{"t":"a","t":"b"}"#, Some("b")),
        ("t", "\u{feff}{\"t\":\"a\"}", Some("a")),
        ("u.t", r#"{"u":{"t":"a"},"t":"b","u.t":"c"}"#, Some("a")),
        ("u.t", r#"{"u":{"t":"a"},"u":1}"#, None),
        ("u.1", r#"{"u":[3,4.50]}"#, Some("4.50")),
        ("/u/t", r#"{"u" : {"t" : true }}"#, Some("true")),
        ("/u.t", r#"{"u":{"t":"a"},"u.t":"b"}"#, Some("b")),
        ("/~0~1x~01/", r#"{"~/x~1":{"":"a"}}"#, Some("a")),
        ("é x", r#"{"\u00e9 x":""}"#, Some("")),
        ("t", r#"{"t":null}"#, None),
    ] {
        let build = place.feed(format!("build -o f --json '{field}' --keys 9"), format!("{line}\r\n"));
        let said = stderr(&build);
        assert!(said.contains(": line 1 has ") == key.is_none() && !said.contains("CR LF"), "{line} {said}");
        let filter = || BloomFilter::from_standalone(&place.read("f")).unwrap();
        assert!(key.is_none_or(|key| filter().contains(key)), "{field} {line}");
    }
    for field in ["", "a..b", ".", "/~", "/~2"] {
        place.refuses(format!("dedup --json '{field}'"), &["--json"]);
    }
    place.feed("dedup -q --integers --json n", "{\"n\":\"07\"}\n{\"n\":7}\n").stdout("{\"n\":\"07\"}\n");
}

#[test]
fn a_state_records_the_rule_of_texts() {
    let place = Place::new();
    let line = "{\"t\":\"a b\",\"it's\":{\"x.y\":\"é\"},\"-t\":1}\n";
    let rules = [
        ("--json t --separator '\\n' --paragraphs", "--json t --paragraphs"),
        (r"--json t --separator ' \n\\' --paragraphs", r#"--json t --paragraphs --separator=" \\n\\\\""#),
        ("--min-words 1 --ngrams 13 --json /t", "--json t --ngrams 13 --min-words 1"),
        ("--json /-t --integers", "--integers --json=-t"),
        ("--json \"/it's/x.y\"", "--json \"/it's/x.y\""),
        ("", "whole lines as keys"),
    ];
    for (options, recorded) in rules {
        place.feed(format!("dedup -q --keys 9 --state s {options}"), line).success().stdout(line);
        place.sh("rm -f u; $b merge -q -o u s s && $b grow -q u").success();
        for state in ["s", "u"] {
            assert_eq!(place.json(format!("info --as-json {state}"))["key_options"], recorded);
            place.feed(format!("dedup -q --state {state} {options}"), line).success().stdout("");
            for (others, theirs) in rules.iter().filter(|it| it.1 != recorded) {
                let text = format!("made with {recorded}, not with {theirs} (give its options");
                place.refuses(format!("dedup --state {state} {others}"), &[&text]);
            }
        }
        let end = place.read("s").len() - 8;
        for at in end - 56 - recorded.len() * usize::from(!options.is_empty())..end {
            place.damage("s", at, "damaged");
            place.refuses(format!("dedup --state damaged {options}"), &["damaged: "]);
        }
        place.remove("s");
    }
    // With their checksums, texts that no bloomline writes, unless they are only quoted in another way.
    let filter = BloomFilter::with_fpr(9, 1e-6).unwrap().to_standalone();
    for text in ["--json t", "--json  t", "--json /t", "--column 1", "--json t --raw", "--ngrams 0", "x"] {
        let rule = [xxhash_rust::xxh64::xxh64(text.as_bytes(), 0), text.len() as u64, 0x4102];
        place.write("s", [&filter, text.as_bytes(), &footer(9, 0, 1e-6, rule)].concat());
        let said = stderr(&place.run("dedup -q --json t --state s"));
        let is_rule = ["--json t", "--json  t", "--json /t"].contains(&text);
        assert!(said.contains("s: the footer holds values") != is_rule, "{text}: {said}");
    }
}

fn different(range: Range<u64>) -> String {
    let words = |seed: u64| (0..1 + mix(seed) % 5).map(move |i| format!("w{seed}x{i} ")).collect::<String>();
    range.map(|i| format!("{{\"t\":\"{}\\n{}\"}}\n", words(2 * i), words(2 * i + 1))).collect()
}

/// Whatever is dropped of these is new.
#[test]
fn new_texts_that_are_dropped_are_not_called_repeated_ones() {
    let (place, mut n_runs, mut n_too_few) = (Place::new(), 0, 0);
    for i in 0..60 {
        let fpr = ["5%", "3%", "1e-2"][i as usize % 3];
        let options =
            ["--paragraphs --ngrams 2", "--ngrams 1 --overlap 20% --min-words 6"][i as usize / 3 % 2];
        let dedup = format!("dedup --json t --fpr {fpr} {options} --keys 5e3");
        let said = stderr(&place.feed(dedup, different(1000 * i..1000 * i + 1000)).success());
        let number = |after: &str| {
            let number = said.split(after).nth(1).unwrap().split(' ').next().unwrap();
            number.replace(',', "").parse::<u64>().unwrap()
        };
        let n_dropped = number("printed, ");
        let is_too_few = || said.contains("likely none") || number("at most about ") < n_dropped;
        n_runs += i32::from(n_dropped > 0);
        n_too_few += i32::from(n_dropped > 0 && is_too_few());
    }
    assert!(n_runs > 30 && n_too_few * 20 < n_runs, "{n_too_few} of {n_runs}");
}

#[test]
fn a_full_filter_stops_at_a_whole_document() {
    let (place, many) = (Place::new(), different(0..3000));
    for options in ["--paragraphs", "--ngrams 2", "--ngrams 3 --paragraphs"] {
        let dedup = format!("dedup -q --json t {options} --state s");
        let full = place.feed(format!("{dedup} --keys 1000"), &many[..]).code(2);
        let first = stdout(&full.stderr(contains("more than 1,0")));
        assert!(many.starts_with(&first) && first.len() > many.len() / 20, "{}", first.len());
        place.run("grow -q s").success();
        assert!(first + &stdout(&place.feed(dedup, &many[..]).success()) == many, "{options}");
        place.remove("s");
    }
}

#[test]
fn a_plan_and_an_index_of_texts() {
    let (place, documents, words) = (Place::new(), documents(900, 6), Words::new());
    let files = write(&place, &documents);
    let ngrams: Vec<_> = documents.iter().map(|it| words.ngrams(&it.text(), 3)).collect();
    let n_distinct = ngrams.iter().flatten().collect::<HashSet<_>>().len();
    let (n_bytes, n_keys) = (text(&documents).len(), ngrams.iter().map(Vec::len).sum::<usize>());
    let per_gb = (n_distinct as f64 * 1e9 / n_bytes as f64) as usize;
    let plan = place.json(format!("plan --as-json --json t --ngrams 3 {files}"));
    let names = ["bytes", "texts", "keys", "distinct_keys", "keys_per_gb"];
    let counts = names.map(|name| plan[name].as_u64().unwrap() as usize);
    assert_eq!(counts, [n_bytes, 900, n_keys, n_distinct, per_gb]);
    for rate in plan["rates"].as_array().unwrap() {
        let fpr = rate["false_positive_rate"].as_f64().unwrap();
        let mean = ngrams.iter().map(|ngrams| fpr.powi(ngrams.len() as i32)).sum::<f64>() / 900.0;
        assert!((rate["dropped_if_new"].as_f64().unwrap() / mean - 1.0).abs() < 1e-6, "{rate}");
    }
    place.run(format!("index -q -o texts --fpr 1e-6 --json t {files}")).success();
    place.run(format!("index -q -o ngrams --fpr 1e-6 --json t --ngrams 3 {files}")).success();
    let texts: Vec<_> = documents.iter().map(Document::text).collect();
    for (text, of_text) in texts.iter().zip(&ngrams).filter(|(text, _)| !text.contains('\0')).step_by(9) {
        let key = shlex::try_quote(text).unwrap();
        let finds = |index: &str, has: &dyn Fn(Range<usize>) -> bool| {
            let parts = ["a\n", "b\n", "c\n"].into_iter().zip([0..300, 300..600, 600..900]);
            let names: String = parts.filter(|(_, part)| has(part.clone())).map(|(name, _)| name).collect();
            assert_eq!(place.prints(format!("find {index} -- {key}")), names, "{text}");
        };
        finds("texts", &|part| texts[part].contains(text));
        let has = |part: Range<usize>, ngram| ngrams[part].iter().any(|ngrams| ngrams.contains(ngram));
        if words.of(text).len() < 3 {
            // It would be found only where it is the whole text.
            place.refuses(format!("find ngrams -- {key}"), &["and keys have 3 or more (give a longer text)"]);
        } else {
            finds("ngrams", &|part| of_text.iter().all(|ngram| has(part.clone(), ngram)));
        }
    }
}
