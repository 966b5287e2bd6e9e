"""How many elements a pipeline has, as far as TensorFlow tells."""

from __future__ import annotations

from tfwire._datasets import batches, prefetch, shuffle, stages
from tfwire._datasets.replayed import Replayed
from tfwire._datasets.stage import Stage

__all__ = ["INFINITE", "UNKNOWN", "cardinality"]

INFINITE, UNKNOWN = -1, -2

_ENDLESS = {"counter", "random", "repeated"}
_AS_MANY = {"cache", "concatenate", "enumerate", "scan", "snapshot", "window"}
_AS_MANY_STAGES = (
    batches.Batch,
    batches.Parse,
    prefetch.Prefetch,
    shuffle.Shuffle,
    stages.Map,
    stages.Shard,
)


def cardinality(stage: Stage) -> int:
    """The number of elements, INFINITE or UNKNOWN; nothing is read."""
    if stage.length is not None:
        return stage.length
    if isinstance(stage, stages.Zip):
        return _of_zip([cardinality(source) for source in stage.sources])
    if isinstance(stage, Replayed):
        below = [cardinality(source) for source in stage.sources]
        endless = stage.name in _ENDLESS or (stage.name in _AS_MANY and INFINITE in below)
        return INFINITE if endless else UNKNOWN
    if stage.source is None:
        return UNKNOWN
    return _of_derived(stage, cardinality(stage.source))


def _of_zip(found: list[int]) -> int:
    if UNKNOWN in found:
        return UNKNOWN
    return min((count for count in found if count != INFINITE), default=INFINITE)


def _of_derived(stage: Stage, below: int) -> int:
    if isinstance(stage, stages.Repeat):
        if stage.count is None:
            return below and INFINITE
        return below if stage.count else 0
    if isinstance(stage, stages.Take) and stage.count >= 0:
        return stage.count if below == INFINITE else UNKNOWN
    keeps = isinstance(stage, (*_AS_MANY_STAGES, stages.Take, stages.Skip))
    return INFINITE if keeps and below == INFINITE else UNKNOWN
