"""Parsing with a specification. A batch has the type of its features, if all are of one kind. Which
kind each key of a mixed one has, and which shape in one Example, no type says: values are Any, and
a program uses them as what it knows them to be."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tfwire as tfw

Array = npt.NDArray[Any]
messages = [b"", b""]

dense = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([2, 3], np.float32, default_value=[0.0] * 6),
    "name": tfw.FixedLenFeature((), "string", default_value="?"),
}
padded = {"ids": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True)}
sparse = {"tags": tfw.VarLenFeature(tfw.string)}
placed = {"at": tfw.SparseFeature("index", "value", tfw.float32, size=4)}
ragged = {
    "words": tfw.RaggedFeature(tfw.string, "words", [tfw.RaggedFeature.RowLengths("lengths")])
}
mixed = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "tags": tfw.VarLenFeature(tfw.string),
    "words": tfw.RaggedFeature(tfw.string),
}

# ---- Parser ----

parser = tfw.Parser(dense)
batch = parser.parse(messages)
assert_type(batch, dict[str, Array])
batch["label"].sum()
assert_type(
    parser.parse(np.array(messages, object), out={"label": np.zeros(2, int)}), dict[str, Array]
)
assert_type(parser.parse(tfw.BytesColumn(b"", [0, 0])), dict[str, Array])
assert_type(parser.parse(b""), dict[str, Any])
assert_type(parser.parse_single(b""), dict[str, Any])
assert_type(parser.parse_single(tfw.train.Example()), dict[str, Any])
assert_type(tfw.Parser(padded).parse(messages), dict[str, Array])
assert_type(tfw.Parser(sparse).parse(messages), dict[str, tfw.SparseTensor])
assert_type(tfw.Parser(placed).parse(messages), dict[str, tfw.SparseTensor])
assert_type(tfw.Parser(sparse).parse_single(b""), dict[str, tfw.SparseTensor])
assert_type(tfw.Parser(ragged).parse(messages), dict[str, tfw.RaggedTensor])
assert_type(tfw.Parser(mixed).parse(messages), dict[str, Any])
assert_type(tfw.Parser(dense, bytes_as="column").parse(messages), dict[str, Any])
assert_type(tfw.Parser(ragged).parse_single(b""), dict[str, Any])
assert_type(
    tfw.Parser({b"label": tfw.FixedLenFeature([], int)}).parse(messages), dict[bytes, Array]
)
tfw.Parser(mixed, empty_is_missing=True).parse(messages)["tags"].to_dense()

# ---- Files ----

with parser.parse_file(["a", "b"], 128, on_corrupt="skip", on_parse_error="skip") as batches:
    for batch in batches:
        assert_type(batch, dict[str, Array])
    assert_type(batches.skipped, tfw.SkippedRegions)
    assert_type(batches.parse_errors, list[tfw.ParseError])
    assert_type(batches.num_parse_errors, int)
    assert_type(batches.receipt, tfw.Receipt)
for sparse_batch in tfw.Parser(sparse).parse_file("a", num_threads=2, drop_remainder=True):
    assert_type(sparse_batch, dict[str, tfw.SparseTensor])
parser.parse_file("a", max_record_size=None).close()
parser.parse_file("a", max_record_size=10**6).close()


def labels(parser: tfw.Parser[dict[str, Array], dict[str, Any]], path: str) -> list[Array]:
    return [batch["label"] for batch in parser.parse_file(path)]


labels(parser, "a")

# What most programs do.
for parsed in tfw.Parser(
    {"x": tfw.FixedLenFeature([8], tfw.float32), "tags": tfw.VarLenFeature(tfw.string)}
).parse_file("a"):
    print(parsed["x"].sum(), parsed["tags"].values, parsed["tags"].values.tolist())

# ---- TensorFlow's functions ----

assert_type(tfw.parse_example(messages, dense), dict[str, Array])
assert_type(tfw.parse_example(messages, sparse), dict[str, tfw.SparseTensor])
assert_type(
    tfw.parse_example(messages, ragged, example_names=["a", "b"]), dict[str, tfw.RaggedTensor]
)
assert_type(tfw.parse_example(messages, mixed), dict[str, Any])
assert_type(tfw.parse_example(b"", dense), dict[str, Any])
single = tfw.parse_single_example(b"", mixed)
assert_type(single, dict[str, Any])
int(single["label"])
assert_type(tfw.parse_single_example(b"", sparse), dict[str, tfw.SparseTensor])

# ---- SequenceExamples ----

context = {"n": tfw.FixedLenFeature([], tfw.int64)}
steps = {"x": tfw.FixedLenSequenceFeature([], tfw.float32)}
dense_context, dense_lists, lengths = tfw.parse_sequence_example(messages, context, steps)
assert_type(dense_context, dict[str, Array])
assert_type(dense_lists, dict[str, Array])
assert_type(lengths, dict[str, npt.NDArray[np.int64]])
lists = tfw.parse_sequence_example(messages, sequence_features=sparse)
assert_type(lists[1], dict[str, Any])
assert_type(
    tfw.parse_single_sequence_example(b"", context, steps), tuple[dict[str, Any], dict[str, Any]]
)
sequence_parser = tfw.SequenceParser(context, steps)
assert_type(sequence_parser.parse(messages)[1], dict[str, Array])
for _, parsed_lists, parsed_lengths in sequence_parser.parse_file("a"):
    assert_type(parsed_lists, dict[str, Array])
    assert_type(parsed_lengths["x"], npt.NDArray[np.int64])

# ---- Schemas ----

schema = tfw.infer_schema(["a", "b"], 100)
assert_type(schema, tfw.InferredSchema)
assert_type(schema.num_records, int)
tfw.Parser(schema).parse(messages)
tfw.SequenceParser(schema, schema.sequence_features)
tfw.write_schema(schema, "schema.pbtxt")
tfw.write_schema(mixed, "schema.json")
tfw.Parser(tfw.read_schema("schema.pbtxt"))


def of_any_features(features: Mapping[str, tuple[object, ...]]) -> object:
    return tfw.Parser(features).parse(messages)["label"]
