"""The pictures, sounds, boxes and film strips of a record; raw pixels and masks as PNG files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire.view._budget import Allowance, Budget
from tfwire.view._html import Html, element, image, join, not_shown, shown_text, small
from tfwire.view._media import PNG_MAGIC, Media, big_endian, find_media
from tfwire.view._records import FeatureName, Record
from tfwire.view._shapes import shape_of

# Names that old and new datasets give to the sizes of raw pixels.
_HEIGHTS = ("height", "image/height", "rows", "image_height")
_WIDTHS = ("width", "image/width", "cols", "image_width")
_SHORTEST_BOX = 60  # characters
_SHORTEST_SIDE = 8  # of a picture that is stored as numbers
_RECT = ("x", "y", "width", "height")
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_LABELS = ("class/text", "class/label", "label", "label/text")


class Picture(NamedTuple):
    """A value that is an image or a sound.

    Attributes:
        number: Of the record, in its file.
        name: Of the feature; None if the record itself is the picture.
        step: In a feature list; 0 elsewhere.
        item: Number of the value.
        media: What it is.
        contents: Its bytes, as the record has them.
        shape: Of pixels that are stored raw.
        is_of_numbers: Whether each of these is a number in the record.
        in_file: The number of the file.
    """

    number: int
    name: FeatureName | None
    step: int
    item: int
    media: Media
    contents: bytes
    shape: tuple[int, int, int] | None = None
    is_of_numbers: bool = False
    in_file: int = 0

    def file(self, effort: Allowance) -> bytes:
        """The bytes of a file of the type of ``media``; masks with a color per class."""
        if self.shape is not None:
            return png_of_pixels(self.contents, self.shape)
        return colored_mask(self.contents, effort)


Source = Callable[[Picture], dict[str, str]]
"""The attributes that say where a page loads a picture; none if it should not."""


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
    for step, values in enumerate(record.steps(name) or ()):
        if len(values):
            return find_picture(record, name, step, 0)
    return None


def find_picture(record: Record, name: FeatureName, step: int, index: int) -> Picture | None:
    """A value, if it is a picture or a sound.

    Raises:
        LookupError: There is no such value.
    """
    steps = record.steps(name)
    if steps is None:
        raise LookupError("there is no such feature")
    contents = steps[step][index]
    if isinstance(steps[step], np.ndarray) and not (step or index):
        return _picture_of_numbers(record, name, steps[0])
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
    place = record.number, name, step, index
    return Picture(*place, media, contents, shape, in_file=record.file)


def _picture_of_numbers(record: Record, name: FeatureName, values: Any) -> Picture | None:
    """Numbers that plainly are pixels: of such a shape, and bytes, or from 0 to 1."""
    described = record.described.get(name.text)
    if name.is_list or described is None or len(values) < _SHORTEST_SIDE**2:
        return None
    shape = shape_of(record, name)
    if len(shape) == 2 and values.dtype.kind == "i" and -1 not in described.shape:
        shape = (*shape, 1)
    if len(shape) != 3 or shape[2] not in _COLOR_TYPES or min(shape[:2]) < _SHORTEST_SIDE:
        return None
    low, high = values.min(), values.max()
    if not 0 <= low < high <= 255:
        return None
    scale = 255 if high <= 1 and values.dtype.kind == "f" else 1
    media = Media("image/png", shape[1], shape[0])
    pixels = (values * scale).astype(np.uint8).tobytes()
    sizes = shape[0], shape[1], shape[2]
    place = record.number, name, 0, 0
    return Picture(*place, media, pixels, sizes, is_of_numbers=True, in_file=record.file)


def picture_of_payload(record: Record) -> Picture | None:
    """A record that is not an Example, if it is a picture or a sound itself."""
    media = find_media(record.payload) if record.kind == "other" else None
    if media is None:
        return None
    place = record.number, None, 0, 0
    return Picture(*place, media, record.payload, in_file=record.file)


def _size(features: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """The height or width that a record declares."""
    for name in names:
        values = features.get(name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "i" and len(values) == 1:
            return int(values[0])
    return None


def shown(picture: Picture, look: Look, record: Record | None = None, seen: int = 0) -> Html:
    """A picture as HTML; in words where it is too large.

    Args:
        picture: The picture.
        look: How.
        record: Its record, whose boxes are drawn.
        seen: Pixels of the picture whose place it takes.
    """
    media = picture.media
    found = look.source(picture) if media.is_shown(look.budget.pixels, seen) else {}
    if not found:
        return not_shown(media, len(picture.contents))
    if record is None or media.is_sound:
        return image(media, found)
    over, more = _boxes(record, picture, look)
    look.budget.html.spend(len(over))
    return join(image(media, found, over), and_more(more, "box", "boxes"))


def and_more(count: int, noun: str, nouns: str) -> Html:
    what = noun if count == 1 else nouns
    return join(" ", small(f"and {count:,} more {what}")) if count else Html()


# ---- Boxes --------------------------------------------------------------------------------------


def _boxes(record: Record, picture: Picture, look: Look) -> tuple[Html, int]:
    """The boxes of objects above an image, if the record has some, and how many more it has."""
    found = _corners(record, look.corners)
    width, height = picture.media.width, picture.media.height
    if found is None:
        return Html(), 0
    columns, labels = found
    count, room = len(columns[0]), look.budget.html.detail
    drawn = min(count, room // _SHORTEST_BOX)
    edges = np.stack([column[:drawn] for column in columns], axis=1).astype(np.float64)
    if any((column > 1.5).any() for column in columns):  # in pixels
        edges = edges / np.array([width, height, width, height], np.float64)
    shapes: list[Html] = []
    for i, (left, top, right, bottom) in enumerate(np.nan_to_num(edges).clip(0, 1) * 1000):
        numbers = (left, top, max(0, right - left), max(0, bottom - top))
        place = {key: f"{n:.1f}" for key, n in zip(_RECT, numbers, strict=True)}
        title = element("title", _label(labels[i])) if i < len(labels) else ""
        shape = element("rect", title, **place)
        room -= len(shape)
        if room < 0:
            break
        shapes.append(shape)
    if not shapes:
        return Html(), count
    whole = {"viewBox": "0 0 1000 1000", "preserveAspectRatio": "none"}
    return element("svg", shapes, **whole), count - len(shapes)


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
        values: Sequence[Any] | None = features.get(prefix + name)
        if values is not None and len(values):
            return values
    return ()


def _label(value: Any) -> Html:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return shown_text(text, 40)


# ---- Pixels that are stored raw -----------------------------------------------------------------

_COLOR_TYPES = {1: 0, 3: 2, 4: 6}  # PNG's, by the number of channels
_PALETTE = 3
_MOST_CLASSES = 32  # an image of smaller values is a mask: its classes get colors
_VOID = 255  # in masks, pixels of no known class
# The effort of looking for classes, in steps of Python: that of a line, of which some filters take
# one more for each pixel, and how many pixels take one otherwise.
_EFFORT_OF_LINE = 32
_PIXELS_AT_ONCE = 16
_MOST_CHUNKS = 1000
Row = np.ndarray[Any, np.dtype[np.uint8]]


def raw_image_shape(
    size: int, height: int | None, width: int | None
) -> tuple[int, int, int] | None:
    """The shape of pixels of one byte per channel, if as many bytes are stored."""
    if not height or not width or height < 0 or width < 0:
        return None
    channels, rest = divmod(size, height * width)
    return (height, width, channels) if rest == 0 and channels in _COLOR_TYPES else None


def png_of_pixels(pixels: bytes, shape: tuple[int, int, int]) -> bytes:
    """Pixels as a PNG file; of a mask, whose values are few and small, with a color per class."""
    height, width, channels = shape
    values = np.frombuffer(pixels, np.uint8).reshape(height, width * channels)
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each after its filter, which is 0
    lines[:, 1:] = values
    is_mask = channels == 1 and int(values.max(initial=0)) < _MOST_CLASSES
    kind = _PALETTE if is_mask else _COLOR_TYPES[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    palette = _chunk(b"PLTE", _class_colors()) if is_mask else b""
    body = _chunk(b"IDAT", zlib.compress(lines.data, 1))
    start = PNG_MAGIC + _chunk(b"IHDR", header)
    return start + palette + body + _chunk(b"IEND", b"")


def colored_mask(png: bytes, effort: Allowance) -> bytes:
    """A PNG file of 8-bit grays, or with a palette of grays, with a color per class if it is a
    mask; another file as it is.

    The pixels are not written anew: a palette in place of grays makes the image.

    Args:
        png: The file.
        effort: Of looking at its pixels. A file that takes more than there is is left as it is.
    """
    found = _gray_chunks(png)
    if found is None:
        return png
    width, height, chunks = found
    if not effort.take(height * (_EFFORT_OF_LINE + width // _PIXELS_AT_ONCE)):
        return png
    data = b"".join(data for name, data in chunks if name == b"IDAT")
    if not _is_mask(data, width, height, effort):
        return png
    header = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    head = _chunk(b"IHDR", header) + _chunk(b"PLTE", _class_colors(with_void=True))
    return PNG_MAGIC + head + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _gray_chunks(png: bytes) -> tuple[int, int, list[tuple[bytes, bytes]]] | None:
    """Width, height and chunks of a PNG file of 8-bit grays, not interlaced."""
    chunks: list[tuple[bytes, bytes]] = []
    at = len(PNG_MAGIC)
    if not png.startswith(PNG_MAGIC) or len(png) < 33 or png[24] != 8 or png[28] != 0:
        return None
    width, height = big_endian(png[16:24])
    if png[25] not in (0, _PALETTE) or not width * height:
        return None
    while at + 12 <= len(png):
        if len(chunks) == _MOST_CHUNKS:
            return None
        length = int.from_bytes(png[at : at + 4], "big")
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if name == b"tRNS" or (name == b"PLTE" and not _are_grays(data)):
            return None
        chunks.append((name, data))
        at += 12 + length
    return width, height, chunks


def _are_grays(palette: bytes) -> bool:
    """Whether the colors of a palette are the numbers of its entries, as without one."""
    entries = palette[: 3 * _MOST_CLASSES]
    return all(color == i // 3 for i, color in enumerate(entries))


def _is_mask(data: bytes, width: int, height: int, effort: Allowance) -> bool:
    """Whether all pixels are classes: small numbers, or 255 where nothing is known."""
    inflate = zlib.decompressobj()
    row = np.zeros(width, np.uint8)
    highest = 0
    try:
        lines = inflate.decompress(data, (width + 1) * height)
        for begin in range(0, len(lines), width + 1):
            line = np.frombuffer(lines, np.uint8, width, begin + 1)
            if lines[begin] in _FILTERS_BY_PIXEL and not effort.take(width):
                return False
            row = _unfiltered(lines[begin], line, row)
            classes = row[row != _VOID]
            highest = max(highest, int(classes.max(initial=0)))
            if highest >= _MOST_CLASSES:
                return False
    except (zlib.error, ValueError):
        return False
    return len(lines) == (width + 1) * height and highest > 0


def _unfiltered(kind: int, line: Row, above: Row) -> Row:
    """The pixels of a line, whose filter stored differences to its neighbors."""
    if kind == 0:
        return line
    if kind == 1:
        return np.cumsum(line, dtype=np.uint8)
    if kind == 2:
        return line + above
    predicted = _FILTERS_BY_PIXEL.get(kind)
    if predicted is None:
        raise ValueError("no such filter")
    left = corner = 0
    pixels = bytearray()
    for difference, up in zip(line.tolist(), above.tolist(), strict=True):
        left = (difference + predicted(left, up, corner)) & 0xFF
        corner = up
        pixels.append(left)
    return np.frombuffer(bytes(pixels), np.uint8)


def _average(left: int, up: int, _: int) -> int:
    return (left + up) // 2


def _paeth(left: int, up: int, corner: int) -> int:
    """The neighbor that is nearest to left + up - corner."""
    if up == corner:
        return left
    if left == corner:
        return up
    expected = left + up - corner
    return min((left, up, corner), key=lambda neighbor: abs(expected - neighbor))


_FILTERS_BY_PIXEL = {3: _average, 4: _paeth}  # the others take a line at once


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _class_colors(*, with_void: bool = False) -> bytes:
    """Of class 0 black; the next ones differ in the bits of their numbers, as PASCAL VOC's do.

    Args:
        with_void: Adds light gray for the number 255.
    """
    colors = bytearray()
    for number in range(_MOST_CLASSES):
        for channel in range(3):
            bits = [number >> (3 * level + channel) & 1 for level in range(3)]
            colors.append(sum(bit << (7 - level) for level, bit in enumerate(bits)))
    if with_void:
        colors += bytes(3 * (_VOID - _MOST_CLASSES)) + b"\xe0\xe0\xc0"
    return bytes(colors)
