"""Record files as batches of verified records, without a Python object per record.

    with BatchReader(paths, "auto", on_corrupt="skip") as reader:
        while (batch := reader.next(1024)) is not None:
            lib.tfw_parse(..., batch.data, batch.data_len, batch.spans, batch.count, ...)

A batch is a ``tfw_batch *``: its memory is the reader's and is valid until the next call of
``next`` or ``close``. ``reader.path`` is its file, ``batch.first_record`` the number of
its first record in that file. A batch never holds records of two files.
"""

from __future__ import annotations

import operator
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfwire._compression import DETECT_SIZE, compression_name, detect_compression
from tfwire._core import DAMAGE_REASONS, check, data_loss, ffi, lib, new_error
from tfwire._inflate import InflatedSource, StreamDamage
from tfwire._sources import FileSource, Path, Source, open_source, split_paths
from tfwire.errors import DataLossError

__all__ = ["BatchReader", "SkippedRegion"]

_POLICIES = {
    "raise": lib.TFW_CORRUPT_RAISE,
    "skip": lib.TFW_CORRUPT_SKIP,
    "tail": lib.TFW_CORRUPT_TAIL,
    "stop": lib.TFW_CORRUPT_STOP,
}


class SkippedRegion(NamedTuple):
    """A stretch of a file that was left out.

    Attributes:
        path: The file, or None for an object without a name.
        begin, end: Its bytes [begin, end) in the file; in the file's decompressed content where
            it is compressed, save that a region whose reason is "compressed stream" counts the
            bytes of the compressed file itself.
        record_index: Number of the first record left out. A region counts as one record.
        reason: As DataLossError.reason.
    """

    path: str | os.PathLike[str] | None
    begin: int
    end: int
    record_index: int
    reason: str


class _Options(NamedTuple):
    """How to read a file, checked."""

    compression: str
    flags: int
    on_corrupt: str
    max_record_size: int
    buffer_size: int


def _make_options(
    compression_type: Any,
    verify: bool,
    on_corrupt: str,
    max_record_size: int | None,
    buffer_size: int | None,
) -> _Options:
    if on_corrupt not in _POLICIES:
        raise ValueError(f"on_corrupt must be one of {list(_POLICIES)}, found {on_corrupt!r}")
    if max_record_size is not None and operator.index(max_record_size) < 1:
        raise ValueError(f"max_record_size must be positive or None, found {max_record_size}")
    if buffer_size is not None and operator.index(buffer_size) < 0:
        raise ValueError(f"buffer_size must not be negative, found {buffer_size}")
    auto = isinstance(compression_type, str) and compression_type.lower() == "auto"
    return _Options(
        "auto" if auto else compression_name(compression_type),
        0 if verify else lib.TFW_NO_DATA_CRC,
        on_corrupt,
        max_record_size or 0,
        buffer_size or 0,
    )


class BatchReader:
    """Batches of whole, verified records from one file after another.

    One thread at a time may use it; a second one gets RuntimeError. A process that forks may go on
    reading paths on both sides, as every side keeps its own position.

    Args:
        paths, compression_type, verify, on_corrupt, max_record_size, buffer_size: As for
            ``read_records``. Files are opened when they are reached, not before.

    Attributes:
        path: The file of the last batch.

    Raises:
        ValueError, TypeError: An argument that is not valid.
    """

    def __init__(
        self,
        paths: Any,
        compression_type: Any = "auto",
        *,
        verify: bool = True,
        on_corrupt: str = "raise",
        max_record_size: int | None = 2**30,
        buffer_size: int | None = None,
    ) -> None:
        self.path: Path | None = None
        self._options = _make_options(
            compression_type, verify, on_corrupt, max_record_size, buffer_size
        )
        self._paths: Iterator[Any] = split_paths(paths)
        self._file: _RecordFile | None = None
        self._skipped: list[SkippedRegion] = []
        self._batch = ffi.new("tfw_batch *")
        self._closed = False
        self._lock = threading.Lock()

    def next(self, max_records: int = 0) -> Any:
        """The next records of the current file, or of the next one that has some.

        Args:
            max_records: At most so many; 0: as many as are ready, up to a few thousand.

        Returns:
            A ``tfw_batch *`` of one record or more, valid until the next call; None at the end.

        Raises:
            DataLossError: By on_corrupt; every record before the damage was returned. The reader is
                closed then.
            OSError: A file cannot be opened or read. The reader is closed then.
            ValueError: The reader is closed.
            RuntimeError: Another thread is using it.
        """
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("two threads read from one reader at the same time")
        try:
            if self._closed:
                raise ValueError("the reader is closed")
            return self._next(max_records)
        except BaseException:
            self._close()
            raise
        finally:
            self._lock.release()

    def _next(self, max_records: int) -> Any:
        while True:
            if self._file is None:
                path = next(self._paths, None)
                if path is None:
                    return None
                self._file = _RecordFile(open_source(path), self._options)
                self.path = self._file.path
            if self._file.next(max_records, self._batch):
                return self._batch
            self._finish_file()

    @property
    def skipped(self) -> list[SkippedRegion]:
        """The regions left out so far, in the order of the files; the last may still grow."""
        return self._skipped + (self._file.skipped() if self._file is not None else [])

    def close(self) -> None:
        """Closes the file at hand; waits for a thread that is reading. Closing again is allowed."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._closed = True
        self._finish_file()

    def _finish_file(self) -> None:
        """Closes the file at hand and makes visible what was left out of it."""
        file, self._file = self._file, None
        if file is None:
            return
        regions = file.skipped()
        file.close()
        self._skipped += regions
        if regions:
            size = sum(region.end - region.begin for region in regions)
            first = regions[0]
            warnings.warn(
                f"{_name(file.path)}: left out {len(regions)} damaged region(s), {size} bytes in "
                f"all, the first at record {first.record_index}, byte {first.begin} "
                f"({first.reason})",
                UserWarning,
                stacklevel=5,
            )

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("readers cannot be pickled; open the files anew in the other process")


class _RecordFile:
    """One open file: its bytes, and the native reader that finds the records in them."""

    def __init__(self, source: Source, options: _Options) -> None:
        self.path = source.path
        self._on_corrupt = options.on_corrupt
        self._source: Source | InflatedSource = source
        self._error = new_error()
        self._room = ffi.new("uint8_t **"), ffi.new("size_t *")
        self._position = (0, 0)  # record number and offset behind the last batch, when fed
        self._damage: StreamDamage | None = None
        self._stream_regions: list[SkippedRegion] = []
        self._auto = options.compression == "auto"
        try:
            self._compression = options.compression
            if self._auto:
                self._compression = detect_compression(source.peek(DETECT_SIZE))
            if self._compression:
                self._source = InflatedSource(source, self._compression)
            self._fed = not (self._source is source and getattr(source, "regular", False))
            self._reader = self._create(options)
        except BaseException:
            self._source.close()
            raise

    def _create(self, options: _Options) -> Any:
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
                if self._fed:
                    self._advance(batch)
                return True
            if status == lib.TFW_NEED_INPUT:
                self._feed()
            elif self._damage is not None:
                raise self._stream_error(self._damage)
            elif status == lib.TFW_END:
                return False
            else:
                self._fail(status)

    def _advance(self, batch: Any) -> None:
        last = batch.spans[batch.count - 1]
        end = batch.offset + last.offset + last.length + lib.TFW_FOOTER_SIZE
        self._position = (batch.first_record + batch.count, end)

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
        policy = self._on_corrupt
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
        count = lib.tfw_reader_skipped(self._reader, 0, ffi.NULL, 0)
        regions = ffi.new("tfw_region[]", count)
        lib.tfw_reader_skipped(self._reader, 0, regions, count)
        return self._stream_regions + [
            SkippedRegion(self.path, r.begin, r.end, r.record, DAMAGE_REASONS[r.reason])
            for r in regions
        ]

    def _fail(self, status: int) -> None:
        """Raises what fits a failure of the native reader."""
        if status not in DAMAGE_REASONS:
            check(status, self._error, self.path)
        error = data_loss(status, self._error, self.path)
        if self._auto and not self._compression and error.offset == 0:
            error.args = (
                f"{error}; compression_type='auto' tried plain records, GZIP and ZLIB, and "
                "nothing fits",
            )
        raise error

    def _stream_error(self, damage: StreamDamage) -> DataLossError:
        record, offset = self._position
        message = (
            f"{_name(self.path)}: record {record} at byte {offset} of the decompressed content: "
            f"{damage} at byte {damage.offset} of the compressed file"
        )
        if self._auto and record == 0:
            message += (
                f"; compression_type='auto' tried plain records and {self._compression}, and "
                "nothing fits"
            )
        return DataLossError(
            message,
            path=self.path,
            offset=offset,
            record_index=record,
            reason="compressed stream",
        )


def _name(path: Path | None) -> str:
    return "input" if path is None else os.fspath(path)
