# Checks of the compiled code.

# `compile DIR RUSTFLAGS CARGO-ARGUMENT...` writes the assembly of bloomline and of a crate that uses it, as users build it.
# One codegen unit, so that inlining does not depend on how the crate is split.
compile() {
    local dir=$1 flags=$2
    shift 2
    mkdir -p "$dir/src"
    cp Cargo.lock "$dir"
    cat >"$dir/Cargo.toml" <<END
[workspace]
[package]
name = "probe"
edition = "2024"
[dependencies]
bloomline = { path = "$root" }
END
    cat >"$dir/src/lib.rs" <<'END'
use bloomline::BloomFilter;

#[unsafe(no_mangle)]
pub fn contains_hash(filter: &BloomFilter, hash: u64) -> bool {
    filter.contains_hash(hash)
}

#[unsafe(no_mangle)]
pub fn insert_hash(filter: &mut BloomFilter, hash: u64) -> bool {
    filter.insert_hash(hash)
}

#[unsafe(no_mangle)]
pub fn contains_batch(filter: &BloomFilter, hashes: &[u64], found: &mut [bool]) {
    filter.contains_batch(hashes, found);
}

#[unsafe(no_mangle)]
pub fn insert_batch(filter: &mut BloomFilter, hashes: &[u64]) {
    filter.insert_batch(hashes);
}

#[unsafe(no_mangle)]
pub fn count(filter: &BloomFilter, hashes: &[u64]) -> usize {
    hashes.iter().filter(|&&hash| filter.contains_hash(hash)).count()
}

#[unsafe(no_mangle)]
pub fn insert_each(filter: &mut BloomFilter, hashes: &[u64]) {
    for &hash in hashes {
        filter.insert_hash(hash);
    }
}
END
    (cd "$dir" && RUSTFLAGS="--emit=asm -C codegen-units=1 $flags" CARGO_TARGET_DIR="$dir/target" \
        cargo "$@" --quiet --release)
}

asm() {
    # BUILD FUNCTION SCOPE MNEMONIC...: see loops.py. The first mnemonic of a loop identifies it.
    # Past eight probes `vpternlogq` combines the two halves of an AVX-512 mask.
    local expected='
default    kernel::avx512::contains        whole  vpsrlvq vprolvq|vprorvq vptestn?mq
default    kernel::avx512::insert          whole  vpsrlvq vprolvq vporq|vpternlogq vpcmpneq[dq]
default    kernel::avx512::contains_batch  loop   vptestn?mq vpsrlvq vprolvq|vprorvq
default    kernel::avx512::insert_batch    loop   vprolvq vpsrlvq vporq|vpternlogq
default    kernel::avx2::contains          whole  vpsrlvq vpsllvq vpandn vmovmskps
default    kernel::avx2::insert            whole  vpsrlvq vpsllvq vpandn vpor vptest
default    kernel::avx2::contains_batch    loop   vmovmskps vpsrlvq vpsllvq vpandn
default    kernel::avx2::insert_batch      loop   vpsllvq vpsrlvq vpor
default    kernel::sse41::contains         whole  pmullw pshufb pblendw psrlw pcmpeqb pmovmskb
default    kernel::sse41::contains_batch   loop   pmullw pshufb pblendw psrlw pcmpeqb pmovmskb
default    view::BloomView::contains_batch loop   pandn shlq por
default    contains_hash                   whole  mulxq vprorvq vptestnmq vpsllvq vmovmskps
default    insert_hash                     whole  mulxq vprolvq vpcmpneq[dq] vpsllvq vptest
default    count                           loop   vprorvq mulxq vpbroadcastq vpsrlvq vptestn?mq
default    count                           loop   vmovmskps mulxq vpbroadcastq vpsrlvq vpsllvq vpandn

x86-64-v3  contains_hash                   whole  mulxq vprorvq vptestnmq vpsllvq vmovmskps
x86-64-v3  insert_hash                     whole  mulxq vprolvq vpcmpneq[dq] vpsllvq vptest
x86-64-v3  count                           loop   vprorvq mulxq vpbroadcastq vpsrlvq vptestn?mq
x86-64-v3  count                           loop   vmovmskps vpsrlvq vpsllvq vpandn

x86-64-v4  contains_hash                   whole  vpsrlvq vprolvq|vprorvq vptestn?mq
x86-64-v4  insert_hash                     whole  vpsrlvq vprolvq vporq|vpternlogq vpcmpneq[dq]
x86-64-v4  count                           loop   vptestn?mq vpsrlvq vprolvq|vprorvq
x86-64-v4  view::BloomView::contains_batch loop   vprolvq|vprorvq vpsrlvq vptestn?mq|vpcmpneq[dq]
'
    if [ "$(uname -m)" != x86_64 ]; then
        skip "the kernels' instructions" "the expected ones are for x86-64, and this machine is $(uname -m)"
        return
    fi
    local build flags builds=() failed=0
    for build in default x86-64-v3 x86-64-v4; do
        flags=""
        [ "$build" = default ] || flags="-C target-cpu=$build"
        compile "$scratch/$build" "$flags" build &
        builds+=($!)
    done
    for build in "${builds[@]}"; do
        wait "$build"
    done
    for build in default x86-64-v3 x86-64-v4; do
        python3 scripts/loops.py check "$build" "$scratch/$build"/target/release/deps/{bloomline,probe}-*.s \
            <<<"$expected" || failed=1
    done
    return "$failed"
}

mca() {
    local revision=${1:-} target toolchain
    install llvm-mca-22 llvm-22 || { skip "modelled cycles" "LLVM 22's llvm-mca could not be installed"; return; }
    if [ -n "$revision" ]; then
        mkdir "$scratch/sources"
        git archive "$revision" | tar -x -C "$scratch/sources"
    fi
    for target in x86_64 aarch64; do
        if ! toolchain=$(toolchain_with_std "$target-unknown-linux-gnu"); then
            skip "$target" "no installed toolchain has its standard library"
            continue
        fi
        compile "$scratch/now/$target" "" "+$toolchain" build --target "$target-unknown-linux-gnu"
        [ -z "$revision" ] || (
            cd "$scratch/sources"
            root=$PWD compile "$scratch/before/$target" "" "+$toolchain" build --target "$target-unknown-linux-gnu"
        )
    done
    python3 -B scripts/mca.py "$scratch/now" ${revision:+"$scratch/before"}
}
