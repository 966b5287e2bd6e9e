"""Records by their keys: what ``by_key`` of TFRecordFile and TFRecordFiles is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter, eq
from typing import Any, NamedTuple, NoReturn, Protocol, overload

import numpy as np

from tfwire._base.aliases import Array, RecordKey
from tfwire._base.arguments import is_indexable
from tfwire._base.errors import DataLossError, ParseError
from tfwire._base.text import first_few, plural, quoted, show_path
from tfwire._records.index.record_keys import RecordKeys


class _Records(Protocol):
    """The records, by their numbers."""

    @property
    def _name(self) -> str: ...
    def __getitem__(self, key: Any) -> Any: ...


class JoinedKeys(NamedTuple):
    """The keys of all records of some files.

    Attributes:
        keys: One for each record; no two are equal.
        paths: The files.
        firsts: The number of the first record of each, and of all records.
    """

    keys: RecordKeys
    paths: Sequence[Any]
    firsts: Array

    @classmethod
    def of(cls, paths: Sequence[Any], indexes: Sequence[Any]) -> JoinedKeys:
        """The keys of files, of which these are the RecordIndexes.

        Raises:
            ValueError: An index has no keys, or those of another feature or kind; or two records
                have the same key.
        """
        found: list[RecordKeys] = []
        kind: str | None = None
        for path, index in zip(paths, indexes, strict=True):
            if (keys := index._keys) is None:
                raise ValueError(
                    f"{show_path(path)}: its index has no keys, or is stale; "
                    "RecordIndex.build(path, key=...).save(), or tfwire index --key, makes one"
                )
            if found and keys.name != found[0].name:
                names = f"{quoted(keys.name)}, not {quoted(found[0].name)}"
                raise ValueError(f"{show_path(path)}: its index has the keys of {names}")
            if len(keys) and (kind := kind or keys.kind) != keys.kind:
                raise ValueError(f"{show_path(path)}: its keys are {keys.kind}, others {kind}")
            found.append(keys)
        if not found:
            raise ValueError("there are no files, and so no keys")
        joined = cls(
            RecordKeys.joined(found), paths, np.cumsum([0, *map(len, found)], dtype=np.int64)
        )
        joined.check_unique()
        return joined

    def check_unique(self) -> None:
        """Refuses keys that two records have."""
        if (pair := self.keys.repeated()) is not None:
            key = quoted(self.keys.at(np.array(pair, np.int64))[0])
            (path, first), (other, second) = map(self.where, pair)
            if other == path and first == second:
                raise ValueError(f"{show_path(path)}: the file is given twice, and so are its keys")
            beside = "" if other == path else f"of {show_path(other)} "
            raise ValueError(
                f"{show_path(path)}: record {first} and record {second} {beside}have the same key, "
                f"{key}"
            )

    def where(self, number: int) -> tuple[Any, int]:
        """The file of a record, and its number there."""
        file = int(np.searchsorted(self.firsts, number, "right")) - 1
        return self.paths[file], number - int(self.firsts[file])


class RecordsByKey(Mapping[RecordKey, bytes]):
    """The records of files by the values of one feature, of int64 or of strings: ``by_key`` of
    TFRecordFile and TFRecordFiles, whose indexes were built with that feature as their ``key``.

    It is a mapping in the order of the records. Keys are integers, or bytes; a str stands for its
    UTF-8. Many keys, in a list or an array, are found and read in one call.

    Each record that is read has its key compared, so that a stale index gives none that has
    another one.

    Example:
        >>> rows = [{"id": f"id {i}", "n": i} for i in range(100)]
        >>> _ = tfw.write_records("rows.tfrecord", rows)
        >>> tfw.RecordIndex.build("rows.tfrecord", key="id").save()
        >>> with tfw.TFRecordFile("rows.tfrecord") as records:
        ...     record = records.by_key["id 17"]
        ...     print("id 100" in records.by_key, records.by_key.find(["id 4", "id 2"]))
        False [4 2]
        >>> tfw.decode_example(record)["n"]
        array([17])
    """

    def __init__(self, records: _Records, joined: JoinedKeys) -> None:
        self._records = records
        self._joined = joined
        self._keys = joined.keys

    def __reduce__(self) -> Any:
        return attrgetter("by_key"), (self._records,)

    # For type checkers, a str is a sequence of str, too: it is one key.
    @overload
    def __getitem__(self, key: RecordKey) -> bytes: ...  # type: ignore[overload-overlap]
    @overload
    def __getitem__(self, key: Sequence[RecordKey] | Array) -> list[bytes]: ...
    def __getitem__(self, key: Any) -> bytes | list[bytes]:
        """The record with a key, or a list of those with many keys, in the order of these.

        Args:
            key: A key; or a list, tuple or rank-1 array of keys.

        Raises:
            KeyError: No record has a key.
            DataLossError: A record is damaged, or has another key: the index is stale.
            OSError, ValueError: As of the records by number.
            TypeError: Not of the type of the keys.
        """
        numbers = np.atleast_1d(self.find(key))
        records: list[bytes] = self._records[numbers]
        self._check(records, numbers)
        return records[0] if _is_one(key) else records

    @overload
    def find(self, key: RecordKey) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def find(self, key: Sequence[RecordKey] | Array) -> Array: ...
    def find(self, key: Any) -> int | Array:
        """The number of the record with a key, or an int64 array of those with many keys, as the
        index says. Nothing is read.

        Args:
            key: As of ``[]``.

        Raises:
            KeyError, TypeError: As of ``[]``.
        """
        if not _is_one(key):
            numbers = self._find(key)
            if (numbers < 0).any():
                keys = key.tolist() if isinstance(key, np.ndarray) else key
                self._refuse([each for each, n in zip(keys, numbers, strict=True) if n < 0])
            return numbers
        number = int(self._find([key])[0])
        if number < 0:
            self._refuse([key])
        return number

    def _find(self, keys: Any) -> Array:
        is_sequence = is_indexable(keys) and not isinstance(keys, bytearray)
        if not is_sequence or getattr(keys, "ndim", 1) != 1:
            raise TypeError(f"expected a key, or a sequence of keys, found {type(keys).__name__}")
        if not len(self._keys):  # nothing says of which type they are
            return np.full(len(keys), -1, np.int64)
        return self._keys.find(keys)

    def _refuse(self, missing: list[Any]) -> NoReturn:
        which = f"{plural(len(missing), 'key')}: " if len(missing) > 1 else "the key "
        raise KeyError(f"{self._records._name}: no record has {which}{first_few(missing)}")

    def _check(self, records: list[bytes], numbers: Array) -> None:
        """Refuses records that have other keys than the index says."""
        from tfwire._parsing.survey import keys_of

        wrong: int | None = None
        try:
            found = keys_of(records, self._keys.name, self._keys.are_strings)
            if found != (wanted := self._keys.at(numbers)):
                wrong = list(map(eq, found, wanted)).index(False)
        except ParseError as error:
            wrong = error.record_index
        if wrong is not None:
            path, number = self._joined.where(int(numbers[wrong]))
            text = "it has another key than the index says; the index is stale"
            raise DataLossError(
                f"{show_path(path)}: record {number}: {text}",
                path=path,
                record_index=number,
                reason="index",
            )

    def __contains__(self, key: object) -> bool:
        return bool(self._find([key])[0] >= 0)

    def __iter__(self) -> Iterator[int | bytes]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        name = self._keys.name.decode("utf-8", "backslashreplace")
        return f"<records of {self._records._name} by {name!r}: {plural(len(self), 'key')}>"


def _is_one(key: Any) -> bool:
    return isinstance(key, (str, bytes, int, np.integer))
