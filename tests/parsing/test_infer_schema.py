"""infer_schema: the specification that parses given files, as a dict and as code."""

import io

import numpy as np
import pytest

import tfwire as tfw
from helpers.paths import GOLDEN
from helpers.reading import flip_byte
from helpers.reference import file_of
from tfwire import train
from tfwire.arrow import open_reader

pytestmark = pytest.mark.short_strings


def write(path, records):
    path.write_bytes(file_of(records))
    return path


def write_rows(path, rows):
    return write(path, tfw.encode_examples(rows, kinds="any"))


def sequence(context, lists):
    return tfw.encode_sequence_example(context, lists)


@pytest.fixture
def pets(tmp_path):
    rows = [
        {"age": i, "name": f"pet {i}", "size": [0.5, i], "tags": ["a"] * (i % 3), "chip": 7}
        for i in range(10)
    ]
    del rows[3]["chip"]
    return write_rows(tmp_path / "pets.tfrecord", rows)


def test_features_that_never_vary_are_of_fixed_length(pets):
    expected = {
        "age": tfw.FixedLenFeature([], tfw.int64),
        "chip": tfw.VarLenFeature(tfw.int64),
        "name": tfw.FixedLenFeature([], tfw.string),
        "size": tfw.FixedLenFeature([2], tfw.float32),
        "tags": tfw.VarLenFeature(tfw.string),
    }
    schema = tfw.infer_schema(pets)
    assert expected == schema
    assert list(expected) == list(schema)
    assert {} == schema.sequence_features


def test_what_was_seen_is_told(pets):
    schema = tfw.infer_schema(pets)
    assert 10 == schema.num_records
    assert (9, {"int64": 9}, 1, 1, None, None, None, True) == schema.statistics["chip"]
    assert (10, {"string": 6}, 0, 2, None, None, True, False) == schema.statistics["tags"]


def test_the_schema_prints_as_code_that_makes_it(pets):
    schema = tfw.infer_schema(pets)
    expected = """\
features = {
    "age": tfw.FixedLenFeature([], tfw.int64),
    "chip": tfw.VarLenFeature(tfw.int64),  # in 9 of 10 records, 1 value
    "name": tfw.FixedLenFeature([], tfw.string),
    "size": tfw.FixedLenFeature([2], tfw.float32),
    "tags": tfw.VarLenFeature(tfw.string),  # 0 to 2 values
}"""
    assert expected == str(schema) == repr(schema)
    assert schema == run(expected)["features"]


def run(code):
    names = {"tfw": tfw}
    exec(code, names)
    return names


def test_every_specification_has_code():
    partitions = [tfw.RaggedFeature.RowLengths("n"), tfw.RaggedFeature.UniformRowLength(2)]
    schema = tfw.InferredSchema(
        {
            "default": tfw.FixedLenFeature([2], tfw.float32, default_value=np.array([1.5, 2])),
            "numpy": tfw.FixedLenFeature([], np.int64, 0),
            "steps": tfw.FixedLenSequenceFeature([2, 3], tfw.string, allow_missing=True),
            "sparse": tfw.SparseFeature(["i", "j"], "v", tfw.float32, [4, 5], True),
            "ragged": tfw.RaggedFeature(tfw.int64, "v", partitions, row_splits_dtype=tfw.int64),
            'quote"': tfw.VarLenFeature(tfw.string),
            "not utf-8 \udcff": tfw.VarLenFeature(tfw.string),
        }
    )
    made = run(repr(schema))["features"]
    assert repr(schema) == repr(tfw.InferredSchema(made))
    assert schema["sparse"] == made["sparse"]
    assert schema["ragged"] == made["ragged"]
    assert [1.5, 2.0] == made["default"].default_value


def test_the_schema_parses_its_file(pets):
    records = list(tfw.read_records(pets))
    parsed = tfw.parse_example(records, tfw.infer_schema(pets))
    assert list(range(10)) == parsed["age"].tolist()
    assert (10, 2) == parsed["size"].shape


def test_the_first_records_of_every_file_are_looked_at(tmp_path):
    first = write_rows(tmp_path / "first", [{"a": 1}] * 10)
    second = write_rows(tmp_path / "second", [{"a": 1}] * 3 + [{"a": [1, 2]}] * 7)
    assert tfw.FixedLenFeature([], tfw.int64) == tfw.infer_schema([first, second], 6)["a"]
    assert 6 == tfw.infer_schema([first, second], 6).num_records
    assert tfw.VarLenFeature(tfw.int64) == tfw.infer_schema([first, second], 7)["a"]
    assert 2 == tfw.infer_schema([first, second], 1).num_records
    assert 20 == tfw.infer_schema([first, second], None).num_records


def test_file_objects_and_compressed_files_are_read(pets):
    expected = tfw.infer_schema(pets)
    assert expected == tfw.infer_schema(io.BytesIO(pets.read_bytes()))
    schema = tfw.infer_schema(GOLDEN / "examples.tfrecord.gz")
    assert tfw.infer_schema(GOLDEN / "examples.tfrecord") == schema


def test_an_empty_list_has_a_kind_and_a_feature_without_one_has_none(tmp_path):
    empty = {"s": np.array([], object), "i": np.array([], np.int64), "none": []}
    schema = tfw.infer_schema(write_rows(tmp_path / "a", [empty]))
    expected = {"s": {"string": 1}, "i": {"int64": 1}, "none": {}}
    assert expected == {key: s.kinds for key, s in schema.statistics.items()}


def test_several_kinds_are_a_warning_and_the_most_frequent_is_taken(tmp_path):
    path = write_rows(tmp_path / "mixed", [{"a": 1}, {"a": 2}, {"a": 0.5}])
    expected = r"feature 'a' is of several kinds \(int64 in 2, float32 in 1 records\)"
    with pytest.warns(UserWarning, match=expected):
        schema = tfw.infer_schema(path)
    assert {"a": tfw.VarLenFeature(tfw.int64)} == schema
    assert "# of several kinds: int64, float32" in repr(schema)


def test_several_kinds_of_a_feature_and_a_list_of_one_name(tmp_path):
    messages = [
        tfw.encode_sequence_example({"a": value}, {"a": [[value], [value]][: i + 1]})
        for i, value in enumerate([1, 1.5])
    ]
    tfw.write_records(tmp_path / "a", messages)
    with pytest.warns(tfw.TfwireWarning, match="feature 'a' is of several kinds") as found:
        tfw.infer_schema(tmp_path / "a")
    assert 2 == len(found)


def test_empty_lists_keep_their_kind(tmp_path):
    empty = train.Example()
    for key, kind in [("i", "int64_list"), ("f", "float_list"), ("s", "bytes_list")]:
        getattr(empty.features.feature[key], kind).SetInParent()
    empty.features.feature["none"].SetInParent()
    schema = tfw.infer_schema(write(tmp_path / "empty", [empty.SerializeToString()]))
    assert ["float32", "int64", "string", "string"] == [f.dtype.name for f in schema.values()]
    assert all(isinstance(feature, tfw.VarLenFeature) for feature in schema.values())


def test_empty_records_have_no_features(tmp_path):
    assert {} == tfw.infer_schema(write(tmp_path / "empty", [b""]))


def test_no_records_are_an_error(tmp_path):
    with pytest.raises(ValueError, match="no records"):
        tfw.infer_schema(GOLDEN / "empty.tfrecord")


def test_a_record_that_is_no_example_is_named(tmp_path):
    path = write(tmp_path / "text", [b"", b"just text"])
    with pytest.raises(tfw.ParseError, match="record 1 is not an Example") as caught:
        tfw.infer_schema(path)
    assert (path, 1) == (caught.value.path, caught.value.record_index)


def test_a_file_object_that_holds_no_examples_is_named(tmp_path):
    write(tmp_path / "text", [b"just text"])
    with open(tmp_path / "text", "rb") as file, pytest.raises(tfw.ParseError) as caught:
        tfw.infer_schema(file)
    assert str(caught.value).startswith(f"{file.name}: record 0 is not an Example")
    with pytest.raises(tfw.ParseError, match=r"^input: record 0 is not an Example") as caught:
        tfw.infer_schema(io.BytesIO((tmp_path / "text").read_bytes()))
    assert caught.value.path is None


def test_damage_may_be_left_out(tmp_path):
    path = tmp_path / "damaged"
    tfw.write_records(path, [{"a": 1}, {"a": 2}, {"b": 0.5}])
    flip_byte(path, 13)
    with pytest.raises(tfw.DataLossError):
        tfw.infer_schema(path)
    with pytest.warns(tfw.TfwireWarning, match="1 damaged region"):
        schema = tfw.infer_schema(path, on_corrupt="skip")
    assert 2 == schema.num_records
    with pytest.warns(tfw.TfwireWarning, match="1 damaged region"):
        reader = open_reader(path, on_corrupt="skip")
    assert {"a": "int64", "b": "float"} == reader.types
    with pytest.raises(ValueError, match="on_corrupt must be one of"):
        tfw.infer_schema(path, on_corrupt="ignore")


def test_sequence_examples_have_two_specifications(tmp_path):
    records = [sequence({"length": 0}, {"words": [], "box": [[1.0, 2.0]]})]
    for n in (1, 2, 3):
        lists = {"words": [[i] for i in range(n)], "tags": [["a"] * i for i in range(n)]}
        records.append(sequence({"length": n}, lists))
    schema = tfw.infer_schema(write(tmp_path / "sequences", records))
    assert {"length": tfw.FixedLenFeature([], tfw.int64)} == schema
    expected = {
        "box": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),
        "tags": tfw.VarLenFeature(tfw.string),
        "words": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=False),
    }
    assert expected == schema.sequence_features
    assert schema is schema.context_features
    code = """\
context_features = {
    "length": tfw.FixedLenFeature([], tfw.int64),
}
sequence_features = {
    "box": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),  \
# in 1 of 4 records, 1 step, 2 values
    "tags": tfw.VarLenFeature(tfw.string),  # in 3 of 4 records, 1 to 3 steps, 0 to 2 values
    "words": tfw.FixedLenSequenceFeature([], tfw.int64),  # 0 to 3 steps
}"""
    assert code == repr(schema)
    assert expected == run(code)["sequence_features"]
    context, lists, lengths = tfw.parse_sequence_example(
        records, schema.context_features, schema.sequence_features
    )
    assert [0, 1, 2, 3] == context["length"].tolist()
    assert [0, 1, 2, 3] == lengths["words"].tolist()
    assert (4, 1, 2) == lists["box"].shape
