"""The public functions, with right arguments for each, and those that no table names."""

from __future__ import annotations

import base64
import inspect
from importlib import import_module

import numpy as np

import tfwire as tfw
from tfwire import arrow, checksum, images, sharding

PNG = base64.b64decode(  # one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)

ROW = {"a": [1]}
EXAMPLE = tfw.encode_example(ROW)
SEQUENCE = tfw.encode_sequence_example(ROW, {"s": [[1], [2]]})
INT64 = tfw.int64
FEATURES = {"a": tfw.FixedLenFeature([1], INT64)}
LISTS = {"s": tfw.VarLenFeature(INT64)}
READ = {"compression_type": "auto", "verify": True, "max_record_size": 100, "buffer_size": 100}
READ |= {"start": None, "storage_options": None}
PARSE_FILE = {"paths": "data", "batch_size": 2, "compression_type": "auto", "verify": True}
PARSE_FILE |= {"on_corrupt": "raise", "on_parse_error": "raise", "num_threads": 1}
PARSE_FILE |= {"drop_remainder": False, "receipt": False, "max_record_size": 100}
PARSE_FILE |= {"storage_options": None}
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


# Each function, and right arguments for it.
FUNCTIONS = {
    "crc32c": (checksum.crc32c, {"data": b"x", "value": 0}),
    "masked_crc32c": (checksum.masked_crc32c, {"data": b"x"}),
    "mask_crc": (checksum.mask_crc, {"crc": 1}),
    "unmask_crc": (checksum.unmask_crc, {"crc": 1}),
    "combine_crc32c": (checksum.combine_crc32c, {"a": 1, "b": 1, "len_b": 1}),
    "base64_crc32c": (checksum.base64_crc32c, {"crc": 1}),
    "BytesColumn": (tfw.BytesColumn, {"data": b"ab", "offsets": [0, 1, 2], "shape": (2,)}),
    "BytesColumn.take": (
        method(lambda: tfw.BytesColumn(b"ab", [0, 1, 2]), "take"),
        {"indices": [0]},
    ),
    "SparseTensor.to_dense": (
        method(lambda: tfw.SparseTensor(np.array([[0]]), np.array([1]), np.array([2])), "to_dense"),
        {"default_value": 1, "max_padding": 100},
    ),
    "DatasetIterator.load_state_dict": (
        method(lambda: iter(numbers()), "load_state_dict"),
        {"state": iter(numbers()).state_dict()},
    ),
    "batch": (method(numbers, "batch"), {"batch_size": 2, "drop_remainder": False}),
    "padded_batch": (
        method(numbers, "padded_batch"),
        {"batch_size": 2, "padded_shapes": (), "drop_remainder": False, "max_padding": 1000}
        | {"padding_values": 0},
    ),
    "interleave": (
        method(numbers, "interleave"),
        {"map_func": tfw.Dataset.range, "cycle_length": 2, "block_length": 1},
    ),
    "bucket_by_sequence_length": (
        method(numbers, "bucket_by_sequence_length"),
        {"element_length_func": int, "bucket_boundaries": [1], "bucket_batch_sizes": [2, 2]}
        | {"padded_shapes": (), "padding_values": 0, "pad_to_bucket_boundary": False}
        | {"no_padding": False, "drop_remainder": False},
    ),
    "cache": (method(numbers, "cache"), {"filename": ""}),
    "concatenate": (method(numbers, "concatenate"), {"dataset": numbers()}),
    "enumerate": (method(numbers, "enumerate"), {"start": 1}),
    "sample_from_datasets": (
        tfw.Dataset.sample_from_datasets,
        {"datasets": [numbers()], "weights": [1.0], "seed": 1, "stop_on_empty_dataset": True},
    ),
    "filter": (method(numbers, "filter"), {"predicate": bool}),
    "map": (
        method(numbers, "map"),
        {"map_func": lambda x, generator: x, "num_parallel_calls": 2, "seed": 1},
    ),
    "from_generator": (tfw.Dataset.from_generator, {"generator": list, "args": ()}),
    "from_tensor_slices": (tfw.Dataset.from_tensor_slices, {"tensors": [1]}),
    "list_files": (
        tfw.Dataset.list_files,
        {"file_pattern": "dat*", "shuffle": True, "seed": 1, "storage_options": None},
    ),
    "Dataset.parse_example": (
        method(numbers, "parse_example"),
        {"features": FEATURES, "num_threads": 2},
    ),
    "pack": (
        method(numbers, "pack"),
        {"lengths": {"x": 4}, "num_bins": 2, "on_long": "raise", "padding_values": 0},
    ),
    "prefetch": (method(numbers, "prefetch"), {"buffer_size": 2}),
    "range": (lambda args: tfw.Dataset.range(args), {"args": 2}),
    "repeat": (method(numbers, "repeat"), {"count": 2}),
    "resume": (method(numbers, "resume"), {"states": [iter(numbers()).state_dict()]}),
    "set_epoch": (method(numbers, "set_epoch"), {"epoch": 2}),
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
        | {"max_record_size": 100, "shuffle_files": True, "seed": 1, "storage_options": None}
        | {"cache_bytes": 0},
    ),
    "bytes_feature": (tfw.bytes_feature, {"value": b"x"}),
    "float_feature": (tfw.float_feature, {"value": 1.0}),
    "int64_feature": (tfw.int64_feature, {"value": 1}),
    "decode_example": (tfw.decode_example, {"serialized": EXAMPLE}),
    "decode_examples": (tfw.decode_examples, {"serialized": [EXAMPLE]}),
    "decode_sequence_example": (tfw.decode_sequence_example, {"serialized": SEQUENCE}),
    "encode_columns": (
        tfw.encode_columns,
        {"columns": ROW, "features": None, "sort_keys": True, "bytes_as": "object"}
        | {"num_threads": 1},
    ),
    "encode_example": (tfw.encode_example, {"row": ROW, "sort_keys": True}),
    "encode_examples": (tfw.encode_examples, {"rows": [ROW], "sort_keys": True, "kinds": None}),
    "encode_sequence_example": (
        tfw.encode_sequence_example,
        {"context": ROW, "feature_lists": {"s": [[1]]}, "sort_keys": True},
    ),
    "FixedLenFeature": (
        parsed(tfw.FixedLenFeature),
        {"shape": [1], "dtype": INT64, "default_value": [0]},
    ),
    "FixedLenSequenceFeature": (
        parsed(tfw.FixedLenSequenceFeature),
        {"shape": [1], "dtype": INT64, "allow_missing": True, "default_value": 0},
    ),
    "RaggedFeature": (
        parsed(tfw.RaggedFeature),
        {"dtype": INT64, "value_key": "v", "partitions": (), "row_splits_dtype": np.int32}
        | {"validate": False},
    ),
    "VarLenFeature": (parsed(tfw.VarLenFeature), {"dtype": INT64}),
    "SparseFeature": (
        parsed(tfw.SparseFeature),
        {"index_key": "i", "value_key": "v", "dtype": INT64, "size": 3, "already_sorted": False},
    ),
    "UniformRowLength": (
        lambda length: parsed(tfw.RaggedFeature)(
            dtype=INT64, partitions=[tfw.RaggedFeature.UniformRowLength(length)]
        ),
        {"length": 1},
    ),
    "RecordIndex.build_many": (
        tfw.RecordIndex.build_many,
        {"paths": ["data"], "compression_type": "auto", "key": None, "num_threads": 1}
        | {"storage_options": None},
    ),
    "RecordIndex.build": (
        tfw.RecordIndex.build,
        {"path": "data", "compression_type": "auto", "key": None, "storage_options": None},
    ),
    "RecordIndex.load": (
        tfw.RecordIndex.load,
        {"path": "data", "index_path": "data.tfwindex", "ignore_mtime": False}
        | {"storage_options": None},
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
    "TFRecordFile": (
        tfw.TFRecordFile,
        {"path": "data", "index": None, "cache_bytes": 0, "storage_options": None},
    ),
    "TFRecordFiles": (
        tfw.TFRecordFiles,
        {"paths": ["data"], "max_open_files": 3, "num_threads": 1, "storage_options": None}
        | {"cache_bytes": 0},
    ),
    "infer_schema": (
        tfw.infer_schema,
        {"paths": "data", "num_records": 10, "compression_type": "auto", "on_corrupt": "raise"}
        | {"storage_options": None},
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
    "Parser.parse_single": (
        method(lambda: tfw.Parser(FEATURES), "parse_single"),
        {"serialized": EXAMPLE},
    ),
    "SequenceParser.parse": (
        method(lambda: tfw.SequenceParser(FEATURES, LISTS), "parse"),
        {"serialized": [SEQUENCE], "out": None},
    ),
    "SequenceParser.parse_single": (
        method(lambda: tfw.SequenceParser(FEATURES, LISTS), "parse_single"),
        {"serialized": SEQUENCE},
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
        | {"repair_tail": False, "atomic": False, "index": False, "num_threads": 1}
        | {"storage_options": None, "kinds": None},
    ),
    "write": (method(one_writer, "write"), {"record": b"x"}),
    "write_many": (method(one_writer, "write_many"), {"records": [b"x"]}),
    "write_columns": (
        method(one_writer, "write_columns"),
        {"columns": ROW, "features": None},
    ),
    "write_records": (
        tfw.write_records,
        {"path": "out", "records": [b"x"], "options": "", "storage_options": None, "kinds": None},
    ),
    "follow_records": (
        tfw.follow_records,
        {"path": "data", "interval": 1, "timeout": 0, **READ},
    ),
    "read_records": (
        tfw.read_records,
        {"paths": "data", "on_corrupt": "raise", "receipt": False, "num_threads": 1, **READ},
    ),
    "repair_file": (
        tfw.repair_file,
        {"path": "data", "out_path": "out", "compression_type": "auto", "max_record_size": 99}
        | {"correct": False, "accept_ambiguous": False, "overwrite": True, "storage_options": None}
        | {"out_compression_type": "auto", "progress": print},
    ),
    "verify_file": (
        tfw.verify_file,
        {"path": "data", "compression_type": "auto", "max_record_size": 99, "file_crc32c": False}
        | {"receipt": False, "progress": print, "storage_options": None},
    ),
    "verify_files": (
        lambda **arguments: list(tfw.verify_files(**arguments)),
        {"paths": ["data"], "compression_type": "auto", "max_record_size": 99}
        | {"file_crc32c": False, "receipt": False, "progress": print, "num_threads": 1}
        | {"storage_options": None},
    ),
    "read_schema": (tfw.read_schema, {"path": "schema.json"}),
    "write_schema": (tfw.write_schema, {"features": FEATURES, "path": "out.json"}),
    "ShardedWriter": (
        lambda **arguments: tfw.ShardedWriter(**arguments).close(),
        {"pattern": "out-{shard}", "num_shards": 2, "options": None, "compression_level": None}
        | {"index": False, "num_threads": 1, "storage_options": None, "kinds": None},
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
    "decode": (
        images.decode,
        {"contents": PNG, "channels": 0, "frames": False, "size": 2, "num_threads": 1}
        | {"library": "pillow", "device": None},
    ),
    "decode_images": (
        method(lambda: tfw.Dataset.from_tensor_slices({"x": [PNG]}), "decode_images"),
        {"names": {"x": "y"}, "size": 2, "channels": 0, "num_threads": 1}
        | {"library": "pillow", "device": None},
    ),
    "recommend_num_shards": (
        sharding.recommend_num_shards,
        {"total_bytes": 10**9, "num_hosts": 1},
    ),
    "open_reader": (
        arrow.open_reader,
        {
            "paths": "data",
            "features": FEATURES,
            "columns": ["a"],
            "batch_size": 2,
            "num_threads": 1,
            "tensors": False,
            "binary_as": "binary",
            "compression_type": "auto",
            "on_corrupt": "raise",
            "with_positions": False,
            "storage_options": None,
        },
    ),
    "recover_shards": (sharding.recover_shards, {"folder": ".", "storage_options": None}),
}

# Methods of writers, which open a file before they are called.
OPENING = {"write", "write_many", "write_columns"}
OPENING |= {"ShardedWriter.write", "ShardedWriter.write_many"}

# What the library makes itself, or leaves to protobuf: the arguments are no user's.
RESULTS = {"ArrowReader", "Dataset", "DatasetIterator", "FileReport", "FlippedBit", "FlippedBits"}
RESULTS |= {"InferredSchema", "RaggedTensor", "Receipt", "RecordBatch", "RecordIndex"}
RESULTS |= {"RecordIndex.check", "RecordIterator"}
RESULTS |= {"RecordPosition", "RepairReport", "SkippedRegion", "SkippedRegions", "SparseTensor"}
RESULTS |= {"SkippedRegions.add", "SkippedRegions.first", "TornTail"}
RESULTS |= {"BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features"}
RESULTS |= {"FloatList", "Int64List", "SequenceExample"}
RESULTS |= {f"{name}.SerializeToString" for name in RESULTS}

# Two words for one argument, of which the table has one.
OTHER_WORD = {"compression_type": "options", "options": "compression_type"}

# Arguments that TensorFlow has, and that are ignored.
IGNORED = {"name", "num_parallel_calls", "deterministic", "output_types", "output_shapes"}
IGNORED |= {"output_signature", "input_buffer_size", "output_buffer_size"}


def public_functions():
    """The name of every public function, class and method, and it."""
    modules = ("", ".checksum", ".train", ".sharding", ".images", ".arrow")
    for module in (f"tfwire{name}" for name in modules):
        for name, value in vars(import_module(module)).items() if module != "tfwire" else []:
            if name in import_module(module).__all__:
                yield from members(name, value)
    for name in tfw.__all__:
        yield from members(name, getattr(tfw, name))


def members(name, value):
    if not inspect.isclass(value):
        if callable(value):
            yield name, value
    elif not issubclass(value, BaseException):
        yield name, value
        for key in dir(value):
            method = inspect.getattr_static(value, key)
            method = getattr(method, "__func__", method)
            if not key.startswith("_") and inspect.isfunction(method):
                yield f"{name}.{key}", method


def unchecked():
    """Every argument of a public function that is not in the table."""
    known = set()
    for name, (_, arguments) in FUNCTIONS.items():
        known |= {(part, key) for part in (name, name.split(".")[-1]) for key in arguments}
    known |= {
        ("ShardedWriter", "shard_size"),
        *(("read_table", key) for key in FUNCTIONS["open_reader"][1]),  # it hands them on
        ("TFRecordOptions.get_compression_type_string", "options"),
    }
    for name, function in public_functions():
        if name not in RESULTS:
            for key in inspect.signature(function).parameters:
                keys = {key, OTHER_WORD.get(key, key)}
                places = {(part, key) for part in (name, name.split(".")[-1]) for key in keys}
                if key not in IGNORED | {"self", "cls"} and not places & known:
                    yield name, key
