"""The values of a feature: in a cell of a table, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire._interface.messages import plural
from tfwire.view._html import (
    NOTHING,
    Html,
    element,
    join,
    not_read,
    number,
    shown_text,
    small,
    values_text,
)
from tfwire.view._pictures import Look, first_picture, shown
from tfwire.view._records import FeatureName, Record
from tfwire.view._shapes import is_repeated, shape_of

WHOLE_VALUES = 100
_NUMBERS_OF_CELL = 4
_NUMBERS_OF_STEP = 40
_OPEN_STEPS = 12  # more are shown when they are asked for
_LONGEST_LABEL = 40  # characters
# The last parts of the names of features that say what a record is.
_PARTS_OF_LABELS = ("text", "label", "class", "caption", "category", "name")


def cell_of_feature(record: Record, name: FeatureName, look: Look) -> object:
    """What a row has room for: one picture, or the first values."""
    steps = record.steps(name)
    if steps is None:
        return NOTHING
    picture, unread = first_picture(record, name), not_read(record, name)
    if picture is not None:
        count = sum(map(len, steps)) if name.is_list else len(steps[0])
        is_one = count == 1 or picture.is_of_numbers
        more = [] if is_one else [" ", small(f"1 of {count:,}")]
        return [shown(picture, look, record), *more, unread]
    return [first_values(record, name, steps), unread]


def first_values(record: Record, name: FeatureName, steps: list[Any]) -> Html:
    """The shape and the first values of a feature, or its first steps."""
    shape = shape_of(record, name)
    if shape:
        first = steps[0][: _NUMBERS_OF_CELL - 1]
        return join(str(shape), " ", small(values_text(first), " ..."))
    if name.is_list and not is_repeated(steps):
        count = small(plural(len(steps), "step"))
        return join(count, " ", _steps_in_a_row(steps)) if steps else count
    return all_values(record, name, _NUMBERS_OF_CELL)


def _steps_in_a_row(steps: Sequence[Any]) -> Html:
    """The first steps; in brackets if not all have one value."""
    single = all(len(values) == 1 for values in steps)
    found: list[object] = []
    for values in steps[:_NUMBERS_OF_CELL]:
        text = values_text(values[:1] if single else values, 2) if len(values) else ""
        found += [text if single else ["[", text, "]"], ", "]
    return join(found[:-1], " ..." * (len(steps) > _NUMBERS_OF_CELL))


def count_of(record: Record, name: FeatureName) -> str:
    """How many steps or values a feature has, or their shape."""
    steps, shape = record.steps(name) or [], shape_of(record, name)
    if shape:
        return str(shape)
    count = len(steps if name.is_list else steps[0])
    return plural(count, "step" if name.is_list else "value")


def all_values(record: Record, name: FeatureName, most: int = WHOLE_VALUES, room: int = 0) -> Html:
    """The values of a feature, within reason: a string that is repeated once, numbers of classes
    with their names, rows and steps below each other.

    Args:
        most: How many values.
        room: How many characters steps may have.
    """
    steps = record.steps(name) or []
    values: Any = steps if name.is_list else steps[0]
    if is_repeated(values):
        first = values_text(values[0] if name.is_list else values[:1], most)
        return join(first, " ", small(f"in all {len(values):,}"))
    shape = shape_of(record, name)
    if shape and not name.is_list:  # strings are a list, not an array
        width = max(1, len(values) // max(1, shape[0]))
        values = [values[i : i + width] for i in range(0, len(values), width)]
    if name.is_list or shape:
        return _steps(values, room)
    described = record.described.get(name.text)
    if described is None or not described.classes or not isinstance(values, np.ndarray):
        return values_text(values, most)
    named = [f"{number(value)} {described.name(int(value))}".strip() for value in values[:most]]
    text = ", ".join(map(str, (shown_text(each, _LONGEST_LABEL) for each in named)))
    more = join(" ... ", small(f"{len(values):,} values")) if len(values) > most else ""
    return join(element("span", Html(text), class_="s"), more) if named else values_text(values)


def _steps(steps: Sequence[Any], room: int) -> Html:
    items: list[Html] = []
    for values in steps[:WHOLE_VALUES]:
        if items and room < 0:
            break
        items.append(element("li", values_text(values, _NUMBERS_OF_STEP)))
        room -= len(items[-1])
    left = len(steps) - len(items)
    more = small(f"and {plural(left, 'more step')}") if left else ""
    found = join(element("ol", items, start=0), more)
    if len(items) <= _OPEN_STEPS:
        return found
    return element("details", element("summary", plural(len(steps), "step")), found)


def label_of(record: Record) -> Html:
    """What a record is, in a few words: the name of its class, or a text; nothing if it says
    neither."""
    named = [name for name, each in record.described.items() if each.classes]
    last = {text.rpartition("/")[2]: text for text in reversed([*record.features])}
    for text in [*named, *(last[title] for title in _PARTS_OF_LABELS if title in last)]:
        values, name = record.features.get(text), FeatureName(text)
        if values is not None and len(values) == 1 and first_picture(record, name) is None:
            return all_values(record, name)
    return NOTHING
