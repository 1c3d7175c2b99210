# Storage engines in Rust:
## engines                     the filter policies for SurrealKV, SlateDB and others: lints, tests, documentation, examples
# In release, because the tests write databases.
engines() {
    local example
    enter adapters
    step cargo fmt --check
    step cargo clippy --release --locked --all-features --all-targets -- -D warnings
    step cargo test --release --locked --all-features
    RUSTDOCFLAGS="-D warnings" step cargo doc --release --locked --no-deps --all-features
    # rusty-leveldb has undefined behaviour, which crashes on some other CPUs.
    for example in surrealkv slatedb slatedb_prefixes object_store $([ "$(uname -m)" != x86_64 ] || echo rusty_leveldb); do
        step cargo run --quiet --release --locked --all-features --example "$example"
    done
    step cargo bench --quiet --locked --all-features --bench engines -- --quick --to "$scratch"
}

## engines_bench [ARGUMENTS]   compares them with the engines' own, and writes docs/engines.md
engines_bench() {
    cargo bench --manifest-path adapters/Cargo.toml --locked --all-features --bench engines -- "$@"
}
