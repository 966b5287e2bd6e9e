"""Random messages and specs for hypothesis: what writers produce, and what may also arrive."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from cases import wire
from cases.table import DTYPES, case, fixed, ragged, sequence, var
from cases.wire import BYTES, FLOAT, INT64, KINDS

KEYS = ["a", "b", "é"]

VALUES = {
    INT64: st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 200),
    FLOAT: st.floats(width=32),
    BYTES: st.binary(max_size=5),
}


def values_of(kind: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(VALUES[kind], max_size=5)


@st.composite
def features(draw: st.DrawFn, dtype: str) -> bytes:
    """A Feature as writers make it, mostly of this dtype; now and then of another or of none."""
    kind = KINDS[draw(st.sampled_from([dtype] * 6 + list(DTYPES)))]
    if draw(st.integers(0, 9)) == 0:
        return b""
    return wire.feature(kind, draw(values_of(kind)))


@st.composite
def odd_features(draw: st.DrawFn, dtype: str) -> bytes:
    """A Feature of several lists in any encoding, with unknown fields between."""
    pieces = []
    for _ in range(draw(st.integers(0, 3))):
        kind = KINDS[draw(st.sampled_from([dtype] * 4 + list(DTYPES)))]
        blocks = draw(st.lists(st.tuples(st.booleans(), values_of(kind)), max_size=2))
        content = b"".join(
            wire.packed(kind, v) if packed and kind != BYTES else wire.unpacked(kind, v)
            for packed, v in blocks
        )
        pieces.append(wire.field(kind, draw(unknown()) + content))
    return b"".join([*pieces, draw(unknown())])


def unknown() -> st.SearchStrategy[bytes]:
    return st.sampled_from([b"", b"", b"", *wire.unknown_fields().values()])


@st.composite
def odd_entries(draw: st.DrawFn, dtypes: dict[str, str]) -> bytes:
    """A map entry with its fields in any order and number."""
    key = draw(st.sampled_from(KEYS))
    parts = [wire.field(1, key.encode())]
    for _ in range(draw(st.sampled_from([1, 1, 1, 0, 2]))):
        parts.append(wire.field(2, draw(odd_features(dtypes[key]))))
    parts.append(draw(unknown()))
    return wire.field(1, b"".join(draw(st.permutations(parts))))


@st.composite
def odd_examples(draw: st.DrawFn, dtypes: dict[str, str]) -> bytes:
    """An Example in any legal form; or, one time in three, damaged at one place."""
    parts = []
    for _ in range(draw(st.integers(0, 2))):
        entries = draw(st.lists(odd_entries(dtypes), max_size=4))
        parts.append(draw(unknown()) + wire.field(1, draw(unknown()) + b"".join(entries)))
    message = b"".join(parts)
    damage = draw(st.sampled_from(["none", "none", "none", "none", "cut", "flip"]))
    if damage == "cut" and message:
        return message[: draw(st.integers(0, len(message) - 1))]
    if damage == "flip" and message:
        at = draw(st.integers(0, len(message) - 1))
        flipped = message[at] ^ 1 << draw(st.integers(0, 7))
        return message[:at] + bytes([flipped]) + message[at + 1 :]
    return message


@st.composite
def examples(draw: st.DrawFn, dtypes: dict[str, str]) -> bytes:
    """An Example as writers make it, in any key order."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
    return wire.example({key.encode(): draw(features(dtypes[key])) for key in keys})


@st.composite
def specs(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(st.sampled_from([[], [1], [2], [2, 2]]))
    choices = [
        fixed(dtype, shape),
        fixed(dtype, shape, default=True),
        var(dtype),
        ragged(dtype, row_splits_dtype=draw(st.sampled_from(["int32", "int64"]))),
        sequence(dtype, shape, default=draw(st.booleans())),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def cases(draw: st.DrawFn, odd: bool) -> dict[str, Any]:
    """A case of the table without its answer: an Example call."""
    dtypes = {key: draw(st.sampled_from(DTYPES)) for key in KEYS}
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    spec = {key: draw(specs(dtypes[key])) for key in keys}
    message = (odd_examples if odd else examples)(dtypes)
    if draw(st.booleans()):
        return case("random", "single", [draw(message)], spec)
    return case("random", "batch", draw(st.lists(message, max_size=4)), spec)


@st.composite
def sequence_cases(draw: st.DrawFn) -> dict[str, Any]:
    """A SequenceExample call over messages as writers make them."""
    dtypes = {key: draw(st.sampled_from(DTYPES)) for key in KEYS}
    context = {key: draw(context_specs(dtypes[key])) for key in draw(some_keys())}
    lists = {key: draw(list_specs(dtypes[key])) for key in draw(some_keys(min_size=not context))}
    messages = draw(st.lists(sequence_examples(dtypes), min_size=1, max_size=4))
    if len(messages) == 1 and draw(st.booleans()):
        return case("random", "sequence single", messages, context, lists=lists)
    return case("random", "sequence batch", messages, context, lists=lists)


def some_keys(min_size: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(KEYS), min_size=min_size, unique=True)


@st.composite
def sequence_examples(draw: st.DrawFn, dtypes: dict[str, str]) -> bytes:
    lists = {
        key.encode(): draw(st.lists(features(dtypes[key]), max_size=3)) for key in draw(some_keys())
    }
    return draw(examples(dtypes)) + wire.feature_lists(lists)


def context_specs(dtype: str) -> st.SearchStrategy[dict[str, Any]]:
    defaulted = [fixed(dtype, shape, default=True) for shape in ([], [2])]
    return st.sampled_from([fixed(dtype, []), *defaulted, var(dtype), ragged(dtype)])


def list_specs(dtype: str) -> st.SearchStrategy[dict[str, Any]]:
    dense = [sequence(dtype, shape, allow=allow) for shape in ([], [2]) for allow in (False, True)]
    return st.sampled_from([*dense, var(dtype), ragged(dtype)])
