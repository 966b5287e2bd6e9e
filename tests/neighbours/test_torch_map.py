"""TFRecordMapDataset under a real DataLoader."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from sample import COUNT, FEATURES, SPEC, columns
from test_torch_batches import plain
from torch.utils.data import DataLoader, DistributedSampler, Subset

import tfwire as tfw
from tfwire import TFRecordDataset
from tfwire.torch import TFRecordMapDataset, ThreadLoader, as_tensors


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


@pytest.mark.parametrize("workers", [0, 2])
def test_records_are_chosen_by_key(tmp_path, workers):
    paths = [tmp_path / "a", tmp_path / "b"]
    for number, path in enumerate(paths):
        rows = [{"id": i, "name": f"name {i}", "x": [i] * 3} for i in range(number, 100, 2)]
        tfw.write_records(path, rows, kinds={"x": "float32"})
        tfw.RecordIndex.build(path, key="name").save()
    dataset = TFRecordMapDataset(paths, SPEC)
    ids = [7, 98, 0, 7]
    numbers = dataset.by_key.find([f"name {i}" for i in ids])
    assert ids == dataset[numbers]["id"].tolist()
    for loader in (
        DataLoader(Subset(dataset, numbers), batch_size=3, num_workers=workers),
        DataLoader(dataset, batch_size=3, sampler=numbers, num_workers=workers),
    ):
        assert ids == ids_of(loader)


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


# ---- transform --------------------------------------------------------------------------------


def shown(item):
    """A function of an item: bytes, or a dict."""
    return {"id": item["id"], "double": 2 * item["x"]} if isinstance(item, dict) else len(item)


def noisy(item, generator):
    return {"id": item["id"], "draw": generator.integers(2**62)}


@pytest.mark.parametrize("workers", [0, 2])
def test_items_are_transformed_and_then_collated(files, workers):
    dataset = TFRecordMapDataset(files, SPEC, transform=shown)
    assert torch.equal(torch.tensor([1998.0, 3996, 5994]), dataset[-1]["double"])
    loader = DataLoader(dataset, batch_size=64, num_workers=workers, shuffle=True)
    batches = list(loader)
    assert list(range(COUNT)) == sorted(ids_of(batches))
    for batch in batches:
        assert {"id", "double"} == batch.keys()
        assert torch.equal(batch["id"] * 2.0, batch["double"][:, 0])
    assert [2, 0] == dataset[[2, 0]]["id"].tolist()
    assert [4, 6] == dataset[4:8:2]["id"].tolist()


FORMS = [{}, {"nested": True}, {"strings": "tensor"}]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_dict_with_tensors_of_the_item_keeps_its_rows(mixed, form):
    spec = {key: FEATURES[key] for key in ("n", "rag", "tags", "words")}
    expected = TFRecordMapDataset(mixed, spec, transform=lambda item: item, **form)
    added = TFRecordMapDataset(mixed, spec, transform=lambda i: {**i, "y": 2 * i["n"]}, **form)
    for loader in (DataLoader, ThreadLoader):
        for whole, batch in zip(loader(expected, 30), loader(added, 30), strict=True):
            assert torch.equal(2 * batch["n"], batch.pop("y"))
            assert plain(whole) == plain(batch)
    joined = next(iter(DataLoader(torch.utils.data.ConcatDataset([added]), 30)))
    assert "y" in joined


def test_rows_that_a_transform_changes_are_stacked(mixed):
    def padded(item, length=3):
        return {**item, "rag": torch.nn.functional.pad(item["rag"], (0, length - len(item["rag"])))}

    spec = {"rag": FEATURES["rag"]}
    batch = next(iter(DataLoader(TFRecordMapDataset(mixed, spec, transform=padded), 9)))
    assert (9, 3) == batch["rag"].shape
    changed = TFRecordMapDataset(mixed, spec, transform=lambda item: {"rag": item["rag"] + 1})
    with pytest.raises(ValueError, match="rag: the items of a batch differ"):
        next(iter(DataLoader(changed, 9)))


def test_records_are_transformed(files):
    dataset = TFRecordMapDataset(files, transform=shown)
    lengths = [len(record) for record in tfw.read_records(files)]
    assert lengths[:3] == [dataset[0], dataset[1], dataset[2]] == dataset[:3].tolist()
    assert lengths == torch.cat(list(DataLoader(dataset, batch_size=50))).tolist()


def draws_of(loader):
    return {int(i): int(n) for batch in loader for i, n in zip(*batch.values(), strict=True)}


def test_random_numbers_are_those_of_the_record_and_the_epoch(files):
    """Whatever the sampler, the workers and the threads are; another epoch has others."""
    dataset = TFRecordMapDataset(files, SPEC, transform=noisy, seed=1)
    first = draws_of(DataLoader(dataset, batch_size=64))
    assert COUNT == len(set(first.values()))
    loaders = [
        ThreadLoader(dataset, batch_size=10, shuffle=True, num_threads=3),
        DataLoader(dataset, batch_size=7, shuffle=True, num_workers=2, persistent_workers=True),
    ]
    parts = [DistributedSampler(dataset, 2, rank, seed=3) for rank in range(2)]
    shares = [draws_of(DataLoader(dataset, 9, sampler=sampler)) for sampler in parts]
    assert first == shares[0] | shares[1]
    assert first[5] == dataset[5]["draw"] == dataset[5 - COUNT]["draw"]
    assert [first[5], first[2]] == dataset[[5, 2]]["draw"].tolist()
    for loader in loaders:
        dataset.set_epoch(0)
        assert first == draws_of(loader)
        dataset.set_epoch(1)
        assert not set(first.values()) & set(draws_of(loader).values())
    other = TFRecordMapDataset(files, SPEC, transform=noisy, seed=2)
    assert first != draws_of(DataLoader(other, batch_size=64))


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (TypeError, "transform must be callable, found int", {"transform": 3}),
        (TypeError, "seed must be an integer, found str", {"transform": noisy, "seed": "1"}),
        (ValueError, "seed is for transform", {"seed": 1}),
    ],
)
def test_transforms_and_seeds_are_checked(files, error, message, options):
    with pytest.raises(error, match=message):
        TFRecordMapDataset(files, SPEC, **options)
    with pytest.raises(ValueError, match="epoch must be at least 0"):
        TFRecordMapDataset(files, SPEC).set_epoch(-1)


# ---- Mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"batch_size": 8}], ids=str)
def test_a_dataset_of_ours_is_no_dataset_of_torch(files, indexed, options, workers):
    with pytest.raises(TypeError, match=r"tfwire\.torch\.TFRecordIterableDataset\(dataset\)"):
        list(DataLoader(TFRecordDataset(files, indexed=indexed), num_workers=workers, **options))
