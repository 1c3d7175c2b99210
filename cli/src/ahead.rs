//! Reads several files at a time, and passes their chunks on in order.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use anyhow::{Result, ensure};

use crate::keys::{Chunk, Keys};
use crate::signals::lock;

/// Passes chunks, their hashes, and what is wrong with the line after the last hash, to `each`, in the input's order and
/// in this thread, until it returns `false`. Returns whether all files could be read.
///
/// All cores decompress, parse and hash JSON, each core one file at a time. So they do for an output of each file.
pub fn in_order<'a>(
    mut keys: Keys<'a>,
    seed: u64,
    mut each: impl FnMut(&Chunk<'a>, &[u64], Result<()>) -> Result<bool>,
) -> Result<bool> {
    let n_threads = match thread::available_parallelism() {
        Ok(n) if keys.is_costly() => n.get(),
        _ => 1,
    };
    if n_threads == 1 {
        let (mut chunk, mut hashes, mut n_lines) = (Chunk::new(keys.input()), Vec::new(), 0);
        loop {
            let read = keys.next_chunk();
            keys.swap(&mut chunk);
            if matches!(read, Ok(false)) {
                break;
            }
            let hashed = chunk.hash_if(read, seed, &mut hashes);
            n_lines += chunk.n_lines();
            let goes_on = each(&chunk, &hashes, hashed)?;
            keys.show(&mut chunk, n_lines);
            if !goes_on {
                break;
            }
        }
        return Ok(keys.end());
    }
    let (filled, results) = mpsc::channel::<((usize, u64), Filled, Result<()>, bool)>();
    let ahead = Ahead::new(keys, n_threads);
    let work = |filled: mpsc::Sender<_>| {
        while let Some((mut file, mut filling)) = ahead.next() {
            let read = file.keys.next_chunk();
            file.keys.swap(&mut filling.chunk);
            let place = (file.number, file.n_chunks);
            let is_end = !matches!(read, Ok(true));
            ahead.put_back(file, (!is_end).then_some(filling.chunk.n_bytes()));
            let hashed = filling.chunk.hash_if(read, seed, &mut filling.hashes);
            // Nobody waits for it after an error.
            let _ = filled.send((place, filling, hashed, is_end));
        }
    };
    let take = || -> Result<()> {
        let (mut next, mut early, mut n_lines) = ((0, 0), BTreeMap::new(), 0);
        for (place, filled, hashed, is_end) in results {
            early.insert(place, (filled, hashed, is_end));
            while let Some((filled, hashed, is_end)) = early.remove(&next) {
                let is_nothing = is_end && hashed.is_ok();
                let goes_on = is_nothing || each(&filled.chunk, &filled.hashes, hashed)?;
                if is_end {
                    next = (next.0 + 1, 0);
                } else {
                    n_lines += filled.chunk.n_lines();
                    ahead.give(filled, next.0, n_lines);
                    next.1 += 1;
                }
                if !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let done = thread::scope(|scope| {
        let start = |filled| thread::Builder::new().spawn_scoped(scope, || work(filled)).map(drop);
        let started: Vec<_> = vec![filled; n_threads].into_iter().map(start).collect();
        let has_any = started.iter().any(Result::is_ok);
        ensure!(has_any, "the system has no thread left (raise its limit, or end other programs)");
        let done = take();
        ahead.stop();
        done
    });
    done.map(|()| ahead.end())
}

/// A chunk and the hashes of its keys.
struct Filled<'a> {
    chunk: Chunk<'a>,
    hashes: Vec<u64>,
}

/// A file that is read, and how many chunks of it were.
struct OpenFile<'a> {
    number: usize,
    n_chunks: u64,
    keys: Keys<'a>,
}

/// Files that threads read ahead of the one that takes their chunks in order.
struct Ahead<'a> {
    files: Mutex<Files<'a>>,
    has_changed: Condvar,
    n_threads: usize,
}

struct Files<'a> {
    /// Those that are begun and not ended, or `None` while a thread reads it.
    open: BTreeMap<usize, Option<OpenFile<'a>>>,
    /// The first one that is not begun, and the number of all.
    next: usize,
    end: usize,
    /// Bytes of each file that were read and not taken yet.
    ahead: BTreeMap<usize, usize>,
    free: Vec<Filled<'a>>,
    is_stopped: bool,
    /// What there is to note of all files.
    all: Keys<'a>,
}

impl<'a> Ahead<'a> {
    fn new(all: Keys<'a>, n_threads: usize) -> Self {
        let (end, open, ahead) = (all.input().files.len(), BTreeMap::new(), BTreeMap::new());
        let files = Files { open, next: 0, end, ahead, free: Vec::new(), is_stopped: false, all };
        Self { files: Mutex::new(files), has_changed: Condvar::new(), n_threads }
    }

    /// The first file that can be read and what to fill, or `None` at the end.
    fn next(&self) -> Option<(OpenFile<'a>, Filled<'a>)> {
        const MOST_AHEAD: usize = 4 << 20;
        let mut files = lock(&self.files);
        loop {
            let Files { open, next, end, ahead, free, is_stopped, all } = &mut *files;
            if *next < *end && open.len() < self.n_threads && !open.values().any(Option::is_some) {
                open.insert(*next, Some(OpenFile { number: *next, n_chunks: 0, keys: all.open(*next) }));
                *next += 1;
            }
            if open.is_empty() || *is_stopped {
                return None;
            }
            let is_enough = ahead.values().sum::<usize>() >= MOST_AHEAD * self.n_threads;
            // A file of which nothing waits is read in any case, because it can be the one that is waited for.
            let can_be_read = |number| !is_enough || !ahead.contains_key(number);
            let mut files_to_read =
                open.iter_mut().filter(|(number, file)| file.is_some() && can_be_read(number));
            if let Some(file) = files_to_read.next().and_then(|(_, file)| file.take()) {
                let new = || Filled { chunk: Chunk::new(all.input()), hashes: Vec::new() };
                return Some((file, free.pop().unwrap_or_else(new)));
            }
            files = self.has_changed.wait(files).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts a file back of which `n_bytes` were read, or nothing at its end.
    fn put_back(&self, mut file: OpenFile<'a>, n_bytes: Option<usize>) {
        let (mut files, number) = (lock(&self.files), file.number);
        file.n_chunks += 1;
        if let Some(n_bytes) = n_bytes {
            *files.ahead.entry(number).or_default() += n_bytes;
            files.open.insert(number, Some(file));
        } else {
            files.open.remove(&number);
            files.all.close(file.keys);
        }
        self.has_changed.notify_all();
    }

    /// Gives back what was filled from this file.
    fn give(&self, mut filled: Filled<'a>, file: usize, n_lines: u64) {
        let mut files = lock(&self.files);
        if let Some(ahead) = files.ahead.get_mut(&file) {
            *ahead -= filled.chunk.n_bytes();
            if *ahead == 0 {
                files.ahead.remove(&file);
            }
        }
        files.all.show(&mut filled.chunk, n_lines);
        // The keys of a long line can need several times its memory.
        if !filled.chunk.is_long() {
            files.free.push(filled);
        }
        self.has_changed.notify_all();
    }

    fn stop(&self) {
        lock(&self.files).is_stopped = true;
        self.has_changed.notify_all();
    }

    fn end(self) -> bool {
        self.files.into_inner().unwrap_or_else(PoisonError::into_inner).all.end()
    }
}
