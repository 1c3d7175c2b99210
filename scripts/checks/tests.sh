# Checks of the tests themselves: what they reach, and what they detect.

# The targets are the binaries of fuzz/Cargo.toml, as for `cargo fuzz list`; tests/corpus.rs replays the same list.
fuzz_targets() {
    sed -n '/^\[\[bin\]\]/,/^$/s/^name = "\(.*\)"/\1/p' fuzz/Cargo.toml
}

# `fuzz_build SANITIZER` prints the folder of the built targets.
fuzz_build() {
    # Callers test the result, which disables `set -e` in here.
    unstable cargo fuzz build --target "$(host)" --sanitizer "$1" --target-dir "fuzz/target/$1" >&2 || return 1
    echo "fuzz/target/$1/$(host)/release"
}

fuzz() {
    local seconds=${1:-60} sanitizers=(${2:-address none}) sanitizer folder
    install_cargo cargo-fuzz || { skip "fuzzing" "cargo-fuzz could not be installed"; return; }
    for sanitizer in "${sanitizers[@]}"; do
        folder=$(fuzz_build "$sanitizer") || return 1
        # One target per core.
        export -f fuzz_one
        fuzz_targets | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one "$@"' _ {} "$folder" "$seconds" "$scratch/{}.log"
    done
}

# `fuzz_one TARGET FOLDER SECONDS LOG` prints the statistics at the end, and everything if the target fails.
fuzz_one() {
    local target=$1 folder=$2 seconds=$3 log=$4
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target" "$log.inputs"
    # libFuzzer deletes inputs for which it finds smaller ones, and only from its first folder: deleted from the corpus,
    # they would fail other checks that copy the sources meanwhile.
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

# Drops inputs that reach no new code; of those that reach the same code, keeps the smallest. Inputs of `hash` differ in
# their lengths, which only compared values show.
corpus() {
    local folder target values
    install_cargo cargo-fuzz || { skip "minimising the corpus" "cargo-fuzz could not be installed"; return; }
    folder=$(fuzz_build none) || return 1
    for target in $(fuzz_targets); do
        mkdir "$scratch/$target"
        values=0
        [ "$target" != hash ] || values=1
        "$folder/$target" -merge=1 -use_counters=0 -use_value_profile=$values "$scratch/$target" "fuzz/corpus/$target" 2>/dev/null
        rm -r "fuzz/corpus/$target"
        mv "$scratch/$target" "fuzz/corpus/$target"
        echo "$target: $(find "fuzz/corpus/$target" -type f | wc -l) files"
    done
}

# TARGET | FILE | the bug | the change, by sed
injected_bugs() {
    cat <<'END'
lockstep|src/kernel/avx512.rs|lookups swap the last two lanes|s/5, 6, 7\]);/5, 7, 6]);/
lockstep|src/kernel/inlined.rs|AVX2 lookups collect the wrong halves of the lanes of probes past eight|s/ymm4, ymm5, 0xdd/ymm4, ymm5, 0x88/
lockstep|src/kernel/avx2.rs|two lanes are swapped|s/37, 43, 49, 55/43, 37, 49, 55/
lockstep|src/kernel/tables.rs|the rotation takes the wrong three bits|s/first >> 61/(first >> 60) \& 7/
lockstep|src/kernel/portable.rs|probes past eight are not rotated|s/bits(second_word(first), &rows\[rotation(first)\])/bits(second_word(first), \&rows[0])/
hash|src/hash.rs|one of three words starts anew in each round of 48 bytes (without the check at compile time)|s/assert!(hash == CHECK_VALUE)//; s/let (mut t,/let (start, mut t,/; s/= (s, s);/= (s, s, s);/; s/SECRET\[2\], t)/SECRET[2], start)/
hash|src/hash.rs|keys of 16 bytes are read like those of 15 (without the check at compile time)|s/assert!(hash == CHECK_VALUE)//; s/if len < 16 {/if len <= 16 {/
hash|src/hash.rs|seeds below 2^32 are taken for 0|s/if seed == 0 {/if seed >> 32 == 0 {/
decode|src/blocks.rs|a lookup reads the next block|s/get_unchecked(index)/get_unchecked(index + 1)/
decode|src/short.rs|65 lanes are accepted as a short filter|s/<= MOST_LANES \&\&/<= MOST_LANES + 2 \&\&/
model|src/short.rs|the blocks of a six-lane short filter are one lane apart|s/    n_lanes.trailing_zeros().min(LANES.ilog2())/    if n_lanes == 6 { 0 } else { n_lanes.trailing_zeros().min(LANES.ilog2()) }/
decode|src/encoding/footer.rs|the footer's size is not checked|s/expected == Some(body.len() as u64)/expected.is_some()/
decode|src/sstable/policy.rs|malformed bytes are reported as "definitely absent"|s/unwrap_or(true)/unwrap_or(false)/
decode|src/sstable/filter_block.rs|a filter block may have ranges of 2^70 bytes|s/base_log2 >= 64/base_log2 >= 71/
decode|src/sstable/filter_block.rs|keys are reported as "definitely absent" if the filter block cannot be read|s/unwrap_or(true)/unwrap_or(false)/
variants|src/variants/counting.rs|a saturated counter counts down|s/-= u8::from(count != SATURATED) <</-= 1 <</
variants|src/variants/scalable.rs|the older half of the filters is not queried|s/any_contains_hash(&self.filters, hash)/any_contains_hash(\&self.filters[self.filters.len() \/ 2..], hash)/
variants|src/variants/frontier.rs|the item pushed last is popped first|s/pop_front/pop_back/
variants|src/variants/standard.rs|a union ignores the other filter|s/|ours, theirs| \*ours |= theirs/|ours, _| *ours |= *ours/
model|src/filter.rs|folding by 7 does nothing|s/if factor != 1 {/if factor != 1 \&\& factor != 7 {/
model|src/filter.rs|the first block is not cleared|s/as_mut_slice().fill(/as_mut_slice()[1..].fill(/
model|src/builder.rs|repeats are looked for in only the first of 1024 keys|s/suspects.contains_batch(hashes, found)/suspects.contains_batch(\&hashes[..1], \&mut found[..1])/
sizing|src/sizing.rs|blocks are rounded down|s/whole + u64::from((whole as f64) < x)/whole/
sizing|src/sizing.rs|NaN is accepted as bits per key|s/value > 0.0 \&\& value <= MAX_BITS_PER_KEY/!(value <= 0.0 || value > MAX_BITS_PER_KEY)/
sizing|src/sizing.rs|the seventh probe starts at one bit per key too many|s/10.207/11.207/
END
}

# Injects each bug into a copy and fuzzes from an empty corpus; `injected TARGET`: only the bugs for one target. Prints a
# Markdown table.
injected() {
    local target file what change folder start found by failed=0 corpus
    install_cargo cargo-fuzz || { skip "injected bugs" "cargo-fuzz could not be installed"; return; }
    copy_sources
    cd "$scratch"
    echo "| target | bug | found after | by |"
    echo "|---|---|---|---|"
    while IFS='|' read -r target file what change; do
        sed "$change" "$root/$file" >"$file"
        if cmp --quiet "$file" "$root/$file"; then
            echo "nothing to change in $file: $change" >&2
            failed=1
            continue
        fi
        folder=$(fuzz_build address 2>"$scratch/log") || { cat "$scratch/log" >&2; return 1; }
        corpus=$(mktemp -d)
        start=$(date +%s.%N)
        if "$folder/$target" "$corpus" -max_total_time=600 -artifact_prefix="$corpus/" >"$scratch/log" 2>&1; then
            echo "| $target | \`$file\`: $what | **not found in 600 s** | |"
            failed=1
        else
            found=$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $start }")
            # A fuzzer that stops for any other reason has not found the bug.
            if by=$(grep -m1 -oE 'AddressSanitizer: [a-z-]+|panicked at .*/[a-z_]+\.rs:[0-9]+' "$scratch/log"); then
                echo "| $target | \`$file\`: $what | $found s | ${by##*/} |"
            else
                cat "$scratch/log" >&2
                failed=1
            fi
        fi
        rm -r "$corpus"
        cp "$root/$file" "$file"
    done < <(injected_bugs | grep "^${1:-}" | if has_avx512; then cat; else grep -v avx512; fi)
    return "$failed"
}

# `mutants [PART [ARGS]]`: all parts without arguments.
mutants() {
    local part parts=(core neon c cli engines) failed=0
    install_cargo cargo-mutants || { skip "mutants" "cargo-mutants could not be installed"; return; }
    [ "$#" = 0 ] || { parts=("$1"); shift; }
    # cargo-mutants makes no parent of the folder for its output.
    mkdir -p target
    for part in "${parts[@]}"; do
        step "mutants_$part" "$@" || failed=1
    done
    return "$failed"
}

mutants_core() {
    has_avx512 || set -- --exclude src/kernel/avx512.rs "$@"
    cargo mutants --output target --exclude src/kernel/neon.rs "$@"
}

# What decides about bytes and files in C, on the command line and in storage engines, each with the tests of its package.
mutants_c() {
    install gcc gcc || { skip "mutants of the C interface" "a C compiler is not available"; return; }
    # An argument that is owned is freed without `drop` too; prefetches change only speed.
    mutants_of capi --package bloomline-capi --exclude-re '_(free|prefetch) with \(\)' "$@"
}

mutants_cli() {
    # How far ahead a line is prefetched, and what to do where the lowest rate is exactly one half; where the search for
    # the most lines starts, and a difference that is exactly the tolerated one; progress, which only a terminal shows;
    # and reads that a signal interrupts, which the system starts again.
    mutants_of cli --package bloomline-cli --file 'cli/src/{decompress,dedup,filter_file,grow,output,state}.rs' \
        --exclude-re 'dedup.rs.*replace \+ with \* in insert|grow.rs.*replace < with <= in grown' \
        --exclude-re 'state.rs.*replace < with .* in .*most_lines|state.rs.*replace < with <= in .*requests' \
        --exclude-re 'replace total_bytes|decompress.rs.*Interrupted with false' "$@"
}

mutants_engines() {
    # Without its feature, no engine's adapter is compiled. In debug builds, the engines take minutes for each mutant.
    mutants_of engines --dir adapters --all-features --profile release "$@"
}

# `mutants_of NAME ARGS`
mutants_of() {
    local name=$1
    shift
    cargo mutants --no-config --output "target/mutants-$name" --minimum-test-timeout 300 "$@"
}

# Under emulation, since it is compiled for aarch64 only.
mutants_neon() {
    local toolchain target build
    cross aarch64 aarch64 libc6-dev-arm64-cross || { skip "mutants of the NEON kernel" "its tools are not available"; return; }
    RUSTUP_TOOLCHAIN=$toolchain CARGO_BUILD_TARGET=$target cargo mutants --no-config --output "target/$target" \
        --file src/kernel/neon.rs "$@" -- --release --test goldens --test lockstep
}

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
