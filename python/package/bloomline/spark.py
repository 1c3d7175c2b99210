"""Filters that a Spark cluster builds and probes. Needs Spark 4.1 or newer.

    keys = build(small, "id", expected_keys=200_000)
    shared = broadcast(spark, keys)
    big.where(contains("id", shared)).join(small, "id")
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, spark_partition_id
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, ShortType, StringType

from . import BloomFilter

__all__ = ["build", "broadcast", "contains"]

# `StringType()` is equal to no type with a collation, under which different bytes can be the same key.
_KEY_TYPES = (StringType(), BinaryType(), ByteType(), ShortType(), IntegerType(), LongType())

# Arrow's binary type and the JVM's arrays end at 2 GiB, and a row needs some bytes of its own.
_MAX_BYTES = 2**31 - 1024


def build(
    df: DataFrame,
    column: str | Column,
    expected_keys: int,
    fpr: float = 0.01,
    *,
    seed: int = 0,
    partitions: int | None = None,
) -> BloomFilter:
    """Builds a filter of the values of one column: text, binary or integers. Nulls are left out.

    Every task makes a filter for `expected_keys` keys, so the number of tasks is limited to `partitions`; the default is
    the number of cores that the cluster has now (`defaultParallelism`), which is too few if executors are added later.
    The filters are united on the executors in a tree, and the result is shrunk to the smallest size that has `fpr`.
    A task that is run again changes nothing.

    Raises `TypeError` for columns of other types, and `ValueError` if the filter is too large to travel: 2 GiB, or
    `spark.driver.maxResultSize`.
    """
    filter = BloomFilter(expected_keys, fpr, seed=seed)
    keys = df.select(column)
    if len(keys.columns) != 1:
        raise TypeError(f"one column is needed, not {len(keys.columns)} ({', '.join(keys.columns)})")
    if keys.schema[0].dataType not in _KEY_TYPES:
        raise TypeError(
            f"column {keys.columns[0]} of type {keys.schema[0].dataType.simpleString()} cannot be keys: cast it to an "
            "integer or to text first (keys are integers, binary, and text with the collation UTF8_BINARY)"
        )
    spark = df.sparkSession.sparkContext
    _check_size(filter.size_bytes, spark._jsc.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g"))
    partitions = partitions or spark.defaultParallelism

    def insert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filter = None
        for batch in batches:
            keys = batch.column(0)
            if keys.null_count < len(keys):
                filter = filter or BloomFilter(expected_keys, fpr, seed=seed)
                filter.update(keys)
        if filter is not None:
            yield _row(filter)

    filters = keys.coalesce(partitions).mapInArrow(insert, "filter binary")
    # In two steps: one task would read all filters, and a deeper tree sends more of them.
    if partitions > 3:
        filters = filters.repartitionById(isqrt(partitions), spark_partition_id())
        filters = filters.mapInArrow(_unite, "filter binary")
    filters = filters.repartition(1).mapInArrow(_unite, "filter binary")
    # As Arrow: `collect` copies the row so often that 120 MB are too much for a driver of 1 GiB.
    for row in filters.toArrow()["filter"]:
        filter |= BloomFilter.from_bytes(row.as_buffer())
    filter.shrink_to_fpr(fpr)
    return filter


def broadcast(spark: SparkSession, filter: BloomFilter) -> Broadcast[BloomFilter]:
    """Sends `filter` to each executor once, for `contains`. Every Python worker there holds a copy of it."""
    return spark.sparkContext.broadcast(filter)


def contains(column: str | Column, broadcasted: Broadcast[BloomFilter]) -> Column:
    """A Boolean column: false where the key is definitely absent from the filter, null where it is null.

    The keys must have the type that the filter was built from; the width of integers does not matter. Columns of other
    types than `build` takes make the query fail with a `TypeError`.
    """

    # `value` unpickles the filter when a Python worker first asks, and keeps it.
    def probe(keys: pa.Array) -> pa.Array:
        return pa.array(broadcasted.value.contains_many(keys))

    return arrow_udf(probe, "boolean")(column)


def _check_size(size: int, max_result: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(
            f"a filter of {size} bytes is too large for a row in Spark, which takes {_MAX_BYTES}: use fewer bits per "
            "key, or split the keys over several filters"
        )
    if 0 < max_result < size:
        raise ValueError(
            f"a filter of {size} bytes exceeds spark.driver.maxResultSize, which is {max_result}: start the session "
            "with a higher one, or use fewer bits per key"
        )


def _unite(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    united = None
    for batch in batches:
        for row in batch.column(0):
            filter = BloomFilter.from_bytes(row.as_buffer())
            if united is None:
                united = filter
            else:
                united |= filter
    if united is not None:
        yield _row(united)


def _row(filter: BloomFilter) -> pa.RecordBatch:
    return pa.record_batch([pa.array([filter.to_bytes()], pa.binary())], ["filter"])
