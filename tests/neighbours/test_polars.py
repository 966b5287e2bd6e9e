"""tfwire.polars.scan_tfrecord, by queries of polars."""

from __future__ import annotations

import pickle
from pathlib import Path

import duckdb
import polars as pl
import pyarrow
import pytest

import tfwire as tfw
import tfwire.polars
from helpers.reading import damage
from tfwire.arrow import open_reader
from tfwire.polars import scan_tfrecord

ROWS = [
    {"label": i % 3, "name": f"row {i}", "x": [i / 2, i / 4], "tags": ["a", "b"][: i % 3]}
    for i in range(1000)
]
FEATURES = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "x": tfw.FixedLenFeature([2], tfw.float32),
    "tags": tfw.VarLenFeature(tfw.string),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tfw.write_records(tmp_path / "rows", ROWS)
    return tmp_path / "rows"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, int]]:
    """The columns that each reader was asked for, and its batch size."""
    found: list[tuple[object, int]] = []
    original = tfwire.polars.open_reader

    def noted(paths, features=None, **options):
        if paths:
            found.append((options.get("columns"), options["batch_size"]))
        return original(paths, features, **options)

    monkeypatch.setattr(tfwire.polars, "open_reader", noted)
    return found


def expected() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "label": [row["label"] for row in ROWS],
            "name": [row["name"].encode() for row in ROWS],
            "x": [row["x"] for row in ROWS],
            "tags": [[tag.encode() for tag in row["tags"]] or None for row in ROWS],
        },
        schema={
            "label": pl.Int64,
            "name": pl.Binary,
            "x": pl.Array(pl.Float32, 2),
            "tags": pl.List(pl.Binary),
        },
    )


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("batch_size", [7, 1000, 65536])
def test_all_rows_and_columns(path: Path, engine, num_threads: int, batch_size: int) -> None:
    frame = scan_tfrecord(path, FEATURES, num_threads=num_threads, batch_size=batch_size)
    whole = expected().select(frame.collect_schema().names())
    assert whole.schema == frame.collect_schema()
    for _ in range(2):  # as often as it is collected
        found = frame.collect(engine=engine)
        # An absent list may be empty or null: a record of the first kind has the feature.
        assert whole.drop("tags").equals(found.drop("tags"))
        assert [row["tags"] for row in ROWS] == [
            [tag.decode() for tag in tags or []] for tags in found["tags"].to_list()
        ]


def test_features_that_a_query_does_not_use_are_not_parsed(path: Path, parsed) -> None:
    frame = scan_tfrecord(path, FEATURES)
    parsed.clear()
    found = frame.filter(pl.col("label") == 1).select("name").collect()
    assert [f"row {i}".encode() for i in range(1, 1000, 3)] == found["name"].to_list()
    assert {"label", "name"} == set(parsed[0][0])
    assert frame.select(pl.len()).collect().item() == 1000
    assert 1 == len(parsed[1][0])
    frame.select("x", "label").collect()
    assert ["x", "label"] == sorted(parsed[2][0], reverse=True)


def test_head_ends_the_reading(path: Path, parsed) -> None:
    damage(path, -1)  # damage that is never reached
    frame = scan_tfrecord(path, FEATURES)
    assert 5 == len(frame.head(5).collect())
    assert parsed[-1][1] == 5
    with pytest.raises(tfw.DataLossError, match="rows: record 999 at byte"):
        frame.collect()


def test_wide_rows_come_in_small_batches(path: Path, parsed) -> None:
    tfw.write_records(path, [{"wide": [0.5] * 4096, "label": 1}] * 3)
    features = {
        "wide": tfw.FixedLenFeature([64, 64], tfw.float32),
        "label": tfw.FixedLenFeature([], tfw.int64),
    }
    frame = scan_tfrecord(path, features)
    assert (3, 2) == frame.collect().shape
    assert parsed[-1][1] == (8 << 20) // (8 * 4097)
    assert [1, 1, 1] == frame.select("label").collect()["label"].to_list()
    assert parsed[-1][1] == 65536


def test_group_by_join_and_sort(path: Path) -> None:
    frame = scan_tfrecord(path, binary_as="string")
    sums = frame.group_by("label").agg(pl.len(), pl.col("name").first()).sort("label")
    assert [(0, 334, "row 0"), (1, 333, "row 1"), (2, 333, "row 2")] == sums.collect().rows()
    both = frame.select("label", "name").join(sums.select("label", "len"), on="label")
    assert 1000 == len(both.collect())


def test_positions(path: Path, parsed) -> None:
    frame = scan_tfrecord([path, path], FEATURES, with_positions=True)
    found = frame.filter(pl.col("record_index") == 3).collect()
    assert [3, 3] == found["record_index"].to_list()
    assert [b"row 3"] * 2 == found["name"].to_list()
    assert 2000 == frame.select("offset").collect().height
    assert [] == parsed[-1][0]
    assert 1000 == frame.select("offset").head(1000).collect().height
    assert {str(path)} == set(frame.select("path").collect()["path"].to_list())


def test_what_does_not_fit_is_named(path: Path) -> None:
    frame = scan_tfrecord(path, {"name": tfw.FixedLenFeature([], tfw.int64)})
    for engine in ("in-memory", "streaming"):
        with pytest.raises(tfw.ParseError, match=r"rows.*name"):
            frame.collect(engine=engine)
    tfw.write_records(path, [{"a": 1}, {"a": "x"}], kinds="any")
    with pytest.raises(tfw.ParseError, match="Key: a"):
        scan_tfrecord(path, {"a": tfw.FixedLenFeature([], tfw.int64)}).collect()


def test_damage_by_policy(path: Path) -> None:
    damage(path, 12)
    with pytest.raises(tfw.DataLossError, match="record 0"):
        scan_tfrecord(path, FEATURES).collect()
    with pytest.warns(tfw.TfwireWarning, match="left out 1 damaged"):
        found = scan_tfrecord(path, FEATURES, on_corrupt="skip").select("name").collect()
    assert 999 == len(found)


def test_wrong_arguments_are_refused_at_the_call(path: Path) -> None:
    with pytest.raises(ValueError, match="on_corrupt"):
        scan_tfrecord(path, FEATURES, on_corrupt="nonsense")
    with pytest.raises(ValueError, match="batch_size"):
        scan_tfrecord(path, FEATURES, batch_size=0)
    with pytest.raises(TypeError, match="with_positions"):
        scan_tfrecord(path, FEATURES, with_positions="yes")
    with pytest.raises(FileNotFoundError):
        scan_tfrecord(path.with_name("missing"))


def test_a_scan_can_be_pickled(path: Path) -> None:
    frame = pickle.loads(pickle.dumps(scan_tfrecord(path, FEATURES)))
    assert 1000 == len(frame.collect())


def test_no_files_are_warned_of_once() -> None:
    with pytest.warns(tfw.TfwireWarning, match="there are no files to read") as warned:
        assert 0 == len(scan_tfrecord([], FEATURES).collect())
    assert 1 == len(warned)


def test_features_that_come_late_are_warned_of(tmp_path: Path) -> None:
    first = tfw.encode_example({"i": 1, "s": "x" * 200})
    path = tmp_path / "late"
    tfw.write_records(path, [*[first] * 30_000, {"i": 1, "s": "y", "late": 1}, {}])
    frame = scan_tfrecord(path)
    with pytest.warns(tfw.TfwireWarning, match=r"record 30000 is the first with .* 'late'"):
        found = frame.collect()
    assert [(1, "y"), (None, None)] == found.rows()[30_000:]
    # Streams that C reads tell the main thread; consumers have others.
    for read in (pl.DataFrame, pyarrow.table, lambda reader: duckdb.sql("FROM reader").fetchall()):
        with pytest.warns(tfw.TfwireWarning, match=r"record 30000 is the first with .* 'late'"):
            assert 30_002 == len(read(open_reader(path, num_threads=2)))
    # What is null goes back as an absent feature.
    table = pyarrow.table(open_reader(path, columns=["i", "s"]))
    assert [{}] == tfw.decode_examples(tfw.encode_columns(table[30_001:]))
