"""The examples of the docstrings, run as they stand."""

import doctest
from importlib import import_module

import numpy as np
import pytest

import tfwire as tfw

MODULES = ["checksum", "columns", "dataset", "errors", "features", "index", "json_format"]
MODULES += ["receipts", "tensors", "verification"]
MODULES += ["_datasets.iterator", "_datasets.transformations", "_examples.decode"]
MODULES += ["_examples.encode", "_examples.feature_helpers", "_records.record_index"]
MODULES += ["_records.sharded_writer"]
MODULES += ["compat._data.dataset", "compat._data.iterators", "compat._data.specs"]
MODULES += ["compat._graph.coordinator", "compat._graph.session"]
FILES = {"train": [b"cat", b"dog", b"goat"], "a": [b"one", b"two"], "b": [b"three", b"four"]}
NAMES = {"tfw": tfw, "tfwire": tfw, "np": np, "Dataset": tfw.Dataset}


@pytest.mark.parametrize("module", MODULES)
def test_examples_say_what_happens(module, tmp_path, monkeypatch):
    """In a folder with a few record files."""
    monkeypatch.chdir(tmp_path)
    for name, records in FILES.items():
        tfw.write_records(f"{name}.tfrecord", records)
    found = import_module(f"tfwire.{module}")
    result = doctest.testmod(found, extraglobs=NAMES, raise_on_error=False)
    assert result.attempted > 0
    assert 0 == result.failed
