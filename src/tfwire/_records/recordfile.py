"""One record file: its bytes, and the native reader that finds the records in them."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any, NamedTuple

from tfwire._core import DAMAGE_REASONS, check, data_loss, ffi, lib, new_error
from tfwire._records.compression import DETECT_SIZE, compression_name, detect_compression
from tfwire._records.inflate import InflatedSource, StreamDamage
from tfwire._records.longreads import LongRecords, read_long_records
from tfwire._records.regions import FlippedBit, SkippedRegion, flipped_bits, skipped_regions
from tfwire._records.sources import FileSource, Path, Source
from tfwire._records.tally import Tally
from tfwire.errors import DataLossError

__all__ = ["Options", "RecordFile", "display_name", "make_options"]

_POLICIES = {
    "raise": lib.TFW_CORRUPT_RAISE,
    "skip": lib.TFW_CORRUPT_SKIP,
    "tail": lib.TFW_CORRUPT_TAIL,
    "stop": lib.TFW_CORRUPT_STOP,
}


class Options(NamedTuple):
    """How to read a file, checked."""

    compression: str
    flags: int
    on_corrupt: str
    max_record_size: int
    buffer_size: int
    receipt: bool


def make_options(
    compression_type: Any,
    verify: bool,
    on_corrupt: str,
    max_record_size: int | None,
    buffer_size: int | None,
    correct: bool = False,
    accept_ambiguous: bool = False,
    receipt: bool = False,
) -> Options:
    """Checks the arguments of a reader, and puts them together."""
    if on_corrupt not in _POLICIES:
        raise ValueError(f"on_corrupt must be one of {list(_POLICIES)}, found {on_corrupt!r}")
    if max_record_size is not None and operator.index(max_record_size) < 1:
        raise ValueError(f"max_record_size must be positive or None, found {max_record_size}")
    if buffer_size is not None and operator.index(buffer_size) < 0:
        raise ValueError(f"buffer_size must not be negative, found {buffer_size}")
    auto = isinstance(compression_type, str) and compression_type.lower() == "auto"
    flags = (
        (0 if verify else lib.TFW_NO_DATA_CRC)
        | (lib.TFW_CORRECT if correct else 0)
        | (lib.TFW_CORRECT_AMBIGUOUS if accept_ambiguous else 0)
    )
    return Options(
        "auto" if auto else compression_name(compression_type),
        flags,
        on_corrupt,
        max_record_size or 0,
        buffer_size or 0,
        receipt,
    )


class RecordFile:
    """One open file: its bytes, and the native reader that finds the records in them.

    Attributes:
        path: Its name, or None.
        compression: "", "GZIP" or "ZLIB".
        tally: What the records delivered add up to; None unless the options ask for it.
    """

    def __init__(self, source: Source, options: Options) -> None:
        self.path = source.path
        self._source: Source | InflatedSource = source
        self._error = new_error()
        self._room = ffi.new("uint8_t **"), ffi.new("size_t *")
        self._options = options
        self._position = (0, 0)  # record number and offset behind the last batch
        self._damage: StreamDamage | None = None
        self._stream_regions: list[SkippedRegion] = []
        self._auto = options.compression == "auto"
        self._verify = not options.flags & lib.TFW_NO_DATA_CRC
        self.tally = Tally(verified=self._verify) if options.receipt else None
        try:
            self.compression = options.compression
            if self._auto:
                self.compression = detect_compression(source.peek(DETECT_SIZE))
            if self.compression:
                self._source = InflatedSource(source, self.compression)
            self._fed = not (self._source is source and getattr(source, "regular", False))
            self._reader = self._create(options)
        except BaseException:
            self._source.close()
            raise

    def _create(self, options: Options) -> Any:
        settings = ffi.new("tfw_reader_options *")
        settings.size = ffi.sizeof("tfw_reader_options")
        settings.buffer_size = options.buffer_size
        settings.max_record_size = options.max_record_size
        settings.flags = options.flags
        settings.on_corrupt = _POLICIES[options.on_corrupt]
        settings.fd = -1
        if not self._fed and isinstance(self._source, FileSource):
            settings.fd = self._source.fd
        out = ffi.new("tfw_reader **")
        check(lib.tfw_reader_create(settings, out, self._error), self._error)
        return ffi.gc(out[0], lib.tfw_reader_free)

    def next(self, max_records: int, batch: Any) -> bool:
        """Fills batch; False at the end of the file."""
        while True:
            status = lib.tfw_reader_next(self._reader, max_records, batch, self._error)
            if status == lib.TFW_OK:
                last = batch.spans[batch.count - 1]
                end = batch.offset + last.offset + last.length + lib.TFW_FOOTER_SIZE
                self._position = (batch.first_record + batch.count, end)
                if self.tally is not None:
                    self.tally.add_batch(batch)
                return True
            if status == lib.TFW_NEED_INPUT:
                self._feed()
            elif self._damage is not None:
                raise self._stream_error(self._damage)
            elif status == lib.TFW_END:
                return False
            else:
                self._fail(status)

    def read_long(self) -> LongRecords | None:
        """Records behind the last batch, if they are long ones of a plain file; None: the native
        reader goes on."""
        if self._fed or not isinstance(self._source, FileSource):
            return None
        if self.tally is not None and not self._verify:
            return None
        number, begin = self._position
        longest = self._options.max_record_size or sys.maxsize
        found = read_long_records(self._source.fd, number, begin, longest, self._verify)
        if not found.records:
            return None
        self._position = (number + len(found.records), found.end)
        status = lib.tfw_reader_seek(self._reader, found.end, self._position[0], self._error)
        check(status, self._error, self.path)
        if self.tally is not None:
            for crc, record in zip(found.crcs, found.records, strict=True):
                self.tally.add_record(crc, len(record))
        return found

    @property
    def position(self) -> int:
        """How far the file has been read by the records delivered, in bytes of the file itself."""
        if isinstance(self._source, InflatedSource):
            return self._source.offset
        return self._position[1]

    @property
    def file_crc32c(self) -> int | None:
        """At the end of the file: the CRC-32C of its bytes, where the options ask for a receipt.
        None where some of them were left out, or had to be read twice."""
        if self.tally is None or self.skipped():
            return None
        if isinstance(self._source, InflatedSource):
            return self._source.crc32c
        return self.tally.file_crc32c

    def close(self) -> None:
        ffi.release(self._reader)
        self._source.close()

    # ---- Fed input ----------------------------------------------------------------------------

    def _feed(self) -> None:
        """Gives the native reader more input, or the end of it."""
        data, size = self._room
        check(lib.tfw_reader_reserve(self._reader, data, size, self._error), self._error)
        try:
            got = self._source.readinto(ffi.buffer(data[0], size[0]))
        except StreamDamage as damage:
            got = 0
            if self._meet(damage):
                return
        check(lib.tfw_reader_commit(self._reader, got, self._error), self._error)

    def _meet(self, damage: StreamDamage) -> bool:
        """Deals with a broken compressed stream; True when there is more to read behind it.

        The native reader takes what follows for the continuation of what came before, and so finds
        the next record that verifies by itself.
        """
        assert isinstance(self._source, InflatedSource)
        policy = self._options.on_corrupt
        if policy == "raise" or (policy == "tail" and not damage.cut):
            self._damage = damage
            return False
        resumed = self._source.resume() if policy == "skip" else None
        end = resumed or self._source.size() or self._source.offset
        self._stream_regions.append(
            SkippedRegion(
                self.path,
                min(damage.offset, end),
                end,
                self._position[0],
                "compressed stream",
            )
        )
        return resumed is not None

    # ---- Damage -------------------------------------------------------------------------------

    def skipped(self) -> list[SkippedRegion]:
        """The regions left out so far: of the compressed file, then of its content."""
        return self._stream_regions + skipped_regions(self._reader, self.path)

    def flipped_bits(self) -> list[FlippedBit]:
        """The flipped bits found so far, where they were looked for."""
        return flipped_bits(self._reader, self.path)

    def _fail(self, status: int) -> None:
        """Raises what fits a failure of the native reader."""
        if status not in DAMAGE_REASONS:
            check(status, self._error, self.path)
        error = data_loss(status, self._error, self.path)
        no_record = status == lib.TFW_E_LENGTH_CRC and error.offset == 0
        if self._auto and not self.compression and no_record:
            error.args = (
                f"{error}; compression_type='auto' tried plain records, GZIP and ZLIB, and "
                "nothing fits",
            )
        raise error

    def _stream_error(self, damage: StreamDamage) -> DataLossError:
        record, offset = self._position
        message = (
            f"{display_name(self.path)}: record {record} at byte {offset} of the decompressed "
            f"content: {damage} at byte {damage.offset} of the compressed file"
        )
        if self._auto and record == 0:
            message += (
                f"; compression_type='auto' tried plain records and {self.compression}, and "
                "nothing fits"
            )
        return DataLossError(
            message,
            path=self.path,
            offset=offset,
            record_index=record,
            reason="compressed stream",
        )


def display_name(path: Path | None) -> str:
    return "input" if path is None else os.fspath(path)
