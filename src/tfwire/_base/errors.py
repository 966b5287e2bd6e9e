"""tfwire's own exceptions and warnings; elsewhere builtin ones (OSError, TypeError) are raised."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from contextlib import suppress
from typing import Any, TypeVar, get_type_hints

from tfwire._base.text import printable

T = TypeVar("T")


def public(cls: type[T]) -> type[T]:
    """Makes a class a member of ``tfwire``, whatever module holds it: pickles, reprs and tracebacks
    survive a move. Its annotations are evaluated first, by the names of that module."""
    if own := vars(cls).get("__annotations__"):
        hints = get_type_hints(cls)
        cls.__annotations__ = {name: hints[name] for name in own}
    cls.__module__ = "tfwire"
    return cls


def parser_said(error: Exception) -> str:
    """What a parser of text found, in words that are the same in every version of Python."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


@public
class Error(Exception):
    """Base of tfwire's own exceptions; never raised itself.

    Every attribute is also in the message. Exceptions can be made from a message alone, and keep
    their attributes when pickled, so worker processes may raise them. The message escapes
    characters of keys and file names that do not print; the attributes hold them unchanged.

    Attributes:
        error_code: TensorFlow's number for the kind of error, for example ``tf.errors.DATA_LOSS``.
        node_def, op: For TensorFlow's signature; None.
    """

    error_code: int = 2  # UNKNOWN
    node_def: object = None
    op: object = None

    def __init__(self, message: object = "", *more: object, **attributes: object) -> None:
        if len(more) not in (0, 2, 3):
            raise TypeError(
                f"{type(self).__name__} takes a message, or as in TensorFlow node_def, op, message "
                f"and an error_code, found {len(more) + 1} arguments"
            )
        if more:
            attributes |= {"node_def": message, "op": more[0]}
            message = more[1]
        if len(more) > 2:
            if not isinstance(more[2], int):
                raise TypeError(f"error_code must be an integer, found {type(more[2]).__name__}")
            attributes["error_code"] = more[2]
        super().__init__(message)
        for name, value in attributes.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no attribute {name!r}")
            if value != getattr(self, name):
                setattr(self, name, value)

    def __str__(self) -> str:
        return printable(super().__str__())

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


@public
class DataLossError(Error):
    """A record file is damaged: truncated, a checksum is wrong, or a compressed stream is broken.

    Attributes:
        path: The file, or None when reading from an object without a name.
        offset: Where the damaged record begins, in bytes of the (decompressed) file.
        record_index: Number of the damaged record, counted from 0.
        reason: "truncated", "length crc", "data crc", "too large" or "compressed stream"; "index"
            if an index is damaged or does not fit the file.

    Example:
        >>> import io
        >>> import tfwire as tfw
        >>> try:
        ...     list(tfw.read_records(io.BytesIO(b"no record of any kind")))
        ... except DataLossError as error:
        ...     print(error.reason, error.record_index, error.offset)
        length crc 0 0
    """

    error_code = 15
    path: str | os.PathLike[str] | None = None
    offset: int | None = None
    record_index: int | None = None
    reason: str | None = None


def record_error(
    path: str | os.PathLike[str] | None, record: int, offset: int, text: str, reason: str
) -> DataLossError:
    """The error for a record at a place in a file; in an input without a name for None."""
    where = "input" if path is None else os.fspath(path)
    message = f"{where}: record {record} at byte {offset}: {text}"
    return DataLossError(message, path=path, offset=offset, record_index=record, reason=reason)


class InvalidArgumentError(Error, ValueError):
    """An argument has a wrong shape, dtype or value."""

    error_code = 3


@public
class ParseError(InvalidArgumentError):
    """A message does not fit the specification, or is not a message at all; or an image of a
    column cannot be decoded.

    Attributes:
        path: The file, if the message came from one.
        record_index: Number of the record in its batch, or in its file if there is a path.
        feature: Key of the feature at fault; None if the message itself cannot be read.
        reason: "malformed", "missing", "kind", "count" or, of a RaggedFeature's rows, "partition";
            "image".
        expected: The kind ("int64") or the number of values that the specification asks for.
        found: The kind ("string") or the number of values in the message.

    Example:
        >>> import tfwire as tfw
        >>> serialized = tfw.encode_example({"age": "29"})
        >>> try:
        ...     tfw.parse_single_example(serialized, {"age": tfw.FixedLenFeature([], tfw.int64)})
        ... except ParseError as error:
        ...     print(error.feature, error.reason, error.expected, error.found)
        age kind int64 string
    """

    path: str | os.PathLike[str] | None = None
    record_index: int | None = None
    feature: str | None = None
    reason: str | None = None
    expected: str | int | None = None
    found: str | int | None = None


@public
class TfwireWarning(UserWarning):
    """Category of tfwire's warnings: records that were left out, files of a half-published set (see
    ``ShardedWriter``), and advice on arguments.

    As usual, an object that was not closed gives a ResourceWarning, and a deprecated name a
    DeprecationWarning.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("error", TfwireWarning)  # fail where a record is left out
    """


def warn(message: str) -> None:
    """Issues a TfwireWarning that points to the first caller outside of tfwire."""
    warnings.warn(message, TfwireWarning, stacklevel=_stack_level())


def _stack_level() -> int:
    """The stacklevel, seen from ``warn``, of the first frame outside of tfwire."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: object) -> bool:
    """True if a module belongs to tfwire. Code run by ``exec`` may have any object as its name."""
    return isinstance(module, str) and module.startswith("tfwire.")


def copied(error: Exception, traceback: bool = True) -> Exception:
    """A copy of an error, to be raised while the error itself is kept for later.

    A raised error refers to the frames that it passed through. A thread that keeps it would keep
    the iterator alive, and an error that is raised repeatedly would grow.

    Args:
        error: The error, which is returned itself if its class cannot be copied.
        traceback: With the traceback so far.
    """
    found = error
    with suppress(Exception):
        twin = copy.copy(error)
        found = twin if type(twin) is type(error) else error
    return found.with_traceback(error.__traceback__ if traceback else None)
