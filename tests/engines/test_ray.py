"""Ray Data with two workers: every record once, and nothing half-written."""

import os
import pickle
from types import SimpleNamespace

import pyarrow as pa
import pytest
import ray

import tfwire as tfw
from helpers.reading import damage
from helpers.records.counted_files import CASES, COUNT, expected_count, write_counted_files
from tfwire.ray import TFRecordDatasink, TFRecordDatasource, read_tfrecord, write_tfrecord

# Ray's own, about its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    # Ray leaves its processes to the system when it shuts down.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NUM_RECORDS = 5000
FEATURES = {
    "i": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
}


@pytest.fixture
def path(tmp_path):
    """A file with an index."""
    name = tmp_path / "a.tfrecord"
    tfw.write_records(name, [{"i": i, "name": b"n%d" % i} for i in range(NUM_RECORDS)])
    tfw.RecordIndex.build(name).save()
    return name


def rows_of(tasks):
    return [row for task in tasks for block in task() for row in block.to_pylist()]


def numbers_of(folder):
    """The column i of all files of a folder, and its other entries."""
    names = sorted(os.listdir(folder))
    files = [folder / name for name in names if ".tfrecord" in name]
    records = tfw.read_records(iter(files))
    numbers = [tfw.decode_example(record)["i"][0] for record in records]
    return sorted(numbers), [name for name in names if ".tfrecord" not in name]


# ---- Without Ray's processes --------------------------------------------------------------------


def test_tasks_warn_of_features_that_come_late(tmp_path):
    first = tfw.encode_example({"i": 1, "s": "x" * 200})
    tfw.write_records(tmp_path / "late", [*[first] * 30_000, {"i": 1, "s": "y", "late": 1}, {}])
    tasks = TFRecordDatasource(tmp_path / "late").get_read_tasks(2)
    with pytest.warns(tfw.TfwireWarning, match="record 30000 is the first with .* 'late'"):
        rows = rows_of(tasks)
    assert [{"i": 1, "s": "y"}, {"i": None, "s": None}] == rows[30_000:]


@pytest.mark.parametrize("parallelism", [1, 4, 50])
def test_tasks_have_every_record_once(path, parallelism):
    source = TFRecordDatasource(path, FEATURES)
    tasks = source.get_read_tasks(parallelism)
    assert len(tasks) <= parallelism
    assert parallelism == 1 or len(tasks) > parallelism // 2
    assert sum(task.metadata.num_rows for task in tasks) == NUM_RECORDS
    assert [row["i"] for row in rows_of(tasks)] == list(range(NUM_RECORDS))
    assert rows_of(tasks) == rows_of(source.get_read_tasks(parallelism))


def test_selected_columns_alone_are_parsed(path):
    source = TFRecordDatasource(path, FEATURES)
    some = source.apply_projection({"name": "name"}).get_read_tasks(2)
    assert some[0].schema.names == ["name"]
    assert rows_of(some)[7] == {"name": b"n7"}
    none = source.apply_projection({}).get_read_tasks(2)
    blocks = [pickle.loads(pickle.dumps(block)) for task in none for block in task()]
    assert pa.concat_tables(blocks).num_rows == NUM_RECORDS


def test_a_task_that_is_tried_again_is_named_once(tmp_path):
    sink = TFRecordDatasink(tmp_path / "out")
    sink.on_write_start()
    ctx = SimpleNamespace(kwargs={"write_uuid": "u"}, task_idx=3)
    sink.write([pa.table({"i": [1, 2]})], ctx)
    result = sink.write([pa.table({"i": [1, 2]})], ctx)
    assert numbers_of(tmp_path / "out")[0] == []
    sink.on_write_complete(SimpleNamespace(write_returns=[result, None]))
    assert numbers_of(tmp_path / "out") == ([1, 2], [])
    assert os.listdir(tmp_path / "out") == ["u_000003.tfrecord"]
    tfw.RecordIndex.build(tmp_path / "out" / "u_000003.tfrecord").save()
    (tmp_path / "out" / "_SUCCESS").touch()
    for paths in (tmp_path / "out", f"{tmp_path}/out/*", [tmp_path / "out"]):
        tasks = TFRecordDatasource(paths).get_read_tasks(2)
        assert [{"i": 1}, {"i": 2}] == rows_of(tasks)


def test_a_sink_that_cannot_name_all_files_names_none(tmp_path):
    sink = TFRecordDatasink(tmp_path / "out")
    sink.on_write_start()
    ctx = SimpleNamespace(kwargs={"write_uuid": "u"}, task_idx=3)
    result = sink.write([pa.table({"i": [1, 2]})], ctx)
    lost = (result[0] + "gone", "other")
    with pytest.raises(FileNotFoundError) as caught:
        sink.on_write_complete(SimpleNamespace(write_returns=[result, lost]))
    sink.on_write_failed(caught.value)
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"columns": ["x"]}, ValueError, "'x' is not a feature"),
        ({"columns": "i"}, TypeError, "columns must be a list"),
        ({"on_corrupt": "no"}, ValueError, "on_corrupt"),
        ({"compression_type": "LZ4"}, ValueError, "compression_type"),
        ({"binary_as": "text"}, ValueError, "binary_as"),
    ],
)
def test_wrong_arguments_of_the_source(path, arguments, error, message):
    with pytest.raises(error, match=message):
        TFRecordDatasource(path, FEATURES, **arguments)


def test_a_missing_file_is_named_on_the_driver(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        TFRecordDatasource(tmp_path / "nothing", FEATURES)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"path": "memory://a"}, ValueError, "memory://a"),
        ({"path": 3}, TypeError, "path"),
        ({"path": "a", "min_rows_per_file": 0}, ValueError, "min_rows_per_file"),
        ({"path": "a", "compression_type": "LZ4"}, ValueError, "compression_type"),
    ],
)
def test_wrong_arguments_of_the_sink(arguments, error, message):
    with pytest.raises(error, match=message):
        TFRecordDatasink(**arguments)


# ---- With two workers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return write_counted_files(tmp_path_factory.mktemp("counted"))


# What needs no column. Ray joins blocks, and pickles them.
COUNTS = {
    "count": lambda read: read().count(),
    "no column selected": lambda read: read().select_columns([]).count(),
    "no column read": lambda read: read(columns=[]).count(),
    "one block": lambda read: read(columns=[]).repartition(1).count(),
    "materialized": lambda read: read(columns=[]).materialize().count(),
    "limit": lambda read: read(columns=[]).limit(7).count(),
    "rows": lambda read: len(read(columns=[]).take_all()),
    "batches": lambda read: sum(
        len(next(iter(batch.values()))) for batch in read(columns=[]).iter_batches()
    ),
}


@pytest.mark.parametrize(("name", "policy"), CASES)
def test_rows_are_counted_without_columns(workers, counted, name, policy):
    expected = expected_count(name, policy)
    if (name, policy) == ("damaged, indexed", "raise"):
        expected = COUNT  # the index says so, and nothing is read
    for features in (FEATURES, {}):

        def read(features=features, **options):
            return read_tfrecord(counted[name], features, on_corrupt=policy, **options)

        if expected is None:
            with pytest.raises(Exception, match="at byte"):
                read().count()
            continue
        assert read().count() == expected
        assert read().select_columns([]).count() == expected


@pytest.mark.parametrize("name", ["plain", "indexed", "gzip", "empty", "several"])
@pytest.mark.parametrize("way", COUNTS)
def test_rows_without_columns_stay(workers, counted, name, way):
    def read(**options):
        return read_tfrecord(counted[name], FEATURES, override_num_blocks=3, **options)

    expected = expected_count(name, "raise")
    assert COUNTS[way](read) == (min(7, expected) if way == "limit" else expected)
    assert read(columns=[]).schema().names == []


def test_rows_without_columns_are_written(workers, counted, tmp_path):
    write_tfrecord(read_tfrecord(counted["plain"], FEATURES, columns=[]), tmp_path / "out")
    records = list(tfw.read_records(sorted((tmp_path / "out").iterdir())))
    assert records == [tfw.encode_example({})] * COUNT


def test_a_dataset_without_rows_comes_back(workers, tmp_path):
    write_tfrecord(ray.data.from_arrow(pa.table({"i": pa.array([], pa.int64())})), tmp_path / "out")
    features = {"i": tfw.FixedLenFeature([], tfw.int64)}
    assert [] == read_tfrecord(tmp_path / "out", features).take_all()
    assert 0 == read_tfrecord(tmp_path / "out", features).count()
    with pytest.raises(FileNotFoundError, match="no file of records is in the folder"):
        read_tfrecord(tmp_path / "out")


def test_a_dataset_goes_to_files_and_back(workers, path, tmp_path):
    out = tmp_path / "out"
    dataset = read_tfrecord(path, FEATURES, override_num_blocks=4)
    assert dataset.count() == NUM_RECORDS
    assert dataset.select_columns(["i"]).sum("i") == sum(range(NUM_RECORDS))
    write_tfrecord(dataset, out)
    assert numbers_of(out) == (list(range(NUM_RECORDS)), [])
    with tfw.read_records(path, receipt=True) as before:
        list(before)
    files = sorted(out.iterdir())
    with tfw.read_records(files, receipt=True) as after:
        list(after)
    assert after.receipt == before.receipt


def test_lists_in_lists_are_written_as_it_is_said(workers, tmp_path):
    features = (None, {"s": tfw.VarLenFeature(tfw.int64)})
    dataset = ray.data.from_items([{"i": i, "s": [[i], [i, 2]]} for i in range(3)])
    with pytest.raises(Exception, match=r"lists in lists, .* features="):
        write_tfrecord(dataset, tmp_path / "refused")
    write_tfrecord(dataset, tmp_path / "out", features=features)
    files = sorted((tmp_path / "out").iterdir())
    found = [tfw.decode_sequence_example(record) for record in tfw.read_records(files)]
    rows = sorted((context["i"].tolist(), [*map(list, lists["s"])]) for context, lists in found)
    assert [([i], [[i], [i, 2]]) for i in range(3)] == rows
    again = read_tfrecord([str(file) for file in files], features).take_all()
    assert [[[i], [i, 2]] for i in range(3)] == sorted([*map(list, row["s"])] for row in again)


def test_a_worker_that_is_killed_is_replaced(workers, path, tmp_path):
    marker, out = tmp_path / "marker", tmp_path / "out"

    def die_once(batch):
        if 0 in batch["i"]:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return batch
            os._exit(1)
        return batch

    dataset = read_tfrecord(path, FEATURES, override_num_blocks=4).map_batches(die_once)
    write_tfrecord(dataset, out)
    assert marker.exists()
    assert numbers_of(out) == (list(range(NUM_RECORDS)), [])


def test_a_task_that_fails_leaves_no_file(workers, path, tmp_path):
    def fail(batch):
        if NUM_RECORDS - 1 in batch["i"]:
            raise RuntimeError("a fault of the user")
        return batch

    dataset = read_tfrecord(path, FEATURES, override_num_blocks=4).map_batches(fail)
    with pytest.raises(Exception, match="a fault of the user"):
        write_tfrecord(dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists() or os.listdir(tmp_path / "out") == []


def test_damage_is_an_error_or_left_out(workers, path):
    offset = int(tfw.RecordIndex.load(path).offsets[3000])
    status = path.stat()
    damage(path, offset + 14)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(Exception, match="record 3000"):
        read_tfrecord(path, FEATURES, override_num_blocks=4).materialize()
    for policy, expected in ("skip", NUM_RECORDS - 1), ("stop", 3000):
        dataset = read_tfrecord(path, FEATURES, on_corrupt=policy, override_num_blocks=4)
        assert dataset.count() == expected  # not what rows that were read have told
        assert len(dataset.take_all()) == expected
