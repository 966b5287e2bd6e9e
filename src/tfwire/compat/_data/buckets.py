"""Batches of elements of similar length: ``bucket_by_sequence_length``."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from tfwire._datasets.structure import map_structure

__all__ = ["Batching", "check", "number", "open_shapes"]


def check(boundaries: Any, batch_sizes: Any) -> tuple[list[int], list[int]]:
    """The boundaries and batch sizes as ints.

    Raises:
        ValueError: Their counts do not fit, or the boundaries are not in order.
    """
    bounds, sizes = [int(b) for b in boundaries], [int(s) for s in batch_sizes]
    if len(sizes) != len(bounds) + 1:
        raise ValueError(
            f"len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1 but "
            f"got {len(sizes)} and {len(bounds)}"
        )
    if bounds != sorted(bounds) or min(sizes) < 1:
        raise ValueError("`bucket_boundaries` must be in order, and batch sizes at least 1")
    return bounds, sizes


def number(bounds: list[int], length: int) -> int:
    """The number of the bucket that a length belongs to."""
    return bisect_right(bounds, length)


def open_shapes(spec: Any) -> Any:
    """The shapes of an element's leaves."""
    return map_structure(lambda leaf: leaf.shape, spec)


class Batching(NamedTuple):
    """How the elements of a bucket become a batch."""

    bounds: list[int]
    sizes: list[int]
    padded_shapes: Any
    padding_values: Any
    pad_to_bucket_boundary: bool
    no_padding: bool
    drop_remainder: bool

    def __call__(self, bucket: int, dataset: Any) -> Any:
        size = self.sizes[bucket]
        if self.no_padding:
            return dataset.batch(size, self.drop_remainder)
        shapes = self.padded_shapes
        if self.pad_to_bucket_boundary:
            if bucket == len(self.bounds):
                raise ValueError(
                    "with pad_to_bucket_boundary, elements must be shorter than the last of "
                    "`bucket_boundaries`"
                )
            shapes = _filled(shapes, self.bounds[bucket] - 1)
        return dataset.padded_batch(size, shapes, self.padding_values, self.drop_remainder)


def _filled(shapes: Any, size: int) -> Any:
    """Shapes with a size in place of None and -1."""
    if isinstance(shapes, dict):
        return {key: _filled(shape, size) for key, shape in shapes.items()}
    if isinstance(shapes, tuple) and not all(one is None or isinstance(one, int) for one in shapes):
        return tuple(_filled(shape, size) for shape in shapes)
    sizes = shapes.numpy().tolist() if hasattr(shapes, "numpy") else shapes
    return [size if one in (None, -1) else one for one in sizes]
