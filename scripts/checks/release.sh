# Publishing:
## package                     what crates.io will get: each crate is packed, and built from its package; licence texts
package() {
    local patches=() manifest
    step pack_crates
    # `scripts/check release` builds the others, whose dependencies take minutes.
    step in_package bloomline build
    step in_package bloomline-cli build
    # Of what wheels and archives contain.
    install python3 python3 || { skip "licence texts" "Python 3 could not be installed"; return; }
    for manifest in {cli,bindings/c,bindings/python}/Cargo.toml; do
        python3 scripts/licenses.py "$manifest" >"$scratch/licenses"
    done
}

## release                     what a release publishes: crates, tested from their packages; archives in target/archives
release() {
    local version archives=${CARGO_TARGET_DIR:-$root/target}/archives patches=() crate
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    # A cold build only writes debug information and incremental state.
    export CARGO_INCREMENTAL=0 CARGO_PROFILE_{DEV,RELEASE,CAPI}_DEBUG=0
    step one_version

    rm -rf "$archives"
    mkdir -p "$archives" "$scratch/stage"
    step command_archive x86_64
    step command_archive aarch64
    step c_archive

    step pack_crates
    step bill_of_materials
    RUSTDOCFLAGS="--cfg docsrs -D warnings" step unstable in_package bloomline doc --no-deps --all-features
    for crate in $(scripts/publish list); do
        # Some tests of the command read the goldens, which only the library's package has.
        step in_package "$crate" test --all-features \
            $([ "$crate" != bloomline-cli ] || echo -- --skip golden --skip of_the_format --skip what_a_text_names_helps)
    done
}

# Packs the crates, as `cargo publish` does, and unpacks them in `$scratch/unpacked`. Uncommitted changes are packed as well.
pack_crates() {
    local manifest file unpacked
    # In a copy, because a patch changes lock files.
    mkdir "$scratch/sources"
    copy_sources "$scratch/sources"
    for manifest in Cargo.toml integrations/*/Cargo.toml; do
        cargo publish --workspace --dry-run --no-verify --allow-dirty --target-dir "$scratch/target" "${patches[@]}" \
            --manifest-path "$scratch/sources/$manifest"
        patches=(--config "patch.crates-io.bloomline.path='$scratch/sources'")
    done
    patches=()
    for file in $(find "$scratch/target/package" -name "*.crate"); do
        unpacked=$scratch/unpacked/$(basename "${file%-[0-9]*}")
        mkdir -p "$unpacked"
        # As new, or cargo runs the tests of an earlier call, whose folder is gone.
        tar -xzmf "$file" --strip-components=1 -C "$unpacked"
        cat LICENSE-* | cmp - <(cat "$unpacked"/LICENSE-*)
        patches+=(--config "patch.crates-io.${unpacked##*/}.path='$unpacked'")
    done
    diff <(ls "$scratch/unpacked") <(scripts/publish list | sort)
}

# Of the command, which the archives contain.
bill_of_materials() {
    install_cargo cargo-cyclonedx || { skip "the bill of materials" "cargo-cyclonedx could not be installed"; return; }
    cargo cyclonedx --quiet --format json --spec-version 1.5 --target x86_64-unknown-linux-musl \
        --override-filename "bloomline-$version.cdx" --manifest-path "$scratch/sources/cli/Cargo.toml"
    mv "$scratch/sources/cli/bloomline-$version.cdx.json" "$archives"
    (cd "$archives" && sha256sum "bloomline-$version.cdx.json" >>SHA256SUMS)
}

# `in_package NAME CARGO-ARGUMENT...`
in_package() {
    cargo "$2" --quiet --manifest-path "$scratch/unpacked/$1/Cargo.toml" \
        --target-dir "${CARGO_TARGET_DIR:-$root/target}" "${patches[@]}" "${@:3}"
}

one_version() {
    local lock tag
    # Packages that are never published have version 0.0.0.
    ! git grep -nE '^(version( =|:) |bloomline.* version = |  "version")' -- '*Cargo.toml' CITATION.cff bindings/js/package.json |
        grep -vF -e "\"$version\"" -e '"0.0.0"' || { echo "not version $version" >&2; return 1; }
    for lock in $(git ls-files '*Cargo.lock'); do
        cargo update --workspace --locked --quiet --manifest-path "${lock/%lock/toml}"
    done
    tag=$(git describe --tags --exact-match 2>/dev/null) || return 0
    [ "$tag" = "v$version" ] && grep "^## \[$version\]" CHANGELOG.md ||
        { echo "the tag is $tag: expected v$version, and its heading in CHANGELOG.md" >&2; return 1; }
}

# `command_archive CPU`: the command, statically linked, with its manual.
command_archive() {
    local target=$1-unknown-linux-musl toolchain variable gcc=gcc run=() folder command shell
    if [ "$1" != "$(uname -m)" ]; then
        gcc=$1-linux-gnu-gcc run=("qemu-$1")
        install "$gcc" "gcc-$1-linux-gnu" "libc6-dev-${1/aarch64/arm64}-cross" && install "${run[0]}" qemu-user ||
            { skip "the command for $target" "a cross compiler or QEMU could not be installed"; return; }
    fi
    toolchain=$(toolchain_with_std "$target") ||
        { skip "the command for $target" "no installed toolchain has its standard library"; return; }
    variable=${target//-/_}
    # The only C is zstd's, which calls nothing but malloc, memcpy and the like. So glibc's headers will do, without the
    # checks that Ubuntu's gcc adds, which call functions that musl lacks.
    export "CC_$variable=$gcc" "CFLAGS_$variable=-U_FORTIFY_SOURCE" "CARGO_TARGET_${variable^^}_LINKER=rust-lld"
    cargo "+$toolchain" build --release --locked --quiet -p bloomline-cli --target "$target"

    folder=$scratch/stage/bloomline-$version-$target
    mkdir -p "$folder"/{man/man1,completions}
    cp "${CARGO_TARGET_DIR:-$root/target}/$target/release/bloomline" LICENSE-* CHANGELOG.md cli/README.md "$folder"
    RUSTUP_TOOLCHAIN=$toolchain python3 scripts/licenses.py cli/Cargo.toml "$target" >"$folder/LICENSE-THIRD-PARTY"
    run+=("$folder/bloomline")
    ! readelf --wide --program-headers --sections "${run[-1]}" | grep -E 'INTERP|\.symtab|\.debug_info' ||
        { echo "the command is not static or not stripped" >&2; return 1; }
    [ "$("${run[@]}" --version)" = "bloomline $version" ]
    seq 1000 | "${run[@]}" build --quiet --fpr 1e-6 -o "$scratch/$1.bloom"
    diff <(seq 999 1002 | "${run[@]}" check "$scratch/$1.bloom") <(seq 999 1000)
    # The same bytes on every CPU.
    diff --from-file "$scratch/$1.bloom" "$scratch"/*.bloom

    "${run[@]}" man >"$folder/man/man1/bloomline.1"
    for command in $("${run[@]}" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx help); do
        "${run[@]}" man "$command" >"$folder/man/man1/bloomline-$command.1"
    done
    for shell in bash.bash zsh.zsh fish.fish powershell.ps1 elvish.elv; do
        "${run[@]}" completions "${shell%.*}" >"$folder/completions/bloomline.${shell#*.}"
    done
    archive "${folder##*/}"
    [[ $(sed "s/{ version }/$version/g; s/{ target }/$target/g" cli/Cargo.toml) = \
        *"/v$version/${folder##*/}.tar.gz\""*"\"${folder##*/}/{ bin }{"* ]] ||
        { echo "cargo binstall would not find it: see cli/Cargo.toml" >&2; return 1; }
}

# The C libraries, which can be put anywhere:
c_archive() {
    local name flags stage=$scratch/stage there=$scratch/anywhere
    install make make && install pkg-config pkg-config ||
        { skip "the C libraries" "make or pkg-config could not be installed"; return; }
    name=libbloomline-$version-$(gcc -dumpmachine)
    make -C bindings/c CARGO="cargo --quiet" >/dev/null
    make -C bindings/c install DESTDIR="$stage" PREFIX="/$name" >/dev/null
    cp LICENSE-* bindings/c/README.md "$stage/$name"
    python3 scripts/licenses.py bindings/c/Cargo.toml >"$stage/$name/LICENSE-THIRD-PARTY"
    archive "$name"
    mkdir "$there"
    tar -xzf "$archives/$name.tar.gz" -C "$there" --strip-components=1
    read -ra flags <<<"$(PKG_CONFIG_PATH=$there/lib/pkgconfig pkg-config --cflags --libs bloomline)"
    gcc bindings/c/examples/filter.c -o "$scratch/filter" "${flags[@]}"
    LD_LIBRARY_PATH=$there/lib "$scratch/filter"
}

# Packs `$scratch/stage/FOLDER`. The same files make the same archive.
archive() {
    tar -C "$scratch/stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        -c "$1" | gzip -9n >"$archives/$1.tar.gz"
    (cd "$archives" && ls -lh "$1.tar.gz" && sha256sum "$1.tar.gz" >>SHA256SUMS)
}

## workflows                   .github: zizmor finds nothing, workflows, forms, dependabot.yml and CITATION.cff fit their schemas
workflows() {
    local bin=$scratch/venv/bin
    new_venv && "$bin/pip" install --quiet zizmor check-jsonschema ||
        { skip "the workflows" "Python's venv, zizmor or check-jsonschema could not be installed"; return; }
    step "$bin/zizmor" --offline --quiet .github
    step "$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    step "$bin/check-jsonschema" --builtin-schema vendor.dependabot .github/dependabot.yml
    step "$bin/check-jsonschema" --builtin-schema vendor.citation-file-format CITATION.cff
    step "$bin/check-jsonschema" --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
}
