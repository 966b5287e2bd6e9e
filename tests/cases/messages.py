"""Every way to write a Feature under the key "a" of an Example: usual, rare and broken."""

from __future__ import annotations

from collections.abc import Iterator

from cases import wire
from cases.wire import BYTES, FLOAT, INT64, KINDS, entry, feature, field, packed, tag, unpacked

Form = tuple[str, bytes]  # a name that says what is special, and the serialized Example

VALUES = {
    INT64: [5, -1, 2**40, 0],
    FLOAT: [0.5, -2.0, float("inf"), 0.0],
    BYTES: [b"x", b"", b"yy", b"\x00\xff"],
}
OTHER = {INT64: FLOAT, FLOAT: BYTES, BYTES: INT64}
HUGE = tag(1, 2) + wire.varint(100)  # declares 100 bytes


def one(value: bytes) -> bytes:
    """An Example whose feature "a" has these bytes."""
    return wire.example({b"a": value})


def core(dtype: str) -> Iterator[Form]:
    """What writers produce, and what is absent, empty or of another kind."""
    kind = KINDS[dtype]
    values = VALUES[kind]
    for n in range(5):
        yield f"{n} values", one(feature(kind, values[:n]))
    yield "no bytes", b""
    yield "no features", field(1, b"")
    yield "another key", wire.example({b"b": feature(kind, values[:2])})
    yield "no kind", one(b"")
    yield (
        "among others",
        wire.example(
            {
                b"": feature(INT64, [1]),
                b"\xff\xfe": feature(BYTES, [b"\xff"]),
                b"a": feature(kind, values[:2]),
                b"aa": feature(OTHER[kind], VALUES[OTHER[kind]]),
                b"\x00": b"",
            }
        ),
    )
    for other in set(VALUES) - {kind}:
        yield f"kind {other}", one(feature(other, VALUES[other][:2]))
        yield f"kind {other} without values", one(field(other, b""))


def encodings(dtype: str) -> Iterator[Form]:
    """The same values in other encodings that the wire format allows."""
    kind = KINDS[dtype]
    x, y, z = VALUES[kind][:3]
    other = feature(OTHER[kind], VALUES[OTHER[kind]][:1])
    if kind != BYTES:
        for n in range(1, 5):
            yield f"{n} unpacked", one(field(kind, unpacked(kind, VALUES[kind][:n])))
        yield "two blocks", one(field(kind, packed(kind, [x]) + packed(kind, [y])))
        yield "three blocks", one(field(kind, b"".join(packed(kind, [v]) for v in (x, y, z))))
        yield "packed then unpacked", one(field(kind, packed(kind, [x]) + unpacked(kind, [y])))
        yield "unpacked then packed", one(field(kind, unpacked(kind, [x]) + packed(kind, [y])))
        yield "an empty block", one(field(kind, field(1, b"")))
        yield "an empty block first", one(field(kind, field(1, b"") + packed(kind, [x, y])))
    first, second = feature(kind, [x]), feature(kind, [y])
    yield "two lists", one(first + second)
    yield "empty list then list", one(field(kind, b"") + feature(kind, [x, y]))
    yield "list then empty list", one(feature(kind, [x, y]) + field(kind, b""))
    yield "another kind then this", one(other + feature(kind, [x, y]))
    yield "this kind then another", one(feature(kind, [x, y]) + other)
    yield "this, another, this", one(feature(kind, [x, y]) + other + feature(kind, [z, y]))


def duplicates(dtype: str) -> Iterator[Form]:
    """The key "a" more than once, within one map and over concatenated Examples."""
    kind = KINDS[dtype]
    x, y, z = VALUES[kind][:3]
    good, better = feature(kind, [x, y]), feature(kind, [z, y])
    other = feature(OTHER[kind], VALUES[OTHER[kind]][:2])
    pairs = {
        "both good": (good, better),
        "last without kind": (good, b""),
        "first without kind": (b"", good),
        "last empty": (good, field(kind, b"")),
        "first empty": (field(kind, b""), good),
        "last of another kind": (good, other),
        "first of another kind": (other, good),
    }
    for name, (first, last) in pairs.items():
        yield f"twice, {name}", field(1, entry(b"a", first) + entry(b"a", last))
        yield f"concatenated, {name}", one(first) + one(last)
    damaged = field(kind, tag(1, 3))
    yield "twice, first damaged", field(1, entry(b"a", damaged) + entry(b"a", good))
    yield "three times", field(1, entry(b"a", good) + entry(b"a", b"") + entry(b"a", better))
    yield "concatenated, other key", one(good) + wire.example({b"b": better})
    yield "concatenated, then nothing", one(good) + field(1, b"")


def map_entries(dtype: str) -> Iterator[Form]:
    """Map entries with their fields in odd order, missing or repeated."""
    kind = KINDS[dtype]
    values = VALUES[kind]
    good = feature(kind, values[:2])
    key, value = field(1, b"a"), field(2, good)
    good_entry = entry(b"a", good)
    yield "value before key", field(1, field(1, value + key))
    yield "only a key", field(1, field(1, key))
    yield "only a value", field(1, field(1, value) + good_entry)
    yield "an empty entry", field(1, field(1, b"") + good_entry)
    yield "key twice", field(1, field(1, field(1, b"b") + key + value))
    yield (
        "value twice",
        field(
            1,
            field(
                1, key + field(2, feature(kind, values[:1])) + field(2, feature(kind, values[1:2]))
            ),
        ),
    )


def levels(kind: int, list_content: bytes) -> list[tuple[str, int, bytes]]:
    """(name, field number, content) of the messages around a list, innermost first."""
    content = field(kind, list_content)
    chain = [("list", kind, list_content), ("feature", 2, content)]
    content = field(1, b"a") + field(2, content)
    chain.append(("entry", 1, content))
    content = field(1, content)
    chain.append(("features", 1, content))
    return chain


def rebuild(kind: int, level: str, content: bytes) -> bytes:
    """The Example in which the message at a level has this content and all lengths agree."""
    if level == "list":
        level, content = "feature", field(kind, content)
    if level == "feature":
        level, content = "entry", field(1, b"a") + field(2, content)
    if level == "entry":
        level, content = "features", field(1, content)
    return content if level == "example" else field(1, content)


def contents(kind: int) -> dict[str, bytes]:
    """Content of the message at every level of an Example with two values."""
    found = {name: c for name, _, c in levels(kind, wire.values_list(kind, VALUES[kind][:2]))}
    return found | {"example": field(1, found["features"])}


def unknown(dtype: str) -> Iterator[Form]:
    """Unknown fields of every wire type, before and after the known, at every level."""
    kind = KINDS[dtype]
    for level, content in contents(kind).items():
        for name, extra in wire.unknown_fields().items():
            yield f"unknown {name} first in {level}", rebuild(kind, level, extra + content)
            yield f"unknown {name} last in {level}", rebuild(kind, level, content + extra)
    content = contents(kind)["entry"]
    between = content.replace(b"\n\x01a", b"\n\x01a" + wire.unknown_fields()["varint"])
    yield "unknown varint between key and value", rebuild(kind, "entry", between)


def overlong(dtype: str) -> Iterator[Form]:
    """Tags and lengths with more bytes than they need."""
    kind = KINDS[dtype]
    list_content = wire.values_list(kind, VALUES[kind][:2])
    outer = {"list": "feature", "feature": "entry", "entry": "features", "features": "example"}
    for name, number, content in levels(kind, list_content):
        before = field(1, b"a") if name == "feature" else b""
        for size in (2, 5, 10):
            odd_tag = before + field(number, content, tag_size=size)
            odd_len = before + field(number, content, len_size=size)
            yield f"{size} byte tag of {name}", rebuild(kind, outer[name], odd_tag)
            yield f"{size} byte length of {name}", rebuild(kind, outer[name], odd_len)
        too_long = before + tag(number, 2, 11) + wire.varint(len(content)) + content
        yield f"11 byte tag of {name}", rebuild(kind, outer[name], too_long)
    value = VALUES[kind][0]
    if kind == BYTES:
        odd_value = field(1, value, tag_size=2)
    else:
        odd_value = tag(1, 2, 2) + packed(kind, [value])[1:]
    yield "2 byte tag of value", rebuild(kind, "list", odd_value)


def broken(dtype: str) -> Iterator[Form]:
    """What is not a message: wrong wire types, text, numbers that do not fit."""
    kind = KINDS[dtype]
    good = contents(kind)
    for level in good:
        yield f"tag 0 last in {level}", rebuild(kind, level, good[level] + b"\x00")
        yield f"stray end of group last in {level}", rebuild(kind, level, good[level] + tag(9, 4))
        yield f"open group last in {level}", rebuild(kind, level, good[level] + tag(9, 3))
        yield f"wire type 7 last in {level}", rebuild(kind, level, good[level] + tag(9, 7))
        yield f"overrun last in {level}", rebuild(kind, level, good[level] + HUGE)
        yield (
            f"overrun of unknown first in {level}",
            rebuild(kind, level, field(9, b"")[:1] + wire.varint(200) + good[level]),
        )
        yield f"half a tag last in {level}", rebuild(kind, level, good[level] + b"\xff")
    for level in ("list", "feature", "features", "example"):
        yield f"known field as varint in {level}", rebuild(kind, level, tag(1, 0) + wire.varint(3))
        yield f"known field as fixed64 in {level}", rebuild(kind, level, tag(1, 1) + bytes(8))
        yield f"known field as group in {level}", rebuild(kind, level, tag(1, 3) + tag(1, 4))
    yield "text", b"this is not an Example\n"
    yield "one byte", b"\n"
    yield (
        "garbage in a key not asked for",
        field(1, entry(b"b", b"\xff\xff") + entry(b"a", feature(kind, VALUES[kind][:2]))),
    )
    if kind == INT64:
        yield "11 byte varint", one(field(kind, field(1, b"\xff" * 10 + b"\x01")))
        yield "uint64 max", one(field(kind, packed(kind, [2**64 - 1])))
        yield "10 byte varint of 70 bits", one(field(kind, field(1, b"\xff" * 9 + b"\x7f")))
        yield "overlong varint", one(field(kind, field(1, wire.varint(5, 10))))
        yield "cut varint", one(field(kind, field(1, b"\x05\x80")))
        yield "extremes", one(feature(kind, [2**63 - 1, -(2**63)]))
    if kind == FLOAT:
        for n in (1, 2, 3, 5, 7):
            yield (
                f"float block of {n} bytes",
                one(field(kind, field(1, b"\x01\x02\x80\x3f\0\0\0"[:n]))),
            )
        nans = bytes.fromhex("0100807f0000c0ff")
        yield "NaN payloads", one(field(kind, field(1, nans)))


def truncated(dtype: str) -> Iterator[Form]:
    """Every prefix of an Example, and every prefix of each inner message with lengths mended."""
    kind = KINDS[dtype]
    whole = one(feature(kind, VALUES[kind][:2]))
    for n in range(len(whole)):
        yield f"cut at {n}", whole[:n]
    for level, content in contents(kind).items():
        for n in range(len(content)):
            yield f"{level} cut at {n}", rebuild(kind, level, content[:n])
