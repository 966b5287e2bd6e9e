"""tfwire beside protobuf on mutated messages; the long form is tests/fuzz/differential.py."""

from __future__ import annotations

import math

import pytest

from fuzz import differential
from tfwire import train


def test_mutated_messages_decode_as_protobuf_decodes_them():
    count, _, wrong = differential.run(seed=1, runs=20_000, seconds=math.inf)
    assert wrong is None
    assert 20_000 == count


@pytest.mark.parametrize(
    ("message", "by_protobuf", "by_tfwire"),
    [
        ("0a070a050a01ff1200", None, {"\udcff": []}),
        ("0a0c0a0a12051a030a01014a0161", {}, {"": [1]}),
        ("7b0100000000000000007c", {}, None),
    ],
    ids=["key that is no UTF-8", "unknown field in a map entry", "field 0 in a group"],
)
def test_the_known_differences_are_still_there(message, by_protobuf, by_tfwire):
    """One that disappears is to be taken from the list, as in protobuf's own failure lists."""
    data = bytes.fromhex(message)
    found = differential.contents(differential.read(data, vars(train), False), False)
    assert by_protobuf == found
    assert by_tfwire == differential.by_tfwire(data, False)
    assert differential.difference(data, False) is None
