"""The stages Batch and Parse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from tfwire._base.aliases import BytesAs
from tfwire._base.arguments import boolean, integer
from tfwire._base.errors import ParseError
from tfwire._base.strings import StringTable, mean_length
from tfwire._data.combining import Zip
from tfwire._data.decoded_images import DecodedImages
from tfwire._data.fetched import FetchingCursor
from tfwire._data.indexed_records import ByNumber
from tfwire._data.parsed_ahead import ParsedAhead
from tfwire._data.pipeline import Pipeline, check_dataset
from tfwire._data.prefetch import (
    MOST_GIVEN,
    AheadCursor,
    Drawn,
    Prefetch,
    draw,
    mapped,
    resumed,
    split_place,
)
from tfwire._data.record_sources import Records
from tfwire._data.resuming.positions import Left
from tfwire._data.resuming.resumed import Resumed
from tfwire._data.shuffle import Shuffle
from tfwire._data.stages import (
    Cursor,
    Derived,
    GatheringElements,
    MapCursor,
    Shard,
    Stage,
    Through,
)
from tfwire._data.state_checks import COUNT, state_or
from tfwire._data.structure import (
    as_shapes,
    batched_text,
    describe,
    description,
    pad_and_stack,
    stack_elements,
    zip_structures,
)
from tfwire._data.take_skip_repeat import Repeat, Skip, Take
from tfwire._parsing.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, string
from tfwire._parsing.fetched_batches import FetchedBatches
from tfwire._parsing.packed_rows import PackingParser
from tfwire._parsing.parsers import Parser
from tfwire._records.index.record_numbers import IndexedTable, indexed_table

# Bytes of the records that a thread parses at once.
_PIECE_BYTES = 1 << 21
_RECORDS_OF_SEQUENCES = 256  # parsed at once, to be packed
D = TypeVar("D", bound=Pipeline[Any])
# Makes batches of a given size from elements; the last batch may be smaller.
Collate = Callable[[list[Any], int], Iterable[Any]]


class Parse(Derived):
    """Parses serialized Examples, one by one or in batches.

    Args:
        source: Gives records, batches of records, or either.
        parser: A Parser.
        features: Its specification.
        num_threads: How many threads parse batches; 1: the caller's.
        stacks: The source is a Batch that was asked for after parsing: its elements may be batches,
            each of which is parsed, and the results stacked.
    """

    one_to_one = True

    def __init__(
        self,
        source: Stage,
        parser: Any,
        features: Mapping[Any, Any],
        num_threads: int = 1,
        stacks: bool = False,
    ) -> None:
        self._by_number: Batch | None = None  # whose records come as RecordNumbers
        self._in_memory = False  # records come as StringTable, if they are short
        if num_threads > 1:
            source = _reading_ahead(source, num_threads)
        if (
            isinstance(source, Batch)
            and (packing := _packing(source.source, num_threads)) is not None
        ):
            packed = source.over(packing)
            if _files_of(packing) is None:
                source, self._in_memory = packed, True
            elif isinstance(packed, Batch):
                self._by_number = packed
        super().__init__(source, parser, features, num_threads, stacks)
        self.axes = None if stacks else _axes(source)
        if self.axes is not None:
            plan = parser._plans[0]
            self.spec = {
                key: _describe_feature(feature, plan.fields[key], self.axes)
                for key, feature in plan.features.items()
            }

    @property
    def features(self) -> dict[str, Any]:
        """The specification, with its keys as text."""
        found: dict[str, Any] = self.arguments[0]._plans[0].features
        return found

    @property
    def batched(self) -> bool:
        return bool(self.axes) or (self.axes is None and self.source.batched)

    def in_columns(self) -> Parse | None:
        """The stage that gives strings as BytesColumn, if it is only dense ones that are so."""
        _, features, *more = self.arguments
        for feature in self.features.values():
            dense = isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature))
            if not dense and feature.dtype == string:
                return None
        return Parse(self.source, Parser(dict(features), bytes_as="column"), features, *more)

    def in_sequences(self, names: Iterable[str]) -> Parse:
        """The stage that parses these features alone, as sequences of any length, by batches where
        it parses single records.

        Raises:
            ValueError: It parses no sequences of one of these names.
        """
        found = {name: self._sequence(name) for name in names}
        if self.axes != ():
            return self
        below = Batch(self.source, _RECORDS_OF_SEQUENCES)
        return Parse(below, Parser(found), found, self.arguments[2])

    def _sequence(self, name: str) -> Any:
        feature = self.features.get(name)
        if feature is None:
            raise ValueError(f"feature {name!r} is not in {list(self.features)}")
        if isinstance(feature, FixedLenSequenceFeature) and self.axes == () and not feature.shape:
            return RaggedFeature(feature.dtype)
        if not isinstance(feature, (FixedLenFeature, RaggedFeature)):
            kind = type(feature).__name__
            raise ValueError(f"feature {name!r} must be a RaggedFeature to be packed, found {kind}")
        return feature

    def in_batches(self, count: int, drop_remainder: bool) -> Parse | None:
        """The stage that parses batches of the elements in one call, if that is possible."""
        if isinstance(self.source, Batch) or self.axes:
            return None
        parser, features, num_threads, _ = self.arguments
        below = Batch(self.source, count, drop_remainder)
        return Parse(below, parser, features, num_threads, self.axes is None)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        parser, _, num_threads, stacks = self.arguments
        if self.axes == ():
            return MapCursor(self.source.open(epoch, at), parser.parse_single)
        if not isinstance(self.source, Batch):
            parse = parser.parse if self.axes else partial(_parse_element, parser)
            return mapped(self.source.open(epoch, at), parse, num_threads)
        records = self.source.source
        if isinstance(records, Records) and records.begin_whole:
            return records.of_epoch(epoch).open_parsed(
                parser, self.source.count, self.source.drop_remainder, num_threads, at
            )
        collate = partial(_parse_or_stack if stacks else _parse, parser)
        open_at = partial(self.source.open_collated, collate, epoch, num_threads)
        if self._in_memory and num_threads > 1 and _begins_short(self.source):
            open_at = partial(open_at, parser=parser)
        if self._by_number is not None:
            table = indexed_table(_files_of(self._by_number.source))
            if table is not None:
                open_at = partial(self._open_fetched, table, open_at, epoch)
        return resumed(open_at, self.source.depth, at)

    def below(self, left: Left, epoch: str) -> Left:
        if not isinstance(self.source, Batch):
            return Left(self.source, left.at, left.given)
        at, given = split_place(left.at, self.source.depth)
        records = self.source.source
        if isinstance(records, Records) and records.begin_whole:
            number, *position, given = state_or(at, [COUNT] * 4, [0, 0, 0, 0])
            at = [number, *position, 0]
        return Left(self.source, at, left.given + given)

    def _open_fetched(
        self, table: IndexedTable, careful: Callable[[Any], Cursor], epoch: str, at: Any
    ) -> Cursor:
        """A pass whose batches C makes of the numbers of records."""
        batch = self._by_number
        assert batch is not None
        parser, _, num_threads, _ = self.arguments
        batches = FetchedBatches(parser, table, batch.count, num_threads)
        below = batch.source.open(epoch, at)
        drop, mean = batch.drop_remainder, table.mean
        # Of a copy: opening a shuffle without a seed gives it the one of the position.
        unshared = _packing(batch.source, num_threads)
        assert unshared is not None
        reopen = partial(unshared.open, epoch)
        return FetchingCursor(
            below, batches, batch.count, mean, drop, num_threads, reopen, careful, batch.depth
        )

    def describe(self) -> str:
        return f"parse_example({', '.join(map(str, self.arguments[1]))})"


def _axes(source: Stage) -> tuple[int | None, ...] | None:
    """The shape of what a parser gets: a record or a vector of records; None if that is not known
    before there is an element."""
    if isinstance(source, Batch):
        return (source.count if source.drop_remainder else None,)
    found = description(source.spec) if isinstance(source.spec, str) else None
    return None if found is None or found.sizes is None else found.sizes[:1]


def threaded(dataset: D, num_threads: int) -> D:
    """The same dataset, parsing in this many threads; 1 leaves it as it is.

    Raises:
        TypeError: It is not a Dataset.
        ValueError: ``num_threads`` is below 1.
    """
    check_dataset(dataset)
    num_threads = integer("num_threads", num_threads, 1)
    if num_threads == 1:
        return dataset
    return dataset._next(_with_threads(dataset._stage, num_threads), dataset._name)


def _with_threads(stage: Stage, num_threads: int) -> Stage:
    """The same pipeline, parsing in this many threads."""
    if isinstance(stage, Zip):
        return Zip(tuple(_with_threads(source, num_threads) for source in stage.sources))
    if isinstance(stage, Records):
        return stage.with_threads(num_threads)
    if isinstance(stage, Resumed):
        return stage.over(_with_threads(stage.whole, num_threads))
    if not isinstance(stage, Derived):
        return stage
    below = _with_threads(stage.source, num_threads)
    if isinstance(stage, Parse):
        parser, features, _, stacks = stage.arguments
        return Parse(below, parser, features, num_threads, stacks)
    if isinstance(stage, DecodedImages):
        return stage.with_threads(below, num_threads)
    return stage.over(below)


def packing_batches(stage: Stage, bytes_as: BytesAs | None = None) -> Stage:
    """The same pipeline, whose batches are PackedRows where nothing after parsing looks into them,
    and where C reads the records. Their strings are in this form; None: as the parser has it."""
    if isinstance(stage, (Prefetch, Repeat, Shard, Skip, Take)):
        below = packing_batches(stage.source, bytes_as)
        return stage if below is stage.source else stage.over(below)
    if isinstance(stage, Resumed):
        return stage.over(packing_batches(stage.whole, bytes_as))
    if not isinstance(stage, Parse) or not isinstance(stage.source, Batch):
        return stage
    parser, *others = stage.arguments
    return Parse(stage.source, PackingParser.over(parser, bytes_as), *others)


def _reading_ahead(stage: Stage, num_threads: int) -> Stage:
    """The same stage, with files read by this many threads; a shuffle, which counts epochs for
    others, too, is not copied."""
    if isinstance(stage, Records):
        return stage.with_threads(num_threads)
    if stage.redraws or not isinstance(stage, Derived):
        return stage
    below = _reading_ahead(stage.source, num_threads)
    return stage if below is stage.source else stage.over(below)


def _parse(parser: Any, records: Any, size: int) -> Iterable[Any]:
    """Batches of a given size, each parsed in one call."""
    try:
        found: list[Any] = parser._parse_batches(records, size)
        return found
    except ParseError:
        # Parse again, one batch at a time: the error then has its number within its batch.
        return (parser._parse_batches(some, None)[0] for some in _cut(records, size))


def _parse_element(parser: Any, element: Any) -> Any:
    """A record parsed, or a batch of records."""
    return parser.parse_single(element) if type(element) is bytes else parser.parse(element)


def _parse_or_stack(parser: Any, elements: list[Any], size: int) -> Iterable[Any]:
    """Batches of a given size; of elements that are batches themselves, stacked results."""
    if all(type(element) is bytes for element in elements):
        return _parse(parser, elements, size)
    return (
        stack_elements([_parse_element(parser, element) for element in some])
        for some in _cut(elements, size)
    )


def _packing(stage: Stage, num_threads: int) -> Stage | None:
    """The same stage, giving shuffled records without a Python object for each; None if a stage in
    between may need the objects."""
    if isinstance(stage, Shuffle):
        records = stage.source
        if isinstance(records, Records) and records.cycle <= 1:
            return stage.packing().over(records.with_threads(min(num_threads, 2)))
        return stage.packing() if _files_of(stage) is not None else None
    if isinstance(stage, ByNumber) and stage.files is not None:
        return stage.packing()
    if isinstance(stage, (Repeat, Shard, Skip, Take)):
        below = _packing(stage.source, num_threads)
        return None if below is None else stage.over(below)
    return None


def _begins_short(stage: Stage) -> bool:
    return any(isinstance(each, Records) and each.begins_short() for each in stage.chain())


def _files_of(stage: Stage) -> Any:
    """The files of which a stage gives records by their numbers, or None."""
    while isinstance(stage, (Repeat, Shard, Skip, Take)):
        stage = stage.source
    if isinstance(stage, Shuffle) and stage.is_by_number:
        stage = stage.source
    return stage.files if isinstance(stage, ByNumber) else None


def _describe_feature(feature: Any, field: Any, batch: tuple[int | None, ...]) -> str:
    """A result's dtype and shape, batch axes first; the feature's name if it is not an array."""
    if isinstance(feature, FixedLenFeature):
        shape = field.shape
    elif isinstance(feature, FixedLenSequenceFeature):
        shape = (None, *field.shape)
    else:
        return type(feature).__name__
    return describe(feature.dtype.as_numpy_dtype, batch + shape)


# ---- Batches ----------------------------------------------------------------------------------
class Batch(Derived):
    """Stacks elements into batches.

    Args:
        source: Gives the elements.
        count: Elements per batch.
        drop_remainder: Leave out an incomplete last batch.
        padding: None, or the padded_shapes, padding_values and max_padding of ``padded_batch``.
    """

    batched = True

    def __init__(
        self,
        source: Stage,
        count: int,
        drop_remainder: bool = False,
        padding: tuple[Any, Any, int | None] | None = None,
    ) -> None:
        count = integer("batch_size", count, 1)
        drop_remainder = boolean("drop_remainder", drop_remainder)
        super().__init__(source, count, drop_remainder, padding)
        self.count = count
        self.drop_remainder = drop_remainder
        self.padding = padding
        self.spec = source.spec and self._batched(source.spec)
        if source.length is not None:
            self.length = source.length // count
            self.length += bool(source.length % count) and not drop_remainder

    def _batched(self, spec: Any) -> Any:
        """The spec of batches; sizes to pad to that do not fit it are an error on iteration."""
        size = self.count if self.drop_remainder else None
        shapes = None if self.padding is None else self.padding[0]
        try:
            return zip_structures(
                lambda text, shape: batched_text(text, size, shape),
                spec,
                as_shapes(shapes, spec),
                spread=True,
            )
        except (TypeError, ValueError):
            return None

    @property
    def depth(self) -> int:
        """The number of stages from here on."""
        return sum(1 for _ in self.chain())

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return self.open_collated(self._collate, epoch, 1, at)

    def origin(self, epoch: str, place: int) -> list[int]:
        return self.source.origin(epoch, place * self.count)

    def below(self, left: Left, epoch: str) -> Left:
        return Left(self.source, left.at, left.given * self.count)

    def _collate(self, elements: list[Any], size: int) -> Iterable[Any]:
        if isinstance(elements, StringTable):  # for a parser above stages that choose batches
            return _cut(elements, size)
        if self.padding is None:
            return map(stack_elements, _cut(elements, size))
        return (pad_and_stack(some, *self.padding) for some in _cut(elements, size))

    def open_collated(
        self, collate: Collate, epoch: str, num_threads: int, at: Any, parser: Any = None
    ) -> Cursor:
        """A pass whose batches are made by a function, in the caller's thread or in several.

        Args:
            collate: The function.
            epoch, at: As for ``open``.
            num_threads: How many threads call it.
            parser: Its native threads do so instead; elements come as StringTable.
        """
        below = self.source.open(epoch, at)
        if num_threads <= 1:
            return _BatchCursor(below, self, collate)
        pieces = _Drawing(below, self)
        work = partial(pieces.collate, collate)
        ahead = None
        if parser is not None:
            how = parser, self.count, self.drop_remainder, num_threads
            ahead = partial(ParsedAhead, pieces.draw, work, *how)
        return AheadCursor(below, pieces.draw, work, num_threads, depth=self.depth, ahead=ahead)

    def describe(self) -> str:
        return f"batch({self.count}, {self.drop_remainder})"


class _BatchCursor(Through, GatheringElements):
    def __init__(self, below: Cursor, stage: Batch, collate: Collate) -> None:
        super().__init__(below)
        self.goes_on = True
        self._size = stage.count
        self._drop_remainder = stage.drop_remainder
        self._collate = collate

    def elements(self, count: int) -> Iterator[Any]:
        size = self._size
        while count > 0 and (elements := self._below.take(count * size)):
            if self._drop_remainder:
                elements = elements[: len(elements) // size * size]
                if not elements:
                    continue
            self.goes_on = len(elements) <= size  # an error would lose the batches that follow
            yield from self._collate(elements, size)
            self.goes_on = True
            count -= -(-len(elements) // size)


class _Drawing:
    """Draws the records of batches that a thread parses at once: a few megabytes.

    Args:
        below: Gives the records.
        stage: Of the batches.
    """

    def __init__(self, below: Cursor, stage: Batch) -> None:
        self._below = below
        self._size = stage.count
        self._drop_remainder = stage.drop_remainder
        self._quiet = stage.quiet
        self._num_batches = 1  # of the next piece

    def draw(self) -> Drawn:
        drawn = draw(self._below, self._num_batches * self._size)
        if self._quiet and len(drawn.elements):
            fitting = _PIECE_BYTES // (mean_length(drawn.elements) * self._size + 1)
            self._num_batches = max(1, min(fitting, 2 * self._num_batches, MOST_GIVEN))
        return drawn

    def collate(self, collate: Collate, elements: Any) -> Iterable[Any]:
        if self._drop_remainder:
            elements = elements[: len(elements) // self._size * self._size]
        return collate(elements, self._size) if len(elements) else ()


def _cut(elements: Any, size: int) -> Iterator[Any]:
    return (elements[i : i + size] for i in range(0, len(elements), size))
