"""Wrong specifications, words and inputs of parsers."""

import numpy as np

import tfwire as tfw

label = {"label": tfw.FixedLenFeature([], tfw.int64)}
tags = {"tags": tfw.VarLenFeature(tfw.string)}

tfw.FixedLenFeature([])  # error
tfw.FixedLenFeature([], 3)  # error
tfw.FixedLenFeature(["2"], tfw.int64)  # error
tfw.FixedLenFeature([], tfw.int64, default=3)  # error
tfw.VarLenFeature([], tfw.int64)  # error
tfw.VarLenFeature(3)  # error
tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing="yes")  # error
tfw.SparseFeature("index", "value", tfw.int64)  # error
tfw.SparseFeature("index", "value", tfw.int64, size="4")  # error
tfw.RaggedFeature(tfw.string, 3)  # error
tfw.RaggedFeature(tfw.string, "words", ["lengths"])  # error
tfw.Parser({"label": 3})  # error
tfw.Parser({"label": tfw.int64})  # error
tfw.Parser([tfw.FixedLenFeature([], tfw.int64)])  # error
tfw.Parser(None)  # error
tfw.Parser(label, bytes_as="list")  # error
tfw.Parser(label, empty_is_missing="no")  # error
tfw.SequenceParser(3)  # error
tfw.SequenceParser(label, bytes_as="list")  # error

parser = tfw.Parser(label)
parser.parse(3)  # error
parser.parse([3])  # error
parser.parse([b""], out=[np.zeros(1)])  # error
parser.parse([b""], out={"label": [0]})  # error
parser.parse([b""])["label"].to_dense()  # error
parser.parse([b""])[0]  # error
parser.parse_single([b""])  # error
parser.parse_single(3)  # error
parser.parse_file(3)  # error
parser.parse_file("a", "1024")  # error
parser.parse_file("a", on_corrupt="nonsense")  # error
parser.parse_file("a", on_parse_error="stop")  # error
parser.parse_file("a", compression_type="BZIP2")  # error
parser.parse_file("a", verify="no")  # error
parser.parse_file("a", num_threads=None)  # error
parser.parse_file("a", max_record_size=1.5)  # error
for batch in parser.parse_file("a"):
    batch.label  # error
tfw.Parser(tags).parse([b""])["tags"].sum()  # error

tfw.parse_example(3, label)  # error
tfw.parse_example([b""], {"label": 3})  # error
tfw.parse_example([b""], tags)["tags"].sum()  # error
tfw.parse_single_example([b""], label)  # error
tfw.parse_single_example(b"", {"label": 3})  # error
tfw.parse_sequence_example([b""], [3])  # error
tfw.parse_single_sequence_example(b"", {"n": 3})  # error
tfw.infer_schema(3)  # error
tfw.infer_schema("a", "all")  # error
tfw.infer_schema("a", compression_type="BZIP2")  # error
tfw.infer_schema("a", on_corrupt="ignore")  # error
tfw.write_schema({"label": 3}, "schema.json")  # error
tfw.write_schema(label, 3)  # error
tfw.read_schema(3)  # error
