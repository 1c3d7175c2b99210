//! Random steps on three states of `dedup`. After each step, a state is what the library makes of the printed lines.
//!
//! `BLOOMLINE_STEPS` is the number of steps, `BLOOMLINE_SEED` selects others.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, Sizing, hash_key, mix};
use flate2::read::GzDecoder;

use common::{Place, footer, gzip, program};

const STATES: [&str; 3] = ["s0", "s1", "s2"];
/// Lines are those of ids below.
const IDS: u64 = 3000;
/// With `--length`, and without what ends a line.
const LENGTH: usize = 24;

/// Options of keys, and their words in the footer of a state.
const RULES: [(&str, [u64; 3]); 8] = [
    ("", [0, 0, 0x0102]),
    ("--column 1", [1, 0, 0x0102]),
    ("--column 2 --delimiter ,", [2, 0, 0x2c_0102]),
    ("--crlf", [0, 0, 0x0502]),
    ("-0", [0, 0, 0x0302]),
    ("--column 1 --integers", [1, 0, 0x0902]),
    ("--length 24", [0, 24, 0x0102]),
    ("--column 2 --delimiter , --crlf", [2, 0, 0x2c_0502]),
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

#[derive(Clone)]
enum Filter {
    Fixed(BloomFilter),
    Growing(ScalableBloomFilter),
}

/// A state, by section 11 of docs/format.md.
#[derive(Clone)]
struct State {
    filter: Filter,
    capacity: u64,
    keys: u64,
    fpr: f64,
    rule: [u64; 3],
}

impl State {
    fn of(bytes: &[u8]) -> Self {
        let (filter, footer) = bytes.split_last_chunk::<64>().expect("a footer");
        assert!(footer.ends_with(b"\x89bldup\r\n"), "not a state");
        let filter = match BloomFilter::from_standalone(filter) {
            Ok(filter) => Filter::Fixed(filter),
            Err(_) => Filter::Growing(ScalableBloomFilter::from_standalone(filter).expect("a filter")),
        };
        let word = |at: usize| u64::from_le_bytes(footer.as_chunks().0[at]);
        let rule = [3, 4, 5].map(word);
        Self { filter, capacity: word(0), keys: word(1), fpr: f64::from_bits(word(2)), rule }
    }

    fn bytes(&self) -> Vec<u8> {
        let filter = match &self.filter {
            Filter::Fixed(filter) => filter.to_standalone(),
            Filter::Growing(filter) => filter.to_standalone(),
        };
        [filter, footer(self.capacity, self.keys, self.fpr, self.rule)].concat()
    }

    fn contains(&self, key: u64) -> bool {
        match &self.filter {
            Filter::Fixed(filter) => filter.contains_hash(key),
            Filter::Growing(filter) => filter.contains_hash(key),
        }
    }

    fn insert(&mut self, key: u64) {
        self.keys += u64::from(match &mut self.filter {
            Filter::Fixed(filter) => filter.insert_hash(key),
            Filter::Growing(filter) => filter.insert_hash(key),
        });
    }

    fn is_fixed(&self) -> bool {
        matches!(self.filter, Filter::Fixed(_))
    }

    /// Whether it need not hold as many new lines as it was made for.
    fn is_full(&self) -> bool {
        self.keys >= self.capacity || self.fpr > 1e-5
    }

    /// As `grow` makes it at this rate, if it can.
    fn grown(mut self, fpr: f64) -> Option<Self> {
        if let Filter::Fixed(filter) = self.filter {
            let keys = self.keys.max(self.capacity.min(1_000_000));
            self.filter = Filter::Growing(ScalableBloomFilter::from_filter(filter, keys, fpr).ok()?);
            self.fpr = fpr;
        }
        Some(self)
    }
}

struct Source {
    lines: Vec<Vec<u8>>,
    /// Whether they are read at all, to the end.
    is_whole: bool,
}

/// What a run is asked for.
#[derive(Default)]
struct Request {
    arguments: String,
    rule: usize,
    keys: Option<u64>,
    fpr: Option<f64>,
    grows: bool,
    sources: Vec<Source>,
    /// Whether the only source is standard input.
    stdin: bool,
}

impl Request {
    fn is_growth(&self) -> bool {
        self.arguments.starts_with("grow")
    }

    /// The state of a first run.
    fn new_state(&self) -> State {
        let (capacity, fpr) = (self.keys.unwrap_or(1_000_000), self.fpr.unwrap_or(1e-6));
        let filter = if self.keys.is_some() && !self.grows {
            let sizing = Sizing::for_fpr(capacity, fpr).expect("a size");
            Filter::Fixed(BloomFilter::with_sizing(sizing).expect("a filter"))
        } else {
            Filter::Growing(ScalableBloomFilter::with_fpr(capacity, fpr).expect("a filter"))
        };
        State { filter, capacity, keys: 0, fpr, rule: RULES[self.rule].1 }
    }

    fn is_refused(&self, state: &State) -> bool {
        state.rule != RULES[self.rule].1
            || self.keys.is_some_and(|keys| keys != state.capacity)
            || self.fpr.is_some_and(|fpr| (state.fpr / fpr - 1.0).abs() > 1e-3)
            || self.grows && state.is_fixed()
    }

    /// Whether dedup reports a file or a line.
    fn fails(&self) -> bool {
        let has_no_key = |line: &Vec<u8>| key_of(line, self.rule).is_none();
        self.sources.iter().any(|source| !source.is_whole || source.lines.iter().any(has_no_key))
    }
}

struct Running {
    child: Child,
    number: usize,
    request: Request,
}

/// A run that has ended.
struct Done {
    /// `None` if it was killed.
    status: Option<i32>,
    out: Vec<u8>,
    error: String,
    dropped: Option<Vec<u8>>,
    request: Request,
}

impl Done {
    /// The state with the lines that were printed, or `None` if others were, or in another order.
    fn walk(&self, mut state: State) -> Option<State> {
        let rule = self.request.rule;
        let mut printed = split(&self.out, rule).into_iter().peekable();
        let (mut dropped, mut is_whole) = (Vec::new(), true);
        'all: for source in &self.request.sources {
            for line in &source.lines {
                match key_of(line, rule) {
                    Some(key) if state.contains(key) => dropped.extend_from_slice(line),
                    Some(key) if printed.next_if(|it| it == line).is_some() => state.insert(key),
                    Some(_) if !source.is_whole => continue 'all, // cut here
                    _ => {
                        is_whole = false;
                        break 'all;
                    }
                }
            }
        }
        let is_all = is_whole && self.dropped.as_ref().is_none_or(|it| *it == dropped);
        (printed.next().is_none() && (self.status != Some(0) || is_all)).then_some(state)
    }

    /// The states that the run may have left. None if it did what it must not do.
    fn outcomes(&self, before: Option<&State>, grown_fpr: f64) -> Vec<Option<State>> {
        let unchanged = before.cloned();
        let in_use = self.error.contains("in use by another run (");
        if self.request.is_growth() {
            let grown = before.and_then(|state| state.clone().grown(grown_fpr)).map(Some);
            return match self.status {
                Some(0) => Vec::from_iter(grown),
                None => Vec::from_iter([unchanged].into_iter().chain(grown)),
                _ if in_use || before.is_none_or(State::is_full) => vec![unchanged],
                _ => vec![],
            };
        }
        if in_use || before.is_some_and(|state| self.request.is_refused(state)) {
            let errors = self.error.lines().filter(|line| !line.contains("waiting for it to end"));
            let is_one = errors.count() <= 1;
            let is_refused = self.status != Some(0) && self.out.is_empty() && is_one;
            return if is_refused { vec![unchanged] } else { vec![] };
        }
        let Some(after) = self.walk(before.cloned().unwrap_or_else(|| self.request.new_state())) else {
            return vec![];
        };
        let has_printed = after.keys > before.map_or(0, |state| state.keys);
        let is_full = self.error.contains("distinct keys, the most for");
        match self.status {
            Some(0) if self.request.fails() => vec![],
            Some(0) => vec![Some(after)],
            None => vec![unchanged, Some(after)],
            // A full disk.
            _ if self.error.contains("File too large") => vec![unchanged, Some(after)],
            _ if is_full && !(after.is_fixed() && after.is_full()) => vec![],
            _ if !is_full && !self.request.fails() => vec![],
            _ => vec![if has_printed { Some(after) } else { unchanged }],
        }
    }
}

/// Whether the runs, one after another in some order, lead to a state's bytes.
fn lead_to(after: &[u8], runs: &[&Done], before: Option<&State>) -> bool {
    let fpr = if after.is_empty() { 0.0 } else { State::of(after).fpr };
    let is_next = |i: usize| {
        let mut rest = runs.to_vec();
        let outcomes = rest.remove(i).outcomes(before, fpr);
        outcomes.iter().any(|state| lead_to(after, &rest, state.as_ref()))
    };
    match runs {
        [] => before.map_or(after.is_empty(), |state| state.bytes() == after),
        _ => (0..runs.len()).any(is_next),
    }
}

/// How a run of dedup is limited.
#[derive(Clone, Copy, PartialEq)]
enum Limit {
    None,
    /// The blocks that a file may have.
    Disk(u64),
    /// Standard input does not end before the run is killed.
    Open,
}

struct Steps {
    place: Place,
    random: Random,
    /// The bytes of each state.
    states: [Option<Vec<u8>>; 3],
    /// Whether a kill may have left files beside a state.
    is_dirty: [bool; 3],
    cursor: u64,
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
        states: [None, None, None],
        is_dirty: [false; 3],
        cursor: 0,
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
    println!("{:?}", steps.counts);
    // Which kills come in time is chance.
    if n_steps >= 1000 {
        for outcome in
            ["printed", "refused", "full", "disk full", "killed", "saved by a kill", "grown", "merged"]
        {
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
            8..13 => self.two(i),
            13..18 => self.dedup(i, true, Limit::None),
            18 => {
                let limit = Limit::Disk(1 + self.random.below(12));
                self.dedup(i, false, limit);
            }
            _ => self.dedup(i, false, Limit::None),
        }
    }

    fn state(&self, i: usize) -> Option<State> {
        self.states[i].as_ref().map(|bytes| State::of(bytes))
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
        self.states[i] = None;
    }

    /// No temporary file and no lock is left after a run that was not killed.
    fn check_files(&mut self) {
        for name in self.place.files() {
            if name.starts_with('.') {
                let owner = (0..3).find(|&i| name.starts_with(&format!(".{}", STATES[i])));
                assert!(owner.is_some_and(|i| self.is_dirty[i]), "step {}: {name} is left", self.step);
            }
        }
        for (name, bytes) in STATES.iter().zip(&self.states) {
            let found = fs::read(self.place.path(name)).ok();
            assert!(found == *bytes, "step {}: {name} has changed", self.step);
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
            lines[self.random.below(n) as usize] = b"no number and no column 2\n".to_vec();
        }
        lines
    }

    /// Writes files, and returns the arguments that name them. `number` keeps files of runs at the same time apart.
    fn input(&mut self, number: usize, request: &mut Request) -> String {
        let (rule, mut names) = (request.rule, Vec::new());
        request.sources.clear();
        for file in 0..self.random.one_of(&[1, 1, 1, 2, 3]) {
            let name = format!("in{number}{file}");
            let _ = fs::remove_file(self.place.path(&name));
            let mut lines = self.lines(rule);
            let mut text = lines.concat();
            // The last line may lack its end.
            if rule != FIXED_LENGTH && text.len() > 1 && self.random.one_in(4) {
                text.pop();
            }
            let kind = self.random.below(24);
            match kind {
                // Neither a missing file nor a directory can be read.
                0 | 1 => lines.clear(),
                2..7 => {
                    let mut zipped = gzip(&text);
                    if kind == 2 {
                        let at = zipped.len() - 1 - self.random.below(8) as usize;
                        zipped[at] ^= 1;
                    } else if kind == 3 {
                        zipped.truncate(10 + self.random.below(zipped.len() as u64 - 10) as usize);
                    }
                    let mut read = Vec::new();
                    if GzDecoder::new(&zipped[..]).read_to_end(&mut read).is_err() {
                        lines.truncate(split(&read, rule).len());
                    }
                    self.place.write(&name, zipped);
                }
                _ => _ = self.place.write(&name, &text),
            }
            names.push(if kind == 1 { ".".into() } else { name });
            request.sources.push(Source { lines, is_whole: kind > 3 });
        }
        request.stdin = names.len() == 1 && request.sources[0].is_whole && self.random.one_in(3);
        if request.stdin {
            return String::new();
        }
        if !self.random.one_in(5) {
            return names.join(" ");
        }
        let list = format!("list{number}");
        self.place.write(&list, names.join("\0") + "\0");
        format!("--files0-from {list}")
    }

    fn start(&mut self, number: usize, request: Request, limit: Limit) -> Running {
        let [out, error] = ["out", "err"].map(|name| self.place.path(&format!("{name}{number}")));
        let limited =
            if let Limit::Disk(blocks) = limit { format!("ulimit -f {blocks};") } else { String::new() };
        let script = format!("{limited} exec $b {}", request.arguments);
        let mut command = Command::new("sh");
        command.current_dir(self.place.directory()).env("b", program()).args(["-c", &script]);
        command.stdout(File::create(out).unwrap()).stderr(File::create(error).unwrap());
        let input = self.place.path(&format!("in{number}0"));
        command.stdin(match limit {
            Limit::Open => Stdio::piped(),
            _ if request.stdin => File::open(input).unwrap().into(),
            _ => Stdio::null(),
        });
        let mut child = command.spawn().expect("started");
        if let Some(pipe) = &mut child.stdin {
            let _ = pipe.write_all(&self.place.read(&format!("in{number}0")));
        }
        Running { child, number, request }
    }

    fn wait(&mut self, mut running: Running) -> Done {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "hangs: {}", running.request.arguments);
            sleep(Duration::from_micros(500));
        };
        let Running { number, request, .. } = running;
        let status = status.code().or_else(|| {
            assert!([2, 9, 15].contains(&status.signal().unwrap()), "{}: {status}", request.arguments);
            None
        });
        let done = Done {
            status,
            out: self.place.read(&format!("out{number}")),
            error: self.place.text(&format!("err{number}")),
            dropped: fs::read(self.place.path("dropped0"))
                .ok()
                .filter(|_| request.arguments.contains("--dropped")),
            request,
        };
        let context = self.context(&done);
        assert!(done.error.lines().all(|line| line.starts_with("bloomline: ")), "{context}");
        match done.status {
            None => self.count("killed"),
            Some(0) => (),
            Some(2) => assert!(!done.error.is_empty(), "{context}"),
            other => panic!("status {other:?}: {context}"),
        }
        let outcomes = [("made with", "refused"), ("the most for", "full"), ("File too large", "disk full")];
        outcomes.iter().filter(|(text, _)| done.error.contains(text)).for_each(|(_, it)| self.count(it));
        done
    }

    fn run(&mut self, arguments: impl Into<String>) -> Done {
        let request = Request { arguments: arguments.into(), ..Request::default() };
        let running = self.start(0, request, Limit::None);
        self.wait(running)
    }

    fn context(&self, done: &Done) -> String {
        let Done { request, status, error, .. } = done;
        format!("step {}: bloomline {}: {status:?}: {error}", self.step, request.arguments)
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

    /// A run of dedup with random options and input, which often suit the state.
    fn request(&mut self, i: usize, number: usize) -> Request {
        let state = self.state(i);
        let recorded = state.as_ref().and_then(|state| RULES.iter().position(|rule| rule.1 == state.rule));
        let is_same = self.random.below(8) > 0;
        let rule = recorded.filter(|_| is_same).unwrap_or(self.random.below(RULES.len() as u64) as usize);
        let (mut options, mut request) = (RULES[rule].0.to_owned(), Request { rule, ..Request::default() });
        if (state.is_none() || self.random.one_in(5)) && !self.random.one_in(60) {
            let keys = self.random.one_of(&[50, 50, 300, 300, 3000, 40_000]);
            options += &format!(" --keys {keys}");
            request.keys = Some(keys);
        }
        if self.random.one_in(5) {
            let (text, fpr) =
                self.random.one_of(&[("1e-6", 1e-6), ("0.0001%", 1e-6), ("1e-3", 1e-3), ("0.2", 0.2)]);
            options += &format!(" --fpr {text}");
            request.fpr = Some(fpr);
        }
        if self.random.one_in(if state.is_none() { 2 } else { 10 }) {
            options += " --grow";
            request.grows = true;
        }
        for (option, n) in [("--allow-overfull", 12), ("-q", 2), ("--no-wait", 6), ("--dropped dropped0", 4)]
        {
            // One of two runs at once has the file.
            if self.random.one_in(n) && (number == 0 || n != 4) {
                options = format!("{options} {option}");
            }
        }
        let input = self.input(number, &mut request);
        request.arguments = format!("dedup --state {} {options} {input}", self.name(i));
        request
    }

    fn dedup(&mut self, i: usize, is_killed: bool, limit: Limit) {
        let request = self.request(i, 0);
        let limit = if is_killed && request.stdin { Limit::Open } else { limit };
        let mut running = self.start(0, request, limit);
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
        self.settle(i, &[&done]);
    }

    /// Compares what runs have printed with the state.
    fn settle(&mut self, i: usize, runs: &[&Done]) {
        let after = fs::read(self.place.path(STATES[i])).unwrap_or_default();
        let context = runs.iter().map(|done| self.context(done)).collect::<Vec<_>>().join("; ");
        assert!(lead_to(&after, runs, self.state(i).as_ref()), "{context}");
        let after = (!after.is_empty()).then_some(after);
        if runs.iter().all(|done| done.status == Some(0)) {
            self.is_dirty[i] = false;
            self.count(if runs[0].request.is_growth() { "grown" } else { "printed" });
        } else if runs[0].status.is_none() && after != self.states[i] {
            self.count("saved by a kill");
        }
        self.states[i] = after;
    }

    /// Two runs at once on one state, some of them killed.
    fn two(&mut self, i: usize) {
        let mut requests = [self.request(i, 0), self.request(i, 1)];
        if self.random.one_in(4) {
            requests[1] = Request { arguments: format!("grow {}", self.name(i)), ..Request::default() };
        }
        let mut number = 0..;
        let mut running = requests.map(|request| self.start(number.next().unwrap(), request, Limit::None));
        for it in &mut running {
            if self.random.one_in(4) {
                self.kill(it, i);
            }
        }
        let [one, other] = running.map(|it| self.wait(it));
        self.settle(i, &[&one, &other]);
    }

    fn grow(&mut self, i: usize) {
        let is_killed = self.random.one_in(4);
        let request = Request { arguments: format!("grow {}", self.name(i)), ..Request::default() };
        let mut running = self.start(0, request, Limit::None);
        if is_killed {
            self.kill(&mut running, i);
        }
        let done = self.wait(running);
        self.settle(i, &[&done]);
    }

    fn merge(&mut self, i: usize) {
        let [a, b] = [self.random.below(3), self.random.below(3)].map(|it| it as usize);
        let is_read = a == i || b == i;
        let arguments = format!("merge -o {} {} {}", STATES[i], STATES[a], STATES[b]);
        if self.states[i].is_some() && !is_read {
            let done = self.run(&*arguments);
            let is_refused = done.status == Some(2) && done.error.contains("give --replace-state");
            assert!(is_refused, "{}", self.context(&done));
            self.check_files();
        }
        let done = self.run(arguments + if is_read { "" } else { " --replace-state" });
        let context = self.context(&done);
        let [Some(one), Some(other)] = [self.state(a), self.state(b)] else {
            return assert_eq!(done.status, Some(2), "{context}");
        };
        if done.status != Some(0) {
            let differ = one.rule != other.rule && done.error.contains("made with");
            let reasons = ["of fixed size", "cannot be combined", "not merged with"];
            return assert!(differ || reasons.iter().any(|it| done.error.contains(it)), "{context}");
        }
        self.is_dirty[i] = false;
        self.count("merged");
        let bytes = self.place.read(STATES[i]);
        let found = State::of(&bytes);
        let mut merged = State { filter: one.filter, ..found.clone() };
        match (&mut merged.filter, other.filter) {
            (Filter::Fixed(ours), Filter::Fixed(mut theirs)) => {
                let [n, m] = [ours.n_blocks(), theirs.n_blocks()];
                ours.fold((n / m).max(1)).expect("folded");
                theirs.fold((m / n).max(1)).expect("folded");
                ours.union_with(&theirs).expect("merged");
            }
            (Filter::Growing(ours), Filter::Growing(theirs)) => ours.union_with(&theirs).expect("merged"),
            _ => panic!("{context}"),
        }
        assert!(merged.bytes() == bytes && one.rule == found.rule && other.rule == found.rule, "{context}");
        let most = one.keys + other.keys;
        assert!((one.keys.max(other.keys)..=most).contains(&found.keys), "{} keys: {context}", found.keys);
        self.states[i] = Some(bytes);
        // Merged states soon have a high rate.
        if self.random.one_in(2) {
            self.remove(i);
        }
    }
}
