"""Readers and writers of tfwire and other packages to compare, for tfwire bench and tfwire demo.

A reader is a generator over one pass through a file. It yields the number of records read since the
last yield, so that a measurement can stop at any time.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tfwire as tfw

if TYPE_CHECKING:
    from tfwire.typing import Compression

READ = "read records as bytes"
VERIFY = "verify every record"
INDEX = "index"
PARSE = "file to columns"
_BATCH = 1024
_RECORDS_PER_COUNT = 4096
Counts = Iterator[int]


class Subject(NamedTuple):
    """A file to read.

    Attributes:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        schema: The specification of its Examples or SequenceExamples; None for other records.
    """

    path: str
    compression: Compression = ""
    schema: Any = None

    @property
    def context_and_lists(self) -> tuple[Any, Any]:
        return self.schema, getattr(self.schema, "sequence_features", None)


def _counted(iterable: Iterable[Any]) -> Counts:
    iterator = iter(iterable)
    while count := sum(1 for _ in islice(iterator, _RECORDS_PER_COUNT)):
        yield count


# ---- tfwire -----------------------------------------------------------------------------------
def _tfwire_read(file: Subject) -> Counts:
    return _counted(tfw.read_records(file.path, file.compression))


def _tfwire_verify(file: Subject) -> Counts:
    yield tfw.verify_file(file.path, compression_type=file.compression).num_records


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
    """The number of records in a batch, from its first column."""
    column = next(iter(columns.values()))
    return int(column.dense_shape[0]) if hasattr(column, "dense_shape") else len(column)


# ---- Other packages ---------------------------------------------------------------------------
def tensorflow() -> Any:
    """TensorFlow, imported without log messages and limited to one thread."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    with contextlib.suppress(RuntimeError):  # it is already initialized
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
    """Without tf.data's autotuning, which would make every iteration end with a wait for a timer,
    in favour of tfwire."""
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
    """Feature specifications as TensorFlow's classes."""
    return {
        key: getattr(tf.io, type(feature).__name__)(
            **{**feature._asdict(), "dtype": tf.as_dtype(feature.dtype.name)}
        )
        for key, feature in (features or {}).items()
    }


def _struct_read(file: Subject) -> Counts:
    """A simple reader in Python, with a checksum package in C."""
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
    """Parses messages and reads all their fields."""
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


class MeasuredReader(NamedTuple):
    """A way to read.

    Attributes:
        operation: READ, VERIFY, INDEX or PARSE.
        name: The package, for the table.
        read: The generator over one pass.
        package: The package that must be installed; None: no other.
        compressions: The compressions that it reads.
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
    MeasuredReader(READ, "tfwire", _tfwire_read),
    MeasuredReader(READ, "TensorFlow", _tensorflow_read, "tensorflow"),
    MeasuredReader(READ, "struct + crc32c", _struct_read, "crc32c", ("", "GZIP")),
    MeasuredReader(READ, "tfrecord, unchecked", _tfrecord_read, "tfrecord", ("", "GZIP")),
    MeasuredReader(VERIFY, "tfwire", _tfwire_verify),
    MeasuredReader(INDEX, "tfwire", _tfwire_index),
    MeasuredReader(PARSE, "tfwire", _tfwire_parse),
    MeasuredReader(PARSE, "TensorFlow", _tensorflow_parse, "tensorflow"),
    MeasuredReader(PARSE, "protobuf messages", _protobuf_parse),
]


# ---- The demo's table: tfwire, protobuf and, if installed, TensorFlow ---------------------------
#
# Every operation does the same work on the same data, on one thread; the figure is the best of a
# few rounds. ``make bench`` is the full comparison.

WRITE = "write examples to a file"
ROUNDS = 3  # the first warms up
Columns = dict[str, Any]
Operation = Callable[[], int]  # returns the number of records


def compare(path: Path, columns: Columns, features: Any) -> None:
    """Prints the table. The columns are written to the file, and the file is read."""
    count = len(next(iter(columns.values())))
    file = Subject(str(path), "", features)
    writers = _writers(path, columns)
    print(
        f"  {count:,} records, checksums verified ({tfw.checksum.crc32c_kernel()}); "
        "records per second"
    )
    print(f"  {'':26}" + "".join(f"{name:>22}" for name in writers))
    for operation in (WRITE, READ, PARSE):
        systems = writers if operation == WRITE else _readers(operation, file)
        times = {name: _best_time(work, count) for name, work in systems.items()}
        cells = [_cell(times, name, count) for name in writers]
        print(f"  {operation:26}" + "".join(cells))
    if "TensorFlow" not in writers:
        print("  (TensorFlow is not installed here; with it, the table has one more column.)")


def _cell(times: dict[str, float], name: str, count: int) -> str:
    if name not in times:
        return f"{'-':>22}"
    rate = count / times[name]
    if name == "tfwire":
        return f"{rate:>22,.0f}"
    return f"{rate:>13,.0f} ({times[name] / times['tfwire']:5.1f}x)"


def _best_time(operation: Operation, expected: int) -> float:
    """The time of the fastest round in seconds; every round must handle all records."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        found = operation()
        times.append(time.perf_counter() - begin)
        if found != expected:
            raise ValueError(f"an operation handled {found} of {expected} records")
    return min(times)


def _readers(operation: str, file: Subject) -> dict[str, Operation]:
    def whole_pass(reader: MeasuredReader) -> int:
        return sum(reader.read(file))

    return {
        reader.name: partial(whole_pass, reader)
        for reader in READERS
        if reader.operation == operation and reader.installed
    }


def _writers(path: Path, columns: Columns) -> dict[str, Operation]:
    found: dict[str, Operation] = {
        "tfwire": partial(_write_columns, path, columns),
        "protobuf messages": partial(_write_messages, path.with_suffix(".protobuf"), columns),
    }
    if find_spec("tensorflow") is not None:
        found["TensorFlow"] = partial(_write_tensorflow, path.with_suffix(".tensorflow"), columns)
    return found


def _write_columns(path: Path, columns: Columns) -> int:
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns)
    return len(columns["feature0"])


def _write_messages(path: Path, columns: Columns) -> int:
    """Messages of protobuf, which has no record files: tfwire frames them."""
    with tfw.TFRecordWriter(path) as writer:
        for message in _messages(tfw.train, columns):
            writer.write(message)
    return len(columns["feature0"])


def _write_tensorflow(path: Path, columns: Columns) -> int:
    tf = tensorflow()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for message in _messages(tf.train, columns):
            writer.write(message)
    return len(columns["feature0"])


def _messages(train: Any, columns: Columns) -> Any:
    """Serialized messages, built as the tutorials build them."""
    for f0, f1, f2, f3 in zip(*(column.tolist() for column in columns.values()), strict=True):
        feature = {
            "feature0": train.Feature(int64_list=train.Int64List(value=[int(f0)])),
            "feature1": train.Feature(int64_list=train.Int64List(value=[f1])),
            "feature2": train.Feature(bytes_list=train.BytesList(value=[f2])),
            "feature3": train.Feature(float_list=train.FloatList(value=[f3])),
        }
        yield train.Example(features=train.Features(feature=feature)).SerializeToString()
