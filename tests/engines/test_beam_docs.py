"""The code of docs/beam.md, of the docstrings of tfwire.beam, and examples/beam_*.py."""

from __future__ import annotations

import doctest

import apache_beam
import pytest

import tfwire as tfw
import tfwire.beam
from helpers.command import output_of_python
from helpers.documents import run_page
from helpers.paths import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_examples_say_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"tfw": tfw, "apache_beam": apache_beam}
    result = doctest.testmod(tfwire.beam, extraglobs=names)
    assert result.attempted > 5
    assert 0 == result.failed


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("beam.md", "apache_beam", "beam")
    assert len(list(tmp_path.glob("data/train-*-of-*.tfrecord"))) == 3
    assert sum(1 for _ in tfw.read_records(sorted(tmp_path.glob("data/small-*")))) == 1000


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("beam_*.py")), ids=str)
def test_programs_run(path, tmp_path):
    assert output_of_python(path, cwd=tmp_path)
