"""TFRecordMapDataset under a real DataLoader."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from sample import COUNT, SPEC, columns
from torch.utils.data import DataLoader, DistributedSampler

import tfwire as tfw
from tfwire.torch import TFRecordMapDataset, as_tensors


class Pair(NamedTuple):
    left: Any
    right: Any


def ids_of(loader):
    return torch.cat([batch["id"] for batch in loader]).tolist()


def test_items_are_parsed_to_tensors(files):
    dataset = TFRecordMapDataset(files, SPEC)
    assert COUNT == len(dataset)
    item = dataset[-1]
    assert (COUNT - 1, b"name 999") == (item["id"], item["name"])
    assert torch.equal(torch.tensor([999.0, 1998, 2997]), item["x"])
    assert torch.int64 == item["id"].dtype
    with pytest.raises(IndexError):
        dataset[COUNT]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_loader_gives_whole_batches(files, workers):
    loader = DataLoader(TFRecordMapDataset(files, SPEC), batch_size=64, num_workers=workers)
    first, *_, last = batches = list(loader)
    assert list(range(COUNT)) == ids_of(batches)
    for batch, ids in ((first, range(64)), (last, range(COUNT - COUNT % 64, COUNT))):
        expected = columns(ids)
        assert torch.equal(torch.from_numpy(expected["x"]), batch["x"])
        assert expected["name"] == batch["name"]


@pytest.mark.parametrize("workers", [0, 2])
def test_urls_are_read_by_number_in_workers_too(files, workers):
    urls = [f"file://{path}" for path in files]
    dataset = TFRecordMapDataset(urls, SPEC, storage_options={"auto_mkdir": False})
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=workers)
    assert list(range(COUNT)) == sorted(ids_of(loader))


def test_a_batch_is_one_read_and_one_parse(files, monkeypatch):
    dataset = TFRecordMapDataset(files, SPEC)
    calls = []
    parse = tfw.Parser.parse
    monkeypatch.setattr(tfw.Parser, "parse", lambda *a: calls.append(len(a[1])) or parse(*a))
    list(DataLoader(dataset, batch_size=300))
    assert [300, 300, 300, 100] == calls


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffling_loses_and_doubles_nothing(files, workers):
    dataset = TFRecordMapDataset(files, SPEC)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=workers)
    first, second = ids_of(loader), ids_of(loader)
    assert list(range(COUNT)) == sorted(first) == sorted(second)
    assert first != second


def test_ranks_share_the_records(files):
    dataset = TFRecordMapDataset(files, SPEC)
    seen = []
    for rank in range(3):
        sampler = DistributedSampler(dataset, 3, rank, shuffle=True, seed=1)
        seen += ids_of(DataLoader(dataset, batch_size=50, sampler=sampler, num_workers=1))
    assert set(range(COUNT)) == set(seen)
    assert 3 * -(-COUNT // 3) == len(seen)


def test_a_collate_function_of_the_user_sees_the_items(files):
    def collate(items):
        assert 10 == len(items)
        assert torch.equal(items[0]["x"], next(iter(items))["x"])
        return [int(item["id"]) for item in items[2:4]]

    loader = DataLoader(TFRecordMapDataset(files, SPEC), batch_size=10, collate_fn=collate)
    assert [2, 3] == next(iter(loader))


def test_without_a_specification_items_are_bytes(files):
    dataset = TFRecordMapDataset(files)
    (batch,) = DataLoader(dataset, batch_size=COUNT, num_workers=1)
    assert list(tfw.read_records(files)) == batch


def test_errors_of_a_worker_reach_the_user(files):
    spec = {"other": tfw.FixedLenFeature([], tfw.int64)}
    loader = DataLoader(TFRecordMapDataset(files, spec), batch_size=10, num_workers=1)
    with pytest.raises(tfw.ParseError, match="other"):
        list(loader)


def test_tensors_share_memory_where_they_can():
    array = np.zeros(4, np.float32)
    as_tensors({"x": (array,)})["x"][0][1] = 7
    assert 7 == array[1]
    fixed = np.arange(3)
    fixed.flags.writeable = False
    as_tensors(fixed)[0] = 9
    assert 0 == fixed[0]
    assert [1, 2] == as_tensors(np.array([1, 2], ">i4")).tolist()
    assert [b"a"] == as_tensors(np.array([b"a"], object))
    assert "kept" == as_tensors("kept")
    assert torch.float32 == as_tensors(np.float32(1)).dtype


def test_structures_and_views_become_tensors():
    """Named tuples stay what they are; torch has no negative strides."""
    pair = as_tensors(Pair(np.arange(3)[::-1], "kept"))
    assert isinstance(pair, Pair)
    assert [2, 1, 0] == pair.left.tolist()
    assert "kept" == pair.right
