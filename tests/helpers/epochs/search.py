"""Random training runs beside a model: ranks, workers, threads, epochs, killed processes.

Every sequence that a loader delivers is compared. As a program, it searches for so many seconds and
prints how many runs of each kind it made::

    PYTHONPATH=src:tests python -m helpers.epochs.search SEED SECONDS
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader, DistributedSampler
from torchdata.stateful_dataloader import StatefulDataLoader

import tfwire as tfw
from helpers.data.files import SPEC, NumberedFiles, flat
from helpers.epochs.cases import SIZES, TOTAL, Case, Fault, build
from helpers.epochs.model import ERROR, Model, Refused, in_turn
from helpers.search import cases
from tfwire.torch import TFRecordIterableDataset, TFRecordMapDataset, ThreadLoader, collate

# ---- Loaders ------------------------------------------------------------------------------------


def loader_of(case: Case, files: NumberedFiles, rank: int) -> tuple[Any, Any]:
    """The dataset of a rank, and its loader."""
    stream = TFRecordIterableDataset(
        build(case, files),
        rule=case.rule,
        rank=rank,
        world_size=case.ranks,
        num_threads=1 if case.loader == "threads" or not parses(case) else case.threads,
    )
    if case.loader == "threads":
        return stream, ThreadLoader(stream, batch_size=None, num_threads=case.threads)
    kind = DataLoader if case.loader == "torch" else StatefulDataLoader
    options = {"num_workers": case.workers, "persistent_workers": case.persistent}
    return stream, kind(stream, batch_size=None, collate_fn=collate, **options)


def parses(case: Case) -> bool:
    return any(stage[0] == "parse" for stage in case.stages)


def delivered(batches: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    try:
        for batch in batches:
            found.append(flat(batch))
    except (Fault, tfw.DataLossError):
        found.append(ERROR)
    return found


# ---- Checks -------------------------------------------------------------------------------------


def check(case: Case, files: NumberedFiles, chance: random.Random) -> str:
    """Compares every sequence with the model; returns what kind of run it was."""
    model = Model(case, files)
    try:
        model.shares(0)
    except Refused:
        check_refused(case, files)
        return "refused"
    with damaged(case, files):
        for rank in range(case.ranks):
            check_epochs(case, files, rank, model, chance)
        if case.loader == "stateful" and not case.fault:
            check_killed(case, files, chance.randrange(case.ranks), model, chance)
            return "killed and resumed"
    return "with an error" if case.fault else "whole"


@contextlib.contextmanager
def damaged(case: Case, files: NumberedFiles) -> Iterator[None]:
    number = case.fault[1] if case.fault and case.fault[0] == "damage" else None
    if number is not None:
        files.flip(number)
    try:
        yield
    finally:
        if number is not None:
            files.flip(number)


def check_refused(case: Case, files: NumberedFiles) -> None:
    try:
        build(case, files).shard_source(case.num_shards, 0, case.rule)
    except ValueError:
        return
    raise AssertionError("the rule needs numbered records")


def check_epochs(
    case: Case, files: NumberedFiles, rank: int, model: Model, chance: random.Random
) -> None:
    """Passes that count and passes that set the epoch; some are broken off before one that sets."""
    stream, loader = loader_of(case, files, rank)
    due = 0
    for place, epoch in enumerate(case.epochs):
        if epoch is not None:
            stream.set_epoch(due := epoch)
        shares = model.shares(due)
        expected = of_rank(case, shares, rank)
        possible = [expected]
        if case.loader == "stateful" and case.workers:  # a state is taken after every batch
            possible.append(of_rank(case, [share_with_states(share) for share in shares], rank))
        following = case.epochs[place + 1] if place + 1 < len(case.epochs) else None
        if following is not None and chance.random() < 0.3 and len(expected) > case.workers:
            some = chance.randrange(case.workers, len(expected) + 1)
            batches = iter(loader)
            given = [flat(batch) for _, batch in zip(range(some), caught(batches), strict=False)]
            possible = [without_error(e[:some]) for e in possible]
            del batches
        else:
            given = delivered(loader)
        assert given in possible, f"rank {rank}, pass {place}, epoch {due}: {given}, {possible}"
        due += 1


def share_with_states(share: list[Any]) -> list[Any]:
    """Without the batch directly before an error, whose state may not be known."""
    return [*share[:-2], ERROR] if share[-1:] == [ERROR] else share


def without_error(given: list[Any]) -> list[Any]:
    return [element for element in given if element != ERROR]


def caught(batches: Iterator[Any]) -> Iterator[Any]:
    with contextlib.suppress(Fault, tfw.DataLossError):
        yield from batches


def of_rank(case: Case, shares: list[Any], rank: int) -> list[Any]:
    workers = max(1, case.workers)
    return in_turn(shares[rank * workers : (rank + 1) * workers])


def check_killed(
    case: Case, files: NumberedFiles, rank: int, model: Model, chance: random.Random
) -> None:
    """A process trains, saves states, and is killed with its workers; others go on from the last
    state that was saved, until the run is whole."""
    epochs = [chance.randrange(5), None]
    first = epochs[0]
    expected = [of_rank(case, model.shares(first + i), rank) for i in range(2)]
    found: list[list[Any]] = [[], []]
    state, place = None, 0
    length = sum(map(len, expected))
    for most in (chance.randint(1, length + 1), chance.randint(1, length + 1), None):
        with Process(case, files, rank, first, state, place) as messages:
            for count, message in enumerate(messages):
                if message[0] == "end":
                    assert found == expected, "before and after the deaths"
                    return
                assert message[0] == "batch", message[1]
                _, place, before, batch, state = message
                found[place] = [*found[place][:before], batch]
                if count + 1 == most:
                    break
    raise AssertionError(f"not at an end: {found}, {expected}")


class Process:
    """A forked process that trains from a state on. It is killed at the end, with its workers."""

    def __init__(self, *run: Any) -> None:
        self._run = run

    def __enter__(self) -> Iterator[Any]:
        reading, writing = os.pipe()
        gc.collect()  # the loaders of this process, whose workers are not of the other
        self._id = os.fork()
        if not self._id:
            os.setpgid(0, 0)
            os.close(reading)
            train_and_exit(writing, *self._run)
        os.close(writing)
        self._stream = os.fdopen(reading, "rb")
        return self._messages()

    def _messages(self) -> Iterator[Any]:
        while header := self._stream.read(4):
            yield pickle.loads(self._stream.read(struct.unpack("<I", header)[0]))

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._id, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._id, signal.SIGKILL)
        os.waitpid(self._id, 0)
        self._stream.close()


def train_and_exit(
    writing: int, case: Case, files: NumberedFiles, rank: int, epoch: int, state: Any, place: int
) -> None:
    def send(*message: Any) -> None:
        content = pickle.dumps(message)
        content = struct.pack("<I", len(content)) + content
        while content:
            content = content[os.write(writing, content) :]

    try:
        stream, loader = loader_of(case, files, rank)
        if state is None:
            stream.set_epoch(epoch)
        else:
            loader.load_state_dict(state["loader"])
        before = 0 if state is None else state["before"]
        for number in range(place, 2):
            for batch in loader:
                saved = {"loader": loader.state_dict(), "before": before + 1}
                send("batch", number, before, flat(batch), saved)
                before += 1
            before = 0
        send("end")
    except BaseException:
        send("error", traceback.format_exc())
    os._exit(0)


# ---- By number ----------------------------------------------------------------------------------


def check_by_number(files: NumberedFiles, chance: random.Random) -> str:
    """A map-style dataset under torch's own sampler, which is the model."""
    ranks, size = chance.randint(1, 3), chance.randint(1, 9)
    shuffle, drop = chance.random() < 0.7, chance.random() < 0.3
    paths = chance.choice([files.plain, files.plain, files.gzip])
    dataset = TFRecordMapDataset(paths, SPEC, in_memory=chance.choice([None, False]))
    assert len(dataset) == TOTAL
    for rank in range(ranks):
        options: dict[str, Any] = {"num_replicas": ranks, "rank": rank, "shuffle": shuffle}
        options |= {"seed": chance.randrange(9), "drop_last": drop}
        sampler, other = (DistributedSampler(range(TOTAL), **options) for _ in range(2))
        loader: Any
        if chance.random() < 0.5:
            loader = ThreadLoader(dataset, size, sampler=sampler, num_threads=chance.randint(1, 3))
        else:
            workers = chance.randrange(3)
            loader = DataLoader(
                dataset, size, sampler=sampler, num_workers=workers, collate_fn=collate
            )
        for epoch in chance.sample(range(9), 2):
            sampler.set_epoch(epoch)
            other.set_epoch(epoch)
            numbers = list(other)
            expected = [numbers[at : at + size] for at in range(0, len(numbers), size)]
            assert [flat(batch) for batch in loader] == expected
    return "by number"


# ---- The search ---------------------------------------------------------------------------------


def search(seed: str, seconds: float, least: int = 0) -> Counter[str]:
    """How many runs of each kind there were."""
    kinds = Counter[str]()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = NumberedFiles(folder, SIZES)
        for name, chance in cases(seed, seconds, least):
            kinds[run(name, chance, files)] += 1
    return kinds


def run(name: str, chance: random.Random, files: NumberedFiles) -> str:
    case = None if chance.random() < 0.1 else Case(chance)
    try:
        return check_by_number(files, chance) if case is None else check(case, files, chance)
    except Exception as error:
        raise AssertionError(f"case {name}: {case or 'by number'}") from error


if __name__ == "__main__":
    print(search(sys.argv[1], float(sys.argv[2])))
