"""Film strips of pictures, and the steps of an episode with lines of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfwire.view._drawings import line_plot
from tfwire.view._html import (
    NOTHING,
    Html,
    element,
    join,
    shown_text,
    small,
    title,
    values_text,
)
from tfwire.view._pictures import (
    Look,
    Picture,
    and_more,
    find_picture,
    first_picture,
    shown,
)
from tfwire.view._records import FeatureName, Record
from tfwire.view._shapes import episode_of, is_repeated

_MOST_LINES = 8  # of a plot
_MOST_PARTS = 40


def film(record: Record, name: FeatureName, look: Look) -> Html:
    """All pictures of a feature: one as it is, several as a strip with a slider."""
    found = _pictures(record, name)
    first, second = next(found), next(found, None)
    if second is None:
        rest = 0 if first.is_of_numbers else _rest(record, name, 1)
        return join(shown(first, look, record), and_more(rest, "value", "values"))
    frames, more = _frames(record, name, look)
    if first.media.is_sound:
        return join(frames, more)
    label = join("frame of ", shown_text(name.text, 60))
    strip = element("span", frames, class_="strip")
    return join(element("span", strip, _slide(len(frames), label), class_="film"), more)


def _frames(record: Record, name: FeatureName, look: Look) -> tuple[list[Html], Html]:
    """The pictures, of which the first is seen, and how many values there are beside them."""
    frames: list[Html] = []
    room, seen = look.budget.html.detail, 0
    for picture in _pictures(record, name):
        if frames and room < 0:
            break
        text = shown(picture, look, seen=seen)
        if "<img " in text:
            seen = max(seen, picture.media.num_pixels)
        hidden = bool(frames) and not picture.media.is_sound
        frames.append(element("span", text, class_="f", hidden=hidden))
        look.budget.html.spend(len(frames[-1]))
        room -= len(frames[-1])
    return frames, and_more(_rest(record, name, len(frames)), "value", "values")


def _slide(count: int, label: object) -> Html:
    ends = {"min": 0, "max": count - 1, "value": 0}
    slider = element("input", type="range", **ends, aria_label=label)
    return element("span", slider, element("output", f"1 of {count}"), class_="slide")


def _pictures(record: Record, name: FeatureName) -> Iterator[Picture]:
    """Those of a feature or feature list, up to the first value that is none."""
    for step, values in enumerate(record.steps(name) or ()):
        for index in range(len(values) if isinstance(values, list) else len(values[:1])):
            picture = find_picture(record, name, step, index)
            if picture is None:
                return
            yield picture


def _rest(record: Record, name: FeatureName, count: int) -> int:
    """How many values a feature has beside so many; those that were not decoded are told of where
    their number is."""
    return sum(map(len, record.steps(name) or ())) - count


# ---- Episodes -----------------------------------------------------------------------------------


def episode(record: Record, look: Look) -> tuple[Html, dict[FeatureName, bool]]:
    """The steps of an episode: films and texts, a slider, and lines of numbers below it. What does
    not change is said once.

    Returns:
        HTML, and the features that it shows, with whether all of their numbers are still to be
        listed; nothing if the record is no episode.
    """
    features = episode_of(record)
    films = [name for name in features if first_picture(record, name) is not None]
    numbers = {
        name: steps for name, values in features.items() if (steps := _stacked(values)) is not None
    }
    if len(features) < 2 or not (films or numbers):
        return NOTHING, {}
    views = [_view(name, *_frames(record, name, look)) for name in films]
    plots: list[Html] = []
    said: list[Html] = []
    told = dict.fromkeys(films, False)
    widest = sorted(features.items(), key=lambda item: -len(item[1][0]))
    for name, values in widest:
        if len(plots) + len(said) >= _MOST_PARTS:
            break
        if is_repeated([[*step] for step in values]):
            said.append(_line(name, values_text(values[0], _MOST_LINES)))
            told[name] = False
        elif name in numbers:
            plots.append(look.budget.html.write(partial(_plot, name, numbers[name])))
            told[name] = True
        elif name not in films and (texts := _texts(values, look)):
            views.append(_view(name, texts, NOTHING))
            told[name] = False
    count = len(next(iter(features.values())))
    shown_plots = element("div", plots, class_="plots")
    parts = [element("div", views, class_="views"), _slide(count, "step"), shown_plots]
    return join(said, element("div", parts, class_="film episode")), told


def _view(name: FeatureName, frames: list[Html], more: Html) -> Html:
    strip = element("span", frames, class_="strip")
    return element("span", small(title(name, 60), more), strip, class_="view")


def _line(name: FeatureName, text: Html) -> Html:
    return element("p", small(title(name, 60)), " ", text, " ", small("in all steps"))


def _texts(values: Sequence[Any], look: Look) -> list[Html]:
    """The texts of the steps; none if there is no room for all of them."""
    frames: list[Html] = []
    room = look.budget.html.detail
    for i, step in enumerate(values):
        frames.append(element("span", values_text(step, 4), class_="f", hidden=i > 0))
        room -= len(frames[-1])
        if room < 0:
            return []
    look.budget.html.spend(sum(map(len, frames)))
    return frames


def _stacked(values: Sequence[Any]) -> Any:
    """The numbers of each step as a row of an array; None if they are not as many in each."""
    if not all(isinstance(step, np.ndarray) and len(step) == len(values[0]) for step in values):
        return None
    found = np.stack(values) if len(values[0]) else None
    return found if found is not None and np.isfinite(found).any() else None


def _plot(name: FeatureName, steps: Any) -> Html:
    """A line for each of the numbers of a step."""
    width = steps.shape[1]
    drawn = steps[:, :_MOST_LINES]
    finite = drawn[np.isfinite(drawn)]
    if not len(finite):
        return NOTHING
    low, high = float(finite.min()), float(finite.max())
    shape = str(steps.shape) if width > 1 else ""
    more = f", the first {_MOST_LINES} numbers" if width > _MOST_LINES else ""
    said = f"{shape} {low:.4g} to {high:.4g}{more}".strip()
    label = element("small", element("b", title(name, 60)), " ", said)
    return element("div", label, line_plot(drawn, low, high, join(title(name, 60), f": {said}")))
