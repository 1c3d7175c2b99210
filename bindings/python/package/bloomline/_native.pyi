from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, ClassVar, Literal, Protocol, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
import pyarrow  # type: ignore[import-untyped, import-not-found]
from typing_extensions import Buffer, Never, Self

__all__ = [
    "BloomFilter",
    "BloomView",
    "CountingBloomFilter",
    "DecodeError",
    "FileIndex",
    "FilterBank",
    "FilterBuilder",
    "KeyKindWarning",
    "ScalableBloomFilter",
    "StandardBloomFilter",
    "__version__",
    "open",
]

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

# Columns and frames of pandas and polars. DuckDB's relations have dtypes, too, and to mypy a relation as any attribute.
class _HasDtype(Protocol):
    @property
    def dtype(self) -> Any: ...
    def to_numpy(self) -> npt.NDArray[Any]: ...

class _HasDtypes(Protocol):
    @property
    def dtypes(self) -> Any: ...
    def to_numpy(self) -> npt.NDArray[Any]: ...

# Without stubs of pyarrow, pyright takes the answer for numpy's if this is only pyarrow's class.
class _Untyped(Protocol):
    def __getattr__(self, name: str, /) -> Any: ...

_BooleanArray: TypeAlias = pyarrow.BooleanArray | _Untyped
_InNumpy: TypeAlias = npt.NDArray[Any] | _HasDtype | _HasDtypes
_Key: TypeAlias = str | bytes | SupportsIndex
# Iterables of text and of integers to type checkers, which can say of a call with one only that it never returns. That a
# bool is no key they cannot say at all, because it is an int.
_OneKey: TypeAlias = str | bytes | bytearray | memoryview
_Keys: TypeAlias = Iterable[_Key] | npt.NDArray[Any] | _ArrowStream | _ArrowArray
_Buffer: TypeAlias = Buffer | npt.NDArray[Any]
_Path: TypeAlias = str | PathLike[str]

_Name: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]

class _File(Protocol):
    def read(self, size: int, /) -> Buffer: ...
    def seek(self, offset: int, whence: Literal[0, 2] = 0, /) -> object: ...
    def tell(self) -> int: ...

__version__: str

class DecodeError(ValueError):
    """The bytes belong to a different class or are damaged. Rebuild the filter from its keys."""

class KeyKindWarning(UserWarning):
    """Text was added to a filter of integers, or integers to a filter of text. The two never match, so convert one
    side.

    If you turn it into an error, `add` raises it before the key is added, and `update` and `add_many` after their keys
    are added. Lookups of a kind that the filter lacks raise TypeError.
    """

def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> (
    BloomView
    | BloomFilter
    | CountingBloomFilter
    | ScalableBloomFilter
    | StandardBloomFilter
    | FilterBank
    | FileIndex
):
    """Opens a file of any class, by its path or as an open binary file, such as fsspec's. A BloomFilter's file becomes
    a BloomView, or with mmap=False a BloomFilter. See `BloomFilter.open` and `FileIndex.open`, which may leave the file
    where it is. Files of all other classes are read and verified. Only a BloomView and a FileIndex can be used in
    `with`.
    """

# The bases say once what several classes have. The classes themselves have no common base.
class _Seeded:
    def __sizeof__(self) -> int: ...
    @property
    def size_bytes(self) -> int:
        """Bytes of memory."""
    @property
    def seed(self) -> int:
        """The seed that keys are hashed with."""

class _Stored(_Seeded):
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment] # pyright: ignore[reportIncompatibleMethodOverride]
    def to_bytes(self) -> bytes:
        """Returns the bytes that `save` writes, with checksums. Rust and the command line read them too."""
    def save(self, path: _Path) -> None:
        """Writes the bytes of `to_bytes` to a file, which appears whole or not at all. Raises OSError."""

class _Filter(_Stored):
    def add(self, key: _Key) -> bool:
        """Adds a key (str, bytes or int). Returns True if the key is new, False if it was possibly present."""
    @overload
    def update(self, keys: _OneKey) -> Never:
        """Adds many keys, given as an iterable of str, bytes and int, a numpy array of integers, S or U, or a column of
        integers, text or binary values (pandas, polars, pyarrow, DuckDB). Skips nulls.
        """
    @overload
    def update(self, keys: _Keys) -> None: ...
    @overload
    def add_many(self, keys: _OneKey, *, nulls: bool | None = None) -> Never:
        """Adds many keys, given as for `update`, and returns which of them were new, as `add` does for each. A key that
        repeats an earlier one is not new. The answers have the type that `contains_many` returns.

        nulls: the answer for nulls, which are not added. The default is False in numpy and null in Arrow.
        """
    @overload
    def add_many(self, keys: _InNumpy, *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    @overload
    def add_many(self, keys: _ArrowStream | _ArrowArray, *, nulls: bool | None = None) -> _BooleanArray: ...
    @overload
    def add_many(self, keys: Iterable[_Key], *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    def __contains__(self, key: _Key, /) -> bool:
        """Whether a key is possibly present. False means definitely absent. Raises TypeError for text if the filter has
        only integers, and for integers if it has only text.
        """
    @overload
    def contains_many(self, keys: _OneKey, *, nulls: bool | None = None) -> Never:
        """Looks up many keys, given as for `update`. Returns a numpy array of bools, or a pyarrow.BooleanArray for
        pyarrow, DuckDB and other Arrow data, but not for pandas and polars.

        nulls: the answer for nulls. The default is False in numpy and null in Arrow.

        Raises TypeError if the filter has only integers and all keys are text, or the reverse, as all lookups do.
        """
    @overload
    def contains_many(self, keys: _InNumpy, *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    @overload
    def contains_many(self, keys: _ArrowStream | _ArrowArray, *, nulls: bool | None = None) -> _BooleanArray: ...
    @overload
    def contains_many(self, keys: Iterable[_Key], *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    def clear(self) -> None:
        """Removes all keys."""
    def copy(self) -> Self:
        """Copies the filter, with its keys, size and seed."""
    def estimated_fpr(self) -> float:
        """Returns the false-positive rate of the current bits. Reads the whole filter."""

class _SizedFilter(_Filter):
    @property
    def k(self) -> int:
        """Probes per key."""
    @property
    def expected_keys(self) -> int | None:
        """The number of keys that the filter was made for, or None if it was read from bytes."""
    @property
    def fpr(self) -> float | None:
        """The false-positive rate that was requested for `expected_keys` keys, or None if bits per key were given or
        the filter was read from bytes. `estimated_fpr` returns the rate of the current bits.
        """
    def estimated_keys(self) -> tuple[float, float]:
        """Estimates the number of distinct keys. Returns the estimate and its standard error, both infinite if the
        filter is too full. The estimate of an intersection is too high.
        """

class _CombiningFilter(_SizedFilter):
    @property
    def fill_ratio(self) -> float:
        """Fraction of bits that are set, 0 to 1. Reads the whole filter."""

@final
class BloomFilter(_CombiningFilter):
    """A set of keys that answers "definitely absent" or "possibly present". A lookup reads one cache line.

    expected_keys: number of distinct keys. With more, no key is lost, but the false-positive rate rises.
    fpr: the false-positive rate with that many keys. 1% needs 9.9 bits per key. The size is rounded up, by at most 1%
    or one block of each module, so that the filter can be folded.
    most_modules: the filter is divided into up to this many modules, which must all have a key. By default, it has one
    module for rates down to about 0.05%, and two below, which need fewer bits. Pass 1 if most lookups are of present
    keys, because these read a cache line of each module, or 4 to save the last percent of memory.
    seed: filters with the same seed and size can be combined.
    """
    def __new__(
        cls, expected_keys: int, fpr: float = 0.01, *, most_modules: int | None = None, seed: int = 0
    ) -> Self: ...
    @staticmethod
    def with_bits_per_key(
        expected_keys: int, bits_per_key: float, *, most_modules: int | None = None, seed: int = 0
    ) -> BloomFilter:
        """Makes a filter of a chosen size instead of a false-positive rate."""
    def __or__(self, other: BloomFilter | BloomView, /) -> Self: ...
    def __ror__(self, other: BloomFilter | BloomView, /) -> Self: ...
    def __ior__(self, other: BloomFilter | BloomView, /) -> Self: ...
    def __and__(self, other: BloomFilter | BloomView, /) -> Self: ...
    def __rand__(self, other: BloomFilter | BloomView, /) -> Self: ...
    def __iand__(self, other: BloomFilter | BloomView, /) -> Self: ...
    @staticmethod
    def union(filters: Iterable[BloomFilter | BloomView]) -> BloomFilter:
        """Returns the union of one or more filters. If all have one size, it has the bits of one filter to which all
        their keys were added. BloomFilters may have several sizes, of which the union has the largest, if it is a
        multiple of the smaller ones.
        """
    def fold(self, factor: int) -> None:
        """Divides the size by `factor`, which must divide the number of blocks of each module. The filter is then, bit
        for bit, the filter that would have been made in the smaller size.
        """
    def shrink_to_fpr(self, fpr: float) -> None:
        """Folds the filter as far as its estimated false-positive rate stays at or below `fpr`."""
    def estimated_union(self, other: BloomFilter | BloomView) -> tuple[float, float]:
        """Estimates the number of distinct keys that are in this filter or in another BloomFilter or BloomView of its
        size. Returns the estimate and its standard error, as `estimated_keys` does.
        """
    def estimated_intersection(self, other: BloomFilter | BloomView) -> tuple[float, float]:
        """Estimates the number of distinct keys that are in both this filter and another BloomFilter or BloomView of
        its size. Returns the estimate and its standard error, as `estimated_keys` does. The error is large if the two
        have few keys in common.
        """
    @property
    def n_blocks(self) -> int:
        """Number of blocks of 64 bytes, of all modules."""
    @property
    def n_modules(self) -> int:
        """Number of modules, 1 to 16. All modules must have a key."""
    @staticmethod
    def from_bytes(buffer: _Buffer) -> BloomFilter:
        """Returns the filter in the bytes of `to_bytes`. Raises DecodeError if they are damaged."""
    @overload
    @staticmethod
    def open(path: _Path | _File, mmap: Literal[True] = True, *, verify: bool = True) -> BloomView:
        """Opens a file that `save` or the command line wrote, by its path or as an open binary file, which is read into
        memory.

        mmap: with True, returns a read-only BloomView that maps the file. Truncating the file meanwhile ends the
        process with SIGBUS (`save` replaces files instead). With False, returns a BloomFilter, a copy that you can
        change.
        verify: with True, reads the whole file, and raises DecodeError if it is damaged. With False, for mapped files
        that are too large to read, checks only the last 64 bytes. Damaged bits then lose keys without an error, until
        you call the view's `verify`.
        """
    @overload
    @staticmethod
    def open(path: _Path | _File, mmap: Literal[False], *, verify: Literal[True] = True) -> BloomFilter: ...
    @overload
    @staticmethod
    def open(path: _Path | _File, mmap: bool, *, verify: Literal[True] = True) -> BloomView | BloomFilter: ...

@final
class BloomView:
    """Read-only lookups in a buffer of standalone bytes, such as shared memory, or in a mapped file, without a copy.

    verify: with True, reads all bytes, and raises DecodeError if they are damaged. With False, checks only the last 64
    bytes. Damaged bits then lose keys without an error, until you call `verify`.

    `close`, or the end of a `with` statement, releases the buffer or the file.
    """
    def __new__(cls, buffer: _Buffer, *, verify: bool = True) -> Self: ...
    def __contains__(self, key: _Key, /) -> bool:
        """Whether a key is possibly present. False means definitely absent."""
    @overload
    def contains_many(self, keys: _OneKey, *, nulls: bool | None = None) -> Never:
        """Looks up many keys. See `BloomFilter.contains_many`."""
    @overload
    def contains_many(self, keys: _InNumpy, *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    @overload
    def contains_many(self, keys: _ArrowStream | _ArrowArray, *, nulls: bool | None = None) -> _BooleanArray: ...
    @overload
    def contains_many(self, keys: Iterable[_Key], *, nulls: bool | None = None) -> npt.NDArray[np.bool_]: ...
    def __or__(self, other: BloomFilter | BloomView, /) -> BloomFilter: ...
    def __ror__(self, other: BloomFilter | BloomView, /) -> BloomFilter: ...
    def __and__(self, other: BloomFilter | BloomView, /) -> BloomFilter: ...
    def __rand__(self, other: BloomFilter | BloomView, /) -> BloomFilter: ...
    def verify(self) -> None:
        """Compares all bytes with their checksum. Raises DecodeError if they are damaged."""
    def to_filter(self) -> BloomFilter:
        """Copies the view into a BloomFilter that you can change. Verifies the bytes first."""
    def estimated_keys(self) -> tuple[float, float]:
        """Estimates the number of distinct keys. See `BloomFilter.estimated_keys`."""
    def estimated_union(self, other: BloomFilter | BloomView) -> tuple[float, float]:
        """See `BloomFilter.estimated_union`."""
    def estimated_intersection(self, other: BloomFilter | BloomView) -> tuple[float, float]:
        """See `BloomFilter.estimated_intersection`."""
    def estimated_fpr(self) -> float:
        """Returns the false-positive rate of the bits. Reads the whole filter."""
    @property
    def fill_ratio(self) -> float:
        """Fraction of bits that are set, 0 to 1. Reads the whole filter."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment] # pyright: ignore[reportIncompatibleMethodOverride]
    def __reduce__(self) -> Never: ...
    def close(self) -> None:
        """Releases the buffer, or unmaps the file, as the end of `with` does. Waits for lookups in other threads. Later
        lookups raise ValueError.
        """
    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    @property
    def k(self) -> int:
        """Probes per key, 1 to 16, in each module."""
    @property
    def n_blocks(self) -> int:
        """Number of blocks of 64 bytes, of all modules."""
    @property
    def n_modules(self) -> int:
        """Number of modules, 1 to 16. All modules must have a key."""
    @property
    def size_bytes(self) -> int:
        """Bytes of the filter, without its footer."""
    @property
    def seed(self) -> int:
        """The seed that keys are hashed with."""

@final
class CountingBloomFilter(_SizedFilter):
    """A Bloom filter that counts, so that keys can be removed. Needs five times the memory of a BloomFilter. There
    is no union, which would have to count a key of both filters twice or once. Unite the filters of `to_filter` instead.
    """
    def __new__(cls, expected_keys: int, fpr: float = 0.01, *, seed: int = 0) -> Self: ...
    @staticmethod
    def with_bits_per_key(expected_keys: int, bits_per_key: float, *, seed: int = 0) -> CountingBloomFilter:
        """Makes a filter of a chosen size instead of a false-positive rate."""
    def remove(self, key: _Key) -> bool:
        """Removes a key once. Returns False, and changes nothing, if the key is definitely absent. Remove only keys
        that were added, because removing any other key may lose keys.

        Counters end at 15. A key whose `count` is 15 stays present until `clear`, although this returns True.
        """
    @overload
    def remove_many(self, keys: _OneKey) -> Never:
        """Removes many keys, given as for `update`, and returns a numpy array of which were possibly present, as `remove`
        does for each. If it raises an error, as for nulls, no key has been removed.
        """
    @overload
    def remove_many(self, keys: _InNumpy | _ArrowStream | _ArrowArray | Iterable[_Key]) -> npt.NDArray[np.bool_]: ...
    def count(self, key: _Key) -> int:
        """Returns an upper bound of how often a key was added. 15 stands for 15 and more."""
    def to_filter(self) -> BloomFilter:
        """Copies the keys into a BloomFilter, which needs a fifth of the memory."""
    @property
    def n_blocks(self) -> int:
        """Number of blocks of 512 counters, each with a bit."""
    @property
    def fill_ratio(self) -> float:
        """Fraction of counters above zero, 0 to 1. Reads all bits."""
    @staticmethod
    def from_bytes(buffer: _Buffer) -> CountingBloomFilter:
        """Returns the filter in the bytes of `to_bytes`. Raises DecodeError if they are damaged."""
    @staticmethod
    def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> CountingBloomFilter:
        """Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError."""

@final
class ScalableBloomFilter(_Filter):
    """A Bloom filter that grows, for keys of unknown number, added between lookups. With an `initial_capacity` that is
    5,000 times too low, it needs 3.2 times the memory of a BloomFilter and is 9 times slower. If all keys are added
    before the first lookup, use a FilterBuilder instead.
    """
    def __new__(cls, initial_capacity: int, fpr: float = 0.01, *, seed: int = 0) -> Self: ...
    @staticmethod
    def union(filters: Iterable[ScalableBloomFilter]) -> ScalableBloomFilter:
        """Returns the union of one or more filters with the same fpr and seed. Filters with few keys become one. Full
        filters stay as they are, so a lookup then probes the parts of all, and fpr is up to the sum of their rates.
        """
    @property
    def inserted_keys(self) -> int:
        """Number of keys that were new when they were added. May be too high after `union`."""
    @property
    def fpr(self) -> float:
        """The false-positive rate that was requested, or more after `union`."""
    @staticmethod
    def from_bytes(buffer: _Buffer) -> ScalableBloomFilter:
        """Returns the filter in the bytes of `to_bytes`. Raises DecodeError if they are damaged."""
    @staticmethod
    def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> ScalableBloomFilter:
        """Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError."""

@final
class StandardBloomFilter(_CombiningFilter):
    """A Bloom filter without blocks. Needs fewer bits for the same false-positive rate, but a lookup may cost k cache
    misses.
    """
    def __new__(cls, expected_keys: int, fpr: float = 0.01, *, seed: int = 0) -> Self: ...
    @staticmethod
    def with_bits_per_key(expected_keys: int, bits_per_key: float, *, seed: int = 0) -> StandardBloomFilter:
        """Makes a filter of a chosen size instead of a false-positive rate."""
    def __or__(self, other: Self, /) -> Self: ...
    def __ror__(self, other: Self, /) -> Self: ...
    def __ior__(self, other: Self, /) -> Self: ...
    def __and__(self, other: Self, /) -> Self: ...
    def __rand__(self, other: Self, /) -> Self: ...
    def __iand__(self, other: Self, /) -> Self: ...
    @staticmethod
    def union(filters: Iterable[StandardBloomFilter]) -> StandardBloomFilter:
        """Returns the union of one or more filters. If all have one size, it has the bits of one filter to which all
        their keys were added. BloomFilters may have several sizes, of which the union has the largest, if it is a
        multiple of the smaller ones.
        """
    @property
    def size_bits(self) -> int:
        """Number of bits that keys are placed in."""
    @staticmethod
    def from_bytes(buffer: _Buffer) -> StandardBloomFilter:
        """Returns the filter in the bytes of `to_bytes`. Raises DecodeError if they are damaged."""
    @staticmethod
    def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> StandardBloomFilter:
        """Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError."""

@final
class FilterBank(_Stored):
    """Many filters stored side by side, so that one lookup finds which of them possibly have a key.

    filters: BloomFilters or BloomViews, at least one, best made with the same expected_keys, fpr and seed. If sizes
    differ, filters are folded to the n_blocks of the smallest, which must divide their n_blocks. All must have the same
    k and seed, and one module, so pass most_modules=1 for rates below 0.05%. capacity: room for at least this many
    slots. `reserve` makes more.

        >>> from bloomline import BloomFilter, FilterBank
        >>> tables = [BloomFilter(1_000) for _ in range(3)]
        >>> tables[0].update(["ant", "bee"])
        >>> tables[2].update(["bee", "cat"])
        >>> bank = FilterBank(tables)
        >>> bank.find("bee").tolist()
        [0, 2]
        >>> bank.find_many(["ant", "dog"]).tolist()
        [[True, False, False], [False, False, False]]

    Each filter has a slot, numbered from 0. The bank copies the filters' bits, so after you change a filter, call
    `replace`. Needs as much memory as 8, 16, 32 or a multiple of 64 filters.
    """
    def __new__(cls, filters: Iterable[BloomFilter | BloomView], capacity: int | None = None) -> Self: ...
    def find(self, key: _Key) -> npt.NDArray[np.intp]:
        """Finds the slots that possibly have a key (str, bytes or int), and returns their numbers in a numpy array,
        ascending. Raises TypeError for text if all filters have only integers, and the reverse.
        """
    @overload
    def find_many(self, keys: _OneKey, *, packed: bool = False) -> Never:
        """Looks up many keys, given as for `BloomFilter.update`. Returns a numpy array of bools, with a row for each
        key and a column for each slot. Nulls raise TypeError.

        packed: with True, returns bits in an array of uint8, as np.packbits(..., axis=1, bitorder="little") does. This
        is faster and needs an eighth of the memory.
        """
    @overload
    def find_many(self, keys: _Keys, *, packed: Literal[False] = False) -> npt.NDArray[np.bool_]: ...
    @overload
    def find_many(self, keys: _Keys, *, packed: Literal[True]) -> npt.NDArray[np.uint8]: ...
    @overload
    def find_many(self, keys: _Keys, *, packed: bool) -> npt.NDArray[np.bool_] | npt.NDArray[np.uint8]: ...
    def push(self, filter: BloomFilter | BloomView) -> int:
        """Adds a BloomFilter or BloomView, folded to the bank's n_blocks, and returns its slot. A filter of 64 KiB
        costs a few milliseconds. Raises ValueError if the bank is full, so `reserve` first.
        """
    def replace(self, slot: SupportsIndex, filter: BloomFilter | BloomView) -> None:
        """Replaces a slot's filter by a BloomFilter or BloomView, folded to the bank's n_blocks."""
    def clear(self, slot: SupportsIndex) -> None:
        """Removes all keys of a slot. The slot stays, with an empty filter."""
    def get(self, slot: SupportsIndex) -> BloomFilter:
        """Copies the filter of a slot, bit for bit as it was put in or folded. Reads the whole bank."""
    def reserve(self, additional: int) -> None:
        """Makes room for `additional` more slots. Copies the bank, unless it has enough room."""
    def __len__(self) -> int:
        """Number of slots."""
    def copy(self) -> FilterBank:
        """Copies the bank, with the same filters and capacity."""
    @property
    def capacity(self) -> int:
        """Number of slots that the bank has room for."""
    @property
    def k(self) -> int:
        """Probes per key, 1 to 16."""
    @property
    def n_blocks(self) -> int:
        """Number of blocks of 64 bytes of each filter."""
    @staticmethod
    def from_bytes(buffer: _Buffer) -> FilterBank:
        """Returns the bank in the bytes of `to_bytes`, without spare slots. Raises DecodeError if they are damaged."""
    @staticmethod
    def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> FilterBank:
        """Reads and verifies a file that `save` wrote. Never maps it. Raises DecodeError and OSError."""

@final
class FileIndex:
    """An index over files, which finds those that possibly have a key. The command line makes one with `bloomline
    index`.

    files: a mapping of names to BloomFilters or BloomViews, or pairs of these, made by FilterBuilder.for_index(fpr).
    None stands for a file that could not be read, which each lookup finds.
    fpr: an absent key finds this share of the files.
    rule: how keys were taken, such as "lines", by which the command line looks them up.

        >>> from bloomline import FileIndex, FilterBuilder
        >>> builder, files = FilterBuilder.for_index(0.001), {}
        >>> for name, keys in {"monday.log": ["ant", "bee"], "tuesday.log": ["bee"]}.items():
        ...     builder.update(keys)
        ...     files[name] = builder.finish()
        >>> FileIndex(files, 0.001).find("bee")
        ['monday.log', 'tuesday.log']

    `close`, or the end of a `with` statement, releases the file.
    """
    def __new__(
        cls,
        files: Mapping[Any, BloomFilter | BloomView | None] | Iterable[tuple[_Name, BloomFilter | BloomView | None]],
        fpr: float,
        *,
        rule: str = "",
    ) -> Self: ...
    @staticmethod
    def open(path: _Path | _File, mmap: bool = True, *, verify: bool = True) -> FileIndex:
        """Opens the file of an index, by its path or as an open binary file.

        mmap: with True, maps the file of a path. Of a file object, such as fsspec's, it then reads only the end, with
        the files' names, and each lookup reads one range of each of the index's one to eight banks. The file object
        must stay open, and `close` does not close it. With False, reads the whole file into memory.
        verify: with True, reads the whole file, unless lookups read ranges, and raises DecodeError if it is damaged.
        With False, for few lookups in a large index, and in ranges, each lookup compares the bytes that it reads with
        their checksums. So damage raises an error, and hides no key.
        """
    def find(self, key: _Key) -> list[str]:
        """Returns the names of the files that possibly have a key (str, bytes or int) or could not be read, sorted by
        their bytes and decoded by os.fsdecode. When they were indexed, all other files definitely did not have it.
        Raises DecodeError if the bytes that it reads are damaged.

        Raises TypeError for an integer in an index of text and the reverse, and ValueError for a text whose ASCII
        characters show that it cannot be a key by the rule, such as a line with its end, or two words. Otherwise the key
        is looked up as it is. So of a column, pass the field alone, and in an index of words, look up each run of a text,
        as section 14 of docs/format.md defines it, and keep the files that have all of them.
        """
    def find_many(self, keys: _Keys) -> list[list[str]]:
        """Looks up many keys, given as for `BloomFilter.update`, and returns for each a list as `find` does. Nulls
        raise TypeError. Does not compare the keys with the rule, but for integers and text.
        """
    @property
    def names(self) -> list[str]:
        """The names of all files, in the order of `find`, with folders that the command line listed, which end in
        "/".
        """
    def __reduce__(self) -> Never: ...
    def __len__(self) -> int:
        """Number of files."""
    @property
    def rule(self) -> str:
        """How the keys of the files were taken, such as "words", or "" if that is unknown."""
    @property
    def fpr(self) -> float:
        """The false-positive rate that was requested for each file."""
    def to_bytes(self) -> bytes:
        """Returns the bytes that `save` writes, with checksums. Rust and the command line read them too."""
    def save(self, path: _Path) -> None:
        """Writes the bytes of `to_bytes` to a file, which appears whole or not at all. Raises OSError."""
    def close(self) -> None:
        """Unmaps the file, or lets go of the file object, as the end of `with` does. Later calls raise ValueError."""
    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class FilterBuilder(_Seeded):
    """Collects keys of unknown number, then makes a BloomFilter of the right size.

    fpr: the false-positive rate of the filter.
    most_modules: see BloomFilter.
    seed: filters with the same seed and size can be combined.

        >>> from bloomline import FilterBuilder
        >>> builder = FilterBuilder(0.01)
        >>> builder.update(["ant", "bee", "bee"])
        >>> filter = builder.finish()
        >>> "ant" in filter, filter.expected_keys
        (True, 2)

    Needs 8 bytes for each key added, and 9.3 while `finish` runs. A key that repeats the key before it needs none. A
    builder answers no lookups.
    """
    def __new__(cls, fpr: float = 0.01, *, most_modules: int | None = None, seed: int = 0) -> Self: ...
    @staticmethod
    def with_bits_per_key(
        bits_per_key: float, *, most_modules: int | None = None, seed: int = 0
    ) -> FilterBuilder:
        """Makes a builder of filters of a chosen size instead of a false-positive rate."""
    @staticmethod
    def for_index(fpr: float) -> FilterBuilder:
        """Makes a builder of filters for a FileIndex of this fpr, in which other filters may not fit."""
    def add(self, key: _Key) -> None:
        """Adds a key (str, bytes or int). Keys may repeat."""
    @overload
    def update(self, keys: _OneKey) -> Never:
        """Adds many keys, given as for `BloomFilter.update`."""
    @overload
    def update(self, keys: _Keys) -> None: ...
    def finish(self) -> BloomFilter:
        """Returns a BloomFilter sized for the number of distinct keys, and empties the builder.

        Needs the filter's memory in addition and, while it runs, some 40 bytes for each key that repeats an earlier
        one. If memory runs out, raises MemoryError and keeps the keys.
        """
    def clear(self) -> None:
        """Removes all keys."""
    def __reduce__(self) -> Never: ...
    def __len__(self) -> int:
        """Number of keys added. Repeated keys may count more than once."""
    @property
    def fpr(self) -> float | None:
        """The false-positive rate that was requested, or None if bits per key were given."""
