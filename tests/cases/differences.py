"""Where tfwire's rules deliberately differ from TensorFlow's answers; docs/differences.md explains.

A difference is known by what is special in a case, which is the middle of its group's name. A
case whose answers differ and that no pattern knows is a mistake of tfwire or of the reference.
"""

from __future__ import annotations

import re
from typing import Any

PATTERNS = {
    "split-list": r"two blocks|three blocks|packed then unpacked|an empty block first",
    "unpacked-then-packed": r"unpacked then packed",
    "list-twice": r"two lists|empty list then list",
    "last-kind-wins": r"another kind then this|this kind then another|this, another, this",
    "unknown-field": r"unknown (varint|fixed|bytes|group|nested)",
    "map-entry": r"value before key|only a key|only a value|an empty entry|key twice|value twice"
    r"|entry cut at [03],",
    "long-header": r"10 byte (tag|length) of",
    "overlong-tag": r"byte tag of",
    "wrong-wire-type": r"known field as",
    "damage-behind-list": r" last in (list|feature),|(list|feature) cut at",
    "damage-in-duplicate": r"first damaged",
    "damage-in-example": r"(last|unknown first) in example|: \w+ (example )?cut at 2,",
    "float-block": r"float block of",
    "partition": r"^ragged: \w+ (RowStarts|RowSplits \[1, 3\])",
    "uniform-length": r"^ragged nested: uniform 4",
    "empty-batch": r"^together",
}


def clashes(case: dict[str, Any], tensorflow: dict[str, Any], rule: dict[str, Any]) -> bool:
    """Whether two answers differ. TensorFlow's errors often do not say what was wrong. Where one
    clearly speaks of a missing feature or of another kind, the reasons must agree too; but of
    several faults, in a batch or in the steps of a list, it may name another than the first."""
    if "values" in tensorflow or "values" in rule:
        return tensorflow != rule
    if tensorflow["reason"] == "crash":
        return True
    alone = len(case["serialized"]) == 1 and not case.get("lists")
    clear = alone and tensorflow["reason"] in ("missing", "kind")
    return clear and tensorflow["reason"] != rule["reason"]


def find(group: str, tensorflow: dict[str, Any]) -> str | None:
    """The difference that a case of this group with this answer of TensorFlow belongs to."""
    if tensorflow.get("error") == "crash":
        return "process-dies"
    return next((name for name, p in PATTERNS.items() if re.search(p, group)), None)
