"""Partitions: what the workers of an engine read."""

import pickle

import pytest

import tfwire as tfw
from helpers.arrow.structs import rows_of_batch
from helpers.reading import flip_byte
from tfwire._interface.partitions import (
    count_records,
    fitting_batch_size,
    open_no_files,
    plan_partitions,
    read_partition,
)

FEATURES = {"i": tfw.FixedLenFeature([], tfw.int64)}
NUM_RECORDS = 150


@pytest.fixture
def path(tmp_path):
    """A plain file."""
    name = tmp_path / "a.tfrecord"
    tfw.write_records(name, [{"i": i} for i in range(NUM_RECORDS)])
    return name


@pytest.fixture
def indexed(path):
    tfw.RecordIndex.build(path).save()
    return path


def values(partition, batch_size=7, on_corrupt="raise", **options):
    reader = open_no_files(FEATURES, batch_size=batch_size, on_corrupt=on_corrupt, **options)
    return [row["i"] for batch in read_partition(partition, reader) for row in rows_of_batch(batch)]


def all_values(partitions, **options):
    return [value for partition in partitions for value in values(partition, **options)]


@pytest.mark.parametrize("size", [1, 30, 100, 1000, 4096, 10**9])
def test_every_record_of_a_split_file_is_in_one_partition(indexed, size):
    partitions = plan_partitions(indexed, partition_bytes=size)
    assert len(partitions) == max(1, min(NUM_RECORDS, len(partitions)))
    assert sum(part.num_bytes for part in partitions) == indexed.stat().st_size
    assert sum(part.num_records for part in partitions) == NUM_RECORDS
    assert all_values(partitions) == list(range(NUM_RECORDS))


def test_records_are_not_longer_than_they_must_be(indexed):
    longest = max(tfw.RecordIndex.load(indexed).lengths) + 16
    for part in plan_partitions(indexed, partition_bytes=1000):
        assert part.num_bytes < 1000 + longest


def test_a_file_without_an_index_is_whole_unless_its_headers_are_read(path):
    (whole,) = plan_partitions(path, partition_bytes=1000)
    assert (whole.stop, whole.num_records) == (None, None)
    scanned = plan_partitions(path, partition_bytes=1000, scan=True)
    assert len(scanned) > 3
    assert all_values(scanned) == values(whole) == list(range(NUM_RECORDS))


def test_a_stale_index_is_told_and_not_used(indexed):
    with tfw.TFRecordWriter(indexed, append=True) as writer:
        writer.write(tfw.encode_example({"i": NUM_RECORDS}))
    with pytest.warns(tfw.TfwireWarning, match="read without it"):
        partitions = plan_partitions(indexed, partition_bytes=1000)
    assert all_values(partitions) == list(range(NUM_RECORDS + 1))


def test_small_files_share_a_partition(tmp_path):
    paths = [tmp_path / f"{i}.tfrecord" for i in range(10)]
    for i, path in enumerate(paths):
        tfw.write_records(path, [{"i": i}] * 3)
    size = paths[0].stat().st_size
    partitions = plan_partitions(paths, partition_bytes=3 * size)
    assert [len(part.paths) for part in partitions] == [3, 3, 3, 1]
    assert all_values(partitions) == [i for i in range(10) for _ in range(3)]


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_files_are_whole(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, [{"i": i} for i in range(NUM_RECORDS)], compression)
    tfw.RecordIndex.build(path).save()
    (whole,) = plan_partitions(path, partition_bytes=10)
    assert (whole.num_records, count_records(whole)) == (NUM_RECORDS, NUM_RECORDS)
    assert values(whole) == list(range(NUM_RECORDS))


def test_a_partition_is_read_twice_alike_after_a_pickle(indexed):
    for part in plan_partitions(indexed, partition_bytes=1000):
        again = pickle.loads(pickle.dumps(part))
        assert again == part
        batches = [
            rows_of_batch(b) for b in read_partition(part, open_no_files(FEATURES, batch_size=7))
        ]
        assert batches == [
            rows_of_batch(b) for b in read_partition(again, open_no_files(FEATURES, batch_size=7))
        ]
        assert (
            count_records(part)
            == count_records(part._replace(num_records=None))
            == sum(map(len, batches))
        )


def test_no_file_gives_no_partition():
    assert plan_partitions([], partition_bytes=10) == []


def test_an_empty_file_is_a_partition_without_records(tmp_path):
    path = tmp_path / "empty"
    path.touch()
    (part,) = plan_partitions(path, partition_bytes=1)
    assert (values(part), count_records(part)) == ([], 0)


def test_the_error_at_damage_names_the_place_in_the_file(indexed):
    offsets = tfw.RecordIndex.load(indexed).offsets
    partitions = plan_partitions(indexed, partition_bytes=2000)
    flip_byte(indexed, int(offsets[90]) + 14)
    (part,) = (p for p in partitions if p.start.offset <= offsets[90] < p.stop)
    for read in values, lambda part: count_records(part._replace(num_records=None)):
        with pytest.raises(tfw.DataLossError) as caught:
            read(part)
        assert (caught.value.record_index, caught.value.offset) == (90, offsets[90])
    others = [p for p in partitions if p is not part]
    assert len(all_values(others)) == NUM_RECORDS - part.num_records


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_damage_is_skipped_within_its_partition(indexed):
    offsets = tfw.RecordIndex.load(indexed).offsets
    partitions = plan_partitions(indexed, partition_bytes=2000, on_corrupt="skip")
    flip_byte(indexed, int(offsets[90]) + 14)
    assert all(part.num_records is None for part in partitions)
    expected = [i for i in range(NUM_RECORDS) if i != 90]
    assert all_values(partitions, on_corrupt="skip") == expected
    assert sum(count_records(part, on_corrupt="skip") for part in partitions) == NUM_RECORDS - 1


@pytest.mark.parametrize("policy", ["tail", "stop"])
def test_files_of_which_damage_ends_the_rest_are_whole(indexed, policy):
    assert len(plan_partitions(indexed, partition_bytes=1000, on_corrupt=policy)) == 1


def test_a_file_that_was_cut_since_is_an_error(indexed):
    partitions = plan_partitions(indexed, partition_bytes=2000)
    with open(indexed, "r+b") as file:
        file.truncate(partitions[-1].start.offset + 5)
    with pytest.raises(tfw.DataLossError):
        values(partitions[-1])


def test_urls_are_whole_and_grouped(indexed):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in "ab":
        memory.pipe(f"/partitions/{name}", indexed.read_bytes())
    paths = [f"memory://partitions/{name}" for name in "ab"]
    (part,) = plan_partitions(paths, partition_bytes=10**6)
    assert values(part) == 2 * list(range(NUM_RECORDS))
    assert part.num_bytes == 2 * indexed.stat().st_size
    with pytest.raises(FileNotFoundError, match="memory://partitions/nothing"):
        plan_partitions("memory://partitions/nothing", partition_bytes=1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"partition_bytes": 0}, ValueError),
        ({"partition_bytes": "1"}, TypeError),
        ({"partition_bytes": 1, "on_corrupt": "no"}, ValueError),
        ({"partition_bytes": 1, "compression_type": "LZ4"}, ValueError),
        ({"partition_bytes": 1, "scan": 1}, TypeError),
    ],
)
def test_wrong_arguments(path, arguments, error):
    with pytest.raises(error, match=list(arguments)[-1]):
        plan_partitions(path, **arguments)


def test_inputs_that_cannot_be_read_again_are_refused(path, tmp_path):
    with open(path, "rb") as file, pytest.raises(TypeError, match="BufferedReader"):
        plan_partitions(file, partition_bytes=1)
    with pytest.raises(FileNotFoundError, match="nothing"):
        plan_partitions(tmp_path / "nothing", partition_bytes=1)


def test_long_records_are_read_in_small_batches(path, tmp_path):
    (part,) = plan_partitions(path, partition_bytes=10**9)
    assert 1000 < fitting_batch_size(part, 100_000) < 100_000
    tfw.write_records(path, [bytes(10_000)] * 3)
    assert fitting_batch_size(part, 100_000) == 10
    assert fitting_batch_size(part, 1) == 1
    path.write_bytes(b"")
    assert fitting_batch_size(part, 5) == 5
