# What readers and crates.io get: documentation and packages.

links() {
    local documentation=${CARGO_TARGET_DIR:-target}/doc
    step python3 scripts/links.py markdown
    # Pages of an earlier build would be checked as well.
    rm -rf "$documentation"
    RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --exclude bloomline-comparison --no-deps --all-features
    step python3 scripts/links.py rustdoc "$documentation"
}

# Uncommitted changes are packed as well.
package() {
    step package_has_its_files bloomline .
    step package_has_its_files bloomline-adapters adapters
    step package_has_its_files bloomline-cli cli
    step cargo package --quiet --allow-dirty -p bloomline -p bloomline-adapters -p bloomline-cli
}

package_has_its_files() {
    cargo package --quiet --allow-dirty --list -p "$1" | python3 scripts/links.py package "$2"
}
