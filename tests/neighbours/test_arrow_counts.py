"""How many rows libraries find, by ways that need no column: such rows are easily lost."""

import daft
import dask.dataframe
import duckdb
import nanoarrow
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

import tfwire as tfw
from helpers.records.counted_files import (
    CASES,
    COUNT,
    FEATURES,
    expected_count,
    write_counted_files,
)
from tfwire.arrow import open_reader, read_table
from tfwire.polars import scan_tfrecord

# Of damage that is left out.
pytestmark = pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return write_counted_files(tmp_path_factory.mktemp("counted"))


def query(sql, table):
    with duckdb.connect() as connection:
        connection.register("t", table)
        return connection.execute(sql).fetchone()[0]


def lazy(way):
    """A way for a LazyFrame, by both engines of polars, with batches of any size."""

    def count(paths, features, **options):
        frames = [
            way(scan_tfrecord(paths, features, batch_size=size, **options)).collect(engine=engine)
            for engine in ("in-memory", "streaming")
            for size in (7, 65536)
        ]
        [number] = {frame.item() for frame in frames}
        return number

    return count


def stream(paths, features, **options):
    return pa.RecordBatchReader.from_stream(open_reader(paths, features, batch_size=64, **options))


TWO = pl.LazyFrame({"two": [1, 2]})

# Ways that need some column, or can do without one.
WAYS = {
    "polars len": lazy(lambda frame: frame.select(pl.len())),
    "polars numbers": lazy(lambda frame: frame.with_row_index().select(pl.col("index").len())),
    "polars range": lazy(lambda frame: frame.select(pl.int_range(pl.len()).len())),
    "polars cross join": lazy(
        lambda frame: frame.join(TWO, how="cross").select(pl.col("two").len() // 2)
    ),
    "polars twice": lazy(lambda frame: pl.concat([frame, frame]).select(pl.len() // 2)),
    "polars eager": lambda *a, **o: pl.DataFrame(open_reader(*a, **o)).height,
    "pyarrow": lambda *a, **o: read_table(*a, **o).num_rows,
    "pyarrow stream": lambda *a, **o: stream(*a, **o).read_all().num_rows,
    "pyarrow scanner": lambda *a, **o: dataset.Scanner.from_batches(stream(*a, **o)).count_rows(),
    "pyarrow scanner, no column": lambda *a, **o: (
        dataset.Scanner.from_batches(stream(*a, **o), columns=[]).to_table().num_rows
    ),
    "pandas": lambda *a, **o: len(read_table(*a, **o).to_pandas()),
    "pandas stream": lambda *a, **o: len(pd.DataFrame.from_arrow(open_reader(*a, **o))),
    "nanoarrow": lambda *a, **o: sum(map(len, nanoarrow.ArrayStream(open_reader(*a, **o)))),
    "batches": lambda *a, **o: sum(batch.num_rows for batch in open_reader(*a, **o)),
}
# Ways that need a column, or say so.
WAYS_OF_COLUMNS = {
    "duckdb": lambda *a, **o: query("select count(*) from t", open_reader(*a, **o)),
    "duckdb, no column": lambda *a, **o: query(
        "select count(*) from (select 1 from t)", open_reader(*a, **o)
    ),
    "duckdb, polars": lambda *a, **o: query("select count(*) from t", scan_tfrecord(*a, **o)),
    "daft": lambda *a, **o: daft.from_arrow(read_table(*a, **o)).count_rows(),
    "dask": lambda paths, features, **o: len(
        dask.dataframe.from_map(lambda path: read_table(path, features, **o).to_pandas(), paths)
    ),
    "dask, no column": lambda paths, features, **o: len(
        dask.dataframe.from_map(
            lambda path: read_table(path, features, columns=[], **o).to_pandas(), paths
        )
    ),
}


@pytest.mark.parametrize("way", [*WAYS, *WAYS_OF_COLUMNS])
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_rows_are_counted(counted, name, policy, way):
    count = WAYS.get(way) or WAYS_OF_COLUMNS[way]
    expected = expected_count(name, policy)
    for features in (FEATURES, {}) if way in WAYS else (FEATURES,):
        if expected is None:
            with pytest.raises(Exception, match="at byte"):
                count(counted[name], features, on_corrupt=policy)
        else:
            assert expected == count(counted[name], features, on_corrupt=policy), features


@pytest.mark.parametrize("name", ["plain", "gzip", "empty", "several"])
def test_rows_without_columns_stay(counted, name):
    paths, expected = counted[name], expected_count(name, "raise")
    frame = scan_tfrecord(paths, FEATURES, batch_size=7)
    assert expected == frame.drop("i", "name").collect().height
    assert min(9, expected) == frame.drop("i", "name").head(9).collect().height
    assert (
        list(range(expected)) == frame.with_row_index().select("index").collect()["index"].to_list()
    )
    assert expected == len(stream(paths, FEATURES, columns=[]).read_all().to_pandas())
    assert expected == pl.DataFrame(open_reader(paths, FEATURES, columns=[], batch_size=7)).height


@pytest.mark.parametrize("make", [pa.Table.from_pydict, pd.DataFrame, pl.DataFrame])
def test_rows_without_columns_are_encoded(make):
    columns = {"i": list(range(COUNT))}
    table = make(columns)
    narrow = table.drop("i") if isinstance(table, pl.DataFrame) else table
    narrow = table.select([]) if isinstance(table, pa.Table) else narrow
    narrow = table[[]] if isinstance(table, pd.DataFrame) else narrow
    rows = narrow.height if isinstance(table, pl.DataFrame) else len(narrow)
    assert [tfw.encode_example({})] * rows == tfw.encode_columns(narrow)


@pytest.mark.parametrize("library", [duckdb, daft])
def test_libraries_that_need_a_column_say_so(counted, library):
    ways = [way for name, way in WAYS_OF_COLUMNS.items() if name == library.__name__]
    with pytest.raises(Exception, match=r"column|no arrow arrays"):
        ways[0](counted["plain"], {})
