"""Aligns two sequences of numbers, most of which are the same: which of one is which of the other.

Work is done by arrays: a loop of Python runs over what differs, never over what is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from tfwire._base.aliases import Array

_SHINGLES = (1, 64, 8)  # numbers that are unique together, where no single one is
_FEW_PAIRS = 1 << 14  # pairs that are compared one by one
_MOST_RUNS = 1 << 20  # of numbers in order; of more, no longest order is sought
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Alignment(NamedTuple):
    """How two sequences differ; arrays of places.

    Attributes:
        kept: Pairs of equal numbers in the same order: int64 of shape (2, n).
        moved: Pairs of equal numbers in another order.
        changed: Pairs of different numbers between the same two that are kept.
        missing: Of the first sequence alone.
        added: Of the second alone.
    """

    kept: Array
    moved: Array
    changed: Array
    missing: Array
    added: Array

    @property
    def is_shuffled(self) -> bool:
        """Whether most moved, and not together: which ones says nothing."""
        count = self.moved.shape[1]
        if count <= self.kept.shape[1]:
            return False
        num_runs = 1 + np.count_nonzero((np.diff(self.moved) != 1).any(axis=0))
        return bool(2 * num_runs > count)


def align(a: Array, b: Array) -> Alignment:
    """Aligns two arrays of integers."""
    kept = _in_order(a, b)
    left, right = _others(len(a), kept[0]), _others(len(b), kept[1])
    moved, left, right = _paired(a[left], b[right], left, right)
    # Between which of those that are kept each lies.
    gaps = [np.searchsorted(kept[0], left), np.searchsorted(kept[1], right)]
    if moved.size and left.size and right.size:
        _keep_apart(gaps, [np.searchsorted(kept[side], moved[side]) for side in (0, 1)])
    changed, missing, added = _paired(gaps[0], gaps[1], left, right)
    return Alignment(kept, moved, changed, missing, added)


def _keep_apart(gaps: list[Array], moved: list[Array]) -> None:
    """Gives places other keys in the two sequences where more moved than can be changed: what lies
    between the same two there does so by chance."""
    count = 1 + max(int(each.max()) for each in gaps + moved)
    few, more = (
        np.minimum(*(np.bincount(each, minlength=count) for each in pair)) for pair in (gaps, moved)
    )
    for side, keys in enumerate(gaps):
        keys[(more > few)[keys]] = count + side


def _others(count: int, places: Array) -> Array:
    """Where the other ones of ``count`` are."""
    left = np.ones(count, bool)
    left[places] = False
    return np.flatnonzero(left)


def _paired(a: Array, b: Array, left: Array, right: Array) -> tuple[Array, Array, Array]:
    """Pairs places whose keys are equal: the first with the first of that key, and so on.

    Args:
        a, b: Keys, of 0 or more.
        left, right: The places that they are of.

    Returns:
        The pairs, sorted by the first; what is left of both.
    """
    if not len(a) or not len(b):
        return np.empty((2, 0), np.int64), left, right
    most = max(len(a), len(b))
    order_a, order_b = (np.argsort(keys, kind="stable") for keys in (a, b))
    ranked_a, ranked_b = _ranked(a[order_a], most), _ranked(b[order_b], most)
    at = np.minimum(np.searchsorted(ranked_a, ranked_b), len(a) - 1)
    are_both = ranked_a[at] == ranked_b
    of_a, of_b = order_a[at[are_both]], order_b[are_both]
    order = np.argsort(of_a)
    of_a, of_b = of_a[order], of_b[order]
    pairs = np.stack([left[of_a], right[of_b]])
    return pairs, np.delete(left, of_a), np.delete(right, of_b)


def _ranked(keys: Array, most: int) -> Array:
    """Sorted keys, and how many equal ones are before each, as one number."""
    ranks = np.arange(len(keys), dtype=np.int64) - np.searchsorted(keys, keys)
    return keys.astype(np.int64) * most + ranks


# ---- What is in the same order ------------------------------------------------------------------


def _in_order(a: Array, b: Array) -> Array:
    """Pairs of places of equal numbers, both ascending."""
    ends = _same_ends(a, b)
    head, tail = ends
    found = [_diagonal(0, 0, head)]
    middle_a, middle_b = a[head : len(a) - tail], b[head : len(b) - tail]
    found.append(_Windows(middle_a, middle_b).pairs() + head)
    found.append(_diagonal(len(a) - tail, len(b) - tail, tail))
    return np.concatenate(found, axis=1)


def _diagonal(i: int, j: int, count: int) -> Array:
    return np.stack(
        [np.arange(i, i + count, dtype=np.int64), np.arange(j, j + count, dtype=np.int64)]
    )


def _same_ends(a: Array, b: Array) -> tuple[int, int]:
    """How many are the same at the beginning, and at the end of the others."""
    most = min(len(a), len(b))
    other = np.flatnonzero(a[:most] != b[:most])
    head = int(other[0]) if len(other) else most
    most -= head
    other = np.flatnonzero(a[len(a) - most :] != b[len(b) - most :])
    return head, most - 1 - int(other[-1]) if len(other) else most


class _Windows:
    """Two sequences, of which smaller and smaller parts are aligned, around what is unique in both.

    Patience sorting: B. Cohen, for Bazaar; anchored by runs instead of lines.
    """

    def __init__(self, a: Array, b: Array) -> None:
        self._a, self._b = a, b
        self._partner = np.full(len(a), -1, np.int64)
        # How many are in both, up to each.
        self._common_a = np.concatenate([[0], np.cumsum(np.isin(a, b), dtype=np.int64)])
        self._common_b = np.concatenate([[0], np.cumsum(np.isin(b, a), dtype=np.int64)])

    def pairs(self) -> Array:
        none = np.zeros(1, np.int64)
        waiting = self._worth(none, none + len(self._a), none, none + len(self._b))
        while waiting:
            i, i_end, j, j_end = waiting.pop()
            matched = self._matched(self._a[i:i_end], self._b[j:j_end]) + [[i], [j]]
            if not matched.shape[1]:
                continue
            self._partner[matched[0]] = matched[1]
            begins = np.concatenate([[[i], [j]], matched + 1], axis=1)
            ends = np.concatenate([matched, [[i_end], [j_end]]], axis=1)
            waiting += self._worth(begins[0], ends[0], begins[1], ends[1])
        found = np.flatnonzero(self._partner >= 0)
        return np.stack([found, self._partner[found]])

    def _worth(self, i: Array, i_end: Array, j: Array, j_end: Array) -> list[list[int]]:
        """Those windows whose sides may have something in common."""
        worth = self._common_a[i_end] > self._common_a[i]
        worth &= self._common_b[j_end] > self._common_b[j]
        found: list[list[int]] = np.stack([i, i_end, j, j_end], axis=1)[worth].tolist()
        return found

    def _matched(self, a: Array, b: Array) -> Array:
        head, tail = _same_ends(a, b)
        if head or tail:
            ends = _diagonal(len(a) - tail, len(b) - tail, tail)
            return np.concatenate([_diagonal(0, 0, head), ends], axis=1)
        are_few = len(a) * len(b) <= _FEW_PAIRS
        if are_few and set(a.tolist()).isdisjoint(b.tolist()):
            return np.empty((2, 0), np.int64)
        for width in _SHINGLES:
            unique = _anchors(_shingles(a, width), _shingles(b, width))
            if len(unique[0]):
                return _along(a, b, _longest_order(*unique))
        if are_few:
            blocks = SequenceMatcher(None, a.tolist(), b.tolist(), False).get_matching_blocks()
            return np.concatenate([_diagonal(*block) for block in blocks], axis=1)
        return np.empty((2, 0), np.int64)


def _shingles(keys: Array, width: int) -> Array:
    """A number for each ``width`` numbers in a row."""
    if width == 1 or len(keys) < width:
        return keys if width == 1 else keys[:0]
    found = keys.astype(np.uint64)
    for step in range(width.bit_length() - 1):
        apart = 1 << step
        found = (found[:-apart] * _MIX + found[apart:]) * _MIX
        found ^= found >> np.uint64(29)
    return found


def _anchors(a: Array, b: Array) -> tuple[Array, Array]:
    """The places of what is unique in both, by those in the first."""
    once = []
    for keys in (a, b):
        values, first, counts = np.unique(keys, return_index=True, return_counts=True)
        once.append((values[counts == 1], first[counts == 1]))
    (of_a, places_a), (of_b, places_b) = once
    _, i, j = np.intersect1d(of_a, of_b, assume_unique=True, return_indices=True)
    order = np.argsort(places_a[i])
    return places_a[i][order], places_b[j][order]


def _longest_order(i: Array, j: Array) -> Array:
    """Those pairs, sorted by the first place, whose second places ascend: as many as there can be.
    Pairs that follow each other in both are kept or left out together."""
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(i) != 1) | (np.diff(j) != 1)]))
    if not len(i) or (np.diff(j) > 0).all():
        return np.stack([i, j])
    if len(begins) > _MOST_RUNS:
        return np.empty((2, 0), np.int64)
    weights = np.diff(np.append(begins, len(i)))
    chosen = np.zeros(len(begins), bool)
    chosen[_heaviest(j[begins].tolist(), weights.tolist())] = True
    kept = np.repeat(chosen, weights)
    return np.stack([i[kept], j[kept]])


def _heaviest(places: list[int], weights: list[int]) -> list[int]:
    """The ascending subsequence of the largest weight."""
    ends: list[int] = []  # ascending, and so are the weights of the best sequences that end there
    best: list[int] = []
    last: list[int] = []
    before = [-1] * len(places)
    for number, (place, weight) in enumerate(zip(places, weights, strict=True)):
        at = bisect_left(ends, place)
        total = weight
        if at:
            before[number], total = last[at - 1], best[at - 1] + weight
        end = at
        while end < len(ends) and best[end] <= total:
            end += 1
        ends[at:end], best[at:end], last[at:end] = [place], [total], [number]
    found, number = [], last[-1]
    while number >= 0:
        found.append(number)
        number = before[number]
    return found[::-1]


def _along(a: Array, b: Array, anchors: Array) -> Array:
    """Anchors, and what is the same at the same distance after each, up to the next."""
    i, j = anchors
    ends = np.minimum(np.append(i[1:], len(a)) - i, np.append(j[1:], len(b)) - j)
    begins = np.cumsum(ends, dtype=np.int64) - ends
    steps = np.arange(int(ends.sum(dtype=np.int64)), dtype=np.int64) - np.repeat(begins, ends)
    of_a, of_b = np.repeat(i, ends) + steps, np.repeat(j, ends) + steps
    same = a[of_a] == b[of_b]
    return np.stack([of_a[same], of_b[same]])
