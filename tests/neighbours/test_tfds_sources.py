"""Splits of tfwire.tfds as sources of torch's DataLoader and of Grain."""

import pickle

import grain
import pytest
from torch.utils.data import DataLoader

import tfwire.tfds
from helpers.prepared import group, prepare, tensor


@pytest.fixture
def split(tmp_path):
    """Two hundred numbers, in three shards."""
    rows = [{"n": n} for n in range(200)]
    shards = [rows[:90], rows[90:100], rows[100:]]
    folder = prepare(tmp_path / "numbers" / "1.0.0", group(n=tensor("int64")), {"train": shards})
    return tfwire.tfds.open(folder)["train[5:]"]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of forks, by Python
def test_torch_reads_a_split(split, workers):
    loader = DataLoader(split, batch_size=20, num_workers=workers, shuffle=True)
    found = [n for batch in loader for n in batch["n"].tolist()]
    assert found != sorted(found)
    assert list(range(5, 200)) == sorted(found)


def test_grain_reads_a_split(split):
    dataset = grain.MapDataset.source(split).shuffle(seed=1)
    assert {*range(5, 200)} == {int(dataset[n]["n"]) for n in range(len(dataset))}
    sources = grain.DataLoader(
        data_source=split,
        sampler=grain.samplers.IndexSampler(len(split), num_epochs=1, seed=0, shuffle=True),
        worker_count=0,
    )
    assert list(range(5, 200)) == sorted(int(element["n"]) for element in sources)


def test_a_copy_in_another_process_opens_its_own_files(split):
    assert 12 == split[7]["n"]
    assert 12 == pickle.loads(pickle.dumps(split))[7]["n"]
