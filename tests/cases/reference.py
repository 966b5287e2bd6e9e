"""The rules for specs in plain Python: the third opinion beside TensorFlow and tfwire."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from cases.reading import Fault, fields, map_entries, merged, read_feature, submessage
from cases.results import PARTITIONS, array, plain_default

DTYPES = {"string": object, "float32": np.float32, "int64": np.int64}


# ---- Lookup ---------------------------------------------------------------------------------

Entries = list[tuple[bytes, list[bytes]]]
Found = tuple[str | None, list[Any]] | None  # None: the key is not there


def lookup(entries: Entries, key: str, last_only: bool) -> Found:
    """The last entry of a key counts; one without a kind lets the entry before it through. All
    entries of the key must be well-formed."""
    found = [read_feature(merged(value)) for name, value in entries if name == key.encode()]
    with_kind = [feature for feature in found if feature[0] is not None]
    if not last_only and with_kind:
        return with_kind[-1]
    return found[-1] if found else None


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

    def __init__(self, maps: list[Entries], single: bool, context: bool) -> None:
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
            raise Fault("partition", key)
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
            raise Fault("partition")
        return [[argument] * (n // argument) for n in counts]
    assert kind in PARTITIONS
    given = [values or [] for values in records.values(argument, "int64")]
    return [row_lengths(kind, values, n) for values, n in zip(given, counts, strict=True)]


def row_lengths(kind: str, given: list[int], count: int) -> list[int]:
    if kind == "RowLengths":
        lengths = given
    elif kind == "ValueRowIds":
        if sorted(given) != given or len(given) != count:
            raise Fault("partition")
        lengths = [given.count(row) for row in range(max(given, default=-1) + 1)]
    else:
        ends = {"RowSplits": given, "RowStarts": [*given, count], "RowLimits": [0, *given]}[kind]
        if ends and ends[0] != 0:
            raise Fault("partition")
        lengths = [b - a for a, b in itertools.pairwise(ends)]
    if any(n < 0 for n in lengths) or sum(lengths) != count:
        raise Fault("partition")
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

    def __init__(self, maps: list[Entries], single: bool) -> None:
        self.maps = maps
        self.single = single

    def steps(self, key: str, spec: dict[str, Any]) -> list[list[list[Any]]]:
        """The values of every step of every record, checked in this order."""
        return [read_steps(entries, key, spec) for entries in self.maps]


def read_steps(entries: Entries, key: str, spec: dict[str, Any]) -> list[list[Any]]:
    """The values of the steps of one record; none when the list is absent and may be."""
    dense = spec["type"] == "FixedLenSequence"
    size = int(np.prod(spec["shape"], dtype=int)) if dense else None
    lists = [merged(value) for name, value in entries if name == key.encode()]
    if not lists:
        if dense and not spec.get("allow_missing", False):
            raise Fault("missing", key)
        return []
    steps = []
    for number, wire_type, feature in fields(lists[-1]):
        if (number, wire_type) == (1, 2):
            steps.append(checked(read_feature(feature), key, spec["dtype"]) or [])
            if size not in (None, len(steps[-1])):
                raise Fault("count", key)
    return steps


def parse_lists(lists: Lists, spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values and, for batches, the lengths of dense lists."""
    parsers = {"FixedLenSequence": dense_lists, "VarLen": var_lists, "Ragged": ragged_lists}
    values, lengths = {}, {}
    for key in sorted(spec):
        kind, rows = spec[key]["type"], lists.steps(key, spec[key])
        values[key] = parsers[kind](lists, spec[key], rows)
        if kind == "FixedLenSequence":
            lengths[key] = array(np.array([len(row) for row in rows], np.int64))
    return values, lengths


def dense_lists(lists: Lists, spec: dict[str, Any], rows: list[list[list[Any]]]) -> Any:
    shape, dtype = list(spec["shape"]), spec["dtype"]
    size = int(np.prod(shape, dtype=int))
    flat = [list(itertools.chain(*row)) for row in rows]
    if lists.single:
        return array(to_array(flat[0], dtype, [len(rows[0]), *shape]))
    if size:
        return array(padded(flat, size, shape, dtype, None))
    longest = max((len(row) for row in rows), default=0)
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
