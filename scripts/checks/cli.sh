# The command line: its tests, and its times beside those of the tools that it stands in for.

# In release as well: `bench` fills 256 MiB.
cli() {
    step cargo test -p bloomline-cli --release
}

# Ten million lines of about 60 bytes, three in ten repeats; one million keys. All tools in the C locale, where they are
# fastest, reading from the page cache and writing into a pipe. Each takes turns with the others, ROUNDS times (3), but for
# grep, which takes minutes; the least time of each counts.
cli_bench() {
    install mawk mawk && install /usr/bin/time time || { skip "the command line" "mawk or time could not be installed"; return; }
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

# `timed NAME COMMAND...`: a line of seconds by the clock, seconds of both cores, and KiB at most.
timed() {
    local name=$1
    shift
    echo "$*" >&2
    /usr/bin/time -q -a -o times -f "$name %e %U %S %M" "$@" | cat >/dev/null
}

# What awk prints, less a few.
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
assert line is None, "a line that awk does not print, or not there"
print(f"\ndedup printed what awk printed, in the same order, less {dropped} lines.")
assert dropped < 7_000_000 * 1e-6 + 6 * (7_000_000 * 1e-6) ** 0.5
END_OF_PYTHON
}
