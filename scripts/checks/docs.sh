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
# Uncommitted changes are packed as well. `cargo package` would build the other packages with the library of an earlier
# run: it takes the library from a registry below the target folder, and unpacks and compiles each version once.
package() {
    local name
    install python3 python3 || { skip "packages" "Python 3 could not be installed"; return; }
    # In a copy, because the patch changes lock files.
    mkdir "$scratch/sources"
    copy_sources "$scratch/sources"
    for name in . cli adapters datafusion; do
        package_has_its_files "$name"
    done
    for name in . cli adapters datafusion; do
        step cargo package --quiet --allow-dirty --no-verify --target-dir "$scratch" \
            --manifest-path "$scratch/sources/$name/Cargo.toml" --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
        [ "$name" = . ] || continue
        mkdir "$scratch/bloomline"
        tar -xzf "$scratch"/package/bloomline-[0-9]*.crate --strip-components=1 -C "$scratch/bloomline"
    done
    # `cargo publish` builds the others, whose dependencies take minutes.
    mkdir "$scratch/cli"
    tar -xzf "$scratch"/package/bloomline-cli-*.crate --strip-components=1 -C "$scratch/cli"
    for name in bloomline cli; do
        step cargo build --quiet --manifest-path "$scratch/$name/Cargo.toml" \
            --target-dir "${CARGO_TARGET_DIR:-$root/target}" --config "patch.crates-io.bloomline.path='$scratch/bloomline'"
    done
}

package_has_its_files() {
    cargo package --quiet --allow-dirty --list --manifest-path "$1/Cargo.toml" | python3 scripts/links.py package "$1"
}
