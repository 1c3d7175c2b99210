//! Compiles RocksDB's own filter, if `scripts/rocksdb` has fetched its source: as RocksDB's Makefile builds it for this
//! CPU, and as Debian builds it.

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
    let source = Path::new("../target/rocksdb");
    // It must exist: a watched path that is missing would run this script in every build.
    std::fs::create_dir_all(source).map_err(|error| error.to_string())?;
    println!("cargo::rerun-if-changed={}", source.display());
    if !source.join("util/bloom_impl.h").exists() {
        return Err("its source is not in target/rocksdb: run scripts/rocksdb".to_owned());
    }
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("TARGET") != variable("HOST") || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return Err("it is compiled only on Linux, for the same machine".to_owned());
    }
    // Makefile and build_tools/build_detect_platform.
    compile_as(source, "native", &["-DNDEBUG", "-march=native"])?;
    // debian/rules: CMake with PORTABLE=ON and no build type, so that the flags are those of dpkg-buildflags.
    compile_as(source, "debian", &["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"])?;
    let version = std::fs::read_to_string(source.join("include/rocksdb/version.h")).unwrap_or_default();
    let numbers = ["ROCKSDB_MAJOR ", "ROCKSDB_MINOR ", "ROCKSDB_PATCH "];
    let numbers = numbers
        .map(|name| version.split_once(name).map_or("?", |(_, rest)| rest.lines().next().unwrap_or("?")));
    Ok(numbers.join("."))
}

fn compile_as(source: &Path, build: &str, flags: &[&str]) -> Result<(), String> {
    let mut compiler = cc::Build::new();
    compiler.cpp(true).std("c++17").warnings(false).debug(false).opt_level(2);
    compiler.include(source).include(source.join("include"));
    compiler
        .define("ROCKSDB_PLATFORM_POSIX", None)
        .define("ROCKSDB_LIB_IO_POSIX", None)
        .define("OS_LINUX", None);
    for (name, value) in [
        ("ROCKSDB_NAMESPACE", format!("rocksdb_{build}")),
        ("XXH_NAMESPACE", format!("rocksdb_{build}_")),
        ("FUNCTIONS", format!("rocksdb_{build}_functions")),
    ] {
        compiler.define(name, Some(&*value));
    }
    for flag in ["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"].iter().chain(flags) {
        compiler.flag(flag);
    }
    compiler.file("src/rocksdb.cc").file(source.join("util/hash.cc")).file(source.join("util/xxhash.cc"));
    compiler.try_compile(&format!("rocksdb_{build}")).map_err(|error| error.to_string())
}
