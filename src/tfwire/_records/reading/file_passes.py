"""A pass over files, with a result for each, in their order.

Plain files are read by a pipeline of C: all its threads work on one file, or on several. At
whatever is unusual (damage, compression, an error of the system) it stops, and goes on with the
next file. The unusual files, and what has no descriptor of a regular file, are for a function of
Python, several at a time.
"""

from __future__ import annotations

import contextlib
import os
import stat
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from tfwire._base.native import ffi
from tfwire._base.parallel_map import Check, ParallelMap, never_stopped
from tfwire._records.files.byte_sources import detected_in_file
from tfwire._records.files.paths import is_file_object, is_path
from tfwire._records.files.urls import is_url
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.pipeline import (
    Chunk,
    FilePlace,
    NativePipeline,
    PipelineOptions,
    Stop,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

_FILES_LOOKED_AT = 1024  # files that are looked at before the first of them is read
_RANGES = 16  # for each thread, if there are so many bytes
_LEAST_RANGE, _MOST_RANGE = 1 << 20, 1 << 22


class PlainFile(ABC, Generic[Result]):
    """What becomes of a regular file that a pipeline reads.

    Args:
        status: Of the file, before it is read.

    Attributes:
        start: Where to begin, in the first of the files.
    """

    start = RecordPosition()

    def __init__(self, status: os.stat_result) -> None:
        self.status = status

    @abstractmethod
    def add(self, chunk: Chunk) -> None:
        """Takes the next records."""

    @abstractmethod
    def finish(self) -> Result | None:
        """The result, when all records were taken. None: the file has to be read by ``others``."""


class FilePass(ABC, Generic[Item, Result]):
    """What to do with each file.

    Attributes:
        mode, flags, max_record_size, select, wanted: Of the pipeline.
    """

    mode: int
    flags = 0
    max_record_size = 0
    select: Any = ffi.NULL
    wanted: Any = ffi.NULL

    @abstractmethod
    def begin(self, item: Item) -> PlainFile[Result] | None:
        """Begins with an item; None: no pipeline can read it."""

    @abstractmethod
    def read(self, item: Item, check: Check, begun: PlainFile[Result] | None = None) -> Result:
        """The result of an item that is not, or not to its end, what a pipeline reads.

        Args:
            item: The file.
            check: To be called again and again.
            begun: What a pipeline has read of it: the records before whatever is unusual.
        """


def regular_status(path: Any) -> os.stat_result | None:
    """The status of a regular file, which is not opened: a pipe would notice. None: an input of
    another kind, a file that cannot be found, or one that has no size, as those of /proc, which may
    have something to read."""
    if not is_path(path) or is_file_object(path) or is_url(path):
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) and status.st_size else None


class _PassedFile(Generic[Item, Result]):
    """A file of a pass.

    Attributes:
        plain: What a pipeline reads of it, or None.
        result: None until it is known.
    """

    __slots__ = ("item", "plain", "result")

    def __init__(self, item: Item, plain: PlainFile[Result] | None) -> None:
        self.item = item
        self.plain = plain
        self.result: Result | None = None


class Passage(Generic[Item, Result]):
    """A pass over files, while it lasts. It holds no reference to whoever iterates.

    Args:
        what: What to do with each file.
        items: The files.
        num_threads: All that work, the caller included; 1 starts none.
        check: Raises an exception if the pass is to stop.
    """

    def __init__(
        self,
        what: FilePass[Item, Result],
        items: Iterable[Item],
        num_threads: int,
        check: Check = never_stopped,
    ) -> None:
        self._what = what
        self._items = iter(items)
        self._num_threads = num_threads
        self._check = check
        self._pipeline: NativePipeline | None = None
        self._others: ParallelMap[_PassedFile[Item, Result], Result] | None = None

    def stop(self) -> None:
        """Wakes the thread that waits for a result. Any thread may call it at any time."""
        if (pipeline := self._pipeline) is not None:
            pipeline.cancel()
        if (others := self._others) is not None:
            others.stop()

    def results(self) -> Generator[Result, None, None]:
        """The results, in the order of the files. Close this generator."""
        while items := list(islice(self._items, _FILES_LOOKED_AT)):
            files = [_PassedFile(item, self._what.begin(item)) for item in items]
            with contextlib.closing(self._read_plain(files)) as groups:
                yield from self._in_order(groups)

    def _in_order(self, groups: Iterator[list[_PassedFile[Item, Result]]]) -> Iterator[Result]:
        """The results of files of which a pipeline has read some. The others are read several at a
        time, but no more than that many files wait for one of them."""
        waiting: deque[_PassedFile[Item, Result]] = deque()
        for group in groups:
            waiting += group
            unread = sum(file.result is None for file in waiting)
            if unread == 0 or unread >= self._num_threads or len(waiting) > self._num_threads:
                yield from self._read_others(waiting)
        yield from self._read_others(waiting)

    def _read_others(self, waiting: deque[_PassedFile[Item, Result]]) -> Iterator[Result]:
        """The results of all files, which are taken away."""
        unread = [file for file in waiting if file.result is None]
        with ParallelMap(self._read, unread, self._num_threads) as results:
            self._others = results
            while waiting:
                self._check()  # a stop just before did not know of them
                file = waiting.popleft()
                yield next(results) if file.result is None else file.result

    def _read(self, file: _PassedFile[Item, Result], check: Check) -> Result:
        return self._what.read(file.item, check, file.plain)

    # ---- The pipeline -------------------------------------------------------------------------

    def _read_plain(
        self, files: list[_PassedFile[Item, Result]]
    ) -> Generator[list[_PassedFile[Item, Result]], None, None]:
        """All files, some at a time, in order: those that a pipeline could read have results."""
        numbers = [number for number, file in enumerate(files) if file.plain is not None]
        plain = [(files[number].item, files[number].plain) for number in numbers]
        numbers.append(len(files))
        reached = 0
        for whole, end in self._stops(plain):
            for file in files[reached : numbers[whole]]:
                if file.plain is not None:
                    file.result = file.plain.finish()
            if reached < numbers[end]:
                yield files[reached : numbers[end]]
            reached = numbers[end]

    def _stops(self, plain: list[Any]) -> Iterator[tuple[int, int]]:
        """Reads plain files: pairs of an item and its PlainFile.

        Returns:
            An iterator of pairs of numbers: all files before the first are read, those from there
            up to the second are not for the pipeline.
        """
        at = 0
        yield at, at
        if not plain:
            return
        pipeline = self._pipeline = self._open(plain)
        try:
            while at < len(plain):
                self._check()
                found = pipeline.next()
                if isinstance(found, Chunk):
                    file = found.info.begin.file
                    if file != at:
                        at = file
                        yield at, at
                    plain[file][1].add(found)
                    found.release()
                elif isinstance(found, Stop):
                    file, position = found.place
                    at = file + 1
                    if position.offset == 0 and self._num_threads > 1:
                        at = _end_of_unusual(plain, at)
                    pipeline.seek(FilePlace(at))
                    yield file, at
                else:
                    at = len(plain)
                    yield at, at
        finally:
            self._pipeline = None
            pipeline.close()

    def _open(self, plain: list[Any]) -> NativePipeline:
        share = sum(file.status.st_size for _, file in plain) // (_RANGES * self._num_threads)
        options = PipelineOptions(
            self._what.mode,
            max_record_size=self._what.max_record_size,
            range_bytes=min(max(share, _LEAST_RANGE), _MOST_RANGE),
            num_threads=self._num_threads,
            flags=self._what.flags,
            select=self._what.select,
            wanted=self._what.wanted,
            held=self._what,
        )
        start = FilePlace(0, plain[0][1].start)
        return NativePipeline([item for item, _ in plain], options, start)


def _end_of_unusual(plain: list[Any], first: int) -> int:
    """The first file, from there on, that does not look compressed: so the others before it are
    read side by side, however many they are."""
    for number in range(first, len(plain)):
        with contextlib.suppress(OSError):
            found = detected_in_file(plain[number][0])
            if found is not None and not found.compression:
                return number
    return len(plain)


class FileMap(ParallelMap[Item, Result]):
    """An iterator over the results of a pass, which threads may share.

    Args:
        what: What to do with each file.
        items: The files.
        num_threads: See Passage.
    """

    def __init__(
        self, what: FilePass[Item, Result], items: Iterable[Item], num_threads: int
    ) -> None:
        super().__init__(what.read, (), 1)  # the passage has the items
        self._passage = Passage(what, items, num_threads, self._tasks.check)
        self._results = self._passage.results()

    def step(self) -> Result:
        return next(self._results)

    def stop(self) -> None:
        super().stop()
        self._passage.stop()

    def release(self) -> None:
        self._results.close()
