"""Streams and batches by several threads: the same as by one, over files of several ranges."""

import os

import pytest

import tfwire as tfw
from helpers.arrow.structs import Stream, damage, rows_of_batch, written
from tfwire.arrow import open_reader

FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string, ""),
    "tags": tfw.VarLenFeature(tfw.string),
    "xs": tfw.VarLenFeature(tfw.float32),
}
NUM_ROWS = 600
LATE = 580  # in the last range of the file


def row_of(number):
    """What nobody asks for makes a file of several ranges."""
    row = {"n": number, "pad": b"\xff" * 6000, "xs": [0.5] * (number % 4)}
    if number % 5:
        row["tags"] = ["é"] * (number % 3)
    return row if number % 7 else row | {"name": str(number)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return written(tmp_path_factory.mktemp("threads"), [row_of(i) for i in range(NUM_ROWS)])


def outcome(batches):
    rows, sizes = [], []
    try:
        for batch in batches:
            rows += batch
            sizes.append(len(batch))
    except Exception as error:
        return rows, sizes, str(error)
    return rows, sizes, None


def by_threads(paths, num_threads, **options):
    """What a stream and what iterating gives."""
    reader = open_reader(paths, FEATURES, num_threads=num_threads, **options)
    stream = Stream(reader)
    found = outcome(stream)
    stream.close()
    assert found == outcome(rows_of_batch(batch) for batch in reader)
    return found


@pytest.mark.parametrize("batch_size", [64, 700])
def test_the_same_rows_in_the_same_batches(path, batch_size):
    options = {"batch_size": batch_size, "with_positions": batch_size == 700}
    expected = by_threads([path, path], 1, **options)
    assert expected[1] == [
        min(batch_size, 2 * NUM_ROWS - i) for i in range(0, 2 * NUM_ROWS, batch_size)
    ]
    for num_threads in (2, 3, 8):
        assert by_threads([path, path], num_threads, **options) == expected


@pytest.mark.parametrize("kind", ["damage", "misfit", "utf-8", "cut"])
def test_the_same_error(tmp_path, path, kind):
    rows = [row_of(i) for i in range(NUM_ROWS)]
    if kind == "misfit":
        rows[LATE]["n"] = 0.5
    if kind == "utf-8":
        rows[LATE]["name"] = b"\xff"
    wrong = written(tmp_path, rows)
    if kind == "damage":
        damage(wrong, LATE)
    if kind == "cut":
        os.truncate(wrong, os.path.getsize(wrong) - 1)
    expected = by_threads([path, wrong, path], 1, batch_size=500, binary_as="string")
    assert len(expected[0]) == NUM_ROWS + (NUM_ROWS - 1 if kind == "cut" else LATE)
    assert wrong in expected[2]
    for num_threads in (2, 8):
        found = by_threads([path, wrong, path], num_threads, batch_size=500, binary_as="string")
        assert found == expected
