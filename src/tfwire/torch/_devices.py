"""Batches on a device: blocks of memory that copies begin from, and streams that they run on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils import data

from tfwire._interface.messages import warn
from tfwire.torch._blocks import Packed, Packing
from tfwire.torch._worker_batches import tensors_of, with_tensors

_SMALLEST_BLOCK = 1 << 16


def plain_block(size: int) -> torch.Tensor:
    """Memory that is new as long as a tensor of it lives."""
    return torch.empty(size, dtype=torch.uint8)


def pinned_block(size: int) -> torch.Tensor:
    """The same in pinned memory, if there is some."""
    try:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    except RuntimeError as error:
        reason = (str(error).splitlines() or ["no reason"])[0]
        warn(f"{size} bytes cannot be pinned, so copies to the device are slower: {reason}")
        return plain_block(size)


class OnCpu:
    """Batches that are views of a block each.

    Args:
        packing: Puts them there.
        pins: The blocks, and what does not lie in them, are pinned memory.
        function: Changes batches; None: they stay as they are.
    """

    def __init__(self, packing: Packing, pins: bool, function: Callable[[Any], Any] | None) -> None:
        self._packing = packing
        self._pins = pins
        self._function = function

    def make(self, content: Any) -> Any:
        # torch uses pinned memory again when copies from it have ended.
        packed = self._packing.pack(content, pinned_block if self._pins else plain_block)
        batch = packed.on(packed.block)
        if self._pins and not packed.is_whole:
            batch = data._utils.pin_memory.pin_memory(batch)
        return batch if self._function is None else self._function(batch)

    def receive(self, batch: Any) -> Any:
        return batch


class PinnedRing:
    """Blocks of pinned memory. Each is filled, copied to a device, and filled again when that copy
    has ended; for any number of threads.

    Args:
        most: How many blocks are kept: more than threads that fill them.
        new_block: Makes them.
    """

    def __init__(self, most: int, new_block: Callable[[int], torch.Tensor]) -> None:
        self._new_block = new_block
        self._lock = threading.Lock()
        self._left = most  # blocks that may be made
        self._free: list[torch.Tensor] = []
        self._copied: deque[tuple[torch.Tensor, Any]] = deque()  # with the event after the copy

    def take(self, size: int) -> torch.Tensor:
        """A block of this size at least. It waits for the end of a copy, if none is unused."""
        event = block = None
        with self._lock:
            self._collect()
            if self._free:
                block = self._free.pop()
            elif self._left > 0 or not self._copied:
                self._left -= 1
            else:
                block, event = self._copied.popleft()
        if event is not None:
            event.synchronize()
        if block is None or len(block) < size:
            block = self._new_block(max(_SMALLEST_BLOCK, 1 << (size - 1).bit_length()))
        return block

    def _collect(self) -> None:
        for _ in range(len(self._copied)):
            block, event = self._copied.popleft()
            if event.query():
                self._free.append(block)
            else:
                self._copied.append((block, event))

    def give_back(self, block: torch.Tensor, event: Any = None) -> None:
        """A block that was taken, with the event after which it may be filled again."""
        with self._lock:
            if event is None:
                self._free.append(block)
            else:
                self._copied.append((block, event))


class _Sent(NamedTuple):
    """A batch on its way.

    Attributes:
        tensors: What it has on the device, to which the consumer's stream is told.
        event: When it is there.
        is_whole: Whether nothing of it is left on the CPU.
    """

    batch: Any
    tensors: list[torch.Tensor]
    event: Any
    is_whole: bool


class CopyStream:
    """What the passes of a loader copy to a device with: memory that was allocated for a stream
    serves that stream alone.

    Args:
        device: With its number.
        num_threads: How many threads fill blocks.
    """

    def __init__(self, device: torch.device, num_threads: int) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)
        self.ring = PinnedRing(num_threads + 2, pinned_block)


class OnCuda:
    """Batches that are views of one block on a device each, which a stream of their own copies from
    pinned memory.

    Functions of the user that make batches run on the stream that is current in the thread, as a
    rule the default one. The own stream, with the function of batches on it, waits for that one.

    Args:
        copies: The stream.
        packing, function: As for OnCpu; the function is called on that stream.
    """

    def __init__(
        self, copies: CopyStream, packing: Packing, function: Callable[[Any], Any] | None
    ) -> None:
        self._device, self._stream, self._ring = copies.device, copies.stream, copies.ring
        self._packing = packing
        self._function = function

    def make(self, content: Any) -> _Sent:
        """Puts a batch on its way."""
        with torch.cuda.device(self._device):
            packed, block = self._pack(content)
            made_on = torch.cuda.current_stream(self._device)
            with torch.cuda.stream(self._stream):
                return self._send(packed, block, made_on)

    def _pack(self, content: Any) -> tuple[Packed, torch.Tensor]:
        """A batch in a block of the ring."""
        taken: list[torch.Tensor] = []

        def take(size: int) -> torch.Tensor:
            taken.append(self._ring.take(size))
            return taken[0][:size]

        try:
            return self._packing.pack(content, take), taken[0]
        except BaseException:
            for block in taken:
                self._ring.give_back(block)
            raise

    def _send(self, packed: Packed, block: torch.Tensor, made_on: Any) -> _Sent:
        """Copies a batch, on the own stream.

        Args:
            packed: The batch.
            block: Of the ring: with an event, or nobody's any more.
            made_on: The stream by which what is on the device already may be made.
        """
        copied = torch.cuda.Event(blocking=True)  # who waits for it leaves its core to others
        copy = _copied(packed.block, self._device)
        copied.record(self._stream)
        self._ring.give_back(block, copied)
        batch, tensors, event = packed.on(copy), [copy], copied
        if not packed.is_whole:
            self._stream.wait_stream(made_on)
            tensors += self._there(batch)
            _used_by(self._stream, tensors[1:])
        if self._function is not None:
            batch = self._function(batch)
            tensors += self._there(batch)
        if self._function is not None or not packed.is_whole:
            event = torch.cuda.Event()
            event.record(self._stream)
        return _Sent(batch, tensors, event, packed.is_whole)

    def _there(self, batch: Any) -> list[torch.Tensor]:
        return [each for each in tensors_of(batch) if _is_on(each, self._device)]

    def receive(self, sent: _Sent) -> Any:
        """The batch, in the order of the caller's stream."""
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(sent.event)
        _used_by(stream, sent.tensors)
        if sent.is_whole:
            return sent.batch
        return with_tensors(
            sent.batch, lambda t: t if _is_on(t, self._device) else t.to(self._device)
        )


def _copied(block: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on a device, when the current stream has come to it."""
    copy = torch.empty(len(block), dtype=torch.uint8, device=device)
    return copy.copy_(block, non_blocking=True)


def _used_by(stream: Any, tensors: list[torch.Tensor]) -> None:
    """The memory of tensors is not used again before a stream has come to where it is now."""
    for tensor in tensors:
        tensor.record_stream(stream)


def _is_on(value: Any, device: torch.device) -> bool:
    return bool(getattr(value, "device", None) == device)
