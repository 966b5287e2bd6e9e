"""The keys of records, which are the values of one feature, and which record has a key.

An index keeps them as a section, little-endian: the length of the feature's name (4 bytes) and the
name; the kind of the keys (4), which is the number of their list in a Feature; of integers 8 bytes
for each record; of strings the length of each (4), and then their bytes.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.arguments import as_index, check_type
from tfwire._base.arrays import joined_splits, to_splits
from tfwire._base.native import SEED, call, ffi, lib
from tfwire._base.strings import strings_from_spans, strings_of_objects

_KEYS_NUMBER = struct.Struct("<I")
_MOST_NAME = 1 << 16
_INTEGERS = np.iinfo(np.int64)
_ITERATED = 1 << 12  # keys that become objects at a time


def key_column(key: Any) -> Any:
    """What takes the keys of records as they are read; see KeyColumn.

    Raises:
        TypeError: Not the name of a feature.
    """
    from tfwire._parsing.survey import KeyColumn

    check_type("key", key, (str, bytes), "the name of a feature, a str or bytes")
    return KeyColumn(_as_string(key))


def most_key_bytes(count: int, content_size: int) -> int:
    """The most bytes that the section of so many records takes: keys are parts of them."""
    return 2 * _KEYS_NUMBER.size + _MOST_NAME + 8 * count + content_size


class _Table(NamedTuple):
    """Keys in order.

    Attributes:
        ordered: The keys, or the hashes of strings, none of which two keys have.
        numbers: The record of each.
        seed: Of the hashes.
        repeated: Two records that have the same key; None: there are none.
    """

    ordered: Array
    numbers: Array
    seed: int
    repeated: tuple[int, int] | None


class RecordKeys:
    """One key for each record of a file, or of several files.

    Args:
        name: The feature.
        values: int64; of strings, the bytes of all as uint8.
        splits: Where each string begins and ends in them, int64; None: the keys are integers.
    """

    def __init__(self, name: bytes, values: Array, splits: Array | None = None) -> None:
        self.name = name
        self._values = values
        self._splits = splits
        self._table: _Table | None = None  # made when a key is asked for

    @property
    def are_strings(self) -> bool:
        return self._splits is not None

    @property
    def kind(self) -> str:
        return "strings" if self.are_strings else "int64"

    def __len__(self) -> int:
        return len(self._values if self._splits is None else self._splits) - self.are_strings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordKeys) and self.section == other.section

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_table": None}

    def __iter__(self) -> Iterator[Any]:
        return self._each(np.arange(len(self), dtype=np.int64))

    def _each(self, numbers: Array) -> Iterator[Any]:
        """The keys of records, of which few are objects at a time."""
        for first in range(0, len(numbers), _ITERATED):
            yield from self.at(numbers[first : first + _ITERATED])

    def at(self, numbers: Array) -> list[Any]:
        """The keys of records."""
        if self._splits is None:
            keys: list[Any] = self._values[numbers].tolist()
            return keys
        spans = _spans(self._splits[numbers], self._splits[numbers + 1])
        return strings_from_spans(self._values, spans)

    # ---- Saved --------------------------------------------------------------------------------

    @property
    def section(self) -> bytes:
        """Of an index.

        Raises:
            ValueError: The name, or a key, is too long.
        """
        kind = lib.TFW_INT64 if self._splits is None else lib.TFW_BYTES
        lengths = np.empty(0, np.int64) if self._splits is None else np.diff(self._splits)
        if len(self.name) > _MOST_NAME or lengths.max(initial=0) >= 1 << 32:
            raise ValueError("an index has no room for such long keys")
        head = _KEYS_NUMBER.pack(len(self.name)) + self.name + _KEYS_NUMBER.pack(kind)
        if self._splits is None:
            return head + self._values.astype("<i8").tobytes()
        return head + lengths.astype("<u4").tobytes() + self._values.tobytes()

    @classmethod
    def of_section(cls, section: bytes, sizes: Array) -> RecordKeys:
        """The keys of an index.

        Args:
            section: Its bytes, which may be anything.
            sizes: Of the payloads of the records.

        Raises:
            ValueError: It is malformed.
        """
        count, fixed = len(sizes), _KEYS_NUMBER.size
        length = _KEYS_NUMBER.unpack_from(section)[0] if len(section) >= fixed else _MOST_NAME + 1
        at = 2 * fixed + length
        if length > _MOST_NAME or at > len(section):
            raise ValueError(f"the name of its keys does not fit {len(section)} bytes")
        name, left = section[fixed : fixed + length], len(section) - at
        (kind,) = _KEYS_NUMBER.unpack_from(section, fixed + length)
        if kind == lib.TFW_INT64 and left == 8 * count:
            return cls(name, np.frombuffer(section, "<i8", count, at).astype(np.int64))
        if kind == lib.TFW_BYTES and left >= 4 * count:
            lengths = np.frombuffer(section, "<u4", count, at).astype(np.int64)
            splits = to_splits(lengths)
            if splits[-1] == left - 4 * count and (lengths <= sizes).all():
                return cls(name, np.frombuffer(section, np.uint8, -1, at + 4 * count), splits)
        raise ValueError(f"keys of {count} records do not fit {left} bytes")

    @classmethod
    def joined(cls, all_keys: Sequence[RecordKeys]) -> RecordKeys:
        """The keys of several files, which are of one feature and kind, one after the other."""
        first, *others = [keys for keys in all_keys if len(keys)] or all_keys[:1]
        if not others:
            return first
        values = np.concatenate([keys._values for keys in (first, *others)])
        if first._splits is None:
            return cls(first.name, values)
        return cls(first.name, values, joined_splits(keys._splits for keys in (first, *others)))

    # ---- Found --------------------------------------------------------------------------------

    def repeated(self) -> tuple[int, int] | None:
        """Two records that have the same key, the second of them as early as there is one; None:
        there are none."""
        return self._ordered().repeated

    def find(self, keys: Any) -> Array:
        """The records that have keys; -1: none has.

        Args:
            keys: A sequence or an array of keys.

        Raises:
            TypeError: They are of another type.
        """
        if not self.are_strings:
            return self._find_integers(keys)
        wanted = _as_strings(keys)
        packed = strings_of_objects(wanted)
        assert packed is not None
        table = self._ordered()
        found = _places(table, _hashes(*packed, table.seed))
        # A hash says which record may have the key: the key itself says whether.
        if (found < 0).any() or self.at(found) != wanted:
            there = np.flatnonzero(found >= 0)
            for i, key in zip(there.tolist(), self.at(found[there]), strict=True):
                if key != wanted[i]:
                    found[i] = -1
        return found

    def _find_integers(self, keys: Any) -> Array:
        wanted = np.asarray(keys)
        if wanted.shape == (0,):
            wanted = wanted.astype(np.int64)
        if wanted.dtype.kind == "i" and wanted.ndim == 1:
            return _places(self._ordered(), wanted.astype(np.int64, copy=False))
        if wanted.dtype.kind == "b":
            raise _wrong_type(next(iter(keys)), self.kind)
        items = []
        for item in keys:  # numpy makes other types of integers above 63 bits, which no record has
            try:
                items.append(as_index(item))
            except TypeError:
                raise _wrong_type(item, self.kind) from None
        fit = np.array([_INTEGERS.min <= item <= _INTEGERS.max for item in items], bool)
        found = np.full(len(items), -1, np.int64)
        chosen = [item for item, fits in zip(items, fit, strict=True) if fits]
        found[fit] = _places(self._ordered(), np.array(chosen, np.int64))
        return found

    def _ordered(self) -> _Table:
        if self._table is None:
            self._table = self._in_order()
        return self._table

    def _in_order(self) -> _Table:
        """The table. Two strings may have the same hash: then another seed gives other hashes."""
        for seed in range(SEED, SEED + 64):
            seed %= 1 << 64
            values = self._values
            if self._splits is not None:
                values = _hashes(self._values, self._splits, seed)
            numbers = np.argsort(values, kind="stable")
            ordered = values[numbers]
            alike = np.flatnonzero(ordered[1:] == ordered[:-1])
            alike = alike[np.argsort(numbers[alike + 1])]
            if not len(alike):
                return _Table(ordered, numbers, seed, None)
            firsts, seconds = numbers[alike], numbers[alike + 1]
            pairs = zip(self._each(firsts), self._each(seconds), strict=True)
            for first, second, (key, other) in zip(firsts, seconds, pairs, strict=True):
                if key == other:
                    return _Table(ordered, numbers, seed, (int(first), int(second)))
        raise MemoryError("no seed tells the keys apart")  # cannot happen: seeds are random


def _places(table: _Table, wanted: Array) -> Array:
    """The records of keys, or of hashes; -1: none has."""
    if not len(table.ordered):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(wanted)  # neighbours are looked for one after the other
    places = np.empty(len(wanted), np.int64)
    places[order] = np.searchsorted(table.ordered, wanted[order])
    places[places == len(table.ordered)] = 0
    found: Array = np.where(table.ordered[places] == wanted, table.numbers[places], -1)
    return found


def _spans(begins: Array, ends: Array) -> Array:
    spans = np.empty((len(begins), 2), np.int64)
    spans[:, 0] = begins
    np.subtract(ends, begins, out=spans[:, 1])
    return spans


def _hashes(data: Array, splits: Array, seed: int) -> Array:
    """A hash of each string."""
    spans = _spans(splits[:-1], splits[1:])
    hashes = np.empty(len(spans), np.uint64)
    call(
        lib.tfw_hash_spans,
        *(seed, ffi.from_buffer("uint8_t[]", data), len(data)),
        *(ffi.from_buffer("tfw_span[]", spans), len(spans)),
        ffi.from_buffer("uint64_t[]", hashes),
    )
    return hashes


def _as_strings(keys: Any) -> list[bytes]:
    with contextlib.suppress(TypeError, UnicodeEncodeError):  # usual, and quick
        return list(map(str.encode, keys))
    return list(map(_as_string, keys))


def _as_string(key: Any) -> bytes:
    if isinstance(key, str):
        with contextlib.suppress(UnicodeEncodeError):
            return key.encode("utf-8", "surrogateescape")
        return key.encode("utf-8", "surrogatepass")
    if not isinstance(key, bytes):
        raise _wrong_type(key, "strings")
    return key if type(key) is bytes else bytes(key)


def _wrong_type(key: Any, expected: str) -> TypeError:
    return TypeError(f"the keys of these records are {expected}, found {type(key).__name__}")
