# C:
## capi                        the C interface: its tests in C and C++, its installation
capi() {
    local prefix=$scratch/home/.local
    install g++ g++ && install make make && install pkg-config pkg-config || { skip "the C interface" "a C++ compiler is not available"; return; }
    step cargo clippy -p bloomline-capi --no-deps -- -D warnings
    step the_readme_installs_and_links
    step all_functions_are_declared_exported_and_tested "$prefix"

    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    local shared static
    read -ra shared <<<"$(pkg-config --cflags --libs bloomline)"
    read -ra static <<<"$(pkg-config --static --cflags --libs bloomline | sed 's/-lbloomline/-l:libbloomline.a/')"
    step c_and_cxx "$scratch/shared" "${shared[@]}"
    step c_and_cxx "$scratch/static" "${static[@]}"
    # The test requests more memory than there is, and expects an error.
    ASAN_OPTIONS=allocator_may_return_null=1 \
        step c_and_cxx "$scratch/sanitized" -fsanitize=address,undefined -fno-sanitize-recover=all "${shared[@]}"
    if install valgrind valgrind; then
        # Every block is freed, so that a user's own leaks are the only ones that valgrind reports.
        local linked
        for linked in shared static; do
            step valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=all \
                --show-leak-kinds=all "$scratch/$linked-c" tests/golden "$scratch/abi.bloom"
        done
    else
        skip "valgrind" "it could not be installed"
    fi
    step out_of_memory "${shared[@]}"
    step the_examples_run
    step static_programs_are_small "$prefix"
    step beside_another_rust_library "${static[@]}"
    step the_installed_tree_can_be_moved
    step uninstall_leaves_other_files
}

strict=(-Wall -Wextra -Werror -pedantic -g)

# The commands as they stand, in a shell that knows nothing of this one.
the_readme_installs_and_links() {
    mkdir -p "$scratch/readme" "$scratch/home"
    sed '/^## Use/q' capi/README.md | fenced sh >"$scratch/readme.sh"
    fenced c <capi/README.md >"$scratch/readme/ants.c"
    sed -i "s|^export|cd $scratch/readme\n&|" "$scratch/readme.sh"
    env -i PATH="$PATH" HOME="$scratch/home" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}" \
        CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
        bash -eux "$scratch/readme.sh"
}

# Prints the blocks of code in this language.
fenced() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" | grep -v '^```'
}

all_functions_are_declared_exported_and_tested() {
    local names='bloomline_[a-z_0-9]+' lib=$1/lib/libbloomline
    grep -oE "^[a-z].*\b$names\(" "$1/include/bloomline/bloomline.h" | grep -oE "$names\($" | tr -d '(' |
        sort >"$scratch/declared"
    nm -D --defined-only "$lib.so" | awk '{ print $3 }' | sort | diff "$scratch/declared" -
    nm -g --defined-only "$lib.a" | awk 'NF == 3 { print $3 }' | sort | diff "$scratch/declared" -
    grep -oE "\b$names\b" capi/tests/abi.c | sort -u | comm -13 - "$scratch/declared" >"$scratch/untested"
    diff "$scratch/untested" /dev/null
    echo "$(wc -l <"$scratch/declared") functions"
}

# `c_and_cxx OUTPUT ARGUMENT...`
c_and_cxx() {
    local output=$1
    shift
    gcc -std=c99 "${strict[@]}" capi/tests/abi.c -o "$output-c" "$@" -pthread
    g++ -std=c++17 "${strict[@]}" -x c++ capi/tests/abi.c -x none -o "$output-cxx" "$@" -pthread
    "$output-c" tests/golden "$scratch/abi.bloom"
    "$output-cxx" tests/golden "$scratch/abi.bloom"
    BLOOMLINE_KERNEL=portable "$output-c" tests/golden "$scratch/abi.bloom" | grep -w portable
}

out_of_memory() {
    gcc -std=c99 "${strict[@]}" capi/tests/out_of_memory.c -o "$scratch/out-of-memory" "$@"
    "$scratch/out-of-memory"
}

the_examples_run() {
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs bloomline)"
    gcc -std=c99 "${strict[@]}" capi/examples/filter.c -o "$scratch/filter" "${flags[@]}"
    "$scratch/filter"
    gcc -std=c99 "${strict[@]}" "$scratch/readme/ants.c" -o "$scratch/ants" "${flags[@]}"
    "$scratch/ants"
    leveldb_tools || { skip "LevelDB's examples" "libleveldb-dev could not be installed"; return; }
    gcc -std=c99 "${strict[@]}" capi/examples/leveldb.c -o "$scratch/leveldb-c" "${flags[@]}" -lleveldb
    "$scratch/leveldb-c" "$scratch/db"
    local options
    for options in -std=c++11 -std=c++17 "-std=c++11 -fno-exceptions -fno-rtti"; do
        # shellcheck disable=SC2086
        g++ $options "${strict[@]}" capi/examples/leveldb.cc -o "$scratch/leveldb-cxx" "${flags[@]}" -lleveldb
        "$scratch/leveldb-cxx" "$scratch/db"
    done
}

static_programs_are_small() {
    local library=$1/lib/libbloomline.a flags
    at_most 5000000 "$library"
    gcc capi/examples/filter.c -o "$scratch/filter" -I"$1/include" "$library"
    at_most 1500000 "$scratch/filter"
    read -ra flags <<<"$(pkg-config --static --cflags --libs bloomline)"
    gcc -static capi/examples/filter.c -o "$scratch/filter-static" "${flags[@]}"
    at_most 1500000 "$scratch/filter-static"
    "$scratch/filter-static"
}

at_most() {
    local size
    size=$(stat -c %s "$2")
    echo "${2##*/}: $size bytes"
    [ "$size" -le "$1" ] || { echo "more than $1" >&2; return 1; }
}

# Both bring the Rust standard library, each its own, also of another version.
beside_another_rust_library() {
    local toolchain toolchains
    toolchains=$(rustup toolchain list 2>/dev/null | cut -d' ' -f1) || true
    for toolchain in $toolchains; do
        echo "$toolchain"
        rustc "+$toolchain" --edition 2021 --crate-type staticlib capi/tests/beside/other.rs -o "$scratch/libother.a"
        gcc capi/tests/beside/both.c -o "$scratch/both" -L"$scratch" -lother "$@"
        "$scratch/both"
    done
}

the_installed_tree_can_be_moved() {
    local there=$scratch/not-there multiarch
    multiarch=$(gcc -print-multiarch)
    make -C capi install DESTDIR="$scratch/stage" PREFIX="$there/usr" LIBDIR="$there/usr/lib/$multiarch" \
        INCLUDEDIR="$there/headers" >/dev/null
    [ ! -e "$there" ] || { echo "DESTDIR was not honoured" >&2; return 1; }
    ! grep -rI "$scratch" "$scratch/stage" || { echo "these files contain DESTDIR or PREFIX" >&2; return 1; }
    mv "$scratch/stage$there" "$scratch/moved"

    local lib=$scratch/moved/usr/lib/$multiarch flags
    read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs bloomline)"
    gcc capi/examples/filter.c -o "$scratch/filter-moved" "${flags[@]}" -Wl,-rpath,"$lib"
    env -u LD_LIBRARY_PATH "$scratch/filter-moved"
    install cmake cmake make || { skip "CMake" "it could not be installed"; return; }
    cmake_finds_it "$scratch/moved/usr"
    ! leveldb_tools || cmake_finds_leveldb "$scratch/moved/usr"
}

uninstall_leaves_other_files() {
    local stage=$scratch/uninstall
    local variables=(DESTDIR="$stage" PREFIX=/usr LIBDIR=/usr/lib/here INCLUDEDIR=/headers)
    local others=("$stage/headers/bloomline/other.h" "$stage/usr/lib/here/libbloomline.so.0.0")
    make -C capi install "${variables[@]}" >/dev/null
    touch "${others[@]}"
    make -C capi uninstall "${variables[@]}" >/dev/null
    diff <(printf '%s\n' "${others[@]}") <(find "$stage" -not -type d | sort)
    rm "${others[@]}"
    make -C capi uninstall "${variables[@]}" >/dev/null
    diff <(printf '%s\n' "$stage/headers" "$stage/usr/lib/here/cmake" "$stage/usr/lib/here/pkgconfig") \
        <(find "$stage" -type d -empty | sort)
}

cmake_finds_it() {
    cmake -S capi/tests/cmake -B "$scratch/cmake/build" -DCMAKE_PREFIX_PATH="$1" >/dev/null
    cmake --build "$scratch/cmake/build" >/dev/null
    env -u LD_LIBRARY_PATH "$scratch/cmake/build/bloomline"
    env -u LD_LIBRARY_PATH "$scratch/cmake/build/static"
}

# As the README says.
cmake_finds_leveldb() {
    local user=$scratch/cmake-leveldb
    mkdir "$user"
    cp capi/examples/leveldb.c "$user/ants.c"
    {
        printf 'cmake_minimum_required(VERSION 3.10)\nproject(user C CXX)\n'
        fenced cmake <capi/README.md
    } >"$user/CMakeLists.txt"
    cmake -S "$user" -B "$user/build" -DCMAKE_PREFIX_PATH="$1" >/dev/null
    cmake --build "$user/build" >/dev/null
    env -u LD_LIBRARY_PATH "$user/build/ants" "$user/db"

    # Without snappy, the error names its package.
    sed -i '2a set(CMAKE_FIND_LIBRARY_PREFIXES none)' "$user/CMakeLists.txt"
    ! cmake -S "$user" -B "$user/without" -DCMAKE_PREFIX_PATH="$1" >/dev/null 2>"$user/error"
    tr '\n' ' ' <"$user/error" | grep -o 'install *libsnappy-dev'
}
