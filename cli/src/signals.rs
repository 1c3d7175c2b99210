//! What is done before a signal ends the process.
#![forbid(unsafe_code)]

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use crate::output::remove_temporary;

type Action = Box<dyn FnOnce() + Send>;

static BEFORE_END: Mutex<Option<Action>> = Mutex::new(None);

/// From now on Ctrl-C and SIGTERM do `action` before they end the process. A second signal does not wait for it.
pub fn before_end(action: impl FnOnce() + Send + 'static) -> io::Result<()> {
    *BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    watch()
}

/// From now on Ctrl-C and SIGTERM remove the temporary file.
// Not SIGHUP, which `nohup` has ignored.
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
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
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
