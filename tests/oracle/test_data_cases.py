"""Datasets of data_cases.txt, made by TensorFlow and by tfwire.compat."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from compared import LIBRARIES, check, is_answer, outcome

import tfwire

_TEXT = Path(__file__).with_name("data_cases.txt").read_text(encoding="utf-8")
SECTIONS = {
    section.splitlines()[0].rstrip("]"): [line for line in section.splitlines()[1:] if line]
    for section in _TEXT.split("\n\n[")[1:]
}
MOST = 12  # of endless datasets


def records(*numbers):
    """Serialized Examples, as a vector of strings."""
    return np.array([tfwire.encode_example({"n": [n], "v": range(n)}) for n in numbers], object)


def features(library):
    return {"n": library.io.FixedLenFeature([], library.int64)}


def ragged(library, rows, dtype="int64"):
    """A ragged tensor of one ragged dimension."""
    values = np.concatenate([np.asarray(row, dtype) for row in rows])
    splits = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    if library is LIBRARIES[0]:
        return library.RaggedTensor.from_row_splits(values, splits)
    return library.RaggedTensor(tfwire.RaggedTensor(values, splits))


def run(code, library, with_spec):
    names = {"tf": library, "np": np, "c": library.constant, "D": library.data.Dataset}
    names |= {"records": records, "features": features(library)}
    names["ragged"] = lambda *args: ragged(library, *args)

    def made(_):
        dataset = eval(code, names)
        spec = repr(dataset.element_spec) if with_spec else None
        return [spec, dataset.cardinality(), list(islice(iter(dataset), MOST))]

    return outcome(made, library)


def compare(code, with_spec):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, found = (run(code, library, with_spec) for library in LIBRARIES)
    assert is_answer(expected), expected
    check(expected, found)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    for name in ("a.cases", "b.cases"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("code", SECTIONS["elements, cardinality and specs"])
def test_datasets(code):
    compare(code, True)


@pytest.mark.parametrize("code", SECTIONS["elements and cardinality"])
def test_datasets_of_functions(code):
    """Their specs are found otherwise: row `map-spec` of docs/differences.md."""
    compare(code, False)


@pytest.mark.parametrize("code", SECTIONS["errors"])
def test_errors_of_datasets(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, found = (run(code, library, True) for library in LIBRARIES)
    assert isinstance(expected, Exception), expected
    check(expected, found)


@pytest.mark.parametrize("code", SECTIONS["cardinalities of endless datasets"])
def test_cardinalities(code):
    def made(library):
        names = {
            "tf": library,
            "D": library.data.Dataset,
            "E": library.data.Dataset.range(4).repeat(),
        }
        return eval(code, names).cardinality()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(*(outcome(made, library) for library in LIBRARIES))
