# LevelDB:
## leveldb                     tests of the filter policy in the C++ LevelDB, also under sanitizers and valgrind
leveldb() {
    leveldb_tools || { skip "LevelDB" "libleveldb-dev or a C++ compiler could not be installed"; return; }
    cargo build --profile capi --quiet -p bloomline-capi
    local tests=capi/tests plain=(-O2) watched=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    leveldb_build "$scratch/c++" "$tests/leveldb.cc" "${plain[@]}"
    leveldb_build "$scratch/c" "$tests/leveldb_c.c" "${plain[@]}"
    both "$scratch/c++" and "$scratch/c"

    leveldb_build "$scratch/c++-watched" "$tests/leveldb.cc" "${watched[@]}"
    leveldb_build "$scratch/c-watched" "$tests/leveldb_c.c" "${watched[@]}"
    both "$scratch/c++-watched" 20000 and "$scratch/c-watched"

    install valgrind valgrind || { skip "tests under valgrind" "it could not be installed"; return; }
    # LevelDB's background thread never ends, and valgrind reports its stack as "possibly lost".
    local valgrind=(valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite,indirect
        --show-leak-kinds=definite,indirect)
    both "${valgrind[@]}" "$scratch/c++" 500 and "${valgrind[@]}" "$scratch/c" 2000
}

# `both COMMAND... and COMMAND...` runs two commands at once; each uses one core.
both() {
    local first=()
    while [ "$1" != and ]; do
        first+=("$1")
        shift
    done
    shift
    step "${first[@]}" &
    step "$@"
    wait $!
}

## leveldb_suite [FOLDERS]     LevelDB's own tests with these filters: of its sources in FOLDERS, or of two versions, downloaded
leveldb_suite() {
    install g++ g++ && install make make && install curl curl && leveldb_suite_packages ||
        { skip "LevelDB's tests" "googletest or another package could not be installed"; return; }
    cargo build --profile capi --quiet -p bloomline-capi
    local version source
    if [ $# = 0 ]; then
        for version in 1.23 7ee830d02b623e8ffe0b95d59a74db1e58da04c5; do
            if leveldb_source "$version"; then
                set -- "$@" "$scratch/leveldb-$version"
            else
                skip "the tests of LevelDB $version" "its sources could not be downloaded" || return
            fi
        done
    fi
    for source; do
        step leveldb_suite_of "$(realpath "$source")"
    done
}

leveldb_suite_packages() {
    compiles_with gmock/gmock.h && compiles_with benchmark/benchmark.h && compiles_with snappy.h ||
        install "" libgtest-dev libgmock-dev libbenchmark-dev libsnappy-dev || compiles_with gmock/gmock.h
}

# `leveldb_source VERSION` downloads a tag or a commit to `$scratch/leveldb-VERSION`. Debian has the release, too.
leveldb_source() {
    local folder=$scratch/leveldb-$1 url=https://github.com/google/leveldb/archive/$1.tar.gz
    mkdir "$folder"
    if curl --fail --location --silent --output "$folder.tar.gz" "$url"; then
        tar xzf "$folder.tar.gz" --strip-components=1 -C "$folder"
    else
        scripts/debian_source leveldb "$folder" && grep -q "VERSION $1" "$folder/CMakeLists.txt"
    fi
}

leveldb_suite_of() {
    local build
    build=$(mktemp -d "$scratch/suite-XXXXXX")
    make -C capi/tests/suite --keep-going --jobs="$(nproc)" --no-print-directory SOURCES="$1" BUILD="$build" \
        LIBRARY="$(realpath "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a")"
    grep '^good' "$build/differences_test.log"
    cat "$build"/*.log | awk '/^PASS$/ { n += 1 } /^\[  PASSED/ { n += $4 } END { print n " tests passed" }'
}

## leveldb_bench [KEYS]        compares it with LevelDB's own policy, also in databases of KEYS keys; writes docs/leveldb.md
leveldb_bench() {
    leveldb_tools || { skip "LevelDB" "libleveldb-dev or a C++ compiler could not be installed"; return; }
    cargo build --profile capi --quiet -p bloomline-capi
    local name keys=${1:-1000000}
    for name in fpr policy readmissing; do
        leveldb_build "$scratch/$name" "capi/bench/leveldb_$name.cc" -O2
    done
    {
        cat <<END
# In LevelDB

LevelDB's own filter policy and bloomline's, both at 10 bits per key: false-positive rates (FPR), times without a
database, and gets in databases. bloomline's FPR is about 1 % or less, whatever the keys. LevelDB's is 0.9 to 1.7 % for
random keys; for sequential keys it depends on the number of keys in a filter, and reaches 93 %.

Written by \`scripts/check leveldb_bench\` on $(date -u +%F); CPU: $(scripts/cpu).
LevelDB is 1.23, and bloomline as \`make -C capi\` builds it.

## False-positive rates

LevelDB writes a filter for the data blocks that begin in the same 2 KiB of a table: mostly for one block, whose number
of keys follows from the sizes of keys and values. If these sizes do not vary, nearly all filters of a database have the
same number of keys, and one of the points below is its FPR.

![False-positive rate by keys per filter, of LevelDB's filter and of bloomline](plots/leveldb.svg)

Present keys are every second or fourth number, absent keys the numbers between them. LevelDB hashes keys to 32 bits,
four bytes at a time. If the length of keys is a multiple of 4, two keys that differ only in the last byte have hashes
that differ only in bits 8 to 15 and 24 to 31, and so probe nearly the same bits of a filter. Numbers of other lengths,
such as 10 digits, have the FPR of random keys.

END
        "$scratch/fpr" "$scratch/leveldb.svg"
        printf "\n## Times of the policies\n\n"
        "$scratch/policy"
        printf "\n## Gets, random keys\n\n"
        "$scratch/readmissing" --keys "$keys"
        printf "\n## Gets, sequential keys\n\n"
        "$scratch/readmissing" --keys "$keys" --sequential
    } >"$scratch/leveldb.md"
    cp "$scratch/leveldb.svg" docs/plots/leveldb.svg
    cp "$scratch/leveldb.md" docs/leveldb.md
    cat docs/leveldb.md
}

# Debian's CMake target of LevelDB links snappy, whose package it does not depend on.
leveldb_tools() {
    install g++ g++ && {
        compiles_with leveldb/db.h && compiles_with snappy.h ||
            install "" libleveldb-dev libsnappy-dev || compiles_with leveldb/db.h
    }
}

compiles_with() {
    echo "#include <$1>" | g++ -x c++ -fsyntax-only - 2>/dev/null
}

# `leveldb_build OUTPUT SOURCE FLAG...`
leveldb_build() {
    local output=$1 source=$2 compiler=(g++ -std=c++17)
    shift 2
    [[ $source != *.c ]] || compiler=(gcc -std=c99)
    "${compiler[@]}" -Wall -Wextra -Wpedantic -Werror "$@" -I capi/include "$source" -o "$output" \
        "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a" -lleveldb -lpthread -ldl -lm
}
