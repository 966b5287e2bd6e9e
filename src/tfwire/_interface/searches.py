"""Searches of files for a value, for those who show the records that hold it.

``search_files`` runs a ``RecordSearch`` over ``SearchedFile`` objects: threads of C look into the
records right after these are verified, and hand over those that may hold what is wanted, a
``FoundRecord`` each. ``int64_of_text`` and ``float_of_text`` say which value a text means.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.errors import Error
from tfwire._base.native import ffi, lib
from tfwire._base.parallel_map import Check
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.file_passes import FilePass, Passage, PlainFile, regular_status
from tfwire._records.reading.native_batches import record_position
from tfwire._records.reading.options import make_options
from tfwire._records.reading.pipeline import Chunk

_READ_BYTES = 1 << 20


class FoundRecord(NamedTuple):
    """A record that may hold what is wanted. All that do hold it are found, and of the others a
    few that are not well-formed, or have a key twice.

    Attributes:
        number, offset: As of a RecordPosition.
        payload: Its bytes.
    """

    number: int
    offset: int
    payload: bytes


class SearchedFile(PlainFile[Any]):
    """A file of a search.

    Args:
        path: A path or URL.
        compression_type: As for read_records.

    Attributes:
        path, compression_type: The same.
        start: Where to go on.
        is_done: Whether its end was reached, or it cannot be read on.
        has_failed: Whether it cannot be read on.
    """

    def __init__(self, path: str, compression_type: Any) -> None:
        self.path, self.compression_type = path, compression_type
        self.start = RecordPosition()
        self.is_done = self.has_failed = self.is_plain = False

    def __fspath__(self) -> str:
        return self.path

    @abstractmethod
    def take(self, record: FoundRecord) -> None:
        """Takes the next record that was found."""

    def add(self, chunk: Chunk) -> None:
        self.is_plain = True  # a pipeline has read it
        info = chunk.info
        for i in range(info.selected):
            span, place = info.spans[i], chunk.place(i)
            payload = bytes(ffi.buffer(info.data + span.offset, span.length))
            self.take(FoundRecord(*place.position, payload))
        self.go_to(chunk.end.position)

    def go_to(self, position: RecordPosition) -> None:
        """What is before a position was searched."""
        self.start = position

    def finish(self) -> SearchedFile:
        self.is_done = True
        return self


class RecordSearch(FilePass[SearchedFile, SearchedFile]):
    """What is wanted: a feature, or any, that is a number or holds a part.

    Args:
        name: The key of a feature or a feature list; None: any, and records that have none.
        is_list: The name is that of a feature list.
        part: Of a string; empty: every value will do, and none.
        integer: What an int64 may equal, too; None: nothing.
        number: What a float may equal, too; None: nothing.
        max_record_size: Longer records are damage.

    Attributes:
        is_stopped: Set it to end the search soon.
    """

    mode = lib.TFW_PIPELINE_SPANS
    select = ffi.addressof(lib, "tfw_find")

    def __init__(
        self,
        name: bytes | None,
        is_list: bool,
        part: bytes,
        integer: int | None,
        number: float | None,
        max_record_size: int,
    ) -> None:
        self._held = [ffi.from_buffer(each) for each in (name or b"", part)]
        wanted = {
            "name": ffi.NULL if name is None else self._held[0],
            "name_len": len(name or b""),
            "part": self._held[1],
            "part_len": len(part),
            "integer": integer or 0,
            "number": number or 0.0,
            "has_integer": integer is not None,
            "has_number": number is not None,
            "is_list": is_list,
        }
        self.wanted = ffi.new("tfw_wanted *", wanted)
        self.max_record_size = max_record_size
        self.is_stopped = False
        self._begun = False
        self._threads_each = 1

    def prepare(self, threads_each: int) -> None:
        """Before all files: how many threads read one that is not for a pipeline."""
        self._begun, self._threads_each = False, threads_each

    def begin(self, item: SearchedFile) -> SearchedFile | None:
        # A pipeline may begin within its first file alone.
        may_be_plain = self._options(item).compression in ("", "auto")
        is_within = item.start != RecordPosition()
        can_begin = item.is_plain and not self._begun if is_within else may_be_plain
        status = regular_status(item.path) if can_begin else None
        if status is None:
            return None
        item.status, self._begun = status, True
        return item

    def _options(self, item: SearchedFile) -> Any:
        return make_options(item.compression_type, True, "skip", self.max_record_size, _READ_BYTES)

    def read(
        self, item: SearchedFile, check: Check, begun: PlainFile[SearchedFile] | None = None
    ) -> SearchedFile:
        options = self._options(item)
        if item.is_plain and item.start != RecordPosition():
            options = options._replace(compression="")
        try:
            with BatchReader(
                [item.path], options, start=item.start, num_threads=self._threads_each
            ) as reader:
                reader.warn = lambda text: None  # whoever shows records shows damage
                while not self.is_stopped and (batch := reader.next()) is not None:
                    check()
                    self._look_into(batch, item)
                    item.go_to(reader.position)
        except (OSError, ImportError, ValueError, Error):
            item.has_failed = True
        item.is_done = item.has_failed or not self.is_stopped
        return item

    def _look_into(self, batch: Any, item: SearchedFile) -> None:
        out = ffi.new("uint32_t[]", batch.count)
        count = lib.tfw_find(batch.data, batch.data_len, batch.spans, batch.count, self.wanted, out)
        for i in ffi.unpack(out, count) if count else ():
            span = batch.spans[i]
            payload = bytes(ffi.buffer(batch.data + span.offset, span.length))
            item.take(FoundRecord(*record_position(batch, i), payload))


def int64_of_text(text: str) -> int | None:
    """The int64 that a text means, exactly, also of one such as 1e3; None: there is none."""
    try:
        try:
            number = int(text)
        except ValueError:
            number = int(float(text))
            if number != float(text):
                return None
        return int(np.int64(number))
    except (ValueError, OverflowError):
        return None


def float_of_text(text: str) -> float | None:
    """The float32 that a text means; None: there is none."""
    try:
        with np.errstate(over="ignore"):
            return float(np.float32(text))
    except ValueError:
        return None


class _Stopped(Exception):
    """The search is to end."""


def search_files(search: RecordSearch, files: Iterable[SearchedFile], num_threads: int) -> None:
    """Searches files until their end, or until the search is stopped. What is found comes in order
    within each, and in all that are plain and undamaged.

    Args:
        search: What is wanted.
        files: Those that are not done.
        num_threads: All that work, the caller included.
    """
    files = list(files)
    search.prepare(max(1, num_threads // max(1, len(files))))

    def check() -> None:
        if search.is_stopped:
            raise _Stopped

    passage = Passage(search, files, num_threads, check)
    with contextlib.suppress(_Stopped), contextlib.closing(passage.results()) as results:
        for _ in results:
            pass
