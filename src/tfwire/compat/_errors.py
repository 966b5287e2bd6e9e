"""``tf.errors``: what tfwire raises, under TensorFlow's names.

OpError, DataLossError and InvalidArgumentError are tfwire's own classes, so that ``except`` clauses
written for TensorFlow catch what readers and parsers raise. A missing file is Python's
FileNotFoundError, which tf.errors calls NotFoundError; likewise for permissions and existing files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tfwire.compat._missing import Namespace
from tfwire.errors import DataLossError, Error, InvalidArgumentError

__all__ = [
    "DtypeError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "OutOfRangeError",
    "UnimplementedError",
    "errors",
    "refusing_arguments",
    "translating_files",
]


class OutOfRangeError(Error):
    """An iterator has come to its end."""


class UnimplementedError(Error):
    """TensorFlow has no such operation for these dtypes."""


class FailedPreconditionError(Error):
    """A directory where a file is needed, or the other way round."""


class DtypeError(InvalidArgumentError, TypeError):
    """A wrong dtype. TensorFlow raises one of the three, depending on the way to the operation."""


class _MissingFile(Error, FileNotFoundError):
    pass


class _ForbiddenFile(Error, PermissionError):
    pass


class _ExistingFile(Error, FileExistsError):
    pass


_FILE_ERRORS: dict[type[OSError], type[Error]] = {
    FileNotFoundError: _MissingFile,
    PermissionError: _ForbiddenFile,
    FileExistsError: _ExistingFile,
    IsADirectoryError: FailedPreconditionError,
    NotADirectoryError: FailedPreconditionError,
}


@contextmanager
def translating_files() -> Iterator[None]:
    """Raises the errors of the operating system as TensorFlow's."""
    try:
        yield
    except OSError as error:
        if isinstance(error, Error) or error.filename is None:  # ours already
            raise
        for cls, theirs in _FILE_ERRORS.items():
            if isinstance(error, cls):
                raise theirs(f"{os.fsdecode(error.filename)}: {error.strerror}") from error
        raise


@contextmanager
def refusing_arguments(*kinds: type[Exception]) -> Iterator[None]:
    """Raises what numpy says of shapes, axes and indices as InvalidArgumentError.

    Args:
        kinds: The exceptions to translate; none: all that numpy raises for arguments.
    """
    try:
        yield
    except Error:
        raise
    except (ValueError, IndexError, TypeError) as error:
        if kinds and not isinstance(error, kinds):
            raise
        raise InvalidArgumentError(str(error)) from error


_CODES = {
    "OK": 0,
    "CANCELLED": 1,
    "UNKNOWN": 2,
    "INVALID_ARGUMENT": 3,
    "DEADLINE_EXCEEDED": 4,
    "NOT_FOUND": 5,
    "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "ABORTED": 10,
    "OUT_OF_RANGE": 11,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "DATA_LOSS": 15,
    "UNAUTHENTICATED": 16,
}
# Nothing here raises these; code may name them in its except clauses.
_NEVER_RAISED = (
    "Aborted",
    "Cancelled",
    "DeadlineExceeded",
    "Internal",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unknown",
)

errors = Namespace(
    "errors",
    OpError=Error,
    DataLossError=DataLossError,
    InvalidArgumentError=InvalidArgumentError,
    OutOfRangeError=OutOfRangeError,
    UnimplementedError=UnimplementedError,
    FailedPreconditionError=FailedPreconditionError,
    NotFoundError=FileNotFoundError,
    PermissionDeniedError=PermissionError,
    AlreadyExistsError=FileExistsError,
    **_CODES,
    **{f"{name}Error": type(f"{name}Error", (Error,), {}) for name in _NEVER_RAISED},
)
