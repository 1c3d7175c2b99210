# The command line:
## cli                         tests in release mode, where none is left out
cli() {
    # Its README's sessions use the example.
    cargo build --release --quiet --example lines
    step cargo test -p bloomline-cli -p bloomline-replace --release
}

## cli_bench                   compares time and memory of bloomline with those of awk and grep
# LINES lines (30 million) of about 60 bytes, three in ten of them repeats, for dedup; a third of them to be found among
# a million keys. All tools run in the C locale, where they are fastest, read from the page cache and write into a pipe.
# They take turns for ROUNDS rounds (3), except for grep, which takes minutes and runs once. Where dedup prints fewer
# lines than mawk, it has dropped new ones.
cli_bench() {
    install mawk mawk && install /usr/bin/time time ||
        { skip "comparing the command line" "mawk or time could not be installed"; return; }
    cargo build --release --quiet -p bloomline-cli -p bloomline-examples --bin bloomline --example lines
    local built=${CARGO_TARGET_DIR:-$root/target}/release rounds=${ROUNDS:-3} lines=${LINES:-30000000} round
    export LC_ALL=C PATH=$built:$built/examples:$PATH
    echo "Measured on $(date -u +%F), $(nproc) cores, $(scripts/cpu):"
    cd "$scratch"
    lines "$lines" >lines
    head -n $((lines / 3)) lines >found
    lines 1000000 keys >keys
    printf '\n| | CPU time, s | elapsed, s | memory, MB | lines printed |\n|---|---|---|---|---|\n'
    for ((round = 1; round <= rounds; round++)); do
        timed "mawk" mawk '!seen[$0]++' lines
        timed "dedup" bloomline dedup lines
        timed "dedup --keys" bloomline dedup --keys $((lines * 7 / 10)) lines
        [ "$round" != 1 ] || timed "grep" grep -F -x -f keys found
        timed "build + check" sh -c 'bloomline build -o keys.bloom --fpr 1e-6 keys && bloomline check keys.bloom found'
    done
}

# `timed NAME COMMAND...` prints a row. Elapsed time is what a user waits for; CPU time compares better on a machine
# that is busy with other work.
timed() {
    local printed
    printed=$(/usr/bin/time -q -o time -f "%U %S %e %M" "${@:2}" | wc -l)
    awk -v name="$1" -v printed="$printed" \
        '{ printf "| %s | %.2f | %.2f | %.0f | %d |\n", name, $1 + $2, $3, $4 * 1024 / 1e6, printed }' time
}
