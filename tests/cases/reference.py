"""The rules in plain Python: protobuf's wire format and TensorFlow's treatment of specs.

Slow and direct on purpose: the third opinion beside TensorFlow and tfwire. Merging protobuf
messages is concatenating their bytes, and most of the rules for repeated fields follow from that.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from cases.results import PARTITIONS, array, plain_default

KIND_NAMES = {1: "string", 2: "float32", 3: "int64"}
DTYPES = {"string": object, "float32": np.float32, "int64": np.int64}


class Fault(Exception):
    """A message that does not fit: reason as in ParseError, and the key at fault."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        super().__init__(reason, key)
        self.reason = reason
        self.key = key


# ---- Wire format ----------------------------------------------------------------------------


def read_varint(data: bytes, at: int, limit: int = 10) -> tuple[int, int]:
    value = 0
    for i in range(limit):
        if at + i >= len(data):
            break
        value |= (data[at + i] & 127) << (7 * i)
        if data[at + i] < 128:
            return value & (2**64 - 1), at + i + 1
    raise Fault("malformed")


def read_header(data: bytes, at: int) -> tuple[int, int]:
    """A tag or a length, which protobuf reads from at most five bytes."""
    return read_varint(data, at, limit=5)


def read_tag(data: bytes, at: int) -> tuple[int, int, int]:
    value, at = read_header(data, at)
    number, wire_type = value >> 3, value & 7
    if not 0 < number < 2**29:
        raise Fault("malformed")
    return number, wire_type, at


def read_field(data: bytes, at: int) -> tuple[int, int, Any, int]:
    """(number, wire type, int or bytes, position behind); of a group only the position counts."""
    number, wire_type, at = read_tag(data, at)
    if wire_type == 0:
        value, at = read_varint(data, at)
        return number, wire_type, value, at
    if wire_type == 3:
        return number, wire_type, b"", skip_group(data, at, number)
    if wire_type == 2:
        size, at = read_header(data, at)
    elif wire_type in (1, 5):
        size = 8 if wire_type == 1 else 4
    else:
        raise Fault("malformed")
    if size > len(data) - at:
        raise Fault("malformed")
    return number, wire_type, data[at : at + size], at + size


def skip_group(data: bytes, at: int, number: int) -> int:
    while True:
        inner, wire_type, behind = read_tag(data, at)
        if wire_type == 4:
            if inner != number:
                raise Fault("malformed")
            return behind
        at = read_field(data, at)[3]


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(data):
        number, wire_type, value, at = read_field(data, at)
        yield number, wire_type, value


def submessage(data: bytes, number: int) -> bytes:
    """All occurrences of a message field, merged."""
    return b"".join(v for n, wire_type, v in fields(data) if (n, wire_type) == (number, 2))


def map_entries(data: bytes) -> list[tuple[bytes, bytes]]:
    """(key, value) of a map's entries; the values are not looked into."""
    found = []
    for number, wire_type, entry in fields(data):
        if (number, wire_type) == (1, 2):
            keys = [v for n, t, v in fields(entry) if (n, t) == (1, 2)]
            found.append((keys[-1] if keys else b"", submessage(entry, 2)))
    return found


def list_values(data: bytes, kind: int) -> list[Any]:
    values: list[Any] = []
    for number, wire_type, value in fields(data):
        if number != 1:
            continue
        if kind == 1 and wire_type == 2:
            values.append(value)
        elif kind == 2 and wire_type in (2, 5):
            if len(value) % 4:
                raise Fault("malformed")
            values.extend(np.frombuffer(value, "<f4"))
        elif kind == 3 and wire_type == 0:
            values.append(value)
        elif kind == 3 and wire_type == 2:
            at = 0
            while at < len(value):
                number, at = read_varint(value, at)
                values.append(number)
    if kind == 3:
        values = [struct.unpack("<q", struct.pack("<Q", value))[0] for value in values]
    return values


def read_feature(data: bytes) -> tuple[str | None, list[Any]]:
    """Kind and values. The last kind of the oneof stays; lists of one kind in a row merge."""
    kind, values = 0, []
    for number, wire_type, content in fields(data):
        if number in KIND_NAMES and wire_type == 2:
            values = values if number == kind else []
            values += list_values(content, number)
            kind = number
    return KIND_NAMES.get(kind), values


# ---- Lookup ---------------------------------------------------------------------------------

Found = tuple[str | None, list[Any]] | None  # None: the key is not there


def lookup(entries: list[tuple[bytes, bytes]], key: str, last_only: bool) -> Found:
    """The last entry of a key counts; one without a kind lets the entry before it through."""
    found: Found = None
    for name, data in reversed(entries):
        if name == key.encode():
            found = read_feature(data)
            if found[0] is not None or last_only:
                return found
    return found


def checked(found: Found, key: str, dtype: str) -> list[Any] | None:
    """Values of the right kind; None when there is no kind, thus no value."""
    if found is None or found[0] is None:
        return None
    if found[0] != dtype:
        raise Fault("kind", key)
    return found[1]


def to_array(values: list[Any], dtype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    out = np.empty(len(values), DTYPES[dtype])
    out[:] = values
    return out.reshape(shape)


# ---- Specs ----------------------------------------------------------------------------------


class Records:
    """The requested values of several messages: a list per key, an item per record."""

    def __init__(self, maps: list[list[tuple[bytes, bytes]]], single: bool, context: bool) -> None:
        self.maps = maps
        self.single = single
        self.context = context  # a SequenceExample's: a Feature without a kind is an empty list

    def values(self, key: str, dtype: str, dense: bool = False) -> Iterator[list[Any] | None]:
        """Record by record, so that the first record at fault is the one that is reported."""
        last_only = self.context or not (self.single or dense)
        for entries in self.maps:
            yield checked(lookup(entries, key, last_only), key, dtype)

    def present(self, key: str, record: int) -> bool:
        return any(name == key.encode() for name, _ in self.maps[record])


def parse(records: Records, spec: dict[str, dict[str, Any]]) -> dict[str, Any]:
    parsers = {
        "FixedLen": fixed,
        "VarLen": var,
        "FixedLenSequence": fixed_sequence,
        "Ragged": ragged,
        "Sparse": sparse,
    }
    return {key: parsers[spec[key]["type"]](records, key, spec[key]) for key in sorted(spec)}


def fixed(records: Records, key: str, spec: dict[str, Any]) -> Any:
    shape, dtype = list(spec["shape"]), spec["dtype"]
    size = int(np.prod(shape, dtype=int))
    default = plain_default(spec["default_value"]) if "default_value" in spec else None
    rows: list[Any] = []
    for i, values in enumerate(records.values(key, dtype, dense=True)):
        if values is None and records.context and records.present(key, i):
            raise Fault("count", key)
        if values is None:
            if default is None or default == []:
                raise Fault("missing", key)
            values = default if isinstance(default, list) else [default]
        if len(values) != size:
            raise Fault("count", key)
        rows += values
    lead = [] if records.single else [len(records.maps)]
    return array(to_array(rows, dtype, lead + shape))


def coordinates(lengths: list[int]) -> list[list[int]]:
    return [[i, j] for i, n in enumerate(lengths) for j in range(n)]


def sparse_of(indices: list[list[int]], values: Any, dtype: str, shape: list[int]) -> Any:
    where = np.array(indices, np.int64).reshape(len(indices), len(shape))
    parts = [where, to_array(list(values), dtype, [len(values)]), np.array(shape, np.int64)]
    return {"sparse": [array(part) for part in parts]}


def var(records: Records, key: str, spec: dict[str, Any]) -> Any:
    rows = [values or [] for values in records.values(key, spec["dtype"])]
    flat = list(itertools.chain(*rows))
    if records.single:
        return sparse_of([[i] for i in range(len(flat))], flat, spec["dtype"], [len(flat)])
    lengths = [len(row) for row in rows]
    shape = [len(rows), max(lengths, default=0)]
    return sparse_of(coordinates(lengths), flat, spec["dtype"], shape)


def fixed_sequence(records: Records, key: str, spec: dict[str, Any]) -> Any:
    shape, dtype = list(spec["shape"]), spec["dtype"]
    size = int(np.prod(shape, dtype=int))
    rows = []
    for values in records.values(key, dtype, dense=True):
        rows.append(values or [])
        if len(rows[-1]) % size:
            raise Fault("count", key)
    if records.single:
        return array(to_array(rows[0], dtype, [-1, *shape]))
    return array(padded(rows, size, shape, dtype, spec.get("default_value")))


def padded(rows: list[list[Any]], size: int, shape: list[int], dtype: str, default: Any) -> Any:
    fill = plain_default(default) if default is not None else (b"" if dtype == "string" else 0)
    longest = max((len(row) // size for row in rows), default=0)
    flat = [v for row in rows for v in row + [fill] * (longest * size - len(row))]
    return to_array(flat, dtype, [len(rows), longest, *shape])


# ---- Ragged ---------------------------------------------------------------------------------


def ragged(records: Records, key: str, spec: dict[str, Any]) -> Any:
    value_key = spec.get("value_key", key)
    rows = [values or [] for values in records.values(value_key, spec["dtype"])]
    flat = to_array(list(itertools.chain(*rows)), spec["dtype"], [-1])
    partitions = spec.get("partitions", [])
    tail = []
    while partitions and partitions[-1][0] == "UniformRowLength":
        tail.insert(0, partitions[-1][1])
        partitions = partitions[:-1]
    counts = [len(row) for row in rows]
    if tail:
        step = int(np.prod(tail, dtype=int))
        if any(n % step for n in counts):
            raise Fault("other", key)
        flat = flat.reshape(-1, *tail)
        counts = [n // step for n in counts]
    lengths: list[list[list[int]]] = []  # per level, outermost first: row lengths per record
    for kind, argument in reversed(partitions):
        level = partition_lengths(records, kind, argument, counts)
        lengths.insert(0, level)
        counts = [len(row) for row in level]
    levels = [list(itertools.chain(*level)) for level in lengths]
    if not records.single:
        levels.insert(0, counts)
    if not levels:
        return array(flat)
    splits_dtype = spec.get("row_splits_dtype", "int32")
    return {"ragged": [array(flat), *[splits_of(level, splits_dtype) for level in levels]]}


def splits_of(lengths: list[int], dtype: str) -> Any:
    return array(np.cumsum([0, *lengths]).astype(dtype))


def partition_lengths(
    records: Records, kind: str, argument: Any, counts: list[int]
) -> list[list[int]]:
    """Row lengths of one partition in every record, whose inner rows are counts."""
    if kind == "UniformRowLength":
        if any(n % argument for n in counts):
            raise Fault("other")
        return [[argument] * (n // argument) for n in counts]
    assert kind in PARTITIONS
    given = [values or [] for values in records.values(argument, "int64")]
    return [row_lengths(kind, values, n) for values, n in zip(given, counts, strict=True)]


def row_lengths(kind: str, given: list[int], count: int) -> list[int]:
    if kind == "RowLengths":
        lengths = given
    elif kind == "ValueRowIds":
        if sorted(given) != given or len(given) != count:
            raise Fault("other")
        lengths = [given.count(row) for row in range(max(given, default=-1) + 1)]
    else:
        ends = {"RowSplits": given, "RowStarts": [*given, count], "RowLimits": [0, *given]}[kind]
        if ends and ends[0] != 0:
            raise Fault("other")
        lengths = [b - a for a, b in itertools.pairwise(ends)]
    if any(n < 0 for n in lengths) or sum(lengths) != count:
        raise Fault("other")
    return lengths


# ---- Sparse ---------------------------------------------------------------------------------


def sparse(records: Records, key: str, spec: dict[str, Any]) -> Any:
    keys, sizes = spec["index_key"], spec["size"]
    keys, sizes = (keys, sizes) if isinstance(keys, list) else ([keys], [sizes])
    values = [row or [] for row in records.values(spec["value_key"], spec["dtype"])]
    indices = [[row or [] for row in records.values(k, "int64")] for k in keys]
    cells: list[tuple[list[int], Any]] = []
    for i, row in enumerate(values):
        columns = [index[i] for index in indices]
        if any(len(column) != len(row) for column in columns):
            raise Fault("count", key)
        lead = [] if records.single else [i]
        cells += [(lead + [c[j] for c in columns], value) for j, value in enumerate(row)]
    if not spec.get("already_sorted", False):
        cells.sort(key=lambda cell: cell[0])
    shape = sizes if records.single else [len(values), *sizes]
    return sparse_of([c[0] for c in cells], [c[1] for c in cells], spec["dtype"], shape)


# ---- Feature lists --------------------------------------------------------------------------


class Lists:
    """The requested feature lists of several SequenceExamples."""

    def __init__(self, maps: list[list[tuple[bytes, bytes]]], single: bool) -> None:
        self.maps = maps
        self.single = single

    def steps(self, key: str, dtype: str) -> list[list[list[Any]] | None]:
        """Per record None (absent) or the values of every step."""
        return [self.steps_of(m, key, dtype) for m in self.maps]

    def steps_of(self, entries: Any, key: str, dtype: str) -> list[list[Any]] | None:
        lists = [data for name, data in entries if name == key.encode()]
        if not lists:
            return None
        steps = [v for n, t, v in fields(lists[-1]) if (n, t) == (1, 2)]
        return [checked(read_feature(step), key, dtype) or [] for step in steps]


def parse_lists(lists: Lists, spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values and, for batches, the lengths of dense lists."""
    values, lengths = {}, {}
    for key in sorted(spec):
        rows = lists.steps(key, spec[key]["dtype"])
        if spec[key]["type"] == "FixedLenSequence":
            values[key] = dense_lists(lists, key, spec[key], rows)
            lengths[key] = array(np.array([len(row or []) for row in rows], np.int64))
        else:
            variable = var_lists if spec[key]["type"] == "VarLen" else ragged_lists
            values[key] = variable(lists, spec[key], [row or [] for row in rows])
    return values, lengths


def dense_lists(lists: Lists, key: str, spec: dict[str, Any], rows: list[Any]) -> Any:
    shape, dtype = list(spec["shape"]), spec["dtype"]
    size = int(np.prod(shape, dtype=int))
    if not spec.get("allow_missing", False) and any(row is None for row in rows):
        raise Fault("missing", key)
    if any(len(step) != size for row in rows for step in row or []):
        raise Fault("count", key)
    flat = [list(itertools.chain(*(row or []))) for row in rows]
    if lists.single:
        return array(to_array(flat[0], dtype, [len(rows[0] or []), *shape]))
    if size:
        return array(padded(flat, size, shape, dtype, None))
    longest = max((len(row or []) for row in rows), default=0)
    return array(to_array([], dtype, [len(rows), longest, *shape]))


def var_lists(lists: Lists, spec: dict[str, Any], rows: list[list[list[Any]]]) -> Any:
    where = [
        [i, j, k] for i, row in enumerate(rows) for j, s in enumerate(row) for k in range(len(s))
    ]
    flat = [value for row in rows for step in row for value in step]
    longest = max((len(row) for row in rows), default=0)
    widest = max((len(step) for row in rows for step in row), default=0)
    if lists.single:
        return sparse_of([w[1:] for w in where], flat, spec["dtype"], [longest, widest])
    return sparse_of(where, flat, spec["dtype"], [len(rows), longest, widest])


def ragged_lists(lists: Lists, spec: dict[str, Any], rows: list[list[list[Any]]]) -> Any:
    flat = [value for row in rows for step in row for value in step]
    levels = [[len(step) for row in rows for step in row]]
    if not lists.single:
        levels.insert(0, [len(row) for row in rows])
    dtype = spec.get("row_splits_dtype", "int32")
    values = array(to_array(flat, spec["dtype"], [-1]))
    return {"ragged": [values, *[splits_of(level, dtype) for level in levels]]}


# ---- Cases ----------------------------------------------------------------------------------


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What the rules say to a case of the table, in the form of generate.answer."""
    try:
        return {"values": answer_values(case)}
    except Fault as fault:
        return {"error": "ParseError", "reason": fault.reason, "key": fault.key}


def answer_values(case: dict[str, Any]) -> list[dict[str, Any]]:
    messages = [bytes.fromhex(message) for message in case["serialized"]]
    single = case["call"].endswith("single")
    is_sequence = case["call"].startswith("sequence")
    contexts = [map_entries(submessage(message, 1)) for message in messages]
    context = parse(Records(contexts, single, is_sequence), case["spec"])
    if not is_sequence:
        return [context]
    lists = Lists([map_entries(submessage(message, 2)) for message in messages], single)
    values, lengths = parse_lists(lists, case["lists"])
    return [context, values] if single else [context, values, lengths]
