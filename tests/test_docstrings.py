"""The examples of the docstrings, run as they stand."""

import doctest
from importlib import import_module

import pytest

import tfwire as tfw

MODULES = ["checksum", "columns", "errors", "features", "json_format", "receipts"]
MODULES += ["tensors", "_examples.decode", "_examples.encode", "_examples.feature_helpers"]


@pytest.mark.parametrize("module", MODULES)
def test_examples_say_what_happens(module):
    found = import_module(f"tfwire.{module}")
    result = doctest.testmod(found, extraglobs={"tfw": tfw, "tfwire": tfw}, raise_on_error=False)
    assert result.attempted > 0
    assert 0 == result.failed
