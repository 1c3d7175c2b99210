//! `BLOOMLINE_KERNEL` excludes the faster kernels in the whole process, and selects none that the CPU lacks.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use bloomline::{BloomFilter, Kernel};

/// Fastest first, on all CPUs together.
const NAMES: [&str; 6] = ["avx512", "avx2", "sse4.1", "neon", "portable", "reference"];

/// All other tests of this file run it in processes of their own, because the environment is read once. Prints the
/// available kernels.
#[test]
fn child() {
    let available: Vec<_> = Kernel::available().map(Kernel::name).collect();
    println!("available: {};", available.join(" "));
    assert_eq!(available[0], Kernel::active().name());
    assert_eq!(BloomFilter::with_blocks(1, 6).unwrap().kernel(), Kernel::active());
}

/// The kernels that are available in a process whose environment names this one. Asserts that it writes nothing to
/// standard error.
fn available(name: impl AsRef<OsStr>) -> Vec<String> {
    // An emulator runs only this process, and would not run its child.
    let prefix = format!("CARGO_TARGET_{}_", env::consts::ARCH.to_uppercase());
    let emulator = env::vars_os().find_map(|(name, emulator)| {
        let name = name.to_str()?;
        (name.starts_with(&prefix) && name.ends_with("_RUNNER")).then(|| emulator.into_string().unwrap())
    });
    let emulator = emulator.unwrap_or_default();
    let test = env::current_exe().unwrap();
    let mut words = emulator.split_whitespace().map(OsStr::new).chain([test.as_os_str()]);
    let mut child = Command::new(words.next().unwrap());
    child.args(words).args(["--exact", "child", "--nocapture"]);
    child.env("BLOOMLINE_KERNEL", &name);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{child:?}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{:?}", name.as_ref());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let (_, names) = stdout.split_once("available: ").unwrap();
    names.split_once(';').unwrap().0.split(' ').map(str::to_owned).collect()
}

fn of_this_cpu() -> Vec<String> {
    available("")
}

/// A kernel that is missing here costs only time, which no other test notices.
#[test]
#[cfg(target_arch = "x86_64")]
fn without_a_limit_the_cpu_s_features_decide() {
    let has_bmi = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
    let features = [
        ("avx512", has_bmi && is_x86_feature_detected!("avx512f")),
        ("avx2", has_bmi && is_x86_feature_detected!("avx2")),
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("portable", true),
        ("reference", true),
    ];
    let expected: Vec<_> = features.into_iter().filter_map(|(name, has)| has.then_some(name)).collect();
    assert_eq!(of_this_cpu(), expected);
}

/// The kernels of this CPU from `limit` on.
fn limited(limit: &str) -> Vec<String> {
    let allowed = NAMES.iter().skip_while(|&&name| name != limit);
    allowed
        .filter(|&&name| of_this_cpu().iter().any(|other| other == name))
        .map(|&name| name.to_owned())
        .collect()
}

#[test]
fn the_environment_excludes_the_faster_kernels() {
    for name in NAMES {
        let expected = limited(name);
        assert!(!expected.is_empty());
        assert_eq!(available(name), expected, "{name}");
    }
}

/// A library that prints would surprise its host. `kernel_log` tests the warning for hosts that ask for it.
#[test]
fn an_unknown_name_leaves_portable_code_and_prints_nothing() {
    for name in ["avx3", "AVX2", "avx2 ", "0", "off"] {
        assert_eq!(available(name), ["portable", "reference"], "{name:?}");
    }
    #[cfg(unix)]
    assert_eq!(
        available(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"avx\xff")),
        ["portable", "reference"]
    );
}
