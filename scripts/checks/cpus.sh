# The tests on other CPUs, emulated by QEMU in user mode. Emulation shows results, not speed.
# Arguments go to `cargo test`; without any, all tests run.

# One build on several generations of CPUs, each of which must choose its own kernel.
x86() {
    [ "$(host)" = x86_64-unknown-linux-gnu ] || { skip "x86-64 CPUs" "the host is $(host)"; return; }
    install qemu-x86_64 qemu-user || { skip "other x86-64 CPUs" "qemu-user could not be installed"; return; }
    local cpu kernels
    if has_avx512; then
        EXPECT_KERNELS=avx512,avx2,sse4.1,portable,reference step tests "$@"
    else
        # Not `skip`: REQUIRED must not fail for want of a CPU.
        echo "not covered: AVX-512, because this CPU lacks it and QEMU cannot emulate it" >&2
    fi
    # Without the features that QEMU cannot emulate, which it would warn about at every start.
    while read -r cpu kernels; do
        EXPECT_KERNELS=$kernels CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64 -cpu $cpu" step tests "$@"
    done <<'END'
max avx2,sse4.1,portable,reference
Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm avx2,sse4.1,portable,reference
Nehalem sse4.1,portable,reference
qemu64 portable,reference
END
}

tests() {
    echo "expected kernels: $EXPECT_KERNELS; ${CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER:-}"
    cargo test --release --quiet "$@"
}

aarch64() {
    emulated aarch64 aarch64 libc6-dev-arm64-cross neon,portable,reference "$@"
}

s390x() {
    emulated s390x s390x libc6-dev-s390x-cross portable,reference "$@"
}

i686() {
    emulated i686 i386 libc6-dev-i386-cross portable,reference "$@"
}

# `emulated CPU QEMU-NAME LIBC-PACKAGE KERNELS ARGUMENT...`
emulated() {
    local cpu=$1 kernels=$4 toolchain target build
    cross "$1" "$2" "$3" || { skip "$cpu" "a cross compiler, QEMU or the standard library is not available"; return; }
    shift 4
    RUSTUP_TOOLCHAIN=$toolchain EXPECT_KERNELS=$kernels RUSTC_BOOTSTRAP=1 step tests "${build[@]}" --target "$target" "$@"
}

# Prepares to build and run for Linux on another CPU: sets `target`, `toolchain` and `build`, and exports linker and runner.
cross() {
    local cpu=$1 qemu=qemu-$2 libc=$3 variable
    target=$cpu-unknown-linux-gnu
    install "$cpu-linux-gnu-gcc" "gcc-$cpu-linux-gnu" "$libc" && install "$qemu" qemu-user || return 1
    toolchain_for "$target" std || return 1
    variable=CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")
    export "${variable}_LINKER=$cpu-linux-gnu-gcc" "${variable}_RUNNER=$qemu -L /usr/$cpu-linux-gnu"
}

# The goldens and the agreement of the kernels, checked in a module that JavaScript calls.
wasm() {
    local target=wasm32-unknown-unknown toolchain build flags
    command -v node >/dev/null || { skip "WebAssembly" "node is not installed"; return; }
    toolchain_for "$target" std,panic_abort || { skip "WebAssembly" "its standard library is not available"; return; }
    if [ ${#build[@]} != 0 ]; then
        # Not every toolchain has the linker that comes with Rust.
        install wasm-ld-22 lld-22 || { skip "WebAssembly" "lld could not be installed"; return; }
        export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld-22
    fi
    mkdir -p "$scratch/src"
    cp Cargo.lock "$scratch"
    cat >"$scratch/Cargo.toml" <<END
[workspace]
[package]
name = "smoke"
edition = "2024"
[lib]
crate-type = ["cdylib"]
[dependencies]
bloomline = { path = "$root" }
[profile.release]
panic = "abort"
END
    cat >"$scratch/src/lib.rs" <<END
use bloomline::{BloomFilter, BloomView, Kernel, mix};

/// The number of checks that passed.
#[unsafe(no_mangle)]
pub extern "C" fn passed() -> u32 {
    let golden = include_bytes!("$root/tests/golden/standalone-100-blocks.bin");
    let view = BloomView::from_standalone(golden).unwrap();
    let mut passed = 0;
    for kernel in Kernel::available() {
        let mut filter = BloomFilter::with_blocks(100, 11).unwrap().with_seed(0x5eed).unwrap().with_kernel(kernel);
        filter.extend((0..1000_u32).map(|number| number.to_string()));
        assert!(filter.to_standalone() == golden);
        let hashes: Vec<u64> = (0..1000).map(mix).collect();
        let mut found = [false; 1000];
        filter.contains_batch(&hashes, &mut found);
        for (&hash, &found) in hashes.iter().zip(&found) {
            assert!(found == view.contains_hash(hash) && found == filter.contains_hash(hash));
            passed += 1;
        }
    }
    passed
}
END
    for flags in "" "-Ctarget-feature=+simd128"; do
        (cd "$scratch" && RUSTFLAGS=$flags CARGO_TARGET_DIR="$scratch/target" \
            unstable cargo "+$toolchain" build "${build[@]}" --quiet --release --target "$target")
        node -e '
            const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
            const passed = new WebAssembly.Instance(module, {}).exports.passed();
            console.log(`WebAssembly ${process.argv[2] || "without SIMD"}: ${passed} checks passed`);
            process.exit(passed === 2000 ? 0 : 1);
        ' "$scratch/target/$target/release/smoke.wasm" "$flags"
    done
}
