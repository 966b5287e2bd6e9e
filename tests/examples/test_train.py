"""tfwire.train: protobuf messages without generated code, beside TensorFlow's own."""

import copy
import enum
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import text_format

import tfwire as tfw
from tfwire import train

# The observation (False, 4, b"goat", 0.9876) as the TensorFlow tutorial prints it.
GOAT = (
    b"\nR\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01"
    b"\x04\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04"
    b"[\xd3|?"
)


class Colour(enum.IntEnum):
    RED = 1


class Tensor:
    """Something with a ``numpy()``, as eager tensors are."""

    def __init__(self, value):
        self.value = value

    def numpy(self):
        return self.value


def observation():
    return train.Example(
        features=train.Features(
            feature={
                "feature0": train.Feature(int64_list=train.Int64List(value=[False])),
                "feature1": train.Feature(int64_list=train.Int64List(value=[4])),
                "feature2": train.Feature(bytes_list=train.BytesList(value=[b"goat"])),
                "feature3": train.Feature(float_list=train.FloatList(value=[0.9876])),
            }
        )
    )


def test_an_observation_has_the_bytes_of_the_tutorial():
    """Sorted by key, whatever the order that protobuf keeps them in."""
    assert GOAT == observation().SerializeToString()
    assert GOAT == observation().SerializeToString(deterministic=True)
    unsorted = observation().SerializeToString(deterministic=False)
    assert observation() == train.Example.FromString(unsorted)


# ---- What constructors take ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *([one] for one in (1, True, np.bool_(True), np.int8(1), np.uint64(1), np.array(1))),
        *([Colour.RED], Tensor([1]), iter([1])),
        *(np.array([1], dtype) for dtype in ("?", "i1", "u1", ">i2", "u4", "i8", "u8", "O")),
    ],
)
def test_int64_list_takes_every_integer(value):
    assert [1] == list(train.Int64List(value=value).value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([1.0], "float"),
        ([np.float32(1)], "float32"),
        (np.ones(2), "float"),
        (["1"], "str"),
        ("1", "str"),
        ([b"1"], "bytes"),
        ([None], "NoneType"),
        (np.array([1], "m8[ns]"), "timedelta64"),
        (np.array([1], "M8[ns]"), "datetime64"),
        ([np.array([1, 2])], r"an array of int64 and shape \[2\]"),
    ],
)
def test_int64_list_refuses_what_is_no_integer(value, found):
    with pytest.raises(TypeError, match=f"expected integers, found {found}"):
        train.Int64List(value=value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, np.uint64(2**63)])
def test_int64_list_refuses_what_int64_cannot_hold(value):
    with pytest.raises(ValueError, match="out of range"):
        train.Int64List(value=[value])


@pytest.mark.parametrize("value", [1, 1.0, True, np.bool_(True), np.float16(1), np.int8(1)])
def test_float_list_takes_every_real_number(value):
    assert [1.0] == list(train.FloatList(value=[value]).value)


def test_float_list_takes_bfloat16():
    values = np.array([1.5, -2], pytest.importorskip("ml_dtypes").bfloat16)
    for given in (values, list(values)):
        assert [1.5, -2.0] == list(train.FloatList(value=given).value)


def test_float_list_rounds_to_float32_and_overflows_to_infinity():
    assert [np.float32(0.1), np.inf, 0.0] == list(train.FloatList(value=[0.1, 1e300, 1e-300]).value)


@pytest.mark.parametrize("value", ["1", b"1", np.str_("1"), None, 1j, np.complex64(1)])
def test_float_list_refuses_what_is_no_real_number(value):
    with pytest.raises(TypeError, match="expected real numbers, found"):
        train.FloatList(value=[value])


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (b"a", b"a"),
        (np.bytes_(b"a"), b"a"),
        ("é", "é".encode()),
        (np.str_("é"), "é".encode()),
        (bytearray(b"a"), b"a"),
        (memoryview(b"abcd")[::2], b"ac"),
        (np.arange(6, dtype=np.uint8).reshape(2, 3)[:, ::2], b"\0\2\3\5"),
        (np.array("é"), "é".encode()),
        (np.array(b"a", object), b"a"),
        (Tensor(b"a"), b"a"),
    ],
)
def test_bytes_list_takes_text_and_buffers(value, stored):
    assert [stored] == list(train.BytesList(value=[value]).value)


@pytest.mark.parametrize("dtype", ["S", "U", "O"])
def test_bytes_list_takes_arrays_of_strings(dtype):
    assert [b"a", b"bc"] == list(train.BytesList(value=np.array(["a", "bc"], dtype)).value)


@pytest.mark.parametrize(
    "value", ["abc", b"abc", bytearray(b"abc"), memoryview(b"abc"), [1], [None], np.arange(3)]
)
def test_bytes_list_refuses_single_strings_and_numbers(value):
    """A string would be taken for a list of its characters, a number for a length."""
    with pytest.raises(TypeError, match=r"expected (a list of )?byte strings, found"):
        train.BytesList(value=value)


def test_lists_refuse_arrays_of_another_rank():
    with pytest.raises(TypeError, match="rank 1, found an array of rank 2"):
        train.Int64List(value=np.zeros((2, 2), int))


def test_none_is_a_field_that_is_not_given():
    assert train.Feature(int64_list=None) == train.Feature()
    assert train.Int64List(value=None) == train.Int64List()


def test_unknown_fields_are_refused():
    with pytest.raises(ValueError, match="nope"):
        train.Feature(nope=1)


# ---- What protobuf offers -----------------------------------------------------------------------


def test_messages_are_instances_of_their_class():
    example = observation()
    assert isinstance(example, train.Example)
    assert type(example) is train.Example
    assert isinstance(example.features.feature["feature0"], train.Feature)
    assert not isinstance(example, train.SequenceExample)


@pytest.mark.parametrize("name", sorted(set(train.__all__) - {"to_dict"}))
def test_messages_pickle(name):
    cls = getattr(train, name)
    assert cls() == pickle.loads(pickle.dumps(cls()))


def test_messages_pickle_and_copy_with_their_content():
    example = observation()
    for twin in [pickle.loads(pickle.dumps(example)), copy.copy(example), copy.deepcopy(example)]:
        assert type(twin) is train.Example
        assert twin == example


def test_fields_are_reached_and_changed_as_in_tensorflow():
    example = train.Example()
    assert not example.HasField("features")
    example.features.feature["x"].int64_list.value.append(7)
    example.features.feature["s"].bytes_list.value.extend([b"a", b"b"])
    assert example.HasField("features")
    assert "int64_list" == example.features.feature["x"].WhichOneof("kind")
    assert train.Feature().WhichOneof("kind") is None
    copied = train.Example()
    copied.ParseFromString(example.SerializeToString())
    assert copied == example
    example.features.feature["x"].float_list.value.append(1)
    assert "float_list" == example.features.feature["x"].WhichOneof("kind")


def test_a_sequence_example_is_built_step_by_step():
    example = train.SequenceExample()
    words = [3, 1, 2]
    example.context.feature["length"].int64_list.value.append(len(words))
    for word in words:
        steps = example.feature_lists.feature_list["words"].feature
        steps.add().int64_list.value.append(word)
    example = train.SequenceExample.FromString(example.SerializeToString())
    expected = {"context": {"length": [3]}, "feature_lists": {"words": [[3], [1], [2]]}}
    assert expected == example.to_dict()


# ---- Text ---------------------------------------------------------------------------------------


def image_example():
    integers = {"height": 213, "width": 320, "depth": 3, "label": 0}
    example = train.Example()
    for key, value in integers.items():
        example.features.feature[key].int64_list.value.append(value)
    example.features.feature["image_raw"].bytes_list.value.append(b"\xff\xd8\n")
    return example


def test_text_begins_as_the_tutorial_shows():
    expected = [
        "features {",
        "  feature {",
        '    key: "depth"',
        "    value {",
        "      int64_list {",
        "        value: 3",
        "      }",
        "    }",
        "  }",
        "  feature {",
        '    key: "height"',
        "    value {",
        "      int64_list {",
        "        value: 213",
        "      }",
    ]
    assert expected == str(image_example()).splitlines()[:15]


def test_text_is_sorted_by_key_whatever_the_order_of_insertion():
    keys = [f"key{i}" for i in range(50)]
    features = train.Features(feature={key: train.Feature() for key in reversed(keys)})
    lists = train.FeatureLists(feature_list={key: train.FeatureList() for key in reversed(keys)})
    for text in [str(features), str(train.Example(features=features)), str(lists)]:
        found = [line.split('"')[1] for line in text.splitlines() if "key:" in line]
        assert sorted(keys) == found


def test_text_reads_back():
    example = image_example()
    example.features.feature["empty"].SetInParent()
    example.features.feature['q"\\\n\u00e9'].float_list.value.extend([0.1, 1e10, np.inf, -0.0])
    assert example == text_format.Parse(str(example), train.Example())
    sequence = train.SequenceExample(context=example.features)
    sequence.feature_lists.feature_list["words"].feature.add().int64_list.value.append(1)
    sequence.feature_lists.feature_list["none"].SetInParent()
    assert sequence == text_format.Parse(str(sequence), train.SequenceExample())


def test_strings_are_escaped_as_protobuf_does():
    """Also beside keys that look like them, in steps, and empty ones."""
    strings = [bytes(range(256)), b"", b'value: ""', bytes(range(255, -1, -1))]
    feature = train.Feature(bytes_list=train.BytesList(value=strings))
    empty = train.Feature(bytes_list=train.BytesList())
    features = {'value: ""': feature, "empty": empty, "none": train.Feature()}
    steps = train.FeatureList(feature=[feature, empty, train.Feature(), feature])
    expected = "".join(f'value: "{_native_text(string)}"' for string in strings)
    for message in (
        train.Features(feature=features),
        train.FeatureLists(feature_list={"steps": steps, "none": train.FeatureList()}),
    ):
        assert message == text_format.Parse(str(message), type(message)())
        assert expected in re.sub(r"\n\s*", "", str(message))


def _native_text(string):
    return str(train.BytesList(value=[string])).removeprefix('value: "').removesuffix('"\n')


def test_repr_is_the_text():
    assert repr(image_example()) == str(image_example())
    assert "" == str(train.Example())


# ---- to_dict ------------------------------------------------------------------------------------


def test_to_dict_gives_plain_lists():
    example = observation()
    example.features.feature["none"].SetInParent()
    expected = {
        "feature0": [0],
        "feature1": [4],
        "feature2": [b"goat"],
        "feature3": [float(np.float32(0.9876))],
        "none": [],
    }
    assert expected == example.to_dict()
    assert expected == train.to_dict(example)
    assert expected == train.to_dict(example.SerializeToString())


def test_to_dict_says_what_it_cannot_read():
    with pytest.raises(tfw.ParseError, match="3 bytes that are not a valid Example"):
        train.to_dict(b"\xff\xff\xff")
    with pytest.raises(TypeError, match=r"found tensorflow\.Feature"):
        train.to_dict(train.Feature())
    with pytest.raises(TypeError, match="found str"):
        train.to_dict("text")


# ---- Other processes ----------------------------------------------------------------------------


def test_the_pure_python_implementation_of_protobuf_works_too():
    """Its slow messages are what some platforms have."""
    code = """
from tfwire import train
example = train.Example(features=train.Features(feature={
    "b": train.Feature(int64_list=train.Int64List(value=[True])),
    "a": train.Feature(bytes_list=train.BytesList(value=["x"]))}))
assert {"a": [b"x"], "b": [1]} == train.to_dict(train.Example.FromString(
    example.SerializeToString()))
text = str(example)
assert text.index('key: "a"') < text.index('key: "b"')
import pickle
import re
assert example == pickle.loads(pickle.dumps(example))
"""
    run(code, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def run(code, **environment):
    """Runs code in an interpreter of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert 0 == done.returncode, done.stderr
