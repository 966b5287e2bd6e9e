"""The types that public signatures share. Type checkers read them; nothing imports them at run
time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "AnyPath",
    "Array",
    "BytesAs",
    "BytesLike",
    "Compression",
    "CompressionType",
    "DTypeLike",
    "DetectedCompressionType",
    "Input",
    "Integer",
    "Number",
    "OnCorrupt",
    "OnParseError",
    "Output",
    "Record",
    "Row",
    "ShardRule",
    "Strings",
    "SupportsBuffer",
    "SupportsNumpy",
    "SupportsSerialize",
]

Array: TypeAlias = npt.NDArray[Any]

# ---- Words ----

BytesAs: TypeAlias = Literal["object", "column"]
OnCorrupt: TypeAlias = Literal["raise", "skip", "tail", "stop"]
OnParseError: TypeAlias = Literal["raise", "skip"]
ShardRule: TypeAlias = Literal["even", "drop", "pad"]


class SupportsCompressionType(Protocol):
    """TFRecordOptions, TensorFlow's too."""

    @property
    def compression_type(self) -> Any: ...


Compression: TypeAlias = Literal["", "GZIP", "ZLIB"]
# The numbers are TensorFlow's TFRecordCompressionType.
CompressionType: TypeAlias = (
    Literal["", "GZIP", "ZLIB", "gzip", "zlib", 0, 1, 2] | SupportsCompressionType | None
)
DetectedCompressionType: TypeAlias = CompressionType | Literal["auto"]

# ---- Files ----

AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class SupportsRead(Protocol):
    """A binary file object."""

    def read(self, size: int, /) -> bytes | None: ...


class SupportsReadInto(Protocol):
    """A binary file object that fills a buffer."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class SupportsWrite(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> object: ...


Input: TypeAlias = AnyPath | SupportsRead | SupportsReadInto
Output: TypeAlias = AnyPath | SupportsWrite

# ---- Values ----


class SupportsBuffer(Protocol):
    """An object that gives its memory."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class SupportsNumpy(Protocol):
    """A tensor of TensorFlow or torch."""

    def numpy(self) -> Any: ...


class SupportsSerialize(Protocol):
    """A protobuf message."""

    def SerializeToString(self) -> bytes: ...


class SupportsNumpyDType(Protocol):
    """A dtype of TensorFlow."""

    @property
    def as_numpy_dtype(self) -> Any: ...


Integer: TypeAlias = SupportsIndex
Number: TypeAlias = SupportsFloat | SupportsIndex
BytesLike: TypeAlias = bytes | bytearray | memoryview | Array | SupportsBuffer | SupportsNumpy
DTypeLike: TypeAlias = str | type[object] | np.dtype[np.generic] | SupportsNumpyDType
Row: TypeAlias = Mapping[str, object] | Mapping[bytes, object]
Record: TypeAlias = BytesLike | str | Row | SupportsSerialize
# Byte strings in lists, nested as deep as their rank.
Strings: TypeAlias = Sequence[bytes | bytearray | memoryview] | Sequence[str] | Sequence["Strings"]
