# Storage engines in Rust:
## engines                     the filter policies for SurrealKV, SlateDB and others: lints, tests, documentation, examples
engines() {
    enter integrations/engines
    step cargo fmt --check
    step linted cargo test --locked --all-features
    step linted cargo run --quiet --locked --all-features --example slatedb_prefixes
    step linted cargo run --quiet --locked --all-features --example object_store
    step linted cargo run --quiet --locked --all-features --example index
    step linted cargo bench --profile dev --quiet --locked --all-features --bench engines -- --quick --to "$scratch"
}

## engines_bench               compares them with the engines' own, and writes docs/engines.md
engines_bench() { cargo bench --manifest-path integrations/engines/Cargo.toml --locked --all-features --bench engines; }
