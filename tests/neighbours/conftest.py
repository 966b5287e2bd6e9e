"""Tests with the real packages of neighbours, collected only where they are (make neighbours)."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from sample import COUNT, columns

import tfwire as tfw

PACKAGES = {name: [name] for name in ("torch", "grain", "jax")}
PACKAGES["arrow"] = ["pyarrow", "polars", "duckdb", "pandas", "nanoarrow"]
PACKAGES["polars"] = ["polars"]
PACKAGES["huggingface"] = ["datasets"]
PACKAGES["seek"] = ["rapidgzip"]
PACKAGES["tfds"] = ["torch", "grain"]
PACKAGES["remote"] = ["s3fs", "moto", "flask", "upath", "aiohttp"]
_LACKING = [name for name, packages in PACKAGES.items() if not all(map(find_spec, packages))]
collect_ignore_glob = [pattern for name in _LACKING for pattern in (f"test_{name}*.py", name)]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """COUNT records in three files, ids in order."""
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for number, ids in enumerate(np.array_split(np.arange(COUNT), 3)):
        paths.append(str(folder / f"part-{number}"))
        with tfw.TFRecordWriter(paths[-1]) as writer:
            writer.write_columns(columns(ids))
    return paths


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 records with features of every kind, some of which have default values."""
    rng, path = np.random.default_rng(1), str(tmp_path_factory.mktemp("mixed") / "data")
    rows = []
    for number in range(200):
        some = list(range(number % 4))
        rows.append(
            {
                "n": number,
                "x": [number, 0.5, -1.0],
                "s": b"s" * (number % 5),
                "var": some,
                "var2": some,
                "row": some,
                "rag": [float(i) for i in some],
                "words": [b"w"] * len(some),
                "tags": [rng.bytes(i) for i in some],
                **({"m": [number] * 4, "two": [b"a", b"bc"]} if number % 3 else {}),
            }
        )
    tfw.write_records(path, rows)
    return path
