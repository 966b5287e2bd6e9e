"""Columns of images: which library decodes them, in threads, and what becomes of the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tfwire._base.arguments import as_device, choice, integer, wrong_type
from tfwire._base.errors import ParseError
from tfwire._base.parallel_map import ParallelMap
from tfwire._base.strings import as_buffer
from tfwire._base.text import shorten
from tfwire.images import _pillow
from tfwire.images._pillow import Array, Size

# Decodes an image to these channels and this size.
Decoder = Callable[[Any, int, Size], Array]

_MOST_PIXELS = 178_956_970  # of the size that is asked for: as Pillow has it of an image
_IMAGES_PER_TASK = 16


# ---- Arguments --------------------------------------------------------------------------------


def size_of(size: Any) -> Size:
    """The argument ``size``: a number, a height and a width, or None.

    Raises:
        TypeError: It is none of these.
        ValueError: It is not positive, or has more pixels than an image may have.
    """
    if size is None:
        return None
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ValueError(f"size must be a height and a width, found {len(size)} numbers")
        height, width = (integer("size", each, 1) for each in size)
    elif hasattr(size, "__index__"):
        height = width = integer("size", size, 1)
    else:
        raise wrong_type("size", size, "an integer, or a height and a width")
    if height * width > _MOST_PIXELS:
        raise ValueError(f"size must be of at most {_MOST_PIXELS} pixels, found {height * width}")
    return height, width


def check_options(size: Any, channels: Any, library: Any, device: Any) -> Size:
    """Checks the options of ``decode``; returns the size.

    Raises:
        ImportError: A library is missing.
        TypeError: An option is of a wrong type.
        ValueError: An option makes no sense, or the device is not there.
    """
    wanted = size_of(size)
    _pillow.check_channels(channels)
    _pillow.pillow()
    if library is not None:
        library = choice("library", library, ["torchvision", "pillow"])
    if device is not None and library == "pillow":
        found = repr(device) if isinstance(device, str) else type(device).__name__
        raise ValueError(f"device must be None with library='pillow', found {shorten(found)}")
    if device is not None:
        torchvision()
        as_device(device)
    elif library == "torchvision":
        torchvision()
    return wanted


def column_of(contents: Any) -> tuple[list[Any], tuple[int, ...]] | None:
    """The images of a column, without a copy, and its shape; None: it is one image.

    Raises:
        TypeError: It holds no strings, or may have lost the ends of some.
    """
    if hasattr(contents, "numpy"):
        contents = contents.numpy()
    if hasattr(contents, "offsets") and hasattr(contents, "data"):
        memory = memoryview(contents.data)
        return [memory[a:b] for a, b in pairwise(contents.offsets.tolist())], contents.shape
    if isinstance(contents, np.ndarray) and contents.dtype == object and contents.ndim:
        return contents.ravel().tolist(), contents.shape
    is_array = isinstance(contents, np.ndarray) and contents.dtype != object
    if is_array and (contents.dtype, contents.ndim) != (np.uint8, 1):
        if contents.dtype.kind != "S":
            raise TypeError(f"contents holds {contents.dtype.name}, not strings")
        raise TypeError(
            f"contents has dtype {contents.dtype.str!r}, which drops zero bytes at the ends of "
            "images; give an array of dtype object"
        )
    if hasattr(contents, "dense_shape") or hasattr(contents, "row_splits"):
        raise TypeError(
            f"contents must be bytes-like, found {type(contents).__name__}; parse one image of "
            "each record as FixedLenFeature([], string), and leave out those without by filter"
        )
    if isinstance(contents, (list, tuple)) and not hasattr(contents, "_fields"):
        return list(contents), (len(contents),)
    return None


# ---- The library ------------------------------------------------------------------------------


def decoder_of(library: Any, of_column: bool) -> Decoder:
    """The function that decodes an image on the CPU: of the library that is asked for, else of
    the fastest for columns, else of Pillow."""
    if library is None and of_column:
        library = fastest_library()
    if library == "torchvision":
        decode: Decoder = torchvision().by_torchvision
        return decode
    return _pillow.by_pillow


@cache
def fastest_library() -> str:
    """The name of torchvision where it is installed, else of Pillow."""
    if find_spec("torchvision") is None:
        return "pillow"
    try:
        torchvision()
    except ImportError:
        return "pillow"
    return "torchvision"


def torchvision() -> Any:
    """The module that uses torchvision. Importing it imports torch.

    Raises:
        ImportError: torchvision is not installed, or does not fit the torch that is.
    """
    try:
        from tfwire.images import _torchvision
    except (ImportError, RuntimeError) as error:  # the latter from one built for another torch
        raise ImportError(
            "library='torchvision' and device need torch and a torchvision that fits it; "
            "pip install torchvision"
        ) from error
    return _torchvision


# ---- Decoding ---------------------------------------------------------------------------------


def decode_one(content: Any, channels: Any, size: Size, library: Any, device: Any) -> Any:
    """One image."""
    content = _bytes_of(content, "contents")
    if device is not None:
        return decode_column([content], (1,), channels, size, 1, library, device)[0]
    return decoder_of(library, False)(content, channels, size)


def decode_column(
    images: list[Any],
    shape: tuple[int, ...],
    channels: Any,
    size: Size,
    num_threads: int,
    library: Any,
    device: Any,
) -> Any:
    """The images of a column, in one array if they have one shape.

    Raises:
        ParseError: An image cannot be decoded.
    """
    if device is None:
        decode = decoder_of(library, True)
        found = _each(decode, images, range(len(images)), channels, size, num_threads)
        return _joined(found, shape, channels, size)
    torch = torchvision()
    images = [_bytes_of(image, f"image {number}") for number, image in enumerate(images)]
    how: dict[str, Any] = {"channels": channels, "size": size, "num_threads": num_threads}
    others = partial(_each, torch.by_torchvision, images, **how)
    return torch.decode_on_device(images, channels, size, device, others)


def _bytes_of(image: Any, name: str) -> Any:
    """An image as bytes, or as memory of them."""
    buffer = as_buffer(image, name)
    if type(buffer) is bytes:
        return buffer
    memory = memoryview(buffer)
    return memory.cast("B") if memory.nbytes else b""


def _each(
    decode: Decoder,
    images: list[Any],
    numbers: range | list[int],
    channels: int,
    size: Size,
    num_threads: int,
) -> list[Array]:
    """Images by their numbers, decoded in threads."""

    def some(chosen: range | list[int], check: Callable[[], None]) -> list[Array]:
        found = []
        for number in chosen:
            check()
            content = _bytes_of(images[number], f"image {number}")
            try:
                found.append(decode(content, channels, size))
            except ValueError as error:
                message = f"image {number}: {error}"
                raise ParseError(message, record_index=number, reason="image") from error
        return found

    step = max(1, min(_IMAGES_PER_TASK, len(numbers) // (4 * num_threads)))
    tasks = [numbers[first : first + step] for first in range(0, len(numbers), step)]
    return list(chain.from_iterable(ParallelMap(some, tasks, num_threads)))


def _joined(found: list[Array], shape: tuple[int, ...], channels: int, size: Size) -> Array:
    if len({pixels.shape for pixels in found}) == 1:
        return np.stack(found).reshape(*shape, *found[0].shape)
    if not found and size is not None and channels:
        return np.empty((*shape, *size, channels), np.uint8)
    column = np.empty(len(found), object)
    for number, pixels in enumerate(found):
        column[number] = pixels
    return column.reshape(shape)
