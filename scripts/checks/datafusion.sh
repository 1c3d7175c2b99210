# SQL:
## datafusion                  the functions for DataFusion: lints, tests, documentation
datafusion() {
    enter integrations/datafusion
    step cargo fmt --all --check
    step linted cargo test --locked --all-features
    step linted cargo build --locked --all-features --benches
}

## ballista                    a cluster on this machine: a scheduler, executors and a client, each a process
ballista() {
    enter integrations/datafusion
    step cargo fmt --all --check
    step cargo clippy --locked -p bloomline-ballista --all-targets -- -D warnings
    step cargo test --locked -p bloomline-ballista
}
