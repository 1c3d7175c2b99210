# Documentation:
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
