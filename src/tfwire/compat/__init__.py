"""``import tfwire.compat as tf``: the TensorFlow names that code around TFRecords uses.

Messages, writers, record iterators, parsing, tensors, files, and datasets with ``map``, ``take``
and the like run with only the import line changed; results have ``numpy()``. A missing name raises
an AttributeError that says what to use instead. docs/porting.md has the table of every call,
docs/differences.md what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tfwire as _tfw
from tfwire import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    __version__ as __version__,
    float32,
    int64,
    string,
    train as _train,
)
from tfwire.compat import v1 as _v1
from tfwire.compat._constants import (
    as_dtype,
    bfloat16,
    boolean as bool,
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
from tfwire.compat._data.dataset import Dataset, TFRecordDataset
from tfwire.compat._data.iterators import graph as _graph
from tfwire.compat._data.namespace import data
from tfwire.compat._data.specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from tfwire.compat._decoding import (
    RaggedTensor,
    SparseTensor,
    decode_json_example,
    decode_raw,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
    parse_tensor,
    serialize_tensor,
    sparse_reorder,
    sparse_to_dense as _sparse_to_dense,
    sparse_to_indicator,
    to_dense_v1 as sparse_to_dense,
)
from tfwire.compat._errors import Namespace as _Namespace, errors, missing as _missing
from tfwire.compat._graph.fifo import FIFOQueue as _FIFOQueue
from tfwire.compat._graph.graph_inputs import (
    GraphIterator as _GraphIterator,
    graph_iterator as _graph_iterator,
)
from tfwire.compat._graph.session import deferred as _deferred, deferring_all as _deferring_all
from tfwire.compat._images import (
    convert_image_dtype,
    decode_image,
    decode_jpeg,
    decode_png,
    resize_with_crop_or_pad,
)
from tfwire.compat._io import (
    TFRecordWriter,
    gfile as _gfile,
    gfile_v1 as gfile,
    matching_files,
    read_file,
    tf_record_iterator,
    write_file,
)
from tfwire.compat._math import (
    BINARY as _BINARY,
    CHECKS as _CHECKS,
    REDUCTIONS as _REDUCTIONS,
    UNARY as _UNARY,
    argmax,
    argmin,
    clip_by_value,
    cumsum,
    debugging,
)
from tfwire.compat._nest import nest
from tfwire.compat._ops import (
    boolean_mask,
    broadcast_to,
    cast,
    concat,
    constant,
    convert_to_tensor,
    ensure_shape,
    expand_dims,
    fill,
    gather,
    identity,
    one_hot,
    ones,
    ones_like,
    pad,
    range,
    rank,
    reshape,
    reverse,
    shape,
    size,
    slice,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
    where,
    zeros,
    zeros_like,
)
from tfwire.compat._py_function import (
    cond,
    control_dependencies,
    device,
    function,
    name_scope,
    numpy_function,
    py_func,
    py_function,
)
from tfwire.compat._strings import TEXT as _TEXT, as_string, strings
from tfwire.compat._tensor import Dimension, Tensor, TensorShape
from tfwire.typing import DType

__all__ = [
    "DType",
    "Dataset",
    "Dimension",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseFeature",
    "SparseTensor",
    "SparseTensorSpec",
    "TFRecordDataset",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "VarLenFeature",
    "argmax",
    "argmin",
    "as_dtype",
    "as_string",
    "bfloat16",
    "bool",
    "boolean_mask",
    "broadcast_to",
    "cast",
    "clip_by_value",
    "compat",
    "complex64",
    "complex128",
    "concat",
    "cond",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "cumsum",
    "data",
    "debugging",
    "decode_json_example",
    "decode_raw",
    "device",
    "double",
    "dtypes",
    "ensure_shape",
    "errors",
    "expand_dims",
    "fill",
    "float16",
    "float32",
    "float64",
    "function",
    "gather",
    "gfile",
    "half",
    "identity",
    "image",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "matching_files",
    "math",
    "name_scope",
    "nest",
    "newaxis",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "py_func",
    "py_function",
    "python_io",
    "queue",
    "range",
    "rank",
    "read_file",
    "reshape",
    "reverse",
    "serialize_tensor",
    "shape",
    "size",
    "slice",
    "sparse",
    "sparse_reorder",
    "sparse_to_dense",
    "sparse_to_indicator",
    "split",
    "squeeze",
    "stack",
    "string",
    "strings",
    "tile",
    "to_float",
    "to_int32",
    "to_int64",
    "train",
    "transpose",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "where",
    "write_file",
    "zeros",
    "zeros_like",
]

pack = stack  # its name before TensorFlow 1.0


# The names in TensorFlow 1.
string_join: Callable[..., Any] = strings.join
string_to_number: Callable[..., Any] = strings.to_number
string_strip: Callable[..., Any] = strings.strip
substr: Callable[..., Any] = strings.substr
regex_replace: Callable[..., Any] = strings.regex_replace
reduce_join: Callable[..., Any] = strings.reduce_join


def __getattr__(name: str) -> Any:
    if name in _v1.__all__:  # TensorFlow 1's names are here too
        return getattr(_v1, name)
    raise _missing(name)


class TFRecordCompressionType:
    """The names of TensorFlow 1 for compression."""

    NONE = ""
    GZIP = "GZIP"
    ZLIB = "ZLIB"


TFRecordOptions = _tfw.TFRecordOptions

_RECORDS: tuple[Any, ...] = (
    *(TFRecordWriter, TFRecordOptions, TFRecordCompressionType),
    tf_record_iterator,
)
_IMAGE_FORMATS: tuple[Any, ...] = (decode_jpeg, decode_png, decode_image)

io: _Namespace = _Namespace(
    "io",
    *_RECORDS,
    *_IMAGE_FORMATS,
    *(FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature),
    *(parse_example, parse_single_example, parse_sequence_example, parse_single_sequence_example),
    *(serialize_tensor, parse_tensor, decode_raw, decode_json_example),
    *(read_file, write_file, matching_files),
    gfile=_gfile,
)
python_io: _Namespace = _Namespace("python_io", *_RECORDS)
queue: _Namespace = _Namespace("queue", _FIFOQueue)
train: _Namespace = _Namespace(
    "train",
    **{name: getattr(_train, name) for name in vars(_train)["__all__"] if name[0].isupper()},
    **_v1.TRAIN,
)
image: _Namespace = _Namespace(
    "image",
    *_IMAGE_FORMATS,
    convert_image_dtype,
    resize_with_crop_or_pad,
    resize_image_with_crop_or_pad=resize_with_crop_or_pad,
)
sparse: _Namespace = _Namespace(
    "sparse",
    SparseTensor,
    reorder=sparse_reorder,
    to_dense=_sparse_to_dense,
    to_indicator=sparse_to_indicator,
)
sparse_tensor_to_dense = _sparse_to_dense
math: _Namespace = _Namespace(
    "math", *(argmax, argmin, clip_by_value, cumsum), **_BINARY, **_UNARY, **_REDUCTIONS
)
globals().update({**_BINARY, **_UNARY, **_REDUCTIONS, **_CHECKS})  # tf.add and so on
dtypes: _Namespace = _Namespace(
    "dtypes",
    DType,
    as_dtype,
    cast,
    **{name: value for name, value in list(globals().items()) if isinstance(value, DType)},
)
newaxis = None


def to_int32(x: Any, name: str | None = None) -> Tensor:
    """The values as int32."""
    return cast(x, int32)


def to_int64(x: Any, name: str | None = None) -> Tensor:
    """The values as int64."""
    return cast(x, int64)


def to_float(x: Any, name: str | None = None) -> Tensor:
    """The values as float32."""
    return cast(x, float32)


compat: _Namespace = _Namespace("compat", v1=_v1, **_TEXT)

# Set here, so that v1 need not import this package, nor datasets the graphs made of them.
_v1._COMPAT = globals()
_graph.iterator = _graph_iterator
_graph.from_structure = _GraphIterator.from_structure
SparseTensor.defer = staticmethod(_deferred)

# Calls with deferred tensors are deferred.
_deferring_all(globals())
for _names in (debugging, io, image, math, sparse, strings):
    _deferring_all(vars(_names))
