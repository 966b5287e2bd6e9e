"""tfwire bench; what it measures is nobody's to assert."""

import json
from importlib.util import find_spec

import pytest

import tfwire as tfw
from helpers.command import tfwire_command
from tfwire.cli.bench import READERS, Subject

ROWS = [{"id": i, "name": f"name {i}", "x": [0.5 * i, 1.0]} for i in range(3000)]


def bench(path, *words):
    result = tfwire_command("bench", path, "--seconds", "0.01", *words)
    assert (0, "") == (result.returncode, result.stderr)
    return result.stdout


@pytest.fixture
def path(tmp_path):
    tfw.write_records(tmp_path / "data", ROWS)
    return tmp_path / "data"


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_a_line_for_every_reader(tmp_path, compression):
    path = tmp_path / "data"
    tfw.write_records(path, ROWS, compression)
    rows = [json.loads(line) for line in bench(path, "--json").splitlines()]
    able = [reader for reader in READERS if compression in reader.compressions]
    assert [(r.operation, r.name) for r in able] == [(r["operation"], r["reader"]) for r in rows]
    for reader, row in zip(able, rows, strict=True):
        assert row.keys() >= ({"ratio"} if reader.installed else {"problem"})
        if reader.name == "tfwire":
            assert 1 == row["ratio"]
            assert row["records_per_second"] > 0


def test_the_table_names_what_is_missing(path):
    output = bench(path)
    assert "3,000 records of " in output.splitlines()[0]
    assert ("tensorflow is not installed" in output) == (find_spec("tensorflow") is None)
    assert "protobuf messages" in output
    assert "x as fast" in output


def test_readers_agree_on_the_number_of_records(path):
    schema = tfw.infer_schema(path)
    for reader in READERS:
        if reader.installed:
            assert 3000 == sum(reader.read(Subject(str(path), "", schema))), reader


def test_a_reader_that_fails_is_told(path, monkeypatch):
    def fail(file):
        raise KeyError("\x1b[31m" + "x" * 1000)
        yield

    monkeypatch.setattr("tfwire.cli.bench.READERS", [READERS[0]._replace(read=fail)])
    (row,) = map(json.loads, bench(path, "--json").splitlines())
    assert row["problem"].startswith("KeyError: ")
    assert row["problem"].isprintable()
    assert len(row["problem"]) < 100


def test_sequence_examples_are_parsed(tmp_path):
    path = tmp_path / "data"
    messages = [tfw.encode_sequence_example({"n": i}, {"s": [[1], [i]]}) for i in range(100)]
    tfw.write_records(path, messages)
    schema = tfw.infer_schema(path)
    for reader in READERS:
        if reader.installed:
            assert 100 == sum(reader.read(Subject(str(path), "", schema))), reader


def test_records_that_are_no_examples_are_not_parsed(tmp_path):
    tfw.write_records(tmp_path / "data", [b"\xff" * 10] * 10)
    output = bench(tmp_path / "data")
    assert "Nothing to parse: the records are not Examples" in output
    assert "file to columns" not in output


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "no records"), (b"x" * 100, "not a TFRecord file"), (None, "No such file")],
)
def test_a_file_that_cannot_be_measured(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "data").write_bytes(content)
    result = tfwire_command("bench", tmp_path / "data")
    assert (1, "") == (result.returncode, result.stdout)
    assert reason in result.stderr


def test_a_damaged_file_is_not_measured(path):
    path.write_bytes(path.read_bytes()[:-1])
    result = tfwire_command("bench", path)
    assert 1 == result.returncode
    assert "is damaged" in result.stderr
