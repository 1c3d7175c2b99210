//! Files of a folder, one for each input file, with its name and compression.
#![forbid(unsafe_code)]

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs;
use std::io;
use std::mem;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};

use crate::compress::compress;
use crate::decompress::{Format, format_of};
use crate::input::{Input, is_stdin};
use crate::numbers::counted;
use crate::output::{CompleteFile, NewFile, io_error, is_same_file, leads_to};
use crate::signals::lock;
use crate::states::made::{Entry, Made};

/// Bytes that are compressed as a whole, so that several threads can compress a file.
const BLOCK: usize = 1 << 20;

/// At most, of compressed input.
const BYTES_PER_MILLISECOND: u64 = 50_000;

/// A file to make.
struct Shard {
    entry: Entry,
    format: Option<Format>,
}

type Job = (Format, Vec<u8>, mpsc::SyncSender<io::Result<Vec<u8>>>);

/// What is to be done next with the file that is written.
enum Step {
    Write(mpsc::Receiver<io::Result<Vec<u8>>>),
    End,
}

/// How many of the files of a folder are there, and those that wait until the state is saved.
pub struct Finished {
    n: AtomicUsize,
    n_files: usize,
    pub waiting: Mutex<Vec<(Entry, CompleteFile)>>,
}

/// For a run that ends before all of them are.
impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (n, n_files) = (self.n.load(Relaxed), counted(self.n_files as u64, "file"));
        write!(f, "{n} of {n_files} finished (give the command again to go on)")
    }
}

/// Writes shards, in their order.
pub struct Writer {
    shards: VecDeque<Shard>,
    pub finished: Arc<Finished>,
    made: Made,
    /// When the state was saved, and in what time.
    saved: (Instant, Duration),
    /// Whose lines come now.
    current: usize,
    lines: Vec<u8>,
    has_block: bool,
    steps: VecDeque<Step>,
    most_steps: usize,
    /// The file of the first shard, and its name.
    open: Option<NewFile>,
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Takes the files that were made before out of the input. `others` are files that are written, too.
    pub fn create(
        directory: &Path,
        input: &mut Input,
        made: Made,
        keys: u64,
        others: &[&Path],
    ) -> Result<Self> {
        let (mut shards, mut names, mut n) = (VecDeque::new(), HashSet::new(), 0);
        for file in mem::take(&mut input.files) {
            let name = file.file_name().filter(|_| !is_stdin(&file));
            let name =
                name.ok_or_else(|| anyhow!("--output-dir: standard input has no name (name files)"))?;
            let (output, name) = (directory.join(name), file.display());
            let is_other = others.iter().any(|other| leads_to(&output, other));
            ensure!(
                names.insert(output.clone()),
                "{name}: another input has this name too (give each folder a run and an --output-dir of its own)"
            );
            ensure!(
                !is_other && !is_same_file(&file, &output),
                "{}: is written or read in another way, too (name another --output-dir)",
                output.display()
            );
            let entry = Entry::new(&file, &output)?;
            if made.has(&entry, keys)? {
                n += 1;
                continue;
            }
            shards.push_back(Shard { entry, format: if input.raw { None } else { format_of(&file)? } });
            input.files.push(file);
        }
        if !directory.is_dir() {
            let is_other = directory.is_symlink() || directory.exists();
            ensure!(!is_other, "{}: not a folder (name another --output-dir)", directory.display());
            fs::create_dir(directory).map_err(|error| io_error(directory.display(), &error))?;
        }
        NewFile::remove_leftovers(directory, &names);
        let n_files = n + shards.len();
        let finished = Arc::new(Finished { n: n.into(), n_files, waiting: Mutex::default() });
        let (jobs, to_do) = mpsc::channel::<Job>();
        let to_do = Arc::new(Mutex::new(to_do));
        let n_threads = thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..n_threads {
            let to_do = Arc::clone(&to_do);
            let work = move || {
                let next = || lock(&to_do).recv();
                while let Ok((format, lines, done)) = next() {
                    let _ = done.send(compress(format, &lines));
                }
            };
            let _ = thread::Builder::new().spawn(work);
        }
        Ok(Self {
            shards,
            finished,
            made,
            saved: (Instant::now(), Duration::ZERO),
            current: 0,
            lines: Vec::new(),
            has_block: false,
            steps: VecDeque::new(),
            most_steps: 2 * n_threads,
            open: None,
            jobs,
        })
    }

    /// Whose lines come now.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Ends all shards before this one. Commits them now and then, so that a twentieth of the time goes to that, however
    /// large the state is, or if `is_last`.
    pub fn go_to(
        &mut self,
        shard: usize,
        is_last: bool,
        keys: u64,
        save: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        while self.current < shard {
            self.end_block(true)?;
            self.steps.push_back(Step::End);
            self.current += 1;
        }
        let (end, duration) = self.saved;
        // Until the next shard has ended, those before it wait.
        let next =
            self.shards.get(self.n_ended()).map_or(0, |shard| shard.entry.size / BYTES_PER_MILLISECOND);
        if self.made.is_of_state() && (is_last || end.elapsed() + Duration::from_millis(next) > 20 * duration)
        {
            self.drain()?;
            let begin = Instant::now();
            self.commit(keys, save)?;
            self.saved = (Instant::now(), begin.elapsed());
        }
        Ok(())
    }

    /// How many of the shards have all of their steps.
    fn n_ended(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::End)).count()
    }

    /// Gives the files that wait their names.
    fn commit(&mut self, keys: u64, save: impl FnOnce() -> Result<()>) -> Result<()> {
        // From here on, a signal does not remove them.
        let files = mem::take(&mut *lock(&self.finished.waiting));
        let n = files.len();
        self.made.add(files, keys, save)?;
        self.finished.n.fetch_add(n, Relaxed);
        Ok(())
    }

    /// Appends lines to the shard.
    pub fn print(&mut self, lines: &[u8]) -> Result<()> {
        self.lines.extend_from_slice(lines);
        // Also within a line, because how many come at a time is not always the same.
        while self.lines.len() >= BLOCK {
            let rest = self.lines.split_off(BLOCK);
            self.end_block(false)?;
            self.lines = rest;
        }
        Ok(())
    }

    fn end_block(&mut self, is_last: bool) -> Result<()> {
        let (lines, shard) = (mem::take(&mut self.lines), &self.shards[self.n_ended()]);
        // A compressed file without lines has a block too.
        if !lines.is_empty() || is_last && !self.has_block {
            let (done, written) = mpsc::sync_channel(1);
            match shard.format {
                None => _ = done.send(Ok(lines)),
                Some(format) => _ = self.jobs.send((format, lines, done)),
            }
            self.steps.push_back(Step::Write(written));
        }
        self.has_block = !is_last;
        while self.steps.len() > self.most_steps {
            self.step()?;
        }
        Ok(())
    }

    /// Waits until all shards that were ended are on disk.
    pub fn drain(&mut self) -> Result<()> {
        while !self.steps.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let (Some(step), Some(Shard { entry, .. })) = (self.steps.pop_front(), self.shards.front()) else {
            return Ok(());
        };
        let output = &entry.output;
        let mut file = self.open.take().map_or_else(|| NewFile::create_one(output), Ok)?;
        match step {
            Step::Write(written) => {
                let Ok(written) = written.recv() else {
                    bail!("the system has no thread left (raise its limit, or end other programs)")
                };
                file.append(&written.map_err(|error| io_error(output.display(), &error))?)?;
                self.open = Some(file);
            }
            Step::End => {
                lock(&self.finished.waiting).push((entry.clone(), file.complete()?));
                self.shards.pop_front();
                if !self.made.is_of_state() {
                    self.commit(0, || Ok(()))?;
                }
            }
        }
        Ok(())
    }
}
