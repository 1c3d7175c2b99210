//! Progress bars on standard error.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::io::{self, IsTerminal, Read};
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressStyle};

use crate::signals::lock;

/// The bar on the terminal, for [`suspended`].
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A bar on standard error until dropped, if that is a terminal. One at a time.
pub struct Progress {
    bar: ProgressBar,
    /// What is drawn now.
    stage: Cell<Stage>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Never,
    /// Not in the first half second, in which many commands end.
    NotYet,
    Bar,
    /// After a second, because earlier the time left is a guess.
    BarWithEta,
}

impl Progress {
    /// `total` is in bytes. Without it, the bytes done are shown, but no time left.
    pub fn new(doing: &'static str, total: Option<u64>, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), stage: Cell::new(Stage::Never) };
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_prefix(doing);
        Self { bar, stage: Cell::new(Stage::NotYet) }
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
        let (stage, elapsed) = (self.stage.get(), self.bar.elapsed().as_secs_f64());
        let next = match stage {
            Stage::NotYet if elapsed >= 0.5 => Stage::Bar,
            Stage::Bar if elapsed >= 1.0 => Stage::BarWithEta,
            _ => return,
        };
        self.stage.set(next);
        let template = match (self.bar.length(), next) {
            (None, _) => "{prefix} {bytes} {msg}",
            (Some(_), Stage::BarWithEta) => "{prefix} {wide_bar} {percent:>3} % {msg} ETA {eta}",
            (Some(_), _) => "{prefix} {wide_bar} {percent:>3} % {msg}",
        };
        self.bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
        if stage == Stage::NotYet {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            *lock(&SHOWN) = Some(self.bar.clone());
        }
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
