"""The pictures, sounds, boxes and film strips of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tfwire._interface.messages import plural
from tfwire.view._budget import Allowance, Budget
from tfwire.view._html import escaped, image
from tfwire.view._media import (
    Media,
    colored_mask,
    find_media,
    png_of_pixels,
    raw_image_shape,
)
from tfwire.view._records import FeatureName, Record

# Names that old and new datasets give to the sizes of raw pixels.
_HEIGHTS = ("height", "image/height", "rows", "image_height")
_WIDTHS = ("width", "image/width", "cols", "image_width")
_SHORTEST_BOX = 60  # characters
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_LABELS = ("class/text", "class/label", "label", "label/text")


class Picture(NamedTuple):
    """A value that is an image or a sound.

    Attributes:
        number: Of the record.
        name: Of the feature; None if the record itself is the picture.
        step: In a feature list; 0 elsewhere.
        item: Number of the value.
        media: What it is.
        contents: Its bytes, as the record has them.
        shape: Of pixels that are stored raw.
    """

    number: int
    name: FeatureName | None
    step: int
    item: int
    media: Media
    contents: bytes
    shape: tuple[int, int, int] | None = None

    def file(self, effort: Allowance) -> bytes:
        """The bytes of a file of the type of ``media``; masks with a color per class."""
        if self.shape is not None:
            return png_of_pixels(self.contents, self.shape)
        return colored_mask(self.contents, effort)


Source = Callable[[Picture], str]
"""The attributes of HTML that say where a page loads a picture; empty if it should not."""


class Look(NamedTuple):
    """How records are shown.

    Attributes:
        source: Where the pages load pictures.
        link: The address of the page of a record.
        budget: That of the page.
        corners: Names of the features that hold left, top, right and bottom of boxes.
    """

    source: Source
    link: Callable[[Record], str]
    budget: Budget
    corners: tuple[str, ...] = ()


def first_picture(record: Record, name: FeatureName) -> Picture | None:
    """The one that a row shows."""
    steps = record.steps(name)
    if not steps or not len(steps[0]):
        return None
    return find_picture(record, name, 0, 0)


def find_picture(record: Record, name: FeatureName, step: int, index: int) -> Picture | None:
    """A value, if it is a picture or a sound.

    Raises:
        LookupError: There is no such value.
    """
    steps = record.steps(name)
    if steps is None:
        raise LookupError("there is no such feature")
    contents = steps[step][index]
    if not isinstance(contents, bytes):
        return None
    media, shape = find_media(contents), None
    if media is None:
        shape = raw_image_shape(
            len(contents), _size(record.features, _HEIGHTS), _size(record.features, _WIDTHS)
        )
        if shape is None:
            return None
        media = Media("image/png", shape[1], shape[0])
    return Picture(record.number, name, step, index, media, contents, shape)


def picture_of_payload(record: Record) -> Picture | None:
    """A record that is not an Example, if it is a picture or a sound itself."""
    media = find_media(record.payload) if record.kind == "other" else None
    if media is None:
        return None
    return Picture(record.number, None, 0, 0, media, record.payload)


def _size(features: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The height or width that a record declares."""
    for name in names:
        values = features.get(name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "i" and len(values) == 1:
            return int(values[0])
    return None


def shown(picture: Picture, look: Look, record: Record | None = None, seen: int = 0) -> str:
    """A picture as HTML; in words where it is too large.

    Args:
        picture: The picture.
        look: How.
        record: Its record, whose boxes are drawn.
        seen: Pixels of the picture whose place it takes.
    """
    media = picture.media
    found = look.source(picture) if media.is_shown(look.budget.pixels, seen) else ""
    if not found:
        return f"{media.title} <small>{plural(len(picture.contents), 'byte')}, not shown</small>"
    if record is None or media.is_sound:
        return image(media, found)
    over, more = _boxes(record, picture, look)
    look.budget.html.spend(len(over))
    return image(media, found, over) + _and_more(more, "box", "boxes")


def _and_more(count: int, noun: str, nouns: str) -> str:
    return f" <small>and {count:,} more {noun if count == 1 else nouns}</small>" if count else ""


def film(record: Record, name: FeatureName, look: Look) -> str:
    """All pictures of a feature: one as it is, several as a strip with a slider."""
    found = _pictures(record, name)
    first, second = next(found), next(found, None)
    if second is None:
        return shown(first, look, record) + _and_more(_rest(record, name, 1), "value", "values")
    frames: list[str] = []
    room, seen = look.budget.html.detail, 0
    for picture in chain((first, second), found):
        if frames and room < 0:
            break
        text = shown(picture, look, seen=seen)
        if "<img " in text:
            seen = max(seen, picture.media.num_pixels)
        hidden = " hidden" if frames and not first.media.is_sound else ""
        frames.append(f'<span class="f"{hidden}>{text}</span>')
        look.budget.html.spend(len(frames[-1]))
        room -= len(frames[-1])
    more = _and_more(_rest(record, name, len(frames)), "value", "values")
    if first.media.is_sound:
        return "".join(frames) + more
    label = f"frame of {escaped(name.text, 60)}"
    slider = (
        f'<input type="range" min="0" max="{len(frames) - 1}" value="0" aria-label="{label}">'
        f"<output>1 of {len(frames)}</output>"
    )
    strip = f'<span class="film">{"".join(frames)}<span class="slide">{slider}</span></span>'
    return strip + more


def _pictures(record: Record, name: FeatureName) -> Iterator[Picture]:
    """Those of a feature or feature list, up to the first value that is none."""
    for step, values in enumerate(record.steps(name) or ()):
        if isinstance(values, list):
            for index in range(len(values)):
                picture = find_picture(record, name, step, index)
                if picture is None:
                    return
                yield picture


def _rest(record: Record, name: FeatureName, count: int) -> int:
    """How many values a feature has beside so many; those that were not decoded are told of where
    their number is."""
    return sum(map(len, record.steps(name) or ())) - count


# ---- Boxes --------------------------------------------------------------------------------------


def _boxes(record: Record, picture: Picture, look: Look) -> tuple[str, int]:
    """The boxes of objects above an image, if the record has some, and how many more it has."""
    found = _corners(record, look.corners)
    width, height = picture.media.width, picture.media.height
    if found is None:
        return "", 0
    columns, labels = found
    count, room = len(columns[0]), look.budget.html.detail
    drawn = min(count, room // _SHORTEST_BOX)
    edges = np.stack([column[:drawn] for column in columns], axis=1).astype(np.float64)
    if any((column > 1.5).any() for column in columns):  # in pixels
        edges = edges / np.array([width, height, width, height], np.float64)
    shapes: list[str] = []
    for i, (left, top, right, bottom) in enumerate(np.nan_to_num(edges).clip(0, 1) * 1000):
        place = f'x="{left:.1f}" y="{top:.1f}"'
        size = f'width="{max(0, right - left):.1f}" height="{max(0, bottom - top):.1f}"'
        title = f"<title>{_label(labels[i])}</title>" if i < len(labels) else ""
        shape = f"<rect {place} {size}>{title}</rect>"
        room -= len(shape)
        if room < 0:
            break
        shapes.append(shape)
    if not shapes:
        return "", count
    over = f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none">{"".join(shapes)}</svg>'
    return over, count - len(shapes)


Boxes = tuple[list[Any], Sequence[Any]]
"""Left, top, right and bottom of objects, and their labels."""


def _corners(record: Record, corners: tuple[str, ...]) -> Boxes | None:
    features = record.features
    if corners:
        return _together(record, [features.get(name) for name in corners], ())
    for name, values in features.items():
        if name.endswith("bbox/xmin"):  # TensorFlow's object detection
            prefix = name.removesuffix("xmin")
            columns = [features.get(prefix + corner) for corner in _CORNERS]
            return _together(record, columns, _labels(features, prefix.removesuffix("bbox/")))
        if name.endswith("objects/bbox"):  # TensorFlow Datasets
            if not _is_numbers(values) or (len(values) % 4 and record.is_whole):
                return None
            top, left, bottom, right = values[: len(values) // 4 * 4].reshape(-1, 4).T
            labels = _labels(features, name.removesuffix("bbox"))
            return _together(record, [left, top, right, bottom], labels)
    return None


def _is_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "if"


def _together(record: Record, columns: list[Any], labels: Sequence[Any]) -> Boxes | None:
    """Columns of one length; of a record that was read in part, the shortest counts."""
    numbers = [column for column in columns if _is_numbers(column)]
    lengths = {len(column) for column in numbers}
    if len(numbers) < 4 or (len(lengths) > 1 and record.is_whole):
        return None
    return [column[: min(lengths)] for column in numbers], labels


def _labels(features: Mapping[str, Any], prefix: str) -> Sequence[Any]:
    for name in _LABELS:
        values = features.get(prefix + name)
        if values is not None and len(values):
            return values  # type: ignore[no-any-return]
    return ()


def _label(value: Any) -> str:
    is_text = isinstance(value, bytes)
    return escaped(value.decode("utf-8", "replace"), 40) if is_text else str(value)
