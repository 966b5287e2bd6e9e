"""Examples in protobuf's JSON form."""

import base64
import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from tfwire import train


def text_with(kind, *values):
    return json.dumps({"features": {"feature": {"a": {kind: {"value": list(values)}}}}})


def values_of(serialized):
    return train.to_dict(serialized)["a"]


def test_an_example_in_json_is_a_serialized_example():
    expected = train.Example()
    expected.features.feature["a"].int64_list.value.extend([1, -(2**63)])
    text = text_with("int64List", "1", "-9223372036854775808")
    assert expected.SerializeToString() == tfw.decode_json_example(text)


@pytest.mark.parametrize("kind", ["int64List", "int64_list"])
def test_fields_are_in_either_case(kind):
    assert [7] == values_of(tfw.decode_json_example(text_with(kind, 7)))


@pytest.mark.parametrize("value", [7, "7", 7.0])
def test_integers_are_numbers_or_strings(value):
    assert [7] == values_of(tfw.decode_json_example(text_with("int64List", value)))


@pytest.mark.parametrize("value", ["YWL/", "YWL_"])
def test_bytes_are_base64_of_either_alphabet(value):
    assert [b"ab\xff"] == values_of(tfw.decode_json_example(text_with("bytesList", value)))


def test_floats_beyond_json_are_words():
    text = text_with("floatList", 0.5, "NaN", "Infinity", "-Infinity", "2.5")
    half, nan, infinity, minus, text_number = values_of(tfw.decode_json_example(text))
    assert math.isnan(nan)
    assert [0.5, math.inf, -math.inf, 2.5] == [half, infinity, minus, text_number]


def test_numbers_in_quotes_may_begin_or_end_with_a_point():
    text = text_with("floatList", "-.5", ".5", "5.", "5.e1")
    assert [-0.5, 0.5, 5.0, 50.0] == values_of(tfw.decode_json_example(text))
    assert [5] == values_of(tfw.decode_json_example(text_with("int64List", "5.")))


@pytest.mark.parametrize("feature", ["{}", "null"])
def test_a_feature_without_a_kind_stays_one(feature):
    serialized = tfw.decode_json_example(f'{{"features": {{"feature": {{"a": {feature}}}}}}}')
    assert {"a": []} == train.to_dict(serialized)


def test_texts_in_any_shape_give_messages_in_that_shape():
    one = text_with("int64List", 1)
    two = text_with("int64List", 2)
    found = tfw.decode_json_example([[one, two.encode()]])
    assert (np.dtype(object), (1, 2)) == (found.dtype, found.shape)
    assert [[1], [2]] == [values_of(item) for item in found[0]]
    assert [1] == values_of(tfw.decode_json_example(np.array(one, object)))
    assert (0,) == tfw.decode_json_example([]).shape


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "an Example must be an object, found an array"),
        ("null", "an Example must be an object, found null"),
        ('{"nope": 1}', "unknown field 'nope' in Example"),
        ('{"features": {"nope": 1}}', "unknown field 'nope' in features"),
        ('{"features": {"feature": {"a": {"nope": 1}}}}', "unknown field 'nope' in feature 'a'"),
        ('{"features": {"feature": {"a": {"int64List": {"nope": 1}}}}}', "unknown field 'nope'"),
        ('{"features": {"feature": {"a": {"int64List": [1]}}}}', "object, found an array"),
        ('{"features": {"feature": {"a": {}, "a": {}}}}', "a feature occurs twice in one object"),
        (b"\xff", "utf-8"),
        ("[" * 100_000, "nested too deeply"),
        (text_with("int64List", 1, 1.5), "value 1: expected an integer, found a number"),
        (text_with("int64List", 1, None), "value 1: expected an integer, found null"),
        (text_with("floatList", [1.5]), "expected a number within float32, found an array"),
        (text_with("int64List", "0x10"), "value 0: expected an integer, found a string"),
        (text_with("floatList", "."), "expected a number within float32, found a string"),
        (text_with("int64List", 2**63), "expected an integer of 64 bits"),
        (text_with("int64List", "-9223372036854775809"), "expected an integer of 64 bits"),
        (text_with("int64List", True), "expected an integer, found a bool"),
        (text_with("int64List", ""), "expected an integer, found a string"),
        (text_with("int64List", " 1"), "expected an integer, found a string"),
        (text_with("int64List", "1_0"), "expected an integer, found a string"),
        (text_with("int64List", None), "expected an integer, found null"),
        (text_with("int64List", "1e999"), "value 0: "),
        (text_with("floatList", 1e300), "expected a number within float32"),
        (text_with("floatList", "1e300"), "expected a number within float32"),
        (text_with("floatList", 10**400), "expected a number within float32"),
        (text_with("floatList", True), "expected a number within float32, found a bool"),
        (text_with("floatList", "x"), "expected a number within float32, found a string"),
        (text_with("floatList", math.nan), '"NaN" is read'),
        (text_with("bytesList", "YW I="), "value 0: expected base64"),
        (text_with("bytesList", "*"), "feature 'a', value 0"),
        (text_with("bytesList", 1), "expected base64, found a number"),
        (text_with("bytesList", "Y"), "expected base64 of whole bytes"),
        (
            '{"features": {"feature": {"a": {"int64List": {}, "floatList": {}}}}}',
            "more than one kind: 'int64List', 'floatList'",
        ),
    ],
)  # fmt: skip
def test_what_is_no_example_is_refused_with_its_reason(text, reason):
    with pytest.raises(tfw.ParseError, match="the JSON text is no Example: ") as caught:
        tfw.decode_json_example(text)
    assert reason in str(caught.value)
    assert "malformed" == caught.value.reason


def test_the_text_at_fault_is_numbered():
    with pytest.raises(tfw.ParseError, match="JSON text 1 is no Example") as caught:
        tfw.decode_json_example(["{}", "x"])
    assert 1 == caught.value.record_index


def test_the_largest_floats_survive():
    largest = float(np.finfo(np.float32).max)
    text = text_with("floatList", 3.4028235e38, "-3.4028235e+38")
    assert [largest, -largest] == values_of(tfw.decode_json_example(text))


def test_json_has_sorted_keys_and_one_line():
    example = train.Example()
    example.features.feature["b"].bytes_list.value.append(b"\xff")
    example.features.feature["a"].float_list.value.append(0.1)
    expected = (
        '{"features": {"feature": {"a": {"floatList": {"value": [0.1]}}, '
        '"b": {"bytesList": {"value": ["/w=="]}}}}}'
    )
    assert expected == tfw.example_to_json(example)
    assert expected == tfw.example_to_json(example.SerializeToString())
    assert json.loads(expected) == json.loads(tfw.example_to_json(example, indent=2))


def test_sequence_examples_have_a_json_form_too():
    example = train.SequenceExample()
    example.feature_lists.feature_list["w"].feature.add().int64_list.value.append(1)
    tree = json.loads(tfw.example_to_json(example))
    steps = tree["featureLists"]["featureList"]["w"]["feature"]
    assert [{"int64List": {"value": ["1"]}}] == steps


def test_a_zero_in_quotes_keeps_its_sign():
    text = '{"features": {"feature": {"": {"floatList": {"value": ["-0", "0", "-0.0"]}}}}}'
    assert ["-0.0", "0.0", "-0.0"] == [
        str(value) for value in tfw.decode_example(tfw.decode_json_example(text))[""].tolist()
    ]


def test_bytes_that_are_no_example_have_no_json():
    with pytest.raises(tfw.ParseError, match="not a valid Example"):
        tfw.example_to_json(b"\xff\xff")


FEATURES = st.dictionaries(
    st.text(max_size=5),
    st.lists(st.binary(max_size=5), max_size=3)
    | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)
    | st.lists(st.floats(width=32, allow_nan=False), max_size=3),
    max_size=4,
)


@given(FEATURES)
def test_examples_survive_json(mapping):
    example = train.Example()
    for key, values in mapping.items():
        feature = example.features.feature[key]
        kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
        feature.SetInParent()
        if values:
            getattr(feature, kind[type(values[0])]).value.extend(values)
    serialized = tfw.decode_json_example(tfw.example_to_json(example))
    assert example.SerializeToString(deterministic=True) == serialized


@given(st.binary(max_size=8))
def test_base64_is_read_with_and_without_padding(data):
    padded = base64.b64encode(data).decode()
    for text in [padded, padded.rstrip("=")]:
        assert [data] == values_of(tfw.decode_json_example(text_with("bytesList", text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"features": {"feature": {A}, "feature": {B}}}', {"a": [1], "b": [2]}),
        ('{"features": {"feature": {A}}, "features": {"feature": {B}}}', {"a": [1], "b": [2]}),
        ('{"features": {"feature": {A, B}, "feature": {C}}}', {"a": [3], "b": [2]}),
        ('{"features": {"feature": {A}, "feature": null}}', {"a": [1]}),
        (
            '{"features": {"feature": {"a": {"int64List": {"value": [1], "value": [2, 3]}}}}}',
            {"a": [1, 2, 3]},
        ),
    ],
)
def test_repeated_fields_go_on(text, expected):
    """As in TensorFlow: maps join, the last entry of a key counts, lists are concatenated."""
    for name, value in {"A": ("a", 1), "B": ("b", 2), "C": ("a", 3)}.items():
        text = text.replace(name, f'"{value[0]}": {{"int64List": {{"value": [{value[1]}]}}}}')
    found = tfw.decode_example(tfw.decode_json_example(text))
    assert expected == {key: values.tolist() for key, values in found.items()}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"features": {"feature": {"a": {"int64List": {"value": [' + "9" * 100_000 + "]}}}}}",
        '{"features": {"feature": {"a": {"int64List": {"value": ["' + "9" * 100_000 + '"]}}}}}',
        '{"features": {"feature": {"a": {"int64List": {"value": ["1e1000000000"]}}}}}',
        '{"features": {"feature": {"a": {"floatList": {"value": [1e1000000000]}}}}}',
    ],
    ids=["arrays", "objects", "digits", "digits in quotes", "exponent in quotes", "exponent"],
)
def test_depth_and_numbers_out_of_proportion_are_errors_of_few_words(text):
    with pytest.raises(tfw.ParseError) as caught:
        tfw.decode_json_example(text)
    assert len(str(caught.value)) < 300
