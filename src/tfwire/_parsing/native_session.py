"""Calls into C that parse messages in memory: sessions and schemas; and arrays of the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.arrays import keep_heap
from tfwire._base.native import SEED, check, ffi, lib, new_error
from tfwire._base.strings import StringTable
from tfwire._base.system import process
from tfwire._base.text import quoted
from tfwire._parsing.failure import raise_failure
from tfwire._parsing.features import string
from tfwire._parsing.spec import KINDS, Plan, Request
from tfwire._records.reading.pipeline import Chunk, NativePipeline, PipelineOptions

# Records of a batch that holds all that are parsed at once, and messages that C takes at once.
ONE_BATCH, MOST_GIVEN = 1 << 30, 1 << 24


class Session(NativePipeline):
    """A pipeline for messages in memory, which parses them in the caller's thread; for one thread
    at a time. The memory of earlier results serves the next ones.

    Args:
        schemas: Of an Example, or of a SequenceExample's two parts.
        flags: For tfw_parse.
        is_alone: Whether its memory ends with it, and is not left to the next one.
    """

    def __init__(
        self, schemas: Sequence[Schema | None], flags: int, is_alone: bool = False
    ) -> None:
        handles = [ffi.NULL if one is None else one.native(is_alone) for one in schemas]
        sequence = lib.TFW_SEQUENCE if len(handles) == 2 else 0
        options = PipelineOptions(
            lib.TFW_PIPELINE_PARSE,
            handles[0],
            handles[-1] if sequence else ffi.NULL,
            batch_size=ONE_BATCH,
            flags=flags | sequence | lib.TFW_PIPELINE_GIVEN,
        )
        super().__init__((), options)
        self._schemas = schemas
        self._num_parsed = 0
        self.process = process.number  # in others a thread may seem to hold a lock for ever
        keep_heap()

    def parse(self, messages: StringTable, before: int = 0) -> Chunk:
        """The columns of messages, at most MOST_GIVEN, of a list that has some before them.

        Raises:
            ParseFailure: A message does not fit; the session is of no more use.
            MemoryError: Out of memory.
        """
        table = ffi.from_buffer("tfw_span[]", np.ascontiguousarray(messages.table))
        native, out, error, count = self._native, self._out, self._error, len(table)
        status = lib.tfw_pipeline_give(native, table, count, error)
        if status == lib.TFW_OK:
            status = lib.tfw_pipeline_next(native, -1, out, error)
        if status == lib.TFW_OK:
            taken, out[0] = out[0], ffi.NULL
            chunk = Chunk(ffi.gc(taken, lib.tfw_chunk_release))
            if chunk.num_records == count:
                self._num_parsed += count
                return chunk
            status = lib.tfw_pipeline_next(native, -1, out, error)
        error.record += before - self._num_parsed
        schema = self._schemas[-1 if error.list == 1 else 0]
        raise_failure(status, error, [] if schema is None else schema.plan.requests)
        check(status, error)
        raise AssertionError("an order without records")


# ---- Schemas: plans as C knows them ----


class Schema:
    """The tfw_schema of a plan, which is immutable; for any number of threads.

    Attributes:
        dtypes: Of the values of each column; of strings, of their bytes.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.handle = create_native(plan)
        self.columns_flags: int = lib.TFW_FEATURE_LISTS if plan.lists else 0
        self._for_files: Any = None
        self.dtypes = [
            np.dtype(np.uint8) if request.dtype == string else request.dtype.dtype
            for request in plan.requests
        ]

    def native(self, is_new: bool) -> Any:
        """A ``tfw_schema *``: the one of all parsers with an equal specification, or a new one."""
        return create_native(self.plan) if is_new else self.handle

    def for_files(self) -> Any:
        """A ``tfw_schema *`` of its own, where pipelines leave memory for those after them: it ends
        with the parser, while ``handle`` is kept for equal specifications."""
        if self._for_files is None:
            self._for_files = create_native(self.plan)
        return self._for_files

    def with_own_memory(self) -> Schema:
        """The same schema for another parser: memory is kept as long as the parser."""
        other = copy(self)
        other._for_files = None
        return other


def create_native(plan: Plan) -> Any:
    features = ffi.new("tfw_feature[]", len(plan.requests))
    pinned = [
        _describe(feature, request)
        for feature, request in zip(features, plan.requests, strict=True)
    ]
    out, error = ffi.new("tfw_schema **"), new_error()
    check(lib.tfw_schema_create(features, len(features), SEED, out, error), error)
    del pinned  # C has copied everything
    return ffi.gc(out[0], lib.tfw_schema_free)


def _describe(feature: Any, request: Request) -> list[Any]:
    """Fills in a tfw_feature; returns what it points into."""
    pinned = [ffi.from_buffer("char[]", request.key)]
    feature.name, feature.name_len = pinned[0], len(request.key)
    feature.kind = KINDS[request.dtype]
    feature.layout = request.layout
    feature.count = request.num_values
    feature.has_default = request.optional
    if request.default is not None and request.optional:
        values, offsets = request.default if request.dtype == string else (request.default, None)
        pinned.append(ffi.from_buffer(values))
        feature.default_values = pinned[-1]
        if offsets is not None:
            pinned.append(ffi.from_buffer("int64_t[]", offsets))
            feature.default_offsets = pinned[-1]
    return pinned


def arrays_of(out: Any, schema: Schema | None, count: int) -> dict[Any, Array]:
    """The arrays for the numbers of count records, as plain arrays.

    They are looked at once: a Mapping may give other arrays the next time, and a subclass of
    ndarray any shape.

    Raises:
        TypeError, ValueError: An array does not fit.
    """
    columns = {
        request.name: request
        for request in ([] if schema is None or schema.plan.lists else schema.plan.requests)
        if request.layout == lib.TFW_DENSE and request.dtype != string
    }
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a dict of arrays, found {type(out).__name__}")
    arrays = {}
    for key, given in list(out.items()):
        if key not in columns:
            raise ValueError(f"out: {quoted(key)} is not a FixedLenFeature of numbers")
        shape, dtype = columns[key].shape, columns[key].dtype.dtype
        array = np.asarray(given) if issubclass(type(given), np.ndarray) else None
        if array is None or array.dtype != dtype:
            found = type(given).__name__ if array is None else array.dtype
            raise TypeError(f"out: {quoted(key)} must be an array of {dtype}, found {found}")
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < count:
            raise ValueError(
                f"out: {quoted(key)} must be of shape {(count, *shape)}, found {array.shape}"
            )
        if not array.flags.carray:
            raise ValueError(f"out: {quoted(key)} must be C-contiguous, aligned and writable")
        arrays[key] = array
    return arrays


def create_columns(schema: Schema) -> Any:
    """A ``tfw_columns *``, which needs the schema as long as it is used."""
    out, error = ffi.new("tfw_columns **"), new_error()
    check(lib.tfw_columns_create(schema.handle, schema.columns_flags, out, error), error)
    return ffi.gc(out[0], lib.tfw_columns_free)
