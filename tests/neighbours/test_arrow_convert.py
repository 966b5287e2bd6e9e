"""tfwire convert to and from Parquet and Arrow files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers import layouts
from helpers.command import output_of_python, tfwire_main
from helpers.reading import damage
from tfwire.arrow import open_reader

ENDINGS = ["parquet", "arrow"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: Any) -> Any:
    """The report of a conversion."""
    result = tfwire_main("convert", *words, "--json")
    assert (0, b"") == (result.returncode, result.stderr)
    return json.loads(result.stdout)


def refused(*words: Any, status: int = 1) -> str:
    before = sorted(os.listdir())
    result = tfwire_main("convert", *words)
    assert (status, b"") == (result.returncode, result.stdout)
    assert before == sorted(os.listdir())
    message: str = result.stderr.decode()
    assert "unexpected " not in message
    return message


def plain(path: str) -> list[dict[str, Any]]:
    """Kinds and bytes of what the Examples of a file hold."""
    found = []
    for record in tfw.read_records(path):
        example: dict[str, Any] = tfw.decode_example(record)
        found.append(
            {
                name: ("bytes", list(values))
                if isinstance(values, list) or values.dtype == object
                else (values.dtype.name, values.tobytes())
                for name, values in example.items()
                if not isinstance(values, list) or values
            }
        )
    return found


def read(path: str) -> Any:
    return pq.read_table(path) if path.endswith("parquet") else pa.feather.read_table(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_have_the_types_that_users_expect(ending: str) -> None:
    rows = [{"id": 1, "name": "cat", "box": [0.5, 1.0], "tags": []}, {"id": 2, "box": [0.0, 2.0]}]
    tfw.write_records("a.tfrecord", [*rows, {"id": 3, "box": [1.0, 2.0], "tags": ["x", "y"]}])
    report = run("a.tfrecord", "-o", f"a.{ending}")
    assert {"rows": 3, "files": [f"a.{ending}"]} == {k: report[k] for k in ("rows", "files")}
    table = read(f"a.{ending}")
    assert pa.int64() == table.schema.field("id").type
    assert pa.large_string() == table.schema.field("name").type
    assert ["cat", None, None] == table["name"].to_pylist()
    assert [[0.5, 1.0], [0.0, 2.0], [1.0, 2.0]] == table["box"].to_pylist()
    assert ["x", "y"] == table["tags"].to_pylist()[2]


@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_become_records_and_losses_are_named(ending: str) -> None:
    table = pa.table(
        {
            "wide": [0.1, 2.0],
            "flag": [True, None],
            "word": pa.array(["a", None]).dictionary_encode(),
            "pairs": pa.array([[[1, 2]], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int64(), 2))),
        }
    )
    pq.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.arrow")
    report = run(f"a.{ending}", "-o", "a.tfrecord")
    assert report["lost"] == [
        "'wide': double is rounded to float",
        "'flag': bool becomes int64",
        "'pairs': lists of one shape are flattened",
    ]
    first, second = map(tfw.decode_example, tfw.read_records("a.tfrecord"))
    assert ([1, 2], [b"a"], [1]) == (list(first["pairs"]), first["word"], list(first["flag"]))
    assert {"wide", "pairs"} == set(second)
    said = refused(f"a.{ending}", "-o", "a.csv")
    assert f"a.{ending}: 'pairs': expected numbers, strings" in said
    assert "; go by a .tfrecord file, for which --schema says" in said


NESTED = """
feature { name: "##SEQUENCE##" type: STRUCT struct_domain {
  feature { name: "deep" type: INT }
} }
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_schema_says_how_lists_in_lists_are_written(ending: str) -> None:
    table = pa.table({"n": [1, 2], "deep": [[[1], [2, 3]], [[], None]]})
    pq.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.arrow")
    said = refused(f"a.{ending}", "-o", "a.tfrecord")
    assert (
        f"a.{ending}: 'deep': lists in lists, whose lengths no feature holds; give --schema" in said
    )
    assert not os.path.exists("a.tfrecord")
    Path("a.pbtxt").write_text(NESTED)
    assert [] == run(f"a.{ending}", "-o", "a.tfrecord", "--schema", "a.pbtxt")["lost"]
    found = [tfw.decode_sequence_example(record) for record in tfw.read_records("a.tfrecord")]
    assert [{"n": [1]}, {"n": [2]}] == [{"n": list(context["n"])} for context, _ in found]
    steps = [[list(step) for step in lists["deep"]] for _, lists in found]
    assert [[[1], [2, 3]], [[], []]] == steps
    run("a.tfrecord", "-o", f"b.{ending}")
    assert table.to_pylist() == read(f"b.{ending}").to_pylist()
    Path("a.pbtxt").write_text(NESTED.replace("deep", "depe"))
    said = refused(f"a.{ending}", "-o", "c.tfrecord", "--schema", "a.pbtxt")
    assert f"a.{ending}: 'deep': lists in lists" in said
    pq.write_table(table.select(["n"]), "n.parquet")
    lost = run("n.parquet", "-o", "c.tfrecord", "--schema", "a.pbtxt")["lost"]
    assert ["'depe': the schema names it, and there is no such column"] == lost


STEPS = [
    ({"n": 1, "s": "a"}, {"w": [[1], [2]], "x": [[0.5, 1], []], "t": [["a"], ["b", "c"]]}),
    ({"n": 2}, {"w": [[3]], "x": [], "t": [[], ["d"]]}),
    ({}, {"w": []}),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_sequences_come_back(ending: str) -> None:
    """By the metadata of the table: also through a library of Arrow's."""
    tfw.write_records("a.tfrecord", [tfw.encode_sequence_example(*row) for row in STEPS])
    run("a.tfrecord", "-o", f"a.{ending}")
    run(f"a.{ending}", "-o", "b.tfrecord")
    assert plain_sequences("a.tfrecord") == plain_sequences("b.tfrecord")
    with tfw.TFRecordWriter("c.tfrecord") as writer:
        writer.write_columns(read(f"a.{ending}"))
    assert Path("b.tfrecord").read_bytes() == Path("c.tfrecord").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_sequences_in_tables_become_json_lines(ending: str) -> None:
    flat = ({"n": 3}, {"w": [[4], [5]]})  # w is a list column: its metadata says that it is steps
    for rows in (STEPS, [flat]):
        tfw.write_records("a.tfrecord", [tfw.encode_sequence_example(*row) for row in rows])
        run("a.tfrecord", "-o", "a.jsonl", "--force")
        run("a.tfrecord", "-o", f"a.{ending}", "--force")
        assert [] == run(f"a.{ending}", "-o", "b.jsonl", "--force")["lost"]
        run("b.jsonl", "-o", "b.tfrecord", "--force")
        assert plain_sequences("a.tfrecord") == plain_sequences("b.tfrecord")
        said = refused(f"a.{ending}", "-o", "a.csv")
        assert f"a.{ending}: row 0: a SequenceExample can be converted to JSON lines" in said


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("other", ["jsonl", "csv", "tar"])
def test_ragged_features_in_tables_become_rows_of_their_parts(ending: str, other: str) -> None:
    ragged = tfw.RaggedFeature
    spec = {"x": ragged("int64", "v", [ragged.RowLengths("lengths")])}
    with tfw.TFRecordWriter("a.tfrecord") as writer:
        writer.write_columns({"x": [[[1, 2], [], [3]], [[4]]]}, features=spec)
    table = pa.table(open_reader("a.tfrecord", spec))
    table = table.append_column("wide", [[0.1, 2.0]])
    pq.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.arrow")
    assert "'wide': double is rounded to float" in run(f"a.{ending}", "-o", f"b.{other}")["lost"]
    run("a.tfrecord", "-o", f"c.{other}")
    if other == "jsonl":
        found = [json.loads(line) for line in Path("b.jsonl").read_text().splitlines()]
        assert found[0] == {"lengths": [2, 0, 1], "v": [1, 2, 3], "wide": 0.1}


@pytest.mark.parametrize("ending", ENDINGS)
def test_errors_of_metadata_are_in_the_words_of_the_command(ending: str) -> None:
    wrong = {b"tfwire:feature": b'{"key": "x", "feature": "RaggedFeature", "zz": 1}'}
    x = pa.field("x", pa.list_(pa.list_(pa.int64())), metadata=wrong)
    table = pa.table([[[[1]]]], schema=pa.schema([x]))
    pq.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.arrow")
    for target in ("a.tfrecord", "a.jsonl"):
        said = refused(f"a.{ending}", "-o", target)
        assert f"a.{ending}: column 'x': its metadata tfwire:feature is no specification: " in said
        assert "expected the arguments of a RaggedFeature: dtype, " in said
        assert said.endswith("; give --schema, to write a .tfrecord file\n")


def test_a_table_has_one_column_of_a_name() -> None:
    tfw.write_records("a.tfrecord", [tfw.encode_sequence_example({"w": 1}, {"w": [[1], []]})])
    said = refused("a.tfrecord", "-o", "a.parquet")
    assert "a.tfrecord: 'w' is in the context and among the feature lists, which" in said
    assert "--schema" in said
    Path("a.pbtxt").write_text(NESTED.replace("deep", "w"))
    assert ["'w': not in the schema, left out"] == run(
        "a.tfrecord", "-o", "a.parquet", "--schema", "a.pbtxt"
    )["lost"]
    assert [{"w": [[1], []]}] == read("a.parquet").to_pylist()


def plain_sequences(path: str) -> list[Any]:
    return [
        (
            {name: list(values) for name, values in context.items()},
            {name: [list(step) for step in steps] for name, steps in lists.items()},
        )
        for context, lists in map(tfw.decode_sequence_example, tfw.read_records(path))
    ]


def test_a_file_of_sequences_reads_as_its_row_says() -> None:
    tfw.write_records("a.tfrecord", [tfw.encode_sequence_example(*row) for row in STEPS])
    run("a.tfrecord", "-o", "train.parquet")
    records = layouts.read("SequenceExamples as Parquet", pyarrow=pa)  # with pyarrow.parquet
    assert records == list(tfw.read_records("a.tfrecord"))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("other", ["jsonl", "csv", "tar", "parquet", "arrow"])
def test_rows_of_other_formats(ending: str, other: str) -> None:
    table = pa.table({"n": [1, None, 3], "x": [0.1, 2.5, 1e300], "s": ["a", "b", "é"]})
    pq.write_table(table, "a.parquet")
    pa.feather.write_feather(table, "a.arrow")
    run(f"a.{ending}", "-o", f"b.{other}")
    run(f"b.{other}", "-o", f"c.{ending}")
    found = read(f"c.{ending}").select(["n", "x", "s"])
    if other == "tar":
        found = found.set_column(2, "s", found["s"].cast(pa.binary()).cast(pa.string()))
    assert table.to_pylist() == found.to_pylist()


@pytest.mark.parametrize("ending", ENDINGS)
def test_shards_limits_and_empty_files(ending: str) -> None:
    tfw.write_records("a.tfrecord", [{"n": i, "s": "x" * (i % 7)} for i in range(100)])
    report = run("a.tfrecord", "-o", "s-{shard}-of-{shards}." + ending, "--num-shards", 3)
    assert [list(range(i, 100, 3)) for i in range(3)] == [
        read(path)["n"].to_pylist() for path in report["files"]
    ]
    report = run("a.tfrecord", "-o", "f-{shard:03d}." + ending, "--shard-size", "500")
    assert len(report["files"]) > 2
    run(*report["files"], "-o", "all.tfrecord", "--limit", 99)
    assert plain("a.tfrecord")[:99] == plain("all.tfrecord")
    tfw.write_records("none.tfrecord", [])
    assert [] == run("none.tfrecord", "-o", f"none.{ending}")["lost"]
    assert 0 == run(f"none.{ending}", "-o", "back.tfrecord")["rows"]


def test_a_schema_and_sequences() -> None:
    sequence = tfw.encode_sequence_example({"n": 1}, {"w": [[1], [2]]})
    tfw.write_records("seq.tfrecord", [sequence])
    run("seq.tfrecord", "-o", "seq.parquet")
    assert [{"n": 1, "w": [1, 2]}] == pq.read_table("seq.parquet").to_pylist()
    tfw.write_records("a.tfrecord", [{"n": 1, "s": "x"}])
    tfw.write_schema({"n": tfw.VarLenFeature(tfw.int64)}, "schema.pbtxt")
    report = run("a.tfrecord", "-o", "a.parquet", "--schema", "schema.pbtxt")
    assert ["'s': not in the schema, left out"] == report["lost"]
    assert [{"n": [1]}] == pq.read_table("a.parquet").to_pylist()


def test_damage() -> None:
    tfw.write_records("a.tfrecord", [{"n": i} for i in range(9)])
    damage("a.tfrecord", -6, "bad.tfrecord")
    assert "bad.tfrecord: record 8" in refused("bad.tfrecord", "-o", "b.parquet")
    result = tfwire_main("convert", "bad.tfrecord", "-o", "b.parquet", "--on-corrupt", "skip")
    assert 1 == result.returncode
    assert 1 == result.stderr.count(b"left out bytes")
    assert list(range(8)) == pq.read_table("b.parquet")["n"].to_pylist()


def test_wrong_input() -> None:
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("s"))}), "time.parquet")
    message = refused("time.parquet", "-o", "a.tfrecord")
    assert "timestamp" in message
    assert "cast" in message
    assert "'t': expected numbers, strings" in refused("time.parquet", "-o", "a.jsonl")
    Path("text.parquet").write_text("hello, this is no Parquet")
    assert "text.parquet: " in refused("text.parquet", "-o", "a.tfrecord")
    assert "text.parquet: " in refused("text.parquet", "--from", "arrow", "-o", "a.tfrecord")
    pq.write_table(pa.table({"n": [1]}), "n.parquet")
    assert "its columns are not those of" in refused("n.parquet", "time.parquet", "-o", "a.arrow")
    words = ["n.parquet", "-o", "a.tar", "--schema", "n.parquet"]
    assert "--schema is not for" in refused(*words, status=2)
    tfw.write_records("kinds.tfrecord", [{"x": 1}, {"x": "a"}], kinds="any")
    found = refused("kinds.tfrecord", "-o", "a.parquet")
    assert (
        "'x' is of several kinds: int64 in record 0 of kinds.tfrecord, bytes in record 1" in found
    )


VALUES: dict[str, Any] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32),
    "bytes": st.binary(max_size=6),
}
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)


@st.composite
def tables(draw: Any) -> list[dict[str, Any]]:
    """Rows of columns that are present, missing or empty, of one kind each."""
    kinds = draw(st.dictionaries(NAMES, st.sampled_from(sorted(VALUES)), max_size=4))
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        row = {}
        for name, kind in kinds.items():
            values = draw(st.lists(VALUES[kind], max_size=3))
            if draw(st.booleans()):
                row[name] = np.array(values, object if kind == "bytes" else kind)
        rows.append(row)
    return rows


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=60)
@given(rows=tables())
def test_records_come_back(ending: str, rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("a.tfrecord", f"b.{ending}", "c.tfrecord")]
        tfw.write_records(names[0], [tfw.encode_example(row) for row in rows])
        lost = run(names[0], "-o", names[1])["lost"]
        run(names[1], "-o", names[2])
        assert bool(lost) == bool(rows and not any(rows))
        assert lost or plain(names[0]) == plain(names[2])


_PEAK = """
import resource, sys
from tfwire.cli import main
import pyarrow.parquet, tfwire.cli._conversion
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
assert main(["convert", *sys.argv[1:]]) == 0
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("tfrecord", "parquet"),
        ("parquet", "tfrecord"),
        ("tar", "parquet"),
        ("tfrecord", "jsonl"),
    ],
)
def test_memory_is_bounded(source: str, target: str) -> None:
    """Some hundred MB, of long records and short ones: less than 300 MB over the start."""
    random = np.random.default_rng(1)
    with tfw.TFRecordWriter("a.tfrecord") as writer:
        for i in range(1500):
            writer.write_many({"id": i * 50 + k} for k in range(50))
            writer.write({"id": i, "image": random.bytes(200_000)})
    if source != "tfrecord":
        run("a.tfrecord", "-o", f"a.{source}")
    words = [f"a.{source}", "-o", f"b.{target}"]
    assert int(output_of_python("-c", _PEAK, *words).split()[-1]) < 300_000
