"""Random training runs: a pipeline, how it is divided, the loader, its epochs, and a fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from helpers.data.files import SPEC, NumberedFiles, flat
from tfwire import Dataset, TFRecordDataset

SIZES = (11, 0, 4, 17, 1, 8)
TOTAL = sum(SIZES)

NUMBERED = {"indexed", "arrays"}  # sources whose elements have numbers
OF_RECORDS = {"files", "gzip", "shuffled files", "indexed"}
CHOOSERS = {"take", "skip", "shard"}
FAULT_FREE = {"gzip", "shuffled files", "arrays"}


class Fault(Exception):
    """What the functions of a pipeline raise."""


def is_kept(numbers: list[int]) -> bool:
    return sum(numbers) % 4 != 1


# ---- Pipelines ----------------------------------------------------------------------------------


class Case:
    """A run. ``fault`` is ("damage", record), ("function", number) or None.

    Attributes:
        source, stages: The pipeline; a stage is a name and its arguments.
        epochs: The number that each pass sets, or None if it only counts.
        stopped: Batches after which a pass is broken off, for passes with a number after them.
    """

    def __init__(self, chance: Any) -> None:
        self.source = chance.choice(
            ["files", "gzip", "shuffled files", "indexed", "indexed", "arrays", "generator"]
        )
        self.fault: tuple[str, int] | None = None
        self.stages: list[list[Any]] = []
        self._add_stages(chance)
        self.ranks = chance.choice([1, 1, 2, 3])
        self.workers = chance.choice([0, 0, 1, 2, 3])
        self.threads = chance.choice([1, 1, 2, 3])
        self.loader = chance.choice(["torch", "stateful"] if self.workers else LOADERS)
        self.persistent = self.workers > 0 and chance.random() < 0.3
        self.rule = chance.choice(["even", "even", "drop", "pad"])
        self.epochs = [chance.choice([None, None, chance.randrange(9)]) for _ in range(3)]
        if not self.shuffled and chance.random() < 0.4:
            self._add_fault(chance)

    @property
    def shuffled(self) -> bool:
        return self.source == "shuffled files" or any(s[0] == "shuffle" for s in self.stages)

    @property
    def num_shards(self) -> int:
        return self.ranks * max(1, self.workers)

    def _add_stages(self, chance: Any) -> None:
        add = self.stages.append
        for _ in range(chance.choice([0, 0, 1, 2, 3])):
            add(self._one_to_one_or_chosen(chance))
        directly = all(stage[0] in CHOOSERS for stage in self.stages)
        if chance.random() < 0.5:
            whole = directly and self.source in NUMBERED and chance.random() < 0.6
            add(["shuffle", 1000 if whole else chance.choice([1, 3, 10]), chance.randrange(9)])
            if chance.random() < 0.3:
                add(self._one_to_one_or_chosen(chance))
        if chance.random() < 0.3:
            add(["filter"])
        if chance.random() < 0.7:
            add(["batch", chance.randint(1, 9), chance.random() < 0.3])
        if self.source in OF_RECORDS and chance.random() < 0.7:
            add(["parse", chance.choice([1, 1, 2])])
        for _ in range(chance.choice([0, 0, 1])):
            add(self._one_to_one_or_chosen(chance))
        if not self.shuffled and chance.random() < 0.2:
            add(["repeat", chance.randrange(3)])

    def _one_to_one_or_chosen(self, chance: Any) -> list[Any]:
        shards = chance.randint(1, 3)
        return list(
            chance.choice(
                [
                    ["take", chance.randrange(TOTAL + 5)],
                    ["skip", chance.randrange(20)],
                    ["shard", shards, chance.randrange(shards)],
                    ["map", chance.choice([None, 2])],
                    ["prefetch", chance.randint(1, 3)],
                ]
            )
        )

    def _add_fault(self, chance: Any) -> None:
        names = [stage[0] for stage in self.stages]
        kinds = ["damage"] * (self.source in {"files", "indexed"})
        kinds += ["function"] * ("map" in names)
        # How many elements of a round come before an error, "drop" does not say; and a batch that
        # an error cuts short might be the last that is taken.
        batched = names.index("batch") if "batch" in names else len(names)
        if kinds and self.rule != "drop" and not CHOOSERS & set(names[batched:]):
            self.fault = chance.choice(kinds), chance.randrange(TOTAL)

    def __repr__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in vars(self).items())


LOADERS = ["torch", "stateful", "threads"]


def build(case: Case, files: NumberedFiles, count: int | None = None) -> Any:
    """The dataset of the first stages, made anew."""
    broken = case.fault[1] if case.fault and case.fault[0] == "function" else None

    def same(*element: Any) -> Any:
        if broken in flat(element):
            raise Fault("of a function")
        return element if len(element) > 1 else element[0]

    dataset = SOURCES[case.source](files)
    for name, *arguments in case.stages[:count]:
        if name == "map":
            dataset = dataset.map(same, num_parallel_calls=arguments[0])
        elif name == "filter":
            dataset = dataset.filter(lambda *element: is_kept(flat(element)))
        elif name == "parse":
            dataset = dataset.parse_example(SPEC, num_threads=arguments[0])
        else:
            dataset = getattr(dataset, name)(*arguments)
    return dataset


SOURCES: dict[str, Any] = {
    "files": lambda files: TFRecordDataset(files.plain),
    "gzip": lambda files: TFRecordDataset(files.gzip, "GZIP"),
    "shuffled files": lambda files: TFRecordDataset(files.plain, shuffle_files=True, seed=5),
    "indexed": lambda files: TFRecordDataset(files.plain, indexed=True),
    "arrays": lambda files: Dataset.from_tensor_slices({"n": np.arange(TOTAL)}),
    "generator": lambda files: Dataset.from_generator(lambda: range(TOTAL)),
}

torch.set_num_threads(1)
