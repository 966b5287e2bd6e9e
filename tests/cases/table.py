"""The cases: which message is parsed with which spec by which function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cases import messages, wire
from cases.messages import OTHER, VALUES
from cases.wire import BYTES, FLOAT, INT64, KINDS, feature

Spec = dict[str, dict[str, Any]]
Case = dict[str, Any]

DTYPES = ("int64", "float32", "string")
DEFAULT = {"int64": 7, "float32": 1.5, "string": b"dd".hex()}


def fixed(dtype: str, shape: Any, default: bool = False) -> dict[str, Any]:
    fields = {"type": "FixedLen", "dtype": dtype, "shape": shape}
    if default:
        size = 1
        for n in shape:
            size *= n
        fields["default_value"] = [DEFAULT[dtype]] * size if shape else DEFAULT[dtype]
    return fields


def sequence(dtype: str, shape: Any, default: bool = False, allow: bool = True) -> dict[str, Any]:
    fields = {"type": "FixedLenSequence", "dtype": dtype, "shape": shape, "allow_missing": allow}
    return fields | ({"default_value": DEFAULT[dtype]} if default else {})


def var(dtype: str) -> dict[str, Any]:
    return {"type": "VarLen", "dtype": dtype}


def ragged(dtype: str, *partitions: list[Any], **fields: Any) -> dict[str, Any]:
    spec = {"type": "Ragged", "dtype": dtype, **fields}
    return spec | ({"partitions": list(partitions)} if partitions else {})


def sparse(dtype: str, index_key: Any, size: Any, **fields: Any) -> dict[str, Any]:
    base = {"type": "Sparse", "index_key": index_key, "value_key": "v", "dtype": dtype}
    return base | {"size": size, **fields}


def all_specs(dtype: str) -> dict[str, dict[str, Any]]:
    """Every kind of spec of one key, over shapes and defaults."""
    specs = {}
    for shape in ([], [1], [2], [3], [2, 2], [0], [2, 0]):
        specs[f"fixed{shape}"] = fixed(dtype, shape)
        specs[f"fixed{shape} default"] = fixed(dtype, shape, default=True)
    specs["var"] = var(dtype)
    specs["ragged"] = ragged(dtype)
    specs["ragged int64"] = ragged(dtype, row_splits_dtype="int64")
    for shape in ([], [1], [2], [1, 2]):
        specs[f"sequence{shape}"] = sequence(dtype, shape)
        specs[f"sequence{shape} default"] = sequence(dtype, shape, default=True)
    return specs


def some_specs(dtype: str) -> dict[str, dict[str, Any]]:
    specs = all_specs(dtype)
    return {name: specs[name] for name in ("fixed[2]", "fixed[] default", "var", "ragged")}


def case(group: str, call: str, serialized: Iterable[bytes], spec: Spec, **more: Any) -> Case:
    return {
        "group": group,
        "call": call,
        "serialized": [message.hex() for message in serialized],
        "spec": spec,
        **more,
    }


def single_key_cases() -> Iterator[Case]:
    """One message, one feature: every form with the specs that it can matter to."""
    forms_of = {
        messages.core: all_specs,
        messages.encodings: all_specs,
        messages.duplicates: some_specs,
        messages.map_entries: some_specs,
        messages.unknown: some_specs,
        messages.overlong: some_specs,
        messages.broken: some_specs,
        messages.truncated: some_specs,
    }
    for dtype in DTYPES:
        for forms, specs in forms_of.items():
            for form, message in forms(dtype):
                for name, spec in specs(dtype).items():
                    if forms is messages.truncated and name in ("fixed[] default", "ragged"):
                        continue
                    group = f"{forms.__name__}: {dtype} {form}, {name}"
                    yield case(group, "single", [message], {"a": spec})
                    yield case(group, "batch", [message], {"a": spec})


def batch_cases() -> Iterator[Case]:
    """Several messages of different lengths, the special one in the middle."""
    for dtype in DTYPES:
        kind = KINDS[dtype]
        good = messages.one(feature(kind, VALUES[kind][1:3]))
        for forms in (messages.core, messages.encodings, messages.duplicates):
            for form, message in forms(dtype):
                for name, spec in all_specs(dtype).items():
                    if "default" in name and forms is not messages.core:
                        continue
                    group = f"batch: {dtype} {form}, {name}"
                    yield case(group, "batch", [good, message, good], {"a": spec})
        for name, spec in all_specs(dtype).items():
            yield case(f"batch: {dtype} empty, {name}", "batch", [], {"a": spec})
            lengths = [messages.one(feature(kind, VALUES[kind][:n])) for n in (2, 0, 4, 2, 1)]
            yield case(f"batch: {dtype} lengths, {name}", "batch", lengths, {"a": spec})
            nothing = [b"", messages.one(b""), b""]
            yield case(f"batch: {dtype} nothing, {name}", "batch", nothing, {"a": spec})


def several_keys_cases() -> Iterator[Case]:
    """Specs of several keys, keys in another order than the messages', names of examples."""
    spec = {
        "z": fixed("int64", []),
        "a": fixed("float32", [2]),
        "": var("string"),
        "ключ": sequence("int64", []),
        "r": ragged("float32"),
        "d": fixed("string", [2], default=True),
    }
    full = {
        b"z": (INT64, [3]),
        b"a": (FLOAT, [1.0, 2.0]),
        b"": (BYTES, [b"e", b"f"]),
        "ключ".encode(): (INT64, [1, 2, 3]),
        b"r": (FLOAT, [0.25]),
        b"d": (BYTES, [b"g", b"h"]),
        b"not asked for": (INT64, list(range(100))),
    }

    def message(values: dict[bytes, tuple[int, list[Any]]]) -> bytes:
        return wire.example({key: feature(*value) for key, value in values.items()})

    least = {key: full[key] for key in (b"a", b"z")}
    batch = [message(full), message(dict(reversed(full.items()))), message(least)]
    yield case("several keys", "batch", batch, spec)
    for serialized in batch:
        yield case("several keys", "single", [serialized], spec)
    for key, (kind, _) in full.items():
        without = message({k: v for k, v in full.items() if k != key})
        other = OTHER[kind]
        wrong = message(full | {key: (other, VALUES[other][:2])})
        for serialized in (without, wrong):
            yield case("several keys, one amiss", "single", [serialized], spec)
            pair = [batch[0], serialized]
            yield case("several keys, one amiss", "batch", pair, spec)
            yield case("with names", "batch", pair, spec, example_names=["first", "second"])


PARTITIONS = {
    "RowSplits": [[0, 2, 3], [0, 3], [0, 0, 3, 3], [], [0], [0, 3, 2], [1, 3], [0, 2]],
    "RowLengths": [[2, 1], [3], [0, 3, 0], [], [2], [4], [-1, 4]],
    "RowStarts": [[0, 2], [0], [0, 0, 3], [], [1], [2, 0]],
    "RowLimits": [[2, 3], [3], [0, 3, 3], [], [2], [3, 2]],
    "ValueRowIds": [[0, 0, 1], [0, 2, 2], [3, 3, 3], [], [0], [1, 0, 0]],
}


def ragged_cases() -> Iterator[Case]:
    """RaggedFeature with partitions, right and wrong."""
    for dtype in DTYPES:
        kind = KINDS[dtype]
        values = feature(kind, VALUES[kind][:3])
        for partition, rows in PARTITIONS.items():
            for row in rows if dtype == "int64" else rows[:3]:
                spec = {"r": ragged(dtype, [partition, "p"], value_key="v", validate=True)}
                message = wire.example({b"v": values, b"p": feature(INT64, row)})
                bare = wire.example({b"v": values})
                group = f"ragged: {dtype} {partition} {row}"
                yield case(group, "single", [message], spec)
                yield case(group, "batch", [message], spec)
                yield case(group + " and without", "batch", [message, bare], spec)
    yield from ragged_nested_cases()


def ragged_nested_cases() -> Iterator[Case]:
    message = wire.example(
        {
            b"v": feature(INT64, [1, 2, 3, 4, 5, 6]),
            b"o": feature(INT64, [0, 2, 3]),
            b"i": feature(INT64, [2, 1, 3]),
            b"s": feature(INT64, [0, 2, 3, 6]),
        }
    )
    stacks = {
        "splits of lengths": (["RowSplits", "o"], ["RowLengths", "i"]),
        "splits of splits": (["RowSplits", "o"], ["RowSplits", "s"]),
        "uniform 2": (["UniformRowLength", 2],),
        "uniform 4": (["UniformRowLength", 4],),
        "uniform 3 of uniform 2": (["UniformRowLength", 3], ["UniformRowLength", 2]),
        "lengths of uniform 2": (["RowLengths", "i"], ["UniformRowLength", 1]),
        "uniform of lengths": (["UniformRowLength", 3], ["RowLengths", "i"]),
        "ids of uniform": (["ValueRowIds", "o"], ["UniformRowLength", 2]),
    }
    for name, partitions in stacks.items():
        for splits in ("int32", "int64"):
            spec = {"r": ragged("int64", *partitions, value_key="v", row_splits_dtype=splits)}
            group = f"ragged nested: {name} {splits}"
            yield case(group, "single", [message], spec)
            yield case(group, "batch", [message, message], spec)
            yield case(group + " and nothing", "batch", [message, b""], spec)
    shared = {
        "x": ragged("int64", ["RowSplits", "s"], value_key="v"),
        "y": ragged("int64", ["RowLengths", "i"], value_key="v"),
        "v": ragged("int64"),
    }
    yield case("ragged: a key of several", "single", [message], shared)
    yield case("ragged: a key of several", "batch", [message, message], shared)


def sparse_cases() -> Iterator[Case]:
    """SparseFeature: order, ranges, lengths that differ, several indices."""
    indices = [[0, 2], [3, 1], [], [0], [1, 1], [0, 1, 2], [5, 0], [-1, 0]]
    for dtype in DTYPES:
        kind = KINDS[dtype]
        for index in indices if dtype == "int64" else indices[:4]:
            for values in (VALUES[kind][:2], []):
                message = wire.example({b"v": feature(kind, values), b"i": feature(INT64, index)})
                for is_sorted in (False, True):
                    spec = {"s": sparse(dtype, "i", 4, already_sorted=is_sorted)}
                    group = f"sparse: {dtype} {index} of {len(values)}, sorted {is_sorted}"
                    yield case(group, "single", [message], spec)
                    yield case(group, "batch", [message, message], spec)
                    yield case(group + " and nothing", "batch", [b"", message], spec)
    message = wire.example(
        {
            b"v": feature(FLOAT, [1.0, 2.0, 3.0]),
            b"i": feature(INT64, [1, 0, 1]),
            b"j": feature(INT64, [2, 1, 0]),
        }
    )
    spec = {"s": sparse("float32", ["i", "j"], [2, 3]), "i": var("int64"), "v": var("float32")}
    yield case("sparse: two indices", "single", [message], spec)
    yield case("sparse: two indices", "batch", [message, b"", message], spec)


def spec_cases() -> Iterator[Case]:
    """Specs that are wrong in themselves, or odd and right."""
    message = messages.one(feature(INT64, [1, 2]))
    wrong: dict[str, Spec] = {
        "empty": {},
        "shape None": {"a": {"type": "FixedLen", "dtype": "int64", "shape": None}},
        "shape [None]": {"a": {"type": "FixedLen", "dtype": "int64", "shape": [None]}},
        "shape [2, None]": {"a": {"type": "FixedLen", "dtype": "int64", "shape": [2, None]}},
        "shape 2": {"a": {"type": "FixedLen", "dtype": "int64", "shape": 2}},
        "default of one for two": {"a": fixed("int64", [2]) | {"default_value": 1}},
        "default of two for two": {"a": fixed("int64", [2]) | {"default_value": [1, 2]}},
        "default list for scalar": {"a": fixed("int64", []) | {"default_value": [7]}},
        "default flat for [2, 2]": {"a": fixed("int64", [2, 2]) | {"default_value": [1, 2, 3, 4]}},
        "default 1.5 for int64": {"a": fixed("int64", []) | {"default_value": 1.5}},
        "default int for float": {"a": fixed("float32", []) | {"default_value": 3}},
        "sequence without allow_missing": {"a": sequence("int64", [], allow=False)},
        "sequence default of two": {"a": sequence("int64", [], True) | {"default_value": [1, 2]}},
        "int32": {"a": {"type": "FixedLen", "dtype": "int32", "shape": [2]}},
        "float64": {"a": {"type": "FixedLen", "dtype": "float64", "shape": [2]}},
        "bool": {"a": {"type": "VarLen", "dtype": "bool"}},
        "sparse and dense": {
            "a": fixed("int64", [2]),
            "s": sparse("int64", "a", 4) | {"value_key": "a"},
        },
        "ragged and dense": {"a": fixed("int64", [2]), "r": ragged("int64", value_key="a")},
        "ragged and sparse": {"a": var("int64"), "r": ragged("int64", value_key="a")},
        "ragged dtypes": {
            "r": ragged("int64", value_key="a"),
            "q": ragged("float32", value_key="a"),
        },
    }
    for name, spec in wrong.items():
        for serialized in ([message], [b""]):
            yield case(f"spec: {name}", "single", serialized, spec)
            yield case(f"spec: {name}", "batch", serialized, spec)
        yield case(f"spec: {name}", "batch", [], spec)


def example_cases() -> Iterator[Case]:
    yield from single_key_cases()
    yield from batch_cases()
    yield from several_keys_cases()
    yield from ragged_cases()
    yield from sparse_cases()
    yield from spec_cases()
