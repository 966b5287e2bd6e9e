"""Parsing and tensors as bytes: the functions of tfwire, whose results are tensors here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tfwire as tfw
from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._tensor import Tensor, to_numpy

__all__ = [
    "decode_json_example",
    "decode_raw",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "serialize_tensor",
    "wrap",
]


def wrap(leaf: Any) -> Any:
    """A result of the parser as tensors."""
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
    return Tensor(leaf)


def _wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrap(function(*args, **kwargs))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


parse_example = _wrapping(tfw.parse_example)
parse_single_example = _wrapping(tfw.parse_single_example)
parse_sequence_example = _wrapping(tfw.parse_sequence_example)
parse_single_sequence_example = _wrapping(tfw.parse_single_sequence_example)
serialize_tensor = _wrapping(lambda tensor, name=None: tfw.serialize_tensor(to_numpy(tensor)))
parse_tensor = _wrapping(
    lambda serialized, out_type, name=None: tfw.parse_tensor(to_numpy(serialized), out_type)
)
decode_raw = _wrapping(tfw.decode_raw)
decode_json_example = _wrapping(tfw.decode_json_example)
