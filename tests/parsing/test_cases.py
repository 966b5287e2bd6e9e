"""The case table: thousands of messages and specs with what TensorFlow, or our rules, answer.

cases/generate.py made it with TensorFlow; here it is replayed without. Where a case carries a
"difference", tfwire deliberately answers by protobuf's rules (docs/differences.md).
"""

from __future__ import annotations

from collections import Counter

import pytest

from cases.differences import PATTERNS
from cases.replay import agrees, answer, load

pytestmark = pytest.mark.short_strings

AREAS = [
    *["an Example as SequenceExample", "batch", "broken", "context", "core", "duplicates"],
    *["encodings", "lists", "map_entries", "overlong", "ragged", "ragged nested", "sequence spec"],
    *["several keys", "sparse", "spec", "together", "truncated", "unknown", "with names"],
]


def area_of(case):
    return case["group"].split(",")[0].split(":")[0]


@pytest.fixture(scope="module")
def table():
    """All cases. Only while they are used: they are large, and slow down each fork."""
    return list(load())


@pytest.mark.parametrize("area", AREAS)
def test_answers_of_the_case_table(table, area):
    cases = [case for case in table if area_of(case) == area]
    found = [answer(case) for case in cases]
    failed = [
        (case, answered)
        for case, answered in zip(cases, found, strict=True)
        if not agrees(case["expected"], answered)
    ]
    report = [
        f"{case['group']} ({case['call']}, {case.get('difference', 'as TensorFlow')})\n"
        f"  expected {case['expected']}\n  found    {answered}"
        for case, answered in failed[:10]
    ]
    assert not failed, f"{len(failed)} of {len(cases)} cases\n" + "\n".join(report)


def test_table_covers_every_difference_and_most_cases_are_as_tensorflow(table):
    """A pattern that no case needs any more would hide the next mistake."""
    assert AREAS == sorted(set(map(area_of, table)))
    found = Counter(case.get("difference") for case in table)
    assert {None, "process-dies", *PATTERNS} == set(found)
    assert len(table) > 19_000
    assert found[None] > 0.7 * len(table)
