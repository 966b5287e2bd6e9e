"""Images, as far as Pillow goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire import images
from tfwire.compat._tensor import Tensor, to_numpy

__all__ = ["decode_image", "decode_jpeg", "decode_png", "resize_with_crop_or_pad"]


def decode_image(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """An encoded image as uint8 (height, width, channels); see :func:`tfwire.images.decode`."""
    return Tensor(images.decode(to_numpy(contents), channels))


decode_jpeg = decode_png = decode_image


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """The middle of an image, or the image in the middle of zeros."""
    return Tensor(images.crop_or_pad(np.asarray(to_numpy(image)), target_height, target_width))
