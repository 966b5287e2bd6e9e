"""ParseErrors and their messages, from what C and the fields report.

Messages use TensorFlow's words, and add file, record, counts and keys. They never hold payload.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from tfwire._base.errors import ParseError, warn
from tfwire._base.native import lib, text
from tfwire._base.text import first_few, quoted, show_key, show_path
from tfwire._examples.kinds import KIND_NAMES
from tfwire._records.reading.damage import display_name

_MAX_KEYS = 20
# What can be done about records that are not as those of a sample. C says it, too (arrow/stream.h).
ADVICE = (
    ". The columns were inferred from some of the records; features=infer_schema(paths, "
    "num_records=None) is what fits all"
)


class ParseFailure(Exception):
    """A record does not fit the specification; raised where its file and number are not known.

    Attributes:
        reason, feature, expected, found: As in ParseError.
        record: Index in the batch; None if the batch as a whole is at fault.
        text: The message.
        list: True for a feature of a SequenceExample's feature lists.
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


def parse_error(
    failure: ParseFailure, place: Place, keys: list[Any] | None = None, advice: str = ""
) -> ParseError:
    """The ParseError of a failure.

    Args:
        failure: What is wrong.
        place: Where the record came from.
        keys: For a missing feature, the keys that the record has; None if not known.
        advice: Ends the message of a record that another specification would fit.
    """
    message = failure.text
    if failure.reason in ("missing", "kind", "count", "shape", "partition"):
        message += advice
    if keys is not None:
        message += f" The record has {show_keys(keys)}."
    feature = failure.feature
    if isinstance(feature, bytes):
        feature = feature.decode("utf-8", "surrogateescape")
    where = str(place)
    return ParseError(
        f"{where}: {message}" if where else message,
        path=place.path,
        record_index=place.record,
        feature=feature,
        reason=failure.reason,
        expected=failure.expected,
        found=failure.found,
    )


def show_keys(keys: list[Any]) -> str:
    if not keys:
        return "no features"
    more = f" and {len(keys) - _MAX_KEYS} more" if len(keys) > _MAX_KEYS else ""
    return ", ".join(show_key(key) for key in keys[:_MAX_KEYS]) + more


def message_keys(message: Any, sequence: bool, lists: bool) -> list[Any] | None:
    """The keys of a message, which is decoded whole for them; None if it is damaged."""
    from tfwire._examples.decode import decode_example, decode_sequence_example

    try:
        if sequence:
            return list(decode_sequence_example(message)[lists])
        return list(decode_example(message))
    except ValueError:  # damage in a feature outside of the specification
        return None


# ---- What C reports ----------------------------------------------------------------------------


def raise_failure(status: int, error: Any, requests: Sequence[Any]) -> None:
    """Raises the ParseFailure that a parse function of C reported, if it is about a record.

    Args:
        status: What the function returned.
        error: Its tfw_error.
        requests: The requested columns of the part that the error is about.
    """
    # No variable holds the error: its traceback would keep the batch alive until the next garbage
    # collection.
    if status == lib.TFW_E_WIRE:
        raise _malformed(error, requests)
    failures = {lib.TFW_E_MISSING: _missing, lib.TFW_E_KIND: _kind, lib.TFW_E_COUNT: _count}
    if status in failures:
        raise failures[status](error, requests[error.feature])


def _malformed(error: Any, requests: Sequence[Any]) -> ParseFailure:
    name = requests[error.feature].name if error.feature >= 0 else None
    inside = "" if name is None else f" in feature {show_key(name)}"
    message = f"Could not parse example input: {text(error.text)}{inside} at byte {error.offset}"
    return ParseFailure("malformed", name, error.record, message, list=error.list == 1)


def _missing(error: Any, request: Any) -> ParseFailure:
    key = show_key(request.name)
    if error.list == 1:
        message = f"Feature list '{key}' is required but could not be found."
    else:
        dtype = request.dtype.name
        message = f"Feature: {key} (data type: {dtype}) is required but could not be found."
    expected = request.dtype.name
    return ParseFailure(
        "missing", request.name, error.record, message, expected, list=error.list == 1
    )


def _kind(error: Any, request: Any) -> ParseFailure:
    expected, found = KIND_NAMES[error.expected], KIND_NAMES[error.found]
    if request.layout == lib.TFW_VARIABLE or error.list == 1:
        types = f"Expected type: {expected}, Actual type: {found}"
    else:
        types = f"Data type: {found} but expected type: {expected}"
    message = f"{_subject(error, request)}.  Data types don't match. {types}"
    return ParseFailure("kind", request.name, error.record, message, expected, found)


def _count(error: Any, request: Any) -> ParseFailure:
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
    return ParseFailure("count", request.name, error.record, message, error.expected, error.found)


def _subject(error: Any, request: Any) -> str:
    """The feature that a message is about, and in feature lists the step."""
    key = show_key(request.name)
    return f"Feature list: {key}, step {error.row}" if error.list == 1 else f"Key: {key}"


# ---- Features that a sample has not --------------------------------------------------------------


def warn_of(path: Any, record: int, is_list: bool, keys: list[bytes], has_more: bool) -> None:
    """Warns that there is no column of some features.

    Args:
        path: The file of the first one; bytes: its name, from C.
        record: The first record that has it.
        is_list: It is a feature list.
        keys: Of all of them; of long ones the beginning.
        has_more: There are others, of which nothing is known.
    """
    first, *others = [key.decode("utf-8", "surrogateescape") for key in keys]
    what = "feature list" if is_list else "feature"
    where = show_path(os.fsdecode(path)) if isinstance(path, bytes) else display_name(path)
    more = f", nor for others after it: {first_few(others)}" if others else ""
    more += " and more" if has_more else ""
    warn(
        f"{where}: record {record} is the first with the {what} {quoted(first)}; there is no "
        f"column for it{more}{ADVICE}"
    )
