"""The examples of the docstrings, run as they stand; tests/neighbours has those of its packages."""

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.prepared import pets

pytestmark = pytest.mark.outside_c

PACKAGE = Path(tfw.__file__).parent
NEIGHBOURS = {"torch", "grain", "huggingface", "polars", "beam", "ray", "spark"}
# Every module that holds an example: none is left out, but those of neighbours, which run where
# these are installed.
PATHS = [path.relative_to(PACKAGE).with_suffix("") for path in sorted(PACKAGE.rglob("*.py"))]
MODULES = [
    ".".join(path.parts)
    for path in PATHS
    if path.parts[0] not in NEIGHBOURS
    and ">>> " in (PACKAGE / path).with_suffix(".py").read_text(encoding="utf-8")
]
FILES = {"train": [b"cat", b"dog", b"goat"], "a": [b"one", b"two"], "b": [b"three", b"four"]}
NAMES = {"tfw": tfw, "tfwire": tfw, "np": np, "Dataset": tfw.Dataset}


class Finder(doctest.DocTestFinder):
    """Finds the classes of a module, though those that are public say that they are tfwire's."""

    def _from_module(self, module, found):
        if isinstance(found, type) and found.__module__ == "tfwire":
            source = Path(module.__file__).read_text(encoding="utf-8")
            return f"class {found.__qualname__.split('.')[0]}" in source
        return super()._from_module(module, found)


def examples_of(module):
    return Finder().find(import_module(f"tfwire.{module}"), extraglobs=NAMES)


@pytest.mark.parametrize("module", MODULES)
def test_examples_say_what_happens(module, tmp_path, monkeypatch):
    """In a folder with a few record files."""
    monkeypatch.chdir(tmp_path)
    for name, records in FILES.items():
        tfw.write_records(f"{name}.tfrecord", records)
    pets(tmp_path / "pets" / "1.0.0")
    runner = doctest.DocTestRunner()
    for example in examples_of(module):
        runner.run(example)
    result = runner.summarize()
    assert result.attempted > 0
    assert 0 == result.failed


def test_every_example_is_in_a_docstring_that_runs():
    """Not in a string that doctest does not find."""
    for name in MODULES:
        text = (PACKAGE / Path(*name.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        assert text.count(">>> ") == sum(len(test.examples) for test in examples_of(name)), name
