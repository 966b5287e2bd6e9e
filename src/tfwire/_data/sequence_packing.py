"""The stage Pack: sequences of several elements side by side in rows of one length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import check_type, choice, integer
from tfwire._base.arrays import to_splits
from tfwire._base.errors import copied
from tfwire._base.native import call, ffi, lib
from tfwire._base.strings import as_array
from tfwire._base.text import show_key
from tfwire._data.stages import Cursor, Derived, GatheringPieces, Stage, Through
from tfwire._data.state_checks import COUNT, MISSING, state_or
from tfwire._data.structure import check_padding, describe, description, padding_of
from tfwire._examples.column_types import RaggedTensor, SparseTensor

Array = np.ndarray[Any, Any]
# Elements taken at once; few where a function of the user makes them.
_ELEMENTS_AT_ONCE, _MADE_AT_ONCE = 256, 32


class Sequences(NamedTuple):
    """Elements, each a sequence of every feature.

    Attributes:
        values: By feature, the values of all elements.
        begins, lengths: Where in them each sequence is: int64 of shape (features, elements).
    """

    values: list[Array]
    begins: Array
    lengths: Array

    @property
    def num_elements(self) -> int:
        return int(self.lengths.shape[1])


class SequencePacking(NamedTuple):
    """What is packed: the arguments of ``Dataset.pack``."""

    lengths: dict[str, int]
    num_bins: int
    on_long: str
    padding: dict[str, Any]

    @property
    def widths(self) -> Array:
        return np.array(list(self.lengths.values()), np.int64)

    def sequences(self, elements: list[Any], batched: bool) -> Sequences:
        """The sequences of elements, or of the only element, which is a batch."""
        for element in elements:
            check_type("an element", element, Mapping, "a dict, as of parse_example, to pack")
            for name in self.lengths:
                if name not in element:
                    raise ValueError(f"feature {name!r} of pack is not in {list(element)}")
        columns = []
        for name in self.lengths:
            found = [element[name] for element in elements]
            columns.append(_rows(name, found[0]) if batched else _joined(name, found))
        counts = {name: len(column[1]) for name, column in zip(self.lengths, columns, strict=True)}
        if len({*counts.values()}) > 1:
            raise ValueError(f"features of a batch have different numbers of rows: {counts}")
        values, begins, lengths = zip(*columns, strict=True)
        return self._fitting(Sequences(list(values), np.stack(begins), np.stack(lengths)))

    def is_batch(self, element: Any) -> bool:
        """True if an element, whatever it is, has rows of different lengths."""
        if not isinstance(element, Mapping):
            return False
        return any(isinstance(element.get(name), RaggedTensor) for name in self.lengths)

    def _fitting(self, found: Sequences) -> Sequences:
        """The same, none longer than its row."""
        widths = self.widths[:, np.newaxis]
        if not (found.lengths > widths).any():
            return found
        if self.on_long == "trim":
            return found._replace(lengths=np.minimum(found.lengths, widths))
        if self.on_long == "split":
            return _split(found, widths)
        element, feature = np.argwhere((found.lengths > widths).T)[0]
        name, length = list(self.lengths)[feature], found.lengths[feature, element]
        raise ValueError(
            f"feature {name!r} of an element has {length} values, and its row {self.lengths[name]}"
            '; on_long="split" or "trim" takes such elements'
        )

    def spec(self, spec: Any) -> Any:
        """The structure of rows of elements that are of this one."""
        if not isinstance(spec, dict):
            return None
        found: dict[str, str | None] = {}
        for name, length in self.lengths.items():
            if name not in spec:
                raise ValueError(f"feature {name!r} of pack is not in {list(spec)}")
            known = description(spec[name])
            found[name] = None if known is None else f"{known.dtype}[{length}]"
            for beside in _beside(name):
                found[beside] = describe(np.int32, [length])
        return found


def make_packing(lengths: Any, num_bins: Any, on_long: Any, padding_values: Any) -> SequencePacking:
    """The arguments of ``Dataset.pack``, checked."""
    check_type("lengths", lengths, Mapping, "a mapping of names to lengths")
    found = {}
    for name, length in lengths.items():
        check_type("a key of lengths", name, str, "a str")
        found[name] = _below_2_31(f"lengths[{show_key(name)}]", length)
    names = [*found, *(beside for name in found for beside in _beside(name))]
    if not found or len({*names}) < len(names):
        raise ValueError(f"lengths must name features whose rows differ in name, found {[*found]}")
    if isinstance(padding_values, Mapping):
        unknown = [key for key in padding_values if key not in found]
        if unknown:
            raise ValueError(f"padding_values must be of {[*found]}, found {unknown}")
        padding = {name: padding_values.get(name) for name in found}
    else:
        padding = dict.fromkeys(found, padding_values)
    check_padding(None, padding)
    on_long = choice("on_long", on_long, ["raise", "split", "trim"])
    bins = _below_2_31("num_bins", num_bins)
    _below_2_31("num_bins times the lengths", bins * sum(found.values()))
    return SequencePacking(found, bins, on_long, padding)


def _below_2_31(name: str, value: Any) -> int:
    """An argument that positions, which are int32, can count."""
    number = integer(name, value, 1)
    if number >= 1 << 31:
        raise ValueError(f"{name} must be below 2**31, found {number}")
    return number


def _beside(name: str) -> tuple[str, str]:
    return f"{name}_segment_ids", f"{name}_positions"


# ---- Elements ---------------------------------------------------------------------------------
def _rows(name: str, column: Any) -> tuple[Array, Array, Array]:
    """The values, beginnings and lengths of the rows of a batch."""
    if isinstance(column, RaggedTensor) and not isinstance(column.values, RaggedTensor):
        values, splits = as_array(column.values), column.row_splits.astype(np.int64)
        _check_rank(name, values.ndim)
        return values, splits[:-1], np.diff(splits)
    values = _dense(name, column)
    _check_rank(name, values.ndim - 1)
    size = values.size // len(values) if len(values) else 0
    begins = np.arange(len(values), dtype=np.int64) * size
    return values.ravel(), begins, np.full(len(values), size, np.int64)


def _joined(name: str, sequences: list[Any]) -> tuple[Array, Array, Array]:
    """The values, beginnings and lengths of sequences, one after the other."""
    arrays = [_dense(name, sequence) for sequence in sequences]
    for array in arrays:
        _check_rank(name, array.ndim)
    splits = to_splits(np.array([array.size for array in arrays], np.int64))
    some = [array.ravel() for array in arrays if array.size]  # empty lists have a dtype of floats
    return np.concatenate(some or arrays[:1], axis=None), splits[:-1], np.diff(splits)


def _dense(name: str, column: Any) -> Array:
    if isinstance(column, (RaggedTensor, SparseTensor)):
        kind = type(column).__name__
        raise ValueError(f"feature {name!r} of pack must be a sequence of values, found a {kind}")
    return np.array(column, object) if isinstance(column, bytes) else as_array(column)


def _check_rank(name: str, rank: int) -> None:
    if rank not in (0, 1):
        raise ValueError(f"feature {name!r} of pack must be of rank 0 or 1, found rank {rank}")


def _split(found: Sequences, widths: Array) -> Sequences:
    """Elements in pieces as long as their rows, the last one shorter."""
    pieces = np.maximum((-(-found.lengths // widths)).max(axis=0), 1)
    of = np.repeat(np.arange(found.num_elements, dtype=np.int64), pieces)
    passed = (np.arange(len(of), dtype=np.int64) - to_splits(pieces)[of]) * widths
    lengths = np.clip(found.lengths[:, of] - passed, 0, widths)
    passed = np.minimum(passed, found.lengths[:, of])
    return Sequences(found.values, found.begins[:, of] + passed, lengths)


# ---- Rows -------------------------------------------------------------------------------------
class _Bins:
    """Rows that elements are put into, until one fits into none."""

    def __init__(self, packing: SequencePacking) -> None:
        self._packing = packing
        self._widths = packing.widths
        self._filled = np.zeros((packing.num_bins, len(self._widths)), np.int64)
        self._held = np.zeros(packing.num_bins, np.int64)
        shapes = [(packing.num_bins, length) for length in packing.lengths.values()]
        self._values: list[Array | None] = [None] * len(shapes)
        self._dtypes = [np.dtype(np.float32)] * len(shapes)  # of those without values
        self._ids = [np.zeros(shape, np.int32) for shape in shapes]
        self._positions = [np.zeros(shape, np.int32) for shape in shapes]
        self.is_empty = True

    def add(self, found: Sequences, first: int) -> int:
        """Puts elements into rows, from this one on; the number of the first that fits into none,
        or of all."""
        lengths = np.ascontiguousarray(found.lengths, np.int64)
        places = np.empty((2 + len(lengths), found.num_elements), np.int64)
        end = ffi.new("size_t *")
        numbers = [
            ffi.from_buffer("int64_t[]", array)
            for array in (self._widths, self._filled, self._held, lengths, places)
        ]
        rows = ffi.new("tfw_rows *", [*numbers[:3], len(lengths), len(self._held)])
        call(lib.tfw_first_fit, rows, numbers[3], found.num_elements, first, numbers[4], end)
        chosen = slice(first, int(end[0]))
        if first < chosen.stop:
            self.is_empty = False
            for i, values in enumerate(found.values):
                parts = found.begins[i], lengths[i], places[0], places[1], places[2 + i]
                self._copy(
                    i, values, [np.ascontiguousarray(part[chosen], np.int64) for part in parts]
                )
        return chosen.stop

    def _copy(self, i: int, values: Array, parts: list[Array]) -> None:
        """Copies segments of values of a feature to their rows."""
        if not values.size:
            self._dtypes[i] = values.dtype
            return
        out = self._out(i, values.dtype)
        values = np.ascontiguousarray(values, out.dtype)
        arrays = [ffi.from_buffer("int64_t[]", part) for part in parts]
        segments = ffi.new("tfw_segments *", [*arrays, len(parts[0])])
        bitwise = not values.dtype.hasobject
        call(
            lib.tfw_copy_segments,
            segments,
            ffi.from_buffer(values) if bitwise else ffi.NULL,
            len(values),
            values.itemsize,
            *out.shape,
            ffi.from_buffer(out) if bitwise else ffi.NULL,
            ffi.from_buffer("int32_t[]", self._ids[i]),
            ffi.from_buffer("int32_t[]", self._positions[i]),
        )
        if not bitwise:
            for begin, length, row, _, start in zip(*(p.tolist() for p in parts), strict=True):
                out[row, start : start + length] = values[begin : begin + length]

    def _out(self, i: int, dtype: Any) -> Array:
        """The rows of a feature, in a dtype that holds these values, too."""
        out = self._values[i]
        if out is None:
            out = self._padded(i, dtype)
        dtype = np.result_type(out, dtype)
        self._values[i] = out = out if out.dtype == dtype else out.astype(dtype)
        return out

    def _padded(self, i: int, dtype: Any) -> Array:
        name, length = list(self._packing.lengths.items())[i]
        return padding_of(self._packing.padding[name], (self._packing.num_bins, length), dtype)

    def rows(self) -> list[dict[str, Array]]:
        """The rows that have elements."""
        columns = {}
        for i, name in enumerate(self._packing.lengths):
            values = self._values[i]
            columns[name] = self._padded(i, self._dtypes[i]) if values is None else values
            parts = zip(_beside(name), (self._ids[i], self._positions[i]), strict=True)
            columns.update(parts)
        count = int(np.count_nonzero(self._held))
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]


# ---- The stage --------------------------------------------------------------------------------
class Pack(Derived):
    """Rows of sequences of several elements."""

    batched = False

    def __init__(self, source: Stage, packing: SequencePacking) -> None:
        super().__init__(source, packing)
        self.packing = packing
        self.length = None
        self.spec = packing.spec(source.spec)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        used, given, below = state_or(at, [COUNT, COUNT, object], (0, 0, None))
        cursor = _PackCursor(self.source.open(epoch, below), self)
        try:
            cursor.restore(used, given)
        except BaseException:
            cursor.close()
            raise
        return cursor

    def describe(self) -> str:
        return f"pack({', '.join(map(str, self.packing))})"


class _PackCursor(Through, GatheringPieces):
    """Elements are taken some at a time. A snapshot is that of the source before those with which
    the rows began that are being given, how many of these are in rows before them, and how many of
    the rows were given."""

    goes_on = True

    def __init__(self, below: Cursor, stage: Pack) -> None:
        super().__init__(below)
        self._packing = stage.packing
        self._batched: bool | None = stage.source.batched or None  # the first element tells
        self._at_once = _ELEMENTS_AT_ONCE if stage.source.quiet else _MADE_AT_ONCE
        self._taken: Sequences | None = None
        self._used = 0  # of those taken
        self._before: Any = None  # the place of the source before them, or why it is not known
        self._rows: list[Any] = []
        self._given = 0
        self._begin: tuple[int, Any] = (0, None)  # of these rows: as _used and _before

    def restore(self, used: int, given: int) -> None:
        for _ in range(2):  # the first element is taken alone
            if used and self._take(True):
                assert self._taken is not None
                self._used = min(used, self._taken.num_elements)
                used -= self._used
        if used:
            raise ValueError(MISSING)
        if given:
            if not self._pack() or given >= len(self._rows):
                raise ValueError(MISSING)
            self._rows, self._given = self._rows[given:], given

    def recover(self) -> bool:
        failed = self._raised
        if not super().recover():
            return False
        if failed:
            self.deferred = None
        return True

    def piece(self, count: int) -> list[Any] | None:
        if not self._rows and not self._pack():
            return None
        found, self._rows = self._rows[:count], self._rows[count:]
        self._given += len(found)
        return found

    @property
    def _has_left(self) -> bool:
        return self._taken is not None and self._used < self._taken.num_elements

    def _pack(self) -> bool:
        """Fills the next rows; False at the end."""
        bins = _Bins(self._packing)
        while self._has_left or self._take(bins.is_empty):
            assert self._taken is not None
            if bins.is_empty:
                self._begin = self._used, self._before
            self._used = bins.add(self._taken, self._used)
            if self._has_left:
                break
        self._rows, self._given = [] if bins.is_empty else bins.rows(), 0
        return not bins.is_empty

    def _take(self, is_first: bool) -> bool:
        """Takes the next elements; False at the end, or before an error that comes after the rows
        that were begun."""
        if self.deferred is None:
            try:
                self._before = self._below.snapshot()
            except Exception as unknown:
                self._before = unknown
            try:
                elements = self._below.take(self._at_once if self._batched is False else 1)
                return bool(elements) and self._convert(elements)
            except Exception as error:
                self.deferred = error
        if is_first:
            raised, self.deferred = self.deferred, None
            raise raised
        return False

    def _convert(self, elements: list[Any]) -> bool:
        """Makes sequences of elements, or of those before one that is wrong."""
        if self._batched is None:
            self._batched = self._packing.is_batch(elements[0])
        try:
            found = self._packing.sequences(elements, self._batched)
        except Exception:
            self.goes_on = False  # those that follow are lost
            good = self._count_good(elements)
            if good == 0:
                raise
            found = self._packing.sequences(elements[:good], self._batched)
        self._taken, self._used = found, 0
        return True

    def _count_good(self, elements: list[Any]) -> int:
        """How many elements are before the first that is wrong, whose error comes after them."""
        for i, element in enumerate(elements):
            try:
                self._packing.sequences([element], bool(self._batched))
            except Exception as error:
                self.deferred = error
                return i
        return len(elements)

    def place(self) -> Any:
        self.raise_deferred()
        (used, before), given = self._begin, self._given
        if not self._rows:
            if not self._has_left:
                return [0, 0, self._below.snapshot()]
            used, before, given = self._used, self._before, 0
        if isinstance(before, Exception):
            raise copied(before)
        return [used, given, before]
