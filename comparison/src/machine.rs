//! The machine that the times were measured on.

use std::process::Command;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// For example "AMD Zen 4".
    pub name: String,
    pub cpu: String,
    pub cores: usize,
    pub caches: String,
    pub huge_pages: String,
    pub os: String,
    pub rustc: String,
    /// The version of RocksDB, unless it is left out, and what compiled it.
    pub rocksdb: Option<String>,
    pub cpp: String,
    pub date: String,
    /// `RUSTFLAGS` of the build; empty for a default build.
    pub flags: String,
}

impl Machine {
    pub fn this() -> Self {
        Self {
            name: name(),
            cpu: cpu(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: caches(),
            huge_pages: huge_pages(),
            os: os(),
            rustc: output("rustc", &["--version"]),
            rocksdb: option_env!("ROCKSDB_VERSION").map(str::to_owned),
            cpp: output("c++", &["--version"]),
            date: output("date", &["-u", "+%Y-%m-%d"]),
            flags: option_env!("RUSTFLAGS").unwrap_or_default().to_owned(),
        }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The first line that the program prints.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_else(unknown)
}

/// The value after the colon of the first line that begins with `name`.
fn value(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
    let value = line.split_once(':')?.1.trim();
    (!value.is_empty() && value != "-").then(|| value.to_owned())
}

fn cpu() -> String {
    let mut text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut name = value(&text, "model name");
    if name.is_none() {
        let listed = Command::new("lscpu").output();
        text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        name = value(&text, "Model name");
    }
    let name = name.unwrap_or_else(unknown);
    // Virtual machines report a shortened name.
    match (value(&text, "cpu family"), value(&text, "model\t")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name,
    }
}

/// The core's name where it is known. Virtual machines often hide the model's name, but not its number.
fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let number = |field| {
        let value = value(&text, field)?;
        let hexadecimal = value.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16).ok());
        hexadecimal.unwrap_or_else(|| value.parse().ok())
    };
    if let (Some(family), Some(model)) = (number("cpu family"), number("model\t")) {
        let vendor = match value(&text, "vendor_id").unwrap_or_default().as_str() {
            "AuthenticAMD" => "AMD",
            "GenuineIntel" => "Intel",
            vendor => vendor,
        }
        .to_owned();
        let core = match (&*vendor, family, model) {
            ("AMD", 0x17, 0x30..=0x4f | 0x60..=0x7f | 0x84 | 0x90..=0xaf) => "Zen 2",
            ("AMD", 0x17, _) => "Zen",
            ("AMD", 0x19, 0x10..=0x1f | 0x60..=0xaf) => "Zen 4",
            ("AMD", 0x19, _) => "Zen 3",
            ("AMD", 0x1a, 0x00..=0x4f | 0x60..=0x7f) => "Zen 5",
            ("Intel", 6, 60 | 63 | 69 | 70) => "Haswell",
            ("Intel", 6, 61 | 71 | 79 | 86) => "Broadwell",
            ("Intel", 6, 78 | 94 | 142 | 158) => "Skylake",
            ("Intel", 6, 85) => match number("stepping") {
                Some(0..=4) => "Skylake-X",
                Some(5..=7) => "Cascade Lake",
                _ => "Cooper Lake",
            },
            ("Intel", 6, 106 | 108 | 125 | 126) => "Ice Lake",
            ("Intel", 6, 140 | 141) => "Tiger Lake",
            ("Intel", 6, 151 | 154) => "Alder Lake",
            ("Intel", 6, 183 | 186 | 191) => "Raptor Lake",
            ("Intel", 6, 143) => "Sapphire Rapids",
            ("Intel", 6, 207) => "Emerald Rapids",
            ("Intel", 6, 173 | 174) => "Granite Rapids",
            _ => return format!("{vendor} family {family} model {model}"),
        };
        return format!("{vendor} {core}");
    }
    match (number("CPU implementer"), number("CPU part")) {
        (Some(0x41), Some(0xd0c)) => "Arm Neoverse N1".to_owned(),
        (Some(0x41), Some(0xd40)) => "Arm Neoverse V1".to_owned(),
        (Some(0x41), Some(0xd49)) => "Arm Neoverse N2".to_owned(),
        (Some(0x41), Some(0xd4f)) => "Arm Neoverse V2".to_owned(),
        (Some(implementer), Some(part)) => format!("Arm {implementer:x} {part:x}"),
        _ => unknown(),
    }
}

fn caches() -> String {
    let read = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        std::fs::read_to_string(path).map(|text| text.trim().to_owned())
    };
    let cache = |index| -> Option<String> {
        let kind = match read(index, "type").ok()?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some(format!("L{}{kind} {}", read(index, "level").ok()?, read(index, "size").ok()?))
    };
    let caches: Vec<String> = (0..).map_while(cache).collect();
    if caches.is_empty() { unknown() } else { caches.join(", ") }
}

fn huge_pages() -> String {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(unknown, |(chosen, _)| chosen.to_owned())
}

fn os() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    // The version only, without the suffix that names its builder.
    let kernel = output("uname", &["-sr"]);
    let kernel = kernel.split('-').next().unwrap_or_default().to_owned();
    match name {
        Some(name) => format!("{}, {kernel}", name.trim_matches('"')),
        None => kernel,
    }
}
