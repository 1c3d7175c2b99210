//! The machine that the times were measured on.

use std::process::Command;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's core, for example "AMD Zen 4", as the compiler names it, because virtual machines hide the model.
    pub name: String,
    pub date: String,
    /// What else is known about it, and the name of each fact.
    pub facts: Vec<(String, String)>,
}

const NAME: &str = "rustc --print target-cpus | sed -n 's/^ *native .*(currently \\(.*\\)).*/\\1/p' \
    | sed 's/^znver/AMD Zen /; s/^sapphire/Intel Sapphire /; s/^emerald/Intel Emerald /; s/rapids$/Rapids/'";
const FACTS: [(&str, &str); 6] = [
    // Virtual machines report a shortened name.
    (
        "CPU",
        "lscpu | awk -F': +' '/^Model name/ {name = $2} /^CPU family/ {family = $2} /^Model:/ {model = $2}
            END {print name (family ? \" (family \" family \", model \" model \")\" : \"\")}'",
    ),
    ("cores", "nproc"),
    ("caches", "lscpu --caches=NAME,ONE-SIZE | sed '1d; s/  */ /' | paste -sd, | sed 's/,/, /g'"),
    ("transparent huge pages", "sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/kernel/mm/transparent_hugepage/enabled"),
    // The kernel's version without the suffix that names its builder.
    ("system", ". /etc/os-release; echo \"$PRETTY_NAME, $(uname -sr | cut -d- -f1)\""),
    ("compiler", "rustc --version"),
];

impl Machine {
    pub fn this() -> Self {
        let mut facts = FACTS.map(|(name, script)| (name.to_owned(), output(script))).to_vec();
        if let Some(version) = option_env!("ROCKSDB_VERSION") {
            facts.push(("RocksDB".to_owned(), version.to_owned()));
            facts.push(("C++ compiler".to_owned(), output("c++ --version | head -1")));
        }
        Self { name: output(NAME), date: output("date -u +%Y-%m-%d"), facts }
    }
}

/// What the script prints, or "unknown".
fn output(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).env("LC_ALL", "C").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
