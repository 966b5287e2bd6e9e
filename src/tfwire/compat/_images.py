"""tf.image, and the functions of tf.io that decode images, by Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire import images
from tfwire.compat._convert import scalar_string, to_array, uint8
from tfwire.compat._errors import refusing_arguments
from tfwire.compat._tensor import Tensor

__all__ = ["decode_image", "decode_jpeg", "decode_png", "resize_with_crop_or_pad"]


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """An encoded image as uint8 (height, width, channels), a GIF as (frames, height, width, 3).

    See :func:`tfwire.images.decode`.
    """
    return _decode(contents, channels or 0, dtype, expand_animations)


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """An encoded image as uint8 (height, width, channels)."""
    return _decode(contents, channels, dtype, False)


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """An encoded image as uint8 (height, width, channels); a truncated one is an error."""
    if ratio != 1 or try_recover_truncated:
        raise ValueError("decode_jpeg: ratio and try_recover_truncated are not available in tfwire")
    return _decode(contents, channels, uint8, False)


def _decode(contents: Any, channels: Any, dtype: Any, frames: bool) -> Tensor:
    if dtype != uint8:
        raise ValueError(f"images are decoded to uint8, found dtype {dtype!r}; cast the result")
    data = scalar_string(contents, "contents")
    with refusing_arguments(ValueError):
        return Tensor(images.decode(data, channels, frames=frames))


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The middle of an image, or the image in the middle of zeros.

    Args:
        image: ``(height, width, channels)`` or a batch ``(n, height, width, channels)``.
        target_height: Rows of the result.
        target_width: Columns of the result.

    Raises:
        ValueError: Another rank, an empty image, or a size below 1.
    """
    array = to_array(image)
    height, width = int(to_array(target_height)), int(to_array(target_width))
    if array.ndim not in (3, 4) or 0 in array.shape[-3:]:
        raise ValueError(
            "an image must have the shape (height, width, channels), or that of a batch of images, "
            f"with no size of 0, found {array.shape}"
        )
    if height < 1 or width < 1:
        raise ValueError(f"the target size must be positive, found {height} x {width}")
    if array.ndim == 3:
        return Tensor(images.crop_or_pad(array, height, width))
    pixels = images.crop_or_pad(np.moveaxis(array, 0, -1), height, width)
    return Tensor(np.ascontiguousarray(np.moveaxis(pixels, -1, 0)))
