//! The machine that the times were measured on.

use std::process::Command;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub caches: String,
    pub huge_pages: String,
    pub os: String,
    pub rustc: String,
    pub date: String,
    /// `RUSTFLAGS` of the build; empty for a default build.
    pub flags: String,
}

impl Machine {
    pub fn this() -> Self {
        Self {
            cpu: cpu(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: caches(),
            huge_pages: huge_pages(),
            os: os(),
            rustc: output("rustc", &["--version"]),
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
