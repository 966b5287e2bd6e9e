"""tfwire beside others, on random messages and specifications: the plain Python rules of
cases/reference.py, and protobuf, for which tests/fuzz/differential.py is the long form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from cases import reference
from cases.reading import Fault, submessage
from cases.replay import answer
from cases.strategies import cases, sequence_cases
from fuzz import differential
from tfwire import train


def same(expected, found):
    """Equal values, or both an error: which of several faults is found first is not promised."""
    if "values" in expected or "values" in found:
        return expected == found
    return found["error"] == "ParseError"


@pytest.mark.parametrize(
    "messages",
    [cases(odd=False), cases(odd=True), sequence_cases()],
    ids=["usual", "odd and damaged", "SequenceExamples"],
)
@given(data=st.data())
def test_random_messages(messages, data):
    case = data.draw(messages)
    expected, found = reference.answer(case), answer(case)
    assert same(expected, found), f"expected {expected}, found {found}"


def test_a_damaged_part_is_not_mended_by_the_next():
    """A fixed64 in a group of the first features, whose missing bytes the second ones have."""
    data = bytes.fromhex("0a044b09054c0a074b430a0178444c")
    with pytest.raises(Fault):
        submessage(data, 1)
    with pytest.raises(tfw.ParseError, match=r"malformed|leaves"):
        tfw.decode_example(data)


# ---- Beside protobuf -------------------------------------------------------------------------


def test_mutated_messages_decode_as_protobuf_decodes_them():
    count, _, wrong = differential.run(seed=1, runs=20_000, seconds=math.inf)
    assert wrong is None
    assert 20_000 == count


@pytest.mark.parametrize(
    ("message", "by_protobuf", "by_tfwire"),
    [
        ("0a070a050a01ff1200", None, {"\udcff": []}),
        ("0a0c0a0a12051a030a01014a0161", None, {"": [1]}),
        ("7b0100000000000000007c0a070a050a01611200", {"a": []}, None),
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
