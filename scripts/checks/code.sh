# Code:
## circles                     no two files of a crate import each other
circles() {
    install python3 python3 || { skip "circles" "Python 3 could not be installed"; return; }
    git ls-files '*.rs' | grep -oE '^(.*/)?src/' | sort -u | xargs python3 scripts/circles.py
}

## asm                         x86-64 kernels have the expected instructions, and no calls, divisions or panics
asm() {
    [ "$(uname -m)" = x86_64 ] || { skip "the kernels' instructions" "this machine is $(uname -m), not x86_64"; return; }
    install python3 python3 || { skip "the kernels' instructions" "Python 3 could not be installed"; return; }
    local build failed=0
    for build in default x86-64-v3 x86-64-v4; do
        # One codegen unit, so that inlining does not depend on how the crate is split.
        RUSTFLAGS="--emit=asm -Ccodegen-units=1 $([ "$build" = default ] || echo "-Ctarget-cpu=$build")" \
            CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_TARGET_DIR=$scratch/$build \
            cargo build --quiet --release -p bloomline-probe --lib
        python3 scripts/loops.py "$build" "$scratch/$build"/release/deps/{bloomline,bloomline_probe}-*.s \
            <tests/probe/instructions.txt || failed=1
    done
    return "$failed"
}
