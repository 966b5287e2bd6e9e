"""The exceptions of tfwire. Where a builtin says it (OSError, TypeError, ...), it is used."""

from __future__ import annotations

import os
from typing import Any

from tfwire._public import public
from tfwire._text import printable

__all__ = ["DataLossError", "Error", "InvalidArgumentError", "ParseError", "TfwireWarning"]


@public
class Error(Exception):
    """Base of tfwire's own exceptions; never raised itself.

    Every attribute is also in the message. Exceptions can be made from a message alone and
    survive pickling with their attributes, so worker processes may raise them. In the message,
    characters of keys and file names that do not print are escaped; attributes hold them as
    they are.

    Attributes:
        error_code: TensorFlow's number of the kind of error, ``tf.errors.DATA_LOSS`` say.
        node_def, op: What failed in a graph: None.
    """

    error_code: int = 2  # UNKNOWN
    node_def: Any = None
    op: Any = None

    def __init__(self, message: Any = "", *more: Any, **attributes: Any) -> None:
        if len(more) > 1:  # TensorFlow's exceptions are made from (node_def, op, message)
            attributes |= {"node_def": message, "op": more[0]}
            message = more[1]
        if len(more) > 2:  # and OpError from its code, too
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
        offset: Byte offset of the damaged record's first byte in the (decompressed) file.
        record_index: Number of the damaged record, counted from 0.
        reason: "truncated", "length crc", "data crc", "too large" or "compressed stream"; "index"
            when an index is damaged or does not belong to the file as it is.

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


class InvalidArgumentError(Error, ValueError):
    """An argument has a wrong shape, dtype or value. Raised by ``tfwire.compat``."""

    error_code = 3


@public
class ParseError(InvalidArgumentError):
    """A message is not what the specification says, or not a message at all.

    Attributes:
        path: The file, where the message came from one.
        record_index: Number of the record in its batch, or in its file when there is a path.
        feature: Key of the feature at fault, None when the message itself cannot be read.
        reason: "malformed", "missing", "kind", "count" or, of a RaggedFeature's rows, "partition".
        expected: The kind ("int64") or the number of values that the specification asks for.
        found: The kind ("string") or the number of values that the message holds.

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
    """Category of tfwire's warnings: records that were left out, files of a set that is half
    published (see ``ShardedWriter``), and advice on arguments.

    An object that was not closed gives a ResourceWarning, and what will be removed a
    DeprecationWarning, as usual.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("error", TfwireWarning)  # fail where a record is left out
    """
