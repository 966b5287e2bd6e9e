"""schema.pbtxt of TensorFlow Metadata and features.json of TFDS."""

import json

import numpy as np
import pytest

import tfwire as tfw
from tfwire._parsing.schema_files import read_schema, write_schema

# As TensorFlow Data Validation writes it, with what has no part in parsing.
VALIDATION = """\
feature {
  name: "age"
  type: INT
  presence { min_fraction: 1.0 min_count: 1 }
  shape { dim { size: 1 } }
  int_domain { min: 0 max: 120 is_categorical: true }
}
feature {
  name: "scalar"
  type: FLOAT
  presence { min_fraction: 1.0 }
  shape { }
}
feature {
  name: "counted"
  value_count { min: 1 max: 1 }
  type: BYTES
  domain: "colours"
  presence { min_fraction: 1.0 min_count: 1 }
}
feature {
  name: "pairs"
  value_count { min: 2 max: 2 }
  type: INT
  presence { min_fraction: 1.0 }
}
feature {
  name: "optional"
  value_count { min: 1 max: 1 }
  type: BYTES
  presence { min_count: 1 }
}
feature { name: "many" type: BYTES value_count { min: 1 } annotation { tag: "x" } }
feature { name: "old" type: INT lifecycle_stage: DEPRECATED }
feature { name: "older" type: INT deprecated: true }
feature { name: "index" type: INT int_domain { min: 0 max: 9 } }
feature { name: "value" type: FLOAT }
sparse_feature {
  name: "sparse"
  index_feature { name: "index" }
  value_feature { name: "value" }
  is_sorted: true
}
string_domain { name: "colours" value: "red" value: "green" }
default_environment: "TRAINING"
"""

FEATURES = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "matrix": tfw.FixedLenFeature([2, 3], tfw.float32),
    "tags": tfw.VarLenFeature(tfw.string),
}


def written(tmp_path, text, name="schema.pbtxt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_schema_of_data_validation_is_a_specification(tmp_path):
    expected = {
        "age": tfw.FixedLenFeature([1], tfw.int64),
        "counted": tfw.FixedLenFeature([], tfw.string),
        "many": tfw.VarLenFeature(tfw.string),
        "optional": tfw.VarLenFeature(tfw.string),
        "pairs": tfw.FixedLenFeature([2], tfw.int64),
        "scalar": tfw.FixedLenFeature([], tfw.float32),
        "sparse": tfw.SparseFeature("index", "value", tfw.float32, 10, True),
    }
    assert expected == read_schema(written(tmp_path, VALIDATION))


@pytest.mark.parametrize("name", ["schema.pbtxt", "features.json"])
def test_a_schema_file_is_read_as_it_was_written(tmp_path, name):
    write_schema(FEATURES, tmp_path / name)
    assert FEATURES == read_schema(tmp_path / name)
    assert "tfw.FixedLenFeature([2, 3], tfw.float32)" in repr(read_schema(tmp_path / name))


def test_sparse_features_keep_their_columns(tmp_path):
    features = {
        "one": tfw.SparseFeature("i", "v", tfw.float32, 7),
        "two": tfw.SparseFeature(["x", "y"], "z", tfw.int64, [3, 4], already_sorted=True),
    }
    write_schema(features, tmp_path / "schema.pbtxt")
    assert features == read_schema(tmp_path / "schema.pbtxt")


def test_a_schema_file_has_a_stable_text(tmp_path):
    write_schema({"b": tfw.VarLenFeature(tfw.string), "a": FEATURES["label"]}, tmp_path / "s")
    expected = """\
feature {
  name: "a"
  type: INT
  presence {
    min_fraction: 1.0
  }
  shape {
  }
}
feature {
  name: "b"
  type: BYTES
}
"""
    assert expected == (tmp_path / "s").read_text()


def test_an_int_is_a_shape_of_rank_one(tmp_path):
    write_schema({"a": tfw.FixedLenFeature(3, np.int64)}, tmp_path / "s")
    assert {"a": tfw.FixedLenFeature([3], tfw.int64)} == read_schema(tmp_path / "s")


@pytest.mark.parametrize(
    ("feature", "name", "reason"),
    [
        (tfw.FixedLenFeature([], tfw.int64, 0), "s.pbtxt", "a default value"),
        (tfw.FixedLenFeature([], tfw.int64, 0), "s.json", "a default value"),
        (tfw.FixedLenFeature([], np.int32), "s.pbtxt", "the type int32"),
        (tfw.FixedLenSequenceFeature([], tfw.int64, True), "s.pbtxt", "FixedLenSequenceFeature"),
        (tfw.RaggedFeature(tfw.int64), "s.pbtxt", "RaggedFeature"),
        (tfw.RaggedFeature(tfw.int64), "s.json", "RaggedFeature"),
        (tfw.SparseFeature("i", "v", tfw.int64, 3), "s.json", "SparseFeature"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(tmp_path, feature, name, reason):
    with pytest.raises(ValueError, match=f"feature 'a': {reason} has no counterpart"):
        write_schema({"a": feature}, tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("context", [{}, {"id": tfw.FixedLenFeature([], tfw.int64)}])
def test_feature_lists_are_read_as_they_were_written(tmp_path, context):
    lists = {
        "words": tfw.VarLenFeature(tfw.string),
        "frames": STEPS([64], tfw.float32, allow_missing=True),
        "all": STEPS([], tfw.int64),
    }
    write_schema(tfw.InferredSchema(context, lists), tmp_path / "s")
    found = read_schema(tmp_path / "s")
    assert (context, lists) == (found, found.sequence_features)


@pytest.mark.parametrize(
    "feature", [tfw.RaggedFeature(tfw.int64), tfw.FixedLenFeature([], tfw.int64)]
)
def test_feature_lists_that_a_file_cannot_hold_are_refused(tmp_path, feature):
    schema = tfw.InferredSchema({}, {"a": feature})
    with pytest.raises(ValueError, match=r"'a': a \w+Feature among the feature lists has no count"):
        write_schema(schema, tmp_path / "s")
    with pytest.raises(ValueError, match=r"no place in a features\.json; write a schema"):
        write_schema(schema, tmp_path / "s.json")
    with pytest.raises(ValueError, match="feature '##SEQUENCE##': this name has no counterpart"):
        write_schema({"##SEQUENCE##": tfw.VarLenFeature(tfw.int64)}, tmp_path / "s")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "describes no features"),
        ("hello: 1", "describes no features"),
        ("hello world {", "Expected"),
        ('feature { name: "a" type: STRUCT }', "'a' has a type without"),
        ('feature { name: "a" }', "'a' has a type without"),
        ('feature { name: "a" type: INT shape {} }', "'a' has a shape but min_fraction is not 1"),
        ('sparse_feature { name: "a" index_feature { name: "i" } }', "there is no feature 'i'"),
        (
            'feature { name: "i" type: INT } feature { name: "v" type: INT } '
            'sparse_feature { name: "a" index_feature { name: "i" } value_feature { name: "v" } '
            "dense_shape { dim { size: 2 } dim { size: 2 } } }",
            "no dense shape for its indices",
        ),
        ("{", "Expecting"),
        ("{}", "found no featuresDict"),
        ('{"featuresDict": 3}', "not a features.json"),
        ('{"featuresDict": {"features": {"a": 3}}}', "not a features.json"),
        ('{"featuresDict": {"features": {}}}', "describes no features"),
    ],
)
def test_files_that_are_no_schema_are_named(tmp_path, text, reason):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=r"schema\.pbtxt") as caught:
        read_schema(path)
    assert reason in str(caught.value)


# ---- TFDS ---------------------------------------------------------------------------------------


def connector(kind, **fields):
    return {"pythonClassName": f"tensorflow_datasets.core.features.{kind}", **fields}


def tensor(dtype, *sizes, encoding="none"):
    shape = {"dimensions": [str(size) for size in sizes]} if sizes else {}
    fields = {"dtype": dtype, "shape": shape, "encoding": encoding}
    return connector("tensor_feature.Tensor", tensor=fields)


def features_dict(**features):
    return connector("features_dict.FeaturesDict", featuresDict={"features": features})


def sequence(feature, length="-1"):
    return connector("sequence_feature.Sequence", sequence={"feature": feature, "length": length})


IMAGE = connector(
    "image_feature.Image",
    image={"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8", "encodingFormat": "png"},
)
LABELED_IMAGE = connector(
    "labeled_image.LabeledImage",
    image={
        "shape": {"dimensions": ["-1", "-1", "1"]},
        "dtype": "uint8",
        "useColormap": True,
        "label": {"numClasses": "3"},
    },
)
FIXED, STEPS = tfw.FixedLenFeature, tfw.FixedLenSequenceFeature


def audio(*sizes, dtype="int64", **fields):
    content = {"shape": {"dimensions": list(sizes)}, "dtype": dtype, "sampleRate": "16000"}
    return connector("audio_feature.Audio", audio={**content, **fields})


def video(*sizes):
    content = {"shape": {"dimensions": list(sizes)}, "dtype": "uint8", "encodingFormat": "png"}
    return connector("video_feature.Video", video=content)


def translation(kind, **fields):
    content = {"languages": ["de", "en"], **fields}
    return connector(f"translation_feature.{kind}", translation=content)


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (IMAGE, FIXED([], tfw.string)),
        (connector("text_feature.Text", text={}), FIXED([], tfw.string)),
        (connector("x.ClassLabel", classLabel={"numClasses": "10"}), FIXED([], tfw.int64)),
        (connector("x.BBoxFeature", boundingBox={}), FIXED([4], tfw.float32)),
        (tensor("uint8"), FIXED([], tfw.int64)),
        (tensor("bool", 2), FIXED([2], tfw.int64)),
        (tensor("float64", 2, 3), FIXED([2, 3], tfw.float32)),
        (tensor("bfloat16"), FIXED([], tfw.float32)),
        (tensor("string"), FIXED([], tfw.string)),
        (tensor("float32", 5, encoding="zlib"), FIXED([], tfw.string)),
        (tensor("int32", -1), STEPS([], tfw.int64, allow_missing=True)),
        (tensor("int32", -1, 4), STEPS([4], tfw.int64, allow_missing=True)),
        (sequence(tensor("int64", 3)), STEPS([3], tfw.int64, allow_missing=True)),
        (sequence(IMAGE), STEPS([], tfw.string, allow_missing=True)),
        (sequence(tensor("int64", 3), "2"), FIXED([2, 3], tfw.int64)),
        (LABELED_IMAGE, FIXED([], tfw.string)),
        (audio("-1"), STEPS([], tfw.int64, allow_missing=True)),
        (audio("-1", "2", dtype="float32"), STEPS([2], tfw.float32, allow_missing=True)),
        (audio("16000", dtype="int16", encoding="none"), FIXED([16000], tfw.int64)),
        (audio("-1", encoding="NONE"), STEPS([], tfw.int64, allow_missing=True)),
        (audio("-1", encoding="ZLIB"), FIXED([], tfw.string)),
        (audio("-1", encoding="zlib"), FIXED([], tfw.string)),
        (audio("-1", lazyDecode=True), FIXED([], tfw.string)),
        (audio(), STEPS([], tfw.int64, allow_missing=True)),
        (video("-1", "64", "64", "3"), STEPS([], tfw.string, allow_missing=True)),
        (video("30", "-1", "-1", "3"), FIXED([30], tfw.string)),
    ],
)
def test_features_of_tfds_are_as_they_are_stored(tmp_path, feature, expected):
    path = written(tmp_path, json.dumps(features_dict(a=feature)), "features.json")
    assert {"a": expected} == read_schema(path)


def test_nested_features_have_joined_names(tmp_path):
    steps = sequence(features_dict(action=tensor("float32", 7), seen=features_dict(image=IMAGE)))
    tree = features_dict(steps=steps, episode=features_dict(id=tensor("int64")))
    expected = {
        "episode/id": FIXED([], tfw.int64),
        "steps/action": STEPS([7], tfw.float32, allow_missing=True),
        "steps/seen/image": STEPS([], tfw.string, allow_missing=True),
    }
    assert expected == read_schema(written(tmp_path, json.dumps(tree), "features.json"))


def test_translations_have_a_text_per_language(tmp_path):
    tree = features_dict(
        fixed=translation("Translation"),
        any=translation("TranslationVariableLanguages", variableLanguagesPerExample=True),
    )
    texts = STEPS([], tfw.string, allow_missing=True)
    expected = {
        "any/language": texts,
        "any/translation": texts,
        "fixed/de": FIXED([], tfw.string),
        "fixed/en": FIXED([], tfw.string),
    }
    assert expected == read_schema(written(tmp_path, json.dumps(tree), "features.json"))


def test_a_var_len_feature_is_a_tensor_that_tfds_reads(tmp_path):
    """Its mark is the description, which TFDS shows and does not interpret."""
    write_schema({"a": tfw.VarLenFeature(tfw.int64)}, tmp_path / "features.json")
    tree = json.loads((tmp_path / "features.json").read_text())
    found = tree["featuresDict"]["features"]["a"]
    assert {"description": "VarLenFeature"} == {"description": found.pop("description")}
    assert tensor("int64", -1) == found


SEQUENCES = """\
feature { name: "length" type: INT presence { min_fraction: 1 } shape { } }
feature {
  name: "##SEQUENCE##"
  type: STRUCT
  struct_domain {
    feature { name: "words" type: BYTES }
    feature { name: "frames" type: FLOAT shape { dim { size: 64 } } }
    feature { name: "all" type: INT presence { min_fraction: 1 } shape { } }
    feature { name: "counted" type: INT value_count { min: 1 max: 1 } }
    feature { name: "old" type: INT deprecated: true }
  }
}
"""


def test_the_feature_lists_of_tfx(tmp_path):
    schema = read_schema(written(tmp_path, SEQUENCES))
    assert {"length": FIXED([], tfw.int64)} == schema
    assert {
        "all": STEPS([], tfw.int64),
        "counted": tfw.VarLenFeature(tfw.int64),
        "frames": STEPS([64], tfw.float32, allow_missing=True),
        "words": tfw.VarLenFeature(tfw.string),
    } == schema.sequence_features
    message = tfw.encode_sequence_example({"length": 1}, {"all": [7], "words": [["a", "b"]]})
    parser = tfw.SequenceParser(schema.context_features, schema.sequence_features)
    assert [7] == parser.parse_single(message)[1]["all"].tolist()


def test_a_schema_may_have_feature_lists_only(tmp_path):
    text = SEQUENCES[SEQUENCES.index("feature {\n") :]
    assert {} == read_schema(written(tmp_path, text))
    assert 4 == len(read_schema(written(tmp_path, text)).sequence_features)


@pytest.mark.parametrize("name", ["i", "v"])
def test_a_column_of_two_features_is_refused(tmp_path, name):
    """Schema files have one feature of a name, and a column of a sparse feature is not read."""
    dtype = tfw.int64 if name == "i" else tfw.float32
    features = {name: tfw.VarLenFeature(dtype), "s": tfw.SparseFeature("i", "v", tfw.float32, 7)}
    with pytest.raises(ValueError, match=f"feature '{name}': a column of a SparseFeature"):
        write_schema(features, tmp_path / "schema.pbtxt")


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (tensor("int64", 3, -1), STEPS([], tfw.int64, allow_missing=True)),
        (sequence(tensor("float64", -1), "2"), STEPS([], tfw.float32, allow_missing=True)),
    ],
)
def test_an_unknown_later_dimension_is_left_to_the_reader(tmp_path, feature, expected):
    path = written(tmp_path, json.dumps(features_dict(a=feature)), "f.json")
    assert {"a": expected} == tfw.read_schema(path)


@pytest.mark.parametrize(
    ("dtype", "shape", "default"),
    [
        ("string", [], b""),
        ("int16", [2], [-(2**15)] * 2),
        ("uint8", [], 0),
        ("bool", [], 0),
        ("float64", [], np.finfo(np.float32).min),
    ],
)
def test_an_optional_value_has_a_default(tmp_path, dtype, shape, default):
    feature = tensor(dtype, *shape)
    feature["tensor"]["optional"] = True
    schema = tfw.read_schema(written(tmp_path, json.dumps(features_dict(a=feature)), "f.json"))
    parsed = tfw.parse_single_example(tfw.encode_example({}), schema)["a"]
    assert default == (parsed.tolist() if shape else parsed)


def test_the_form_of_tfds_before_4_6(tmp_path):
    def old(name, **content):
        return {"type": f"tensorflow_datasets.core.features.x.{name}", "content": content}

    image = old("Image", shape=[None, None, 3], dtype="uint8", encoding_format="png")
    numbers = old("Tensor", shape=[None, 3], dtype="float32", encoding="none")
    inner = old("FeaturesDict", image=image, text=old("Text"))
    tree = old(
        "FeaturesDict",
        a=numbers,
        b=old("Sequence", feature=inner, length=None),
        c=old("Sequence", feature=old("ClassLabel", num_classes=3), length=2),
        d=old("Translation", languages=["en"]),
        e=old("TranslationVariableLanguages"),
    )
    texts = STEPS([], tfw.string, allow_missing=True)
    assert tfw.read_schema(written(tmp_path, json.dumps(tree), "f.json")) == {
        "a": STEPS([3], tfw.float32, allow_missing=True),
        "b/image": texts,
        "b/text": texts,
        "c": FIXED([2], tfw.int64),
        "d/en": FIXED([], tfw.string),
        "e/language": texts,
        "e/translation": texts,
    }


def test_an_encoded_tensor_with_unknown_dimensions_has_its_shape_beside_it(tmp_path):
    feature = tensor("int32", -1, -1, 3, encoding="zlib")
    path = written(tmp_path, json.dumps(features_dict(a=feature, b=sequence(feature))), "f.json")
    assert tfw.read_schema(path) == {
        "a/shape": FIXED([3], tfw.int64),
        "a/value": FIXED([], tfw.string),
        "b/shape": STEPS([3], tfw.int64, allow_missing=True),
        "b/value": STEPS([], tfw.string, allow_missing=True),
    }


@pytest.mark.parametrize(
    ("feature", "stored", "expected"),
    [
        (
            sequence(sequence(tensor("int64"))),
            {"ragged_flat_values": [1, 2, 3], "ragged_row_lengths_0": [2, 0, 1]},
            [[1, 2], [], [3]],
        ),
        (
            sequence(sequence(tensor("int64", 2))),
            {"ragged_flat_values": [1, 2, 3, 4], "ragged_row_lengths_0": [0, 2]},
            [[], [[1, 2], [3, 4]]],
        ),
        (
            sequence(sequence(tensor("int64")), "2"),
            {"ragged_flat_values": [1, 2, 3], "ragged_row_lengths_0": [1, 2]},
            [[1], [2, 3]],
        ),
        (
            sequence(sequence(sequence(tensor("int64")))),
            {
                "ragged_flat_values": [1, 2, 3],
                "ragged_row_lengths_0": [2, 1],
                "ragged_row_lengths_1": [1, 0, 2],
            },
            [[[1], []], [[2, 3]]],
        ),
    ],
)
def test_sequences_of_sequences_are_ragged(tmp_path, feature, stored, expected):
    schema = tfw.read_schema(written(tmp_path, json.dumps(features_dict(a=feature)), "f.json"))
    record = tfw.encode_example({f"a/{name}": values for name, values in stored.items()})
    assert tfw.parse_single_example(record, schema)["a"].to_list() == expected


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        (sequence(tensor("int64", -1)), "an unknown dimension in a sequence without an encoding"),
        (
            sequence(sequence(tensor("int64", -1))),
            "an unknown dimension in a sequence without an encoding",
        ),
        (tensor("int64", 3, -1, -1), "several unknown dimensions without an encoding"),
        (tensor("complex64"), "the type complex64"),
        (connector("x.Optional", jsonFeature={"json": "{}"}), "Optional"),
    ],
)
def test_features_without_a_counterpart_are_named(tmp_path, feature, reason):
    path = written(tmp_path, json.dumps(features_dict(a=feature)), "features.json")
    with pytest.raises(ValueError, match=f"feature 'a': {reason} has no counterpart"):
        read_schema(path)


@pytest.mark.parametrize("text", ["{" * 5, '{"a":' * 100_000, "feature { " * 100_000])
def test_depth_out_of_proportion_is_an_error_of_few_words(tmp_path, text):
    (tmp_path / "schema").write_text(text)
    with pytest.raises(ValueError, match="schema: ") as caught:
        read_schema(tmp_path / "schema")
    assert len(str(caught.value)) < 400
