"""tfwire beside the plain Python rules of cases/reference.py, on random messages and specs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import tfwire as tfw
from cases import reference
from cases.reading import Fault, submessage
from cases.replay import answer
from cases.strategies import cases, sequence_cases


def same(expected, found):
    """Equal values, or both an error: which of several faults is found first is not promised."""
    if "values" in expected or "values" in found:
        return expected == found
    return found["error"] == "ParseError"


@settings(max_examples=150, deadline=None)
@given(case=cases(odd=False))
def test_usual_messages(case):
    expected, found = reference.answer(case), answer(case)
    assert same(expected, found), f"expected {expected}, found {found}"


@settings(max_examples=400, deadline=None)
@given(case=cases(odd=True))
def test_odd_and_damaged_messages(case):
    expected, found = reference.answer(case), answer(case)
    assert same(expected, found), f"expected {expected}, found {found}"


def test_a_damaged_part_is_not_mended_by_the_next():
    """A fixed64 in a group of the first features, whose missing bytes the second ones have."""
    data = bytes.fromhex("0a044b09054c0a074b430a0178444c")
    with pytest.raises(Fault):
        submessage(data, 1)
    with pytest.raises(tfw.ParseError, match=r"malformed|leaves"):
        tfw.decode_example(data)


@settings(max_examples=150, deadline=None)
@given(case=sequence_cases())
def test_sequence_examples(case):
    expected, found = reference.answer(case), answer(case)
    assert same(expected, found), f"expected {expected}, found {found}"
