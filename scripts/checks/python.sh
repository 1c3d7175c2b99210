# Python:
## python                      the wheel, in a clean virtual environment: its tests, types and recipes
python() {
    python_environment test "the Python package"
    local bin=$scratch/venv/bin
    step cargo fmt --manifest-path python/Cargo.toml --check
    step cargo clippy --quiet --release --manifest-path python/Cargo.toml -- -D warnings
    command_line
    PATH=${BLOOMLINE_CLI%/*}:$PATH step "$bin/python" -m pytest --quiet python
}

## spark                       the wheel in Spark, with two executors; pip downloads 460 MB
spark() {
    install java openjdk-17-jre-headless || { skip "Spark" "Java could not be installed"; return; }
    python_environment spark,test "Spark"
    step "$scratch/venv/bin/python" -m pytest --quiet python/tests/test_spark.py
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
    local target=$1-unknown-linux-gnu toolchain file
    toolchain=$(toolchain_with_std "$target") ||
        { skip "the wheel for $1" "no installed toolchain has its standard library"; return; }
    # Zig links against glibc 2.17, and maturin fails if a newer symbol is needed.
    env -u RUSTFLAGS PATH="$bin:$PATH" RUSTUP_TOOLCHAIN="$toolchain" CARGO_INCREMENTAL=0 \
        "$bin/maturin" build --quiet --release --locked --manifest-path python/Cargo.toml --target "$target" --zig \
        --compatibility manylinux2014 --out "$wheels"
    file=$(echo "$wheels"/bloomline-*"_$1.whl")
    echo "${file##*/}" | grep -E "^bloomline-[0-9.]+-cp310-abi3-(manylinux(2014|_2_17)_$1[.]?)+.whl$" ||
        { echo "not the tags of manylinux2014 and of CPython 3.10 and later: $file" >&2; return 1; }
    "$bin/abi3audit" --strict "$file"
    if [ "$1" = "$(uname -m)" ]; then
        python3 -m venv "$scratch/$1"
        "$scratch/$1/bin/pip" install --quiet "$file" "${wheel_needs[@]}"
        "$scratch/$1/bin/python" "${wheel_tests[@]}"
    else
        foreign_wheel "$1" "$file"
    fi
}

wheel_needs=(pytest hypothesis pyarrow)
wheel_tests=(-m pytest --quiet python/tests/test_{goldens,keys,properties}.py)

# `foreign_wheel CPU FILE` tests the wheel of another CPU than this machine's.
foreign_wheel() {
    local there=$scratch/$1 version
    install "qemu-$1" qemu-user && foreign_python "$1" ||
        { skip "testing the wheel for $1" "QEMU or its Python could not be installed"; return; }
    version=$(readlink "$there/usr/bin/python3")
    "$bin/pip" install --quiet --target "$there/site" --only-binary=:all: --python-version "${version#python}" \
        --platform "manylinux2014_$1" --platform "manylinux_2_28_$1" "$2" "${wheel_needs[@]}"
    # Without `sys.executable`, tests that start another Python are skipped: QEMU would not run it.
    PYTHONPATH=$there/site "qemu-$1" -L "$there" "$there/usr/bin/python3" -c \
        'import sys, pytest; sys.executable = ""; sys.exit(pytest.main(sys.argv[3:]))' "${wheel_tests[@]}"
}

# `foreign_python CPU` unpacks this distribution's Python for another CPU in `$scratch/CPU`.
foreign_python() {
    local there=$scratch/$1 apt=$scratch/apt name=${1/aarch64/arm64} codename options
    name=${name/x86_64/amd64}
    mkdir -p "$apt"/{lists,archives}/partial "$there/usr/lib" && touch "$apt/status" || return
    # Newer distributions' packages lack this link.
    ln -s usr/lib "$there/lib"
    # This system's lists and packages stay as they are.
    options=(-o "APT::Architecture=$name" -o "APT::Architectures=$name" -o "Dir::State::Lists=$apt/lists"
        -o "Dir::State::Status=$apt/status" -o "Dir::Cache=$apt" -o "APT::Sandbox::User=$(id -un)")
    # Ubuntu has the packages for most CPUs on a server of their own.
    if [ "$name" != amd64 ] && grep -qx ID=ubuntu /etc/os-release 2>/dev/null; then
        codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
        echo "deb [signed-by=/usr/share/keyrings/ubuntu-archive-keyring.gpg]" \
            "http://ports.ubuntu.com/ubuntu-ports $codename main" >"$apt/sources.list"
        options+=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=-)
    fi
    apt-get "${options[@]}" update >/dev/null 2>&1 &&
        apt-get "${options[@]}" install -y --download-only --no-install-recommends python3 libstdc++6 >/dev/null 2>&1 &&
        find "$apt/archives" -name '*.deb' -exec dpkg -x {} "$there" \;
}

# `python_environment EXTRA WHAT` builds the wheel as its users do, without compiler flags of this machine, and installs it
# with what EXTRA of `python/pyproject.toml` names. Skips WHAT, and fails, where that cannot be.
python_environment() {
    new_venv || { skip "$2" "Python 3 has no venv here" && exit; }
    step env -u RUSTFLAGS "$scratch/venv/bin/pip" install --quiet "./python[$1]"
}

# `python3` may be there without `venv`, as in Debian.
new_venv() {
    python3 -m venv "$scratch/venv" >/dev/null 2>&1 ||
        { install "" python3 python3-venv || python3 -m venv --clear "$scratch/venv"; } >/dev/null 2>&1
}
