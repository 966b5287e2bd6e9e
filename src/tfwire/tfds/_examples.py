"""Examples of a split: by number, as columns, and as datasets."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tfwire import Dataset, ParseError, TFRecordFile
from tfwire._interface.messages import as_index, boolean, choice, integer, quoted, show_path
from tfwire.tfds._features import Group, Leaf, StepsFeature
from tfwire.tfds._folder import SplitInfo
from tfwire.tfds._splits import Piece, even_parts
from tfwire.typing import Value

Array = np.ndarray[Any, Any]

_PARSED_AT_ONCE = 64  # examples, where they are read in a row
_OPEN_FILES = 64


class Reader:
    """The features of a dataset and the splits that hold them; files open when they are needed."""

    def __init__(self, parser: Any, root: Group, splits: dict[str, SplitInfo]) -> None:
        self.parser = parser
        self.root = root
        self.leaves: list[Leaf] = list(root.leaves())
        self.steps: dict[str, StepsFeature] = dict(_all_steps(root, ""))
        self.splits = splits
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._open: OrderedDict[tuple[str, int], TFRecordFile] = OrderedDict()

    def file(self, split: str, shard: int) -> TFRecordFile:
        """A file, open. Of two threads, both may open it, and one of the two is kept."""
        if self._process != os.getpid():
            self._begin()
        file = self._open.pop((split, shard), None)
        if file is None:
            info = self.splits[split]
            file = info.open(shard, info.shard_lengths[shard])
        self._open[split, shard] = file
        if len(self._open) > _OPEN_FILES:
            self._open.popitem(last=False)
        return file

    def parse(self, records: list[bytes]) -> dict[str, Any]:
        """What is stored of records, by key, in the declared types."""
        columns: dict[str, Any] = dict(self.parser.parse(records))
        for leaf in self.leaves:
            leaf.cast(columns)
        return columns

    def row(self, columns: dict[str, Any], number: int) -> dict[str, Any]:
        """What is stored of one record."""
        return {k: v for leaf in self.leaves for k, v in leaf.row(columns, number).items()}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_open"], state["_process"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


class Split:
    """Examples of a dataset that TFDS prepared: a split, a part of one, or several of them.

    ``split[5]`` is an example as TFDS gives it: a dict, of dicts where features are nested. Numbers
    have the declared types, text is bytes, a class is its number. A Sequence is an array, or a
    RaggedTensor where rows have different lengths; a Dataset feature is a :class:`tfwire.Dataset`.
    ``split[5:10]`` and ``split[[3, 1]]`` are lists of examples. ``first + second`` are the examples
    of both.

    It is a source for ``torch.utils.data.DataLoader``, whose workers get copies, and for
    ``grain.MapDataset.source``.
    """

    def __init__(self, name: str, reader: Reader, pieces: Sequence[Piece]) -> None:
        self.name = name
        self._reader = reader
        self._pieces = [piece for piece in pieces if piece.stop > piece.start]
        self._ends = list(accumulate(piece.stop - piece.start for piece in self._pieces))
        self._shards = {
            piece.split: list(accumulate(reader.splits[piece.split].shard_lengths))
            for piece in self._pieces
        }

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[dict[str, Value]]:
        for start in range(0, len(self), _PARSED_AT_ONCE):
            numbers = range(start, min(start + _PARSED_AT_ONCE, len(self)))
            columns = self._stored(numbers)
            for row, number in enumerate(numbers):
                yield self._value(columns, row, number)

    def __getitem__(self, key: Value) -> Value:
        """An example, or a list of them.

        Args:
            key: A number, counted from the end if negative; a slice; or a list or array of numbers.

        Raises:
            IndexError: There is no such example.
            ValueError: A file does not fit its description, or a value cannot be decoded.
            DataLossError, ParseError, OSError: As of TFRecordFile and Parser.
        """
        if isinstance(key, slice):
            numbers: Sequence[int] = range(len(self))[key]
        elif np.ndim(key):
            numbers = [self._number(each) for each in key]
        else:
            number = self._number(key)
            return self._value(self._stored([number]), 0, number)
        columns = self._stored(numbers) if numbers else {}
        return [self._value(columns, row, number) for row, number in enumerate(numbers)]

    def __getitems__(self, keys: Sequence[int]) -> list[dict[str, Value]]:
        """The examples of a batch; torch's DataLoader calls this."""
        examples: list[dict[str, Any]] = self[list(keys)]
        return examples

    _getitems = __getitems__  # Grain's name of it

    def _number(self, key: Any) -> int:
        number = as_index(key)
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.name}: example {number} of {len(self)}")
        return number % len(self)

    def __add__(self, other: Split) -> Split:
        """The examples of both, one after the other."""
        if not isinstance(other, Split) or other._reader is not self._reader:
            return NotImplemented
        return Split(f"{self.name}+{other.name}", self._reader, self._pieces + other._pieces)

    def even_splits(self, count: int, *, drop_remainder: bool = False) -> list[Split]:
        """Parts that differ by one example at most, as ``tfds.even_splits`` makes them.

        Args:
            count: How many.
            drop_remainder: Leave examples out so that all have the same length.

        Raises:
            ValueError: count is below 1.
        """
        count = integer("count", count, 1)
        parts = even_parts(self._pieces, count, boolean("drop_remainder", drop_remainder))
        names = (f"{self.name} {n}/{count}" for n in range(count))
        return [Split(name, self._reader, part) for name, part in zip(names, parts, strict=True)]

    def columns(self, numbers: Value = None) -> dict[str, Value]:
        """Columns with a row for each example: arrays, and RaggedTensors.

        Images are decoded; :class:`SkipDecoding` leaves them as bytes. Values whose shapes differ
        are an array of objects.

        Args:
            numbers: Of the examples: a slice, a list or an array. None: all.
        """
        chosen: Sequence[int] = range(len(self))
        if isinstance(numbers, slice):
            chosen = chosen[numbers]
        elif numbers is not None:
            chosen = [self._number(number) for number in numbers]
        columns = self._stored(chosen)
        try:
            return self._reader.root.column(columns)
        except ValueError:
            for row, number in enumerate(chosen):  # which says where it is
                self._value(columns, row, number)
            raise

    def dataset(
        self,
        *,
        batch_size: int | None = None,
        shuffle: bool | int = False,
        seed: int | None = None,
        num_threads: int = 1,
    ) -> Dataset[dict[str, Value]]:
        """The examples as a :class:`tfwire.Dataset`, whose iterators are saved and resumed.

        Args:
            batch_size: Examples of an element, which is a dict of columns. None: elements are
                examples.
            shuffle: True mixes all examples, in another order in every epoch; a number mixes them
                in a buffer of so many, which reads files nearly in their order.
            seed: Of the order; None draws one.
            num_threads: How many threads read and decode ahead. Images are decoded side by side.

        Raises:
            ValueError: batch_size or num_threads is below 1.
        """
        num_threads = integer("num_threads", num_threads, 1)
        numbers: Dataset[Any] = self._order(shuffle, seed)
        if batch_size is not None:
            return numbers.batch(integer("batch_size", batch_size, 1)).map(
                self.columns, num_threads
            )
        stored = numbers.batch(_PARSED_AT_ONCE).map(self._with_numbers).unbatch()
        return stored.map(self._numbered_value, num_threads)

    def steps(
        self,
        name: str | None = None,
        *,
        shuffle: bool | int = False,
        seed: int | None = None,
        mixed_steps: int = 10_000,
        numbered: bool = False,
        num_threads: int = 1,
    ) -> Dataset[Value]:
        """The steps of all episodes (RLDS, Open X-Embodiment), one after the other or mixed.

        Episodes are drawn in a random order, and their steps mixed in a buffer, in which images are
        still encoded. RLDS's own ``is_first`` and ``is_last`` say where an episode begins and ends.

        Args:
            name: The Dataset feature that holds the steps; None: the only one.
            shuffle: Mix them; a number mixes the episodes in a buffer of so many.
            seed: Of the order; None draws one.
            mixed_steps: How many steps the buffer holds.
            numbered: Add ``episode``, the number of the example, and ``step``, that of the step in
                it, to each step.
            num_threads: How many threads decode.

        Raises:
            ValueError: There is no such feature, or the steps have these names.
        """
        steps = self._steps_feature(name)
        names = getattr(steps.element, "children", None)
        if boolean("numbered", numbered) and (names is None or {"episode", "step"} & set(names)):
            raise ValueError("numbered=True adds 'episode' and 'step', which the steps cannot take")
        num_threads = integer("num_threads", num_threads, 1)
        mixed_steps = integer("mixed_steps", mixed_steps, 1)
        episodes: Dataset[Any] = self._order(shuffle, seed)
        flat = episodes.map(_Episodes(self, steps)).unbatch()
        if shuffle:
            flat = flat.shuffle(mixed_steps, seed)
        return flat.map(_StepValue(steps, numbered), num_threads)

    def _order(self, shuffle: bool | int, seed: int | None) -> Dataset[Any]:
        """The numbers of the examples."""
        numbers: Dataset[Any] = Dataset.range(len(self))
        if shuffle is False:
            return numbers
        size = max(1, len(self)) if shuffle is True else integer("shuffle", shuffle, 1)
        return numbers.shuffle(size, seed)

    def _steps_feature(self, name: str | None) -> StepsFeature:
        found = self._reader.steps
        if name is None and len(found) == 1:
            return next(iter(found.values()))
        if name is None:
            shown = ", ".join(map(quoted, found)) or "none"
            raise ValueError(f"name the Dataset feature that holds steps; found {shown}")
        return found[choice("name", name, tuple(found))]

    # ---- Reading --------------------------------------------------------------------------------

    def _place(self, number: int) -> tuple[str, int, int]:
        """The split, the shard and the record of an example."""
        at = bisect_right(self._ends, number)
        piece = self._pieces[at]
        inside = piece.start + number - (self._ends[at - 1] if at else 0)
        ends = self._shards[piece.split]
        shard = bisect_right(ends, inside)
        return piece.split, shard, inside - (ends[shard - 1] if shard else 0)

    def _records(self, numbers: Sequence[int]) -> list[bytes]:
        """Records by number; those of a file are read together."""
        by_file: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        for at, number in enumerate(numbers):
            split, shard, record = self._place(int(number))
            where, records = by_file.setdefault((split, shard), ([], []))
            where.append(at)
            records.append(record)
        found = [b""] * len(numbers)
        for (split, shard), (where, chosen) in by_file.items():
            file = self._reader.file(split, shard)
            for at, data in zip(where, file[chosen], strict=True):
                found[at] = data
        return found

    def _stored(self, numbers: Any) -> dict[str, Any]:
        """What is stored of examples, by key, with a row for each."""
        records = self._records(numbers)
        try:
            return self._reader.parse(records)
        except ParseError:
            for number, record in zip(numbers, records, strict=True):
                try:
                    self._reader.parse([record])
                except ParseError as error:
                    reason = str(error).removeprefix("record 0: ")  # of those parsed together
                    raise ParseError(f"{self._where(int(number))}: {reason}") from error
            raise

    def _where(self, number: int) -> str:
        split, shard, record = self._place(number)
        path = self._reader.splits[split].paths[shard]
        return f"split {quoted(split)}, {show_path(path)}, record {record}"

    def _value(self, columns: dict[str, Any], row: int, number: int) -> dict[str, Any]:
        where = self._where(number) if self._reader.steps else ""  # which are decoded later
        try:
            return self._reader.root.value(self._reader.row(columns, row), where)
        except ValueError as error:
            raise ValueError(f"{self._where(number)}: {error}") from error

    def _with_numbers(self, numbers: Array) -> tuple[dict[str, Any], Array]:
        return self._stored(numbers), numbers

    def _numbered_value(self, stored: dict[str, Any], number: Any) -> dict[str, Any]:
        columns = {key: [value] for key, value in stored.items()}
        return self._value(columns, 0, int(number))

    def __repr__(self) -> str:
        """Equal for equal examples: Grain's checkpoints compare it."""
        return f"<Split {self.name!r}: {len(self)} examples>"


def _all_steps(group: Group, key: str) -> Iterator[tuple[str, StepsFeature]]:
    for name, child in group.children.items():
        if isinstance(child, Group):
            yield from _all_steps(child, f"{key}{name}/")
        elif isinstance(child, StepsFeature):
            yield f"{key}{name}", child


class _Episodes:
    """What is stored of the steps of an episode, with the number of the episode and of each."""

    def __init__(self, split: Split, steps: StepsFeature) -> None:
        self._split, self._steps = split, steps

    def __call__(self, number: Any) -> tuple[dict[str, Any], Array, Array]:
        split, number = self._split, int(number)
        row = split._reader.row(split._stored([number]), 0)
        try:
            stored = self._steps.stored(row)
        except ValueError as error:
            raise ValueError(f"{split._where(number)}: {error}") from error
        count = len(next(iter(stored.values())))
        return stored, np.full(count, number, np.int64), np.arange(count, dtype=np.int64)


class _StepValue:
    def __init__(self, steps: StepsFeature, numbered: bool) -> None:
        self._steps, self._numbered = steps, numbered

    def __call__(self, stored: dict[str, Any], episode: Any, step: Any) -> Any:
        try:
            value = self._steps.element.value(stored)
        except ValueError as error:
            raise ValueError(f"step {step} of example {episode}: {error}") from error
        return {**value, "episode": episode, "step": step} if self._numbered else value
