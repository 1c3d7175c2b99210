# The tests themselves:
## fuzz [SECONDS [SANITIZER]]  runs each fuzz target for SECONDS (60), with and without the address sanitizer, and saves
##                             new inputs
fuzz() {
    local seconds=${1:-60} sanitizers=(${2:-address none}) sanitizer folder
    install c++ g++ && install_cargo cargo-fuzz ||
        { skip "fuzzing" "cargo-fuzz or a C++ compiler could not be installed"; return; }
    for sanitizer in "${sanitizers[@]}"; do
        folder=$(fuzz_build "$sanitizer") || return 1
        # One target per core.
        export -f fuzz_one
        cargo fuzz list | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one "$@"' _ {} "$folder" "$seconds" "$scratch/{}.log"
    done
}

# `fuzz_build SANITIZER` prints the folder of the built targets.
fuzz_build() {
    # Callers test the result, which disables `set -e` in here.
    unstable cargo fuzz build --target "$(host)" --sanitizer "$1" --target-dir "fuzz/target/$1" >&2 || return 1
    echo "fuzz/target/$1/$(host)/release"
}

# `fuzz_one TARGET FOLDER SECONDS LOG` prints the statistics at the end, and everything if the target fails.
fuzz_one() {
    local target=$1 folder=$2 seconds=$3 log=$4
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target" "$log.inputs"
    # libFuzzer deletes inputs for which it finds smaller ones, but only from its first folder. Deletions from the corpus
    # would fail checks that copy the sources meanwhile.
    if "$folder/$target" "$log.inputs" "fuzz/corpus/$target" -artifact_prefix="fuzz/artifacts/$target/" \
        -max_total_time="$seconds" -print_final_stats=1 >"$log" 2>&1; then
        find "$log.inputs" -type f -exec mv -t "fuzz/corpus/$target" {} +
        grep -E '^(Done|stat::)' "$log" | sed "s/^/$target: /"
    else
        cat "$log"
        echo "$target FAILED"
        return 1
    fi
}

## corpus                      minimises the saved fuzz corpus
# Drops inputs that reach no new code; of inputs that reach the same code, keeps the smallest. Inputs of `hash` differ in
# their lengths, which only compared values show.
corpus() {
    local folder target values
    install_cargo cargo-fuzz || { skip "minimising the corpus" "cargo-fuzz could not be installed"; return; }
    folder=$(fuzz_build none) || return 1
    for target in $(cargo fuzz list); do
        mkdir "$scratch/$target"
        values=0
        [ "$target" != hash ] || values=1
        "$folder/$target" -merge=1 -use_counters=0 -use_value_profile=$values "$scratch/$target" "fuzz/corpus/$target" 2>/dev/null
        rm -r "fuzz/corpus/$target"
        mv "$scratch/$target" "fuzz/corpus/$target"
        echo "$target: $(find "fuzz/corpus/$target" -type f | wc -l) files"
    done
}

## mutants PART [ARGUMENTS]    changes one operator or return value at a time, and runs the tests, in a PART: core, neon, c,
##                             cli or engines; arguments go to cargo-mutants
mutants() {
    install_cargo cargo-mutants || { skip "mutants" "cargo-mutants could not be installed"; return; }
    # cargo-mutants makes no parent of the folder for its output.
    mkdir -p target
    "mutants_${1:?say which part: core, neon, c, cli or engines}" "${@:2}"
}

mutants_core() {
    has_avx512 || set -- --exclude src/kernel/avx512.rs "$@"
    cargo mutants --output target --exclude src/kernel/neon.rs "$@"
}

# Under emulation, since the kernel is compiled for aarch64 only.
mutants_neon() {
    local toolchain target build
    cross aarch64 aarch64 libc6-dev-arm64-cross || { skip "mutants of the NEON kernel" "its tools are not available"; return; }
    RUSTUP_TOOLCHAIN=$toolchain CARGO_BUILD_TARGET=$target mutants_of neon --file src/kernel/neon.rs "$@" \
        -- --release --test goldens --test lockstep
}

mutants_c() {
    install gcc gcc || { skip "mutants of the C interface" "a C compiler is not available"; return; }
    # An argument that is owned is freed without `drop` too; prefetches change only speed.
    mutants_of capi --package bloomline-capi --exclude-re '_(free|prefetch) with \(\)' "$@"
}

# What decides about bytes and files. Not: how far ahead a line is prefetched, and what to do where the lowest rate is
# exactly one half; where the search for the most lines starts, and a difference that is exactly the tolerated one;
# progress, which only a terminal shows; and reads that a signal interrupts, which the system starts again.
mutants_cli() {
    mutants_of cli --package bloomline-cli --file 'cli/src/{decompress,filter_file,guard,output,state,states/*}.rs' \
        --exclude-re 'dedup.rs.*replace \+ with \* in insert|grow.rs.*replace < with <= in grown' \
        --exclude-re 'state.rs.*replace < with .* in .*most_keys' \
        --exclude-re 'replace total_bytes|decompress.rs.*Interrupted with false' "$@"
}

# Without its feature, no engine's adapter is compiled. In debug builds, the engines take minutes for each mutant.
mutants_engines() {
    mutants_of engines --dir adapters --all-features --profile release "$@"
}

# `mutants_of NAME ARGUMENTS`
mutants_of() {
    cargo mutants --no-config --output "target/mutants-$1" --minimum-test-timeout 300 "${@:2}"
}

## coverage [ARGUMENTS]        line and branch coverage of src; arguments go to cargo-llvm-cov
coverage() {
    local version ignored='(benches|tests)/'
    has_avx512 || ignored+='|avx512'
    install_cargo cargo-llvm-cov || { skip "coverage" "cargo-llvm-cov could not be installed"; return; }
    if ! rustup component add llvm-tools >/dev/null 2>&1; then
        version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
        install "llvm-cov-$version" "llvm-$version" || { skip "coverage" "LLVM $version's tools are not available"; return; }
        export LLVM_COV=llvm-cov-$version LLVM_PROFDATA=llvm-profdata-$version
    fi
    unstable cargo llvm-cov --branch --features huge-pages --tests --ignore-filename-regex "$ignored" \
        --fail-under-lines 97 --html "$@"
    unstable cargo llvm-cov report --ignore-filename-regex "$ignored"
    echo "line by line: target/llvm-cov/html/index.html"
}
