"""Images, decoded by Pillow, and their pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire import images
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import as_dtype, scalar_string, to_array, uint8
from tfwire.compat._errors import refusing_arguments
from tfwire.compat._ops import cast
from tfwire.compat._tensor import Tensor


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
    """An encoded image as uint8 (height, width, channels); a truncated one is an error.

    Args:
        fancy_upscaling: Interpolate colours that are stored in a lower resolution. It decides the
            transform of images that have such colours; see docs/differences.md.
        dct_method: The transform of other images: "INTEGER_ACCURATE"; "INTEGER_FAST" or "".

    Raises:
        InvalidArgumentError: ``dct_method`` or ``ratio`` is none of TensorFlow's.
        ValueError: ``ratio`` is not 1, or ``try_recover_truncated`` is True.
        TypeError: An argument has another type.
    """
    fancy = _typed("fancy_upscaling", fancy_upscaling, bool, True)
    method = _typed("dct_method", dct_method, (str, bytes), "")
    method = method.decode() if isinstance(method, bytes) else method
    if method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise InvalidArgumentError(
            f'dct_method must be "", "INTEGER_FAST" or "INTEGER_ACCURATE", found {method!r}'
        )
    scale = _typed("ratio", ratio, (int, np.integer), 1)
    if scale not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4 or 8, found {scale}")
    _typed("acceptable_fraction", acceptable_fraction, (int, float, np.number), 1)
    if scale != 1 or _typed("try_recover_truncated", try_recover_truncated, bool, False):
        raise ValueError("decode_jpeg: ratio and try_recover_truncated are not available in tfwire")
    options = images.JpegOptions(method != "INTEGER_ACCURATE", fancy)
    return _decode(contents, channels, uint8, False, options)


def _typed(name: str, value: Any, types: Any, default: Any) -> Any:
    """An argument that must be of some types; None means the default."""
    if value is None:
        return default
    if not isinstance(value, types):
        wanted = " or ".join(
            one.__name__ for one in (types if isinstance(types, tuple) else [types])
        )
        raise TypeError(f"`{name}` must be {wanted}, found {type(value).__name__}")
    return value


_JPEG_OPTIONS = images.JpegOptions(fast=True, fancy=True)  # TensorFlow's default


def _decode(
    contents: Any,
    channels: Any,
    dtype: Any,
    frames: bool,
    options: images.JpegOptions = _JPEG_OPTIONS,
) -> Tensor:
    if dtype != uint8:
        raise ValueError(f"images are decoded to uint8, found dtype {dtype!r}; cast the result")
    data = scalar_string(contents, "contents")
    with refusing_arguments(ValueError):
        return Tensor(images.decode_with(data, channels, frames, options))


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


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Pixels in another dtype, scaled: floats reach from 0 to 1, integers up to their largest.

    Args:
        image: Pixels.
        dtype: The dtype to convert to.
        saturate: Limit what does not fit into the dtype, instead of letting it wrap around.

    Raises:
        AttributeError: One of the dtypes is neither of integers nor of floats.
    """
    pixels, target = to_array(image), as_dtype(dtype)
    source = as_dtype(pixels.dtype)
    for what in (source, target):
        if not (what.is_integer or what.is_floating):
            raise AttributeError(f"pixels must be integers or floats, found {what!r}")
    if source == target or (source.is_floating and target.is_floating):
        return cast(pixels, target)
    if target.is_floating:
        return Tensor._of(cast(pixels, target).numpy() * target.as_numpy_dtype(1 / source.max))
    if source.is_floating:
        scaled = pixels * pixels.dtype.type(target.max + 0.5)
        return _cast_pixels(scaled, target, saturate)
    if source.max > target.max:
        return _cast_pixels(pixels // ((source.max + 1) // (target.max + 1)), target, saturate)
    factor = (target.max + 1) // (source.max + 1)
    return Tensor._of(
        _cast_pixels(pixels, target, saturate).numpy() * target.as_numpy_dtype(factor)
    )


def _cast_pixels(pixels: Any, target: Any, saturate: bool) -> Tensor:
    if saturate:
        limits = np.finfo if pixels.dtype.kind == "f" else np.iinfo
        within = limits(pixels.dtype)
        lowest = pixels.dtype.type(max(target.min, within.min))
        highest = pixels.dtype.type(min(target.max, within.max))
        if float(highest) > target.max:  # a float above an integer that it cannot hold
            highest = np.nextafter(highest, lowest)
        pixels = np.clip(pixels, lowest, highest)
    return cast(pixels, target)
