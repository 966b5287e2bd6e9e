"""States of a ThreadLoader: a pass goes on with just the batches that were not handed over."""

import json
import os
import shutil
import warnings

import pytest
import torch
from sample import COUNT, SPEC
from test_torch_batches import plain
from test_torch_blocks import stream
from torchdata.stateful_dataloader import StatefulDataLoader

import tfwire as tfw
from tfwire.torch import (
    TFRecordIterableDataset,
    TFRecordMapDataset,
    ThreadLoader,
    _drawing,
    collate,
)


class Rows(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(30))


def buffered(files):
    dataset = tfw.TFRecordDataset(files).shuffle(50, seed=1).batch(9).parse_example(SPEC)
    return TFRecordIterableDataset(dataset)


LOADERS = {
    "stream": lambda files, **options: ThreadLoader(stream(files, size=9), None, **options),
    "shuffled": lambda files, **options: ThreadLoader(
        stream(files, size=9, shuffled=True), None, **options
    ),
    "buffered": lambda files, **options: ThreadLoader(buffered(files), None, **options),
    "gathered": lambda files, **options: ThreadLoader(
        TFRecordIterableDataset(tfw.TFRecordDataset(files).parse_example(SPEC)), 9, **options
    ),
    "numbers": lambda files, **options: ThreadLoader(
        TFRecordMapDataset(files, SPEC), 9, shuffle=True, **options
    ),
    "another": lambda files, **options: ThreadLoader(Rows(), 3, **options),
}


def rest(batches):
    return list(map(plain, batches))


@pytest.fixture(params=[0, 10**9], ids=["marks at each batch", "one mark"])
def marks(request, monkeypatch):
    monkeypatch.setattr(_drawing, "_TIMES_APART", request.param)


@pytest.mark.usefixtures("marks")
@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 3, "device": "cpu"}])
def test_a_pass_goes_on_after_the_batches_that_were_handed_over(files, kind, options):
    expected = None
    for count in (0, 1, 2, 7):
        torch.manual_seed(count)
        loader = LOADERS[kind](files, **options)
        batches = iter(loader)
        for _ in range(count):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        expected = rest(batches)
        torch.manual_seed(99)
        resumed = LOADERS[kind](files, **options)
        resumed.load_state_dict(state)
        assert state == resumed.state_dict()
        assert expected == rest(resumed)
        # Again, from a pass that was resumed itself.
        resumed.load_state_dict(state)
        batches = iter(resumed)
        assert state == resumed.state_dict()
        assert expected[:2] == [plain(next(batches)) for _ in range(2)]
        again = LOADERS[kind](files, **options)
        again.load_state_dict(resumed.state_dict())
        assert expected[2:] == rest(again)


def test_epochs_follow_a_pass_that_was_resumed(files):
    for generator in (None, torch.Generator()):
        dataset = TFRecordMapDataset(files, SPEC)

        def loader(generator=generator, dataset=dataset):
            return ThreadLoader(dataset, 100, shuffle=True, generator=generator)

        (generator or torch).manual_seed(3)
        first = loader()
        batches = iter(first)
        next(batches)
        state, others = first.state_dict(), torch.get_rng_state()
        expected = [rest(batches), rest(first)]
        torch.set_rng_state(others)  # as who saves it does
        if generator is not None:
            generator.manual_seed(77)
        resumed = loader()
        resumed.load_state_dict(state)
        assert expected == [rest(resumed), rest(resumed)]
    shuffled = LOADERS["shuffled"](files)
    epochs = [rest(shuffled) for _ in range(3)]
    shuffled = LOADERS["shuffled"](files)
    list(shuffled)
    batches = iter(shuffled)
    next(batches)
    resumed = LOADERS["shuffled"](files)
    resumed.load_state_dict(shuffled.state_dict())
    assert [epochs[1][1:], epochs[2]] == [rest(resumed), rest(resumed)]


def test_before_and_after_a_pass(files):
    loader = LOADERS["stream"](files)
    assert {"version": 1, "of": {}, "at": None, "batches": 0} == loader.state_dict()
    loader.state_dict()["batches"] = 38  # a copy
    expected = rest(loader)
    resumed = LOADERS["stream"](files)
    resumed.load_state_dict(loader.state_dict())
    assert [] == rest(resumed)
    assert expected == rest(resumed)


def test_a_state_after_an_error_is_that_before_it(files):
    def collated(batch):
        if 500 in batch["id"]:
            raise KeyError("odd")
        return batch

    loader = ThreadLoader(stream(files, size=10), None, collate_fn=collated)
    batches = iter(loader)
    with pytest.raises(KeyError):
        list(batches)
    resumed = ThreadLoader(stream(files, size=10), None)
    resumed.load_state_dict(loader.state_dict())
    assert list(range(500, COUNT)) == [i for batch in resumed for i in batch["id"].tolist()]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (None, TypeError),
        ([], TypeError),
        ({}, ValueError),
        ({"version": 2, "of": {}, "at": None, "batches": 0}, ValueError),
        ({"version": 1, "of": {}, "at": None, "batches": -1}, ValueError),
        ({"version": 1, "of": {}, "at": None, "batches": True}, ValueError),
        ({"version": 1, "of": {}, "at": None, "batches": 0, "more": 0}, ValueError),
    ],
)
def test_what_is_no_state_is_refused(files, wrong, error):
    with pytest.raises(error):
        LOADERS["stream"](files).load_state_dict(wrong)


def test_a_state_of_another_dataset_is_refused(files):
    states = {}
    for kind in ("stream", "shuffled", "numbers"):
        loader = LOADERS[kind](files)
        next(iter(loader))
        states[kind] = loader.state_dict()
    for of, other in [("stream", "shuffled"), ("stream", "numbers"), ("numbers", "stream")]:
        loader = LOADERS[other](files)
        loader.load_state_dict(states[of])
        with pytest.raises((ValueError, TypeError)):
            iter(loader)


def test_what_cannot_be_read_again_has_no_state(files, tmp_path):
    reading, writing = os.pipe()
    with open(files[0], "rb") as file:
        os.write(writing, file.read(60_000))
    os.close(writing)
    with open(reading, "rb") as pipe:
        dataset = TFRecordIterableDataset(tfw.TFRecordDataset([pipe]).batch(9).parse_example(SPEC))
        loader = ThreadLoader(dataset, None)
        next(iter(loader))
        with pytest.raises(ValueError, match="cannot be resumed"):
            loader.state_dict()


def test_states_are_copies(files):
    loader = LOADERS["numbers"](files)
    next(iter(loader))
    state = loader.state_dict()
    resumed = LOADERS["numbers"](files)
    resumed.load_state_dict(state)
    state["batches"] = state["of"]["length"] = state["at"][0] = 38
    assert loader.state_dict() == resumed.state_dict()
    expected = len(rest(resumed))
    LOADERS["numbers"](files).state_dict()["batches"] = 38
    assert expected + 1 == len(rest(LOADERS["numbers"](files)))


def test_a_state_is_of_the_files_that_the_pass_reads(files, tmp_path):
    path = str(tmp_path / "some.tfrecord")
    shutil.copy(files[0], path)
    loader = LOADERS["stream"](path)
    next(iter(loader))
    tfw.write_records(str(tmp_path / "new"), [{"id": 1}])
    os.replace(tmp_path / "new", path)
    resumed = LOADERS["stream"](path)
    resumed.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="another pipeline"):
        iter(resumed)


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("of_loader", [False, True])
def test_samplers_with_generators_of_their_own(files, in_batches, of_loader):
    from torch.utils.data import BatchSampler, RandomSampler

    dataset = TFRecordMapDataset(files, SPEC)

    def loader(seed, own=True):
        generator = torch.Generator().manual_seed(seed)
        sampler = RandomSampler(dataset, generator=generator if own else None)
        other = torch.Generator() if of_loader else None
        if in_batches:
            sampler = BatchSampler(sampler, 9, False)
            return ThreadLoader(dataset, batch_sampler=sampler, generator=other)
        return ThreadLoader(dataset, 9, sampler=sampler, generator=other)

    for own in (True, False):
        first = loader(1, own)
        if own:
            list(first)  # the generator has gone on
        batches = iter(first)
        next(batches)
        resumed = loader(2, own)
        resumed.load_state_dict(first.state_dict())
        assert rest(batches) == rest(resumed)


def test_a_state_by_number_is_of_one_loader(files):
    dataset = TFRecordMapDataset(files, SPEC, transform=lambda item, random: item, seed=1)
    loader = ThreadLoader(dataset, 9, shuffle=True)
    next(iter(loader))
    state = loader.state_dict()
    of = {"length": COUNT, "batch_size": 9, "drop_last": False, "sampler_epoch": None, "epoch": 0}
    assert of == state["of"]
    parts = torch.utils.data.Subset(dataset, range(COUNT))
    others = [
        ThreadLoader(torch.utils.data.Subset(dataset, range(99)), 9),
        ThreadLoader(dataset, 8),
        ThreadLoader(dataset, 9, drop_last=True),
        ThreadLoader(dataset, 9, sampler=torch.utils.data.DistributedSampler(dataset, 2, 0)),
    ]
    resumed = ThreadLoader(parts, 9, shuffle=True)
    resumed.load_state_dict(state)
    iter(resumed)
    dataset.set_epoch(1)
    for other in [*others, ThreadLoader(dataset, 9), ThreadLoader(parts, 9)]:
        other.load_state_dict(state)
        with pytest.raises(ValueError, match="the state is of a loader"):
            iter(other)
    dataset.set_epoch(0)
    for wrong in ("00", ["00"], ["zz"], [], [5], 5, [*state["at"], "00"]):
        loader.load_state_dict({**state, "at": wrong})
        before = torch.get_rng_state()
        with pytest.raises(ValueError, match="not a state"):
            iter(loader)
        assert torch.equal(before, torch.get_rng_state())
    loader.load_state_dict({**state, "batches": 10**12})
    with pytest.raises(ValueError, match="fewer batches"):
        next(iter(loader))


def test_a_sampler_that_fails_leaves_random_numbers_as_they_are(files):
    class Failing(torch.utils.data.Sampler):
        def __iter__(self):
            raise KeyError("odd")

    dataset = TFRecordMapDataset(files, SPEC)
    loader = ThreadLoader(dataset, 9)
    next(iter(loader))
    resumed = ThreadLoader(dataset, 9, sampler=Failing())
    resumed.load_state_dict(loader.state_dict())
    before = torch.get_rng_state()
    with pytest.raises(KeyError):
        iter(resumed)
    assert torch.equal(before, torch.get_rng_state())


def test_a_batch_that_is_not_received_is_not_handed_over(files, monkeypatch):
    loader = ThreadLoader(stream(files, size=9), None, device="cpu")
    batches = iter(loader)
    next(batches)

    def failing(batch):
        raise MemoryError

    monkeypatch.setattr(batches, "_receive", failing)
    with pytest.raises(MemoryError):
        next(batches)
    assert [] == list(batches)
    resumed = ThreadLoader(stream(files, size=9), None)
    resumed.load_state_dict(loader.state_dict())
    assert list(range(9, 18)) == next(iter(resumed))["id"].tolist()


# ---- Another number of ranks and workers --------------------------------------------------------

KINDS = {
    "in order": lambda files: tfw.TFRecordDataset(files, indexed=True),
    "shuffled": lambda files: tfw.TFRecordDataset(files, indexed=True).shuffle(COUNT, seed=1),
    "by a buffer": lambda files: tfw.TFRecordDataset(files).shuffle(100, seed=1),
}


def quiet(test):
    """With the warnings of loaders of several ranks ignored."""
    for text in (
        "ignore::tfwire.TfwireWarning",  # more shards than files
        "ignore:This DataLoader will create 3 worker",
        "ignore:'set_vital' is deprecated",  # called by torchdata
    ):
        test = pytest.mark.filterwarnings(text)(test)
    return test


def loaders(dataset, ranks, workers):
    """Those of all ranks; workers None: a ThreadLoader."""
    for rank in range(ranks):
        share = TFRecordIterableDataset(dataset, rank=rank, world_size=ranks)
        if workers is None:
            yield ThreadLoader(share, None, num_threads=2)
        else:
            yield StatefulDataLoader(
                share, batch_size=None, num_workers=workers, collate_fn=collate
            )


def take(all_loaders, steps, given):
    """Takes batches of every loader, and returns their states."""
    states = []
    for loader in all_loaders:
        batches = iter(loader)
        for _ in range(steps):
            if (batch := next(batches, None)) is not None:
                given += batch["id"].tolist()
        states.append(json.loads(json.dumps(loader.state_dict())))
    return states


@quiet
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [[(2, 2), (3, 0), (1, 3)], [(1, 0), (2, None), (2, 1)]])
def test_ranks_and_workers_of_another_number_go_on(files, kind, counts):
    def make():
        return KINDS[kind](files).batch(16).parse_example(SPEC)

    given: list[int] = []
    states = take(loaders(make(), *counts[0]), 3, given)
    for count in counts[1:]:
        states = take(loaders(make().resume(states), *count), 2, given)
    rest = make().resume(states)
    last = [TFRecordIterableDataset(rest, rank=rank, world_size=2) for rank in range(2)]
    for _ in range(2):
        found = [i for share in last for batch in share for i in batch["id"].tolist()]
        assert list(range(COUNT)) == sorted(given + found)
        given = []  # the next epoch is whole


@quiet
def test_a_state_between_snapshots_is_refused(files):
    dataset = KINDS["shuffled"](files).batch(16)
    loader = StatefulDataLoader(
        TFRecordIterableDataset(dataset), batch_size=None, num_workers=1, snapshot_every_n_steps=4
    )
    batches = iter(loader)
    next(batches)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = loader.state_dict()
    with pytest.raises(ValueError, match="1 batches after a snapshot"):
        dataset.resume([state])
