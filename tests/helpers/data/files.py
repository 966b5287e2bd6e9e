"""Files for datasets, and what comes of a dataset."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

import tfwire as tfw
from helpers.reading import flip_byte

SPEC: dict[Any, Any] = {"n": tfw.FixedLenFeature([], tfw.int64)}
RECORDS = tfw.encode_columns({"n": range(1000)})
NUMBERS = {record: number for number, record in enumerate(RECORDS)}
PADDING = -1  # no number of an element


class NumberedFiles:
    """Files of Examples {"n": 0..}.

    Attributes:
        total: How many records there are.
        plain, gzip, damaged: Their paths; of the damaged ones, as of the plain ones, every seventh
            record has a wrong byte.
    """

    def __init__(self, folder: Any, sizes: tuple[int, ...]) -> None:
        self.total = sum(sizes)
        self.plain, self.gzip, self.damaged = (
            [str(Path(folder) / f"{kind}-{i}") for i in range(len(sizes))]
            for kind in ("plain", "gzip", "damaged")
        )
        self._places: list[tuple[str, int]] = []  # of the payloads of plain records
        first = 0
        for plain, gzip, damaged, size in zip(
            self.plain, self.gzip, self.damaged, sizes, strict=True
        ):
            records = RECORDS[first : first + size]
            tfw.write_records(plain, records)
            tfw.write_records(gzip, records, "GZIP")
            places = itertools.accumulate((len(record) + 16 for record in records), initial=12)
            some = [place for place, _ in zip(places, records, strict=False)]
            self._places += [(plain, place) for place in some]
            Path(damaged).write_bytes(Path(plain).read_bytes())
            for place in some[1::7]:
                flip_byte(damaged, place)
            first += size

    def flip(self, number: int) -> None:
        """Flips a bit in the payload of a plain record, which damages or mends it."""
        flip_byte(*self._places[number])


def flat(element: Any) -> list[int]:
    """The numbers in an element."""
    if isinstance(element, bytes):
        return [NUMBERS[element]] if element else []
    if isinstance(element, dict):
        element = tuple(element.values())
    if isinstance(element, (tuple, list)) or np.ndim(element) != 0:  # torch's tensors too
        return [number for part in element for number in flat(part)]
    return [] if int(element) == PADDING else [int(element)]


def number_of(record):
    """The number of an Example."""
    return int(tfw.parse_single_example(record, SPEC)["n"])


def drain(elements):
    """The values of elements up to their end or an error, and that error."""
    found = []
    try:
        for element in elements:
            found += np.ravel(element).tolist()
    except Exception as error:
        return found, error
    return found, None
