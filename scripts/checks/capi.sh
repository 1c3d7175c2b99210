# C:
## capi                        the C interface: its tests in C and C++, its installation
capi() {
    local prefix=$scratch/home/.local strict=(-Wall -Wextra -Werror -pedantic -g) shared static
    install g++ g++ && install make make && install pkg-config pkg-config ||
        { skip "the C interface" "a C++ compiler is not available"; return; }
    step the_readme_installs_and_links
    step all_functions_are_declared_exported_and_tested

    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    read -ra shared <<<"$(pkg-config --cflags --libs bloomline)"
    read -ra static <<<"-static $(pkg-config --static --cflags --libs bloomline)"
    step c_and_cxx "$scratch/shared" "${shared[@]}"
    step c_and_cxx "$scratch/static" "${static[@]}"
    # The test requests more memory than there is, and expects an error.
    ASAN_OPTIONS=allocator_may_return_null=1 \
        step c_and_cxx "$scratch/sanitized" -fsanitize=address,undefined -fno-sanitize-recover=all "${shared[@]}"
    if install valgrind valgrind; then
        # Every block is freed, so that a user's own leaks are the only ones that valgrind reports.
        step valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=all --show-leak-kinds=all \
            "$scratch/shared-c" "$scratch" "$scratch/abi.bloom"
    else
        skip "valgrind" "it could not be installed"
    fi
    step gcc -std=c99 "${strict[@]}" bindings/c/tests/out_of_memory.c -o "$scratch/out-of-memory" "${shared[@]}"
    step "$scratch/out-of-memory"
    step static_programs_are_small "${static[@]}"
    step beside_another_rust_library
    unset LD_LIBRARY_PATH
    step the_installed_tree_can_be_moved_and_uninstalled
    step cmake_and_leveldb
}

# The commands as they stand, in a shell that knows nothing of this one but how to build what other checks have built.
the_readme_installs_and_links() {
    mkdir -p "$scratch/readme" "$scratch/home"
    sed '/^## Use/q' bindings/c/README.md | fenced sh >"$scratch/readme.sh"
    fenced c <bindings/c/README.md >"$scratch/readme/ants.c"
    sed -i "s|^export|cd $scratch/readme\n&|" "$scratch/readme.sh"
    env -i PATH="$PATH" HOME="$scratch/home" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}" \
        CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
        ${CARGO_PROFILE_CAPI_DEBUG:+CARGO_PROFILE_CAPI_DEBUG="$CARGO_PROFILE_CAPI_DEBUG"} \
        bash -eux "$scratch/readme.sh"
}

# Prints the blocks of code in this language.
fenced() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" | grep -v '^```'; }

all_functions_are_declared_exported_and_tested() {
    local names='bloomline_[a-z_0-9]+' lib=$prefix/lib/libbloomline declared=$scratch/declared
    grep -oE "^[a-z].*\b$names\(" "$prefix/include/bloomline/bloomline.h" | grep -oE "$names\($" | tr -d '(' |
        sort >"$declared"
    diff "$declared" <(nm -DP --defined-only "$lib.so" | awk '{ print $1 }' | sort)
    diff "$declared" <(nm -gP --defined-only "$lib.a" | awk 'NF > 1 { print $1 }' | sort)
    diff /dev/null <(grep -oE "\b$names\b" bindings/c/tests/abi.c | sort -u | comm -13 - "$declared")
}

# `c_and_cxx OUTPUT ARGUMENT...`
c_and_cxx() {
    gcc -std=c99 "${strict[@]}" bindings/c/tests/abi.c -o "$1-c" "${@:2}" -pthread
    g++ -std=c++17 "${strict[@]}" -x c++ bindings/c/tests/abi.c -x none -o "$1-cxx" "${@:2}" -pthread
    "$1-c" "$scratch" "$scratch/abi.bloom"
    "$1-cxx" "$scratch" "$scratch/abi.bloom"
    BLOOMLINE_KERNEL=portable "$1-c" "$scratch" "$scratch/abi.bloom" | grep -w portable
}

static_programs_are_small() {
    local library=$prefix/lib/libbloomline.a
    gcc bindings/c/examples/filter.c -o "$scratch/small" -I"$prefix/include" "$library"
    gcc bindings/c/examples/filter.c -o "$scratch/small-static" "$@"
    "$scratch/small-static"
    ! find "$library" -size +5000000c | grep . && ! find "$scratch"/small* -size +1500000c | grep .
}

# Both bring the Rust standard library, each its own, also of another version.
beside_another_rust_library() {
    local toolchain
    for toolchain in $(rustup toolchain list | cut -d' ' -f1); do
        echo "$toolchain"
        rustc "+$toolchain" --edition 2021 --crate-type staticlib bindings/c/tests/beside/other.rs -o "$scratch/libother.a"
        gcc bindings/c/tests/beside/both.c -o "$scratch/both" "$scratch/libother.a" \
            -I"$prefix/include" "$prefix/lib/libbloomline.a" -lpthread -ldl
        "$scratch/both"
    done
}

the_installed_tree_can_be_moved_and_uninstalled() {
    local stage=$scratch/stage there=$scratch/not-there lib flags paths
    lib=usr/lib/$(gcc -print-multiarch)
    paths=(DESTDIR="$stage" PREFIX="$there/usr" LIBDIR="$there/$lib" INCLUDEDIR="$there/headers")
    # An administrator's umask may hide files from other users.
    (umask 077 && make -C bindings/c install "${paths[@]}" >/dev/null)
    diff /dev/null <(find "$stage$there" -not -perm -444)
    cp -a "$stage$there" "$scratch/moved"
    read -ra flags <<<"$(PKG_CONFIG_PATH=$scratch/moved/$lib/pkgconfig pkg-config --cflags --libs bloomline)"
    flags+=(-Wl,-rpath,"$scratch/moved/$lib")
    gcc -std=c99 "${strict[@]}" bindings/c/examples/filter.c -o "$scratch/filter" "${flags[@]}"
    "$scratch/filter"

    # The files of others stay.
    touch "$stage$there/headers/bloomline/other.h"
    make -C bindings/c uninstall "${paths[@]}" >/dev/null
    diff <(echo "$stage$there/headers/bloomline/other.h") <(find "$stage" -not -type d)
}

# In the moved tree, with the README's commands for CMake.
cmake_and_leveldb() {
    local user=$scratch/bindings/c/tests/cmake fetch='/^include(FetchContent)/,/^FetchContent_MakeAvailable/'
    install cmake cmake make && leveldb_tools ||
        { skip "LevelDB's examples and CMake" "cmake or libleveldb-dev could not be installed"; return; }
    # The check `leveldb` compiles the class as C++17, with exceptions and RTTI.
    g++ -std=c++11 -fno-exceptions -fno-rtti "${strict[@]}" bindings/c/examples/leveldb.cc -o "$scratch/leveldb" \
        "${shared[@]}" -lleveldb -Wl,-rpath,"$prefix/lib"
    "$scratch/leveldb" "$scratch/db"

    cp --parents -t "$scratch" bindings/c/tests/cmake/CMakeLists.txt bindings/c/examples/filter.c
    cp bindings/c/examples/leveldb.c "$user/ants.c"
    fenced cmake <bindings/c/README.md | tee "$scratch/blocks" | sed "${fetch}d" >>"$user/CMakeLists.txt"
    cmake -S "$user" -B "$user/build" -DCMAKE_PREFIX_PATH="$scratch/moved/usr" >/dev/null
    cmake --build "$user/build" >/dev/null
    "$user/build/bloomline"
    "$user/build/static"
    "$user/build/ants" "$scratch/db"
    diff /dev/null <(nm -D --defined-only "$user/build/libplugin.so" | grep bloomline_)

    # Built with the program, in paths with spaces.
    mkdir "$user too"
    cp "$user/ants.c" "$user too"
    sed -n "${fetch}p" "$scratch/blocks" | sed '2r /dev/stdin' "$user/CMakeLists.txt" >"$user too/CMakeLists.txt"
    ln -s "$(realpath "${CARGO_TARGET_DIR:-target}")" "$scratch/a target"
    export CARGO_TARGET_DIR="$scratch/a target"
    rm "$CARGO_TARGET_DIR/capi/static/libbloomline.a"
    cmake -S "$user too" -B "$user too/build" -DFETCHCONTENT_SOURCE_DIR_BLOOMLINE="$root" >/dev/null
    cmake --build "$user too/build" --parallel 2 >/dev/null
    "$user too/build/bloomline"
    "$user too/build/static"

    # Without snappy, the error names its package.
    sed -i '2a set(CMAKE_FIND_LIBRARY_PREFIXES none)' "$user/CMakeLists.txt"
    ! cmake -S "$user" -B "$user/without" -DCMAKE_PREFIX_PATH="$scratch/moved/usr" >/dev/null 2>"$scratch/error"
    tr '\n' ' ' <"$scratch/error" | grep -o 'install *libsnappy-dev'
}
