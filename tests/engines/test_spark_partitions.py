"""Tables that are partitioned: folders like label=1, as Spark's own sources write and read them."""

import os
import pickle
from datetime import date, datetime
from decimal import Decimal

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


# The folders that Spark 4.1 itself makes of these values, by write.partitionBy("k").parquet(path).
NAMED_BY_SPARK = [
    (pa.float64(), float("nan"), "NaN"),
    (pa.float64(), float("-inf"), "-Infinity"),
    (pa.float64(), -0.0, "-0.0"),
    (pa.float64(), 0.0, "0.0"),
    (pa.float64(), 1.0, "1.0"),
    (pa.float64(), 0.1, "0.1"),
    (pa.float64(), 1 / 3, "0.3333333333333333"),
    (pa.float64(), 0.001, "0.001"),
    (pa.float64(), 0.0001, "1.0E-4"),
    (pa.float64(), 1234567.0, "1234567.0"),
    (pa.float64(), 12345678.0, "1.2345678E7"),
    (pa.float64(), 123456789.125, "1.23456789125E8"),
    (pa.float64(), 1e300, "1.0E300"),
    (pa.float64(), None, "__HIVE_DEFAULT_PARTITION__"),
    (pa.float32(), 0.1, "0.1"),
    (pa.float32(), 1 / 3, "0.33333334"),
    (pa.float32(), 3.4e38, "3.4E38"),
    (pa.bool_(), True, "true"),
    (pa.bool_(), None, "__HIVE_DEFAULT_PARTITION__"),
    (pa.int8(), -1, "-1"),
    (pa.date32(), date(1, 1, 1), "0001-01-01"),
    (pa.timestamp("us", "UTC"), datetime(2024, 2, 29, 1, 2, 3), "2024-02-29 01%3A02%3A03"),
    (pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 30), "2024-02-29 01%3A02%3A30"),
    (pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 3, 120000), "2024-02-29 01%3A02%3A03.12"),
    (
        pa.timestamp("us"),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        "1969-12-31 23%3A59%3A59.999999",
    ),
    (pa.decimal128(10, 3), Decimal("1.5"), "1.500"),
    (pa.decimal128(20, 0), Decimal(100), "100"),
    (pa.decimal128(18, 12), Decimal("0.000000001"), "0.000000001000"),
    (pa.binary(), b"ab", "ab"),
    (pa.binary(), b"", "__HIVE_DEFAULT_PARTITION__"),
    (pa.string(), "a:b\\c\"d'e#f*g?h{i}", "a%3Ab%5Cc%22d%27e%23f%2Ag%3Fh%7Bi}"),
    (pa.string(), "[b]^\t\x7f\x01a%20b", "%5Bb%5D%5E%09%7F%01a%2520b"),
    (pa.string(), "~!@$&()_+`|<>,; \x80é", "~!@$&()_+`|<>,; \x80é"),
]


@pytest.mark.parametrize(("kind", "value", "name"), NAMED_BY_SPARK)
def test_folders_are_named_as_by_spark(tmp_path, kind, value, name):
    table = pa.record_batch({"i": pa.array([1, 1]), "k": pa.array([value] * 2, kind)})
    sink = SparkSource({"path": str(tmp_path), "partition_by": "k"}).writer(table.schema, False)
    sink.commit([sink.write([table])])
    assert [f"k={name}"] == os.listdir(tmp_path)
    if kind != pa.timestamp("us", "UTC"):  # of an unknown zone
        expected = [None if found == b"" else found for found in table["k"].to_pylist()]
        found = [row["k"] for row in read({"path": str(tmp_path)}, arrow(k=kind))]
        assert str(expected) == str(found)  # in which NaN is NaN, and -0.0 not 0.0


def test_tables_without_rows_come_back(spark, tmp_path):
    columns = "i bigint, label bigint"
    table = spark.createDataFrame([], columns)
    for name, options in {"plain": {}, "parts": {"partition_by": "label"}}.items():
        table.write.format("tfrecord").mode("append").options(**options).save(str(tmp_path / name))
        for _ in range(2):
            assert [] == load(spark, tmp_path / name, columns).collect()
            assert 0 == load(spark, tmp_path / name, columns).count()
            (tmp_path / name / "_SUCCESS").touch()
        with pytest.raises(Exception, match="no file of records is in the folder"):
            load(spark, tmp_path / name).collect()


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
    for columns, message in (
        ("x", "there is no column 'x'"),
        ("i, l", "no column is left"),
        ("", "expected different names of columns, separated by commas, found ''"),
        (",", "expected different names of columns, .* found ','"),
        ("i,i", "expected different names of columns, .* found 'i,i'"),
    ):
        with pytest.raises(ValueError, match=f"option partition_by: {message}"):
            SparkSource({"path": str(tmp_path), "partition_by": columns}).writer(
                table.schema, False
            )
    sink = SparkSource({"path": str(tmp_path), "partition_by": "l"}).writer(table.schema, False)
    with pytest.raises(TypeError, match=r"option partition_by: column 'l' of list.* name folders"):
        sink.write([table])
    sink.abort([])
    long = pa.record_batch({"i": [1], "k": ["é" * 127]})
    sink = SparkSource({"path": str(tmp_path), "partition_by": "k"}).writer(long.schema, False)
    with pytest.raises(ValueError, match=r"option partition_by: column 'k': .* 256 bytes long"):
        sink.write([long])
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
