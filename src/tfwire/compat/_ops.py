"""Functions that make, reshape, join, cut and index tensors."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire import float32
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import Array, as_dtype, int32, is_tensor, numpy_dtype, to_array
from tfwire.compat._errors import DtypeError, UnimplementedError, refusing_arguments
from tfwire.compat._tensor import Tensor, TensorShape, like

# ---- Making -------------------------------------------------------------------------------------


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor of a value.

    Args:
        value: A number, str or bytes, nested lists of them, or an array.
        dtype: The dtype; None: int32 (int64 where it does not fit), float32, bool or string, an
            array's own.
        shape: The shape; one value fills it.

    Raises:
        TypeError: The value does not fit the dtype, or does not fill the shape.
        ValueError: The value cannot be a tensor.
    """
    array = to_array(value, numpy_dtype(dtype))
    if shape is None:
        return Tensor._of(array.copy() if isinstance(value, np.ndarray) else array)
    target = _as_shape(shape)
    TensorShape(target)  # refuses negative sizes
    if array.size != 1 and array.size != np.prod(target, dtype=np.int64):
        raise TypeError(f"{array.size} values do not fill the shape {target}")
    return Tensor._of(np.resize(array, target))


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """A tensor of a value; tensors are returned as they are.

    Args:
        value: As for :func:`constant`, also lists of tensors.
        dtype: The dtype it must have.
        dtype_hint: The dtype to prefer where the value allows it.

    Raises:
        TypeError: The value does not fit the dtype.
        ValueError: The value cannot be a tensor, or is a tensor of another dtype.
    """
    if isinstance(value, Tensor):
        if dtype is not None and value.dtype != as_dtype(dtype):
            raise ValueError(
                f"a tensor of {value.dtype!r} where one of {as_dtype(dtype)!r} is needed"
            )
        return value
    if dtype is None and dtype_hint is not None:
        try:
            return Tensor(value, dtype_hint)
        except (TypeError, ValueError):
            pass
    return Tensor(value, dtype)


def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor of the same value."""
    return convert_to_tensor(input)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """The values in another dtype. Floats are cut to integers; integers wrap around.

    Raises:
        UnimplementedError: Strings are cast to numbers, or numbers to strings.
    """
    array, target = to_array(x), numpy_dtype(as_dtype(dtype))
    if array.dtype == target:
        return Tensor._of(array)
    if object in (array.dtype, target):
        raise UnimplementedError(
            f"cast from {as_dtype(array.dtype)!r} to {as_dtype(target)!r}; see "
            "tf.strings.to_number and tf.strings.as_string"
        )
    if array.dtype.kind == "c" and target.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f" and target.kind == "u" and target.itemsize < 8:
            array = array.astype(np.int64 if target.itemsize == 4 else np.int32)  # wraps around
        return Tensor._of(array.astype(target))


def zeros(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Zeros, or empty strings."""
    return Tensor._of(_filled(_as_shape(shape), numpy_dtype(dtype), 0))


def ones(shape: Any, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Ones."""
    return Tensor._of(_filled(_as_shape(shape), numpy_dtype(dtype), 1))


def zeros_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Zeros of a tensor's shape and, unless another is given, dtype."""
    array = to_array(input)
    return Tensor._of(_filled(array.shape, numpy_dtype(dtype) or array.dtype, 0))


def ones_like(input: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """Ones of a tensor's shape and, unless another is given, dtype."""
    array = to_array(input)
    return Tensor._of(_filled(array.shape, numpy_dtype(dtype) or array.dtype, 1))


def _filled(shape: Sequence[int], dtype: Any, number: int) -> Array:
    if np.dtype(dtype).kind != "O":
        return np.full(shape, number, dtype)
    if number:
        raise DtypeError("strings have no ones")
    return np.full(shape, b"", object)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """One value in every place."""
    array = to_array(value)
    if array.size != 1:
        raise InvalidArgumentError(f"`value` must be a scalar, found shape {array.shape}")
    return Tensor._of(np.full(_as_shape(dims), array.reshape(()), array.dtype))


def range(  # TensorFlow's name
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """Numbers from ``start`` (0 if it is the only argument) to below ``limit``."""
    if limit is None:
        start, limit = 0, start
    ends = [to_array(value, numpy_dtype(dtype)) for value in (start, limit, delta)]
    if any(end.size != 1 for end in ends):
        raise InvalidArgumentError("the arguments of range must be scalars")
    common = max((end.dtype for end in ends), key=_range_order)
    first, last, step = (end.astype(common).item() for end in ends)
    if not step or (first > last if step > 0 else first < last):
        raise InvalidArgumentError(f"no range from {first} to {last} by {step}")
    wide = np.float64 if common.kind == "f" else np.int64
    return Tensor._of(np.arange(first, last, step, dtype=wide).astype(common))


_RANGE_ORDER = ("int32", "int64", "float16", "bfloat16", "float32", "float64")


def _range_order(dtype: np.dtype[Any]) -> int:
    """The place of a dtype among those of range, of which the last counts."""
    if dtype.name not in _RANGE_ORDER:
        raise InvalidArgumentError(f"range has no form for {as_dtype(dtype)!r}")
    return _RANGE_ORDER.index(dtype.name)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Vectors of ``depth`` values with ``on_value`` at each index, if that is below ``depth``."""
    given = [value for value in (on_value, off_value) if value is not None]
    values = to_array(given).dtype if given and dtype is None else numpy_dtype(dtype or float32)
    on = to_array(1 if on_value is None else on_value, values)
    off = to_array(0 if off_value is None else off_value, values)
    if to_array(depth) < 0:
        raise InvalidArgumentError(f"`depth` must not be negative, found {depth}")
    hot = to_array(indices)[..., None] == np.arange(int(to_array(depth)), dtype=np.int64)
    with refusing_arguments():
        return Tensor._of(np.moveaxis(np.where(hot, on, off), -1, -1 if axis is None else axis))


# ---- Shapes -------------------------------------------------------------------------------------


def _as_shape(value: Any) -> list[int]:
    """A shape in any form as a list, which may hold -1."""
    if isinstance(value, TensorShape):
        value.assert_is_fully_defined()
    if not is_tensor(value) and isinstance(value, (list, tuple)) and len(value) == 0:
        return []
    array = to_array(value)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise InvalidArgumentError("a shape must be a vector of integers")
    sizes: list[int] = array.ravel().tolist()
    return sizes


def normalized_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """One axis or several, counted from the front.

    Raises:
        InvalidArgumentError: There is no such axis.
    """
    found = to_array(axis).ravel().tolist()
    if any(not -ndim <= a < ndim for a in found):
        raise InvalidArgumentError(f"axis {axis} of a tensor of rank {ndim}")
    return tuple(a % ndim for a in found)


def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """The shape, as a vector."""
    return Tensor._of(np.array(to_array(input).shape, numpy_dtype(out_type)))


def size(input: Any, out_type: Any = int32, name: str | None = None) -> Tensor:
    """The number of values."""
    return Tensor._of(np.array(to_array(input).size, numpy_dtype(out_type)))


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of axes."""
    return Tensor._of(np.array(to_array(input).ndim, np.int32))


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The values in another shape; -1 is the size that remains, ``()`` gives a scalar."""
    array, target = to_array(tensor), _as_shape(shape)
    if min(target, default=0) < -1:
        raise InvalidArgumentError(f"a size must not be negative, found {min(target)}")
    with refusing_arguments():
        return Tensor._of(array.reshape(target))


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor itself.

    Raises:
        InvalidArgumentError: It has another shape.
    """
    tensor = convert_to_tensor(x)
    if not tensor.shape.is_compatible_with(shape):
        raise InvalidArgumentError(f"a tensor of shape {tensor.shape} does not have shape {shape}")
    return tensor


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """The tensor without its axes of size 1, or without the named axes."""
    array = to_array(input)
    if axis is None or axis == []:
        return Tensor._of(array.squeeze())
    with refusing_arguments():
        return Tensor._of(array.squeeze(normalized_axes(axis, array.ndim)))


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """The tensor with a new axis of size 1."""
    array = to_array(input)
    with refusing_arguments():
        return Tensor._of(np.expand_dims(array, normalized_axes(axis, array.ndim + 1)))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along axes of size 1 and new first axes."""
    array, target = to_array(input), _as_shape(shape)
    with refusing_arguments():
        return Tensor._of(np.broadcast_to(array, target).copy())


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """The tensor with its axes in another order, by default reversed."""
    array = to_array(a)
    if conjugate:
        array = array.conj()
    with refusing_arguments():
        return Tensor._of(array.transpose(None if perm is None else to_array(perm).tolist()))


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along every axis."""
    array, times = to_array(input), _as_shape(multiples)
    if len(times) != array.ndim or min(times, default=0) < 0:
        raise InvalidArgumentError(f"multiples {times} for a tensor of rank {array.ndim}")
    return Tensor._of(
        np.tile(array, times).reshape(np.multiply(array.shape, times).astype(np.int64))
    )


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """The values in reverse order along some axes."""
    array = to_array(tensor)
    if array.ndim == 0:
        return Tensor._of(array)
    return Tensor._of(np.flip(array, normalized_axes(axis, array.ndim)))


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Tensor:
    """The tensor with ``paddings[i]`` values before and after it along axis i."""
    array, widths = to_array(tensor), to_array(paddings)
    if widths.shape != (array.ndim, 2) or (widths < 0).any():
        raise InvalidArgumentError(
            f"paddings must be of shape {(array.ndim, 2)} and not negative, found {widths.shape}"
        )
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"mode must be CONSTANT, REFLECT or SYMMETRIC, found {mode!r}")
    if mode.upper() != "CONSTANT":
        limits = np.array(array.shape, np.int64)[:, None] - (mode.upper() == "REFLECT")
        if (widths > limits).any():
            raise InvalidArgumentError(f"paddings for {mode} must be smaller than the tensor")
        return Tensor._of(np.pad(array, widths.tolist(), mode.lower()))  # type: ignore[call-overload]
    empty = constant_values == 0 and array.dtype == object
    value = to_array(b"" if empty else constant_values, array.dtype)
    padded = np.full(widths.sum(1, dtype=np.int64) + array.shape, value, array.dtype)
    places = zip(widths[:, 0], array.shape, strict=True)
    padded[tuple(builtins.slice(first, first + n) for first, n in places)] = array
    return Tensor._of(padded)


# ---- Several tensors ----------------------------------------------------------------------------


def _matching(values: Any) -> list[Array]:
    """Arrays of one dtype: that of the first tensor, or else of the first value."""
    if is_tensor(values) or isinstance(values, np.ndarray):
        return list(map(to_array, to_array(values)))
    given = [value for value in values if is_tensor(value)] or values
    first = to_array(given[0])
    return [like(value, first) for value in values]


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape and dtype along a new axis.

    Raises:
        InvalidArgumentError: Shapes or dtypes differ.
        ValueError: There is no such axis.
    """
    if axis == 0:
        try:
            return Tensor._of(to_array(values))  # as one value, which gives it its dtype
        except (TypeError, ValueError):
            pass
    arrays = _matching(values)
    if not -arrays[0].ndim - 1 <= axis <= arrays[0].ndim:
        raise ValueError(f"axis {axis} of a stack of tensors of rank {arrays[0].ndim}")
    with refusing_arguments():
        return Tensor._of(np.stack(arrays, axis))


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices along an axis.

    Raises:
        ValueError: There is no such axis.
        InvalidArgumentError: There are not ``num`` slices.
    """
    array = to_array(value)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis {axis} of a tensor of rank {array.ndim}")
    rows = [Tensor(row) for row in np.moveaxis(array, axis, 0)]
    if num is not None and num != len(rows):
        raise InvalidArgumentError(f"expected {num} slices, found {len(rows)}")
    return rows


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors joined along an axis."""
    if not is_tensor(values) and len(values) == 0:
        raise InvalidArgumentError("concat of no tensors")
    arrays = _matching(values)
    if len(arrays) == 1:
        return Tensor._of(arrays[0])
    with refusing_arguments():
        return Tensor._of(np.concatenate(arrays, int(to_array(axis))))


def split(
    value: Any, num_or_size_splits: Any, axis: int = 0, num: Any = None, name: str = "split"
) -> list[Tensor]:
    """A tensor cut into equal parts, or into parts of given sizes (-1: the rest)."""
    array, sizes = to_array(value), to_array(num_or_size_splits)
    (place,) = normalized_axes(axis, array.ndim)
    length = array.shape[place]
    if sizes.ndim == 0:
        count = int(sizes)
        if count < 1 or length % count:
            raise InvalidArgumentError(f"{length} rows in {count} equal parts")
        sizes = np.full(count, length // count, np.int64)
    sizes = np.where(sizes < 0, length - sizes[sizes >= 0].sum(dtype=np.int64), sizes)
    if sizes.sum(dtype=np.int64) != length:
        raise InvalidArgumentError(
            f"parts of {sizes.sum(dtype=np.int64)} rows, the tensor has {length}"
        )
    return [Tensor(part) for part in np.split(array, np.cumsum(sizes, dtype=np.int64)[:-1], place)]


# ---- Choosing values ----------------------------------------------------------------------------


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = 0,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """The slices at these indices along an axis."""
    array, places = to_array(params), to_array(indices)
    if batch_dims:
        raise UnimplementedError("gather with batch_dims")
    (along,) = normalized_axes(axis or 0, array.ndim)
    if places.size and not (0 <= places.min() and places.max() < array.shape[along]):
        raise InvalidArgumentError(f"indices must be within [0, {array.shape[along]})")
    return Tensor._of(array.take(places.astype(np.int64), along))


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The values from ``begin`` on, ``size`` along every axis; -1 means all that follow."""
    array, first, sizes = to_array(input_), _as_shape(begin), _as_shape(size)
    if not len(first) == len(sizes) == array.ndim:
        raise InvalidArgumentError(f"begin and size must have {array.ndim} values")
    ends = [
        n if count == -1 else start + count
        for start, count, n in zip(first, sizes, array.shape, strict=True)
    ]
    for start, end, n in zip(first, ends, array.shape, strict=True):
        if not 0 <= start <= end <= n:
            raise InvalidArgumentError(f"a slice from {start} to {end} of {n} values")
    return Tensor._of(array[tuple(map(builtins.slice, first, ends))])


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Tensor:
    """The slices where the mask is True."""
    array, chosen = to_array(tensor), to_array(mask, np.dtype(bool))
    start = 0 if axis is None else normalized_axes(axis, array.ndim)[0]
    if chosen.ndim == 0:
        raise ValueError("the mask must not be a scalar")
    if array.shape[start : start + chosen.ndim] != chosen.shape:
        raise ValueError(f"a mask of shape {chosen.shape} for a tensor of shape {array.shape}")
    return Tensor._of(array[(builtins.slice(None),) * start + (chosen,)])


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """``x`` where the condition is True, else ``y``; without both, the indices of True (int64)."""
    if x is None and y is None:
        found = to_array(condition)
        if found.dtype.kind == "O" or found.ndim == 0:
            raise InvalidArgumentError("`condition` must be a tensor of numbers, not a scalar")
        return Tensor._of(np.argwhere(found).astype(np.int64))
    if x is None or y is None:
        raise ValueError("where takes both x and y, or neither")
    chosen = to_array(condition, np.dtype(bool))
    first, second = _matching([x, y])
    with refusing_arguments():
        return Tensor._of(np.where(chosen, first, second))
