"""Batches whose dense columns are copied from the memory of C into a block of the caller's."""

import numpy as np
import pytest

import tfwire as tfw
from tfwire._interface.pipelines import (
    NumberedParser,
    PackedRows,
    PackingParser,
    in_memory,
    iterate,
    packing_batches,
)

COUNT = 3000
FEATURES = {
    "s": tfw.FixedLenFeature([], tfw.string),
    "n": tfw.FixedLenFeature([], tfw.int64),
    "v": tfw.VarLenFeature(tfw.int64),
    "x": tfw.FixedLenFeature([3], tfw.float32),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("packed") / "data"
    rows = (
        {"s": b"s" * (i % 5), "n": i, "v": [i] * (i % 3), "x": [i + 0.5, 1, 2]}
        for i in range(COUNT)
    )
    tfw.write_records(found, rows)
    return found


def unpacked(rows, offset=0):
    """The columns of PackedRows, from a block where they lie side by side."""
    columns, at, places = rows.columns, offset, []
    for dtype, shape in zip(columns.dtypes, columns.shapes, strict=True):
        places.append(at)
        at += rows.num_rows * int(np.prod(shape, dtype=int)) * dtype.itemsize
    block = np.full(at + 1, 0xA5, np.uint8)
    rows.pack(columns.places(places), block.ctypes.data, at)
    assert block[:offset].tolist() == [0xA5] * offset
    assert block[at] == 0xA5
    found = dict(rows.others)
    for key, dtype, shape, begin in zip(
        columns.dense, columns.dtypes, columns.shapes, places, strict=True
    ):
        count = rows.num_rows * int(np.prod(shape, dtype=int))
        values = np.frombuffer(block[begin : begin + count * dtype.itemsize].tobytes(), dtype)
        found[key] = values.reshape(rows.num_rows, *shape)
    return {key: found[key] for key in columns.keys}


def check_same(expected, found):
    assert list(expected) == list(found)
    for key, value in expected.items():
        if isinstance(value, tfw.SparseTensor):
            assert all(map(np.array_equal, value, found[key]))
        else:
            assert (value.dtype, value.tolist()) == (found[key].dtype, found[key].tolist())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["files", "shuffled", "shuffled in memory", "chosen"])
@pytest.mark.parametrize("features", [FEATURES, {"n": FEATURES["n"]}, {"s": FEATURES["s"]}])
def test_batches_are_those_of_the_parser(path, features, kind, threads):
    def dataset():
        found = tfw.TFRecordDataset(path, indexed=kind == "shuffled")
        if kind.startswith("shuffled"):
            found = found.shuffle(COUNT, seed=1)
        found = found.batch(64).parse_example(features, num_threads=threads)
        return found.skip(2).repeat(2).take(70).prefetch(2) if kind == "chosen" else found

    found = list(iterate(packing_batches(dataset()._stage)))
    for number, (expected, batch) in enumerate(zip(dataset(), found, strict=True)):
        if isinstance(batch, PackedRows):
            check_same(expected, unpacked(batch, number % 9))
        else:  # one thread parses objects
            assert (kind, threads) == ("shuffled in memory", 1)
            check_same(expected, batch)


def test_where_somebody_looks_batches_are_dicts(path):
    dataset = tfw.TFRecordDataset(path).batch(64).parse_example(FEATURES)
    for other in (dataset.map(lambda batch: batch["n"]), dataset.unbatch(), dataset.batch(2)):
        assert packing_batches(other._stage) is other._stage
    checked = {"sp": tfw.SparseFeature("v", "v", tfw.int64, COUNT)}  # columns must fit each other
    dataset = tfw.TFRecordDataset(path).batch(64).parse_example(checked)
    assert all(isinstance(batch, dict) for batch in iterate(packing_batches(dataset._stage)))


def test_batches_by_number(path):
    files, parser = tfw.TFRecordFiles([path]), tfw.Parser(FEATURES)
    numbered = NumberedParser(PackingParser.over(parser), files)
    records, numbers = in_memory(files), np.array([5, 0, 5, COUNT - 1])
    for given in (numbers, records[numbers]):
        check_same(parser.parse(files[numbers]), unpacked(numbered.parse(given)))
    for given in (numbers[:0], records[numbers[:0]]):
        check_same(parser.parse([]), numbered.parse(given))
    parser = tfw.Parser({"n": tfw.VarLenFeature(tfw.string)})
    wrong = NumberedParser(PackingParser.over(parser), files)
    for given in (numbers, records[numbers]):
        with pytest.raises(tfw.ParseError, match="record 0"):
            wrong.parse(given)


def test_columns_without_values_have_strides_of_whole_values(path):
    """torch takes no others."""
    files = tfw.TFRecordFiles([path])
    for dtype in (tfw.int64, tfw.float32, tfw.string):
        parser = tfw.Parser({"none": tfw.VarLenFeature(dtype)}, bytes_as="column")
        values = NumberedParser(parser, files).parse(np.array([3]))["none"].values
        values = values.data if dtype == tfw.string else values
        assert (0, 0) == (len(values), values.strides[0] % values.itemsize)


def test_what_does_not_fit_into_the_block_is_refused(path):
    dataset = tfw.TFRecordDataset(path).batch(64).parse_example({"n": FEATURES["n"]})
    rows = next(iterate(packing_batches(dataset._stage)))
    block = np.zeros(rows.num_rows * 8, np.uint8)
    for at, size in ((1, block.nbytes), (0, block.nbytes - 1), (block.nbytes, block.nbytes)):
        with pytest.raises(ValueError, match="do not fit into the block"):
            rows.pack(rows.columns.places([at]), block.ctypes.data, size)
    with pytest.raises(ValueError, match="no such rows"):
        rows._replace(first=COUNT).pack(rows.columns.places([0]), block.ctypes.data, block.nbytes)
