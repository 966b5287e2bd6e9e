"""Elements of several datasets in turn, and batches of elements of similar length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TypeVar

from tfwire._base.aliases import Array, OnLong, Value
from tfwire._base.arguments import boolean, check_callable, check_type, integer, refuse_unordered
from tfwire._data.batching import Parse
from tfwire._data.pipeline import Element, Pipeline
from tfwire._data.prefetch import Replayed, defer, stage_elements
from tfwire._data.sequence_packing import Pack, make_packing
from tfwire._data.stages import Stage
from tfwire._data.structure import MAX_PADDING, check_padding, pad_and_stack, stack_elements

if TYPE_CHECKING:
    from tfwire._data.dataset import Dataset

Elements = Iterator[Any]
Result = TypeVar("Result")


class Regrouping(Pipeline[Element]):
    """The methods of Dataset that change which elements come together."""

    def interleave(
        self, map_func: Callable[..., Dataset[Result]], cycle_length: int, block_length: int = 1
    ) -> Dataset[Result]:
        """Elements of several of the datasets that ``map_func`` makes, in turn.

        A dataset that has ended is replaced by the next one, a round later, as in TensorFlow. Of
        files alone, ``TFRecordDataset(files, num_parallel_reads=n)`` is faster. A state is the
        number of elements given, and loading it makes them again.

        Args:
            map_func: Makes a dataset of an element; tuples are passed as separate arguments,
                named tuples as one.
            cycle_length: How many datasets take turns.
            block_length: Elements per turn.

        Returns:
            A dataset. :meth:`shard_source` divides the elements that ``map_func`` gets.

        Raises:
            TypeError: ``map_func`` is not callable or, on iteration, returns no Dataset.
            ValueError: ``cycle_length`` or ``block_length`` is below 1.

        Example:
            >>> tens = lambda n: Dataset.range(10 * n, 10 * n + 3)
            >>> [int(x) for x in Dataset.range(2).interleave(tens, cycle_length=2, block_length=2)]
            [0, 1, 10, 11, 2, 12]
        """
        check_callable("map_func", map_func)
        cycle = integer("cycle_length", cycle_length, 1)
        block = integer("block_length", block_length, 1)
        open_inner = partial(_open_inner, self._calling(map_func))
        stage = Interleave(self._stage, open_inner, cycle, block)
        found: Any = self._next(stage, "interleave")
        dataset: Dataset[Result] = found
        return dataset

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., int],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: object = None,
        padding_values: object = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset[Value]:
        """Padded batches of elements of similar length.

        A batch is given when its bucket is full; at the end, the others follow, shortest first. A
        state is the number of batches given, and loading it makes them again.

        Args:
            element_length_func: The length of an element.
            bucket_boundaries: The lengths at which the next bucket begins, increasing.
            bucket_batch_sizes: The batch size of each bucket: one more than there are boundaries.
            padded_shapes, padding_values: As for ``padded_batch``, whose limit of padding holds.
            pad_to_bucket_boundary: Sizes of ``padded_shapes`` that are None or -1 become the next
                boundary minus 1, so that there are few shapes; an element beyond the last boundary
                is an error then.
            no_padding: Stack the elements, which must have one shape.
            drop_remainder: Leave out batches that are not full.

        Raises:
            TypeError: ``element_length_func`` is not callable, or a number is not an integer; on
                iteration: nor is its result.
            ValueError: The numbers do not fit each other, or ``pad_to_bucket_boundary`` has no
                ``padded_shapes``; on iteration as ``padded_batch``.

        Example:
            >>> rows = Dataset.from_generator(lambda: [np.arange(n) for n in (1, 5, 2, 6)])
            >>> batches = rows.bucket_by_sequence_length(len, [4], [2, 2], padding_values=-1)
            >>> [batch.shape for batch in batches]
            [(2, 2), (2, 6)]
        """
        check_callable("element_length_func", element_length_func)
        bounds, sizes = check_buckets(bucket_boundaries, bucket_batch_sizes)
        check_padding(padded_shapes, padding_values)
        to_boundary = boolean("pad_to_bucket_boundary", pad_to_bucket_boundary)
        no_padding = boolean("no_padding", no_padding)
        if to_boundary and padded_shapes is None and not no_padding:
            raise ValueError(
                "pad_to_bucket_boundary needs padded_shapes, whose sizes of None it replaces"
            )
        padding = None if no_padding else (padded_shapes, padding_values, MAX_PADDING)
        drop = boolean("drop_remainder", drop_remainder)
        make = partial(_batch_of_bucket, bounds, sizes, padding, to_boundary, drop)
        key_of = partial(_bucket_of, bounds, self._calling(element_length_func))
        generate = partial(group_by_window, key_of, sizes.__getitem__, make)
        described = f"bucket_by_sequence_length({bounds}, {sizes}, {drop})"
        endless = self._stage.endless
        stage = _Buckets(described, (self._stage,), generate, endless=endless)
        dataset: Any = self._next(stage, "bucket")
        found: Dataset[Value] = dataset
        return found

    def pack(
        self,
        lengths: Mapping[str, int],
        *,
        num_bins: int = 64,
        on_long: OnLong = "raise",
        padding_values: object = None,
    ) -> Dataset[dict[str, Array]]:
        """Sequences of several elements side by side in rows of one length, as language models are
        trained on.

        An element goes into the first of ``num_bins`` rows that has room for all of its features.
        When one fits into none, these rows are given, and it begins the next ones: the rows of
        Grain's ``FirstFitPackIterDataset``, in order. The last rows may be few. More bins leave
        less padding, and mix elements over a longer stretch.

        Elements are dicts, of single records or batches, as ``parse_example`` makes them, of
        RaggedFeatures and of dense features of rank 0 or 1 (a scalar is a sequence of one value).
        After ``parse_example`` of single records, whole batches are parsed instead.

        Args:
            lengths: By feature, the length of its row. Other features are left out.
            num_bins: How many rows are filled at a time.
            on_long: What to do with an element that has a sequence longer than its row: "raise";
                "split" it into several, each of which is packed like an element; "trim" it.
            padding_values: For each feature, or for all; None is 0 or b"".

        Returns:
            A dataset of rows: beside each feature ``x``, ``x_segment_ids`` says which element of
            its row each value is of, from 1 on, and 0 where there is padding; ``x_positions`` where
            in its sequence it is (both int32). A state is the position before the rows that are
            being given, and how many were.

        Raises:
            TypeError: ``lengths`` is not a mapping of names to integers.
            ValueError: A length or ``num_bins`` is below 1, or ``num_bins`` times their sum is not
                below 2**31; there is no such feature, or it is not one of sequences; on iteration:
                a sequence is longer than its row.

        Example:
            >>> texts = Dataset.from_generator(lambda: [{"ids": [1, 2, 3]}, {"ids": [4, 5]}])
            >>> row = next(iter(texts.pack({"ids": 6})))
            >>> row["ids"].tolist(), row["ids_segment_ids"].tolist(), row["ids_positions"].tolist()
            ([1, 2, 3, 4, 5, 0], [1, 1, 1, 2, 2, 0], [0, 1, 2, 0, 1, 0])
        """
        packing = make_packing(lengths, num_bins, on_long, padding_values)
        stage = self._stage
        if isinstance(stage, Parse):
            stage = stage.in_sequences(packing.lengths)
        found: Any = self._next(Pack(stage, packing), "pack")
        dataset: Dataset[dict[str, Array]] = found
        return dataset


class _Buckets(Replayed):
    """Batches of elements of similar length."""

    batched = True


class Interleave(Replayed):
    """Elements of the datasets of a function, in turn.

    Args:
        source: The stage whose elements the function gets.
        open_inner: Opens the dataset of an element, for an epoch.
        cycle: How many datasets take turns.
        block: Elements per turn.
    """

    def __init__(
        self, source: Stage, open_inner: Callable[[Any, str], Elements], cycle: int, block: int
    ) -> None:
        generate = partial(interleave, open_inner, cycle, block)
        super().__init__(f"interleave({cycle}, {block})", (source,), generate)
        self._arguments = (open_inner, cycle, block)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """The datasets of a share of the elements."""
        if rule != "even":
            raise ValueError(f"rule={rule!r} needs a source of known length, not {self.name}")
        return Interleave(self.sources[0].sharded(num_shards, index, rule), *self._arguments)


# Functions of modules, no closures: pipelines pickle with their functions.
def _open_inner(call: Callable[[Any], Any], element: Any, epoch: str) -> Elements:
    inner = call(element)
    if not isinstance(inner, Pipeline):
        raise TypeError(f"map_func must return a Dataset, found {type(inner).__name__}")
    return stage_elements(inner._stage, epoch)


# ---- Buckets ------------------------------------------------------------------------------------
def check_buckets(boundaries: Any, batch_sizes: Any) -> tuple[list[int], list[int]]:
    """The boundaries and batch sizes as ints.

    Raises:
        TypeError: They are not integers.
        ValueError: Their numbers do not match, or the boundaries are not in order.
    """
    for name, numbers in (("bucket_boundaries", boundaries), ("bucket_batch_sizes", batch_sizes)):
        check_type(name, numbers, Iterable, "a list of integers")
        refuse_unordered(name, numbers)
    bounds = [integer("bucket_boundaries", bound) for bound in boundaries]
    sizes = [integer("bucket_batch_sizes", size, 1) for size in batch_sizes]
    if len(sizes) != len(bounds) + 1:
        raise ValueError(
            "bucket_batch_sizes must have one more item than bucket_boundaries, found "
            f"{len(sizes)} sizes and {len(bounds)} boundaries"
        )
    if bounds != sorted(set(bounds)):
        raise ValueError(f"bucket_boundaries must increase, found {bounds}")
    return bounds, sizes


def _bucket_of(bounds: list[int], length_of: Callable[[Any], Any], element: Any) -> int:
    return bisect_right(bounds, integer("the result of element_length_func", length_of(element)))


def _batch_of_bucket(
    bounds: list[int],
    sizes: list[int],
    padding: tuple[Any, Any, int | None] | None,
    to_boundary: bool,
    drop_remainder: bool,
    bucket: int,
    elements: list[Any],
    epoch: str,
) -> Elements:
    """The batch of the elements of a bucket; nothing for too few, if ``drop_remainder``.

    Args:
        padding: The last arguments of ``pad_and_stack``; None: elements are stacked as they are.
        to_boundary: Sizes of None in the padded shapes become the end of the bucket.
    """
    if drop_remainder and len(elements) < sizes[bucket]:
        return
    if padding is None:
        yield stack_elements(elements)
        return
    shapes, *others = padding
    if to_boundary and bucket == len(bounds):
        raise ValueError(
            "pad_to_bucket_boundary: an element is not shorter than the last of bucket_boundaries"
        )
    if to_boundary:
        shapes = filled_shapes(shapes, bounds[bucket] - 1)
    yield pad_and_stack(elements, shapes, *others)


def filled_shapes(shapes: Any, size: int) -> Any:
    """Padded shapes with a size instead of None and -1."""
    if isinstance(shapes, dict):
        return {key: filled_shapes(shape, size) for key, shape in shapes.items()}
    if isinstance(shapes, tuple) and not all(one is None or isinstance(one, int) for one in shapes):
        return tuple(filled_shapes(shape, size) for shape in shapes)
    sizes = shapes.numpy().tolist() if hasattr(shapes, "numpy") else shapes
    return [size if one in (None, -1) else one for one in sizes]


# ---- Generator functions ------------------------------------------------------------------------
# Each takes the epoch and an iterator of its source last, as Replayed calls it.
def interleave(
    open_inner: Callable[[Any, str], Elements],
    cycle_length: int,
    block_length: int,
    epoch: str,
    source: Elements,
) -> Elements:
    """``block_length`` elements of each of ``cycle_length`` datasets in turn.

    A dataset that ends loses its turn; the next input takes its place one round later.
    """
    numbered = enumerate(source)
    open_now: list[Elements | None] = [None] * cycle_length
    place = 0
    more = True
    while more or any(inner is not None for inner in open_now):
        inner = open_now[place]
        if inner is None and more:
            found = next(numbered, None)
            more = found is not None
            if found is not None:
                inner = open_inner(found[1], f"{epoch}.{found[0]}")
        if inner is not None:
            given = 0
            for element in islice(inner, block_length):
                given += 1
                yield element
            open_now[place] = inner if given == block_length else None
        place = (place + 1) % cycle_length


class Intact:
    """Iterates over elements up to an error, which is kept: for functions that hold elements back,
    which give these before they raise it."""

    def __init__(self, elements: Elements) -> None:
        self._elements = elements
        self._error: Exception | None = None

    def __iter__(self) -> Elements:
        return self

    def __next__(self) -> Any:
        if self._error is None:
            try:
                return next(self._elements)
            except StopIteration:
                raise
            except Exception as error:
                self._error = error
                defer(error)
        raise StopIteration

    def raise_error(self) -> None:
        """Raises the error, if there was one."""
        if self._error is not None:
            raise self._error


def group_by_window(
    key_of_element: Callable[[Any], int],
    window_size: Callable[[int], int],
    open_window: Callable[[int, list[Any], str], Elements],
    epoch: str,
    source: Elements,
) -> Elements:
    """What a function makes of groups of elements with the same key.

    A group is given when it has as many elements as its window; at the end of the source the
    others follow, in the order of their keys.
    """
    groups: dict[int, list[Any]] = {}
    sizes: dict[int, int] = {}
    number = count()
    intact = Intact((key_of_element(element), element) for element in source)
    for key, element in intact:
        if key not in groups:
            groups[key], sizes[key] = [], window_size(key)
        groups[key].append(element)
        if len(groups[key]) == sizes[key]:
            yield from open_window(key, groups.pop(key), f"{epoch}.{next(number)}")
    for key in sorted(groups):
        yield from open_window(key, groups[key], f"{epoch}.{next(number)}")
    intact.raise_error()
