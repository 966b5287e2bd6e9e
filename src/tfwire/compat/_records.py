"""The record iterator of TensorFlow 1, which goes on when its file has grown."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tfwire as tfw
from tfwire._records.options import AS_TENSORFLOW
from tfwire.compat._errors import (
    ClosedError,
    FailedPreconditionError,
    raise_translated,
    translating_files,
    with_file_errors,
)
from tfwire.errors import DataLossError
from tfwire.records import RecordPosition

__all__ = ["RecordIterator", "TFRecordWriter", "tf_record_iterator"]


class TFRecordWriter(tfw.TFRecordWriter):
    """As :class:`tfwire.TFRecordWriter`, with the errors of TensorFlow."""

    @with_file_errors
    def __init__(self, path: Any, options: Any = None, **others: Any) -> None:
        super().__init__(path, options, **others)

    def _run(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return super()._run(operation, *arguments)
        except OSError as error:
            raise_translated(error)

    def _fail(self, failure: Exception) -> None:
        super()._fail(ClosedError(str(failure)) if type(failure) is ValueError else failure)


class RecordIterator:
    """Iterates over the records of one file, and goes on later where more was written.

    At the end of the file ``next`` raises StopIteration, inside of a record DataLossError. Either
    can be called again, when the file has grown perhaps.

    Args:
        path: The file.
        compression: As for ``tfwire.read_records``.

    Raises:
        NotFoundError: There is no such file.
    """

    def __init__(self, path: Any, compression: Any) -> None:
        self._path = path
        self._compression = compression
        self._position = RecordPosition()
        self._records: tfw.RecordIterator | None = None
        self._closed = False
        with translating_files(), open(path, "rb"):
            pass

    def __iter__(self) -> RecordIterator:
        return self

    def __next__(self) -> bytes:
        if self._closed:
            raise StopIteration
        if self._records is None:
            self._records = tfw.read_records(
                self._path, self._compression, start=self._position, on_corrupt=AS_TENSORFLOW
            )
        try:
            return next(self._records)
        except (StopIteration, DataLossError):
            self._pause()
            raise
        except OSError as error:
            raise_translated(error)

    def _pause(self) -> None:
        """Closes the file; the next call looks at it again."""
        if self._records is not None:
            self._position = self._records.position
            self._records.close()
            self._records = None

    def close(self) -> None:
        """Closes the file: ``next`` raises StopIteration then. Closing again is allowed."""
        self._pause()
        self._closed = True

    def reopen(self) -> None:
        """Goes on after ``close``, after the last record that was given.

        Raises:
            FailedPreconditionError: The iterator is not closed.
        """
        if not self._closed:
            raise FailedPreconditionError(None, None, "Reader is not closed.")
        self._closed = False


def tf_record_iterator(path: Any, options: Any = None) -> RecordIterator:
    """Iterates over the records of one file; see :class:`RecordIterator`.

    Args:
        path: The file.
        options: TFRecordOptions or a compression type; None looks at the file.
    """
    name = os.fsdecode(path.numpy() if hasattr(path, "numpy") else path)
    return RecordIterator(name, "auto" if options is None else options)
