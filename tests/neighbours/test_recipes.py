"""The code of docs/recipes-tables.md, for the packages that are there. Each runs in a process of
its own: Lance warns at every fork after it, and others leave threads."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from helpers.command import WITH_HELPERS


@pytest.fixture
def run(tmp_path):
    """Runs the page, and checks after it."""

    def run(checks, *neighbours):
        for name in neighbours:
            if find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        page = "from helpers.documents import run_page\n"
        page += f"found = run_page('recipes-tables.md', *{neighbours})"
        result = subprocess.run(
            [sys.executable, "-c", f"{page}\nglobals().update(found)\n{checks}"],
            cwd=tmp_path,
            env=WITH_HELPERS,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert 0 == result.returncode, result.stderr

    return run


def test_duckdb(run):
    checks = """
assert [(0, 334, 999.0), (1, 333, 997.0), (2, 333, 998.0)] == heavy
query = "select count(*), max(name) from pets"
assert [(1000, "pet 999")] == database.sql(query).fetchall()
assert [(500,)] == duckdb.sql("select count(*) from 'light.parquet'").fetchall()
"""
    run(checks, "duckdb")


def test_pandas_and_parquet(run):
    checks = """
assert [499.5, 499.0, 500.0] == mean.tolist()
assert "string[pyarrow]" == frame["name"].dtype
table = pq.read_table("pets.parquet")
assert 1000 == table.num_rows
assert {f"pet {i}" for i in range(1000)} == set(table["name"].to_pylist())
"""
    run(checks, "pandas", "pyarrow")


def test_dask(run):
    checks = """
assert [999.0, 997.0, 998.0] == heaviest.sort_index().tolist()
assert 4 == pets.npartitions
assert 1000 == len(pets)
"""
    run(checks, "dask", "pandas", "pyarrow")


def test_daft(run):
    checks = """
assert {"name": ["pet 0", "pet 1", "pet 2"]} == few
assert 1000 == pets.count_rows()
two = pets.select("weight", "label").limit(3)
assert {"weight", "label"} == two.to_pydict().keys()
assert 499500 == pets.sum("weight").to_pydict()["weight"][0]
assert 1000 == daft.from_arrow(reader).count_rows()
"""
    run(checks, "daft", "pyarrow")


def test_lance(run):
    checks = """
assert 333 == twos
rows = tfw.decode_examples(list(tfw.read_records("back.tfrecord")))
assert {b"pet %d" % i for i in range(1000)} == {row["name"][0] for row in rows}
"""
    run(checks, "lance", "pyarrow")
