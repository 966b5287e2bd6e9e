"""The sequence interface of TFRecordFile and TFRecordFiles: records by number, or many of them."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeVar, overload

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.arguments import as_index, is_indexable, slice_indices
from tfwire._base.text import html_of
from tfwire._records.index.records_by_key import JoinedKeys, RecordsByKey

R = TypeVar("R", bound="RecordSequence")


class RecordSequence:
    """The sequence interface of TFRecordFile and TFRecordFiles."""

    _count: int
    _kept: Any  # what is open; None: closed
    _joined: JoinedKeys | None = None  # made when a key is asked for

    @property
    @abstractmethod
    def _name(self) -> str:
        """The file or the files, for messages."""

    def _refuse(self, number: Any) -> NoReturn:
        raise IndexError(f"{self._name}: record {number} of {self._count}")

    def __len__(self) -> int:
        return self._count

    @abstractmethod
    def _indexed(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """The files, and the RecordIndex of each."""

    @property
    def by_key(self) -> RecordsByKey:
        """The records by key, if they were indexed with one: ``by_key["id 17"]`` is a record,
        ``by_key[["id 17", "id 4"]]`` a list, and ``by_key.find`` gives numbers.

        Raises:
            ValueError: An index has no keys, or those of another feature; or two records have the
                same key.
        """
        if self._joined is None:
            self._joined = JoinedKeys.of(*self._indexed())
        return RecordsByKey(self, self._joined)

    @abstractmethod
    def _one(self, number: int) -> bytes: ...

    @abstractmethod
    def _ascending(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        """Records in increasing order of their numbers, in pieces."""

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> bytes: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | Array) -> list[bytes]: ...
    def __getitem__(self, key: Any) -> bytes | list[bytes]:
        """A record, or a list of them.

        Args:
            key: A number, counted from the end if negative; a slice; or a list, tuple, range or
                rank-1 array of numbers. Those records are read in the order of the file and
                returned in the order of ``key``.

        Raises:
            IndexError: There is no such record.
            DataLossError: A record is damaged, or the index is stale.
            OSError: The file cannot be read.
            ValueError: The file is closed.
        """
        if type(key) is int and 0 <= key < self._count:  # usual
            return self._one(key)
        try:
            number = as_index(key)
        except TypeError:
            return self._many(self._numbers(key))
        if not -self._count <= number < self._count:
            self._refuse(number)
        return self._one(number + self._count if number < 0 else number)

    def __getitems__(self, keys: Sequence[int]) -> list[bytes]:
        """As ``self[keys]``; torch's DataLoader calls this for a batch."""
        return self[keys]

    def _numbers(self, key: Any) -> Array:
        """The numbers in a slice or a sequence, counted from the beginning."""
        count = self._count
        if isinstance(key, slice):
            chosen = range(*slice_indices(key, count))
            # The step of a slice of one record may be of any size.
            step = chosen.step if len(chosen) > 1 else 1
            return chosen.start + np.arange(len(chosen), dtype=np.int64) * step
        if not is_indexable(key):
            raise _wrong_key(key)
        found = np.asarray(key)
        if found.shape == (0,):
            found = found.astype(np.int64)
        if found.dtype.kind in "Of":  # numpy makes these of integers above 64 bits
            try:
                found = np.array(list(map(as_index, key)), object)
            except TypeError:
                raise _wrong_key(key) from None
        if found.ndim != 1 or found.dtype.kind not in "iuO":
            raise _wrong_key(key)
        wrong = (found < -count) | (found >= count)
        if wrong.any():
            self._refuse(found[wrong][0])
        numbers = np.array(found, np.int64)
        numbers[numbers < 0] += count
        return numbers

    def _many(self, numbers: Array) -> list[bytes]:
        order = None
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers = numbers[order]
        records = list(itertools.chain.from_iterable(self._ascending(numbers)))
        if order is None:
            return records
        result = np.empty(len(records), object)
        result[order] = records
        ordered: list[bytes] = result.tolist()
        return ordered

    def __iter__(self) -> Iterator[bytes]:
        return itertools.chain.from_iterable(self._pieces())

    @abstractmethod
    def _pieces(self) -> Iterator[Sequence[bytes]]:
        """All records in pieces."""

    def _repr_html_(self) -> str | None:
        """The first records as a table, for notebooks; None if they are closed."""
        return None if self._is_closed else html_of(self)

    def close(self) -> None:
        """Closes the file. Closing again is allowed; calls in progress go on."""
        self._kept = None

    @property
    def _is_closed(self) -> bool:
        return self._kept is None

    def __enter__(self: R) -> R:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _wrong_key(key: Any) -> TypeError:
    return TypeError(
        "expected a record number, a slice or a sequence of record numbers, found "
        f"{type(key).__name__}"
    )
