"""``tf.errors``: the errors of tfwire under TensorFlow's names.

OpError, DataLossError and InvalidArgumentError are tfwire's own classes, so that ``except`` clauses
written for TensorFlow catch what readers and parsers raise. Errors of the operating system are both
TensorFlow's and Python's: a missing file is a NotFoundError, an OpError and a FileNotFoundError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, NoReturn, TypeVar

from tfwire._base.arguments import printable
from tfwire._base.errors import DataLossError, Error, InvalidArgumentError
from tfwire.compat._missing import Namespace

__all__ = [
    "AlreadyExistsError",
    "ClosedError",
    "DtypeError",
    "FailedPreconditionError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "UnimplementedError",
    "as_argument_error",
    "as_tensorflow",
    "errors",
    "raise_translated",
    "refusing_arguments",
    "refusing_values",
    "translating_files",
    "with_file_errors",
]

Function = TypeVar("Function", bound=Callable[..., Any])

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


# ---- Classes ------------------------------------------------------------------------------------


class CancelledError(Error):
    """An operation was cancelled."""

    error_code = 1


class UnknownError(Error):
    """An error of another kind."""


class DeadlineExceededError(Error):
    """An operation took too long."""

    error_code = 4


class ResourceExhaustedError(Error):
    """A disk is full, or there are too many open files."""

    error_code = 8


class AbortedError(Error):
    """An operation gave way to another one."""

    error_code = 10


class OutOfRangeError(Error):
    """An iterator is at its end."""

    error_code = 11


class UnimplementedError(Error):
    """TensorFlow has no such operation for these dtypes."""

    error_code = 12


class FailedPreconditionError(Error):
    """A directory where a file is needed, or the other way round."""

    error_code = 9


class InternalError(Error):
    """A fault of the library itself."""

    error_code = 13


class UnavailableError(Error):
    """An operation that may work later."""

    error_code = 14


class UnauthenticatedError(Error):
    """A service does not know the user."""

    error_code = 16


class ClosedError(FailedPreconditionError, ValueError):
    """The writer is closed: a ValueError of tfwire."""


class DtypeError(InvalidArgumentError, TypeError):
    """A wrong dtype. TensorFlow raises one of the three, depending on the way to the operation."""


# ---- Errors of the operating system -------------------------------------------------------------

_SYSTEM = ("errno", "strerror", "filename", "filename2")


class _SystemError(Error, OSError):
    """An error of the operating system, with the attributes that Python gives it."""

    _parts: tuple[type[Error], type[OSError]] | None = None  # of a combined class

    def __str__(self) -> str:
        return printable(BaseException.__str__(self))

    def __reduce__(self) -> tuple[Any, ...]:
        known = [name for name in _SYSTEM if getattr(self, name) is not None]
        system = {name: getattr(self, name) for name in known}
        return _made, (self._parts or (type(self),), self.args), {**self.__dict__, **system}


class NotFoundError(_SystemError, FileNotFoundError):
    """There is no such file or directory."""

    error_code = 5


class AlreadyExistsError(_SystemError, FileExistsError):
    """There is such a file already."""

    error_code = 6


class PermissionDeniedError(_SystemError, PermissionError):
    """The operation is not permitted."""

    error_code = 7


@cache
def _combined(theirs: Any, python: type[OSError]) -> type[Error]:
    """The class of errors that are both of two."""
    if issubclass(theirs, python):
        return theirs  # type: ignore[no-any-return]
    names = {"__doc__": theirs.__doc__, "__module__": __name__, "_parts": (theirs, python)}
    return type(theirs.__name__, (theirs, _SystemError, python), names)


def _made(parts: tuple[Any, ...], arguments: tuple[Any, ...]) -> Error:
    cls = _combined(*parts) if len(parts) > 1 else parts[0]
    made: Error = cls(*arguments)
    return made


# As TensorFlow sorts them; all others are UNKNOWN.
_ERRNOS: dict[type[Error], tuple[int, ...]] = {
    InvalidArgumentError: (errno.EINVAL, errno.ENAMETOOLONG, errno.ESPIPE, errno.ENOTTY),
    DeadlineExceededError: (errno.ETIMEDOUT,),
    NotFoundError: (errno.ENOENT, errno.ENODEV, errno.ENXIO),
    AlreadyExistsError: (errno.EEXIST,),
    PermissionDeniedError: (errno.EPERM, errno.EACCES, errno.EROFS),
    FailedPreconditionError: (
        *(errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EBADF),
        *(errno.EBUSY, errno.EPIPE, errno.ETXTBSY),
    ),
    ResourceExhaustedError: (
        *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
        *(errno.EMLINK, errno.ENOMEM, errno.ENOBUFS),
    ),
    OutOfRangeError: (errno.EFBIG, errno.EOVERFLOW, errno.ERANGE),
    UnimplementedError: (errno.ENOSYS, errno.ENOTSUP, errno.EXDEV),
    UnavailableError: (errno.EAGAIN, errno.EINTR, errno.ENOLCK, errno.ECONNRESET),
    AbortedError: (errno.EDEADLK, errno.ESTALE),
}
_BY_ERRNO = {number: cls for cls, numbers in _ERRNOS.items() for number in numbers}
_BY_CLASS: dict[type[OSError], type[Error]] = {  # of errors without a number
    FileNotFoundError: NotFoundError,
    FileExistsError: AlreadyExistsError,
    PermissionError: PermissionDeniedError,
}


def as_tensorflow(error: OSError) -> OSError:
    """TensorFlow's error for one of the operating system; any other error as it is."""
    if isinstance(error, Error):
        return error
    python = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    theirs: Any = _BY_CLASS.get(python)
    if theirs is None and error.errno:
        theirs = _BY_ERRNO.get(error.errno, UnknownError)
    if theirs is None:
        return error
    message = str(error)
    if error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    made: Any = _combined(theirs, python)(message)
    for name in _SYSTEM:
        if getattr(error, name) is not None:
            setattr(made, name, getattr(error, name))
    found: OSError = made
    return found


@contextmanager
def translating_files() -> Iterator[None]:
    """Raises the errors of the operating system as TensorFlow's."""
    try:
        yield
    except OSError as error:
        raise_translated(error)


def raise_translated(error: OSError) -> NoReturn:
    """Raises an error of the operating system as TensorFlow's."""
    theirs = as_tensorflow(error)
    if theirs is error:
        raise error
    raise theirs from error


def with_file_errors(function: Function) -> Function:
    """The function, raising errors of the operating system as TensorFlow's."""

    @wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OSError as error:
            raise_translated(error)

    return translated  # type: ignore[return-value]


# ---- Arguments ----------------------------------------------------------------------------------


@contextmanager
def refusing_arguments(*kinds: type[Exception]) -> Iterator[None]:
    """Raises numpy's errors of shapes, axes and indices as InvalidArgumentError.

    Args:
        kinds: The exceptions to translate; by default all that numpy raises for arguments.
    """
    try:
        yield
    except Error:
        raise
    except (ValueError, IndexError, TypeError) as error:
        if kinds and not isinstance(error, kinds):
            raise
        raise as_argument_error(error) from error


def as_argument_error(error: Exception) -> Error:
    """An error of numpy as InvalidArgumentError."""
    return error if isinstance(error, Error) else InvalidArgumentError(str(error))


def refusing_values(function: Function) -> Function:
    """The function, raising ValueErrors as InvalidArgumentError, which is a ValueError too."""

    @wraps(function)
    def refusing(*args: Any, **kwargs: Any) -> Any:
        with refusing_arguments(ValueError):
            return function(*args, **kwargs)

    return refusing  # type: ignore[return-value]


errors: Namespace = Namespace(
    "errors",
    OpError=Error,
    DataLossError=DataLossError,
    **{
        cls.__name__: cls
        for cls in (
            *(AbortedError, AlreadyExistsError, CancelledError, DeadlineExceededError),
            *(FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError),
            *(OutOfRangeError, PermissionDeniedError, ResourceExhaustedError),
            *(UnauthenticatedError, UnavailableError, UnimplementedError, UnknownError),
        )
    },
    **_CODES,
)
