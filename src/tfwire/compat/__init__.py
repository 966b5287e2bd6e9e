"""``import tfwire.compat as tf``: the TensorFlow names that code around TFRecords uses.

Messages, writers, record iterators, parsing, tensors as bytes, and datasets with ``map``, ``take``
and the like run with only the import line changed; what comes out has ``numpy()``. What lies
outside a codec (graphs, sessions, Keras, training) raises an AttributeError that names the
replacement. docs/porting.md has the table of every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import tfwire as _tfw
from tfwire import train as _train
from tfwire._version import __version__ as __version__
from tfwire.compat._columns import RaggedTensor, SparseTensor
from tfwire.compat._data import (
    Dataset,
    DatasetWriter as _DatasetWriter,
    TensorSpec,
    TFRecordDataset,
)
from tfwire.compat._dtypes import (
    bool,
    complex64,
    complex128,
    double,
    float16,
    float64,
    half,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tfwire.compat._functions import py_function
from tfwire.compat._images import (
    decode_image,
    decode_jpeg,
    decode_png,
    resize_with_crop_or_pad,
)
from tfwire.compat._missing import Namespace as _Namespace, missing as _missing
from tfwire.compat._ops import cast, constant, convert_to_tensor, reshape, stack
from tfwire.compat._parsing import (
    decode_json_example,
    decode_raw,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
    parse_tensor,
    serialize_tensor,
)
from tfwire.compat._tensor import Tensor
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
    "bool",
    "cast",
    "compat",
    "complex64",
    "complex128",
    "constant",
    "convert_to_tensor",
    "data",
    "decode_json_example",
    "decode_raw",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "image",
    "int8",
    "int16",
    "int32",
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
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

pack = stack  # its name before TensorFlow 1.0


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
