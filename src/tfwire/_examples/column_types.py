"""The types of columns that no array holds: BytesColumn, SparseTensor, RaggedTensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tfwire._base.aliases import BytesLike, IntegerArray, RowNumber, Rows, SupportsNumpy, Value
from tfwire._base.arguments import integer, wrong_type
from tfwire._base.arrays import (
    as_row_splits,
    as_shape,
    byte_array,
    chosen_rows,
    filled,
    int64_array,
    joined_ranges,
)
from tfwire._base.errors import public
from tfwire._base.strings import as_array, bytes_array, check_splits, checked_column, encoded_text
from tfwire._base.text import html_of

if TYPE_CHECKING:
    from scipy.sparse import coo_array

Array = np.ndarray[Any, Any]


@public
class BytesColumn:
    """Strings one after the other in one buffer: the layout of Arrow's large_binary.

    There is no Python object per string. ``column[i]`` is a string, or a BytesColumn if the rank is
    above 1; ``np.asarray(column)`` is an object array of bytes. ``==`` and ``!=`` compare string by
    string, and give an array of bools; like an array, a column has no hash.

    Args:
        data: The bytes of all strings; anything with a buffer, not copied.
        offsets: Integers that do not decrease, one more than there are strings.
        shape: The shape of the column; None means ``(strings,)``.

    Attributes:
        data: uint8 array of the bytes of all strings.
        offsets: int64 array: string i, in row-major order, is ``data[offsets[i]:offsets[i + 1]]``.
        shape: The shape of the column.

    Raises:
        TypeError: Offsets or shape are not integers, or the data is not bytes-like.
        ValueError: There are no offsets, or not as many as the shape needs; they decrease, or reach
            beyond the data.

    Example:
        >>> column = BytesColumn(b"catdog", [0, 3, 3, 6])
        >>> column[0], column.to_list()
        (b'cat', [b'cat', b'', b'dog'])
    """

    __slots__ = ("data", "offsets", "shape")

    def __init__(
        self,
        data: bytes | bytearray | memoryview | Array,
        offsets: npt.ArrayLike,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.data: npt.NDArray[np.uint8] = byte_array("data", data)
        self.offsets: npt.NDArray[np.int64] = int64_array("offsets", offsets)
        count = self.offsets.size - 1
        self.shape: tuple[int, ...] = (count,) if shape is None else as_shape(shape)
        fits = min(self.shape, default=0) >= 0 and math.prod(self.shape) == count
        if count < 0 or self.offsets.ndim != 1 or not fits:
            raise ValueError(f"{count + 1} offsets do not fit the shape {self.shape}")
        check_splits("offsets", self.offsets, f"{len(self.data)} bytes", len(self.data))

    @classmethod
    def _trusted(cls, data: Array, offsets: Array, shape: tuple[int, ...]) -> BytesColumn:
        """A column of arrays that are known to be valid; nothing is checked."""
        column = cls.__new__(cls)
        column.data, column.offsets, column.shape = data, offsets, shape
        return column

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a column of rank 0 has no length")
        return self.shape[0]

    @overload
    def __getitem__(self, index: RowNumber) -> bytes | BytesColumn: ...
    @overload
    def __getitem__(self, index: Rows) -> BytesColumn: ...
    def __getitem__(self, index: RowNumber | Rows) -> bytes | BytesColumn:
        """Entry i along the first axis, or several entries.

        Args:
            index: A number, counted from the end if negative; a slice; or, as of an array, numbers
                or a bool for each entry, in a list or an array of rank 1.

        Returns:
            bytes, copied, for a number and a column of rank 1; otherwise a BytesColumn: over the
            same data for a number or a slice without a step, else of copies.

        Raises:
            IndexError: There is no such entry, or an array's values are neither integers nor bools.
            TypeError: The column has rank 0, or the index is none of these.
            ValueError: The offsets were changed, and are not valid.

        Example:
            >>> column = BytesColumn(b"catdog", [0, 3, 3, 6])
            >>> column[-1], column[:2].to_list(), column[::-1].to_list()
            (b'dog', [b'cat', b''], [b'dog', b'', b'cat'])
            >>> column[column != b""].to_list()
            [b'cat', b'dog']
        """
        row_shape = self.shape[1:]
        size = math.prod(row_shape)
        rows = chosen_rows(index, len(self))
        if isinstance(rows, slice):
            offsets = self.offsets[rows.start * size : rows.stop * size + 1]
            return BytesColumn._trusted(self.data, offsets, (rows.stop - rows.start, *row_shape))
        if isinstance(rows, np.ndarray):
            numbers = rows[:, None] * size + np.arange(size, dtype=np.int64)
            strings = self.take(numbers.reshape(-1))
            return BytesColumn._trusted(strings.data, strings.offsets, (len(rows), *row_shape))
        offsets = self.offsets[rows * size : (rows + 1) * size + 1]
        if row_shape:
            return BytesColumn._trusted(self.data, offsets, row_shape)
        first, last = offsets.tolist()
        if not 0 <= first <= last <= len(self.data):
            raise ValueError(
                f"offsets must not decrease and stay within the {len(self.data)} bytes"
            )
        return bytes(self.data[first:last].data)

    def take(self, indices: IntegerArray) -> BytesColumn:
        """Copies some of the strings.

        Args:
            indices: Integer array of shape ``(n,)``: numbers of strings, in row-major order.

        Returns:
            A column of shape ``(n,)``.

        Raises:
            IndexError: There is no such string.
            TypeError: ``indices`` are not integers.
            ValueError: The offsets of these strings decrease, or reach beyond the data.

        Example:
            >>> BytesColumn(b"catdog", [0, 3, 3, 6]).take(np.array([2, 0])).to_list()
            [b'dog', b'cat']
        """
        numbers = np.asarray(indices)
        if numbers.size and numbers.dtype.kind not in "iu":
            raise wrong_type("indices", indices, "an array of integers")
        indices = numbers.astype(np.intp, copy=False)
        begins, ends = self.offsets[:-1][indices], self.offsets[1:][indices]
        if ((begins < 0) | (ends < begins) | (ends > len(self.data))).any():
            raise ValueError("offsets must not decrease, and stay within the data")
        where, offsets = joined_ranges(begins, ends - begins)
        return BytesColumn._trusted(self.data[where], offsets, (len(begins),))

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """The strings as objects.

        Returns:
            An object array of bytes, of this column's shape.

        Raises:
            ValueError: The offsets decrease, or reach beyond the data.

        Example:
            >>> BytesColumn(b"catdog", [0, 3, 6]).to_numpy()
            array([b'cat', b'dog'], dtype=object)
        """
        data, offsets = checked_column(self)
        return bytes_array(data, offsets, self.shape)

    def to_list(self) -> list[Value]:
        """The strings as nested lists, one level per dimension.

        Raises:
            ValueError: The offsets decrease, or reach beyond the data.

        Example:
            >>> BytesColumn(b"catdog", [0, 3, 6], (1, 2)).to_list()
            [[b'cat', b'dog']]
        """
        nested: list[Value] = self.to_numpy().tolist()
        return nested

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __eq__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]  # as arrays
        equal: npt.NDArray[np.bool_] = self.to_numpy() == np.asarray(other, object)
        return equal

    def __ne__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]  # as arrays
        return ~(self == other)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as of arrays

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the bytes of these strings alone: a slice shares the data of the whole column."""
        data, offsets = self.data, self.offsets
        begin, end = int(offsets[0]), int(offsets[-1])
        if 0 <= begin <= end:
            data, offsets = data[begin:end], offsets - begin
        return BytesColumn, (data, offsets, self.shape)

    def _repr_html_(self) -> str | None:
        """The first strings as a table, for notebooks."""
        return html_of(self)

    def __repr__(self) -> str:
        shown = int(self.offsets[-1]) - int(self.offsets[0])
        return f"BytesColumn(shape={self.shape}, {shown} bytes)"


Values = Array | BytesColumn
"""The values of a column, or its strings."""
Messages: TypeAlias = Iterable[BytesLike] | Array | BytesColumn | SupportsNumpy
"""Serialized messages, each bytes-like; an array holds objects."""


@public
class SparseTensor(NamedTuple):
    """Values, and their places in an otherwise empty array.

    As TensorFlow 1's SparseTensorValue, it is a named tuple of its three arrays: it unpacks to
    them, ``len`` is 3, and frameworks that map over tuples reach them. ``==`` is refused: compare
    ``to_dense()``, or the attributes. There is no hash.

    Attributes:
        indices: int64 of shape ``(n, rank)``, in row-major order.
        values: The n values: int64, float32, object (bytes), or a BytesColumn.
        dense_shape: int64 of shape ``(rank,)``.

    Example:
        >>> import tfwire as tfw
        >>> examples = [tfw.encode_example({"tags": tags}) for tags in ([3, 4], [5])]
        >>> tags = tfw.parse_example(examples, {"tags": tfw.VarLenFeature(tfw.int64)})["tags"]
        >>> tags.values.tolist(), tags.indices.tolist(), tags.shape
        ([3, 4, 5], [[0, 0], [0, 1], [1, 0]], (2, 2))
    """

    indices: npt.NDArray[np.int64]
    values: Array | BytesColumn
    dense_shape: npt.NDArray[np.int64]

    def _repr_html_(self) -> str | None:
        """The first rows as a table, for notebooks."""
        return html_of(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The dense shape as a tuple."""
        return tuple(np.asarray(self.dense_shape).tolist())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values, object for strings."""
        return _values_dtype(self.values)

    def to_dense(self, default_value: object = None, *, max_padding: int | None = 1 << 30) -> Array:
        """A dense array, with the default value in all other places.

        Args:
            default_value: None means 0 or b"".
            max_padding: Bytes that places without a value may take: a single long row makes all
                others as long. None: no limit.

        Raises:
            TypeError: The default value is a complex number, or ``max_padding`` not an integer.
            ValueError: An index outside of the dense shape, more than ``max_padding``, or a default
                value that the dtype cannot hold.

        Example:
            >>> sparse = SparseTensor(np.array([[0, 1]]), np.array([7]), np.array([2, 2]))
            >>> sparse.to_dense(-1).tolist()
            [[-1, 7], [-1, -1]]
        """
        if max_padding is not None:
            max_padding = integer("max_padding", max_padding, 0)
        if default_value is None:
            default_value = b"" if self.dtype == object else 0
        indices = np.asarray(self.indices)
        outside = (indices < 0) | (indices >= self.dense_shape)
        if outside.any():
            index = indices[outside.any(axis=1).argmax()]
            raise ValueError(f"index {index.tolist()} is outside of the shape {self.shape}")
        padding = (math.prod(self.shape) - len(indices)) * self.dtype.itemsize
        if max_padding is not None and padding > max_padding:
            raise ValueError(
                f"a dense array of shape {self.shape} would hold {padding} bytes of padding; "
                f"max_padding allows {max_padding}"
            )
        dense = filled("default_value", self.shape, self.dtype, encoded_text(default_value))
        dense[tuple(indices.T)] = as_array(self.values)
        return dense

    def to_scipy(self) -> coo_array:
        """The tensor as a ``scipy.sparse.coo_array``; numbers only.

        Raises:
            ImportError: scipy is not installed.
            TypeError: The values are strings.
        """
        if self.dtype == object:
            raise TypeError("scipy has no sparse arrays of strings; use to_dense()")
        make = import_module("scipy.sparse").coo_array
        return make((self.values, tuple(self.indices.T)), shape=self.shape)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError(
            "SparseTensors have no ==; compare to_dense(), or indices, values and dense_shape"
        )

    def __ne__(self, other: object) -> NoReturn:
        self.__eq__(other)

    def __hash__(self) -> NoReturn:
        raise TypeError("unhashable type: 'SparseTensor'")  # a tuple of torch's tensors is hashable


@public
class RaggedTensor:
    """Rows of different lengths: row i is ``values[row_splits[i]:row_splits[i + 1]]``.

    ``==`` is refused: compare ``to_list()``, or the attributes. There is no hash.

    Args:
        values: The values of all rows: an array, a BytesColumn, or a RaggedTensor for rows of rows.
            A list becomes an array.
        row_splits: int32 or int64 of shape ``(rows + 1,)``, or a list.

    Attributes:
        values, row_splits: The same, not copied.

    Raises:
        TypeError: The row splits are not integers, or the values none of these.
        ValueError: There are no row splits; they decrease, or reach beyond the values.

    Example:
        >>> ragged = RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
        >>> ragged.to_list(), ragged.row_lengths().tolist(), ragged[0].tolist()
        ([[1, 2], [], [3]], [2, 0, 1], [1, 2])
    """

    __slots__ = ("row_splits", "values")

    def __init__(
        self,
        values: Array | list[Value] | BytesColumn | RaggedTensor,
        row_splits: IntegerArray | list[int],
    ) -> None:
        if isinstance(values, list):
            values = as_array(values)
        elif not hasattr(values, "shape") or isinstance(values, SparseTensor):
            expected = "an array, a BytesColumn, a RaggedTensor or a list"
            raise TypeError(f"values must be {expected}, found {type(values).__name__}")
        self.values: Array | BytesColumn | RaggedTensor = values
        self.row_splits: IntegerArray = as_row_splits(row_splits)
        if type(self.row_splits) is np.ndarray:  # tensors of other libraries may be on a device
            if self.row_splits.ndim != 1 or not self.row_splits.size:
                raise ValueError("row_splits must be of rank 1 and hold one entry more than rows")
            count = len(self.values)
            check_splits("row_splits", self.row_splits, f"{count} values", count)

    @classmethod
    def _trusted(cls, values: Values | RaggedTensor, row_splits: IntegerArray) -> RaggedTensor:
        """A tensor of arrays that are known to be valid; nothing is checked."""
        ragged = cls.__new__(cls)
        ragged.values, ragged.row_splits = values, row_splits
        return ragged

    @property
    def nested_row_splits(self) -> tuple[IntegerArray, ...]:
        """The row splits of every level, outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    @property
    def flat_values(self) -> Values:
        """The values below all row splits."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def ragged_rank(self) -> int:
        """The number of levels of row splits."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The dimensions; None for those in which rows may differ."""
        return (len(self), *[None] * self.ragged_rank, *self.flat_values.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values, object for strings."""
        return _values_dtype(self.flat_values)

    def row_lengths(self) -> IntegerArray:
        """The length of every row, in the dtype of the row splits."""
        return self.row_splits[1:] - self.row_splits[:-1]

    def to_list(self) -> list[Value]:
        """The rows as nested lists.

        Example:
            >>> RaggedTensor(BytesColumn(b"abc", [0, 1, 2, 3]), np.array([0, 2, 2, 3])).to_list()
            [[b'a', b'b'], [], [b'c']]
        """
        flat = self.values
        values: list[Value] = flat.tolist() if hasattr(flat, "tolist") else flat.to_list()
        splits = self.row_splits.tolist()
        return [values[begin:end] for begin, end in pairwise(splits)]

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    @overload
    def __getitem__(self, index: RowNumber) -> Array | BytesColumn | RaggedTensor: ...
    @overload
    def __getitem__(self, index: Rows) -> RaggedTensor: ...
    def __getitem__(self, index: RowNumber | Rows) -> Array | BytesColumn | RaggedTensor:
        """Row i, or several rows.

        Args:
            index: A number, counted from the end if negative; a slice; or, as of an array, numbers
                or a bool for each row, in a list or an array of rank 1.

        Returns:
            The values of a row; of several rows a RaggedTensor. A row and a slice without a step
            are views of the values, others are copies.

        Raises:
            IndexError: There is no such row, or an array's values are neither integers nor bools.
            TypeError: The index is none of these.
            ValueError: The row splits cannot count as many values as were chosen.

        Example:
            >>> ragged = RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
            >>> ragged[-1].tolist(), ragged[1:].to_list(), ragged[::-2].to_list()
            ([3], [[], [3]], [[3], [1, 2]])
        """
        rows = chosen_rows(index, len(self))
        splits: Any = self.row_splits
        if isinstance(rows, int):
            return self.values[int(splits[rows]) : int(splits[rows + 1])]
        part: Any = self.values
        if isinstance(rows, slice):
            splits = splits[rows.start : rows.stop + 1]
            part = part[int(splits[0]) : int(splits[-1])]
            return self._trusted(part, splits - splits[0])
        numbers: Array = np.asarray(splits)
        begins, ends = (each[rows].astype(np.int64) for each in (numbers[:-1], numbers[1:]))
        where, chosen = joined_ranges(begins, ends - begins)
        if chosen[-1] > np.iinfo(numbers.dtype).max:
            raise ValueError(f"row_splits of {numbers.dtype} cannot count {chosen[-1]} values")
        make = getattr(splits, "new_tensor", np.asarray)  # torch's, on their device
        return self._trusted(part[where], make(chosen.astype(numbers.dtype)))

    def __iter__(self) -> Iterator[Array | BytesColumn | RaggedTensor]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedTensor, (self.values, self.row_splits)

    def _repr_html_(self) -> str | None:
        """The first rows as a table, for notebooks."""
        return html_of(self)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("RaggedTensors have no ==; compare to_list(), or values and row_splits")

    def __ne__(self, other: object) -> NoReturn:
        self.__eq__(other)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as of arrays

    def __repr__(self) -> str:
        count = len(self.flat_values)
        shown = self.to_list() if count <= 20 and len(self) <= 20 else f"{count} values"
        return f"RaggedTensor(shape={self.shape}, dtype={self.dtype}, {shown})"


def _values_dtype(values: Values) -> np.dtype[Any]:
    values = as_array(values) if isinstance(values, list) else values
    return getattr(values, "dtype", np.dtype(object))
