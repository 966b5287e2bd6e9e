"""Rows and columns that are written together agree in the kinds of their features."""

import io
import itertools
import re

import numpy as np
import pytest

import tfwire as tfw
from tfwire._examples import encode_rows
from tfwire._examples.kinds import KindMemory
from tfwire._examples.native_encoder import NO_ROOM
from tfwire._examples.values import FLOAT

NAN = float("nan")


def features_of(records):
    """The kind and the values of each feature."""
    found = []
    for record in records:
        features = tfw.train.Example.FromString(record).features.feature
        kinds = {name: feature.WhichOneof("kind") for name, feature in features.items()}
        found.append({n: (k, k and list(getattr(features[n], k).value)) for n, k in kinds.items()})
    return found


def by_write(rows, kinds):
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer, kinds=kinds) as writer:
        for row in rows:
            writer.write(row)
    return list(tfw.read_records(io.BytesIO(buffer.getvalue())))


def by_write_many(rows, kinds):
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer, kinds=kinds) as writer:
        writer.write_many(rows)
    return list(tfw.read_records(io.BytesIO(buffer.getvalue())))


def by_write_records(rows, kinds):
    buffer = io.BytesIO()
    tfw.write_records(buffer, rows, kinds=kinds)
    return list(tfw.read_records(io.BytesIO(buffer.getvalue())))


def by_encode_examples(rows, kinds):
    return tfw.encode_examples(iter(rows), kinds=kinds)


def by_shards(rows, kinds):
    with tfw.ShardedWriter("s-{shard}-of-{shards}", num_shards=1, kinds=kinds) as writer:
        for row in rows[:2]:
            writer.write(row)
        writer.write_many(rows[2:])
    return list(tfw.read_records(writer.paths))


WAYS = [by_write, by_write_many, by_write_records, by_encode_examples, by_shards]
OF = dict.fromkeys(WAYS, "") | {by_shards: r" of s-\{shard\}-of-\{shards\}"}
A = 100  # so many rows before the one at fault: more than one call of C takes at first
VALUES = {
    "int64": [1, np.int8(1), [1, 2], np.arange(3), np.empty(0, np.int64), True, range(3)],
    "float32": [0.5, np.float32(1), [1, 0.5], np.ones(2), np.empty(0, np.float32), np.float64(2)],
    "string": ["a", b"a", ["a", b"b"], np.array(["a"]), np.empty(0, "S1"), np.array(["x"], object)],
}
PAIRS = [
    (one, other, value, wrong)
    for one, other in itertools.permutations(VALUES, 2)
    for value, wrong in zip(VALUES[one], VALUES[other] + VALUES[other][:1], strict=False)
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("before", "other"), list(itertools.permutations(VALUES, 2)))
def test_another_kind_is_an_error_that_names_both_records(way, before, other):
    for _, _, value, wrong in [p for p in PAIRS if p[:2] == (before, other)]:
        for filler in ({"y": 1}, {"x": None}, {"x": [], "y": 2}):
            rows = [filler, {"x": value, "y": 3}, *[{"x": value}] * A, {"y": 5, "x": wrong}]
            with pytest.raises(TypeError) as found:
                way(rows, None)
            said = rf"feature 'x': record {A + 2}{OF[way]} holds {other}, record 1 {before}, "
            assert re.match(said, str(found.value))
            assert "kinds={'x': 'any'}" in str(found.value)
            is_number = {before, other} == {"int64", "float32"}
            assert is_number == ("kinds={'x': 'float32'}" in str(found.value))
            is_text = (before, other) == ("float32", "string")
            assert is_text == ("kinds={'x': 'string'}" in str(found.value))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kinds", [None, "any"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([[1], [2]], "lists in lists"),
        ([1, None], "a null inside"),
        (2**63, "a value outside of int64"),
        ({}, "expected numbers"),
        (tfw.RaggedTensor(np.arange(2), [0, 2]), "lists in lists"),
    ],
)
def test_an_error_in_a_row_names_the_record(way, kinds, wrong, said):
    for rows in ([{"y": 1}, {"x": 1}] * (A // 2), [{"y": 1, "x": 2}] * 3):
        with pytest.raises((TypeError, ValueError)) as found:
            way([*rows, {"y": 1, "x": wrong}, {"z": [None]}], kinds)
        assert str(found.value).startswith(f"feature 'x': record {len(rows)}: {said}")


@pytest.mark.parametrize("way", WAYS)
def test_ints_are_floats_where_that_is_asked_for(way):
    values = [1, [2, 3], np.arange(2), np.empty(0, np.int8), [], 0.5, [1, 0.5], True, np.int16(7)]
    kinds = {"x": tfw.float32}
    expected = [[1], [2, 3], [0, 1], [], None, [0.5], [1, 0.5], [1], [7]]
    for repeats in (1, A):
        found = features_of(way([{"x": value, "n": 1} for value in values * repeats], kinds))
        assert [row["x"][1] for row in found] == expected * repeats
        assert {row["x"][0] for row in found} == {"float_list", None}
        assert {row["n"][0] for row in found} == {"int64_list"}
    with pytest.raises(
        TypeError, match=rf"^feature 'x': record 1{OF[way]} holds string, kinds says float32$"
    ):
        way([{"x": 1}, {"x": "a"}], kinds)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kinds", ["any", {"x": "any"}, {b"x": "any"}])
def test_several_kinds_on_purpose(way, kinds):
    rows = [{"x": value, "y": 1} for value in (1, 0.5, "a", NAN)] * A
    assert way(rows, kinds) == [tfw.encode_example(row) for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_among_strings_is_a_missing_value(way):
    rows = [{"x": "a", "f": NAN}, {"x": NAN, "f": 1.0}, {"x": np.float32("nan"), "f": NAN}] * A
    found = features_of(way(rows, None))
    assert [set(row) for row in found] == [{"x", "f"}, {"f"}, {"f"}] * A
    assert repr(found[0]["f"]) == "('float_list', [nan])"
    assert features_of(way([{"x": NAN}], {"x": "string"})) == [{}]


def test_a_row_that_is_refused_settles_nothing():
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer) as writer:
        for refused in ({"a": 1, "b": 1j}, {"a": 1, "b": [None]}, {"a": 1, "b": [1, "x"]}):
            with pytest.raises(TypeError, match="feature 'b'"):
                writer.write(refused)
        writer.write({"a": 0.5})
        writer.write(b"not looked at")
        with pytest.raises(TypeError, match="record 2 holds int64, record 0 float32"):
            writer.write({"a": 2})
        writer.write_many([{"a": 1.5}] * A)
    assert writer.receipt.num_records == A + 2


def test_columns_that_are_refused_settle_nothing():
    with tfw.TFRecordWriter(io.BytesIO()) as writer:
        writer.write({"b": "s"})
        with pytest.raises(TypeError, match="feature 'b': record 1 holds int64"):
            writer.write_columns({"a": [1.5], "b": [1]})
        writer.write({"a": 1})
        writer.write_columns({"a": [2]})
    assert 3 == writer.receipt.num_records


@pytest.mark.parametrize(
    "column",
    [np.zeros((2, 0), np.float32), np.full((2, 3), NAN), [[NAN], [NAN]], [[NAN], None]],
)
def test_lists_of_nan_are_no_missing_strings(column):
    """In columns as in rows."""
    with tfw.TFRecordWriter(io.BytesIO()) as writer:
        writer.write({"x": ["a"]})
        with pytest.raises(TypeError, match="record 1 holds float32, record 0 string"):
            writer.write({"x": column[0]})
        with pytest.raises(TypeError, match="record 1 holds float32, record 0 string"):
            writer.write_columns({"x": column})


def test_ints_become_the_same_floats_in_rows_and_columns():
    value, kinds = 2**60 + 2**36 + 1, {"x": "float32"}
    written = []
    for method, argument in (("write", {"x": value}), ("write_columns", {"x": [value]})):
        with tfw.TFRecordWriter(buffer := io.BytesIO(), kinds=kinds) as writer:
            getattr(writer, method)(argument)
        written.append(buffer.getvalue())
    assert written[0] == written[1]


def test_a_file_is_kept_if_its_first_row_is_refused(tmp_path):
    tfw.write_records(tmp_path / "a", [b"kept"])
    with pytest.raises(TypeError, match="kinds says int64"):
        tfw.write_records(tmp_path / "a", [{"x": "s"}], kinds={"x": "int64"})
    assert [b"kept"] == list(tfw.read_records(tmp_path / "a"))


def test_an_interrupt_is_no_error_of_a_row(monkeypatch):
    """Rows are not converted again to find the one at fault."""

    def interrupted(*arguments):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(encode_rows, "inputs_from_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tfw.encode_examples([{"x": np.datetime64("NaT")}, {"x": [None]}])


def test_kinds_are_remembered_by_a_writer_and_no_longer():
    for value in (1, 0.5, "a"):
        tfw.encode_examples([{"x": value}] * 9)
        with tfw.TFRecordWriter(io.BytesIO()) as writer:
            writer.write({"x": value})
    with tfw.TFRecordWriter(io.BytesIO()) as one, tfw.TFRecordWriter(io.BytesIO()) as other:
        for _ in range(A):  # side by side
            one.write({"x": 1})
            other.write({"x": "a"})
            tfw.encode_examples([{"x": 0.5}, {"x": 1.5}])


def test_more_names_than_are_remembered():
    rows = [{f"{i}": i} for i in range(5000)]
    assert tfw.encode_examples(rows) == [tfw.encode_example(row) for row in rows]
    last = tfw.encode_examples([*rows, {"x": 1}], kinds={"x": "float32"})[-1]
    assert last == tfw.encode_example({"x": 1.0})


def columns_written(parts, **options):
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer, **options) as writer:
        for part in parts:
            writer.write_columns(part)
    return features_of(tfw.read_records(io.BytesIO(buffer.getvalue())))


@pytest.mark.parametrize("num_threads", [1, 2])
def test_columns_agree_with_columns_and_rows_before(num_threads):
    options = {"num_threads": num_threads}
    parts = [{"x": [1, 2]}, {"x": [None, 2.5]}]
    with pytest.raises(TypeError, match=r"^feature 'x': record 3 holds float32, record 0 int64, "):
        columns_written(parts, **options)
    found = columns_written(parts, kinds={"x": "float32"}, **options)
    assert found == [{"x": ("float_list", [v])} for v in (1, 2)] + [
        {},
        {"x": ("float_list", [2.5])},
    ]
    strings = [{"x": ["a"]}, {"x": np.array([NAN, NAN])}, {"x": [None]}, {"x": [[]]}]
    assert columns_written(strings, **options) == [
        {"x": ("bytes_list", [b"a"])},
        {},
        {},
        {},
        {"x": (None, None)},
    ]
    with tfw.ShardedWriter("s-{shard}", num_shards=2, **options) as writer:
        writer.write({"x": "a"})
        with pytest.raises(
            TypeError, match=r"record 1 of s-\{shard\} holds int64, record 0 string"
        ):
            writer.write_columns({"x": [1]})


@pytest.mark.parametrize(
    ("kinds", "error", "message"),
    [
        ("some", ValueError, "kinds must be 'any' or a dict, found 'some'"),
        (["x"], TypeError, "kinds must be 'any' or a dict of kinds by feature, found list"),
        ({"x": "double"}, ValueError, "kinds['x'] must be 'int64', 'float32', 'string' or 'any'"),
        ({"x": 3}, ValueError, "found int"),
        ({3: "any"}, TypeError, "keys of features must be str or bytes, found int"),
    ],
)
def test_kinds_are_checked_before_a_file_is_opened(kinds, error, message, tmp_path):
    calls = [
        lambda: tfw.encode_examples([], kinds=kinds),
        lambda: tfw.TFRecordWriter("file", kinds=kinds),
        lambda: tfw.ShardedWriter("file-{shard}", num_shards=1, kinds=kinds),
        lambda: tfw.write_records("file", [b"x"], kinds=kinds),
    ]
    for call in calls:
        with pytest.raises(error) as found:
            call()
        assert message in str(found.value)
    assert not list(tmp_path.iterdir())


def test_a_signal_handler_that_closes_a_memory_leaves_the_next_one_alone(monkeypatch):
    memory, others, calls, address = KindMemory(), [], [], encode_rows.address

    def interrupted(buffer):
        calls.append(buffer)
        if len(calls) == 3:  # of the first chunk that has room
            memory.close()
            others.append(KindMemory())  # has the encoder that memory had
        return address(buffer)

    monkeypatch.setattr(encode_rows, "address", interrupted)
    list(encode_rows.RowEncoder(NO_ROOM, True, memory).encode([{"x": 1}]))
    assert others[0]._settle(b"x", FLOAT, 7) == (FLOAT, 7)
