"""Wrong arguments of parsing and encoding: refused at the call, before a file is looked at."""

import numpy as np
import pytest

import tfwire as tfw
from tfwire._parsing.schema_files import read_schema, write_schema

SPEC = {"a": tfw.VarLenFeature(tfw.int64)}
MISSING = "no/such/file.tfrecord"  # whoever opens it raises FileNotFoundError
COUNTS = [True, 0, -1, 1.5, "16", b"1", 2**70, [], {}, object(), np.array([1, 2])]
WORDS = ["nonsense", "RAISE", "Object", b"raise", "", 1, True, None, [], {}, object()]
PATHS = [None, 5, 1.5, True, object(), [], {}, ""]

parse_file = tfw.Parser(SPEC).parse_file
TENSOR = tfw.serialize_tensor([1, 2])
MESSAGE = tfw.encode_example({"a": 1})

CASES = {
    "batch_size": (lambda wrong: parse_file(MISSING, wrong), [*COUNTS, None]),
    "num_threads": (lambda wrong: parse_file(MISSING, num_threads=wrong), [*COUNTS, None]),
    "on_corrupt": (lambda wrong: parse_file(MISSING, on_corrupt=wrong), WORDS),
    "on_parse_error": (lambda wrong: parse_file(MISSING, on_parse_error=wrong), WORDS),
    "num_records": (lambda wrong: tfw.infer_schema(MISSING, wrong), COUNTS),
    "bytes_as": (lambda wrong: tfw.Parser(SPEC, bytes_as=wrong), WORDS),
    "bytes_as ": (lambda wrong: tfw.SequenceParser(SPEC, bytes_as=wrong), WORDS),
    "bytes_as  ": (lambda wrong: tfw.encode_columns({"a": [1]}, bytes_as=wrong), WORDS),
    "path": (lambda wrong: read_schema(wrong), [*PATHS, "a\0b"]),
    "path ": (lambda wrong: write_schema(SPEC, wrong), [*PATHS, "a\0b"]),
    "max_fill": (lambda wrong: tfw.parse_tensor(TENSOR, "int32", max_fill=wrong), COUNTS[2:]),
    "fixed_length": (
        lambda wrong: tfw.decode_raw(b"ab", "uint8", fixed_length=wrong),
        COUNTS,
    ),
    "indent": (lambda wrong: tfw.example_to_json(MESSAGE, indent=wrong), COUNTS[2:]),
    "example_names": (
        lambda wrong: tfw.parse_example([MESSAGE], SPEC, wrong),
        [5, 1.5, object(), "name", [5], [None], {"a": 1}, np.array([1])],
    ),
    "example_names ": (
        lambda wrong: tfw.parse_single_example(MESSAGE, SPEC, wrong),
        [5, 1.5, object(), [5], ["one", "two"], [], np.array(1)],
    ),
    "features": (tfw.Parser, [5, "x", 1.5, [("a", 1)], object()]),
    "features ": (lambda wrong: tfw.parse_example([MESSAGE], wrong), [5, "x", [("a", 1)]]),
    "features  ": (
        lambda wrong: write_schema(wrong, MISSING),
        [None, 5, "x", [], [("a", SPEC["a"])], {}, {5: SPEC["a"]}],
    ),
}


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, (_, some) in CASES.items() for wrong in some]
)
def test_a_wrong_argument_is_refused_by_its_name(name, wrong):
    call, _ = CASES[name]
    with pytest.raises((TypeError, ValueError), match=name.strip()) as caught:
        call(wrong)
    assert type(caught.value) in (TypeError, ValueError)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("on_corrupt", "one of ['raise', 'skip', 'tail', 'stop']"),
        ("on_parse_error", "'raise' or 'skip'"),
        ("bytes_as", "'object' or 'column'"),
    ],
)
def test_the_allowed_words_are_named(name, allowed):
    call, _ = CASES[name]
    with pytest.raises(ValueError, match="nonsense") as caught:
        call("nonsense")
    assert f"{name} must be {allowed}, found 'nonsense'" == str(caught.value)


@pytest.mark.parametrize("name", ["schema.pbtxt", "features.json"])
@pytest.mark.parametrize(
    "features",
    [
        {},
        {"a": 5},
        {"a": tfw.VarLenFeature("nope")},
        {"a": tfw.VarLenFeature(None)},
        {"a": tfw.FixedLenFeature("x", tfw.int64)},
        {"a": tfw.FixedLenFeature(None, tfw.int64)},
        {"a": tfw.FixedLenFeature([1.5], tfw.int64)},
        {"a": tfw.FixedLenFeature([-1], tfw.int64)},
        {"a": tfw.FixedLenFeature([], tfw.int64, 0)},
        {"a": tfw.RaggedFeature(tfw.int64)},
        {"a": SPEC["a"], 5: SPEC["a"]},
    ],
)
def test_a_schema_that_cannot_be_written_leaves_the_file_alone(tmp_path, name, features):
    path = tmp_path / name
    path.write_bytes(b"what was there")
    with pytest.raises((TypeError, ValueError)):
        write_schema(features, path)
    assert b"what was there" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [["x"], ("x",), np.array([b"x"], object), np.array(["x"])])
def test_example_names_of_every_form_are_in_the_error(names):
    spec = {"b": tfw.FixedLenFeature([], tfw.int64)}
    with pytest.raises(tfw.ParseError, match="Name: x: Feature: b"):
        tfw.parse_example([MESSAGE], spec, names)
    for single in (names, "x", b"x", np.array("x"), np.array(b"x", object)):
        with pytest.raises(tfw.ParseError, match="Name: x: Feature: b"):
            tfw.parse_single_example(MESSAGE, spec, single)
