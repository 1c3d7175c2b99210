//! Random steps on three states of `dedup`. After each step, a state is what the library makes of the printed lines.
//!
//! `BLOOMLINE_STEPS` is the number of steps, `BLOOMLINE_SEED` selects others.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bloomline::variants::ScalableBloomFilter;
use bloomline::{BloomFilter, Sizing, hash_key, mix};

use common::{Place, footer, program};

const STATES: [&str; 3] = ["s0", "s1", "s2"];
/// Lines are those of ids below.
const IDS: u64 = 3000;
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

fn line_of(id: u64) -> Vec<u8> {
    format!("{id:06}\tuser{:08x}\n", mix(id) as u32).into_bytes()
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
        Self { filter, capacity: word(0), keys: word(1), fpr: f64::from_bits(word(2)) }
    }

    fn bytes(&self) -> Vec<u8> {
        let filter = match &self.filter {
            Filter::Fixed(filter) => filter.to_standalone(),
            Filter::Growing(filter) => filter.to_standalone(),
        };
        [filter, footer(self.capacity, self.keys, self.fpr, [0, 0, 0x0102])].concat()
    }

    fn contains(&self, line: &[u8]) -> bool {
        let hash = hash_key(&line[..line.len() - 1], 0);
        match &self.filter {
            Filter::Fixed(filter) => filter.contains_hash(hash),
            Filter::Growing(filter) => filter.contains_hash(hash),
        }
    }

    fn insert(&mut self, line: &[u8]) {
        let hash = hash_key(&line[..line.len() - 1], 0);
        self.keys += u64::from(match &mut self.filter {
            Filter::Fixed(filter) => filter.insert_hash(hash),
            Filter::Growing(filter) => filter.insert_hash(hash),
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

/// What a run is asked for.
#[derive(Default)]
struct Request {
    arguments: String,
    keys: Option<u64>,
    grows: bool,
    lines: Vec<Vec<u8>>,
    /// Whether the lines come from standard input.
    stdin: bool,
}

impl Request {
    fn is_growth(&self) -> bool {
        self.arguments.starts_with("grow")
    }

    /// The state of a first run.
    fn new_state(&self) -> State {
        let (capacity, fpr) = (self.keys.unwrap_or(1_000_000), 1e-6);
        let filter = if self.keys.is_some() && !self.grows {
            let sizing = Sizing::for_fpr(capacity, fpr).expect("a size");
            Filter::Fixed(BloomFilter::with_sizing(sizing).expect("a filter"))
        } else {
            Filter::Growing(ScalableBloomFilter::with_fpr(capacity, fpr).expect("a filter"))
        };
        State { filter, capacity, keys: 0, fpr }
    }

    fn is_refused(&self, state: &State) -> bool {
        self.keys.is_some_and(|keys| keys != state.capacity) || self.grows && state.is_fixed()
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
    request: Request,
}

impl Done {
    /// The state with the lines that were printed, or `None` if others were, or in another order.
    fn walk(&self, mut state: State) -> Option<State> {
        // A kill can leave the beginning of another line.
        let whole = self.out.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let (mut printed, mut is_all) = (whole.peekable(), true);
        for line in &self.request.lines {
            if state.contains(line) {
                continue;
            }
            if printed.next_if(|it| it == line).is_none() {
                is_all = false;
                break;
            }
            state.insert(line);
        }
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
            Some(0) => vec![Some(after)],
            None => vec![unchanged, Some(after)],
            // A full disk.
            _ if self.error.contains("File too large") => vec![unchanged, Some(after)],
            _ if is_full && !(after.is_fixed() && after.is_full()) => vec![],
            _ if !is_full => vec![],
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
    for step in 0..n_steps {
        steps.step = step;
        steps.step();
        steps.check_files();
    }
    println!("{:?}", steps.counts);
    // Which kills come in time is chance.
    if n_steps >= 1000 {
        for outcome in ["printed", "refused", "full", "disk full", "killed", "saved by a kill", "grown"] {
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
            1..5 => self.grow(i),
            5..13 => self.two(i),
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

    /// Lines near those of the runs before.
    fn lines(&mut self) -> Vec<Vec<u8>> {
        let n = self.random.one_of(&[0, 1, 10, 50, 50, 100, 300]);
        let first = match self.random.below(4) {
            0 => self.random.below(IDS),
            1 => self.cursor.saturating_sub(n / 2),
            _ => self.cursor,
        };
        self.cursor = (first + n) % IDS;
        (first..first + n).map(|id| line_of(id % IDS)).collect()
    }

    fn start(&mut self, number: usize, request: Request, limit: Limit) -> Running {
        let [out, error] = ["out", "err"].map(|name| self.place.path(&format!("{name}{number}")));
        let limited =
            if let Limit::Disk(blocks) = limit { format!("ulimit -f {blocks};") } else { String::new() };
        let script = format!("{limited} exec $b {}", request.arguments);
        let mut command = Command::new("sh");
        command.current_dir(self.place.directory()).env("b", program()).args(["-c", &script]);
        command.stdout(File::create(out).unwrap()).stderr(File::create(error).unwrap());
        let input = self.place.path(&format!("in{number}"));
        command.stdin(match limit {
            Limit::Open => Stdio::piped(),
            _ if request.stdin => File::open(input).unwrap().into(),
            _ => Stdio::null(),
        });
        let mut child = command.spawn().expect("started");
        if let Some(pipe) = &mut child.stdin {
            let _ = pipe.write_all(&self.place.read(&format!("in{number}")));
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
        let outcomes = [("made for", "refused"), ("the most for", "full"), ("File too large", "disk full")];
        outcomes.iter().filter(|(text, _)| done.error.contains(text)).for_each(|(_, it)| self.count(it));
        done
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

    /// A run of dedup with random options and input, which often suit the state. `number` keeps files of runs at the same
    /// time apart.
    fn request(&mut self, i: usize, number: usize) -> Request {
        let (is_new, mut options) = (self.states[i].is_none(), String::new());
        let mut request = Request { lines: self.lines(), stdin: self.random.one_in(3), ..Request::default() };
        if (is_new || self.random.one_in(5)) && !self.random.one_in(60) {
            let keys = self.random.one_of(&[50, 50, 300, 300, 3000, 40_000]);
            options += &format!(" --keys {keys}");
            request.keys = Some(keys);
        }
        if self.random.one_in(if is_new { 2 } else { 10 }) {
            options += " --grow";
            request.grows = true;
        }
        for (option, n) in [("--allow-overfull", 12), ("-q", 2), ("--no-wait", 6)] {
            if self.random.one_in(n) {
                options = format!("{options} {option}");
            }
        }
        let input = format!("in{number}");
        self.place.write(&input, request.lines.concat());
        let input = if request.stdin { "" } else { &input };
        request.arguments = format!("dedup --state {} {options} {input}", STATES[i]);
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
            requests[1] = Request { arguments: format!("grow {}", STATES[i]), ..Request::default() };
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
        let request = Request { arguments: format!("grow {}", STATES[i]), ..Request::default() };
        let mut running = self.start(0, request, Limit::None);
        if is_killed {
            self.kill(&mut running, i);
        }
        let done = self.wait(running);
        self.settle(i, &[&done]);
    }
}
