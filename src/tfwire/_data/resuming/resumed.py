"""The stage Resumed: a pass that goes on from states of another number of shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from tfwire._data.indexed_records import RULES
from tfwire._data.resuming.positions import Left, advanced
from tfwire._data.stages import Cursor, Stage, Through
from tfwire._data.state_checks import COUNT, RESUMED, check_state


class Resumed(Stage):
    """A stage, of which the pass of one epoch gives what passes over its shards have left.

    A position of that pass holds what it began with, so that it can be divided again:
    ``{"resumed": start, "shares": its own, "at": the position in that}``. A start is
    ``{"of": the start of those passes, or None, "stages": how many the whole has, "places": for
    each shard [its shares, its position, how many elements after that were given]}``. Shares are
    what the whole is divided by, one after the other: a list of [how many shards, which of them, by
    which rule].

    Args:
        whole: The stage whose shards the states are of.
        epoch: That of the states.
        start: What the pass begins with.
        shares: Which share of it this is.
    """

    redraws = True  # another epoch is another pass

    def __init__(
        self, whole: Stage, epoch: int, start: dict[str, Any], shares: Sequence[list[Any]] = ()
    ) -> None:
        self.whole = whole
        self.epoch = self._next_epoch = epoch
        self._start = start
        self.shares = shares
        self._dividing = _dividing(shares)
        self.later = _divided(whole, shares)
        self.endless, self.spec = self.later.endless, self.later.spec
        self.quiet, self.passes_errors = self.later.quiet, self.later.passes_errors
        self.seeded = self.later.seeded

    @property
    def next_epoch(self) -> int:
        return self._next_epoch

    @next_epoch.setter
    def next_epoch(self, epoch: int) -> None:
        self._next_epoch = epoch
        if self.later.redraws:
            self.later.next_epoch = epoch

    @property
    def batched(self) -> bool:
        return self.later.batched

    def over(self, whole: Stage) -> Resumed:
        """The same of another stage."""
        return self._with(whole, self.shares)

    def sharded(self, num_shards: int, index: int, rule: str) -> Resumed:
        return self._with(self.whole, [*self.shares, [num_shards, index, rule]])

    def apart(self) -> Resumed:
        return self.over(self.whole.apart())

    def _with(self, whole: Stage, shares: Sequence[list[Any]]) -> Resumed:
        found = Resumed(whole, self.epoch, self._start, shares)
        found._next_epoch = self._next_epoch
        return found

    def chain(self) -> Iterator[Stage]:
        yield self  # with the description of the same pipeline, whose states it has
        yield from islice(self.later.chain(), 1, None)

    def describe(self) -> str:
        return self.later.describe()

    def origin(self, epoch: str, place: int) -> list[int]:
        return self.later.origin(epoch, place)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        if is_resumed(at):
            _check(at)
            if at["shares"] != self._dividing:
                raise ValueError(f"the state is of shard {at['shares']}, not {self._dividing}")
            return self._open(epoch, at["resumed"], at["at"], 0)
        if "." in epoch or epoch == "cache":
            self.next_epoch -= 1  # no pass has begun
            raise ValueError(
                "repeat and cache after resume would lose the states, which are of one pass: "
                "iterate once for each epoch instead"
            )
        if at is not None or epoch != str(self.epoch):
            return self.later.open(epoch, at)
        start = self._start
        for shares, place, given in start["places"]:
            if _dividing(shares) == self._dividing:  # as many shards as before
                return self._open(epoch, start["of"], place, given)
        return self._open(epoch, start, None, 0)

    def _open(self, epoch: str, start: Any, at: Any, given: int) -> Cursor:
        stage = _divided(self._left(epoch, start), self._dividing)
        cursor = advanced(stage.open(epoch, at), given, exactly=False)  # a last batch is short
        return cursor if start is None else _ResumedCursor(cursor, start, self._dividing)

    def _left(self, epoch: str, start: Any) -> Stage:
        """What is left for all shards of a pass that begins with this."""
        if start is None:
            return self.whole
        before = self._left(epoch, start["of"])
        passes = [
            Left(_divided(before, _dividing(shares)), at, given)
            for shares, at, given in start["places"]
        ]
        found: Stage = passes[0].stage.left(passes, epoch)
        return found


class _ResumedCursor(Through):
    def __init__(self, below: Cursor, start: Any, shares: Sequence[list[Any]]) -> None:
        super().__init__(below)
        self._start = start
        self.shares = shares

    def take(self, count: int) -> list[Any]:
        return self._below.take(count)

    def snapshot(self) -> Any:
        return {"resumed": self._start, "shares": self.shares, "at": self._below.snapshot()}


def is_resumed(at: Any) -> bool:
    """True for a position of a pass that began with states of several shards."""
    return isinstance(at, dict) and RESUMED in at


def _divided(stage: Stage, shares: Iterable[list[Any]]) -> Stage:
    for num_shards, index, rule in shares:
        stage = stage.sharded(num_shards, index, rule)
    return stage


def _dividing(shares: Iterable[list[Any]]) -> list[list[Any]]:
    """Those of shares that divide something."""
    return [share for share in shares if share[0] > 1]


def _check(at: Any) -> None:
    """Checks such a position, but not the positions in it.

    Raises:
        ValueError: It is damaged.
    """
    check_state(at, {"resumed": dict, "shares": list, "at": object})
    _check_shares(at["shares"])
    start = at["resumed"]
    while start is not None:
        check_state(start, {"of": None, "stages": COUNT, "places": {object}})
        check_state(len(start["places"]), range(1, 1 << 63))
        for place in start["places"]:
            check_state(place, [list, object, COUNT])
            _check_shares(place[0])
        start = start["of"]


def _check_shares(shares: list[Any]) -> None:
    for share in shares:
        check_state(share, [range(1, 1 << 63), COUNT, str])
        if share[1] >= share[0] or share[2] not in RULES:
            raise ValueError("the state is damaged: there is no such shard")


# ---- States of all shards -----------------------------------------------------------------------


def iterator_states(saved: Any) -> Iterator[tuple[Any, int]]:
    """The states of iterators in what loaders saved, and how many more elements they gave."""
    if isinstance(saved, (list, tuple)):
        for part in saved:
            yield from iterator_states(part)
    elif isinstance(saved, dict):
        if "pipeline" in saved:
            yield saved, 0
            return
        if steps := saved.get("_steps_since_snapshot"):  # of a StatefulDataLoader
            raise ValueError(
                f"the state was saved {steps} batches after a snapshot, and does not say by which "
                "workers: use snapshot_every_n_steps=1"
            )
        more = 0
        if saved.keys() == {"version", "of", "at", "batches"}:  # of a ThreadLoader
            more = saved["batches"] * (saved["of"].get("batch_size") or 1)
        for part in saved.values():
            yield from ((state, given + more) for state, given in iterator_states(part))


def resume_shards(whole: Stage, states: Sequence[dict[str, Any]], hosts: int) -> Resumed:
    """A stage that goes on where passes over all its shards were.

    Args:
        whole: The stage.
        states: Of iterators over its shards, in their order, each checked on its own.
        hosts: How many hosts saved them, each as many.

    Raises:
        ValueError: They are not those of all shards in one pass.
    """
    if isinstance(whole, Resumed) and not whole.shares:
        whole = whole.whole  # `dataset = dataset.resume(states)`, again and again
    for number, state in enumerate(states):
        if state["epoch"] != states[0]["epoch"]:
            raise ValueError(
                f"states[{number}] is of epoch {state['epoch']}, states[0] of epoch "
                f"{states[0]['epoch']}: all must be of the same"
            )
    start, *others = (_start_of(state["at"], number) for number, state in enumerate(states))
    for number, other in enumerate(others, 1):
        if other != start:
            raise ValueError(f"states[{number}] went on from other states than states[0] did")
    own = None if start is None else [state["at"]["shares"] for state in states]
    divisions = _divisions(whole, [state["pipeline"] for state in states], hosts, own)
    stages = sum(1 for _ in whole.chain())
    _check_stages(whole, stages, start)
    places = []
    for state, shares in zip(states, divisions, strict=True):
        at = state["at"] if start is None else state["at"]["at"]
        places.append([shares, at, state["given"]])
    return Resumed(whole, states[0]["epoch"], {"of": start, "stages": stages, "places": places})


def _check_stages(whole: Stage, stages: int, start: Any) -> None:
    """Raises ValueError if positions count elements of a stage below, not of this one."""
    below = stages if start is None else start["stages"]
    for stage in islice(whole.chain(), max(stages - below, 0)):
        if not stage.one_to_one:
            raise ValueError(
                f"the states are of a pass with {stage.describe()} after resume, which cannot be "
                "resumed by other shards: put it before resume"
            )
    if below > stages:
        raise ValueError("the state is damaged: it is of another number of stages")


def _start_of(at: Any, number: int) -> Any:
    if not is_resumed(at):
        return None
    try:
        _check(at)
    except ValueError as error:
        raise ValueError(f"states[{number}]: {error}") from None
    return at["resumed"]


def _divisions(whole: Stage, pipelines: list[list[str]], hosts: int, own: Any) -> Any:
    """The shares whose iterators have these descriptions.

    Args:
        own: Those that the states say, if they do: of the same numbers.

    Raises:
        ValueError: There are none; the message says which state is not that of its shard.
    """
    count = len(pipelines)
    ways: list[Any] = [[[]]] if count == 1 else []
    ways += [[[[count, index, rule]] for index in range(count)] for rule in RULES]
    if count % hosts == 0:  # workers divide the share of their host
        each = count // hosts
        ways.append([[[hosts, i // each, "even"], [each, i % each, "even"]] for i in range(count)])
    first: list[list[str]] = []
    if own is not None:
        ways = [way for way in ways if _numbers(way) == _numbers(own)]
        if not ways:
            raise ValueError(f"the states are not of all shards, in their order, but of {own}")
    for way in ways:
        found: list[list[str]] = []
        with suppress(ValueError):  # a rule that the source does not know
            found = [_described(_divided(whole, shares)) for shares in way]
        if found == pipelines:
            return way if own is None else own
        first = first or found
    raise ValueError(_mismatch(pipelines, first))


def _numbers(way: list[Any]) -> list[Any]:
    return [[share[:2] for share in _dividing(shares)] for shares in way]


def _described(stage: Stage) -> list[str]:
    return [below.describe() for below in stage.chain()]


def _mismatch(pipelines: list[list[str]], shards: list[list[str]]) -> str:
    """Says which state is not that of its shard."""
    count = len(pipelines)
    number = next(i for i in range(count) if pipelines[i] != shards[i])
    same = [i for i in range(count) if shards[i] == pipelines[number]]
    if not same:
        return (
            f"states[{number}] is not of shard {number} of {count} of this pipeline, or not all "
            f"states are there: it is of {pipelines[number]}, and that shard is {shards[number]}"
        )
    if pipelines[same[0]] == shards[same[0]]:
        return (
            f"states[{number}] and states[{same[0]}] are both of shard {same[0]} of {count}, and "
            f"none is of shard {number}"
        )
    return (
        f"states[{number}] is of shard {same[0]} of {count}: states must be in the order of their "
        "shards"
    )
