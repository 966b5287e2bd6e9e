"""``tf.io.parse_*`` with its SparseTensor and RaggedTensor; and images, decoded by Pillow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire import images
from tfwire._base.errors import InvalidArgumentError
from tfwire._examples import column_types
from tfwire._parsing.features import DType
from tfwire.compat._convert import as_dtype, numpy_dtype, scalar_string, to_array, to_numpy, uint8
from tfwire.compat._errors import DtypeError, Explained, refusing_arguments
from tfwire.compat._tensor import Tensor, TensorShape

__all__ = [
    "RaggedTensor",
    "SparseTensor",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "resize_with_crop_or_pad",
    "serialize_tensor",
    "sparse_to_dense",
    "wrap",
]


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


def sparse_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Tensor:
    """A SparseTensor as a dense one, with the default (0 or b"") where there is no value.

    Raises:
        TypeError: Not a SparseTensor.
        InvalidArgumentError: An index outside of the dense shape, or, unless
            ``validate_indices=False``, indices that are not in order.
    """
    if not isinstance(sp_input, (SparseTensor, tfw.SparseTensor)):
        raise TypeError(f"sp_input must be a SparseTensor, found {type(sp_input).__name__}")
    sparse = SparseTensor(*sp_input).plain
    steps = np.diff(sparse.indices, axis=0)
    leading = np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1) if steps.size else steps
    if validate_indices and (leading <= 0).any():
        raise InvalidArgumentError("the indices of the SparseTensor are not in order, or repeated")
    default = None if default_value is None else to_array(default_value, sparse.dtype)[()]
    with refusing_arguments():
        return Tensor._of(sparse.to_dense(default, max_padding=None))


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


class SparseTensor(Explained):
    """A :class:`tfwire.SparseTensor` (``plain``) whose fields have ``numpy()``.

    Args:
        indices: int64 of shape ``(n, rank)``.
        values: The n values.
        dense_shape: int64 of shape ``(rank,)``.

    Raises:
        ValueError: The shapes do not fit each other.
    """

    _tf_name = "SparseTensor"
    __slots__ = ("plain",)

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        places, sizes = _integers(indices), _integers(dense_shape)
        array = to_array(values)
        if (places.ndim, array.ndim, sizes.ndim) != (2, 1, 1):
            raise ValueError("indices must have rank 2, values and dense_shape rank 1")
        if places.shape != (len(array), len(sizes)):
            raise ValueError(
                f"indices of shape {places.shape} for {len(array)} values of rank {len(sizes)}"
            )
        self.plain: column_types.SparseTensor = column_types.SparseTensor(places, array, sizes)

    @property
    def indices(self) -> Tensor:
        return Tensor._of(self.plain.indices)

    @property
    def values(self) -> Tensor:
        return _tensor(self.plain.values)

    @property
    def dense_shape(self) -> Tensor:
        return Tensor._of(self.plain.dense_shape)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.plain.shape)

    def get_shape(self) -> TensorShape:
        """The dense shape."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return as_dtype(self.plain.dtype)

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


class RaggedTensor(Explained):
    """A :class:`tfwire.RaggedTensor` (``plain``) whose parts have ``numpy()``."""

    _tf_name = "RaggedTensor"
    __slots__ = ("plain",)

    def __init__(self, plain: column_types.RaggedTensor) -> None:
        self.plain: column_types.RaggedTensor = plain

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

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.plain.shape)

    def get_shape(self) -> TensorShape:
        """The shape, None in the dimensions in which rows differ."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return as_dtype(self.plain.dtype)

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


def _bounds(ragged: column_types.RaggedTensor) -> tuple[int, ...]:
    """The shape of the smallest dense tensor that holds the rows."""
    values = ragged.values
    longest = int(ragged.row_lengths().max(initial=0))
    inner = (
        _bounds(values)[1:] if isinstance(values, column_types.RaggedTensor) else values.shape[1:]
    )
    return (len(ragged), longest, *inner)


def _place(dense: Any, ragged: column_types.RaggedTensor) -> None:
    for place, row in zip(dense, ragged, strict=True):
        if isinstance(row, column_types.RaggedTensor):
            _place(place[: len(row)], row)
        else:
            place[: len(row)] = to_array(row)


def _tensor(values: Any) -> Tensor:
    return Tensor._of(values) if isinstance(values, np.ndarray) else Tensor(values)


def _part(values: Any) -> Any:
    """Rows as a ragged tensor or, without rows, a tensor."""
    return (
        RaggedTensor(values) if isinstance(values, column_types.RaggedTensor) else _tensor(values)
    )


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """An encoded image as uint8 (height, width, channels), a GIF as (frames, height, width, 3).

    See :func:`tfwire.images.decode`.
    """
    return _decode(contents, channels or 0, dtype, expand_animations)


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """An encoded image as uint8 (height, width, channels)."""
    return _decode(contents, channels, dtype, False)


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """An encoded image as uint8 (height, width, channels); a truncated one is an error.

    Args:
        fancy_upscaling: Interpolate colours that are stored in a lower resolution. It decides the
            transform of images that have such colours; see docs/differences.md.
        dct_method: The transform of other images: "INTEGER_ACCURATE"; "INTEGER_FAST" or "".

    Raises:
        InvalidArgumentError: ``dct_method`` or ``ratio`` is none of TensorFlow's.
        ValueError: ``ratio`` is not 1, or ``try_recover_truncated`` is True.
        TypeError: An argument has another type.
    """
    fancy = _typed("fancy_upscaling", fancy_upscaling, bool, True)
    method = _typed("dct_method", dct_method, (str, bytes), "")
    method = method.decode() if isinstance(method, bytes) else method
    if method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise InvalidArgumentError(
            f'dct_method must be "", "INTEGER_FAST" or "INTEGER_ACCURATE", found {method!r}'
        )
    scale = _typed("ratio", ratio, (int, np.integer), 1)
    if scale not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4 or 8, found {scale}")
    _typed("acceptable_fraction", acceptable_fraction, (int, float, np.number), 1)
    if scale != 1 or _typed("try_recover_truncated", try_recover_truncated, bool, False):
        raise ValueError("decode_jpeg: ratio and try_recover_truncated are not available in tfwire")
    options = images.JpegOptions(method != "INTEGER_ACCURATE", fancy)
    return _decode(contents, channels, uint8, False, options)


def _typed(name: str, value: Any, types: Any, default: Any) -> Any:
    """An argument that must be of some types; None means the default."""
    if value is None:
        return default
    if not isinstance(value, types):
        wanted = " or ".join(
            one.__name__ for one in (types if isinstance(types, tuple) else [types])
        )
        raise TypeError(f"`{name}` must be {wanted}, found {type(value).__name__}")
    return value


_JPEG_OPTIONS = images.JpegOptions(fast=True, fancy=True)  # TensorFlow's default


def _decode(
    contents: Any,
    channels: Any,
    dtype: Any,
    frames: bool,
    options: images.JpegOptions = _JPEG_OPTIONS,
) -> Tensor:
    if dtype != uint8:
        raise ValueError(f"images are decoded to uint8, found dtype {dtype!r}; cast the result")
    data = scalar_string(contents, "contents")
    with refusing_arguments(ValueError):
        return Tensor(images.decode_with(data, channels, frames, options))


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The middle of an image, or the image in the middle of zeros.

    Args:
        image: ``(height, width, channels)`` or a batch ``(n, height, width, channels)``.
        target_height: Rows of the result.
        target_width: Columns of the result.

    Raises:
        ValueError: Another rank, an empty image, or a size below 1.
    """
    array = to_array(image)
    height, width = int(to_array(target_height)), int(to_array(target_width))
    if array.ndim not in (3, 4) or 0 in array.shape[-3:]:
        raise ValueError(
            "an image must have the shape (height, width, channels), or that of a batch of images, "
            f"with no size of 0, found {array.shape}"
        )
    if height < 1 or width < 1:
        raise ValueError(f"the target size must be positive, found {height} x {width}")
    if array.ndim == 3:
        return Tensor(images.crop_or_pad(array, height, width))
    pixels = images.crop_or_pad(np.moveaxis(array, 0, -1), height, width)
    return Tensor(np.ascontiguousarray(np.moveaxis(pixels, -1, 0)))
