"""tfwire bench: how fast tfwire and other installed packages read a file.

A reader is a generator over one pass through a file. It yields the number of records read since the
last yield, so that a measurement can stop at any time. tfwire demo and benchmarks/ have them too.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import tfwire as tfw
from tfwire._interface.messages import plural, printable, shorten, show_path
from tfwire.cli import _arguments

if TYPE_CHECKING:
    from tfwire.typing import Compression

_MOST_SECONDS = 86_400
_MOST_FEATURES = 10_000  # that are parsed; a specification with 10,000 takes 50 MB


def add_bench(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire bench."""
    parser.add_argument("file", metavar="FILE", help="a TFRecord file")
    _arguments.add_shared(parser, "--compression")
    parser.add_argument(
        "--seconds",
        type=duration,
        default=2.0,
        help="time for each reader (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON per reader")
    parser.epilog = (
        "The readers run one after the other, with the file in the page cache. tfwire and "
        "TensorFlow verify every checksum. Columns are parsed with the specification that tfwire "
        "infers from the first records. Exit status: 0, 1 when the file is damaged or cannot be "
        "read, 2 for wrong usage."
    )
    parser.set_defaults(run=_run)


def duration(text: str) -> float:
    """The type of arguments that are times in seconds."""
    value = float(text)
    if not 0 < value < _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be within (0, {_MOST_SECONDS}), found {text}")
    return value


def _run(options: argparse.Namespace) -> int:
    """Measures every reader, and prints each result at once."""
    if options.file == "-":
        raise _arguments.UsageError("stdin cannot be measured: it is read once only")
    if os.path.exists(options.file):  # else it may be a pattern
        from tfwire._interface.files import check_rereadable

        check_rereadable(options.file)
    report = tfw.verify_file(options.file, compression_type=options.compression)
    if not report.intact:
        _arguments.complain(
            options, report.hint or f"{options.file}: is damaged: see tfwire verify"
        )
        return 1
    if not report.num_records:
        _arguments.complain(options, f"{options.file}: holds no records")
        return 1
    file = Subject(options.file, report.compression, _schema(options.file, report))
    readers = [reader for reader in READERS if report.compression in reader.compressions]
    compare(report, file, readers, options.seconds, as_json=options.json)
    if file.schema is None and not options.json:
        print(
            "Nothing to parse: the records are not Examples that one specification of "
            f"1 to {_MOST_FEATURES:,} features describes."
        )
    return 0


def compare(
    report: tfw.FileReport,
    file: Subject,
    readers: Iterable[MeasuredReader],
    seconds: float,
    as_json: bool = False,
) -> None:
    """Measures readers one after the other, and prints each result at once."""
    if not as_json:
        _print_head(report)
    best: dict[str, float] = {}  # records per second of tfwire, by operation
    for reader in readers:
        if file.schema or reader.operation != PARSE:
            _report(as_json, reader, _measured(reader, file, seconds), report, best)


def _schema(path: str, report: tfw.FileReport) -> Any:
    """The specification of a file's Examples, or None."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # features of several kinds
            schema = tfw.infer_schema(path, compression_type=report.compression)
    except (tfw.ParseError, tfw.TfwireWarning):
        return None
    count = len(schema) + len(schema.sequence_features)
    return schema if 0 < count <= _MOST_FEATURES else None


def _measured(reader: MeasuredReader, file: Subject, seconds: float) -> float | str:
    """Records per second, or why they could not be measured."""
    if not reader.installed:
        return f"{reader.package} is not installed"
    try:
        next(reader.read(file))  # imports, and the page cache
        return _rate(reader, file, seconds)
    except Exception as error:  # of any kind, from other packages
        return f"{type(error).__name__}: {printable(shorten(str(error)))}"


def _rate(reader: MeasuredReader, file: Subject, seconds: float) -> float:
    count, begin = 0, time.perf_counter()
    while True:
        for records in reader.read(file):
            count += records
            if (passed := time.perf_counter() - begin) >= seconds:
                return count / passed


# ---- Output -----------------------------------------------------------------------------------


def _print_head(report: tfw.FileReport) -> None:
    size = plural(_size(report), "byte")
    compression = _arguments.show_compression(report.compression)
    print(f"{show_path(report.path)}: {plural(report.num_records, 'record')} of {size} in all")
    print(f"compression {compression}, CRC-32C by {tfw.checksum.crc32c_kernel()}\n")
    print(f"{'':24}{'':22}{'records/s':>14}{'MB/s':>9}  tfwire is")


def _size(report: tfw.FileReport) -> int:
    """The size of the uncompressed file in bytes."""
    return report.payload_bytes + 16 * report.num_records


def _report(
    as_json: bool,
    reader: MeasuredReader,
    rate: float | str,
    report: tfw.FileReport,
    best: dict[str, float],
) -> None:
    row: dict[str, Any] = {"operation": reader.operation, "reader": reader.name}
    if isinstance(rate, str):
        row["problem"] = rate
        line = f"  {rate}"
    else:
        if reader.name == "tfwire":
            best[reader.operation] = rate
        ours = best.get(reader.operation, 0.0)
        mean = _size(report) / report.num_records
        facts = {"records_per_second": rate, "bytes_per_second": rate * mean, "ratio": ours / rate}
        row.update(facts)
        ratio = "" if reader.name == "tfwire" else f"{ours / rate:8.1f}x as fast"
        line = f"{rate:>14,.0f}{rate * mean / 1e6:>9,.0f}{ratio}"
    if as_json:
        _arguments.print_json(row)
    else:
        print(f"{reader.operation:24}{reader.name:22}{line}", flush=True)


# ---- The readers of tfwire ----------------------------------------------------------------------

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


# ---- Those of other packages --------------------------------------------------------------------


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


def tensorflow_read(file: Subject) -> Counts:
    tf = tensorflow()
    kinds = tf.compat.v1.io.TFRecordCompressionType
    options = tf.compat.v1.io.TFRecordOptions(getattr(kinds, file.compression or "NONE"))
    return _counted(tf.compat.v1.io.tf_record_iterator(file.path, options))


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


def struct_records(file: Subject) -> Iterator[bytes]:
    """A simple reader in Python, with a checksum package in C."""
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
            read_fields(message.FromString(record))
        yield len(piece)


def read_fields(message: Any) -> None:
    if hasattr(message, "features"):
        features = message.features.feature.values()
    else:
        features = [*message.context.feature.values()]
        for steps in message.feature_lists.feature_list.values():
            features += steps.feature
    for feature in features:
        list(getattr(feature, feature.WhichOneof("kind") or "bytes_list").value)


class MeasuredReader(NamedTuple):
    """A way to read; in the demo also to write.

    Attributes:
        operation: READ, VERIFY, INDEX, PARSE or another.
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
    MeasuredReader(
        READ, "tfwire", lambda file: _counted(tfw.read_records(file.path, file.compression))
    ),
    MeasuredReader(READ, "TensorFlow", tensorflow_read, "tensorflow"),
    MeasuredReader(
        READ, "struct + crc32c", lambda file: _counted(struct_records(file)), "crc32c", ("", "GZIP")
    ),
    MeasuredReader(READ, "tfrecord, unchecked", _tfrecord_read, "tfrecord", ("", "GZIP")),
    MeasuredReader(VERIFY, "tfwire", _tfwire_verify),
    MeasuredReader(INDEX, "tfwire", _tfwire_index),
    MeasuredReader(PARSE, "tfwire", _tfwire_parse),
    MeasuredReader(PARSE, "TensorFlow", _tensorflow_parse, "tensorflow"),
    MeasuredReader(PARSE, "protobuf messages", _protobuf_parse),
]
