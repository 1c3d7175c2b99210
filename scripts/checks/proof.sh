# Proofs of machine code by z3, which docs/proof.md explains:

# The interpreters know the instructions that this compiler chooses. Another may choose instructions to add.
proved_rustc=1.95.0

## proof [ARGUMENTS]           proves that the machine code of each kernel equals the definition; arguments go to prove.py
proof() {
    local toolchain target build programs program
    proof_environment "the proof"
    use_rust "$proved_rustc" ||
        echo "note: this is $(rustc --version): if the proof does not know an instruction, install Rust $proved_rustc"
    programs=(default:avx512,avx2,sse4.1,portable,reference x86-64-v3:avx2 x86-64-v4:avx512)
    cross aarch64 aarch64 libc6-dev-arm64-cross && programs+=(aarch64:neon) ||
        skip "the proof of NEON" "a cross compiler, QEMU or the standard library is not available"
    for program in "${programs[@]}"; do
        step kernels "${program%:*}" "$root"
    done
    step prove --runner "${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER:-}" "${programs[@]/#/$scratch/}" "$@"
}

# Ends the check as skipped, as WHAT, if Python's packages are missing.
proof_environment() {
    [ "$(host)" = x86_64-unknown-linux-gnu ] || { skip "$1" "the host is $(host)" && exit; }
    new_venv && "$scratch/venv/bin/pip" install --quiet capstone==5.0.9 pyelftools==0.33 z3-solver==5.4.1.0 ||
        { skip "$1" "Python 3 has no venv here, or its packages could not be installed" && exit; }
}

# `kernels BUILD SOURCES` makes `scratch/BUILD`, a program with the functions to prove, as cargo builds it for release:
# by default, for a level of x86-64, or for aarch64, after `cross`.
kernels() {
    local flags="" arguments=(build)
    case $1 in
        x86-64-*) flags=-Ctarget-cpu=$1 ;;
        aarch64) arguments=("+$toolchain" build --target "$target" "${build[@]}") ;;
    esac
    (cd "$2" && RUSTFLAGS=$flags CARGO_TARGET_DIR=$scratch/target-$1 CARGO_PROFILE_RELEASE_DEBUG=0 \
        unstable cargo "${arguments[@]}" --quiet --release -p bloomline-probe --bin kernels) &&
        find "$scratch/target-$1" -path '*/release/kernels' -exec cp {} "$scratch/$1" \;
}

prove() { "$scratch/venv/bin/python" -B "$root/scripts/proof/prove.py" "$@"; }

## refuted [FILE]              injects bugs into a copy of the kernels, all or the bugs in FILE, each of which the proof must
##                             refute; prints a Markdown table
refuted() {
    local toolchain target build name kernel file what change report refutation bugs failed=0 copy=$scratch/copy
    bugs=$(grep -v '^#' tests/probe/bugs.txt | grep "${1:-}") || { echo "no bugs in $1" >&2; return 1; }
    proof_environment "the refutation of bugs"
    mkdir "$copy"
    copy_sources "$copy"
    echo -e "| build | kernel | bug | refuted |\n|---|---|---|---|"
    while IFS='|' read -r name kernel file what change; do
        [ "$name" != aarch64 ] || cross aarch64 aarch64 libc6-dev-arm64-cross ||
            { skip "$what" "its tools are not available"; continue; }
        sed "$change" "$root/$file" >"$copy/$file"
        ! cmp --quiet "$copy/$file" "$root/$file" ||
            { echo "nothing to change in $file: $change" >&2; failed=1; continue; }
        kernels "$name" "$copy" </dev/null
        report=$(prove --inputs 0 "$scratch/$name:$kernel" 2>&1) || true
        refutation=$(sed -n "s/.*: $kernel, \(insert\|contains\), \(k = [0-9]*\): \(.*\)/\1, \2: \3/p" <<<"$report" | head -1)
        grep -qE "not as defined|must not change|requires alignment|more values|nor written|not what it was|keys known" <<<"$refutation" ||
            { echo "$report" >&2; failed=1; }
        echo "| $name | $kernel | \`$file\`: $what | ${refutation:-**no**} |"
        cp "$root/$file" "$copy/$file"
    done <<<"$bugs"
    return "$failed"
}
