# Other CPUs, emulated by QEMU, with the example `sstable`; arguments go to `cargo test`, none runs all tests:
## x86 [ARGUMENTS]             one build on x86-64 CPUs without AVX-512, without AVX2 and without SSE4.1
x86() {
    [ "$(host)" = x86_64-unknown-linux-gnu ] || { skip "x86-64 CPUs" "the host is $(host)"; return; }
    install qemu-x86_64 qemu-user || { skip "other x86-64 CPUs" "qemu-user could not be installed"; return; }
    local cpu kernels
    if has_avx512; then
        step env EXPECT_KERNELS=avx512,avx2,sse4.1,portable,reference cargo test --release --quiet "$@"
    else
        # Not `skip`: REQUIRED must not fail for want of a CPU.
        echo "not covered: AVX-512, because this CPU lacks it and QEMU cannot emulate it" >&2
    fi
    # Without the features that QEMU cannot emulate, which it would warn about at every start.
    while read -r cpu kernels; do
        step env EXPECT_KERNELS="$kernels" CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64 -cpu $cpu" \
            cargo test --release --quiet "$@"
    done <<'END'
max avx2,sse4.1,portable,reference
Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm avx2,sse4.1,portable,reference
Nehalem sse4.1,portable,reference
qemu64 portable,reference
END
}

## aarch64 [ARGUMENTS]         the NEON kernel
aarch64() { emulated aarch64 aarch64 libc6-dev-arm64-cross neon,portable,reference "$@"; }

## s390x [ARGUMENTS]           a big-endian CPU
s390x() { emulated s390x s390x libc6-dev-s390x-cross portable,reference "$@"; }

## i686 [ARGUMENTS]            a CPU with 32-bit addresses
i686() { emulated i686 i386 libc6-dev-i386-cross portable,reference "$@"; }

# `emulated CPU QEMU-NAME LIBC-PACKAGE KERNELS ARGUMENT...`
emulated() {
    local cpu=$1 kernels=$4 toolchain target build
    cross "$1" "$2" "$3" || { skip "$cpu" "a cross compiler, QEMU or the standard library is not available"; return; }
    shift 4
    export RUSTUP_TOOLCHAIN=$toolchain RUSTC_BOOTSTRAP=1
    step env EXPECT_KERNELS="$kernels" cargo test --release --quiet "${build[@]}" --target "$target" "$@"
    step cargo run --release --quiet "${build[@]}" --target "$target" --example sstable -- 5000
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

## wasm                        the format and the kernels in WebAssembly, with and without SIMD, in node
wasm() {
    local target=wasm32-unknown-unknown toolchain build flags
    install node nodejs || { skip "WebAssembly" "node could not be installed"; return; }
    toolchain_for "$target" std,panic_abort || { skip "WebAssembly" "its standard library is not available"; return; }
    if [ ${#build[@]} != 0 ]; then
        # Not every toolchain has the linker that comes with Rust.
        install wasm-ld lld || { skip "WebAssembly" "lld could not be installed"; return; }
        export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld
    fi
    for flags in "" "-Ctarget-feature=+simd128"; do
        echo "WebAssembly ${flags:-without SIMD}"
        RUSTFLAGS=$flags CARGO_TARGET_DIR="$scratch/target" CARGO_PROFILE_RELEASE_PANIC=abort \
            unstable cargo "+$toolchain" build "${build[@]}" --quiet --release --target "$target" -p bloomline-wasm
        node tests/wasm/run.cjs "$scratch/target/$target/release/bloomline_wasm.wasm"
    done
}
