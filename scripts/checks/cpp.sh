# C++:
## cpp                         the C++ header, by g++ and clang++, under sanitizers, on other CPUs and beside Rust
cpp() {
    local clang
    install g++ g++ || { skip "the C++ header" "a C++ compiler is not available"; return; }
    step cpp_mistakes_do_not_compile
    step cpp_compare 100
    step cpp_tables 100 g++ -O2 -std=c++17
    BLOOMLINE_KERNEL=portable EXPECT_KERNELS=portable step "$scratch/format" tests/golden 0
    # Where the CPU can, this build multiplies and adds in one instruction, which sizes must not do.
    step cpp_tables 20 g++ -O3 -std=c++2b -march=native -fno-exceptions -fno-rtti
    # The sanitizers do not look into assembly, so the header does without. Unoptimised, which compiles faster.
    EXPECT_KERNELS="" step cpp_tables 5 g++ -std=c++20 -fsanitize=address,undefined -fno-sanitize-recover=all
    if clang=$(clang_cxx); then
        step cpp_tables 20 "$clang" -O1 -std=c++17 -fno-exceptions -fno-rtti
        step cpp_build "$clang" format -std=c++2b -fsyntax-only
    else
        skip "clang++" "it could not be installed"
    fi
    step cpp_emulated aarch64 aarch64 arm64 neon,portable
    step cpp_emulated s390x s390x s390x portable
    # x87 arithmetic, the default, has 80 bits, so sizes would differ.
    step cpp_emulated i686 i386 i386 portable -msse2 -mfpmath=sse
    cpp_packages
}

## cpp_compare [CASES [SEED]]  the C++ header and Rust on random input
cpp_compare() {
    cpp_build g++ compare -O2 -std=c++17
    "$scratch/compare" "$@"
}

## cpp_fuzz [SECONDS [FLAG]]   the C++ header and Rust on the bytes of libFuzzer; FLAG may be -fsanitize=address
cpp_fuzz() {
    local clang
    clang=$(clang_cxx) || { skip "libFuzzer" "clang++ could not be installed"; return; }
    cpp_build "$clang" compare -O1 -g -std=c++17 -DFUZZ -fsanitize=fuzzer "${@:2}"
    mkdir "$scratch/corpus"
    cp tests/golden/*.bin "$scratch/corpus"
    "$scratch/compare" -max_total_time="${1:-60}" -max_len=1024 -artifact_prefix="$scratch/" "$scratch/corpus"
}

# `cpp_tables FILTERS COMPILER FLAG...` runs a program, under QEMU if `runner` is set.
cpp_tables() {
    cpp_build "$2" format "${@:3}"
    ${runner:-} "$scratch/format" tests/golden "$1"
}

# `cpp_emulated CPU QEMU-NAME LIBC-NAME KERNELS FLAG...`
cpp_emulated() {
    local runner=qemu-$2
    install "$1-linux-gnu-g++" "g++-$1-linux-gnu" "libc6-dev-$3-cross" && install "$runner" qemu-user ||
        { skip "$1" "a cross compiler or QEMU could not be installed"; return; }
    EXPECT_KERNELS=$4 cpp_tables 5 "$1-linux-gnu-g++" -O1 -std=c++17 -static "${@:5}"
}

# `cpp_build COMPILER PROGRAM FLAG...`
cpp_build() {
    local flags=(-Wall -Wextra -Wconversion -Wpedantic -Werror -I bindings/cpp/include)
    if [ "$2" = compare ]; then
        cargo build --profile capi --quiet -p bloomline-capi
        flags+=(-I bindings/c/include -x none "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a" -lpthread -ldl -lm)
    fi
    "$1" "${@:3}" "bindings/cpp/tests/$2.cc" "${flags[@]}" -o "$scratch/$2"
}

# Prints the name of a clang++, with its sanitizers.
clang_cxx() {
    local name
    for name in clang++ clang++-{20..14}; do
        ! type -P "$name" || return 0
    done
    install clang++ clang libclang-rt-dev && echo clang++
}

cpp_mistakes_do_not_compile() {
    local code
    while IFS='|' read -r code message; do
        ! g++ -std=c++17 -fsyntax-only -I bindings/cpp/include -x c++ - 2>"$scratch/errors" <<END || return
#include <bloomline/bloomline.hpp>
const std::string text;
void mistake() { $code; }
END
        grep -q "$message" "$scratch/errors"
    done <<'END'
bloomline::hash_key(true)|a key is text, bytes or an integer
bloomline::hash_key('a')|a key is text, bytes or an integer
bloomline::hash_key(u'a')|a key is text, bytes or an integer
bloomline::hash_key(1.0)|a key is text, bytes or an integer
bloomline::hash_key(std::vector<int>())|a key is text, bytes or an integer
bloomline::hash_key(text.data(), 3)|the seed comes second
bloomline::filter_view view = *bloomline::filter::from_compact(text)|deleted
[](bloomline::filter &f, bloomline::filter_view v) { static_cast<bloomline::filter_base &>(f) = v; }|protected
END
}

# The README's commands and programs as they stand, and what CMake users get. Nothing here builds with Rust.
cpp_packages() {
    install cmake cmake make && install pkg-config pkg-config ||
        { skip "the C++ header's page" "cmake or pkg-config could not be installed"; return; }
    local readme=bindings/cpp/README.md user=$scratch/user
    local fetch='/^include(FetchContent)/,/^FetchContent_MakeAvailable/'
    mkdir -p "$user" "$scratch/home"
    sed '/^## Get it/q' "$readme" | fenced cpp >"$user/ants.cc"
    sed '1,/^## In LevelDB/d; /^## In tables/,$d' "$readme" | fenced cpp >"$user/leveldb.cc"
    printf '#include <bloomline/bloomline.hpp>\nint main() { std::string table; %s return read_table; }\n' \
        "$(sed '1,/^## In tables/d' "$readme" | fenced cpp)" >"$user/table.cc"
    step the_cpp_readme_installs_and_runs
    # From another folder, because an installed tree can be moved.
    mv "$scratch/home/.local" "$scratch/moved"
    step g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$user/table.cc" -o "$user/table" -I "$scratch/moved/include"
    "$user/table"
    step cmake_finds_or_fetches_the_header
    leveldb_tools || { skip "LevelDB" "libleveldb-dev could not be installed"; return; }
    # With warnings as errors, and as where LevelDB is built without exceptions and RTTI.
    step g++ -std=c++17 -O2 -Wall -Wextra -Wpedantic -Werror -fno-exceptions -fno-rtti "$user/leveldb.cc" \
        -o "$user/leveldb" -I "$scratch/moved/include" -lleveldb
    (cd "$user" && step ./leveldb)
}

the_cpp_readme_installs_and_runs() {
    fenced sh <"$readme" | sed "s|^export|cd $user\n&|" >"$scratch/readme.sh"
    env -i PATH="$PATH" HOME="$scratch/home" bash -eux "$scratch/readme.sh" >"$scratch/printed"
    diff <(printf '%s\n' "ant: possibly present" "elk: definitely absent") <(tail -n2 "$scratch/printed")
}

cmake_finds_or_fetches_the_header() {
    local way
    # CMake's default language version is older than C++17 for some compilers, so that the target must ask for it.
    printf '%s\n' "cmake_minimum_required(VERSION 3.18)" "project(user CXX)" "set(CMAKE_CXX_STANDARD 14)" >"$scratch/begin"
    fenced cmake <"$readme" >"$scratch/blocks"
    mkdir "$user/found" "$user/fetched" "$user/not-found"
    sed "${fetch}d" "$scratch/blocks" | cat "$scratch/begin" - >"$user/found/CMakeLists.txt"
    { cat "$scratch/begin"; sed -n "${fetch}p" "$scratch/blocks"; sed "/find_package/d; ${fetch}d" "$scratch/blocks"; } \
        >"$user/fetched/CMakeLists.txt"
    sed 's/bloomline_cpp 0\.[0-9]*/bloomline_cpp 0.0/' "$user/found/CMakeLists.txt" >"$user/not-found/CMakeLists.txt"
    for way in found fetched; do
        cp "$user/ants.cc" "$user/$way"
        cmake --no-warn-unused-cli -S "$user/$way" -B "$user/$way/build" -DCMAKE_PREFIX_PATH="$scratch/moved" \
            -DFETCHCONTENT_SOURCE_DIR_BLOOMLINE_CPP="$root"
        cmake --build "$user/$way/build"
        "$user/$way/build/ants"
    done >"$scratch/cmake"
    # The project that fetched the header does not install it.
    cmake --install "$user/fetched/build" --prefix "$user/prefix" >>"$scratch/cmake"
    [ ! -e "$user/prefix/include" ]
    # A program for 0.0 does not get a later 0.x.
    ! cmake -S "$user/not-found" -B "$user/not-found/build" -DCMAKE_PREFIX_PATH="$scratch/moved" >>"$scratch/cmake" \
        2>"$scratch/error"
    grep -o 'compatible with requested version' <(tr -s '\n ' ' ' <"$scratch/error")
}
