"""Batches: collate, and how a worker process hands one over as a single block of memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.utils import data

from tfwire import RaggedTensor, SparseTensor
from tfwire.torch._tensors import (
    RaggedTensors,
    StringList,
    StringTensor,
    as_tensors,
    nested_tensor,
    splits_of,
)

if TYPE_CHECKING:
    from tfwire._interface.pipelines import PackedRows
    from tfwire.typing import Value

# ---- Collating --------------------------------------------------------------------------------


class Item(dict[str, Any]):
    """A parsed record of a map-style dataset.

    Attributes:
        ragged: The keys whose tensors are rows of a RaggedTensor.
        nested: Whether batches have nested tensors for them.
    """

    ragged: frozenset[Any] = frozenset()
    nested = False


class Items(Sequence[Any]):
    """Items of a map-style dataset that can be had as one batch."""

    @abstractmethod
    def columns(self) -> Value:
        """The batch."""

    @abstractmethod
    def rows(self) -> Value:
        """The batch, or FormedRows of it."""


class FormedRows(NamedTuple):
    """A batch that is to be put into a block.

    Attributes:
        rows: The batch.
        form: How the results that are not packed become tensors.
    """

    rows: PackedRows
    form: dict[str, Any]


def collate(items: object) -> Value:
    """For ``collate_fn=`` of a DataLoader: makes a batch of items, and leaves a batch as it is.

    torch's own function walks through every list, so that a batch of strings takes five to ten
    times as long; and it knows nothing of SparseTensors and RaggedTensors. Importing tfwire.torch
    teaches these to ``torch.utils.data.default_collate``, too.

    Args:
        items: What DataLoader passes: a list of items or, with ``batch_size=None``, a batch.

    Returns:
        The batch: tensors stacked along a new first axis, strings in lists. A SparseTensor or
        RaggedTensor of items is one of the batch.

    Raises:
        ValueError: Items of a TFRecordMapDataset have different keys, or tensors of different
            shapes. Other items: as of ``default_collate``.

    Example:
        >>> items = [{"x": torch.ones(2), "name": b"a"}, {"x": torch.zeros(2), "name": b"b"}]
        >>> batch = collate(items)
        >>> batch["x"].shape, batch["name"]
        (torch.Size([2, 2]), [b'a', b'b'])
    """
    if isinstance(items, Items):
        return handed_over(items.columns())
    if not isinstance(items, list) or not items or isinstance(items[0], (bytes, str, list)):
        return items  # a batch; or strings
    return handed_over(data.default_collate(items))


def _collate_items(items: Any, *, collate_fn_map: Any = None) -> Any:
    """What ``default_collate`` calls for items of a map-style dataset."""
    if isinstance(items, Items):
        return handed_over(items.columns())
    first = items[0]
    if any(item.keys() != first.keys() for item in items):
        raise ValueError("items of one batch have different keys")
    return {key: _stacked(key, [item[key] for item in items], first) for key in first}


def _stacked(key: Any, values: list[Any], item: Item) -> Any:
    if isinstance(values[0], (bytes, str, list)) and key not in item.ragged:
        return values
    if key not in item.ragged:
        try:
            return data.default_collate(values)
        except RuntimeError as error:
            raise ValueError(f"{key}: the items of a batch differ: {error}") from error
    rows = _stack_ragged(values)
    flat = isinstance(rows.values, torch.Tensor)
    return nested_tensor(rows.values, rows.row_splits) if item.nested and flat else rows


def _stack_sparse(tensors: Any, *, collate_fn_map: Any = None) -> SparseTensor:
    tensors = list(map(as_tensors, tensors))
    counts = torch.tensor([len(tensor.indices) for tensor in tensors])
    numbers = torch.repeat_interleave(torch.arange(len(tensors)), counts)
    indices = torch.cat([tensor.indices for tensor in tensors])
    sizes = torch.stack([tensor.dense_shape for tensor in tensors]).amax(0)
    return SparseTensor(
        torch.cat([numbers[:, None], indices], 1),
        _joined([tensor.values for tensor in tensors]),
        torch.cat([torch.tensor([len(tensors)]), sizes]),
    )


def _stack_ragged(values: Any, *, collate_fn_map: Any = None) -> RaggedTensors:
    """Rows of different lengths, or RaggedTensors, as rows of one RaggedTensor."""
    lengths = torch.tensor([len(value) for value in values])
    return RaggedTensors(_joined(values), splits_of(lengths))


def _stack_strings(columns: Any, *, collate_fn_map: Any = None) -> StringTensor:
    lengths = [column.lengths for column in columns]
    return StringTensor(torch.cat([c.values for c in columns]), torch.stack(lengths))


def _stack_string_lists(lists: Any, *, collate_fn_map: Any = None) -> list[list[Any]]:
    if any(strings.of_batch for strings in lists):
        raise ValueError(
            "the elements of the dataset are batches, and batches with strings cannot be collated "
            "again: pass batch_size=None to the DataLoader"
        )
    return list(map(list, lists))


def _joined(values: Sequence[Any]) -> Any:
    """Values one after the other along their first axis."""
    first = values[0]
    if isinstance(first, list):
        return list(chain.from_iterable(values))
    if isinstance(first, np.ndarray):
        return np.concatenate(values)
    if isinstance(first, StringTensor):
        lengths = torch.cat([value.lengths for value in values])
        return StringTensor(torch.cat([value.values for value in values]), lengths)
    if isinstance(first, RaggedTensor):
        tensors = list(map(as_tensors, values))
        inner = [t.values[int(t.row_splits[0]) : int(t.row_splits[-1])] for t in tensors]
        lengths = torch.cat([t.row_lengths() for t in tensors])
        return RaggedTensors(_joined(inner), splits_of(lengths))
    return torch.cat([torch.as_tensor(value) for value in values])


# The extension point in the documentation of default_collate.
data._utils.collate.default_collate_fn_map.update(
    {
        Item: _collate_items,
        SparseTensor: _stack_sparse,
        RaggedTensor: _stack_ragged,
        RaggedTensors: _stack_ragged,
        StringTensor: _stack_strings,
        StringList: _stack_string_lists,
    }
)


# ---- Handing over -----------------------------------------------------------------------------
# torch's workers send every tensor through shared memory of its own, which takes some 200 us. These
# send all tensors of a batch in one block: through the pipe, or through shared memory if it is
# large.

# Arrays make the tensors: most methods of a tensor let go of Python's lock, and wait to get it back
# for the threads that serve torch's queues.

_LARGE_BLOCK = 1 << 19  # bytes; from here on shared memory is faster
_ALIGNMENT = 16
_SENT_DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128),
)
_ARRAY_DTYPES = [torch.empty(0, dtype=dtype).numpy().dtype for dtype in _SENT_DTYPES]
_BLOCK_DTYPES = {*_SENT_DTYPES, torch.bfloat16}
_DTYPE_NUMBERS = {dtype: code for code, dtype in enumerate(_SENT_DTYPES)}


def handed_over(batch: Any) -> Any:
    """In a worker process: the same batch, but pickled in one block."""
    if data.get_worker_info() is not None:
        if type(batch) is dict:
            return _SentDict(batch)
        if type(batch) is tuple:
            return _SentTuple(batch)
    return batch


class _SentDict(dict[Any, Any]):
    """A dict that arrives as one."""

    def __copy__(self) -> _SentDict:
        return _SentDict(self)

    def __reduce__(self) -> Any:
        return _packed(dict(self))


class _SentTuple(tuple[Any, ...]):
    """A tuple that arrives as one."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _packed(tuple(self))


def _packed(batch: Any) -> tuple[Any, tuple[Any, Any]]:
    """How pickle makes a batch again: a function and its arguments, which are the block and, as
    tuples that pickle at once, the structure of the batch."""
    pieces: list[Any] = []
    structure = _stripped(batch, pieces)
    size = sum(map(len, pieces))
    if size < _LARGE_BLOCK:
        return _unpacked, (b"".join(pieces), structure)
    block = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))
    memory, at = memoryview(block.numpy()), 0
    for piece in pieces:
        memory[at : at + len(piece)] = piece
        at += len(piece)
    return _unpacked, (block, structure)


def _stripped(value: Any, pieces: list[Any]) -> tuple[Any, ...]:
    """A value without its tensors, whose bytes are added to the pieces of a block."""
    if type(value) is torch.Tensor and value.dtype in _DTYPE_NUMBERS and _is_plain(value):
        array = np.ascontiguousarray(value.numpy())
        pieces.append(array.reshape(-1).view(np.uint8).data)
        if rest := -array.nbytes % _ALIGNMENT:
            pieces.append(bytes(rest))
        return "tensor", _DTYPE_NUMBERS[value.dtype], tuple(value.shape)
    if type(value) is dict:
        return "dict", tuple(value), [_stripped(part, pieces) for part in value.values()]
    for kind, (cls, parts_of, _) in _STRUCTURES.items():
        if type(value) is cls:
            return kind, [_stripped(part, pieces) for part in parts_of(value)]
    if isinstance(value, torch.Tensor) and value.is_nested and value.layout is torch.jagged:
        return "nested", [_stripped(part, pieces) for part in (value.values(), value.offsets())]
    return "other", value


def _is_plain(tensor: torch.Tensor) -> bool:
    strided = tensor.layout is torch.strided and not tensor.is_nested
    return strided and tensor.device.type == "cpu" and not tensor.requires_grad


def _unpacked(block: bytes | torch.Tensor, structure: Any) -> Any:
    buffer = bytearray(block) if isinstance(block, bytes) else block.numpy()
    return _filled(structure, _Block(buffer))


class _Block:
    """A block whose tensors are taken one after the other."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self._at = 0

    def take(self, code: int, shape: tuple[int, ...]) -> torch.Tensor:
        array: np.ndarray[Any, Any] = np.ndarray(shape, _ARRAY_DTYPES[code], self._buffer, self._at)
        self._at += array.nbytes + -array.nbytes % _ALIGNMENT
        return torch.from_numpy(array)


def _filled(structure: Any, block: _Block) -> Any:
    """What was stripped, with tensors of a block."""
    kind = structure[0]
    if kind == "tensor":
        return block.take(*structure[1:])
    if kind == "other":
        return structure[1]
    parts: Iterator[Any] = (_filled(part, block) for part in structure[-1])
    if kind == "dict":
        return dict(zip(structure[1], parts, strict=True))
    return nested_tensor(*parts) if kind == "nested" else _STRUCTURES[kind][2](parts)


# The parts of structures, and how these are made again.
_STRUCTURES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "tuple": (tuple, iter, tuple),
    "sparse": (SparseTensor, iter, lambda parts: SparseTensor(*parts)),
    "ragged": (
        RaggedTensors,
        lambda ragged: (ragged.values, ragged.row_splits),
        lambda parts: RaggedTensors(*parts),
    ),
    "strings": (
        StringTensor,
        lambda strings: (strings.values, strings.lengths),
        lambda parts: StringTensor._trusted(*parts),
    ),
}


def with_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure, with what a function makes of its tensors and of everything else that
    has a method ``to``, always in the same order."""
    if isinstance(value, torch.Tensor) and value.is_nested and value.layout is torch.jagged:
        return nested_tensor(*(change(part) for part in (value.values(), value.offsets())))
    if isinstance(value, dict):
        found = {key: with_tensors(part, change) for key, part in value.items()}
        return found if type(value) is dict else _updated(value, found)
    for cls, parts_of, made in _STRUCTURES.values():
        if type(value) is cls:
            return made(with_tensors(part, change) for part in parts_of(value))
    if isinstance(value, (tuple, list)):
        if isinstance(value, list) and value and isinstance(value[0], (bytes, str)):
            return value  # strings of a batch
        parts = [with_tensors(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return change(value) if hasattr(value, "to") else value


def tensors_of(value: Any) -> list[Any]:
    """What ``with_tensors`` calls its function with."""
    found: list[Any] = []

    def note(each: Any) -> Any:
        found.append(each)
        return each

    with_tensors(value, note)
    return found


def _updated(value: dict[Any, Any], found: dict[Any, Any]) -> Any:
    copied = copy(value)
    copied.update(found)
    return copied


def can_be_in_a_block(value: Any) -> bool:
    """Whether a tensor is plain memory of the CPU, without a history of its own."""
    return type(value) is torch.Tensor and value.dtype in _BLOCK_DTYPES and _is_plain(value)
