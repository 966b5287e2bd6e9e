"""The records that the tests here read."""

from typing import Any

import numpy as np

import tfwire as tfw

COUNT = 1000
SPEC: dict[str, Any] = {
    "id": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([3], tfw.float32),
    "name": tfw.FixedLenFeature([], tfw.string),
}


def columns(ids: Any) -> dict[str, Any]:
    """What SPEC parses of records with these ids."""
    ids = np.asarray(ids, np.int64)
    return {
        "id": ids,
        "x": (ids[:, None] * [1, 2, 3]).astype(np.float32),
        "name": [b"name %d" % i for i in ids],
    }


# Of every kind, for the fixture ``mixed``.
FEATURES: dict[str, Any] = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([3], tfw.float32),
    "m": tfw.FixedLenFeature([2, 2], tfw.int64, [[1, 2], [3, 4]]),
    "s": tfw.FixedLenFeature([], tfw.string),
    "two": tfw.FixedLenFeature([2], tfw.string, [b"", b"default"]),
    "row": tfw.FixedLenSequenceFeature([], tfw.int64, True),
    "var": tfw.VarLenFeature(tfw.int64),
    "words": tfw.VarLenFeature(tfw.string),
    "rag": tfw.RaggedFeature(tfw.float32),
    "tags": tfw.RaggedFeature(tfw.string),
    "sp": tfw.SparseFeature("var", "var2", tfw.int64, 100),
}
