# The features, versions and targets that users may combine, and the licences of the dependencies.

features() {
    local combinations=("") feature features
    for feature in $(sed -n '/^\[features\]/,/^$/s/^\([a-z0-9-]*\) = .*/\1/p' Cargo.toml | grep -vx default); do
        combinations+=("${combinations[@]/%/,$feature}")
    done
    for features in "${combinations[@]}"; do
        step cargo check --quiet --no-default-features --features "${features#,}"
    done
    RUSTFLAGS="-Ctarget-feature=+avx2" step cargo check --no-default-features

    local target=thumbv7em-none-eabi toolchain build
    toolchain_for "$target" core,alloc || { skip "a target without std" "its core library is not available"; return; }
    step unstable cargo "+$toolchain" check "${build[@]}" --no-default-features --target "$target"
}

versions() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if rustup toolchain install "$oldest" --profile minimal >/dev/null 2>&1; then
        step cargo "+$oldest" check --all-features
        step cargo "+$oldest" check --no-default-features
    else
        skip "Rust $oldest" "it is not available; clippy's incompatible_msrv still checks uses of the standard library"
    fi
    oldest_dependencies
    install_cargo cargo-deny || { skip "licences and sources" "cargo-deny could not be installed"; return; }
    step cargo deny check licenses bans sources
}

# In a copy, because it rewrites Cargo.lock.
oldest_dependencies() {
    copy_sources
    (
        cd "$scratch"
        # The other packages require versions of their own.
        sed -i 's/^members = .*/members = []/' Cargo.toml
        unstable cargo update --quiet -Zdirect-minimal-versions
        step cargo test --features huge-pages --lib --test goldens --test lockstep
        cargo tree --edges normal --features huge-pages --depth 1
    )
}
