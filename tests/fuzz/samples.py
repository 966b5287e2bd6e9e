"""Messages of every interesting shape, and schemas for them, of which the seeds are made."""

from __future__ import annotations

import struct

from messages import entry, example, field, floats, ints, strings, unpacked_floats, unpacked_ints


def sequence(context: bytes, *lists: tuple[bytes, list[bytes]]) -> bytes:
    steps = [entry(key, b"".join(field(1, step) for step in features)) for key, features in lists]
    return field(1, context) + field(2, b"".join(steps))


def groups(depth: int) -> bytes:
    return b"\x7b" * depth + b"\x7c" * depth


USUAL = example(entry(b"a", ints(1, 2)), entry(b"b", floats(1.5)), entry(b"", strings(b"xy")))
ONE_INT = example(entry(b"a", ints(5)))

EXAMPLES = {
    "empty": b"",
    "usual": USUAL,
    "one-int": ONE_INT,
    "block-of-ten": example(entry(b"a", ints(1 << 56, 1)), entry(b"ab", ints(-1))),
    "blocks-of-ten": example(entry(b"a", ints(1, 1 << 56)), entry(b"ab", ints(*range(10)))),
    "lengths-around-128": example(
        *(entry(b"", strings(b"x" * length)) for length in range(108, 131)),
        *(entry(b"b", floats(*[0.5] * count)) for count in range(26, 33)),
        *(entry(b"a", ints(*[1] * count)) for count in range(108, 131)),
    ),
    # As usual but for a length of 128, whose second byte is missing.
    "length-cut": field(1, b"\x0a\x80" + entry(b"a", ints(*[1] * 119))[3:]),
    "wide": example(
        entry(b"a", ints(*range(-3, 60))),
        entry(b"b", floats(*range(40))),
        entry(b"", strings(b"x" * 120)),
        *(entry(b"ab", ints(i, 1 << 50)) for i in range(3)),
    ),
    "rounded-floats": example(entry(b"b", floats(*(1e10 ** (i % 3) / (i + 3) for i in range(40))))),
    "zeros": example(entry(b"b", floats(*[1, 1, 0.0, 1, 1, 1, 1, 1, 1, -0.0, 1] * 2))),
    "many-ints": example(entry(b"a", ints(*range(0, 3000, 7)))),
    "wide-ints": example(entry(b"a", ints(-1, 1 << 62, 1 << 35, 300, 0))),
    "unpacked": example(entry(b"a", unpacked_ints(1, 300)), entry(b"b", unpacked_floats(1, 2))),
    "no-values": example(entry(b"a", ints()), entry(b"b", floats()), entry(b"", strings())),
    "kindless": example(entry(b"a", b""), entry(b"b", b"")),
    "kindless-again": example(entry(b"a", ints(1)), entry(b"a", b"")),
    "key-twice": example(entry(b"a", ints(1, 2)), entry(b"a", ints(3))),
    "kinds-in-one": example(entry(b"a", ints(1) + floats(1) + strings(b"x"))),
    "merged": example(field(1, field(1, b"a") + field(2, ints(1)) + field(2, ints(2)))),
    "pieces": ONE_INT + example(entry(b"b", floats(2))),
    "value-first": example(field(1, field(2, ints(1)) + field(1, b"a"))),
    "no-key": example(field(1, field(2, strings(b"")))),
    "unknown": b"\x78\x01" + field(9, USUAL) + USUAL + groups(3),
    "deep-groups": groups(100) + ONE_INT,
    "too-deep": groups(101),
    "strange-keys": example(entry(b"\xff\xfe", ints(1)), entry("é€😀".encode(), floats(1))),
    "long-key": example(entry(b"a key of more than eight bytes", strings(b"x" * 300, b""))),
    "other-keys": example(*(entry(b"k%d" % i, ints(i)) for i in range(40))),
    "long-varints": example(field(1, b"\x0a\x81\x00a\x12\x88\x80\x00" + ints(1, 2, 3, 4))),
    "torn-floats": example(entry(b"b", field(2, field(1, b"12345")))),
    "torn-ints": example(entry(b"a", field(3, field(1, b"\x01\x80")))),
    "eleven-bytes": example(entry(b"a", field(3, field(1, b"\xff" * 10 + b"\x01")))),
    "field-zero": b"\x02\x00",
    "wire-type-7": b"\x0f",
    "end-group": b"\x0c",
    "leaves": b"\x0a\x7f",
    "wrong-types": b"\x08\x01" + example(b"\x0d1234", entry(b"a", b"\x19" + b"\1" * 8)),
}

STEPS = [ints(1), ints(2, 3), b"", ints()]
SEQUENCES = {
    "empty": b"",
    "usual": sequence(entry(b"a", ints(1)), (b"a", STEPS), (b"b", [floats(1), floats(2)])),
    "one-value-steps": sequence(b"", (b"a", [ints(1)] * 9), (b"", [strings(b"x")] * 3)),
    "no-steps": sequence(b"", (b"a", []), (b"b", [])),
    "no-lists": sequence(entry(b"a", ints(1))),
    "misfit-then-again": sequence(b"", (b"a", [ints(1), floats(1)]), (b"a", [ints(1)])),
    "misfit": sequence(b"", (b"a", [ints(1), floats(1), ints(1)])),
    "key-twice": sequence(b"", (b"a", STEPS), (b"a", [])),
    "merged": field(2, field(1, field(1, b"a") + field(2, field(1, ints(1))) * 2)),
    "pieces": sequence(entry(b"b", floats(1)), (b"a", STEPS)) * 2,
    "kindless-context": sequence(entry(b"a", ints(1)) + entry(b"a", b"")),
    "lists-first": field(2, entry(b"a", field(1, ints(1)))) + field(1, entry(b"a", ints(1))),
    "unknown": field(2, b"\x78\x01" + entry(b"a", groups(2) + field(1, ints(1)) + b"\x78\1")),
    "torn-step": field(2, entry(b"a", field(1, ints(1)) + b"\x0a\x05")),
    "torn-list": field(2, entry(b"a", b"\x80")),
    "torn-context": field(1, b"\x0a"),
}

# What the first bytes of an input choose: see spec_of in table.h.
FLOAT, INT64, BYTES, VARIABLE, DEFAULT, REPEATED = 2, 3, 1, 4, 32, 64
NONE, TWO, FIVE = 1 << 3, 2 << 3, 3 << 3
SPECS = {
    "variable": [INT64 | VARIABLE, FLOAT | VARIABLE, BYTES | VARIABLE, INT64 | VARIABLE],
    "dense": [INT64 | TWO, FLOAT, BYTES],
    "defaults": [k | d | DEFAULT for k, d in [(INT64, 0), (FLOAT, TWO), (BYTES, FIVE)]] * 2,
    "all": [BYTES | VARIABLE, INT64 | DEFAULT, FLOAT | NONE] + [INT64 | VARIABLE] * 5,
    "repeated": [INT64 | REPEATED | TWO, BYTES | REPEATED, FLOAT | REPEATED | TWO],
}


def messages(*all_of_them: bytes) -> bytes:
    """A count and the lengths of all but the last, then the messages, as messages.h reads them."""
    lengths = b"".join(struct.pack("<H", len(m)) for m in all_of_them[:-1])
    return bytes([len(all_of_them) - 1]) + lengths + b"".join(all_of_them)


def specs(features: list[int]) -> bytes:
    return bytes([len(features), *features])
