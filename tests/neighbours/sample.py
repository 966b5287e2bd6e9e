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
