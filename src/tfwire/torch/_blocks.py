"""Batches in one block of memory each: where tensors lie in it, and how they get there."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from tfwire._interface.pipelines import PackedRows
from tfwire.torch._tensors import converted
from tfwire.torch._worker_batches import (
    FormedRows,
    can_be_in_a_block,
    tensors_of,
    with_tensors,
)

# Bytes: what the CPU loads at once, and a multiple of what any dtype and CUDA need.
_BLOCK_ALIGNMENT = 64

# Views are not noted, which saves a quarter of their time; of some versions of torch.
_untracked: Any = getattr(torch._C, "_AutoDispatchBelowADInplaceOrView", None)

# What a tensor in a block is like: its dtype and shape.
Tensors = tuple[tuple[torch.dtype, tuple[int, ...]], ...]


class _SameShape(NamedTuple):
    """Tensors of one dtype and shape, which lie side by side: one view shows them all."""

    dtype: torch.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    at: int  # in values


class BlockLayout:
    """Where tensors lie in a block: each begins at a multiple of 64 bytes.

    Attributes:
        size: Bytes of the block, a multiple of 64.
        offsets: Of each tensor, in bytes.
    """

    def __init__(self, tensors: Tensors) -> None:
        self.size = 0
        self.offsets = [0] * len(tensors)
        self._groups: list[_SameShape] = []
        self._order = [0] * len(tensors)  # the places of the tensors in the groups' order
        alike: dict[Any, list[int]] = defaultdict(list)
        for number, each in enumerate(tensors):
            alike[each].append(number)
        place = 0
        for (dtype, shape), numbers in alike.items():
            length = math.prod(shape) * dtype.itemsize
            room = length + -length % _BLOCK_ALIGNMENT
            strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
            sizes = (len(numbers), *shape)
            in_values = (room // dtype.itemsize, *strides)
            self._groups.append(_SameShape(dtype, sizes, in_values, self.size // dtype.itemsize))
            for number in numbers:
                self.offsets[number], self._order[number] = self.size, place
                self.size += room
                place += 1

    def views(self, block: torch.Tensor) -> list[torch.Tensor]:
        """The tensors in a block of uint8 of just the size. For torch they are no views: what is
        done to one in place, with a gradient, has nothing to do with the others."""
        if _untracked is None:
            return [view.detach() for view in self._views(block)]
        with _untracked():
            return self._views(block)

    def _views(self, block: torch.Tensor) -> list[torch.Tensor]:
        whole = {torch.uint8: block}
        found: list[torch.Tensor] = []
        for dtype, sizes, strides, at in self._groups:
            values = whole.get(dtype)
            if values is None:
                values = whole[dtype] = block.view(dtype)
            found += values.as_strided(sizes, strides, values.storage_offset() + at).unbind()
        return [found[place] for place in self._order]


layout_of = lru_cache(maxsize=64)(BlockLayout)  # most batches are alike


class Packed(NamedTuple):
    """A batch whose tensors lie in one block.

    Attributes:
        block: Has them.
        others: The tensors of the tail in it.
        keys: Of the columns that lie first.
        head: Where these lie.
        tail: Where the other tensors lie, after them.
        rest: The batch without the first columns, with other tensors in place of those of the tail.
        order: All keys, if there are first columns.
        is_whole: Whether all that has to move lies in the block.
    """

    block: torch.Tensor
    others: list[torch.Tensor]
    keys: list[Any]
    head: BlockLayout
    tail: BlockLayout
    rest: Any
    order: list[Any]
    is_whole: bool

    def on(self, block: torch.Tensor) -> Any:
        """The batch as views of a block, which may be a copy of its own one."""
        rest = self.rest
        if self.others:
            own = block is self.block
            views = iter(self.others if own else self.tail.views(block[self.head.size :]))
            rest = with_tensors(rest, lambda t: next(views) if can_be_in_a_block(t) else t)
        if not self.order:
            return rest
        columns = self.head.views(block[: self.head.size] if self.tail.size else block)
        found = dict(zip(self.keys, columns, strict=True))
        if not rest:
            return found
        found.update(rest)
        return {key: found[key] for key in self.order}


class Packing:
    """Puts batches into blocks; for any number of threads.

    Args:
        collate: Makes a batch of what is no FormedRows.
    """

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate
        self._heads: dict[int, _Head] = {}  # by the number of rows

    def pack(self, batch: Any, new_block: Callable[[int], torch.Tensor]) -> Packed:
        """A batch in a block, which a function makes of the size that it needs."""
        rows, form = batch if isinstance(batch, FormedRows) else (None, {})
        if rows is None:
            head, places, batch = _NOTHING, None, self._collate(batch)
        else:
            head, places = self._head(rows)
            batch = converted(rows.others, form)
        found = tensors_of(batch) if rows is None or batch else []
        plain = list(filter(can_be_in_a_block, found))
        tail = layout_of(tuple([(tensor.dtype, tuple(tensor.shape)) for tensor in plain]))
        block = new_block(head.size + tail.size)
        if rows is not None:
            rows.pack(places, block.data_ptr(), head.size)
        others = tail.views(block[head.size :]) if plain else []
        for view, tensor in zip(others, plain, strict=True):
            view.copy_(tensor)
        keys, order = (rows.columns.dense, rows.columns.keys) if rows is not None else ([], [])
        return Packed(block, others, keys, head, tail, batch, order, len(plain) == len(found))

    def _head(self, rows: PackedRows) -> tuple[BlockLayout, Any]:
        """Where the columns lie."""
        columns, count = rows.columns, rows.num_rows
        known = self._heads.get(count)
        if known is not None and known.columns is columns:
            return known.layout, known.places
        dtypes = [torch.from_numpy(np.empty(0, dtype)).dtype for dtype in columns.dtypes]
        shapes = [(count, *shape) for shape in columns.shapes]
        layout = layout_of(tuple(zip(dtypes, shapes, strict=True)))
        places = columns.places(layout.offsets)
        self._heads[count] = _Head(columns, layout, places)
        return layout, places


class _Head(NamedTuple):
    columns: Any  # of one dataset: another one has others
    layout: BlockLayout
    places: Any


_NOTHING = BlockLayout(())
