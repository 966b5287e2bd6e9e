"""What the encoder of columns in C reads: one feature of many records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Input(NamedTuple):
    """One feature of many records, as C's ``tfw_input`` describes it.

    Attributes:
        kind: BYTES, FLOAT or INT64.
        values: int64 or float32 array of rank 1, or the bytes of all strings.
        per_record: Values of each record (each step) if ``splits`` is None.
        offsets: Where each string begins and ends: int64, strings + 1.
        splits: Where the values of each record (each step) begin and end: int64, records + 1.
        steps: Where the steps of each record begin and end: int64, records + 1; feature lists only.
        presence: uint8 per record; None if every record has the feature.
        step_presence: uint8 per step; feature lists only.
    """

    kind: int
    values: Any
    per_record: int = 1
    offsets: Array | None = None
    splits: Array | None = None
    steps: Array | None = None
    presence: Array | None = None
    step_presence: Array | None = None


Inputs = list[tuple[bytes, Input]]  # with the bytes of their keys
