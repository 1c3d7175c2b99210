# Python:
## python                      the wheel, in a clean virtual environment: its tests, types and recipes
python() {
    python_environment test "the Python package"
    local bin=$scratch/venv/bin built=${CARGO_TARGET_DIR:-$root/target}/debug
    step cargo fmt --manifest-path python/Cargo.toml --check
    step cargo clippy --quiet --release --manifest-path python/Cargo.toml -- -D warnings
    # Files travel between the package and the command line.
    step cargo build --quiet -p bloomline-cli
    BLOOMLINE_CLI=$built/bloomline PATH=$built:$PATH step "$bin/python" -m pytest --quiet python
}

## spark                       the wheel in Spark, with two executors; pip downloads 460 MB
spark() {
    install java openjdk-17-jre-headless || { skip "Spark" "Java could not be installed"; return; }
    python_environment spark,test "Spark"
    step "$scratch/venv/bin/python" -m pytest --quiet python/tests/test_spark.py
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
