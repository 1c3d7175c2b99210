"""Bloom filters whose lookups read one cache line, over numpy arrays, Arrow columns and any other keys.

    >>> from bloomline import BloomFilter
    >>> seen = BloomFilter(1_000_000, 0.01)
    >>> seen.update(["ant", "bee"])
    >>> "ant" in seen, "cat" in seen
    (True, False)

`bloomline.spark` builds and probes filters on a Spark cluster.
"""

from ._native import (
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
    __version__,
    open as open,  # public for type checkers too, although not in `__all__`
)

# Without `open`: `from bloomline import *` would replace the builtin.
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
]
