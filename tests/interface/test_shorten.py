"""Messages with their first parts: no more is decoded than the limits say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from helpers.view.hostile_records import entry, example, feature, field, hostile_records
from tfwire._interface.contents import Cut, Extent, cut_message, measure

RECORDS = hostile_records(50_000)
EVERYTHING = Extent(1 << 12, 1 << 60, 1 << 60)

kinds = (
    st.lists(st.binary(max_size=6), max_size=8),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8),
    st.lists(st.floats(width=32, allow_nan=False), max_size=8),
)
names = st.text(max_size=4)
contexts = st.dictionaries(names, st.one_of(*kinds), max_size=6)
lists = st.dictionaries(
    names, st.one_of(*(st.lists(kind, max_size=5) for kind in kinds)), max_size=4
)
limits = st.builds(Extent, st.integers(0, 8), st.integers(0, 40), st.integers(0, 200))


def plain(decoded):
    """Values as lists, with their kind."""

    def of(values):
        if isinstance(values, list) or values.dtype == object:
            return "string", list(values)
        return values.dtype, values.tolist()

    context, steps = decoded
    return (
        {name: of(values) for name, values in context.items()},
        {name: list(map(of, values)) for name, values in steps.items()},
    )


def is_prefix(part, whole):
    return part[0] == whole[0] and part[1] == whole[1][: len(part[1])]


@given(contexts, lists)
def test_without_limits_the_same_is_decoded(context, steps):
    message = tfw.encode_sequence_example(context, steps)
    found = cut_message(message, EVERYTHING)
    assert (0, {}) == (found.left_out, found.cuts)
    decoded, same = map(plain, map(tfw.decode_sequence_example, (message, found.message)))
    assert decoded == same


@given(contexts, lists, limits)
def test_limits_keep_a_prefix_of_everything(context, steps, most):
    message = tfw.encode_sequence_example(context, steps)
    found = cut_message(message, most)
    extent, all_of = measure(found.message), measure(message)
    assert extent.num_bytes <= most.num_bytes
    assert extent.objects <= max(most.objects, extent.features)
    assert found.left_out == all_of.features - extent.features
    kept, whole = (plain(tfw.decode_sequence_example(each)) for each in (found.message, message))
    for name, values in kept[0].items():
        cut = found.cuts.get((name, False), Cut(0))
        assert len(values[1]) + cut.values == len(whole[0][name][1])
        assert is_prefix(values, whole[0][name])
    for name, found_steps in kept[1].items():
        cut = found.cuts.get((name, True), Cut(0))
        assert len(found_steps) + cut.steps == len(whole[1][name])
        count, total = (sum(len(v[1]) for v in each) for each in (found_steps, whole[1][name]))
        assert count + cut.values == total
        assert all(map(is_prefix, found_steps, whole[1][name]))
        assert found_steps[:-1] == whole[1][name][: len(found_steps)][:-1]
    if most.holds(all_of):
        assert kept == whole


@pytest.mark.parametrize("name", RECORDS)
def test_hostile_messages_keep_to_limits(name):
    message, most = RECORDS[name], Extent(100, 1000, 20_000)
    try:
        extent = measure(message)
    except tfw.ParseError:
        with pytest.raises(tfw.ParseError, match="malformed"):
            cut_message(message, most)
        with pytest.raises(tfw.ParseError):
            tfw.decode_sequence_example(message)
        return
    found = cut_message(message, most)
    left = measure(found.message)
    assert len(found.message) <= len(message)
    assert left.objects <= 1000
    assert left.num_bytes <= 20_000
    assert extent.features == left.features + found.left_out
    assert found.left_out or found.cuts or most.holds(extent)


def test_what_of_a_kind_is_void_is_not_kept():
    message = example(entry(b"a", feature(1, field(1, b"x") * 5) + feature(3, field(1, b"\1\2"))))
    assert Extent(1, 1, 17) == measure(message)
    found = tfw.decode_example(cut_message(message, Extent(1, 1, 9)).message)
    assert np.array_equal([1], found["a"])
