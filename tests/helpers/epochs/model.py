"""What each worker of each rank should give in an epoch: slow, and from docs/datasets.md alone.

The documentation leaves orders of shuffles open, and which shards have one record more. These are
taken from a dataset in this process, and checked for what is promised of them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import tfwire as tfw
from helpers.data.files import NumberedFiles, flat
from helpers.data.pipeline_models import batches
from helpers.epochs.cases import CHOOSERS, NUMBERED, SIZES, TOTAL, Case, Fault, build, is_kept

ERROR = "error"  # the last of what is given, instead of an element
KEEPS_NUMBERS = {*CHOOSERS, "map", "parse", "prefetch"}

Given = list[Any]


class Refused(Exception):
    """shard_source raises a ValueError."""


def drained(elements: Iterable[Any]) -> Given:
    found: Given = []
    try:
        for element in elements:
            found.append(flat(element))
    except (Fault, tfw.DataLossError):
        found.append(ERROR)
    return found


class Model:
    """The elements of a case by shards."""

    def __init__(self, case: Case, files: NumberedFiles) -> None:
        self._case = case
        self._numbered = files

    def shares(self, epoch: int) -> list[Given]:
        """What each shard gives, as lists of numbers, with ERROR at the end if it fails.

        Raises:
            Refused: The case cannot be divided by its rule.
        """
        case, at = self._case, self._divided_at()
        if case.num_shards == 1:
            at = self._chosen_by_number()
            parts: list[Any] = self._parts_of_numbered(epoch, at)
        elif not at and case.source not in NUMBERED:
            parts = self._parts_of_source(epoch)
        elif self._has_numbers(at):
            parts = self._parts_of_numbered(epoch, at)
        else:
            parts = self._every_nth(epoch, at)
        return [
            drained(self._stages(_failing(part), at, None, epoch, shard))
            for shard, part in enumerate(parts)
        ]

    # ---- Where it is divided --------------------------------------------------------------------

    def _divided_at(self) -> int:
        """The number of stages that mean the whole data: until the last that chooses by place, and
        a shuffle of all numbered records with a seed."""
        return max(
            (
                place + 1
                for place, stage in enumerate(self._case.stages)
                if stage[0] in CHOOSERS or self._is_of_all(place)
            ),
            default=0,
        )

    def _chosen_by_number(self) -> int:
        """The number of first stages that choose among numbered records, which reads no others."""
        chosen = itertools.takewhile(lambda stage: stage[0] in CHOOSERS, self._case.stages)
        return len(list(chosen)) if self._case.source in NUMBERED else 0

    def _is_of_all(self, place: int) -> bool:
        """Whether a shuffle of all numbered records is at this place, which needs no buffer."""
        stages = self._case.stages
        before = stages[:place]
        if self._case.source not in NUMBERED or stages[place][0] != "shuffle":
            return False
        chosen: Iterator[Any] = iter(range(TOTAL))
        for name, *arguments in before:
            if name in CHOOSERS:
                chosen = _placed(chosen, name, arguments)
        return stages[place][1] >= len(list(chosen)) and all(s[0] in CHOOSERS for s in before)

    def _has_numbers(self, at: int) -> bool:
        return self._case.source in NUMBERED and all(
            stage[0] in KEEPS_NUMBERS or self._is_of_all(place)
            for place, stage in enumerate(self._case.stages[:at])
        )

    def _parts_of_source(self, epoch: int) -> list[Given]:
        """Whole files, or every n-th element of a generator."""
        case, shards = self._case, self._case.num_shards
        if case.source == "generator":
            numbers = self._source(epoch)
            if case.rule == "pad":
                raise Refused
            return _every(numbers, shards, case.rule)
        if case.rule != "even":
            raise Refused
        files = self._files(epoch)
        return [list(itertools.chain(*files[shard::shards])) for shard in range(shards)]

    def _parts_of_numbered(self, epoch: int, at: int) -> list[Given]:
        """Contiguous parts of what was chosen; what was not is not read."""
        chosen = self._source(epoch)
        for place, (name, *arguments) in enumerate(self._case.stages[:at]):
            if name == "map":
                chosen = [self._broken(element) for element in chosen]
            elif name == "shuffle":
                chosen = self._shuffled(chosen, place, epoch, None)
            elif name in CHOOSERS:
                chosen = list(_placed(iter(chosen), name, arguments))
        shards = self._case.num_shards
        if self._case.rule == "even":
            return self._even_parts(chosen)
        size = len(chosen) // shards
        if self._case.rule == "pad" and chosen:
            size = -(-len(chosen) // shards)
            chosen = list(itertools.islice(itertools.cycle(chosen), size * shards))
        return [chosen[size * shard : size * (shard + 1)] for shard in range(shards)]

    def _even_parts(self, chosen: Given) -> list[Given]:
        """The sizes are those of arrays, which are divided by the same rule."""
        shards = self._case.num_shards
        arrays = tfw.Dataset.range(len(chosen))
        sizes = [len(list(arrays.shard_source(shards, shard))) for shard in range(shards)]
        assert sum(sizes) == len(chosen)
        assert max(sizes) - min(sizes) <= 1
        ends = list(itertools.accumulate(sizes))
        return [chosen[end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def _every_nth(self, epoch: int, at: int) -> list[Given]:
        if self._case.rule == "pad":
            raise Refused
        stream = self._stages(_failing(self._source(epoch)), 0, at, epoch, None)
        return _every(drained(stream), self._case.num_shards, self._case.rule)

    # ---- Sources and stages ---------------------------------------------------------------------

    def _source(self, epoch: int) -> Given:
        """All elements in the order of an epoch, with ERROR for a damaged one."""
        return list(itertools.chain(*self._files(epoch)))

    def _files(self, epoch: int) -> list[Given]:
        numbers = iter(range(TOTAL))
        files: list[Given] = [[[n] for n in itertools.islice(numbers, size)] for size in SIZES]
        fault = self._case.fault
        if fault and fault[0] == "damage":
            files = [[ERROR if e == [fault[1]] else e for e in file] for file in files]
        if self._case.source == "shuffled files":
            dataset = build(self._case, self._numbered, 0)
            dataset.set_epoch(epoch)
            order = drained(dataset)
            empty = [file for file in files if not file]
            files = sorted(filter(None, files), key=lambda file: order.index(file[0]))
            assert order == list(itertools.chain(*files)), "files are read whole"
            assert not any(empty)
            files = self._with_empty_files(files, epoch)
        return files

    def _with_empty_files(self, files: list[Given], epoch: int) -> list[Given]:
        """Files in their order. Where an empty one stands is seen by its share alone: with as many
        shards as files, each is one file."""
        shares = []
        for shard in range(len(SIZES)):
            dataset = build(self._case, self._numbered, 0).shard_source(len(SIZES), shard)
            dataset.set_epoch(epoch)
            shares.append(drained(dataset))
        assert [share for share in shares if share] == files
        return shares

    def _stages(
        self, below: Iterator[Any], first: int, last: int | None, epoch: int, shard: int | None
    ) -> Iterator[Any]:
        for place in range(first, len(self._case.stages) if last is None else last):
            name, *arguments = self._case.stages[place]
            if name == "shuffle":
                whole = drained(below)
                below = _failing(self._shuffled(whole, place, epoch, shard))
            elif name == "map":
                below = _failing(map(self._broken, below))
            elif name == "filter":
                below = filter(is_kept, below)
            elif name == "batch":
                below = batches(below, *arguments)
            elif name == "repeat":
                below = _failing(drained(below) * arguments[0])
            elif name in CHOOSERS:
                below = _placed(below, name, arguments)
        return below

    def _broken(self, element: Any) -> Any:
        fault = self._case.fault
        return ERROR if fault and fault[0] == "function" and fault[1] in element else element

    def _shuffled(self, whole: Given, place: int, epoch: int, shard: int | None) -> Given:
        """The order that a dataset of these stages has, if it is one that is promised."""
        dataset = build(self._case, self._numbered, place + 1)
        if shard is not None and self._case.num_shards > 1:
            dataset = dataset.shard_source(self._case.num_shards, shard, self._case.rule)
        dataset.set_epoch(epoch)
        found = drained(dataset)
        assert Counter(map(str, found)) == Counter(map(str, whole)), "nothing is lost or doubled"
        size = self._case.stages[place][1]
        if len(set(map(str, whole))) == len(whole):
            places = {str(element): i for i, element in enumerate(whole)}
            early = [places[str(element)] - i for i, element in enumerate(found)]
            assert max(early, default=0) <= size, "an element comes at most so many places early"
        return found


def _failing(elements: Iterable[Any]) -> Iterator[Any]:
    for element in elements:
        if element == ERROR:
            raise Fault
        yield element


def _placed(elements: Iterator[Any], name: str, arguments: list[int]) -> Iterator[Any]:
    if name == "take":
        return (e for _, e in zip(range(arguments[0]), elements, strict=False))
    first, step = (arguments[0], 1) if name == "skip" else (arguments[1], arguments[0])
    return itertools.islice(elements, first, None, step)


def _every(elements: Given, shards: int, rule: str) -> list[Given]:
    """Every n-th element. All of them meet an error, which is the last."""
    failed = elements[-1:] == [ERROR]
    if failed:
        elements = elements[:-1]
    if rule == "drop":
        elements = elements[: len(elements) // shards * shards]
    return [elements[shard::shards] + [ERROR] * failed for shard in range(shards)]


def in_turn(shares: list[Given]) -> Given:
    """How a DataLoader delivers what its workers give: a batch of each in turn, until an error."""
    found: Given = []
    left = [iter(share) for share in shares]
    while left:
        for elements in list(left):
            element = next(elements, None)
            if element is None:
                left.remove(elements)
                continue
            found.append(element)
            if element == ERROR:
                return found
    return found
