# Documentation and packages:
## goldens                     the golden files are what an independent program makes of docs/format.md
goldens() {
    install python3 python3 || { skip "the goldens' origin" "Python 3 could not be installed"; return; }
    python3 tests/golden/make.py --check
}

## links                       links in the Markdown files and in the generated documentation
links() {
    local documentation=${CARGO_TARGET_DIR:-target}/doc
    install python3 python3 || { skip "links" "Python 3 could not be installed"; return; }
    step python3 scripts/links.py markdown
    # Pages of an earlier build would be checked as well.
    rm -rf "$documentation"
    RUSTDOCFLAGS="-D warnings" step cargo doc -p bloomline -p bloomline-cli -p bloomline-capi --no-deps --all-features
    step python3 scripts/links.py rustdoc "$documentation"
}

## package                     what crates.io will get: each crate is packed, and built from its package
# Uncommitted changes are packed as well. The other packages are built with the library's package: `cargo package` would
# take the library of an earlier run from a registry below the target folder.
package() {
    local name patches=()
    # In a copy, because the patch changes lock files.
    mkdir "$scratch/sources"
    copy_sources "$scratch/sources"
    packed . bloomline
    packed replace bloomline-replace
    for name in bloomline bloomline-replace; do
        patches+=(--config "patch.crates-io.$name.path='$scratch/unpacked/$name'")
    done
    for name in cli adapters datafusion; do
        packed "$name" "bloomline-$name" "${patches[@]}"
    done
    # `cargo publish` builds the others, whose dependencies take minutes.
    for name in bloomline bloomline-cli; do
        step cargo build --quiet --manifest-path "$scratch/unpacked/$name/Cargo.toml" \
            --target-dir "${CARGO_TARGET_DIR:-$root/target}" "${patches[@]}"
    done
}

# `packed FOLDER NAME CARGO-ARGUMENT...`
packed() {
    step cargo package --quiet --allow-dirty --no-verify --manifest-path "$scratch/sources/$1/Cargo.toml" \
        --target-dir "$scratch/target" "${@:3}"
    mkdir -p "$scratch/unpacked/$2"
    tar -xzf "$scratch/target/package/$2"-[0-9]*.crate --strip-components=1 -C "$scratch/unpacked/$2"
}
