"""One image to pixels, by Pillow; and pixels to another size."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfwire._base import system
from tfwire._base.arguments import boolean, integer
from tfwire._base.strings import as_message

Array = np.ndarray[Any, Any]
Size = tuple[int, int] | None  # of a result; None: that of the image

# Grey from red, green and blue, in 1/32768, as libpng and so TensorFlow compute it: rounded down.
_LUMA = np.array([9798, 19235, 3735], np.int64)

_PIL_MODES = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}


def pillow() -> Any:
    """Its module Image.

    Raises:
        ImportError: It is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("images need Pillow; pip install 'tfwire[images]'") from error
    return Image


def check_channels(channels: Any) -> None:
    if integer("channels", channels) not in _PIL_MODES:
        raise ValueError(f"channels must be one of 0, 1, 3, 4, found {channels}")


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
    contents: Any, channels: int, frames: bool, options: JpegOptions | None
) -> npt.NDArray[np.uint8]:
    """As ``decode`` of one image, with options for JPEGs."""
    Image = pillow()
    from PIL import ImageSequence

    frames = boolean("frames", frames)
    check_channels(channels)
    contents = as_message(contents, "contents")
    if not contents:
        raise ValueError(
            "0 bytes are not an image: it is empty, as of a record without one; leave such records "
            "out by filter"
        )
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


def _frame_of_jpeg(contents: Any) -> bytes:
    """The beginning of the segment that holds the size; empty if there is none."""
    at = 2
    while at + 10 <= len(contents) and contents[at] == 0xFF:
        kind = contents[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return bytes(contents[at : at + 10])
        at += 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
    return b""


def is_usual_jpeg(contents: Any) -> bool:
    """True for a JPEG of 8 bits in one or three channels, of at most the pixels without which
    Pillow gives no warning: other libraries decode it alike."""
    if bytes(contents[:2]) != b"\xff\xd8" or not (frame := _frame_of_jpeg(contents)):
        return False
    height, width = (int.from_bytes(frame[at : at + 2], "big") for at in (5, 7))
    limit = pillow().MAX_IMAGE_PIXELS
    small = height * width > 0 and (limit is None or height * width <= limit)
    return small and frame[4] == 8 and frame[9] in (1, 3)


# ---- Pixels -----------------------------------------------------------------------------------


def by_pillow(content: Any, channels: int, size: Size) -> Array:
    """An image decoded by Pillow."""
    pixels = decode_with(content, channels, False, None)
    return pixels if size is None else resized(pixels, size)


def resized(pixels: Array, size: tuple[int, int]) -> Array:
    """An image of another height and width: antialiased, bilinear."""
    if pixels.shape[:2] == size:
        return pixels
    Image = pillow()
    whole = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    found = np.array(whole.resize(size[::-1], Image.Resampling.BILINEAR))
    return found.reshape(*size, pixels.shape[2])


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
