"""Files to batches: by a pipeline of C, and by the reader where that stops.

A pipeline reads plain, undamaged, regular files. At anything else it stops, with all records before
it delivered: at damage, a compressed file, a pipe, a URL. From that place to the end of that file
the reader goes on, which knows the policies and the messages; what it delivers is pushed into the
pipeline, which parses it. Then the pipeline has the next file. One thread is no special case.
"""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain, count
from typing import Any, Generic, NamedTuple, TypeVar

from tfwire._base.arrays import keep_heap
from tfwire._base.errors import ParseError, warn
from tfwire._base.native import damaged_record_error, ffi, lib, objects
from tfwire._parsing.assembler import Assembler, Misfit
from tfwire._parsing.failure import (
    ADVICE,
    ParseFailure,
    Place,
    message_keys,
    parse_error,
    raise_failure,
)
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import Plan
from tfwire._records.files.byte_sources import open_regular
from tfwire._records.files.compression import DETECT_SIZE, detect_compression
from tfwire._records.files.paths import is_path
from tfwire._records.files.urls import ObjectPath, is_url
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition, SkippedRegions
from tfwire._records.reading.files_ahead import FilesAhead
from tfwire._records.reading.options import ReadOptions
from tfwire._records.reading.pipeline import (
    BEGINNING,
    Chunk,
    FilePlace,
    NativePipeline,
    PipelineOptions,
    Stop,
)
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.reading.receipts import Receipt

_MAX_ERRORS_KEPT = 1000
_MOST_BATCHED = 1 << 62  # of a batch, for C
_NO_MORE: Any = object()
# What C reports of a record that does not fit.
_MISFITS = {lib.TFW_E_WIRE, lib.TFW_E_MISSING, lib.TFW_E_KIND, lib.TFW_E_COUNT}
# Bytes that a thread reads at a time; 0: as C has it.
_PARSED_BYTES = 0


class ParsingOptions(NamedTuple):
    """How to read and parse files, checked.

    Attributes:
        batch_size: Records of a batch.
        reading: How to read the files.
        num_threads: How many threads read and parse; 1: the caller's.
        drop_remainder: Leave out an incomplete last batch.
        skip: Leave out records that do not fit.
        sampled: The specification was inferred from some of the records: errors say what to do.
        notes_unknown: Warn of features that it has not.
    """

    batch_size: int
    reading: ReadOptions
    num_threads: int = 1
    drop_remainder: bool = False
    skip: bool = False
    sampled: bool = False
    notes_unknown: bool = False


Batch = TypeVar("Batch")
# The path of a file by its number; None: it has none.
PathsOfFiles = Callable[[int], Any]


class FileParser(Generic[Batch]):
    """A compiled specification, as parse_from needs it to parse files."""

    _flags = 0
    _pipeline_flags = 0

    def _set_schemas(self, schemas: Sequence[Schema | None]) -> None:
        self._plans: Sequence[Plan | None] = [
            None if schema is None else schema.plan for schema in schemas
        ]
        self._schemas = tuple(s if s is None else s.with_own_memory() for s in schemas)

    @abstractmethod
    def _batches_of(
        self, chunk: Chunk, count: int, size: int, paths: PathsOfFiles
    ) -> Iterator[Batch]:
        """Results of the first records of a chunk, in batches of a size."""

    def _assembler(self, size: int) -> Assembler | None:
        """Where records may fit C and still not the specification: what finds these, and makes
        batches of a size of the others. None: there are none such, or C finds them later."""
        return None

    def _keys(self, message: Any, failure: ParseFailure) -> list[Any] | None:
        """The keys of a message, if a feature is missing from it."""
        if failure.reason != "missing":
            return None
        return message_keys(message, sequence=len(self._plans) == 2, lists=failure.list)


class Outcome(NamedTuple):
    """One step of the iteration.

    Attributes:
        batches: The results, each made when it is asked for; ``Batches``, which any thread may ask
            for the next, where that cannot fail.
        num_skipped: Number of regions of the files skipped up to the end of these batches.
        error: The error after these batches, or None.
        last: True if no batch comes after these.
        begin: Where their first record begins: a FilePlace, or a ``tfw_chunk_info *`` that has it.
    """

    batches: Iterator[Any]
    num_skipped: int
    error: BaseException | None = None
    last: bool = False
    begin: Any = BEGINNING


class LeftOut:
    """Records left out because they do not fit.

    Attributes:
        errors: The errors of the first 1000.
        count: Number of all of them.
    """

    def __init__(self) -> None:
        self.errors: list[ParseError] = []
        self.count: int = 0

    def note(self, error: ParseError) -> None:
        self.count += 1
        if len(self.errors) < _MAX_ERRORS_KEPT:
            self.errors.append(error)


class FileChunks:
    """The chunks of files as batches; for one thread at a time, but for ``interrupt``.

    Args:
        parser: Makes the results.
        inputs: The files, as ``input_paths`` gives them: a list, or an iterator.
        options: How to read and parse them.
        start: Where to begin in the first file.

    Attributes:
        left_out: The records left out because they do not fit.
        late: Of each feature that is no column, though the parser has those of a sample: file,
            record, key, is_list and has_more, as ``warn_of`` has them. Known when this is closed.
    """

    def __init__(
        self,
        parser: FileParser[Any],
        inputs: list[Any] | Iterator[Any],
        options: ParsingOptions,
        start: RecordPosition,
    ) -> None:
        self._parser = parser
        self._options = options
        self._start = start
        self._advice = ADVICE if options.sampled else ""
        self.left_out: LeftOut = LeftOut()
        self.late: list[tuple[Any, ...]] = []
        self._known: list[Any] = []  # the inputs that the pipeline was told of
        self._is_list = isinstance(inputs, list)
        self._left = iter(inputs)
        self._left_error: Exception | None = None  # that getting more of them has raised
        # The receipt of records is the pipeline's: but of unverified ones that are left out, only
        # the reader knows the checksums in the file.
        unverified = bool(options.reading.flags & lib.TFW_NO_DATA_CRC)
        self._adds_up = options.reading.receipt and not (options.skip and unverified)
        self._of_left_out = Receipt()
        self._reader = self._create_reader()
        self._is_careful = False  # the reader reads the file at which the pipeline has stopped
        self._file = -1  # the number of that
        self._names: dict[int, Any] = {}  # of files that the reader has opened
        self._cut: Exception | None = None  # what is wrong if the reader finds nothing more in it
        self._batch: Any = None  # of the reader's, for which the pipeline had no space
        self._receipt: Receipt | None = None  # when it is closed
        self._markers = Markers()
        self._num_reached = 0  # files
        self._error: BaseException | None = None  # that ends the iteration
        self._is_ending = False  # no more is read; what was pushed is still to come
        self._was_told = False  # the pipeline has nothing but the rest, which comes next
        self._wants_rest = False  # that is what comes
        # Columns that must fit each other are compared here: batches of one record lie whole in
        # one chunk, so that each record can be named or left out.
        self._assembler = parser._assembler(options.batch_size)
        self._pipeline = self._create_pipeline()
        keep_heap()

    def _create_reader(self) -> BatchReader:
        reading, num_threads = self._options.reading, self._options.num_threads
        reading = reading._replace(receipt=reading.receipt and not self._adds_up)
        inputs: Iterator[Any] = map(self._known.__getitem__, count())
        if num_threads > 1 and reading.compression and self._is_list:
            listed = list(self._left)
            self._left = iter(listed)
            inputs = FilesAhead(listed, reading, num_threads, self._start)
        return BatchReader(inputs, reading)

    def _create_pipeline(self) -> NativePipeline:
        options, (first, *others) = self._options, self._parser._schemas
        reading = options.reading
        flags = self._parser._flags | self._parser._pipeline_flags | lib.TFW_PIPELINE_KEEP_REST
        flags |= lib.TFW_SEQUENCE if others else 0
        flags |= lib.TFW_PIPELINE_TALLY if self._adds_up else 0
        flags |= lib.TFW_PIPELINE_NOTE_UNKNOWN if options.notes_unknown else 0
        flags |= lib.TFW_PIPELINE_NO_DATA_CRC if reading.flags & lib.TFW_NO_DATA_CRC else 0
        native = PipelineOptions(
            lib.TFW_PIPELINE_PARSE,
            ffi.NULL if first is None else first.for_files(),
            ffi.NULL if not others or others[0] is None else others[0].for_files(),
            1 if self._assembler is not None else min(options.batch_size, _MOST_BATCHED),
            reading.max_record_size,
            _PARSED_BYTES,
            options.num_threads,
            flags,
        )
        return NativePipeline([], native, FilePlace(0, self._start))

    # ---- What is asked for ---------------------------------------------------------------------

    def next(self) -> Outcome:
        """The next batches. The last is incomplete at the end or before an error."""
        while True:
            if self._is_careful and not self._is_ending:
                self._attempt(self._push)
            found = self._pipeline.next()
            if isinstance(found, Chunk):
                return self._outcome(found)
            if found is not None and found.status == lib.TFW_NEED_INPUT:
                continue
            self._was_told = True
            if found is not None and not self._wants_rest:
                self._reach(found.place.file)
            if self._wants_rest:
                self._reach(len(self._known) - 1 if self._error is None else -1)
                return self._last_outcome(FilePlace(len(self._known)))
            if found is not None and found.status in _MISFITS:
                self._attempt(self._meet_misfit, found)
            elif self._is_ending:
                self._wants_rest = True  # which the next call gives
            elif not self._is_careful:
                self._attempt(self._go_on, found)

    def _attempt(self, step: Any, *arguments: Any) -> None:
        """Takes a step; an error ends the iteration, after the records before it."""
        try:
            step(*arguments)
        except Exception as error:
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self._error, self._is_ending = error, True
        if not self._was_told:  # there may be more before the rest
            self._pipeline.seek(FilePlace(len(self._known)))
        self._wants_rest = self._was_told

    def skipped(self, count: int) -> SkippedRegions:
        """The first regions that were left out."""
        return self._reader.skipped.first(count)

    def receipt(self) -> Receipt:
        """The receipt of the records read so far.

        Raises:
            ValueError: It was not asked for.
        """
        if not self._adds_up:
            return self._reader.receipt
        if self._receipt is not None:
            return self._receipt
        tally = self._pipeline.tally()
        parsed = Receipt(tally.records, tally.payload_bytes, tally.hash)
        return parsed + self._of_left_out

    def interrupt(self) -> None:
        """Wakes the thread that waits in ``next``, which raises then. Any thread may call this."""
        self._pipeline.cancel()
        self._reader.interrupt()  # a wait for a pipe

    def close(self) -> None:
        if self._adds_up:
            self._receipt = self.receipt()
        if self._options.notes_unknown:
            self.late = [(self._path(file), *late) for file, *late in self._pipeline.unknown()]
        try:
            self._reader.close()
        finally:
            self._pipeline.close()

    # ---- Chunks --------------------------------------------------------------------------------

    def _outcome(self, chunk: Chunk) -> Outcome:
        info = chunk.info
        self._reach(info.end.file)
        if self._assembler is not None:
            return self._assembled(self._assembler, chunk)
        count, size = int(info.records), self._options.batch_size
        if self._options.drop_remainder:
            count -= count % size
        batches: Iterator[Any] = iter(())
        if count:
            batches = self._parser._batches_of(chunk, count, size, self._path)
        if type(batches) is not objects.Batches:
            batches = self._drawn(batches)
        last = self._wants_rest  # after which nothing comes
        error = self._error if last else None
        return Outcome(batches, self._reader.num_skipped, error, last, info)

    def _assembled(self, assembler: Assembler, chunk: Chunk) -> Outcome:
        """As ``_outcome``, of columns that must fit each other."""
        begin, found = assembler.begin or chunk.begin, []
        for item in assembler.add(chunk):
            if not isinstance(item, Misfit):
                found.append(item)
                continue
            error = parse_error(item.failure, self._place(item.place), advice=self._advice)
            if not self._options.skip:
                self._error = error
                return self._last_outcome(begin, found)
            self.left_out.note(error)
        batches = self._drawn(chain.from_iterable(found))
        return Outcome(batches, self._reader.num_skipped, begin=begin)

    def _last_outcome(self, begin: FilePlace, found: Iterable[Iterator[Any]] = ()) -> Outcome:
        if self._assembler is not None and not self._options.drop_remainder:
            found = [*found, self._assembler.rest()]
        batches = self._drawn(chain.from_iterable(found))
        return Outcome(batches, self._reader.num_skipped, self._error, True, begin)

    def _drawn(self, batches: Iterator[Any]) -> Iterator[Any]:
        failures = ParseFailure  # at exit, a module is emptied before this ends
        try:
            yield from batches
        except failures as failure:  # of a batch, not of one record
            raise parse_error(failure, Place()) from None

    # ---- Records that do not fit ---------------------------------------------------------------

    def _meet_misfit(self, stop: Stop) -> None:
        if not self._options.skip:
            self._end(self._misfit(stop))
            return
        self.left_out.note(self._misfit(stop))
        if self._adds_up:
            self._of_left_out += Receipt.of([self._pipeline.misfit() or b""])
        assert stop.next is not None
        self._seek(stop.next)

    def _seek(self, place: FilePlace) -> None:
        self._pipeline.seek(place)
        self._was_told = False

    def _misfit(self, stop: Stop) -> ParseError:
        failure = self._failure(stop)
        message = self._pipeline.misfit() if failure.reason == "missing" else None
        keys = None if message is None else self._parser._keys(message, failure)
        return parse_error(failure, self._place(stop.place), keys, self._advice)

    def _failure(self, stop: Stop) -> ParseFailure:
        plan = self._parser._plans[-1 if stop.error.list == 1 else 0]
        try:
            raise_failure(stop.status, stop.error, [] if plan is None else plan.requests)
        except ParseFailure as failure:
            return failure.with_traceback(None)  # which would keep this frame
        raise AssertionError("no misfit")

    def _place(self, place: FilePlace) -> Place:
        return Place(self._path(place.file), place.position.record_index)

    def _path(self, file: int) -> Any:
        """What messages call a file."""
        return self._names.get(file, self._known[file])

    # ---- What the pipeline does not read -------------------------------------------------------

    def _go_on(self, stop: Stop | None) -> None:
        """Where the pipeline has stopped, or has no more files."""
        if stop is None:
            self._add_files()
            return
        self._reach(stop.place.file)
        self._cut = None
        is_cut = stop.status == lib.TFW_E_TRUNCATED and stop.place.position.offset != 0
        if is_cut and self._options.reading.on_corrupt == "raise":
            path = self._path(stop.place.file)
            self._cut = damaged_record_error(stop.status, stop.error, path)
        self._file = stop.place.file
        self._reader.go_to(*stop.place)
        self._is_careful = True

    def _push(self) -> None:
        """Hands records of the reader to the pipeline: as many as there is space for, but none for
        which the reader would wait while the pipeline has others. After the last one, the next
        file is the pipeline's."""
        while True:
            if self._batch is None:
                self._batch = self._reader.next(in_file=True)
            self._names[self._file] = self._reader.path
            if self._batch is None:
                if self._cut is not None:
                    raise self._cut
                self._is_careful = False
                self._seek(FilePlace(self._file + 1))
                return
            self._cut = None
            if not self._pipeline.push(self._batch, self._file, self._reader.parcel):
                return
            self._batch, self._was_told = None, False
            if self._options.num_threads == 1 or not self._reader.at_hand:
                return

    # ---- Files ---------------------------------------------------------------------------------

    def _add_files(self) -> None:
        """Tells the pipeline of more files: of a list all up to one that is not the pipeline's; of
        others one, as it may wait until those before were read."""
        if self._left_error is not None:
            raise self._left_error
        natives: list[Any] = []
        try:
            while (path := next(self._left, _NO_MORE)) is not _NO_MORE:
                natives.append(self._native(path))
                self._known.append(path)
                if natives[-1] is None or not self._is_list:
                    break
        except Exception as error:
            if not natives:
                raise
            self._left_error = error
        if natives:
            self._pipeline.add(natives)
            self._was_told = False
        else:
            self._end(None)

    def _native(self, path: Any) -> Any:
        """A path for the pipeline; None if it is not one of a file that it could read. Whether a
        file is compressed is found by reading it, unless that begins elsewhere."""
        reading = self._options.reading
        if not is_path(path) or isinstance(path, ObjectPath) or is_url(path):
            return None
        if reading.compression not in ("auto", "") or reading.flags & lib.TFW_CORRECT:
            return None
        if reading.receipt and not self._adds_up:
            return None
        with suppress(OSError, ValueError):  # the reader reports it
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                return None  # those of /proc have no size, but something to read
            if not self._known and self._start.offset and not self._begins_plain(path):
                return None
        return path

    def _begins_plain(self, path: Any) -> bool:
        """Whether a file is so long, and not compressed as far as its first bytes say."""
        source = open_regular(path)
        if source is None:
            return False
        with closing(source):
            if (source.size() or 0) < self._start.offset:
                return False
            detected = detect_compression(source.peek(DETECT_SIZE))
        return not self._options.reading.compression or (detected.sure and not detected.compression)

    def _reach(self, number: int) -> None:
        """Looks for markers beside the files up to a number."""
        while self._num_reached <= number:
            problem = self._markers.find_problem(self._known[self._num_reached])
            self._num_reached += 1
            if problem is not None:
                warn(problem)
