"""TFRecord files and tf.train.Example messages without TensorFlow, at the speed of memory.

    import tfwire as tfw

    with tfw.TFRecordWriter("pets.tfrecord") as writer:
        writer.write_columns({"label": [0, 1], "name": ["cat", "dog"]})

    parser = tfw.Parser({
        "label": tfw.FixedLenFeature([], tfw.int64),
        "name": tfw.FixedLenFeature([], tfw.string),
    })
    for batch in parser.parse_file("pets.tfrecord", batch_size=1024):
        print(batch["label"], batch["name"])

Names are imported on first use, so that ``import tfwire`` and the command line start at once.
"""

from importlib import import_module
from typing import Any

from tfwire._version import __version__ as __version__

# Every public name and the module that defines it; __init__.pyi tells type checkers the same.
_EXPORTS = {
    "errors": ["DataLossError", "Error", "ParseError", "TfwireWarning"],
    "checksum": ["crc32c"],
    "records": [
        "RecordPosition",
        "RecordIterator",
        "SkippedRegion",
        "SkippedRegions",
        "TFRecordOptions",
        "TFRecordWriter",
        "TornTail",
        "follow_records",
        "read_records",
        "write_records",
    ],
    "example": [
        "bytes_feature",
        "decode_example",
        "decode_examples",
        "decode_sequence_example",
        "encode_example",
        "encode_columns",
        "encode_examples",
        "encode_sequence_example",
        "float_feature",
        "int64_feature",
    ],
    "features": [
        "FixedLenFeature",
        "FixedLenSequenceFeature",
        "RaggedFeature",
        "SparseFeature",
        "VarLenFeature",
        "float32",
        "int64",
        "string",
    ],
    "columns": ["BytesColumn", "RaggedTensor", "SparseTensor"],
    "parsing": [
        "Parser",
        "SequenceParser",
        "parse_example",
        "parse_sequence_example",
        "parse_single_example",
        "parse_single_sequence_example",
    ],
    "tensors": ["decode_raw", "parse_tensor", "serialize_tensor"],
    "json_format": ["decode_json_example", "example_to_json"],
    "inference": ["InferredSchema", "infer_schema"],
    "schema_files": ["read_schema", "write_schema"],
    "dataset": ["Dataset", "DatasetIterator", "TFRecordDataset"],
    "index": ["RecordIndex", "TFRecordFile", "TFRecordFiles"],
    "sharding": ["ShardedWriter"],
    "repair": ["FlippedBit", "FlippedBits", "RepairReport", "repair_file"],
    "receipts": ["Receipt"],
    "verification": ["FileReport", "verify_file"],
}
_MODULES = ["checksum", "train"]
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"tfwire.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"tfwire.{name}")
    else:
        raise AttributeError(f"module 'tfwire' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
