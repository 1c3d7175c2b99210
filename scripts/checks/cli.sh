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

## cli_bench                   compares time and memory of bloomline with those of awk, sort and grep
# Ten million lines of about 60 bytes, three in ten of them repeats; one million keys. All tools run in the C locale, where
# they are fastest, read from the page cache and write into a pipe. They take turns for ROUNDS rounds (3), except for grep,
# which takes minutes and runs once; the least time of each counts.
cli_bench() {
    install mawk mawk && install /usr/bin/time time || { skip "comparing the command line" "mawk or time could not be installed"; return; }
    export LC_ALL=C
    cargo build --release --quiet -p bloomline-cli --bin bloomline --example lines
    local built=${CARGO_TARGET_DIR:-$root/target}/release rounds=${ROUNDS:-3} round
    local bloomline=$built/bloomline
    cd "$scratch"
    "$built/examples/lines" 10000000 >lines
    "$built/examples/lines" 1000000 keys >keys
    for ((round = 1; round <= rounds; round++)); do
        timed mawk mawk '!seen[$0]++' lines
        timed sort sort -u lines
        timed dedup "$bloomline" dedup lines
        timed dedup-keys "$bloomline" dedup --keys 7e6 lines
        timed dedup-scalable "$bloomline" dedup --scalable lines
        timed build "$bloomline" build -o keys.bloom --fpr 1e-6 keys
        [ "$round" != 1 ] || timed grep grep -F -x -f keys lines
        timed check "$bloomline" check keys.bloom lines
        timed build-keys "$bloomline" build -o lines.bloom --keys 7e6 lines
        timed build-counted "$bloomline" build -o lines.bloom lines
        timed count wc -l lines
    done
    timed build-large "$bloomline" build -o large.bloom --keys 1e9 lines
    echo "Measured on $(date -u +%F), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1):"
    echo
    python3 "$root/scripts/cli_bench.py" times large.bloom
    same_lines
}

# `timed NAME COMMAND...` appends a line to `times`: seconds of wall time, of user and system CPU time, and peak KiB.
timed() {
    local name=$1
    shift
    echo "$*" >&2
    /usr/bin/time -q -a -o times -f "$name %e %U %S %M" "$@" | cat >/dev/null
}

# dedup prints what awk prints, except for a few lines.
same_lines() {
    mawk '!seen[$0]++' lines >awk.out
    "$bloomline" dedup lines >dedup.out
    python3 - <<'END_OF_PYTHON'
kept, dropped = iter(open("dedup.out", "rb")), 0
line = next(kept, None)
for expected in open("awk.out", "rb"):
    if line == expected:
        line = next(kept, None)
    else:
        dropped += 1
assert line is None, "dedup printed a line that awk did not print at this point"
print(f"\ndedup printed the lines that awk printed, in the same order, except for {dropped}.")
assert dropped < 7_000_000 * 1e-6 + 6 * (7_000_000 * 1e-6) ** 0.5
END_OF_PYTHON
}
