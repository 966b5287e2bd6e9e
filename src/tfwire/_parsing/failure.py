"""ParseErrors: what C or the assembly found amiss, in words, with everything that helps.

The core of each message is TensorFlow's; file, record, counts and keys are added, payload never.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfwire._core import lib, text
from tfwire._text import show_key
from tfwire.errors import ParseError

__all__ = ["Misfit", "Place", "keys_of", "parse_error", "raise_misfit"]

_KIND_NAMES = {
    lib.TFW_BYTES: "string",
    lib.TFW_FLOAT: "float32",
    lib.TFW_INT64: "int64",
    lib.TFW_NONE: "none",
}

_MAX_KEYS = 20


class Misfit(Exception):
    """A record that does not fit the specification, before it is known where it came from.

    Attributes:
        reason, feature, expected, found: As in ParseError.
        record: Index in the batch; None when all records together are at fault.
        text: What is wrong.
        list: The feature is one of a SequenceExample's feature lists.
    """

    def __init__(
        self,
        reason: str,
        feature: str | bytes | None,
        record: int | None,
        text: str,
        expected: Any = None,
        found: Any = None,
        list: bool = False,
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.feature = feature
        self.record = record
        self.text = text
        self.expected = expected
        self.found = found
        self.list = list


class Place(NamedTuple):
    """Where a record came from.

    Attributes:
        path: The file, or None.
        record: Its number in the batch, or in the file when there is a path.
        name: Its entry of example_names, or None.
    """

    path: str | os.PathLike[str] | None = None
    record: int | None = None
    name: Any = None

    def __str__(self) -> str:
        parts = [] if self.path is None else [os.fspath(self.path)]
        parts += [] if self.record is None else [f"record {self.record}"]
        parts += [] if self.name is None else [f"Name: {show_key(self.name)}"]
        return ": ".join(parts)


def parse_error(misfit: Misfit, place: Place, keys: list[Any] | None = None) -> ParseError:
    """The exception for a misfit.

    Args:
        misfit: What is wrong.
        place: Where the record came from.
        keys: For a missing feature those that the record has; None when they are not known.
    """
    message = misfit.text
    if keys is not None:
        message += f" The record has {show_keys(keys)}."
    feature = misfit.feature
    if isinstance(feature, bytes):
        feature = feature.decode("utf-8", "surrogateescape")
    where = str(place)
    return ParseError(
        f"{where}: {message}" if where else message,
        path=place.path,
        record_index=place.record,
        feature=feature,
        reason=misfit.reason,
        expected=misfit.expected,
        found=misfit.found,
    )


def show_keys(keys: list[Any]) -> str:
    if not keys:
        return "no features"
    more = f" and {len(keys) - _MAX_KEYS} more" if len(keys) > _MAX_KEYS else ""
    return ", ".join(show_key(key) for key in keys[:_MAX_KEYS]) + more


def keys_of(message: Any, sequence: bool, lists: bool) -> list[Any] | None:
    """The keys of a message that lacks one; read only now, since it costs a complete decode."""
    from tfwire.example import decode_example, decode_sequence_example

    try:
        if sequence:
            return list(decode_sequence_example(message)[lists])
        return list(decode_example(message))
    except ValueError:  # damage in a feature that was not asked for
        return None


# ---- What C reports ----------------------------------------------------------------------------


def raise_misfit(status: int, error: Any, requests: Sequence[Any]) -> None:
    """Raises what a parse function of C reported; nothing when it is no matter of a record.

    Args:
        status: What the function returned.
        error: Its tfw_error.
        requests: The columns asked for, of the part that the error is about.
    """
    # No variable holds the error: with its traceback it would keep the batch until the next
    # collection of garbage.
    if status == lib.TFW_E_WIRE:
        raise _malformed(error, requests)
    describe = {
        lib.TFW_E_MISSING: _missing,
        lib.TFW_E_KIND: _kind,
        lib.TFW_E_COUNT: _count,
    }.get(status)
    if describe is not None:
        raise describe(error, requests[error.feature])


def _malformed(error: Any, requests: Sequence[Any]) -> Misfit:
    name = requests[error.feature].name if error.feature >= 0 else None
    inside = "" if name is None else f" in feature {show_key(name)}"
    message = f"Could not parse example input: {text(error.text)}{inside} at byte {error.offset}"
    return Misfit("malformed", name, error.record, message, list=error.list == 1)


def _missing(error: Any, request: Any) -> Misfit:
    key = show_key(request.name)
    if error.list == 1:
        message = f"Feature list '{key}' is required but could not be found."
    else:
        dtype = request.dtype.name
        message = f"Feature: {key} (data type: {dtype}) is required but could not be found."
    expected = request.dtype.name
    return Misfit("missing", request.name, error.record, message, expected, list=error.list == 1)


def _kind(error: Any, request: Any) -> Misfit:
    expected, found = _KIND_NAMES[error.expected], _KIND_NAMES[error.found]
    if request.layout == lib.TFW_VARIABLE or error.list == 1:
        types = f"Expected type: {expected}, Actual type: {found}"
    else:
        types = f"Data type: {found} but expected type: {expected}"
    message = f"{_subject(error, request)}.  Data types don't match. {types}"
    return Misfit("kind", request.name, error.record, message, expected, found)


def _count(error: Any, request: Any) -> Misfit:
    if request.layout == lib.TFW_REPEATED:
        shape = ",".join(["?", *map(str, request.shape)])
        counts = (
            f"Number of {request.dtype.name} values is not a multiple of stride length. "
            f"Saw {error.found} values but output shape is: [{shape}]"
        )
    else:
        counts = (
            f"Number of {request.dtype.name} values != expected.  "
            f"Values size: {error.found} but output shape: {list(request.shape)}"
        )
    message = f"{_subject(error, request)}.  {counts}"
    return Misfit("count", request.name, error.record, message, error.expected, error.found)


def _subject(error: Any, request: Any) -> str:
    """The feature that a message is about, of feature lists also the step."""
    key = show_key(request.name)
    return f"Feature list: {key}, step {error.row}" if error.list == 1 else f"Key: {key}"
