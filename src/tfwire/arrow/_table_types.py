"""Which columns a table has where no specification says it, and of which types: the one rule of
open_reader, of every engine and neighbour, and of the commands.

Where records are looked at, strings that are all UTF-8 are text, and a feature that no record has
twice is a column of values, null where a record has none. An InferredSchema keeps what was seen, so
whoever is given it, in another process too, makes the same table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfwire._base.aliases import BinaryAs
from tfwire._base.arguments import choice
from tfwire._base.errors import DataLossError, ParseError, warn
from tfwire._base.native import lib
from tfwire._base.text import column_name, plural, quoted
from tfwire._parsing.features import VarLenFeature, string
from tfwire._parsing.infer import InferredSchema, names_of_files, schema_of_files
from tfwire._parsing.spec import Plan
from tfwire._parsing.survey import Survey
from tfwire._records.files.byte_sources import open_regular
from tfwire._records.files.compression import DETECT_SIZE, detect_compression
from tfwire._records.files.paths import is_path
from tfwire._records.files.urls import is_url
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.options import make_options

# The names of Arrow's types for strings.
BINARY_TYPES = {
    "large_binary": lib.TFW_LARGE_BINARY,
    "binary": lib.TFW_BINARY,
    "large_string": lib.TFW_LARGE_STRING,
    "string": lib.TFW_STRING,
}

# What is looked at of all files together, in equal parts from the beginning of each unless they are
# smaller together: at least so many records, and as many bytes. To look at plain files takes less
# time than to read them; others must be inflated, or fetched.
_LEAST_RECORDS = 1000
_PLAIN_BYTES = 256 << 20
_OTHER_BYTES = 16 << 20


# ---- What records hold --------------------------------------------------------------------------


class TableSample(NamedTuple):
    """What was seen of files.

    Attributes:
        features: Of the records that were looked at.
        complete: These were all records.
    """

    features: InferredSchema
    complete: bool


def infer_sample(files: Sequence[Any], compression_type: Any, on_corrupt: str) -> TableSample:
    """The specification of files, by their first records; of files that are not long, by all.

    Args:
        files: Paths, URLs, file objects and sources.
        compression_type, on_corrupt: As for ``read_records``.

    Raises:
        DataLossError, ParseError: Of the first records. Where others end a look, reading says why.
        OSError: A file cannot be read.
        ValueError: There are no records.
    """
    options = make_options(compression_type, on_corrupt=on_corrupt, max_record_size=None)
    survey, complete = Survey(), True
    least = -(-_LEAST_RECORDS // max(1, len(files)))
    plain = [is_path(file) and is_plain_file(file, options.compression) for file in files]
    are_short = all(plain) and sum(map(os.path.getsize, files)) <= _PLAIN_BYTES
    for number, (file, is_plain) in enumerate(zip(files, plain, strict=True)):
        most = (_PLAIN_BYTES if is_plain else _OTHER_BYTES) - survey.payload_bytes
        share = most if are_short else most // (len(files) - number)
        complete &= _look(survey, file, options, least, share)
    return TableSample(schema_of_files(files, survey), complete)


def _look(survey: Survey, file: Any, options: Any, least: int, most: int) -> bool:
    """Adds the first records of a file to a survey; whether these are all."""
    begin, begin_bytes = survey.num_records, survey.payload_bytes
    with BatchReader([file], options) as reader:
        try:
            while (batch := reader.next()) is not None:
                count, size = survey.num_records - begin, survey.payload_bytes - begin_bytes
                if count >= least and size >= most:
                    return False
                survey.add(batch, reader.path)
        except (DataLossError, ParseError):
            if survey.num_records - begin < least:
                raise
            return False
    return True


def infer_table(
    files: Sequence[Any],
    compression_type: Any,
    on_corrupt: str,
    *,
    columns: Iterable[str] | None = None,
    left_out: int = 0,
) -> InferredSchema:
    """The specification of files for a table, as ``infer_sample``.

    Args:
        files, compression_type, on_corrupt: As there.
        columns: Those that are wanted; None: all.
        left_out: How many files of the table are not among these.

    Warns:
        TfwireWarning: All columns are wanted, and there are records that were not looked at.
    """
    features, complete = infer_sample(files, compression_type, on_corrupt)
    if columns is None and (left_out or not complete):
        where = names_of_files(files)
        seen = f"the first {plural(features.num_records, 'record')}"
        if left_out:
            seen += f", and {plural(left_out, 'file')} not looked at"
        warn(
            f"{where}: the columns are those of {seen}; a feature that first occurs later is not "
            "among them. Give features, for example infer_schema(paths, num_records=None), which "
            "reads all records"
        )
    return features


def is_plain_file(path: Any, compression: Any) -> bool:
    """Whether a path is one of a regular file that is not compressed."""
    if compression not in ("auto", "") or is_url(path):
        return False
    source = open_regular(path)
    if source is None:
        return False
    try:
        detect = compression == "auto"
        return not (detect and detect_compression(source.peek(DETECT_SIZE)).compression)
    finally:
        source.close()


# ---- Types --------------------------------------------------------------------------------------


class TableTypes(NamedTuple):
    """What the types of columns depend on beside their specification.

    Attributes:
        strings: The Arrow type of strings, by the name of the column.
        scalars: The names of VarLenFeatures that are columns of values.
    """

    strings: dict[str, str]
    scalars: frozenset[str]


def table_types(features: Any, plans: Iterable[Plan | None], binary_as: BinaryAs) -> TableTypes:
    """The types of all columns.

    Args:
        features: A specification. An InferredSchema knows which strings are text.
        plans: Of all its features.
        binary_as: As for ``open_reader``.

    Raises:
        ValueError, TypeError: ``binary_as`` is not valid.
    """
    chosen = _checked(binary_as)
    strings: dict[str, str] = {}
    scalars, numbers = set(), set()
    for plan in plans:
        if plan is None:
            continue
        statistics = _statistics(features, plan)
        for key, feature in plan.features.items():
            name, seen = column_name(key), statistics.get(key)
            if seen is not None and seen.scalar and type(feature) is VarLenFeature:
                scalars.add(name)
            if feature.dtype != string:
                numbers.add(name)
                continue
            word = chosen if isinstance(chosen, str) else chosen.get(name, "auto")
            text = seen is not None and seen.text
            strings[name] = word if word != "auto" else "large_string" if text else "large_binary"
    for name in () if isinstance(chosen, str) else chosen:
        if name not in strings:
            what = "holds no strings" if name in numbers else "is not in the specification"
            raise ValueError(f"binary_as: {quoted(name)} {what}")
    return TableTypes(strings, frozenset(scalars))


def _checked(binary_as: Any) -> str | dict[str, str]:
    words = ("auto", *BINARY_TYPES)
    if not isinstance(binary_as, Mapping):
        return choice("binary_as", binary_as, words)
    return {
        name: choice(f"binary_as of {quoted(name)}", word, words)
        for name, word in binary_as.items()
    }


def _statistics(features: Any, plan: Any) -> Mapping[Any, Any]:
    """What was seen of the features of a plan, by key; nothing but of an InferredSchema."""
    inferred = features[0] if isinstance(features, tuple) else features
    if not isinstance(inferred, InferredSchema):
        return {}
    return inferred.sequence_statistics if plan.lists else inferred.statistics
