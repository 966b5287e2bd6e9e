"""Record files as batches of verified records, without a Python object per record.

    with BatchReader(paths, "auto", on_corrupt="skip") as reader:
        while (batch := reader.next(1024)) is not None:
            lib.tfw_parse(..., batch.data, batch.data_len, batch.spans, batch.count, ...)

A batch is a ``tfw_batch *``: its memory is the reader's and is valid until the next call of
``next`` or ``close``. ``reader.path`` is its file, ``batch.first_record`` the number of
its first record in that file. A batch never holds records of two files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from tfwire._core import ffi
from tfwire._records.blocks import Block
from tfwire._records.damage import display_name
from tfwire._records.longreads import LongRecord
from tfwire._records.markers import Markers
from tfwire._records.options import as_position, make_options
from tfwire._records.recordfile import RecordFile
from tfwire._records.regions import RecordPosition, SkippedRegions, TornTail
from tfwire._records.sources import Path, is_path, is_url, open_source, split_paths
from tfwire._text import printable
from tfwire._warnings import warn
from tfwire.receipts import Receipt

__all__ = ["IN_USE", "BatchReader"]

_NO_MORE: Any = object()

IN_USE = "the reader is in use, by another thread or by this one"


class BatchReader:
    """Batches of whole, verified records from one file after another.

    One thread at a time may use it; a second one gets RuntimeError. A process that forks may go on
    reading paths on both sides, as every side keeps its own position.

    Args:
        paths, compression_type, verify, on_corrupt, max_record_size, buffer_size, receipt, start:
            As for ``read_records``. Files are opened when they are reached, not before.
        markers: Finds sets of files that are half published, to warn of them; None: no warning.

    Attributes:
        path: The file of the last batch.
        warn: Called with the text of every warning; who reads in a thread of his own sets it, so
            that warnings come where somebody expects them.

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
        receipt: bool = False,
        start: RecordPosition | None = None,
        markers: Markers | None = None,
    ) -> None:
        self.path: Path | None = None
        self.warn: Callable[[str], None] = warn
        self._options = make_options(
            compression_type, verify, on_corrupt, max_record_size, buffer_size, receipt=receipt
        )
        self._paths: Iterator[Any] = split_paths(paths)
        self._markers = markers
        self._file: RecordFile | None = None
        self._position = self._start = as_position("start", start)
        self._tail: TornTail | None = None
        self._skipped = SkippedRegions()
        self._receipt = Receipt()  # of the files before the one at hand
        self._file_crc32c: int | None = None
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
        found = self._next(lambda file: file.next(max_records, self._batch))
        return self._batch if found else None

    def next_into(self, block: Block, max_records: int) -> bool:
        """Adds the next records of the current file, or of the next one that has some, to a block.

        Args:
            block: It grows.
            max_records: At most so many.

        Returns:
            False at the end.

        Raises:
            As ``next``.
        """
        return self._next(lambda file: file.next_into(block, max_records, self._batch))

    def read_long(self) -> LongRecord | None:
        """The record behind the last one, straight into a bytes object, where that is faster: for
        long records of plain files without damage.

        Returns:
            A record of the current file, or None: call ``next``. Not to be mixed with ``next``
            before that.

        Raises:
            OSError, RuntimeError: As ``next``.
        """
        with self._exclusive():
            return self._file.read_long() if self._file is not None else None

    def _next(self, take: Callable[[RecordFile], bool]) -> bool:
        """Takes records from a file that has some; False when there is none."""
        with self._exclusive():
            if self._closed:
                raise ValueError("the reader is closed")
            try:
                while (file := self._file or self._open()) is not None:
                    if take(file):
                        return True
                    self._file_crc32c = file.file_crc32c
                    self._finish_file()
                return False
            except StopIteration as error:  # a file object's; the caller would see a clean end
                self._close()
                raise RuntimeError("an input raised StopIteration") from error
            except BaseException:
                self._close()
                raise

    def _open(self) -> RecordFile | None:
        """Opens the next file, if there is one."""
        path = next(self._paths, _NO_MORE)
        if path is _NO_MORE:
            return None
        self._look_for_marker(path)
        start, self._start = self._start, RecordPosition()
        self._file = RecordFile(open_source(path), self._options, start)
        self.path = self._file.path
        return self._file

    def _look_for_marker(self, path: Any) -> None:
        if self._markers is not None and is_path(path) and not is_url(path):
            problem = self._markers.problem_of(path)
            if problem is not None:
                self.warn(problem)

    @property
    def at_hand(self) -> bool:
        """Whether what comes next lies in a regular file, so that nobody has to wait for it."""
        return self._file is None or self._file.at_hand

    @property
    def num_skipped(self) -> int:
        """How many regions were left out so far. To be asked by the thread that reads."""
        file = self._file
        return self._skipped.num_regions + (0 if file is None else file.num_skipped)

    @property
    def skipped(self) -> SkippedRegions:
        """The regions left out so far, in the order of the files; the last may still grow."""
        with self._exclusive():
            regions = SkippedRegions()
            regions.add(self._skipped)
            if self._file is not None:
                regions.add(self._file.skipped())
            return regions

    @property
    def position(self) -> RecordPosition:
        """Where the record behind the last batch begins, in the file of that batch."""
        with self._exclusive():
            return self._position if self._file is None else self._file.position

    @property
    def tail(self) -> TornTail | None:
        """RecordFile.tail of the file whose end was reached last."""
        return self._tail

    @property
    def receipt(self) -> Receipt:
        """The receipt of all batches delivered so far.

        Raises:
            ValueError: It was not asked for.
        """
        with self._exclusive():
            self._check_receipt()
            tally = self._file.tally if self._file is not None else None
            return self._receipt + tally.receipt if tally is not None else self._receipt

    @property
    def file_crc32c(self) -> int | None:
        """The CRC-32C of the file whose end was reached last, as RecordFile.file_crc32c.

        Raises:
            ValueError: It was not asked for.
        """
        self._check_receipt()
        return self._file_crc32c

    def _check_receipt(self) -> None:
        if not self._options.receipt:
            raise ValueError("receipts and checksums of files cost a little; ask for receipt=True")

    def interrupt(self) -> None:
        """Ends a wait for input of a pipe, which another thread may be in: it gets ValueError. To
        be closed then."""
        file = self._file
        if file is not None:
            file.interrupt()

    def close(self) -> None:
        """Closes the file at hand. Closing again is allowed."""
        with self._exclusive():
            self._close()

    def _close(self) -> None:
        self._closed = True
        self._finish_file()

    def _finish_file(self) -> None:
        """Closes the file at hand and makes visible what was left out of it."""
        file, self._file = self._file, None
        if file is None:
            return
        if file.tally is not None:
            self._receipt += file.tally.receipt
        self._position, self._tail = file.position, file.tail()
        regions = file.skipped()
        file.close()
        self._skipped.add(regions)
        if regions:
            first = regions[0]
            self.warn(
                f"{printable(display_name(file.path))}: left out {regions.num_regions} damaged "
                f"region(s), {regions.num_bytes} bytes in all, the first at record "
                f"{first.record_index}, byte {first.begin} ({first.reason})"
            )

    def _exclusive(self) -> threading.Lock:
        """A lock that keeps a second thread out of the native reader. Entering the lock itself is
        one step, which no interrupt can leave half done.

        Raises:
            RuntimeError: It is held.
        """
        if self._lock.locked():
            raise RuntimeError(IN_USE)
        return self._lock

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("readers cannot be pickled; open the files anew in the other process")
