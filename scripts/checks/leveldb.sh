# LevelDB:
## leveldb                     tests of the filter policies in the C++ LevelDB, also under sanitizers and valgrind
leveldb() {
    leveldb_tools || { skip "LevelDB" "libleveldb-dev or a C++ compiler could not be installed"; return; }
    install valgrind valgrind || skip "tests under valgrind" "it could not be installed"
    cargo build --profile capi --quiet -p bloomline-capi
    local source=bindings/c/tests/leveldb.cc program=$scratch/tests
    leveldb_build "$program" "$source" -O2
    step "$program"
    leveldb_build "$program-watched" "$source" -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined
    step "$program-watched" 20000
    # The header for C, as C99.
    leveldb_build "$scratch/example" bindings/c/examples/leveldb.c -O1
    step "$scratch/example" "$scratch/database"
    command -v valgrind >/dev/null || return 0
    # LevelDB's background thread never ends, and valgrind reports its stack as "possibly lost".
    step valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite,indirect \
        --show-leak-kinds=definite,indirect "$program" 500
}

## leveldb_suite               LevelDB's own tests with these filters: those of two versions
leveldb_suite() {
    install g++ g++ && install make make && install curl curl && install_headers \
        "gmock/gmock.h benchmark/benchmark.h snappy.h" libgtest-dev libgmock-dev libbenchmark-dev libsnappy-dev ||
        { skip "LevelDB's tests" "googletest or another package could not be installed"; return; }
    cargo build --profile capi --quiet -p bloomline-capi
    local version
    for version in 1.23 7ee830d02b623e8ffe0b95d59a74db1e58da04c5; do
        leveldb_source "$version" ||
            { skip "the tests of LevelDB $version" "its sources could not be downloaded"; continue; }
        step make -C bindings/c/tests/suite --keep-going --jobs="$(nproc)" --no-print-directory \
            SOURCES="$scratch/leveldb-$version" BUILD="$(mktemp -d -p "$scratch")" \
            LIBRARY="$(realpath "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a")"
    done
}

# `leveldb_source VERSION` downloads a tag or a commit to `$scratch/leveldb-VERSION`. Debian has the release, too.
leveldb_source() {
    local folder=$scratch/leveldb-$1 url=https://github.com/google/leveldb/archive/$1.tar.gz
    mkdir "$folder"
    curl --fail --location --silent --output "$folder.tar.gz" "$url" &&
        tar xzf "$folder.tar.gz" --strip-components=1 -C "$folder" && return
    scripts/debian_source leveldb "$folder" && grep -q "VERSION $1" "$folder/CMakeLists.txt"
}

## leveldb_bench [KEYS]        compares it with LevelDB's own, also in databases of KEYS keys; writes docs/leveldb.md
leveldb_bench() {
    leveldb_tools || { skip "LevelDB" "libleveldb-dev or a C++ compiler could not be installed"; return; }
    cargo build --profile capi --quiet -p bloomline-capi
    local name keys=${1:-1000000}
    # A comparison that fails leaves its databases.
    export TMPDIR=$scratch
    for name in fpr readmissing; do
        leveldb_build "$scratch/$name" "bindings/c/bench/leveldb_$name.cc" -O2
    done
    {
        sed -e "s|{date}|$(date -u +%F)|" -e "s|{cpu}|$(scripts/cpu)|" bindings/c/bench/leveldb.txt
        "$scratch/fpr" "$scratch/leveldb.json"
        "$scratch/readmissing" "$keys" random
        "$scratch/readmissing" "$keys" sequential
    } | tee "$scratch/leveldb.md"
    cp "$scratch/leveldb.json" docs/plots
    cp "$scratch/leveldb.md" docs
}

# Debian's CMake target of LevelDB links snappy, whose package it does not depend on.
leveldb_tools() { install g++ g++ && install_headers "leveldb/db.h snappy.h" libleveldb-dev libsnappy-dev; }

# `install_headers "HEADER..." PACKAGE...`: Debian's packages, unless the headers are there.
install_headers() {
    local code
    # shellcheck disable=SC2086
    code=$(printf '#include <%s>\n' $1)
    g++ -x c++ -fsyntax-only - <<<"$code" 2>/dev/null || install "" "${@:2}" || g++ -x c++ -fsyntax-only - <<<"$code"
}

# `leveldb_build OUTPUT SOURCE FLAG...`
leveldb_build() {
    local compiler=(g++ -std=c++17)
    [[ $2 != *.c ]] || compiler=(gcc -std=c99)
    "${compiler[@]}" -Wall -Wextra -Wpedantic -Werror "${@:3}" -I bindings/c/include -I bindings/cpp/include "$2" -o "$1" \
        "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a" -lleveldb -lpthread -ldl -lm
}
