"""What users have today: the same work done by TensorFlow, protobuf and small Python readers.

Every function here returns the number of records it handled, as tfwire's do. TensorFlow runs on
one thread and with tf.data's autotuning off: with it on, the end of every iteration waits on a
timer, which would flatter tfwire.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import crc32c
import google_crc32c
import numpy as np

from tfwire import compat
from tfwire.cli.bench import Subject, read_fields, struct_records, tensorflow, tensorflow_read

HAS_BAGZ = find_spec("bagz") is not None
HAS_PANDAS = find_spec("pandas") is not None
HAS_POLARS = find_spec("polars") is not None
HAS_PYARROW = find_spec("pyarrow") is not None
HAS_TENSORFLOW = find_spec("tensorflow") is not None
if HAS_TENSORFLOW:
    tf = tensorflow()
    train = tf.train
else:
    import tfwire

    train = tfwire.train  # the same protobuf messages

BATCH = 1024


class CompatIo:
    """The same names in tfwire.compat."""

    int64, float32, string = compat.int64, compat.float32, compat.string
    FixedLenFeature = compat.io.FixedLenFeature
    FixedLenSequenceFeature = compat.io.FixedLenSequenceFeature


class TensorFlowIo:
    """TensorFlow's names, as the specs of a workload want them."""

    if HAS_TENSORFLOW:
        int64, float32, string = tf.int64, tf.float32, tf.string
        FixedLenFeature = tf.io.FixedLenFeature
        FixedLenSequenceFeature = tf.io.FixedLenSequenceFeature


def drain(iterable: Iterable[Any]) -> None:
    deque(iterable, maxlen=0)


def count_batches(batches: Iterable[Any]) -> int:
    return sum(len(batch) for batch in batches)


# ---- Reading records ------------------------------------------------------------------------


def v1_iterator(path: Path, compression: str | None = None) -> int:
    return sum(tensorflow_read(Subject(str(path), compression or "")))


def dataset(path: Path, compression: str | None = None, threads: int = 1) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    return tf.data.TFRecordDataset([str(path)], compression).with_options(options)


def dataset_batched(path: Path, compression: str | None = None) -> int:
    return count_batches(dataset(path, compression).batch(BATCH).as_numpy_iterator())


def dataset_one_by_one(path: Path, count: int) -> int:
    drain(dataset(path).take(count).as_numpy_iterator())
    return count


def plain_reader(path: Path) -> int:
    """The reader that one writes in 20 lines of Python, with a checksum package in C."""
    return sum(1 for _ in struct_records(Subject(str(path))))


def copied(path: Path, count: int) -> Callable[[], int]:
    """memcpy of the bytes of a file of so many records, a mebibyte at a time as readers read."""
    source = np.fromfile(path, np.uint8)
    target = np.empty_like(source)
    pieces = range(0, len(source), 1 << 20)

    def copy() -> int:
        for at in pieces:
            np.copyto(target[at : at + (1 << 20)], source[at : at + (1 << 20)])
        return count

    return copy


# ---- Random access and epochs ---------------------------------------------------------------


def bagz_reader(path: Path, records: list[bytes]) -> Any:
    """The records in a file of bagz, whose format has an index and no checksums."""
    import bagz

    with bagz.Writer(str(path)) as writer:
        for record in records:
            writer.write(record)
    return bagz.Reader(str(path))


def shuffled_epoch(path: Path, spec: dict[str, Any], buffer_size: int, batch_size: int) -> int:
    parsed = (
        dataset(path)
        .shuffle(buffer_size, seed=1)
        .batch(batch_size)
        .map(lambda serialized: tf.io.parse_example(serialized, spec))
    )
    first = next(iter(spec))
    return sum(len(batch[first]) for batch in parsed.as_numpy_iterator())


# ---- Parsing --------------------------------------------------------------------------------


def parse_eager(records: list[bytes], spec: dict[str, Any]) -> int:
    drain(value.numpy() for value in tf.io.parse_example(records, spec).values())
    return len(records)


def compiled_parse(records: list[bytes], spec: dict[str, Any]) -> Any:
    """parse_example in a tf.function that is given a ready string tensor."""
    tensor = tf.constant(records)
    function = tf.function(lambda serialized: tf.io.parse_example(serialized, spec))

    def run() -> int:
        drain(value.numpy() for value in function(tensor).values())
        return len(records)

    return run


def parse_single(records: list[bytes], spec: dict[str, Any]) -> int:
    for record in records:
        drain(value.numpy() for value in tf.io.parse_single_example(record, spec).values())
    return len(records)


def parse_inline(dataset: Any, io: Any, make_spec: Callable[[], dict[str, Any]]) -> int:
    """Every record parsed by a function of the user that makes the specification, as tutorials
    have it."""
    parsed = dataset.map(lambda record: io.parse_single_example(record, make_spec()))
    return sum(1 for _ in parsed)


def parse_file(
    path: Path, spec: dict[str, Any], compression: str | None = None, threads: int = 1
) -> int:
    parsed = (
        dataset(path, compression, threads)
        .batch(BATCH)
        .map(
            lambda serialized: tf.io.parse_example(serialized, spec),
            num_parallel_calls=threads if threads > 1 else None,
        )
    )
    first = next(iter(spec))
    return sum(len(batch[first]) for batch in parsed.as_numpy_iterator())


def group_by_in_pandas(path: Path, spec: dict[str, Any], key: str, value: str) -> int:
    """The mean of a value for each key; of features with a shape, the first number. Only these two
    features are parsed."""
    import pandas

    wanted = {name: spec[name] for name in (key, value)}
    parsed = dataset(path).batch(BATCH).map(lambda data: tf.io.parse_example(data, wanted))
    batches = list(parsed.as_numpy_iterator())
    columns = {
        name: np.concatenate([batch[name].reshape(len(batch[name]), -1)[:, 0] for batch in batches])
        for name in wanted
    }
    groups = pandas.DataFrame(columns).groupby(key)[value].agg(["mean", "size"])
    return int(groups["size"].sum())


def parse_sequence_file(path: Path, context: dict[str, Any], lists: dict[str, Any]) -> int:
    parsed = (
        dataset(path)
        .batch(BATCH)
        .map(lambda serialized: tf.io.parse_sequence_example(serialized, context, lists))
    )
    return sum(len(batch[0]["length"]) for batch in parsed.as_numpy_iterator())


def decode_messages(records: list[bytes]) -> int:
    """protobuf's FromString and every field read, as numbers in lists."""
    for record in records:
        read_fields(train.Example.FromString(record))
    return len(records)


def decode_kept(records: list[bytes]) -> list[dict[str, list[Any]]]:
    """The same as a dict for each record."""
    return [
        {
            name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in train.Example.FromString(record).features.feature.items()
        }
        for record in records
    ]


# ---- Another format -------------------------------------------------------------------------


def arrow_table(columns: dict[str, Any]) -> Any:
    """The columns as a table of pyarrow."""
    import pyarrow as pa

    def array(column: Any) -> Any:
        if getattr(column, "ndim", 1) == 1:
            return pa.array(column)
        return pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column.shape[1])

    return pa.table({name: array(column) for name, column in columns.items()})


def write_parquet(path: Path, table: Any) -> int:
    """The table as an uncompressed Parquet file without dictionaries."""
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="none", use_dictionary=False)
    return int(table.num_rows)


def parquet_file(path: Path, columns: dict[str, Any]) -> Path:
    """The columns as a Parquet file beside the record file."""
    path = path.with_suffix(".parquet")
    if not path.exists():
        write_parquet(path, arrow_table(columns))
    return path


def group_by_in_polars(scan: Any, key: str, value: str) -> int:
    """What group_by_in_pandas does, of a LazyFrame."""
    import polars

    def first(name: str) -> Any:
        column, kind = polars.col(name), scan.collect_schema()[name]
        return column.arr.first() if isinstance(kind, polars.Array) else column

    groups = scan.group_by(first(key)).agg(first(value).mean(), polars.len()).collect()
    return int(groups["len"].sum())


def parquet_batches(path: Path) -> int:
    """Columns as numpy; strings stay offsets and data."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    for batch in pq.ParquetFile(path).iter_batches(BATCH, use_threads=False):
        for column in batch.columns:
            if pa.types.is_binary(column.type):
                [np.frombuffer(buffer, np.uint8) for buffer in column.buffers() if buffer]
            elif pa.types.is_fixed_size_list(column.type):
                column.flatten().to_numpy()
            else:
                column.to_numpy()
        count += len(batch)
    return count


# ---- Encoding and writing -------------------------------------------------------------------


def bytes_feature(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    return train.Feature(bytes_list=train.BytesList(value=values))


def float_feature(value: Any) -> Any:
    values = value if isinstance(value, (list, np.ndarray)) else [value]
    return train.Feature(float_list=train.FloatList(value=values))


def int64_feature(value: Any) -> Any:
    values = value if isinstance(value, (list, np.ndarray)) else [value]
    return train.Feature(int64_list=train.Int64List(value=values))


HELPERS = {"string": bytes_feature, "float32": float_feature, "int64": int64_feature}


def serialize(row: dict[str, Any], fields: dict[str, Any]) -> bytes:
    """serialize_example of the tutorials: a message from helpers, serialized."""
    feature = {name: HELPERS[fields[name][0]](value) for name, value in row.items()}
    return train.Example(features=train.Features(feature=feature)).SerializeToString()


def serialize_rows(rows: list[dict[str, Any]], fields: dict[str, Any]) -> int:
    for row in rows:
        serialize(row, fields)
    return len(rows)


def write_rows(path: Path, rows: list[dict[str, Any]], fields: dict[str, Any]) -> int:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(serialize(row, fields))
    return len(rows)


def write_records(path: Path, records: list[bytes], compression: str = "") -> int:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)
    return len(records)


def serialize_sequences(pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> int:
    """SequenceExamples from helpers, one message at a time."""
    for context, lists in pairs:
        features = {name: int64_feature(value) for name, value in context.items()}
        steps = {
            "words": [int64_feature(step) for step in lists["words"]],
            "frames": [float_feature(step) for step in lists["frames"]],
        }
        named = {name: train.FeatureList(feature=values) for name, values in steps.items()}
        train.SequenceExample(
            context=train.Features(feature=features),
            feature_lists=train.FeatureLists(feature_list=named),
        ).SerializeToString()
    return len(pairs)


# ---- Checksums ------------------------------------------------------------------------------

CRC32C = {"crc32c": crc32c.crc32c, "google-crc32c": google_crc32c.value}
