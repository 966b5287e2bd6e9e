"""JPEGs decoded by torchvision: on the CPU one by one, on a device all in one call.

Importing this module imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate
from torchvision.io import ImageReadMode, decode_jpeg

from tfwire._base.errors import warn
from tfwire.images._pillow import Array, Size, by_pillow, is_usual_jpeg

_MODES = {0: ImageReadMode.UNCHANGED, 1: ImageReadMode.GRAY, 3: ImageReadMode.RGB}
_END_OF_JPEG = b"\xff\xd9"
# What torchvision raises of an image; since 0.29 it also warns that its decoders will go.
_REFUSALS = (RuntimeError, DeprecationWarning)


def by_torchvision(content: Any, channels: int, size: Size) -> Array:
    """An image decoded on the CPU; what torchvision does not decode as Pillow does, by Pillow."""
    if channels not in _MODES or not is_usual_jpeg(content):
        return by_pillow(content, channels, size)
    try:
        pixels = decode_jpeg(_tensor(content), mode=_MODES[channels])
    except _REFUSALS:  # Pillow says what is wrong
        return by_pillow(content, channels, size)
    pixels = _resized(pixels[None], size)[0].permute(1, 2, 0)
    return np.ascontiguousarray(pixels.numpy(), np.uint8)


def decode_on_device(
    contents: list[Any],
    channels: int,
    size: Size,
    device: Any,
    decode_others: Callable[[list[int]], list[Array]],
) -> Any:
    """Images as one tensor ``(n, height, width, channels)`` on a device, or a list of tensors.

    Args:
        contents: Images with a buffer each.
        channels, size: As for ``by_torchvision``.
        device: Decodes the JPEGs, in one call.
        decode_others: Decodes images by their numbers on the CPU.
    """
    usual = [i for i, content in enumerate(contents) if channels in _MODES and _is_whole(content)]
    found: dict[int, torch.Tensor] = {}
    if usual:
        tensors = [_tensor(contents[i]) for i in usual]
        try:
            decoded = decode_jpeg(tensors, mode=_MODES[channels], device=device)
            found = dict(zip(usual, decoded, strict=True))
        except _REFUSALS as error:
            warn(f"{len(usual)} JPEGs are decoded by the CPU: {error}")
    others = [i for i in range(len(contents)) if i not in found]
    for i, pixels in zip(others, decode_others(others), strict=True):
        found[i] = torch.from_numpy(pixels).permute(2, 0, 1).to(device)
    images = _stacked([found[i] for i in range(len(contents))], channels, size, device)
    _wait_for(torch.device(device))
    return images


def _wait_for(device: torch.device) -> None:
    """Waits until a device has finished: who gets the images may use another stream."""
    if device.type == "cuda":
        event = torch.cuda.Event(blocking=True)  # leaves the core to others
        event.record(torch.cuda.current_stream(device))
        event.synchronize()


def _is_whole(content: Any) -> bool:
    """True for a JPEG with an end: nvJPEG may give grey for what is missing."""
    return is_usual_jpeg(content) and bytes(content[-2:]) == _END_OF_JPEG


def _tensor(content: Any) -> torch.Tensor:
    """Bytes as a tensor; copied if they must not be written to, which torch could do."""
    memory = memoryview(content)
    return torch.frombuffer(bytearray(memory) if memory.readonly else memory, dtype=torch.uint8)


def _stacked(images: list[torch.Tensor], channels: int, size: Size, device: Any) -> Any:
    """Images in one size, stacked if they have one shape. Those of a shape are resized together."""
    if size is not None:
        numbers: dict[Any, list[int]] = {}
        for i, image in enumerate(images):
            numbers.setdefault(image.shape, []).append(i)
        for some in numbers.values():
            batch = _resized(torch.stack([images[i] for i in some]), size)
            for i, image in zip(some, batch, strict=True):
                images[i] = image
    if not images and size is not None and channels:
        return torch.empty((0, *size, channels), dtype=torch.uint8, device=device)
    if len({image.shape for image in images}) == 1:
        return torch.stack(images).permute(0, 2, 3, 1)
    return [image.permute(1, 2, 0) for image in images]


def _resized(images: torch.Tensor, size: Size) -> torch.Tensor:
    """Images ``(n, channels, height, width)`` of another size, as Pillow resizes them."""
    if size is None or tuple(images.shape[2:]) == size:
        return images
    whole = images.device.type == "cpu"  # which other devices do not resize
    how: dict[str, Any] = {"size": size, "mode": "bilinear", "antialias": True}
    found = interpolate(images if whole else images.float(), **how)
    return found if whole else found.round_().clamp_(0, 255).to(torch.uint8)
