"""Tables that are partitioned: folders like label=1, as Spark's own sources write and read them."""

import os
import pickle

import pyarrow as pa
import pytest
from spark_tables import arrow, load, read

import tfwire as tfw
from helpers import layouts
from tfwire.spark import SparkSource

# Spark's own, about its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KEYS = ["a b", "x/y=%", "", None, "é", "..", "-7"]


def test_folders_of_partitions_come_back(tmp_path):
    """And are named as Hive names them."""
    numbers = list(range(700))
    table = pa.record_batch(
        {
            "i": pa.array(numbers, pa.int64()),
            "key": pa.array([KEYS[i % 7] for i in numbers], pa.string()),
            "n": pa.array([None if i % 5 == 4 else i % 5 for i in numbers], pa.int32()),
        }
    )
    options = {"path": str(tmp_path), "partition_by": "key, n"}
    sink = pickle.loads(pickle.dumps(SparkSource(options).writer(table.schema, False)))
    batches = [table.slice(first, 100) for first in range(0, 700, 100)]
    sink.commit([sink.write(batches[:4]), sink.write(batches[4:]), sink.write([])])
    null = "__HIVE_DEFAULT_PARTITION__"
    folders = {"a b", "x%2Fy%3D%25", null, "é", "..", "-7"}
    assert {f"key={name}" for name in folders} == set(os.listdir(tmp_path))
    assert {f"n={n}" for n in [0, 1, 2, 3, null]} == set(os.listdir(tmp_path / "key=a b"))
    files = list(tmp_path.glob("*/*/*"))
    assert {"i"} == {key for r in tfw.read_records(files) for key in tfw.decode_example(r)}
    schema = arrow(i=pa.int64(), key=pa.string(), n=pa.int64())
    expected = [
        {"i": i, "key": KEYS[i % 7] or None, "n": None if i % 5 == 4 else i % 5} for i in numbers
    ]
    for size in ("1GB", "1"):
        found = read({"path": str(tmp_path), "partition_bytes": size}, schema)
        assert expected == sorted(found, key=lambda row: row["i"])
    kinds = [(field.name, field.dataType.simpleString()) for field in SparkSource(options).schema()]
    assert [("i", "bigint"), ("key", "string"), ("n", "bigint")] == kinds
    assert {"n": None} == read({"path": str(tmp_path)}, arrow(n=pa.int32()))[-1]
    with pytest.raises(
        ValueError, match=r"column 'key': a folder is named '..', .*: declare string"
    ):
        read({"path": str(tmp_path)}, arrow(key=pa.int64()))
    new = SparkSource(options).writer(table.schema, True)
    new.commit([new.write([table.slice(0, 1)])])
    assert [{"i": 0, "key": "a b", "n": 0}] == read({"path": str(tmp_path)}, schema)
    assert ["key=a b"] == os.listdir(tmp_path)


def test_a_task_has_few_files_open(tmp_path):
    """It begins a new one where a partition comes again late."""
    table = pa.record_batch({"i": pa.array(range(300), pa.int64()), "key": pa.array(range(300))})
    sink = SparkSource({"path": str(tmp_path), "partitionBy": "key"}).writer(table.schema, False)
    sink.commit([sink.write([table, table])])
    assert {2} == {len(os.listdir(path)) for path in tmp_path.iterdir()}
    found = read({"path": str(tmp_path)}, arrow(i=pa.int64(), key=pa.int64()))
    assert sorted([*range(300)] * 2) == sorted(row["i"] for row in found if row["i"] == row["key"])


def test_what_cannot_be_partitioned_is_refused(tmp_path):
    table = pa.record_batch({"i": pa.array([1]), "l": pa.array([[1]])})
    for columns, message in (("x", "there is no column 'x'"), ("i, l", "no column is left")):
        with pytest.raises(ValueError, match=f"option partition_by: {message}"):
            SparkSource({"path": str(tmp_path), "partition_by": columns}).writer(
                table.schema, False
            )
    sink = SparkSource({"path": str(tmp_path), "partition_by": "l"}).writer(table.schema, False)
    with pytest.raises(TypeError, match=r"option partition_by: column 'l' of list.* name folders"):
        sink.write([table])
    sink.abort([])
    assert [] == os.listdir(tmp_path)
    for name in ("a=1/x", "b=1/x"):
        (tmp_path / name).parent.mkdir()
        tfw.write_records(tmp_path / name, [{"i": 1}])
    with pytest.raises(ValueError, match="its folders are of 'b', those of other files of 'a'"):
        read({"path": str(tmp_path)}, arrow(i=pa.int64()))
    (tmp_path / "b=1").rename(tmp_path / "other")
    with pytest.raises(ValueError, match="its folders are of no columns, those of other files"):
        read({"path": str(tmp_path)}, arrow(i=pa.int64()))


def test_partitioned_tables_come_back(spark, tmp_path):
    columns = "i bigint, label bigint, name string"
    rows = [(i, i % 3, f"n{i % 2}") for i in range(90)]
    table = spark.createDataFrame(rows, columns).repartition(2)
    write = table.write.format("tfrecord").option("partition_by", "label,name")
    write.mode("append").save(str(tmp_path / "out"))
    assert {"label=0", "label=1", "label=2"} == set(os.listdir(tmp_path / "out"))
    for schema in (None, columns):
        found = load(spark, tmp_path / "out", schema).select("i", "label", "name")
        assert rows == sorted(map(tuple, found.collect()))
        assert 30 == found.where("label = 1").count()
    assert 90 == load(spark, tmp_path / "out", columns).count()
    write.mode("overwrite").save(str(tmp_path / "out"))
    assert 90 == load(spark, tmp_path / "out", columns).count()
    assert 15 == load(spark, tmp_path / "out" / "label=1" / "name=n0", "i bigint").count()


def test_the_line_of_the_page_reads_its_layout(spark, tmp_path, monkeypatch):
    for day in 1, 2:
        (tmp_path / f"table/day={day}").mkdir(parents=True)
        tfw.write_records(tmp_path / f"table/day={day}/part-0", [{"i": day}])
    for name, line in layouts.LINES.items():  # Spark has a working folder of its own
        monkeypatch.setitem(layouts.LINES, name, line.replace("table", str(tmp_path / "table")))
    found = layouts.read("such folders as a table with the column `day`", spark=spark)
    assert [(1, 1), (2, 2)] == sorted(found)
