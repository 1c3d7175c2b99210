//! A limit excludes the faster kernels in the whole process, and selects none that the CPU lacks.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

use bloomline::{BloomFilter, Kernel};

/// Fastest first, on all CPUs together.
const NAMES: [&str; 6] = ["avx512", "avx2", "sse4.1", "neon", "portable", "reference"];

/// Every other test runs this one in processes of their own, since a limit holds until the process ends. Sets the limits
/// in `LIMITS`, and prints the kernels that are available then.
#[test]
fn child() {
    // Where the environment sets a limit, the first use of a kernel is the other limit.
    let first = env::var_os("BLOOMLINE_KERNEL").is_none().then(|| {
        let filter = BloomFilter::with_blocks(1, 6).unwrap();
        (filter.kernel(), filter)
    });
    for name in env::var("LIMITS").iter().flat_map(|limits| limits.split(' ')) {
        assert_eq!(Kernel::limit(name).unwrap(), Kernel::active());
    }
    let available: Vec<_> = Kernel::available().map(Kernel::name).collect();
    println!("available: {};", available.join(" "));
    assert_eq!(available[0], Kernel::active().name());
    assert_eq!(BloomFilter::with_blocks(1, 6).unwrap().kernel(), Kernel::active());
    if let Some((kernel, filter)) = first {
        assert_eq!(filter.kernel(), kernel, "an existing filter keeps its kernel");
    }
    for name in NAMES {
        assert_eq!(Kernel::by_name(name).map(Kernel::name), available.contains(&name).then_some(name));
    }
}

/// The kernels that are available in a process with these variables in its environment.
fn available<V: AsRef<OsStr>>(variables: &[(&str, V)]) -> Vec<String> {
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
    child.env_remove("BLOOMLINE_KERNEL").env_remove("LIMITS").envs(variables.iter().map(|(k, v)| (k, v)));
    let output = child.output().unwrap();
    assert!(output.status.success(), "{child:?}: {output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let (_, names) = stdout.split_once("available: ").unwrap();
    names.split_once(';').unwrap().0.split(' ').map(str::to_owned).collect()
}

fn of_this_cpu() -> Vec<String> {
    available::<&str>(&[])
}

/// A kernel that is missing here costs only time, which no other test notices.
#[test]
#[cfg(all(feature = "std", target_arch = "x86_64"))]
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

/// Those of this CPU from `limit` on.
fn limited(limit: &str) -> Vec<String> {
    let allowed = NAMES.iter().skip_while(|&&name| name != limit);
    allowed
        .filter(|&&name| of_this_cpu().iter().any(|other| other == name))
        .map(|&name| name.to_owned())
        .collect()
}

#[test]
fn a_limit_excludes_the_faster_kernels() {
    for name in NAMES {
        let expected = limited(name);
        assert!(!expected.is_empty());
        assert_eq!(available(&[("BLOOMLINE_KERNEL", name)]), expected, "{name} in the environment");
        assert_eq!(available(&[("LIMITS", name)]), expected, "{name} by the function");
    }
}

#[test]
fn the_strictest_limit_holds() {
    for (limits, expected) in [("portable avx512", "portable"), ("sse4.1 reference portable", "reference")] {
        assert_eq!(available(&[("LIMITS", limits)]), limited(expected), "{limits}");
    }
    for (environment, limit) in [("portable", "avx2"), ("avx2", "portable")] {
        let variables = [("BLOOMLINE_KERNEL", environment), ("LIMITS", limit)];
        assert_eq!(available(&variables), limited("portable"), "{variables:?}");
    }
}

#[test]
fn an_unknown_name_in_the_environment_limits_to_portable() {
    for name in ["avx3", "AVX2", "avx2 ", "0", "off"] {
        assert_eq!(available(&[("BLOOMLINE_KERNEL", name)]), ["portable", "reference"], "{name:?}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let variable = ("BLOOMLINE_KERNEL", OsStr::from_bytes(b"avx\xff"));
        assert_eq!(available(&[variable]), ["portable", "reference"]);
    }
    assert_eq!(available(&[("BLOOMLINE_KERNEL", "")]), of_this_cpu());
}

#[test]
fn an_unknown_name_from_the_program_is_an_error_and_no_limit() {
    let active = Kernel::active();
    let error = Kernel::limit("avx3").unwrap_err();
    assert_eq!((error.name.as_str(), Kernel::active()), ("avx3", active));
    let text = error.to_string();
    assert!(text.contains("\"avx3\"") && NAMES.iter().all(|name| text.contains(name)), "{text}");
}
