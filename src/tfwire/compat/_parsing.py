"""Parsing and tensors as bytes: the functions of tfwire, whose results are tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._convert import as_array, to_numpy
from tfwire.compat._errors import DtypeError, InvalidArgumentError, refusing_arguments
from tfwire.compat._tensor import Tensor

__all__ = [
    "decode_json_example",
    "decode_raw",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "plain",
    "serialize_tensor",
    "sparse_to_dense",
    "wrap",
]


def wrap(leaf: Any) -> Any:
    """A result of the parser as tensors."""
    if type(leaf) is bytes or type(leaf) is np.ndarray:
        return Tensor._of(leaf)
    if isinstance(leaf, dict):
        return {key: wrap(item) for key, item in leaf.items()}
    if isinstance(leaf, tfw.SparseTensor):
        return SparseTensor(*leaf)
    if isinstance(leaf, tfw.RaggedTensor):
        return RaggedTensor(leaf)
    if isinstance(leaf, (SparseTensor, RaggedTensor)):
        return leaf
    if isinstance(leaf, tuple):
        return tuple(wrap(item) for item in leaf)
    return leaf if isinstance(leaf, Tensor) else Tensor._of(leaf)


def _wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with refusing_arguments(ValueError):  # TensorFlow raises either of the two
            return wrap(function(*args, **kwargs))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


parse_example = _wrapping(tfw.parse_example)
parse_single_example = _wrapping(tfw.parse_single_example)
parse_sequence_example = _wrapping(tfw.parse_sequence_example)
parse_single_sequence_example = _wrapping(tfw.parse_single_sequence_example)
decode_json_example = _wrapping(tfw.decode_json_example)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialized TensorProto; see :func:`tfwire.serialize_tensor`."""
    return Tensor._of(tfw.serialize_tensor(to_numpy(tensor)))


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of a serialized TensorProto; see :func:`tfwire.parse_tensor`."""
    with refusing_arguments():
        return Tensor._of(tfw.parse_tensor(plain(serialized), out_type))


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Byte strings as vectors of numbers; see :func:`tfwire.decode_raw`.

    Args:
        bytes: The name that TensorFlow 1 has for ``input_bytes``.
    """
    given = plain(bytes if input_bytes is None else input_bytes)
    try:
        return Tensor._of(tfw.decode_raw(given, out_type, little_endian, fixed_length))
    except (TypeError, ValueError) as error:
        raise DtypeError(str(error)) from None


def sparse_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Tensor:
    """A SparseTensor as a dense one, with the default (0 or b"") where there is no value.

    Raises:
        TypeError: Not a SparseTensor.
        InvalidArgumentError: An index outside of the dense shape, or, unless
            ``validate_indices=False``, indices that are not in order.
    """
    if not isinstance(sp_input, (SparseTensor, tfw.SparseTensor)):
        raise TypeError(f"sp_input must be a SparseTensor, got {type(sp_input).__name__}")
    sparse = SparseTensor(*sp_input).plain
    steps = np.diff(sparse.indices, axis=0)
    leading = np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1) if steps.size else steps
    if validate_indices and (leading <= 0).any():
        raise InvalidArgumentError("the indices of the SparseTensor are not in order, or repeated")
    default = None if default_value is None else as_array(default_value, sparse.dtype)[()]
    with refusing_arguments():
        return Tensor._of(sparse.to_dense(default, max_padding=None))


def plain(value: Any) -> Any:
    """The value of a tensor, anything else as it is."""
    return value.numpy() if hasattr(value, "numpy") else value
