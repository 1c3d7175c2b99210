# Python:
## python                      the wheel, in a clean virtual environment: its tests, types and recipes
python() {
    linted python_environment test "the Python package"
    local bin=$scratch/venv/bin
    step cargo fmt --manifest-path bindings/python/Cargo.toml --check
    command_line
    PATH=${BLOOMLINE_CLI%/*}:$PATH step "$bin/python" -m pytest --quiet bindings/python
}

## spark                       the wheel and the jar in Spark, with two executors; pip downloads 460 MB
spark() {
    local bin=$scratch/venv/bin
    install javac openjdk-17-jdk-headless && install ps procps ||
        { skip "Spark" "a JDK or ps could not be installed"; return; }
    python_environment spark,test "Spark"
    SPARK_HOME=$("$bin/python" -c 'import pyspark; print(pyspark.__path__[0])')
    step spark_jar
    BLOOMLINE_JAR=$scratch/bloomline.jar step "$bin/python" -m pytest --quiet bindings/python/tests/test_spark.py
}

spark_jar() {
    (cd bindings/java && java_classes "$scratch/classes")
    jar --create --file "$scratch/bloomline.jar" -C "$scratch/classes" .
}

## wheels [CPU...]             manylinux2014 wheels for x86_64 and aarch64, built in target/wheels, and tested (QEMU)
wheels() {
    local wheels=${CARGO_TARGET_DIR:-$root/target}/wheels bin=$scratch/venv/bin cpu
    new_venv && "$bin/pip" install --quiet "maturin[zig]>=1.9,<2" abi3audit ||
        { skip "the wheels" "Python's venv, maturin, zig or abi3audit could not be installed"; return; }
    [ $# -gt 0 ] || set -- x86_64 aarch64
    rm -rf "$wheels"
    for cpu; do
        step wheel "$cpu"
    done
}

# `wheel CPU`
wheel() {
    local target=$1-unknown-linux-gnu there=$scratch/$1 toolchain file version python packages
    toolchain=$(toolchain_with_std "$target") ||
        { skip "the wheel for $1" "no installed toolchain has its standard library"; return; }
    # Zig links against glibc 2.17, and maturin fails if a newer symbol is needed.
    env -u RUSTFLAGS PATH="$bin:$PATH" RUSTUP_TOOLCHAIN="$toolchain" CARGO_INCREMENTAL=0 \
        "$bin/maturin" build --quiet --release --locked --manifest-path bindings/python/Cargo.toml --target "$target" --zig \
        --compatibility manylinux2014 --out "$wheels"
    # Only if the tags are those of manylinux2014, which has glibc 2.17, and of CPython 3.10 and later.
    file=$(ls "$wheels"/* | grep -E "abi3-manylinux(_2_17|2014)_$1\.manylinux(_2_17|2014)_$1\.whl" | grep cp310)
    "$bin/abi3audit" --strict "$file"

    python=("$bin/python" -m pytest) packages=("$file" pytest pyarrow)
    if [ "$1" != "$(uname -m)" ]; then
        install "qemu-$1" qemu-user && foreign_python "$1" ||
            { skip "testing the wheel for $1" "QEMU or its Python could not be installed"; return; }
        # Without `sys.executable`, tests that start another Python are skipped: QEMU would not run it.
        python=("qemu-$1" -L "$there" "$there/usr/bin/python3"
            -c 'import sys, pytest; sys.executable = ""; sys.exit(pytest.main())')
        version=$(readlink "$there/usr/bin/python3")
        packages+=(--only-binary=:all: --python-version "${version#python}"
            --platform "manylinux2014_$1" --platform "manylinux_2_28_$1")
    fi
    "$bin/pip" install --quiet --target "$there/site" "${packages[@]}"
    PYTHONPATH=$there/site "${python[@]}" --quiet bindings/python/tests/test_{goldens,keys}.py
}

# `foreign_python CPU` unpacks this distribution's Python for another CPU in `$there`.
foreign_python() {
    local debian=${1/aarch64/arm64}
    # Newer distributions' packages lack the link to `usr/lib`.
    install mmdebstrap mmdebstrap && mmdebstrap --quiet --mode=chrootless --variant=extract \
        --architectures="${debian/x86_64/amd64}" --include=python3,libstdc++6 \
        --setup-hook='mkdir -p "$1/usr/lib" && ln -s usr/lib "$1/lib"' \
        "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$there"
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
