"""Examples without a specification: encoding, decoding, JSON, tensors, columns."""

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tfwire as tfw
from tfwire import train

# ---- Encoding ----

row = {"label": 1, "name": "cat", "image": b"...", "weights": np.ones(3), "ids": [1, 2]}
message = tfw.encode_example(row)
assert_type(message, bytes)
assert_type(tfw.encode_example({b"name": "cat"}, sort_keys=False), bytes)
assert_type(tfw.encode_examples([row, {"label": 2}]), list[bytes])
assert_type(tfw.encode_examples({"i": i} for i in range(3)), list[bytes])
columns = {"label": np.arange(3), "name": ["cat", "dog", "goat"]}
assert_type(tfw.encode_columns(columns), list[bytes])
assert_type(tfw.encode_columns(columns, bytes_as="object"), list[bytes])
assert_type(tfw.encode_columns(columns, bytes_as="column", num_threads=2), tfw.BytesColumn)
assert_type(tfw.encode_columns(columns, bytes_as="column"), tfw.BytesColumn)


class Frame:
    """As those of polars, pandas and pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self


class Batch:
    """As those of pyarrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self, self


assert_type(tfw.encode_columns(Frame(), num_threads=2), list[bytes])
assert_type(tfw.encode_columns(Batch(), bytes_as="column"), tfw.BytesColumn)
with tfw.TFRecordWriter("train.tfrecord") as writer:
    writer.write_columns(Frame())
with tfw.ShardedWriter("train-{shard}", num_shards=2) as sharded:
    sharded.write_columns(Batch())
assert_type(tfw.encode_sequence_example({"n": 2}, {"words": [["a"], ["b", "c"]]}), bytes)
assert_type(tfw.encode_sequence_example(None, {"words": [[1]]}), bytes)

# ---- Decoding ----

decoded = tfw.decode_example(message)
for key, values in decoded.items():
    assert_type(key, str)
    if isinstance(values, list):
        assert_type(values, list[bytes])
    else:
        values.sum()
many = tfw.decode_examples([message, message])
assert_type(len(many), int)
tfw.decode_examples(np.array([message], object))
tfw.decode_examples(tfw.encode_columns(columns, bytes_as="column"))
context, lists = tfw.decode_sequence_example(message)
for name, steps in lists.items():
    assert_type(name, str)
    assert_type(len(steps), int)

# ---- Features one by one, and messages ----

feature = tfw.int64_feature([1, 2])
assert_type(feature, train.Feature)
assert_type(tfw.int64_feature(True), train.Feature)
assert_type(tfw.int64_feature(np.int64(3)), train.Feature)
assert_type(tfw.int64_feature(np.arange(3)), train.Feature)
assert_type(tfw.float_feature(0.5), train.Feature)
assert_type(tfw.float_feature([1, 0.5]), train.Feature)
assert_type(tfw.bytes_feature("cat"), train.Feature)
assert_type(tfw.bytes_feature([b"cat", "dog"]), train.Feature)
example = train.Example(features=train.Features(feature={"label": feature}))
assert_type(example.SerializeToString(), bytes)
assert_type(example.features.feature["label"].int64_list.value[0], int)
assert_type(train.Example.FromString(message), train.Example)
train.Feature(int64_list=train.Int64List(value=[True, 2]))
assert_type(feature.WhichOneof("kind") == "int64_list", bool)
sequence = train.SequenceExample(context=train.Features(feature={"label": feature}))
sequence.feature_lists.feature_list["words"].feature.append(feature)
as_dict = example.to_dict()
assert_type(list(as_dict), list[str])
assert_type(list(train.to_dict(message)), list[str])
as_dict["label"][0] + 1

# ---- JSON and tensors ----

assert_type(tfw.example_to_json(message), str)
assert_type(tfw.example_to_json(example, indent=2), str)
assert_type(tfw.decode_json_example("{}"), bytes)
tfw.decode_json_example(["{}", "{}"]).tolist()
tfw.decode_json_example([["{}", b"{}"], ["{}", "{}"]]).tolist()
serialized = tfw.serialize_tensor(np.eye(2))
assert_type(serialized, bytes)
tfw.parse_tensor(serialized, "float64").sum()
tfw.parse_tensor(serialized, tfw.float32)
tfw.parse_tensor(serialized, np.float32, max_fill=100)
tfw.decode_raw([b"12", b"34"], np.uint8).sum()
tfw.decode_raw(b"1234", "uint16", little_endian=False, fixed_length=4).sum()

# ---- Columns ----

column = tfw.BytesColumn(b"catdog", [0, 3, 6])
assert_type(column[:1], tfw.BytesColumn)
assert_type(column[::-1], tfw.BytesColumn)
assert_type(column[[2, 0]], tfw.BytesColumn)
assert_type(column[column != b"cat"], tfw.BytesColumn)
assert_type(column[0], bytes | tfw.BytesColumn)
column[np.int64(0)]
assert_type(column.offsets, npt.NDArray[np.int64])
assert_type(column.data, npt.NDArray[np.uint8])
assert_type(column.shape, tuple[int, ...])
assert_type(column.to_numpy(), npt.NDArray[np.object_])
assert_type(column.take(np.array([1])), tfw.BytesColumn)
np.asarray(column)
sparse = tfw.SparseTensor(np.array([[0, 1]]), np.array([7]), np.array([2, 2]))
assert_type(sparse.shape, tuple[int, ...])
sparse.to_dense(-1).sum()
sparse.to_scipy().tocsr()
assert_type(sparse.indices, npt.NDArray[np.int64])
ragged = tfw.RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
assert_type(ragged[:2], tfw.RaggedTensor)
assert_type(ragged[np.array([2, 0])], tfw.RaggedTensor)
assert_type(ragged.ragged_rank, int)
assert_type(ragged.shape, tuple[int | None, ...])
ragged.row_lengths().sum()
ragged.row_splits.tolist()
ragged.to_list()[0][0] + 1
tfw.RaggedTensor([b"cat", b"dog"], [0, 1, 2]).to_list()[0][0].decode()
