"""Columns do not depend on the order of the keys in the messages."""

import numpy as np
import pytest

import tfwire as tfw
from tfwire import FixedLenFeature, VarLenFeature

NAMES = {
    "numbered": "c_{:02}",
    "enclosed": "user_{:03}_embedding_id",
    "colliding": "{:02}" + "_and_more_bytes_than_a_key_is_guessed_by" * 2,
    "of all lengths": "{:x<{}}",
}


def name_of(naming, i):
    return NAMES[naming].format(i, 3 + i % 60)


def columns_of(rng, naming, width, count):
    """Floats, int64s, strings, and lists of two numbers and of forty, in turn."""
    made = {}
    for i in range(width):
        number = rng.integers(-(2**62), 2**62, count) >> rng.integers(0, 62, count)
        made[name_of(naming, i)] = (
            number,
            number.astype(np.float32),
            [b"%d" % n for n in number],
            number[:, None] + [0, 1],
            np.repeat(number[:, None], 40, axis=1).astype(np.float32),
        )[i % 7 if i % 7 < 5 else 0]
    return made


def shuffled(rng, columns, count):
    """The messages, each with its keys in an order of its own; some keys twice, in some."""
    messages = []
    for row in range(count):
        entries = [(name, column[row]) for name, column in columns.items()]
        order = rng.permutation(len(entries))
        message = tfw.encode_example({entries[i][0]: entries[i][1] for i in order})
        if row % 5 == 4:  # concatenated messages are merged: of a key, the last entry counts
            again = rng.permutation(len(entries))[: len(entries) // 3 + 1]
            others = dict(entries[i] for i in again)
            message = tfw.encode_example(others) + message
        messages.append(message)
    return messages


def spec_of(columns, names):
    dtypes = {"f": tfw.float32, "i": tfw.int64}
    return {
        name: VarLenFeature(tfw.string)
        if isinstance(columns[name], list)
        else FixedLenFeature(columns[name].shape[1:], dtypes[columns[name].dtype.kind])
        for name in names
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, column in found.items():
        theirs = expected[name]
        if hasattr(column, "indices"):
            np.testing.assert_array_equal(column.indices, theirs.indices)
            column, theirs = column.values, theirs.values
        np.testing.assert_array_equal(column, theirs)


@pytest.mark.parametrize("naming", NAMES)
@pytest.mark.parametrize("width", [1, 2, 7, 33, 40, 300])
def test_columns_do_not_depend_on_the_order_of_keys(tmp_path, naming, width):
    rng, count = np.random.default_rng(width), 20 if width < 50 else 6
    columns = columns_of(rng, naming, width, count)
    ordered = tfw.encode_columns(columns)
    messages = shuffled(rng, columns, count)
    path = tmp_path / "shuffled.tfrecord"
    tfw.write_records(path, messages)
    for names in (list(columns), list(columns)[:: 3 if width > 3 else 1]):
        parser = tfw.Parser(spec_of(columns, names))
        expected = parser.parse(ordered)
        assert_same(parser.parse(messages), expected)
        (batch,) = parser.parse_file(path, batch_size=count)
        assert_same(batch, expected)


def test_of_a_key_in_any_order_the_last_entry_counts():
    rng = np.random.default_rng(3)
    names = [f"c_{i:02}" for i in range(40)]
    spec = {name: FixedLenFeature([], tfw.int64) for name in names}
    for _ in range(20):
        early, late = rng.permutation(40), rng.permutation(40)
        message = tfw.encode_example({names[i]: 1000 + i for i in early})
        message += tfw.encode_example({names[i]: i for i in late})
        found = tfw.Parser(spec).parse([message])
        assert [int(found[name][0]) for name in names] == list(range(40))
