"""One open record file, plain or compressed: its records in order, and its damage."""

from __future__ import annotations

import contextlib
import io
from bisect import bisect_left
from typing import Any

from tfwire._base.aliases import Compression
from tfwire._base.errors import DataLossError
from tfwire._base.native import DAMAGE_REASONS, check, ffi, lib, new_error, new_struct
from tfwire._records.files.byte_sources import FileSource, ObjectSource, Source
from tfwire._records.files.compression import DETECT_SIZE, detect_compression
from tfwire._records.files.formats import ends_of_file
from tfwire._records.files.inflate import StreamDamage
from tfwire._records.files.inflate_ahead import ThreadedInflater
from tfwire._records.reading.damage import (
    FlippedBits,
    Reading,
    RecordPosition,
    SkippedRegion,
    SkippedRegions,
    TornTail,
    display_name,
    flipped_bits,
    skipped_regions,
    torn_tail,
)
from tfwire._records.reading.duplicates import DuplicateFilter
from tfwire._records.reading.files_ahead import FileAhead
from tfwire._records.reading.native_batches import (
    position_after,
    record_numbers,
    record_position,
    split,
)
from tfwire._records.reading.options import AS_TENSORFLOW, POLICIES, ReadOptions
from tfwire._records.reading.receipts import Tally
from tfwire._records.reading.records_ahead import RecordsAhead

_BEGINNING = RecordPosition()


class RecordFile:
    """One open file: its bytes, and the native reader that finds the records in them.

    Args:
        source: Its bytes; this object closes it.
        options: How to read it.
        start: Where to begin.
        ahead: Reads it as far as it is undamaged: what is plain from ``start`` on, what is
            compressed from the beginning. None: the native reader does.

    Raises:
        DataLossError: No record begins at ``start``.
        ValueError: ``on_corrupt="skip"`` on a device without an end.

    Attributes:
        path: Its name, or None.
        compression: "", "GZIP" or "ZLIB".
        tally: What the records delivered add up to; None unless the options ask for it.
        position: Where the record after the last batch begins.
        at_hand: True for a regular file: reading never waits for a writer.
    """

    def __init__(
        self,
        source: Source,
        options: ReadOptions,
        start: RecordPosition = _BEGINNING,
        ahead: FileAhead | RecordsAhead | None = None,
    ) -> None:
        self.path = source.path
        self._input = source
        self._source: Source | ThreadedInflater = source
        self._error = new_error()
        self._room = ffi.new("uint8_t **"), ffi.new("size_t *")
        self._num_bytes = ffi.new("uint64_t *")
        self._options = options
        self.position = self._native_position = _BEGINNING
        self.tally: Tally | None = None
        self._damage: StreamDamage | None = None
        self._left: Any = None  # a batch read to find the start, still to be delivered
        self._searched_from, self._searched = _BEGINNING, 0  # bytes without a record
        self._resumed = False  # after damage that ended the native reader's input
        self._went_back = 0  # bytes, to a member within what was inflated before
        self._duplicates: DuplicateFilter | None = None
        # Set while it replaces the native reader; for a FileAhead also if it has reached the end.
        self._ahead: FileAhead | RecordsAhead | None = None
        self._num_skipped: int | None = 0  # skipped regions of the native reader; None: unknown
        self._cut = False  # True if a truncated compressed stream was treated as ended
        self._stream_regions = SkippedRegions()
        self._cut_regions = SkippedRegions()  # of a truncated stream, until its records end
        self._verify = not options.flags & lib.TFW_NO_DATA_CRC
        try:
            if options.on_corrupt == "skip":  # which reads to the end
                source.check_ends()
            auto = options.compression == "auto"
            self.compression: Compression
            if isinstance(ahead, FileAhead):
                self.compression = ahead.compression
            elif options.compression == "auto":
                self.compression = _detected(source, options, start)
            else:
                self.compression = options.compression
            self._reading = Reading(self.path, self.compression, auto)
            if self.compression:
                self._source = ThreadedInflater(source, self.compression)
                if options.on_corrupt == "skip":
                    self._duplicates = DuplicateFilter()
            self.at_hand: bool = getattr(source, "regular", False)
            looked = auto and start == _BEGINNING and not self.at_hand
            self._head = source.peek(DETECT_SIZE) if looked else b""
            self._fed = not (self._source is source and self.at_hand)
            self._reader = self._create(options)
            if start != _BEGINNING:
                self._go_to(start)
        except BaseException:
            self._source.close()
            raise
        if isinstance(ahead, FileAhead):
            self._ahead = ahead
        elif ahead is not None and not self._fed and not options.flags & lib.TFW_CORRECT:
            assert self.path is not None
            ahead.begin(self.path, self.position)
            self._ahead = ahead
        self._start = start
        if options.receipt:
            self.tally = Tally(verified=self._verify)

    def _create(self, options: ReadOptions) -> Any:
        settings = new_struct("tfw_reader_options")
        settings.buffer_size = options.buffer_size
        settings.max_record_size = options.max_record_size
        settings.flags = options.flags
        settings.on_corrupt = POLICIES[options.on_corrupt]
        settings.fd = -1
        if not self._fed and isinstance(self._source, FileSource):
            settings.fd = self._source.fd
        out = ffi.new("tfw_reader **")
        check(lib.tfw_reader_create(settings, out, self._error), self._error)
        return ffi.gc(out[0], lib.tfw_reader_free)

    def _go_to(self, start: RecordPosition) -> None:
        """Moves to a position: by seeking in a plain file if that is cheap, else by reading up to
        it."""
        size = self._source.size()
        seekable = self._source is self._input and self._input.seekable
        if self._fed and not seekable:
            self._read_up_to(start)
        elif size is None or start.offset <= size:
            if seekable:
                self._input.rewind(start.offset)
            self._seek(start)
        number, begin = self.position
        # The size of the reads has some influence on how much of a damaged stream can be inflated.
        begins_there = begin == start.offset or bool(self._stream_regions)
        if number != start.record_index or not begins_there:
            found = f"found record {number} at byte {begin}"
            if not self._fed or seekable:
                found = f"the file has {size} bytes"
            raise DataLossError(
                f"{display_name(self.path)}: record {start.record_index} does not begin at byte "
                f"{start.offset}, where reading is to go on: {found}; the file was cut or replaced",
                path=self.path,
                offset=start.offset,
                record_index=start.record_index,
                reason="truncated",
            )

    def _read_up_to(self, start: RecordPosition) -> None:
        batch = new_struct("tfw_batch")
        number, before = start.record_index, self.position
        while (left := number - self.position.record_index) > 0:
            before = self.position
            if not self.next(left, batch):
                return
        if left < 0:  # damaged records are counted too, and some were left out on the way
            done = split(batch, bisect_left(record_numbers(batch), number))
            before = position_after(done) if done.count else before
            self._left = batch
            self.position = before if before == start else record_position(batch, 0)

    def _seek(self, position: RecordPosition) -> None:
        number, offset = self.position = self._native_position = position
        status = lib.tfw_reader_seek(self._reader, offset, number, self._error)
        check(status, self._error, self.path)

    def next(self, max_records: int, batch: Any) -> bool:
        """Fills a ``tfw_batch *`` with the next records; False at the end of the file."""
        if self._next_ahead(max_records, batch):
            self.position = position_after(batch)
        elif self._is_whole:
            return False
        elif self._left is not None and self._left.count:
            batch[0] = split(self._left, max_records or self._left.count)[0]
            self.position = position_after(batch)
        else:
            reader, error = self._reader, self._error
            self._num_skipped = None
            if not self._fed and self.position != self._native_position:
                self._seek(self.position)
            while True:
                status = lib.tfw_reader_next(reader, max_records, batch, error)
                if status == lib.TFW_OK:
                    self.position = self._native_position = position_after(batch)
                    if self._duplicates is None or self._drop_duplicates(batch):
                        break
                elif not self._go_on(status):
                    return False
        if self.tally is not None:
            self.tally.add_batch(batch)
        return True

    def _next_ahead(self, max_records: int, batch: Any) -> bool:
        """As ``next``; False: the native reader goes on, which finds the end of the file, too."""
        ahead = self._ahead
        if ahead is None:
            return False
        if ahead.next(max_records, batch):
            return True
        if not self._is_whole:
            self._ahead = None
            if isinstance(ahead, FileAhead):
                self._read_again()
        return False

    @property
    def _is_whole(self) -> bool:
        """Whether a compressed file was read ahead to its end."""
        return isinstance(self._ahead, FileAhead) and self._ahead.is_whole

    def _read_again(self) -> None:
        """Reads a compressed file from its beginning up to where reading it ahead has ended."""
        tally, self.tally = self.tally, None
        end, self.position = self.position, _BEGINNING
        try:
            if end != _BEGINNING:
                self._go_to(end)
        except BaseException:
            self.position = end
            raise
        finally:
            self.tally = tally

    @property
    def is_ready(self) -> bool:
        """Whether the next records can be read without waiting."""
        return self._ahead.is_ready if isinstance(self._ahead, FileAhead) else self.at_hand

    @property
    def parcel(self) -> Any:
        """The ``tfw_parcel *`` that has the last batch, and nothing else; None: there is none."""
        return self._ahead.parcel if isinstance(self._ahead, FileAhead) else None

    def _go_on(self, status: int) -> bool:
        """Does what the native reader asks for, or raises the damage it found; False at the end."""
        if status == lib.TFW_NEED_INPUT:
            self._feed()
        elif self._damage is not None:
            self._input.check_unchanged()
            raise self._reading.stream_error(self._damage, self.position)
        elif status == lib.TFW_END and self._resumed:
            self._resumed = False
            if self._duplicates is not None and self._went_back:
                self._duplicates.expect(self._went_back)
            self._feed()
        elif status == lib.TFW_END:
            self._end()
            return False
        elif status in DAMAGE_REASONS:
            self._input.check_unchanged()
            raise self._reading.record_error(status, self._error, self._ends())
        else:
            check(status, self._error, self.path)
        return True

    @property
    def bytes_read(self) -> int:
        """Bytes of the file itself that the records delivered so far took."""
        if isinstance(self._source, ThreadedInflater):
            return self._source.offset
        return self.position.offset

    @property
    def file_crc32c(self) -> int | None:
        """At the end of the file: the CRC-32C of its bytes, if the options ask for a receipt. None
        if bytes were left out or read twice, or reading did not start at the beginning."""
        if self.tally is None or self.skipped() or self._start != _BEGINNING:
            return None
        if isinstance(self._ahead, FileAhead):
            return self._ahead.crc32c
        if isinstance(self._source, ThreadedInflater):
            return self._source.crc32c
        return self.tally.file_crc32c

    def close(self) -> None:
        ffi.release(self._reader)
        self._source.close()

    # ---- Fed input ----------------------------------------------------------------------------

    def _feed(self) -> None:
        """Gives the native reader more input, or says that there is no more."""
        data, size = self._room
        check(lib.tfw_reader_reserve(self._reader, data, size, self._error), self._error)
        try:
            got = self._source.readinto(ffi.buffer(data[0], size[0]))
        except StreamDamage as damage:
            got = 0
            self._meet(damage)
        if self._searched_from != self.position:
            self._searched_from, self._searched = self.position, 0
        self._searched += got
        self._input.check_searched(self._searched)
        check(lib.tfw_reader_commit(self._reader, got, self._error), self._error)

    def _meet(self, damage: StreamDamage) -> None:
        """Handles a broken compressed stream. For the native reader the stream has ended, and the
        bytes after the damage are new input: otherwise the start of a record before the damage
        might verify together with bytes after it, without being a record.
        """
        assert isinstance(self._source, ThreadedInflater)
        policy = self._options.on_corrupt
        ends = damage.cut and policy in ("tail", AS_TENSORFLOW)
        if policy in ("raise", "tail", AS_TENSORFLOW) and not ends:
            self._damage = damage
            return
        resumed = self._source.resume() if policy == "skip" else None
        self._cut = damage.cut and resumed is None
        end = resumed or self._source.size() or self._source.offset
        begin = min(damage.offset, end)
        region = SkippedRegion(
            self.path, begin, end, self.position.record_index, "compressed stream", num_records=0
        )
        regions = SkippedRegions([region], 1, end - begin)
        if ends:  # the writer may go on; the native reader finds out if a record is torn
            self._cut_regions = regions
        else:
            self._stream_regions.add(regions)
        self._resumed = resumed is not None
        self._went_back = 0 if resumed is None else max(0, damage.offset - resumed)

    def _end(self) -> None:
        """Counts the truncated end of a stream as skipped if a record is torn there."""
        if torn_tail(self._reader, self.position.offset) is not None:
            self._stream_regions.add(self._cut_regions)
        self._cut_regions = SkippedRegions()

    def _ends(self) -> tuple[bytes, bytes]:
        """The first and the last bytes of the file itself, as far as they are at hand."""
        if isinstance(self._input, FileSource) and self.at_hand:
            return ends_of_file(self._input.fd)
        return self._head, b""

    # ---- Damage -------------------------------------------------------------------------------

    @property
    def num_skipped(self) -> int:
        """How many regions were left out so far."""
        if self._num_skipped is None:
            self._num_skipped = lib.tfw_reader_skipped_total(self._reader, self._num_bytes)
        return self._stream_regions.num_regions + self._num_skipped

    def skipped(self) -> SkippedRegions:
        """The regions skipped so far: of the compressed file, then of its content."""
        regions = SkippedRegions()
        regions.add(self._stream_regions)
        regions.add(skipped_regions(self._reader, self.path))
        return regions

    def tail(self) -> TornTail | None:
        """At the end of the file: the incomplete record that was left out there; None if the file
        ends after a whole one. A truncated compressed stream could go on there."""
        tail = torn_tail(self._reader, self.position.offset)
        return tail or (TornTail(0, lib.TFW_HEADER_SIZE) if self._cut else None)

    def flipped_bits(self) -> FlippedBits:
        """The flipped bits found so far, if the options ask for them."""
        return flipped_bits(self._reader, self.path)

    def _drop_duplicates(self, batch: Any) -> bool:
        """Removes records from a batch that were delivered before; False if none is left."""
        assert self._duplicates is not None
        damaged = lib.tfw_reader_skipped(self._reader, 0, ffi.NULL, 0) != 0
        return self._duplicates.drop(batch, damaged)


# ---- Compression -----------------------------------------------------------------------------

# Of a source that cannot go back, this many bytes are looked through for a plain record.
_LOOKED_THROUGH = 1 << 20


def _detected(source: Source, options: ReadOptions, start: RecordPosition) -> Compression:
    """The compression of a source. What begins like a damaged stream may be a plain file with a
    damaged length: where damage is skipped, it is one if any record verifies."""
    look = source.peek if start == _BEGINNING else source.sample
    detected = detect_compression(look(DETECT_SIZE))
    if not detected.sure and options.on_corrupt == "skip" and _has_record(source, options):
        return ""
    return detected.compression


def _has_record(source: Source, options: ReadOptions) -> bool:
    """Whether a source that is read as plain has any record. It is at its beginning again."""
    lent: Source = _LentSource(source)
    if not source.rewindable:
        lent = ObjectSource(io.BytesIO(source.peek(_LOOKED_THROUGH)))
    plain = options._replace(compression="", receipt=False)
    with contextlib.closing(RecordFile(lent, plain)) as file:
        found = file.next(1, new_struct("tfw_batch"))
    if source.rewindable:
        source.rewind(0)
    return found


class _LentSource(Source):
    """A source that stays open."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.path = source.path
        self._source = source

    def check_searched(self, num_bytes: int) -> None:
        self._source.check_searched(num_bytes)

    def _readinto(self, buffer: Any) -> int:
        return self._source.readinto(buffer)
