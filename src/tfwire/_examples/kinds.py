"""The kinds of features, which records that are written together agree in.

TensorFlow's parsers, and ours, read a feature as one kind: no specification reads a file in which
it is sometimes an int and sometimes a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from tfwire._base.aliases import FeatureKinds
from tfwire._base.native import SEED, ffi, lib, objects
from tfwire._base.text import quoted
from tfwire._examples.dtypes import STRING, to_numpy_dtype
from tfwire._examples.values import BYTES, FLOAT, INT64, NONE, Array, Flat, Name, key_bytes, show

if TYPE_CHECKING:
    from tfwire._examples.native_encoder import NativeInputs

Agree = Callable[["NativeInputs", int], "NativeInputs"]
"""Gives columns of so many records the kinds of what was written before."""

ANY_KIND = 0xFF  # as csrc/python/rows.h has it
KIND_NAMES = {BYTES: "string", FLOAT: "float32", INT64: "int64", NONE: "none"}
_MOST_IDLE_ENCODERS = 16  # an encoder has memory for a message


class ArrayOfKind(tuple[int, bytes]):
    """A kind, and the bytes of an array of it (of strings: of an empty one). C knows this type."""

    __slots__ = ()


# Encoders in C, which remember keys, that no thread is using. A list's pop and append are atomic.
_idle: list[Any] = []
take_idle, give_idle = _idle.pop, _idle.append  # an IndexError: none


def take_encoder() -> Any:
    """An encoder of rows in C, for one thread at a time."""
    try:
        return take_idle()
    except IndexError:
        return objects.tfw_new_rows(SEED, ArrayOfKind)


def give_back(encoder: Any) -> None:
    if len(_idle) < _MOST_IDLE_ENCODERS:
        give_idle(encoder)


class KindMemory:
    """An encoder that remembers the kinds of features: for one call, or for a writer.

    Args:
        kinds: As for encode_examples.
        output: The name of the file that they are written to, if there is one.

    Attributes:
        encoder: That of C. None: it was given back.
        lock: Held by the thread that uses the encoder.

    Raises:
        TypeError, ValueError: As encode_examples.
    """

    def __init__(self, kinds: FeatureKinds | None = None, output: str = "") -> None:
        self._declared = _declared(kinds)
        self._of_output = f" of {output}" if output else ""
        self.lock = RLock()  # a signal handler, or a method of a value, may encode meanwhile
        self.encoder: Any = None
        self.taken()

    def taken(self) -> Any:
        """The encoder; a new one, if this was closed."""
        if self.encoder is None:
            self.encoder = take_encoder()
            if self._declared is not None:
                objects.tfw_set_kinds(self.encoder, self._declared)
        return self.encoder

    def settle(self, key: bytes, name: Name, flat: Flat, number: int) -> Flat | None:
        """A value in the kind of its feature; None if it stands for a string that is missing.

        Args:
            key, name: The feature.
            flat: The value.
            number: That of its record.

        Raises:
            TypeError: It is of another kind than those before.
        """
        kind = flat.kind
        if self._declared is None or kind == NONE:
            return flat
        settled, first = self._settle(key, kind, number)
        if settled in (kind, ANY_KIND):
            return flat
        if self._widens(key, kind, settled):
            return flat._replace(kind=FLOAT)
        if settled == BYTES and kind == FLOAT and flat.shape == () and math.isnan(flat.values[0]):
            return None
        raise self._drift(key, name, (kind, number), (settled, first))

    def settle_columns(self, features: NativeInputs, num_records: int, number: int) -> NativeInputs:
        """Columns in the kinds of their features, as ``settle`` gives them to a value.

        Args:
            features: The columns, which are changed.
            num_records: How many records they have.
            number: That of the first.

        Raises:
            TypeError: As ``settle``.
        """
        kept = [features.keep]
        for key, column in zip(features.keys, features.native, strict=True):
            present = _first_present(column, num_records)
            if self._declared is None or present is None:
                continue
            kind = column.kind
            settled, first = self._settle(key, kind, number + present)
            if self._widens(key, kind, settled):
                kept.append(_widen(column))
            elif settled == BYTES and kind == FLOAT and _is_missing(column, num_records):
                kept.append(_remove(column, num_records))
            elif settled not in (kind, ANY_KIND):
                self.unsettle(number)  # nothing of these columns is written
                name = key.decode("utf-8", "surrogateescape")
                raise self._drift(key, name, (kind, number + present), (settled, first))
        return features._replace(keep=kept)

    def _settle(self, key: bytes, kind: int, number: int) -> tuple[int, int]:
        with self.lock:
            settled: tuple[int, int] = objects.tfw_settle_kind(self.taken(), key, kind, number)
        return settled

    def _widens(self, key: bytes, kind: int, settled: int) -> bool:
        return (
            settled == FLOAT
            and kind == INT64
            and self._declared is not None
            and self._declared.get(key) == FLOAT
        )

    def _drift(
        self, key: bytes, name: Name, found: tuple[int, int], before: tuple[int, int]
    ) -> TypeError:
        """The error for a value of another kind; kinds and numbers of records."""
        said = f"{show(name)}: record {found[1]}{self._of_output} holds {KIND_NAMES[found[0]]}"
        if self._declared and key in self._declared:
            return TypeError(f"{said}, kinds says {KIND_NAMES[before[0]]}")
        advice = f"to write several kinds all the same, give kinds={{{quoted(name)}: 'any'}}"
        if {found[0], before[0]} == {INT64, FLOAT}:
            advice = f"to write ints as floats, give kinds={{{quoted(name)}: 'float32'}}; {advice}"
        if (found[0], before[0]) == (BYTES, FLOAT):
            text = f"where NaN is a missing string, give kinds={{{quoted(name)}: 'string'}}"
            advice = f"{text}; {advice}"
        return TypeError(
            f"{said}, record {before[1]} {KIND_NAMES[before[0]]}, and readers take one kind of "
            f"a feature; {advice}"
        )

    def unsettle(self, number: int) -> None:
        """Forgets the kinds that came from records of this number or a higher one, which were not
        written."""
        if self._declared is not None:
            with self.lock:
                objects.tfw_unsettle_kinds(self.taken(), number)

    def close(self) -> None:
        """Forgets all kinds; another call or writer may use the encoder."""
        with self.lock:
            encoder, self.encoder = self.encoder, None
            if encoder is not None:
                objects.tfw_set_kinds(encoder, None)
                give_back(encoder)


def _first_present(column: Any, num_records: int) -> int | None:
    """The first record that has a value of the column's kind, perhaps an empty list; None: none."""
    if not num_records:
        return None
    if column.presence == ffi.NULL:
        return 0
    present = _present(column, num_records)
    first = int(present.argmax())
    return first if present[first] else None


def _present(column: Any, num_records: int) -> Array:
    """Which records have values of the column's kind."""
    if column.presence == ffi.NULL:
        return np.ones(num_records, np.bool_)
    presence = np.frombuffer(ffi.buffer(column.presence, num_records), np.uint8)
    present: Array = presence == lib.TFW_PRESENT
    return present


def _numbers(column: Any, dtype: Any) -> Array:
    size = column.byte_count
    return np.frombuffer(
        ffi.buffer(ffi.cast("char *", column.values), size) if size else b"", dtype
    )


def _is_missing(column: Any, num_records: int) -> bool:
    """Whether a column of floats has one NaN in every record that has the feature."""
    if column.splits != ffi.NULL or column.count != 1:
        return False  # a list
    numbers = _numbers(column, np.float32)
    return bool(np.isnan(numbers[_present(column, num_records)]).all())


def _widen(column: Any) -> Any:
    """Makes floats of a column's ints, as those of rows are; returns what must be kept."""
    floats = _numbers(column, np.int64).astype(np.float64).astype(np.float32)
    kept = ffi.from_buffer("uint8_t[]", floats)
    column.kind, column.values, column.byte_count = FLOAT, kept, len(kept)
    return kept


def _remove(column: Any, num_records: int) -> Any:
    """Makes a column absent from all its records; returns what must be kept."""
    kept = ffi.from_buffer("uint8_t[]", np.full(num_records, lib.TFW_ABSENT, np.uint8))
    column.presence = kept
    return kept


def _declared(kinds: Any) -> dict[bytes, int] | None:
    """Kinds by the bytes of their features' keys; None: any kind for every feature."""
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        if kinds != "any":
            raise ValueError(f"kinds must be 'any' or a dict, found {quoted(kinds)}")
        return None
    if not isinstance(kinds, Mapping):
        raise TypeError(
            f"kinds must be 'any' or a dict of kinds by feature, found {type(kinds).__name__}"
        )
    return {key_bytes(name): _kind(name, kind) for name, kind in kinds.items()}


_KINDS_BY_DTYPE = {np.dtype(np.int64): INT64, np.dtype(np.float32): FLOAT, STRING: BYTES}


def _kind(name: Any, kind: Any) -> int:
    if isinstance(kind, str) and kind == "any":
        return ANY_KIND
    try:
        return _KINDS_BY_DTYPE[to_numpy_dtype(kind)]
    except (TypeError, ImportError, KeyError):
        shown = quoted(kind) if isinstance(kind, str) else type(kind).__name__
        raise ValueError(
            f"kinds[{quoted(name)}] must be 'int64', 'float32', 'string' or 'any', found {shown}"
        ) from None
