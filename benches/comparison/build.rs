//! Compiles RocksDB's own filter twice, if `scripts/debian_source` has fetched its source, as RocksDB's Makefile
//! builds it for this CPU, and as Debian builds it.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(rocksdb)");
    println!("cargo::rerun-if-changed=src/rocksdb.cc");
    match compile() {
        Ok(version) => {
            println!("cargo::rustc-cfg=rocksdb");
            println!("cargo::rustc-env=ROCKSDB_VERSION={version}");
        }
        Err(reason) => println!("cargo::rustc-env=WITHOUT_ROCKSDB={}", reason.replace('\n', " ")),
    }
}

/// Returns the version of RocksDB.
fn compile() -> Result<String, String> {
    let source = Path::new("../../target/rocksdb");
    // It must exist, because a watched path that is missing would run this script in every build.
    std::fs::create_dir_all(source).map_err(|error| error.to_string())?;
    println!("cargo::rerun-if-changed={}", source.display());
    if !source.join("util/bloom_impl.h").exists() {
        return Err("its source is missing: run scripts/debian_source rocksdb target/rocksdb".to_owned());
    }
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("TARGET") != variable("HOST") || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return Err("it is compiled only on Linux, for the same machine".to_owned());
    }
    // Makefile and build_tools/build_detect_platform.
    compile_as(source, "native", &["-DNDEBUG", "-march=native"])?;
    // As debian/rules, which runs CMake with PORTABLE=ON and no build type, so that dpkg-buildflags sets the flags.
    compile_as(source, "debian", &["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"])?;
    let version = std::fs::read_to_string(source.join("include/rocksdb/version.h")).unwrap_or_default();
    // MAJOR, MINOR and PATCH.
    let number = |line: &'_ str| Some(line.strip_prefix("#define ROCKSDB_")?.split_once(' ')?.1.to_owned());
    Ok(Vec::from_iter(version.lines().filter_map(number)).join("."))
}

fn compile_as(source: &Path, build: &str, flags: &[&str]) -> Result<(), String> {
    let mut compiler = cc::Build::new();
    compiler.cpp(true).std("c++17").warnings(false).debug(false).opt_level(2);
    compiler.flags(["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"]).flags(flags);
    for name in ["ROCKSDB_PLATFORM_POSIX", "ROCKSDB_LIB_IO_POSIX", "OS_LINUX"] {
        compiler.define(name, None);
    }
    for (name, suffix) in [("ROCKSDB_NAMESPACE", ""), ("XXH_NAMESPACE", "_"), ("FUNCTIONS", "_functions")] {
        compiler.define(name, &*format!("rocksdb_{build}{suffix}"));
    }
    compiler.include(source).include(source.join("include"));
    compiler.file("src/rocksdb.cc").file(source.join("util/hash.cc")).file(source.join("util/xxhash.cc"));
    compiler.try_compile(&format!("rocksdb_{build}")).map_err(|error| error.to_string())
}
