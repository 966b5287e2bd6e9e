"""Examples to and from JSON, in protobuf's JSON form.

    {"features": {"feature": {"label": {"int64List": {"value": ["7"]}}}}}

Fields are in camelCase (snake_case is read too), int64 values are strings (numbers are read too),
bytes are base64, and "NaN", "Infinity" and "-Infinity" are the floats that JSON has no number for.
See https://protobuf.dev/programming-guides/json/.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from google.protobuf import json_format
from google.protobuf.message import Message

from tfwire import train
from tfwire._base.aliases import Array, BytesLike, Strings, SupportsNumpy, SupportsSerialize
from tfwire._base.arguments import integer
from tfwire._base.errors import ParseError, parser_said
from tfwire._base.text import quoted
from tfwire._examples.decode import decode_example
from tfwire._examples.protobuf import byte_string, byte_strings, parse_message

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")  # either alphabet
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NON_FINITE = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
_NON_FINITE |= {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}  # TensorFlow takes them too
_FLOAT32_OVERFLOW = (2 - 2**-24) * 2.0**127  # rounds to infinity


# A str is a sequence of str too: the first of the two that fit is meant.
@overload
def decode_json_example(  # type: ignore[overload-overlap]
    json_examples: str | bytes | bytearray | memoryview, name: str | None = None
) -> bytes: ...
@overload
def decode_json_example(json_examples: Strings, name: str | None = None) -> Array: ...
@overload
def decode_json_example(
    json_examples: Array | SupportsNumpy, name: str | None = None
) -> bytes | Array: ...
def decode_json_example(
    json_examples: str | bytes | bytearray | memoryview | Strings | Array | SupportsNumpy,
    name: str | None = None,
) -> bytes | Array:
    """Serializes Examples that are given as JSON, as tf.io.decode_json_example does.

    Args:
        json_examples: One Example as JSON (str, or UTF-8 bytes), or an array or nested lists of
            such texts.
        name: Ignored; TensorFlow has it.

    Returns:
        bytes, or an object array of bytes in the shape of the input; features sorted by key.

    Raises:
        ParseError: Text that is not JSON, an unknown field, or a value of another type.

    Example:
        >>> decode_json_example('{"features": {"feature": {"x": {"int64List": {"value": [7]}}}}}')
        b'\\n\\x0c\\n\\n\\n\\x01x\\x12\\x05\\x1a\\x03\\n\\x01\\x07'
    """
    given: Any = json_examples
    if hasattr(given, "numpy"):
        given = given.numpy()
    if isinstance(given, (str, bytes, bytearray, memoryview)):
        return _serialize(byte_string(given), "the JSON text")
    texts = np.array(given, object)
    serialized = np.empty(texts.size, object)
    for i, text in enumerate(byte_strings(texts.reshape(-1))):
        serialized[i] = _serialize(text, f"JSON text {i}", i)
    found: bytes | Array = serialized.reshape(texts.shape)[()]
    return found


def example_to_json(example: BytesLike | SupportsSerialize, *, indent: int | None = None) -> str:
    """An Example as JSON text.

    Args:
        example: A serialized Example, or an Example or SequenceExample message, ours or
            TensorFlow's.
        indent: Spaces per level; None writes one line, as in JSON Lines files.

    Returns:
        JSON with sorted keys. decode_json_example reads it back.

    Raises:
        ParseError: The bytes are not an Example, as decode_example sees it.

    Example:
        >>> example_to_json(b"\\n\\x0c\\n\\n\\n\\x01x\\x12\\x05\\x1a\\x03\\n\\x01\\x07")
        '{"features": {"feature": {"x": {"int64List": {"value": ["7"]}}}}}'
    """
    if indent is not None:
        indent = integer("indent", indent, 0)
    message: Any = example
    if not isinstance(example, Message):
        message = parse_message(train.Example, example)
        if not message.features.feature:
            decode_example(example)  # refuses another message
    return str(json_format.MessageToJson(message, indent=indent, sort_keys=True))


# ---- JSON to messages ---------------------------------------------------------------------------
# protobuf's own parser is not used: it drops characters that are not base64, refuses the largest
# float32, lets doubles overflow to infinity, and quotes the wrong value.


def _serialize(text: bytes, what: str, record_index: int | None = None) -> bytes:
    try:
        tree = json.loads(text.decode(), object_pairs_hook=_Object, parse_constant=_no_constant)
        example = _example_from_tree(tree)
    except (ValueError, RecursionError) as error:
        raise ParseError(
            f"{what} is no Example: {parser_said(error)}",
            record_index=record_index,
            reason="malformed",
        ) from None
    return bytes(example.SerializeToString(deterministic=True))


class _Object:
    """An object of JSON, which may repeat a key: lists of values are joined, the last feature
    counts."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _no_constant(name: str) -> None:
    raise ValueError(f'{name} is no JSON; "{name}" is read')


def _example_from_tree(tree: Any) -> Any:
    example = train.Example()
    for features in _fields(_object(tree, "an Example"), "features", "Example"):
        example.features.SetInParent()
        for entries in _fields(_object(features, "features"), "feature", "features"):
            pairs = _object(entries, "feature").pairs
            if len(dict(pairs)) < len(pairs):
                raise ValueError("a feature occurs twice in one object")
            for key, feature in pairs:
                message = example.features.feature[key]
                message.Clear()
                if feature is not None:
                    _set_feature(message, _object(feature, f"feature {quoted(key)}"), key)
    return example


def _set_feature(message: Any, feature: _Object, key: str) -> None:
    where = f"feature {quoted(key)}"
    lists = [(name, value) for name, value in feature.pairs if value is not None]
    if len(lists) > 1:
        names = ", ".join(quoted(name) for name, _ in lists[:5])
        raise ValueError(f"{where} has more than one kind: {names}")
    for name, value in lists:
        if name not in _LIST_FIELDS:
            raise ValueError(f"unknown field {quoted(name)} in {where}")
        field, convert = _LIST_FIELDS[name]
        stored = getattr(message, field)
        stored.SetInParent()
        for values in _fields(_object(value, where), "value", where):
            for i, item in enumerate(values if isinstance(values, list) else [values]):
                stored.value.append(_converted(convert, item, f"{where}, value {i}"))


def _object(value: Any, what: str) -> _Object:
    if not isinstance(value, _Object):
        raise ValueError(f"{what} must be an object, found {_json_type(value)}")
    return value


def _fields(members: _Object, known: str, where: str) -> list[Any]:
    """The values of an object's only field, without null: it means that the field is absent."""
    for name, _ in members.pairs:
        if name != known:
            raise ValueError(f"unknown field {quoted(name)} in {where}")
    return [value for _, value in members.pairs if value is not None]


def _converted(convert: Callable[[Any], Any], item: Any, where: str) -> Any:
    try:
        return convert(item)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{where}: {error}, found {_json_type(item)}") from None


def _int64(item: Any) -> int:
    number = _number(item)
    if number is None or number != number // 1:
        raise ValueError("expected an integer")
    if not -(2**63) <= number < 2**63:
        raise ValueError("expected an integer of 64 bits")
    return int(number)


def _float32(item: Any) -> float:
    if isinstance(item, str) and item in _NON_FINITE:
        return _NON_FINITE[item]
    number = _number(item)
    if number is None or abs(number) >= _FLOAT32_OVERFLOW:
        raise ValueError("expected a number within float32")
    return float(number)


def _number(item: Any) -> int | float | None:
    """A number, also in a string; None for anything else."""
    if isinstance(item, str) and _NUMBER.fullmatch(item):
        whole = int(item) if item.lstrip("+-").isdigit() else 0
        return whole or float(item)  # "-0" has a sign
    return item if isinstance(item, (int, float)) and not isinstance(item, bool) else None


def _bytes(item: Any) -> bytes:
    if not isinstance(item, str) or not _BASE64.fullmatch(item):
        raise ValueError("expected base64")
    digits = item.rstrip("=")
    if len(digits) % 4 == 1:
        raise ValueError("expected base64 of whole bytes")
    return base64.urlsafe_b64decode(
        digits.translate({ord("+"): "-", ord("/"): "_"}) + "=" * (-len(digits) % 4)
    )


_LIST_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(["bytesList", "bytes_list"], ("bytes_list", _bytes)),
    **dict.fromkeys(["floatList", "float_list"], ("float_list", _float32)),
    **dict.fromkeys(["int64List", "int64_list"], ("int64_list", _int64)),
}
_JSON_TYPES = {_Object: "an object", list: "an array", str: "a string", bool: "a bool"}


def _json_type(value: Any) -> str:
    return "null" if value is None else _JSON_TYPES.get(type(value), "a number")
