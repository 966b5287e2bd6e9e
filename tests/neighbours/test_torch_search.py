"""A random search over training runs: ranks, workers, epochs, kills; see helpers/epochs."""

import os

import pytest

from helpers.epochs import search as epoch_search


def test_random_runs_deliver_what_their_model_says():
    kinds = epoch_search.search("quick", 0, least=60)
    assert {"whole", "killed and resumed", "with an error", "by number", "refused"} == set(kinds)


@pytest.mark.slow
def test_very_many_random_runs_deliver_what_their_model_says():
    seconds = float(os.environ.get("TFWIRE_EPOCHS_SECONDS", "180"))
    epoch_search.search("slow", seconds, least=60)
