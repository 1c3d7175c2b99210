# Documentation:
## goldens                     the golden files are what an independent program makes of docs/format.md
goldens() {
    install python3 python3 || { skip "the goldens' origin" "Python 3 could not be installed"; return; }
    python3 tests/golden/make.py --check
}

## links                       links in the Markdown files and in the generated documentation, and what pages name
links() {
    local documentation=${CARGO_TARGET_DIR:-target}/doc
    install python3 python3 || { skip "links" "Python 3 could not be installed"; return; }
    step python3 scripts/links.py markdown
    step python3 scripts/links.py names
    # Pages of an earlier build would be checked as well.
    rm -rf "$documentation"
    RUSTDOCFLAGS="-D warnings" step cargo doc -p bloomline -p bloomline-cli -p bloomline-capi --no-deps --all-features
    step python3 scripts/links.py rustdoc "$documentation"
    step same_api "$documentation"
}

## api                         the public API is the one that tests/api.tsv lists
api() {
    local documentation=${CARGO_TARGET_DIR:-target}/doc
    install python3 python3 || { skip "the public API" "Python 3 could not be installed"; return; }
    rm -rf "$documentation/bloomline"
    step cargo doc --quiet -p bloomline --no-deps --all-features
    same_api "$documentation"
}

# `same_api FOLDER-OF-PAGES`
same_api() {
    python3 scripts/api.py "$1" | diff -U0 tests/api.tsv - ||
        { echo "The public API has changed. If it should: python3 scripts/api.py $1 >tests/api.tsv" >&2; return 1; }
}

## docs                        a website of all pages and the crate's documentation, left in target/site
docs() {
    local target=${CARGO_TARGET_DIR:-$root/target} folder=$scratch/pages files
    install_cargo mdbook || { skip "the site" "mdbook could not be installed"; return; }
    links
    # The pages and what they link to, because mdbook would copy all files of the repository.
    mkdir "$folder"
    files=('*.md' '*.svg' docs/theme examples integrations/datafusion/ballista/src
        bindings/{c/examples,c/include,cpp/include,java/bench,js/page,js/src})
    git ls-files -z "${files[@]}" | xargs -0 cp --parents -t "$folder"
    # mdbook wants them at the top, and links from there.
    cp docs/book.toml "$folder"
    sed 's,](,](docs/,; s,(docs/\.\./,(,' docs/SUMMARY.md >"$folder/SUMMARY.md"
    cp bindings/js/page/page.js "$folder/bindings/js/page" || skip "the sizing page" "scripts/check js has not built it"
    rm -rf "$target/site"
    step mdbook build --dest-dir "$target/site" "$folder"
    cp -r "$target/doc" "$target/site/api"
    step python3 scripts/links.py site "$target/site"
    tar -czf "$target/site.tar.gz" -C "$target" site
}
