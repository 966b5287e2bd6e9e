"""Random numbers and permutations, computed from a key.

Each number depends only on the key and its place in the sequence. So a state is small, the numbers
are the same on every machine and with every version of numpy, and a permutation takes no memory.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tfwire._base.native import call, ffi, lib

Array = np.ndarray[Any, Any]
_SORTED = 512  # up to this many elements, a permutation is made by sorting
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def as_key(*words: Any) -> int:
    """A key of 64 bits from the text of words."""
    digest = hashlib.blake2b("/".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def draws(key: int, first: int, count: int) -> Array:
    """Numbers first to first + count of a key's sequence, uint64: SplitMix64 (Steele, Lea and
    Flood, "Fast splittable pseudorandom number generators", 2014)."""
    places = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return _mix(places * _GOLDEN + np.uint64(key))


def generator(key: int) -> np.random.Generator:
    """A new Generator of numpy, which always begins with the same numbers."""
    return np.random.Generator(np.random.PCG64(key))


def random_order(key: int, first: int, count: int) -> Array:
    """A random order of range(count), by numbers first to first + count of a key's sequence."""
    order: Array = np.argsort(draws(key, first, count), kind="stable")
    return order


def is_computed(size: int) -> bool:
    """Whether the numbers of a random order of so many are those of C."""
    return size > _SORTED


def permuted(key: int, size: int, places: Array) -> Array:
    """The numbers at these places (int64, in [0, size)) of a random order of range(size).

    A Feistel network of C's on as many bits as size needs; numbers outside of the range go through
    it again ("cycle walking": Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
    For few elements it would not give all orders equally often: they are sorted by random numbers.
    """
    if not is_computed(size):
        few: Array = random_order(key, 0, size)[places]
        return few
    numbers: Array = places.astype(np.int64)  # a copy
    memory = ffi.from_buffer("int64_t[]", numbers)
    call(lib.tfw_permute, key, size, memory, len(numbers))
    return numbers


def _mix(values: Array) -> Array:
    """The finalizer of SplitMix64: every bit depends on every other."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = values ^ (values >> np.uint64(31))
    return mixed
