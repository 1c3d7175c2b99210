# The SQL functions, in a workspace of their own: their tests depend on 300 packages, a cluster of Ballista on 450.

datafusion() {
    export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:+$CARGO_TARGET_DIR/datafusion}
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/datafusion/target}
    cd datafusion
}

# `linted ARGUMENT...` is cargo with clippy as the compiler of our own packages. `cargo clippy` compiles all dependencies
# for itself, beside those that the tests are built with.
linted() {
    RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings cargo "$@"
}

datafusion() {
    local inputs built=${CARGO_TARGET_DIR:-$root/target}
    inputs=$(python3 scripts/inputs.py datafusion)
    enter datafusion
    step cargo fmt --all --check
    step linted build --locked --all-targets
    # Files travel between SQL and the command line.
    CARGO_TARGET_DIR=$built step cargo build --quiet --manifest-path ../Cargo.toml -p bloomline-cli
    BLOOMLINE_CLI=$built/debug/bloomline step linted test --locked
    step documented bloomline_datafusion
    passed datafusion "$inputs"
}

# A scheduler, executors and a client, each a process.
ballista() {
    enter datafusion
    step cargo fmt --all --check
    step linted build --locked -p bloomline-ballista --all-targets
    step linted test --locked -p bloomline-ballista
}
