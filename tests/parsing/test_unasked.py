"""Damage in values that are not asked for: who looks into them and who does not.

Messages are mangled byte by byte inside one value, in every form that it can be written in. What
parses with a specification that does not name it gives the values of the whole message; what reads
messages without a specification refuses the mangled ones. Inside the value that is asked for,
all refuse the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import tfwire as tfw
from cases import wire
from cases.reading import Fault, read_feature
from helpers.arrow.structs import rows_of_batch
from helpers.command import tfwire_main
from tfwire.arrow import open_reader
from tfwire.compat import io as compat_io

ASKED = wire.feature(wire.INT64, [1, 2, 3])
VALUES = {
    "ints": wire.feature(wire.INT64, [300, 2]),
    "one int": wire.feature(wire.INT64, [7]),
    "floats": wire.feature(wire.FLOAT, [1.5, 2.5]),
    "strings": wire.feature(wire.BYTES, [b"xx", b"y"]),
    "unpacked": wire.field(wire.INT64, wire.unpacked(wire.INT64, [300, 2])),
    "long": wire.feature(wire.BYTES, [b"x" * 300]),
}
EDGES = (0, 1, 2, 3, 5, 7, 0x0A, 0x0B, 0x0C, 0x7F, 0x80, 0xFF)
MOST = 24  # bytes at the beginning of a value that are changed; those of strings do not matter

SPEC = {"a": tfw.FixedLenFeature([3], tfw.int64)}
BOTH = {**SPEC, "b": tfw.VarLenFeature(tfw.int64)}
LISTS = {"l": tfw.VarLenFeature(tfw.int64)}


def is_whole(value: bytes) -> bool:
    """Whether a value is well-formed, by the plain rules."""
    try:
        read_feature(value)
    except Fault:
        return False
    return True


def mangled(value: bytes) -> Iterator[bytes]:
    """Malformed values, each one byte, a cut or some bytes more away from this one."""
    for i in range(min(MOST, len(value))):
        for byte in {*EDGES, value[i] ^ 1, value[i] ^ 2, (value[i] + 1) % 256}:
            yield value[:i] + bytes([byte]) + value[i + 1 :]
        yield value[:i]
    yield value + b"\x0b\x14"  # a group that ends as another
    yield value + b"\x0c"


def damaged(value: bytes) -> list[bytes]:
    return sorted({other for other in mangled(value) if not is_whole(other)})


def example(asked: bytes, other: bytes) -> bytes:
    return wire.example({b"a": asked, b"b": other})


def sequence(asked: bytes, context: bytes = ASKED, step: bytes = ASKED) -> bytes:
    lists = wire.feature_lists({b"l": [ASKED], b"m": [step]})
    return wire.example({b"a": asked, b"b": context}) + lists


Read = Callable[[list[bytes], Any], Any]


def written(read: Callable[[Any], Any]) -> Read:
    """Reads a file of the messages."""

    def call(messages: list[bytes], folder: Any) -> Any:
        path = folder / "data"
        tfw.write_records(path, messages)
        return read(path)

    return call


def rows(reader: Any) -> list[Any]:
    return [row["a"] for batch in reader for row in rows_of_batch(batch)]


def batches(found: Any) -> list[Any]:
    return np.concatenate([batch["a"] for batch in found]).tolist()


# What parses Examples by a specification, and the values of "a" by record.
PARSERS: dict[str, Read] = {
    "parse_single_example": lambda messages, _: [
        tfw.parse_single_example(message, SPEC)["a"].tolist() for message in messages
    ],
    "parse_example": lambda messages, _: tfw.parse_example(messages, SPEC)["a"].tolist(),
    "compat": lambda messages, _: compat_io.parse_example(messages, SPEC)["a"].numpy().tolist(),
    "Parser.parse_file": written(lambda path: batches(tfw.Parser(SPEC).parse_file(path))),
    "with threads": written(
        lambda path: batches(tfw.Parser(SPEC).parse_file(path, 16, num_threads=2))
    ),
    "Dataset.parse_example": written(
        lambda path: batches(tfw.TFRecordDataset(path).batch(7).parse_example(SPEC))
    ),
    "Arrow": written(lambda path: rows(open_reader(path, SPEC))),
    "Arrow, one column": written(lambda path: rows(open_reader(path, BOTH, columns=["a"]))),
}

# What reads Examples without one.
READERS: dict[str, Read] = {
    "decode_example": lambda messages, _: list(map(tfw.decode_example, messages)),
    "decode_examples": lambda messages, _: tfw.decode_examples(messages),
    "example_to_json": lambda messages, _: list(map(tfw.example_to_json, messages)),
    "infer_schema": written(lambda path: tfw.infer_schema(path)),
    "tfwire.train": lambda messages, _: list(map(tfw.train.Example.FromString, messages)),
}

SEQUENCE_PARSERS: dict[str, Read] = {
    "parse_single_sequence_example": lambda messages, _: [
        tfw.parse_single_sequence_example(message, SPEC, LISTS)[0]["a"].tolist()
        for message in messages
    ],
    "parse_sequence_example": lambda messages, _: tfw.parse_sequence_example(messages, SPEC, LISTS)[
        0
    ]["a"].tolist(),
    "the context only": lambda messages, _: tfw.parse_sequence_example(messages, SPEC)[0][
        "a"
    ].tolist(),
    "SequenceParser.parse_file": written(
        lambda path: batches(
            context for context, _, _ in tfw.SequenceParser(SPEC, LISTS).parse_file(path)
        )
    ),
}

SEQUENCE_READERS: dict[str, Read] = {
    "decode_sequence_example": lambda messages, _: list(map(tfw.decode_sequence_example, messages)),
    "tfwire.train": lambda messages, _: list(map(tfw.train.SequenceExample.FromString, messages)),
}


def refuses(read: Read, message: bytes, folder: Any) -> bool:
    try:
        read([message], folder)
    except (tfw.ParseError, DecodeError):
        return True
    return False


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("parser", PARSERS)
def test_parsers_do_not_look_into_what_is_not_asked_for(parser, value, tmp_path):
    messages = [example(ASKED, other) for other in damaged(VALUES[value])]
    assert len(messages) > 20
    assert [[1, 2, 3]] * len(messages) == PARSERS[parser](messages, tmp_path)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("reader", READERS)
def test_readers_without_a_specification_look_into_everything(reader, value, tmp_path):
    assert not refuses(READERS[reader], example(ASKED, VALUES[value]), tmp_path)
    for other in damaged(VALUES[value]):
        assert refuses(READERS[reader], example(ASKED, other), tmp_path), other.hex()


@pytest.mark.parametrize("name", {**PARSERS, **READERS})
def test_values_that_are_returned_come_from_well_formed_fields(name, tmp_path):
    read = {**PARSERS, **READERS}[name]
    for asked in damaged(ASKED):
        assert refuses(read, example(asked, VALUES["ints"]), tmp_path), asked.hex()


@pytest.mark.parametrize("value", VALUES)
def test_sequence_examples_have_the_same_rule(value, tmp_path):
    others = damaged(VALUES[value])
    messages = [sequence(ASKED, context=other) for other in others]
    messages += [sequence(ASKED, step=other) for other in others]
    for name, parse in SEQUENCE_PARSERS.items():
        assert [[1, 2, 3]] * len(messages) == parse(messages, tmp_path), name
    for message in messages:
        for name, read in SEQUENCE_READERS.items():
            assert refuses(read, message, tmp_path), (name, message.hex())


def test_sequence_examples_are_refused_for_what_is_asked_for(tmp_path):
    for asked in damaged(ASKED):
        for name, read in {**SEQUENCE_PARSERS, **SEQUENCE_READERS}.items():
            assert refuses(read, sequence(asked), tmp_path), (name, asked.hex())


@pytest.mark.parametrize("command", ["stats", "schema"])
def test_commands_that_read_all_features_refuse_the_file(command, tmp_path):
    path = tmp_path / "data"
    tfw.write_records(path, [example(ASKED, damaged(VALUES["ints"])[0])])
    result = tfwire_main(command, path)
    assert 1 == result.returncode
    assert b"record 0 is not an Example" in result.stderr


def test_the_frame_of_an_entry_that_is_not_asked_for_is_checked(tmp_path):
    """What cannot be skipped by its length is refused by all."""
    entry = wire.entry(b"b", VALUES["ints"])
    for broken in (entry[:1] + b"\x7f" + entry[2:], entry[:3] + b"\x7f" + entry[4:], entry[:-1]):
        message = wire.field(1, wire.entry(b"a", ASKED) + broken)
        for name, read in {**PARSERS, **READERS}.items():
            assert refuses(read, message, tmp_path), (name, broken.hex())
