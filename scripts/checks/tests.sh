# The tests themselves:
## fuzz [SECONDS [SANITIZER]]  runs each fuzz target for SECONDS (60), with and without the address sanitizer, and saves
##                             new inputs
fuzz() {
    local seconds=${1:-60} sanitizers=(${2:-address none}) sanitizer folder
    install c++ g++ && install_cargo cargo-fuzz ||
        { skip "fuzzing" "cargo-fuzz or a C++ compiler could not be installed"; return; }
    export -f fuzz_one
    for sanitizer in "${sanitizers[@]}"; do
        unstable cargo fuzz build --target "$(host)" --sanitizer "$sanitizer" --target-dir "fuzz/target/$sanitizer"
        folder=fuzz/target/$sanitizer/$(host)/release
        # One target per core.
        cargo fuzz list | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one "$@"' _ {} "$folder" "$seconds" "$scratch/{}.log"
    done
}

# `fuzz_one TARGET FOLDER SECONDS LOG` prints the statistics at the end, and everything if the target fails.
fuzz_one() {
    mkdir -p "fuzz/corpus/$1" "fuzz/artifacts/$1"
    # Without `reduce_inputs`, libFuzzer deletes nothing from the corpus, which other checks copy meanwhile.
    "$2/$1" "fuzz/corpus/$1" -reduce_inputs=0 -artifact_prefix="fuzz/artifacts/$1/" -max_total_time="$3" \
        -print_final_stats=1 >"$4" 2>&1 || { cat "$4"; echo "$1 FAILED"; return 1; }
    grep -E '^(Done|stat::)' "$4" | sed "s/^/$1: /"
}

## corpus                      minimises the saved fuzz corpus
# Drops inputs that reach no new code; of inputs that reach the same code, keeps the smallest. Inputs of `hash` differ in
# their lengths, which only compared values show.
corpus() {
    local target
    install_cargo cargo-fuzz || { skip "minimising the corpus" "cargo-fuzz could not be installed"; return; }
    for target in $(cargo fuzz list); do
        unstable cargo fuzz cmin --target "$(host)" --sanitizer none --target-dir fuzz/target/none "$target" -- \
            -use_counters=0 -use_value_profile=$([ "$target" = hash ] && echo 1 || echo 0) 2>/dev/null
        echo "$target: $(find "fuzz/corpus/$target" -type f | wc -l) files"
    done
}

## mutants PART [ARGUMENTS]    changes one operator or return value at a time, and runs the tests, in a PART: core, neon, c,
##                             cli or engines; arguments go to cargo-mutants
mutants() {
    local part=${1:?say which part: core, neon, c, cli or engines} toolchain target build
    install_cargo cargo-mutants || { skip "mutants" "cargo-mutants could not be installed"; return; }
    shift
    case $part in
        core)
            has_avx512 || set -- --exclude src/kernel/avx512.rs "$@"
            set -- --exclude src/kernel/neon.rs "$@"
            ;;
        neon)
            # Under emulation, since the kernel is compiled for aarch64 only.
            cross aarch64 aarch64 libc6-dev-arm64-cross || { skip "mutants of NEON" "its tools are not available"; return; }
            export RUSTUP_TOOLCHAIN=$toolchain CARGO_BUILD_TARGET=$target
            set -- --file src/kernel/neon.rs "$@" -- --release --test goldens --test lockstep
            ;;
        # An argument that is owned is freed without `drop` too; prefetches change only speed.
        c) set -- --package bloomline-capi --exclude-re '_(free|prefetch) with \(\)' "$@" ;;
        # What decides about bytes and files. Not: how far ahead a line is prefetched, and what to do where the lowest
        # rate is exactly one half; where the search for the most lines starts, and a difference that is exactly the
        # tolerated one; progress, which only a terminal shows; and reads that a signal interrupts, which the system
        # starts again.
        cli)
            set -- --package bloomline-cli --file 'cli/src/{decompress,filter_file,guard,output,state,states/*}.rs' \
                --exclude-re 'dedup.rs.*replace \+ with \* in insert|grow.rs.*replace < with <= in grown' \
                --exclude-re 'state.rs.*replace < with .* in .*most_keys' \
                --exclude-re 'replace total_bytes|decompress.rs.*Interrupted with false' "$@"
            ;;
        # Without its feature, no engine's adapter is compiled. In debug builds, the engines take minutes for each mutant.
        engines) set -- --dir integrations/engines --all-features --profile release "$@" ;;
        *) echo "no part $part: say core, neon, c, cli or engines" >&2; return 1 ;;
    esac
    [ "$part" = core ] || set -- --no-config --minimum-test-timeout 300 "$@"
    # cargo-mutants makes no parent of the folder for its output.
    mkdir -p "target/mutants-$part"
    cargo mutants --output "target/mutants-$part" "$@"
}

## coverage [ARGUMENTS]        line and branch coverage of src; arguments go to cargo-llvm-cov
coverage() {
    local ignored='(benches|tests)/'
    has_avx512 || ignored+='|avx512'
    install_cargo cargo-llvm-cov && rustup component add llvm-tools >/dev/null 2>&1 ||
        { skip "coverage" "cargo-llvm-cov or llvm-tools could not be installed"; return; }
    unstable cargo llvm-cov --branch --features huge-pages --tests --ignore-filename-regex "$ignored" \
        --fail-under-lines 97 --html "$@"
    unstable cargo llvm-cov report --ignore-filename-regex "$ignored"
    echo "line by line: target/llvm-cov/html/index.html"
}
