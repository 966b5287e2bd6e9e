"""tfwire.compat beside TensorFlow: the results, dtypes and exceptions of the same code."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow
from compared import LIBRARIES, check, outcome
from drawn import DTYPES, Draws

_TEXT = Path(__file__).with_name("compat_cases.txt").read_text(encoding="utf-8")
CASES, VALUES, FILE_STEPS, TEMPLATES = (
    [line for line in section.splitlines()[1:] if line] for section in _TEXT.split("\n\n[")[1:]
)
EXAMPLES = int(os.environ.get("TFWIRE_ORACLE_EXAMPLES", "1000")) // 20
SEED = os.environ.get("TFWIRE_ORACLE_SEED", "1")


def run(code, library):
    """A line of code with tf as one of the two libraries."""
    names = {"tf": library, "np": np, "c": library.constant, "gfile": library.io.gfile}
    return outcome(lambda _: eval(code, names), library)


def compare(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [run(code, library) for library in LIBRARIES]
    try:
        check(*results)
    except AssertionError as error:
        raise AssertionError(f"{code}: {error}") from error


@pytest.mark.parametrize("code", CASES)
def test_case(code):
    compare(code)


@pytest.mark.parametrize("value", VALUES)
def test_values_and_dtypes(value):
    for dtype in [None, *DTYPES]:
        compare(f"tf.constant({value}, {dtype and f'tf.{dtype}'})")
    compare(f"tf.convert_to_tensor({value})")


def test_steps_with_files(tmp_path, monkeypatch):
    """Each library in a folder of its own."""
    for i, code in enumerate(FILE_STEPS):
        results = []
        for library in LIBRARIES:
            folder = tmp_path / library.__name__
            folder.mkdir(exist_ok=True)
            monkeypatch.chdir(folder)
            results.append(run(code, library))
        try:
            check(*results)
        except AssertionError as error:
            raise AssertionError(f"step {i}: {code}") from error


@pytest.mark.parametrize("template", TEMPLATES)
def test_random_arguments(template):
    draws = Draws(f"{SEED} {template}")
    for _ in range(EXAMPLES):
        compare(draws.code(template))


def test_dtypes_have_the_same_attributes():
    names = ["bool", "string", "half", "double", "bfloat16", "float16", "float32", "float64"]
    names += ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    names += ["complex64", "complex128"]
    attributes = ["name", "size", "is_floating", "is_integer", "is_bool", "is_unsigned"]
    attributes += [
        "is_complex",
        "is_numeric",
        "min",
        "max",
        "limits",
        "as_datatype_enum",
        "base_dtype",
    ]
    attributes += ["real_dtype"]
    for name in names:
        compare(f"repr(tf.{name})")
        compare(f"np.dtype(tf.{name}.as_numpy_dtype).name")
        for attribute in attributes:
            compare(f"tf.{name}.{attribute}")


def test_errors_have_the_same_codes_and_names():
    theirs = {name for name in dir(tensorflow.errors) if name.isupper() or name.endswith("Error")}
    theirs -= {"OpError", "OperatorNotAllowedInGraphError"}
    for name in theirs:
        if name.isupper():
            compare(f"tf.errors.{name}")
            continue
        compare(f"issubclass(tf.errors.{name}, tf.errors.OpError)")
        for attribute in ("message", "error_code", "op", "node_def"):
            compare(f"tf.errors.{name}(None, None, 'message').{attribute}")
        compare(f"str(tf.errors.{name}(None, None, 'message'))")
        compare(f"tf.errors.{name}(node_def=None, op=None, message='m').message")
    compare("tf.errors.OpError(None, None, 'message', 7).error_code")
