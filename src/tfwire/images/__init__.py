"""Stored images to arrays, one or a column of them, and arrays to one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tfwire._base.aliases import Array, ImageLibrary, Value
from tfwire._base.arguments import boolean, integer
from tfwire._examples.column_types import Messages
from tfwire.images._columns import (
    check_options as check_options,
    column_of,
    decode_column,
    decode_one,
    fastest_library as fastest_library,
)
from tfwire.images._pillow import JpegOptions as JpegOptions, decode_with as decode_with

__all__ = ["crop_or_pad", "decode"]

Pixels = TypeVar("Pixels", bound=np.generic)


@overload
def decode(
    contents: bytes,
    channels: Literal[0, 1, 3, 4] = 0,
    *,
    frames: bool = False,
    size: int | Sequence[int] | None = None,
    num_threads: int = 1,
    library: ImageLibrary | None = None,
    device: None = None,
) -> npt.NDArray[np.uint8]: ...
@overload
def decode(
    contents: Messages,
    channels: Literal[0, 1, 3, 4] = 0,
    *,
    frames: Literal[False] = False,
    size: int | Sequence[int] | None = None,
    num_threads: int = 1,
    library: ImageLibrary | None = None,
    device: None = None,
) -> Array: ...
@overload
def decode(
    contents: bytes | Messages,
    channels: Literal[0, 1, 3, 4] = 0,
    *,
    frames: Literal[False] = False,
    size: int | Sequence[int] | None = None,
    num_threads: int = 1,
    library: ImageLibrary | None = None,
    device: object,
) -> Value: ...
def decode(
    contents: bytes | Messages,
    channels: Literal[0, 1, 3, 4] = 0,
    *,
    frames: bool = False,
    size: int | Sequence[int] | None = None,
    num_threads: int = 1,
    library: ImageLibrary | None = None,
    device: object = None,
) -> Value:
    """Decodes an image, or a column of them, to pixels.

    Libraries decode, and pixels are theirs. PNG, GIF and BMP give TensorFlow's values; JPEG gives
    those of TensorFlow's ``dct_method="INTEGER_ACCURATE"``, which differ by a few from its default.
    16-bit values are cut to their upper 8 bits, as in TensorFlow. JPEGs of four inks become RGB.
    The orientation that a camera wrote (EXIF) is left alone, as in TensorFlow.

    Args:
        contents: The bytes of a JPEG, PNG, GIF or BMP file, or a list, an object array or a
            BytesColumn of such.
        channels: 1 (grey), 3 (RGB) or 4 (RGBA) converts the image. 0 keeps the channels of the
            file, which may also be 2 (PNG: grey with alpha).
        frames: Give all frames of a GIF or WebP file, along a first dimension; of one image, in its
            own size.
        size: The height and width to resize to, or one number for both, by antialiased bilinear
            interpolation, whatever the proportions of the image are. None: as it is.
        num_threads: How many threads decode a column. The libraries release Python's lock.
        library: "torchvision" decodes JPEGs, and "pillow" all else, or all. None: torchvision for
            the JPEGs of a column where it is installed, which imports torch; else Pillow. Pixels of
            both are the same, and at most 1 apart once resized.
        device: The device of torch, such as "cuda", that decodes the JPEGs of a column, all in one
            call of nvJPEG, resizes, and gets the result. What it cannot decode comes from
            the CPU. nvJPEG rounds in its own way.

    Returns:
        A uint8 array ``(height, width, channels)``, or ``(frames, height, width, channels)``. Of a
        column an array with its shape first, ``(n, height, width, channels)``; if images have
        several shapes, an object array of arrays. With ``device`` a tensor of the same shape
        (``permute(0, 3, 1, 2)`` costs nothing), or a list of tensors.

    Raises:
        ImportError: Pillow is not installed (``pip install 'tfwire[images]'``), or a library that
            was asked for.
        TypeError: ``contents`` is not bytes-like, or an image of a column is not.
        ValueError: Another number of channels, a size that is not positive, bytes that are no
            image, or an image that is truncated or damaged, has more than 178,956,970 pixels (twice
            ``PIL.Image.MAX_IMAGE_PIXELS``; up to there it is decoded without a warning), or frames
            of more than 1 GiB that are also more than 256 times the bytes of the file. Of a column,
            it is a ParseError with the number of the image as ``record_index``.

    Example:
        >>> file = "47494638376101000100800000ffffff0000002c00000000010001000002024401003b"
        >>> white = bytes.fromhex(file)  # a GIF of one pixel
        >>> decode(white).tolist(), decode([white, white], channels=1, size=8).shape
        ([[[255, 255, 255]]], (2, 8, 8, 1))
    """
    frames = boolean("frames", frames)
    wanted = check_options(size, channels, library, device)
    num_threads = integer("num_threads", num_threads, 1)
    column = column_of(contents)
    if frames:
        if column is not None or wanted is not None or device is not None:
            raise ValueError("frames=True is for one image, in its own size, decoded by Pillow")
        return decode_with(contents, channels, frames, None)
    if column is None:
        return decode_one(contents, channels, wanted, library, device)
    return decode_column(*column, channels, wanted, num_threads, library, device)


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
