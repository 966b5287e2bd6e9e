"""Parser, SequenceParser and the parse functions, which notice changes of a specification.

``parse_example`` and its relatives are TensorFlow's functions. ``Parser`` and ``SequenceParser`` do
the same with a specification compiled once; they also read files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from tfwire._base.aliases import (
    AnyFeature,
    Array,
    BytesAs,
    BytesLike,
    Names,
    SupportsSerialize,
    Value,
)
from tfwire._base.errors import public
from tfwire._examples.column_types import Messages, RaggedTensor, SparseTensor
from tfwire._parsing.base_parser import BaseParser, Batch, Single
from tfwire._parsing.chunk_columns import batches_of_chunk
from tfwire._parsing.features import AnySparseFeature, DenseFeature, RaggedFeature
from tfwire._parsing.fields import Column, Cuts, lengths_of_batches, with_objects
from tfwire._parsing.file_chunks import PathsOfFiles
from tfwire._parsing.spec_cache import Compiled, compiled_example, compiled_sequence
from tfwire._records.reading.pipeline import Chunk

Key = TypeVar("Key")
ColumnType = TypeVar("ColumnType")


@public
class Parser(BaseParser[Batch, Single]):
    """Parses Examples by one specification. Threads may share it; it pickles.

    Results are dicts with the keys of the specification: arrays for FixedLenFeature and
    FixedLenSequenceFeature, a SparseTensor for VarLenFeature and SparseFeature, a RaggedTensor
    for RaggedFeature. Arrays are writable and outlive the parser. Values of features that the
    specification does not name are skipped: damage inside them is not noticed.

    Args:
        features: Keys to feature objects, tfwire's or TensorFlow's.
        bytes_as: "object": strings are bytes objects in object arrays; "column": a BytesColumn,
            without a Python object per string.
        empty_is_missing: A FixedLenFeature that is present without values takes its default, as
            TensorFlow documents; in TensorFlow itself it is an error.

    Raises:
        ValueError, TypeError: The specification is not valid.

    Example:
        >>> parser = Parser({"label": tfw.FixedLenFeature([], tfw.int64)})
        >>> parser.parse([tfw.encode_example({"label": 3}), tfw.encode_example({"label": 4})])
        {'label': array([3, 4])}
    """

    _parameters = ("features",)

    @overload
    def __init__(
        self: Parser[dict[Key, Array], dict[Key, Value]],
        features: Mapping[Key, DenseFeature],
        *,
        bytes_as: Literal["object"] = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Parser[dict[Key, SparseTensor], dict[Key, SparseTensor]],
        features: Mapping[Key, AnySparseFeature],
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Parser[dict[Key, RaggedTensor], dict[Key, Value]],
        features: Mapping[Key, RaggedFeature],
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Parser[dict[Key, Value], dict[Key, Value]],
        features: Mapping[Key, AnyFeature],
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    def __init__(
        self,
        features: Mapping[Key, AnyFeature],
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None:
        self._start(compiled_example(features).schemas, bytes_as, empty_is_missing)

    @cached_property
    def _cuts(self) -> Cuts:
        """As C cuts columns of files: strings, too, where they do not become objects."""
        [schema] = self._schemas
        assert schema is not None
        if self._finish is with_objects:
            return schema.plan.cuts
        return Cuts.of(schema.plan.fields, dict(enumerate(schema.dtypes)))

    def _batches_of(
        self, chunk: Chunk, count: int, size: int, paths: PathsOfFiles
    ) -> Iterator[Any]:
        return batches_of_chunk(chunk, self._schemas[0], self._cuts, count, size, self._finish)

    def _batches(
        self, parts: list[list[Column]], count: int, size: int
    ) -> Iterator[dict[Any, Any]]:
        return self._dicts(self._plans[0], parts[0], count, size)

    def _single(self, parts: list[list[Column]]) -> dict[Any, Any]:
        return self._dict(self._plans[0], parts[0])


@public
class SequenceParser(
    BaseParser[
        tuple[dict[Key, ColumnType], dict[Key, ColumnType], dict[Key, npt.NDArray[np.int64]]],
        tuple[dict[Key, Value], dict[Key, Value]],
    ]
):
    """Parses SequenceExamples by two specifications. Threads may share it; it pickles.

    Results of a batch are (context, lists, lengths), of one message (context, lists): dicts with
    the keys of the specifications. ``lengths`` holds the number of steps of each record, int64, for
    every FixedLenSequenceFeature of the lists.

    Args:
        context_features: FixedLenFeature, VarLenFeature and RaggedFeature by key; may be None.
        sequence_features: FixedLenSequenceFeature, VarLenFeature and RaggedFeature by key; may be
            None when there are context features.
        bytes_as: As for Parser.
        empty_is_missing: As for Parser, for the context.

    Raises:
        ValueError, TypeError: A specification is not valid.

    Example:
        >>> lists = {"words": tfw.FixedLenSequenceFeature([], tfw.int64)}
        >>> parser = SequenceParser({"n": tfw.FixedLenFeature([], tfw.int64)}, lists)
        >>> message = tfw.encode_sequence_example({"n": 1}, {"words": [3, 4]})
        >>> parser.parse_single(message)
        ({'n': np.int64(1)}, {'words': array([3, 4])})
    """

    _parameters = ("context_features", "sequence_features")

    @overload
    def __init__(
        self: SequenceParser[Key, Array],
        context_features: Mapping[Key, DenseFeature] | None = None,
        sequence_features: Mapping[Key, DenseFeature] | None = None,
        *,
        bytes_as: Literal["object"] = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: SequenceParser[Key, Value],
        context_features: Mapping[Key, AnyFeature] | None = None,
        sequence_features: Mapping[Key, AnyFeature] | None = None,
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None: ...
    def __init__(
        self,
        context_features: Mapping[Key, AnyFeature] | None = None,
        sequence_features: Mapping[Key, AnyFeature] | None = None,
        *,
        bytes_as: BytesAs = "object",
        empty_is_missing: bool = False,
    ) -> None:
        known = compiled_sequence(context_features, sequence_features)
        self._start(known.schemas, bytes_as, empty_is_missing)

    def _batches(
        self, parts: list[list[Column]], count: int, size: int
    ) -> Iterator[tuple[dict[Any, Any], ...]]:
        context, lists = self._plans
        results = (
            self._dicts(context, parts[0], count, size),
            self._dicts(lists, parts[1], count, size),
            lengths_of_batches(lists.fields if lists else {}, parts[1], count, size),
        )
        for _ in range(0, max(count, 1), size):
            yield tuple(map(next, results))

    def _single(self, parts: list[list[Column]]) -> tuple[dict[Any, Any], ...]:
        context, lists = self._plans
        return self._dict(context, parts[0]), self._dict(lists, parts[1])


# ---- TensorFlow's functions --------------------------------------------------------------------
@overload
def parse_example(
    serialized: bytes | bytearray | memoryview,
    features: Mapping[Key, AnyFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Value]: ...
@overload
def parse_example(
    serialized: Messages,
    features: Mapping[Key, DenseFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Array]: ...
@overload
def parse_example(
    serialized: Messages,
    features: Mapping[Key, AnySparseFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, SparseTensor]: ...
@overload
def parse_example(
    serialized: Messages,
    features: Mapping[Key, RaggedFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, RaggedTensor]: ...
@overload
def parse_example(
    serialized: Messages,
    features: Mapping[Key, AnyFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Value]: ...
def parse_example(
    serialized: Messages | bytes | bytearray | memoryview,
    features: Mapping[Key, AnyFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Value]:
    """Parses a batch of serialized Examples, as ``tf.io.parse_example``.

    The specification is compiled once, also when each call makes an equal one, and again after it
    was changed.

    Args:
        serialized: A list, tuple or object array of bytes-like objects. One bytes-like object is
            parsed as by parse_single_example.
        features: Keys to feature objects, tfwire's or TensorFlow's.
        example_names: Names of the Examples, for error messages.
        name: Ignored.

    Returns:
        The keys of ``features`` to arrays with a first dimension of the batch (int64, float32,
        object arrays of bytes), SparseTensors and RaggedTensors.

    Raises:
        ParseError: An Example does not fit; the message says which, and what was found.
        ValueError, TypeError: The specification or ``serialized`` is not valid.

    Example:
        >>> features = {"label": tfw.FixedLenFeature([], tfw.int64)}
        >>> parse_example([tfw.encode_example({"label": 3, "tags": ["a", "b"]})], features)
        {'label': array([3])}
    """
    known = compiled_example(features)
    parser = known.parser or _parser_of(known, Parser)
    parsed: dict[Key, Value]
    [parsed] = parser._parse_batches(serialized, None, None, example_names)
    return parsed


@overload
def parse_single_example(
    serialized: BytesLike | SupportsSerialize,
    features: Mapping[Key, AnySparseFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, SparseTensor]: ...
@overload
def parse_single_example(
    serialized: BytesLike | SupportsSerialize,
    features: Mapping[Key, AnyFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Value]: ...
def parse_single_example(
    serialized: BytesLike | SupportsSerialize,
    features: Mapping[Key, AnyFeature],
    example_names: Names = None,
    name: str | None = None,
) -> dict[Key, Value]:
    """Parses one serialized Example, as ``tf.io.parse_single_example``.

    Args:
        serialized: A bytes-like object, an object with ``numpy()``, or a message.
        features: Keys to feature objects, tfwire's or TensorFlow's.
        example_names: The name of the Example, for error messages.
        name: Ignored.

    Returns:
        The keys of ``features`` to numpy scalars, bytes, arrays, SparseTensors and RaggedTensors,
        without a batch dimension.

    Raises:
        ParseError, ValueError, TypeError: As parse_example.

    Example:
        >>> features = {"name": tfw.FixedLenFeature([], tfw.string, default_value="?")}
        >>> parse_single_example(tfw.encode_example({"name": "goat"}), features)
        {'name': b'goat'}
    """
    known = compiled_example(features)
    parser = known.parser or _parser_of(known, Parser)
    parsed: dict[Key, Value] = parser._parse_single(serialized, example_names)
    return parsed


@overload
def parse_sequence_example(
    serialized: Messages,
    context_features: Mapping[Key, DenseFeature] | None = None,
    sequence_features: Mapping[Key, DenseFeature] | None = None,
    example_names: Names = None,
    name: str | None = None,
) -> tuple[dict[Key, Array], dict[Key, Array], dict[Key, npt.NDArray[np.int64]]]: ...
@overload
def parse_sequence_example(
    serialized: Messages,
    context_features: Mapping[Key, AnyFeature] | None = None,
    sequence_features: Mapping[Key, AnyFeature] | None = None,
    example_names: Names = None,
    name: str | None = None,
) -> tuple[dict[Key, Value], dict[Key, Value], dict[Key, npt.NDArray[np.int64]]]: ...
def parse_sequence_example(
    serialized: Messages,
    context_features: Mapping[Key, AnyFeature] | None = None,
    sequence_features: Mapping[Key, AnyFeature] | None = None,
    example_names: Names = None,
    name: str | None = None,
) -> tuple[dict[Key, Value], dict[Key, Value], dict[Key, npt.NDArray[np.int64]]]:
    """Parses a batch of serialized SequenceExamples, as ``tf.io.parse_sequence_example``.

    Args:
        serialized: A list, tuple or object array of bytes-like objects.
        context_features: Keys to FixedLenFeature, VarLenFeature or RaggedFeature; may be None.
        sequence_features: Keys to FixedLenSequenceFeature, VarLenFeature or RaggedFeature; may be
            None when there are context features.
        example_names: Names of the messages, for error messages.
        name: Ignored.

    Returns:
        (context, lists, lengths), as SequenceParser says.

    Raises:
        ParseError, ValueError, TypeError: As parse_example.
    """
    known = compiled_sequence(context_features, sequence_features)
    parser = known.parser or _parser_of(known, SequenceParser)
    parsed: tuple[dict[Key, Value], dict[Key, Value], dict[Key, npt.NDArray[np.int64]]]
    [parsed] = parser._parse_batches(serialized, None, None, example_names)
    return parsed


def parse_single_sequence_example(
    serialized: BytesLike | SupportsSerialize,
    context_features: Mapping[Key, AnyFeature] | None = None,
    sequence_features: Mapping[Key, AnyFeature] | None = None,
    example_name: Names = None,
    name: str | None = None,
) -> tuple[dict[Key, Value], dict[Key, Value]]:
    """Parses one serialized SequenceExample, as ``tf.io.parse_single_sequence_example``.

    Args:
        serialized: A bytes-like object, an object with ``numpy()``, or a message.
        context_features, sequence_features: As for parse_sequence_example.
        example_name: The name of the message, for error messages.
        name: Ignored.

    Returns:
        (context, lists), as SequenceParser says.

    Raises:
        ParseError, ValueError, TypeError: As parse_example.
    """
    known = compiled_sequence(context_features, sequence_features)
    parser = known.parser or _parser_of(known, SequenceParser)
    parsed: tuple[dict[Key, Value], dict[Key, Value]] = parser._parse_single(
        serialized, example_name
    )
    return parsed


def _parser_of(known: Compiled, cls: type[BaseParser[Any, Any]]) -> Any:
    """The parser that the functions share for a specification."""
    known.parser = cls._of(known.schemas)
    return known.parser
