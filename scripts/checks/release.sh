# Publishing:
## package                     what crates.io will get: each crate is packed, and built from its package
package() {
    each_package build_package
}

build_package() {
    case $1 in
        # `scripts/check release` builds the others, whose dependencies take minutes.
        bloomline | bloomline-cli) step in_package "$1" build ;;
    esac
}

## release                     what a release publishes: crates, tested from their packages; archives in target/archives
release() {
    local version archives=${CARGO_TARGET_DIR:-$root/target}/archives
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    # A cold build only writes debug information and incremental state.
    export CARGO_INCREMENTAL=0 CARGO_PROFILE_{DEV,RELEASE,CAPI}_DEBUG=0
    step one_version
    step all_crates_are_listed
    step metadata
    step compatible
    case $(host) in
        *-linux-*) all_archives ;;
        *) skip "the archives" "the host is $(host)" ;;
    esac
    each_package test_package
}

# The crates:
# `each_package COMMAND` packs each crate, unpacks it and runs `COMMAND NAME`. Uncommitted changes are packed as well.
each_package() {
    local crate folder name crates patches=()
    # In a copy, because a patch changes lock files.
    mkdir "$scratch/sources"
    copy_sources "$scratch/sources"
    mapfile -t crates < <(scripts/publish list)
    for crate in "${crates[@]}"; do
        read -r folder name <<<"$crate"
        step pack "$folder" "$name"
        "$1" "$name"
        # For the packages after it: `cargo package` would take the library of an earlier run from a registry below the
        # target folder.
        patches+=(--config "patch.crates-io.$name.path='$scratch/unpacked/$name'")
    done
}

pack() {
    cargo package --quiet --allow-dirty --no-verify --manifest-path "$scratch/sources/$1/Cargo.toml" --package "$2" \
        --target-dir "$scratch/target" "${patches[@]}"
    mkdir -p "$scratch/unpacked/$2"
    tar -xzf "$scratch/target/package/$2"-[0-9]*.crate --strip-components=1 -C "$scratch/unpacked/$2"
    cmp LICENSE-MIT "$scratch/unpacked/$2/LICENSE-MIT"
    cmp LICENSE-APACHE "$scratch/unpacked/$2/LICENSE-APACHE"
}

# `in_package NAME CARGO-ARGUMENT...`
in_package() {
    cargo "$2" --quiet --manifest-path "$scratch/unpacked/$1/Cargo.toml" \
        --target-dir "${CARGO_TARGET_DIR:-$root/target}" "${patches[@]}" "${@:3}"
}

test_package() {
    local filter=()
    # Two tests read the goldens, which only the library's package has.
    [ "$1" != bloomline-cli ] || filter=(-- --skip golden)
    step in_package "$1" test --all-features "${filter[@]}"
    [ "$1" != bloomline ] ||
        RUSTDOCFLAGS="--cfg docsrs -D warnings" step unstable in_package "$1" doc --no-deps --all-features
}

one_version() {
    local lock tag
    # Packages that are never published have version 0.0.0.
    ! git grep -nE '^(version = |bloomline.* version = )' -- '*Cargo.toml' | grep -vF -e "\"$version\"" -e '"0.0.0"' &&
        ! grep -HE '^  "version"' js/package.json | grep -vF "\"$version\"" &&
        ! git grep -n 'find_package(bloomline .*REQUIRED' capi | grep -vF "bloomline ${version%.*} " ||
        { echo "not version $version" >&2; return 1; }
    for lock in $(git ls-files '*Cargo.lock'); do
        cargo update --workspace --locked --quiet --manifest-path "${lock/%lock/toml}"
    done
    tag=$(git describe --tags --exact-match 2>/dev/null) || return 0
    [ "$tag" = "v$version" ] && grep "^## \[$version\]" CHANGELOG.md ||
        { echo "the tag is $tag: expected v$version, and its heading in CHANGELOG.md" >&2; return 1; }
}

all_crates_are_listed() {
    git ls-files '*Cargo.toml' | xargs grep -L '^publish = false' | xargs -n 1 dirname | sort |
        diff - <(scripts/publish list | cut -d' ' -f1 | sort)
}

metadata() {
    local folder name
    install python3 python3 || { skip "the crates' metadata" "Python 3 could not be installed"; return; }
    while read -r folder name; do
        cargo metadata --no-deps --format-version 1 --manifest-path "$folder/Cargo.toml" >"$scratch/$name.json"
    done < <(scripts/publish list)
    python3 - "$scratch"/*.json <<'END_OF_PYTHON'
import json, pathlib, re, sys

# Names from https://crates.io/category_slugs. crates.io drops other names.
CATEGORIES = {"algorithms", "command-line-utilities", "data-structures", "database", "no-std", "text-processing"}

wrong = []
for path in map(pathlib.Path, sys.argv[1:]):
    (crate,) = (package for package in json.loads(path.read_text())["packages"] if package["name"] == path.stem)
    wrong += [f"{path.stem}: no {field}" for field in ("description", "license") if not crate[field]]
    words = crate["keywords"]
    if len(words) > 5 or not all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9_+-]{,19}", word) for word in words):
        wrong.append(f"{path.stem}: crates.io takes five keywords of at most 20 characters, not {words}")
    if unknown := set(crate["categories"]) - CATEGORIES:
        wrong.append(f"{path.stem}: unknown categories {unknown}")
    if not crate["repository"]:
        print(f"warning: {path.stem} has no `repository`: see RELEASING.md", file=sys.stderr)
sys.exit("\n".join(wrong) or 0)
END_OF_PYTHON
}

compatible() {
    local folder name tag
    # In a release, HEAD has a tag of its own.
    tag=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null) ||
        { echo "no earlier tag here: there is no interface to compare with"; return; }
    install_cargo cargo-semver-checks ||
        { skip "comparing with $tag" "cargo-semver-checks could not be installed"; return; }
    while read -r folder name; do
        # The command has no library.
        [ "$name" = bloomline-cli ] ||
            step cargo semver-checks --manifest-path "$folder/Cargo.toml" --package "$name" --all-features \
                --baseline-rev "$tag" </dev/null
    done < <(scripts/publish list)
}

all_archives() {
    rm -rf "$archives"
    mkdir -p "$archives" "$scratch/stage"
    step command_archive x86_64
    step command_archive aarch64
    step c_archive
}

# The command, statically linked, with its manual:
# `command_archive CPU`
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
    run+=("$folder/bloomline")
    if readelf --wide --program-headers --sections "${run[-1]}" | grep -E 'INTERP|\.symtab|\.debug_info'; then
        echo "the command is not static or not stripped" >&2
        return 1
    fi
    [ "$("${run[@]}" --version)" = "bloomline $version" ]
    same_answers "$1" "${run[@]}"
    "${run[@]}" man >"$folder/man/man1/bloomline.1"
    for command in $("${run[@]}" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        [ "$command" = help ] || "${run[@]}" man "$command" >"$folder/man/man1/bloomline-$command.1"
    done
    for shell in bash.bash zsh.zsh fish.fish powershell.ps1 elvish.elv; do
        "${run[@]}" completions "${shell%.*}" >"$folder/completions/bloomline.${shell#*.}"
    done
    archive "${folder##*/}"
}

# `same_answers CPU COMMAND...` builds a filter, which must have the same bytes on every CPU, and queries it.
same_answers() {
    seq 1000 | "${@:2}" build --quiet --fpr 1e-6 -o "$scratch/$1.bloom"
    diff <(seq 999 1002 | "${@:2}" check "$scratch/$1.bloom") <(seq 999 1000)
    "${@:2}" info tests/golden/standalone-keys.bin | grep -w checksum
    cp -n "$scratch/$1.bloom" "$scratch/first.bloom"
    cmp "$scratch/$1.bloom" "$scratch/first.bloom"
}

# Packs `$scratch/stage/FOLDER`. The same files make the same archive.
archive() {
    tar -C "$scratch/stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        -c "$1" | gzip -9n >"$archives/$1.tar.gz"
    (cd "$archives" && ls -lh "$1.tar.gz" && sha256sum "$1.tar.gz" >>SHA256SUMS)
}

# The C libraries, which can be put anywhere:
c_archive() {
    local name flags stage=$scratch/stage
    install make make && install pkg-config pkg-config ||
        { skip "the C libraries" "make or pkg-config could not be installed"; return; }
    name=libbloomline-$version-$(gcc -dumpmachine)
    make -C capi CARGO="cargo --quiet" >/dev/null
    make -C capi install DESTDIR="$stage" PREFIX="/$name" >/dev/null
    cp LICENSE-* capi/README.md "$stage/$name"
    archive "$name"
    mkdir "$scratch/anywhere"
    tar -xzf "$archives/$name.tar.gz" -C "$scratch/anywhere" --strip-components=1
    read -ra flags <<<"$(PKG_CONFIG_PATH=$scratch/anywhere/lib/pkgconfig pkg-config --cflags --libs bloomline)"
    gcc capi/examples/filter.c -o "$scratch/filter" "${flags[@]}"
    LD_LIBRARY_PATH=$scratch/anywhere/lib "$scratch/filter"
    echo "needs $(objdump -T "$scratch/anywhere/lib/libbloomline.so" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -1)"
}

## workflows                   .github: zizmor finds nothing, workflows, forms and dependabot.yml fit their schemas
workflows() {
    local bin=$scratch/venv/bin
    new_venv && "$bin/pip" install --quiet zizmor check-jsonschema ||
        { skip "the workflows" "Python's venv, zizmor or check-jsonschema could not be installed"; return; }
    step "$bin/zizmor" --offline --quiet .github
    step "$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    step "$bin/check-jsonschema" --builtin-schema vendor.dependabot .github/dependabot.yml
    step "$bin/check-jsonschema" --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml
}
