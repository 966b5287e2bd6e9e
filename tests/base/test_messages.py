"""Keys and file names in messages: escaped where a terminal would obey them, short, one line."""

import io
import json
import os
import pickle
import warnings

import numpy as np
import pytest

import tfwire as tfw
from tfwire._base.text import printable, quoted, shorten, show_key, show_path

# Escape sequences, a C1 control, bidirectional characters, zero-width ones, line ends.
NASTY = "\x1b[31m\x07\r\x9b\u202e\u2066\u200b\u2028\ufeff\x7f\n\x00z"
LONG = "begin" + "\x1b" * 100_000 + "end"
PATH = NASTY.replace("\x00", "")


# ---- The functions ----------------------------------------------------------------------------


def test_printable_leaves_text_as_it_is():
    for text in ("", "plain", "café, 東京, עברית, 😀", "back\\slash 'quotes\""):
        assert text == printable(text)


def test_printable_escapes_what_a_terminal_would_obey():
    shown = printable(NASTY)
    assert shown.isprintable()
    assert shown.startswith(
        "\\x1b[31m\\x07\\r\\x9b\\u202e\\u2066\\u200b\\u2028\\ufeff\\x7f\\n\\x00"
    )
    assert "caf\\udce9" == printable("caf\udce9")
    assert shown == printable(shown)


@pytest.mark.parametrize("longest", [10, 11, 60])
def test_shorten_takes_out_the_middle(longest):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    short = shorten(text, longest)
    assert longest == len(short)
    first, last = short.split("...")
    assert text.startswith(first)
    assert text.endswith(last)
    assert text[:longest] == shorten(text[:longest], longest)


@pytest.mark.parametrize("key", [NASTY, LONG, NASTY.encode(), b"\xff\x9b", "é" * 1000, 7])
def test_keys_are_printable_and_short(key):
    for shown in (show_key(key), quoted(key)):
        assert shown.isprintable()
        assert len(shown) <= 60


def test_paths_are_whole():
    assert "/a/" + "x" * 300 == show_path("/a/" + "x" * 300)
    assert show_path(os.fsencode(PATH)) == show_path(PATH) == printable(PATH)


# ---- Messages ---------------------------------------------------------------------------------


def parse(key, feature, row):
    return lambda: tfw.parse_single_example(tfw.encode_example(row), {key: feature})


def message_faults(key):
    """Ways to an error about a feature of this name."""
    number, text = tfw.FixedLenFeature([], tfw.int64), tfw.FixedLenFeature([], tfw.string)
    ragged = tfw.RaggedFeature(tfw.int64, key, [tfw.RaggedFeature.RowLengths("lengths")], tfw.int64)
    return {
        "missing": parse(key, number, {}),
        "missing, others there": parse("x", number, {key + str(i): 1 for i in range(100)}),
        "kind": parse(key, number, {key: "text"}),
        "count": parse(key, number, {key: [1, 2]}),
        "partition": parse(key, ragged, {key: [1, 2], "lengths": [7]}),
        "example name": lambda: tfw.parse_single_example(b"", {"x": number}, example_names=key),
        "feature list": lambda: tfw.parse_single_sequence_example(
            tfw.encode_sequence_example({}, {}),
            sequence_features={key: tfw.FixedLenSequenceFeature([], tfw.int64)},
        ),
        "no shape": lambda: tfw.Parser({key: tfw.FixedLenFeature(None, tfw.int64)}),
        "shape": lambda: tfw.Parser({key: tfw.FixedLenFeature([-1], tfw.int64)}),
        "type": lambda: tfw.Parser({key: tfw.FixedLenFeature([], "int16")}),
        "no feature": lambda: tfw.Parser({key: 7}),
        "default": lambda: tfw.Parser({key: tfw.FixedLenFeature([], tfw.int64, "x")}),
        "two names": lambda: tfw.Parser({key: number, key.encode(): number}),
        "out": lambda: tfw.Parser({key: text}).parse([], out={key: np.zeros(0)}),
        "encode": lambda: tfw.encode_example({key: object()}),
        "encode mixed": lambda: tfw.encode_example({key: [1, "x"]}),
        "encode column": lambda: tfw.encode_columns({key: 7}),
        "column lengths": lambda: tfw.encode_columns({"x": [1], key: [1, 2]}),
        "json": lambda: tfw.decode_json_example(
            tfw.example_to_json(tfw.encode_example({key: ["b"]})).replace('"Yg=="', '"?"')
        ),
        "json field": lambda: tfw.decode_json_example(json.dumps({key: 1})),
        "schema": lambda: tfw.write_schema(
            {key: tfw.FixedLenFeature([], tfw.int64, 7)}, "schema.pbtxt"
        ),
        "several kinds": lambda: _infer({key: 1}, {key: "text"}),
    }


def _infer(*rows):
    tfw.write_records("records", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfw.infer_schema("records")


@pytest.mark.parametrize("key", [NASTY, LONG], ids=["nasty", "long"])
@pytest.mark.parametrize("fault", message_faults("x"))
def test_keys_in_messages(fault, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, UserWarning)) as raised:
        message_faults(key)[fault]()
    message = str(raised.value)
    assert message.isprintable()
    assert len(message) < 2500
    assert "\\x1b" in message
    if isinstance(raised.value, tfw.ParseError) and raised.value.feature not in (None, "x"):
        assert key == raised.value.feature
        assert key == pickle.loads(pickle.dumps(raised.value)).feature


def damaged(path):
    tfw.write_records(path, [b"one", b"two"])
    with open(path, "r+b") as file:
        file.seek(13)
        file.write(b"?")


def path_faults(path):
    """Ways to an error about a file of this name."""
    return {
        "read": lambda: list(tfw.read_records(path)),
        "read gzip": lambda: list(tfw.read_records(path, "GZIP")),
        "parse": lambda: list(
            tfw.Parser({"x": tfw.VarLenFeature(tfw.int64)}).parse_file("intact", 1)
        ),
        "skip": lambda: list(tfw.read_records(path, on_corrupt="skip")),
        "append": lambda: tfw.TFRecordWriter(path, "GZIP", append=True),
        "index": lambda: tfw.RecordIndex.load(path),
        "random access": lambda: tfw.TFRecordFile(os.path.dirname(path)),
        "schema": lambda: tfw.read_schema(path),
        "repair": lambda: tfw.repair_file(path, path, overwrite=True),
        "shards": lambda: tfw.ShardedWriter(path, num_shards=2),
        "shards of a URL": lambda: tfw.ShardedWriter("gs://" + path, num_shards=2),
        "missing": lambda: list(tfw.read_records(path + "missing")),
        "infer": lambda: tfw.infer_schema("intact"),
        "no match": lambda: tfw.Dataset.list_files(path + "*?"),
    }


@pytest.mark.posix("no such names")
@pytest.mark.parametrize("fault", sorted(path_faults("x")))
def test_paths_in_messages(fault, tmp_path, monkeypatch):
    path = str(tmp_path / PATH / PATH)
    (tmp_path / PATH).mkdir()
    monkeypatch.chdir(tmp_path / PATH)
    damaged(path)
    tfw.write_records("intact", [b"\xff\xff"])
    if fault in ("parse", "infer"):
        os.replace("intact", path)
        os.symlink(path, "intact")
    expected = (tfw.Error, OSError, ValueError, UserWarning, ImportError)
    with pytest.raises(expected) as raised:
        path_faults(path)[fault]()
    message = str(raised.value)
    assert message.isprintable()
    if isinstance(raised.value, tfw.DataLossError):
        assert path == raised.value.path
        assert printable(path) in message
        assert path == pickle.loads(pickle.dumps(raised.value)).path


def test_the_name_of_a_file_object_in_a_message():
    file = io.BytesIO(b"no record of any kind")
    file.name = NASTY
    with pytest.raises(tfw.DataLossError) as raised:
        list(tfw.read_records(file))
    assert NASTY == raised.value.path
    assert str(raised.value).startswith(printable(NASTY))
