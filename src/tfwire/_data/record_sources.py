"""Record files as sources of elements: one after the other, or several in turn."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain
from typing import Any

import numpy as np

from tfwire._base.errors import DataLossError, warn
from tfwire._data.permutations import as_key, permuted
from tfwire._data.resuming.positions import Left
from tfwire._data.stages import Cursor, GatheringElements, GatheringPieces, Stage
from tfwire._data.state_checks import COUNT, MISSING, after, check_state, file_id, state_or
from tfwire._parsing.parse_file import ParsingOptions, parse_from
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.options import make_options
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.reading.read_records import RecordIterator
from tfwire._records.reading.records_ahead import RecordsAhead

# Copying longer records costs more than a Python object for each.
_COPIED_BYTES = 2048
_RECORDS_PER_PASS = 256  # records dropped at a time


class Records(Stage):
    """The records of TFRecord files, one file after the other or several files in turn.

    Args:
        paths: The files.
        compression_type: As for ``read_records``.
        cycle: How many files to read in turn, a record of each.
        seed: Shuffles the files in every epoch; None: they keep their order.
        options: For ``read_records``.
    """

    spec = "string[]"
    _shares: tuple[tuple[int, int], ...] = ()  # which shard of the files this is, if any
    _starts: Sequence[Sequence[int]] = ()  # where files begin, if not all do at their first record
    _num_threads = 1  # that read plain files, one after the other

    def __init__(
        self,
        paths: list[Any],
        compression_type: Any,
        cycle: int,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        self.paths = paths
        self.compression_type = compression_type
        self.cycle = max(1, min(cycle, len(paths)))
        self.seed = seed
        self.redraws = seed is not None
        self.options = options
        self._epochs = [0]  # the number of the next one, shared by copies with other threads

    @property
    def next_epoch(self) -> int:
        return self._epochs[0]

    @next_epoch.setter
    def next_epoch(self, epoch: int) -> None:
        self._epochs[0] = epoch

    def with_options(self, **options: Any) -> Records:
        """The same files, read with other options."""
        found = copy(self)
        found.options = options
        found._epochs = self._epochs.copy()
        return found

    def apart(self) -> Records:
        return self.with_options(**self.options)

    def with_threads(self, num_threads: int) -> Records:
        """The same files, read by this many threads, the caller's included."""
        found = copy(self)
        found._num_threads = num_threads
        return found

    @property
    def begin_whole(self) -> bool:
        """True if files are read one after the other, each from its first record on."""
        return self.cycle <= 1 and not self._starts

    def start(self, number: int) -> list[int]:
        """The place where a file begins, without its number."""
        return [*self._starts[number], 0] if self._starts else [0, 0, 0]

    def of_epoch(self, epoch: str) -> Records:
        """The files of this shard in the order of an epoch."""
        if self.seed is None:
            return self
        order = np.arange(len(self.paths), dtype=np.int64)
        order = permuted(as_key(self.seed, epoch, "files"), len(order), order)
        for num_shards, index in self._shares:
            order = order[index::num_shards]
        found = copy(self)
        found.paths = [self.paths[number] for number in order]
        found.cycle = max(1, min(self.cycle, len(found.paths)))
        found.seed = None
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        files = self.of_epoch(epoch)
        return _FileCycle(files, at) if files.cycle > 1 else _FilesInTurn(files, at)

    def open_parsed(
        self, parser: Any, batch_size: int, drop_remainder: bool, num_threads: int, at: Any
    ) -> Cursor:
        """A pass of batches that are read and parsed in C, without an object per record.

        Its position is a place in the files and how many batches were given from there on: some
        megabytes at most are read again.
        """
        number, *position, given = state_or(at, self.place_form(), [0, 0, 0, 0])
        reading = make_options(
            self.compression_type,
            on_corrupt=self.options.get("on_corrupt", "raise"),
            max_record_size=self.options.get("max_record_size"),
        )
        options = ParsingOptions(batch_size, reading, num_threads, drop_remainder)
        batches = parse_from(parser, self.paths[number:], options, RecordPosition(*position))
        return _Parsed(batches, number, given)

    def records_ahead(self, **how: Any) -> RecordsAhead | None:
        """The threads that read ahead, for a pass that reads one file after the other."""
        if self._num_threads <= 1 or self._starts:  # the threads begin files at their beginning
            return None
        options = make_options(self.compression_type, **self.options)
        return RecordsAhead(options, self._num_threads, **how)

    def reader(
        self, number: int, start: Any, markers: Markers, ahead: RecordsAhead | None
    ) -> BatchReader:
        """A reader of one of the files."""
        options = make_options(self.compression_type, **self.options)
        file = [self.paths[number]]
        return BatchReader(file, options, start=start, markers=markers, records_ahead=ahead)

    def place_form(self) -> list[Any]:
        """The form of a place: a file's number, the record and the offset where to begin in it, and
        how many records from there on were given."""
        return [range(len(self.paths) + 1), COUNT, COUNT, COUNT]

    def begins_short(self) -> bool:
        """True if a plain file begins with a short record: a header begins with the length."""
        try:
            if not stat.S_ISREG(os.stat(self.paths[0]).st_mode):
                return False  # bytes read from a pipe are lost
            with open(self.paths[0], "rb") as file:
                header = file.read(12)
        except (OSError, TypeError, IndexError):  # the reader reports it
            return False
        return len(header) == 12 and int.from_bytes(header[:8], "little") < _COPIED_BYTES

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """Whole files: the number of their records is not known."""
        if rule != "even":
            raise ValueError(f"rule={rule!r} needs files that are indexed (indexed=True)")
        if (num_files := len(self.of_epoch("0").paths)) < num_shards:
            warn(
                f"{num_shards} shards of {num_files} files: {num_shards - num_files} shards are "
                "empty; with indexed=True, records are divided"
            )
        share = self.with_options(**self.options)
        if self.seed is None:  # else they are shuffled first, all of them
            share.paths = self.paths[index::num_shards]
            share.cycle = max(1, min(self.cycle, len(share.paths)))
            share._starts = self._starts[index::num_shards]
        share._shares = (*self._shares, (num_shards, index))
        return share

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        """Files that were not begun, and the others from where they are read on."""
        found = self.apart()
        found.paths, starts = [], []
        for left in passes:
            files = left.stage.of_epoch(epoch)
            for number, start in files._left(files.open(epoch, left.place(epoch))):
                found.paths.append(files.paths[number])
                starts.append(start)
        found._starts = starts
        found.seed, found.redraws = None, False
        cycle = max(left.stage.cycle for left in passes)
        found.cycle = max(1, min(cycle, len(starts)))
        found._shares = ((-1, sum(record for record, _ in starts)),)  # other places than before
        return found

    def _left(self, cursor: Any) -> list[tuple[int, list[int]]]:
        """The numbers of files that a cursor that was just opened has left, and where in them."""
        try:
            at = cursor.place()
        finally:
            cursor.close()
        if self.cycle > 1:
            places, following = [file for file in at["files"] if file is not None], at["next"]
        else:
            places, following = [at][: len(self.paths) - at[0]], at[0] + 1
        found = [(number, position) for number, *position, _ in places]
        later = range(following, len(self.paths))
        return found + [(number, self.start(number)[:2]) for number in later]

    def origin(self, epoch: str, place: int) -> list[int]:
        return [*chain.from_iterable(self._shares), place]

    def describe(self) -> str:
        facts = [file_id(path) for path in self.paths]
        shares = "".join(f"[{index}::{num_shards}]" for num_shards, index in self._shares)
        shuffled = "" if self.seed is None else f", shuffle_files={self.seed}"
        return f"TFRecordDataset({facts}, cycle={self.cycle}{shuffled}){shares}"


class _File(GatheringElements):
    """The records of one file.

    Args:
        stage: Its files.
        markers: As for BatchReader.
        number: The number of the file.
        at: The position to begin at, and how many records to skip there.
        ahead: The threads that read it, if there are any.
    """

    def __init__(
        self,
        stage: Records,
        markers: Markers,
        number: int,
        at: Sequence[int] = (0, 0, 0),
        ahead: RecordsAhead | None = None,
    ) -> None:
        *position, given = at
        self._number = number
        self._reader = stage.reader(number, RecordPosition(*position), markers, ahead)
        self._records = RecordIterator(self._reader)
        self._iterator = iter(self._records)
        self._ready: list[bytes] = []  # records that were read ahead
        self._before: list[int] = []  # the place before the first of them
        self._given = 0  # how many of them were given
        while given > 0 and self._error is None:
            given -= self._pass_over(min(given, _RECORDS_PER_PASS))

    def elements(self, count: int) -> Iterator[bytes]:
        return self._iterator

    def take(self, count: int) -> list[bytes]:
        if not self._ready:
            return super().take(count)
        first, self._given = self._given, self._given + count
        found = self._ready[first : self._given]
        if self._given >= len(self._ready):
            self._ready = []
        return found

    def _pass_over(self, count: int) -> int:
        """Drops count records that were given before; returns how many."""
        with suppress(DataLossError, OSError):  # take raises it
            if len(self.take(count)) < count and self._error is None:
                raise ValueError(MISSING)
        return count

    def read_ahead(self, count: int) -> int:
        """Reads count records, or those before the end or an error, unless some are ready. Returns
        how many are ready."""
        if not self._ready and self._error is None:
            self._before, self._given = self.place(), 0
            with suppress(Exception):  # take raises it
                self._ready = super().take(count)
            self._raised = False
        return len(self._ready) - self._given if self._ready else 0

    def place(self) -> Any:
        """The file's number, the position in it, and how many records after that were given."""
        return [self._number, *self._records.position, 0]

    def snapshot(self) -> Any:
        # Allowed after an error: the position is before the damaged record.
        return [*self._before[:-1], self._given] if self._ready else self.place()

    def stop(self) -> None:
        self._reader.interrupt()

    def close(self) -> None:
        self._records.close()


class _FilesInTurn(GatheringPieces):
    """One file after the other."""

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        self._markers = Markers()
        first = [0, *stage.start(0)] if stage.paths else [0, 0, 0, 0]
        self._number, *place = state_or(at, stage.place_form(), first)
        self._ahead = stage.records_ahead()
        self._file = self._open(place)

    def _open(self, place: Sequence[int] | None = None) -> _File | None:
        if self._number >= len(self._stage.paths):
            return None
        place = self._stage.start(self._number) if place is None else place
        return _File(self._stage, self._markers, self._number, place, self._ahead)

    def piece(self, count: int) -> list[bytes] | None:
        if self._file is None:
            return None
        if not (piece := self._file.take(count)):
            self._open_next()
        return piece

    def _open_next(self) -> None:
        super().close()
        self._number += 1
        self._file = self._open()

    def recover(self) -> bool:  # after damage by the next file, as in TensorFlow
        if not self.is_to_raise and isinstance(self._error, DataLossError):
            self._open_next()
            self._error, self._raised = None, False
        return super().recover()

    def place(self) -> Any:
        return [self._number, 0, 0, 0] if self._file is None else self._file.snapshot()

    def parts(self) -> Iterable[Cursor]:
        file = self._file
        return () if file is None else (file,)

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
        super().stop()

    def close(self) -> None:
        super().close()
        if self._ahead is not None:
            self._ahead.close()


class _FileCycle(GatheringPieces):
    """Records of several files in turn, in the order of TensorFlow's num_parallel_reads.
    A file that has ended loses its turn: the next file takes its slot, and the turn passes on."""

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        self._markers = Markers()
        numbers = range(len(stage.paths) + 1)
        form = {"turn": range(stage.cycle), "next": numbers, "files": [None] * stage.cycle}
        at = state_or(at, form, {"turn": 0, "next": 0, "files": []})
        self._check_files(at["files"], at["next"])
        self._turn: int = at["turn"]
        self._next: int = at["next"]  # the number of the next file to open
        self._files: list[_File | None] = []
        try:
            for file in at["files"]:
                self._files.append(None if file is None else self._open(file[0], file[1:]))
            while len(self._files) < stage.cycle:
                self._files.append(self._open_next())
        except BaseException:
            self.close()
            raise

    def _check_files(self, files: list[Any], following: int) -> None:
        """Checks the places in the open files: each of another one, and none is passed over."""
        places = [file for file in files if file is not None]
        for place in places:
            check_state(place, self._stage.place_form())
            check_state(place[0], range(following))
        ended = len(places) < len(files)
        if len({place[0] for place in places}) < len(places) or (
            ended and following < len(self._stage.paths)
        ):
            raise ValueError("the state is damaged: a file is read twice, or never")

    def _open_next(self) -> _File | None:
        if self._next >= len(self._stage.paths):
            return None
        self._next += 1
        return self._open(self._next - 1, self._stage.start(self._next - 1))

    def _open(self, number: int, place: Sequence[int]) -> _File:
        return _File(self._stage, self._markers, number, place)

    def piece(self, count: int) -> list[bytes] | None:
        if not (files := [file for file in self._files if file is not None]):
            return None
        rounds = count // len(files)
        if self._turn == 0 and rounds > 1:
            rounds = min([rounds, *(file.read_ahead(rounds) for file in files)])
            if rounds:
                pieces = [file.take(rounds) for file in files]
                return list(chain.from_iterable(zip(*pieces, strict=True)))
        return self._take_one()

    def _take_one(self) -> list[bytes]:
        """The next record of the current file; nothing if it has ended."""
        file = self._files[self._turn]
        piece = [] if file is None else file.take(1)
        if file is not None and not piece:
            file.close()
            self._files[self._turn] = self._open_next()
        self._turn = (self._turn + 1) % len(self._files)
        return piece

    def place(self) -> Any:
        files = [None if file is None else file.snapshot() for file in self._files]
        return {"turn": self._turn, "next": self._next, "files": files}

    def parts(self) -> Iterable[Cursor]:
        return [file for file in self._files if file is not None]


class _Parsed(GatheringElements):
    """The batches of ``parse_file``.

    Args:
        batches: They begin at a position in a file.
        number: The number of this file.
        given: How many of the batches were given before.
    """

    def __init__(self, batches: Any, number: int, given: int) -> None:
        self._batches = batches
        self._elements = after(batches, given)
        self._number = number
        # Until a batch is drawn, those that were given before are still to be dropped.
        self._given = given

    def elements(self, count: int) -> Iterator[Any]:
        return self._elements

    def take(self, count: int) -> list[Any]:
        found = super().take(count)
        self._given = 0
        return found

    def place(self) -> Any:
        if self._batches.pending_error is not None:  # the last batch may be incomplete
            raise self._batches.pending_error
        number, position, given = self._batches.place
        return [self._number + number, *position, self._given or given]

    def stop(self) -> None:
        self._batches.stop()

    def close(self) -> None:
        self._batches.close()
