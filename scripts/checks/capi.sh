# The C interface: its header, its installation, and its tests in C and C++, with the shared and the static library, under
# sanitizers and valgrind.

strict=(-Wall -Wextra -Werror -pedantic -g)

capi() {
    local prefix=$scratch/usr
    install g++ g++ make && install pkg-config pkg-config || { skip "the C interface" "a C++ compiler is not available"; return; }
    step cargo clippy -p bloomline-capi --no-deps -- -D warnings
    step the_header_is_that_of_the_sources
    step make -C capi
    step make -C capi install PREFIX="$prefix"
    step all_functions_are_declared_exported_and_tested

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
        step valgrind --quiet --error-exitcode=1 --leak-check=full "$scratch/shared-c" tests/golden
    else
        skip "valgrind" "it could not be installed"
    fi
    step the_examples_run
    step beside_another_rust_library "${static[@]}"
    step cmake_finds_it "$prefix"
}

the_header_is_that_of_the_sources() {
    # Other versions may format the header differently.
    local version=0.29.4
    [ "$(cbindgen --version 2>/dev/null)" = "cbindgen $version" ] ||
        cargo install --locked --quiet --debug --force --version "$version" cbindgen ||
        { skip "comparing the header" "cbindgen $version could not be installed"; return; }
    (cd capi && cbindgen --quiet --config cbindgen.toml --crate bloomline-capi --output "$scratch/bloomline.h")
    diff capi/include/bloomline/bloomline.h "$scratch/bloomline.h"
}

all_functions_are_declared_exported_and_tested() {
    local names='bloomline_[a-z_0-9]+'
    grep -oE "^[a-z].*\b$names\(" "$scratch/usr/include/bloomline/bloomline.h" | grep -oE "$names\($" | tr -d '(' |
        sort >"$scratch/declared"
    nm -D --defined-only "$scratch/usr/lib/libbloomline.so" | awk '{ print $3 }' | sort >"$scratch/exported"
    diff "$scratch/declared" "$scratch/exported"
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
    "$output-c" tests/golden
    "$output-cxx" tests/golden
    BLOOMLINE_KERNEL=portable "$output-c" tests/golden | grep -w portable
}

the_examples_run() {
    local flags
    read -ra flags <<<"$(pkg-config --cflags --libs bloomline)"
    gcc -std=c99 "${strict[@]}" capi/examples/filter.c -o "$scratch/filter" "${flags[@]}"
    "$scratch/filter"
    sed -n '/^```c$/,/^```$/p' capi/README.md | grep -v '^```' >"$scratch/readme.c"
    gcc -std=c99 "${strict[@]}" "$scratch/readme.c" -o "$scratch/readme" "${flags[@]}"
    "$scratch/readme"
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

# Both bring the Rust standard library.
beside_another_rust_library() {
    cat >"$scratch/other.rs" <<'END'
#[unsafe(no_mangle)]
pub extern "C" fn other() -> i32 {
    std::panic::catch_unwind(|| std::env::args().count() as i32).unwrap_or(0)
}
END
    cat >"$scratch/both.c" <<'END'
#include <bloomline/bloomline.h>
int other(void);
int main(void) { return other() != 1 || bloomline_hash_key("", 0, 0) == 0; }
END
    rustc --edition 2024 --crate-type staticlib "$scratch/other.rs" -o "$scratch/libother.a"
    gcc "$scratch/both.c" -o "$scratch/both" -L"$scratch" -lother "$@"
    "$scratch/both"
}

cmake_finds_it() {
    install cmake cmake make || { skip "CMake" "it could not be installed"; return; }
    mkdir "$scratch/cmake"
    cp capi/examples/filter.c "$scratch/cmake"
    cat >"$scratch/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(user C)
find_package(bloomline 0.1 REQUIRED)
foreach(kind bloomline static)
  add_executable(${kind} filter.c)
  target_link_libraries(${kind} bloomline::${kind})
endforeach()
find_package(bloomline 0.2 QUIET)
if(bloomline_FOUND)
  message(FATAL_ERROR "0.2 is not 0.1")
endif()
END
    cmake -S "$scratch/cmake" -B "$scratch/cmake/build" -DCMAKE_PREFIX_PATH="$1" >/dev/null
    cmake --build "$scratch/cmake/build" >/dev/null
    env -u LD_LIBRARY_PATH "$scratch/cmake/build/bloomline"
    env -u LD_LIBRARY_PATH "$scratch/cmake/build/static"
}
