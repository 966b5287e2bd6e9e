"""tfwire convert of SequenceExamples, to JSON lines and back."""

import json
import os
import re
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.command import tfwire_main

NAN = float("nan")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    """The report of a conversion."""
    result = tfwire_main("convert", *words, "--json")
    assert (result.returncode, result.stderr) == (0, b"")
    return json.loads(result.stdout)


def refused(*words):
    before = sorted(os.listdir())
    result = tfwire_main("convert", *words)
    assert (result.returncode, result.stdout) == (1, b"")
    assert sorted(os.listdir()) == before
    return result.stderr.decode()


ROWS = [
    ({"n": 1, "s": "caf\u00e9"}, {"words": [["a"], ["b", "c"], []], "x": [[0.1, 2], [NAN]]}),
    ({"n": 2, "l": [1.5, 2]}, {"words": [], "ids": [[2**62]]}),
    ({}, {"ids": [[1, 2], [3]]}),
]
LINES = [
    {
        "context": {"n": 1, "s": "caf\u00e9"},
        "feature_lists": {"words": [["a"], ["b", "c"], []], "x": [[0.1, 2.0], ["NaN"]]},
    },
    {"context": {"l": [1.5, 2.0], "n": 2}, "feature_lists": {"ids": [[2**62]], "words": []}},
    {"context": {}, "feature_lists": {"ids": [[1, 2], [3]]}},
]


def test_sequences_are_lines_of_context_and_steps(folder):
    tfw.write_records("a.tfrecord", [tfw.encode_sequence_example(*row) for row in ROWS])
    report = run("a.tfrecord", "-o", "a.jsonl")
    assert report["lost"] == ["'x': NaN and infinities are written as strings"]
    lines = (folder / "a.jsonl").read_text(encoding="utf-8").splitlines()
    for found, expected in zip(map(json.loads, lines), LINES, strict=True):
        context = {k: v if isinstance(v, list) else [v] for k, v in expected["context"].items()}
        listed = {k: v if isinstance(v, list) else [v] for k, v in found["context"].items()}
        assert listed == context
        assert found["feature_lists"] == expected["feature_lists"]
    run("a.jsonl", "-o", "b.tfrecord")
    assert (folder / "b.tfrecord").read_bytes() == (folder / "a.tfrecord").read_bytes()


def test_a_row_of_steps_is_read_as_people_write_it(folder):
    lines = [
        {"feature_lists": {"w": [1, [2.5, 3], None, []], "t": ["a", ["b"]]}},
        {"context": {"n": None, "s": "x"}, "feature_lists": {"w": None, "t": []}},
        {"n": 3},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    run("a.jsonl", "-o", "a.tfrecord")
    found = [
        ({k: list(v) for k, v in context.items()}, {k: [*map(list, v)] for k, v in lists.items()})
        for context, lists in map(tfw.decode_sequence_example, tfw.read_records("a.tfrecord"))
    ]
    assert found == [
        ({}, {"t": [[b"a"], [b"b"]], "w": [[1.0], [2.5, 3.0], [], []]}),
        ({"s": [b"x"]}, {"t": []}),
        ({"n": [3]}, {}),
    ]
    run("a.tfrecord", "-o", "b.jsonl")
    again = [json.loads(line) for line in (folder / "b.jsonl").read_text().splitlines()]
    assert again[0]["feature_lists"]["w"] == [[1.0], [2.5, 3.0], None, []]
    assert again[2] == {"n": 3}


def test_bytes_are_base64(folder):
    record = tfw.encode_sequence_example({"b": b"\xff"}, {"image": [[b"\xff\0"], [b"\xfe", b""]]})
    tfw.write_records("a.tfrecord", [record])
    assert len(run("a.tfrecord", "-o", "a.jsonl")["lost"]) == 2
    names = ["--base64", "b", "--base64", "image"]
    run("a.jsonl", "-o", "b.tfrecord", *names)
    assert list(tfw.read_records("b.tfrecord")) == [record]
    (folder / "a.jsonl").write_text('{"feature_lists": {"image": [["?"]]}}')
    assert "line 1: 'image': expected base64" in refused("a.jsonl", "-o", "c.tfrecord", *names)


@pytest.mark.parametrize("form", [[], ["--examples"]])
def test_context_and_lists_may_have_one_name(folder, form):
    rows = [({"w": 1}, {"w": [[1.5], []], "w (feature list)": [["a"]]}), ({}, {"w": []})]
    tfw.write_records("a.tfrecord", [tfw.encode_sequence_example(*row) for row in rows])
    assert run("a.tfrecord", "-o", "a.jsonl", *form)["lost"] == []
    run("a.jsonl", "-o", "b.tfrecord")
    found, expected = (list(tfw.read_records(name)) for name in ("b.tfrecord", "a.tfrecord"))
    assert read(found) == read(expected)


def test_a_schema_says_the_kinds_of_steps(folder):
    (folder / "a.jsonl").write_text('{"feature_lists": {"w": [["NaN"], []]}}\n')
    (folder / "schema.pbtxt").write_text(
        'feature { name: "##SEQUENCE##" type: STRUCT struct_domain {'
        ' feature { name: "w" type: FLOAT } } }'
    )
    run("a.jsonl", "-o", "a.tfrecord", "--schema", "schema.pbtxt")
    _, lists = tfw.decode_sequence_example(next(tfw.read_records("a.tfrecord")))
    assert [step.dtype for step in lists["w"]] == [np.float32, np.float32]
    schema = folder / "schema.pbtxt"
    schema.write_text(schema.read_text().replace('"w"', '"other"'))
    report = run("a.jsonl", "-o", "b.tfrecord", "--schema", "schema.pbtxt")
    assert report["lost"] == ["'w': not in the schema, left out"]
    (record,) = tfw.read_records("b.tfrecord")
    assert tfw.decode_sequence_example(record) == ({}, {})
    schema.write_text('feature { name: "n" type: INT }')
    assert run("a.jsonl", "-o", "c.tfrecord", "--schema", "schema.pbtxt")["rows"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"w": [[1], [2]]}, "'w': lists in a list, .*feature_lists"),
        ({"feature_lists": {"w": 1}}, "'w': expected a list of steps"),
        ({"feature_lists": {"w": [[[1]]]}}, "'w': expected a number, a string or a list of these"),
        ({"feature_lists": {"w": [[{}]]}}, "'w': expected .*found an object"),
        ({"context": {"n": {}}, "feature_lists": {"w": []}}, "'n': expected .*found an object"),
        ({"feature_lists": {"w": [[1], ["a"]]}}, "'w' is of several kinds"),
        ({"context": {"n": 1}}, "line 1: 'feature_lists': missing beside 'context'; give {} for"),
        ({"context": {"n": 1}, "feature_lists": "x"}, "'feature_lists': expected .*found a string"),
        ({"context": {}, "featureLists": []}, "'featureLists': expected an object, found a list"),
        ({"context": 0, "feature_lists": {}}, "'context': expected an object, found a number"),
        ({"context": {}, "feature_lists": {}, "id": 1}, "'id': unexpected beside 'context' and"),
        ({"feature_lists": {}, "featureLists": {}}, "'featureLists': unexpected beside 'context'"),
        ({"featureLists": {"feature": {}}}, "expected an object with 'featureList' alone"),
        ({"featureLists": {"featureList": {"w": {"feature": 3}}}}, "'feature': expected a list"),
        ({"featureLists": {"featureList": {"w": {"feature": [3]}}}}, "must be an object"),
        ({"context": {"x": 1}, "featureLists": {}}, "unknown field 'x'"),
    ],
)
def test_rows_that_are_no_sequences_are_refused(folder, line, said):
    (folder / "a.jsonl").write_text(json.dumps(line) + "\n")
    assert re.search(said, refused("a.jsonl", "-o", "a.tfrecord"))


def test_other_formats_have_no_steps(folder):
    (folder / "a.jsonl").write_text('{"n": 1}\n{"feature_lists": {"w": [[1]]}}\n')
    said = "a.jsonl: line 2: a SequenceExample can be converted to JSON lines, TFRecord"
    assert said in refused("a.jsonl", "-o", "a.csv")


# ---- Round trips ----------------------------------------------------------------------------

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32),
    "bytes": st.text(max_size=3).map(str.encode),
}
FIELDS = {"int64": "int64_list", "float32": "float_list", "bytes": "bytes_list"}
NAMES = st.text(max_size=3)


def feature(kind, values):
    made = tfw.train.Feature()
    getattr(made, FIELDS[kind]).SetInParent()
    getattr(made, FIELDS[kind]).value.extend(values)
    return made


@st.composite
def sequences(draw):
    """SequenceExamples whose features and lists have one kind each, with steps without a kind."""
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    kinds = {name: draw(st.sampled_from(sorted(VALUES))) for name in names}
    cut = draw(st.integers(0, len(names)))
    found = []
    for _ in range(draw(st.integers(0, 4))):
        message = tfw.train.SequenceExample()
        for name in names[:cut]:
            if draw(st.booleans()):
                values = draw(st.lists(VALUES[kinds[name]], max_size=3))
                message.context.feature[name].CopyFrom(feature(kinds[name], values))
        for name in names[cut:]:
            if draw(st.booleans()):
                steps = st.none() | st.lists(VALUES[kinds[name]], max_size=3)
                of = message.feature_lists.feature_list[name]
                of.SetInParent()
                for step in draw(st.lists(steps, max_size=3)):
                    made = feature(kinds[name], step) if step is not None else tfw.train.Feature()
                    of.feature.append(made)
        found.append(message)
    return found


def has_values(messages):
    """Whether every list and feature has a value somewhere that says its kind: no text of NaN."""
    found, known = set(), set()
    for message in messages:
        parts = {name: [one] for name, one in message.context.feature.items()}
        parts |= {name: of.feature for name, of in message.feature_lists.feature_list.items()}
        found |= set(parts)
        known |= {
            name
            for name, features in parts.items()
            if any(
                one.bytes_list.value
                or one.int64_list.value
                or np.isfinite(one.float_list.value).any()
                for one in features
            )
        }
    return known == found


def read(records):
    """The features and steps of records, by name."""
    parts = [tfw.decode_sequence_example(record) for record in records]
    return repr([[sorted(part.items()) for part in both] for both in parts])


@pytest.mark.parametrize("form", [[], ["--examples"]])
@settings(max_examples=30, deadline=None)
@given(messages=sequences())
def test_sequences_come_back(form, messages):
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("a.tfrecord", "b.jsonl", "c.tfrecord")]
        tfw.write_records(names[0], messages)
        lost = run(names[0], "-o", names[1], *form)["lost"]
        run(names[1], "-o", names[2])
        found = read(tfw.read_records(names[2]))
    expected = read(message.SerializeToString() for message in messages)
    plain = all("NaN" in line for line in lost) and has_values(messages)
    if form or plain:
        assert found == expected
