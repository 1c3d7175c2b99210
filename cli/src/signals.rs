//! What is done before a signal ends the process.
#![forbid(unsafe_code)]

use std::io;
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use crate::output::remove_temporary;

type Action = Box<dyn FnOnce() + Send>;

static BEFORE_END: Mutex<Option<Action>> = Mutex::new(None);

/// From now on a full quota (SIGXFSZ) ends no process: the write fails instead, and that is told.
pub fn let_writes_fail() -> io::Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}

/// From now on Ctrl-C, SIGTERM and SIGHUP do `action` before they end the process. A second signal does not wait for it.
pub fn before_end(action: impl FnOnce() + Send + 'static) -> io::Result<()> {
    *BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    watch()
}

/// From now on Ctrl-C, SIGTERM and SIGHUP remove the temporary file.
pub fn watch() -> io::Result<()> {
    static WATCHED: OnceLock<()> = OnceLock::new();
    if WATCHED.set(()).is_ok() {
        #[cfg(unix)]
        on_signals()?;
    }
    Ok(())
}

/// For whoever finds that a signal is ending the process already.
pub fn wait_for_end() -> ! {
    loop {
        thread::park();
    }
}

#[cfg(unix)]
fn on_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    // What `nohup`, or a shell that put us in the background, has ignored stays so.
    let ignored = ignored_signals();
    let is_watched = |signal: &i32| ignored.map_or(*signal != SIGHUP, |mask| mask >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM].iter().filter(|signal| is_watched(signal)))?;
    // By the signal itself, so that a shell's loop stops as well.
    let end = |signal| {
        remove_temporary();
        let _ = emulate_default_handler(signal);
    };
    thread::spawn(move || {
        for signal in signals.forever() {
            // In a thread of its own, so that another signal finds nothing left to do, and ends the process at once.
            thread::spawn(move || {
                let action = BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner).take();
                action.into_iter().for_each(|action| action());
                end(signal);
            });
        }
    });
    Ok(())
}

/// One bit for each, from signal 1 on; `None` where the system does not tell without unsafe code.
#[cfg(unix)]
fn ignored_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}
