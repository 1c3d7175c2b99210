# The Python package, in a virtual environment.

# `python_environment EXTRA WHAT` builds the wheel as its users do, without compiler flags of this machine, and installs it
# with what EXTRA of `python/pyproject.toml` names. Skips WHAT, and fails, where that cannot be.
python_environment() {
    install python3 python3-venv
    if ! python3 -m venv "$scratch/venv" >/dev/null 2>&1; then
        skip "$2" "Python 3 has no venv here" && exit
    fi
    step env -u RUSTFLAGS "$scratch/venv/bin/pip" install --quiet "./python[$1]"
}

python() {
    python_environment test "the Python package"
    local bin=$scratch/venv/bin
    step cargo fmt --manifest-path python/Cargo.toml --check
    step cargo clippy --quiet --release --manifest-path python/Cargo.toml -- -D warnings
    # Files travel between the package and the command line.
    step cargo build --quiet -p bloomline-cli
    local built=${CARGO_TARGET_DIR:-$root/target}/debug
    BLOOMLINE_CLI=$built/bloomline PATH=$built:$PATH step "$bin/python" -m pytest --quiet python
}

# Spark needs Java, and its local cluster runs three JVMs.
spark() {
    local inputs
    inputs=$(python3 scripts/inputs.py spark)
    install java openjdk-17-jre-headless || { skip "Spark" "Java could not be installed"; return; }
    python_environment spark,test "Spark"
    step "$scratch/venv/bin/python" -m pytest --quiet python/tests/test_spark.py
    passed spark "$inputs"
}
