"""Messages that tell a newcomer where, what was expected and what was found."""

import base64
import io
import os
import re
import warnings

import numpy as np
import pytest

import tfwire as tfw
from tfwire import checksum, images, sharding

PNG = base64.b64decode(  # one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, [b"cat", b"dog"])
    return path


def test_a_writer_that_was_not_closed_is_not_called_closed(path):
    writers = [tfw.TFRecordWriter(path)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        writers.clear()
    assert [f"<TFRecordWriter {path!r}> was not closed"] == [str(each.message) for each in found]


def test_appending_to_a_text_advises_no_word_that_writers_refuse(path):
    path.write_text("no records at all, just a text")
    with pytest.raises(tfw.DataLossError, match="readers detect others") as raised:
        tfw.TFRecordWriter(path, append=True)
    assert "begins like text" in str(raised.value)


@pytest.mark.parametrize("records", [5, None, io.BytesIO])
def test_what_is_no_iterable_of_records_is_named(path, records):
    refused = pytest.raises(TypeError, match="expected an iterable of records, found")
    with tfw.TFRecordWriter(path) as writer, refused:
        writer.write_many(records)
    with pytest.raises(TypeError, match="expected an iterable of records, found"):
        tfw.Receipt.of(records)


@pytest.mark.parametrize("crc", ["4waSgw==", b"1", 1.0, None, -1, 1 << 32])
def test_what_is_no_crc_is_named(crc):
    with pytest.raises((TypeError, ValueError), match=r"^crc must be"):
        checksum.base64_crc32c(crc)


def test_a_position_past_the_end_tells_how_long_the_file_is(path):
    start = tfw.RecordPosition(5, 10**9)
    with pytest.raises(tfw.DataLossError, match="the file has 38 bytes; the file was cut"):
        list(tfw.read_records(path, start=start))


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
@pytest.mark.parametrize("num_threads", [0, 1, 2])
def test_a_read_that_fails_names_its_file(num_threads):
    path = "/proc/self/mem"  # EIO at its beginning
    if num_threads:
        parser = tfw.Parser({"x": tfw.VarLenFeature(tfw.int64)})
        records = parser.parse_file(path, batch_size=1, num_threads=num_threads)
    else:
        records = tfw.read_records(path)
    with pytest.raises(OSError, match="/proc/self/mem"):
        list(records)


# ---- Every argument of every function: a message names it, and what was found --------------------

ROW = {"a": [1]}
EXAMPLE = tfw.encode_example(ROW)
SEQUENCE = tfw.encode_sequence_example(ROW, {"s": [[1], [2]]})
INT64 = tfw.int64
FEATURES = {"a": tfw.FixedLenFeature([1], INT64)}
LISTS = {"s": tfw.VarLenFeature(INT64)}
READ = {"compression_type": "auto", "verify": True, "max_record_size": 100, "buffer_size": 100}
READ |= {"start": None}
PARSE_FILE = {"paths": "data", "batch_size": 2, "compression_type": "auto", "verify": True}
PARSE_FILE |= {"on_corrupt": "raise", "on_parse_error": "raise", "num_threads": 1}
PARSE_FILE |= {"drop_remainder": False, "receipt": False, "max_record_size": 100}
ZLIB = {"compression_type": "GZIP", "flush_mode": 0, "window_bits": 15, "compression_level": 6}
ZLIB |= {"compression_method": 8, "mem_level": 9, "compression_strategy": 0}


def numbers():
    return tfw.Dataset.range(10)


def parsed(kind):
    """A function that makes a Parser of one feature of a kind."""
    return lambda **arguments: tfw.Parser({"a": kind(**arguments)})


def method(make, name):
    """A function that calls a method of a new object, and closes it."""

    def call(**arguments):
        made = make()
        try:
            return getattr(made, name)(**arguments)
        finally:
            getattr(made, "close", int)()

    return call


def one_writer():
    return tfw.TFRecordWriter("out")


def sharded_writer():
    return tfw.ShardedWriter("out-{shard}", num_shards=1)


# Each function, and right arguments for it. Those named in IGNORED and DATA are looked at less.
FUNCTIONS = {
    "crc32c": (checksum.crc32c, {"data": b"x", "value": 0}),
    "masked_crc32c": (checksum.masked_crc32c, {"data": b"x"}),
    "mask_crc": (checksum.mask_crc, {"crc": 1}),
    "unmask_crc": (checksum.unmask_crc, {"crc": 1}),
    "combine_crc32c": (checksum.combine_crc32c, {"a": 1, "b": 1, "len_b": 1}),
    "base64_crc32c": (checksum.base64_crc32c, {"crc": 1}),
    "BytesColumn": (tfw.BytesColumn, {"data": b"ab", "offsets": [0, 1, 2], "shape": (2,)}),
    "batch": (method(numbers, "batch"), {"batch_size": 2, "drop_remainder": False}),
    "padded_batch": (
        method(numbers, "padded_batch"),
        {"batch_size": 2, "padded_shapes": (), "drop_remainder": False, "max_padding": 1000},
    ),
    "filter": (method(numbers, "filter"), {"predicate": bool}),
    "map": (method(numbers, "map"), {"map_func": abs}),
    "from_generator": (tfw.Dataset.from_generator, {"generator": list, "args": ()}),
    "from_tensor_slices": (tfw.Dataset.from_tensor_slices, {"tensors": [1]}),
    "list_files": (
        tfw.Dataset.list_files,
        {"file_pattern": "dat*", "shuffle": True, "seed": 1},
    ),
    "parse_example of a dataset": (method(numbers, "parse_example"), {"features": FEATURES}),
    "prefetch": (method(numbers, "prefetch"), {"buffer_size": 2}),
    "range": (lambda args: tfw.Dataset.range(args), {"args": 2}),
    "repeat": (method(numbers, "repeat"), {"count": 2}),
    "shard": (method(numbers, "shard"), {"num_shards": 2, "index": 0}),
    "shard_source": (
        method(lambda: tfw.TFRecordDataset(["data"]), "shard_source"),
        {"num_shards": 1, "index": 0, "rule": "even"},
    ),
    "shuffle": (
        method(numbers, "shuffle"),
        {"buffer_size": 2, "seed": 1, "reshuffle_each_iteration": True},
    ),
    "shuffle_batch": (
        method(numbers, "shuffle_batch"),
        {"batch_size": 2, "capacity": 9, "min_after_dequeue": 2, "seed": 1}
        | {"allow_smaller_final_batch": True},
    ),
    "skip": (method(numbers, "skip"), {"count": 2}),
    "take": (method(numbers, "take"), {"count": 2}),
    "zip": (lambda datasets: tfw.Dataset.zip(datasets), {"datasets": numbers()}),
    "TFRecordDataset": (
        tfw.TFRecordDataset,
        {"filenames": ["data"], "compression_type": "", "buffer_size": 100}
        | {"num_parallel_reads": 1, "on_corrupt": "raise", "indexed": False}
        | {"max_record_size": 100},
    ),
    "bytes_feature": (tfw.bytes_feature, {"value": b"x"}),
    "float_feature": (tfw.float_feature, {"value": 1.0}),
    "int64_feature": (tfw.int64_feature, {"value": 1}),
    "decode_example": (tfw.decode_example, {"serialized": EXAMPLE}),
    "decode_examples": (tfw.decode_examples, {"serialized": [EXAMPLE]}),
    "decode_sequence_example": (tfw.decode_sequence_example, {"serialized": SEQUENCE}),
    "encode_columns": (
        tfw.encode_columns,
        {"columns": ROW, "sort_keys": True, "bytes_as": "object"},
    ),
    "encode_example": (tfw.encode_example, {"row": ROW, "sort_keys": True}),
    "encode_examples": (tfw.encode_examples, {"rows": [ROW], "sort_keys": True}),
    "encode_sequence_example": (
        tfw.encode_sequence_example,
        {"context": ROW, "feature_lists": {"s": [[1]]}, "sort_keys": True},
    ),
    "FixedLenFeature": (
        parsed(tfw.FixedLenFeature),
        {"shape": [1], "dtype": INT64, "default_value": [0]},
    ),
    "VarLenFeature": (parsed(tfw.VarLenFeature), {"dtype": INT64}),
    "SparseFeature": (
        parsed(tfw.SparseFeature),
        {"index_key": "i", "value_key": "v", "dtype": INT64, "size": 3},
    ),
    "UniformRowLength": (
        lambda length: parsed(tfw.RaggedFeature)(
            dtype=INT64, partitions=[tfw.RaggedFeature.UniformRowLength(length)]
        ),
        {"length": 1},
    ),
    "RecordIndex.build": (
        tfw.RecordIndex.build,
        {"path": "data", "compression_type": "auto"},
    ),
    "RecordIndex.load": (
        tfw.RecordIndex.load,
        {"path": "data", "index_path": "data.tfwindex", "ignore_mtime": False},
    ),
    "RecordIndex.read_text": (
        tfw.RecordIndex.read_text,
        {"index_path": "text", "path": "data"},
    ),
    "save": (method(lambda: tfw.RecordIndex.build("data"), "save"), {"index_path": "other"}),
    "write_text": (
        method(lambda: tfw.RecordIndex.build("data"), "write_text"),
        {"index_path": "other"},
    ),
    "TFRecordFile": (tfw.TFRecordFile, {"path": "data", "index": None}),
    "TFRecordFiles": (tfw.TFRecordFiles, {"paths": ["data"], "max_open_files": 3}),
    "infer_schema": (
        tfw.infer_schema,
        {"paths": "data", "num_records": 10, "compression_type": "auto"},
    ),
    "decode_json_example": (tfw.decode_json_example, {"json_examples": "{}"}),
    "example_to_json": (tfw.example_to_json, {"example": EXAMPLE, "indent": None}),
    "Parser": (
        tfw.Parser,
        {"features": FEATURES, "bytes_as": "object", "empty_is_missing": False},
    ),
    "Parser.parse": (
        method(lambda: tfw.Parser(FEATURES), "parse"),
        {"serialized": [EXAMPLE], "out": {}},
    ),
    "Parser.parse_file": (method(lambda: tfw.Parser(FEATURES), "parse_file"), PARSE_FILE),
    "SequenceParser": (
        tfw.SequenceParser,
        {"context_features": FEATURES, "sequence_features": LISTS, "bytes_as": "object"}
        | {"empty_is_missing": False},
    ),
    "SequenceParser.parse_file": (
        method(lambda: tfw.SequenceParser(FEATURES, LISTS), "parse_file"),
        PARSE_FILE,
    ),
    "parse_example": (
        tfw.parse_example,
        {"serialized": [EXAMPLE], "features": FEATURES, "example_names": ["x"]},
    ),
    "parse_single_example": (
        tfw.parse_single_example,
        {"serialized": EXAMPLE, "features": FEATURES, "example_names": "x"},
    ),
    "parse_sequence_example": (
        tfw.parse_sequence_example,
        {"serialized": [SEQUENCE], "context_features": FEATURES, "sequence_features": LISTS}
        | {"example_names": ["x"]},
    ),
    "parse_single_sequence_example": (
        tfw.parse_single_sequence_example,
        {"serialized": SEQUENCE, "context_features": FEATURES, "sequence_features": LISTS}
        | {"example_name": "x"},
    ),
    "Receipt.from_dict": (tfw.Receipt.from_dict, {"fields": tfw.Receipt().to_dict()}),
    "Receipt.of": (tfw.Receipt.of, {"records": [b""]}),
    "TFRecordOptions": (
        lambda **arguments: tfw.TFRecordWriter("out", tfw.TFRecordOptions(**arguments)).close(),
        ZLIB,
    ),
    "TFRecordWriter": (
        lambda **arguments: tfw.TFRecordWriter(**arguments).close(),
        {"path": "out", "options": "GZIP", "compression_level": None, "append": False}
        | {"repair_tail": False, "atomic": False},
    ),
    "write": (method(one_writer, "write"), {"record": b"x"}),
    "write_many": (method(one_writer, "write_many"), {"records": [b"x"]}),
    "write_columns": (method(one_writer, "write_columns"), {"columns": ROW}),
    "write_records": (
        tfw.write_records,
        {"path": "out", "records": [b"x"], "options": ""},
    ),
    "follow_records": (
        tfw.follow_records,
        {"path": "data", "interval": 1, "timeout": 0, **READ},
    ),
    "read_records": (
        tfw.read_records,
        {"paths": "data", "on_corrupt": "raise", "receipt": False, **READ},
    ),
    "repair_file": (
        tfw.repair_file,
        {"path": "data", "out_path": "out", "compression_type": "auto", "max_record_size": 99}
        | {"correct": False, "accept_ambiguous": False, "overwrite": True},
    ),
    "verify_file": (
        tfw.verify_file,
        {"path": "data", "compression_type": "auto", "max_record_size": 99, "file_crc32c": False}
        | {"receipt": False, "progress": print},
    ),
    "read_schema": (tfw.read_schema, {"path": "schema.json"}),
    "write_schema": (tfw.write_schema, {"features": FEATURES, "path": "out.json"}),
    "ShardedWriter": (
        lambda **arguments: tfw.ShardedWriter(**arguments).close(),
        {"pattern": "out-{shard}", "num_shards": 2, "options": None, "compression_level": None}
        | {"index": False, "num_threads": 1},
    ),
    "shard_size": (
        lambda shard_size: tfw.ShardedWriter("out-{shard}", shard_size=shard_size).close(),
        {"shard_size": "1MB"},
    ),
    "ShardedWriter.write": (method(sharded_writer, "write"), {"record": b"x"}),
    "ShardedWriter.write_many": (method(sharded_writer, "write_many"), {"records": [b"x"]}),
    "decode_raw": (
        tfw.decode_raw,
        {"input_bytes": b"abcd", "out_type": np.int16, "little_endian": True, "fixed_length": 4},
    ),
    "parse_tensor": (
        tfw.parse_tensor,
        {"serialized": tfw.serialize_tensor([1]), "out_type": "int32", "max_fill": 100},
    ),
    "serialize_tensor": (tfw.serialize_tensor, {"tensor": [1]}),
    "to_dict": (tfw.train.to_dict, {"message": tfw.train.Example()}),
    "crop_or_pad": (
        images.crop_or_pad,
        {"image": np.zeros((2, 2), np.uint8), "height": 2, "width": 2},
    ),
    "decode": (images.decode, {"contents": PNG, "channels": 0, "frames": False}),
    "recommend_num_shards": (
        sharding.recommend_num_shards,
        {"total_bytes": 10**9, "num_hosts": 1},
    ),
    "recover_shards": (sharding.recover_shards, {"folder": "."}),
}

# What a function is about: the message says what was expected and found, if not this name. A name
# of a dtype, or a default value, is of a feature, whose name is in the message.
DATA = {"serialized", "row", "rows", "columns", "context", "feature_lists", "example", "message"}
DATA |= {"json_examples", "input_bytes", "tensor", "tensors", "record", "records", "value"}
DATA |= {"shape", "default_value", "value_key", "options", "example_name"}


class Wrong:
    """What no argument may be."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("data", [EXAMPLE] * 5)
    index = tfw.RecordIndex.build("data")
    index.save()
    index.write_text("text")
    tfw.write_schema(FEATURES, "schema.json")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_arguments_of_the_table_are_right(files, name):
    function, arguments = FUNCTIONS[name]
    function(**arguments)


@pytest.mark.parametrize(
    ("name", "argument"), [(name, key) for name, (_, keys) in FUNCTIONS.items() for key in keys]
)
def test_a_wrong_argument_is_named(files, name, argument):
    function, arguments = FUNCTIONS[name]
    with pytest.raises((TypeError, ValueError)) as raised:
        function(**{**arguments, argument: Wrong()})
    message = str(raised.value)
    assert "0x" not in message
    if argument not in DATA:
        assert re.search(rf"\b{argument}\b", message)
    assert re.search(r"\bWrong\b", message)


@pytest.mark.parametrize(
    ("name", "argument", "known"),
    [
        ("read_records", "on_corrupt", ["raise", "skip", "tail", "stop"]),
        ("read_records", "compression_type", ["auto", "GZIP", "ZLIB"]),
        ("Parser.parse_file", "on_corrupt", ["raise", "skip", "stop"]),
        ("Parser.parse_file", "on_parse_error", ["raise", "skip"]),
        ("Parser", "bytes_as", ["object", "column"]),
        ("SequenceParser", "bytes_as", ["object", "column"]),
        ("encode_columns", "bytes_as", ["object", "column"]),
        ("shard_source", "rule", ["even", "drop", "pad"]),
        ("TFRecordDataset", "on_corrupt", ["raise", "skip", "stop"]),
        ("TFRecordDataset", "compression_type", ["GZIP", "ZLIB"]),
        ("verify_file", "compression_type", ["auto", "GZIP", "ZLIB"]),
    ],
)
def test_a_wrong_word_lists_the_known_ones(files, name, argument, known):
    function, arguments = FUNCTIONS[name]
    with pytest.raises(ValueError, match=argument) as raised:
        function(**{**arguments, argument: "nonsense"})
    assert "nonsense" in str(raised.value)
    assert all(word in str(raised.value) for word in known)
