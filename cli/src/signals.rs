//! Cleanup before a signal ends the process.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
#[cfg(unix)]
use std::time::{Duration, Instant};

use tempfile::TempPath;

type Action = Box<dyn FnOnce() + Send>;

static BEFORE_END: Mutex<Option<Action>> = Mutex::new(None);
/// The signal that ends the process.
#[cfg(unix)]
static FIRST: OnceLock<i32> = OnceLock::new();
static IS_IMPATIENT: AtomicBool = AtomicBool::new(false);

/// Locks even if another thread has panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a write over a file-size limit fail with an error. Otherwise SIGXFSZ would end the process.
pub fn let_writes_fail() -> io::Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}

/// Runs `action` before Ctrl-C, SIGTERM or SIGHUP ends the process.
pub fn before_end(action: impl FnOnce() + Send + 'static) -> io::Result<()> {
    *lock(&BEFORE_END) = Some(Box::new(action));
    watch()
}

/// Whether a signal came a second or more after the first one. Earlier ones are repetitions: `timeout` signals its child
/// and then the group, and a terminal that is closed hangs up twice.
pub fn is_impatient() -> bool {
    IS_IMPATIENT.load(Relaxed)
}

/// The temporary file that Ctrl-C, SIGTERM and SIGHUP remove once [`watch`] has been called. There is one at a time.
pub fn temporary() -> MutexGuard<'static, Option<TempPath>> {
    static TEMPORARY: Mutex<Option<TempPath>> = Mutex::new(None);
    lock(&TEMPORARY)
}

/// The locked file that they remove before they unlock it, because an unlocked one could be another process's by then.
/// There is one at a time.
pub fn locked() -> MutexGuard<'static, Option<(TempPath, File)>> {
    static LOCKED: Mutex<Option<(TempPath, File)>> = Mutex::new(None);
    lock(&LOCKED)
}

/// Handles Ctrl-C, SIGTERM and SIGHUP from now on.
pub fn watch() -> io::Result<()> {
    static WATCHED: OnceLock<()> = OnceLock::new();
    if WATCHED.set(()).is_ok() {
        #[cfg(unix)]
        on_signals()?;
    }
    Ok(())
}

/// For callers that find that a signal is ending the process.
pub fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

/// Ends the process by the signal that came while it did its last work, if one did.
pub fn end_if_any() {
    #[cfg(unix)]
    if let Some(&signal) = FIRST.get() {
        // By the signal itself, so that a shell's loop stops as well.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

#[cfg(unix)]
fn on_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // Signals ignored at the start, by `nohup` or by a shell that put us in the background, stay ignored.
    let ignored = ignored_signals();
    let is_watched = |signal: &i32| ignored.map_or(*signal != SIGHUP, |mask| mask >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM].iter().filter(|signal| is_watched(signal)))?;
    thread::spawn(move || {
        let mut signals = signals.forever();
        let (Some(first), time) = (signals.next(), Instant::now()) else { return };
        let _ = FIRST.set(first);
        if thread::Builder::new().spawn(end).is_err() {
            end(); // there is no thread left to look for further signals
        }
        let is_late = |_: &i32| time.elapsed() >= Duration::from_secs(1);
        signals.filter(is_late).for_each(|_| IS_IMPATIENT.store(true, Relaxed));
    });
    Ok(())
}

#[cfg(unix)]
fn end() {
    // All stay locked, so that the main thread waits for the end instead of beginning anew.
    let mut action = lock(&BEFORE_END);
    action.take().into_iter().for_each(|action| action());
    let (mut temporary, mut locked) = (temporary(), locked());
    temporary.take();
    locked.take();
    end_if_any();
}

/// One bit for each signal, beginning with signal 1. `None` on systems where only unsafe code can read them.
#[cfg(unix)]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}
