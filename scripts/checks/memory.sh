# Memory and threads:
## address                     all tests, and the example `sstable`, under the address and leak sanitizers
address() {
    # Tests request more memory than there is, and expect an error.
    export ASAN_OPTIONS=allocator_may_return_null=1
    sanitized address test --all-targets
    sanitized address test --features huge-pages --tests
    sanitized address run --quiet --example sstable
}

# `sanitized SANITIZER CARGO-ARGUMENT...`: optimised, as in production.
sanitized() {
    RUSTFLAGS="-Zsanitizer=$1 -Cunsafe-allow-abi-mismatch=sanitizer" CARGO_TARGET_DIR=target/$1 \
        unstable cargo "${@:2}" --release --target "$(host)"
}

## threads                     the tests of threads under the thread sanitizer
threads() { with_own_std thread --test threads; }

## memory                      unit tests and the tests of decoding and kernels under the memory sanitizer
memory() { with_own_std memory --lib --test bad_input --test goldens --test lockstep --test no_false_negatives; }

# The thread and memory sanitizers need an instrumented standard library.
with_own_std() {
    local toolchain
    toolchain=$(toolchain_with_source) || { skip "the $1 sanitizer" "the standard library's source is not available"; return; }
    sanitized "$1" "+$toolchain" test -Zbuild-std "${@:2}"
}

## loom                        every interleaving of two threads
loom() { RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p bloomline-lean --test loom; }

## miri [ARGUMENTS]            the code without assembly under miri; arguments choose tests, which then run under both
##                             models of borrows
# Miri has no assembly, and detects just the CPU features of the build.
miri() {
    local tests
    rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 && cargo +nightly miri --version >/dev/null 2>&1 ||
        { skip "miri" "its component is not available for the nightly toolchain"; return; }
    export MIRIFLAGS=-Zmiri-env-forward=EXPECT_KERNELS
    if [ $# -gt 0 ]; then
        EXPECT_KERNELS=portable,reference cargo +nightly miri test -p bloomline-lean "$@"
        EXPECT_KERNELS=portable,reference MIRIFLAGS+=" -Zmiri-tree-borrows" cargo +nightly miri test -p bloomline-lean "$@"
        return
    fi
    # All that say which of their tests miri leaves out.
    mapfile -t tests < <(grep -l miri tests/*.rs | sed 's|tests/\(.*\)\.rs|--test=\1|')
    EXPECT_KERNELS=portable,reference cargo +nightly miri test --lib "${tests[@]}"
    miri --test owned
    [[ $(host) != x86_64-* ]] || RUSTFLAGS=-Ctarget-cpu=x86-64-v4 EXPECT_KERNELS=avx512,avx2,sse4.1,portable,reference \
        cargo +nightly miri test --test lockstep
}
