"""Columns of lists in lists, through tables of pyarrow, polars and pandas and files of Parquet."""

from random import Random

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfwire as tfw
from tfwire.arrow import open_reader

RAGGED = tfw.RaggedFeature
VALUES = {
    "int64": [0, -5, 2**40],
    "float32": [0.5, -1.25, 3.0],
    "string": [b"a", b"", b"longer than a view"],
}
PARTITIONS = ["RowLengths", "RowSplits", "RowStarts", "RowLimits"]


def any_feature(random, name):
    """A specification of values, and how many lists it has in a record or a step."""
    dtype = random.choice(sorted(VALUES))
    if random.random() < 0.3:
        return tfw.VarLenFeature(dtype), 1
    kinds = random.choices(PARTITIONS, k=random.randrange(3))
    partitions = [getattr(RAGGED, kind)(f"{name}/{i}") for i, kind in enumerate(kinds)]
    key = random.choice([None, f"{name}/values"])
    return RAGGED(dtype, key, partitions), 1 + len(partitions)


def any_rows(random, values, depth):
    if depth == 0:
        return random.choice(values)
    return [any_rows(random, values, depth - 1) for _ in range(random.randrange(4))]


def any_column(random, feature, depth, is_list, count):
    """Records of a feature or a feature list, of which some are missing, and some steps null."""
    values = VALUES[feature.dtype if isinstance(feature.dtype, str) else feature.dtype.name]

    def record():
        if not is_list:
            return any_rows(random, values, depth)
        steps = [any_rows(random, values, depth) for _ in range(random.randrange(4))]
        return [None if random.random() < 0.2 else step for step in steps]

    return [None if random.random() < 0.2 else record() for _ in range(count)]


@pytest.mark.parametrize("seed", range(40))
def test_tables_come_back(tmp_path, seed):
    random = Random(seed)
    parts, columns = ({}, {}), {}
    for name in "abc"[: random.randrange(1, 4)]:
        is_list = random.random() < 0.5
        parts[is_list][name], depth = any_feature(random, name)
        columns[name] = any_column(random, parts[is_list][name], depth, is_list, 20)
    features = parts if parts[1] else parts[0]
    records = tfw.encode_columns(columns, features=features)
    tfw.write_records(tmp_path / "a", records)
    for size in (1, 7, 100):
        assert tfw.encode_columns(open_reader(tmp_path / "a", features, batch_size=size)) == records
    table = pa.table(open_reader(tmp_path / "a", features))
    assert {name: table[name].to_pylist() for name in columns} == columns
    pq.write_table(table, tmp_path / "a.parquet")
    pieces = pa.concat_tables(table.slice(i, 3) for i in range(0, 20, 3))
    for said in (table, pieces, pq.read_table(tmp_path / "a.parquet")):
        assert tfw.encode_columns(said) == records
    for other in (pl.DataFrame(table), table.to_pandas(), {name: table[name] for name in columns}):
        assert tfw.encode_columns(other, features=features) == records


def test_sparse_features_of_tables_are_written(tmp_path):
    features = {
        "x": tfw.SparseFeature("at", "value", "float32", 10),
        "y": tfw.SparseFeature(["row", "column"], "text", "string", [5, 5]),
    }
    rows = [
        {"at": [1, 5], "value": [1.0, 2.0]},
        {"row": [1], "column": [2], "text": ["a"]},
    ]
    expected = tfw.encode_examples(rows)
    tfw.write_records(tmp_path / "a", expected)
    made = pa.table(open_reader(tmp_path / "a", features))
    frame = pl.from_arrow(made)
    assert expected == tfw.encode_columns(made)
    assert expected[1:] == tfw.encode_columns(made.slice(1))
    for columns in (
        frame,
        made.to_pandas(),
        {name: made[name] for name in made.column_names},
        {name: frame[name] for name in frame.columns},
    ):
        assert expected == tfw.encode_columns(columns, features=features)
    assert expected[::-1] == tfw.encode_columns(frame[::-1], features=features)
    with pytest.raises(TypeError, match=r"a struct cannot be a feature; .* give features"):
        tfw.encode_columns(frame)
