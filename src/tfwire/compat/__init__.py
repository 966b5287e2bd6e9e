"""``import tfwire.compat as tf``: the TensorFlow names that code around TFRecords uses.

Messages, writers, record iterators, parsing, tensors, files, and datasets with ``map``, ``take``
and the like run with only the import line changed; results have ``numpy()``. A missing name raises
an AttributeError that says what to use instead. docs/porting.md has the table of every call,
docs/differences.md what differs.
"""

from __future__ import annotations

import sys as _sys
from collections.abc import Callable
from typing import Any

import tfwire as _tfw
from tfwire import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    RaggedFeature as RaggedFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    __version__ as __version__,
    float32 as float32,
    int64 as int64,
    string as string,
    train as _train,
)
from tfwire.compat import v1 as _v1
from tfwire.compat._calls import (
    cond as cond,
    control_dependencies as control_dependencies,
    device as device,
    function as function,
    name_scope as name_scope,
    numpy_function as numpy_function,
    py_func as py_func,
    py_function as py_function,
)
from tfwire.compat._constants import (
    TEXT as _TEXT,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    boolean as _boolean,
    complex64 as complex64,
    complex128 as complex128,
    double as double,
    float16 as float16,
    float64 as float64,
    half as half,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from tfwire.compat._data import data as data
from tfwire.compat._data.dataset import Dataset as Dataset, graph as _graph
from tfwire.compat._data.file_datasets import TFRecordDataset as TFRecordDataset
from tfwire.compat._data.specs import (
    RaggedTensorSpec as RaggedTensorSpec,
    SparseTensorSpec as SparseTensorSpec,
    TensorSpec as TensorSpec,
)
from tfwire.compat._decoding import (
    RaggedTensor as RaggedTensor,
    SparseTensor as SparseTensor,
    decode_json_example as decode_json_example,
    decode_raw as decode_raw,
    parse_example as parse_example,
    parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
    sparse_reorder as sparse_reorder,
    sparse_to_dense as sparse_to_dense,
    sparse_to_indicator as sparse_to_indicator,
    to_dense as _to_dense,
)
from tfwire.compat._errors import Namespace as _Namespace, errors as errors, missing as _missing
from tfwire.compat._graph.fifo import FIFOQueue as _FIFOQueue
from tfwire.compat._graph.graph_inputs import (
    GraphIterator as _GraphIterator,
    graph_iterator as _graph_iterator,
)
from tfwire.compat._graph.session import deferred as _deferred, deferring_all as _deferring_all
from tfwire.compat._images import (
    convert_image_dtype as convert_image_dtype,
    decode_image as decode_image,
    decode_jpeg as decode_jpeg,
    decode_png as decode_png,
    resize_with_crop_or_pad as resize_with_crop_or_pad,
)
from tfwire.compat._io import (
    TFRecordWriter as TFRecordWriter,
    gfile as gfile,
    io_gfile as _io_gfile,
    matching_files as matching_files,
    read_file as read_file,
    tf_record_iterator as tf_record_iterator,
    write_file as write_file,
)
from tfwire.compat._math import (
    BINARY as _BINARY,
    CHECKS as _CHECKS,
    REDUCTIONS as _REDUCTIONS,
    UNARY as _UNARY,
    argmax as argmax,
    argmin as argmin,
    clip_by_value as clip_by_value,
    cumsum as cumsum,
    debugging as debugging,
)
from tfwire.compat._nest import nest as nest
from tfwire.compat._ops import (
    boolean_mask as boolean_mask,
    broadcast_to as broadcast_to,
    cast as cast,
    concat as concat,
    constant as constant,
    convert_to_tensor as convert_to_tensor,
    ensure_shape as ensure_shape,
    expand_dims as expand_dims,
    fill as fill,
    gather as gather,
    identity as identity,
    one_hot as one_hot,
    ones as ones,
    ones_like as ones_like,
    pad as pad,
    range as range,
    rank as rank,
    reshape as reshape,
    reverse as reverse,
    shape as shape,
    size as size,
    slice as slice,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from tfwire.compat._strings import as_string as as_string, strings as strings
from tfwire.compat._tensor import (
    Dimension as Dimension,
    Tensor as Tensor,
    TensorShape as TensorShape,
)
from tfwire.typing import DType as DType

bool: DType = _boolean
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
    gfile=_io_gfile,
)
python_io: _Namespace = _Namespace("python_io", *_RECORDS)
queue: _Namespace = _Namespace("queue", _FIFOQueue)
train: _Namespace = _Namespace(
    "train",
    **{name: getattr(_train, name) for name in vars(_train)["__all__"] if name[0].isupper()},
    **_v1._TRAIN,
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
    to_dense=_to_dense,
    to_indicator=sparse_to_indicator,
)
sparse_tensor_to_dense = _to_dense
math: _Namespace = _Namespace(
    "math", *(argmax, argmin, clip_by_value, cumsum), **_BINARY, **_UNARY, **_REDUCTIONS
)
dtypes: _Namespace = _Namespace(
    "dtypes",
    DType,
    as_dtype,
    cast,
    **{
        name: value
        for name, value in list(globals().items())
        if name[0] != "_" and isinstance(value, DType)
    },
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


compat: _Namespace = _Namespace("compat", v1=_v1, v2=_sys.modules[__name__], **_TEXT)

__all__ = sorted(
    {name for name in globals() if name[0] != "_"} - {"Any", "Callable", "annotations", "v1"}
)
globals().update({**_BINARY, **_UNARY, **_REDUCTIONS, **_CHECKS})  # tf.add and so on

# Set here, so that v1 need not import this package, nor datasets the graphs made of them.
_v1._COMPAT = globals()
_graph.iterator = _graph_iterator
_graph.from_structure = _GraphIterator.from_structure
SparseTensor.defer = staticmethod(_deferred)

# Calls with deferred tensors are deferred.
_deferring_all(globals())
for _names in (debugging, io, image, math, sparse, strings):
    _deferring_all(vars(_names))
