"""100 million integers looked up in a filter of 1 million: in the JVM, by Python workers, and in Spark's own filter.

    python spark_lookup.py JAR [ROWS] [ROUNDS]

All filters have 10 bits per key. 1 % of the rows are present. As Spark's runtime filter, Spark's own is asked for the
`xxhash64` of each key. Rounds are interleaved. Prints Markdown.
"""

import os
import statistics
import sys
import time

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from bloomline.spark import broadcast, build, contains

KEYS = 1_000_000

jar, rows, rounds = sys.argv[1], int((sys.argv[2:] or [100_000_000])[0]), int((sys.argv[3:] or [3])[0])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[2]").config("spark.jars", jar).config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
jvm = spark.sparkContext._jvm

keys = spark.range(0, 100 * KEYS, 100)
filter = build(keys, "id", KEYS)
hashed = keys.select(F.xxhash64("id").alias("hash"))
theirs = hashed._jdf.stat().bloomFilter("hash", KEYS, 8 * filter.size_bytes)
stream = jvm.java.io.ByteArrayOutputStream()
theirs.writeTo(stream)
catalyst, utils = jvm.org.apache.spark.sql.catalyst.expressions, jvm.org.apache.spark.sql.classic.ExpressionUtils
literal = utils.expression(F.lit(bytes(stream.toByteArray()))._jc)


def might_contain(hash):
    return Column(utils.column(catalyst.BloomFilterMightContain(literal, utils.expression(hash._jc))))


python = spark.sparkContext.broadcast(filter)
WAYS = {
    "no filter": F.col("id") >= 0,
    "`contains` by Python workers": contains("id", python),
    "`contains` in the JVM": contains("id", broadcast(spark, filter)),
    "`bloomline_contains` of a literal": F.call_function("bloomline_contains", F.lit(filter.to_bytes()), F.col("id")),
    "Spark's `might_contain` of `xxhash64`": might_contain(F.xxhash64("id")),
}

times, found = {name: [] for name in WAYS}, {}
for round in range(-1, rounds):
    for name, column in WAYS.items():
        start = time.perf_counter()
        found[name] = spark.range(rows, numPartitions=4).where(column).count()
        seconds = time.perf_counter() - start
        print(f"round {round}: {name}: {seconds:.2f} s, {found[name]} found", file=sys.stderr)
        # The first round only warms up the JVM.
        if round >= 0:
            times[name].append(seconds)

print(f"{rows:,} rows, {filter.size_bytes:,} bytes; median of {rounds} interleaved rounds (least to most)\n")
print("| lookup | seconds | rows found |\n|---|---:|---:|")
for name, all in times.items():
    print(f"| {name} | {statistics.median(all):.1f} ({min(all):.1f} to {max(all):.1f}) | {found[name]:,} |")
spark.stop()
