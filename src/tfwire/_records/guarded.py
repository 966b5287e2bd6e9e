"""What writers have in common: one operation at a time, and an end that comes in any way."""

from __future__ import annotations

import atexit
import contextlib
import copy
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["Guarded", "again"]

Self = TypeVar("Self", bound="Guarded")
Result = TypeVar("Result")


class Guarded:
    """Base of writers. Threads take turns at operations; after one that failed, all others raise.

    A writer that is still open when it is dropped, or when the interpreter exits, is closed with a
    ResourceWarning. In a forked process it is given up: it belongs to the process that made it.
    """

    _closed = True  # until all went well

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._failure: Exception | None = None

    def _open(self) -> None:
        """The writer is ready."""
        self._closed = False
        _open_writers.add(self)

    def _run(self, operation: Callable[..., Result], *arguments: Any) -> Result:
        """Runs an operation when no other one runs.

        Raises:
            RuntimeError: This thread is inside one: a signal handler interrupted it. Waiting for it
                would be waiting forever.
        """
        with self._lock:
            if self._busy:
                raise RuntimeError(
                    f"{self!r} is in use by this thread: a signal handler cannot use the writer "
                    "that it interrupts"
                )
            self._busy = True
            try:
                return operation(*arguments)
            except Exception as error:
                self._fail(error)
                raise
            except BaseException:
                self._fail(RuntimeError("writing was interrupted"))
                raise
            finally:
                self._busy = False
                if self._closed:  # Python loses an interrupt that arrives in a callback of the set
                    _open_writers.discard(self)

    def _check(self) -> None:
        """Raises what the first failure was."""
        if self._failure is not None:
            raise again(self._failure)

    def _fail(self, failure: Exception) -> None:
        """Makes every further operation raise."""
        self._failure = again(failure)

    # ---- The end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Completes the output."""
        raise NotImplementedError

    def _discard(self) -> None:
        """Gives the output up: it stays incomplete or disappears."""
        raise NotImplementedError

    def _let_go(self) -> None:
        """Ends a writer that nobody closed."""
        raise NotImplementedError

    def _disown(self) -> None:
        """In a forked process: leaves everything to the other process."""
        self._closed = True
        self._lock = threading.RLock()
        self._busy = False
        self._fail(RuntimeError("the writer belongs to the process that made it, before a fork"))

    def _forget(self) -> None:
        """Ends the writer when nobody is there to take an exception."""
        failed = self._failure is not None  # somebody was told
        name = repr(self)  # while it is open
        try:
            self._let_go()
        except Exception as error:
            if not failed:
                message = f"{name} was not closed, and records were lost: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=3, source=self)
        warnings.warn(f"{name} was not closed", ResourceWarning, stacklevel=3, source=self)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self._forget()

    def __reduce__(self) -> Any:
        raise TypeError("writers cannot be pickled; open files in the other process")


def again(error: Exception) -> Exception:
    """A copy of an exception, without its traceback: raising one object again and again would make
    its traceback longer each time, and keep all that the frames hold."""
    try:
        twin = copy.copy(error)
    except Exception:  # of a class that cannot be copied
        twin = error
    return (twin if type(twin) is type(error) else error).with_traceback(None)


_open_writers: weakref.WeakSet[Guarded] = weakref.WeakSet()


def _disown_all() -> None:
    for writer in list(_open_writers):
        writer._disown()


@atexit.register
def _close_all() -> None:
    """Before the interpreter takes the modules apart that writers need."""
    for writer in list(_open_writers):
        if not writer._closed and writer._lock.acquire(timeout=1):  # a daemon thread may hold it
            with contextlib.suppress(Exception):  # warnings may be errors
                writer._forget()
            writer._lock.release()


os.register_at_fork(after_in_child=_disown_all)
