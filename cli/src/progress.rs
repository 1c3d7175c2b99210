//! Progress bars on standard error.
#![forbid(unsafe_code)]

use std::fmt;
use std::io::{self, IsTerminal, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use indicatif::{
    HumanDuration, ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressState, ProgressStyle,
};

use crate::signals::lock;

/// The bar on the terminal, for [`suspended`].
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A bar on standard error until dropped, if that is a terminal. One at a time.
pub struct Progress {
    bar: ProgressBar,
    /// Whether it is still to be drawn. It is not in the first half second, in which many commands end.
    is_waiting: AtomicBool,
}

/// The time left. It is not shown in the first second, because it would be a guess.
fn eta(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.elapsed().as_secs() >= 1 {
        let _ = write!(out, " ETA {:#}", HumanDuration(state.eta()));
    }
}

impl Progress {
    /// `total` is in bytes. Without it, the bytes done are shown, but no time left.
    pub fn new(doing: &'static str, total: Option<u64>, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), is_waiting: AtomicBool::new(false) };
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_prefix(doing);
        Self { bar, is_waiting: AtomicBool::new(true) }
    }

    pub fn add(&self, done: u64) {
        self.bar.inc(done);
        self.draw();
    }

    pub fn count(&self, count: u64, what: &str) {
        self.draw();
        if !self.bar.is_hidden() {
            let per_second = count as f64 / self.bar.elapsed().as_secs_f64();
            let [count, per_second] = [count as f64, per_second].map(crate::numbers::short);
            self.bar.set_message(format!("{count} {what}, {per_second}/s"));
        }
    }

    pub fn reading<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.bar.wrap_read(reader)
    }

    fn draw(&self) {
        let is_time = self.is_waiting.load(Relaxed) && self.bar.elapsed() >= Duration::from_millis(500);
        if !is_time || !self.is_waiting.swap(false, Relaxed) {
            return;
        }
        let template = match self.bar.length() {
            None => "{prefix} {bytes} {msg}",
            Some(_) => "{prefix} {wide_bar} {percent:>3} % {msg}{eta_later}",
        };
        let style = ProgressStyle::with_template(template).expect("a valid template");
        self.bar.set_style(style.with_key("eta_later", eta));
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        *lock(&SHOWN) = Some(self.bar.clone());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.bar.is_hidden() {
            self.bar.finish_and_clear();
            *lock(&SHOWN) = None;
        }
    }
}

/// Removes the bar from the terminal while `write` writes to it.
pub fn suspended<T>(write: impl FnOnce() -> T) -> T {
    let shown = lock(&SHOWN).clone();
    match shown {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
