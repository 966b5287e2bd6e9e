"""A random search over pipelines, faults and places to resume at; see pipelines.py."""

import os

import pytest

from helpers.data import pipelines


def test_random_pipelines_give_what_their_model_says():
    assert pipelines.search("quick", 0, least=300) == 300


@pytest.mark.slow
def test_very_many_random_pipelines_give_what_their_model_says():
    seconds = float(os.environ.get("TFWIRE_PIPELINES_SECONDS", "30"))
    pipelines.search("slow", seconds, least=1000)
