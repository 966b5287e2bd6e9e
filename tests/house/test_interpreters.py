"""Interpreters that are not as usual: without asserts and docstrings, with warnings as errors, and
subinterpreters."""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers.command import ENVIRONMENT

pytestmark = pytest.mark.outside_c

PROGRAM = """
import importlib, pkgutil, sys
import numpy as np
import tfwire as tfw

for module in pkgutil.walk_packages(tfw.__path__, "tfwire."):
    if module.name != "tfwire.__main__":
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if "tfwire" in str(error.name):  # no assert: -OO leaves it out
                raise
with tfw.TFRecordWriter("data", index=True) as writer:
    writer.write_columns({"x": np.arange(6.0), "s": ["a"] * 6})
features = tfw.infer_schema("data")
(batch,) = tfw.Parser(features).parse_file("data", batch_size=6, num_threads=2)
shuffled = tfw.TFRecordDataset("data", indexed=True).shuffle(6, seed=1).batch(6)
(other,) = shuffled.parse_example(features).prefetch(1)
found = [batch["x"].tolist(), sorted(other["x"].tolist()), len(tfw.TFRecordFile("data")[5])]
import tfwire.compat as tf
found += [int(i) for i in tf.data.Dataset.range(3).map(lambda i: i * 2)]
found += [tfw.verify_file("data").num_records]
sys.stdout.write(repr(found))
"""
NUMBERS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_program_of_every_part(tmp_path):
    command = [sys.executable, "-OO", "-W", "error", "-X", "dev", "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert repr([NUMBERS, NUMBERS, 29, 0, 2, 4, 6]) == done.stdout


SUBINTERPRETER = """
try:
    import tfwire
except ImportError as error:
    print(error, flush=True)
"""


def test_a_subinterpreter_is_refused():
    """Its threads could not start, and the process would wait for them forever."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    interpreters = pytest.importorskip(name, reason="built without subinterpreters")
    run = f"import {name} as i; n = i.create(); i.run_string(n, {SUBINTERPRETER!r}); i.destroy(n)"
    command = [sys.executable, "-c", run]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("tfwire does not work in subinterpreters; import it in the main")
    assert interpreters.get_current() == interpreters.get_main()
