# Programs, plugins and shared libraries that contain the crate, linked by each linker, and run.
#
# The x86-64 kernels are inline assembly, which the compiler inlines into the user's code. What it refers to must be
# addressable from there: from a position-independent executable, from a shared object, and from a program whose copy of
# the crate is in a shared object.

link() {
    case $(host) in
        *-linux-gnu) ;;
        *) skip "linking" "the host is $(host)"; return ;;
    esac
    install gcc gcc libc6-dev || { skip "linking" "gcc could not be installed"; return; }
    install ld.lld lld || skip "linking with lld" "it could not be installed" || return
    linkers=()
    local linker
    for linker in bfd lld mold; do
        ! command -v "ld.$linker" >/dev/null || linkers+=("$linker")
    done
    step write_users_of_the_library
    step c_programs
    step rust_libraries debug ""
    step rust_libraries release "-O"
}

# Each program prints nothing, and fails unless a filter has the keys 0 to 999 and lacks most of the next thousand, for k
# up to 8 and above.
write_users_of_the_library() {
    cat >"$scratch/plugin.c" <<'END'
#include <bloomline/bloomline.h>
int lookups(void) {
  for (int k = 6; k <= 11; k += 5) {
    bloomline_filter_t *filter = bloomline_filter_with_blocks(40, k);
    int found = 0;
    for (int key = 0; key < 1000; key++) bloomline_filter_insert(filter, &key, sizeof key);
    for (int key = 0; key < 2000; key++) found += bloomline_filter_contains(filter, &key, sizeof key);
    bloomline_filter_free(filter);
    if (found < 1000 || found > 1050) return k;
  }
  return 0;
}
END
    cat >"$scratch/host.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
  int (*lookups)(void) = plugin ? (int (*)(void))dlsym(plugin, "lookups") : 0;
  if (!lookups) return fprintf(stderr, "%s\n", dlerror()), 1;
  return lookups();
}
END
    echo 'int lookups(void); int main(void) { return lookups(); }' >"$scratch/main.c"
    # Inlined into the library.
    cat >"$scratch/plugin.rs" <<'END'
pub use bloomline;
use bloomline::{AtomicBloomFilter, BloomFilter};

#[unsafe(no_mangle)]
pub extern "C" fn lookups() -> i32 {
    for k in [6, 11] {
        let mut filter = BloomFilter::with_blocks(40, k).unwrap();
        (0..1000_u32).for_each(|key| _ = filter.insert(key.to_le_bytes()));
        let shared = AtomicBloomFilter::from(filter.clone());
        let (mut found, mut found_shared) = (0, 0);
        for key in 0..2000_u32 {
            found += u32::from(filter.contains(key.to_le_bytes()));
            found_shared += u32::from(shared.contains(key.to_le_bytes()));
        }
        if found_shared != found || !(1000..=1050).contains(&found) {
            return k as i32;
        }
    }
    0
}
END
    # Inlined into the program too.
    { cat "$scratch/plugin.rs"; echo 'fn main() { std::process::exit(plugin::lookups() + lookups()) }'; } |
        sed -e 's/^pub use bloomline;/use plugin::bloomline;/' -e '/no_mangle/d' >"$scratch/user.rs"
}

# `run COMMAND...`, with each kernel of this CPU.
run() {
    local kernel
    for kernel in "" avx2 sse4.1; do
        BLOOMLINE_KERNEL=$kernel "$@" || { echo "failed with ${kernel:-the fastest kernel}: $*" >&2; return 1; }
    done
}

c_programs() {
    local linker flags=(-Icapi/include "${CARGO_TARGET_DIR:-target}/capi/libbloomline.a" -lpthread -lm -ldl)
    cargo build --quiet --profile capi -p bloomline-capi
    gcc "$scratch/host.c" -o "$scratch/host" -ldl
    for linker in "${linkers[@]}"; do
        echo "C: the static library in a shared object and in programs, linked by $linker"
        gcc -O -fPIC -shared "-fuse-ld=$linker" -Wl,-z,text "$scratch/plugin.c" -o "$scratch/plugin.so" "${flags[@]}"
        run "$scratch/host" "$scratch/plugin.so"
        gcc -O -pie -fPIE "-fuse-ld=$linker" "$scratch"/{main,plugin}.c -o "$scratch/program" "${flags[@]}"
        run "$scratch/program"
        gcc -O -no-pie -fno-pie "-fuse-ld=$linker" "$scratch"/{main,plugin}.c -o "$scratch/program" "${flags[@]}"
        run "$scratch/program"
    done
}

# `rust_libraries PROFILE RUSTC-FLAG`
rust_libraries() {
    local profile=$1 built=$scratch/target/$1 linker compile release=()
    [ "$profile" = debug ] || release=(--release)
    # Unoptimised, as in users' debug builds.
    CARGO_TARGET_DIR=$scratch/target cargo build --quiet --lib "${release[@]}" \
        --config profile.dev.package.bloomline.opt-level=0
    for linker in "${linkers[@]}"; do
        compile=(rustc --edition 2024 ${2:+"$2"} -C "link-arg=-fuse-ld=$linker" -C rpath --out-dir "$built"
            -L "$built" -L "dependency=$built/deps" --extern "bloomline=$built/libbloomline.rlib")
        echo "Rust: a cdylib, linked by $linker"
        "${compile[@]}" --crate-type cdylib "$scratch/plugin.rs" -C link-arg=-Wl,-z,text
        run "$scratch/host" "$built/libplugin.so"
        echo "Rust: a dylib and a program that uses it, linked by $linker"
        compile+=(-C prefer-dynamic)
        "${compile[@]}" --crate-type dylib "$scratch/plugin.rs" -C link-arg=-Wl,-z,text
        "${compile[@]}" "$scratch/user.rs" --extern "plugin=$built/libplugin.so"
        run "$built/user"
    done
}
