"""The types in the signatures of tfwire, for the annotations of programs that call it.

    from tfwire.typing import FileBatches, OnCorrupt

    def batches(path: str, on_corrupt: OnCorrupt = "raise") -> FileBatches[Batch]: ...

Most are unions, words and protocols of what an argument may be. FileBatches is what
``Parser.parse_file`` returns, FollowedRecords what ``follow_records``
returns, ParallelMap what ``verify_files`` returns, FeatureStatistics an entry of
``InferredSchema.statistics``, RecordsByKey what ``TFRecordFile.by_key``
is, and DType the type of ``tfw.int64``, ``tfw.float32`` and
``tfw.string``. These classes are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfwire._base import aliases
from tfwire._base.aliases import *  # noqa: F403  # all that is defined there

if TYPE_CHECKING:
    from tfwire._base.parallel_map import ParallelMap as ParallelMap
    from tfwire._examples.column_types import Messages as Messages, Values as Values
    from tfwire._parsing.features import DType as DType
    from tfwire._parsing.infer import FeatureStatistics as FeatureStatistics
    from tfwire._parsing.parse_file import FileBatches as FileBatches
    from tfwire._records.index.records_by_key import RecordsByKey as RecordsByKey
    from tfwire._records.reading.follow_records import FollowedRecords as FollowedRecords

# Where the classes are, for run time.
_HOMES = {
    "DType": "tfwire._parsing.features",
    "FeatureStatistics": "tfwire._parsing.infer",
    "FileBatches": "tfwire._parsing.parse_file",
    "FollowedRecords": "tfwire._records.reading.follow_records",
    "Messages": "tfwire._examples.column_types",
    "ParallelMap": "tfwire._base.parallel_map",
    "RecordsByKey": "tfwire._records.index.records_by_key",
    "Values": "tfwire._examples.column_types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tfwire.typing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__


_defined = vars(aliases).items()
_PROTOCOLS = {name for name, of in _defined if getattr(of, "__module__", 0) == aliases.__name__}
__all__ = sorted({*aliases.__annotations__, *_PROTOCOLS, *_HOMES})
