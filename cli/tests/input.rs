//! How input is read, and what is shown meanwhile.
#![cfg(unix)]
#![forbid(unsafe_code)]

mod common;

use common::{Place, lines};

/// What `command` writes to a terminal.
#[cfg(target_os = "linux")]
fn on_a_terminal(place: &Place, command: &str) -> String {
    let mut script = place.shell(&format!("TERM=xterm script -qec '{command}' /dev/null"));
    if command.ends_with("dedup -q") {
        script.write_stdin("ant\n\u{4}"); // typed, which the terminal shows too
    }
    String::from_utf8(script.assert().success().get_output().stdout.clone()).unwrap()
}

/// The lines that are left on a terminal after `written`.
fn left_on_the_screen(written: &str) -> String {
    let (mut above, mut line, mut column) = (String::new(), Vec::new(), 0);
    let mut rest = written.chars();
    while let Some(next) = rest.next() {
        match next {
            '\n' => {
                above.extend(line.drain(..).chain(['\n']));
                column = 0;
            }
            '\r' => column = 0,
            '\u{1b}' => {
                assert_eq!(rest.by_ref().take(3).collect::<String>(), "[2K", "{written:?}");
                line.clear();
            }
            letter => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    above.extend(line);
    above
}

#[test]
#[cfg(target_os = "linux")]
fn progress_is_shown_on_a_terminal_wherever_the_output_goes() {
    let place = Place::new();
    let keys = lines(0..100_000);
    place.write("keys", &keys);
    place.write("short", "antbee");
    place.bloomline(&["build", "-q", "-o", "f", "keys"]).assert().success().stderr("");
    // Output to the same terminal stays whole.
    for (command, output) in [
        ("build -q -o g keys", ""),
        ("dedup -q keys >once", ""),
        ("check f keys >once", ""),
        ("dedup -q keys", &keys),
        ("check f keys", &keys),
    ] {
        let shown = on_a_terminal(&place, &format!("$b {command}"));
        for part in [" % ", " keys, ", " ETA "] {
            assert!(shown.contains(part), "{command}: {part}");
        }
        assert!(left_on_the_screen(&shown) == output, "{command}");
    }
    assert!(place.read("once") == keys.as_bytes());
    let shown = on_a_terminal(&place, "$b build -o g keys");
    assert!(left_on_the_screen(&shown).starts_with("bloomline: g: 100,000 keys, "), "{shown}");
    // None over what is being typed, and none where the cursor stays in the last line of output.
    for command in ["$b dedup -q", "echo ant | $b dedup -q -0", "$b dedup -q --length 3 short"] {
        let shown = on_a_terminal(&place, command);
        assert!(shown.starts_with("ant") && !shown.contains('\u{1b}'), "{command}: {shown:?}");
    }
    // Nothing where standard error is not a terminal.
    assert_eq!(on_a_terminal(&place, "$b build -q -o g keys 2>log"), "");
    assert_eq!(place.read("log"), b"");
}
