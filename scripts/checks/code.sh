# Code:
## circles                     no two files of a crate import each other
circles() {
    install python3 python3 || { skip "circles" "Python 3 could not be installed"; return; }
    git ls-files '*.rs' | grep -oE '^(.*/)?src/' | sort -u | xargs python3 scripts/circles.py
}

## asm                         x86-64 kernels have the expected instructions, and no calls, divisions or panics; `instructions`
asm() {
    [ "$(uname -m)" = x86_64 ] || { skip "the kernels' instructions" "this machine is $(uname -m), not x86_64"; return; }
    install python3 python3 || { skip "the kernels' instructions" "Python 3 could not be installed"; return; }
    local build failed=0
    for build in default x86-64-v3 x86-64-v4; do
        compile "$scratch/$build" "$([ "$build" = default ] || echo "-Ctarget-cpu=$build")"
        python3 scripts/loops.py "$build" "$scratch/$build"/release/deps/{bloomline,bloomline_probe}-*.s \
            <tests/probe/instructions.txt || failed=1
    done
    step instructions || failed=1
    return "$failed"
}

## instructions                hot loops run as many instructions as tests/probe/counts.tsv says, by callgrind
instructions() {
    local rust
    rust=$(sed -n '1s/.*Rust //p' tests/probe/counts.tsv)
    # AVX2, because valgrind lacks AVX-512.
    grep -qw avx2 /proc/cpuinfo 2>/dev/null && install valgrind valgrind && use_rust "$rust" ||
        { skip "the hot loops' instructions" "AVX2, valgrind or Rust $rust is not available"; return; }
    compile "$scratch/default" "" --bin counted
    BLOOMLINE_KERNEL=avx2 valgrind --quiet --tool=callgrind --toggle-collect=counted --dump-after=counted \
        --combine-dumps=yes --callgrind-out-file="$scratch/dumps" "$scratch/default/release/counted" >"$scratch/counted"
    sed -n 's/^totals: //p' "$scratch/dumps" | head -n -1 | paste <(sed 1d tests/probe/counts.tsv) "$scratch/counted" - |
        awk -F'\t' '
            { count = $5 / $4; wrong = $1 != $3 || count > 1.02 * $2 || count < 0.98 * $2; failed += wrong }
            { printf "%s\t%.2f%s\n", $3, count, wrong ? "\tFAILED: tests/probe/counts.tsv has " $1 " " $2 : "" }
            END { exit failed > 0 }'
}

# `compile TARGET-FOLDER FLAG CARGO-ARGUMENT...` writes the assembly of bloomline and of tests/probe. One codegen unit,
# so that inlining does not depend on how the crate is split.
compile() {
    env -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_TARGET -u CARGO_PROFILE_RELEASE_LTO \
        RUSTFLAGS="--emit=asm -C codegen-units=1 $2" CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_TARGET_DIR="$1" \
        cargo build --quiet --release -p bloomline-probe --lib "${@:3}"
}

## mca                         prints docs/performance/modelled.md: modelled cycles per lookup and insert on other CPUs
mca() {
    local target triple toolchain
    install python3 python3 && install llvm-mca-22 llvm-22 ||
        { skip "modelled cycles" "LLVM 22's llvm-mca or Python 3 could not be installed"; return; }
    # The committed text, because the page itself may be what this is written to.
    git show HEAD:docs/performance/modelled.md | sed '/^Written by/,$d'
    echo "Written by \`scripts/check mca\` on $(date -u +%F):" \
        "$(llvm-mca-22 --version | grep -o 'LLVM version .*'), $(rustc --version | cut -d' ' -f1,2)."
    for target in x86_64 aarch64; do
        triple=$target-unknown-linux-gnu
        toolchain=$(toolchain_with_std "$triple") ||
            { skip "$target" "no installed toolchain has its standard library"; continue; }
        RUSTUP_TOOLCHAIN=$toolchain compile "$scratch/$target" "" --target "$triple"
    done
    python3 -B scripts/mca.py "$scratch"
}
