# Features and versions:
## features                    every combination of features, and targets without std or with 32-bit pointers in 64-bit registers
features() {
    local feature sets=("")
    for feature in $(sed -n '/^\[features\]/,/^$/s/^\([a-z-]*\) = .*/\1/p' Cargo.toml | grep -v default); do
        sets+=("${sets[@]/%/ $feature}")
    done
    for feature in "${sets[@]}"; do
        # Alone, because the examples would add the default features.
        step cargo check --quiet -p bloomline --no-default-features --features "$feature"
    done
    RUSTFLAGS="-Ctarget-feature=+avx2" step cargo check -p bloomline --no-default-features

    # Bare-metal x86-64 has no vector registers, for which the compiler fails when it generates code, optimised or not. x32
    # has 32-bit pointers in 64-bit registers, which the compiler finds only worth a warning in assembly.
    local target toolchain build
    for target in thumbv7em-none-eabi x86_64-unknown-none x86_64-unknown-uefi x86_64-unknown-linux-gnux32; do
        toolchain_for "$target" core,alloc || { skip "$target" "its core library is not available"; continue; }
        RUSTFLAGS="-D asm_sub_register" step unstable cargo "+$toolchain" \
            "$([[ $target = *x32 ]] && echo check || echo build)" "${build[@]}" --quiet -p bloomline --no-default-features \
            --target "$target" --config profile.dev.package.bloomline.opt-level=0
    done
}

## versions                    the oldest supported Rust, the oldest dependencies, licences and sources of all dependencies
versions() {
    oldest_rust Cargo.toml --all-features
    oldest_rust Cargo.toml --no-default-features
    # SlateDB needs a newer one.
    oldest_rust integrations/engines/Cargo.toml --locked --features rusty-leveldb,sstable,surrealkv
    oldest_rust integrations/datafusion/Cargo.toml --locked
    oldest_dependencies
    denied licenses bans sources
}

## advisories                  known vulnerabilities of all dependencies, by RustSec's database
advisories() { denied advisories; }

# `denied CARGO-DENY-CHECK...`
denied() {
    local workspace
    install_cargo cargo-deny && { [ "$1" != advisories ] || cargo deny fetch db 2>/dev/null; } ||
        { skip "$*" "cargo-deny or its database could not be downloaded"; return; }
    for workspace in . integrations/engines integrations/datafusion bindings/js/wasm bindings/python; do
        step cargo deny --manifest-path "$workspace/Cargo.toml" --workspace --config .cargo/deny.toml check "$@"
    done
}

# `oldest_rust MANIFEST CARGO-ARGUMENT...`
oldest_rust() {
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$1")
    rustup toolchain install "$oldest" --profile minimal >/dev/null 2>&1 ||
        { skip "Rust $oldest" "it is not available; clippy's incompatible_msrv still checks uses of the standard library"; return; }
    step cargo "+$oldest" check --manifest-path "$@"
}

# In the package, because the other members of the workspace require versions of their own.
oldest_dependencies() {
    cargo package --quiet --allow-dirty --no-verify -p bloomline --target-dir "$scratch"
    tar -xzf "$scratch"/package/bloomline-[0-9]*.crate --strip-components=1 -C "$scratch"
    (
        cd "$scratch"
        unstable cargo update --quiet -Zdirect-minimal-versions
        step cargo test --features huge-pages --lib --test goldens --test lockstep
        cargo tree --edges normal --features huge-pages --depth 1
    )
}
