"""Feature specifications, with TensorFlow's names and fields, and their dtypes.

A specification is a dict from keys to these objects. It may also hold TensorFlow's own ``tf.io``
objects and dtypes; TensorFlow is not imported for them.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tfwire._base.aliases import DTypeLike, Shape, Value
from tfwire._base.errors import public
from tfwire._base.text import quoted, show_key
from tfwire._examples.dtypes import data_type_number


class DType:
    """The type of a feature's values.

    It equals anything that names the same type: numpy's dtypes and scalar types, TensorFlow's
    dtypes, and their names. The hash is that of the numpy scalar type, so ``tfw.int64`` and
    ``np.int64`` are the same key of a dict.

    It prints as TensorFlow's dtypes do, ``tf.int64``. ``tfwire.compat`` has one for every dtype.

    Attributes:
        name: TensorFlow's name: "int64", "float32", "string".
        as_numpy_dtype: The numpy scalar type of results; ``np.object_`` (holding bytes) for string.

    Example:
        >>> int64 == "int64", int64 == np.int64, np.zeros(2, float32).dtype
        (True, True, dtype('float32'))
    """

    __slots__ = ("as_numpy_dtype", "name")

    def __init__(self, name: str, as_numpy_dtype: type[np.generic]) -> None:
        self.name: str = name
        self.as_numpy_dtype: type[np.generic] = as_numpy_dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype. ``np.dtype`` accepts this object through it."""
        return np.dtype(self.as_numpy_dtype)

    @property
    def size(self) -> int:
        """Bytes of a value; 0 for string."""
        return 0 if self.dtype == object else self.dtype.itemsize

    @property
    def is_floating(self) -> bool:
        """True for real floating-point types."""
        return self.dtype.kind == "f" or "float" in self.name

    @property
    def is_integer(self) -> bool:
        """True for integers, signed and unsigned."""
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        """True for unsigned integers."""
        return self.dtype.kind == "u"

    @property
    def is_complex(self) -> bool:
        """True for complex types."""
        return self.dtype.kind == "c"

    @property
    def is_bool(self) -> bool:
        """True for bool."""
        return self.dtype.kind == "b"

    @property
    def is_numeric(self) -> bool:
        """True for integers, floating-point and complex types."""
        return self.is_integer or self.is_floating or self.is_complex

    @property
    def min(self) -> Value:
        """The smallest finite value.

        Raises:
            TypeError: string, bool and complex types have none.
        """
        return self._limits().min

    @property
    def max(self) -> Value:
        """The largest finite value.

        Raises:
            TypeError: string, bool and complex types have none.
        """
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.dtype)
        if self.dtype.kind == "f":
            return np.finfo(self.dtype)
        if self.is_floating:
            from ml_dtypes import finfo

            return finfo(self.dtype)  # type: ignore[no-untyped-call]
        raise TypeError(f"{self!r} has no smallest and largest value")

    @property
    def limits(self) -> tuple[Value, Value]:
        """The smallest and the largest intensity of a pixel: 0, and 1 for floating-point types.

        Raises:
            ValueError: Pixels do not have this type.
        """
        if self.name in ("float32", "float64"):
            return 0, 1
        if self.is_bool:
            return 0, True
        if not self.is_integer:
            raise ValueError(f"{self!r} does not have defined limits.")
        return 0, int(self.max)

    @property
    def base_dtype(self) -> DType:
        """The type itself; only TensorFlow's reference types have another."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The type of the real part."""
        return to_dtype(self.dtype.type(0).real.dtype) if self.is_complex else self

    @property
    def as_datatype_enum(self) -> int:
        """The number of the type in TensorFlow's types.proto."""
        return data_type_number(self.dtype)

    def is_compatible_with(self, other: object) -> bool:
        """True if ``other`` names the same type."""
        return self == to_dtype(other)

    def __eq__(self, other: object) -> bool:
        try:
            return self.name == to_dtype(other).name
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.as_numpy_dtype)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return to_dtype, (self.name,)


int32: DType = DType("int32", np.int32)
int64: DType = DType("int64", np.int64)
"""The type of an int64_list: integers and bool. Arrays of it have the dtype int64."""
float32: DType = DType("float32", np.float32)
"""The type of a float_list. Arrays of it have the dtype float32."""
string: DType = DType("string", np.object_)
"""The type of a bytes_list: byte strings, and text as UTF-8. Arrays of it hold bytes objects."""
# Names that mean another type to numpy, or nothing.
_BY_NAME = {dtype.name: dtype for dtype in (int32, int64, float32, string)}
_BY_NAME |= {"float": float32, "bytes": string, "str": string, "object": string}


def to_dtype(value: Any, argument: str = "dtype") -> DType:
    """The DType that a value names.

    Args:
        value: A DType, a dtype or scalar type of numpy, a dtype of TensorFlow, a name of one of
            them, or one of Python's types (float is float32, as in TensorFlow).

    Raises:
        TypeError: The value does not name a type.
    """
    if isinstance(value, DType):
        return value
    if hasattr(value, "as_numpy_dtype"):
        name = str(value.name).removesuffix("_ref")
    elif isinstance(value, type) and not issubclass(value, np.generic):
        name = value.__name__
    elif isinstance(value, (list, tuple, dict)):  # of which numpy makes structures
        raise TypeError(f"{argument} must be a dtype or the name of one, found {value!r}")
    else:
        name = value
    if isinstance(name, str) and name in _BY_NAME:
        return _BY_NAME[name]
    if name is None:
        raise TypeError(f"{argument} must be a dtype or the name of one, found None")
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # numpy parses some names as Python code
        found = reprlib.repr(value) if isinstance(value, str) else type(value).__name__
        raise TypeError(f"{argument} must be a dtype or the name of one, found {found}") from None
    if dtype.kind in "SUO":
        return string
    # np.longlong and np.int64 may be two types of one name.
    scalar = np.sctypeDict.get(dtype.name, dtype.type)
    return _BY_NAME.get(dtype.name) or DType(dtype.name, scalar)


@public
class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every Example.

    Parsed into an array of shape ``shape``, in a batch ``(batch, *shape)``, filled row by row.

    Attributes:
        shape: The dimensions; ``[]`` is a scalar, an int means rank 1.
        dtype: int64, float32 or string.
        default_value: Taken where an Example does not have the feature; as many values as the
            shape holds; they are reshaped, never broadcast. None: the feature is required.

    Example:
        >>> FixedLenFeature([], int64, default_value=0)
        FixedLenFeature(shape=[], dtype=tf.int64, default_value=0)
    """

    shape: Shape
    dtype: DTypeLike
    default_value: object = None


@public
class VarLenFeature(NamedTuple):
    """A feature with any number of values; absent means none.

    Parsed into a SparseTensor: of one Example of shape ``(n,)``, of a batch ``(batch, longest)``.

    Attributes:
        dtype: int64, float32 or string.

    Example:
        >>> import tfwire as tfw
        >>> serialized = tfw.encode_example({"tags": [3, 4]})
        >>> parsed = tfw.parse_single_example(serialized, {"tags": VarLenFeature(int64)})
        >>> parsed["tags"].values
        array([3, 4])
    """

    dtype: DTypeLike


@public
class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of elements of one shape, parsed into a padded dense array.

    The shape is ``(n, *shape)`` for one Example and ``(batch, longest, *shape)`` for a batch, where
    shorter rows are padded at their end. In a SequenceExample's feature lists an element is a step.

    One long row makes all others of its batch as long. If the padding takes more than 1 GiB and
    more than 16 times the values, parsing raises a ValueError. Use a VarLenFeature, a RaggedFeature
    or smaller batches then.

    Attributes:
        shape: The shape of one element; ``[]`` is a scalar.
        dtype: int64, float32 or string.
        allow_missing: Absent means no elements. Examples require it to be True.
        default_value: The one value to pad with; None is 0 or b"". Feature lists take None only.

    Example:
        >>> import tfwire as tfw
        >>> examples = [tfw.encode_example({"tags": tags}) for tags in ([3, 4], [5])]
        >>> spec = FixedLenSequenceFeature([], int64, allow_missing=True, default_value=-1)
        >>> tfw.parse_example(examples, {"tags": spec})["tags"].tolist()
        [[3, 4], [5, -1]]
    """

    shape: Shape
    dtype: DTypeLike
    allow_missing: bool = False
    default_value: object = None


@public
class SparseFeature(NamedTuple):
    """A SparseTensor from features of indices, one per dimension, and one of values.

    Attributes:
        index_key: The key of the int64 indices, or a list of keys, one per dimension.
        value_key: The key of the values.
        dtype: Of the values: int64, float32 or string.
        size: The dense size, or a list of sizes, one per dimension.
        already_sorted: Do not sort by index.

    Example:
        >>> import tfwire as tfw
        >>> serialized = tfw.encode_example({"at": [2, 0], "value": [0.5, 1.5]})
        >>> spec = SparseFeature("at", "value", float32, size=4)
        >>> tfw.parse_single_example(serialized, {"x": spec})["x"].to_dense().tolist()
        [1.5, 0.0, 0.5, 0.0]
    """

    index_key: str | bytes | Sequence[str | bytes]
    value_key: str | bytes
    dtype: DTypeLike
    size: int | Sequence[int]
    already_sorted: bool = False


class _RaggedFields(NamedTuple):
    dtype: DType
    value_key: str | None
    partitions: tuple[tuple[str | int], ...]
    row_splits_dtype: DType
    validate: bool


@public
class RaggedFeature(_RaggedFields):
    """A feature with any number of values, parsed into a RaggedTensor.

    Without partitions, one Example gives an array of shape ``(n,)`` and a batch a RaggedTensor with
    a row per Example. Every partition adds a dimension. Uniform partitions at the end only reshape
    the values.

    Attributes:
        dtype: int64, float32 or string.
        value_key: The key of the values; None: the key of this specification.
        partitions: Where rows begin and end, outermost first. RowSplits, RowLengths, RowStarts,
            RowLimits and ValueRowIds name the key of an int64 feature; UniformRowLength holds a
            number.
        row_splits_dtype: Of the row splits in the result: int32 or int64.
        validate: For compatibility with TensorFlow: partitions are always checked.

    Example:
        >>> import tfwire as tfw
        >>> serialized = tfw.encode_example({"words": ["a", "b", "c"], "lengths": [2, 0, 1]})
        >>> spec = RaggedFeature(string, "words", [RaggedFeature.RowLengths("lengths")])
        >>> tfw.parse_single_example(serialized, {"lines": spec})["lines"].to_list()
        [[b'a', b'b'], [], [b'c']]
    """

    __slots__ = ()

    @public
    class RowSplits(NamedTuple):
        """Row i is values ``[splits[i], splits[i + 1])``."""

        key: str

    @public
    class RowLengths(NamedTuple):
        """Row i has ``lengths[i]`` values."""

        key: str

    @public
    class RowStarts(NamedTuple):
        """Row i begins at ``starts[i]`` and ends where the next one begins."""

        key: str

    @public
    class RowLimits(NamedTuple):
        """Row i ends before ``limits[i]`` and begins where the row before ends."""

        key: str

    @public
    class ValueRowIds(NamedTuple):
        """Value i is in row ``ids[i]``; ids do not decrease."""

        key: str

    @public
    class UniformRowLength(NamedTuple):
        """Every row has this many values."""

        length: int

    def __new__(
        cls,
        dtype: DTypeLike,
        value_key: str | None = None,
        partitions: Sequence[tuple[str | int]] = (),
        row_splits_dtype: DTypeLike = int32,
        validate: bool = False,
    ) -> RaggedFeature:
        dtype = to_dtype(dtype)
        row_splits_dtype = to_dtype(row_splits_dtype, "row_splits_dtype")
        if value_key is not None and not isinstance(value_key, str):
            raise ValueError(f"Argument `value_key` must be a string; got {_shown(value_key)}")
        if value_key == "":
            raise ValueError("Argument `value_key` must not be empty")
        if dtype not in (int64, float32, string):
            raise ValueError(f"Argument `dtype` must be int64, float32, or string; got {dtype!r}")
        if row_splits_dtype not in (int32, int64):
            found = repr(row_splits_dtype)
            raise ValueError(f"Argument `row_splits_dtype` must be int32 or int64; got {found}")
        if not isinstance(partitions, (list, tuple)):
            found = _shown(partitions)
            raise TypeError(f"Argument `partitions` must be a list or tuple; got {found}")
        if not isinstance(validate, bool):
            raise TypeError(f"Argument `validate` must be a bool; got {_shown(validate)}")
        held = tuple(_as_partition(partition) for partition in partitions)
        return super().__new__(cls, dtype, value_key, held, row_splits_dtype, validate)


DenseFeature: TypeAlias = FixedLenFeature | FixedLenSequenceFeature
AnySparseFeature: TypeAlias = VarLenFeature | SparseFeature
Feature: TypeAlias = DenseFeature | AnySparseFeature | RaggedFeature


def _shown(value: Any) -> str:
    """A wrong argument for a message."""
    return quoted(value) if isinstance(value, (str, bytes, int, float)) else type(value).__name__


FEATURE_CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(FixedLenFeature, VarLenFeature, FixedLenSequenceFeature),
        *(SparseFeature, RaggedFeature),
    )
}
PARTITION_CLASSES: dict[str, Any] = {
    name: cls for name, cls in vars(RaggedFeature).items() if isinstance(cls, type)
}


def _translate(value: Any, classes: dict[str, Any]) -> Any:
    """A namedtuple with the name and fields of one of our classes, as that class; else None.

    Never a subclass: every field of one is read once.
    """
    cls = classes.get(type(value).__name__)
    if cls is None or getattr(value, "_fields", None) != cls._fields:
        return None
    return value if type(value) is cls else cls(*(getattr(value, name) for name in cls._fields))


def _as_partition(partition: Any) -> Any:
    found = _translate(partition, PARTITION_CLASSES)
    if found is None:
        expected = ", ".join(PARTITION_CLASSES)
        raise TypeError(f"Argument `partitions` must be a list of {expected}; got: {partition!r}")
    return found


def as_feature(key: str | bytes, feature: Any) -> Any:
    """A feature specification of tfwire or TensorFlow as one of the classes here.

    Raises:
        ValueError: It is something else.
    """
    found = _translate(feature, FEATURE_CLASSES)
    if found is None:
        expected = ", ".join(FEATURE_CLASSES)
        raise ValueError(
            f"Unsupported {type(feature).__name__} {show_key(feature)} for key {quoted(key)}; "
            f"expected one of {expected}"
        )
    return found


def no_counterpart(key: str, what: str) -> ValueError:
    """The error for a feature that another format does not have."""
    return ValueError(f"feature {quoted(key)}: {what} has no counterpart")
