//! Compiles the contenders in C++ whose source is at hand, some of them twice, for this CPU and for every CPU of its
//! architecture.

use std::path::Path;

const NATIVE: &str = "-march=native";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(rocksdb, boost, header, capi)");
    println!("cargo::rerun-if-changed=src");
    let mut without = Vec::new();
    for (name, compile) in [
        ("rocksdb", rocksdb as fn() -> Result<(), String>),
        ("boost", boost),
        ("header", header),
        ("capi", capi),
    ] {
        match compile() {
            Ok(()) => println!("cargo::rustc-cfg={name}"),
            Err(reason) => without.push(format!("{name}, because {}", reason.replace('\n', " "))),
        }
    }
    if !without.is_empty() {
        println!("cargo::rustc-env=WITHOUT_CPP={}", without.join(" and without "));
    }
}

/// RocksDB's own filter, as RocksDB's Makefile builds it for this CPU, and as Debian builds it.
fn rocksdb() -> Result<(), String> {
    let source =
        source("../../target/rocksdb", "util/bloom_impl.h", "scripts/debian_source rocksdb target/rocksdb")?;
    let compile = |build: &str, flags: &[&str]| {
        let name = format!("rocksdb_{build}");
        let mut compiler = compiler(2, &name, source);
        compiler.flags(["-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"]).flags(flags);
        for name in ["ROCKSDB_PLATFORM_POSIX", "ROCKSDB_LIB_IO_POSIX", "OS_LINUX"] {
            compiler.define(name, None);
        }
        compiler
            .define("ROCKSDB_NAMESPACE", &*format!("{name}_names"))
            .define("XXH_NAMESPACE", &*format!("{name}_"));
        compiler.include(source.join("include"));
        compiler.file("src/rocksdb.cc").file(source.join("util/hash.cc")).file(source.join("util/xxhash.cc"));
        compiler.try_compile(&name).map_err(|error| error.to_string())
    };
    // Makefile and build_tools/build_detect_platform.
    compile("native", &["-DNDEBUG", NATIVE])?;
    // As debian/rules, which runs CMake with PORTABLE=ON and no build type, so that dpkg-buildflags sets the flags.
    compile("debian", &["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"])?;
    let version = std::fs::read_to_string(source.join("include/rocksdb/version.h")).unwrap_or_default();
    // MAJOR, MINOR and PATCH.
    let number = |line: &'_ str| Some(line.strip_prefix("#define ROCKSDB_")?.split_once(' ')?.1.to_owned());
    println!(
        "cargo::rustc-env=ROCKSDB_VERSION={}",
        Vec::from_iter(version.lines().filter_map(number)).join(".")
    );
    Ok(())
}

fn boost() -> Result<(), String> {
    let command = "pip install --no-deps --target target/boost cmeel-boost";
    let include = source("../../target/boost/cmeel.prefix/include", "boost/bloom.hpp", command)?;
    let mut compiler = compiler(3, "boost_native", include);
    compiler.flag(NATIVE).file("src/boost.cc").try_compile("boost_native").map_err(|error| error.to_string())
}

/// bloomline's C++ header.
fn header() -> Result<(), String> {
    let include =
        source("../../bindings/cpp/include", "bloomline/bloomline.hpp", "git checkout bindings/cpp")?;
    for (name, flags) in [("header_native", &[NATIVE][..]), ("header_any", &[])] {
        let mut compiler = compiler(3, name, include);
        compiler.flags(flags).define("OPENED", &*format!("{name}_opened"));
        compiler.define("bloomline", &*format!("bloomline_{name}"));
        compiler.file("src/header.cc").try_compile(name).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// bloomline's C library.
fn capi() -> Result<(), String> {
    let library = source("../../target/capi/static", "bloomline.o", "make -C bindings/c")?;
    let mut compiler = compiler(3, "capi", Path::new("../../bindings/c/include"));
    compiler.define("OPENED", "capi_opened").file("src/capi.cc").object(library.join("bloomline.o"));
    compiler.try_compile("capi").map_err(|error| error.to_string())
}

/// The folder, if it has the file. Otherwise an error says how to get it.
fn source(folder: &'static str, file: &str, command: &str) -> Result<&'static Path, String> {
    let source = Path::new(folder);
    // It must exist, because a watched path that is missing would run this script in every build.
    std::fs::create_dir_all(source).map_err(|error| error.to_string())?;
    println!("cargo::rerun-if-changed={folder}");
    let variable = |name| std::env::var(name).unwrap_or_default();
    if variable("TARGET") != variable("HOST") || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return Err("it is compiled only on Linux, for the same machine".to_owned());
    }
    let is_there = source.join(file).exists();
    is_there.then_some(source).ok_or_else(|| format!("its source is missing: run {command}"))
}

/// A compiler of what the file calls FUNCTIONS, under this name.
fn compiler(level: u32, functions: &str, include: &Path) -> cc::Build {
    let mut compiler = cc::Build::new();
    compiler.cpp(true).std("c++17").warnings(false).debug(false).opt_level(level);
    compiler.define("FUNCTIONS", functions).include(include);
    compiler
}
