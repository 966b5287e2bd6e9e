"""Epochs of datasets: set, counted, saved with states, and the same in all processes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT
from helpers.data.files import SPEC, NumberedFiles
from helpers.data.named_pipelines import goes_on_everywhere
from tfwire import Dataset, TFRecordDataset
from tfwire._data import shuffle

SIZES = [11, 0, 40, 7, 1, 3, 600]  # more than 512 records: permuted by a network


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES).plain


TOTAL = sum(SIZES)
PIPELINES = {
    "indexed": lambda files: TFRecordDataset(files, indexed=True).shuffle(10_000, seed=3),
    "buffer": lambda files: TFRecordDataset(files).shuffle(20, seed=3),
    "files": lambda files: TFRecordDataset(files, shuffle_files=True, seed=3),
    "files in turn": lambda files: TFRecordDataset(
        files, num_parallel_reads=3, shuffle_files=True, seed=3
    ),
    "files and buffer": lambda files: TFRecordDataset(files, shuffle_files=True).shuffle(9, 1),
    "zip": lambda files: Dataset.zip(
        TFRecordDataset(files, shuffle_files=True), Dataset.range(5000).shuffle(7, 1)
    ),
}
OVER_ALL = ["indexed", "files", "files in turn", "files and buffer"]  # before they are sharded


@pytest.mark.parametrize("name", PIPELINES)
def test_an_epoch_has_one_order(files, name):
    """Whether it is counted or set, also in a pipeline that repeats or is made anew."""
    dataset = PIPELINES[name](files)
    counted = [list(dataset) for _ in range(3)]
    assert 3 == len(set(map(str, counted)))
    for epoch in (2, 0, 1):
        other = PIPELINES[name](files)
        other.set_epoch(epoch)
        assert list(other) == counted[epoch]
    dataset.set_epoch(0)
    assert [list(dataset) for _ in range(3)] == counted


def test_a_dataset_of_a_dataset_has_its_epochs(files):
    """Also one that is made anew for every epoch; setting one sets the others."""
    shuffled = PIPELINES["indexed"](files)
    epochs = [np.concatenate(list(shuffled.batch(7))).tolist() for _ in range(2)]
    assert epochs[0] != epochs[1]
    shuffled.batch(7).set_epoch(0)
    assert [list(shuffled) for _ in range(2)] == epochs


@pytest.mark.parametrize(
    "make",
    [*PIPELINES.values(), lambda files: Dataset.range(TOTAL), lambda files: TFRecordDataset(files)],
    ids=[*PIPELINES, "range", "unshuffled"],
)
def test_a_state_has_its_epoch(files, make):
    """And the pass after a resumed one is the next epoch, as in the process that saved it."""
    dataset = make(files)
    dataset.set_epoch(4)
    elements = iter(dataset)
    next(elements)
    state = json.loads(json.dumps(elements.state_dict()))
    assert 4 == state["epoch"]
    rest = list(elements)
    following = iter(dataset)
    assert 5 == following.state_dict()["epoch"]
    other = make(files)
    for _ in range(7):  # whatever it counted
        iter(other).close()
    resumed = iter(other)
    resumed.load_state_dict(state)
    assert list(resumed) == rest
    assert list(iter(other)) == list(following)


def test_shuffles_that_do_not_redraw_ignore_the_epoch():
    dataset = Dataset.range(50).shuffle(50, seed=1, reshuffle_each_iteration=False)
    first = list(dataset)
    dataset.set_epoch(9)
    assert list(dataset) == first
    assert 10 == iter(dataset).state_dict()["epoch"]


@pytest.mark.parametrize("rule", ["even", "drop", "pad"])
@pytest.mark.parametrize(("ranks", "workers"), [(1, 3), (3, 2), (7, 1)])
def test_every_rank_has_other_records_in_every_epoch(files, rule, ranks, workers):
    """Made in processes that share nothing, of one shard or shards of shards."""
    by_rank = {}
    for epoch, rank in itertools.product(range(3), range(ranks)):
        found = by_rank[epoch, rank] = []
        for worker in range(workers):
            dataset = PIPELINES["indexed"](files)
            number = rank * workers + worker
            if epoch == 2:
                dataset = dataset.shard_source(ranks, rank, rule)
                dataset = dataset.shard_source(workers, worker, rule)
            else:
                dataset = dataset.shard_source(ranks * workers, number, rule)
            dataset.set_epoch(epoch)
            records = list(dataset)
            assert len(dataset) == len(records)
            found += records
    expected = Counter(TFRecordDataset(files))
    for epoch in range(3):
        seen = Counter(itertools.chain(*(by_rank[epoch, rank] for rank in range(ranks))))
        sizes = {len(by_rank[epoch, rank]) for rank in range(ranks)}
        if rule == "even":
            assert seen == expected
        elif rule == "drop":
            assert seen <= expected
            assert TOTAL - seen.total() < ranks * workers * 2
            assert 1 == len(sizes)
        else:
            assert expected <= seen
            assert 1 == len(sizes)
    if ranks > 1:
        assert set(by_rank[0, 1]) != set(by_rank[1, 1])


@pytest.mark.parametrize("name", OVER_ALL)
def test_shards_of_an_epoch_have_everything_once(files, name):
    shares = []
    for epoch in range(6):
        shards = []
        for index in range(3):
            dataset = PIPELINES[name](files).shard_source(3, index)
            dataset.set_epoch(epoch)
            shards.append(list(dataset))
        assert sorted(itertools.chain(*shards)) == sorted(TFRecordDataset(files))
        shares.append(tuple(sorted(shards[0])))
    assert len(set(shares)) > 1


def test_without_a_seed_a_rank_keeps_its_records(files):
    """Other processes do not know the order of this one."""
    dataset = TFRecordDataset(files, indexed=True).shuffle(10_000)
    shards = [dataset.shard_source(2, i) for i in range(2)]
    for shard in shards:
        assert sorted(shard) == sorted(shard)
        assert list(shard) != list(shard)
    assert sorted(itertools.chain(*shards)) == sorted(TFRecordDataset(files))


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("num_shards", [1, 2])
def test_resuming_in_the_midst_of_an_epoch(files, name, num_shards):
    def make():
        dataset = PIPELINES[name](files).shard_source(num_shards, 0).repeat(2)
        dataset.set_epoch(5)
        return dataset

    def unset():
        return PIPELINES[name](files).shard_source(num_shards, 0).repeat(2)

    goes_on_everywhere(make, unset, step=97, most=2 * TOTAL)


def test_the_state_of_another_shard_or_seed_is_refused(files):
    state = iter(PIPELINES["indexed"](files).shard_source(3, 0)).state_dict()
    shuffled_files = iter(PIPELINES["files"](files).shard_source(2, 0)).state_dict()
    for other in (
        PIPELINES["indexed"](files).shard_source(3, 1),
        PIPELINES["indexed"](files).shard_source(3, 0, "pad"),
        PIPELINES["indexed"](files),
        PIPELINES["files"](files).shard_source(2, 1),
        TFRecordDataset(files, shuffle_files=True, seed=4).shard_source(2, 0),
        TFRecordDataset(files).shard_source(2, 0),
    ):
        for wrong in (state, shuffled_files):
            with pytest.raises(ValueError, match="another pipeline"):
                iter(other).load_state_dict(wrong)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_files_are_parsed_in_the_order_of_the_epoch(files, num_threads):
    dataset = TFRecordDataset(files, shuffle_files=True, seed=3)
    records = [list(dataset) for _ in range(2)]
    parsed = dataset.batch(64).parse_example(SPEC, num_threads=num_threads)
    parsed.set_epoch(0)
    for epoch in records:
        found = np.concatenate([batch["n"] for batch in parsed])
        assert found.tolist() == tfw.parse_example(epoch, SPEC)["n"].tolist()


def test_another_process_begins_at_the_epoch_that_is_due(files):
    code = (
        "import sys, tfwire as tfw\n"
        "dataset = tfw.TFRecordDataset(sys.argv[2:], indexed=True).shuffle(10**4, seed=3)\n"
        "dataset.set_epoch(int(sys.argv[1]))\n"
        "print(b''.join(dataset).hex())\n"
    )
    command = [sys.executable, "-c", code, "2", *files]
    found = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    dataset = PIPELINES["indexed"](files)
    epochs = [b"".join(dataset).hex() for _ in range(3)]
    assert found.stdout.strip() == epochs[2]


def test_shuffled_files_are_not_indexed(files):
    with pytest.raises(ValueError, match=r"indexed excludes .*shuffle_files"):
        TFRecordDataset(files, indexed=True, shuffle_files=True)


def test_a_shuffle_keeps_the_place_of_its_oldest_element(monkeypatch):
    monkeypatch.setattr(shuffle, "ELEMENTS_PER_DRAW", 2)
    goes_on_everywhere(lambda: Dataset.range(60).map(str).shuffle(9, seed=3))
