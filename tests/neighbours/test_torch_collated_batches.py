"""Loaders that collate batches again, as DataLoader does unless batch_size is None.

torch's default_collate transposes lists: string i of one batch came beside string i of the others,
while tensors were stacked."""

import itertools

import accelerate
import numpy as np
import pytest
import torch
from lightning.fabric import Fabric
from sample import COUNT, SPEC
from torch.utils.data import BatchSampler, ChainDataset, DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import tfwire as tfw
from tfwire.torch import TFRecordIterableDataset, TFRecordMapDataset, ThreadLoader, collate

DENSE = {key: SPEC[key] for key in ("id", "x")}
HINT = "batch_size=None"


def parsed(files, features=SPEC):
    return tfw.TFRecordDataset(files).batch(4).parse_example(features)


def unbatched(files):
    return parsed(files).unbatch()


# Pipelines whose elements are batches with strings.
BATCHED = {
    "batch, parse": parsed,
    "parse, batch": lambda files: tfw.TFRecordDataset(files).parse_example(SPEC).batch(4),
    "records": lambda files: tfw.TFRecordDataset(files).batch(4),
    "padded": lambda files: unbatched(files).padded_batch(4),
    "bucket": lambda files: unbatched(files).bucket_by_sequence_length(
        lambda row: len(row["name"]), [7], [4, 4]
    ),
    "shuffle_batch": lambda files: unbatched(files).shuffle_batch(4, 9, 5),
    "a tuple": lambda files: parsed(files).map(lambda batch: (batch["id"], batch["name"])),
    "a list": lambda files: parsed(files).map(lambda batch: [batch["id"], batch["name"]]),
    "nested": lambda files: parsed(files).map(lambda batch: {"a": {"b": (batch["name"],)}}),
    "lists of bytes": lambda files: parsed(files).map(lambda b: {"n": list(b["name"])}),
    "lists of text": lambda files: parsed(files).map(
        lambda batch: {"n": [name.decode() for name in batch["name"]]}
    ),
    "lists of lists": lambda files: parsed(files).map(
        lambda batch: {"n": [[name, b""] for name in batch["name"]]}
    ),
    "enumerate": lambda files: parsed(files).enumerate(),
    "zip": lambda files: tfw.Dataset.zip((parsed(files), tfw.Dataset.range(9))),
    "concatenate": lambda files: parsed(files).concatenate(parsed(files)),
    "sampled": lambda files: tfw.Dataset.sample_from_datasets([parsed(files)] * 2, seed=1),
    "later stages": lambda files: parsed(files).cache().take(9).repeat(2).shuffle(3).prefetch(2),
}


class Wrapped(IterableDataset):
    """A dataset of the user over one of tfwire."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        for batch in self.dataset:
            yield batch["x"], batch["name"]


class ByNumber(torch.utils.data.Dataset):
    """The same by number."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __getitem__(self, number):
        return self.dataset[number]


LOADERS = {
    "DataLoader": DataLoader,
    "collate": lambda dataset, **options: DataLoader(dataset, collate_fn=collate, **options),
    "a worker": lambda dataset, **options: DataLoader(dataset, num_workers=1, **options),
    "StatefulDataLoader": StatefulDataLoader,
    "ThreadLoader": ThreadLoader,
    "accelerate": lambda dataset, **options: accelerate.Accelerator(cpu=True).prepare(
        DataLoader(dataset, **options)
    ),
    "Fabric": lambda dataset, **options: Fabric(accelerator="cpu").setup_dataloaders(
        DataLoader(dataset, **options)
    ),
    "chained": lambda dataset, **options: DataLoader(ChainDataset([dataset]), **options),
}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}], ids=["default", "3"])
def test_batches_with_strings_are_not_collated_again(files, name, options):
    for function in (None, collate):
        dataset = TFRecordIterableDataset(BATCHED[name](files[:1]))
        loader = DataLoader(dataset, collate_fn=function, **options)
        if function is collate and name == "records":  # a list of batches stays one
            assert [4] * options.get("batch_size", 1) == list(map(len, next(iter(loader))))
            continue
        with pytest.raises(ValueError, match=HINT):
            next(iter(loader))


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # called by torchdata
@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_says_what_to_do(files, name):
    dataset = TFRecordIterableDataset(parsed(files))
    with pytest.raises(ValueError, match=HINT):
        next(iter(LOADERS[name](dataset)))
    first = next(iter(LOADERS[name](dataset, batch_size=None)))
    assert first["name"] == [b"name %d" % i for i in first["id"]]
    assert (4, 3) == first["x"].shape


def test_a_dataset_of_the_user_over_batches(files):
    dataset = Wrapped(TFRecordIterableDataset(parsed(files)))
    with pytest.raises(ValueError, match=HINT):
        next(iter(DataLoader(dataset, batch_size=2)))
    batches = DataLoader(dataset, batch_size=None, num_workers=1)
    assert [b"name 4", b"name 5", b"name 6", b"name 7"] == next(itertools.islice(batches, 1, 2))[1]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("function", [None, collate, dict])
def test_without_collating_the_batch_is_a_dict_of_lists(files, function, workers):
    dataset = TFRecordIterableDataset(parsed(files))
    options = {"batch_size": None, "collate_fn": function, "num_workers": workers}
    batch = next(iter(DataLoader(dataset, **options)))
    assert type(batch) is dict
    assert isinstance(batch["name"], list)
    assert type(batch["name"]) is list or (workers == 0 and function is not None)
    assert [b"name 0", b"name 1", b"name 2", b"name 3"] == batch["name"]
    assert tfw.encode_columns({"name": batch["name"]}) == tfw.encode_columns(
        {"name": list(batch["name"])}
    )


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("function", [None, collate])
def test_strings_of_elements_that_are_no_batches_keep_their_shape(tmp_path, function, workers):
    tfw.write_records(tmp_path / "data", [{"w": [b"a", b"b"]}, {"w": [b"c", b"d"]}])
    features = {"w": tfw.FixedLenFeature([2], tfw.string)}
    rows = tfw.TFRecordDataset(tmp_path / "data").parse_example(features)
    for dataset in (rows, rows.batch(2).unbatch()):
        stream = TFRecordIterableDataset(dataset)
        options = {"collate_fn": function, "num_workers": workers}
        (batch,) = DataLoader(stream, batch_size=2, **options)
        assert {"w": [[b"a", b"b"], [b"c", b"d"]]} == batch


def test_batches_of_numbers_are_stacked(files):
    """Nothing is out of place: training.md names the axis."""
    dataset = TFRecordIterableDataset(parsed(files, DENSE))
    batch = next(iter(DataLoader(dataset, batch_size=2)))
    assert [[0, 1, 2, 3], [4, 5, 6, 7]] == batch["id"].tolist()
    assert (2, 4, 3) == batch["x"].shape
    assert torch.equal(batch["x"][..., 0], batch["id"].float())
    assert (1, 4, 3) == next(iter(DataLoader(dataset)))["x"].shape


@pytest.mark.parametrize("features", [SPEC, None])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_sampler_that_gives_batches(files, features, batch_size, drop_last):
    dataset = TFRecordMapDataset(files, features)
    sampler = BatchSampler(range(COUNT), 300, drop_last)
    loader = DataLoader(dataset, batch_size, sampler=sampler)
    with pytest.raises(TypeError, match=HINT):
        list(loader)
    if features is not None:
        loader = DataLoader(ByNumber(dataset), batch_size, sampler=sampler)
        with pytest.raises(ValueError, match=HINT):
            next(iter(loader))
    numbers = DataLoader(dataset, batch_size=2, sampler=np.arange(3))
    assert 2 == len(list(numbers))
