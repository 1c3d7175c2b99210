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
    step package_has_its_files bloomline-cli cli
    for name in adapters datafusion; do
        step package_has_its_files "bloomline-$name" "$name" --manifest-path "$name/Cargo.toml"
    done
    step cargo package --quiet --allow-dirty --no-verify --target-dir "$scratch" \
        -p bloomline -p bloomline-cli
    for name in bloomline bloomline-cli; do
        mkdir "$scratch/$name"
        tar -xzf "$scratch/package/$name"-[0-9]*.crate --strip-components=1 -C "$scratch/$name"
        step cargo build --quiet --manifest-path "$scratch/$name/Cargo.toml" --target-dir "$built" \
            --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
    done
    # Their dependencies take minutes to build: `cargo publish` builds them. In a copy, because the patch changes their
    # lock files.
    copy_sources
    for name in adapters datafusion; do
        step cargo package --quiet --allow-dirty --no-verify --target-dir "$scratch" -p "bloomline-$name" \
            --manifest-path "$scratch/$name/Cargo.toml" --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
    done
}

# `package_has_its_files PACKAGE FOLDER CARGO-ARGUMENT...`
package_has_its_files() {
    cargo package --quiet --allow-dirty --list -p "$1" "${@:3}" | python3 scripts/links.py package "$2"
}
