"""How much inflating a reader asks for."""

from __future__ import annotations

from collections import Counter
from typing import Any


class CountedZlib:
    """zlib or isal, or an inflater of them: how often inflaters are made, copied and called, and
    how many bytes they are given or give back."""

    def __init__(self, work: Counter[str], inner: Any) -> None:
        self.work, self._inner = work, inner

    def decompressobj(self, **options):
        self.work["calls"] += 1
        return CountedZlib(self.work, self._inner.decompressobj(**options))

    def copy(self):
        self.work["calls"] += 1
        return CountedZlib(self.work, self._inner.copy())

    def decompress(self, data, *limit):
        self.work["calls"] += 1
        self.work["bytes"] += len(data)
        return self._inner.decompress(data, *limit)

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if name in ("unused_data", "unconsumed_tail"):  # they are copies
            self.work["bytes"] += len(found)
        return found
