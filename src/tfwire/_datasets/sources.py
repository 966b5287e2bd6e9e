"""Where elements come from: arrays, generators, record files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import numpy as np

from tfwire._datasets.numbered import file_facts, share
from tfwire._datasets.stage import Cursor, Gathering, Stage
from tfwire._datasets.structure import describe, leaves, map_structure
from tfwire._objects import as_array

__all__ = ["Generator", "Records", "Slices"]

Array = np.ndarray[Any, Any]

# From this length on the copies of a record cost more than an object for it.
_SHORT = 2048


class _Counting(Gathering):
    """Elements that are found again by counting.

    Args:
        elements: Those behind the first count.
        count: How many were given.
        owner: What to close.
    """

    def __init__(self, elements: Iterator[Any], count: int, owner: Any = None) -> None:
        self._elements = elements
        self._count = count
        self._owner = owner

    def take(self, count: int) -> list[Any]:
        found = self.gather(self._elements, count)
        self._count += len(found)
        return found

    def snapshot(self) -> Any:
        return self._count

    def close(self) -> None:
        if self._owner is not None:
            self._owner.close()


# ---- Arrays and generators --------------------------------------------------------------------


class Slices(Stage):
    """The slices of arrays along their first axis."""

    def __init__(self, tensors: Any) -> None:
        self._arrays = map_structure(_sliceable, tensors)
        lengths = {len(leaf) for leaf in leaves(self._arrays)}
        if len(lengths) != 1:
            raise ValueError(f"arrays must agree in their first axis, found {sorted(lengths)}")
        self.length: int = lengths.pop()
        self.spec = map_structure(
            lambda array: describe(array.dtype, array.shape[1:]), self._arrays
        )

    def open(self, epoch: str, at: Any = None) -> Cursor:
        first = at or 0
        rows = (map_structure(partial(_row, i), self._arrays) for i in range(first, self.length))
        return _Counting(rows, first)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        numbers = share(self.length, num_shards, index, rule)
        wrapped = np.asarray(numbers, np.int64) % max(self.length, 1)
        return Slices(map_structure(itemgetter(wrapped[: len(numbers)]), self._arrays))

    def describe(self) -> str:
        return f"from_tensor_slices({self.length} x {self.spec})"


def _sliceable(tensor: Any) -> Array:
    """An array of rank 1 or more; strings as an object array of bytes."""
    if hasattr(tensor, "numpy"):
        tensor = tensor.numpy()
    array = as_array(tensor)
    if array.ndim == 0:
        raise ValueError("from_tensor_slices needs arrays with a first axis, found a scalar")
    return array


def _row(i: int, array: Array) -> Any:
    """A row that can be changed without changing what others see."""
    return array[i] if array.ndim == 1 else array[i].copy()


class Generator(Stage):
    """What a function without arguments generates, anew for every pass."""

    quiet = False

    def __init__(self, generator: Callable[[], Iterable[Any]]) -> None:
        self._generator = generator

    def open(self, epoch: str, at: Any = None) -> Cursor:
        elements = iter(self._generator())
        return _Counting(islice(elements, at, None) if at else elements, at or 0)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        from tfwire._datasets.stages import Shard

        if rule != "even":
            raise ValueError(f"rule={rule!r} needs a source of known length, not a generator")
        return Shard(self, num_shards, index)

    def describe(self) -> str:
        return "from_generator"


def _some_of(file: _File, count: int) -> list[bytes]:
    """Records of a file; none before an error, which it raises again."""
    try:
        return file.take(count)
    except Exception:
        return []


# ---- Record files -----------------------------------------------------------------------------


class Records(Stage):
    """The records of TFRecord files, one file after the other or several in turn.

    Args:
        paths: The files.
        compression_type: As for ``read_records``.
        cycle: From how many files to take a record in turn; a file that ends gives its place to
            the next, as TensorFlow's num_parallel_reads does.
        options: For ``read_records``.
    """

    spec = "string[]"

    def __init__(self, paths: list[Any], compression_type: str, cycle: int, **options: Any) -> None:
        self.paths = paths
        self.compression_type = compression_type
        self.cycle = max(1, min(cycle, len(paths)))
        self.options = options

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _FileCycle(self, at) if self.cycle > 1 else _FilesInTurn(self, at)

    def open_parsed(self, parser: Any, batch_size: int, drop_remainder: bool, at: Any) -> Cursor:
        """A pass of batches that are read and parsed in C, without an object per record.

        Where one stands is told by how many batches there were: going on there reads them again.
        """
        batches = parser.parse_file(
            self.paths,
            batch_size,
            compression_type=self.compression_type,
            on_corrupt=self.options.get("on_corrupt", "raise"),
            drop_remainder=drop_remainder,
        )
        return _Counting(islice(batches, at, None) if at else batches, at or 0, batches)

    def begins_short(self) -> bool:
        """Whether the first record is a short one of a plain file: its header begins with its
        length."""
        try:
            if not stat.S_ISREG(os.stat(self.paths[0]).st_mode):
                return False  # what is read of a pipe is gone
            with open(self.paths[0], "rb") as file:
                header = file.read(12)
        except (OSError, TypeError, IndexError):  # it is another's to report that
            return False
        return len(header) == 12 and int.from_bytes(header[:8], "little") < _SHORT

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """Whole files: how many records they hold is not known."""
        if rule != "even":
            raise ValueError(f"rule={rule!r} needs files that are indexed (indexed=True)")
        share_of_files = self.paths[index::num_shards]
        return Records(share_of_files, self.compression_type, self.cycle, **self.options)

    def describe(self) -> str:
        return f"TFRecordDataset({[file_facts(path) for path in self.paths]}, cycle={self.cycle})"


class _File(Gathering):
    """The records of one file.

    Args:
        stage: Its files.
        number: Which of them.
        at: The position to begin at, and how many records to pass over there.
    """

    def __init__(self, stage: Records, number: int, at: Sequence[int] = (0, 0, 0)) -> None:
        from tfwire.records import Position, read_records

        *position, given = at
        self._number = number
        self._records = read_records(
            stage.paths[number], stage.compression_type, start=Position(*position), **stage.options
        )
        self._iterator = iter(self._records)
        self._ready: list[bytes] = []  # records that were put back
        self._before: Any = None  # the snapshot before the first of those with them
        if given:
            self.take(given)

    def take(self, count: int) -> list[bytes]:
        found, self._ready = self._ready[:count], self._ready[count:]
        if found:
            self._before[-1] += len(found)
            return found if len(found) == count else found + self.take(count - len(found))
        return self.gather(self._iterator, count)

    def put_back(self, records: list[bytes], before: Any, given: int) -> None:
        """Takes back the last of what came since the snapshot before, save the first given."""
        self._ready, self._before = records, [*before[:-1], before[-1] + given]

    def snapshot(self) -> Any:
        """The file's number, the position in it, and how many records behind that were given."""
        if self._ready:
            return list(self._before)
        return [self._number, *self._records.position, 0]

    def close(self) -> None:
        self._records.close()


class _FilesInTurn(Gathering):
    """One file after the other."""

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        self._number, *place = at or [0, 0, 0, 0]
        self._file = self._open(place)

    def _open(self, place: Sequence[int] = (0, 0, 0)) -> _File | None:
        if self._number >= len(self._stage.paths):
            return None
        return _File(self._stage, self._number, place)

    def take(self, count: int) -> list[bytes]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[bytes] | None:
        if self._file is None:
            return None
        piece = self._file.take(count)
        if not piece:
            self._file.close()
            self._number += 1
            self._file = self._open()
        return piece

    def snapshot(self) -> Any:
        return [self._number, 0, 0, 0] if self._file is None else self._file.snapshot()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class _FileCycle(Gathering):
    """A record of each of some files in turn."""

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        if at is None:
            at = {"turn": 0, "next": 0, "files": []}
        self._turn: int = at["turn"]
        self._next: int = at["next"]  # the number of the file that is opened next
        self._files: list[_File | None] = [
            None if file is None else _File(stage, file[0], file[1:]) for file in at["files"]
        ]
        while len(self._files) < stage.cycle:
            self._files.append(self._open_next())

    def _open_next(self) -> _File | None:
        if self._next >= len(self._stage.paths):
            return None
        file = _File(self._stage, self._next)
        self._next += 1
        return file

    def take(self, count: int) -> list[bytes]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[bytes] | None:
        rounds = count // len(self._files)
        if self._turn == 0 and rounds > 1 and None not in self._files:
            return self._take_rounds(rounds)
        if any(file is not None for file in self._files):
            return self._take_one()
        return None

    def _take_rounds(self, rounds: int) -> list[bytes]:
        """A record of every file in turn, so many times or until one of the files ends; at least
        one record, if there is one."""
        files = [file for file in self._files if file is not None]
        before = [file.snapshot() for file in files]
        pieces = [_some_of(file, rounds) for file in files]
        whole = min(map(len, pieces))
        for file, place, piece in zip(files, before, pieces, strict=True):
            if len(piece) > whole:
                file.put_back(piece[whole:], place, whole)
        found = list(chain.from_iterable(zip(*(piece[:whole] for piece in pieces), strict=True)))
        return found if found else self._take_one()

    def _take_one(self) -> list[bytes]:
        """A record of the file whose turn it is, or of its successor; none if there is no such."""
        turn, piece = self._turn, list[bytes]()
        while not piece and (file := self._files[turn]) is not None:
            piece = file.take(1)
            if not piece:
                file.close()
                self._files[turn] = self._open_next()
        self._turn = (turn + 1) % len(self._files)
        return piece

    def snapshot(self) -> Any:
        files = [None if file is None else file.snapshot() for file in self._files]
        return {"turn": self._turn, "next": self._next, "files": files}

    def close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()
