//! Progress bars on standard error.
#![forbid(unsafe_code)]

use std::io::{self, IsTerminal, Read};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressBarIter, ProgressStyle};

use crate::signals::lock;

/// The bar on the terminal, for [`suspended`].
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A bar on standard error until dropped, if that is a terminal. One at a time.
pub struct Progress(ProgressBar);

impl Progress {
    /// `total` is in bytes; without it, the bytes done are shown, with no time left.
    pub fn new(doing: &'static str, total: Option<u64>) -> Self {
        if !io::stderr().is_terminal() {
            return Self::hidden();
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{prefix} {wide_bar} {percent:>3} % {msg} ETA {eta}"),
            None => (ProgressBar::no_length(), "{prefix} {bytes} {msg}"),
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        let bar = bar.with_style(style).with_prefix(doing);
        *lock(&SHOWN) = Some(bar.clone());
        Self(bar)
    }

    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub fn add(&self, done: u64) {
        self.0.inc(done);
    }

    /// Shows `count` of what is named, and how many a second.
    pub fn count(&self, count: u64, what: &str) {
        if !self.0.is_hidden() {
            let per_second = count as f64 / self.0.elapsed().as_secs_f64();
            let [count, per_second] = [count as f64, per_second].map(crate::numbers::short);
            self.0.set_message(format!("{count} {what}, {per_second}/s"));
        }
    }

    /// Adds the bytes read from `reader` as they are read.
    pub fn reading<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.0.wrap_read(reader)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.0.is_hidden() {
            self.0.finish_and_clear();
            *lock(&SHOWN) = None;
        }
    }
}

/// Takes the bar off the terminal while `write` writes to it.
pub fn suspended<T>(write: impl FnOnce() -> T) -> T {
    let shown = lock(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
