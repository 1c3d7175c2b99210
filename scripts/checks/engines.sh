# The adapters for Rust's storage engines, in a workspace of their own: with all engines it has 340 packages.

# In release, because the tests write databases.
engines() {
    local inputs example
    inputs=$(python3 scripts/inputs.py engines)
    enter adapters
    step cargo fmt --check
    step linted build --release --locked --all-features --all-targets
    step linted test --release --locked --all-features
    step documented bloomline_adapters --release --all-features
    for example in surrealkv slatedb; do
        step linted run --quiet --release --locked --all-features --example "$example"
    done
    step linted bench --quiet --locked --all-features --bench engines -- --quick --to "$scratch"
    passed engines "$inputs"
}

# Writes docs/engines.md and its plot.
engines_bench() {
    cargo bench --manifest-path adapters/Cargo.toml --locked --all-features --bench engines -- "$@"
}
