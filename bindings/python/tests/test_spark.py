"""`bloomline.spark` on two executor JVMs, each with Python workers of its own, and with the jar in `BLOOMLINE_JAR`."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

pytest.importorskip("pyspark", "4.1", reason="needs pyspark 4.1 or newer")
if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
    pytest.skip("needs Java", allow_module_level=True)

from pyspark import TaskContext
from pyspark.errors import AnalysisException, IllegalArgumentException, PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bloomline import BloomFilter, BloomView, CountingBloomFilter
from bloomline.spark import broadcast, build, contains, register, semi_join_filter

JAR = os.environ.get("BLOOMLINE_JAR", "")
needs_jar = pytest.mark.skipif(not JAR, reason="needs the Java package's jar in BLOOMLINE_JAR")


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.jars", JAR)
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


@pytest.fixture
def workers(monkeypatch):
    """Python workers build and look up, as without the jar."""
    monkeypatch.setattr("bloomline.spark._java", lambda spark: None)


@pytest.fixture(params=["workers", pytest.param("jvm", marks=needs_jar)])
def way(request):
    """Other tests use the JVM if there is a jar."""
    if request.param == "workers":
        request.getfixturevalue("workers")
    return request.param


def unshrunk(keys, expected_keys, fpr=0.01, seed=0):
    filter = BloomFilter(expected_keys, fpr, seed=seed)
    filter.update(keys)
    return filter


def local(keys, expected_keys, fpr=0.01, seed=0):
    """What `build` must return, bit for bit."""
    filter = unshrunk(keys, expected_keys, fpr, seed)
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


def test_integers_of_all_widths_are_the_same_keys(spark, way):
    types = "byte", "short", "int", "long"
    df = spark.range(-100, 100).select(*(F.expr(f"cast(id as {type}) {type}") for type in types))
    filter = build(df, F.col("byte"), 200, seed=2**64 - 1)
    assert filter == local(range(-100, 100), 200, seed=2**64 - 1)
    shared = broadcast(spark, filter)
    assert df.select(*(F.count_if(contains(type, shared)) for type in df.columns)).first() == (200,) * 4


def test_partitions_without_keys_send_no_filter(spark, workers):
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


@pytest.mark.parametrize("fpr, n_modules", [(0.01, 1), (0.000001, 2)])
def test_a_filter_made_too_large_shrinks(spark, fpr, n_modules):
    keys = range(5000)
    filter = build(spark.range(5000), "id", 3_000_000, fpr)
    assert filter == local(keys, 3_000_000, fpr) and filter.n_modules == n_modules
    assert filter.size_bytes < BloomFilter(3_000_000, fpr).size_bytes
    assert filter.estimated_fpr() <= fpr


def test_a_killed_executor_changes_no_bit(spark, way, tmp_path):
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

    even = broadcast(spark, local(range(0, 200_000, 2), 100_000, 1e-6))
    df = spark.range(200_000, numPartitions=2).mapInArrow(slowly, "id long").where(contains("id", even))
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
    assert result == [local(range(0, 200_000, 2), 100_000)]

    names = sorted(mark.name for mark in marks.iterdir())
    assert not any(re.fullmatch(f"finished-.*-{victim}", name) for name in names), names
    assert any(re.fullmatch(r"finished-\d-1-\d+", name) for name in names), names


OTHERS = [
    "1.5", "float(1.5)", "double(1.5)", "true", "date'2026-01-01'", "timestamp'2026-01-01'",
    "timestamp_ntz'2026-01-01'", "interval '1' day", "array(1)", "map('a', 1)", "struct(1)", "parse_json('1')", "'a' collate utf8_lcase", "null",
]  # fmt: skip


def jobs(spark):
    return spark.sparkContext.statusTracker().getJobIdsForGroup()


def test_other_types_fail_before_any_job(spark):
    before = jobs(spark)
    for value in OTHERS:
        df = spark.range(1).select(F.expr(value).alias("k"))
        text = "^column k of type .* cannot be keys: cast it to an integer or to text first"
        with pytest.raises(TypeError, match=text):
            build(df, "k", 10)
    with pytest.raises(TypeError, match=r"one column is needed, not 2 \(k, k\)"):
        build(df.select("k", "k"), "*", 10)
    assert jobs(spark) == before


def test_other_types_fail_in_contains(spark, way):
    error = PythonException if way == "workers" else IllegalArgumentException
    text = {
        "workers": r"TypeError: columns of double \(floats in Arrow\) cannot be keys: cast them",
        "jvm": "keys are integers, binary, and text .*, not double: cast them",
    }[way]
    with pytest.raises(error, match=text):
        column(spark, "double").where(contains("k", broadcast(spark, BloomFilter(10)))).collect()
    # So do keys that never match, unless the filter's kind is unknown.
    for inserted, asked in (("bigint", "string"), ("string", "smallint"), ("bigint", "binary")):
        shared = broadcast(spark, build(column(spark, inserted), "k", 10))
        with pytest.raises(error, match=" looked up in a filter of "):
            column(spark, asked).where(contains("k", shared)).collect()
        of_bytes = BloomFilter.from_bytes(shared.value.to_bytes())
        column(spark, asked).where(contains("k", broadcast(spark, of_bytes))).collect()


def test_a_semi_join_filter_keeps_every_partner(spark):
    big = spark.range(100_000, numPartitions=4).select(F.expr("if(id % 3 = 0, null, id % 5000) as k"), "id")
    # A null, a key twice, and a key that the big side lacks.
    others = spark.sql("select explode(array(null, 100, -7)) as k")
    small = spark.range(0, 5000, 100).select(F.expr("int(id) as k")).union(others)
    likely = semi_join_filter(big, small, "k")
    assert likely.columns == big.columns
    for kind in ("inner", "left_semi", "right"):
        assert Counter(likely.join(small, "k", kind).collect()) == Counter(big.join(small, "k", kind).collect())
    absent = big.join(small, "k", "left_anti").where("k is not null").count()
    expected = absent * build(small, "k", 53).estimated_fpr()
    assert abs(likely.join(small, "k", "left_anti").count() - expected) < 20 * max(1, expected) ** 0.5
    # Names are Spark's: in any case, with a dot, or of a field.
    dotted = [side.withColumnRenamed("k", "k.k") for side in (big, small)]
    nested = [side.select(F.struct("k").alias("s")) for side in (big, small)]
    for sides, on in (((big, small), "K"), (dotted, "`k.k`"), (nested, "s.k")):
        assert semi_join_filter(*sides, on).count() == likely.count()


TYPES = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer",
    "string": "text", "varchar(5)": "text", "binary": "text",
    "void": None, "double": None, "decimal(10,2)": None, "decimal(12,3)": None, "boolean": None, "date": None,
    "string collate UTF8_LCASE": None, "array<bigint>": None,
}  # fmt: skip


def column(spark, type):
    values = {
        "binary": "binary(string(id))",
        "void": "null",
        "date": "date_from_unix_date(id)",
        "string collate UTF8_LCASE": "string(id) collate utf8_lcase",
        "array<bigint>": "array(id)",
    }
    return spark.range(10).select(F.expr(values.get(type, f"cast(id as {type})")).alias("k"))


@pytest.mark.parametrize("type", TYPES)
def test_columns_match_or_are_an_error_before_any_job(spark, type):
    before = jobs(spark)
    for other in TYPES:
        if TYPES[type] and TYPES[type] == TYPES[other]:
            continue
        with pytest.raises(TypeError, match=r"^column k is \S.* in big and \S.* in small, ") as raised:
            semi_join_filter(column(spark, type), column(spark, other), "k")
        for name in (type, other):
            assert f"is {name}" in str(raised.value) or f"and {name}" in str(raised.value) or "varchar" in name
    assert jobs(spark) == before


def test_columns_of_one_kind_match(spark):
    for kind in ("integer", "text"):
        types = [type for type in TYPES if TYPES[type] == kind]
        for type, other in zip(types, types[1:] + types[:1]):
            assert semi_join_filter(column(spark, type), column(spark, other), "k", expected_keys=10).count() == 10


@pytest.mark.parametrize(
    "types, to, casts, partners",
    [
        (("bigint", "string"), "bigint", ["small"], 10),
        (("string", "int"), "bigint", ["big"], 10),
        (("string", "void"), "string", ["small"], 0),
        (("void", "binary"), "binary", ["big"], 0),
        (("date", "date"), "string", ["big", "small"], 10),
    ],
)
def test_the_casts_that_an_error_suggests_keep_the_join(spark, types, to, casts, partners):
    sides = dict(zip(("big", "small"), (column(spark, type) for type in types)))
    casts = [f"{side} = {side}.withColumn('k', {side}['k'].cast('{to}'))" for side in casts]
    with pytest.raises(TypeError) as raised:
        semi_join_filter(**sides, on="k")
    assert str(raised.value).endswith(f": for the filter and the join, write {'; '.join(casts)}")
    for cast in casts:
        exec(cast, sides)
    big, small = sides["big"], sides["small"]
    assert semi_join_filter(big, small, "k", expected_keys=10).join(small, "k").count() == partners


def test_a_column_that_a_side_lacks_is_an_error(spark):
    ids, others = spark.range(9), spark.range(9).select(*(F.col("id").alias(f"c{i}") for i in range(30)))
    with pytest.raises(ValueError, match="^small has no column id; it has c0, c1, .*, c19, ...$"):
        semi_join_filter(ids, others, "id")
    with pytest.raises(ValueError, match="^big has no column x; it has id$"):
        semi_join_filter(ids, ids, "x")
    with pytest.raises(TypeError, match=r"^on names one column, not 2 \(id, id\)$"):
        semi_join_filter(ids.select("id", "id"), ids, "*")
    with pytest.raises(TypeError, match="^on is the name of a column that both sides have, not list: "):
        semi_join_filter(ids, ids, ["id"])
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        semi_join_filter(ids.alias("a").crossJoin(ids.alias("b")), ids, "id")


def test_how_often_a_side_is_read(spark):
    read = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    ids, counted = spark.range(9), spark.range(100).mapInArrow(count, "id long")
    # Without keys, not at all.
    for small in (spark.range(0), ids.select(F.lit(None).cast("long").alias("id"))):
        for expected_keys in (None, 10):
            assert semi_join_filter(counted, small, "id", expected_keys=expected_keys).count() == 0
    assert read.value == 0
    semi_join_filter(ids, counted, "id")
    assert read.value == 200, "to count its keys, too"
    semi_join_filter(ids, counted, "id", expected_keys=100)
    assert read.value == 300


def test_what_is_no_broadcast_filter_is_an_error_at_once(spark, tmp_path):
    filter = local(["a"], 10)
    filter.save(tmp_path / "a.bloom")
    path = str(tmp_path / "a.bloom")
    for wrong, right in (
        (BloomView(filter.to_bytes()), "view.to_filter()"),
        (path, f"BloomFilter.open({path!r}, mmap=False)"),
        (pathlib.Path(path), f"BloomFilter.open({path!r}, mmap=False)"),
        (filter.to_bytes(), "BloomFilter.from_bytes(data)"),
        (None, "filter"),
    ):
        line, name = f"broadcast(spark, {right})", type(wrong).__name__
        with pytest.raises(TypeError, match=f"not {name}: write {re.escape(line)}$"):
            broadcast(spark, wrong)
        with pytest.raises(TypeError, match=f"not {name}: write {re.escape(f'contains({path!r}, {line})')}$"):
            contains(path, wrong)
        # The line works.
        if right != "filter":
            names = {"BloomFilter": BloomFilter, "view": wrong, "data": wrong, "broadcast": broadcast, "spark": spark}
            assert eval(line, names).value == filter
    with pytest.raises(TypeError, match=r"not BloomFilter: write contains\(column, broadcast\(spark, filter\)\)$"):
        contains(F.col("id"), filter)
    counting = CountingBloomFilter(10)
    counting.add("a")
    assert spark.sql("select 'a' as k").where(contains("k", broadcast(spark, counting))).count() == 1


def test_filters_too_large_to_travel_fail_before_any_job(spark):
    before = jobs(spark)
    with pytest.raises(ValueError, match=r"of \d{8} bytes exceeds spark.driver.maxResultSize, which is 67108864: "):
        build(spark.range(1), "id", 60_000_000)
    with pytest.raises(ValueError, match=r"of \d{10} bytes is too large for a row in Spark, which takes 2147482624: "):
        build(spark.range(1), "id", 2_000_000_000)
    with pytest.raises(ValueError):
        build(spark.range(1), "id", 10, fpr=2.0)
    assert jobs(spark) == before


class LeavesAMark:
    """Makes a file in `folder`, named after the process, when it is unpickled, to a filter."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        mark = f"__import__('tempfile').mkstemp('', str(__import__('os').getpid()) + '-', {str(self.folder)!r})"
        return eval, (f"({mark}, __import__('bloomline').BloomFilter(1000))[1]",)


def test_a_worker_unpickles_the_filter_once(spark, tmp_path):
    shared = spark.sparkContext.broadcast(LeavesAMark(tmp_path))
    # 13 batches in 8 tasks.
    assert spark.range(130_000, numPartitions=8).where(contains("id", shared)).count() == 0
    workers = [mark.name.split("-")[0] for mark in tmp_path.iterdir()]
    assert 1 <= len(workers) == len(set(workers)) < 8


@needs_jar
@pytest.mark.parametrize("fpr, whole_stage", [(0.01, "true"), (0.0001, "false")])
def test_the_jvm_answers_as_workers_do_from_the_same_bytes(spark, fpr, whole_stage):
    register(spark)
    spark.conf.set("spark.sql.codegen.wholeStage", whole_stage)
    columns = {
        "text": "concat('käse-', id)",
        "bytes": "unhex(format_string('%016X', id))",
        "long": "id - 2500",
        "int": "int(id - 2500)",
        "short": "smallint(id - 2500)",
        "byte": "tinyint(id % 256 - 128)",
    }
    df = spark.range(5000).select(*(F.expr(f"if(id % 7 != 0, {key}, null)").alias(name) for name, key in columns.items()))
    rows = df.collect()
    for name in columns:
        filter = BloomFilter(500, fpr, seed=2**64 - 3)
        filter.update([row[name] for row in rows[:1000:10] if row[name] is not None])
        filter = BloomFilter.from_bytes(filter.to_bytes())
        literal = F.lit(filter.to_bytes())
        answers = df.select(
            contains(name, spark.sparkContext.broadcast(filter)).alias("workers"),
            contains(name, broadcast(spark, filter)).alias("broadcast"),
            F.call_function("bloomline_contains", literal, name).alias("literal"),
            F.call_function("bloomline_contains", F.when(F.rand() < 2, literal), name).alias("column"),
        )
        counted = Counter(answers.collect())
        assert counted.keys() == {(answer,) * 4 for answer in (True, False, None)}
        assert counted[(None,) * 4] == 715
        assert counted[(True,) * 4] >= 85
    spark.conf.set("spark.sql.codegen.wholeStage", "false")


@needs_jar
def test_sql_builds_filters_and_looks_up_in_columns_of_them(spark):
    register(spark)
    register(spark)
    spark.range(3000).createOrReplaceTempView("ids")
    days = "select id % 3 as day, bloomline_filter(id, 3000, 0.01) as filter from ids group by day"
    filters = spark.sql(days).collect()
    assert {row.day: BloomFilter.from_bytes(row.filter) for row in filters} == {
        day: unshrunk(range(day, 3000, 3), 3000) for day in range(3)
    }
    nothing = spark.sql("select bloomline_filter(if(id < 0, id, null), 10, 0.01) from ids").first()[0]
    assert BloomFilter.from_bytes(nothing) == BloomFilter(10)
    assert spark.sql("select bloomline_contains(null, 1), bloomline_contains(x'00', null)").first() == (None, None)
    grouped = f"select bloomline_contains(filter, id), count(*) from ids join ({days}) on day = id % 3 group by 1"
    assert spark.sql(grouped).collect() == [(True, 3000)]


@needs_jar
@pytest.mark.parametrize(
    "call, error",
    [
        ("bloomline_contains(x'00')", "write bloomline_contains(filter, key)"),
        ("bloomline_contains('a', 1)", "a filter is binary, not string"),
        ("bloomline_contains(x'00', 1.5)", "keys are integers, binary, and text with the collation UTF8_BINARY, not decimal"),
        ("bloomline_contains(x'00', 'a' collate utf8_lcase)", "not string collate UTF8_LCASE: cast them to an integer or to"),
        ("bloomline_contains(x'00', true)", "not boolean: cast them"),
        ("bloomline_contains(x'00', date'2026-01-01')", "not date: cast them"),
        ("bloomline_filter(1, 10)", "write bloomline_filter(key, expected_keys, fpr)"),
        ("bloomline_filter(1.5, 10, 0.01)", "not decimal(2,1): cast them"),
        ("bloomline_filter(1, id, 0.01)", "a filter's size is a constant, not id"),
        ("bloomline_filter(1, null, 0.01)", "a filter's size is a constant, not NULL"),
        ("bloomline_filter(1, 10, 2.0)", "a false-positive rate must be between 0 and 1, both excluded, not 2.0"),
    ],
)
def test_sql_refuses_what_is_no_filter_and_no_key(spark, call, error):
    register(spark)
    with pytest.raises(IllegalArgumentException, match=re.escape(error)):
        spark.range(1).selectExpr(call)


@needs_jar
def test_damaged_bytes_are_an_error(spark):
    register(spark)
    whole = BloomFilter(1000).to_bytes()
    for damaged in (b"", whole[1:], bytes([whole[0] ^ 1]) + whole[1:]):
        with pytest.raises(Exception, match="DecodeException|the bytes were cut|is damaged"):
            spark.range(1).select(F.call_function("bloomline_contains", F.lit(damaged), "id")).collect()


def test_without_the_jar_sql_has_no_functions(spark, workers):
    with pytest.raises(RuntimeError, match="start the session with spark.jars set to the Java package's jar"):
        register(spark)


def test_the_examples_in_the_documentation_run(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (pathlib.Path(__file__).parent.parent / "docs" / "spark.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    orders = spark.range(100_000).select((F.col("id") % 5000).alias("customer"), F.col("id").alias("order"))
    customers = spark.range(0, 5000, 100).select(F.col("id").alias("customer"))
    names = {"spark": spark, "orders": orders, "customers": customers}
    join, trial, steps = blocks
    exec(join, names)
    assert sorted(names["joined"].collect()) == sorted(orders.join(customers, "customer").collect())
    exec(steps, names)
    assert names["likely"].count() < 2500
    assert BloomFilter.open("customers.bloom", mmap=False) == names["keys"]
    exec(trial, names)
    assert f"$ python trial.py\n{capsys.readouterr().out}```" in page
