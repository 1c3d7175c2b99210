//! A temporary directory, and the program run in it.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;
use tempfile::TempDir;

pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub fn directory(&self) -> &Path {
        self.0.path()
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

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("removed");
    }

    /// Copies a file, with one bit of this byte changed.
    pub fn damage(&self, name: &str, at: usize, copy: &str) {
        let mut bytes = self.read(name);
        bytes[at] ^= 1;
        self.write(copy, bytes);
    }

    /// Names of all files, hidden ones too.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("listed");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// The names and what the files hold that can be read.
    fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let read = |name: &str| self.path(name).is_file().then(|| fs::read(self.path(name)).ok()).flatten();
        self.files().into_iter().map(|name| (name.clone(), read(&name))).collect()
    }

    /// `bloomline` with these arguments, quoted as for a shell, in the directory.
    pub fn bloomline(&self, line: impl AsRef<str>) -> Command {
        self.command(program(), &shlex::split(line.as_ref()).expect("arguments"))
    }

    /// A shell command run in the directory, where `$b` is the program.
    pub fn shell(&self, line: impl AsRef<str>) -> Command {
        self.command("sh", &["-c".into(), line.as_ref().into()])
    }

    /// The limit only ends a test that hangs.
    fn command(&self, program: &str, arguments: &[String]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).env("b", self::program()).args(arguments);
        command.timeout(Duration::from_secs(600));
        command
    }

    /// Starts `bloomline`, with pipes to and from it.
    pub fn start(&self, line: impl AsRef<str>) -> Child {
        let mut command = std::process::Command::new(program());
        command.current_dir(self.0.path()).args(shlex::split(line.as_ref()).expect("arguments"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
    }

    pub fn run(&self, line: impl AsRef<str>) -> Assert {
        self.bloomline(line).assert()
    }

    /// Runs `bloomline` on this standard input.
    pub fn feed(&self, line: impl AsRef<str>, input: impl Into<Vec<u8>>) -> Assert {
        self.bloomline(line).write_stdin(input).assert()
    }

    pub fn sh(&self, line: impl AsRef<str>) -> Assert {
        self.shell(line).assert()
    }

    /// What a command prints that succeeds.
    pub fn prints(&self, line: impl AsRef<str>) -> String {
        stdout(&self.run(line).success())
    }

    pub fn json(&self, line: impl AsRef<str>) -> Value {
        serde_json::from_str(&self.prints(line)).expect("JSON")
    }

    /// Fails with one line that contains all of `texts`, prints nothing, and changes no file.
    #[track_caller]
    pub fn refuses(&self, line: impl AsRef<str>, texts: &[&str]) {
        self.fails(self.bloomline(line), "", texts);
    }

    /// As [`refuses`](Self::refuses), after it has printed lines from the beginning of `input` at most.
    #[track_caller]
    pub fn refuses_after(&self, line: impl AsRef<str>, input: &str, texts: &[&str]) {
        self.fails(self.bloomline(line), input, texts);
    }

    /// As [`refuses`](Self::refuses), of a shell command.
    #[track_caller]
    pub fn refuses_in_shell(&self, line: impl AsRef<str>, texts: &[&str]) {
        self.fails(self.shell(line), "", texts);
    }

    #[track_caller]
    fn fails(&self, mut command: Command, input: &str, texts: &[&str]) {
        let before = self.contents();
        let failed = command.write_stdin(input).assert().code(2);
        assert!(input.starts_with(&stdout(&failed)), "something was skipped");
        let error = stderr(&failed);
        assert!(error.starts_with("bloomline: ") && error.lines().count() == 1, "{error}");
        assert!(texts.iter().all(|text| error.contains(text)), "{error}, and {texts:?}");
        // Or as one of the texts says.
        let has_remedy = error.ends_with(")\n") || texts.iter().any(|text| text.ends_with('\n'));
        assert!(has_remedy, "no remedy: {error}");
        assert!(before == self.contents(), "{:?}", self.files());
    }
}

/// A place with keys and a filter of them.
pub fn place() -> Place {
    let place = Place::new();
    place.write("keys", lines(0..1000));
    place.run("build -q -o f keys").success();
    place
}

pub fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
}

pub fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).expect("UTF-8")
}

/// Gives a process its input, and waits until it has printed this.
pub fn exchange(child: &mut Child, input: &str, printed: &str) {
    child.stdin.as_mut().expect("piped").write_all(input.as_bytes()).expect("written");
    reads(child.stdout.as_mut().expect("piped"), printed);
}

pub fn reads(from: &mut dyn Read, expected: &str) {
    let mut found = vec![0; expected.len()];
    from.read_exact(&mut found).expect("read");
    assert_eq!(found, expected.as_bytes());
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_bloomline")
}

/// In a shell, the program on one core if the system has a command for that.
pub const ON_ONE_CORE: &str = "$(command -v taskset >/dev/null && echo taskset -c 0) $b";

/// Waits until files that were written have a time that the next change will not have.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(150));
}

/// Lines of about 30 bytes, all different.
pub fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("user{:020}/{i}\n", bloomline::mix(i))).collect()
}

pub fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes.as_ref()).expect("compressed");
    gzip.finish().expect("compressed")
}

/// The JSON objects in a text.
pub fn objects(text: &[u8]) -> Vec<Value> {
    serde_json::Deserializer::from_slice(text).into_iter().map(|object| object.expect("JSON")).collect()
}

/// The footer of a state, from section 11 of docs/format.md. `rule` is column, length and flags with the version.
pub fn footer(capacity: u64, keys: u64, fpr: f64, rule: [u64; 3]) -> Vec<u8> {
    let words = [capacity, keys, fpr.to_bits(), rule[0], rule[1], rule[2]].map(u64::to_le_bytes);
    [words.as_flattened(), &end_of_footer(words.as_flattened())].concat()
}

/// The checksum of the words, and the magic bytes.
pub fn end_of_footer(words: &[u8]) -> Vec<u8> {
    [xxhash_rust::xxh64::xxh64(words, 0).to_le_bytes(), *b"\x89bldup\r\n"].concat()
}
