"""What every engine answers first of files, before anything else is executed: how many rows there
are, also of no columns, the first of them, and samples. With and without an index.

The engines that are installed take part: nox runs this file in the environment of each.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from helpers.records.counted_files import COUNT, FEATURES, expected_count, write_counted_files

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
Operations = dict[str, Callable[[], Any]]
NAMES = ["plain", "indexed", "gzip", "empty", "several"]
FIRST = 7


# ---- The operations of each engine: each answers with a number, or the numbers i of rows ---------


def inferred(paths: list[str], features: Any) -> Any:
    """The specification, where an engine opens every file by itself."""
    from tfwire.arrow import open_reader

    return open_reader(paths).features if features is None else features


def of_polars(paths: list[str], features: Any) -> Operations:
    import polars as pl

    from tfwire.polars import scan_tfrecord

    frame = scan_tfrecord(paths, features)
    return {
        "count": lambda: frame.select(pl.len()).collect().item(),
        "no columns": lambda: frame.drop(frame.collect_schema()).collect().height,
        "first": lambda: frame.head(FIRST).collect()["i"].to_list(),
        "first of no columns": lambda: (
            frame.drop(frame.collect_schema()).head(FIRST).collect().height
        ),
        "sample": lambda: frame.collect().sample(fraction=0.5)["i"].to_list(),
        "sample by rows": lambda: (
            frame.filter(pl.int_range(pl.len()).shuffle() % 2 == 0).collect()["i"].to_list()
        ),
        "columns": lambda: sorted(frame.collect_schema()),
    }


def of_duckdb(paths: list[str], features: Any) -> Operations:
    import duckdb

    from tfwire.arrow import open_reader

    def query(sql: str) -> list[Any]:
        with duckdb.connect() as connection:
            connection.register("t", open_reader(paths, features))
            return [row[0] for row in connection.execute(sql).fetchall()]

    return {
        "count": lambda: query("select count(*) from t")[0],
        "no columns": lambda: sum(query("select 1 from t")),
        "first": lambda: query(f"select i from t limit {FIRST}"),
        "first of no columns": lambda: sum(query(f"select 1 from t limit {FIRST}")),
        "sample": lambda: query("select i from t using sample 50 percent (bernoulli)"),
        "sample by rows": lambda: query("select i from t where random() < 0.5"),
        "columns": lambda: sorted(query("select column_name from (describe t)")),
    }


def of_daft(paths: list[str], features: Any) -> Operations:
    import daft

    from tfwire.arrow import read_table

    def frame() -> Any:
        return daft.from_arrow(read_table(paths, features))

    return {
        "count": lambda: frame().count_rows(),
        "first": lambda: frame().limit(FIRST).to_pydict()["i"],
        "sample": lambda: frame().sample(0.5).to_pydict()["i"],
        "columns": lambda: sorted(frame().column_names),
    }


def of_dask(paths: list[str], features: Any) -> Operations:
    import dask.dataframe

    from tfwire.arrow import read_table

    known = inferred(paths, features)

    def frame(**options: Any) -> Any:
        return dask.dataframe.from_map(
            lambda path: read_table(path, known, **options).to_pandas(), paths
        )

    return {
        "count": lambda: len(frame()),
        "no columns": lambda: len(frame()[[]]),
        "no columns read": lambda: len(frame(columns=[])),
        "first": lambda: frame().head(FIRST, npartitions=-1)["i"].tolist(),
        "first of no columns": lambda: len(frame()[[]].head(FIRST, npartitions=-1)),
        "sample": lambda: frame().sample(frac=0.5).compute()["i"].tolist(),
        "columns": lambda: sorted(frame().columns),
    }


def of_datasets(paths: list[str], features: Any) -> Operations:
    from tfwire.huggingface import TFRecord

    def whole() -> Any:
        builder = TFRecord(paths, features, cache_dir=tempfile.mkdtemp())
        builder.download_and_prepare()
        return builder.as_dataset(split="train")

    def stream() -> Any:
        return TFRecord(paths, features).as_streaming_dataset("train")

    streamed: Operations = {
        "count of a stream": lambda: sum(1 for _ in stream()),
        "no columns": lambda: sum(1 for _ in stream().select_columns([])),
        "first of a stream": lambda: [row["i"] for row in stream().take(FIRST)],
        "columns of a stream": lambda: sorted(stream().column_names),
    }
    if not any(map(os.path.getsize, paths)):
        return streamed  # datasets refuses a split without rows
    return streamed | {
        "count": lambda: len(whole()),
        "first": lambda: whole()[:FIRST]["i"],
        "sample": lambda: whole().shuffle()[: len(whole()) // 2]["i"],
        "columns": lambda: sorted(whole().column_names),
    }


def of_ray(paths: list[str], features: Any) -> Operations:
    from tfwire.ray import read_tfrecord

    def read(**options: Any) -> Any:
        return read_tfrecord(paths, features, override_num_blocks=3, **options)

    def sizes(batches: Any) -> int:
        return sum(len(next(iter(batch.values()))) for batch in batches)

    return {
        "count": lambda: read().count(),
        "no columns": lambda: read().select_columns([]).count(),
        "no columns read": lambda: read(columns=[]).count(),
        "rows of no columns": lambda: len(read().select_columns([]).take_all()),
        "rows": lambda: len(read().take_all()),
        "first": lambda: [row["i"] for row in read().take(FIRST)],
        "first, limited": lambda: [row["i"] for row in read().limit(FIRST).take_all()],
        "first of no columns": lambda: read().select_columns([]).limit(FIRST).count(),
        "sample": lambda: [row["i"] for row in read().random_sample(0.5).take_all()],
        "sample, counted": lambda: read().random_sample(1.0).count(),
        "columns": lambda: sorted(read().columns()),
        "split": lambda: sum(part.count() for part in read().split(2)),
    }


def of_pyspark(paths: list[str], features: Any) -> Operations:
    from pyspark.sql import functions

    session = SESSIONS["pyspark"]

    def load() -> Any:
        source = session.read.format("tfrecord")
        if features is not None:
            source = source.schema("i bigint, name string")
        return source.option("paths", json.dumps(paths)).load()

    return {
        "count": lambda: load().count(),
        "no columns": lambda: load().select().count(),
        "rows of no columns": lambda: len(load().select().collect()),
        "literals": lambda: len(load().select(functions.lit(1)).collect()),
        "first": lambda: [row.i for row in load().take(FIRST)],
        "first, limited": lambda: [row.i for row in load().limit(FIRST).collect()],
        "first of no columns": lambda: load().select().limit(FIRST).count(),
        "sample": lambda: [row.i for row in load().sample(0.5).collect()],
        "sample, counted": lambda: load().sample(1.0).count(),
        "columns": lambda: sorted(load().columns),
    }


def of_apache_beam(paths: list[str], features: Any) -> Operations:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from tfwire.beam import ReadBatchesFromTFRecord

    features = inferred(paths, features)

    def run(*steps: Any) -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            with beam.Pipeline(options=PipelineOptions()) as pipeline:
                elements = [
                    pipeline | path >> ReadBatchesFromTFRecord(path, features) for path in paths
                ] | beam.Flatten()
                for step in steps:
                    elements = elements | step
                elements | beam.Map(json.dumps) | beam.io.WriteToText(f"{folder}/out")
            files = sorted(Path(folder).iterdir())
            return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    rows = "rows" >> beam.FlatMap(lambda batch: batch.column("i").to_pylist())
    return {
        "count": lambda: sum(run("sizes" >> beam.Map(lambda batch: batch.num_rows))),
        "count of rows": lambda: run(rows, beam.combiners.Count.Globally())[0],
        "first": lambda: run(rows, beam.combiners.Sample.FixedSizeGlobally(FIRST))[0],
        "sample": lambda: run(rows, "half" >> beam.Filter(lambda i: i % 2 == 0)),
    }


# ---- What they must answer ----------------------------------------------------------------------

ENGINES = {
    "polars": of_polars,
    "duckdb": of_duckdb,
    "daft": of_daft,
    "dask": of_dask,
    "datasets": of_datasets,
    "ray": of_ray,
    "pyspark": of_pyspark,
    "apache_beam": of_apache_beam,
}
SESSIONS: dict[str, Any] = {}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return write_counted_files(tmp_path_factory.mktemp("counted"))


@pytest.fixture(params=[name for name in ENGINES if find_spec(name)])
def engine(request):
    """The operations of an engine that is installed, with its session."""
    session = {"ray": "workers", "pyspark": "spark"}.get(request.param)
    if session is not None:
        SESSIONS[request.param] = request.getfixturevalue(session)
    return ENGINES[request.param]


@pytest.mark.parametrize("features", [FEATURES, None], ids=["features", "inferred"])
@pytest.mark.parametrize("name", NAMES)
def test_the_first_answer_is_right(engine, counted, name, features):
    expected = expected_count(name, "raise")
    num_files = expected // COUNT
    if not expected and features is None:
        return  # nothing says what the columns are
    for operation in list(engine(counted[name], features)):
        found = engine(counted[name], features)[operation]()
        what = f"{operation}: {found}"
        if operation.startswith("columns"):
            assert sorted(FEATURES) == found, what
        elif operation.startswith("first"):
            number = found if isinstance(found, int) else len(found)
            assert min(FIRST, expected) == number, what
        elif operation.startswith("sample") and isinstance(found, list):
            assert len(found) < expected or not expected, what
            assert expected // 4 <= len(found), what  # less is next to impossible
            assert set(range(COUNT)) >= set(found), what
            assert all(found.count(i) <= num_files for i in found), what
        else:
            assert expected == found, what
