"""Pipelines of C: files to columns, totals or records, by any number of threads.

    pipeline = NativePipeline(paths, PipelineOptions(lib.TFW_PIPELINE_VERIFY, num_threads=8))
    while (found := pipeline.next()) is not None:
        if isinstance(found, Stop):  # damage, a file that is not plain, a record that does not fit
            ...
            pipeline.seek(place after it)
        else:
            found.info.tally, found.begin, found.end

The threads are C's and hold nothing of Python. What comes does not depend on how many there are.
Whatever is not an undamaged, uncompressed, regular file is a Stop, for others to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from operator import is_
from typing import Any, NamedTuple

from tfwire._base.aliases import Array
from tfwire._base.native import check, create, ffi, lib, new_error, new_struct, text
from tfwire._records.files.paths import Path
from tfwire._records.reading.damage import RecordPosition

# C refuses more, and no machine has use for them.
MOST_THREADS = 1024
# Milliseconds after which a thread that waits looks for signals.
_STEP = 100


class FilePlace(NamedTuple):
    """Where a record begins, or would begin.

    Attributes:
        file: The number of the file in the paths.
        position: In the file.
    """

    file: int = 0
    position: RecordPosition = RecordPosition()


BEGINNING = FilePlace()


class PipelineOptions(NamedTuple):
    """What a pipeline does: ``tfw_pipeline_options``, where names are the same.

    Attributes:
        mode: TFW_PIPELINE_PARSE, TFW_PIPELINE_VERIFY ...
        context, lists: ``tfw_schema *`` to parse by, which the pipeline and its chunks share:
            they may be freed at any time.
        indexed: ``tfw_indexed_file[]`` for ``fetch``, instead of paths.
        select, wanted: ``tfw_select``, and a pointer for it.
        held: What owns what ``indexed``, ``wanted`` or ``give`` points to.
    """

    mode: int
    context: Any = ffi.NULL
    lists: Any = ffi.NULL
    batch_size: int = 0
    max_record_size: int = 0
    range_bytes: int = 0
    num_threads: int = 1
    flags: int = 0
    indexed: Any = ()
    select: Any = ffi.NULL
    wanted: Any = ffi.NULL
    held: Any = None


class Draw(NamedTuple):
    """Numbers of records that are computed where the records are fetched: ``tfw_draw``.

    Attributes:
        places: Those in the random order of a key; the numbers themselves, if there is none.
        key: Of the order.
        size: How many numbers that has; 0: there is none.
        ordered: The numbers of the records that are in random order.
    """

    places: range
    key: int = 0
    size: int = 0
    ordered: range = range(0)


class Stop(NamedTuple):
    """Why a pipeline does not go on by itself. Everything before it was delivered.

    Attributes:
        status: What C says: TFW_E_DATA_CRC, TFW_E_COUNT ...
        error: The ``tfw_error *``, valid until the next call.
        place: The record at fault.
        next: The record after it, if it is known where that begins.
    """

    status: int
    error: Any
    place: FilePlace
    next: FilePlace | None


class UnknownKey(NamedTuple):
    """A key that no schema has.

    Attributes:
        file, record: The number of the first record that has it, and that of its file.
        key: Of a long one the beginning.
        is_list: It is that of a feature list.
        has_more: It is the last one of which something is known, and there are others.
    """

    file: int
    record: int
    key: bytes
    is_list: bool
    has_more: bool


class NativePipeline:
    """A ``tfw_pipeline``. Only one thread may use it at a time; any may cancel it.

    Args:
        paths: Of files of this machine.
        options: What to do with their records.
        start: Where to begin.

    Raises:
        ValueError: An option is out of range.
        MemoryError: Out of memory.
    """

    def __init__(
        self, paths: Iterable[Path], options: PipelineOptions, start: FilePlace = BEGINNING
    ) -> None:
        native = new_struct("tfw_pipeline_options")
        table = _PathTable(paths)
        native.paths, native.path_count = table.native, len(table.names)
        native.start = _native_place(start)[0]
        native.mode, native.flags = options.mode, options.flags
        native.context, native.lists = options.context, options.lists
        native.batch_size, native.range_bytes = options.batch_size, options.range_bytes
        native.max_record_size = options.max_record_size
        native.num_threads = min(options.num_threads, MOST_THREADS)
        native.select, native.wanted = options.select, options.wanted
        if len(options.indexed):
            native.indexed, native.indexed_count = options.indexed, len(options.indexed)
        created = create(lib.tfw_pipeline_create, "tfw_pipeline", native)
        # What its threads use goes after it: it is kept by the destructor of what is freed. In
        # garbage, destructors are called in any order, but before anything is cleared.
        self._held = options.held
        keeping = ffi.gc(created, partial(is_, options.held))
        # Freed with the last reference: a thread that cancels it has one.
        self._native: Any = ffi.gc(keeping, lib.tfw_pipeline_free)
        self._pid = os.getpid()
        self._out = ffi.new("tfw_chunk **")
        self._error = new_error()
        self._places = ffi.new("tfw_place[2]")
        self._pushed: int | None = None  # the number of the file of which records are pushed

    def next(self) -> Chunk | Stop | None:
        """The next chunk, or why there is none; None at the end. A Stop comes again until ``seek``
        or ``push`` is called. Between these two it is TFW_NEED_INPUT, when all that was pushed is
        parsed. Signals are seen while it waits.

        Raises:
            RuntimeError: It was cancelled or closed; or its threads are in the parent process.
            MemoryError: Out of memory.
        """
        native, out, error = self._native, self._out, self._error
        if native is None:
            raise RuntimeError("the pipeline is closed")
        timeout = _STEP if self._pushed is None else -1
        while True:
            status = lib.tfw_pipeline_next(native, timeout, out, error)
            if status != lib.TFW_NEED_INPUT or self._pushed is not None:
                break
        if status == lib.TFW_OK:
            found, out[0] = out[0], ffi.NULL
            return Chunk(ffi.gc(found, lib.tfw_chunk_release))
        if status == lib.TFW_END:
            return None
        if status in (lib.TFW_E_ARGUMENT, lib.TFW_E_MEMORY) or self._is_of_parent(status):
            _raise(status, error)
        return self._stop(status)

    def fetch(self, numbers: Array | Draw) -> bool:
        """Orders records of the indexed files: each order is one chunk, in turn.

        Args:
            numbers: int64, contiguous; counted through all files, in any order. Or a Draw.

        Returns:
            False: there is no space; call ``next`` first.

        Raises:
            ValueError: There is no such record, or there was a Stop.
            MemoryError: Out of memory.
        """
        if not isinstance(numbers, Draw):
            memory = ffi.from_buffer("int64_t[]", numbers)
            return self._order(lib.tfw_pipeline_fetch, memory, len(memory))
        places, key, size, ordered = numbers
        fields = len(places), places.start, places.step, key, size, ordered.start, ordered.step
        return self._order(lib.tfw_pipeline_draw, ffi.new("tfw_draw *", fields))

    def give(self, spans: Array) -> bool:
        """As ``fetch``, with TFW_PIPELINE_GIVEN: orders records in memory.

        Args:
            spans: uint64 of shape (n, 2), contiguous: the address and the length of each. Hold
                their memory until the chunk came.
        """
        memory = ffi.from_buffer("tfw_span[]", spans)
        return self._order(lib.tfw_pipeline_give, memory, len(memory))

    def _order(self, order: Any, *records: Any) -> bool:
        native = self._native
        if native is None:
            raise RuntimeError("the pipeline is closed")
        status = order(native, *records, self._error)
        return check(status, self._error) == int(lib.TFW_OK)

    def _check(self, status: int) -> int:
        if status == lib.TFW_E_MEMORY or self._is_of_parent(status):
            _raise(status, self._error)
        return check(status, self._error)

    def _is_of_parent(self, status: int) -> bool:
        """Whether this is a forked child, which has none of the threads."""
        is_told = status == lib.TFW_E_UNSUPPORTED and os.getpid() != self._pid
        return is_told and "parent process" in text(self._error.text)

    def _stop(self, status: int) -> Stop:
        place, after = self._places, self._places + 1
        lib.tfw_pipeline_stopped(self._native, place, after)
        is_known = after.record != 0
        return Stop(
            status, self._error, place_of(place[0]), place_of(after[0]) if is_known else None
        )

    def add(self, paths: Iterable[Path | None]) -> None:
        """More files, after those that are known; also after the end. None: something that is not
        for the pipeline, which stops there."""
        table = _PathTable(paths)
        self._check(lib.tfw_pipeline_add(self._native, table.native, len(table.names), self._error))

    def seek(self, place: FilePlace) -> None:
        """Goes on at a record after a Stop.

        Raises:
            ValueError: There was none, or the record lies before it.
        """
        self._check(lib.tfw_pipeline_seek(self._native, _native_place(place), self._error))
        # What was pushed of a file goes on after a record of it that is left out.
        if place.file != self._pushed:
            self._pushed = None

    def push(self, batch: Any, file: int, parcel: Any = None) -> bool:
        """Records that somebody else has read and verified follow those before a Stop, or the end.

        Args:
            batch: A ``tfw_batch *``.
            file: The number of their file.
            parcel: The ``tfw_parcel *`` that has them alone, to be emptied; None: there is none.

        Returns:
            False: there is no space; call ``next`` first.
        """
        if parcel is None:
            status = lib.tfw_pipeline_push(self._native, batch, file, self._error)
        else:
            status = lib.tfw_pipeline_push_parcel(self._native, parcel, file, self._error)
        self._check(status)
        if status == lib.TFW_OK:
            self._pushed = file
        return bool(status != lib.TFW_NEED_SPACE)

    def misfit(self) -> bytes | None:
        """The message at fault after a Stop, if it is whole and does not fit."""
        data, size = ffi.new("uint8_t **"), ffi.new("uint64_t *")
        lib.tfw_pipeline_misfit(self._native, data, size)
        return bytes(ffi.buffer(data[0], size[0])) if data[0] else None

    def tally(self) -> Any:
        """With TFW_PIPELINE_TALLY: the ``tfw_tally *`` of the records read so far."""
        tally = ffi.new("tfw_tally *")
        lib.tfw_pipeline_tally(self._native, tally)
        return tally

    def unknown(self) -> list[UnknownKey]:
        """With TFW_PIPELINE_NOTE_UNKNOWN: the first keys that the delivered records have and the
        schemas have not. None in a forked child."""
        found, native = list[UnknownKey](), ffi.new("tfw_unknown *")
        while lib.tfw_pipeline_unknown(self._native, len(found), native) == lib.TFW_OK:
            key = bytes(ffi.buffer(native.name, native.name_len))
            file, position = place_of(native.place)
            more = bool(native.has_more)
            found.append(UnknownKey(file, position.record_index, key, bool(native.is_list), more))
        return found

    def cancel(self) -> None:
        """Wakes the thread that waits in ``next``. Any thread may call this at any time, also in a
        signal handler."""
        native = self._native
        if native is not None:
            lib.tfw_pipeline_cancel(native)

    def close(self) -> None:
        """Ends the threads, when nobody is in a call. Chunks stay valid. Closing again is allowed.
        In a forked child, the threads of the parent are left alone."""
        lost, self._out[0] = self._out[0], ffi.NULL  # by an interrupt
        lib.tfw_chunk_release(lost)
        self._native = None


class Chunk:
    """Some whole batches, or some records of one file. Any thread may drop it, at any time.

    Attributes:
        native: The ``tfw_chunk *``, which owns its memory.
        info: The ``tfw_chunk_info *``; what it points to is valid as long as the chunk.
    """

    __slots__ = ("info", "native")

    def __init__(self, native: Any) -> None:
        self.native: Any = native
        self.info: Any = new_struct("tfw_chunk_info")
        lib.tfw_chunk_get(native, self.info)

    @property
    def num_records(self) -> int:
        return int(self.info.records)

    @property
    def begin(self) -> FilePlace:
        """Where the first record begins."""
        return place_of(self.info.begin)

    @property
    def end(self) -> FilePlace:
        """Where the last one ends, in its file."""
        return place_of(self.info.end)

    def place(self, record: int) -> FilePlace:
        """Where a record begins, of those that are selected. Of those that are parsed without
        TFW_PIPELINE_POSITIONS the offset may be that of one before it."""
        place = ffi.new("tfw_place *")
        lib.tfw_chunk_place(self.native, record, place)
        return place_of(place)

    def release(self) -> None:
        """Gives the memory back at once. No array over it may be left."""
        ffi.release(self.native)


class _PathTable:
    """Paths as C takes them."""

    def __init__(self, paths: Iterable[Path | None]) -> None:
        self.names = [
            ffi.NULL if path is None else ffi.new("char[]", os.fsencode(path)) for path in paths
        ]
        self.native = ffi.new("char *[]", self.names)


def _raise(status: int, error: Any) -> None:
    if status == lib.TFW_E_MEMORY:
        check(status, error)
    if status == lib.TFW_E_UNSUPPORTED:
        raise RuntimeError("the threads of this iterator did not survive the fork; start again")
    raise RuntimeError(text(error.text))


def place_of(native: Any) -> FilePlace:
    """A ``tfw_place``."""
    return FilePlace(native.file, RecordPosition(native.record, native.offset))


def _native_place(place: FilePlace) -> Any:
    file, (record, offset) = place
    return ffi.new("tfw_place *", {"file": file, "record": record, "offset": offset})
