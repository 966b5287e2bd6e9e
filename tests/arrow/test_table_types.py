"""Columns of files without a specification: which there are, which are text, which are values."""

import pickle

import pytest

import tfwire as tfw
from helpers.arrow.structs import rows_of_batch, rows_of_stream
from tfwire._interface.partitions import open_no_files
from tfwire.arrow import _table_types, open_reader

ROWS = [{"id": k, "text": "é", "image": b"\xff", "tags": ["a", "b"][: k % 3]} for k in range(9)]
ROWS = [row | ({"size": 1.5, "note": "n"} if row["id"] % 2 else {}) for row in ROWS]
TYPES = {
    "id": "int64",
    "image": "large_binary",
    "note": "large_string",
    "size": "float",
    "tags": "large_list<large_string>",
    "text": "large_string",
}


@pytest.fixture
def path(tmp_path):
    tfw.write_records(tmp_path / "data", ROWS)
    return str(tmp_path / "data")


def test_text_is_text_and_one_value_or_none_is_a_value(path):
    reader = open_reader(path)
    assert TYPES == reader.types
    rows = rows_of_stream(reader)
    assert rows == [row for batch in open_reader(path, batch_size=2) for row in rows_of([batch])]
    assert ["é"] * 9 == [row["text"] for row in rows]
    assert [None, 1.5, None] == [row["size"] for row in rows[:3]]
    assert [None, "n", None] == [row["note"] for row in rows[:3]]


def rows_of(batches):
    return [row for batch in batches for row in rows_of_batch(batch)]


def test_what_was_inferred_makes_the_same_table_elsewhere(path):
    features = pickle.loads(pickle.dumps(open_reader(path).features))
    assert TYPES == open_no_files(features).types == open_no_files(tfw.infer_schema(path)).types
    plain = open_no_files(dict(features)).types
    assert "large_list<large_binary>" == plain["note"]
    assert "large_binary" == plain["text"]


def test_strings_are_as_asked_by_column(path):
    types = open_reader(path, binary_as={"text": "binary", "tags": "string", "note": "auto"}).types
    changed = {"text": "binary", "tags": "large_list<string>"}
    assert TYPES | changed == types
    kinds = open_reader(path, binary_as="large_binary").types.values()
    assert "large_string" not in str(kinds)


@pytest.mark.parametrize(
    ("binary_as", "message"),
    [
        ({"id": "string"}, "binary_as: 'id' holds no strings"),
        ({"zz": "string"}, "binary_as: 'zz' is not in the specification"),
        ({"text": "utf8"}, "binary_as of 'text' must be one of"),
    ],
)
def test_types_that_cannot_be(path, binary_as, message):
    with pytest.raises(ValueError, match=message):
        open_reader(path, binary_as=binary_as)


@pytest.mark.parametrize(
    ("late", "reason", "message"),
    [
        ({"text": b"\xff"}, "utf-8", "Key: text.  A string is not UTF-8; binary_as="),
        (
            {"size": [1.0, 2.0]},
            "shape",
            "Key: size.  Several values of what was inferred",
        ),
    ],
)
def test_a_later_record_that_does_not_fit_is_named(tmp_path, path, late, reason, message):
    features = open_reader(path).features
    tfw.write_records(tmp_path / "late", [*ROWS, {**ROWS[1], **late}])
    with pytest.raises(tfw.ParseError, match=f"record 9: {message}") as caught:
        rows_of(open_reader(tmp_path / "late", features))
    assert (9, reason) == (caught.value.record_index, caught.value.reason)
    # As the messages say: by another type, or by all records.
    options = {"binary_as": {"text": "large_binary"}} if reason == "utf-8" else {}
    features = features if options else tfw.infer_schema(tmp_path / "late", None)
    assert 10 == len(rows_of(open_reader(tmp_path / "late", features, **options)))


def test_small_files_are_looked_at_whole(tmp_path, monkeypatch):
    rows = [{"a": "x" * 100}] * 20000 + [{"b": 1}]
    files = [tmp_path / "data", tmp_path / "short"]
    tfw.write_records(files[0], rows)
    tfw.write_records(files[1], [{"c": b"\xff"}])
    features = open_reader(files).features
    assert ["a", "b", "c"] == list(features)
    assert (20002, True) == (features.num_records, features.complete)
    monkeypatch.setattr(_table_types, "_SMALL", 1000)
    features = open_reader(files).features
    assert ["a", "c"] == list(features)  # each file has its part
    assert features.num_records < 20000
    assert not features.complete


def test_a_look_that_damage_ends_is_not_complete(tmp_path):
    tfw.write_records(tmp_path / "a", [{"x": 1}] * 1500)
    data = bytearray((tmp_path / "a").read_bytes())
    data[-1] ^= 1
    (tmp_path / "a").write_bytes(data)
    assert not open_reader(tmp_path / "a").features.complete


def test_a_look_goes_on_until_there_is_a_feature(tmp_path, monkeypatch):
    monkeypatch.setattr(_table_types, "_SMALL", 0)
    monkeypatch.setattr(_table_types, "_LEAST_BYTES", 0)
    tfw.write_records(tmp_path / "a", [{}] * 20000 + [{"x": 1}])
    assert ["x"] == list(open_reader(tmp_path / "a").features)
