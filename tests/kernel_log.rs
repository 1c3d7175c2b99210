//! With the feature `log`, a name in `BLOOMLINE_KERNEL` that no kernel has is reported once.

use std::env;
use std::sync::Mutex;

use bloomline::Kernel;
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

#[test]
fn an_unknown_name_is_reported_once() {
    log::set_logger(&WARNINGS).unwrap();
    log::set_max_level(LevelFilter::Warn);
    // SAFETY: this is the process's only test, so no other thread accesses the environment.
    unsafe { env::set_var("BLOOMLINE_KERNEL", "avx3") };
    assert_eq!(Kernel::active().name(), "portable");
    assert_eq!(Kernel::available().count(), 2);
    assert_eq!(
        *WARNINGS.0.lock().unwrap(),
        [
            "WARN: BLOOMLINE_KERNEL=\"avx3\" names no kernel, so \"portable\" is used: name one of [\"avx512\", \"avx2\", \
             \"sse4.1\", \"neon\", \"portable\", \"reference\"]"
        ]
    );
}
