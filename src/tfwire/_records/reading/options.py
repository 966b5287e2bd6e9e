"""The arguments of readers, checked: inputs and opening them; how to read them; positions."""

from __future__ import annotations

import enum
from typing import Any, Literal, NamedTuple

from tfwire._base.aliases import Compression
from tfwire._base.arguments import boolean, choice, integer
from tfwire._base.native import lib
from tfwire._records.files.byte_sources import FileSource, ObjectSource, Source
from tfwire._records.files.compression import compression_name
from tfwire._records.files.paths import check_input, is_file_object
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.reading.damage import RecordPosition


class _Policy(enum.Enum):
    AS_TENSORFLOW = enum.auto()


# As "raise", but a truncated compressed stream counts as ended: a clean end between records, damage
# inside a record. For tfwire.compat; not a word, so that users cannot pass it.
AS_TENSORFLOW: Any = _Policy.AS_TENSORFLOW

POLICIES: dict[str | _Policy, int] = {
    "raise": lib.TFW_CORRUPT_RAISE,
    "skip": lib.TFW_CORRUPT_SKIP,
    "tail": lib.TFW_CORRUPT_TAIL,
    "stop": lib.TFW_CORRUPT_STOP,
    AS_TENSORFLOW: lib.TFW_CORRUPT_RAISE,
}
_POLICY_NAMES = [policy for policy in POLICIES if isinstance(policy, str)]


class ReadOptions(NamedTuple):
    """How to read a file, checked."""

    compression: Compression | Literal["auto"]
    flags: int
    on_corrupt: str | _Policy
    max_record_size: int
    buffer_size: int
    receipt: bool


def make_options(
    compression_type: Any = "auto",
    verify: bool = True,
    on_corrupt: str | _Policy = "raise",
    max_record_size: int | None = 2**30,
    buffer_size: int | None = None,
    correct: bool = False,
    accept_ambiguous: bool = False,
    receipt: bool = False,
) -> ReadOptions:
    """Checks the arguments of a reader.

    Raises:
        TypeError, ValueError: An argument that is not valid.
    """
    if not isinstance(on_corrupt, _Policy):
        on_corrupt = choice("on_corrupt", on_corrupt, _POLICY_NAMES)
    if max_record_size is not None:
        max_record_size = integer("max_record_size", max_record_size, 1)
    if buffer_size is not None:
        buffer_size = integer("buffer_size", buffer_size, 0)
    receipt = boolean("receipt", receipt)
    if boolean("accept_ambiguous", accept_ambiguous) and not boolean("correct", correct):
        raise ValueError("accept_ambiguous is for correct=True")
    flags = (
        (0 if boolean("verify", verify) else lib.TFW_NO_DATA_CRC)
        | (lib.TFW_CORRECT if boolean("correct", correct) else 0)
        | (lib.TFW_CORRECT_AMBIGUOUS if accept_ambiguous else 0)
    )
    return ReadOptions(
        compression_name(compression_type, auto=True),
        flags,
        on_corrupt,
        max_record_size or 0,
        buffer_size or 0,
        receipt,
    )


def as_position(name: str, value: Any) -> RecordPosition:
    """Checks a position: a RecordPosition, a pair of integers, or None for the beginning.

    Raises:
        TypeError, ValueError: None of these.
    """
    if value is None:
        return RecordPosition()
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name} must be a RecordPosition, found {type(value).__name__}")
    return RecordPosition(
        integer(f"{name}.record_index", value[0], 0), integer(f"{name}.offset", value[1], 0)
    )


# ---- Inputs ------------------------------------------------------------------------------------


def open_source(path: Any) -> Source:
    """Opens a path, a URL or a file object; a source is returned as it is.

    Raises:
        OSError: The file is missing, a directory, or not readable; with its name.
        ImportError: A URL, and fsspec or the library of its protocol is not installed.
        TypeError: None of these.
    """
    if isinstance(path, Source):
        return path
    if is_file_object(path):
        return ObjectSource(path)
    path = with_storage_options(path)
    if isinstance(path, ObjectPath):
        # not imported above: reading local files starts without it
        from tfwire._records.remote.read_ahead import RemoteSource

        prepared, path.prepared = path.prepared, None
        return RemoteSource(path) if prepared is None else prepared
    check_input("path", path)
    return FileSource(path)
