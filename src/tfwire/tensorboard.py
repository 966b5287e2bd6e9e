"""What training logged for TensorBoard, as columns for a table or a plot.

Event files are record files: neither TensorBoard nor TensorFlow is needed to read them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tfwire._base.aliases import Array, DetectedCompressionType, Input, OnCorrupt, StorageOptions
from tfwire._base.errors import ParseError
from tfwire._examples.dtypes import STRING, dtype_from_number
from tfwire._examples.protobuf import message_classes, parse_message
from tfwire._examples.tensor_protos import parse_tensor
from tfwire._records.reading.damage import display_name
from tfwire._records.reading.read_records import read_records

__all__ = ["scalars"]


def scalars(
    paths: Input | Iterable[Input],
    *,
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> dict[str, list[str] | list[list[int]] | Array]:
    """The values that event files log: scalars as numbers, of all others kind and shape.

    Args:
        paths: Event files, as for read_records.
        compression_type, options, storage_options: As for read_records.
        on_corrupt: As for read_records; "tail" reads a file that is still being written.

    Returns:
        Columns with an entry for each value, in the order of the files: "tag"; "step"; "wall_time"
        in seconds since 1970; "value", a float64, NaN if it is no scalar; "kind": "scalar",
        "image", "audio", "histogram", "tensor", or the name of the plugin that shows it; and
        "shape": of a tensor its sizes, of an image height and width.

    Raises:
        DataLossError: A file is damaged.
        ParseError: A record is no event.

    Example:
        >>> event = bytes.fromhex("09000000000000f03f10052a0d0a0b0a046c6f737315" "0000003f")
        >>> _ = tfw.write_records("events.out.tfevents", [event])
        >>> found = scalars("events.out.tfevents")
        >>> found["tag"], found["step"], found["value"]
        (['loss'], array([5]), array([0.5]))
    """
    records = read_records(
        paths,
        compression_type,
        on_corrupt=on_corrupt,
        options=options,
        storage_options=storage_options,
    )
    plugins: dict[str, str] = {}  # of a tag: only its first value has it
    rows = []
    for path, number, _, record in records.with_positions():
        try:
            event = parse_message(_Event, record)
            if record and not event.ListFields():
                raise ParseError("it has other fields")
            rows += [
                (value.tag, event.step, event.wall_time, *_described(value, plugins))
                for value in event.summary.value
            ]
        except ParseError as error:
            where = f"{display_name(path)}: record {number}"
            message = f"{where} is no event of TensorBoard: {error}"
            raise ParseError(message, path=path, record_index=number, reason="malformed") from None
    tags, steps, times, values, kinds, shapes = zip(*rows, strict=True) if rows else [()] * 6
    return {
        "tag": list(tags),
        "step": np.array(steps, np.int64),
        "wall_time": np.array(times, np.float64),
        "value": np.array(values, np.float64),
        "kind": list(kinds),
        "shape": list(shapes),
    }


def _described(value: Any, plugins: dict[str, str]) -> tuple[float, str, list[int]]:
    """A value if it is a scalar, its kind, and its shape."""
    plugin = value.metadata.plugin_data.plugin_name
    if plugin:
        plugins[value.tag] = plugin
    field = value.WhichOneof("value")
    if field == "simple_value":
        return value.simple_value, "scalar", []
    if field == "image":
        return math.nan, "image", [value.image.height, value.image.width]
    if field != "tensor":
        return math.nan, field or "none", []
    tensor = parse_message(_Tensor, value.tensor)
    shape = [size.size for size in tensor.tensor_shape.dim]
    dtype = dtype_from_number(tensor.dtype)
    kind = plugins.get(value.tag, "tensor").removesuffix("s")
    if not shape and dtype is not None and dtype != STRING and dtype.kind not in "c":
        return float(parse_tensor(value.tensor, dtype)), "scalar", []
    if kind == "image" and dtype == STRING and len(shape) == 1 and shape[0] > 2:
        width, height = parse_tensor(value.tensor, dtype)[:2]
        shape = [int(height), int(width)]
    return math.nan, kind, shape


# As far as they are read here: the rest of a message is unknown fields.
_EVENT_CLASSES = message_classes(
    "tensorboard",
    {
        "Image": ["int32 height = 1", "int32 width = 2"],
        "Plugin": ["string plugin_name = 1"],
        "Metadata": ["Plugin plugin_data = 1"],
        "Size": ["int64 size = 1"],
        "Shape": ["repeated Size dim = 2"],
        "Tensor": ["int32 dtype = 1", "Shape tensor_shape = 2"],
        "Value": [
            *("string tag = 1", "Metadata metadata = 9", "oneof value: float simple_value = 2"),
            *("oneof value: Image image = 4", "oneof value: bytes histogram = 5"),
            *("oneof value: bytes audio = 6", "oneof value: bytes tensor = 8"),
        ],
        "Summary": ["repeated Value value = 1"],
        "Event": [
            *("double wall_time = 1", "int64 step = 2", "Summary summary = 5"),
            *("bytes version = 3", "bytes graph = 4", "bytes message = 6", "bytes session = 7"),
            *("bytes run = 8", "bytes meta_graph = 9", "bytes source = 10"),
        ],
    },
)
_Event, _Tensor = _EVENT_CLASSES["Event"], _EVENT_CLASSES["Tensor"]
