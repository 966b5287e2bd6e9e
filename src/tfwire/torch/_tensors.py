"""Arrays as tensors: as_tensors, and what torch has no tensor for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from tfwire import BytesColumn, RaggedTensor, SparseTensor
from tfwire._interface.messages import boolean, choice

if TYPE_CHECKING:
    from tfwire.typing import Value

Strings = Literal["list", "tensor"]
_TEXT = "OSUMm"  # kinds of arrays that become lists


class StringList(list[Any]):
    """Strings of an element that a loader may collate. torch transposes lists, so that string i of
    one element would come beside string i of another; these stay rows.

    Attributes:
        of_batch: True if the element is a batch.
    """

    of_batch = False

    def __copy__(self) -> list[Any]:
        return list(self)

    def __reduce__(self) -> Any:
        return list, (list(self),)


class BatchStringList(StringList):
    """Strings of a batch."""

    of_batch = True


class StringTensor:
    """Strings as one tensor of bytes and their lengths; for models that read bytes.

    ``torch.nested.nested_tensor_from_jagged(s.values, s.offsets)`` is a nested tensor of them, and
    ``torch.nn.utils.rnn.pad_sequence(s.values.split(s.lengths.tolist()), batch_first=True)`` a
    matrix with one string in each row.

    Args:
        values: uint8 tensor of shape ``(bytes,)``: the bytes of all strings.
        lengths: int64 tensor of any shape: the length of each string.

    Attributes:
        values, lengths: The same.

    Raises:
        ValueError: The lengths do not add up to the number of bytes.

    Example:
        >>> column = as_tensors(np.array([b"cat", b"", b"horse"], object), strings="tensor")
        >>> column.values.shape, column.lengths, column.to_list()
        (torch.Size([8]), tensor([3, 0, 5]), [b'cat', b'', b'horse'])
    """

    __slots__ = ("lengths", "values")

    def __init__(self, values: torch.Tensor, lengths: torch.Tensor) -> None:
        if int(lengths.sum()) != len(values):
            raise ValueError(f"lengths add up to {int(lengths.sum())}, found {len(values)} bytes")
        self.values = values
        self.lengths = lengths

    @classmethod
    def _trusted(cls, values: torch.Tensor, lengths: torch.Tensor) -> StringTensor:
        """One of tensors that fit: a look at their sums would wait for a device."""
        found = cls.__new__(cls)
        found.values, found.lengths = values, lengths
        return found

    @property
    def shape(self) -> torch.Size:
        """The shape of the lengths."""
        return self.lengths.shape

    @property
    def offsets(self) -> torch.Tensor:
        """Where each string begins in the values, in row-major order, and the end: int64."""
        return splits_of(self.lengths.reshape(-1))

    def to_list(self) -> Value:
        """The strings as bytes, in lists as deep as the rank.

        Example:
            >>> StringTensor(torch.tensor([104, 105]).byte(), torch.tensor([[2], [0]])).to_list()
            [[b'hi'], [b'']]
        """
        data, strings = self.values.cpu().numpy().tobytes(), np.empty(self.lengths.numel(), object)
        ends = list(accumulate(self.lengths.reshape(-1).tolist()))
        begins = [0, *ends[:-1]]
        strings[:] = [data[i:j] for i, j in zip(begins, ends, strict=False)]
        return strings.reshape(tuple(self.shape)).tolist()

    def pin_memory(self) -> StringTensor:
        """The same in pinned memory; a DataLoader with ``pin_memory=True`` calls it."""
        return self._trusted(self.values.pin_memory(), self.lengths.pin_memory())

    def to(self, *args: object, **kwargs: object) -> StringTensor:
        """The same on another device; arguments as for ``torch.Tensor.to``."""
        return self._trusted(self.values.to(*args, **kwargs), self.lengths.to(*args, **kwargs))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int | slice) -> torch.Tensor | StringTensor:
        """The bytes of string i, the strings of row i, or those of a slice without a step."""
        chosen = self.lengths[index]
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            if step != 1:
                raise ValueError("slices of strings have no step")
        else:
            first = range(len(self))[index]
            end = first + 1
        per_row = self.lengths[:1].numel()
        offsets = self.offsets
        begin, stop = int(offsets[first * per_row]), int(offsets[max(first, end) * per_row])
        values = self.values[begin:stop]
        return StringTensor(values, chosen) if chosen.ndim else values

    def __reduce__(self) -> Any:
        return StringTensor, (self.values, self.lengths)

    def __repr__(self) -> str:
        return f"StringTensor(shape={tuple(self.shape)}, {len(self.values)} bytes)"


class RaggedTensors(RaggedTensor):
    """A RaggedTensor of tensors, with the methods by which torch moves a batch."""

    __slots__ = ()

    def pin_memory(self) -> RaggedTensors:
        """The same in pinned memory; strings stay where they are."""
        return self._each(lambda tensor: tensor.pin_memory())

    def to(self, *args: object, **kwargs: object) -> RaggedTensors:
        """The same on another device; arguments as for ``torch.Tensor.to``."""
        return self._each(lambda tensor: tensor.to(*args, **kwargs))

    def _each(self, move: Any) -> RaggedTensors:
        values = self.values
        moved = move(values) if hasattr(values, "pin_memory") else values
        return RaggedTensors(moved, move(self.row_splits))

    def __reduce__(self) -> Any:
        return RaggedTensors, (self.values, self.row_splits)


def splits_of(lengths: torch.Tensor) -> torch.Tensor:
    """The sums of the first 0, 1, ... lengths."""
    return torch.nn.functional.pad(torch.cumsum(lengths, 0), (1, 0))


def nested_tensor(values: torch.Tensor, row_splits: torch.Tensor) -> torch.Tensor:
    """torch's nested tensor of rows.

    Raises:
        ImportError: This version of torch has none of this layout.
    """
    if not hasattr(torch.nested, "nested_tensor_from_jagged"):
        raise ImportError(f"nested=True needs torch 2.4 or newer, found {torch.__version__}")
    return torch.nested.nested_tensor_from_jagged(values, row_splits.to(torch.int64))


def check_form(strings: Any, nested: Any) -> dict[str, Any]:
    """The checked options of ``as_tensors``, and the class of lists of strings."""
    choice("strings", strings, ("list", "tensor"))
    return {"strings": strings, "nested": boolean("nested", nested), "list": list}


def as_tensors(element: object, *, strings: Strings = "list", nested: bool = False) -> Value:
    """Replaces arrays by tensors that share their memory.

    Args:
        element: An array or numpy scalar, or a dict, tuple or list of them. Values of other types
            stay as they are.
        strings: "list": arrays of strings become lists of bytes; "tensor": a StringTensor.
        nested: RaggedTensors of numbers with one level of rows become torch's nested tensors. Other
            RaggedTensors hold tensors.

    Returns:
        The same structure. Only arrays that tensors cannot share are copied: read-only ones, those
        of foreign byte order, and those with negative strides, such as ``image[:, ::-1]``.

    Raises:
        ValueError: ``strings`` is another word.
        ImportError: torch has no nested tensors of this kind.

    Example:
        >>> as_tensors({"x": np.ones(2, np.float32), "name": np.array([b"a", b"b"], object)})
        {'x': tensor([1., 1.]), 'name': [b'a', b'b']}
    """
    form = check_form(strings, nested)
    return converted(element, form)


def converted(element: Any, form: dict[str, Any]) -> Any:
    """As ``as_tensors``, with options that are checked."""
    if isinstance(element, np.ndarray):
        return _as_tensor(element, form)
    if isinstance(element, np.generic) and element.dtype.kind not in _TEXT:
        return torch.from_numpy(np.asarray(element))  # as_tensor takes ten times as long
    if isinstance(element, RaggedTensor):
        return _as_ragged(element, form)
    if isinstance(element, SparseTensor):
        return SparseTensor(*(converted(part, form) for part in element))
    if isinstance(element, Mapping):
        return {key: converted(value, form) for key, value in element.items()}
    if isinstance(element, (tuple, list)):
        items = [converted(item, form) for item in element]
        if hasattr(element, "_fields"):
            return type(element)(*items)
        of_strings = (
            type(element) is list and form["list"] is BatchStringList and _are_strings(items)
        )
        return BatchStringList(items) if of_strings else type(element)(items)
    if form["strings"] == "tensor" and isinstance(element, (bytes, BytesColumn)):
        return _as_strings(element)
    return element


def _are_strings(items: list[Any]) -> bool:
    kinds = (bytes, str, BatchStringList)
    return bool(items) and all(isinstance(item, kinds) for item in items)


def _as_tensor(array: np.ndarray[Any, Any], form: dict[str, Any]) -> Any:
    if array.dtype.kind == "O" and isinstance(next(array.flat, None), np.ndarray):
        return [converted(each, form) for each in array.tolist()]  # images of several shapes
    if array.dtype.kind in _TEXT:
        as_strings = form["strings"] == "tensor" and array.dtype.kind in "OSU"
        if as_strings:
            return _as_strings(array)
        return form["list"](array.tolist()) if array.ndim else array.tolist()
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # torch writes to any memory, and has no negative strides.
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    return torch.from_numpy(array)


def _as_strings(value: Any) -> StringTensor:
    if isinstance(value, BytesColumn):
        begin, end = int(value.offsets[0]), int(value.offsets[-1])
        lengths = np.diff(value.offsets).reshape(value.shape)
        plain = check_form("list", False)
        return StringTensor(_as_tensor(value.data[begin:end], plain), torch.from_numpy(lengths))
    array = np.asarray(value, object)
    flat: Sequence[bytes] = [
        item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()
    ]
    lengths = np.fromiter(map(len, flat), np.int64, len(flat)).reshape(array.shape)
    values = np.frombuffer(bytearray(b"".join(flat)), np.uint8)
    return StringTensor(torch.from_numpy(values), torch.from_numpy(lengths))


def _as_ragged(ragged: RaggedTensor, form: dict[str, Any]) -> Any:
    values, splits = converted(ragged.values, form), converted(ragged.row_splits, form)
    if form["nested"] and isinstance(values, torch.Tensor) and not values.is_nested:
        return nested_tensor(values, splits)
    return RaggedTensors(values, splits)
