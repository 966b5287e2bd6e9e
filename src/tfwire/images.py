"""What stands between stored images and batches of one size."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

__all__ = ["crop_or_pad", "decode"]

Array = np.ndarray[Any, Any]


def crop_or_pad(image: Array, height: int, width: int) -> Array:
    """The middle of an image, or the image in the middle of zeros.

    As ``tf.image.resize_with_crop_or_pad``: where the difference is odd, the extra row or column
    is at the bottom or right.

    Args:
        image: ``(rows, columns, ...)`` of any dtype.
        height: Rows of the result.
        width: Columns of the result.

    Returns:
        An array ``(height, width, ...)`` of the same dtype.

    Example:
        >>> crop_or_pad(np.ones((2, 2), int), 2, 5)
        array([[0, 1, 1, 0, 0],
               [0, 1, 1, 0, 0]])
    """
    for axis, size in enumerate((height, width)):
        surplus = image.shape[axis] - size
        if surplus > 0:
            image = image.take(range(surplus // 2, surplus // 2 + size), axis)
        elif surplus < 0:
            before = -surplus // 2
            padding = [(0, 0)] * image.ndim
            padding[axis] = (before, -surplus - before)
            image = np.pad(image, padding)
    return image


def decode(contents: bytes, channels: int = 0) -> Array:
    """An encoded image as pixels, by Pillow.

    Args:
        contents: The bytes of a JPEG, PNG, GIF or BMP file.
        channels: 0 keeps what the file has; 1 is grey, 3 RGB, 4 RGBA.

    Returns:
        A uint8 array ``(height, width, channels)``.

    Raises:
        ValueError: Another number of channels, or bytes that Pillow does not know.
    """
    from PIL import Image

    modes = {0: None, 1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise ValueError(f"channels must be one of 0, 1, 3, 4, found {channels}")
    try:
        image = Image.open(io.BytesIO(contents))
    except OSError as problem:
        raise ValueError(f"{len(contents)} bytes are not an image that Pillow knows") from problem
    mode = modes[channels] or (image.mode if image.mode in ("L", "RGB", "RGBA") else "RGB")
    pixels = np.array(image.convert(mode), np.uint8)
    return pixels if pixels.ndim == 3 else pixels[:, :, None]
