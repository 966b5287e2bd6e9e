"""``tf.io.parse_*`` with its SparseTensor and RaggedTensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import tfwire as tfw
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import as_dtype, numpy_dtype, to_array, to_numpy
from tfwire.compat._errors import DtypeError, Explained, refusing_arguments
from tfwire.compat._tensor import Tensor, TensorShape
from tfwire.typing import DType


def wrap(leaf: Any) -> Any:
    """A result of the parser as tensors."""
    if type(leaf) is bytes or type(leaf) is np.ndarray:
        return Tensor._of(leaf)
    if isinstance(leaf, dict):
        return {key: wrap(item) for key, item in leaf.items()}
    if isinstance(leaf, tfw.SparseTensor):
        return SparseTensor(*leaf)
    if isinstance(leaf, tfw.RaggedTensor):
        return RaggedTensor(leaf)
    if isinstance(leaf, (SparseTensor, RaggedTensor)):
        return leaf
    if isinstance(leaf, tuple):
        return tuple(wrap(item) for item in leaf)
    return leaf if isinstance(leaf, Tensor) else Tensor._of(leaf)


def _wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with refusing_arguments(ValueError):  # TensorFlow raises either
            return wrap(function(*args, **kwargs))

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


parse_example: Callable[..., Any] = _wrapping(tfw.parse_example)
parse_single_example: Callable[..., Any] = _wrapping(tfw.parse_single_example)
parse_sequence_example: Callable[..., Any] = _wrapping(tfw.parse_sequence_example)
parse_single_sequence_example: Callable[..., Any] = _wrapping(tfw.parse_single_sequence_example)
decode_json_example: Callable[..., Any] = _wrapping(tfw.decode_json_example)


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor as a serialized TensorProto; see :func:`tfwire.serialize_tensor`."""
    return Tensor._of(tfw.serialize_tensor(to_numpy(tensor)))


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of a serialized TensorProto; see :func:`tfwire.parse_tensor`."""
    with refusing_arguments():
        return Tensor._of(tfw.parse_tensor(_value(serialized), out_type))


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Byte strings as vectors of numbers; see :func:`tfwire.decode_raw`.

    Args:
        bytes: TensorFlow 1's name of ``input_bytes``.
    """
    given = bytes if input_bytes is None else input_bytes
    try:
        strings = to_array(given, np.dtype(object))[()]
        return Tensor._of(tfw.decode_raw(strings, out_type, little_endian, fixed_length))
    except (TypeError, ValueError) as error:
        raise DtypeError(str(error)) from None


def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Tensor:
    """A SparseTensor as a dense one, with the default (0 or b"") where there is no value.

    Raises:
        TypeError: Not a SparseTensor.
        InvalidArgumentError: An index outside of the dense shape, or, unless
            ``validate_indices=False``, indices that are not in order.
    """
    sparse = _sparse("sp_input", sp_input)
    if validate_indices and not _ascending(sparse.indices):
        raise InvalidArgumentError("the indices of the SparseTensor are not in order, or repeated")
    default = None if default_value is None else to_array(default_value, sparse.dtype)[()]
    with refusing_arguments():
        return Tensor._of(sparse.to_dense(default, max_padding=None))


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The values of a SparseTensor in the order of their indices.

    Raises:
        TypeError: Not a SparseTensor.
    """
    sparse = _sparse("sp_input", sp_input)
    places: Any = np.lexsort(sparse.indices.T[::-1]) if sparse.indices.size else slice(None)
    values = np.asarray(sparse.values)
    return SparseTensor(sparse.indices[places], values[places], sparse.dense_shape)


def sparse_to_indicator(sp_input: Any, vocab_size: int, name: str | None = None) -> Tensor:
    """True at every number that a row of a SparseTensor holds.

    Args:
        sp_input: Numbers from 0 to ``vocab_size`` - 1.
        vocab_size: The size of the last axis of the result, in place of that of ``sp_input``.

    Raises:
        TypeError: Not a SparseTensor.
        InvalidArgumentError: A number is out of range.
    """
    sparse = _sparse("sp_input", sp_input)
    numbers = np.asarray(sparse.values).astype(np.int64)
    shape = (*sparse.dense_shape[:-1].tolist(), int(to_array(vocab_size)))
    places = np.column_stack([sparse.indices[:, :-1], numbers])
    _check_places(places, shape)
    found = np.zeros(shape, bool)
    found[tuple(places.T)] = True
    return Tensor._of(found)


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """TensorFlow 1's ``sparse_to_dense``: values at some indices, and a default elsewhere.

    Args:
        sparse_indices: An index, a vector of indices, or a row of indices for each value.
        output_shape: The shape of the result.
        sparse_values: A value for each index, or one for all.
        default_value: What the other places hold.
        validate_indices: Check that indices are in order and not repeated.

    Raises:
        InvalidArgumentError: An index is out of range or out of order, or shapes do not fit.
    """
    shape = tuple(_integers(output_shape).tolist())
    places = _integers(sparse_indices)
    places = places.reshape(-1, 1) if places.ndim < 2 else places
    values = to_array(sparse_values)
    if places.shape[1] != len(shape) or values.ndim > 1 or values.size not in (1, len(places)):
        raise InvalidArgumentError(
            f"indices of shape {places.shape} and values of shape {values.shape} for a tensor of "
            f"shape {shape}"
        )
    _check_places(places, shape, validate_indices)
    dense = np.full(shape, to_array(default_value, values.dtype), values.dtype)
    dense[tuple(places.T)] = values
    return Tensor._of(dense)


def _check_places(places: Any, shape: tuple[int, ...], ordered: bool = False) -> None:
    """Raises InvalidArgumentError for indices outside of a shape, or that do not ascend."""
    if ((places < 0) | (places >= np.array(shape, np.int64))).any():
        raise InvalidArgumentError(f"an index is out of the range of the shape {list(shape)}")
    if ordered and not _ascending(places):
        raise InvalidArgumentError("the indices are not in order, or repeated")


def _ascending(indices: Any) -> bool:
    """True if every row of indices comes after the row before it."""
    steps = np.diff(indices, axis=0)
    leading = np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1) if steps.size else steps
    return not (leading <= 0).any()


def _sparse(name: str, value: Any) -> tfw.SparseTensor:
    """A SparseTensor of either kind as a plain one."""
    if not isinstance(value, (SparseTensor, tfw.SparseTensor)):
        raise TypeError(f"{name} must be a SparseTensor, found {type(value).__name__}")
    return SparseTensor(*value).plain


def _value(value: Any) -> Any:
    """The value of a tensor, anything else as it is."""
    return value.numpy() if hasattr(value, "numpy") else value


# ---- SparseTensor and RaggedTensor --------------------------------------------------------------


def _integers(value: Any) -> Any:
    """Integers of any dtype as int64; an empty list is allowed too."""
    array = to_array(value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"expected integers, found {as_dtype(array.dtype)!r}")
    return array.astype(np.int64)


class _Composite(Explained):
    """A tensor of several parts, those of ``plain``."""

    __slots__ = ("plain",)
    plain: Any

    @property
    def shape(self) -> TensorShape:
        """The shape; None in the dimensions in which rows differ."""
        return TensorShape(self.plain.shape)

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return as_dtype(self.plain.dtype)


class SparseTensor(_Composite):
    """A :class:`tfwire.SparseTensor` (``plain``) whose fields have ``numpy()``.

    Args:
        indices: int64 of shape ``(n, rank)``.
        values: The n values.
        dense_shape: int64 of shape ``(rank,)``.

    Raises:
        ValueError: The shapes do not fit each other.
    """

    _tf_name = "SparseTensor"
    __slots__ = ()

    # A node of a graph if parts are. ``tfwire.compat`` sets it, since graphs import this module.
    defer: ClassVar[Callable[..., Any]] = staticmethod(lambda cls, parts: None)

    if not TYPE_CHECKING:

        def __new__(cls, *parts: Any, **named: Any) -> Any:
            deferred = cls.defer(cls, (parts, named))
            return super().__new__(cls) if deferred is None else deferred

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        places, sizes = _integers(indices), _integers(dense_shape)
        array = to_array(values)
        if (places.ndim, array.ndim, sizes.ndim) != (2, 1, 1):
            raise ValueError("indices must have rank 2, values and dense_shape rank 1")
        if places.shape != (len(array), len(sizes)):
            raise ValueError(
                f"indices of shape {places.shape} for {len(array)} values of rank {len(sizes)}"
            )
        self.plain: tfw.SparseTensor = tfw.SparseTensor(places, array, sizes)

    @property
    def indices(self) -> Tensor:
        return Tensor._of(self.plain.indices)

    @property
    def values(self) -> Tensor:
        return _tensor(self.plain.values)

    @property
    def dense_shape(self) -> Tensor:
        return Tensor._of(self.plain.dense_shape)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor of one of tfwire, or of one that a session returned."""
        return cls(*sparse_tensor_value)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Other values in the same places."""
        return SparseTensor(self.plain.indices, new_values, self.plain.dense_shape)

    def __iter__(self) -> Iterator[Tensor]:
        """The fields, as of a named tuple."""
        return iter((self.indices, self.values, self.dense_shape))

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


class RaggedTensor(_Composite):
    """A :class:`tfwire.RaggedTensor` (``plain``) whose parts have ``numpy()``."""

    _tf_name = "RaggedTensor"
    __slots__ = ()

    def __init__(self, plain: tfw.RaggedTensor) -> None:
        self.plain: tfw.RaggedTensor = plain

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = np.int64
    ) -> RaggedTensor:
        """The rows of a SparseTensor of rank 2, whose values must begin each row without gaps.

        Raises:
            TypeError: Not a SparseTensor.
            ValueError: It has another rank.
            InvalidArgumentError: A row has a gap.
        """
        sparse = _sparse("st_input", sparse_reorder(st_input))
        if len(sparse.dense_shape) != 2:
            raise ValueError(f"st_input must have rank 2, found {len(sparse.dense_shape)}")
        rows, columns = sparse.indices.T
        lengths = np.bincount(rows, minlength=int(sparse.dense_shape[0]))
        ends = np.cumsum(lengths, dtype=np.int64)
        firsts = ends - lengths
        if not np.array_equal(columns, np.arange(len(columns), dtype=np.int64) - firsts[rows]):
            raise InvalidArgumentError("a row of the SparseTensor has a gap before its last value")
        splits = np.concatenate([[0], ends]).astype(numpy_dtype(row_splits_dtype))
        return cls(tfw.RaggedTensor(np.asarray(sparse.values), splits))

    @property
    def values(self) -> Any:
        return _part(self.plain.values)

    @property
    def flat_values(self) -> Tensor:
        return _tensor(self.plain.flat_values)

    @property
    def row_splits(self) -> Tensor:
        return Tensor._of(self.plain.row_splits)

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        return tuple(map(Tensor._of, self.plain.nested_row_splits))

    @property
    def ragged_rank(self) -> int:
        return self.plain.ragged_rank

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows, int64 or of another dtype."""
        return Tensor(np.array(len(self), numpy_dtype(out_type) or np.int64))

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: Any = None
    ) -> Tensor:
        """The rows as a dense tensor, short rows padded at their ends.

        Args:
            default_value: What to fill with; None is 0, False or b"".
            shape: What rows are padded or cut to; a size of None is that of the longest.

        Raises:
            InvalidArgumentError: ``shape`` has another rank.
        """
        sizes = _bounds(self.plain)
        wanted = sizes
        if shape is not None:
            with refusing_arguments(ValueError):
                known = zip(TensorShape(shape).with_rank(len(sizes)), sizes, strict=True)
            wanted = tuple(size if target is None else target for target, size in known)
        dtype = self.plain.dtype
        empty: Any = b"" if dtype.kind == "O" else 0
        filler = to_array(empty if default_value is None else default_value, dtype)
        dense = np.full(np.maximum(sizes, wanted), filler, dtype)
        _place(dense[: len(self)], self.plain)
        return Tensor(dense[tuple(map(slice, wanted))])

    def row_lengths(self) -> Tensor:
        """The length of every row."""
        return Tensor._of(self.plain.row_lengths())

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        return self.plain.to_list()

    def numpy(self) -> Any:
        """An array where all rows are of one length, else an object array of the rows."""
        rows = [row.numpy() for row in self]
        if len({row.shape for row in rows}) == 1:
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def __len__(self) -> int:
        return len(self.plain)

    def __getitem__(self, key: Any) -> Any:
        first, *others = key if isinstance(key, tuple) else (key,)
        row = _part(self.plain[first])
        return row[tuple(others)] if others else row

    def __iter__(self) -> Iterator[Any]:
        return map(_part, self.plain)

    def __repr__(self) -> str:
        return f"<tf.{self.plain!r}>"


def _bounds(ragged: tfw.RaggedTensor) -> tuple[int, ...]:
    """The shape of the smallest dense tensor that holds the rows."""
    values = ragged.values
    longest = int(ragged.row_lengths().max(initial=0))
    inner = _bounds(values)[1:] if isinstance(values, tfw.RaggedTensor) else values.shape[1:]
    return (len(ragged), longest, *inner)


def _place(dense: Any, ragged: tfw.RaggedTensor) -> None:
    for place, row in zip(dense, ragged, strict=True):
        if isinstance(row, tfw.RaggedTensor):
            _place(place[: len(row)], row)
        else:
            place[: len(row)] = to_array(row)


def _tensor(values: Any) -> Tensor:
    return Tensor._of(values) if isinstance(values, np.ndarray) else Tensor(values)


def _part(values: Any) -> Any:
    """Rows as a ragged tensor or, without rows, a tensor."""
    return RaggedTensor(values) if isinstance(values, tfw.RaggedTensor) else _tensor(values)
