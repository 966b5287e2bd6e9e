"""The types in the signatures of tfwire, for the annotations of programs that call it.

    from tfwire.typing import FileBatches, OnCorrupt

    def batches(path: str, on_corrupt: OnCorrupt = "raise") -> FileBatches[Batch]: ...

Most are unions, words and protocols of what an argument may be. FileBatches is what
``Parser.parse_file`` returns, FollowedRecords what ``follow_records``
returns, ParallelMap what ``verify_files`` returns, FeatureStatistics an entry of
``InferredSchema.statistics``, and DType the type of ``tfw.int64``, ``tfw.float32`` and
``tfw.string``. These classes are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfwire._base.aliases import (
    AnyFeature as AnyFeature,
    AnyPath as AnyPath,
    Array as Array,
    BinaryAs as BinaryAs,
    BytesAs as BytesAs,
    BytesLike as BytesLike,
    Compression as Compression,
    CompressionType as CompressionType,
    DataFiles as DataFiles,
    DecodedValues as DecodedValues,
    DetectedCompressionType as DetectedCompressionType,
    DTypeLike as DTypeLike,
    Input as Input,
    Integer as Integer,
    IntegerArray as IntegerArray,
    Names as Names,
    Number as Number,
    OnCorrupt as OnCorrupt,
    OnParseError as OnParseError,
    Out as Out,
    Output as Output,
    Record as Record,
    RemotePath as RemotePath,
    Row as Row,
    RowNumber as RowNumber,
    Rows as Rows,
    Shape as Shape,
    ShardRule as ShardRule,
    StorageOptions as StorageOptions,
    Strings as Strings,
    SupportsArrow as SupportsArrow,
    SupportsArrowArray as SupportsArrowArray,
    SupportsArrowStream as SupportsArrowStream,
    SupportsBuffer as SupportsBuffer,
    SupportsCompressionType as SupportsCompressionType,
    SupportsFileSystem as SupportsFileSystem,
    SupportsNumpy as SupportsNumpy,
    SupportsNumpyDType as SupportsNumpyDType,
    SupportsRead as SupportsRead,
    SupportsReadInto as SupportsReadInto,
    SupportsSerialize as SupportsSerialize,
    SupportsWrite as SupportsWrite,
    TableFeatures as TableFeatures,
    Value as Value,
)

if TYPE_CHECKING:
    from tfwire._base.parallel_map import ParallelMap as ParallelMap
    from tfwire._examples.column_types import Messages as Messages, Values as Values
    from tfwire._parsing.features import DType as DType
    from tfwire._parsing.infer import FeatureStatistics as FeatureStatistics
    from tfwire._parsing.parse_file import FileBatches as FileBatches
    from tfwire._records.reading.follow_records import FollowedRecords as FollowedRecords

# Where the classes are, for run time.
_HOMES = {
    "DType": "tfwire._parsing.features",
    "FeatureStatistics": "tfwire._parsing.infer",
    "FileBatches": "tfwire._parsing.parse_file",
    "FollowedRecords": "tfwire._records.reading.follow_records",
    "Messages": "tfwire._examples.column_types",
    "ParallelMap": "tfwire._base.parallel_map",
    "Values": "tfwire._examples.column_types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tfwire.typing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__


_NOT_TYPES = {"Any", "TYPE_CHECKING", "import_module"}
_LOADED = {name for name in globals() if not name.startswith("_")} - _NOT_TYPES
__all__ = sorted(_LOADED | {*_HOMES})
