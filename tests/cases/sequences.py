"""Cases of SequenceExamples: context, feature lists, both."""

from __future__ import annotations

from collections.abc import Iterator

from cases import messages, wire
from cases.messages import OTHER, VALUES
from cases.table import DTYPES, Case, Spec, case, fixed, ragged, sequence, var
from cases.wire import INT64, KINDS, entry, feature, field, packed, unpacked

LISTS = 2  # field number of feature_lists


def list_specs(dtype: str) -> dict[str, dict]:
    specs = {"var": var(dtype), "ragged": ragged(dtype)}
    for shape in ([], [1], [2], [2, 2], [0]):
        specs[f"sequence{shape}"] = sequence(dtype, shape, allow=False)
        specs[f"sequence{shape} missing ok"] = sequence(dtype, shape)
    return specs


def list_forms(dtype: str) -> Iterator[tuple[str, bytes]]:
    """A feature list "w" in every usual, rare and broken form."""
    kind = KINDS[dtype]
    x, y, z = VALUES[kind][:3]
    steps = [feature(kind, [v]) for v in (x, y, z)]

    def lists(*given: bytes) -> bytes:
        return wire.feature_lists({b"w": list(given)})

    yield "three steps", lists(*steps)
    yield "one step", lists(steps[0])
    yield "steps of two", lists(feature(kind, [x, y]), feature(kind, [z, x]))
    yield "steps of four", lists(feature(kind, VALUES[kind]))
    yield "steps of different size", lists(*(feature(kind, VALUES[kind][:n]) for n in (2, 0, 1)))
    yield "no steps", lists()
    yield "absent", b""
    yield "empty lists", field(LISTS, b"")
    yield "a step without kind", lists(steps[0], b"", steps[1])
    yield "a step without values", lists(steps[0], field(kind, b""))
    other = OTHER[kind]
    yield "another kind", lists(feature(other, VALUES[other][:1]))
    yield "last step of another kind", lists(steps[0], feature(other, VALUES[other][:1]))
    yield "empty of another kind", lists(field(other, b""))
    yield "twice", field(LISTS, entry(b"w", field(1, steps[0])) + entry(b"w", field(1, steps[1])))
    yield "concatenated", lists(steps[0]) + lists(steps[1], steps[2])
    yield "two lists in a step", lists(steps[0] + steps[1])
    yield "value before key", field(LISTS, field(1, field(2, field(1, steps[0])) + field(1, b"w")))
    yield "only a key", field(LISTS, field(1, field(1, b"w")))
    if kind != wire.BYTES:
        yield "unpacked", lists(*(field(kind, unpacked(kind, [v])) for v in (x, y)))
        yield "two blocks", lists(field(kind, packed(kind, [x]) + packed(kind, [y])))
        mixed = packed(kind, [x]) + unpacked(kind, [y])
        yield "packed then unpacked", lists(field(kind, mixed))
    step_list = field(1, steps[0])
    for name, extra in wire.unknown_fields().items():
        yield f"unknown {name} in SequenceExample", extra + lists(*steps)
        yield f"unknown {name} in FeatureLists", field(LISTS, extra + entry(b"w", step_list))
        yield (
            f"unknown {name} in entry",
            field(LISTS, field(1, field(1, b"w") + extra + field(2, step_list))),
        )
        yield f"unknown {name} in FeatureList", field(LISTS, entry(b"w", extra + step_list))
        yield f"unknown {name} in Feature", lists(extra + steps[0])
    whole = lists(*steps)
    for n in range(len(whole)):
        yield f"cut at {n}", whole[:n]
    body = wire.feature_lists({b"w": steps})[2:]
    for n in range(len(body)):
        yield f"feature lists cut at {n}", field(LISTS, body[:n])


def context_forms(dtype: str) -> Iterator[tuple[str, bytes]]:
    yield from messages.core(dtype)
    yield from messages.encodings(dtype)
    yield from messages.duplicates(dtype)
    yield from messages.map_entries(dtype)


def context_specs(dtype: str) -> dict[str, dict]:
    return {
        "fixed[]": fixed(dtype, []),
        "fixed[2]": fixed(dtype, [2]),
        "fixed[2] default": fixed(dtype, [2], default=True),
        "var": var(dtype),
        "ragged": ragged(dtype),
    }


def both(group: str, serialized: list[bytes], context: Spec, lists: Spec) -> Iterator[Case]:
    """A batch, and when it is one message also the single call."""
    more = {"lists": lists}
    if len(serialized) == 1:
        yield case(group, "sequence single", serialized, context, **more)
    yield case(group, "sequence batch", serialized, context, **more)


def sequence_cases() -> Iterator[Case]:
    for dtype in DTYPES:
        kind = KINDS[dtype]
        good = wire.feature_lists({b"w": [feature(kind, VALUES[kind][:1])] * 2})
        for form, message in list_forms(dtype):
            for name, spec in list_specs(dtype).items():
                if "cut at" in form and name not in ("var", "sequence[]"):
                    continue
                group = f"lists: {dtype} {form}, {name}"
                yield from both(group, [message], {}, {"w": spec})
                if "cut" not in form and "unknown" not in form and "[0]" not in name:
                    yield from both(group, [good, message, good], {}, {"w": spec})
        good = messages.one(feature(kind, VALUES[kind][:2]))
        for form, message in context_forms(dtype):
            for name, spec in context_specs(dtype).items():
                group = f"context: {dtype} {form}, {name}"
                yield from both(group, [message], {"a": spec}, {})
                yield from both(group, [good, message], {"a": spec}, {})
    yield from together_cases()
    yield from sequence_spec_cases()


def together_cases() -> Iterator[Case]:
    """Context and lists of one message, several keys, batches of different lengths."""
    context = {"length": fixed("int64", []), "name": var("string")}
    lists = {
        "words": sequence("int64", []),
        "frames": sequence("float32", [2]),
        "tags": var("string"),
        "rag": ragged("int64"),
    }

    def message(n: int) -> bytes:
        head = {b"length": feature(INT64, [n]), b"name": feature(wire.BYTES, [b"n"] * (n % 2))}
        body = {
            b"words": [feature(INT64, [i - 1]) for i in range(n)],
            b"frames": [feature(wire.FLOAT, [i, i / 2]) for i in range(n // 2)],
            b"tags": [feature(wire.BYTES, [b"t"] * i) for i in range(n % 3)],
            b"rag": [feature(INT64, list(range(i))) for i in range(n)],
        }
        return wire.example(head) + wire.feature_lists(body)

    for n in range(5):
        yield from both("together", [message(n)], context, lists)
        swapped = wire.feature_lists({b"words": [feature(INT64, [n])]}) + message(0)
        yield from both("together, lists first", [swapped], context, lists)
    yield from both("together", [message(n) for n in (3, 0, 4, 1)], context, lists)
    yield from both("together", [], context, lists)
    yield from both(
        "an Example as SequenceExample",
        [messages.one(feature(INT64, [4]))],
        {"a": fixed("int64", [])},
        {},
    )


def sequence_spec_cases() -> Iterator[Case]:
    message = messages.one(feature(INT64, [4]))
    specs: dict[str, tuple[Spec, Spec]] = {
        "both empty": ({}, {}),
        "FixedLen in lists": ({}, {"w": fixed("int64", [])}),
        "FixedLenSequence in context": ({"a": sequence("int64", [])}, {}),
        "default in lists": ({}, {"w": sequence("int64", [], default=True)}),
        "shape [None]": ({}, {"w": sequence("int64", [None])}),
        "int32": ({}, {"w": sequence("int32", [])}),
    }
    for name, (context, lists) in specs.items():
        yield from both(f"sequence spec: {name}", [message], context, lists)
