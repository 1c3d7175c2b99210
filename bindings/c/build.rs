//! Sets the shared library's soname, the name that programs load it by; it changes with the ABI.

fn main() {
    let version = |part| std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("set by Cargo");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let (major, minor) = (version("MAJOR"), version("MINOR"));
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbloomline.so.{major}.{minor}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
