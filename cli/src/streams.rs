//! Standard input and output, where a closed one is an error.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
#[cfg(unix)]
use std::mem;
#[cfg(unix)]
use std::os::fd::AsFd;

#[cfg(unix)]
use rustix::fs::{Mode, OFlags, open};
#[cfg(unix)]
use rustix::{io::fcntl_getfd, stdio};

/// Rust's runtime opens `/dev/null` in place of closed streams before `main`, so that input would be empty and output
/// lost without an error. This runs earlier. A directory can neither be read nor written, by whatever name, such as
/// `/dev/stdin`.
#[cfg(unix)]
extern "C" fn fill_closed() {
    // In this order, because `open` returns the lowest descriptor that is closed.
    for stream in [stdio::stdin(), stdio::stdout()] {
        if fcntl_getfd(stream).is_err() {
            mem::forget(open(c"/", OFlags::RDONLY, Mode::empty()));
        }
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "there is no safe way to run before Rust's runtime")]
// SAFETY: the section holds functions of this type. This one needs nothing that the runtime sets up.
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[used]
static BEFORE_RUNTIME: extern "C" fn() = fill_closed;

/// Unbuffered.
#[cfg(unix)]
fn opened(stream: &impl AsFd, remedy: &str) -> io::Result<File> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    if file.metadata()?.is_dir() {
        return Err(io::Error::other(format!("closed, or a directory ({remedy})")));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn opened<T>(_: &T, _: &str) -> io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

pub fn stdin() -> io::Result<File> {
    opened(&io::stdin(), "redirect it, or name a file")
}

pub fn stdout() -> io::Result<File> {
    opened(&io::stdout(), "redirect it")
}

/// Standard input to read. Where it cannot be read, Rust's own would be empty.
pub fn input() -> io::Result<Box<dyn Read + Send>> {
    match stdin() {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Box::new(io::stdin())),
        stdin => Ok(Box::new(stdin?)),
    }
}
