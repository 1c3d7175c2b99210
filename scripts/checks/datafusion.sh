# SQL:
## datafusion                  the functions for DataFusion: lints, tests, documentation
datafusion() {
    local built=${CARGO_TARGET_DIR:-$root/target}/debug
    # Files travel between SQL and the command line.
    step cargo build --quiet -p bloomline-cli
    enter datafusion
    step cargo fmt --all --check
    step cargo clippy --locked --all-targets -- -D warnings
    BLOOMLINE_CLI=$built/bloomline step cargo test --locked
    RUSTDOCFLAGS="-D warnings" step cargo doc --locked --no-deps
}

## ballista                    a cluster on this machine: a scheduler, executors and a client, each a process
ballista() {
    enter datafusion
    step cargo fmt --all --check
    step cargo clippy --locked -p bloomline-ballista --all-targets -- -D warnings
    step cargo test --locked -p bloomline-ballista
}
