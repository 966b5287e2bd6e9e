"""Writes the seeds of the fuzz targets: one small input per interesting shape.

Run from anywhere: ``python tests/fuzz/make_corpus.py``. Files that were found by fuzzing, whose
names begin with ``found-``, are kept; all others are written anew.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from messages import entry, example, ints, strings
from samples import (
    BYTES,
    EXAMPLES,
    FLOAT,
    INT64,
    NONE,
    ONE_INT,
    SEQUENCES,
    SPECS,
    USUAL,
    VARIABLE,
    messages,
    sequence,
    specs,
)

CORPUS = Path(__file__).parent / "corpus"
Seeds = Iterator[tuple[str, bytes]]


def parse_seeds() -> Seeds:
    for name, message in EXAMPLES.items():
        yield f"variable-{name}", b"\0\x8f" + specs(SPECS["variable"]) + messages(message)
    for name, features in SPECS.items():
        batch = specs(features) + messages(USUAL, ONE_INT, USUAL, EXAMPLES["pieces"])
        for flags in range(4):
            yield f"{name}-flags-{flags}", bytes([flags, 5 * flags | flags << 6]) + batch
        yield f"{name}-no-memory", bytes([4 * 9, 8]) + batch
    blocks = messages(EXAMPLES["block-of-ten"], EXAMPLES["blocks-of-ten"], EXAMPLES["one-int"])
    for kernel in range(3):
        how = bytes([0, 15 | kernel << 6])
        yield f"blocks-kernel-{kernel}", how + specs([INT64, NONE, NONE, INT64]) + blocks


def sequence_seeds() -> Seeds:
    both = specs(SPECS["variable"]) + specs(SPECS["variable"])
    for name, message in SEQUENCES.items():
        yield f"variable-{name}", b"\0\x0f" + both + messages(message)
    usual = messages(SEQUENCES["usual"], SEQUENCES["one-value-steps"], SEQUENCES["usual"])
    for name, features in SPECS.items():
        yield name, b"\0\x0f" + specs(features) + specs(features) + usual
        yield f"{name}-lists", b"\x03\x1f" + specs([]) + specs(features) + usual
        yield f"{name}-context", b"\x01\x2f" + specs(features) + specs([]) + usual
        yield f"{name}-no-memory", bytes([4 * 12, 9]) + specs([]) + specs(features) + usual


APPEND, CLEAR, TAKE, BIND = 0, 5, 6, 7  # the steps of fuzz_columns.c
COMPARE = 192


def column_seeds() -> Seeds:
    """Steps of an operation and its choice."""
    append = [(APPEND | COMPARE, i) for i in range(4)]
    again = [(TAKE, 4), (APPEND, 0), (CLEAR, 0), *append]
    histories = {
        "append": append,
        "clear": [*append, (CLEAR | COMPARE, 0), *append],
        "take": [*append, *again],
        "take-some": [*append, (TAKE, 3), (TAKE, 4), *again],
        "bind": [*append, *((BIND | COMPARE, i) for i in range(4)), *append],
        "no-memory": [*append, *((APPEND | i << 3, 0) for i in range(1, 8)), *append],
    }
    for lists in (0, 1):
        usual = SEQUENCES["usual"] if lists else USUAL
        four = messages(usual, ONE_INT, usual, b"")
        for name in ("all", "repeated"):
            for history, steps in histories.items():
                features = SPECS[name]
                script = bytes([len(steps), *(byte for step in steps for byte in step)])
                yield f"{name}-{history}-{lists}", bytes([lists]) + specs(features) + script + four


def schema_seeds() -> Seeds:
    def key(name: bytes, choice: int = 2, default: int = 0) -> bytes:
        return bytes([choice, len(name)]) + name + bytes([default])

    for count in (0, 1, 2, 7, 8, 9, 40):
        keys = b"".join(key(b"key %d" % i, 8 * (i % 3) + i % 3) for i in range(count))
        yield f"keys-{count}", bytes([0, count]) + bytes([count]) + keys
    yield "one-byte-apart", bytes([0, 3, 9]) + key(b"a" * 30) + bytes([2, 128, 1, 0]) * 8
    yield "twice", bytes([0, 0, 2]) + key(b"key") * 2
    yield "defaults", bytes([0, 0, 3]) + b"".join(key(b"%d" % i, 24 + i, 3) for i in range(3))
    yield "offsets", bytes([0, 0, 1]) + key(b"a", 48, 7) + bytes([1, 3, 3, 9])
    yield "offsets-decrease", bytes([0, 0, 1]) + key(b"a", 48, 7) + bytes([1, 9, 3, 9])
    yield "no-memory", bytes([3, 0, 2]) + key(b"a") + key(b"b")


def pad_seeds() -> Seeds:
    for i in range(4):
        head = bytes([3, 5, i, 20]) + bytes([0, 5, 2]) + bytes(i % 2 for _ in range(3))
        yield f"size-{i}", head + bytes(range(160))
    yield "lies", bytes([3, 5, 8 + 2, 20]) + bytes([1, 2, 3]) + b"\x02" + b"\xff" * 8
    yield "nothing", bytes(4)


def shuffle_seeds() -> Seeds:
    def buffer(slots: list[int], capacity: int) -> bytes:
        strings = bytes(byte for i in range(7) for byte in (3 * i, i))
        return bytes([3, 4]) + strings + bytes(slots) + struct.pack("<H", capacity)

    yield "usual", buffer([1, 0, 1, 1], 4000)
    yield "no-room", buffer([2, 2, 0, 1], 10)
    yield "outside", buffer([0, 3, 1, 2], 4000)
    yield "far-outside", bytes([1, 1, 1, 1, 1, 1, 255]) + b"\xff" * 8
    yield "nothing", bytes(4)


def decode_seeds() -> Seeds:
    for name, message in EXAMPLES.items():
        yield name, b"\0\x0f" + messages(message)
    for name, message in SEQUENCES.items():
        yield f"sequence-{name}", b"\1\x0f" + messages(message)
    list_after_feature = messages(USUAL, sequence(entry(b"a", ints(1)), (b"b", [ints(1)])))
    yield "sequence-list-after-feature", b"\1\x05" + list_after_feature
    yield "batch", b"\0\x05" + messages(USUAL, USUAL, EXAMPLES["strange-keys"], USUAL)
    yield "batch-torn", b"\0\x05" + messages(USUAL, b"\x0a", USUAL)
    yield "no-memory", b"\x20\x05" + messages(USUAL, USUAL)


# ---- Record files -------------------------------------------------------------------------------

RAW, RECORD, LONG, HEADER, WRONG, FLIP, CUT, WRAP = range(8)  # the steps of script.h


def record(payload: bytes, step: int = RECORD) -> bytes:
    return bytes([step, len(payload)]) + payload


def long_record(length: int, fill: int = 7) -> bytes:
    return bytes([LONG]) + struct.pack("<HB", length, fill)


def header(length: int, size: int = 8) -> bytes:
    return bytes([HEADER | (size - 1) << 4]) + length.to_bytes(size, "little")


def flip(where: int, bits: int = 1) -> bytes:
    return bytes([FLIP]) + struct.pack("<HB", where, bits)


THREE = record(b"one") + record(b"") + record(b"three" * 9)
FILES = {
    "empty": b"",
    "three": THREE,
    "long": THREE + long_record(1900) + long_record(255) + long_record(256),
    "many": record(b"x") * 100,
    "cut-in-header": THREE + bytes([CUT, 56]),
    "cut-in-payload": THREE + bytes([CUT, 6]),
    "wrong-payload": THREE + record(b"wrong", WRONG) + THREE,
    "all-wrong": record(b"wrong", WRONG) * 5,
    "wrong-length": THREE + flip(0) + THREE,
    "wrong-header": THREE + flip(20) + THREE,
    "wrong-bits": THREE + flip(14) + flip(17, 64) + THREE + flip(70, 8) + flip(80, 2),
    "torn-then-more": long_record(1000) + bytes([CUT, 200]) + THREE,
    "nested": THREE + bytes([WRAP]) + THREE + flip(2),
    "huge": THREE + header((1 << 64) - 1),
    "hostile": header(1 << 31, 8) + header(1 << 62, 8) + THREE,
    "headers": header(300, 2) * 60 + THREE,
    "headers-and-records": (header(300, 2) + THREE) * 20,
    "stray": THREE + bytes([RAW, 5]) + b"stray",
    "gzip": bytes([RAW, 14]) + b"\x1f\x8b\x08" + b"\0" * 11,
    "zlib": bytes([RAW, 12]) + b"\x78\x9c" + b"\0" * 10,
    "text": bytes([RAW, 40]) + b"this is only text, and no record of any.",
}


def scan_seeds() -> Seeds:
    for name, script in FILES.items():
        for choice in (0, 1, 3):
            yield f"{name}-{choice}", struct.pack("<BBH", choice, 200, 50) + script


def reader_seeds() -> Seeds:
    for name, script in FILES.items():
        for policy in range(4):
            yield f"{name}-{policy}", bytes([policy | 0x20, policy, 0, 0, 0]) + script
        yield f"{name}-corrected", bytes([0x80 | 0x21, 4, 0, 0, 0]) + script
        yield f"{name}-file", bytes([1, 8 | 16, 3, 0, 0]) + script
        yield f"{name}-unverified", bytes([1 | 4 | 8, 6, 1, 0, 0]) + script
        yield f"{name}-no-memory", bytes([1 | 0x20, 3, 0, 5, 1]) + script


def index_seeds() -> Seeds:
    for name, script in FILES.items():
        for how, numbers in ((0, [0, 1, 2]), (1, [2, 0, 0, 1, 5]), (2, [0, 1, 2, 3])):
            lie = (90 * how).to_bytes(1 + (how >> 2) % 8, "little")
            choices = struct.pack("<HBHBBB", 700, 40 * how, 300, how, 1, len(numbers))
            yield f"{name}-{how}", choices + lie + bytes(numbers) + script


def read_columns_seeds() -> Seeds:
    # Records of up to 255 bytes; the limit of 100 bytes, no checksums, reads that are interrupted.
    fits = [m for m in EXAMPLES.values() if len(m) < 256]
    variable = specs(SPECS["variable"])
    for choice, step, capacity, failing in (
        (0, 200, 4000, 0),
        (32, 0, 0, 0),
        (4 | 32, 2, 150, 0),
        (8 | 2, 6, 64, 0),
        (1, 200, 4000, 3),
    ):
        start = struct.pack("<BBHB", choice, step, capacity, failing) + variable
        for name, script in FILES.items():
            yield f"{name}-{choice}", start + script
        for name, message in EXAMPLES.items():
            if len(message) < 256:
                script = record(USUAL) * 3 + record(message) + record(ONE_INT)
                yield f"record-{name}-{choice}", start + script
        yield f"records-{choice}", start + b"".join(map(record, fits[:5])) * 3
    for name, features in SPECS.items():
        start = struct.pack("<BBHB", 0, 3, 300, 0) + specs(features)
        yield f"specs-{name}", start + record(USUAL) * 4 + record(ONE_INT) * 2


def unit_seeds(start: bytes, choice: int) -> Seeds:
    """Files after a start; with SequenceExamples where the choice has that flag."""
    start += specs(SPECS["variable"]) + (specs(SPECS["variable"]) if choice & 4 else specs([]))
    for name, script in FILES.items():
        yield f"{name}-{choice}", start + script
    good = record(SEQUENCES["usual"] if choice & 4 else USUAL) * 7 + record(ONE_INT)
    yield f"records-{choice}", start + good * 2
    yield f"misfit-{choice}", start + good + record(b"\xff") + good
    yield f"wrapped-{choice}", start + (good + bytes([WRAP])) * 2 + good


def pipeline_seeds() -> Seeds:
    """One to four threads, each mode; ranges of a few bytes, of some records, and of all."""
    for choice, how, batch, size in (
        (0, 0x30, 2, 100),
        (16 | 64, 0x10, 6, 40),
        (4 | 64, 0x23, 0, 300),
        (8 | 32, 0x21, 0, 150),
        (1, 0x32 | 8, 0, 1),
        (2, 0, 3, 4000),
        (16 | 128, 0x23, 5, 7),
        (128, 0x83, 2, 30),
    ):
        yield from unit_seeds(struct.pack("<BBBH", choice, how, batch, size), choice)


def correct_seeds() -> Seeds:
    for length in (0, 3, 8, 100):
        payload = bytes(range(length))
        for name, bits in {
            "intact": [],
            "length": [1],
            "length-checksum": [70],
            "payload": [100],
            "footer": [96 + 8 * length + 5],
            "two": [97, 99],
            "three": [0, 65, 97],
        }.items():
            flips = b"".join(struct.pack("<H", bit) for bit in bits)
            yield f"{name}-{length}", bytes([14, length, 9, len(bits)]) + flips + payload


# Columns: see make_input in fuzz_encode.c.
SPLITS, PRESENCE, LONG_NAME, ONE_VALUE, STEADY = 4, 8, 16, 32, 64


def encode_seeds() -> Seeds:
    def columns(*shapes: int) -> bytes:
        return bytes([len(shapes)]) + b"".join(
            bytes([shape]) + bytes((shape * 7 + i * 31) & 0xFF for i in range(40))
            for shape in shapes
        )

    def plan(choice: int, records: int, room: int = 2000) -> bytes:
        return struct.pack("<BBBBH", choice, records, 12, 4, room)

    for kind in (BYTES, FLOAT, INT64):
        for name, shape in {
            "scalars": ONE_VALUE | STEADY,
            "dense": STEADY,
            "splits": SPLITS,
            "presence": SPLITS | PRESENCE,
            "long-name": SPLITS | LONG_NAME,
        }.items():
            both = columns(kind | shape, kind | ONE_VALUE)
            yield f"{name}-{kind}", plan(0, 9) + both
            yield f"{name}-{kind}-few", plan(8 * 2, 3, 30) + both
            yield f"{name}-{kind}-sequence", plan(1, 5) + both + both
            yield f"{name}-{kind}-lies", plan(2, 5) + both + b"\x01\x01\xff\xff"
    yield "nothing", plan(0, 0) + columns()
    yield "no-columns", plan(1, 3) + columns() + columns()


def import_seeds() -> Seeds:
    """Kind and depth of the lists, the room, whether it lies, and how many records; the rest
    chooses their values and their layout."""
    for kind in range(3):
        for depth in range(4):
            for number, (room, lies) in enumerate([(255, 0), (0, 0), (255, 1), (9, 6), (40, 7)]):
                rest = random.Random(f"{kind} {depth} {number}").randbytes(150)
                shape = bytes([kind | depth << 2, room, lies, 9])
                yield f"kind-{kind}-depth-{depth}-{number}", shape + rest
    yield "nothing", b""


# Numbers of each kind that divide three values into rows of 2, 0 and 1, but for uniform rows; see
# choose_variable in arrow_model.h.
PARTITIONS = [[], [2, 0, 1], [0, 2, 2, 3], [0, 2, 2], [2, 2, 3], [0, 0, 2]]


def export_seeds() -> Seeds:
    def plan(flags: int, asked: list[int], fields: list[list[int]], *parts: bytes) -> bytes:
        lists = bytes([len(asked), *asked]) if flags & 1 else b""
        start = bytes([flags, parts[0][0], 2, 2, 7, len(asked), *asked]) + lists
        return start + bytes([len(fields), *chain.from_iterable(fields)]) + messages(*parts[1:])

    def partition(kind: int, column: int, length: int = 1) -> int:
        found = (c for c in range(256) if c % 6 == kind and c // 8 % 3 == (column or length - 1))
        return next(found)

    none, three = b"\0", [INT64 | VARIABLE] * 3
    for kind, numbers in enumerate(PARTITIONS):
        choice = partition(kind, 1, 3)
        rows = [(b"a", [1, 2, 3]), (b"b", numbers), (b"", [1, len(numbers or [1]) - 1])]
        good = example(*(entry(key, ints(*values)) for key, values in rows))
        bad = example(entry(b"a", ints(1)), entry(b"b", ints(1, 0, 7)))
        steps = sequence(b"", *((key, [ints(*values)] * 2) for key, values in rows))
        inner, outer = [0, 1, choice], [0, 2, partition(1, 2), choice]
        for name, fields in {"inner": [inner], "outer": [outer], "both": [outer, inner]}.items():
            yield f"rows-{kind}-{name}", plan(2, three, fields, none, good, b"", good)
            yield f"rows-{kind}-{name}-bad", plan(0, three, fields, none, good, bad)
            lists = [[field[0] | 1, *field[1:]] for field in fields]
            yield f"rows-{kind}-{name}-lists", plan(1, three, lists, none, steps, steps)
    pair = example(*(entry(key, ints(5, 6)) for key in (b"a", b"b", b"")))
    halves = [example(entry(b"b", ints()), entry(b"", ints())), example(entry(b"b", ints(0, 0)))]
    yield "rows-of-nothing", plan(2, three, [[0, 1, partition(1, 1)]], none, pair, b"", *halves)
    for rank in range(3):
        fields = [[0, 0x48 + rank + 24, 0, 8, 16]]
        yield f"sparse-{rank}", plan(2, three, fields, none, pair, halves[0], b"", ONE_INT)
    text = example(entry(b"a", strings("é".encode(), b"x" * 9, "€😀".encode())))
    wrong = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"12345678\xe2\x82"]
    for strings_type in range(4):
        fields = [[strings_type << 5, 0]]
        for i, each in enumerate([b"", *wrong]):
            torn = example(entry(b"a", strings(b"ok", each)))
            yield f"text-{strings_type}-{i}", plan(2, [BYTES | VARIABLE], fields, none, text, torn)
    for name, features in SPECS.items():
        fields = [[2 * i | 0x80 * (i % 2), 7 * i] for i in range(min(len(features), 6))]
        for failing in range(190, 256, 5):
            parts = (bytes([failing]), USUAL, b"", EXAMPLES["no-values"], EXAMPLES["wide"])
            yield f"{name}-{failing}", plan(failing & 2, features, fields, *parts)
        lists = [[2 * i | i % 2, 7 * i] for i in range(min(len(features), 6))]
        yield f"{name}-sequence", plan(3, features, lists, none, *list(SEQUENCES.values())[:4])
    yield "nothing", b""
    yield "no-fields", plan(2, three, [], none, good)


def crc_seeds() -> Seeds:
    for length in (0, 1, 7, 8, 9, 15, 16, 31, 33, 63, 64, 65, 100, 127, 255, 256, 257, 1000):
        data = bytes(i * 37 & 0xFF for i in range(length))
        yield f"length-{length}", struct.pack("<BHIB", length % 64, length // 3, length, 0) + data
    yield "long", struct.pack("<BHIB", 3, 40000, 1, 6) + bytes(range(256)) * 4
    yield "zeros", struct.pack("<BHIB", 0, 500, 0xFFFFFFFF, 7) + bytes(64)


def write(target: str, seeds: Seeds) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if not old.name.startswith("found-"):
            old.unlink()
    for name, data in seeds:
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    write("scan", scan_seeds())
    write("reader", reader_seeds())
    write("correct", correct_seeds())
    write("index", index_seeds())
    write("crc", crc_seeds())
    write("parse", parse_seeds())
    write("sequence", sequence_seeds())
    write("columns", column_seeds())
    write("read_columns", read_columns_seeds())
    write("pipeline", pipeline_seeds())
    write("schema", schema_seeds())
    write("pad", pad_seeds())
    write("shuffle", shuffle_seeds())
    write("decode", decode_seeds())
    write("encode", encode_seeds())
    write("import", import_seeds())
    write("export", export_seeds())
