//! What a file, its links, its mode and its directory are after it was replaced, or was not.
#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, abort};
use std::{env, panic};

use bloomline_replace::{rename_new, save};

fn write(content: &str) -> impl FnOnce(&mut File) -> io::Result<()> {
    move |file| file.write_all(content.as_bytes())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn links_and_modes_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink("second", at("first")).unwrap();
    symlink("file", at("second")).unwrap();
    for content in ["created where the links lead", "replaced", ""] {
        save(&at("first"), write(content)).unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), content);
        assert_eq!(fs::read_link(at("first")).unwrap(), Path::new("second"));
        assert_eq!(fs::read_link(at("second")).unwrap(), Path::new("file"));
    }
    for mode in [0o600, 0o640, 0o755, 0o666] {
        fs::set_permissions(at("file"), Permissions::from_mode(mode)).unwrap();
        save(&at("file"), write("new")).unwrap();
        assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o7777, mode);
    }
    assert_eq!(names(folder.path()), ["file", "first", "second"]);
}

#[test]
fn whoever_has_the_old_file_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let old = File::open(&path).unwrap();
    save(&path, write("new")).unwrap();
    assert_eq!(io::read_to_string(old).unwrap(), "old");
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_writer_that_fails_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let half = |file: &mut File| file.write_all(b"ne").and(Err(io::Error::other("full")));
    assert_eq!(save(&path, half).unwrap_err().to_string(), "full");
    panic::catch_unwind(|| save(&path, |_| panic!("in the writer"))).unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_killed_writer_leaves_the_old_file_and_the_next_removes_its_own() {
    if let Some(path) = env::var_os("REPLACE_AND_DIE") {
        let died = save(Path::new(&path), |file| file.write_all(b"ne").map(|()| abort()));
        unreachable!("{died:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let mut this = Command::new(env::current_exe().unwrap());
    let died = this
        .args(["--exact", "a_killed_writer_leaves_the_old_file_and_the_next_removes_its_own"])
        .env("REPLACE_AND_DIE", &path)
        .output()
        .unwrap();
    assert!(!died.status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    let names = names(folder.path());
    assert!(
        names.len() == 2 && names[0].starts_with(".bloomline-") && names[0].ends_with(".tmp"),
        "{names:?}"
    );
    // Not what another process is writing.
    let in_use = folder.path().join(".bloomline-abcdef.tmp");
    let file = File::create(&in_use).unwrap();
    file.lock().unwrap();
    save(&path, |_| Ok(())).unwrap();
    assert_eq!(self::names(folder.path()), [".bloomline-abcdef.tmp", "file"]);
    drop(file);
    save(&path, |new| save(&path, write("meanwhile")).and_then(|()| new.write_all(b"last"))).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "last");
    assert_eq!(self::names(folder.path()), ["file"]);
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    symlink("pipe", at("link")).unwrap();
    let cases = [
        ("folder", ErrorKind::IsADirectory),
        ("pipe", ErrorKind::InvalidInput),
        ("link", ErrorKind::InvalidInput),
        ("missing/", ErrorKind::NotFound),
        ("missing/..", ErrorKind::NotFound),
        ("missing/file", ErrorKind::NotFound),
    ];
    for (name, kind) in cases {
        let error = save(&at(name), |_| panic!("{name} was opened")).unwrap_err();
        assert_eq!(error.kind(), kind, "{name}: {error}");
    }
    assert_eq!(save(Path::new(""), |_| panic!("opened")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(names(folder.path()), ["folder", "link", "pipe"]);
}

#[test]
fn a_new_file_replaces_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for content in ["first", "second"] {
        let mut file = tempfile::NamedTempFile::new_in(&folder).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let renamed = rename_new(file.into_temp_path(), &at("new"));
        assert_eq!(renamed.is_ok(), content == "first");
    }
    assert_eq!(fs::read_to_string(at("new")).unwrap(), "first");
    // What was not renamed is not lost.
    assert_eq!(names(folder.path()).len(), 2);
}
