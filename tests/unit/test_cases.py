"""The case table: thousands of messages and specs with what TensorFlow, or our rules, answer.

cases/generate.py made it with TensorFlow; here it is replayed without. Where a case carries a
"difference", tfwire deliberately answers by protobuf's rules (docs/differences.md).
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from cases.differences import PATTERNS
from cases.replay import agrees, answer, load

TABLE = list(load())
GROUPS = {name: list(cases) for name, cases in groupby(TABLE, lambda c: c["group"].split(",")[0])}
AREAS = sorted({group.split(":")[0] for group in GROUPS})


@pytest.mark.parametrize("area", AREAS)
def test_answers_of_the_case_table(area):
    cases = [c for name, group in GROUPS.items() if name.split(":")[0] == area for c in group]
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


def test_table_covers_every_difference_and_most_cases_are_as_tensorflow():
    """A pattern that no case needs any more would hide the next mistake."""
    found = Counter(case.get("difference") for case in TABLE)
    assert {None, "process-dies", *PATTERNS} == set(found)
    assert len(TABLE) > 19_000
    assert found[None] > 0.7 * len(TABLE)
