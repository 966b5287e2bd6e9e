"""Checks of arguments."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tfwire._base.text import quoted, shorten


def wrong_type(name: str, value: Any, expected: str) -> TypeError:
    """The error for an argument of another type than expected."""
    return TypeError(f"{name} must be {expected}, found {type(value).__name__}")


def check_type(name: str, value: Any, types: Any, expected: str) -> None:
    """Checks that an argument is an instance of a type, or of one of some.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, types):
        raise wrong_type(name, value, expected)


def boolean(name: str, value: Any) -> bool:
    """Checks an argument that is a bool, also numpy's.

    Raises:
        TypeError: Not a bool. Numbers and strings are refused too: "no" would count as true.
    """
    numpy = sys.modules.get("numpy")  # not imported here: `tfwire --help` starts without it
    if not (isinstance(value, bool) or (numpy and isinstance(value, numpy.bool_))):
        raise TypeError(f"{name} must be a bool, found {type(value).__name__}")
    return bool(value)


def as_index(value: Any) -> int:
    """``operator.index``, which takes numpy's bool for 0 or 1, with a warning, until numpy 2.

    Raises:
        TypeError: Not an integer. numpy's bool is refused with any numpy.
    """
    if type(value) is int:  # usual, and the rest takes three times as long
        return value
    _refuse_numpy_bool(value)
    return operator.index(value)


def slice_indices(bounds: slice, count: int) -> tuple[int, int, int]:
    """``bounds.indices(count)``; numpy's bools are refused as by ``as_index``.

    Raises:
        TypeError: A bound or the step is not an integer.
        ValueError: The step is 0.
    """
    for bound in (bounds.start, bounds.stop, bounds.step):
        _refuse_numpy_bool(bound)
    return bounds.indices(count)


def _refuse_numpy_bool(value: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.bool_):
        raise TypeError("numpy's bool is not an integer")


def integer(name: str, value: Any, least: int | None = None) -> int:
    """Checks an argument that is an integer, also numpy's, within 64 bits.

    Raises:
        TypeError: Not an integer. bool is refused too.
        ValueError: It is below ``least``, or too large.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = as_index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, found {type(value).__name__}") from None
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least}, found {number}")
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{name} must fit into 64 bits, found {number}")
    return number


def check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise wrong_type(name, value, "callable")


def seconds(name: str, value: Any) -> float:
    """Checks an argument that is a time in seconds.

    Raises:
        TypeError: Not a number.
        ValueError: It is negative or NaN.
    """
    # numpy warns of complex numbers and of arrays that it makes floats of.
    is_real = getattr(getattr(value, "dtype", None), "kind", "f") != "c"
    is_scalar = not getattr(value, "ndim", 0) and not isinstance(value, (str, bytes, bool))
    if not (is_real and is_scalar and hasattr(value, "__float__")):
        raise TypeError(f"{name} must be a number, found {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be within the range of floats") from None
    if not number >= 0:
        raise ValueError(f"{name} must be a number of seconds, 0 or more, found {value!r}")
    return number


def choice(name: str, value: Any, words: Iterable[str]) -> str:
    """Checks an argument that is one of some words.

    Raises:
        ValueError: It is another value.
    """
    known = list(words)
    if not isinstance(value, str) or value not in known:
        shown = repr(value) if isinstance(value, (str, bytes)) else type(value).__name__
        expected = " or ".join(map(repr, known)) if len(known) == 2 else f"one of {known}"
        raise ValueError(f"{name} must be {expected}, found {shown}")
    return known[known.index(value)]


def file_path(name: str, value: Any) -> str:
    """Checks an argument that is the path of a local file.

    Raises:
        TypeError: Not a path.
        ValueError: It is empty, or holds a null character.
    """
    check_type(name, value, (str, bytes, os.PathLike), "a str or os.PathLike")
    path = os.fsdecode(value)
    if not path:
        raise ValueError(f"{name} must not be empty")
    refuse_null(name, path)
    return path


def refuse_null(name: str, path: str | bytes | os.PathLike[Any]) -> None:
    """Raises ValueError if a path or URL holds a null character, which no file's name does."""
    if "\0" in os.fsdecode(path):
        raise ValueError(
            f"{name} must not hold a null character, found {quoted(os.fsdecode(path))}"
        )


def is_indexable(values: Any) -> bool:
    """False for what is no sequence, though numpy takes it for one or for its items: a set, which
    has no order, a mapping and an iterator."""
    return hasattr(values, "__getitem__") and not isinstance(values, Mapping)


def refuse_unordered(name: str, values: Any) -> None:
    """Checks an argument whose order decides the result. Views of a dict, as ``d.keys()``, have its
    order.

    Raises:
        TypeError: A set, which has none, or a mapping, of which only the keys would count.
    """
    if isinstance(values, (set, frozenset, Mapping)):
        raise TypeError(f"{name} must be in an order, as in a list; found {type(values).__name__}")


def column_names(columns: Iterable[str] | None) -> list[str] | None:
    """The argument ``columns`` as a list; None: all."""
    if columns is None:
        return None
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a list of names, found {type(columns).__name__}")
    refuse_unordered("columns", columns)
    names = list(columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"columns must be a list of names, found a {type(name).__name__} in it")
    return names


_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000 ** (i + 1) for i, letter in enumerate("KMGT")},
    **{f"{letter}IB": 1024 ** (i + 1) for i, letter in enumerate("KMGT")},
}


def size_in_bytes(name: str, value: int | str) -> int:
    """Checks an argument that is a size in bytes: a number, or a string with a unit.

    Raises:
        TypeError: Neither of them.
        ValueError: No such size, or it is not positive, or too large.
    """
    # not imported above: `tfwire --help` starts without them
    import re
    from fractions import Fraction

    if not isinstance(value, str):
        count = integer(name, value)
    else:
        # No more digits than Python makes an integer of (640 at its lowest limit).
        found = re.fullmatch(r"\s*(\d{1,500}(?:\.\d{1,500})?)\s*([a-zA-Z]*)\s*", value, re.ASCII)
        if found is None or found[2].upper() not in _UNITS:
            raise ValueError(
                f"{name} must be a size like '150MB' or '128MiB', found {shorten(repr(value))}"
            )
        count = int(Fraction(found[1]) * _UNITS[found[2].upper()])
    if not 1 <= count < 1 << 63:
        raise ValueError(
            f"{name} must be positive and fit into 64 bits, found {shorten(repr(value))}"
        )
    return count


def as_device(device: Any) -> Any:
    """The torch.device of an argument, with a number only if that has one.

    Raises:
        TypeError: It is no device.
        ValueError: There is no such device, or it is neither the CPU nor of CUDA.
    """
    if device is None:
        return None
    import torch

    if isinstance(device, bool) or not isinstance(device, (str, int, torch.device)):
        raise TypeError(f"device must be a torch.device, str or int, got {type(device).__name__}")
    try:
        found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is no device: {error}") from None
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be of type 'cpu' or 'cuda', got {device!r}")
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise ValueError(f"device={device!r}: torch finds no device of CUDA")
        if found.index is not None and not 0 <= found.index < count:
            raise ValueError(f"device={device!r}: torch finds {count} device(s) of CUDA")
    return found


def numbered_device(device: Any) -> Any:
    """As ``as_device``, but "cuda" is the current device of this thread, with its number."""
    import torch

    found = as_device(device)
    if found is not None and found.type == "cuda" and found.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return found
