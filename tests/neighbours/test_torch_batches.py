"""How batches are collated, handed over by workers and made by threads: tfwire.torch."""

import pickle
import threading

import numpy as np
import pytest
import torch
from sample import COUNT, SPEC, columns
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Subset,
    default_collate,
)

import tfwire as tfw
from helpers.reading import damage
from tfwire.torch import (
    StringTensor,
    TFRecordIterableDataset,
    TFRecordMapDataset,
    ThreadLoader,
    as_tensors,
    collate,
)

ROWS = [
    {"at": [1, 2], "tags": [1, 2], "labels": [1, 2], "words": [b"a", b"bc"], "name": b"one"},
    {"tags": [], "labels": [], "words": [], "name": b""},
    {"at": [7], "tags": [3], "labels": [3], "words": [b"def"], "name": b"three"},
]
VARYING = {
    "tags": tfw.VarLenFeature(tfw.int64),
    "sparse": tfw.SparseFeature("at", "at", tfw.int64, size=9),
    "ragged": tfw.RaggedFeature(tfw.int64, "labels"),
    "words": tfw.RaggedFeature(tfw.string),
    "name": tfw.FixedLenFeature([], tfw.string),
}


@pytest.fixture(scope="module")
def varying(tmp_path_factory):
    path = tmp_path_factory.mktemp("varying") / "data"
    tfw.write_records(path, ROWS)
    return str(path)


def plain(value):
    """A batch as lists, with the types of its columns."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, tuple):
        return type(value).__name__, [plain(part) for part in value]
    if isinstance(value, torch.Tensor):
        rows = [row.tolist() for row in value.unbind()] if value.is_nested else value.tolist()
        return str(value.dtype), rows
    if isinstance(value, (tfw.RaggedTensor, StringTensor)):
        return type(value).__name__, value.to_list()
    return value


EXPECTED = {
    "tags": [[0, 0], [0, 1], [2, 0]],
    "ragged": [[1, 2], [], [3]],
    "words": [[b"a", b"bc"], [], [b"def"]],
    "name": [b"one", b"", b"three"],
    "sparse": [[0, 1], [0, 2], [2, 7]],
}


def check_varying(batch):
    assert EXPECTED["tags"] == batch["tags"].indices.tolist()
    assert [1, 2, 3] == list(batch["tags"].values)
    assert [3, 2] == batch["tags"].dense_shape.tolist()
    assert EXPECTED["sparse"] == batch["sparse"].indices.tolist()
    assert [3, 9] == batch["sparse"].dense_shape.tolist()
    assert EXPECTED["ragged"] == batch["ragged"].to_list()
    assert EXPECTED["words"] == batch["words"].to_list()
    assert EXPECTED["name"] == batch["name"]
    assert isinstance(batch["ragged"].values, torch.Tensor)


# ---- Collating ----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("function", [None, collate])
@pytest.mark.parametrize("wrapped", ["at once", "concatenated", "subset", "copied"])
def test_items_of_any_length_make_the_batch_of_the_parser(varying, wrapped, function, workers):
    dataset = TFRecordMapDataset(varying, VARYING)
    if wrapped == "concatenated":
        first, rest = Subset(dataset, [0]), Subset(dataset, [1, 2])
        dataset = ConcatDataset([first, rest])
    elif wrapped == "subset":
        dataset = Subset(dataset, [0, 1, 2])
    elif wrapped == "copied":
        dataset = [pickle.loads(pickle.dumps(dataset[i])) for i in range(3)]
    options = {"collate_fn": function, "num_workers": workers}
    (batch,) = DataLoader(dataset, batch_size=3, **options)
    check_varying(batch)


def test_elements_of_a_stream_are_collated_by_torch(varying):
    spec = {key: VARYING[key] for key in ("tags", "name", "sparse")}
    stream = TFRecordIterableDataset(tfw.TFRecordDataset(varying).parse_example(spec))
    (batch,) = DataLoader(stream, batch_size=3)
    assert EXPECTED["tags"] == batch["tags"].indices.tolist()
    assert EXPECTED["sparse"] == batch["sparse"].indices.tolist()
    assert EXPECTED["name"] == batch["name"]


def test_ragged_rows_of_rows_are_collated():
    def of(rows):
        values = [value for row in rows for value in row]
        return tfw.RaggedTensor(np.array(values), np.cumsum([0, *map(len, rows)]))

    rows = [[[1], [2, 3]], [], [[], [4]]]
    parts = [of(row) for row in rows]
    assert (
        rows == default_collate(parts).to_list() == collate(list(map(as_tensors, parts))).to_list()
    )


def test_strings_of_items_keep_their_shape(tmp_path):
    """torch transposes lists."""
    tfw.write_records(tmp_path / "data", [{"w": [b"a", b"b"]}, {"w": [b"c", b"d"]}])
    dataset = TFRecordMapDataset(tmp_path / "data", {"w": tfw.FixedLenFeature([2], tfw.string)})
    expected = [[b"a", b"b"], [b"c", b"d"]]
    assert expected == dataset[:]["w"] == collate([dataset[0], dataset[1]])["w"]
    assert expected == default_collate([dataset[0], dataset[1]])["w"]


def test_items_that_do_not_fit_are_an_error(tmp_path):
    tfw.write_records(tmp_path / "data", [{"w": [1]}, {"w": [1, 2]}])
    spec = {"w": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True)}
    dataset = TFRecordMapDataset(tmp_path / "data", spec)
    with pytest.raises(ValueError, match="w: the items"):
        collate([dataset[0], dataset[1]])
    other = TFRecordMapDataset(tmp_path / "data", {"w": tfw.VarLenFeature(tfw.int64)})
    item = other[0]
    item["more"] = 1
    with pytest.raises(ValueError, match="different keys"):
        collate([other[0], item])


def test_a_batch_is_left_as_it_is():
    for batch in ({"x": 1}, (1, 2), torch.ones(2), [b"a"], [[b"a"], [b"b"]], []):
        assert batch is collate(batch)


# ---- Numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [None, True, False])
def test_many_numbers_are_a_batch(files, in_memory):
    dataset = TFRecordMapDataset(files, SPEC, in_memory=in_memory)
    for key in ([1, 2], (1, 2), slice(1, 3), np.array([1, 2]), torch.tensor([1, 2]), range(1, 3)):
        batch = dataset[key]
        assert [1, 2] == batch["id"].tolist()
        assert [b"name 1", b"name 2"] == batch["name"]
    assert [999, 0, 0] == dataset[[-1, 0, 0]]["id"].tolist()
    assert (0, 3) == tuple(dataset[[]]["x"].shape)
    items = dataset.__getitems__([5, -1])
    assert [5, 999] == [int(item["id"]) for item in items]
    for key in ([1, COUNT], [-COUNT - 1], COUNT):
        with pytest.raises(IndexError):
            dataset[key]
    for key in ("x", [1.5], [[1]], None):
        with pytest.raises(TypeError):
            dataset[key]
    records = list(tfw.read_records(files))
    assert records[1:3] == TFRecordMapDataset(files, in_memory=in_memory)[[1, 2]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sampler_may_give_whole_batches(files, workers):
    dataset = TFRecordMapDataset(files, SPEC)
    sampler = BatchSampler(RandomSampler(dataset), 64, drop_last=False)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None, num_workers=workers)
    ids = torch.cat([batch["id"] for batch in loader])
    assert list(range(COUNT)) == sorted(ids.tolist())


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_records_in_memory_need_no_file(tmp_path, compression):
    path = tmp_path / "data"
    tfw.write_records(path, [{"n": i} for i in range(9)], compression)
    spec = {"n": tfw.FixedLenFeature([], tfw.int64)}
    dataset = TFRecordMapDataset(path, spec, in_memory=True)
    copy = pickle.loads(pickle.dumps(dataset))
    path.unlink()
    for each in (dataset, copy):
        assert [8, 0, 4] == each[[8, 0, 4]]["n"].tolist()


def test_damage_comes_at_its_record_unless_all_is_asked_for(tmp_path):
    path = tmp_path / "data"
    tfw.write_records(path, [{"n": i} for i in range(9)])
    damage(path, -5)
    spec = {"n": tfw.FixedLenFeature([], tfw.int64)}
    dataset = TFRecordMapDataset(path, spec)
    assert [0, 7] == dataset[[0, 7]]["n"].tolist()
    with pytest.raises(tfw.DataLossError):
        dataset[[8]]
    with pytest.raises(tfw.DataLossError):
        TFRecordMapDataset(path, spec, in_memory=True)


# ---- Strings and ragged columns -----------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("style", ["map", "stream", "items"])
def test_strings_as_tensors(files, style, workers):
    if style == "stream":
        dataset = tfw.TFRecordDataset(files).batch(COUNT).parse_example(SPEC)
        dataset, size = TFRecordIterableDataset(dataset, strings="tensor"), None
    else:
        dataset, size = TFRecordMapDataset(files, SPEC, strings="tensor"), COUNT
    if style == "items":
        dataset = ConcatDataset([dataset])
    (batch,) = DataLoader(dataset, batch_size=size, num_workers=workers)
    names = columns(range(COUNT))["name"]
    strings = batch["name"]
    assert names == strings.to_list()
    assert (COUNT,) == tuple(strings.shape)
    assert COUNT == len(strings)
    assert (torch.uint8, torch.int64) == (strings.values.dtype, strings.lengths.dtype)
    assert names[3] == bytes(strings[3].tolist()) == bytes(strings[3 - COUNT].tolist())
    assert names[5:7] == strings[5:7].to_list()
    nested = torch.nested.nested_tensor_from_jagged(strings.values, strings.offsets)
    assert names[:3] == [bytes(row.tolist()) for row in nested.unbind()[:3]]
    strings.values[0] = 0  # the memory is the user's


def test_strings_of_any_rank_become_tensors():
    array = np.array([[b"a", b""], [b"bcd", "\u00e9"], [b"", b"x"]], object)
    strings = as_tensors(array, strings="tensor")
    assert [[b"a", b""], [b"bcd", "\u00e9".encode()], [b"", b"x"]] == strings.to_list()
    assert [b"bcd", "\u00e9".encode()] == strings[1].to_list()
    assert [[b"", b"x"]] == strings[2:].to_list()
    assert [] == strings[3:].to_list()
    assert b"" == as_tensors(b"", strings="tensor").to_list()
    column = tfw.BytesColumn(b"catdog", [3, 3, 6])[:2]
    assert [b"", b"dog"] == as_tensors(column, strings="tensor").to_list()
    assert strings.to_list() == pickle.loads(pickle.dumps(strings)).to_list()
    assert strings.to("cpu").to_list() == strings.to_list()
    with pytest.raises(IndexError):
        strings[3]
    with pytest.raises(ValueError, match="step"):
        strings[::2]
    with pytest.raises(ValueError, match="add up"):
        StringTensor(strings.values, strings.lengths + 1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("wrapped", [False, True])
def test_ragged_columns_as_nested_tensors(varying, wrapped, workers):
    dataset = TFRecordMapDataset(varying, VARYING, nested=True, strings="tensor")
    dataset = ConcatDataset([dataset]) if wrapped else dataset
    (batch,) = DataLoader(dataset, batch_size=3, num_workers=workers)
    assert batch["ragged"].is_nested
    assert EXPECTED["ragged"] == [row.tolist() for row in batch["ragged"].unbind()]
    assert EXPECTED["words"] == [batch["words"][i].to_list() for i in range(len(batch["words"]))]


def test_pinned_memory_reaches_every_tensor(varying, monkeypatch):
    """Without a GPU, torch has none: what it would do is counted."""
    pinned = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self, *a: pinned.append(self) or self)
    batch = TFRecordMapDataset(varying, VARYING, strings="tensor")[:]
    found = torch.utils.data._utils.pin_memory.pin_memory(batch)
    assert plain(batch) == plain(found)
    # Three of each sparse column, the values and lengths of strings, and row splits.
    assert 3 + 3 + 2 + 3 + 2 == len(pinned)


# ---- Handing over -------------------------------------------------------------------------------


class Given(IterableDataset):
    """Elements of a tfwire dataset that are given."""

    def __init__(self, elements):
        self.elements = elements

    def __iter__(self):
        from tfwire.torch._worker_batches import handed_over

        return map(handed_over, self.elements)


def test_every_kind_of_value_passes_a_worker():
    ragged = as_tensors(tfw.RaggedTensor(np.arange(5), np.array([0, 2, 5])))
    sparse = tfw.SparseTensor(torch.tensor([[0, 1]]), [b"x"], torch.tensor([2, 3]))
    element = {
        **{str(d): torch.ones(3, 2).to(d) for d in (torch.bool, torch.uint8, torch.bfloat16)},
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(1.5),
        "strided": torch.arange(12).reshape(3, 4).T[::2],
        "nested": torch.nested.nested_tensor_from_jagged(torch.arange(3), torch.tensor([0, 1, 3])),
        "ragged": ragged,
        "sparse": sparse,
        "strings": as_tensors(np.array([[b"a"], [b"bc"]], object), strings="tensor"),
        7: {"inner": (torch.ones(1), "text", None)},
        "grad": torch.ones(2, requires_grad=True).detach(),
        "large": torch.arange(200_000),
    }
    elements = [element, {"small": torch.arange(3)}, (torch.ones(2), b"x")]
    found = list(DataLoader(Given(elements), None, num_workers=1, collate_fn=collate))
    assert list(map(plain, elements)) == list(map(plain, found))
    assert [dict, dict, tuple] == list(map(type, found))
    found[0]["strided"] += 1  # the memory is the user's
    found[1]["small"] += 1


def test_a_large_batch_goes_through_shared_memory():
    large = {"x": torch.arange(10**6), "y": torch.ones(3)}
    (found,) = DataLoader(Given([large]), None, num_workers=1)
    assert torch.equal(large["x"], found["x"])
    assert found["x"].untyped_storage().data_ptr() != large["x"].untyped_storage().data_ptr()


# ---- Threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"batch_size": 7, "drop_last": True}])
def test_threads_give_the_batches_of_a_loader(files, options, threads):
    options = {"batch_size": 64, **options}
    dataset = TFRecordMapDataset(files, SPEC)
    torch.manual_seed(5)
    expected = list(DataLoader(dataset, **options))
    torch.manual_seed(5)
    loader = ThreadLoader(dataset, num_threads=threads, **options)
    assert len(expected) == len(loader)
    assert list(map(plain, expected)) == list(map(plain, loader))
    generator = torch.Generator().manual_seed(1)
    again = torch.Generator().manual_seed(1)
    if "shuffle" in options:
        expected = list(DataLoader(dataset, generator=generator, **options))
        found = list(ThreadLoader(dataset, generator=again, **options))
        assert list(map(plain, expected)) == list(map(plain, found))


def test_threads_of_any_dataset_and_sampler(files):
    dataset = [{"n": i} for i in range(10)]
    found = list(ThreadLoader(dataset, 4, sampler=range(9, -1, -1), num_threads=3))
    assert [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]] == [batch["n"].tolist() for batch in found]
    found = list(ThreadLoader(dataset, batch_sampler=[[1, 2], [3]]))
    assert [[1, 2], [3]] == [batch["n"].tolist() for batch in found]
    found = list(ThreadLoader(dataset, None, num_threads=3))
    assert dataset == found
    stream = TFRecordIterableDataset(tfw.TFRecordDataset(files).batch(30).parse_example(SPEC))
    found = list(ThreadLoader(stream, None))
    assert list(range(COUNT)) == [i for batch in found for i in batch["id"].tolist()]
    single = TFRecordIterableDataset(tfw.TFRecordDataset(files).parse_example(SPEC))
    found = list(ThreadLoader(single, 300, drop_last=True))
    assert [300, 300, 300] == [len(batch["id"]) for batch in found]


def test_passes_of_threads_are_epochs(files):
    dataset = tfw.TFRecordDataset(files, indexed=True).shuffle(10**6, seed=1)
    stream = TFRecordIterableDataset(dataset.batch(64).parse_example(SPEC))
    loader = ThreadLoader(stream, None)
    epochs = [[i for batch in loader for i in batch["id"].tolist()] for _ in range(2)]
    assert epochs[0] != epochs[1]
    stream.set_epoch(0)
    assert epochs[0] == [i for batch in DataLoader(stream, None) for i in batch["id"].tolist()]


def test_an_error_of_a_thread_comes_at_its_batch():
    class Failing(torch.utils.data.Dataset):
        def __len__(self):
            return 10

        def __getitem__(self, index):
            if index == 5:
                raise KeyError("odd")
            return index

    batches = iter(ThreadLoader(Failing(), 2, num_threads=3))
    assert [[0, 1], [2, 3]] == [next(batches).tolist() for _ in range(2)]
    with pytest.raises(KeyError, match="odd"):
        next(batches)
    assert [] == list(batches)


def test_threads_end_with_their_pass(files):
    dataset = TFRecordMapDataset(files, SPEC)
    before = threading.active_count()
    batches = iter(ThreadLoader(dataset, 2, num_threads=4))
    next(batches)
    workers = [t for t in threading.enumerate() if t.name.startswith("tfwire")]
    assert threading.active_count() > before
    del batches
    for thread in workers:
        thread.join(30)
        assert not thread.is_alive()


def test_wrong_arguments_are_refused_at_once(files):
    dataset = TFRecordMapDataset(files, SPEC)
    for wrong in ({"num_threads": 0}, {"prefetch_factor": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match=r"num_threads|prefetch_factor|batch_size"):
            ThreadLoader(dataset, **wrong)
    with pytest.raises(TypeError, match="num_threads"):
        ThreadLoader(dataset, num_threads=1.5)
    with pytest.raises(TypeError):
        ThreadLoader(dataset, num_workers=2)
    with pytest.raises(ValueError, match="'bytes'"):
        as_tensors(1, strings="bytes")
    with pytest.raises(TypeError, match="nested"):
        as_tensors(1, nested="yes")
    with pytest.raises(ValueError, match="strings"):
        TFRecordMapDataset(files, SPEC, strings="bytes")
    with pytest.raises(TypeError, match="in_memory"):
        TFRecordMapDataset(files, SPEC, in_memory=1)
    with pytest.raises(ValueError, match="strings"):
        TFRecordIterableDataset(tfw.Dataset.range(1), strings=None)
