"""Datasets whose elements are tensors."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import tfwire as tfw
from tfwire import dataset
from tfwire._datasets.structure import map_structure
from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._convert import to_numpy
from tfwire.compat._dtypes import numpy_dtype
from tfwire.compat._missing import missing
from tfwire.compat._parsing import wrap
from tfwire.features import float32

__all__ = ["Dataset", "DatasetWriter", "TFRecordDataset", "TensorSpec"]


class TensorSpec(SimpleNamespace):
    """A shape and a dtype, as ``output_signature`` takes them."""

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        super().__init__(shape=shape, dtype=dtype, name=name)


class Dataset(dataset.Dataset):
    """A dataset whose elements are tensors; see :class:`tfwire.dataset.Dataset`."""

    _show = staticmethod(wrap)

    @staticmethod
    def _hide(leaf: Any) -> Any:
        return leaf.plain if isinstance(leaf, (SparseTensor, RaggedTensor)) else to_numpy(leaf)

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Any = None,
    ) -> Any:
        """What a function generates, converted to the types that are named."""
        types = output_types
        if output_signature is not None:
            types = map_structure(lambda spec: spec.dtype, output_signature)

        def convert(element: Any, dtype: Any) -> Any:
            if isinstance(dtype, (tuple, list)):
                return tuple(convert(e, t) for e, t in zip(element, dtype, strict=True))
            if isinstance(dtype, dict):
                return {key: convert(element[key], dtype[key]) for key in dtype}
            return to_numpy(element, numpy_dtype(dtype))

        def generate(*arguments: Any) -> Any:
            for element in generator(*arguments):
                yield element if types is None else convert(element, types)

        return super().from_generator(generate, args=args)

    def __getattr__(self, name: str) -> Any:
        raise missing(f"data.Dataset.{name}")

    def with_options(self, options: Any) -> Any:
        """Options steer TensorFlow's runtime; here they change nothing."""
        return self


class TFRecordDataset(Dataset, dataset.TFRecordDataset):
    """The records of files, as string tensors; see :class:`tfwire.dataset.TFRecordDataset`."""

    _further = Dataset


class DatasetWriter:
    """tf.data.experimental.TFRecordWriter: writes a whole dataset of strings."""

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self.filename = to_numpy(filename)
        self.compression_type = compression_type

    def write(self, dataset: Any) -> None:
        path = os.fsdecode(self.filename)
        tfw.write_records(path, dataset.as_numpy_iterator(), self.compression_type)


# ---- Namespaces -------------------------------------------------------------------------------
