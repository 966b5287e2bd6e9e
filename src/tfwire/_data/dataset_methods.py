"""The methods of Dataset that add a stage to a pipeline: map, batch, shuffle, and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from tfwire._base.aliases import AnyFeature, ShardRule, Value
from tfwire._base.arguments import boolean, check_type, integer
from tfwire._data import batching, indexed_records, stages, take_skip_repeat
from tfwire._data.combining import Cache, Concatenate, Enumerate, Unbatch
from tfwire._data.iterator import Epochs, checked_copy
from tfwire._data.per_element import PerElement
from tfwire._data.pipeline import FOR_TORCH, Element, check_dataset
from tfwire._data.prefetch import Prefetch
from tfwire._data.resuming.resumed import iterator_states, resume_shards
from tfwire._data.shuffle import Shuffle
from tfwire._data.structure import MAX_PADDING, check_padding, check_shard
from tfwire._examples.column_types import SparseTensor
from tfwire._parsing.features import AnySparseFeature

if TYPE_CHECKING:
    from tfwire._data.dataset import Dataset

Self = TypeVar("Self", bound="Transformations[Any]")
Key = TypeVar("Key")
# tf.data's methods that are not here, and what to use.
_ELSEWHERE = "tfwire.compat has it"
_INSTEAD = {
    "apply": "a call of the function",
    "cardinality": "len(dataset)",
    "flat_map": "unbatch, or Dataset.from_generator",
    "get_single_element": "next(iter(dataset))",
    "ignore_errors": 'TFRecordDataset(on_corrupt="skip")',
    "ragged_batch": "parse_example with a RaggedFeature",
    "rebatch": "unbatch and batch",
    "reduce": "a loop over the elements, or functools.reduce",
    "save": "tfwire.write_records",
    "snapshot": "tfwire.write_records, or cache",
    "take_while": "itertools.takewhile",
    "with_options": "nothing: no option changes the elements",
} | dict.fromkeys(
    ("group_by_window", "rejection_resample", "scan", "unique", "window"),
    f"Dataset.from_generator, or {_ELSEWHERE}",
)
_AUTO_PREFETCH = 4  # elements: enough when one takes longer now and then


class Transformations(PerElement[Element]):
    """A pipeline that can be continued. Every method returns a new one and reads nothing."""

    if not TYPE_CHECKING:  # a checker would take any name

        def __getattr__(self, name: str) -> Any:
            message = f"a Dataset has no {name!r}"
            if name == "__getitems__":  # DataLoader looks for it before it asks for an element
                raise TypeError(f"a Dataset has no elements by number; {FOR_TORCH}")
            if name in _INSTEAD:
                message += f"; instead: {_INSTEAD[name]}"
            raise AttributeError(message, name=name, obj=self)

    def take(self: Self, count: int, name: str | None = None) -> Self:
        """The first ``count`` elements; all of them when ``count`` is -1.

        Before :meth:`shard_source` these are the first of all the data, in any number of shards.

        Example:
            >>> [int(x) for x in Dataset.range(5).take(2)]
            [0, 1]
        """
        return self._next(take_skip_repeat.Take(self._stage, count).narrowed(), "take")

    def skip(self: Self, count: int, name: str | None = None) -> Self:
        """All but the first ``count`` elements; none when ``count`` is -1.

        Before :meth:`shard_source` this skips the first of all the data, in any number of shards.

        Example:
            >>> [int(x) for x in Dataset.range(5).skip(2)]
            [2, 3, 4]
        """
        return self._next(take_skip_repeat.Skip(self._stage, count).narrowed(), "skip")

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset[Value]:
        """``batch_size`` elements at a time, every leaf stacked along a new first axis.

        After ``parse_example`` of single records, whole batches are parsed instead, in one call.

        Raises:
            ValueError: ``batch_size`` is below 1; on iteration: shapes that differ.
        """
        stage = self._stage
        parsed = (
            stage.in_batches(batch_size, drop_remainder)
            if isinstance(stage, batching.Parse)
            else None
        )
        return self._dataset(parsed or batching.Batch(stage, batch_size, drop_remainder), "batch")

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: object = None,
        padding_values: object = None,
        drop_remainder: bool = False,
        name: str | None = None,
        *,
        max_padding: int | None = MAX_PADDING,
    ) -> Dataset[Value]:
        """``batch_size`` elements at a time, every leaf padded at its ends and stacked.

        Args:
            padded_shapes: The shape to pad to, for every leaf, in the structure of an element, or
                for all of them. A size of None or -1, or None as the shape, means the longest of
                the batch.
            padding_values: For every leaf, or for all of them; None is 0 or b"".
            drop_remainder: Leave out a last batch of fewer elements.
            max_padding: The largest number of bytes of padding in a leaf of a batch: one long
                element makes all others of its batch as long. None: no limit.

        Raises:
            ValueError: ``batch_size`` is below 1; on iteration: a leaf does not fit its shape, or
                would get more padding than ``max_padding``.

        Example:
            >>> ds = Dataset.from_generator(lambda: [np.arange(1), np.arange(3)])
            >>> next(iter(ds.padded_batch(2, padding_values=-1))).tolist()
            [[0, -1, -1], [0, 1, 2]]
        """
        check_padding(padded_shapes, padding_values)
        if max_padding is not None:
            max_padding = integer("max_padding", max_padding, 0)
        padding = (padded_shapes, padding_values, max_padding)
        stage = batching.Batch(self._stage, batch_size, drop_remainder, padding)
        return self._dataset(stage, "padded_batch")

    @overload
    def parse_example(
        self, features: Mapping[Key, AnySparseFeature], *, num_threads: int = 1
    ) -> Dataset[dict[Key, SparseTensor]]: ...
    @overload
    def parse_example(
        self, features: Mapping[Key, AnyFeature], *, num_threads: int = 1
    ) -> Dataset[dict[Key, Value]]: ...
    def parse_example(
        self, features: Mapping[Key, AnyFeature], *, num_threads: int = 1
    ) -> Dataset[dict[Key, Value]]:
        """Serialized Examples parsed by a specification; before or after ``batch``.

        Elements are serialized Examples or vectors of them, as ``batch`` and others make them.

        Args:
            features: As for :func:`tfwire.parse_example`.
            num_threads: How many threads parse; above 1, they make batches ahead, a few megabytes
                each, and plain files are read ahead. Only the speed depends on it. A state saved
                with any number of threads can be loaded with any other.

        Raises:
            ValueError: ``num_threads`` is below 1.
        """
        from tfwire._parsing.parsers import Parser

        check_type("features", features, Mapping, "a mapping")
        num_threads = integer("num_threads", num_threads, 1)
        stage = batching.Parse(self._stage, Parser(dict(features)), features, num_threads)
        return self._dataset(stage, "parse_example")

    def shuffle(
        self: Self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Elements in random order, as far as a buffer of ``buffer_size`` elements allows.

        Args:
            buffer_size: Elements held in memory; the number of all elements shuffles perfectly.
                Directly after a TFRecordDataset with ``indexed=True`` that takes no memory: the
                records are read in random order.
            seed: Makes the order the same in every run and on every machine. With a seed, shards of
                indexed records are made of the order of all records: each has other records in
                every epoch, and together they have all of them.
            reshuffle_each_iteration: Use a new order in every iteration, the default. It depends on
                the epoch: see :meth:`set_epoch`.

        Raises:
            ValueError: ``buffer_size`` is below 1.
        """
        again = True
        if reshuffle_each_iteration is not None:
            again = boolean("reshuffle_each_iteration", reshuffle_each_iteration)
        return self._next(Shuffle(self._stage, buffer_size, seed, again), "shuffle")

    def shuffle_batch(
        self,
        batch_size: int,
        capacity: int,
        min_after_dequeue: int,
        seed: int | None = None,
        allow_smaller_final_batch: bool = False,
    ) -> Dataset[Value]:
        """Random batches, with the two thresholds of TensorFlow 1's ``tf.train.shuffle_batch``.

        Args:
            batch_size: Elements of a batch.
            capacity: Elements held in memory at most.
            min_after_dequeue: Elements that stay in the buffer until the source ends. Batches are
                given as soon as there are more, while the buffer is still growing.
            seed: As for :meth:`shuffle`.
            allow_smaller_final_batch: Keep a last batch of fewer elements.

        Raises:
            ValueError: ``min_after_dequeue`` is below 1 or above ``capacity``.
        """
        least, most = integer("min_after_dequeue", min_after_dequeue), integer("capacity", capacity)
        if not 1 <= least <= most:
            raise ValueError(
                f"min_after_dequeue must be within [1, capacity], found {least} and capacity {most}"
            )
        smaller = boolean("allow_smaller_final_batch", allow_smaller_final_batch)
        shuffled = Shuffle(self._stage, most, seed, True, least)
        return self._next(shuffled, "shuffle_batch").batch(batch_size, drop_remainder=not smaller)

    def repeat(self: Self, count: int | None = None, name: str | None = None) -> Self:
        """The elements ``count`` times over; forever if ``count`` is None or -1.

        A pass may have no elements, as one of a filter: ``count`` passes are made all the same.
        Without a count, such a pass is the end.

        Example:
            >>> [int(x) for x in Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        return self._next(take_skip_repeat.Repeat(self._stage, count), "repeat")

    def shard(self: Self, num_shards: int, index: int, name: str | None = None) -> Self:
        """Every ``num_shards``-th element, beginning with element ``index``.

        All elements are read; `shard_source` reads only one share of the data.

        Raises:
            ValueError: ``num_shards`` is below 1, or ``index`` not within [0, num_shards).

        Example:
            >>> [int(x) for x in Dataset.range(5).shard(2, 1)]
            [1, 3]
        """
        return self._next(stages.Shard(self._stage, num_shards, index).narrowed(), "shard")

    def shard_source(self: Self, num_shards: int, index: int, rule: ShardRule = "even") -> Self:
        """The same pipeline over one share of the data at its source: each shard reads only its own
        data.

        Shards are contiguous records if these are numbered (``indexed=True``, arrays), else whole
        files (file i is in shard i mod num_shards), and every num_shards-th element of a generator.
        All shards together have every record once, except as the rule says. Elements that ``take``,
        ``skip`` or ``shard`` chose before are divided as a whole. For hosts with several
        workers each: ``shard_source(hosts * workers, host * workers + worker)``.

        Args:
            num_shards: How many shards.
            index: The index of the shard, from 0.
            rule: "even": sizes differ by one record at most. "drop": equal sizes; the remaining
                records are in no shard. "pad": equal sizes; the last shards repeat the first
                records. "drop" and "pad" need numbered records, except that "drop" takes generators
                and what ``take``, ``skip`` or ``shard`` chose.

        Raises:
            ValueError: There is no such shard or rule; the rule needs an index; or elements were
                chosen from an order that other processes do not know, of a shuffle without a seed.

        Warns:
            TfwireWarning: There are fewer files than shards.

        Example:
            >>> [list(map(int, Dataset.range(5).shard_source(2, i, "pad"))) for i in range(2)]
            [[0, 1, 2], [3, 4, 0]]
        """
        num_shards, index = check_shard(num_shards, index)
        indexed_records.check_rule(rule)
        return self._next(self._stage.sharded(num_shards, index, rule), self._name)

    def concatenate(self, dataset: Dataset[Element], name: str | None = None) -> Dataset[Element]:
        """The elements of this dataset, then those of another.

        :meth:`shard_source` divides each of them.

        Raises:
            TypeError: ``dataset`` is not a Dataset.

        Example:
            >>> [int(x) for x in Dataset.range(2).concatenate(Dataset.range(2))]
            [0, 1, 0, 1]
        """
        check_dataset(dataset)
        return self._dataset(Concatenate((self._stage, dataset._stage)), "concatenate")

    def enumerate(
        self, start: int = 0, name: str | None = None
    ) -> Dataset[tuple[np.int64, Element]]:
        """Pairs of a number, from ``start`` on, and an element.

        Example:
            >>> [(int(i), x) for i, x in Dataset.from_tensor_slices(["a", "b"]).enumerate(1)]
            [(1, b'a'), (2, b'b')]
        """
        return self._dataset(Enumerate(self._stage, start), "enumerate")

    def unbatch(self, name: str | None = None) -> Dataset[Value]:
        """The rows of every element, one by one.

        Raises:
            ValueError: On iteration: a leaf is a scalar, or leaves have different first axes.

        Example:
            >>> [int(x) for x in Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return self._dataset(Unbatch(self._stage), "unbatch")

    def cache(self: Self, filename: str = "", name: str | None = None) -> Self:
        """The same elements; the first whole pass keeps them in memory, in the order of that pass.

        Every process keeps its own. Shuffle after it, so that epochs differ.

        Args:
            filename: "", as in TensorFlow; there is no cache in files.

        Raises:
            ValueError: ``filename`` is not "".

        Example:
            >>> dataset = Dataset.range(3).map(float).cache()
            >>> list(dataset) == list(dataset)
            True
        """
        check_type("filename", filename, str, "a str")
        if filename != "":
            raise ValueError(
                "cache keeps elements in memory: filename must be ''; write_records makes files"
            )
        return self._next(Cache(self._stage), "cache")

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, as ``set_epoch`` of torch's samplers does.

        Orders that are drawn again in every epoch depend on their seeds and this number alone.
        Without a call, a dataset counts its passes, from 0 in every process. Processes that share
        the data by :meth:`shard_source` must agree on it, and a process that is restarted goes on
        at the epoch that is due.

        Args:
            epoch: The number of the next pass over this dataset, and over others made of the same
                shuffled one. Later passes count on from there.

        Raises:
            ValueError: ``epoch`` is negative.

        Example:
            >>> dataset = Dataset.range(8).shuffle(8, seed=1)
            >>> first, second = list(dataset), list(dataset)
            >>> dataset.set_epoch(1)
            >>> second == list(dataset)
            True
        """
        Epochs(self._stage).set_next(integer("epoch", epoch, 0))

    def resume(self: Self, states: Sequence[dict[str, object]]) -> Self:
        """The same dataset, of which the next pass gives what is left of passes over its shards: to
        go on with another number of hosts, workers or threads.

        Every element that these passes have not given comes exactly once, in the shards of the
        result together. The pass after it is a whole one, of the next epoch. With as many shards
        as there were, each goes on as ``load_state_dict`` does, in the same order. With others,
        records are divided, and those of ``batch`` come in other batches: of indexed records and
        arrays contiguous parts of what is left, in its order, shuffled or not; of files those that
        were not begun and what is left of the others, and what the buffers of shuffles held comes
        first, and is shuffled again. After stages such as ``repeat``, ``zip``, ``pack``
        and ``cache``, only the same number goes on: the page on datasets has them all.

        Args:
            states: What ``state_dict`` of the iterators over all shards returned,
                ``self.shard_source(n, i)`` for each i, in this order; in one epoch, but not
                necessarily at the same step. Or the states of the loaders of all ranks, in which
                these are: of torchdata's StatefulDataLoader, ThreadLoader, or Grain's iterators.

        Returns:
            A dataset to be sharded, with the same parameters in all processes. The states of all of
            its shards can be resumed again, by it or by this dataset.

        Raises:
            TypeError: ``states`` is not a list of states.
            ValueError: They are not the states of all shards in one epoch: the message says which
                is missing, of another pipeline or epoch, or there twice. On iteration: a state is
                damaged, or the pipeline cannot be divided anew.

        Example:
            >>> dataset = Dataset.range(10).shuffle(10, seed=1)
            >>> three = [iter(dataset.shard_source(3, i)) for i in range(3)]
            >>> given = [int(next(elements)) for elements in three]
            >>> rest = dataset.resume([elements.state_dict() for elements in three])
            >>> for i in range(2):
            ...     given += [int(x) for x in rest.shard_source(2, i)]
            >>> sorted(given) == list(range(10))
            True
        """
        if not isinstance(states, (list, tuple)):
            raise TypeError(
                f"states must be a list of the states of all shards, found {type(states).__name__}"
            )
        found = resume_shards(self._stage, _all_states(states), len(states))
        Epochs(found).set_next(found.epoch)
        return self._next(found, self._name)

    def prefetch(self: Self, buffer_size: int, name: str | None = None) -> Self:
        """The same elements, made ahead by a thread.

        Args:
            buffer_size: How many elements to make ahead. 0: none, without a thread. -1 (AUTOTUNE):
                a number chosen by tfwire.

        Raises:
            ValueError: ``buffer_size`` is below -1.
        """
        count = integer("buffer_size", buffer_size)
        if count < -1:
            raise ValueError(f"buffer_size must be at least 0, or -1 (AUTOTUNE), found {count}")
        count = _AUTO_PREFETCH if count == -1 else count
        return self._next(Prefetch(self._stage, count) if count else self._stage, "prefetch")


def _all_states(saved: Sequence[Any]) -> list[dict[str, Any]]:
    found = []
    for number, part in enumerate(saved):
        states = list(iterator_states(part))
        if not states:
            raise ValueError(f"states[{number}] holds no state of an iterator")
        for state, more in states:
            checked = checked_copy(state)
            found.append({**checked, "given": checked["given"] + more})
    if not found:
        raise ValueError("states must be the states of all shards, found none")
    return found
