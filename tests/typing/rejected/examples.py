"""Wrong types of rows, messages and values."""

import tfwire as tfw
from tfwire import train

tfw.encode_example([1, 2])  # error
tfw.encode_example(b"cat")  # error
tfw.encode_example({1: 2})  # error
tfw.encode_example({"a": 1}, sort_keys="no")  # error
tfw.encode_examples({"a": 1})  # error
tfw.encode_examples([b"cat"])  # error
tfw.encode_columns([1])  # error
tfw.encode_columns({"a": [1]}, bytes_as="list")  # error
tfw.encode_sequence_example([1], {})  # error
tfw.decode_example("text").clear()  # error
tfw.decode_example(3)  # error
tfw.decode_example([b"cat"])  # error
tfw.decode_examples(3)  # error
tfw.decode_examples([3])  # error
tfw.decode_example(b"")[0]  # error
tfw.int64_feature(1.5)  # error
tfw.int64_feature("1")  # error
tfw.int64_feature(None)  # error
tfw.float_feature("1.5")  # error
tfw.float_feature(None)  # error
tfw.bytes_feature(3)  # error
tfw.bytes_feature(None)  # error
tfw.example_to_json(3)  # error
tfw.example_to_json(b"", indent="2")  # error
tfw.decode_json_example(3)  # error
tfw.decode_json_example([3])  # error
tfw.parse_tensor(b"", 3)  # error
tfw.parse_tensor(3, "int64")  # error
tfw.decode_raw(3, "uint8")  # error
tfw.decode_raw(b"", "uint8", "little")  # error
tfw.BytesColumn("text", [0, 4])  # error
tfw.BytesColumn(b"text", [0, 4])["a"]  # error
tfw.RaggedTensor(3, [0, 1])  # error
train.Example(feature={})  # error
train.Example().features.featur  # error
train.Int64List(value=3)  # error
train.Int64List(value=["a"])  # error
train.FloatList(value=["a"])  # error
train.BytesList(value=[3])  # error
train.to_dict(3)  # error
train.Feature().WhichOneof("kind") == "string_list"  # error
