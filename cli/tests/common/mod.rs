//! A temporary directory, and the program run in it.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("read")
    }

    /// Names of all files, hidden ones too.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("listed");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// `bloomline` with these arguments, in the directory. The limit only ends a test that hangs.
    pub fn bloomline(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.0.path()).args(arguments).timeout(std::time::Duration::from_secs(600));
        command
    }

    /// A shell command run in the directory, where `$b` is the program.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.current_dir(self.0.path()).env("b", program()).args(["-c", line]);
        command.timeout(std::time::Duration::from_secs(600));
        command
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
    }
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_bloomline")
}

/// Lines of about 30 bytes, all different.
pub fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("user{:020}/{i}\n", bloomline::mix(i))).collect()
}
