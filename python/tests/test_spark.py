"""`bloomline.spark` on two executor JVMs, each with Python workers of its own."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("pyspark", "4.1", reason="needs pyspark 4.1 or newer")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("needs Java", allow_module_level=True)

from pyspark import TaskContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bloomline import BloomFilter
from bloomline.spark import broadcast, build, contains


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.maxResultSize", "64m")
        # Compiling takes longer than it saves here.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.codegen.wholeStage", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Two slots, so that each of both executors has a part in every build.
    while session.sparkContext.defaultParallelism < 2:
        time.sleep(0.1)
    yield session
    session.stop()


def local(keys, expected_keys, fpr=0.01, seed=0):
    """What `build` must return, bit for bit."""
    filter = BloomFilter(expected_keys, fpr, seed=seed)
    filter.update(keys)
    filter.shrink_to_fpr(fpr)
    return filter


def test_a_filtered_join_is_the_exact_join(spark):
    # Every seventh key is null on both sides, which joins with nothing.
    columns = {
        "text": "concat('käse-', id)",
        "bytes": "unhex(format_string('00%012X', id))",
        "long": "id - 50000",
        "int": "int(id - 50000)",
    }
    columns = [F.expr(f"if(id % 7 != 0, {value}, null)").alias(name) for name, value in columns.items()]
    big = spark.range(100_000, numPartitions=5).select("id", *columns)
    small = spark.range(0, 100_000, 100, numPartitions=3).select(*columns)
    rows = [row for row in small.collect() if row.int is not None]

    filters = {name: build(small, name, 1000, seed=3) for name in small.columns}
    assert filters == {name: local([row[name] for row in rows], 1000, seed=3) for name in small.columns}

    # An exact join by one column is one by all, since each has a value of its own for each row.
    partners = small.where("text is not null").select("text", F.lit(True).alias("partner"))
    found = {name: contains(name, broadcast(spark, filter)) for name, filter in filters.items()}
    joined = big.withColumns({f"{name}_found": column for name, column in found.items()}).join(partners, "text", "left")
    kinds = joined.groupBy(F.expr("text is null as null"), F.expr("partner is not null as present"))
    counts = [F.count("*").alias("rows")]
    for name in filters:
        counts += [F.count_if(f"{name}_found").alias(name), F.count_if(F.isnull(f"{name}_found")).alias(f"{name}_null")]
    counts = {(row["null"], row.present): row for row in kinds.agg(*counts).collect()}
    assert len(counts) == 3
    for name, filter in filters.items():
        nulls, present, absent = counts[True, False], counts[False, True], counts[False, False]
        assert nulls[f"{name}_null"] == nulls.rows == 14286
        assert present[f"{name}_null"] == absent[f"{name}_null"] == 0
        assert present[name] == present.rows == len(rows)
        expected = absent.rows * filter.estimated_fpr()
        assert abs(absent[name] - expected) < 6 * expected**0.5


def test_integers_of_all_widths_are_the_same_keys(spark):
    df = spark.range(-100, 100).select(*(F.expr(f"cast(id as {type}) {type}") for type in ("byte", "short", "int", "long")))
    filter = build(df, F.col("byte"), 200)
    assert filter == local(range(-100, 100), 200)
    shared = broadcast(spark, filter)
    assert df.select(*(F.count_if(contains(type, shared)) for type in df.columns)).first() == (200,) * 4


def test_partitions_without_keys_send_no_filter(spark):
    seen = spark.sparkContext.accumulator(0)
    df = spark.range(0, 16, numPartitions=16)
    one = df.where("id = 11")
    assert build(one, "id", 10, partitions=16) == local([11], 10)
    assert build(df.where("id < 0"), "id", 10) == local([], 10)
    assert build(df.select(F.lit(None).cast("string").alias("id")), "id", 10) == local([], 10)

    # The tree has two levels here. `count_filters` sees what the first one gets.
    import bloomline.spark as module

    unite = module._unite

    def count_filters(batches):
        def counted():
            for batch in batches:
                seen.add(batch.num_rows)
                yield batch

        yield from unite(counted())

    module._unite = count_filters
    try:
        nulls_and_one = df.select(F.expr("if(id = 11, id, null) as id"))
        assert build(nulls_and_one, "id", 10, partitions=2) == local([11], 10)
        assert seen.value == 1
        seen.value = 0
        assert build(df, "id", 20, partitions=4) == local(range(16), 20)
        assert seen.value == 4 + 2
    finally:
        module._unite = unite


def test_a_filter_made_too_large_shrinks(spark):
    keys = range(5000)
    filter = build(spark.range(5000), "id", 3_000_000)
    assert filter == local(keys, 3_000_000)
    assert filter.size_bytes < BloomFilter(3_000_000).size_bytes
    assert filter.estimated_fpr() <= 0.01


def test_a_killed_executor_changes_no_bit(spark, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()

    def slowly(batches):
        # A Python worker is a child of the daemon, which is a child of the executor.
        parent = subprocess.check_output(["ps", "-o", "ppid=", "-p", str(os.getppid())], text=True).strip()
        task = TaskContext.get()
        for batch in batches:
            (marks / f"started-{task.partitionId()}-{task.attemptNumber()}-{parent}").touch()
            # No task ends before the kill, and none in the killed executor, whose Python workers live a little longer.
            while not (killed := list(marks.glob("killed-*"))) or killed[0].name == f"killed-{parent}":
                time.sleep(0.1)
            yield batch
        (marks / f"finished-{task.partitionId()}-{task.attemptNumber()}-{parent}").touch()

    df = spark.range(100_000, numPartitions=2).mapInArrow(slowly, "id long")
    result = []
    build_it = threading.Thread(target=lambda: result.append(build(df, "id", 100_000)))
    build_it.start()
    while len(started := list(marks.glob("started-*"))) < 2 and build_it.is_alive():
        time.sleep(0.02)
    victim = int(started[0].name.split("-")[-1])
    command = subprocess.check_output(["ps", "-ww", "-o", "args=", "-p", str(victim)], text=True)
    assert "CoarseGrainedExecutorBackend" in command
    os.kill(victim, signal.SIGKILL)
    (marks / f"killed-{victim}").touch()
    build_it.join()
    assert result == [local(range(100_000), 100_000)]

    names = sorted(mark.name for mark in marks.iterdir())
    assert not any(re.fullmatch(f"finished-.*-{victim}", name) for name in names), names
    assert any(re.fullmatch(r"finished-\d-1-\d+", name) for name in names), names


@pytest.mark.parametrize(
    "value",
    [
        "1.5",
        "float(1.5)",
        "double(1.5)",
        "true",
        "date'2026-01-01'",
        "timestamp'2026-01-01'",
        "timestamp_ntz'2026-01-01'",
        "interval '1' day",
        "array(1)",
        "map('a', 1)",
        "struct(1)",
        "parse_json('1')",
        "'a' collate utf8_lcase",
        "null",
    ],
)
def test_other_types_fail_before_any_job(spark, value):
    df = spark.range(1).select(F.expr(value).alias("k"))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    with pytest.raises(TypeError, match="^column k of type .* cannot be keys: cast it to an integer or to text first"):
        build(df, "k", 10)
    with pytest.raises(TypeError, match=r"one column is needed, not 2 \(k, k\)"):
        build(df.select("k", "k"), "*", 10)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == jobs


def test_other_types_fail_in_contains(spark):
    shared = broadcast(spark, BloomFilter(10))
    with pytest.raises(PythonException, match="TypeError: floats cannot be keys: cast them"):
        spark.range(1).select(contains(F.lit(1.5).cast("double"), shared)).collect()


def test_filters_too_large_to_travel_fail_before_any_job(spark):
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    with pytest.raises(ValueError, match=r"of \d{8} bytes exceeds spark.driver.maxResultSize, which is 67108864: "):
        build(spark.range(1), "id", 60_000_000)
    with pytest.raises(ValueError, match=r"of \d{10} bytes is too large for a row in Spark, which takes 2147482624: "):
        build(spark.range(1), "id", 2_000_000_000)
    with pytest.raises(ValueError):
        build(spark.range(1), "id", 10, fpr=2.0)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == jobs


class LeavesAMark:
    """Makes a file in `folder`, named after the process, when it is unpickled, to a filter."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        mark = f"__import__('tempfile').mkstemp('', str(__import__('os').getpid()) + '-', {str(self.folder)!r})"
        return eval, (f"({mark}, __import__('bloomline').BloomFilter(1000))[1]",)


def test_a_worker_unpickles_the_filter_once(spark, tmp_path):
    shared = broadcast(spark, LeavesAMark(tmp_path))
    # 13 batches in 8 tasks.
    assert spark.range(130_000, numPartitions=8).where(contains("id", shared)).count() == 0
    workers = [mark.name.split("-")[0] for mark in tmp_path.iterdir()]
    assert 1 <= len(workers) == len(set(workers)) < 8


def test_the_examples_in_the_documentation_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (pathlib.Path(__file__).parent.parent / "docs" / "spark.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    orders = spark.range(100_000).select((F.col("id") % 5000).alias("customer"), F.col("id").alias("order"))
    customers = spark.range(0, 5000, 100).select(F.col("id").alias("customer"))
    names = {"spark": spark, "orders": orders, "customers": customers}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 3
    assert sorted(names["joined"].collect()) == sorted(orders.join(customers, "customer").collect())
    assert names["likely"].count() < 2500
