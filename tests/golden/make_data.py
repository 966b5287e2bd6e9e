"""Writes the golden files of this folder with TensorFlow: python tests/golden/make_data.py

TensorFlow writes every record file; the .json beside it says what TensorFlow's own protobuf
classes hold, so that a reader is compared with what was meant and not with itself.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
SUFFIXES = {"": "", "GZIP": ".gz", "ZLIB": ".zlib"}

INT64S = [0, 1, -1, 127, 128, 16383, 16384, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, 0.1, -3.5e-45, 3.4028235e38, float("inf"), float("-inf"), float("nan")]
STRINGS = [b"", b"\x00", b"cat", "héllo 雪".encode(), bytes(range(256)), b"\xff\xfe", b"x" * 300]


def int64s(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(feature):
    return tf.train.Example(features=tf.train.Features(feature=feature))


def examples():
    """Examples of every kind and of every size that the wire format treats differently."""
    yield example({})
    yield example({"int64": int64s(INT64S), "float": floats(FLOATS), "bytes": strings(STRINGS)})
    yield example({"no int64": int64s([]), "no float": floats([]), "no bytes": strings([])})
    yield example({"no kind": tf.train.Feature()})
    yield example({"名前": strings([b"v"]), "key with spaces": floats([2.5])})
    yield example({"": int64s([1])})
    yield example({f"feature{i:03d}": int64s([i]) for i in range(150)})
    for name in (b"cat", b"dog", b"chicken", b"horse", b"goat"):
        yield example(
            {
                "feature0": int64s([len(name) % 2]),
                "feature1": int64s([len(name)]),
                "feature2": strings([name]),
                "feature3": floats([len(name) / 3]),
            }
        )
    yield example({"many": int64s(range(-500, 500))})
    yield example({"ramp": floats(np.linspace(-1, 1, 700, dtype=np.float32))})


def sequence_examples():
    """SequenceExamples: context only, lists only, empty lists and steps, both."""
    lists = tf.train.FeatureLists
    steps = tf.train.FeatureList
    yield tf.train.SequenceExample()
    yield tf.train.SequenceExample(
        context=tf.train.Features(feature={"length": int64s([3]), "name": strings([b"abc"])}),
        feature_lists=lists(
            feature_list={
                "words": steps(feature=[strings([w]) for w in (b"the", b"small", b"cat")]),
                "ids": steps(feature=[int64s([1, 2]), int64s([]), int64s([3])]),
                "frames": steps(feature=[floats([0.5, 1.5]), floats([2.5, 3.5])]),
            }
        ),
    )
    yield tf.train.SequenceExample(feature_lists=lists(feature_list={"none": steps()}))
    yield tf.train.SequenceExample(
        feature_lists=lists(feature_list={"kindless": steps(feature=[tf.train.Feature()])})
    )


def plain_feature(feature):
    """[kind, values], floats as their bits and bytes as hex, so that JSON holds them exactly."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return [None, []]
    values = getattr(feature, kind).value
    if kind == "float_list":
        return ["float", np.array(values, np.float32).view(np.uint32).tolist()]
    if kind == "bytes_list":
        return ["bytes", [value.hex() for value in values]]
    return ["int64", list(values)]


def plain_features(features):
    return {key: plain_feature(features.feature[key]) for key in sorted(features.feature)}


def plain_lists(feature_lists):
    lists = feature_lists.feature_list
    return {key: [plain_feature(step) for step in lists[key].feature] for key in sorted(lists)}


def write(name, records, compression=""):
    path = HERE / (name + SUFFIXES[compression])
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for record in records:
            writer.write(record)


def write_json(name, rows):
    """A JSON list, one record a line."""
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n")


def main():
    messages = list(examples())
    records = [message.SerializeToString(deterministic=True) for message in messages]
    sequences = list(sequence_examples())
    sequence_records = [s.SerializeToString(deterministic=True) for s in sequences]
    for compression in SUFFIXES:
        write("examples.tfrecord", records, compression)
        write("empty.tfrecord", [], compression)
    write("empty_record.tfrecord", [b""])
    write("sequences.tfrecord", sequence_records)
    # Far above a 256 KiB buffer when unpacked, a few hundred bytes here.
    write("long_record.tfrecord", [b"a", b"\x00" * 700_000, b"z"], "GZIP")

    write_json("examples.json", [plain_features(message.features) for message in messages])
    write_json(
        "sequences.json",
        [[plain_features(s.context), plain_lists(s.feature_lists)] for s in sequences],
    )


if __name__ == "__main__":
    main()
