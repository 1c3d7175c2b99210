# Proofs of machine code by z3, which docs/testing.md explains:

# The interpreters know the instructions that this compiler chooses. Another may choose instructions to add.
proved_rustc=1.95.0

## proof [ARGUMENTS]           proves that the machine code of each kernel equals the definition; arguments go to prove.py
proof() {
    local toolchain target build programs
    proof_environment "the proof"
    if [[ $(rustc --version) != "rustc $proved_rustc "* ]]; then
        rustup toolchain install "$proved_rustc" --profile minimal >/dev/null 2>&1 && export RUSTUP_TOOLCHAIN=$proved_rustc ||
            echo "note: this is $(rustc --version): if the proof does not know an instruction, install Rust $proved_rustc"
    fi
    RUSTFLAGS= step kernels default "$root"
    RUSTFLAGS=-Ctarget-cpu=x86-64-v3 step kernels x86-64-v3 "$root"
    RUSTFLAGS=-Ctarget-cpu=x86-64-v4 step kernels x86-64-v4 "$root"
    programs=("$scratch"/default:avx512,avx2,sse4.1,portable,reference "$scratch/x86-64-v3:avx2" "$scratch/x86-64-v4:avx512")
    if cross aarch64 aarch64 libc6-dev-arm64-cross; then
        RUSTFLAGS= step kernels aarch64 "$root" "+$toolchain" --target "$target" "${build[@]}"
        programs+=("$scratch/aarch64:neon")
    else
        skip "the proof of NEON" "a cross compiler, QEMU or the standard library is not available"
    fi
    step prove --runner "${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER:-}" "${programs[@]}" "$@"
}

# Ends the check as skipped, as WHAT, if Python's packages are missing.
proof_environment() {
    [ "$(host)" = x86_64-unknown-linux-gnu ] || { skip "$1" "the host is $(host)" && exit; }
    if ! new_venv ||
        ! "$scratch/venv/bin/pip" install --quiet -r "$root/scripts/proof/requirements.txt"; then
        skip "$1" "Python 3 has no venv here, or its packages could not be installed" && exit
    fi
}

# `kernels NAME SOURCES [+TOOLCHAIN] ARGUMENT...` makes `scratch/NAME`, a program with the functions to prove, as cargo
# builds it for release.
kernels() {
    local cargo=(cargo)
    [[ ${3:-} != +* ]] || cargo+=("$3")
    (cd "$2" && CARGO_TARGET_DIR=$scratch/target-$1 CARGO_PROFILE_RELEASE_DEBUG=0 unstable "${cargo[@]}" build --quiet --release -p bloomline-probe \
        --bin kernels "${@:${#cargo[@]} + 2}") &&
        find "$scratch/target-$1" -path '*/release/kernels' -exec cp {} "$scratch/$1" \;
}

prove() {
    "$scratch/venv/bin/python" -B "$root/scripts/proof/prove.py" "$@"
}

# BUILD | KERNEL | FILE | the bug | the change, by sed
kernel_bugs() {
    cat <<'END'
default|avx512|src/kernel/tables.rs|a position is one bit too low|s/37, 43, 49, 55\]/37, 42, 49, 55]/
default|avx512|src/kernel/tables.rs|the row of k = 5 and rotation 6 lacks a lane|s/LANES\] = 1;/LANES] = (count != 5 || rotation != 6 || probe != 2) as u64;/
default|avx512|src/kernel/inlined.rs|lookups past eight probes ignore the first word|s/\[{rows} + rdx\], 0x2f/[{rows} + rdx], 0x22/
default|avx512|src/kernel/inlined.rs|inserts compare the new block with itself|s/k1, zmm16, zmm17/k1, zmm16, zmm16/
default|avx2|src/kernel/avx2.rs|two lanes of the lookup's table are swapped|s/2, 3, 6, 7\]);/2, 3, 7, 6]);/
default|avx2|src/kernel/inlined.rs|lookups collect the wrong halves of the lanes of probes past eight|s/ymm4, ymm5, 0xdd/ymm4, ymm5, 0x88/
default|avx2|src/kernel/inlined.rs|inserts do not return the changes of the upper half|s/"vpor ymm0, ymm0, ymm1"/"vpor ymm0, ymm0, ymm0"/
default|avx2|src/kernel/inlined.rs|inserts write eight bytes past the block|s/+ 32\], ymm5/+ 40], ymm5/
default|avx2|src/kernel/inlined.rs|lookups require aligned blocks|s/"vmovdqu ymm2, \[{blocks}/"vmovdqa ymm2, [{blocks}/
default|avx512|src/kernel/inlined.rs|lookups store the block|s/"vprorvq zmm16, zmm17, zmm16",/"vmovdqu64 [{blocks} + {block}], zmm17", &/
default|avx512|src/kernel/inlined.rs|blocks have 128 bytes|s/"shl {block}, 6"/"shl {block}, 7"/
default|avx2|src/kernel/inlined.rs|lookups read past the block|s/"vmovdqu ymm3, \[{blocks} + {block} + 32\]"/"vmovdqu ymm3, [{blocks} + {block} + 40]"/
default|avx512|src/kernel/inlined.rs|a register is changed that must be preserved|s/"shl {block}, 6"/&, "xor r12d, r12d"/
default|avx512|src/filter.rs|inserts leave the number of keys|s/self.keys = None;//
default|sse4.1|src/kernel/sse41.rs|a shift is one too short|s/epi16::<13>/epi16::<12>/
default|portable|src/kernel/portable.rs|probes past eight are not rotated|s/bits(second_word(first), &rows\[rotation(first)\])/bits(second_word(first), \&rows[0])/
default|reference|src/mask.rs|the definition's second word takes other bits of the first|s/first >> 32/first >> 31/
x86-64-v3|avx2|src/kernel/avx2.rs|two lanes are swapped|s/37, 43, 49, 55/43, 37, 49, 55/
x86-64-v4|avx512|src/kernel/tables.rs|the rotation takes the wrong three bits|s/first >> 61/(first >> 60) \& 7/
aarch64|neon|src/kernel/neon.rs|two lanes read each other's bytes|s/0x3830_2820_1810_0800/0x3038_2820_1810_0800/
END
}

## refuted [FILE]              injects bugs into a copy of the kernels, all or the bugs in FILE, each of which the proof must
##                             refute; prints a Markdown table
refuted() {
    local toolchain target build name kernel file what change arguments report refutation bugs failed=0 copy=$scratch/copy
    bugs=$(kernel_bugs | grep "${1:-}") || { echo "no bugs in $1" >&2; return 1; }
    proof_environment "the refutation of bugs"
    mkdir "$copy"
    copy_sources "$copy"
    echo "| build | kernel | bug | refuted |"
    echo "|---|---|---|---|"
    while IFS='|' read -r name kernel file what change; do
        export RUSTFLAGS=
        arguments=()
        case $name in
            x86-64-*) RUSTFLAGS=-Ctarget-cpu=$name ;;
            aarch64)
                cross aarch64 aarch64 libc6-dev-arm64-cross || { skip "$what" "its tools are not available"; continue; }
                arguments=("+$toolchain" --target "$target" "${build[@]}")
                ;;
        esac
        sed "$change" "$root/$file" >"$copy/$file"
        if cmp --quiet "$copy/$file" "$root/$file"; then
            echo "nothing to change in $file: $change" >&2
            failed=1
            continue
        fi
        kernels "$name" "$copy" "${arguments[@]}" </dev/null
        report=$(prove --inputs 0 "$scratch/$name:$kernel" 2>&1) || true
        refutation=$(sed -n "s/.*: $kernel, \(insert\|contains\), \(k = [0-9]*\): \(.*\)/\1, \2: \3/p" <<<"$report" | head -1 | sed "s, As a test:,,")
        if ! grep -qE "not as defined|must not change|requires alignment|more values|nor written|not what it was|keys known" <<<"$refutation"; then
            echo "$report" >&2
            failed=1
        fi
        echo "| $name | $kernel | \`$file\`: $what | ${refutation:-**no**} |"
        cp "$root/$file" "$copy/$file"
    done <<<"$bugs"
    return "$failed"
}
