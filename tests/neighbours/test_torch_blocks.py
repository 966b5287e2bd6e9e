"""Batches in one block of memory each: ThreadLoader with a device, on the CPU."""

import gc
import math
import time
import weakref

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from sample import COUNT, FEATURES, SPEC, columns
from test_torch_batches import plain

import tfwire as tfw
from helpers.reading import damage
from tfwire.torch import (
    StringTensor,
    TFRecordIterableDataset,
    TFRecordMapDataset,
    ThreadLoader,
    _blocks,
    collate,
)
from tfwire.torch._blocks import BlockLayout

THREADS = [1, 2, 8]
DTYPES = [torch.bool, torch.uint8, torch.bfloat16, torch.float32, torch.int64, torch.complex128]


def loaded(dataset, batch_size=None, **options):
    torch.manual_seed(7)
    return list(ThreadLoader(dataset, batch_size, **options))


def stream(files, spec=SPEC, size=64, shuffled=False, **options):
    dataset = tfw.TFRecordDataset(files, indexed=shuffled)
    if shuffled:
        dataset = dataset.shuffle(10**6, seed=1)
    return TFRecordIterableDataset(dataset.batch(size).parse_example(spec), **options)


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, StringTensor):
        return [value.values, value.lengths]
    if isinstance(value, tfw.RaggedTensor):
        return [*tensors(value.values), *tensors(value.row_splits)]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [each for part in value for each in tensors(part)]
        if isinstance(value, tuple | list)
        else []
    )


# ---- Where tensors lie --------------------------------------------------------------------------

SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


@given(st.lists(st.tuples(st.sampled_from(DTYPES), SHAPES), max_size=9))
@settings(deadline=None)
def test_a_layout_gives_each_tensor_its_own_aligned_place(wanted):
    layout = BlockLayout(tuple(wanted))
    taken = set()
    for (dtype, shape), at in zip(wanted, layout.offsets, strict=True):
        length = math.prod(shape) * dtype.itemsize
        assert at % 64 == 0
        assert at + length <= layout.size
        assert taken.isdisjoint(range(at, at + length))
        taken |= set(range(at, at + length))
    # Also within a larger block.
    whole = torch.arange(layout.size + 128).to(torch.uint8)
    block = whole[64 : 64 + layout.size]
    for (dtype, shape), at, view in zip(wanted, layout.offsets, layout.views(block), strict=True):
        assert (dtype, shape) == (view.dtype, tuple(view.shape))
        assert view.is_contiguous() or not view.numel()
        length = math.prod(shape) * dtype.itemsize
        assert view.flatten().view(torch.uint8).equal(block[at : at + length])


# ---- The same batches ---------------------------------------------------------------------------


@given(
    keys=st.lists(st.sampled_from(sorted(FEATURES)), min_size=1, unique=True),
    size=st.sampled_from([1, 7, 64, 200, 300]),
    threads=st.sampled_from(THREADS),
    strings=st.sampled_from(["list", "tensor"]),
    nested=st.booleans(),
    kind=st.sampled_from(["stream", "shuffled", "numbers", "numbers in files", "mapped"]),
)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_any_specification_gives_the_same_batches(
    mixed, keys, size, threads, strings, nested, kind
):
    spec, form = {key: FEATURES[key] for key in keys}, {"strings": strings, "nested": nested}

    def dataset():
        if "numbers" in kind:
            return TFRecordMapDataset(mixed, spec, in_memory=kind == "numbers", **form)
        if kind == "mapped":
            parsed = tfw.TFRecordDataset(mixed).batch(size).parse_example(spec)
            pairs = parsed.map(lambda batch: (batch, {"first": [batch[keys[0]]]}))
            return TFRecordIterableDataset(pairs, **form)
        return stream(mixed, spec, size, kind == "shuffled", **form)

    options = {"num_threads": threads}
    if "numbers" in kind:
        options |= {"batch_size": size, "shuffle": True}
    expected = loaded(dataset(), **options)
    found = loaded(dataset(), device="cpu", **options)
    assert list(map(plain, expected)) == list(map(plain, found))
    for batch in found:
        parts = [each for each in tensors(batch) if not each.is_nested]
        assert len({each.untyped_storage().data_ptr() for each in parts if each.numel()}) <= 1
        assert all(each.data_ptr() % 64 == 0 for each in parts if each.numel())


def test_any_loader_has_blocks(files):
    rows = [{"n": i, "x": (torch.ones(2) * i, {"y": np.float32(i)})} for i in range(10)]
    expected = loaded(rows, 4)
    assert list(map(plain, expected)) == list(map(plain, loaded(rows, 4, device="cpu")))
    found = loaded(rows, device="cpu")  # no batches
    assert plain(rows[3]["x"][0]) == plain(found[3]["x"][0])
    single = TFRecordIterableDataset(tfw.TFRecordDataset(files).parse_example(SPEC))
    expected, found = loaded(single, 300), loaded(single, 300, device="cpu")
    assert list(map(plain, expected)) == list(map(plain, found))
    numbers = loaded(stream(files), device="cpu", collate_fn=lambda batch: [batch["id"]])
    assert list(range(COUNT)) == [i for [batch] in numbers for i in batch.tolist()]
    assert [b"a"] == loaded([b"a"], device="cpu")


def test_what_cannot_lie_in_a_block_stays_as_it_is():
    class Text(str):
        __slots__ = ()

    learned = torch.ones(2, requires_grad=True)
    sparse = torch.eye(2).to_sparse()
    item = {"learned": learned, "sparse": sparse, "x": torch.ones(3), "text": Text("a"), "n": None}
    [found] = loaded([item], device="cpu")
    assert found["learned"] is learned
    assert found["sparse"] is sparse
    assert (Text, None) == (type(found["text"]), found["n"])
    assert found["x"].untyped_storage().data_ptr() != item["x"].untyped_storage().data_ptr()


# ---- Blocks that are held -----------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_block_is_never_written_to_while_a_tensor_lives(files, threads, shuffled):
    dataset = stream(files, {"id": SPEC["id"], "x": SPEC["x"]}, 5, shuffled)
    loader = ThreadLoader(dataset, None, num_threads=threads, device="cpu")
    order = np.random.default_rng(threads)
    held = {}
    for batch in loader:
        key = ("id", "x")[order.integers(2)]  # one tensor keeps the block
        held[batch["id"][0].item()] = key, batch["id"].tolist(), batch[key]
        if order.random() < 0.3:
            key, ids, tensor = held.pop(order.choice(list(held)))
            assert columns(ids)[key].tolist() == tensor.tolist()
        for key, ids, tensor in held.values():
            assert columns(ids)[key].tolist() == tensor.tolist()
    del loader
    for key, ids, tensor in held.values():
        assert columns(ids)[key].tolist() == tensor.tolist()


@pytest.mark.parametrize("untracked", [True, False])
def test_tensors_of_a_block_are_independent(files, untracked, monkeypatch):
    """For gradients, as tensors with memory of their own are."""
    if not untracked:
        monkeypatch.setattr(_blocks, "_untracked", None)
    spec = {key: tfw.FixedLenFeature([], tfw.int64) for key in ["id"]} | {"x": SPEC["x"]}
    batch = next(iter(ThreadLoader(stream(files, spec), None, device="cpu")))
    x, y = batch["x"], batch["id"]
    weight = torch.ones(3, requires_grad=True)
    x.mul_(weight)
    x.sum().backward()
    assert weight.grad.tolist() == columns(range(64))["x"].sum(0).tolist()
    assert not y.requires_grad
    assert y.is_leaf
    batch = next(iter(ThreadLoader(stream(files, spec), None, device="cpu")))
    x = batch["x"].requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 64


def test_a_pass_that_is_dropped_keeps_nothing(files):
    dataset, opened = stream(files), []
    iterate = dataset._iterate

    def noted(*arguments):
        found = iterate(*arguments)
        opened.append(weakref.ref(found))
        return found

    dataset._iterate = noted
    loader = ThreadLoader(dataset, None, num_threads=2, device="cpu")
    for _ in loader:
        break
    deadline = time.monotonic() + 30
    while opened[0]() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)  # its threads end
    assert opened[0]() is None
    assert 1 == loader.state_dict()["batches"]


def test_an_error_comes_at_its_batch(files, tmp_path):
    path = tmp_path / "data"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns(range(100)))
    damage(path, int(tfw.RecordIndex.build(path).offsets[50]) + 20)
    batches = iter(ThreadLoader(stream(path, size=8), None, num_threads=3, device="cpu"))
    found = [next(batches)["id"].tolist() for _ in range(6)]
    assert list(range(48)) == [i for batch in found for i in batch]
    assert [48, 49] == next(batches)["id"].tolist()
    with pytest.raises(tfw.DataLossError):
        next(batches)
    wrong = {"id": tfw.FixedLenFeature([2], tfw.int64)}
    batches = iter(ThreadLoader(stream(files, wrong), None, device="cpu"))
    with pytest.raises(tfw.ParseError, match="id"):
        next(batches)


# ---- Arguments ----------------------------------------------------------------------------------


def test_a_function_of_batches(files):
    def halved(batch):
        return {"x": batch["x"].to(torch.bfloat16) / 2}

    loader = ThreadLoader(stream(files), None, device=torch.device("cpu"), device_fn=halved)
    found = torch.cat([batch["x"] for batch in loader])
    expected = torch.from_numpy(columns(range(COUNT))["x"]).to(torch.bfloat16) / 2
    assert expected.equal(found)

    def failing(batch):
        raise KeyError(int(batch["id"][0]))

    batches = iter(ThreadLoader(stream(files), None, device="cpu", device_fn=failing))
    with pytest.raises(KeyError, match="0"):
        next(batches)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"device": "cuda"}, ValueError, "no device of CUDA"),
        ({"device": 0}, ValueError, "no device of CUDA"),
        ({"device": torch.device("cuda", 3)}, ValueError, "no device of CUDA"),
        ({"device": "gpu"}, ValueError, "'gpu' is no device"),
        ({"device": -1}, ValueError, "-1"),
        ({"device": "meta"}, ValueError, "'meta'"),
        ({"device": True}, TypeError, "bool"),
        ({"device": 1.5}, TypeError, "float"),
        ({"device_fn": collate}, ValueError, "needs a device"),
        ({"device_fn": 3, "device": "cpu"}, TypeError, "device_fn"),
    ],
)
def test_wrong_arguments_are_refused(files, wrong, error, match, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(error, match=match):
        ThreadLoader(stream(files), None, **wrong)


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"device": "cpu", "pin_memory": True}])
@pytest.mark.parametrize("form", [{}, {"strings": "tensor"}])
def test_parts_of_datasets(files, form, options):
    from torch.utils.data import ConcatDataset, Subset

    dataset = TFRecordMapDataset(files, SPEC, **form)
    part = Subset(Subset(dataset, range(50, 150)), range(0, 100, 3))
    for some in (part, ConcatDataset([part, dataset])):
        expected = list(map(plain, loaded(some, 7)))
        assert expected == list(map(plain, loaded(some, 7, **options)))


def test_batches_of_several_datasets(files):
    class Alternating(torch.utils.data.Dataset):
        def __init__(self):
            keys = list(SPEC)
            self.parts = [
                TFRecordMapDataset(files, {key: SPEC[key] for key in some})
                for some in (keys, keys[::-1], keys[:1])
            ]

        def __len__(self):
            return 90

        def __getitems__(self, numbers):
            return self.parts[numbers[0] // 10 % 3].__getitems__(numbers)

    dataset = Alternating()
    expected = list(map(plain, loaded(dataset, 10)))
    assert expected == list(map(plain, loaded(dataset, 10, device="cpu")))
