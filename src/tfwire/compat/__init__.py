"""``import tfwire.compat as tf``: the TensorFlow names that code around TFRecords uses.

Messages, writers, record iterators, parsing, tensors as bytes, and datasets with ``map``, ``take``
and the like run with only the import line changed; what comes out has ``numpy()``. What lies
outside a codec (graphs, sessions, Keras, training) raises an AttributeError that names the
replacement. docs/porting.md has the table of every call.
"""

from __future__ import annotations

import os as _os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

import tfwire as _tfw
from tfwire import dataset as _dataset, images as _images, train as _train
from tfwire._datasets.structure import map_structure as _map_structure
from tfwire._version import __version__ as __version__
from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._eager import (
    Tensor,
    cast,
    constant,
    convert_to_tensor,
    numpy_dtype as _numpy_dtype,
    py_function,
    reshape,
    stack,
    to_numpy,
)
from tfwire.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    float32,
    int64,
    string,
)

__all__ = [
    "Dataset",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RaggedTensor",
    "SparseFeature",
    "SparseTensor",
    "TFRecordDataset",
    "Tensor",
    "TensorSpec",
    "VarLenFeature",
    "cast",
    "compat",
    "constant",
    "convert_to_tensor",
    "data",
    "decode_json_example",
    "decode_raw",
    "float32",
    "image",
    "int64",
    "io",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "py_function",
    "python_io",
    "reshape",
    "serialize_tensor",
    "sparse",
    "stack",
    "string",
    "train",
]

# ---- Dtypes -----------------------------------------------------------------------------------

int8, int16, int32 = (np.dtype(name) for name in ("int8", "int16", "int32"))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float64 = np.dtype("float16"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
bool = np.dtype("bool")  # the name TensorFlow gives it
half, double = float16, float64


class TensorSpec(SimpleNamespace):
    """A shape and a dtype, as ``output_signature`` takes them."""

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        super().__init__(shape=shape, dtype=dtype, name=name)


pack = stack  # its name before TensorFlow 1.0


# ---- Parsing ----------------------------------------------------------------------------------


def _wrap(leaf: Any) -> Any:
    """A result of the parser as tensors."""
    if isinstance(leaf, dict):
        return {key: _wrap(item) for key, item in leaf.items()}
    if isinstance(leaf, _tfw.SparseTensor):
        return SparseTensor(*leaf)
    if isinstance(leaf, _tfw.RaggedTensor):
        return RaggedTensor(leaf)
    if isinstance(leaf, (SparseTensor, RaggedTensor)):
        return leaf
    if isinstance(leaf, tuple):
        return tuple(_wrap(item) for item in leaf)
    return Tensor(leaf)


def _wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return _wrap(function(*args, **kwargs))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


parse_example = _wrapping(_tfw.parse_example)
parse_single_example = _wrapping(_tfw.parse_single_example)
parse_sequence_example = _wrapping(_tfw.parse_sequence_example)
parse_single_sequence_example = _wrapping(_tfw.parse_single_sequence_example)
serialize_tensor = _wrapping(lambda tensor, name=None: _tfw.serialize_tensor(to_numpy(tensor)))
parse_tensor = _wrapping(
    lambda serialized, out_type, name=None: _tfw.parse_tensor(to_numpy(serialized), out_type)
)
decode_raw = _wrapping(_tfw.decode_raw)
decode_json_example = _wrapping(_tfw.decode_json_example)


# ---- Images, as far as Pillow goes ------------------------------------------------------------


def decode_image(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """An encoded image as uint8 (height, width, channels); see :func:`tfwire.images.decode`."""
    return Tensor(_images.decode(to_numpy(contents), channels))


decode_jpeg = decode_png = decode_image


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """The middle of an image, or the image in the middle of zeros."""
    return Tensor(_images.crop_or_pad(np.asarray(to_numpy(image)), target_height, target_width))


# ---- Datasets ---------------------------------------------------------------------------------


class Dataset(_dataset.Dataset):
    """A dataset whose elements are tensors; see :class:`tfwire.dataset.Dataset`."""

    _show = staticmethod(_wrap)

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
            types = _map_structure(lambda spec: spec.dtype, output_signature)

        def convert(element: Any, dtype: Any) -> Any:
            if isinstance(dtype, (tuple, list)):
                return tuple(convert(e, t) for e, t in zip(element, dtype, strict=True))
            if isinstance(dtype, dict):
                return {key: convert(element[key], dtype[key]) for key in dtype}
            return to_numpy(element, _numpy_dtype(dtype))

        def generate(*arguments: Any) -> Any:
            for element in generator(*arguments):
                yield element if types is None else convert(element, types)

        return super().from_generator(generate, args=args)

    def __getattr__(self, name: str) -> Any:
        raise _missing(f"data.Dataset.{name}")

    def with_options(self, options: Any) -> Any:
        """Options steer TensorFlow's runtime; here they change nothing."""
        return self


class TFRecordDataset(Dataset, _dataset.TFRecordDataset):
    """The records of files, as string tensors; see :class:`tfwire.dataset.TFRecordDataset`."""

    _further = Dataset


class _DatasetWriter:
    """tf.data.experimental.TFRecordWriter: writes a whole dataset of strings."""

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self.filename = to_numpy(filename)
        self.compression_type = compression_type

    def write(self, dataset: Any) -> None:
        path = _os.fsdecode(self.filename)
        _tfw.write_records(path, dataset.as_numpy_iterator(), self.compression_type)


# ---- Namespaces -------------------------------------------------------------------------------

_OUTSIDE = {
    "Session": "everything runs at once; call functions and use what they return",
    "InteractiveSession": "everything runs at once; call functions and use what they return",
    "placeholder": "pass numpy arrays",
    "Graph": "everything runs at once",
    "TFRecordReader": "tf.data.TFRecordDataset(paths), or tfwire.read_records(paths)",
    "keras": "Keras itself; feed it numpy batches of tfwire.Parser(...).parse_file(...)",
    "contrib": "the library that took the part over",
    "global_variables_initializer": "nothing; there are no variables",
    "local_variables_initializer": "nothing; there are no variables",
    "group": "nothing; everything runs at once",
    "function": "nothing; drop the decorator, everything runs as Python",
    "train.string_input_producer": "tf.data.TFRecordDataset(paths).repeat(num_epochs)",
    "train.batch": "dataset.batch(batch_size)",
    "train.shuffle_batch": "dataset.shuffle(capacity).batch(batch_size)",
    "train.Coordinator": "nothing; iterate over the dataset",
    "train.start_queue_runners": "nothing; iterate over the dataset",
    "data.experimental.save": "tf.io.TFRecordWriter, or tfwire.write_records",
    "data.experimental.load": "tf.data.TFRecordDataset, or tfwire.read_records",
    "data.Dataset.cache": "list(dataset), or the file itself",
    "data.Dataset.interleave": "TFRecordDataset(paths, num_parallel_reads=n)",
    "data.Dataset.padded_batch": "dataset.batch(n), then a FixedLenSequenceFeature",
    "data.Dataset.make_one_shot_iterator": "iter(dataset)",
    "io.read_file": "open(path, 'rb').read()",
    "io.gfile": "open() and os, or fsspec",
    "gfile": "open() and os, or fsspec",
}


class _Namespace(SimpleNamespace):
    """Names under ``tf.``; a name that is not here says what to use instead."""

    def __init__(self, path: str, **names: Any) -> None:
        super().__init__(**names)
        self.__dict__["_path"] = path

    def __getattr__(self, name: str) -> Any:
        raise _missing(f"{self.__dict__.get('_path', '?')}.{name}")


def _missing(name: str) -> AttributeError:
    replacement = _OUTSIDE.get(name)
    if replacement is None:
        return AttributeError(
            f"tf.{name} is not part of tfwire.compat, which has the names around TFRecord files "
            "and Examples; see docs/porting.md"
        )
    return AttributeError(f"tf.{name} lies outside a codec; instead: {replacement}")


def __getattr__(name: str) -> Any:
    raise _missing(name)


class TFRecordCompressionType:
    """The names of TensorFlow 1 for compression."""

    NONE = ""
    GZIP = "GZIP"
    ZLIB = "ZLIB"


TFRecordWriter = _tfw.TFRecordWriter
TFRecordOptions = _tfw.TFRecordOptions
tf_record_iterator = _tfw.tf_record_iterator

_RECORDS: Mapping[str, Any] = {
    "TFRecordWriter": TFRecordWriter,
    "TFRecordOptions": TFRecordOptions,
    "TFRecordCompressionType": TFRecordCompressionType,
    "tf_record_iterator": tf_record_iterator,
}

io = _Namespace(
    "io",
    **_RECORDS,
    FixedLenFeature=FixedLenFeature,
    FixedLenSequenceFeature=FixedLenSequenceFeature,
    RaggedFeature=RaggedFeature,
    SparseFeature=SparseFeature,
    VarLenFeature=VarLenFeature,
    parse_example=parse_example,
    parse_single_example=parse_single_example,
    parse_sequence_example=parse_sequence_example,
    parse_single_sequence_example=parse_single_sequence_example,
    serialize_tensor=serialize_tensor,
    parse_tensor=parse_tensor,
    decode_raw=decode_raw,
    decode_json_example=decode_json_example,
    decode_jpeg=decode_jpeg,
    decode_png=decode_png,
    decode_image=decode_image,
)
python_io = _Namespace("python_io", **_RECORDS)
train = _Namespace(
    "train", **{name: getattr(_train, name) for name in dir(_train) if name[0].isupper()}
)
image = _Namespace(
    "image",
    decode_jpeg=decode_jpeg,
    decode_png=decode_png,
    decode_image=decode_image,
    resize_with_crop_or_pad=resize_with_crop_or_pad,
    resize_image_with_crop_or_pad=resize_with_crop_or_pad,
)
sparse = _Namespace(
    "sparse",
    SparseTensor=SparseTensor,
    to_dense=lambda sp_input, default_value=None, validate_indices=True, name=None: Tensor(
        SparseTensor(*sp_input).plain.to_dense(default_value)
    ),
)
data = _Namespace(
    "data",
    Dataset=Dataset,
    TFRecordDataset=TFRecordDataset,
    Options=lambda: _Namespace("data.Options()", autotune=SimpleNamespace()),
    AUTOTUNE=-1,
    experimental=_Namespace("data.experimental", TFRecordWriter=_DatasetWriter, AUTOTUNE=-1),
)
dtypes = _Namespace("dtypes", int64=int64, float32=float32, string=string)


def executing_eagerly() -> Any:
    """True: everything runs at once."""
    return True


def enable_eager_execution() -> None:
    """Nothing to do: everything runs at once."""


class _Version1(_Namespace):
    """tf.compat.v1: the same names."""

    def __getattr__(self, name: str) -> Any:
        return globals()[name] if name in globals() else __getattr__(name)


compat = _Namespace("compat", v1=_Version1("compat.v1"))
