"""``tf.strings``: functions of byte strings, whose results keep zero bytes at their ends.

Regular expressions are those of RE2, TensorFlow's engine, run by Python's ``re`` over text. Strings
are decoded as UTF-8. A byte that is not UTF-8 becomes a surrogate, which only a pattern's own
literals could match: ``.`` and negated sets leave it alone, as RE2 does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits, punctuation
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire import float32
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import (
    STRING,
    Array,
    as_dtype,
    numpy_dtype,
    scalar_string,
    string_array,
    to_array,
)
from tfwire.compat._decoding import RaggedTensor
from tfwire.compat._errors import Namespace, OutOfRangeError, refusing_arguments
from tfwire.compat._ops import normalized_axes
from tfwire.compat._tensor import Tensor

# ---- Regular expressions of RE2 -----------------------------------------------------------------
_NO_TEXT = "\udc80-\udcff"
_BEYOND_ASCII = "\x80-\ud7ff\ue000-\U0010ffff"
_ASCII = frozenset(map(chr, range(128)))
_LETTERS = frozenset(ascii_letters)
_DIGITS = frozenset(digits)
_SETS = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": _DIGITS,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(punctuation),
    "space": frozenset("\t\n\v\f\r "),
    "upper": frozenset(ascii_uppercase),
    "word": _LETTERS | _DIGITS | {"_"},
    "xdigit": frozenset(hexdigits),
}
_ESCAPED = {"d": _SETS["digit"], "w": _SETS["word"], "s": frozenset("\t\n\f\r ")}

_ESCAPES = r"\\x\{(?P<code>[0-9a-fA-F]+)\}|\\(?P<escape>.)"
_ITEM = re.compile(rf"\[:(?P<not>\^?)(?P<name>\w+):\]|{_ESCAPES}|(?P<other>.)", re.DOTALL)
_TOKEN = re.compile(
    rf"\\Q(?P<quoted>.*?)(?:\\E|\Z)|{_ESCAPES}"
    r"|\[(?P<not>\^?)(?P<set>\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*)\]"
    r"|(?P<other>.)",
    re.DOTALL,
)


def decoded(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


def encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


@lru_cache
def compile_pattern(pattern: bytes) -> re.Pattern[str]:
    """The pattern for Python's ``re``, over text that was decoded by :func:`decoded`.

    Raises:
        InvalidArgumentError: Not a regular expression, or not UTF-8.
    """
    try:
        text = pattern.decode()
        flags = re.match(r"\(\?([a-zA-Z]*)\)", text)
        names = flags[1] if flags else ""
        special = {
            ".": f"[^{_NO_TEXT}]" if "s" in names else f"[^\n{_NO_TEXT}]",
            "^": "(?:^)",  # RE2 repeats anchors too
            "$": "(?:$)"
            if "m" in names
            else r"(?:\Z)",  # Python's $ also matches before a last newline
        }
        translated = _TOKEN.sub(lambda token: _translated(token, special), text)
        return re.compile(translated.replace("{,", r"\{,"))  # no repetition in RE2
    except (re.error, UnicodeDecodeError, OverflowError) as error:
        raise InvalidArgumentError(f"not a regular expression: {error}") from None


def _translated(token: re.Match[str], special: dict[str, str]) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["set"] is not None:
        negated, items = token["not"], _ITEM.sub(_item, token["set"])
        return f"[^{items}{_NO_TEXT}]" if negated else f"[{items}]"
    if token["code"]:
        return re.escape(chr(int(token["code"], 16)))
    escape = token["escape"]
    if escape is None:
        return special.get(token["other"], token["other"])
    if escape in "bB":
        return rf"(?a:\{escape})"
    if escape in "Az":
        return rf"(?:\{escape.upper()})"
    return f"[{_listed(escape)}]" if escape.lower() in _ESCAPED else token[0]


def _item(item: re.Match[str]) -> str:
    """An item of a set, as it stands in a set of Python's ``re``."""
    if item["name"]:
        if item["name"] not in _SETS:
            raise re.error(f"invalid character class {item[0]}")
        return _in_a_set(_SETS[item["name"]], bool(item["not"]))
    if item["code"]:
        return re.escape(chr(int(item["code"], 16)))
    if item["escape"]:
        return _listed(item["escape"]) if item["escape"].lower() in _ESCAPED else item[0]
    return rf"\{item['other']}" if item["other"] in "[&~|" else item["other"]


def _listed(escape: str) -> str:
    return _in_a_set(_ESCAPED[escape.lower()], escape.isupper())


def _in_a_set(characters: frozenset[str], negated: bool) -> str:
    listed = "".join(map(re.escape, sorted(_ASCII - characters if negated else characters)))
    return listed + _BEYOND_ASCII if negated else listed


class Rewriter:
    r"""Replaces matches; ``\1`` in the rewrite is the first group, ``\0`` the match.

    Args:
        expression: The compiled pattern.
        rewrite: What matches are replaced with.

    Raises:
        InvalidArgumentError: The rewrite names a group that does not exist, or a backslash is
            followed by neither a digit nor a backslash.
    """

    def __init__(self, expression: re.Pattern[str], rewrite: bytes) -> None:
        self._expression = expression
        self._parts = re.split(r"\\(\d|\\)", decoded(rewrite))
        if any("\\" in part for part in self._parts[::2]):
            raise InvalidArgumentError("in the rewrite, a digit or \\ must follow a \\")
        groups = [int(part) for part in self._parts[1::2] if part != "\\"]
        if max(groups, default=0) > expression.groups:
            raise InvalidArgumentError(
                f"the rewrite names group {max(groups)}, which does not exist"
            )

    def replace(self, string: bytes, once: bool) -> bytes:
        """The string with all matches replaced, or only the first."""
        text = decoded(string)
        parts, place, last = [], 0, -1
        while place <= len(text) and (match := self._expression.search(text, place)):
            parts.append(text[place : match.start()])
            place = match.end()
            if match.start() == match.end() == last:  # nothing empty right after a match
                parts.append(text[place : place + 1])
                place += 1
                continue
            parts.append(self._expand(match))
            last = place
            if once:
                break
        return encoded("".join([*parts, text[place:]]))

    def _expand(self, match: re.Match[str]) -> str:
        return "".join(
            part if i % 2 == 0 or part == "\\" else match[int(part)] or ""
            for i, part in enumerate(self._parts)
        )


_FILLS = ("", " ", "-", "+", "0", "#")
_SPACES = b" \t\n\v\f\r"
_RUN_OF_SPACES = re.compile(rb"[ \t\n\v\f\r]+")
_FLOAT = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\Z", re.IGNORECASE)
_HEX = re.compile(rb"[+-]?0x[0-9a-f]+\Z", re.IGNORECASE)
_INTEGER_TEXT = re.compile(rb"[+-]?\d+\Z")


def _each(function: Callable[[bytes], Any], input: Any, dtype: Any = STRING) -> Tensor:
    """A function of every string."""
    array = to_array(input, STRING)
    found = np.empty(array.shape, dtype)
    flat = found.reshape(-1)
    for i, string in enumerate(array.flat):
        flat[i] = function(string)
    return Tensor._of(found)


# ---- Joining and cutting ------------------------------------------------------------------------


def join(inputs: Any, separator: Any = "", name: str | None = None) -> Tensor:
    """The strings of tensors joined element by element; scalars fit any shape.

    Raises:
        InvalidArgumentError: Shapes differ.
    """
    if isinstance(inputs, (str, bytes)):
        raise TypeError("join takes a list of tensors, found a string")
    arrays = [to_array(value, STRING) for value in inputs]
    between = scalar_string(separator, "separator")
    shapes = {array.shape for array in arrays if array.ndim}
    if len(shapes) > 1:
        raise InvalidArgumentError(f"join of tensors of shapes {sorted(shapes)}")
    shape = shapes.pop() if shapes else ()
    rows = zip(*(np.broadcast_to(array, shape).flat for array in arrays), strict=True)
    joined = [between.join(row) for row in rows] if arrays else [b""]
    return Tensor._of(string_array(joined, shape))


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keepdims: bool = False,
    separator: Any = "",
    name: str | None = None,
) -> Tensor:
    """The strings along some axes, or all of them, joined into one; the first axis first."""
    array, between = to_array(inputs, STRING), scalar_string(separator, "separator")
    try:
        axes = normalized_axes(range(array.ndim)[::-1] if axis is None else axis, array.ndim)
    except InvalidArgumentError as error:
        raise OutOfRangeError(str(error)) from None
    others = [i for i in range(array.ndim) if i not in axes]
    rows = array.transpose(*others, *axes[::-1]).reshape(*(array.shape[i] for i in others), -1)
    joined = np.empty(rows.shape[:-1], object)
    for place in np.ndindex(joined.shape):
        joined[place] = between.join(rows[place])
    if keepdims:
        joined = joined.reshape([1 if i in axes else n for i, n in enumerate(array.shape)])
    return Tensor._of(joined)


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts between separators, or between runs of whitespace.

    Returns:
        For a scalar a vector; for a tensor of a higher rank a RaggedTensor with one more axis.
    """
    is_empty = isinstance(input, (list, tuple)) and not input
    array = to_array(np.empty(0, object) if is_empty else input, STRING)
    separator = None if sep is None else scalar_string(sep, "sep") or None
    return _ragged([_cut(string, separator, maxsplit) for string in array.flat], array.shape)


def _ragged(parts: list[list[bytes]], shape: tuple[int, ...]) -> Any:
    """The parts of every string of a tensor: of a scalar a vector, else a RaggedTensor."""
    values = string_array([part for row in parts for part in row], (sum(map(len, parts)),))
    if not shape:
        return Tensor._of(values)
    ragged: Any = tfw.RaggedTensor(values, _splits([len(row) for row in parts]))
    for axis in range(len(shape) - 1, 0, -1):
        ragged = tfw.RaggedTensor(ragged, _splits([shape[axis]] * math.prod(shape[:axis])))
    return RaggedTensor(ragged)


def _cut(string: bytes, separator: bytes | None, maxsplit: int) -> list[bytes]:
    if maxsplit == 0:
        return [string]
    if separator is not None:
        return string.split(separator, maxsplit)
    # bytes.split takes two more bytes for whitespace.
    parts = _RUN_OF_SPACES.split(string.lstrip(_SPACES), max(0, maxsplit))
    if not parts[-1]:
        parts.pop()
    return [*parts, b""] if len(parts) == maxsplit else parts  # the rest, though it is empty


def _splits(lengths: list[int]) -> Array:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of every string, each as a string; see ``split`` for what is returned."""
    array = to_array(input, STRING)
    parts = [[string[i : i + 1] for i in range(len(string))] for string in array.flat]
    return _ragged(parts, array.shape)


def strip(input: Any, name: str | None = None) -> Tensor:
    """The strings without whitespace at both ends."""
    return _each(lambda string: string.strip(_SPACES), input)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """``len`` bytes or characters from ``pos`` on, which counts from the end if negative.

    Raises:
        InvalidArgumentError: ``pos`` is outside of a string.
    """
    _check_unit(unit)
    array = to_array(input, STRING)
    with refusing_arguments():
        rows = np.broadcast(array, to_array(pos), to_array(len))
    cut = [_substring(string, int(at), int(count), unit) for string, at, count in rows]
    return Tensor._of(string_array(cut, rows.shape))


def _substring(string: bytes, position: int, count: int, unit: str) -> bytes:
    units: Any = string if unit == "BYTE" else _characters(string)
    size = len(units)
    if not -size <= position <= size:
        raise InvalidArgumentError(f"pos {position} is outside of a string of length {size}")
    start = position + size if position < 0 else position
    if unit == "BYTE":
        return string[start:] if count < 0 else string[start : start + count]
    return b"".join(units[start : start + max(0, count)])  # no characters for -1


def _characters(string: bytes) -> list[bytes]:
    """The characters of UTF-8: a byte that does not continue one begins the next."""
    starts = [i for i, byte in enumerate(string) if i == 0 or not _continues(byte)]
    return [string[a:b] for a, b in pairwise([*starts, len(string)])]


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _check_unit(unit: str) -> None:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise InvalidArgumentError(f"unit must be BYTE or UTF8_CHAR, found {unit!r}")


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """The length of every string in bytes or characters, int32."""
    _check_unit(unit)
    count = len if unit == "BYTE" else lambda string: sum(not _continues(byte) for byte in string)
    return _each(count, input, np.int32)


# ---- Changing -----------------------------------------------------------------------------------


def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in lower case: ASCII only or, with ``encoding="utf-8"``, all characters."""
    return _each(_cased(bytes.lower, str.lower, encoding), input)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """The strings in upper case: ASCII only or, with ``encoding="utf-8"``, all characters."""
    return _each(_cased(bytes.upper, str.upper, encoding), input)


def _cased(of_bytes: Any, of_text: Any, encoding: str) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(f'encoding must be "" or "utf-8", found {encoding!r}')
    if not encoding:
        return lambda string: of_bytes(string)
    return lambda string: of_text(string.decode(errors="replace")).encode()


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Matches of a pattern replaced; ``\1`` in the replacement is the first group.

    Patterns are those of RE2, over UTF-8; docs/differences.md lists what differs.

    Raises:
        InvalidArgumentError: The pattern or the replacement is not valid.
    """
    rewriter = Rewriter(_compile(pattern), scalar_string(rewrite, "rewrite"))
    return _each(lambda string: rewriter.replace(string, not replace_global), input)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """True where the whole string matches a pattern, as of :func:`regex_replace`."""
    expression = _compile(pattern)
    return _each(lambda string: bool(expression.fullmatch(decoded(string))), input, bool)


def _compile(pattern: Any) -> re.Pattern[str]:
    return compile_pattern(scalar_string(pattern, "pattern"))


# ---- Numbers ------------------------------------------------------------------------------------


def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> Tensor:
    """Numbers as int32, int64, float32 or float64; whitespace around them is ignored.

    Raises:
        InvalidArgumentError: A string is not a number, or out of range; or another type.
    """
    dtype = numpy_dtype(as_dtype(out_type))
    if dtype.name not in ("int32", "int64", "float32", "float64"):
        raise InvalidArgumentError(f"out_type must not be {as_dtype(out_type)!r}")
    convert = _float if dtype.kind == "f" else _integer
    with np.errstate(over="ignore"):
        return _each(lambda string: convert(string.strip(_SPACES), dtype), input, dtype)


def _float(text: bytes, dtype: np.dtype[Any]) -> Any:
    if _HEX.match(text):
        return dtype.type(int(text, 16))
    if not _FLOAT.match(text):
        raise InvalidArgumentError(f"a string of {len(text)} bytes is not a number")
    return dtype.type(text)


def _integer(text: bytes, dtype: np.dtype[Any]) -> int:
    limits = np.iinfo(dtype)
    if _INTEGER_TEXT.match(text) and limits.min <= (number := int(text)) <= limits.max:
        return number
    raise InvalidArgumentError(f"a string of {len(text)} bytes is not a number of {dtype.name}")


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers and bools as text.

    Args:
        input: The numbers; strings are only filled.
        precision: Digits after the point; -1 is 6.
        scientific: With an exponent.
        shortest: In the shorter form, with or without an exponent.
        width: The least number of characters.
        fill: What fills up to ``width``, on the left: "" and " " are spaces, "0" zeros; "-": spaces
            on the right; "+": a sign before every number.

    Raises:
        InvalidArgumentError: Another ``fill``, or notations that exclude each other.
    """
    array = to_array(input)
    if fill not in _FILLS:
        raise InvalidArgumentError(f"`fill` must be one of {_FILLS}, found {fill!r}")
    if scientific and shortest:
        raise InvalidArgumentError("scientific and shortest exclude each other")
    if array.dtype == object:
        return _each(lambda string: _aligned(string, width, fill), array)
    if array.dtype.kind in "biu" and (precision >= 0 or scientific or shortest):
        raise InvalidArgumentError("precision, scientific and shortest are for floats")
    digits = f".{precision}" if precision >= 0 else ""
    letter = "e" if scientific else "g" if shortest else "f"
    size = "" if width < 0 else str(width)
    pattern = f"%{fill}{size}" + ("d" if array.dtype.kind in "iu" else f"{digits}{letter}")
    texts = [_text(value, pattern) for value in array.ravel().tolist()]
    return Tensor._of(string_array(texts, array.shape))


def _aligned(string: bytes, width: int, fill: str) -> bytes:
    return string.ljust(max(0, width)) if fill == "-" else string.rjust(max(0, width))


def _text(value: Any, pattern: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"({_text(value.real, pattern)},{_text(value.imag, pattern)})"
    if isinstance(value, float) and not math.isfinite(value):
        pattern = pattern.replace("%0", "%")  # no zeros before inf and nan
    text: str = pattern % value
    return text


strings: Namespace = Namespace(
    "strings",
    *(as_string, bytes_split, join, length, lower, reduce_join, regex_full_match, regex_replace),
    *(split, strip, substr, to_number, upper),
)
