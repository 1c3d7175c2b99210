# What users may combine: features, versions, targets, licences.

features() {
    install_cargo cargo-hack || { skip "the sets of features" "cargo-hack could not be installed"; return; }
    cargo hack check --feature-powerset --no-dev-deps
    RUSTFLAGS="-Ctarget-feature=+avx2" cargo check --no-default-features

    local target=thumbv7em-none-eabi toolchain build
    toolchain_for "$target" core,alloc || { skip "a target without std" "its core library cannot be had"; return; }
    step unstable cargo "+$toolchain" check "${build[@]}" --no-default-features --target "$target"
}

versions() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if rustup toolchain install "$oldest" --profile minimal >/dev/null 2>&1; then
        step cargo "+$oldest" check --all-features
        step cargo "+$oldest" check --no-default-features
    else
        skip "Rust $oldest" "it cannot be had; clippy's incompatible_msrv has watched the standard library's part"
    fi
    oldest_dependencies
    install_cargo cargo-deny || { skip "licences and sources" "cargo-deny could not be installed"; return; }
    step cargo deny check licenses bans sources
}

# In a copy, as it rewrites Cargo.lock.
oldest_dependencies() {
    copy_sources
    (
        cd "$scratch"
        # The rivals ask for versions of their own.
        sed -i 's/^members = .*/members = []/' Cargo.toml
        unstable cargo update --quiet -Zdirect-minimal-versions
        step cargo test --features huge-pages --lib --test goldens --test lockstep
        cargo tree --edges normal --features huge-pages --depth 1
    )
}
