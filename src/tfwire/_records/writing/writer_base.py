"""WriterBase, the base class of writers: locks, failures, forks, writers left open, and rows."""

from __future__ import annotations

import atexit
import contextlib
import threading
import warnings
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any, TypeVar

from tfwire._base import system
from tfwire._base.aliases import FeatureKinds
from tfwire._base.errors import copied
from tfwire._base.iterator_threads import is_waited_for, turn_at
from tfwire._base.text import show_path
from tfwire._records.files.paths import is_path
from tfwire._records.frames import are_rows, as_record

Self = TypeVar("Self", bound="WriterBase")
Result = TypeVar("Result")


class WriterBase:
    """Runs one operation at a time. After an operation that failed, all others raise.

    A writer that is still open when it is dropped, or when the interpreter exits, is closed with a
    ResourceWarning. In a forked process it is abandoned: it belongs to the process that made it.
    """

    _closed = True  # until the constructor has succeeded

    def __init__(self, kinds: FeatureKinds | None, output: Any) -> None:
        self._output = output  # for errors
        self._rows: Any = None  # a WriterRows, as soon as there are rows
        if kinds is not None:
            self._the_rows(kinds)
        self._lock = threading.RLock()
        self._inside = 0  # the thread whose operation runs; 0: none
        self._failure: Exception | None = None

    # ---- Rows ---------------------------------------------------------------------------------

    def _the_rows(self, kinds: FeatureKinds | None = None) -> Any:
        """The WriterRows."""
        if self._rows is None:
            from tfwire._examples.encode import WriterRows

            output = show_path(self._output) if is_path(self._output) else ""
            made = WriterRows(kinds, output)
            self._rows = vars(self).setdefault("_made_rows", made)  # by one thread
        return self._rows

    @abstractmethod
    def _next_number(self) -> int:
        """The number of the next record. Other threads may be writing it."""

    def _encode_row(self, row: Any) -> bytes:
        rows = self._rows or self._the_rows()
        record: bytes = rows.record(row) or rows.new_record(row, self._next_number())
        return record

    def _as_records(self, values: Sequence[Any]) -> Sequence[bytes]:
        """As ``as_records``; rows agree in kinds with those that were written before."""
        types = set(map(type, values))
        if types <= {bytes}:
            return values
        if are_rows(types):
            records: list[bytes] = self._the_rows().records(values, self._next_number())
            return records
        return [as_record(value, self._encode_row) for value in values]

    # ---- Operations ---------------------------------------------------------------------------

    def _open(self) -> None:
        """Marks the writer as open, at the end of the constructor."""
        self._closed = False
        _open_writers.add(self)

    def _run(self, operation: Callable[..., Result], *arguments: Any) -> Result:
        """Runs an operation while no other one runs.

        Raises:
            RuntimeError: Called by a signal handler that interrupted an operation of this thread,
                or by the file object that the operation writes to. Waiting for that operation
                would deadlock.
        """
        with self._turn():
            if self._inside:
                raise RuntimeError(
                    f"{self!r} is in use by this thread: neither its file object nor a signal "
                    "handler can use it meanwhile"
                )
            self._inside = get_ident()
            try:
                return operation(*arguments)
            except Exception as error:
                self._fail(error)
                raise
            except BaseException:
                self._fail(RuntimeError("writing was interrupted"))
                raise
            finally:
                self._inside = 0
                if self._closed:  # Python loses an interrupt that arrives in a callback of the set
                    _open_writers.discard(self)
                    if self._rows is not None:
                        self._rows.close()

    def _turn(self) -> AbstractContextManager[object]:
        """The lock.

        Raises:
            RuntimeError: The operation that runs waits for this thread: its file object draws from
                an iterator that this thread works for.
        """
        turn = turn_at(self._lock, lambda: is_waited_for(self._inside))
        if turn is None:
            raise RuntimeError(f"{self!r} is in use by a thread that waits for this one")
        return turn

    def _check(self) -> None:
        """Raises the first failure again."""
        if self._failure is not None:
            raise copied(self._failure, traceback=False)

    def _fail(self, failure: Exception) -> None:
        """Makes every further operation raise."""
        self._failure = copied(failure, traceback=False)

    @abstractmethod
    def close(self) -> None:
        """Completes the output."""

    @abstractmethod
    def _discard(self) -> None:
        """Ends the writer and leaves the output incomplete, or removes it."""

    @abstractmethod
    def _end_unclosed(self) -> None:
        """Ends a writer that was never closed, by ``close`` or ``_discard``."""

    def _after_fork(self) -> None:
        """In a forked process: leaves the output to the parent."""
        self._closed = True
        self._lock = threading.RLock()
        self._inside = 0
        self._rows = self._made_rows = None  # another thread may have used them
        self._fail(RuntimeError("the writer belongs to the process that made it, before a fork"))

    def _finalize(self) -> None:
        """Ends a writer that was never closed; warns where no caller can catch an exception."""
        reported = self._failure is not None
        name = repr(self)  # so that it does not say "closed"
        try:
            self._end_unclosed()
        except Exception as error:
            if not reported:
                message = f"{name} was not closed, and records were lost: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=3, source=self)
        warnings.warn(f"{name} was not closed", ResourceWarning, stacklevel=3, source=self)

    def __enter__(self: Self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, kind: object, error: object, traceback: object) -> None: ...

    def _finalize_once_more(self) -> None:
        """As ``_finalize``, and again after an interrupt, which is raised at the end."""
        try:
            self._finalize()
        except Exception:
            raise  # a warning that is an error
        except BaseException:
            name = repr(self)
            self._finalize()
            message = f"{name} was interrupted while it was closed: records may be lost"
            warnings.warn(message, RuntimeWarning, stacklevel=3, source=self)
            raise

    def __del__(self) -> None:
        # Python loses what is raised here, also an interrupt.
        if not getattr(self, "_closed", True):
            self._finalize_once_more()

    def __reduce__(self) -> Any:
        raise TypeError("writers cannot be pickled; open files in the other process")


_open_writers: weakref.WeakSet[WriterBase] = weakref.WeakSet()


def _after_fork() -> None:
    for writer in list(_open_writers):
        writer._after_fork()


@atexit.register
def _finalize_all() -> None:
    """Runs before the interpreter unloads the modules that writers need."""
    for writer in list(_open_writers):
        if not writer._closed and writer._lock.acquire(timeout=1):  # a daemon thread may hold it
            with contextlib.suppress(Exception):  # warnings may be errors
                writer._finalize_once_more()
            writer._lock.release()


system.after_fork(_after_fork)
