"""JSON beside TensorFlow: each reads the other's Examples."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf
from google.protobuf import json_format
from hypothesis import given, settings, strategies as st

import tfwire as tfw

EXAMPLES = int(os.environ.get("TFWIRE_ORACLE_EXAMPLES", "1000"))
FEATURES = st.dictionaries(
    st.text(max_size=5),
    st.lists(st.binary(max_size=5), max_size=3)
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)
    # TensorFlow reads subnormal numbers as zeros, and NaN with another sign.
    | st.lists(st.floats(width=32, allow_nan=False, allow_subnormal=False), max_size=3),
    max_size=4,
)
TEXTS = [
    f'{{"features":{{"feature":{{"a":{{"{kind}":{{"value":{values}}}}}}}}}}}'
    for kind, values in [
        ("int64List", '["1", 2]'),
        ("int64_list", "[1.0, 1e2]"),
        ("int64List", "[1.5]"),
        ("int64List", '["9223372036854775808"]'),
        ("int64List", "[true]"),
        ("int64List", '[""]'),
        ("int64List", "null"),
        ("int64List", '"x"'),
        ("bytesList", '["YWI=", "YWI", "_-8=", "/+8=", ""]'),
        ("bytesList", '["Y"]'),
        ("bytesList", '["****"]'),
        ("bytesList", '["YW I="]'),
        ("floatList", '[1, 1.5, 0.1, 1e-300, "NaN", "Infinity", "-Infinity", "1.25"]'),
        ("floatList", "[NaN]"),
        ("floatList", "[1e300]"),
        ("floatList", "[3.4028235e38, -3.4028235e38, 1e38]"),
        ("floatList", '["1e300"]'),
        ("floatList", '["nan", "inf", "-inf"]'),
        ("floatList", "[true]"),
        ("int64List", "5"),
        ("int64List", '["007"]'),
        ("int64List", '["1e3", "-0"]'),
        ("int64List", '["+1"]'),
        ("int64List", "[1e19]"),
        ("floatList", '["-.5", ".5", "5.", "5.e1", "+.25e1"]'),
        ("floatList", '["."]'),
        ("floatList", '[".e1"]'),
        ("int64List", '["5.", "5.e1"]'),
        ("int64List", '[".5"]'),
        ("nope", "[1]"),
    ]
] + [
    '{"features":{"feature":{"a":{"int64List":{"value":[1]}}},"feature":{"b":{}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1]}}}},"features":{"feature":{"b":{}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1]}}},"feature":{"a":{}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1]}}},"feature":null}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1],"value":[2]}}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1],"value":null}}}}}',
    '{"features":{"feature":{"a":{},"a":{}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"int64List":{}}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"int64_list":{}}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"floatList":{}}}}}',
    '{"features":{"feature":{"a":{}}}}',
    '{"features":{"feature":{"a":null}}}',
    '{"features":{"feature":[]}}',
    '{"features":null}',
    '{"features":{}}',
    '{"features":{"feature":null}}',
    '{"features":{"feature":{"a":{"int64List":{}}}}}',
    '{"features":{"feature":{"a":{"int64List":null}}}}',
    '{"features":{"feature":{"a":{"int64List":{}},"a":{}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"floatList":{}}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"int64_list":{}}}}}',
    '{"features":{"feature":{"a":{"int64List":{},"floatList":null}}}}',
    '{"features":{"feature":{"a":{"int64List":{"nope":1}}}}}',
    '{"nope":1}',
    "{}",
    "null",
    "[]",
    "",
    "{} x",
]


@given(FEATURES)
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_examples_go_both_ways(mapping):
    example = tf.train.Example()
    for key, values in mapping.items():
        kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
        example.features.feature[key].SetInParent()
        if values:
            getattr(example.features.feature[key], kind[type(values[0])]).value.extend(values)
    ours = tfw.example_to_json(example)
    expected = example.SerializeToString(deterministic=True)
    decoded = tf.train.Example.FromString(tf.io.decode_json_example(ours).numpy())
    assert expected == decoded.SerializeToString(deterministic=True)
    assert expected == tfw.decode_json_example(json_format.MessageToJson(example))


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_or_refused_alike(text):
    try:
        theirs = tf.io.decode_json_example(text).numpy()
    except tf.errors.InvalidArgumentError:
        with pytest.raises(tfw.ParseError):
            tfw.decode_json_example(text)
    else:
        expected = tf.train.Example.FromString(theirs).SerializeToString(deterministic=True)
        assert expected == tfw.decode_json_example(text)
