# The SQL functions, in a workspace of their own: their tests depend on 300 packages, a cluster of Ballista on 450.

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
