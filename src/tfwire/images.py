"""Stored images to arrays, and arrays to one size."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tfwire._base import system
from tfwire._base.arguments import boolean, integer
from tfwire._base.strings import as_message

__all__ = ["crop_or_pad", "decode"]

Array = np.ndarray[Any, Any]
Pixels = TypeVar("Pixels", bound=np.generic)


def crop_or_pad(image: npt.NDArray[Pixels], height: int, width: int) -> npt.NDArray[Pixels]:
    """Cuts the middle out of an image, or pads the image with zeros on all sides.

    As ``tf.image.resize_with_crop_or_pad``: if the difference is odd, the extra row or column is
    at the bottom or right.

    Args:
        image: ``(rows, columns, ...)`` of any dtype.
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        An array ``(height, width, ...)`` of the same dtype.

    Raises:
        TypeError: ``image`` is not such an array, or a size is not an integer.
        ValueError: A size is negative.

    Example:
        >>> crop_or_pad(np.ones((2, 2), int), 2, 5)
        array([[0, 1, 1, 0, 0],
               [0, 1, 1, 0, 0]])
    """
    if not isinstance(image, np.ndarray) or image.ndim < 2:
        found = f"rank {image.ndim}" if isinstance(image, np.ndarray) else type(image).__name__
        raise TypeError(f"image must be an array of rank 2 or more, found {found}")
    sizes = integer("height", height, 0), integer("width", width, 0)
    for axis, size in enumerate(sizes):
        surplus = image.shape[axis] - size
        if surplus > 0:
            image = image.take(range(surplus // 2, surplus // 2 + size), axis)
        elif surplus < 0:
            before = -surplus // 2
            padding = [(0, 0)] * image.ndim
            padding[axis] = (before, -surplus - before)
            image = np.pad(image, padding)
    return image


# Grey from red, green and blue, in 1/32768, as libpng and so TensorFlow compute it: rounded down.
_LUMA = np.array([9798, 19235, 3735], np.int64)

_PIL_MODES = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}


def decode(
    contents: bytes, channels: Literal[0, 1, 3, 4] = 0, *, frames: bool = False
) -> npt.NDArray[np.uint8]:
    """Decodes an image to pixels, by Pillow.

    PNG, GIF and BMP give TensorFlow's values; JPEG gives those of TensorFlow's
    ``dct_method="INTEGER_ACCURATE"``, which differ by a few from its default.
    16-bit values are cut to their upper 8 bits, as in TensorFlow.

    Args:
        contents: The bytes of a JPEG, PNG, GIF or BMP file.
        channels: 1 (grey), 3 (RGB) or 4 (RGBA) converts the image. 0 keeps the channels of the
            file, which may also be 2 (PNG: grey with alpha).
        frames: Give all frames of a GIF or WebP file, along a first dimension.

    Returns:
        A uint8 array ``(height, width, channels)``, or ``(frames, height, width, channels)``.

    Raises:
        TypeError: ``contents`` is not bytes-like.
        ValueError: Another number of channels, bytes that Pillow does not know, or an image that
            is truncated or damaged, has more than 178,956,970 pixels (twice
            ``PIL.Image.MAX_IMAGE_PIXELS``; up to there it is decoded without a warning), or frames
            of more than 1 GiB that are also more than 256 times the bytes of the file.
    """
    return decode_with(contents, channels, frames, None)


class JpegOptions(NamedTuple):
    """How JPEGs are decoded, as the options of ``tf.io.decode_jpeg`` say it.

    Attributes:
        fast: Use the fast, inexact transform, as TensorFlow does by default.
        fancy: Interpolate colours that are stored in a lower resolution; False repeats them.
    """

    fast: bool
    fancy: bool

    def apply(self, image: Any) -> None:
        """Sets them on an image of Pillow that is not loaded yet.

        Pillow decodes exactly and with interpolation or, as a draft, with neither. Where nothing is
        stored in a lower resolution both transforms can be had, elsewhere interpolation decides.
        """
        full = image.mode == "L" or len({layer[1:3] for layer in image.layer}) == 1
        image.decoderconfig = (1, int(self.fast if full else not self.fancy))


def decode_with(
    contents: bytes, channels: int, frames: bool, options: JpegOptions | None
) -> npt.NDArray[np.uint8]:
    """As :func:`decode`, with options for JPEGs."""
    from PIL import Image, ImageSequence

    frames = boolean("frames", frames)
    if integer("channels", channels) not in _PIL_MODES:
        raise ValueError(f"channels must be one of 0, 1, 3, 4, found {channels}")
    contents = as_message(contents, "contents")
    try:
        with _no_warning_of_size(_num_pixels(contents)):
            image = Image.open(io.BytesIO(contents))
    except (OSError, Image.DecompressionBombError) as problem:
        raise ValueError(f"{len(contents)} bytes are not an image that Pillow knows") from problem
    alpha = image.format == "PNG" and contents[_PNG_COLOUR_TYPE] == _GREY_WITH_ALPHA
    try:
        with _no_warning_of_size(image.width * image.height):
            if frames and image.format in ("GIF", "WEBP"):
                most = max(_MOST_FRAMES, _FRAMES_OF_CONTENTS * len(contents))
                return _stack(ImageSequence.Iterator(image), channels, most)
            if image.format in _JPEGS:
                if channels == 1:
                    image.draft("L", image.size)  # the luma stored in the file
                if options is not None:
                    options.apply(image)
            return _pixels(image, channels, alpha)
    # Pillow raises all of these.
    except (
        OSError,
        SyntaxError,
        ValueError,
        IndexError,
        Image.DecompressionBombError,
    ) as problem:
        raise ValueError(
            f"{image.format} image of {len(contents)} bytes is truncated or damaged, or too "
            f"large: {problem}"
        ) from problem


# Frames of more bytes than this, and than this many times those of the file, are refused.
_MOST_FRAMES = 1 << 30
_FRAMES_OF_CONTENTS = 256

_JPEGS = ("JPEG", "MPO")  # MPO: further pictures follow the first
_PNG_COLOUR_TYPE = 25  # offset of the byte
_GREY_WITH_ALPHA = 4


# ---- Large images -----------------------------------------------------------------------------

# Held while the filters of warnings, which all threads share, differ. A signal handler may decode
# an image in the middle of another, and so may a process that was forked then.
_filters = threading.RLock()


def _after_fork() -> None:
    global _filters
    _filters = threading.RLock()


system.after_fork(_after_fork)


@contextmanager
def _no_warning_of_size(pixels: int | None) -> Iterator[None]:
    """Pillow warns of images that have more than half the pixels which it refuses. Only for these
    are the filters of warnings changed: each change makes earlier warnings appear again.

    Args:
        pixels: How many the image has; None: unknown.
    """
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is None or (pixels is not None and pixels <= limit):
        yield
        return
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _num_pixels(contents: bytes) -> int | None:
    """The pixels that the header of a PNG, JPEG, GIF or BMP file declares; None if not found."""
    if contents.startswith(b"\x89PNG"):
        size = contents[16:20], contents[20:24]
    elif contents.startswith(b"\xff\xd8"):
        frame = _frame_of_jpeg(contents)
        size = frame[5:7], frame[7:9]
    elif contents.startswith(b"GIF"):
        size = contents[7:5:-1], contents[9:7:-1]
    elif contents.startswith(b"BM") and contents[14:18] == b"\x28\0\0\0":
        size = contents[21:17:-1], contents[25:21:-1]
    else:
        return None
    width, height = (int.from_bytes(part, "big") for part in size)
    return width * height if width and height else None


def _frame_of_jpeg(contents: bytes) -> bytes:
    """The beginning of the segment that holds the size; empty if there is none."""
    at = 2
    while contents[at : at + 1] == b"\xff":
        kind = contents[at + 1 : at + 2]
        if b"\xc0" <= kind <= b"\xcf" and kind not in (b"\xc4", b"\xc8", b"\xcc"):
            return contents[at : at + 9]
        at += 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
    return b""


# ---- Pixels -----------------------------------------------------------------------------------


def _stack(frames: Any, channels: int, most: int) -> Array:
    """All frames, in at most this many bytes: a frame may take only a few bytes of the file."""
    arrays: list[Array] = []
    for frame in frames:
        arrays.append(_pixels(frame, channels, False))
        if len(arrays) * arrays[0].nbytes > most:
            raise ValueError(f"its frames take more than {most} bytes")
    return np.stack(arrays)


def _pixels(image: Any, channels: int, grey_with_alpha: bool) -> Array:
    if image.mode.startswith("I"):
        return _grey_of_16_bits(image, channels)
    transparent = image.mode == "P" and "transparency" in image.info
    mode = _PIL_MODES[channels] or _pil_mode(image, transparent, grey_with_alpha)
    if mode == "RGB" and transparent:  # converted directly, Pillow warns
        return np.array(image.convert("RGBA"))[:, :, :3]
    if mode == "L" and image.format == "PNG" and image.mode in ("P", "RGB", "RGBA"):
        rgb = np.array(image.convert("RGBA"))[:, :, :3].astype(np.int64)
        grey = rgb[:, :, 0] == rgb[:, :, 1]
        grey &= rgb[:, :, 1] == rgb[:, :, 2]
        return np.where(grey, rgb[:, :, 0], rgb @ _LUMA >> 15).astype(np.uint8)[:, :, None]
    pixels = np.array(image.convert(mode), np.uint8)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _pil_mode(image: Any, transparent: bool, grey_with_alpha: bool) -> str:
    """The mode that holds the channels of the file and no others."""
    if grey_with_alpha:  # of 16 bits, Pillow opens it as RGBA
        return "LA"
    if image.mode in ("1", "L"):
        return "L"
    return "RGBA" if image.mode == "RGBA" or transparent else "RGB"


def _grey_of_16_bits(image: Any, channels: int) -> Array:
    """The upper bytes. Pillow's own conversion makes 255 of every value above 255."""
    values = np.array(image)
    grey = (values >> 8).astype(np.uint8)[:, :, None]
    if channels < 3:
        return grey
    parts = [grey] * 3
    if channels == 4:
        clear = values == image.info.get("transparency", -1)
        parts.append(np.where(clear, 0, 255).astype(np.uint8)[:, :, None])
    return np.concatenate(parts, axis=2)
