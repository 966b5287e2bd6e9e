"""Spark, and Sail, which runs the same data source without Java.

Every record comes once, missing features are null, and nothing is half-written.
"""

import os
import pickle
import shutil
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from spark_tables import arrow, load, read

import tfwire as tfw
from helpers.processes.faults import RAISED, every, fail, fill
from helpers.records.counted_files import CASES, expected_count, write_counted_files
from tfwire.spark import SparkSource

# Spark's own, about its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NUM_RECORDS = 5000


@pytest.fixture
def path(tmp_path):
    """A file with an index."""
    name = tmp_path / "a.tfrecord"
    tfw.write_records(name, [{"i": i, "name": b"n%d" % i} for i in range(NUM_RECORDS)])
    tfw.RecordIndex.build(name).save()
    return str(name)


@pytest.fixture
def mixed(tmp_path):
    """Records that lack features, and have lists."""
    name = tmp_path / "mixed.tfrecord"
    tfw.write_records(
        name,
        [
            {"a": 1, "b": [1.5, 2.5], "s": "x"},
            {"a": 3, "b": np.empty(0, np.float32), "s": ["p"]},
            {"a": 4, "t": ["u", "v"]},
        ],
    )
    return str(name)


def numbers_of(folder):
    """The column i of all files of a folder, and its other entries."""
    names = sorted(os.listdir(folder))
    files = [folder / name for name in names if ".tfrecord" in name]
    numbers = [tfw.decode_example(record)["i"][0] for record in tfw.read_records(iter(files))]
    return sorted(numbers), [name for name in names if ".tfrecord" not in name]


# ---- Without Spark's processes -------------------------------------------------------------------


def test_parts_of_a_file_have_every_record_once(path):
    schema = arrow(i=pa.int64(), name=pa.string())
    expected = [{"i": i, "name": f"n{i}"} for i in range(NUM_RECORDS)]
    for size in ("1GB", "50kB", "1"):
        assert expected == read({"path": path, "partition_bytes": size}, schema)
    reader = SparkSource({"path": path, "partition_bytes": "50kB"}).reader(schema)
    part = reader.partitions()[1]
    assert list(reader.read(part)) == list(reader.read(part))  # a task that is tried again


def test_only_the_columns_of_the_schema_are_parsed(path):
    assert {"name": b"n7"} == read({"path": path}, arrow(name=pa.binary()))[7]
    assert {"i": 7} == read({"path": path}, arrow(i=pa.int32()))[7]


def test_missing_features_are_null(mixed):
    schema = arrow(a=pa.int64(), s=pa.string(), b=pa.list_(pa.float32()), zz=pa.float64())
    assert read({"path": mixed}, schema) == [
        {"a": 1, "s": "x", "b": [1.5, 2.5], "zz": None},
        {"a": 3, "s": "p", "b": [], "zz": None},
        {"a": 4, "s": None, "b": None, "zz": None},
    ]


def test_values_may_be_missing_late(tmp_path):
    """After batches in which every record had one."""
    name = tmp_path / "late.tfrecord"
    rows = [{"i": i, "j": i} for i in range(25_000)]
    del rows[24_500]["j"]
    tfw.write_records(name, rows)
    found = read({"path": str(name)}, arrow(i=pa.int64(), j=pa.int64()))
    assert list(range(25_000)) == [row["i"] for row in found]
    assert [None if i == 24_500 else i for i in range(25_000)] == [row["j"] for row in found]


def test_several_values_are_no_column_of_one(mixed):
    with pytest.raises(
        tfw.ParseError, match=r"record 0: feature 'b' has 2 values .*: declare an array"
    ):
        read({"path": mixed}, arrow(b=pa.float32()))


def test_inferred_columns(mixed, tmp_path):
    kinds = {f.name: f.dataType.simpleString() for f in SparkSource({"path": mixed}).schema()}
    others = {"b": "array<float>", "s": "string", "t": "array<string>"}
    assert {"a": "bigint", **others} == kinds
    binary = SparkSource({"path": mixed, "strings": "binary"}).schema()
    assert "binary" == binary["s"].dataType.simpleString()


def test_tasks_warn_of_features_that_come_late(tmp_path):
    first = tfw.encode_example({"i": 1, "s": "x" * 200})
    tfw.write_records(tmp_path / "late", [*[first] * 30_000, {"i": 1, "s": "y", "late": 1}, {}])
    source = SparkSource({"path": str(tmp_path / "late")})
    reader = pickle.loads(pickle.dumps(source.reader(source.schema())))
    parts = reader.partitions()
    with pytest.warns(tfw.TfwireWarning, match="record 30000 is the first with .* 'late'"):
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [{"i": 1, "s": "y"}, {"i": None, "s": None}] == rows[30_000:]


def test_feature_lists_are_arrays_of_arrays(tmp_path):
    name = str(tmp_path / "sequence.tfrecord")
    message = tfw.encode_sequence_example({"id": 1}, {"w": [[1, 2], [3]], "x": [[0.5], [0.25]]})
    tfw.write_records(name, [message, tfw.encode_sequence_example({"id": 2}, {"w": [[7]]})])
    schema = SparkSource({"path": name}).schema()
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    assert {"id": "bigint", "w": "array<array<bigint>>", "x": "array<array<float>>"} == kinds
    first, second = read({"path": name}, SparkSource({"path": name}).reader(schema)._schema)
    assert {"id": 1, "w": [[1, 2], [3]], "x": [[0.5], [0.25]]} == first
    assert {"id": 2, "w": [[7]], "x": None} == second


def test_folders_patterns_and_lists(tmp_path):
    for name in ("a.tfrecord", "b.tfrecord", "_SUCCESS", ".hidden"):
        tfw.write_records(tmp_path / name, [{"i": ord(name[0])}])
    tfw.RecordIndex.build(tmp_path / "a.tfrecord").save()
    schema = arrow(i=pa.int64())
    two = [{"i": 97}, {"i": 98}]
    assert two == read({"path": str(tmp_path)}, schema)
    assert two == read({"path": f"{tmp_path}/?.tfrecord"}, schema)
    assert two[:1] == read({"path": f"file://{tmp_path}/a.tfrecord"}, schema)
    paths = f'["{tmp_path}/b.tfrecord", "{tmp_path}/a.tfrecord"]'
    assert two[::-1] == read({"paths": paths}, schema)
    paths = f'["{tmp_path}/?.tfrecord", "{tmp_path}"]'
    assert two * 2 == read({"paths": paths}, schema)
    for name in ("c-00000-of-00002", "c-00001-of-00002", "part.crc", "info.json"):
        tfw.write_records(tmp_path / name, [{"i": 1}])
    assert [{"i": 1}] * 2 == read({"path": f"{tmp_path}/c@2"}, schema)
    assert [*two, {"i": 1}, {"i": 1}] == read({"path": str(tmp_path)}, schema)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        read({"path": f"{tmp_path}/missing-*"}, schema)
    with pytest.raises(FileNotFoundError):
        read({"path": f"{tmp_path}/missing"}, schema)


def test_wrong_options(path):
    for options, message in (
        ({"compresion": "GZIP"}, "no option 'compresion'"),
        ({"strings": "text"}, "strings must be"),
        ({"partition_bytes": "much"}, "partition_bytes"),
        ({"compression_type": "LZ4"}, "compression_type"),
        ({"on_corrupt": "ignore"}, "on_corrupt"),
    ):
        with pytest.raises(ValueError, match=message):
            read({"path": path, **options}, arrow(i=pa.int64()))
    with pytest.raises(ValueError, match="path to read is missing"):
        read({}, arrow(i=pa.int64()))


def test_types_that_no_feature_has(path):
    for kind in (pa.timestamp("us"), pa.struct([("a", pa.int64())]), pa.decimal128(9)):
        with pytest.raises(TypeError, match=r"column 'i': no feature has the type .* and cast"):
            read({"path": path}, arrow(i=kind))
    deep = pa.list_(pa.list_(pa.list_(pa.int64())))
    with pytest.raises(TypeError, match="at most arrays of arrays"):
        read({"path": path}, arrow(i=deep))


def test_damage_names_file_and_record(path):
    with open(path, "r+b") as file:
        file.seek(60_000)
        file.write(b"damage")
    os.unlink(path + ".tfwindex")
    with pytest.raises(tfw.DataLossError, match=r"a\.tfrecord: record \d+ at byte"):
        read({"path": path}, arrow(i=pa.int64()))
    with pytest.warns(tfw.TfwireWarning, match="left out"):
        rows = read({"path": path, "on_corrupt": "skip"}, arrow(i=pa.int64()))
    assert NUM_RECORDS - 3 <= len(rows) < NUM_RECORDS


def writer(folder, overwrite=False, schema=None, **options):
    options = {"path": str(folder), **options}
    schema = schema or arrow(i=pa.int64())
    return pickle.loads(pickle.dumps(SparkSource(options).writer(schema, overwrite)))


def batch(*numbers):
    return pa.record_batch({"i": pa.array(numbers, pa.int64())})


def test_files_appear_at_commit(tmp_path):
    sink = writer(tmp_path / "out")
    messages = [sink.write([batch(1, 2), batch(3)]), sink.write([]), None]
    sink.write([batch(1, 2)])  # a task that was tried again: only one message is committed
    assert ([], [os.path.basename(sink._files.staging)]) == numbers_of(tmp_path / "out")
    pickle.loads(pickle.dumps(sink)).commit(pickle.loads(pickle.dumps(messages)))
    assert ([1, 2, 3], []) == numbers_of(tmp_path / "out")
    more = writer(tmp_path / "out", compression_type="GZIP")
    more.commit([more.write([batch(4)])])
    assert ([1, 2, 3, 4], []) == numbers_of(tmp_path / "out")
    assert 1 == sum(name.endswith(".gz") for name in os.listdir(tmp_path / "out"))


def test_overwriting_removes_what_was_there_at_commit(tmp_path):
    first = writer(tmp_path)
    first.commit([first.write([batch(1)])])
    second = writer(tmp_path, overwrite=True)
    messages = [second.write([batch(2)])]
    assert [1] == numbers_of(tmp_path)[0]
    second.commit(messages)
    assert ([2], []) == numbers_of(tmp_path)


STEPS = pa.list_(pa.large_list(pa.float32()))


def test_arrays_of_arrays_are_steps_if_it_is_said(tmp_path):
    schema = arrow(i=pa.int64(), s=STEPS)
    with pytest.raises(TypeError, match=r"^column 's': lists in lists, .*\"recordType\""):
        writer(tmp_path / "out", schema=schema)
    sink = writer(tmp_path / "out", schema=schema, recordType="SequenceExample")
    rows = [{"i": 1, "s": [[1.5], None, [2, 3]]}, {"i": None, "s": []}, {"i": 3, "s": None}]
    sink.commit([sink.write([pa.RecordBatch.from_pylist(rows, schema)])])
    (file,) = (tmp_path / "out").iterdir()
    found = [tfw.decode_sequence_example(record) for record in tfw.read_records(file)]
    assert [{"i": [1]}, {}, {"i": [3]}] == [{k: list(v) for k, v in c.items()} for c, _ in found]
    steps = [{k: [list(step) for step in v] for k, v in lists.items()} for _, lists in found]
    assert [{"s": [[1.5], [], [2, 3]]}, {"s": []}, {}] == steps
    assert rows == read({"path": str(file)}, schema)


def test_flat_rows_may_be_sequences(tmp_path):
    sink = writer(tmp_path / "out", recordType="SequenceExample")
    sink.commit([sink.write([batch(1, 2)])])
    assert ([1, 2], []) == numbers_of(tmp_path / "out")


def test_abort_leaves_nothing(tmp_path):
    sink = writer(tmp_path)
    messages = [sink.write([batch(1)]), None]
    with pytest.raises(TypeError, match="timestamp"):
        sink.write([pa.record_batch({"i": pa.array([0], pa.timestamp("us"))})])
    sink.abort(messages)
    assert [] == os.listdir(tmp_path)


def test_a_task_that_outlives_its_job_writes_nothing(tmp_path):
    sink = writer(tmp_path)
    sink.abort([])
    with pytest.raises(FileNotFoundError, match=r"\.tfwire-"):
        sink.write([batch(1)])
    assert [] == os.listdir(tmp_path)


def test_a_failed_commit_takes_its_files_back(tmp_path):
    sink = writer(tmp_path)
    messages = [sink.write([batch(1)]), sink.write([batch(2)])]
    os.unlink(messages[1].files[0][0])
    with pytest.raises(FileNotFoundError):
        sink.commit(messages)
    assert [] == numbers_of(tmp_path)[0]
    sink.abort(messages)
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("action", [fail, fill], ids=["broken disk", "full disk"])
def test_a_disk_that_fails_at_any_call_leaves_all_files_or_none(tmp_path, action):
    folder, long = tmp_path / "out", batch(*range(30_000))  # several writes

    def scenario():
        sink, messages = writer(folder), []
        try:
            messages = [sink.write([batch(1, 2)]), sink.write([long])]
            sink.commit(messages)
        except OSError:
            sink.abort(messages)
            raise

    ended = []
    for _, status in every(scenario, action):
        ended.append(status)
        if status == RAISED:
            assert not folder.exists() or [] == os.listdir(folder)
        else:
            assert 30_002 == sum(1 for _ in tfw.read_records(folder.glob("*.tfrecord")))
        shutil.rmtree(folder, ignore_errors=True)
    assert len(ended) > 10
    assert RAISED in ended


def test_urls_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="must be a folder"):
        writer("s3://bucket/folder")
    with pytest.raises(ValueError, match="folder to write is missing"):
        SparkSource({}).writer(None, False)


def test_a_path_that_is_missing_is_asked_for(path):
    with pytest.raises(ValueError, match=r"path to read is missing: load\(path\)"):
        SparkSource({}).schema()
    assert SparkSource({"path": path}).schema()


# ---- With Spark's processes ----------------------------------------------------------------------


def test_a_table(spark, path):
    table = load(spark, path, partition_bytes="50kB")
    assert ["i bigint", "name string"] == [f"{name} {kind}" for name, kind in table.dtypes]
    rows = sorted(table.collect(), key=lambda row: row.i)
    assert [(i, f"n{i}") for i in range(NUM_RECORDS)] == [tuple(row) for row in rows]
    assert NUM_RECORDS == table.count()
    assert sum(range(NUM_RECORDS)) == table.groupBy().sum("i").collect()[0][0]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A file or a folder for each case."""
    paths = {}
    for name, files in write_counted_files(tmp_path_factory.mktemp("counted")).items():
        paths[name] = files[0] if len(files) == 1 else str(tmp_path_factory.mktemp("folder"))
        for file in files if len(files) > 1 else ():
            os.symlink(file, os.path.join(paths[name], os.path.basename(file)))
    return paths


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_rows_are_counted(spark, counted, name, policy):
    """Also where no column is selected, or the schema has none. Sail infers columns then."""
    source = spark.read.format("tfrecord").option("on_corrupt", policy)
    table = source.schema("i bigint, name string").load(counted[name])
    tables = {"count": table, "select": table.select()}
    if find_spec("pysail") is None:
        tables["no schema"] = source.schema(StructType([])).load(counted[name])
    expected = expected_count(name, policy)
    for made in tables.values():
        if expected is None:
            with pytest.raises(Exception, match="at byte"):
                made.count()
        else:
            assert made.count() == expected
    if name == "several":
        assert tables["select"].limit(7).count() == 7
        assert [len(row) for row in tables["select"].collect()] == [0] * expected


def test_a_table_of_chosen_columns(spark, mixed):
    table = load(spark, mixed, "a bigint, t array<string>, zz float")
    assert [(1, None, None), (3, None, None), (4, ["u", "v"], None)] == [
        tuple(row) for row in table.collect()
    ]


def test_written_tables_come_back(spark, tmp_path):
    rows = [(i, i / 2, f"n{i}", [i, i + 1], None if i % 3 else i) for i in range(1000)]
    columns = "i bigint, x float, name string, l array<bigint>, maybe bigint"
    table = spark.createDataFrame(rows, columns).repartition(3)
    folder = tmp_path / "out"
    table.write.format("tfrecord").mode("append").save(str(folder))
    assert (list(range(1000)), []) == numbers_of(folder)
    found = load(spark, folder, columns).collect()
    assert rows == sorted(tuple(row) for row in found)
    table.limit(10).write.format("tfrecord").mode("overwrite").save(str(folder))
    assert 10 == load(spark, folder, columns).count()


def test_a_failed_write_leaves_nothing(spark, tmp_path):
    table = spark.sql("select id as i, current_timestamp() as t from range(10)")
    with pytest.raises(Exception, match="timestamp"):
        table.write.format("tfrecord").mode("append").save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists() or [] == os.listdir(tmp_path / "out")


def test_a_worker_that_is_killed_is_replaced(spark, path, tmp_path):
    if find_spec("pysail") is not None:
        pytest.skip("Sail calls Python within its server, which would be killed")
    marker, out = str(tmp_path / "marker"), tmp_path / "out"

    def die_once(batches):
        for batch in batches:
            if 0 in batch["i"].to_pylist():
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os._exit(1)
            yield batch

    table = load(spark, path, partition_bytes="50kB").mapInArrow(die_once, "i bigint, name string")
    table.write.format("tfrecord").mode("append").save(str(out))
    assert os.path.exists(marker)
    assert (list(range(NUM_RECORDS)), []) == numbers_of(out)


def test_errors_reach_the_user(spark, mixed, tmp_path):
    with pytest.raises(Exception, match="feature 'b' has 2 values"):
        load(spark, mixed, "b float").collect()
    with pytest.raises(Exception, match="no option 'bogus'"):
        load(spark, mixed, bogus="1").collect()
    with pytest.raises(Exception, match="no file matches"):
        load(spark, tmp_path / "missing-*").collect()


def test_strings_that_are_no_text(spark, tmp_path):
    tfw.write_records(tmp_path / "b.tfrecord", [{"s": b"\xff\x00"}])
    for options in ({}, {"strings": "binary"}):
        assert b"\xff\x00" == load(spark, tmp_path / "b.tfrecord", **options).collect()[0].s
    with pytest.raises(Exception, match=r'record 0: Key: s\..*UTF-8.*"strings", "binary"'):
        load(spark, tmp_path / "b.tfrecord", strings="string").collect()


def test_many_files(spark, tmp_path):
    for i in range(20):
        columns = {"i": np.arange(100 * i, 100 * i + 100), "x": np.zeros((100, 3))}
        with tfw.TFRecordWriter(tmp_path / f"{i}.tfrecord", "GZIP" if i % 2 else None) as out:
            out.write_columns(columns)
    table = load(spark, tmp_path, partition_bytes="5kB")
    assert list(range(2000)) == sorted(row.i for row in table.select("i").collect())
