"""Filters of 100 million keys at 1%, built by a Spark cluster: ours, and Spark's own. Prints Markdown.

    BLOOMLINE_JAR=JAR python spark_fpr.py [KEYS]

Without a jar, Python workers build ours.
"""

import os
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bloomline.spark import broadcast, build, contains

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
ABSENT = 10_000_000
SAMPLE = 100_000

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.jars", os.environ.get("BLOOMLINE_JAR", ""))
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
keys = spark.range(KEYS, numPartitions=8)

start = time.perf_counter()
filter = build(keys, "id", KEYS)
seconds = time.perf_counter() - start
shared = broadcast(spark, filter)
wrong = spark.range(KEYS, KEYS + ABSENT, numPartitions=4).where(contains("id", shared)).count()
lost = spark.range(0, KEYS, 10, numPartitions=4).where(~contains("id", shared)).count()
assert lost == 0

start = time.perf_counter()
theirs = keys._jdf.stat().bloomFilter("id", KEYS, 0.01)
their_seconds = time.perf_counter() - start
their_wrong = sum(theirs.mightContainLong(key) for key in range(KEYS, KEYS + SAMPLE))

print(f"{KEYS:,} keys at 1%; {ABSENT:,} absent keys ({SAMPLE:,} for Spark's own)\n")
print("| | bits | FPR | seconds to build |\n|---|---|---|---|")
print(f"| bloomline | {filter.size_bytes * 8:,} | {wrong / ABSENT:.4%} | {seconds:.0f} |")
print(f"| Spark's `stat.bloomFilter` | {theirs.bitSize():,} | {their_wrong / SAMPLE:.1%} | {their_seconds:.0f} |")
spark.stop()
