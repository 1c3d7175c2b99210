# What readers and crates.io get: documentation and packages.

links() {
    local documentation=${CARGO_TARGET_DIR:-target}/doc
    step python3 scripts/links.py markdown
    # Pages of an earlier build would be checked as well.
    rm -rf "$documentation"
    RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --exclude bloomline-comparison --no-deps --all-features
    step python3 scripts/links.py rustdoc "$documentation"
}

# Uncommitted changes are packed as well. `cargo package` would build the other packages with the library of an earlier
# run: it takes that from a registry below the target folder, and unpacks and compiles each version once.
package() {
    local name built=${CARGO_TARGET_DIR:-$root/target}
    step package_has_its_files bloomline .
    step package_has_its_files bloomline-adapters adapters
    step package_has_its_files bloomline-cli cli
    step package_has_its_files bloomline-datafusion datafusion --manifest-path datafusion/Cargo.toml
    step cargo package --quiet --allow-dirty --no-verify --target-dir "$scratch" \
        -p bloomline -p bloomline-adapters -p bloomline-cli
    for name in bloomline bloomline-adapters bloomline-cli; do
        mkdir "$scratch/$name"
        tar -xzf "$scratch/package/$name"-[0-9]*.crate --strip-components=1 -C "$scratch/$name"
        step cargo build --quiet --manifest-path "$scratch/$name/Cargo.toml" --target-dir "$built" \
            --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
    done
    # Its dependencies take minutes to build: `cargo publish` builds it.
    step cargo package --quiet --allow-dirty --no-verify --target-dir "$scratch" -p bloomline-datafusion \
        --manifest-path datafusion/Cargo.toml --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
}

# `package_has_its_files PACKAGE FOLDER CARGO-ARGUMENT...`
package_has_its_files() {
    cargo package --quiet --allow-dirty --list -p "$1" "${@:3}" | python3 scripts/links.py package "$2"
}
