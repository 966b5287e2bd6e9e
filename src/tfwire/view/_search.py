"""The search for values in all files: by several threads, a file each, while pages show what is
found so far."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from tfwire import RecordPosition
from tfwire._interface.messages import plural
from tfwire._interface.searches import BatchFinder, BatchReader, make_options
from tfwire.view._dataset import FAULTS, DataSet, TablePlace
from tfwire.view._media import readable_text
from tfwire.view._records import LONGEST_RECORD, BrowsedFile, FeatureName, Record, decoded_record

_MOST_FOUND = 100_000
_READ_BYTES = 1 << 20


class _SearchedFile:
    """What was found in a file.

    Attributes:
        places: Of the records.
        position: Where to go on.
        is_done: Whether its end was reached.
    """

    def __init__(self) -> None:
        self.places: list[RecordPosition] = []
        self.position = RecordPosition()
        self.is_done = False


class Search:
    """A search of all files, which goes on in threads until its end, or until it is stopped.

    Args:
        dataset: The files.
        name: A feature, or a feature list, of which one step is enough; None: any of them.
        text: A number that equals one of the values, or part of one of the strings. Without a
            name, images and other strings that are not text are left out: short texts occur in
            them by chance. Empty: every record that has the feature.
    """

    def __init__(self, dataset: DataSet, name: FeatureName | None, text: str) -> None:
        self._dataset = dataset
        self._matches = search_for(name, text)
        key = None if name is None else name.text.encode("utf-8", "surrogateescape")
        self._finder = BatchFinder(
            key,
            name is not None and name.is_list,
            text.encode("utf-8", "surrogateescape"),
            _parsed(_integer_of, text),
            _parsed(_number_of, text),
        )
        self._files = [_SearchedFile() for _ in dataset.files]
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._left: Iterator[int] = iter(())
        self._is_stopped = False
        self._found = threading.Event()  # something, or the end
        self.num_problems = 0  # files that cannot be read

    # ---- Threads --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins, or goes on after a stop; not after as many as are kept."""
        with self._lock:
            if self.is_running or self.is_full:
                return
            left = [number for number, file in enumerate(self._files) if not file.is_done]
            self._left, self._is_stopped = iter(left), False
            cpus = os.cpu_count() or 1
            count = min(cpus, len(left))
            self._threads = [
                threading.Thread(target=self._run, args=(cpus // count,), daemon=True)
                for _ in range(count)
            ]
            for thread in self._threads:
                thread.start()

    def stop(self) -> None:
        """Ends the threads; they have ended when this returns."""
        self._is_stopped = True
        for thread in self._threads:
            thread.join()

    @property
    def is_running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _run(self, num_threads: int) -> None:
        while not self._is_stopped:
            with self._lock:
                number = next(self._left, None)
            if number is None:
                break
            try:
                self._search(self._dataset.files[number], self._files[number], num_threads)
            except FAULTS:
                self.num_problems += 1
                self._files[number].is_done = True
        self._found.set()

    def _search(self, file: BrowsedFile, searched: _SearchedFile, num_threads: int) -> None:
        options = make_options(file.compression_type, True, "skip", LONGEST_RECORD, _READ_BYTES)
        start = searched.position
        with BatchReader([file.path], options, start=start, num_threads=num_threads) as reader:
            reader.warn = lambda text: None  # pages show damage
            while not self._is_stopped and (batch := reader.next()) is not None:
                for record in self._finder.find(batch):
                    if self._matches(decoded_record(*record)):
                        searched.places.append(RecordPosition(record.number, record.offset))
                        self._found.set()
                searched.position = reader.position
                if self.is_full:
                    self._is_stopped = True
            searched.is_done = not self._is_stopped

    # ---- Results --------------------------------------------------------------------------------

    def _shown(self) -> Iterator[tuple[int, _SearchedFile]]:
        """The files up to the first one whose end was not reached: what is found later comes after
        what is shown."""
        for number, file in enumerate(self._files):
            yield number, file
            if not file.is_done:
                return

    @property
    def num_found(self) -> int:
        return sum(len(file.places) for _, file in self._shown())

    @property
    def is_done(self) -> bool:
        return all(file.is_done for file in self._files)

    @property
    def is_full(self) -> bool:
        return self.num_found >= _MOST_FOUND

    def found(self, begin: int, count: int) -> list[TablePlace]:
        """Some of the places, in order."""
        places = (
            TablePlace(number, position)
            for number, file in self._shown()
            for position in list(file.places)
        )
        return list(islice(places, begin, begin + count))

    def beside(self, file: int, number: int) -> tuple[TablePlace | None, TablePlace | None]:
        """The places before and after a record."""
        before: TablePlace | None = None
        for i, each in self._shown():
            places = list(each.places)
            end = 0 if i > file else bisect_left(places, (number, -1)) if i == file else len(places)
            if end:
                before = TablePlace(i, places[end - 1])
            after = len(places) if i < file else bisect_right(places, (number, 1 << 63), end)
            if i > file:
                after = 0
            if after < len(places):
                return before, TablePlace(i, places[after])
        return before, None

    def wait(self, count: int, seconds: float) -> None:
        """Waits until so many are found, or the end, but not long."""
        deadline = time.monotonic() + seconds
        while self.is_running and self.num_found < count:
            self._found.clear()
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._found.wait(min(left, 0.02))

    def note(self) -> str:
        """How far it is, in words."""
        count = plural(self.num_found, "record")
        problems = plural(self.num_problems, "file") if self.num_problems else ""
        unread = f"; {problems} cannot be read" if problems else ""
        if self.is_done:
            return f"{count} found in all{unread}"
        if self.is_full:
            return f"the first {count} found{unread}"
        state = "so far; searching, " if self.is_running else "; stopped after "
        return f"{count} found{' ' * self.is_running}{state}{self._progress()}{unread}"

    def _progress(self) -> str:
        done = sum(file.is_done for file in self._files)
        if len(self._files) > 1:
            return f"{done:,} of {len(self._files):,} files"
        size = self._dataset.files[0].size
        offset = self._files[0].position.offset
        return f"{100 * min(1, offset / size):.0f} %" if size else plural(offset, "byte")


# ---- Which records have a feature with a value --------------------------------------------------


def search_for(name: FeatureName | None, text: str) -> Callable[[Record], bool]:
    """Whether a record has a feature, and ``text`` in it; see Search. Of a record that is not
    whole, only the first values are known: it has what was found in all."""
    part = text.encode("utf-8", "surrogateescape")

    def matches(record: Record) -> bool:
        if not record.is_whole:
            return True
        if record.kind == "other":
            return name is None and part in record.payload and _is_text(record.payload)
        names = record.names if name is None else [name]
        steps = (values for each in names for values in record.steps(each) or ())
        if not text:
            return name is not None and record.steps(name) is not None
        return any(_has(values, text, part, name is None) for values in steps)

    return matches


def _has(values: Any, text: str, part: bytes, only_text: bool) -> bool:
    if isinstance(values, np.ndarray) and values.dtype != object:
        wanted = _parsed(_integer_of if values.dtype == np.int64 else _number_of, text)
        return wanted is not None and bool(np.any(values == wanted))
    return any(part in value and not (only_text and not _is_text(value)) for value in values)


def _is_text(contents: bytes) -> bool:
    return readable_text(contents) is not None


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """A number; None if there is none like that."""
    try:
        return parse(text)
    except (ValueError, OverflowError):
        return None


def _integer_of(text: str) -> int:
    """An integer, exactly; also one that is written like 1e3."""
    try:
        number = int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        number = int(float(text))
    return int(np.int64(number))  # an OverflowError if no int64 is equal


def _number_of(text: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(text))
