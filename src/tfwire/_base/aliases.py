"""The types that public signatures share; ``tfwire.typing`` gives them to users. Type checkers read
them; nothing else imports them at run time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np

Value: TypeAlias = Any
"""A value whose type depends on the data: that of a feature (a scalar or an array, by its shape),
an element of a pipeline, the tensor of a message, lists as deep as their rank. A program uses it as
what it knows it to be, without casts."""

Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]
"""An array of any dtype."""
IntegerArray: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.integer[Any]]]
"""An array of integers of any width."""
RowNumber: TypeAlias = int | np.integer[Any]
"""The number of a row, counted from the end if negative."""
Rows: TypeAlias = (
    slice | Sequence[int] | IntegerArray | np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
)
"""Several rows: a slice, their numbers, or a bool for each row."""

# ---- Words ----

BytesAs: TypeAlias = Literal["object", "column"]
"""How strings are given: as bytes objects, or as a BytesColumn."""
StringType: TypeAlias = Literal["auto", "large_binary", "binary", "large_string", "string"]
"""The Arrow type of strings; "auto": text where the strings looked at are UTF-8."""
BinaryAs: TypeAlias = StringType | Mapping[str, StringType]
"""The Arrow type of strings: of all columns, or by column."""
FeatureKind: TypeAlias = Literal["int64", "float32", "string", "any"]
"""What a feature's values are written as; "any": as each of them is."""
ImageLibrary: TypeAlias = Literal["torchvision", "pillow"]
"""What decodes JPEGs; see ``tfwire.images.decode``."""
OnCorrupt: TypeAlias = Literal["raise", "skip", "tail", "stop"]
"""What to do at damage; see ``read_records``."""
OnLong: TypeAlias = Literal["raise", "split", "trim"]
"""What to do with sequences longer than their rows; see ``Dataset.pack``."""
OnParseError: TypeAlias = Literal["raise", "skip"]
"""What to do at a record that does not fit; see ``Parser.parse_file``."""
ShardRule: TypeAlias = Literal["even", "drop", "pad"]
"""How records are divided among shards; see ``Dataset.shard_source``."""


class SupportsCompressionType(Protocol):
    """TFRecordOptions, TensorFlow's too."""

    @property
    def compression_type(self) -> object: ...


Compression: TypeAlias = Literal["", "GZIP", "ZLIB"]
"""The compression that was found."""
CompressionType: TypeAlias = (
    Literal["", "GZIP", "ZLIB", "gzip", "zlib", 0, 1, 2] | SupportsCompressionType | None
)
"""A compression to use; None: none. The numbers are TensorFlow's TFRecordCompressionType."""
DetectedCompressionType: TypeAlias = CompressionType | Literal["auto"]
"""A compression, or "auto", which looks at the file."""

# ---- Files ----

AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path; where the description says so, also a URL."""


class SupportsRead(Protocol):
    """A binary file object."""

    def read(self, size: int, /) -> bytes | None: ...


class SupportsReadInto(Protocol):
    """A binary file object that fills a buffer."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class SupportsWrite(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> object: ...


class SupportsFileSystem(Protocol):
    """A path of universal_pathlib: a filesystem of fsspec, and a path in it."""

    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> str: ...


RemotePath: TypeAlias = AnyPath | SupportsFileSystem
"""A path, a URL or a path of universal_pathlib."""
Input: TypeAlias = RemotePath | SupportsRead | SupportsReadInto
"""A file to read: a path, a URL, a path of universal_pathlib or a binary file object."""
DataFiles: TypeAlias = (
    AnyPath
    | Mapping[str, AnyPath | Iterable[AnyPath]]
    | Iterable[AnyPath | Mapping[str, AnyPath | Iterable[AnyPath]]]
)
"""Paths, patterns or URLs, by split or of one."""
Output: TypeAlias = RemotePath | SupportsWrite
"""A file to write: a path, a URL, a path of universal_pathlib or a binary file object."""
StorageOptions: TypeAlias = Mapping[str, object] | None
"""fsspec's options of the filesystem of a URL."""

# ---- Values ----


class SupportsBuffer(Protocol):
    """An object that gives its memory."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class SupportsNumpy(Protocol):
    """A tensor of TensorFlow or torch."""

    def numpy(self) -> object: ...


class SupportsSerialize(Protocol):
    """A protobuf message."""

    def SerializeToString(self) -> bytes: ...


class SupportsArrowStream(Protocol):
    """A table of Arrow data, in batches."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class SupportsArrowArray(Protocol):
    """A batch of Arrow data."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...


SupportsArrow: TypeAlias = SupportsArrowStream | SupportsArrowArray
"""A table of polars, pyarrow, pandas, DuckDB or another library of Arrow data."""


class SupportsNumpyDType(Protocol):
    """A dtype of TensorFlow."""

    @property
    def as_numpy_dtype(self) -> object: ...


Integer: TypeAlias = SupportsIndex
"""An int or bool, of Python or numpy."""
Number: TypeAlias = SupportsFloat | SupportsIndex
"""A real number, of Python or numpy."""
BytesLike: TypeAlias = bytes | bytearray | memoryview | Array | SupportsBuffer | SupportsNumpy
"""Anything that holds bytes; of an array its bytes, row by row."""
DTypeLike: TypeAlias = str | type[object] | np.dtype[np.generic] | SupportsNumpyDType
"""A type of numbers or strings: a name, or a dtype of numpy, tfwire or TensorFlow."""
AnyFeature: TypeAlias = tuple[object, ...]
"""A feature object of tfwire or TensorFlow: all of them are named tuples."""
TableFeatures: TypeAlias = (
    Mapping[str, AnyFeature]
    | Mapping[bytes, AnyFeature]
    | tuple[Mapping[str, AnyFeature] | None, Mapping[str, AnyFeature] | None]
)
"""A specification, or those of contexts and of feature lists."""
Row: TypeAlias = Mapping[str, object] | Mapping[bytes, object]
"""Values by key: of one record, or columns of many."""
FeatureKinds: TypeAlias = (
    Literal["any"] | Mapping[str, FeatureKind | DTypeLike] | Mapping[bytes, FeatureKind | DTypeLike]
)
"""The kinds of features by their names, where rows differ in them; see ``encode_examples``."""
Record: TypeAlias = BytesLike | str | Row | SupportsSerialize
"""What is written as a record: its bytes, or a row or message, which is encoded."""
RecordKey: TypeAlias = str | bytes | int | np.integer[Any]
"""The key of a record; a str stands for its UTF-8."""
DecodedValues: TypeAlias = Array | list[bytes]
"""The values of a feature: int64 or float32 of rank 1, or the strings of a bytes_list."""
Shape: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
"""Sizes; a number alone is a shape of rank 1."""
Out: TypeAlias = Mapping[str, Array] | Mapping[bytes, Array]
"""Arrays to write to, by key."""
Names: TypeAlias = str | bytes | Sequence[str | bytes] | Array | SupportsNumpy | None
"""Names of messages, for errors."""
Strings: TypeAlias = Sequence["bytes | bytearray | memoryview | str | Strings"]
"""Byte strings in lists, nested as deep as their rank."""
