"""Datasets of files: read in turn, parsed, indexed, shuffled whole."""

import io
import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.files import SPEC, NumberedFiles
from helpers.reading import flip_byte
from tfwire import Dataset, TFRecordDataset
from tfwire._data.permutations import as_key, draws, permuted


@pytest.fixture
def files(tmp_path):
    return NumberedFiles(tmp_path, (2, 0, 3)).plain


def test_parallel_reads_take_files_in_turn(files):
    """The second is empty: its turn is lost, and the third takes its place in the next round."""
    parsed = TFRecordDataset(files, num_parallel_reads=2).parse_example(SPEC)
    assert [0, 1, 2, 3, 4] == [int(row["n"]) for row in parsed]
    parsed = TFRecordDataset(files[::2], num_parallel_reads=2).parse_example(SPEC)
    assert [0, 2, 1, 3, 4] == [int(row["n"]) for row in parsed]


def test_records_come_before_the_damage_in_another_file_read_in_turn(tmp_path):
    """All that have their turn before it, however many are asked for at a time."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        tfw.write_records(path, [b"%d" % number for number in range(9)])
    flip_byte(paths[0], 3 * 17 + 12)  # in the payload of record 3, each being 17 bytes long
    for batch_size in (1, 2, 3, 16):
        batches = iter(TFRecordDataset(paths, num_parallel_reads=2).batch(batch_size))
        found = []
        with pytest.raises(tfw.DataLossError, match="record 3 "):
            found.extend(record for batch in batches for record in batch)
        assert [b"0", b"0", b"1", b"1", b"2", b"2"] == found


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_batches_of_files_are_parsed_without_an_object_per_record(
    files, drop_remainder, monkeypatch
):
    expected = list(TFRecordDataset(files).batch(2, drop_remainder=drop_remainder).map(parsed_list))
    monkeypatch.setattr("tfwire._records.reading.read_records.read_records", None)
    found = list(TFRecordDataset(files).batch(2, drop_remainder).parse_example(SPEC))
    assert len(expected) == len(found) > 1
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_equal(one, other)


def parsed_list(records):
    return tfw.parse_example(records, SPEC)


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_first_batch_takes_no_memory_for_many(shuffle, tmp_path):
    """Elements are made some at a time, as many as take a moment: at first one."""
    path, image = tmp_path / "images.tfrecord", bytes(100_000)
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"image": [image] * 100})
    dataset = TFRecordDataset(path)
    if shuffle:
        dataset = dataset.shuffle(2)
    batches = iter(dataset.batch(4).parse_example({"image": tfw.FixedLenFeature([], tfw.string)}))
    tracemalloc.start()
    try:
        assert [image] * 4 == next(batches)["image"].tolist()
        assert tracemalloc.get_traced_memory()[1] < 30 * len(image)
    finally:
        tracemalloc.stop()
        batches.close()


@pytest.mark.parametrize("bad", [0, 5, 11])
def test_batches_before_a_record_that_does_not_fit_are_given(bad):
    """Batches are parsed several at a time, which nobody is to notice."""
    records = [tfw.encode_example({"x": [i]}) for i in range(12)]
    records[bad] = tfw.encode_example({"x": [1, 2]})
    dataset = Dataset.from_tensor_slices(records).batch(2)
    batches = iter(dataset.parse_example({"x": tfw.FixedLenFeature([1], tfw.int64)}))
    for first in range(0, bad - 1, 2):
        assert [[first], [first + 1]] == next(batches)["x"].tolist()
    with pytest.raises(tfw.ParseError, match=f"record {bad % 2}") as caught:
        next(batches)
    assert bad % 2 == caught.value.record_index


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.tfrecord"):
        list(TFRecordDataset(tmp_path / "nowhere.tfrecord"))


def test_compression_is_as_said(tmp_path):
    path = tmp_path / "x.gz"
    tfw.write_records(path, [b"a"], "GZIP")
    assert [b"a"] == list(TFRecordDataset(path, "GZIP"))
    assert [b"a"] == list(TFRecordDataset(path, "auto"))
    with pytest.raises(tfw.DataLossError, match="gzip"):
        list(TFRecordDataset(path))
    with pytest.raises(ValueError, match="LZ4"):
        list(TFRecordDataset(path, "LZ4"))


def test_element_spec_of_parsed_records():
    """However shape and dtype are written, one by one and, in either order, by the batch."""
    features = {
        "x": tfw.FixedLenFeature(3, np.int64),
        "y": tfw.FixedLenFeature([], "string"),
        "steps": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),
        "tags": tfw.VarLenFeature(tfw.string),
    }
    one = {"x": "int64[3]", "y": "string[]", "steps": "float32[?, 2]", "tags": "VarLenFeature"}
    batch = {
        "x": "int64[?, 3]",
        "y": "string[?]",
        "steps": "float32[?, ?, 2]",
        "tags": "VarLenFeature",
    }
    records = TFRecordDataset("never read")
    assert one == records.parse_example(features).element_spec
    assert batch == records.batch(2).parse_example(features).element_spec
    assert batch == records.parse_example(features).batch(2).element_spec
    assert one == records.batch(2).unbatch().parse_example(features).element_spec


@pytest.mark.parametrize("num_parallel_reads", [None, 2])
def test_damaged_records_can_be_left_out(tmp_path, num_parallel_reads):
    """As told; every one of the two files says so at its end."""
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        tfw.write_records(path, [b"1", b"2", b"3"])
        flip_byte(path, 17 + 12)
    policies = {"num_parallel_reads": num_parallel_reads, "on_corrupt": "skip"}
    with pytest.warns(UserWarning, match="left out 1 damaged") as caught:
        found = list(tfw.TFRecordDataset(paths, **policies))
    assert [b"1", b"1", b"3", b"3"] == sorted(found)
    assert 2 == len(caught)
    with pytest.raises(tfw.DataLossError):
        list(tfw.TFRecordDataset(paths))
    with pytest.raises(ValueError, match="on_corrupt"):
        list(tfw.TFRecordDataset(paths, on_corrupt="ignore"))


def test_indexed_files_have_a_length(files):
    dataset = TFRecordDataset(files, indexed=True)
    assert 5 == len(dataset)
    assert list(TFRecordDataset(files)) == list(dataset)
    assert 3 == len(dataset.batch(2))
    assert "length=5" in repr(dataset)


@pytest.mark.parametrize("count", [1, 2, 3, 100, 5000])
def test_indexed_records_are_shuffled_whole(tmp_path, count):
    """Without a buffer: the records are read in random order, each once."""
    records = [b"%d" % i for i in range(count)]
    tfw.write_records(tmp_path / "data", records)
    dataset = TFRecordDataset(tmp_path / "data", indexed=True).shuffle(count, seed=1)
    first, second = list(dataset), list(dataset)
    assert sorted(records) == sorted(first) == sorted(second)
    assert (first == second) == (count == 1) or count <= 3
    assert first == list(TFRecordDataset(tmp_path / "data", indexed=True).shuffle(count, seed=1))


def test_a_whole_shuffle_takes_no_memory_per_record(tmp_path):
    """It holds the records of one read, whatever the number of all."""
    tfw.write_records(tmp_path / "data", [b"x"] * 60_000)
    dataset = TFRecordDataset(tmp_path / "data", indexed=True).shuffle(10**9, seed=1)
    elements = iter(dataset)
    next(elements)
    tracemalloc.start()
    try:
        for _ in elements:
            pass
        assert tracemalloc.get_traced_memory()[1] < 60_000 * 8
    finally:
        tracemalloc.stop()


def test_orders_are_evenly_spread():
    """Every place gets every number about as often: of 5 numbers in 2,000 orders, 400 times with
    a standard deviation of 18."""
    seen = np.zeros((5, 5), int)
    for key in range(2000):
        seen[np.arange(5), permuted(as_key(key), 5, np.arange(5))] += 1
    assert seen.min() > 400 - 5 * 18
    assert seen.max() < 400 + 5 * 18


@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_of_few_elements_are_equally_probable(size):
    """By a chi-square test of 200 orders each, at six standard deviations."""
    orders = math.factorial(size)
    seen = Counter(
        tuple(permuted(as_key("order", key), size, np.arange(size))) for key in range(200 * orders)
    )
    assert orders == len(seen)
    chi_square = sum((count - 200) ** 2 / 200 for count in seen.values())
    assert chi_square < orders - 1 + 6 * math.sqrt(2 * (orders - 1))


def test_orders_of_many_elements_stay_what_saved_states_mean():
    order = permuted(as_key(1), 1000, np.arange(1000))
    assert [352, 440, 345, 891, 664] == order[:5].tolist()
    assert list(range(1000)) == sorted(order.tolist())


def test_random_numbers_are_those_of_every_machine():
    """The first numbers of SplitMix64 with the seed 1234567, as its authors' code gives them."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert expected == draws(1234567, 0, 3).tolist()
    assert expected[1:] == draws(1234567, 1, 2).tolist()


def test_files_are_found_by_patterns(files, tmp_path):
    names = sorted(str(path).encode() for path in files)
    pattern = str(tmp_path / "plain-*")
    assert names == list(Dataset.list_files(pattern, shuffle=False))
    assert names == sorted(Dataset.list_files([pattern], seed=1))
    assert 5 == sum(1 for _ in TFRecordDataset(pattern))
    assert 5 == sum(1 for _ in TFRecordDataset(Dataset.list_files(pattern)))
    for i in range(2):
        (tmp_path / f"s-{i:05}-of-00002").touch()
    shards = [str(tmp_path / f"s-{i:05}-of-00002").encode() for i in range(2)]
    assert shards == list(Dataset.list_files(str(tmp_path / "s@2"), shuffle=False))
    for pattern in ("*.none", "s@3", "none@2"):
        with pytest.raises(ValueError, match="no files match"):
            Dataset.list_files(str(tmp_path / pattern))
    for wrong in (io.BytesIO(), [pattern, io.BytesIO()]):
        with pytest.raises(TypeError, match=r"file_pattern must be a pattern .*, found BytesIO"):
            Dataset.list_files(wrong)
    with pytest.raises(FileNotFoundError, match="none"):
        list(TFRecordDataset(str(tmp_path / "*.none")))
