"""The search for values in all files, in threads, while pages show what is found so far."""

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
from tfwire._interface.searches import (
    FoundRecord,
    RecordSearch,
    SearchedFile,
    float_of_text,
    int64_of_text,
    search_files,
)
from tfwire.view._dataset import DataSet, TablePlace
from tfwire.view._media import readable_text
from tfwire.view._records import LONGEST_RECORD, BrowsedFile, FeatureName, Record, decoded_record

_MOST_FOUND = 100_000


class _SearchedFile(SearchedFile):
    """What was found in a file.

    Args:
        search: Of all files.
        file: The file.

    Attributes:
        places: Of the records.
    """

    def __init__(self, search: Search, file: BrowsedFile) -> None:
        super().__init__(file.path, file.compression_type)
        self.places: list[RecordPosition] = []
        self._search, self._browsed = search, file

    def look(self) -> None:
        """Leaves it out if it cannot be read: a pipe would be waited for."""
        try:
            self._browsed.look_again()
        except OSError:
            self.is_done = self.has_failed = True

    def take(self, record: FoundRecord) -> None:
        self._search.take(self.places, record)

    def go_to(self, position: RecordPosition) -> None:
        super().go_to(position)
        if self._search.is_full:
            self._search.end()


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
        self._wanted = RecordSearch(
            None if name is None else name.text.encode("utf-8", "surrogateescape"),
            name is not None and name.is_list,
            text.encode("utf-8", "surrogateescape"),
            int64_of_text(text),
            float_of_text(text),
            LONGEST_RECORD,
        )
        self._files = [_SearchedFile(self, file) for file in dataset.files]
        self._lock = threading.Lock()
        self._thread = threading.Thread()
        self._found = threading.Event()  # something, or the end

    # ---- The thread, which has those of C and others ------------------------------------------

    def start(self) -> None:
        """Begins, or goes on after a stop; not after as many as are kept."""
        with self._lock:
            if self.is_running or self.is_full:
                return
            self._wanted.is_stopped = False
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Lets the threads end soon."""
        self._wanted.is_stopped = True

    @property
    def is_stopped(self) -> bool:
        return self._wanted.is_stopped

    def stop(self) -> None:
        """Ends the threads; they have ended when this returns."""
        self.end()
        if self.is_running:
            self._thread.join()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._search()
        finally:
            self._found.set()

    def _search(self) -> None:
        for file in self._files:
            file.look()
        left = [file for file in self._files if not file.is_done]
        search_files(self._wanted, left, os.cpu_count() or 1)

    def take(self, places: list[RecordPosition], record: FoundRecord) -> None:
        """Adds a record to those found, if it has what is wanted."""
        if self._matches(decoded_record(*record)):
            places.append(RecordPosition(record.number, record.offset))
            self._found.set()

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
        num_problems = sum(file.has_failed for file in self._files)
        problems = plural(num_problems, "file") if num_problems else ""
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
        offset = self._files[0].start.offset
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
        wanted = int64_of_text(text) if values.dtype == np.int64 else float_of_text(text)
        return wanted is not None and bool(np.any(values == wanted))
    return any(part in value and not (only_text and not _is_text(value)) for value in values)


def _is_text(contents: bytes) -> bool:
    return readable_text(contents) is not None
