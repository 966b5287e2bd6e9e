"""Columns and rows become the bytes that protobuf's deterministic serialization writes."""

import numpy as np
import pytest

from tfwire.example import (
    encode_example,
    encode_examples,
    encode_framed,
    encode_rows,
    encode_sequence_example,
)

# What the tutorials print for (False, 4, b"goat", 0.9876).
GOAT = (
    b"\nR\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01"
    b"\x04\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04["
    b"\xd3|?"
)
GOAT_ROW = {"feature2": b"goat", "feature1": 4, "feature3": 0.9876, "feature0": False}


def test_the_observation_of_the_tutorials():
    assert encode_example(GOAT_ROW) == GOAT


def test_rows_and_columns_give_the_same_bytes():
    columns = {name: [value] * 1000 for name, value in GOAT_ROW.items()}
    assert encode_rows([GOAT_ROW] * 1000) == [GOAT] * 1000
    assert encode_examples(columns) == [GOAT] * 1000


def test_framed_records_are_the_file_of_the_tutorials():
    columns = {name: [value] for name, value in GOAT_ROW.items()}
    framed = b"".join(encode_framed(columns))
    assert framed[12:-4] == GOAT


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (True, b"\x1a\x03\n\x01\x01"),
        (np.bool_(True), b"\x1a\x03\n\x01\x01"),
        (np.uint8(200), b"\x1a\x04\n\x02\xc8\x01"),
        (-1, b"\x1a\x0c\n\x0a" + b"\xff" * 9 + b"\x01"),
        (np.exp(1), b"\x12\x06\n\x04T\xf8-@"),
        ([1, 2.0], b"\x12\x0a\n\x08\x00\x00\x80?\x00\x00\x00@"),
        (1e300, b"\x12\x06\n\x04\x00\x00\x80\x7f"),
        ("\u00e9", b"\n\x04\n\x02\xc3\xa9"),
        ([b"a", "b", bytearray(b"c"), memoryview(b"d")], b"\n\x0c\n\x01a\n\x01b\n\x01c\n\x01d"),
        ([], b""),
        (np.empty(0, np.int32), b"\x1a\x00"),
        (np.empty(0, np.float64), b"\x12\x00"),
        (np.empty(0, "S1"), b"\n\x00"),
        ([[1, 2], [3, 4]], b"\x1a\x06\n\x04\x01\x02\x03\x04"),
        (np.arange(4).reshape(2, 2).T, b"\x1a\x06\n\x04\x00\x02\x01\x03"),
    ],
)
def test_the_kind_follows_from_the_values(value, feature):
    entry = b"\n\x01x\x12" + bytes([len(feature)]) + feature
    expected = b"\n" + bytes([len(entry) + 2]) + b"\n" + bytes([len(entry)]) + entry
    assert encode_example({"x": value}) == expected


def test_an_example_without_features():
    assert encode_example({}) == b"\n\x00"


def test_a_sequence_example():
    assert encode_sequence_example({"n": 2}, {"w": [[1, 2], [3], []]}) == (
        b"\n\x0c\n\x0a\n\x01n\x12\x05\x1a\x03\n\x01\x02"
        b"\x12\x1a\n\x18\n\x01w\x12\x13\n\x06\x1a\x04\n\x02\x01\x02\n\x05\x1a\x03\n\x01\x03"
        b"\n\x02\x1a\x00"
    )
