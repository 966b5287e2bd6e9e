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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import numpy as np

from tfwire._base.arguments import check_type
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


def matcher(
    contents: tuple[Content | None, ...], specs: tuple[Mapping[Any, Any] | None, ...]
) -> Callable[..., bool]:
    """A function of keys and specifications: are they dicts of these contents?

    It is generated code, which takes a fifth of the time of loops.

    Args:
        contents: For each specification, the contents of keys and features, in turn.
        specs: Specifications of these contents, whose features are known again by their identity.

    Returns:
        A function of the keys of all specifications, with None between two, and of each.
    """
    source = _MatcherSource()
    for content, features in zip(contents, specs, strict=True):
        source.add_specification(content, features)
    return source.compiled()


class _MatcherSource:
    """The source of a function, and the names that it uses."""

    def __init__(self) -> None:
        self._specs: list[str] = []
        self._keys: list[str] = []
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"content_of": content_of, "pack": _BITS.pack}

    def add_specification(
        self, content: Content | None, features: Mapping[Any, Any] | None
    ) -> None:
        spec = f"spec{len(self._specs)}"
        if self._specs:
            self._keys.append("between")
        self._specs.append(spec)
        if content is None or features is None:
            self._refuse(f"{spec} is not None")
            return
        keys = [f"{spec}_key{i}" for i in range(len(features))]
        values = [f"{spec}_value{i}" for i in range(len(features))]
        self._keys += keys
        self._refuse(f"type({spec}) is not dict")
        self._lines.append(f"[{', '.join(values)}] = {spec}.values()")
        for name, key in zip(keys, features, strict=True):
            held = self._held(key)
            self._refuse(f"{name} is not {held} and {self._differs(name, content_of(key), held)}")
        for name, feature, known in zip(values, features.values(), content[1::2], strict=True):
            self._add_feature(name, feature, known)

    def _add_feature(self, name: str, feature: Any, content: Content) -> None:
        """Refuses another feature. The same one is not looked into, but for its lists."""
        if _has_memory(content):
            self._add_value(name, content)
            return
        self._lines.append(f"if {name} is {self._held(feature)}:")
        with self._indented():
            for items, known in self._lists_in(feature, content):
                self._add_items(items, known)
        self._lines.append("else:")
        with self._indented():
            self._add_value(name, content)

    @contextmanager
    def _indented(self) -> Iterator[None]:
        outside, self._lines = self._lines, ["pass"]
        yield
        self._lines = outside + [f"    {line}" for line in self._lines]

    def _add_value(self, name: str, content: Content) -> None:
        """Refuses another value."""
        if not issubclass(content[0], (list, tuple)) or _Alike in content:
            self._refuse(self._differs(name, content, self._held(thawed(content))))
            return
        self._refuse(f"type({name}) is not {self._held(content[0])}")
        self._add_items(name, content)

    def _add_items(self, name: str, content: Content) -> None:
        """Refuses other items of a list or tuple."""
        parts = content[1:]
        if not parts:
            self._refuse(name)
            return
        if _Alike in parts:
            self._refuse(f"content_of({name}) != {self._held(content)}")
            return
        items = [f"{name}_{i}" for i in range(len(parts))]
        self._lines.append(f"[{', '.join(items)}] = {name}")
        for item, part in zip(items, parts, strict=True):
            self._add_value(item, part)

    def _differs(self, name: str, content: Content, held: str) -> str:
        """An expression: a value is not of this content, which is that of a held one."""
        kind = content[0]
        if kind in _BY_IDENTITY or issubclass(kind, np.dtype) or kind.__name__ == "DType":
            return f"{name} is not {held}"
        if kind in _BY_EQUALITY:
            return f"(type({name}) is not {self._held(kind)} or {name} != {held})"
        if kind is float:
            return f"(type({name}) is not float or pack({name}) != {self._held(content[1])})"
        return f"content_of({name}) != {self._held(content)}"

    def _lists_in(self, value: Any, content: Content) -> Iterator[tuple[str, Content]]:
        """The lists in a feature, which its owner may change, with what they held."""
        if type(value) is list:
            yield self._held(value), content
        elif isinstance(value, tuple) and _Alike not in content:
            for item, part in zip(value, content[1:], strict=True):
                yield from self._lists_in(item, part)

    def _refuse(self, test: str) -> None:
        self._lines.append(f"if {test}: return False")

    def _held(self, value: Any) -> str:
        """The name of a value."""
        name = f"held{len(self._names)}"
        self._names[name] = value
        return name

    def compiled(self) -> Callable[..., bool]:
        lines = "\n        ".join([f"[{', '.join(self._keys)}] = keys", *self._lines])
        source = f"""
def matches(keys, {", ".join(self._specs)}):
    try:
        {lines}
        return True
    except Exception:  # other numbers of items, or an error of a value
        return False
"""
        exec(source, self._names)
        function: Callable[..., bool] = self._names.pop("matches")
        return function


def _has_memory(content: Content) -> bool:
    """True if there is something in it, other than lists, that can be changed."""
    kind, *parts = content
    if issubclass(kind, (list, tuple)):
        return _Alike not in parts and any(map(_has_memory, parts))
    return kind is bytearray or kind is np.ndarray


Features = Mapping[Any, Any]
Contents = tuple[Content | None, ...]

_MAX_KNOWN = 128
_MAX_BYTES = 1 << 26
_MAX_SAME_KEYS = 4  # that are compared before a content is made
_BYTES_PER_VALUE = 128  # of a default value, in a content, a plan and C; and of a record's scratch


class Compiled:
    """A compiled specification: of Examples, or of both parts of SequenceExamples.

    Attributes:
        schemas: One or two; None for a part that is not asked for.
        parser: Of the parse functions; None until one of them needs it.
        matches: Is a specification equal to this one? None until it was met again.
        used: Of the compiled ones that are kept, the lowest goes first.
        num_bytes: What is kept with it, about.
    """

    __slots__ = ("matches", "num_bytes", "parser", "schemas", "used")

    def __init__(self, parts: tuple[str, ...], specs: Iterable[Features | None]) -> None:
        self.schemas: tuple[Schema | None, ...] = tuple(
            None if features is None else Schema(compile_features(features, part))
            for part, features in zip(parts, specs, strict=True)
        )
        self.parser: Any = None
        self.matches: Callable[..., bool] | None = None
        self.used = 0
        self.num_bytes = sum(map(_num_bytes, self.schemas))


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
# Those that were met again, by their keys: finding one here takes a fifth of making a content.
_met: dict[tuple[Any, ...], tuple[Compiled, ...]] = {}


def compiled_example(features: Features) -> Compiled:
    """A specification of Examples, compiled now or before.

    Raises:
        ValueError, TypeError: It is not valid.
    """
    try:
        keys = (*features,)
        for known in _met[keys]:
            if known.matches(keys, features):  # type: ignore[misc]
                return known
    except (KeyError, TypeError):  # unknown, or no dict
        pass
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
    try:
        keys = _keys((context, lists))
        for known in _met[keys]:
            if known.matches(keys, context, lists):  # type: ignore[misc]
                return known
    except (KeyError, TypeError):
        pass
    parts = ("context", "lists")
    plain = [_plain(part, spec) for part, spec in zip(parts, (context, lists), strict=True)]
    if plain == [None, None]:
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one "
            "should have values."
        )
    if plain[0] is not context or plain[1] is not lists:
        return compiled_sequence(*plain)
    return _find(parts, (context, lists))


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
    if known.matches is None:
        known.matches = matcher(contents, specs)
    keys = _keys(specs)
    others = [other for other in _met.get(keys, ()) if other is not known]
    _met[keys] = (known, *others[: _MAX_SAME_KEYS - 1])
