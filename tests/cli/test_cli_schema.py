"""tfwire schema."""

import json
import re

import pytest

import tfwire as tfw
from helpers.command import tfwire_command, tfwire_main

ROWS = [
    {"label": 1, "name": "cat", "x": [0.5, 1.5]},
    {"label": 2, "x": [2.5, 3.5]},
    {"label": 3, "name": "dog", "x": [4.5, 5.5]},
]
CODE = """\
import tfwire as tfw

features = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.VarLenFeature(tfw.string),  # in 2 of 3 records, 1 value
    "x": tfw.FixedLenFeature([2], tfw.float32),
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("in", ROWS)
    return tmp_path


def test_code_is_printed_that_parses_the_file():
    result = tfwire_command("schema", "in")
    assert (0, "all 3 records were read\n", CODE) == (
        result.returncode,
        result.stderr,
        result.stdout,
    )
    names = {}
    exec(result.stdout, names)
    assert [1, 2, 3] == tfw.Parser(names["features"]).parse(tfw.read_records("in"))[
        "label"
    ].tolist()


@pytest.mark.parametrize(("name", "format_name"), [("s.json", "json"), ("s.pbtxt", "pbtxt")])
def test_schema_files_are_printed_written_and_read(name, format_name):
    printed = tfwire_main("schema", "in", "--format", format_name).stdout
    assert 0 == tfwire_main("schema", "in", "-o", name).returncode
    with open(name, "rb") as file:
        assert printed == file.read()
    tfw.write_schema(tfw.infer_schema("in"), f"api-{name}")
    with open(f"api-{name}", "rb") as file:
        assert printed == file.read()
    assert tfw.infer_schema("in") == tfw.read_schema(name)
    code = tfwire_main("schema", name).stdout.decode()
    assert CODE.replace("  # in 2 of 3 records, 1 value", "") == code


def test_one_schema_file_becomes_another():
    tfwire_main("schema", "in", "-o", "a.json")
    assert 0 == tfwire_main("schema", "a.json", "-o", "b.pbtxt").returncode
    assert tfw.read_schema("a.json") == tfw.read_schema("b.pbtxt")


def test_standard_input_and_several_files(folder):
    content = (folder / "in").read_bytes()
    assert CODE.encode() == tfwire_main("schema", "-", stdin=content).stdout
    tfw.write_records("more", [{"label": [4, 5]}])
    code = tfwire_main("schema", "in", "more").stdout
    assert b'"label": tfw.VarLenFeature(tfw.int64),  # 1 to 2 values' in code


def test_how_many_records_are_read():
    tfw.write_records("long", [{"a": 1}] * 1500 + [{"b": 1}])
    result = tfwire_main("schema", "long")
    assert b'"b"' in result.stdout
    assert b"all 1,501 records were read\n" == result.stderr
    result = tfwire_main("schema", "long", "-n", "1000")
    assert b'"b"' not in result.stdout
    assert result.stderr.startswith(b"1,000 records were read; --all reads all, and finds")
    assert b'"b"' in tfwire_main("schema", "long", "--all").stdout
    assert b'"b"' in tfwire_main("schema", "long", "-n", "1501").stdout
    assert b"FixedLen" in tfwire_main("schema", "in", "-n", "1").stdout
    assert 2 == tfwire_main("schema", "in", "-n", "0").returncode
    assert 2 == tfwire_main("schema", "in", "-n", "3", "--all").returncode


def test_kinds_that_disagree_are_reported():
    tfw.write_records("mixed", [{"a": 1}, {"a": 1}, {"a": "x"}], kinds="any")
    result = tfwire_main("schema", "mixed")
    assert 1 == result.returncode
    assert re.search(rb"^tfwire schema: mixed: feature 'a' is of several kinds", result.stderr)
    assert b'"a": tfw.VarLenFeature(tfw.int64)' in result.stdout
    result = tfwire_main("schema", "in", "mixed")
    assert b"tfwire schema: in and 1 more file: feature 'a' is of several kinds" in result.stderr


def test_feature_lists_are_code_and_a_schema_of_tfx():
    message = tfw.encode_sequence_example({"id": 7}, {"frames": [[1, 2], [3, 4]]})
    tfw.write_records("sequences", [message])
    code = tfwire_main("schema", "sequences").stdout.decode()
    names = {}
    exec(code, names)
    assert {"id"} == set(names["context_features"])
    assert {"frames"} == set(names["sequence_features"])
    result = tfwire_main("schema", "sequences", "--format", "json")
    assert (1, b"") == (result.returncode, result.stdout)
    assert b"feature lists have no place in a features.json" in result.stderr
    assert 0 == tfwire_main("schema", "sequences", "-o", "s.pbtxt").returncode
    schema = tfw.infer_schema("sequences")
    found = tfw.read_schema("s.pbtxt")
    assert (schema, schema.sequence_features) == (found, found.sequence_features)


def test_keys_control_no_terminal():
    tfw.write_records("nasty", [{"\x1b[31m\u202e\r": 1}])
    for format_name in ("code", "json", "pbtxt"):
        result = tfwire_main("schema", "nasty", "--format", format_name)
        assert 0 == result.returncode
        assert not {"\x1b", "\r", "\u202e"} & set(result.stdout.decode())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["in", "-o", "s.txt"], "OUT must end in .py, .pbtxt or .json, or give --format"),
        (["in", "a.json"], "a.json: a schema file is read alone"),
        (["in", "-o", "there.json"], "there.json: exists; --force replaces it"),
        (["-", "-"], "- (standard input) can be read once only"),
        (["in", "--format", "yaml"], "invalid choice"),
    ],
)
def test_wrong_usage(folder, words, text):
    (folder / "there.json").write_text("old")
    result = tfwire_main("schema", *words)
    assert 2 == result.returncode
    assert text in result.stderr.decode()
    assert "old" == (folder / "there.json").read_text()
    assert {"in", "there.json"} == {path.name for path in folder.iterdir()}


def test_an_output_is_replaced_where_that_is_asked_for(folder):
    (folder / "there.json").write_text("old")
    assert 0 == tfwire_main("schema", "in", "-o", "there.json", "--force").returncode
    assert "featuresDict" in json.loads((folder / "there.json").read_text())


def test_files_at_fault(folder):
    (folder / "empty").write_bytes(b"")
    (folder / "bad.json").write_text("{")
    tfw.write_records("other", [b"\xff\xff"])
    assert (
        b"tfwire schema: empty and 2 more files: there are no records to infer a schema from\n"
        == tfwire_main("schema", *["empty"] * 3).stderr
    )
    for name in ("empty", "bad.json", "other", "missing"):
        result = tfwire_main("schema", name)
        assert (1, b"") == (result.returncode, result.stdout)
        assert result.stderr.startswith(b"tfwire schema: ")
        assert name.encode() in result.stderr
        assert b"Traceback" not in result.stderr
