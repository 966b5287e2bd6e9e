"""Runs cases through tfwire."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import tfwire as tfw
from cases.results import call, plain_dict
from helpers.paths import CASES


class Io:
    """tfwire's features, and the dtypes that TensorFlow has and specs refuse."""

    int32, float64, bool = np.int32, np.float64, np.bool_
    int64, float32, string = tfw.int64, tfw.float32, tfw.string
    FixedLenFeature = tfw.FixedLenFeature
    FixedLenSequenceFeature = tfw.FixedLenSequenceFeature
    VarLenFeature = tfw.VarLenFeature
    RaggedFeature = tfw.RaggedFeature
    SparseFeature = tfw.SparseFeature


def load() -> Iterator[dict[str, Any]]:
    """All cases of the table."""
    for path in sorted(CASES.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            yield from map(json.loads, lines)


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What tfwire answers, in the form of the table."""
    try:
        return {"values": [plain_dict(values) for values in call(Io, tfw, case)]}
    except tfw.ParseError as error:
        return {"error": "ParseError", "reason": error.reason, "key": error.feature}
    except (ValueError, TypeError) as error:
        return {"error": type(error).__name__, "reason": "other", "key": None}


def agrees(expected: dict[str, Any], found: dict[str, Any]) -> bool:
    """Values are equal. Errors give the same reason for the same key; of a wrong spec, which
    TensorFlow refuses with errors of its own classes, any exception will do."""
    if "values" in expected or "values" in found:
        return expected == found
    if expected["error"] != "ParseError":
        return True
    return expected["reason"] == found["reason"] and expected["key"] in (None, found["key"])
