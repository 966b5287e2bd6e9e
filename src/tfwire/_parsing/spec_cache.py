"""Compiled specifications, found again by their content.

A specification is often written inside the function that parses, a new dict at each call. And one
that is kept may be changed, also inside a shape or a default value. So what counts is the content.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from tfwire._parsing.features import string
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import ARGUMENTS, compile_features
from tfwire._parsing.spec_content import Content, content_of, matcher, thawed

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
    if not isinstance(features, Mapping):
        raise TypeError(f"{ARGUMENTS[part]} must be a dict, found {type(features).__name__}")


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
