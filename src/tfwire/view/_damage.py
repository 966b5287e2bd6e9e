"""The check of all files for damage, in the background, while pages are looked at; and the page of
damage: each place, what is lost, and the commands that save the rest."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tfwire import FileReport
from tfwire._interface.damage import verify_inputs
from tfwire._interface.messages import plural
from tfwire.view._dataset import FAULTS, DataSet, fault_text
from tfwire.view._html import Html, element, facts, html_table, join, shown_text
from tfwire.view._page import damage_text, labelled_row, scrolled
from tfwire.view._records import LONGEST_RECORD, BrowsedFile, Record

_HEADS_OF_DAMAGE = ["file", "between", "at byte", "bytes lost", "records lost", "what is wrong"]
_SHOWN_PLACES = 500
_MOST_COMMANDS = 50
_KEPT_PLACES = 1000  # of damage in a file


class FileCheck(NamedTuple):
    """What was found in a file.

    Attributes:
        stamp: Of the file.
        damage: The first damaged parts.
        num_damaged: How many there are.
        lost_bytes: Their sizes.
        mean_size: Of the file's records that verify, with their frames; 0 without any.
        compression: As of a FileReport; None if that is not known.
    """

    stamp: Any
    damage: list[Record]
    num_damaged: int = 0
    lost_bytes: int = 0
    mean_size: float = 0
    compression: str | None = None


class Check:
    """A check of all files.

    Args:
        dataset: The files, which are counted by it, too.

    Attributes:
        is_started: Whether it was begun. That of files that are not on this machine waits until it
            is asked for.
    """

    def __init__(self, dataset: DataSet) -> None:
        self._dataset = dataset
        self._found: list[FileCheck | None] = [None] * len(dataset.files)
        self._reports: Any = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._read: dict[str, int] = {}  # bytes of the files that are being read
        self._is_stopped = False
        self.is_started = False

    def start(self, asked: bool = False) -> None:
        """Begins, or checks what has changed, if somebody asks for it.

        Args:
            asked: Whether somebody does; else only files of this machine are checked.
        """
        with self._lock:
            if self._is_stopped or self.is_running or (self.is_started and not asked):
                return
            if not asked and not all(file.is_local for file in self._dataset.files):
                return
            self.is_started = True
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; it has ended when this returns."""
        with self._lock:
            self._is_stopped = True
        if (reports := self._reports) is not None:
            reports.close()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def of(self, file: BrowsedFile) -> FileCheck | None:
        """What was found in a file, if it has not changed since."""
        found = self._found[file.number]
        return found if found is not None and found.stamp == file.stamp else None

    @property
    def done(self) -> list[FileCheck]:
        """What was found in all files that are checked."""
        return [found for file in self._dataset.files if (found := self.of(file)) is not None]

    def _run(self) -> None:
        left = [file for file in self._dataset.files if self.of(file) is None]
        while left and not self._is_stopped:
            left = left[self._verify(left) :]

    def _verify(self, files: list[BrowsedFile]) -> int:
        """Checks files, up to one that cannot be read; how many."""
        done, stamps = 0, []
        try:
            for file in files:
                file.look_again()
                stamps.append(file.stamp)
        except OSError as error:
            if not stamps:
                self._fail(file, error)
                return 1
            files = files[: len(stamps)]
        reports = verify_inputs(
            [file.path for file in files],
            files[0].compression_type,
            False,
            False,
            lambda path, size: self._read.update({path: size}),
            max(1, (os.cpu_count() or 1) // 2),
            max_record_size=LONGEST_RECORD,
        )
        with contextlib.closing(reports):
            self._reports = reports
            try:
                for report in reports:
                    self._note(files[done], stamps[done], report)
                    done += 1
            except FAULTS as error:
                if not self._is_stopped:
                    self._fail(files[done], error)
                done += 1
            except RuntimeError:  # it was closed
                if not self._is_stopped:
                    raise
        return done

    def _fail(self, file: BrowsedFile, error: Exception) -> None:
        self._found[file.number] = FileCheck(file.stamp, [])
        file.fail(fault_text(error))

    def _note(self, file: BrowsedFile, stamp: Any, report: FileReport) -> None:
        parts = [file.skipped(region) for region in report.skipped]
        damage = [part for part in parts if part.kind == "damage"]
        long = len(parts) - len(damage)
        size = report.payload_bytes / report.num_records + 16 if report.num_records else 0
        self._found[file.number] = FileCheck(
            stamp,
            damage[:_KEPT_PLACES],
            report.skipped.num_regions - long,
            sum(part.size for part in damage),
            size,
            report.compression,
        )
        self._read.pop(file.path, None)
        if file.stamp == stamp:
            file.num_records = report.num_records + report.skipped.num_regions
            file.num_damaged = report.skipped.num_regions - long

    # ---- In words -------------------------------------------------------------------------------

    @property
    def compressions(self) -> str:
        """How the files are compressed, as far as they are checked."""
        found = {each.compression for each in self.done if each.compression is not None}
        return ", ".join(name.lower() or "not compressed" for name in sorted(found))

    def note(self) -> str:
        """What is known of damage."""
        done, files = self.done, self._dataset.files
        places = sum(each.num_damaged for each in done)
        problems = sum(bool(file.problem) for file in files)
        parts = [f"damaged in {plural(places, 'place')}"] if places else []
        parts += [f"{plural(problems, 'file')} cannot be read"] if problems else []
        if self.is_running:
            parts.append(f"checking {self._progress(len(done))}")
        elif (count := sum(bool(file.problem or self.of(file)) for file in files)) < len(files):
            parts.append(f"{count:,} of {plural(len(files), 'file')} checked for damage")
        return ", ".join(parts) or "no damage"

    def _progress(self, done: int) -> str:
        files = self._dataset.files
        if len(files) > 1:
            return f"{done:,} of {len(files):,} files ..."
        size, read = files[0].size, self._read.get(files[0].path, 0)
        return f"{min(99, 100 * read // size)} % ..." if size else "..."


# ---- The page of damage --------------------------------------------------------------------------


def damage_list(dataset: DataSet, check: Check, link: Callable[[Record], str]) -> Html:
    """What is damaged, as far as the files are checked.

    Args:
        dataset: The files.
        check: What was found in them.
        link: Where a damaged part is in the table of records.
    """
    checked = [(file, check.of(file) or FileCheck(file.stamp, [])) for file in dataset.files]
    damaged = [(file, found) for file, found in checked if found.num_damaged or file.problem]
    rows: list[Html] = []
    for file, found in damaged:
        label = file.name if len(dataset.files) == 1 else dataset.labels[file.number]
        if file.problem:
            cells = [shown_text(label, 60), *[""] * 4, shown_text(file.problem, 200)]
            rows.append(labelled_row(_HEADS_OF_DAMAGE, cells))
        rows += _rows(dataset, label, found, link, _SHOWN_PLACES - len(rows))
    total = sum(max(found.num_damaged, 1) for _, found in damaged)
    said = check.note()
    if not rows:
        return element("p", shown_text(said[:1].upper() + said[1:] + "."))
    table = scrolled("damage", html_table(_HEADS_OF_DAMAGE, rows), "features")
    more = plural(total - len(rows), "more place") if total > len(rows) else ""
    files = [file for file, found in damaged if found.num_damaged and file.is_local]
    return join(table, facts(more), _commands(files))


def _rows(
    dataset: DataSet, label: str, found: FileCheck, link: Callable[[Record], str], most: int
) -> list[Html]:
    """A row for each place in a file."""
    rows = []
    for part in found.damage[: max(0, most)]:
        first = dataset.row_of(part.file, part.number)
        where = _between(part.number)
        if first is not None and first != part.number:
            where = join(_between(first), "; in the file ", where)
        lost = max(1, round(part.size / found.mean_size)) if found.mean_size else None
        about = "" if lost is None else f"about {lost:,}"
        cells = [shown_text(label, 60), element("a", where, href=link(part)), f"{part.offset:,}"]
        cells += [f"{part.size:,}", about, damage_text(part)]
        rows.append(labelled_row(_HEADS_OF_DAMAGE, cells))
    return rows


def _between(number: int) -> str:
    """A damaged part counts as one record."""
    return f"{number - 1:,} and {number + 1:,}" if number else "the beginning and 1"


def _commands(files: list[BrowsedFile]) -> Html:
    """What saves the other records of files."""
    if not files:
        return Html()
    paths = [file.path for file in files[:_MOST_COMMANDS]]
    lines = [f"tfwire repair {_quoted(path)} {_quoted(_repaired(path))}" for path in paths]
    more = len(files) - len(lines)
    shown = [shown_text(line, 1000) for line in lines]
    text = (
        "These commands write all records that are whole to new files; --correct also mends "
        "records of which a single bit is wrong:"
    )
    note = facts(f"and {plural(more, 'more file')}" if more > 0 else "")
    return join(element("p", text), element("pre", Html("\n".join(shown))), note)


def _quoted(path: str) -> str:
    return shlex.quote(path if not path.startswith("-") else f"./{path}")


def _repaired(path: str) -> str:
    """The name of the repaired file, which patterns for the shards do not match; its end says how
    it is compressed."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f"repaired-{name}")
