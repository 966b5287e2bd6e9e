"""tfwire beside the plain Python rules of cases/reference.py, on random messages and specs."""

from __future__ import annotations

from hypothesis import given, settings

from cases import reference
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


@settings(max_examples=150, deadline=None)
@given(case=sequence_cases())
def test_sequence_examples(case):
    expected, found = reference.answer(case), answer(case)
    assert same(expected, found), f"expected {expected}, found {found}"
