# Programs, plugins and shared libraries that contain the crate:
## link                        shared objects, Rust dylibs and programs in tests/link, linked by each linker, and run
# The x86-64 kernels are inline assembly, which the compiler inlines into the user's code. What the assembly refers to must
# be addressable from there: from a position-independent executable, from a shared object, and from a program whose copy of
# the crate is in a shared object.
link() {
    [[ $(host) = *-linux-gnu ]] || { skip "linking" "the host is $(host)"; return; }
    install gcc gcc libc6-dev || { skip "linking" "gcc could not be installed"; return; }
    install ld.lld lld || skip "linking with lld" "it could not be installed" || return
    local linker linkers=()
    for linker in bfd lld mold; do
        ! command -v "ld.$linker" >/dev/null || linkers+=("$linker")
    done
    step c_programs
    step rust_libraries debug
    step rust_libraries release -O
}

# `run COMMAND...`, with each kernel of this CPU.
run() {
    local kernel
    for kernel in "" avx2 sse4.1; do
        BLOOMLINE_KERNEL=$kernel "$@" || { echo "failed with ${kernel:-the fastest kernel}: $*" >&2; return 1; }
    done
}

c_programs() {
    local linker flags=(-Ibindings/c/include "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a" -lpthread -lm -ldl)
    local sources=(tests/link/{main,plugin}.c)
    cargo build --quiet --profile capi -p bloomline-capi
    gcc tests/link/host.c -o "$scratch/host" -ldl
    for linker in "${linkers[@]}"; do
        echo "C: the static library in a shared object and in programs, linked by $linker"
        gcc -O -fPIC -shared "-fuse-ld=$linker" -Wl,-z,text tests/link/plugin.c -o "$scratch/plugin.so" "${flags[@]}"
        run "$scratch/host" "$scratch/plugin.so"
        gcc -O -pie -fPIE "-fuse-ld=$linker" "${sources[@]}" -o "$scratch/program" "${flags[@]}"
        run "$scratch/program"
        gcc -O -no-pie -fno-pie "-fuse-ld=$linker" "${sources[@]}" -o "$scratch/program" "${flags[@]}"
        run "$scratch/program"
    done
}

# `rust_libraries PROFILE [RUSTC-FLAG]`
rust_libraries() {
    local built=$scratch/target/$1 linker compile release=()
    [ "$1" = debug ] || release=(--release)
    # Unoptimised, as in users' debug builds.
    CARGO_TARGET_DIR=$scratch/target cargo build --quiet --lib "${release[@]}" \
        --config profile.dev.package.bloomline.opt-level=0
    for linker in "${linkers[@]}"; do
        compile=(rustc --edition 2024 "${@:2}" -C "link-arg=-fuse-ld=$linker" -C rpath --out-dir "$built"
            -L "$built" -L "dependency=$built/deps" --extern "bloomline=$built/libbloomline.rlib")
        echo "Rust: a cdylib, linked by $linker"
        "${compile[@]}" --crate-type cdylib tests/link/plugin.rs -C link-arg=-Wl,-z,text
        run "$scratch/host" "$built/libplugin.so"
        echo "Rust: a dylib and a program that uses it, linked by $linker"
        compile+=(-C prefer-dynamic)
        "${compile[@]}" --crate-type dylib tests/link/plugin.rs -C link-arg=-Wl,-z,text
        "${compile[@]}" tests/link/user.rs --extern "plugin=$built/libplugin.so"
        run "$built/user"
    done
}
