"""ThreadLoader: a DataLoader whose workers are threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import data

from tfwire._interface.messages import as_device, check_callable, integer, numbered_device
from tfwire._interface.pipelines import Workers
from tfwire.torch._blocks import Packing
from tfwire.torch._devices import CopyStream, OnCpu, OnCuda
from tfwire.torch._drawing import Drawing, ForBatch, Position, checked_state, new_state
from tfwire.torch._worker_batches import Items, collate

if TYPE_CHECKING:
    from tfwire.typing import Value


class ThreadLoader(data.DataLoader):
    """A DataLoader of torch with threads of this process instead of worker processes.

    Nothing is copied between processes. tfwire reads and parses without Python's lock, so threads
    work side by side; functions in Python, and datasets of other libraries, often wait for it. The
    batches are those of a DataLoader, in the same order; after ``torch.manual_seed`` also shuffled.

    Args:
        dataset: A map-style dataset, often a TFRecordMapDataset, whose ``__getitems__`` or
            ``__getitem__`` the threads call at the same time; or an iterable one, of which one
            thread at a time takes elements. A TFRecordIterableDataset parses in the threads.
        batch_size, shuffle, sampler, batch_sampler, drop_last, pin_memory, generator: As for
            DataLoader.
        num_threads: How many threads make batches.
        collate_fn: As for DataLoader, called by the threads.
        prefetch_factor: Batches per thread that are made ahead.
        device: Where batches lie: each is one block, and its tensors are views of it. "cpu", or
            "cuda", a number or a torch.device of CUDA: then a stream of its own copies a batch from
            pinned memory, which is used again, while the ones before it are computed. "cuda" is the
            current device when a pass begins. Strings that are lists stay as they are. None:
            batches are as ``collate_fn`` leaves them; with its default, ``pin_memory`` makes each
            one pinned block.
        device_fn: With a device: a function of every batch on it, called by the threads, and on
            CUDA within that stream: ``lambda batch: {**batch, "x": batch["x"].half()}``, or
            ``batch["image"].div(255).to(memory_format=torch.channels_last)``.

    Raises:
        ValueError: ``num_threads`` or ``prefetch_factor`` is below 1; there is no such device; it
            is one of CUDA, and ``pin_memory`` is True; ``device_fn`` without a device; others as of
            DataLoader.

    Example:
        >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
        >>> dataset = TFRecordMapDataset("rows.tfrecord", features)
        >>> for batch in ThreadLoader(dataset, batch_size=2, shuffle=True, num_threads=2):
        ...     print(batch["x"].shape)
        torch.Size([2, 8])
        torch.Size([2, 8])
    """

    def __init__(
        self,
        dataset: data.Dataset[object],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[object] | None = None,
        batch_sampler: Iterable[object] | None = None,
        *,
        num_threads: int = 2,
        collate_fn: Callable[..., object] = collate,
        prefetch_factor: int = 2,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: torch.Generator | None = None,
        device: str | int | torch.device | None = None,
        device_fn: Callable[..., object] | None = None,
    ) -> None:
        self.device = as_device(device)
        self.device_fn = device_fn
        if device_fn is not None:
            check_callable("device_fn", device_fn)
            if self.device is None:
                raise ValueError("device_fn needs a device")
        if pin_memory and self.device is not None and self.device.type == "cuda":
            raise ValueError("pin_memory is for batches of the CPU, found device='cuda'")
        self.num_threads = integer("num_threads", num_threads, 1)
        self._ahead = self.num_threads * integer("prefetch_factor", prefetch_factor, 1)
        self._state = new_state()  # where the next pass begins
        self._position: Position | None = None  # of the last one
        self._copies: dict[torch.device, CopyStream] = {}
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            collate_fn=collate_fn,
            pin_memory=pin_memory,
            drop_last=drop_last,
            generator=generator,
        )

    def __iter__(self) -> Iterator[Value]:
        state, self._state = self._state, new_state()
        batches = _LoadedBatches(self, state)
        self._position = batches.position
        return batches

    def state_dict(self) -> dict[str, object]:
        """The position of the last pass, after the batches that it has handed over.

        Returns:
            A dict of JSON's types for ``load_state_dict``. Of a TFRecordIterableDataset it has the
            place in the files, as of :meth:`tfwire.DatasetIterator.state_dict`; by number, the
            states of the generators of the loader and its samplers. Samplers with other random
            numbers must give the same again, as those with ``set_epoch`` do for the same epoch.
            Other iterables begin again, and the batches before are dropped. After the last batch
            it is the end of this pass: the pass that goes on from there has no batches, and the
            one after it is the next epoch.

        Raises:
            ValueError: The stream reads from something that cannot be read again.

        Example:
            >>> features = {"x": tfw.FixedLenFeature([8], tfw.float32)}
            >>> dataset = TFRecordMapDataset("rows.tfrecord", features)
            >>> loader = ThreadLoader(dataset, batch_size=2, shuffle=True)
            >>> first = next(iter(loader))
            >>> state = loader.state_dict()
            >>> resumed = ThreadLoader(dataset, batch_size=2, shuffle=True)
            >>> resumed.load_state_dict(state)
            >>> [batch["x"].shape for batch in resumed]
            [torch.Size([2, 8])]
        """
        return deepcopy(self._state if self._position is None else self._position.state())

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Has the next pass continue from a state of another loader over the same dataset, with the
        same arguments that decide what is in batches. The pass after it is the next epoch.

        Args:
            state: What ``state_dict`` returned; it may have been saved as JSON.

        Raises:
            TypeError, ValueError: It is not a state; when the pass begins, it is of other files, of
                another length, ``batch_size`` or ``drop_last``, or of another ``set_epoch`` of the
                sampler or of a dataset with a seed; in the pass, that has too few batches.
        """
        self._state = deepcopy(checked_state(state))
        self._position = None


class _LoadedBatches(Iterator[Any]):
    """One pass of a ThreadLoader."""

    def __init__(self, loader: ThreadLoader, state: dict[str, Any]) -> None:
        self._ended = False
        place = _place_of(loader)
        # Batches of a parser go into their blocks at once, if nobody looks at them before.
        packs = place is not None and loader.collate_fn is collate
        drawing = Drawing(loader, state, packs)
        self.position = drawing.position
        making = _Making(loader, place, packs)
        self._receive = _same if place is None else place.receive
        self._workers = Workers(drawing.draw, making, loader.num_threads, loader._ahead, owner=self)

    def __next__(self) -> Value:
        if not self._ended:
            try:
                batch = self._workers.next()
                if batch is not _FINISHED:
                    received = self._receive(batch)
                    self.position.hand_over()
                    return received
            except BaseException:
                self._ended = True
                raise
            self._ended = True
        raise StopIteration


_FINISHED = object()


class _Making:
    """Makes a batch, in any thread.

    Args:
        loader: Whose batches they are.
        place: What puts them on their device, if there is one.
        packs: They may be FormedRows before.
    """

    def __init__(self, loader: ThreadLoader, place: OnCpu | OnCuda | None, packs: bool) -> None:
        self._dataset: Any = loader.dataset
        self._collate: Any = loader.collate_fn
        self._by_number = not isinstance(loader.dataset, data.IterableDataset)
        self._in_batches = loader.batch_sampler is not None or loader.batch_size is not None
        self._packs = packs
        self._finish = self._collated if place is None else place.make
        self._pins = loader.pin_memory and torch.cuda.is_available()

    def __call__(self, drawn: ForBatch) -> Value:
        if drawn.last:
            return _FINISHED
        return self._finish(self._items(drawn.content) if self._by_number else drawn.content)

    def _collated(self, content: Any) -> Value:
        batch = self._collate(content)
        return data._utils.pin_memory.pin_memory(batch) if self._pins else batch

    def _items(self, numbers: Any) -> Any:
        if not self._in_batches:
            return self._dataset[numbers]
        if callable(getattr(self._dataset, "__getitems__", None)):
            items = self._dataset.__getitems__(numbers)
            return items.rows() if self._packs and isinstance(items, Items) else items
        return [self._dataset[number] for number in numbers]


def _same(batch: Any) -> Any:
    return batch


def _place_of(loader: ThreadLoader) -> OnCpu | OnCuda | None:
    """What puts the batches of a pass into blocks, and on their device; None: they stay as they
    are, as those of a ``collate_fn`` of the user's that are to be pinned."""
    device, pins = loader.device, loader.pin_memory and torch.cuda.is_available()
    if device is None and not (pins and loader.collate_fn is collate):
        return None
    packing = Packing(loader.collate_fn)
    if device is None or device.type == "cpu":
        return OnCpu(packing, pins, loader.device_fn)
    device = numbered_device(device)
    if device not in loader._copies:
        loader._copies[device] = CopyStream(device, loader.num_threads)
    return OnCuda(loader._copies[device], packing, loader.device_fn)
