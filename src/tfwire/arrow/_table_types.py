"""Which columns a table has where no specification says it, and of which types: the one rule of
open_reader, of every engine and neighbour, and of the commands.

Where records are looked at, strings that are all UTF-8 are text, and a feature that no record has
twice is a column of values, null where a record has none. An InferredSchema keeps what was seen, so
whoever is given it, in another process too, makes the same table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfwire._base.aliases import BinaryAs
from tfwire._base.arguments import choice
from tfwire._base.errors import DataLossError, ParseError
from tfwire._base.native import lib
from tfwire._base.text import column_name, quoted
from tfwire._parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    string,
    to_dtype,
)
from tfwire._parsing.infer import InferredSchema, schema_of_files
from tfwire._parsing.spec import Plan, compile_features
from tfwire._parsing.survey import Survey
from tfwire._parsing.write_plans import plans_of
from tfwire._records.files.byte_sources import detected_in_file
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

# Plain files that are smaller together are looked at whole. Else a sample is taken, in equal parts
# from the beginning of each file: as many records as it takes, if these are no more than a 32nd of
# all bytes, and no less than a 256th. To look at a byte may take four times as long as to parse it.
# No more than so many bytes are looked at of large files, nor less of those of unknown sizes.
_SMALL = 4 << 20
_ENOUGH_RECORDS = 256
_LEAST_SHARE, _MOST_SHARE = 256, 32
_LEAST_BYTES, _MOST_BYTES = 256 << 10, 16 << 20
# Bytes read at a time.
_LEAST_BUFFER, _MOST_BUFFER = 16 << 10, 64 << 10


# ---- What records hold --------------------------------------------------------------------------


def infer_table(files: Sequence[Any], compression_type: Any, on_corrupt: str) -> InferredSchema:
    """The specification of files, by a sample of their records; of small files, by all.

    Args:
        files: Paths, URLs, file objects and sources.
        compression_type, on_corrupt: As for ``read_records``.

    Raises:
        DataLossError, ParseError: Of the first records. Where others end a look, reading says why.
        OSError: A file cannot be read.
        ValueError: There are no records.
    """
    options = make_options(compression_type, on_corrupt=on_corrupt, max_record_size=None)
    local = [file for file in files if is_path(file) and not is_url(file)]
    size = sum(map(os.path.getsize, filter(os.path.exists, local)))
    are_plain = all(is_path(file) and is_plain_file(file, options.compression) for file in files)
    least, most = (
        min(max(size // share, _LEAST_BYTES), _MOST_BYTES) for share in (_LEAST_SHARE, _MOST_SHARE)
    )
    if are_plain and size <= _SMALL:
        least = most = sys.maxsize
    survey, complete = Survey(), True
    for number, file in enumerate(files):
        left = len(files) - number
        shares = [max(0, bound - survey.payload_bytes) // left for bound in (least, most)]
        complete &= _look(survey, file, options, shares, -(-_ENOUGH_RECORDS // len(files)))
    return schema_of_files(files, survey, complete)


def _look(survey: Survey, file: Any, options: Any, shares: list[int], num_records: int) -> bool:
    """Adds the first records of a file to a survey; whether these are all. There is one at least,
    and as many as it takes until there is a feature.

    Args:
        shares: How many bytes are enough of so many records, and of fewer.
    """
    begin, begin_bytes = survey.num_records, survey.payload_bytes
    options = options._replace(buffer_size=min(max(shares[1], _LEAST_BUFFER), _MOST_BUFFER))
    with BatchReader([file], options) as reader:
        try:
            while (batch := reader.next()) is not None:
                count, size = survey.num_records - begin, survey.payload_bytes - begin_bytes
                is_enough = size >= shares[count < num_records]
                if is_enough and survey.num_features:
                    return False
                survey.add(batch, reader.path)
        except (DataLossError, ParseError):
            if survey.num_records - begin < num_records:
                raise
            return False
    return True


def is_plain_file(path: Any, compression: Any) -> bool:
    """Whether a path is one of a regular file that is not compressed."""
    if compression not in ("auto", "") or is_url(path):
        return False
    found = detected_in_file(path)
    return found is not None and not (compression and found.compression)


# ---- Plans --------------------------------------------------------------------------------------


def is_sample(features: Any) -> bool:
    """Whether a specification was inferred from some of the records."""
    return isinstance(features, InferredSchema) and not features.complete


def table_plans(features: Any) -> list[Plan | None]:
    """The plans of the columns of a table. What all records of a sample have, others may lack.

    Raises:
        ValueError, TypeError: As ``compile_features``.
    """
    if not is_sample(features):
        return plans_of(features)
    context = {key: _may_be_absent(feature) for key, feature in features.items()}
    if not features.sequence_features:
        return [compile_features(context)]
    lists = {key: _may_be_absent(each) for key, each in features.sequence_features.items()}
    return [compile_features(context, "context"), compile_features(lists, "lists")]


def _may_be_absent(feature: Any) -> Any:
    if type(feature) is FixedLenSequenceFeature:
        return feature._replace(allow_missing=True)
    if type(feature) is not FixedLenFeature or feature.default_value is not None:
        return feature
    default: Any = b"" if to_dtype(feature.dtype) == string else 0
    shape: Any = feature.shape
    for size in reversed(shape):
        default = [default] * size
    return feature._replace(default_value=default)


def notes_unknown(features: Any) -> bool:
    """Whether to say which features of records are no columns: those that a sample has not, unless
    the user has changed what was inferred."""
    return (
        is_sample(features)
        and features.keys() == features.statistics.keys()
        and features.sequence_features.keys() == features.sequence_statistics.keys()
    )


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
