"""Compiled specifications, found again by their content.

A specification is often written inside the function that parses, a new dict at each call. And one
that is kept may be changed, also inside a shape or a default value. So what counts is the content.

A content is a tuple that can be compared and hashed. ``==`` of features would take 1.0 and True for
1, -0.0 for 0.0, a plain tuple for a feature, and NaN for nothing. So each value has its exact type
beside it, and numbers that are not integers have their bits. What is not known to stay as it is
read has no content. A specification is compiled from its content, so that nothing that another
thread changes meanwhile is compiled under the content of before.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from tfwire._base.arguments import check_type
from tfwire._base.native import objects
from tfwire._parsing.features import DType, string
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import ARGUMENTS, compile_features

Content: TypeAlias = tuple[Any, ...]
"""The type of a value, and what tells it from others of its type."""

_BY_IDENTITY = {type(None), bool, DType, type}
_BY_EQUALITY = {int, str, bytes}
_BITS = struct.Struct("d")
# Lists of more items of one type are compared as a whole, not item by item.
_MANY = 64


class _Alike:
    """Marks the content of many items of one type: that type, and their bits or themselves."""


class NoContentError(Exception):
    """A value that may be another one each time it is looked at."""


def content_of(value: Any) -> Content:
    """The content of a feature, or of a value in one.

    Raises:
        NoContentError: It has none.
    """
    kind = type(value)
    if kind in _BY_IDENTITY or kind in _BY_EQUALITY or isinstance(value, np.dtype):
        return kind, value
    if kind is list or kind is tuple or _is_named_tuple(kind):
        return _content_of_items(kind, tuple(value))
    if kind is float:
        return kind, _BITS.pack(value)
    if kind is bytearray:
        return kind, bytes(value)
    if kind is np.ndarray and not value.dtype.hasobject:
        return kind, value.dtype, value.shape, value.tobytes()
    if kind is np.ndarray and value.dtype.kind == "O":
        return kind, value.dtype, value.shape, tuple(map(content_of, value.ravel().tolist()))
    if isinstance(value, np.generic) and kind is value.dtype.type:
        return kind, value.dtype, value.tobytes()
    return _content_of_tensorflow(value, kind.__module__, kind.__name__)


def _content_of_items(kind: type, items: tuple[Any, ...]) -> Content:
    if len(items) > _MANY and len(types := set(map(type, items))) == 1:
        if types == {float}:
            return kind, _Alike, float, struct.pack(f"{len(items)}d", *items)
        if types <= _BY_EQUALITY:
            return kind, _Alike, types.pop(), items
    return (kind, *map(content_of, items))


def _content_of_tensorflow(value: Any, module: str, name: str) -> Content:
    """Of TensorFlow's immutable objects and compat's. A Variable may be another value later."""
    if module.startswith(("tensorflow.", "tfwire.compat.")):
        if name == "DType":
            return type(value), value
        if name in ("EagerTensor", "Tensor"):
            return content_of(value.numpy())
        if name == "TensorShape":
            return content_of(list(value))
        if name == "Dimension":
            return content_of(value.value)
    raise NoContentError


def _is_named_tuple(kind: type) -> bool:
    """True for features and partitions, ours and TensorFlow's: their fields do not change."""
    module = kind.__module__
    return issubclass(kind, tuple) and (module == "tfwire" or module.startswith("tensorflow."))


def thawed(content: Content) -> Any:
    """A value of a content, that nobody else has; tensors and shapes as arrays and lists."""
    kind, *parts = content
    if parts and parts[0] is _Alike:
        items = parts[2]
        return kind(struct.unpack(f"{len(items) // 8}d", items) if parts[1] is float else items)
    if kind is list or kind is tuple:
        return kind(map(thawed, parts))
    if issubclass(kind, tuple):
        return tuple.__new__(kind, map(thawed, parts))
    if kind is float:
        return _BITS.unpack(parts[0])[0]
    if kind is bytearray:
        return bytearray(parts[0])
    if kind is np.ndarray:
        return _thawed_array(*parts)
    if issubclass(kind, np.generic):
        return np.ndarray((), parts[0], parts[1])[()]
    return parts[0]


def _thawed_array(dtype: np.dtype[Any], shape: tuple[int, ...], items: Any) -> Any:
    if not dtype.hasobject:
        return np.ndarray(shape, dtype, items)
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = thawed(item)
    return array.reshape(shape)


# ---- Comparing with a content ------------------------------------------------------------------

Features = Mapping[Any, Any]
Contents = tuple[Content | None, ...]


def _compared(content: Content | None, features: Features | None) -> Any:
    """What C compares specifications with. The same feature is not looked into, but for its lists,
    which its owner may change.

    Args:
        content: The contents of keys and features, in turn.
        features: A specification of this content.
    """
    if content is None or features is None:
        return None
    items = zip(features.items(), content[0::2], content[1::2], strict=True)
    known = (
        (key, of_key, None if _has_memory(of_feature) else feature, of_feature)
        for (key, feature), of_key, of_feature in items
    )
    return objects.tfw_new_contents(content_of, _Alike, tuple(known))


def _has_memory(content: Content) -> bool:
    """True if there is something in it, other than lists, that can be changed."""
    kind, *parts = content
    if issubclass(kind, (list, tuple)):
        return _Alike not in parts and any(map(_has_memory, parts))
    return kind is bytearray or kind is np.ndarray


_has_content = objects.tfw_has_content

_MAX_KNOWN = 128
_MAX_BYTES = 1 << 26
_MAX_SAME_KEYS = 4  # that are compared before a content is made
_BYTES_PER_VALUE = 128  # of a default value, in a content, a plan and C; and of a record's scratch


class Compiled:
    """A compiled specification: of Examples, or of both parts of SequenceExamples.

    Attributes:
        schemas: One or two; None for a part that is not asked for.
        parser: Of the parse functions; None until one of them needs it.
        contents: What equal specifications hold, for C; empty until they were met again.
        used: Of the compiled ones that are kept, the lowest goes first.
        num_bytes: What is kept with it, about.
    """

    __slots__ = ("contents", "num_bytes", "parser", "schemas", "used")

    def __init__(self, parts: tuple[str, ...], specs: Iterable[Features | None]) -> None:
        self.schemas: tuple[Schema | None, ...] = tuple(
            None if features is None else Schema(compile_features(features, part))
            for part, features in zip(parts, specs, strict=True)
        )
        self.parser: Any = None
        self.contents: tuple[Any, ...] = ()
        self.used = 0
        self.num_bytes = sum(map(_num_bytes, self.schemas))

    def matches(self, *specs: Features | None) -> bool:
        """Whether these specifications are equal to its own."""
        return all(map(_has_content, self.contents, specs))


def _num_bytes(schema: Schema | None) -> int:
    size = 0
    for request in () if schema is None else schema.plan.requests:
        size += _BYTES_PER_VALUE * request.num_values
        if request.dtype == string and request.default is not None:
            size += 4 * len(request.default[0])  # in as many places
    return size


# There is no lock, which a signal handler or a fork could find held. Of two threads, both may
# compile a specification, and one of the two is kept.
_known: dict[Contents, Compiled] = {}
_clock = itertools.count(1)
# Those that were met again, by their keys: finding one here takes a fifth of making a content. The
# last two, such as those to train and to evaluate, are also there by the number of their parts.
_met: dict[Any, tuple[Compiled, ...]] = {}


def compiled_example(features: Features) -> Compiled:
    """A specification of Examples, compiled now or before.

    Raises:
        ValueError, TypeError: It is not valid.
    """
    if type(features) is dict:
        for last in _met.get(1, ()):
            if _has_content(last.contents[0], features):
                return last
        if (known := _met_again(features)) is not None:
            return known
    if not features and (features is None or isinstance(features, Mapping)):
        raise ValueError("Invalid argument: features cannot be empty.")
    _check("example", features)
    if type(features) is not dict:
        return compiled_example(dict(features.items()))
    return _find(("example",), (features,))


def compiled_sequence(context: Features | None, lists: Features | None) -> Compiled:
    """The specifications of SequenceExamples, compiled now or before.

    Raises:
        ValueError, TypeError: One of them is not valid, or both are empty.
    """
    given = context, lists
    if all(type(spec) is dict or spec is None for spec in given):
        for last in _met.get(2, ()):
            if last.matches(*given):
                return last
        if (known := _met_again(*given)) is not None:
            return known
    parts = ("context", "lists")
    plain = [_plain(part, spec) for part, spec in zip(parts, given, strict=True)]
    if plain == [None, None]:
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one "
            "should have values."
        )
    if plain[0] is not context or plain[1] is not lists:
        return compiled_sequence(*plain)
    return _find(parts, (context, lists))


def _met_again(*specs: Features | None) -> Compiled | None:
    """What was compiled for dicts of this content, and met again."""
    try:
        for known in _met[_keys(specs)]:
            if known.matches(*specs):
                _met[len(specs)] = (known, *_met.get(len(specs), ())[:1])
                return known
    except (KeyError, TypeError):  # unknown, or its keys have no hash
        pass
    return None


def _plain(part: str, features: Features | None) -> Features | None:
    """A specification as a dict; None for an empty one."""
    if features is None:
        return None
    _check(part, features)
    return (features if type(features) is dict else dict(features.items())) or None


def _check(part: str, features: Any) -> None:
    check_type(ARGUMENTS[part], features, Mapping, "a dict")


def _keys(specs: tuple[Features | None, ...]) -> tuple[Any, ...]:
    """What to look a specification up by in _met."""
    if len(specs) == 1:
        return tuple(specs[0] or ())
    return (*(specs[0] or ()), None, *(specs[1] or ()))


def _find(parts: tuple[str, ...], specs: tuple[Features | None, ...]) -> Compiled:
    held = [None if features is None else dict(features) for features in specs]
    try:
        contents = tuple(None if items is None else _content_of(items) for items in held)
    except Exception:  # of any kind; it is compiled at every call, which reports the error
        return Compiled(parts, held)
    known = _known.get(contents)
    if known is None:
        known = Compiled(parts, map(_thawed, contents))
        _remember(contents, known)
    else:
        known.used = next(_clock)
        _note(contents, known, tuple(held))
    return known


def _content_of(features: dict[Any, Any]) -> Content:
    """The contents of keys and features, in turn."""
    return tuple(map(content_of, itertools.chain.from_iterable(features.items())))


def _thawed(content: Content | None) -> dict[Any, Any] | None:
    if content is None:
        return None
    values = map(thawed, content)
    return dict(zip(values, values, strict=True))


def _remember(contents: Contents, known: Compiled) -> None:
    """Keeps a compiled specification, and drops those that were not used for the longest time."""
    known.used = next(_clock)
    _known[contents] = known
    with suppress(RuntimeError, ValueError):  # other threads have changed it meanwhile
        while len(_known) > 1 and (len(_known) > _MAX_KNOWN or _kept_bytes() > _MAX_BYTES):
            oldest, _ = min(list(_known.items()), key=lambda item: item[1].used)
            _known.pop(oldest, None)
            _met.clear()


def _kept_bytes() -> int:
    return sum(known.num_bytes for known in list(_known.values()))


def _note(contents: Contents, known: Compiled, specs: tuple[Features | None, ...]) -> None:
    """Lets a specification that was met again be found by its keys."""
    if not known.contents:
        known.contents = tuple(map(_compared, contents, specs))
    keys = _keys(specs)
    others = [other for other in _met.get(keys, ()) if other is not known]
    _met[keys] = (known, *others[: _MAX_SAME_KEYS - 1])
