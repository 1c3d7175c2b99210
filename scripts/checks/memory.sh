# Memory and threads, under sanitizers and models.

# `sanitized SANITIZER CARGO-ARGUMENT...`: optimised, as in production.
sanitized() {
    local sanitizer=$1
    shift
    RUSTFLAGS="-Zsanitizer=$sanitizer -Cunsafe-allow-abi-mismatch=sanitizer" CARGO_TARGET_DIR=target/$sanitizer \
        unstable cargo "$@" --release --target "$(host)"
}

address() {
    # Tests request more memory than there is, and expect an error.
    export ASAN_OPTIONS=allocator_may_return_null=1
    sanitized address test --all-targets
    sanitized address test --features huge-pages --tests
    local example
    for example in sstable lsm; do
        sanitized address run --quiet --example "$example"
    done
}

# The thread and memory sanitizers need an instrumented standard library.
with_own_std() {
    local sanitizer=$1 toolchain
    toolchain=$(toolchain_with_source) || { skip "the $sanitizer sanitizer" "the standard library's source is not available"; return; }
    shift
    sanitized "$sanitizer" "+$toolchain" test -Zbuild-std "$@"
}

threads() {
    with_own_std thread --test threads
}

memory() {
    with_own_std memory --lib --test bad_input --test goldens --test lockstep --test no_false_negatives
}

loom() {
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --test loom
}

# Miri supports neither assembly nor these vector instructions, and detects a CPU without them.
miri() {
    rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 && cargo +nightly miri --version >/dev/null 2>&1 ||
        { skip "miri" "its component is not available for the nightly toolchain"; return; }
    EXPECT_KERNELS=portable,reference MIRIFLAGS=-Zmiri-env-forward=EXPECT_KERNELS cargo +nightly miri test --lib \
        --test bad_input --test goldens --test lockstep --test no_false_negatives --test sizing --test threads
}
