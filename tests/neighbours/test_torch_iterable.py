"""TFRecordIterableDataset under a real DataLoader and a StatefulDataLoader."""

import itertools
import os
import pickle
import subprocess
import sys

import pytest
import torch
from sample import COUNT, SPEC
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import tfwire as tfw
from tfwire.torch import TFRecordIterableDataset


def batches(files, *, indexed=False, shuffled=False, size=64):
    dataset = tfw.TFRecordDataset(files, indexed=indexed)
    if shuffled:
        dataset = dataset.shuffle(100, seed=1)
    return dataset.batch(size).parse_example(SPEC)


def ids_of(loader):
    return [number for batch in loader for number in batch["id"].tolist()]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_lose_and_double_nothing(files, workers, indexed):
    dataset = TFRecordIterableDataset(batches(files, indexed=indexed))
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    found = list(loader)
    assert list(range(COUNT)) == sorted(ids_of(found))
    assert torch.float32 == found[0]["x"].dtype
    assert (64, 3) == tuple(found[0]["x"].shape)
    assert b"name 0" == found[0]["name"][0]


@pytest.mark.parametrize("rule", ["even", "drop", "pad"])
def test_ranks_and_workers_share_the_records(files, rule):
    seen = []
    for rank in range(3):
        dataset = TFRecordIterableDataset(
            batches(files, indexed=True), rule=rule, rank=rank, world_size=3
        )
        seen.append(ids_of(DataLoader(dataset, batch_size=None, num_workers=2)))
    together = list(itertools.chain(*seen))
    sizes = set(map(len, seen))
    if rule == "even":
        assert list(range(COUNT)) == sorted(together)
    elif rule == "drop":
        assert {COUNT // 6 * 2} == sizes
        assert len(set(together)) == len(together)
    else:
        assert {-(-COUNT // 6) * 2} == sizes
        assert set(range(COUNT)) == set(together)


def test_an_initialized_process_group_is_asked(files, tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1
    )
    try:
        dataset = TFRecordIterableDataset(batches(files))
        assert list(range(COUNT)) == ids_of(DataLoader(dataset, batch_size=None))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_are_shuffled_anew(files, workers):
    """And alike from run to run, by the dataset's seed."""

    def epochs():
        dataset = TFRecordIterableDataset(batches(files, shuffled=True))
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        return ids_of(loader), ids_of(loader)

    first, second = epochs()
    assert first != second
    assert list(range(COUNT)) == sorted(first) == sorted(second)
    assert (first, second) == epochs()


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # called by torchdata
@pytest.mark.parametrize(
    ("workers", "threads"),
    [*((workers, (1, 1)) for workers in (0, 1, 2)), (0, (1, 2)), (0, (2, 1)), (0, (2, 3))],
)
def test_a_stateful_loader_goes_on_where_it_was(files, workers, threads):
    """A state does not depend on threads."""

    def loader(num_threads):
        dataset = batches(files, shuffled=True, size=20)
        dataset = TFRecordIterableDataset(dataset, num_threads=num_threads)
        return StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    whole = loader(threads[0])
    elements = iter(whole)
    for _ in range(17):
        next(elements)
    state = whole.state_dict()
    rest = ids_of(elements)
    assert rest
    resumed = loader(threads[1])
    resumed.load_state_dict(state)
    assert rest == ids_of(resumed)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_threads_of_this_process_give_the_same_tensors(files, shuffled, indexed):
    def batches_of(num_threads):
        dataset = batches(files, indexed=indexed, shuffled=shuffled, size=30)
        dataset = TFRecordIterableDataset(dataset, num_threads=num_threads)
        return [*DataLoader(dataset, batch_size=None), *DataLoader(dataset, batch_size=None)]

    expected, found = batches_of(1), batches_of(2)
    assert len(expected) == len(found)
    for one, two in zip(expected, found, strict=True):
        assert one["name"] == two["name"]
        assert torch.equal(one["id"], two["id"])
        assert torch.equal(one["x"], two["x"])
        two["x"] += 1  # the memory is the user's


def test_threads_of_ranks_and_workers_share_the_records(files):
    seen = []
    for rank in range(2):
        dataset = TFRecordIterableDataset(
            batches(files, indexed=True), rank=rank, world_size=2, num_threads=2
        )
        seen += ids_of(DataLoader(dataset, batch_size=None, num_workers=rank))
    assert list(range(COUNT)) == sorted(seen)


@pytest.mark.parametrize(
    ("shuffled", "threads", "workers"), [(False, 2, 0), (True, 2, 0), (False, 1, 1)]
)
def test_errors_of_threads_and_workers_reach_the_user(files, shuffled, threads, workers):
    dataset = tfw.TFRecordDataset(files)
    dataset = dataset.shuffle(100, seed=1) if shuffled else dataset
    dataset = dataset.batch(10).parse_example({"other": tfw.FixedLenFeature([], tfw.int64)})
    dataset = TFRecordIterableDataset(dataset, num_threads=threads)
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    with pytest.raises(tfw.ParseError, match="other"):
        list(loader)


@pytest.mark.parametrize("workers", [1, 2])
def test_epochs_of_persistent_workers_are_shuffled_anew(files, workers):
    """Torch gives such a worker no new seed."""
    dataset = TFRecordIterableDataset(batches(files, shuffled=True))
    loader = DataLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=True)
    epochs = [ids_of(loader) for _ in range(3)]
    assert 3 == len(set(map(tuple, epochs)))
    assert all(list(range(COUNT)) == sorted(epoch) for epoch in epochs)


def test_epochs_of_a_rank_are_shuffled_anew(files):
    dataset = TFRecordIterableDataset(batches(files, shuffled=True), rank=1, world_size=2)
    loader = DataLoader(dataset, batch_size=None)
    first, second = ids_of(loader), ids_of(loader)
    assert first != second
    assert sorted(first) == sorted(second)


@pytest.mark.parametrize("kind", ["forked", "spawned", "persistent", "none"])
def test_ranks_have_other_records_in_every_epoch(files, kind):
    """Counted or set, and together everything once."""
    options = {
        "forked": {"num_workers": 2},
        "spawned": {"num_workers": 1, "multiprocessing_context": "spawn"},
        "persistent": {"num_workers": 2, "persistent_workers": True},
        "none": {},
    }[kind]

    def loader_of(rank):
        dataset = tfw.TFRecordDataset(files, indexed=True).shuffle(10**6, seed=1)
        dataset = dataset.batch(64).parse_example(SPEC)
        dataset = TFRecordIterableDataset(dataset, rank=rank, world_size=2)
        return dataset, DataLoader(dataset, batch_size=None, **options)

    ranks = [loader_of(rank) for rank in range(2)]
    found = []
    for epoch in (None, None, 0) if kind == "spawned" else (None, None, 5, None, 0):
        if epoch is not None:
            for dataset, _ in ranks:
                dataset.set_epoch(epoch)
        shares = [ids_of(loader) for _, loader in ranks]
        assert list(range(COUNT)) == sorted(itertools.chain(*shares))
        found.append(sorted(shares[0]))
    assert found[0] == found[-1]
    assert len(found) - 1 == len(set(map(tuple, found)))


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # called by torchdata
@pytest.mark.parametrize("workers", [0, 2])
def test_the_epoch_after_a_resumed_one_is_the_next(files, workers):
    def loader():
        dataset = TFRecordIterableDataset(batches(files, shuffled=True, size=20))
        return dataset, StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    dataset, whole = loader()
    dataset.set_epoch(3)
    elements = iter(whole)
    for _ in range(5):
        next(elements)
    state = whole.state_dict()
    expected = ids_of(elements), ids_of(whole)
    _, resumed = loader()
    resumed.load_state_dict(state)
    assert expected == (ids_of(resumed), ids_of(resumed))


@pytest.mark.filterwarnings("error:Length of IterableDataset")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_length_is_known_with_the_number_of_workers(files, workers):
    for rank in range(2):
        dataset = TFRecordIterableDataset(
            batches(files, indexed=True), rank=rank, world_size=2, num_workers=workers
        )
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        assert len(loader) == len(list(loader))
    with pytest.raises(TypeError, match="num_workers"):
        len(TFRecordIterableDataset(batches(files, indexed=True)))
    with pytest.raises(TypeError, match="not known"):
        len(TFRecordIterableDataset(batches(files), num_workers=0))


def test_workers_that_are_not_forked_know_the_rank(files, monkeypatch):
    """The process group is not in them; what they get of it is the pickled dataset."""
    dataset = TFRecordIterableDataset(batches(files))
    with monkeypatch.context() as group:
        group.setattr(torch.distributed, "is_initialized", lambda: True)
        group.setattr(torch.distributed, "get_world_size", lambda: 2)
        group.setattr(torch.distributed, "get_rank", lambda: 1)
        expected = ids_of(dataset)
        pickled = pickle.dumps(dataset)
    assert expected == ids_of(pickle.loads(pickled))
    assert len(expected) < COUNT


def test_a_dataset_that_was_pickled_before_the_group_began_asks_it(files, monkeypatch):
    dataset = pickle.loads(pickle.dumps(TFRecordIterableDataset(batches(files))))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert len(ids_of(dataset)) < COUNT


IN_USE = """
import builtins, sys
import torch
import tfwire as tfw

dataset = tfw.TFRecordDataset(sys.argv[1:]).batch(10)
dataset = dataset.parse_example({"id": tfw.FixedLenFeature([], tfw.int64)})
builtins.kept = elements = iter(dataset)
next(elements)
"""


def test_an_iterator_in_use_at_exit_says_nothing(files):
    """torch lives longer than other modules, and iterators with it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", IN_USE, *files]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert ("", 0) == (done.stderr, done.returncode)


def test_wrong_arguments_are_refused_at_once(files):
    with pytest.raises(ValueError, match="'odd'"):
        TFRecordIterableDataset(batches(files), rule="odd")
    with pytest.raises(ValueError, match="num_threads"):
        TFRecordIterableDataset(batches(files), num_threads=0)
    with pytest.raises(ValueError, match="num_workers"):
        TFRecordIterableDataset(batches(files), num_workers=-1)
    with pytest.raises(ValueError, match="epoch"):
        TFRecordIterableDataset(batches(files)).set_epoch(-1)
    with pytest.raises(TypeError, match="found str"):
        TFRecordIterableDataset(files[0])
