//! A logger that keeps what is logged. A process has one, so each test that uses it is the only one of its file.

use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};

struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl Log for Warnings {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push(format!("{}: {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

/// Keeps warnings from now on.
pub fn keep() {
    log::set_logger(&WARNINGS).unwrap();
    log::set_max_level(LevelFilter::Warn);
}

/// All warnings so far.
pub fn kept() -> Vec<String> {
    WARNINGS.0.lock().unwrap().clone()
}
