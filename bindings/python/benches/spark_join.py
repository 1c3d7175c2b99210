"""Inner join of 20 million rows with 200 thousand keys: as it is, with a filter of ours, and with Spark's own.

    BLOOMLINE_JAR=JAR python spark_join.py [ROUNDS] [FOLDER]

Orders (20 million rows, five columns, Parquet) are joined with the tenth of 2 million customers that a predicate selects;
orders are spread evenly over 20 million customer numbers, so that 1 % of them join. Broadcast joins are disabled, to stand
for a small side that is too large for them, and the thresholds of Spark's own filter lowered, which would not apply here.
Rounds are interleaved; the time with our filter includes counting the customers and building it. Prints Markdown.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

import bloomline.spark

ROWS = 20_000_000
CUSTOMERS = 2_000_000

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="spark_join-"))
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local-cluster[2,1,1536]")
    .config("spark.executor.memory", "1536m")
    .config("spark.jars", os.environ["BLOOMLINE_JAR"])
    .config("spark.ui.enabled", "false")
    .config("spark.sql.autoBroadcastJoinThreshold", "-1")
    .config("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold", "0")
    .config("spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold", "1g")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def number(row):
    """The customer's number for a row: a permutation, so that keys are neither sorted nor dense in files."""
    return F.expr(f"pmod({row} * 7919 + 12345, {ROWS})")


if not (folder / "customers" / "_SUCCESS").exists():
    orders = spark.range(ROWS, numPartitions=16).select(
        F.format_string("C%010d", number("id")).alias("customer"),
        F.col("id").alias("order"),
        (F.rand(1) * 1000).alias("amount"),
        F.expr("date'2020-01-01' + int(id % 2000)").alias("day"),
        F.md5(F.col("id").cast("string")).alias("note"),
    )
    orders.write.mode("overwrite").parquet(str(folder / "orders"))
    customers = spark.range(CUSTOMERS, numPartitions=4).select(
        F.format_string("C%010d", number("id * 10")).alias("customer"),
        (F.col("id") % 10).alias("segment"),
        F.sha1(F.col("id").cast("string")).alias("name"),
    )
    customers.write.mode("overwrite").parquet(str(folder / "customers"))

orders = spark.read.parquet(str(folder / "orders"))
customers = spark.read.parquet(str(folder / "customers")).where("segment = 3")


def plain():
    return orders


def ours():
    return bloomline.spark.semi_join_filter(orders, customers, "customer")


def by_workers():
    java, bloomline.spark._java = bloomline.spark._java, lambda spark: None
    try:
        return ours()
    finally:
        bloomline.spark._java = java


WAYS = {
    "without a filter": plain,
    "`bloomline.spark`, with the jar": ours,
    "`bloomline.spark`, by Python workers": by_workers,
    "Spark's runtime filter": plain,
}


def shuffled(group):
    """Records that the stages of a job group have written for shuffles."""
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs for stage in job.stageIds if tracker.getStageInfo(stage)}
    return sum(store.lastStageAttempt(stage).shuffleWriteRecords() for stage in stages)


def run(name, group):
    spark.conf.set("spark.sql.optimizer.runtime.bloomFilter.enabled", str(name.startswith("Spark")).lower())
    spark.sparkContext.setJobGroup(group, name)
    start = time.perf_counter()
    joined = WAYS[name]().join(customers, "customer")
    plan = joined._jdf.queryExecution().executedPlan().toString()
    assert "SortMergeJoin" in plan and ("might_contain" in plan) == name.startswith("Spark"), plan
    sums = Observation()
    # All columns are used, and the sum shows that the rows are the same.
    joined = joined.observe(sums, F.count("*").alias("rows"), F.sum(F.xxhash64("*") % 1_000_003).alias("hash"))
    joined.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, shuffled(group), sums.get


times, records, results = {name: [] for name in WAYS}, {}, []
for round in range(-1, rounds):
    for name in WAYS:
        seconds, records[name], result = run(name, f"{round} {name}")
        results.append(result)
        print(f"round {round}: {name}: {seconds:.1f} s", file=sys.stderr)
        # The first round only warms up the JVMs.
        if round >= 0:
            times[name].append(seconds)
assert all(result == results[0] for result in results), results

base = statistics.median(times["without a filter"])
print(f"{results[0]['rows']} rows joined; median of {rounds} interleaved rounds\n")
print("| | rows shuffled | | seconds | |\n|---|---|---|---|---|")
for name in WAYS:
    seconds = statistics.median(times[name])
    print(
        f"| {name} | {records[name]:,} | 1/{records['without a filter'] / records[name]:.1f} "
        f"| {seconds:.1f} ({min(times[name]):.1f} to {max(times[name]):.1f}) | {seconds / base:.2f} |"
    )
spark.stop()
