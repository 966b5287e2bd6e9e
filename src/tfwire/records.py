"""TFRecord files: reading and writing records of bytes."""

from __future__ import annotations

from typing import Any

from tfwire._compression import TFRecordOptions

__all__ = ["TFRecordOptions", "read_records"]


def read_records(paths: Any, compression_type: Any = "auto", **kw: Any) -> Any:
    """Records of files, as bytes."""
    from tfwire._core import ffi
    from tfwire._streams import BatchReader

    with BatchReader(paths, compression_type, **kw) as reader:
        while (batch := reader.next()) is not None:
            spans = batch.spans[0 : batch.count]
            for span in spans:
                yield ffi.buffer(batch.data + span.offset, span.length)[:]
