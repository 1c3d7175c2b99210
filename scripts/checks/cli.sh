# The command line:
## cli                         tests in release mode, where none is left out
cli() {
    step cargo test -p bloomline-cli --release
    step without_debugging_information
}

# 2.4 MB, not the 29 MB that a profile without `strip` makes.
without_debugging_information() {
    local bytes
    bytes=$(wc -c <"${CARGO_TARGET_DIR:-$root/target}/release/bloomline")
    [ "$bytes" -lt 5000000 ] || { echo "the release binary has $bytes bytes: see [profile.release] in Cargo.toml" >&2; return 1; }
}

## cli_bench                   compares time and memory of bloomline with those of awk and grep
# LINES lines (30 million) of about 60 bytes, three in ten of them repeats, for dedup; a third of them to be found among a
# million keys. All tools run in the C locale, where they are fastest, read from the page cache and write into a pipe. They
# take turns for ROUNDS rounds (3), except for grep, which takes minutes and runs once.
cli_bench() {
    install mawk mawk && install /usr/bin/time time || { skip "comparing the command line" "mawk or time could not be installed"; return; }
    export LC_ALL=C
    cargo build --release --quiet -p bloomline-cli --bin bloomline --example lines
    local built=${CARGO_TARGET_DIR:-$root/target}/release rounds=${ROUNDS:-3} lines=${LINES:-30000000} round
    local bloomline=$built/bloomline
    cd "$scratch"
    "$built/examples/lines" "$lines" >lines
    head -n $((lines / 3)) lines >found
    "$built/examples/lines" 1000000 keys >keys
    for ((round = 1; round <= rounds; round++)); do
        timed "mawk" mawk '!seen[$0]++' lines
        timed "dedup" "$bloomline" dedup lines
        timed "dedup --keys" "$bloomline" dedup --keys $((lines * 7 / 10)) lines
        [ "$round" != 1 ] || timed "grep" grep -F -x -f keys found
        timed "build + check" sh -c '"$0" build -o keys.bloom --fpr 1e-6 keys && "$0" check keys.bloom found' "$bloomline"
    done
    echo "Measured on $(date -u +%F), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1):"
    echo
    python3 "$root/scripts/cli_bench.py" times
    same_lines
}

# `timed NAME COMMAND...` appends a line to `times`: seconds of wall time, of user and system CPU time, and peak KiB.
timed() {
    local name=$1
    shift
    echo "$*" >&2
    /usr/bin/time -q -a -o times -f "$name,%e,%U,%S,%M" "$@" | cat >/dev/null
}

# dedup prints what awk prints, except for a few lines.
same_lines() {
    mawk '!seen[$0]++' lines >awk.out
    "$bloomline" dedup lines >dedup.out
    python3 - $((lines * 7 / 10)) <<'END_OF_PYTHON'
import sys
kept, dropped = iter(open("dedup.out", "rb")), 0
line = next(kept, None)
for expected in open("awk.out", "rb"):
    if line == expected:
        line = next(kept, None)
    else:
        dropped += 1
assert line is None, "dedup printed a line that awk did not print at this point"
print(f"\ndedup printed the lines that awk printed, in the same order, except for {dropped}.")
expected = int(sys.argv[1]) * 1e-6
assert dropped < expected + 6 * expected ** 0.5
END_OF_PYTHON
}
