"""What records hold, without a specification: features, kinds, numbers and ranges of values; and
the values of one feature, by which an index finds records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.arrays import to_splits
from tfwire._base.errors import ParseError
from tfwire._base.native import SEED, address, call, check, ffi, lib, new_error, new_struct
from tfwire._base.strings import StringTable
from tfwire._examples.decode import decode_sequence_example
from tfwire._examples.kinds import KIND_NAMES
from tfwire._parsing.features import DType, FixedLenFeature, int64, string
from tfwire._parsing.parsers import Parser, parse_example
from tfwire._records.index.record_keys import RecordKeys
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import display_name
from tfwire._records.reading.native_batches import number_of, record_position, span_table
from tfwire._records.reading.options import make_options


class KindSurvey(NamedTuple):
    """The values of one kind that a feature has; of strings, their lengths.

    Attributes:
        records: Number of records in which the feature is of this kind, also without values.
        values: Number of values.
        min, max: The smallest and the largest, but for NaN; None if there are none.
        sum: Their sum, without NaN.
        nans: How many are NaN.
    """

    records: int
    values: int
    min: float | None
    max: float | None
    sum: float
    nans: int


class FeatureSurvey(NamedTuple):
    """A feature, or a feature list.

    Attributes:
        records: Number of records that have it.
        min_count, max_count: Values in a record; in a feature list, in a step.
        min_steps, max_steps: Steps in a record; None if this is not a feature list.
        kinds: "string", "float32" and "int64", as far as they occur; the most frequent first.
        kindless: Number of records in which no kind is set.
        text: Whether all its strings are UTF-8; None without any.
    """

    records: int
    min_count: int
    max_count: int
    min_steps: int | None
    max_steps: int | None
    kinds: dict[str, KindSurvey]
    kindless: int
    text: bool | None


class Survey:
    """What Examples and SequenceExamples hold.

    Attributes:
        num_records: How many were added.
        payload_bytes: The sum of their lengths.
    """

    def __init__(self) -> None:
        out, self._error = ffi.new("tfw_survey **"), new_error()
        call(lib.tfw_survey_create, SEED, out)
        self._native = ffi.gc(out[0], lib.tfw_survey_free)
        self._done = ffi.new("size_t *")
        self._lengths = ffi.new("uint64_t[2]", [2**64 - 1, 0])
        self.num_records = self.payload_bytes = 0

    def add(self, batch: Any, path: Any) -> None:
        """Adds the records of a ``tfw_batch``.

        Raises:
            ParseError: A record is neither an Example nor a SequenceExample; those before it were
                added.
            MemoryError: Out of memory.
        """
        status = self._add(batch.data, batch.data_len, batch.spans, batch.count)
        done = self._done[0]
        self._note_lengths(batch, done)
        if status == lib.TFW_E_WIRE:
            span = batch.spans[done]
            record = bytes(ffi.buffer(batch.data + span.offset, span.length))
            raise _malformed(record, path, number_of(batch, done))
        check(status, self._error)

    def _note_lengths(self, batch: Any, count: int) -> None:
        """Notes the lengths of the first records of a batch."""
        if count == batch.count:
            self.payload_bytes += batch.payload_bytes
        else:
            self.payload_bytes += sum(batch.spans[i].length for i in range(count))
        lib.tfw_span_lengths(batch.spans, count, self._lengths, self._lengths + 1)

    def add_record(self, record: bytes) -> None:
        """Adds a record that is known to be an Example or SequenceExample. Its length is not noted.

        Raises:
            MemoryError: Out of memory.
        """
        span = ffi.new("tfw_span *", (0, len(record)))
        check(self._add(ffi.from_buffer(record), len(record), span, 1), self._error)

    def _add(self, data: Any, size: int, spans: Any, count: int) -> int:
        native, flags = self._native, lib.TFW_SEQUENCE
        status: int = lib.tfw_survey_add(
            native, data, size, spans, count, flags, self._done, self._error
        )
        self.num_records += self._done[0]
        return status

    @property
    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest record, in bytes; 0 if there are none."""
        shortest, longest = self._lengths
        return min(shortest, longest), longest

    @property
    def num_features(self) -> int:
        """How many features and feature lists there are."""
        return int(lib.tfw_survey_count(self._native))

    @property
    def name_bytes(self) -> int:
        """How many bytes their names have together."""
        native, size = new_struct("tfw_feature_survey"), 0
        for i in range(self.num_features):
            lib.tfw_survey_get(self._native, i, native)
            size += native.name_len
        return size

    def features(self, *, lists: bool = False) -> dict[str, FeatureSurvey]:
        """The features, or the feature lists, by name and sorted."""
        found, native = {}, new_struct("tfw_feature_survey")
        for i in range(lib.tfw_survey_count(self._native)):
            lib.tfw_survey_get(self._native, i, native)
            if native.messages and lists == bool(native.is_list):
                name = bytes(ffi.buffer(native.name, native.name_len))
                found[name.decode("utf-8", "surrogateescape")] = _feature(native)
        return dict(sorted(found.items()))


def survey_files(
    paths: list[Any],
    num_records: int | None,
    compression_type: Any,
    on_corrupt: str,
) -> tuple[Survey, bool]:
    """A survey of files, and whether it is that of all their records.

    Args:
        paths: The files.
        num_records: How many records to read from the beginning of each; None: all.
        compression_type, on_corrupt: As for read_records.

    Raises:
        ParseError: A record is neither an Example nor a SequenceExample.
        DataLossError, OSError: As read_records.
    """
    survey, complete = Survey(), True
    options = make_options(compression_type, on_corrupt=on_corrupt, max_record_size=None)
    for path in paths:
        left = num_records
        with BatchReader([path], options) as reader:
            while left != 0 and (batch := reader.next(left or 0)) is not None:
                survey.add(batch, reader.path)
                left = left and left - batch.count
            complete &= left != 0 or reader.next(1) is None
    return survey, complete


def _malformed(record: bytes, path: Any, index: int) -> ParseError:
    try:
        decode_sequence_example(record)
        reason = "malformed"  # not reached: both read messages by the same rules
    except ParseError as error:
        reason = str(error).removeprefix("the message is not an Example: ")
    text = f"{display_name(path)}: record {index} is not an Example: {reason}"
    return ParseError(text, path=path, record_index=index, reason="malformed")


def _feature(native: Any) -> FeatureSurvey:
    kinds = {
        name: _kind(native.kinds[kind], kind)
        for kind, name in KIND_NAMES.items()
        if kind != lib.TFW_NONE and native.kinds[kind].messages
    }
    return FeatureSurvey(
        native.messages,
        min(native.least_values, native.most_values),  # no steps: the former is the largest number
        native.most_values,
        native.least_steps if native.is_list else None,
        native.most_steps if native.is_list else None,
        dict(sorted(kinds.items(), key=lambda item: -item[1].records)),
        native.kinds[lib.TFW_NONE].messages,
        not native.not_utf8 if native.kinds[lib.TFW_BYTES].values else None,
    )


def _kind(native: Any, kind: int) -> KindSurvey:
    least, most = native.least, native.most
    if kind == lib.TFW_FLOAT:
        least, most = native.least_float, native.most_float
    if native.values == native.nans:
        least = most = None
    return KindSurvey(native.messages, native.values, least, most, native.sum, native.nans)


# ---- Keys of records ---------------------------------------------------------------------------


class KeyColumn:
    """The keys of a file's records, batch after batch. The first record says of which kind all are.

    Args:
        name: The feature.
    """

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._use(int64)

    def _use(self, dtype: DType) -> None:
        self._parser: Any = Parser({self._name: FixedLenFeature([], dtype)}, bytes_as="column")
        self._parts: list[Array] = [np.empty(0, dtype.dtype if dtype == int64 else np.uint8)]
        self._lengths: list[Array] | None = [] if dtype == string else None

    def add(self, batch: Any, path: Any) -> None:
        """Adds the records of a ``tfw_batch``.

        Raises:
            ParseError: A record has no key, several, or one of another kind.
        """
        table = span_table(batch).astype(np.uint64)
        table[:, 0] += np.uint64(address(batch.data))
        try:
            self._add(StringTable(table, batch))
        except ParseError as error:
            at = error.record_index
            if at == 0 and error.found == "string" and self._is_new:
                self._use(string)
                self.add(batch, path)
                return
            placed = _placed(error, batch, path)
            if at == 0 and self._is_new:  # which says of which kind the keys are
                placed.args = (str(placed).replace("type: int64", "type: int64 or string"),)
            raise placed from None

    @property
    def _is_new(self) -> bool:
        return len(self._parts) == 1 and self._lengths is None

    def _add(self, records: StringTable) -> None:
        column = self._parser.parse(records)[self._name]
        if self._lengths is None:
            self._parts.append(column)
        else:
            self._parts.append(column.data.copy())  # its memory may be larger
            self._lengths.append(np.diff(column.offsets))

    def finish(self) -> RecordKeys:
        """The keys of all records."""
        values = np.concatenate(self._parts)
        if self._lengths is None:
            return RecordKeys(self._name, values)
        return RecordKeys(self._name, values, to_splits(np.concatenate(self._lengths)))


def _placed(error: ParseError, batch: Any, path: Any) -> ParseError:
    """The error of a record of a batch, which says where the record is in its file."""
    at = error.record_index or 0
    number, offset = record_position(batch, at)
    text = str(error).partition(": ")[2]
    return ParseError(
        f"{display_name(path)}: record {number} (at byte {offset}): {text}",
        path=path,
        record_index=number,
        feature=error.feature,
        reason=error.reason,
        expected=error.expected,
        found=error.found,
    )


def keys_of(records: list[bytes], name: bytes, are_strings: bool) -> list[Any]:
    """The keys of records.

    Raises:
        ParseError: A record has none, several, or one of another kind.
    """
    feature = FixedLenFeature([], string if are_strings else int64)
    keys: list[Any] = parse_example(records, {name: feature})[name].tolist()
    return keys
