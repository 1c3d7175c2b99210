# Python:
## python                      the wheel, in a clean virtual environment: its tests, types and recipes
python() {
    linted python_environment test "the Python package"
    local bin=$scratch/venv/bin
    step cargo fmt --manifest-path bindings/python/Cargo.toml --check
    command_line
    # Without its dependencies, which its mixer does not need.
    "$bin/pip" install --quiet --no-deps dolma==1.2.1 || skip "a test with dolma" "pip could not install it"
    PATH=${BLOOMLINE_CLI%/*}:$PATH step "$bin/python" -m pytest --quiet bindings/python
}

## spark                       the wheel and the jar in Spark, with two executors; pip downloads 460 MB
spark() {
    local bin=$scratch/venv/bin
    install javac openjdk-17-jdk-headless && install ps procps ||
        { skip "Spark" "a JDK or ps could not be installed"; return; }
    python_environment spark "Spark"
    "$bin/pip" install --quiet pytest
    SPARK_HOME=$("$bin/python" -c 'import pyspark; print(pyspark.__path__[0])')
    (cd bindings/java && java_classes "$scratch/classes")
    jar --create --file "$scratch/bloomline.jar" -C "$scratch/classes" .
    BLOOMLINE_JAR=$scratch/bloomline.jar step "$bin/python" -m pytest --quiet bindings/python/tests/test_spark.py
}

## wheels [CPU...]             manylinux2014 and musllinux wheels for x86_64 and aarch64, in target/wheels; tests this CPU's
wheels() {
    local wheels=${CARGO_TARGET_DIR:-$root/target}/wheels bin=$scratch/venv/bin tag=cp310-abi3 interpreter=() python cpu
    new_venv && "$bin/pip" install --quiet "maturin[zig]>=1.9,<2" abi3audit ||
        { skip "the wheels" "Python's venv, maturin, zig or abi3audit could not be installed"; return; }
    python=$("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2] + sys.abiflags)')
    # Without its lock, Python needs wheels for each of its versions.
    [[ $python != *t ]] || tag=cp${python/./} interpreter=(--interpreter "python$python")
    rm -rf "$wheels"
    [ $# -gt 0 ] || set -- x86_64 aarch64
    for cpu; do
        # Zig links against glibc 2.17, and maturin fails if a newer symbol is needed.
        step wheel "$cpu-unknown-linux-gnu" manylinux2014
        step wheel "$cpu-unknown-linux-musl" musllinux_1_2
    done
    cpu=$(uname -m)
    "$bin/pip" install --quiet "$wheels"/*manylinux*"$cpu".whl pytest pyarrow
    step "$bin/python" -m pytest --quiet bindings/python/tests/test_{goldens,keys}.py
}

# `wheel TARGET POLICY`
wheel() {
    local toolchain file
    toolchain=$(toolchain_with_std "$1") ||
        { skip "the wheel for $1" "no installed toolchain has its standard library"; return; }
    # Maturin packs what is named so.
    RUSTUP_TOOLCHAIN=$toolchain "$bin/python" scripts/licenses.py bindings/python/Cargo.toml "$1" \
        >bindings/python/LICENSE-THIRD-PARTY
    env -u RUSTFLAGS PATH="$bin:$PATH" RUSTUP_TOOLCHAIN="$toolchain" CARGO_INCREMENTAL=0 \
        "$bin/maturin" build --quiet --release --locked --manifest-path bindings/python/Cargo.toml --target "$1" --zig \
        --compatibility "$2" --out "$wheels" "${interpreter[@]}"
    file=$(ls "$wheels"/*"-$tag"-*"$2_${1%%-*}"*.whl)
    "$bin/python" -m zipfile -l "$file" | grep -F /licenses/LICENSE-THIRD-PARTY
    [ "$tag" != cp310-abi3 ] || "$bin/abi3audit" --strict "$file"
}

# `python_environment EXTRA WHAT` builds the wheel as its users do, without compiler flags of this machine, and installs
# it with what EXTRA of `bindings/python/pyproject.toml` names. Skips WHAT, and fails, where that cannot be.
python_environment() {
    new_venv || { skip "$2" "Python 3 has no venv here" && exit; }
    step env -u RUSTFLAGS "$scratch/venv/bin/pip" install --quiet "./bindings/python[$1]"
}

# `python3` may be there without `venv`, as in Debian.
new_venv() {
    python3 -m venv "$scratch/venv" >/dev/null 2>&1 ||
        { install "" python3 python3-venv || python3 -m venv --clear "$scratch/venv"; } >/dev/null 2>&1
}
