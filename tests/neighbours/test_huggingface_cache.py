"""What is prepared is used again for the same files and options alone; a Dataset is written."""

from __future__ import annotations

import os
import pickle
import sys

import datasets
import numpy as np
import pytest
from builders import prepared, streamed, use_folder
from datasets import Features, LargeList, List, Value
from sample import SPEC, columns

import tfwire as tfw
from tfwire.huggingface import TFRecord

FEATURES = Features(
    {"id": Value("int64"), "name": Value("binary"), "x": List(Value("float32"), length=3)}
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    use_folder(monkeypatch, tmp_path)
    return tmp_path / "cache"


def write(path, first, count=5):
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns(np.arange(first, first + count)))


def ids(path, **options):
    return prepared(str(path), **options)["id"][:]


def test_what_was_prepared_is_used_again(tmp_path, cache):
    write(tmp_path / "data", 0)
    assert [0, 1, 2, 3, 4] == ids(tmp_path / "data")
    made = {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")}
    assert [0, 1, 2, 3, 4] == ids(tmp_path / "data")
    assert made == {path: path.stat().st_mtime_ns for path in cache.rglob("*.arrow")}
    assert 1 == len(made)


def test_a_file_that_changed_is_read_anew(tmp_path):
    path = tmp_path / "data"
    write(path, 0)
    assert [0, 1, 2, 3, 4] == ids(path)
    time = path.stat().st_mtime_ns
    write(path, 10)
    os.utime(path, ns=(time, time + 1_000_000))  # the same size, a millisecond later
    assert [10, 11, 12, 13, 14] == ids(path)
    write(path, 20, 6)
    os.utime(path, ns=(time, time + 1_000_000))  # the same time, another size
    assert [20, 21, 22, 23, 24, 25] == ids(path)
    path.rename(tmp_path / "other")
    write(path, 30)
    os.utime(path, ns=(time, time))
    assert [30, 31, 32, 33, 34] == ids(path)
    assert [20, 21, 22, 23, 24, 25] == ids(tmp_path / "other")
    both = prepared(str(tmp_path / "*"))["id"][:]
    assert {*range(20, 26), *range(30, 35)} == set(both)


OPTIONS = [
    {},
    {"columns": ["id", "x"]},
    {"columns": ["x", "id"]},
    {"features": FEATURES},
    {"features": Features({**FEATURES, "id": Value("int32")})},
    {"binary_as": "string"},
    {"batch_size": 7},
    {"compression_type": None},
    {"on_corrupt": "skip"},
    {"specification": SPEC},
    {"specification": {**SPEC, "id": tfw.FixedLenFeature([], tfw.int64, default_value=1)}},
    {"specification": {**SPEC, "id": tfw.FixedLenFeature([], tfw.int64, default_value=2)}},
    {"specification": {**SPEC, "id": tfw.FixedLenFeature([1], tfw.int64)}},
    {"specification": {**SPEC, "id": tfw.FixedLenFeature([], tfw.float32)}},
    {"specification": {**SPEC, "id": tfw.VarLenFeature(tfw.int64)}},
    {"specification": (SPEC, None)},
]


def test_every_option_has_a_place_of_its_own_in_the_cache(files, monkeypatch):
    names = [TFRecord(files, **options).config_id for options in OPTIONS]
    names.append(TFRecord(files[:2]).config_id)
    names.append(TFRecord({"test": files}).config_id)
    assert len(set(names)) == len(names)
    assert names[: len(OPTIONS)] == [TFRecord(files, **options).config_id for options in OPTIONS]
    # A default that is given is the default; a specification may be another object.
    assert names[0] == TFRecord(files, None, columns=None, on_corrupt="raise").config_id
    assert names[9] == TFRecord(files, pickle.loads(pickle.dumps(SPEC))).config_id
    monkeypatch.setattr(sys.modules[TFRecord.__module__], "__version__", "0.0.1")
    assert names[0] != TFRecord(files).config_id


def test_fingerprints_tell_datasets_apart(tmp_path, files):
    found = {prepared(files, **options)._fingerprint for options in OPTIONS[:3]}
    assert 3 == len(found)
    assert found == {prepared(files, **options)._fingerprint for options in OPTIONS[:3]}


@pytest.mark.parametrize("on_corrupt", ["raise", "skip"])
def test_a_damaged_file(tmp_path, cache, on_corrupt):
    path = tmp_path / "data"
    write(path, 0, 100)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + b"?" + whole[middle + 1 :])
    if on_corrupt == "skip":
        with pytest.warns(tfw.TfwireWarning, match="1 damaged region"):
            assert 99 == len(ids(path, on_corrupt=on_corrupt))
        with pytest.warns(tfw.TfwireWarning, match="1 damaged region"):
            assert 99 == len(list(streamed(str(path), on_corrupt=on_corrupt)))
        return
    with pytest.raises(datasets.exceptions.DatasetGenerationError) as caught:
        ids(path, specification=SPEC)
    assert isinstance(caught.value.__cause__, tfw.DataLossError)
    assert str(path) in str(caught.value.__cause__)
    assert [] == list(cache.rglob("*.arrow"))
    with pytest.raises(tfw.DataLossError, match=str(path)):
        list(streamed(str(path), SPEC))
    path.write_bytes(whole)
    assert list(range(100)) == ids(path, specification=SPEC)


def test_a_record_that_does_not_fit(tmp_path):
    tfw.write_records(tmp_path / "data", [{"id": 1}, {"id": 0.5}], kinds="any")
    specification = {"id": SPEC["id"]}
    with pytest.raises(datasets.exceptions.DatasetGenerationError) as caught:
        prepared(str(tmp_path / "data"), specification)
    assert isinstance(caught.value.__cause__, tfw.ParseError)
    assert "record 1: Key: id" in str(caught.value.__cause__)
    stream = iter(streamed(str(tmp_path / "data"), specification))
    assert {"id": 1} == next(stream)
    with pytest.raises(tfw.ParseError, match="record 1: Key: id"):
        next(stream)


def test_a_value_that_features_cannot_hold(files):
    with pytest.raises(datasets.exceptions.DatasetGenerationError):
        prepared(files, features=Features({"id": Value("int8")}))


# ---- From a Dataset to a file -------------------------------------------------------------------

ROWS = [
    {"id": 1, "name": "a", "list": [1, 2], "list2": [0.5]},
    {"id": 2, "name": None, "list": [], "list2": [1.5]},
    {"id": 3, "name": "c", "list": None, "list2": [2.5]},
]


def test_a_dataset_is_written_and_read_again(tmp_path):
    dataset = datasets.Dataset.from_list(ROWS).select([2, 0, 1])
    path = str(tmp_path / "data")
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(dataset.with_format("arrow")[:])
        for table in dataset.with_format("arrow").iter(batch_size=2):
            writer.write_columns(table)
        for table in dataset.to_iterable_dataset().with_format("arrow").iter(batch_size=2):
            writer.write_columns(table)
    specification = {
        "id": SPEC["id"],
        "name": tfw.VarLenFeature(tfw.string),
        "list": tfw.VarLenFeature(tfw.int64),
        "list2": tfw.FixedLenFeature([1], tfw.float32),
    }
    found = list(prepared(path, specification, binary_as="string"))
    expected = [{**row, "name": row["name"] and [row["name"]]} for row in dataset]
    assert expected * 3 == found


def test_large_lists_are_written(tmp_path):
    features = Features({"x": LargeList(Value("int32")), "b": Value("bool")})
    dataset = datasets.Dataset.from_dict({"x": [[1], [2, 3]], "b": [True, False]}, features)
    tfw.write_records(tmp_path / "data", tfw.encode_columns(dataset.data.table))
    assert [{"b": 1, "x": [1]}, {"b": 0, "x": [2, 3]}] == list(prepared(str(tmp_path / "data")))
