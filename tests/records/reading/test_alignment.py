"""Two sequences are aligned as a simple model says."""

from collections import Counter
from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from tfwire._records.reading import alignment, compare_files
from tfwire._records.reading.alignment import align


def aligned(a, b):
    found = align(np.array(a, np.int64), np.array(b, np.int64))
    check(list(a), list(b), found)
    return found


def check(a, b, found):
    """What holds for every alignment."""
    kept, moved, changed = found.kept.tolist(), found.moved.tolist(), found.changed.tolist()
    for pairs in (kept, moved, changed):
        assert pairs[0] == sorted(pairs[0])
    assert kept[1] == sorted(kept[1])
    for i, j in zip(kept[0] + moved[0], kept[1] + moved[1], strict=True):
        assert a[i] == b[j]
    # Every place occurs once.
    left = sorted([*kept[0], *moved[0], *changed[0], *found.missing.tolist()])
    right = sorted([*kept[1], *moved[1], *changed[1], *found.added.tolist()])
    assert (left, right) == (list(range(len(a))), list(range(len(b))))
    # As multisets they are what they are: nothing that both have is missing or added.
    only_a = Counter(a[i] for i in changed[0] + found.missing.tolist())
    only_b = Counter(b[j] for j in changed[1] + found.added.tolist())
    assert (Counter(a) - Counter(b), Counter(b) - Counter(a)) == (only_a, only_b)
    # Changed ones lie between the same two that are kept.
    for i, j in zip(*changed, strict=True):
        assert sum(k < i for k in kept[0]) == sum(k < j for k in kept[1])


NUMBERS = st.lists(st.integers(0, 5), max_size=30)


@settings(max_examples=300)
@given(NUMBERS, NUMBERS)
def test_any_two(a, b):
    aligned(a, b)


@settings(max_examples=200)
@given(st.permutations(range(12)), st.integers(0, 2**12 - 1))
def test_unique_numbers_keep_the_longest_order(order, dropped):
    """The most that can be kept: the longest ascending subsequence."""
    order = [number for number in order if not dropped >> number & 1]
    best = [0] * (len(order) + 1)
    for at, number in enumerate(order):
        best[at] = 1 + max((best[k] for k in range(at) if order[k] < number), default=0)
    assert max(best) == aligned(range(12), order).kept.shape[1]


@st.composite
def edits(draw):
    """A sequence, and the same after some were changed, removed and inserted, all of them new."""
    size = draw(st.integers(0, 300))
    a = list(range(size))
    b, new, counts = [], 10_000, Counter()
    for number in a:
        what = draw(st.sampled_from(["same"] * 30 + ["changed", "missing", "added"]))
        counts[what] += 1
        if what == "added":
            new += 1
            b += [new]
        if what == "changed":
            new += 1
            b += [new]
        elif what != "missing":
            b += [number]
    return a, b, counts


@settings(max_examples=150)
@given(edits())
def test_edits_are_found(some):
    a, b, counts = some
    found = aligned(a, b)
    least = counts["changed"] + max(counts["missing"], counts["added"])
    kept = len(a) - counts["changed"] - counts["missing"]
    assert 0 == found.moved.shape[1]
    assert kept == found.kept.shape[1]
    assert found.changed.shape[1] + max(len(found.missing), len(found.added)) <= least + min(
        counts["missing"], counts["added"]
    )


def test_examples():
    found = aligned([1, 2, 3, 4, 5], [1, 9, 3, 5, 6])
    assert [[1], [1]] == found.changed.tolist()
    assert ([3], [4]) == (found.missing.tolist(), found.added.tolist())
    found = aligned([1, 2, 3, 4], [4, 1, 2, 3])
    assert [[3], [0]] == found.moved.tolist()
    assert 4 == aligned([7, 7, 7, 7], [7, 7, 7, 7, 7]).kept.shape[1]
    # Of repeated numbers the right one is missing.
    assert [0] == aligned([0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3]).missing.tolist()


def test_few_numbers_that_repeat_in_a_long_sequence():
    """None is unique, but several in a row are."""
    a = np.random.default_rng(1).integers(0, 3, 50_000)
    b = np.delete(a, [10_000, 30_000, 40_001])
    found = align(a, b)
    assert (3, 0, 0) == (len(found.missing), len(found.added), found.moved.shape[1])


def test_what_lies_in_the_same_gap_of_a_shuffle_is_not_changed():
    a = np.arange(1000)
    b = np.random.default_rng(1).permutation(np.append(a[7:], [-1, -2]))
    found = aligned(a.tolist(), b.tolist())
    assert found.is_shuffled
    assert (0, 7, 2) == (found.changed.size, len(found.missing), len(found.added))
    # What moved together, or is not most, is no shuffle; beside it some may be changed.
    assert not aligned(range(40), [*range(20, 40), *range(10, 20), *range(10)]).is_shuffled
    assert not aligned([1, 2, 3, 4], [2, 1, 3, 4]).is_shuffled
    assert [[1], [1]] == aligned([1, 2, 3, 4, 5], [1, 9, 5, 3, 4]).changed.tolist()


def test_lengths_and_checksums_tell_equal_hashes_apart(tmp_path, monkeypatch):
    names = [str(tmp_path / name) for name in "ab"]
    for skipped, name in enumerate(names):
        tfw.write_records(name, [b"%d" % i * i for i in range(skipped, 20)])
    monkeypatch.setattr(compare_files, "_hashes", lambda batch, _: np.zeros(batch.count, np.uint64))
    found = compare_files.compare_files(names[:1], names[1:], "auto", lambda *_: None, 1).alignment
    assert ([0], 19, 0) == (found.missing.tolist(), found.kept.shape[1], len(found.added))


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_another_order(monkeypatch, most):
    monkeypatch.setattr(alignment, "_MOST_RUNS", most)
    a = np.arange(3000)
    b = np.random.default_rng(1).permutation(a)
    found = aligned(a.tolist(), b.tolist())
    assert not found.changed.size
    assert not found.missing.size
    longest = found.kept.shape[1]
    assert longest == (0 if most == 0 else longest)
    if most:
        matcher = SequenceMatcher(None, a.tolist(), b.tolist(), False)
        assert longest >= sum(block.size for block in matcher.get_matching_blocks())
