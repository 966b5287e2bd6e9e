"""Ways to read record files, tfwire's and those of other packages, for comparisons.

Each is a generator over one pass through a file that yields how many records came since it last
yielded, so that whoever measures can stop in the middle.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

import tfwire as tfw

__all__ = ["INDEX", "PARSE", "READ", "READERS", "VERIFY", "Reader", "Subject", "tensorflow"]

READ = "read records as bytes"
VERIFY = "verify every record"
INDEX = "index"
PARSE = "file to columns"

_BATCH = 1024
_AT_ONCE = 4096

Counts = Iterator[int]


class Subject(NamedTuple):
    """A file to read.

    Attributes:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        schema: The specification of its Examples or SequenceExamples; None: it holds others.
    """

    path: str
    compression: str = ""
    schema: Any = None

    @property
    def context_and_lists(self) -> tuple[Any, Any]:
        return self.schema, getattr(self.schema, "sequence_features", None)


def _counted(iterable: Iterable[Any]) -> Counts:
    iterator = iter(iterable)
    while count := sum(1 for _ in islice(iterator, _AT_ONCE)):
        yield count


# ---- tfwire -----------------------------------------------------------------------------------


def _tfwire_read(file: Subject) -> Counts:
    return _counted(tfw.read_records(file.path, file.compression))


def _tfwire_verify(file: Subject) -> Counts:
    yield tfw.verify_file(file.path, compression_type=file.compression).records


def _tfwire_index(file: Subject) -> Counts:
    yield len(tfw.RecordIndex.build(file.path, file.compression))


def _tfwire_parse(file: Subject) -> Counts:
    context, lists = file.context_and_lists
    if lists:
        parser = tfw.SequenceParser(context, lists)
        for features, steps, *_ in parser.parse_file(
            file.path, _BATCH, compression_type=file.compression
        ):
            yield _length(features or steps)
    else:
        for batch in tfw.Parser(context).parse_file(
            file.path, _BATCH, compression_type=file.compression
        ):
            yield _length(batch)


def _length(columns: dict[str, Any]) -> int:
    """Records of a batch, from any of its columns."""
    column = next(iter(columns.values()))
    return int(column.dense_shape[0]) if hasattr(column, "dense_shape") else len(column)


# ---- Other packages ---------------------------------------------------------------------------


def tensorflow() -> Any:
    """TensorFlow on one thread, and silent."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    with contextlib.suppress(RuntimeError):  # it is running already
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf


def _tensorflow_read(file: Subject) -> Counts:
    tf = tensorflow()
    return _counted(tf.compat.v1.io.tf_record_iterator(file.path, _tensorflow_options(tf, file)))


def _tensorflow_options(tf: Any, file: Subject) -> Any:
    kinds = tf.compat.v1.io.TFRecordCompressionType
    return tf.compat.v1.io.TFRecordOptions(getattr(kinds, file.compression or "NONE"))


def _tensorflow_parse(file: Subject) -> Counts:
    """Without tf.data's autotuning: with it on, the end of every iteration waits on a timer, which
    would flatter tfwire."""
    tf = tensorflow()
    options = tf.data.Options()
    options.autotune.enabled = False
    context, lists = (_tensorflow_spec(tf, features) for features in file.context_and_lists)

    def parse(records: Any) -> Any:
        if lists:
            return tf.io.parse_sequence_example(records, context, lists)[:2], tf.shape(records)[0]
        return tf.io.parse_example(records, context), tf.shape(records)[0]

    dataset = tf.data.TFRecordDataset([file.path], file.compression).with_options(options)
    for parsed, count in dataset.batch(_BATCH).map(parse):
        for tensor in tf.nest.flatten(parsed, expand_composites=True):
            tensor.numpy()
        yield int(count)


def _tensorflow_spec(tf: Any, features: Any) -> dict[str, Any]:
    """Specifications as TensorFlow's own."""
    return {
        key: getattr(tf.io, type(feature).__name__)(
            **{**feature._asdict(), "dtype": tf.as_dtype(feature.dtype.name)}
        )
        for key, feature in (features or {}).items()
    }


def _struct_read(file: Subject) -> Counts:
    """The reader that one writes in 20 lines of Python, with a checksum package in C."""
    return _counted(_struct_records(file))


def _struct_records(file: Subject) -> Iterator[bytes]:
    import crc32c

    def masked(data: bytes) -> int:
        crc: int = crc32c.crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    with gzip.open(file.path) if file.compression else open(file.path, "rb") as stream:
        while header := stream.read(12):
            length, length_crc = struct.unpack("<QI", header)
            data = stream.read(length)
            if masked(header[:8]) != length_crc or (masked(data),) != struct.unpack(
                "<I", stream.read(4)
            ):
                raise ValueError("a checksum is wrong")
            yield data


def _tfrecord_read(file: Subject) -> Counts:
    from tfrecord.reader import tfrecord_iterator

    return _counted(tfrecord_iterator(file.path, compression_type=file.compression.lower() or None))


def _protobuf_parse(file: Subject) -> Counts:
    """Messages, and every field of them read."""
    _, lists = file.context_and_lists
    message = tfw.train.SequenceExample if lists else tfw.train.Example
    records = iter(tfw.read_records(file.path, file.compression))
    while piece := list(islice(records, _BATCH)):
        for record in piece:
            _read_fields(message.FromString(record))
        yield len(piece)


def _read_fields(message: Any) -> None:
    if hasattr(message, "features"):
        features = message.features.feature.values()
    else:
        features = [*message.context.feature.values()]
        for steps in message.feature_lists.feature_list.values():
            features += steps.feature
    for feature in features:
        list(getattr(feature, feature.WhichOneof("kind") or "bytes_list").value)


# ---- All of them ------------------------------------------------------------------------------


class Reader(NamedTuple):
    """A way to read.

    Attributes:
        operation: What it does: READ, VERIFY, INDEX or PARSE.
        name: Whose it is.
        read: The generator over one pass.
        package: What must be installed for it; None: nothing else.
        compressions: The files that it reads.
    """

    operation: str
    name: str
    read: Callable[[Subject], Counts]
    package: str | None = None
    compressions: tuple[str, ...] = ("", "GZIP", "ZLIB")

    @property
    def installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


READERS = [
    Reader(READ, "tfwire", _tfwire_read),
    Reader(READ, "TensorFlow", _tensorflow_read, "tensorflow"),
    Reader(READ, "struct + crc32c", _struct_read, "crc32c", ("", "GZIP")),
    Reader(READ, "tfrecord, unchecked", _tfrecord_read, "tfrecord", ("", "GZIP")),
    Reader(VERIFY, "tfwire", _tfwire_verify),
    Reader(INDEX, "tfwire", _tfwire_index),
    Reader(PARSE, "tfwire", _tfwire_parse),
    Reader(PARSE, "TensorFlow", _tensorflow_parse, "tensorflow"),
    Reader(PARSE, "protobuf messages", _protobuf_parse),
]
