//! Random steps on three states of `dedup`, and after each step what a model knows of them.
//!
//! `BLOOMLINE_STEPS` is the number of steps, `BLOOMLINE_SEED` selects others.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::{BTreeMap, HashSet};
use std::env;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, hash_key, mix};
use flate2::read::GzDecoder;

use common::{Place, gzip, program};

const STATES: [&str; 3] = ["s0", "s1", "s2"];
/// Lines are those of ids below.
const IDS: u64 = 3000;
/// With `--length`, and without what ends a line.
const LENGTH: usize = 24;

/// Options of keys; what they are called in an error.
const RULES: [(&str, &str); 8] = [
    ("", "whole lines as keys"),
    ("--column 1", "--column 1"),
    ("--column 2 --delimiter ,", "--column 2 --delimiter ','"),
    ("--crlf", "--crlf"),
    ("-0", "--null"),
    ("--column 1 --integers", "--integers --column 1"),
    ("--length 24", "--length 24"),
    ("--column 2 --delimiter , --crlf", "--crlf --column 2 --delimiter ','"),
];
const NULL: usize = 4;
const FIXED_LENGTH: usize = 6;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A line with its end.
fn line_of(id: u64, rule: usize, has_cr: bool) -> Vec<u8> {
    let text = format!("{id:06}\tuser{:08x},{:04}", mix(id) as u32, id / 2);
    assert_eq!(text.len(), LENGTH);
    let end = match rule {
        FIXED_LENGTH => "",
        NULL => "\0",
        _ if has_cr => "\r\n",
        _ => "\n",
    };
    (text + end).into_bytes()
}

/// The hash of the line's key, as the rule has it; `None` if the line has none.
fn key_of(line: &[u8], rule: usize) -> Option<u64> {
    let mut text = if rule == FIXED_LENGTH { line } else { &line[..line.len() - 1] };
    if rule == 3 || rule == 7 {
        text = text.strip_suffix(b"\r").unwrap_or(text);
    }
    let text = match rule {
        1 | 5 => text.split(|byte| *byte == b'\t').next()?,
        2 | 7 => text.split(|byte| *byte == b',').nth(1)?,
        _ => text,
    };
    if rule == 5 {
        let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        return Some(hash_key(number, 0));
    }
    Some(hash_key(text, 0))
}

/// Whole lines; a kill can leave the beginning of another.
fn split(bytes: &[u8], rule: usize) -> Vec<&[u8]> {
    if rule == FIXED_LENGTH {
        return bytes.chunks_exact(LENGTH).collect();
    }
    let end = if rule == NULL { 0 } else { b'\n' };
    bytes.split_inclusive(|byte| *byte == end).filter(|line| line.last() == Some(&end)).collect()
}

enum Filter {
    Fixed(BloomFilter),
    Growing(ScalableBloomFilter),
}

/// A state, read by section 11 of docs/format.md.
struct State {
    filter: Filter,
    capacity: u64,
    keys: u64,
    fpr: f64,
}

impl State {
    fn of(bytes: &[u8]) -> Self {
        let (filter, footer) = bytes.split_last_chunk::<64>().expect("a footer");
        assert!(footer.ends_with(b"\x89bldup\r\n"), "not a state");
        let filter = match BloomFilter::from_standalone(filter) {
            Ok(filter) => Filter::Fixed(filter),
            Err(_) => Filter::Growing(ScalableBloomFilter::from_standalone(filter).expect("a filter")),
        };
        let word = |at: usize| u64::from_le_bytes(footer[at..][..8].try_into().unwrap());
        Self { filter, capacity: word(0), keys: word(8), fpr: f64::from_bits(word(16)) }
    }

    fn contains(&self, key: u64) -> bool {
        match &self.filter {
            Filter::Fixed(filter) => filter.contains_hash(key),
            Filter::Growing(filter) => filter.contains_hash(key),
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.filter, Filter::Fixed(_))
    }
}

/// What is known of a state's file.
#[derive(Clone, Default)]
struct Model {
    bytes: Vec<u8>,
    rule: Option<usize>,
    /// Exactly the keys that it must have.
    keys: HashSet<u64>,
    /// Whether it may drop new lines.
    is_lossy: bool,
}

struct Source {
    lines: Vec<Vec<u8>>,
    /// Whether they are read at all, to the end.
    is_whole: bool,
}

/// Input files, and the arguments that name them.
struct Input {
    arguments: String,
    stdin: bool,
    sources: Vec<Source>,
}

impl Input {
    fn fails(&self, rule: usize) -> bool {
        let has_no_key = |line: &Vec<u8>| key_of(line, rule).is_none();
        self.sources.iter().any(|source| !source.is_whole || source.lines.iter().any(has_no_key))
    }

    fn n_unread(&self) -> usize {
        self.sources.iter().filter(|source| !source.is_whole).count()
    }
}

/// A run that has ended.
struct Done {
    status: Option<i32>,
    out: Vec<u8>,
    error: String,
    dropped: Option<Vec<u8>>,
    arguments: String,
}

struct Running {
    child: Child,
    number: usize,
    arguments: String,
}

/// The keys of the lines that a run has printed.
struct Walk {
    new: HashSet<u64>,
    /// Whether it has taken all lines.
    is_whole: bool,
    n_lost: u64,
}

/// How a run of dedup is limited.
#[derive(Clone, Copy, PartialEq)]
enum Limit {
    None,
    /// The blocks that a file may have, and whether standard output is one.
    Disk(u64, bool),

    /// Standard input does not end before the run is killed.
    Open,
}

struct Steps {
    place: Place,
    random: Random,
    models: [Option<Model>; 3],
    /// Whether a kill may have left files beside a state.
    is_dirty: [bool; 3],
    cursor: u64,
    n_excused: u64,
    /// How often each outcome came.
    counts: BTreeMap<&'static str, u64>,
    step: u64,
}

#[test]
fn random_steps() {
    let number = |name, default| env::var(name).map_or(default, |text| text.parse().expect(name));
    let (n_steps, seed) = (number("BLOOMLINE_STEPS", 200), number("BLOOMLINE_SEED", 1));
    let mut steps = Steps {
        place: Place::new(),
        random: Random(mix(seed)),
        models: [None, None, None],
        is_dirty: [false; 3],
        cursor: 0,
        n_excused: 0,
        counts: BTreeMap::new(),
        step: 0,
    };
    symlink(".", steps.place.path("here")).unwrap();
    STATES.iter().for_each(|name| symlink(name, steps.place.path(&format!("link-{name}"))).unwrap());
    for step in 0..n_steps {
        steps.step = step;
        steps.step();
        steps.check_files();
    }
    println!("{:?}, {} excused", steps.counts, steps.n_excused);
    // The rate allows for some.
    assert!(steps.n_excused <= 1 + n_steps / 1000, "{} lines lost", steps.n_excused);
    // Which kills come in time is chance.
    if n_steps >= 1000 {
        for outcome in ["printed", "refused rule", "full", "killed", "saved by a kill", "grown", "merged"] {
            assert!(steps.counts.contains_key(outcome), "no {outcome}: {:?}", steps.counts);
        }
    }
}

impl Steps {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn step(&mut self) {
        let i = self.random.below(3) as usize;
        match self.random.below(40) {
            0 => self.remove(i),
            1..4 => self.grow(i),
            4..8 => self.merge(i),
            8..12 => self.two(i),
            12 => self.race_for_a_name(),
            13..18 => self.dedup(i, true, Limit::None),
            18 => {
                let limit = Limit::Disk(1 + self.random.below(12), self.random.one_in(2));
                self.dedup(i, false, limit);
            }

            _ => self.dedup(i, false, Limit::None),
        }
    }

    /// The state's name, or another one that leads to it.
    fn name(&mut self, i: usize) -> String {
        let name = STATES[i];
        match self.random.below(8) {
            0 => format!("./{name}"),
            1 => format!("link-{name}"),
            2 => format!("here/{name}"),
            _ => name.into(),
        }
    }

    fn remove(&mut self, i: usize) {
        let _ = fs::remove_file(self.place.path(STATES[i]));
        self.models[i] = None;
    }

    /// No temporary file and no lock is left after a run that was not killed.
    fn check_files(&mut self) {
        for name in self.place.files() {
            if name.starts_with('.') {
                let owner = (0..3).find(|&i| name.starts_with(&format!(".{}", STATES[i])));
                assert!(owner.is_some_and(|i| self.is_dirty[i]), "step {}: {name} is left", self.step);
            }
        }
        for (name, model) in STATES.iter().zip(&self.models) {
            let found = fs::read(self.place.path(name)).ok();
            let is_known = found.as_ref() == model.as_ref().map(|model| &model.bytes);
            assert!(is_known, "step {}: {name} has changed", self.step);
        }
    }

    fn lines(&mut self, rule: usize) -> Vec<Vec<u8>> {
        let n = self.random.one_of(&[0, 1, 10, 50, 50, 100, 300]);
        let first = match self.random.below(4) {
            0 => self.random.below(IDS),
            1 => self.cursor.saturating_sub(n / 2),
            _ => self.cursor,
        };
        self.cursor = (first + n) % IDS;
        let stride = self.random.one_of(&[1, 1, 1, 7]);
        let crs = self.random.one_in(4);
        let mut lines: Vec<_> =
            (0..n).map(|j| line_of((first + j * stride) % IDS, rule, crs && j % 3 == 0)).collect();
        if n > 0 && (rule == 5 || rule == 2) && self.random.one_in(8) {
            let at = self.random.below(n) as usize;
            lines[at] = b"no number, nor column 2\n"[..].to_vec();
            if rule == 2 {
                lines[at] = b"no column\n".to_vec();
            }
        }
        lines
    }

    /// Writes files; `number` keeps files of runs at the same time apart.
    fn input(&mut self, rule: usize, number: usize) -> Input {
        let n_files = self.random.one_of(&[1, 1, 1, 2, 3]);
        let (mut sources, mut names) = (Vec::new(), Vec::new());
        for file in 0..n_files {
            let name = format!("in{number}{file}");
            let _ = fs::remove_file(self.place.path(&name));
            let lines = self.lines(rule);
            let mut text = lines.concat();
            let mut is_whole = true;
            // The last line may lack its end.
            if rule != FIXED_LENGTH && text.len() > 1 && self.random.one_in(4) {
                text.pop();
            }
            let kind = self.random.below(24);
            let source = match kind {
                0 | 1 => {
                    is_whole = false;
                    if kind == 1 {
                        names.push(".".to_owned());
                    }
                    Vec::new()
                }
                2..7 => {
                    let mut zipped = gzip(&text);
                    if kind == 2 {
                        let at = zipped.len() - 1 - self.random.below(8) as usize;
                        zipped[at] ^= 1;
                    } else if kind == 3 {
                        zipped.truncate(10 + self.random.below(zipped.len() as u64 - 10) as usize);
                    }
                    is_whole = kind > 3;
                    let mut read = Vec::new();
                    let is_read = GzDecoder::new(&zipped[..]).read_to_end(&mut read).is_ok();
                    assert_eq!(is_read, is_whole);
                    let n_lines = if is_whole { lines.len() } else { split(&read, rule).len() };
                    self.place.write(&name, zipped);
                    lines[..n_lines].to_vec()
                }
                _ => {
                    self.place.write(&name, &text);
                    lines
                }
            };
            if kind != 1 {
                names.push(name);
            }
            sources.push(Source { lines: source, is_whole });
        }
        let list = format!("list{number}");
        let stdin = names.len() == 1 && names[0].starts_with("in") && sources[0].is_whole;
        if stdin && self.random.one_in(3) {
            return Input { arguments: String::new(), stdin: true, sources };
        }
        let arguments = if self.random.one_in(5) {
            self.place.write(&list, names.iter().flat_map(|name| [name, "\0"]).collect::<String>());
            format!("--files0-from {list}")
        } else {
            names.join(" ")
        };
        Input { arguments, stdin: false, sources }
    }

    fn start(&mut self, number: usize, arguments: String, stdin: bool, limit: Limit) -> Running {
        let [out, error, code] =
            ["out", "err", "code"].map(|name| self.place.path(&format!("{name}{number}")));
        let _ = fs::remove_file(code);
        let script = match limit {
            Limit::None | Limit::Open => format!("exec $b {arguments}"),
            Limit::Disk(blocks, true) => format!("ulimit -f {blocks}; exec $b {arguments}"),
            // The file that standard output goes to has no limit.
            Limit::Disk(blocks, false) => {
                format!("{{ (ulimit -f {blocks}; exec $b {arguments}); echo $? >code{number}; }} | cat")
            }
        };
        let mut command = Command::new("sh");
        command.current_dir(self.place.directory()).env("b", program()).args(["-c", &script]);
        command.stdout(File::create(out).unwrap()).stderr(File::create(error).unwrap());
        let input = self.place.path(&format!("in{number}0"));
        command.stdin(if stdin { File::open(input).unwrap().into() } else { Stdio::null() });
        if limit == Limit::Open {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().expect("started");
        if let Some(pipe) = &mut child.stdin {
            let _ = pipe.write_all(&self.place.read(&format!("in{number}0")));
        }
        Running { child, number, arguments }
    }

    fn wait(&mut self, mut running: Running) -> Done {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "hangs: {}", running.arguments);
            sleep(Duration::from_micros(500));
        };
        let Running { number, arguments, .. } = running;
        let status = match fs::read_to_string(self.place.path(&format!("code{number}"))) {
            Ok(text) => Some(text.trim().parse().expect("a status")),
            Err(_) => status.code().or_else(|| {
                assert!([2, 9, 15].contains(&status.signal().unwrap()), "{arguments}: {status}");
                None
            }),
        };
        let done = Done {
            status,
            out: self.place.read(&format!("out{number}")),
            error: self.place.text(&format!("err{number}")),
            dropped: fs::read(self.place.path("dropped0")).ok().filter(|_| arguments.contains("--dropped")),
            arguments,
        };
        let context = self.context(&done);
        assert!(done.error.lines().all(|line| line.starts_with("bloomline: ")), "{context}");
        match done.status {
            None | Some(0) => (),
            Some(2) => assert!(!done.error.is_empty(), "{context}"),
            other => panic!("status {other:?}: {context}"),
        }
        done
    }

    fn run(&mut self, arguments: impl Into<String>) -> Done {
        let running = self.start(0, arguments.into(), false, Limit::None);
        self.wait(running)
    }

    /// Runs what must not change a file, and says why with one line.
    fn refused(&mut self, arguments: &str, text: &str) {
        let done = self.run(arguments);
        let context = self.context(&done);
        assert!(done.status == Some(2) && done.out.is_empty(), "{context}");
        assert!(done.error.lines().count() == 1 && done.error.contains(text), "{text}: {context}");
        self.check_files();
    }

    fn context(&self, done: &Done) -> String {
        format!("step {}: bloomline {}: {:?}: {}", self.step, done.arguments, done.status, done.error)
    }

    /// Random options of dedup, and whether they must be refused.
    fn options(&mut self, i: usize) -> (usize, String, bool, bool) {
        let state = self.models[i].as_ref().map(|model| State::of(&model.bytes));
        let recorded = self.models[i].as_ref().and_then(|model| model.rule);
        let is_same = self.random.below(8) > 0;
        let rule = match recorded {
            Some(rule) if is_same => rule,
            _ => self.random.below(RULES.len() as u64) as usize,
        };
        let mut is_refused = recorded.is_some_and(|recorded| recorded != rule);
        let mut options = RULES[rule].0.to_owned();
        if state.is_none() || self.random.one_in(5) {
            let keys = self.random.one_of(&[50, 50, 300, 300, 3000, 40_000]);
            let has_keys = !self.random.one_in(60);
            if has_keys {
                options += &format!(" --keys {keys}");
            }
            is_refused |= has_keys && state.as_ref().is_some_and(|state| state.capacity != keys);
        }
        let mut is_lossy = self.models[i].as_ref().is_some_and(|model| model.is_lossy);
        if self.random.one_in(5) {
            let fpr = self.random.one_of(&["1e-6", "1e-6", "0.0001%", "1e-3", "0.2"]);
            let number = match fpr {
                "0.0001%" => 1e-6,
                fpr => fpr.parse().unwrap(),
            };
            options += &format!(" --fpr {fpr}");
            is_lossy |= number > 1e-5;
            is_refused |= state.as_ref().is_some_and(|state| (state.fpr / number - 1.0).abs() > 1e-3);
        }
        if self.random.one_in(if state.is_none() { 2 } else { 10 }) {
            options += " --grow";
            is_refused |= state.as_ref().is_some_and(State::is_fixed);
        }
        if self.random.one_in(12) {
            options += " --allow-overfull";
        }
        if self.random.one_in(2) {
            options += " -q";
        }
        (rule, options, is_refused, is_lossy)
    }

    fn dedup(&mut self, i: usize, is_killed: bool, limit: Limit) {
        let (rule, mut options, is_refused, is_lossy) = self.options(i);
        let mut input = self.input(rule, 0);
        let limit = if is_killed && self.random.one_in(2) { Limit::Open } else { limit };
        while limit == Limit::Open && !input.stdin {
            input = self.input(rule, 0);
        }
        if is_lossy || self.random.one_in(4) {
            options += " --dropped dropped0";
        }
        if self.random.one_in(6) {
            options += " --summary summary";
        }
        if self.random.one_in(6) {
            options += " --no-wait";
        }
        let overfull = options.contains("--allow-overfull");
        let arguments = format!("dedup --state {} {options} {}", self.name(i), input.arguments);
        let mut running = self.start(0, arguments, input.stdin, limit);
        if is_killed {
            // Otherwise most kills come before anything is printed.
            let out = self.place.path("out0");
            for _ in 0..if limit == Limit::Open { 100 } else { 0 } {
                if fs::metadata(&out).unwrap().len() > 0 || running.child.try_wait().unwrap().is_some() {
                    break;
                }
                sleep(Duration::from_millis(1));
            }
            self.kill(&mut running, i);
            running.child.stdin = None;
        }
        let done = self.wait(running);
        let context = self.context(&done);
        if is_refused && done.status.is_some() {
            assert!(done.status == Some(2) && done.out.is_empty(), "{context}");
            assert_eq!(done.error.lines().count(), 1, "{context}");
            let recorded = self.models[i].as_ref().and_then(|model| model.rule).filter(|it| *it != rule);
            // Keys or the rate may be wrong as well.
            if let Some(recorded) = recorded.filter(|_| done.error.contains("made with")) {
                let named = format!("made with {}, not with {} (", RULES[recorded].1, RULES[rule].1);
                assert!(done.error.contains(&named), "{context}, not {named}");
                self.count("refused rule");
            }
        }
        if is_refused {
            return;
        }
        if done.status == Some(0) {
            self.is_dirty[i] = false;
        }

        if limit != Limit::None && done.status == Some(2) && done.error.contains("File too large") {
            self.count("disk full");
        }
        self.settle(i, rule, &[(&input, &done)], is_lossy, overfull, false);
        if done.status == Some(0) && done.arguments.contains("--summary") {
            let json: serde_json::Value = serde_json::from_slice(&self.place.read("summary")).expect("JSON");
            let n_lines = input.sources.iter().map(|source| source.lines.len()).sum::<usize>();
            let n_printed = split(&done.out, rule).len();
            let expected = [n_lines, n_printed, n_lines - n_printed].map(serde_json::Value::from);
            let found = ["lines", "printed", "dropped"].map(|name| json[name].clone());
            assert_eq!(found, expected, "{context}");
        }
    }

    /// Takes the state as it is, where the model cannot know what was printed, and forgets it.
    fn learn(&mut self, i: usize, rule: usize) {
        let bytes = fs::read(self.place.path(STATES[i])).unwrap_or_default();
        let before = self.models[i].clone();
        self.models[i] = (!bytes.is_empty()).then(|| {
            let mut model = before.unwrap_or_default();
            if model.bytes != bytes {
                model.rule = Some(rule);
                model.is_lossy |= State::of(&bytes).fpr > 1e-5;
            }
            Model { bytes, ..model }
        });
    }

    fn kill(&mut self, running: &mut Running, i: usize) {
        let micros = self.random.one_of(&[1000, 4000, 16_000, 32_000]);
        sleep(Duration::from_micros(self.random.below(micros)));
        let signal = self.random.one_of(&["KILL", "TERM", "INT"]);
        if running.child.try_wait().unwrap().is_some() {
            return; // the number may be another process's now
        }
        let line = format!("kill -{signal} {} 2>/dev/null", running.child.id());
        Command::new("sh").args(["-c", &line]).status().expect("kill");
        self.is_dirty[i] = true;
    }

    /// What one run has printed, in the order of its input; an error if that is wrong.
    fn walk(
        &self,
        rule: usize,
        input: &Input,
        done: &Done,
        before: &Model,
        is_lossy: bool,
        most_lost: u64,
    ) -> Result<Walk, String> {
        let context = self.context(done);
        let mut printed = split(&done.out, rule).into_iter().peekable();
        let mut dropped = done.dropped.as_ref().map(|it| split(it, rule).into_iter().peekable());
        let mut walk = Walk { new: HashSet::new(), is_whole: true, n_lost: 0 };
        'all: for source in &input.sources {
            for line in &source.lines {
                let Some(key) = key_of(line, rule) else {
                    walk.is_whole = false;
                    break 'all;
                };
                let is_seen = before.keys.contains(&key) || walk.new.contains(&key);
                if !is_seen && printed.next_if(|it| it == line).is_some() {
                    walk.new.insert(key);
                    continue;
                }
                let is_dropped =
                    dropped.as_mut().is_none_or(|dropped| dropped.next_if(|it| it == line).is_some());
                if is_dropped && (is_seen || is_lossy) {
                    continue;
                }
                if !source.is_whole {
                    continue 'all; // cut here
                }
                if is_dropped && done.status == Some(0) {
                    // The rate allows for a few.
                    walk.n_lost += 1;
                    if walk.n_lost > most_lost {
                        return Err(format!("lost {:?}: {context}", String::from_utf8_lossy(line)));
                    }
                    continue;
                }
                walk.is_whole = false;
                break 'all;
            }
        }
        let rest: Vec<_> = printed.take(3).map(String::from_utf8_lossy).collect();
        if !rest.is_empty() {
            return Err(format!("printed again, or out of order: {rest:?}: {context}"));
        }
        if done.status == Some(0) && !(walk.is_whole && dropped.is_none_or(|mut it| it.next().is_none())) {
            return Err(format!("printed and dropped are not all lines: {context}"));
        }
        Ok(walk)
    }

    /// Compares what runs have printed with the state.
    fn settle(
        &mut self,
        i: usize,
        rule: usize,
        runs: &[(&Input, &Done)],
        is_lossy: bool,
        overfull: bool,
        grew: bool,
    ) {
        let before = self.models[i].clone().unwrap_or_default();
        let bytes = fs::read(self.place.path(STATES[i])).unwrap_or_default();
        let old = (!before.bytes.is_empty()).then(|| State::of(&before.bytes));
        let state = (!bytes.is_empty()).then(|| State::of(&bytes));
        let is_lossy =
            is_lossy || before.is_lossy || state.as_ref().is_some_and(|state| state.fpr > 1e-5) || overfull;
        // Lines that the other run has printed and recorded are seen, if that was first.
        let mut recorded = before.clone();
        let is_saved = |new: &HashSet<u64>| {
            state.as_ref().is_some_and(|state| new.iter().all(|&key| state.contains(key)))
        };
        // A killed run may have printed and not recorded what the other one then printed.
        let walk_all = |runs: &[&(&Input, &Done)], forgets: bool, most_lost: u64| {
            let (mut recorded, mut walks) = (before.clone(), Vec::new());
            for (input, done) in runs {
                let walk = self.walk(rule, input, done, &recorded, is_lossy, most_lost)?;
                let is_forgotten = forgets && done.status.is_none();
                if is_saved(&walk.new) && bytes != before.bytes && !is_forgotten {
                    recorded.keys.extend(&walk.new);
                }
                walks.push(walk);
            }
            Ok::<_, String>(walks)
        };
        let mut in_order: Vec<_>;
        let mut attempts = [0, 2].into_iter().flat_map(|lost| [0, 1, 2, 3].map(|order| (lost, order)));
        let walks = loop {
            let (most_lost, order) = attempts.next().expect("left");
            in_order = runs.iter().collect();
            if order & 1 > 0 {
                in_order.reverse();
            }
            match walk_all(&in_order, order & 2 > 0, most_lost) {
                Ok(walks) => break walks,
                Err(error) => assert!((most_lost, order) != (2, 3), "{error}"),
            }
        };
        self.n_excused += walks.iter().map(|walk| walk.n_lost).sum::<u64>();
        for ((input, done), Walk { new, is_whole, .. }) in in_order.into_iter().zip(walks) {
            let context = self.context(done);
            let is_saved = is_saved(&new);
            match done.status {
                Some(0) => {
                    assert!(!input.fails(rule), "{context}");
                    assert!(is_saved || new.is_empty(), "not recorded: {context}");
                    assert!(state.is_some(), "{context}");
                    self.count("printed");
                }
                Some(2) => {
                    let is_full = done.error.contains("distinct keys, the most for");
                    let is_too_large = done.error.contains("File too large");
                    let in_use = done.error.contains("in use by another run");
                    assert!(
                        input.fails(rule) || is_full || is_too_large || in_use,
                        "no reason to fail: {context}"
                    );
                    if is_full {
                        let full = state.as_ref().expect("a state");
                        let enough = full.is_fixed() || grew;
                        // At high rates, dropped lines count as well.
                        assert!(
                            enough && (is_lossy || full.keys >= full.capacity),
                            "{} keys: {context}",
                            full.keys
                        );
                        assert!(!is_whole || is_lossy || input.fails(rule), "{context}");
                        self.count("full");
                    }
                    assert!(is_saved || new.is_empty() || is_too_large, "not recorded: {context}");
                    // One line for each file, and one for the run.
                    let n_lines = done.error.lines().filter(|line| !is_a_note(line)).count();
                    assert!(n_lines <= input.n_unread() + 1, "{context}");
                }

                Some(_) => unreachable!("no other status"),
                None => {
                    self.count("killed");
                    if is_saved && !new.is_empty() && bytes != before.bytes {
                        self.count("saved by a kill");
                    }
                }
            }
            if is_saved && bytes != before.bytes {
                recorded.keys.extend(&new);
            }
        }
        let context = runs.iter().map(|(_, done)| self.context(done)).collect::<Vec<_>>().join("; ");
        if bytes == before.bytes {
            return;
        }
        let state = state.expect("a state that was there stays");
        let n_old = old.as_ref().map_or(0, |old| old.keys);
        let n_new = (recorded.keys.len() - before.keys.len()) as u64;
        assert_eq!(state.keys, n_old + n_new, "keys: {context}");
        let lost = recorded.keys.iter().filter(|&&key| !state.contains(key)).count();
        assert_eq!(lost, 0, "false negatives: {context}");
        if let Some(old) = old.filter(|_| !grew) {
            assert_eq!((state.capacity, state.fpr), (old.capacity, old.fpr), "{context}");
        }
        if !is_lossy {
            // Lines that were not printed are not recorded.
            for line in runs.iter().flat_map(|(input, _)| &input.sources).flat_map(|it| &it.lines) {
                let Some(key) = key_of(line, rule).filter(|key| !recorded.keys.contains(key)) else {
                    continue;
                };
                if state.contains(key) {
                    self.n_excused += 1;
                }
            }
        }
        recorded.rule = recorded.rule.or((n_new > 0 || before.bytes.is_empty()).then_some(rule));
        recorded.is_lossy = before.is_lossy || state.fpr > 1e-5 || overfull && state.keys > state.capacity;
        recorded.bytes = bytes;
        self.models[i] = Some(recorded);
    }

    /// Two runs at once on one state, some of them killed.
    fn two(&mut self, i: usize) {
        let (rule, options, is_refused, is_lossy) = self.options(i);
        if is_refused || is_lossy {
            return;
        }
        let overfull = options.contains("--allow-overfull");
        let inputs = [self.input(rule, 0), self.input(rule, 1)];
        let grows = self.random.one_in(4);
        let mut running = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            let is_growth = grows && number == 1;
            let arguments = if is_growth {
                format!("grow {}", self.name(i))
            } else {
                let more = if self.random.one_in(5) { "--no-wait" } else { "" };
                format!("dedup --state {} {options} {} {more}", self.name(i), input.arguments)
            };
            running.push(self.start(number, arguments, input.stdin && !is_growth, Limit::None));
        }
        for it in &mut running {
            if self.random.one_in(4) {
                self.kill(it, i);
            }
        }
        let done: Vec<_> = running.into_iter().map(|it| self.wait(it)).collect();
        self.count("two");
        if done.iter().all(|done| done.status == Some(0)) {
            self.is_dirty[i] = false;
        }
        // The rate of a state that has grown is another, where it was given.
        if grows {
            let context = self.context(&done[1]);
            let is_expected = done[1].status.is_none_or(|status| status == 0)
                || done[1].error.contains("No such file")
                || self.models[i].as_ref().is_some_and(|model| model.is_lossy)
                || overfull;
            assert!(is_expected, "{context}");
            if done[0].error.contains("omit --fpr") || done[0].error.contains("of fixed size") {
                return self.learn(i, rule);
            }
        }
        let runs: Vec<_> = inputs.iter().zip(&done).take(if grows { 1 } else { 2 }).collect();
        self.settle(i, rule, &runs, is_lossy, overfull, grows);
    }

    fn grow(&mut self, i: usize) {
        let is_killed = self.random.one_in(4);
        let arguments = format!("grow {}", self.name(i));
        let mut running = self.start(0, arguments, false, Limit::None);
        if is_killed {
            self.kill(&mut running, i);
        }
        let done = self.wait(running);
        let context = self.context(&done);
        let Some(model) = self.models[i].clone() else {
            assert!(done.status != Some(0), "{context}");
            return;
        };
        let bytes = self.place.read(STATES[i]);
        let (old, state) = (State::of(&model.bytes), State::of(&bytes));
        match done.status {
            Some(0) => {
                self.is_dirty[i] = false;
                self.count("grown");
                assert!(!state.is_fixed(), "{context}");
                assert!(old.is_fixed() || bytes == model.bytes, "{context}");
            }
            Some(_) => assert!(model.is_lossy && bytes == model.bytes, "{context}"),
            None => (),
        }
        self.same_keys(&old, &state, &model.keys, &context);
        let is_lossy = model.is_lossy || state.fpr > 1e-5;
        self.models[i] = Some(Model { bytes, is_lossy, ..model });
    }

    fn same_keys(&self, old: &State, state: &State, keys: &HashSet<u64>, context: &str) {
        assert_eq!((old.keys, old.capacity), (state.keys, state.capacity), "{context}");
        assert!(keys.iter().all(|&key| state.contains(key)), "false negatives: {context}");
    }

    fn merge(&mut self, i: usize) {
        let [a, b] = [self.random.below(3), self.random.below(3)].map(|it| it as usize);
        let is_read = a == i || b == i;
        let arguments = format!("merge -o {} {} {}", STATES[i], STATES[a], STATES[b]);
        if self.models[i].is_some() && !is_read {
            self.refused(&arguments, "give --replace-state");
        }
        let done = self.run(arguments + if is_read { "" } else { " --replace-state" });
        let context = self.context(&done);
        let [Some(one), Some(other)] = [self.models[a].clone(), self.models[b].clone()] else {
            return assert_eq!(done.status, Some(2), "{context}");
        };
        let differ = one.rule.is_some() && other.rule.is_some() && one.rule != other.rule;
        if done.status != Some(0) {
            let reasons = ["of fixed size", "cannot be combined", "not merged with"];
            assert!(
                reasons.iter().any(|reason| done.error.contains(reason))
                    || differ && done.error.contains("made with"),
                "{context}"
            );
            return;
        }
        assert!(!differ, "{context}");
        self.is_dirty[i] = false;
        self.count("merged");
        let bytes = self.place.read(STATES[i]);
        let state = State::of(&bytes);
        let keys: HashSet<_> = one.keys.union(&other.keys).copied().collect();
        assert!(keys.iter().all(|&key| state.contains(key)), "false negatives: {context}");
        let is_lossy = one.is_lossy
            || other.is_lossy
            || state.fpr > 1e-5
            || state.is_fixed() && state.keys > state.capacity;
        self.models[i] = Some(Model { bytes, rule: one.rule.or(other.rule), keys, is_lossy });
        // Merged states soon have a high rate.
        if self.random.one_in(2) {
            self.remove(i);
        }
    }

    /// The first run of dedup and `build` at once: one of them has the file.
    fn race_for_a_name(&mut self) {
        let lines: Vec<_> = (0..100).map(|id| line_of(id, 0, false)).collect();
        self.place.write("in00", lines.concat());
        let _ = fs::remove_file(self.place.path("name"));
        let commands =
            ["dedup -q --state name --keys 100 in00".to_owned(), "build -q -o name --keys 1e4 in00".into()];
        let builds_first = self.random.one_in(2);
        let mut running = Vec::new();
        for builds in [builds_first, !builds_first] {
            let number = usize::from(builds);
            running.push(self.start(number, commands[number].clone(), false, Limit::None));
            sleep(Duration::from_micros(self.random.below(2000)));
        }
        let mut done: Vec<_> = running.into_iter().map(|it| self.wait(it)).collect();
        if builds_first {
            done.reverse();
        }
        let [dedup, build] = [&done[0], &done[1]];
        let context = self.context(dedup) + &self.context(build);
        let is_state = self.place.read("name").ends_with(b"\x89bldup\r\n");
        let expected = if is_state { (Some(0), Some(2)) } else { (Some(2), Some(0)) };
        assert_eq!((dedup.status, build.status), expected, "{context}");
        assert!(dedup.out.is_empty() != is_state, "{context}");
        self.count(if is_state { "state first" } else { "filter first" });
    }
}

fn is_a_note(line: &str) -> bool {
    ["waiting for it to end", "with CR LF", "saved", "nothing new", "not made", "printed,"]
        .iter()
        .any(|text| line.contains(text))
}
