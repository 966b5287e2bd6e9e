"""Batches on a device, with CUDA played by the CPU: streams whose copies are late, and events that
complete in any order."""

import contextlib
import random
import threading

import pytest
import torch
from sample import COUNT, FEATURES, SPEC
from test_torch_batches import plain
from test_torch_blocks import THREADS, stream, tensors

import tfwire as tfw
from tfwire._interface.messages import as_device
from tfwire.torch import TFRecordMapDataset, ThreadLoader, _devices
from tfwire.torch._devices import PinnedRing

GARBAGE = 0xA5


class Stream:
    """Steps that are taken when somebody waits for them, or by chance."""

    def __init__(self, device=None):
        self.lock = threading.Lock()
        self.steps = []
        self.done = 0

    def add(self, step):
        with self.lock:
            self.steps.append(step)

    def run(self, until):
        with self.lock:
            while self.done < until:
                self.steps[self.done]()
                self.steps[self.done] = None
                self.done += 1

    def wait_event(self, event):
        event.synchronize()

    def wait_stream(self, stream):
        self.add(lambda: stream.run(len(stream.steps)))


class Event:
    chance = random.Random(1)

    def __init__(self, blocking=False):
        pass

    def record(self, stream):
        self.stream, self.place = stream, len(stream.steps)

    def query(self):
        if self.chance.random() < 0.3:
            self.stream.run(min(self.place, self.stream.done + 1))
        return self.stream.done >= self.place

    def synchronize(self):
        self.stream.run(self.place)


class FakeCuda:
    """Two devices. The memory of the second is the CPU's, but nothing arrives before its time.

    Attributes:
        used, users: Tensors of which the allocator was told that a stream uses them; with it.
        copies: How many there were.
        pinned: Addresses of pinned blocks.
        streams: Those that were made.
    """

    def __init__(self, monkeypatch):
        self.consumer, self.of_thread = Stream(), threading.local()
        self.used, self.copies, self.pinned, self.streams = [], 0, set(), []
        self.users = []
        given = {
            "is_available": lambda: True,
            "device_count": lambda: 2,
            "current_device": lambda: 1,
            "current_stream": self.current_stream,
            "stream": self.within,
            "device": lambda device: contextlib.nullcontext(),
            "Stream": self.new_stream,
            "Event": Event,
        }
        for name, function in given.items():
            monkeypatch.setattr(torch.cuda, name, function)
        monkeypatch.setattr(_devices, "_copied", self.copied)
        monkeypatch.setattr(_devices, "_used_by", self.used_by)
        monkeypatch.setattr(_devices, "pinned_block", self.pinned_block)
        monkeypatch.setattr(_devices, "_is_on", lambda value, device: True)

    def new_stream(self, device):
        self.streams.append(Stream(device))
        return self.streams[-1]

    @contextlib.contextmanager
    def within(self, stream):
        before = self.current_stream(torch.device("cuda", 1))
        self.of_thread.stream = stream
        try:
            yield
        finally:
            self.of_thread.stream = before

    def used_by(self, stream, found):
        self.used += found
        self.users += [(stream, each) for each in found]

    def current_stream(self, device):
        assert torch.device("cuda", 1) == device
        return getattr(self.of_thread, "stream", self.consumer)

    def pinned_block(self, size):
        block = torch.empty(size, dtype=torch.uint8)
        self.pinned.add(block.data_ptr())
        return block

    def copied(self, block, device):
        assert torch.device("cuda", 1) == device
        assert block.untyped_storage().data_ptr() in self.pinned
        assert block.numel() % 64 == 0
        copy = torch.full_like(block, GARBAGE)
        self.copies += 1
        self.of_thread.stream.add(lambda: copy.copy_(block))
        return copy


@pytest.fixture
def cuda(monkeypatch):
    return FakeCuda(monkeypatch)


def check_sent(cuda, batch):
    """Its tensors are views of one block, of which the allocator was told."""
    storages = {each.untyped_storage().data_ptr() for each in tensors(batch) if each.numel()}
    assert storages <= {each.data_ptr() for each in cuda.used}
    assert len(storages) <= 1


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", ["stream", "shuffled", "numbers"])
def test_batches_arrive_whole(files, cuda, threads, kind):
    def loader(**options):
        if kind == "numbers":
            torch.manual_seed(1)
            dataset = TFRecordMapDataset(files, SPEC)
            return ThreadLoader(dataset, 7, shuffle=True, num_threads=threads, **options)
        dataset = stream(files, size=7, shuffled=kind == "shuffled", strings="tensor")
        return ThreadLoader(dataset, None, num_threads=threads, **options)

    expected = list(map(plain, loader()))
    held = []
    for batch in loader(device="cuda"):
        assert expected[len(held)] == plain(batch)
        check_sent(cuda, batch)
        held.append(batch)
    assert expected == list(map(plain, held))
    assert len(expected) == cuda.copies
    assert len(cuda.pinned) <= threads + 2


def test_all_kinds_of_features_arrive(mixed, cuda):
    for form in ({"strings": "tensor"}, {"nested": True}):
        expected = list(ThreadLoader(stream(mixed, FEATURES, 30, **form), None))
        found = list(ThreadLoader(stream(mixed, FEATURES, 30, **form), None, device=1))
        assert list(map(plain, expected)) == list(map(plain, found))


def test_a_function_runs_between_copy_and_consumer(files, cuda):
    def doubled(batch):
        found = torch.full_like(batch["id"], -1)
        cuda.of_thread.stream.add(lambda: torch.mul(batch["id"], 2, out=found))
        return {"id": found}

    loader = ThreadLoader(stream(files), None, device="cuda", device_fn=doubled, num_threads=3)
    found = []
    for batch in loader:
        found += batch["id"].tolist()
        assert any(batch["id"] is each for each in cuda.used)
    assert list(range(0, 2 * COUNT, 2)) == found


def test_what_is_on_the_device_already_stays_there(files, cuda):
    made = torch.eye(3).to_sparse()
    made_late = torch.full((3,), GARBAGE)
    cuda.consumer.add(lambda: made_late.fill_(1))

    def collated(batch):
        return {"id": batch["id"], "made": made}

    def summed(batch):
        found = torch.full((), GARBAGE)
        cuda.of_thread.stream.add(lambda: found.fill_(int(made_late.sum())))
        return {**batch, "sum": found}

    options = {"device": "cuda", "collate_fn": collated, "device_fn": summed}
    for batch in ThreadLoader(stream(files), None, **options):
        assert batch["made"] is made
        assert 3 == batch["sum"]
    assert any(each is made for each in cuda.used)


@pytest.mark.parametrize("changes", [False, True])
def test_what_threads_make_on_the_device_is_there_for_the_consumer(cuda, changes):
    late, device = [], torch.device("cuda", 1)

    def made(number):
        assert cuda.current_stream(device) is cuda.consumer
        ready = torch.full((), GARBAGE)
        cuda.consumer.add(lambda: ready.fill_(number))
        late.append(ready)
        return {"x": torch.full((2,), number), "made": torch.eye(3).to_sparse()}

    def changed(batch):
        assert cuda.current_stream(device) is cuda.streams[0]
        assert any(s is cuda.streams[0] and t is batch["made"] for s, t in cuda.users)
        return batch

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, number):
            return made(number)

    function = changed if changes else None
    loader = ThreadLoader(Rows(), None, device="cuda", device_fn=function, num_threads=1)
    for _ in range(2):
        del late[:]
        for number, batch in enumerate(loader):
            assert [number, number] == batch["x"].tolist()
            assert number == int(late[number])
            assert any(s is cuda.streams[0] and t is batch["made"] for s, t in cuda.users)
    assert 1 == len(cuda.streams)  # memory is a stream's


def test_an_error_comes_at_its_batch_and_its_block_comes_back(files, cuda):
    def collated(batch):
        if 500 in batch["id"]:
            raise KeyError("odd")
        return batch

    options = {"device": "cuda", "collate_fn": collated, "num_threads": 2}
    batches = iter(ThreadLoader(stream(files, size=10), None, **options))
    assert list(range(500)) == [i for _ in range(50) for i in next(batches)["id"].tolist()]
    with pytest.raises(KeyError, match="odd"):
        next(batches)
    assert [] == list(batches)
    assert len(cuda.pinned) <= 4


def test_larger_batches_take_larger_blocks(cuda):
    rows = [{"x": torch.full((size,), size)} for size in (1, 10**5, 10, 10**6, 0, 3 * 10**4)]
    found = [batch["x"] for batch in ThreadLoader(rows, None, device="cuda", num_threads=3)]
    assert [row["x"].tolist() for row in rows] == [x.tolist() for x in found]


# ---- The ring -----------------------------------------------------------------------------------


class Late:
    """An event that ends when it is told, or when somebody waits for it."""

    def __init__(self):
        self.ended = self.waited_for = False

    def query(self):
        return self.ended

    def synchronize(self):
        self.ended = self.waited_for = True


def test_a_block_is_used_again_when_its_copy_has_ended():
    ring = PinnedRing(3, lambda size: torch.empty(size, dtype=torch.uint8))
    blocks, events = [ring.take(100) for _ in range(3)], [Late() for _ in range(3)]
    assert 3 == len({block.data_ptr() for block in blocks})
    for block, event in zip(blocks, events, strict=True):
        ring.give_back(block, event)
    events[1].ended = True  # in odd order
    assert ring.take(100) is blocks[1]
    events[2].ended = True
    assert ring.take(100) is blocks[2]
    assert not events[0].waited_for
    assert ring.take(100) is blocks[0]
    assert events[0].waited_for
    spare = ring.take(100)  # never a deadlock
    assert all(spare is not block for block in blocks)
    ring.give_back(blocks[0])  # of a batch that failed
    assert ring.take(10**6) is not blocks[0]


@pytest.mark.parametrize("seed", range(5))
def test_no_block_is_written_to_before_its_copy_has_ended(seed):
    chance, made, busy = random.Random(seed), [], {}

    def new_block(size):
        made.append(size)
        return torch.empty(size, dtype=torch.uint8)

    ring = PinnedRing(4, new_block)
    for _ in range(500):
        size = chance.choice([0, 1, 100, 70_000, 200_000])
        block = ring.take(size)
        assert len(block) >= size
        event = busy.pop(block.data_ptr(), None)
        assert event is None or event.ended
        event = busy[block.data_ptr()] = Late()
        ring.give_back(block, event)
        for each in busy.values():
            each.ended |= chance.random() < 0.2
    assert len(made) < 15


def test_memory_that_cannot_be_pinned_is_replaced(monkeypatch):
    empty = torch.empty

    def failing(*sizes, pin_memory=False, **options):
        if pin_memory:
            raise RuntimeError("CUDA error: out of memory\nmore")
        return empty(*sizes, **options)

    monkeypatch.setattr(torch, "empty", failing)
    with pytest.warns(tfw.TfwireWarning, match=r"100 bytes cannot be pinned.*out of memory$"):
        block = _devices.pinned_block(100)
    assert 100 == len(block)


# ---- Arguments ----------------------------------------------------------------------------------


def test_devices(cuda):
    assert as_device(None) is None
    assert torch.device("cuda", 1) == as_device(1) == as_device("cuda:1")
    assert torch.device("cuda") == as_device("cuda") == as_device(torch.device("cuda"))
    for wrong in (2, "cuda:2"):
        with pytest.raises(ValueError, match=r"2 device\(s\)"):
            as_device(wrong)
    with pytest.raises(ValueError, match="pin_memory is for batches of the CPU"):
        ThreadLoader([1], pin_memory=True, device="cuda")


@pytest.mark.parametrize("options", [{"device": "cpu"}, {}])
def test_pinned_batches_of_the_cpu(files, cuda, options):
    expected = list(map(plain, ThreadLoader(stream(files), None)))
    found = list(ThreadLoader(stream(files), None, pin_memory=True, **options))
    assert expected == list(map(plain, found))
    assert len(found) == len(cuda.pinned)
    for batch in found:
        assert batch["id"].untyped_storage().data_ptr() in cuda.pinned


def test_batches_of_a_function_of_the_user_are_pinned_as_by_torch(files, cuda, monkeypatch):
    pinned = []

    def pin(batch):
        pinned.append(batch)
        return batch

    monkeypatch.setattr(torch.utils.data._utils.pin_memory, "pin_memory", pin)
    loader = ThreadLoader(stream(files), None, pin_memory=True, collate_fn=dict)
    assert list(map(plain, loader)) == list(map(plain, pinned))
    assert pinned
    del pinned[:]
    rows = [{"x": torch.ones(2), "sparse": torch.eye(2).to_sparse()}]  # and what is in no block
    [batch] = ThreadLoader(rows, None, pin_memory=True)
    assert 1 == len(pinned)
    assert batch["x"].untyped_storage().data_ptr() in cuda.pinned
