"""Filters that a Spark cluster builds and probes. Needs Spark 4.1 or newer.

    semi_join_filter(big, small, "id").join(small, "id")

In three steps, to keep the filter or to use it again:

    keys = build(small, "id", expected_keys=200_000)
    shared = broadcast(spark, keys)
    big.where(contains("id", shared)).join(small, "id")

Python workers build and probe the filters. With the jar of the Java package, the JVM does, which is faster and needs no
package on the executors:

    spark = SparkSession.builder.config("spark.jars", "bloomline-0.1.0.jar").getOrCreate()
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from math import isqrt
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.java_gateway import JavaClass
from pyspark import Broadcast
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, call_function, lit, spark_partition_id
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
)

from . import BloomFilter, BloomView, CountingBloomFilter, ScalableBloomFilter, StandardBloomFilter

__all__ = ["broadcast", "build", "contains", "register", "semi_join_filter"]

_INTEGERS = (ByteType(), ShortType(), IntegerType(), LongType())
# `StringType()` equals no type with a collation. Under a collation, different bytes can be the same key.
_TEXT = (StringType(), BinaryType())
_KEY_TYPES = _INTEGERS + _TEXT
_KEYS_ARE = "keys are integers, binary, and text with the collation UTF8_BINARY"

_Filter = BloomFilter | CountingBloomFilter | ScalableBloomFilter | StandardBloomFilter

# Arrow's binary type and the JVM's arrays have at most 2 GiB, and a row needs some bytes more.
_MAX_BYTES = 2**31 - 1024

# The filters that `broadcast` has also sent to the JVMs, as a literal for SQL and the kinds of the filter's keys.
_IN_JVM: WeakKeyDictionary[Broadcast[_Filter], tuple[Column, int]] = WeakKeyDictionary()


def register(spark: SparkSession) -> None:
    """Registers the SQL functions of the Java package in a session.

    The aggregate `bloomline_filter(key, expected_keys, fpr)` returns a filter as binary.
    `bloomline_contains(filter, key)` is false where the key is definitely absent, and null where the filter or the key
    is null.

    Raises `RuntimeError` if the session's JVM does not have the jar.
    """
    if _java(spark) is None:
        raise RuntimeError(
            "the JVM has no bloomline.spark.Functions: start the session with spark.jars set to the Java package's jar"
        )


def semi_join_filter(
    big: DataFrame,
    small: DataFrame,
    on: str,
    fpr: float = 0.01,
    *,
    expected_keys: int | None = None,
    seed: int = 0,
    partitions: int | None = None,
) -> DataFrame:
    """Returns `big` without most of the rows that have no partner in `small`. Join the result instead of `big`.

    The join's result is the same if it is an inner or a left semi join, or an outer join that keeps only the rows of
    `small`. `fpr` is the fraction of rows without a partner that remain. Rows whose key is null are dropped.

    `small` is read three times, to count its rows, to build the filter, and by your join, so cache it if it is
    expensive. With `expected_keys`, the number of distinct keys or more, its rows are not counted. Each read must
    return the same rows, or the join loses some. For example, write a random sample to a table before you use it.

    `seed` and `partitions` are passed to `build`.

    Raises `ValueError` if a side has no column `on`, and `TypeError` if `build` does not accept a column's type or the
    keys never match, such as text and integers. Integers of any width match, and text matches binary.
    """
    if not isinstance(on, str):
        raise TypeError(
            f"on is the name of a column that both sides have, not {type(on).__name__}: for a key of several columns, "
            "add a column to both sides that joins them as text, with a separator that none of them contains"
        )
    _check_types(on, _type_of("big", big, on), _type_of("small", small, on))
    if expected_keys is None:
        expected_keys = max(1, small.count())
    keys = build(small, on, expected_keys, fpr, seed=seed, partitions=partitions)
    # Without keys, Spark need not read `big`.
    found = contains(on, broadcast(big.sparkSession, keys)) if keys.fill_ratio else lit(False)
    return big.where(found)


def build(
    df: DataFrame,
    column: str | Column,
    expected_keys: int,
    fpr: float = 0.01,
    *,
    seed: int = 0,
    partitions: int | None = None,
) -> BloomFilter:
    """Builds a filter of the values of one column, which are text, binary or integers. Skips nulls.

    Each task makes a filter for `expected_keys` keys. There are at most `partitions` tasks, by default as many as the
    cluster has cores now (`defaultParallelism`), which is too few if executors are added later. The executors unite the
    filters, and the result is shrunk to the smallest size that has `fpr`. Retried tasks change nothing.

    Raises `TypeError` for columns of other types, and `ValueError` if the filter is too large to be sent, because it
    exceeds 2 GiB or `spark.driver.maxResultSize`.
    """
    filter = BloomFilter(expected_keys, fpr, seed=seed)
    keys = df.select(column)
    if len(keys.columns) != 1:
        raise TypeError(f"one column is needed, not {len(keys.columns)} ({', '.join(keys.columns)})")
    if keys.schema[0].dataType not in _KEY_TYPES:
        raise TypeError(
            f"column {keys.columns[0]} of type {keys.schema[0].dataType.simpleString()} cannot be keys: cast it to an "
            f"integer or to text first ({_KEYS_ARE})"
        )
    # `mapInArrow` fails for some names, such as those with a dot.
    keys = keys.toDF("key")
    spark = df.sparkSession.sparkContext
    _check_size(filter.size_bytes, spark._jsc.sc().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g"))
    partitions = partitions or spark.defaultParallelism
    keys = keys.coalesce(partitions)
    if java := _java(df.sparkSession):
        built = _built_in_jvm(java, keys, filter)
    else:
        # As Arrow, because `collect` copies the row so often that 120 MB are too much for a driver of 1 GiB.
        built = _filters(_built_by_workers(keys, filter, isqrt(partitions)).toArrow())
    for other in built:
        filter |= other
    filter.shrink_to_fpr(fpr)
    return filter


def _built_in_jvm(java: Any, keys: DataFrame, empty: BloomFilter) -> Iterator[BloomFilter]:
    seed = empty.seed - (empty.seed >> 63 << 64)
    are_integers = keys.schema[0].dataType in _INTEGERS
    keys = keys.select(keys["key"].cast("bigint" if are_integers else "binary"))
    with TemporaryDirectory(dir=keys.sparkSession.sparkContext._temp_dir) as folder:
        file = Path(folder) / "filter"
        java.build(keys._jdf, empty.expected_keys, empty.fpr, seed, str(file))
        if file.exists():
            # With the kind of keys that `update` would record.
            yield BloomFilter._restore(file.read_bytes(), None, 1 if are_integers else 2)


def _built_by_workers(keys: DataFrame, empty: BloomFilter, groups: int) -> DataFrame:
    expected_keys, fpr, seed = empty.expected_keys, empty.fpr, empty.seed

    def insert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filter = None
        for batch in batches:
            keys = batch.column(0)
            if keys.null_count < len(keys):
                filter = filter or BloomFilter(expected_keys, fpr, seed=seed)
                filter.update(keys)
        if filter is not None:
            yield _row(filter)

    filters = keys.mapInArrow(insert, _ROW)
    # In two steps, because in one step a single task would read all filters, and a deeper tree would send more of them.
    if groups > 1:
        filters = filters.repartitionById(groups, spark_partition_id()).mapInArrow(_unite, _ROW)
    return filters.repartition(1).mapInArrow(_unite, _ROW)


def broadcast(spark: SparkSession, filter: _Filter) -> Broadcast[_Filter]:
    """Sends `filter` to each executor once, for `contains` in this session. Each Python worker there holds a copy.

    With the jar, an executor holds one copy of a `BloomFilter`, in the JVM, and starts no workers.
    """
    if not isinstance(filter, _Filter):
        wrong, right = type(filter).__name__, _as_filter(filter)
        raise TypeError(f"a filter is needed, not {wrong}: write broadcast(spark, {right})")
    context = spark.sparkContext
    broadcasted = context.broadcast(filter)
    if isinstance(filter, BloomFilter) and (java := _java(spark)):
        _, (data, _, kinds, *_) = filter.__reduce__()
        with TemporaryDirectory(dir=context._temp_dir) as folder:
            file = Path(folder) / "filter"
            file.write_bytes(data)
            _IN_JVM[broadcasted] = Column(java.broadcast(context._jsc, str(file))), kinds
    return broadcasted


def contains(column: str | Column, broadcasted: Broadcast[_Filter]) -> Column:
    """Returns a Boolean column, false where the key is definitely absent from the filter, and null where it is null.

    The column must have the type that the filter was built from, but integers may differ in width. Otherwise the query
    fails with a `TypeError` or, with the jar, is not accepted. Two mistakes raise no error and drop nearly all rows.
    The first is a column with a collation, without the jar. The second is text for integers, or the reverse, if the
    filter was read from bytes or a file.
    """

    if not isinstance(broadcasted, Broadcast):
        wrong, right = type(broadcasted).__name__, _as_filter(broadcasted)
        name = repr(column) if isinstance(column, str) else "column"
        raise TypeError(f"a broadcast filter is needed, not {wrong}: write contains({name}, broadcast(spark, {right}))")

    if broadcasted in _IN_JVM:
        filter, kinds = _IN_JVM[broadcasted]
        return call_function("bloomline_contains", filter, column, lit(kinds))

    # `value` unpickles the filter when a Python worker first reads it, and keeps it.
    def probe(keys: pa.Array) -> pa.Array:
        return broadcasted.value.contains_many(keys)

    return arrow_udf(probe, "boolean")(column)


def _java(spark: SparkSession) -> Any:
    """Registers and returns the class `bloomline.spark.Functions`, or None if the session's JVM has no such class."""
    functions = spark.sparkContext._jvm.bloomline.spark.Functions
    if not isinstance(functions, JavaClass):
        return None
    functions.register(spark._jsparkSession)
    return functions


def _as_filter(value: object) -> str:
    """The expression that turns a wrong argument into a filter to broadcast."""
    if isinstance(value, (str, PathLike)):
        return f"BloomFilter.open({str(value)!r}, mmap=False)"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "BloomFilter.from_bytes(data)"
    return "view.to_filter()" if isinstance(value, BloomView) else "filter"


def _type_of(side: str, df: DataFrame, on: str) -> DataType:
    try:
        keys = df.select(on)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            raise
        others = ", ".join(df.columns[:20]) + (", ..." if len(df.columns) > 20 else "")
        raise ValueError(f"{side} has no column {on}; it has {others or 'none'}") from None
    if len(keys.columns) != 1:
        raise TypeError(f"on names one column, not {len(keys.columns)} ({', '.join(keys.columns)})")
    return keys.schema[0].dataType


def _check_types(on: str, big: DataType, small: DataType) -> None:
    if any(big in kind and small in kind for kind in (_INTEGERS, _TEXT)):
        return
    types = f"column {on} is {big.simpleString()} in big and {small.simpleString()} in small"
    cast = "{0} = {0}.withColumn({1!r}, {0}[{1!r}].cast({2!r}))".format
    for side, wrong, right in (("big", big, small), ("small", small, big)):
        # Spark itself casts these types in a join, so the join's result stays the same.
        if (wrong == StringType() and right in _INTEGERS) or (wrong == NullType() and right in _KEY_TYPES):
            to = "bigint" if right in _INTEGERS else right.simpleString()
            raise TypeError(f"{types}, which never match: for the filter and the join, write {cast(side, on, to)}")
    if big == small:
        casts = "; ".join(cast(side, on, "string") for side in ("big", "small"))
        raise TypeError(f"{types}, and {_KEYS_ARE}: for the filter and the join, write {casts}")
    raise TypeError(f"{types}, and {_KEYS_ARE}: cast both to one of these types, for the filter and the join")


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
        for filter in _filters(batch):
            if united is None:
                united = filter
            else:
                united |= filter
    if united is not None:
        yield _row(united)


# A pickled filter, in two parts, because `pickle` would copy the bytes.
_ROW = "filter binary, rest binary"


def _row(filter: BloomFilter) -> pa.RecordBatch:
    restore, (data, *rest) = filter.__reduce__()
    columns = [pa.array([part], pa.binary()) for part in (data, pickle.dumps((restore, rest)))]
    return pa.record_batch(columns, ["filter", "rest"])


def _filters(rows: pa.RecordBatch | pa.Table) -> Iterator[BloomFilter]:
    for data, parts in zip(rows["filter"], rows["rest"]):
        restore, rest = pickle.loads(parts.as_buffer())
        yield restore(data.as_buffer(), *rest)
