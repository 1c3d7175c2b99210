"""What type checkers make of the package: checked by mypy --strict and pyright, never run."""

import mmap
from array import array
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Never, assert_type

import bloomline
from bloomline import (
    BloomFilter,
    BloomView,
    CountingBloomFilter,
    DecodeError,
    FileIndex,
    FilterBank,
    FilterBuilder,
    KeyKindWarning,
    ScalableBloomFilter,
    StandardBloomFilter,
)


def numbers() -> Iterator[int]:
    yield 1


class Record:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise NotImplementedError


class Column:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        raise NotImplementedError


class Frame(Record):
    """As pandas' and polars' are."""

    @property
    def dtypes(self) -> list[str]:
        raise NotImplementedError

    def to_numpy(self) -> npt.NDArray[Any]:
        raise NotImplementedError


class Relation(Record):
    """As DuckDB's are."""

    @property
    def dtypes(self) -> list[str]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> "Relation":
        raise NotImplementedError


class Series(Record):
    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    def to_numpy(self, copy: bool = False) -> npt.NDArray[Any]:
        raise NotImplementedError


def filters(path: Path, some: bool, column: Column) -> None:
    f = BloomFilter(1_000)
    assert_type((f, BloomFilter(1_000, 0.001, seed=7)), tuple[BloomFilter, BloomFilter])
    assert_type(BloomFilter.with_bits_per_key(1_000, 10, most_modules=1, seed=7), BloomFilter)
    BloomFilter(1_000, 0.01, 7)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    assert_type([f.add("key"), f.add(b"key"), f.add(17), f.add(np.uint8(17)), "key" in f, f == 3], list[bool])
    f.add(1.5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    f.add(bytearray(b"key"))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    f.add(None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

    f.update(["key", b"key", 17])
    for keys in (numbers(), {"key": 1.5}, np.arange(3), column, Record()):
        f.update(keys)
    f.update(17)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    f.update([1.5])  # type: ignore[list-item] # pyright: ignore[reportArgumentType, reportCallIssue]

    assert_type(f.contains_many(["key"]), npt.NDArray[np.bool_])
    assert_type(f.contains_many(np.arange(3)), npt.NDArray[np.bool_])
    assert_type(f.contains_many(numbers(), nulls=True), npt.NDArray[np.bool_])
    assert_type(f.contains_many(Frame()), npt.NDArray[np.bool_])
    assert_type(f.contains_many(Series(), nulls=None), npt.NDArray[np.bool_])
    assert_type(f.add_many(numbers(), nulls=True), npt.NDArray[np.bool_])
    assert_type(f.add_many(Series()), npt.NDArray[np.bool_])
    untyped: Any = column  # as pyarrow's arrays
    f.contains_many(untyped).to_pylist()
    for answers in (f.add_many(column), f.contains_many(Record(), nulls=False), f.contains_many(Relation())):
        answers.to_pylist()
    f.contains_many(Frame()).to_pylist()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    f.contains_many([1], nulls=0)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    f.contains_many([1.5])  # type: ignore[list-item] # pyright: ignore[reportArgumentType, reportCallIssue]

    view = BloomFilter.open(path)
    f |= f
    f &= view
    assert_type([f, f | f, f & view, view | view, BloomFilter.union(x for x in (f, view)), f.copy()], list[BloomFilter])
    f | 3  # type: ignore[operator] # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
    {f}  # pyright: ignore[reportUnhashable, reportUnusedExpression]

    assert_type([f.k, f.n_blocks, f.n_modules, f.size_bytes, f.seed], list[int])
    assert_type([f.fill_ratio, f.estimated_fpr()], list[float])
    assert_type((f.expected_keys, f.fpr), tuple[int | None, float | None])
    assert_type([f.estimated_keys(), view.estimated_union(f), f.estimated_intersection(view)], list[tuple[float, float]])
    f.k = 3  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]

    assert_type(f.to_bytes(), bytes)
    assert_type(BloomFilter.from_bytes(f.to_bytes()), BloomFilter)
    f.save(path)
    f.save(str(path))
    assert_type([BloomFilter.open(path), BloomFilter.open(path, mmap=True)], list[BloomView])
    assert_type(BloomFilter.open(path, mmap=False), BloomFilter)
    assert_type(BloomFilter.open(path, mmap=some), BloomView | BloomFilter)
    assert_type(BloomFilter.open(path, verify=some), BloomView)
    BloomFilter.open(path, mmap=False, verify=False)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    assert issubclass(DecodeError, ValueError) and issubclass(KeyKindWarning, UserWarning)
    assert bloomline.__all__
    assert_type(bloomline.__version__, str)
    opened = bloomline.open(path, mmap=some, verify=True)
    if isinstance(opened, FileIndex):
        assert_type((opened.find(17), len(opened), opened.rule, opened.fpr), tuple[list[str], int, str, float])
        assert_type([opened.find_many(column), opened.find_many(["key"])], list[list[list[str]]])
        opened.save(path)
        assert_type((opened.names, opened.to_bytes(), opened.closed), tuple[list[str], bytes, bool])
    elif not isinstance(opened, (FilterBank, BloomView)):
        opened.add("key")
    opened.add("key")  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue]


def views(shared: memoryview, mapped: mmap.mmap, words: npt.NDArray[np.uint64]) -> None:
    for buffer in (b"", bytearray(), memoryview(b""), shared, mapped, words, array("B")):
        view = BloomView(buffer)
        assert_type([view, BloomView(buffer, verify=False)], list[BloomView])
        assert_type(view.to_filter(), BloomFilter)
        assert_type([b"key" in view, view.closed, view == view.to_filter()], list[bool])
        assert_type([view.fill_ratio, view.estimated_fpr()], list[float])
        assert_type(view.contains_many([1, 2]), npt.NDArray[np.bool_])
        view.verify()
        with view as same, BloomFilter.open("f.bloom") as mapping:
            assert_type((same, mapping), tuple[BloomView, BloomView])
        assert_type(view.close(), None)
        view.add("key")  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    BloomView("text")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def others(path: Path) -> None:
    builder = FilterBuilder(0.01, seed=7)
    builder.update(np.arange(3))
    assert_type([builder, FilterBuilder.with_bits_per_key(10, most_modules=None)], list[FilterBuilder])
    assert_type(builder.finish(), BloomFilter)
    assert_type([len(builder), builder.seed, builder.size_bytes], list[int])
    assert_type(builder.fpr, float | None)
    builder.add(1.5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    "key" in builder  # type: ignore[operator] # pyright: ignore[reportOperatorIssue, reportUnusedExpression]

    counting = CountingBloomFilter(1_000)
    assert_type((counting.remove("key"), counting.count("key"), counting.to_filter()), tuple[bool, int, BloomFilter])
    assert_type(counting.remove_many(numbers()), npt.NDArray[np.bool_])
    assert_type(CountingBloomFilter.open(path), CountingBloomFilter)
    counting |= counting  # type: ignore[operator] # pyright: ignore[reportOperatorIssue]

    scalable = ScalableBloomFilter(1_000, seed=3)
    assert_type((scalable.inserted_keys, scalable.fpr), tuple[int, float])
    assert_type([ScalableBloomFilter.union([scalable]), ScalableBloomFilter.from_bytes(b"")], list[ScalableBloomFilter])
    scalable.k  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]

    standard = StandardBloomFilter(1_000)
    assert_type(standard.size_bits, int)
    assert_type([standard | standard, StandardBloomFilter.open(path)], list[StandardBloomFilter])
    standard | BloomFilter(1_000)  # type: ignore[operator] # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
    standard.n_blocks  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def files(path: Path, f: BloomFilter, view: BloomView, mapped: mmap.mmap) -> None:
    FileIndex({"f": f, "g": view, "h": None}, 0.01, rule="lines")
    FileIndex([(b"f", f), (path, None)], 0.01)
    FileIndex([f], 0.01)  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    assert_type(FilterBuilder.for_index(0.01), FilterBuilder)
    for file in (path.open("rb"), BytesIO(), mapped):
        assert_type((BloomFilter.open(file), BloomFilter.open(file, mmap=False)), tuple[BloomView, BloomFilter])
        assert_type((FilterBank.open(file), FileIndex.open(file, verify=False)), tuple[FilterBank, FileIndex])
        bloomline.open(file)
    with FileIndex.open(path) as index, path.open("rb", buffering=0) as raw:
        assert_type((index, FileIndex.open(raw)), tuple[FileIndex, FileIndex])
    BloomFilter.open(path.open())  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    StandardBloomFilter.open(b"f")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def banks(path: Path, some: bool, column: Column, view: BloomView) -> None:
    bank = FilterBank([BloomFilter(1_000), view], 64)
    FilterBank([StandardBloomFilter(1_000)])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    assert_type(bank.find("key"), npt.NDArray[np.intp])
    assert_type(bank.find_many(["key", b"key", 17]), npt.NDArray[np.bool_])
    assert_type(bank.find_many(numbers()), npt.NDArray[np.bool_])
    assert_type(bank.find_many(column), npt.NDArray[np.bool_])
    assert_type(bank.find_many([1], packed=False), npt.NDArray[np.bool_])
    assert_type(bank.find_many([1], packed=True), npt.NDArray[np.uint8])
    assert_type(bank.find_many([1], packed=some), npt.NDArray[np.bool_] | npt.NDArray[np.uint8])
    bank.find_many([1.5])  # type: ignore[list-item] # pyright: ignore[reportArgumentType, reportCallIssue]
    bank.replace(np.int64(0), BloomFilter(1_000))
    bank.clear(0)
    bank.reserve(9)
    bank.save(path)
    assert_type(bank.get(0), BloomFilter)
    assert_type([bank.push(view), len(bank), bank.capacity, bank.k, bank.n_blocks, bank.seed, bank.size_bytes], list[int])
    others = [FilterBank(filter for filter in [view]), FilterBank.from_bytes(bank.to_bytes()), FilterBank.open(path)]
    assert_type([bank, bank.copy(), *others], list[FilterBank])
    "key" in bank  # type: ignore[operator] # pyright: ignore[reportOperatorIssue, reportUnusedExpression]


def single_keys(f: BloomFilter, view: BloomView, each: int, keys: Any, texts: Iterator[str]) -> None:
    """What follows is unreachable, as editors show, and mypy with --warn-unreachable."""
    if each == 0:
        assert_type(f.update("key"), Never)
    if each == 1:
        assert_type(f.contains_many(b"key"), Never)
    if each == 2:
        assert_type(f.add_many(bytearray()), Never)
    if each == 3:
        assert_type(view.contains_many("key", nulls=True), Never)
    if each == 4:
        assert_type(FilterBuilder().update("key"), Never)
    if each == 5:
        assert_type(FilterBank([f]).find_many("key", packed=True), Never)
    if each == 6:
        assert_type(CountingBloomFilter(1).remove_many("key"), Never)
    f.update(keys)
    f.update(texts)
    f.contains_many(keys).any()
    f.k()  # type: ignore[operator] # pyright: ignore[reportCallIssue]
