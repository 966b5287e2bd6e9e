"""The pictures, sounds, boxes and film strips of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.text import plural
from tfwire.view._html import escaped, image
from tfwire.view._media import (
    Media,
    colored_mask,
    find_media,
    png_of_pixels,
    raw_image_shape,
)
from tfwire.view._records import FeatureName, Record

__all__ = [
    "Picture",
    "Source",
    "boxes",
    "film",
    "find_picture",
    "first_picture",
    "picture_of_payload",
    "pictures",
    "shown",
]

_FRAMES_OF_FILM = 256
# Names that old and new datasets give to the sizes of raw pixels.
_HEIGHTS = ("height", "image/height", "rows", "image_height")
_WIDTHS = ("width", "image/width", "cols", "image_width")
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

    def file(self) -> bytes:
        """The bytes of a file of the type of ``media``; masks with a color per class."""
        if self.shape is not None:
            return png_of_pixels(self.contents, self.shape)
        return colored_mask(self.contents)


Source = Callable[[Picture], str]
"""The attributes of HTML that say where a page loads a picture; empty if it should not."""


def pictures(record: Record, name: FeatureName) -> Iterator[Picture]:
    """Those of a feature or feature list, as many as a film strip shows."""
    count = 0
    for step, values in enumerate(record.steps(name) or ()):
        if isinstance(values, list):
            for index in range(len(values)):
                picture = find_picture(record, name, step, index)
                if picture is None or count >= _FRAMES_OF_FILM:
                    return
                count += 1
                yield picture


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


def shown(picture: Picture, source: Source, boxes: str = "") -> str:
    """A picture as HTML; in words where it is too large."""
    found = source(picture) if picture.media.is_shown else ""
    if not found:
        size = plural(len(picture.contents), "byte")
        return f"{picture.media.title} <small>{size}, not shown</small>"
    return image(picture.media, found, boxes)


def film(record: Record, name: FeatureName, source: Source, corners: tuple[str, ...] = ()) -> str:
    """All pictures of a feature: one as it is, several as a strip with a slider."""
    found = list(pictures(record, name))
    if len(found) < 2 or found[0].media.type == "audio/wav":
        return "".join(shown(each, source, boxes(record, each, corners)) for each in found)
    frames = []
    for number, picture in enumerate(found):
        hidden = " hidden" if number else ""
        frames.append(f'<span class="f"{hidden}>{shown(picture, source)}</span>')
    label = f"frame of {escaped(name.text, 60)}"
    slider = (
        f'<input type="range" min="0" max="{len(found) - 1}" value="0" aria-label="{label}">'
        f"<output>1 of {len(found)}</output>"
    )
    return f'<span class="film">{"".join(frames)}<span class="slide">{slider}</span></span>'


# ---- Boxes --------------------------------------------------------------------------------------


def boxes(record: Record, picture: Picture, corners: tuple[str, ...]) -> str:
    """The boxes of objects above an image, if the record has some."""
    if picture.media.width == 0 or picture.media.type == "audio/wav":
        return ""
    found = _corners(record.features, corners)
    if found is None:
        return ""
    edges, labels = found
    if (edges > 1.5).any():  # in pixels
        width, height = picture.media.width, picture.media.height
        edges = edges / np.array([width, height, width, height])
    shapes = []
    for i, (left, top, right, bottom) in enumerate(np.nan_to_num(edges).clip(0, 1) * 1000):
        place = f'x="{left:.1f}" y="{top:.1f}"'
        size = f'width="{max(0, right - left):.1f}" height="{max(0, bottom - top):.1f}"'
        title = f"<title>{labels[i]}</title>" if i < len(labels) else ""
        shapes.append(f"<rect {place} {size}>{title}</rect>")
    return f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none">{"".join(shapes)}</svg>'


def _corners(features: Mapping[str, Any], corners: tuple[str, ...]) -> tuple[Any, list[str]] | None:
    """Left, top, right and bottom of each object, and its label."""
    if corners:
        columns = [features.get(name) for name in corners]
        return _stacked(columns, [])
    for name, values in features.items():
        if name.endswith("bbox/xmin"):  # TensorFlow's object detection
            prefix = name.removesuffix("xmin")
            columns = [features.get(prefix + corner) for corner in _CORNERS]
            return _stacked(columns, _labels(features, prefix.removesuffix("bbox/")))
        if name.endswith("objects/bbox"):  # TensorFlow Datasets
            if not _is_numbers(values) or len(values) % 4:
                return None
            top, left, bottom, right = values.reshape(-1, 4).T
            prefix = name.removesuffix("bbox")
            return _stacked([left, top, right, bottom], _labels(features, prefix))
    return None


def _is_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "if"


def _stacked(columns: list[Any], labels: list[str]) -> tuple[Any, list[str]] | None:
    numbers = [column for column in columns if _is_numbers(column)]
    if len(numbers) < 4 or len({len(column) for column in numbers}) > 1:
        return None
    return np.stack(numbers, axis=1).astype(float), labels


def _labels(features: Mapping[str, Any], prefix: str) -> list[str]:
    for name in _LABELS:
        values = features.get(prefix + name)
        if values is not None and len(values):
            return [
                escaped(v.decode("utf-8", "replace"), 40) if isinstance(v, bytes) else str(v)
                for v in values
            ]
    return []
