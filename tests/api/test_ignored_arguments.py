"""No argument is ignored silently: what matters only beside another one is refused without it, what
has no order is refused where order counts, and no constructor drops what it is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfwire as tfw
from helpers.arguments.public_functions import EXAMPLE, FEATURES, FUNCTIONS
from helpers.command import tfwire_main
from helpers.products import check_each
from tfwire.compat import errors

NAMES = ["data", "schema.json"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("data", [EXAMPLE] * 3)
    tfw.write_schema(FEATURES, "schema.json")


# ---- Arguments that need another one ------------------------------------------------------------


DEPENDENT = {
    "a level without a compression": lambda: tfw.TFRecordWriter("out", compression_level=6),
    "the same, said": lambda: tfw.TFRecordWriter("out", "", compression_level=0),
    "of options without one": lambda: tfw.TFRecordWriter(
        "out", tfw.TFRecordOptions(), compression_level=6
    ),
    "of shards": lambda: tfw.ShardedWriter("out-{shard}", num_shards=1, compression_level=-1),
    "repair_tail without append": lambda: tfw.TFRecordWriter("out", repair_tail=True),
    "accept_ambiguous without correct": lambda: tfw.repair_file(
        "data", "out", accept_ambiguous=True
    ),
    "boundaries to pad to without shapes": lambda: tfw.Dataset.range(3).bucket_by_sequence_length(
        int, [1], [2, 2], pad_to_bucket_boundary=True
    ),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_an_argument_that_needs_another_is_refused_without_it(files, name):
    with pytest.raises(ValueError, match=r"needs|is for"):
        DEPENDENT[name]()
    assert NAMES == sorted(os.listdir())


@pytest.mark.parametrize("parameter", ["flush_mode", "mem_level", "compression_strategy"])
def test_options_of_no_compression_are_numbers_all_the_same(files, parameter):
    tfw.TFRecordWriter("out", tfw.TFRecordOptions(None, **{parameter: 1})).close()
    with pytest.raises(TypeError, match=f"{parameter} must be an integer, found str"):
        tfw.TFRecordWriter("out", tfw.TFRecordOptions(None, **{parameter: "1"}))


NEEDING = [
    ["schema", "data", "--force"],
    ["schema", "schema.json", "-n", "3"],
    ["schema", "schema.json", "--all"],
    ["schema", "schema.json", "--compression", "gzip"],
    ["stats", "data", "--force"],
    ["view", "data", "--no-open", "--force"],
    ["view", "data", "--no-open", "-n", "3"],
    ["view", "data", "--no-open", "--size", "3MB"],
    ["repair", "data", "out", "--accept-ambiguous"],
    ["head", "data", "--format", "raw", "--features", "a"],
    ["convert", "data", "--from", "tfrecord", "-o", "out.csv", "--examples"],
    ["convert", "data", "--from", "tfrecord", "-o", "out.csv", "--key", "a"],
    ["convert", "data", "--from", "tfrecord", "-o", "out.jsonl", "--base64", "a"],
]


def test_an_option_that_needs_another_is_refused_without_it(files):
    def check(words):
        result = tfwire_main(*words)
        assert (2, b"") == (result.returncode, result.stdout)
        assert any(text in result.stderr for text in (b"need", b"are for", b"is for"))
        assert NAMES == sorted(os.listdir())

    check_each(check, NEEDING)


# ---- Values without an order --------------------------------------------------------------------

# Records may be written in any order, and what they add up to does not depend on it.
ANY_ORDER = {"write_many", "write_records", "Receipt.of", "ShardedWriter.write_many"}
LISTS = {"shape", "columns", "indices", "padded_shapes"}
LISTS |= {"paths", "filenames", "file_pattern", "serialized", "datasets"}
ORDERED = [
    (name, argument)
    for name, (_, arguments) in FUNCTIONS.items()
    for argument, right in arguments.items()
    if argument in LISTS or isinstance(right, list)
    if name not in ANY_ORDER and argument not in ("default_value", "generator", "args")
    if not (argument == "columns" and isinstance(right, dict))  # a mapping, not names
]
STRUCTURES = {"padded_shapes", "tensors"}  # of which dicts are a part


def ordered_items(right):
    return list(right) if isinstance(right, (list, tuple)) else [right]


def test_what_has_no_order_is_refused_where_order_counts(files):
    tfw.RecordIndex.build("data").save()
    tried = set()

    def check(name, argument, make):
        function, arguments = FUNCTIONS[name]
        try:
            unordered = make(ordered_items(arguments[argument]))
        except TypeError:  # what is in the list has no hash
            return
        tried.add((name, argument))
        with pytest.raises((TypeError, ValueError)) as raised:
            function(**{**arguments, argument: unordered})
        assert "set" in str(raised.value) or "dict" in str(raised.value)

    for make in (set, frozenset, dict.fromkeys):
        structures = STRUCTURES if make == dict.fromkeys else ()
        check_each(check, [(*case, make) for case in ORDERED if case[1] not in structures])
    assert len(tried) > 0.9 * len(ORDERED)


@pytest.mark.parametrize("key", [{2, 0}, frozenset([1]), {1: 2}, iter([1, 2]), {1: 2}.keys()])
def test_a_key_of_records_is_a_number_a_slice_or_a_sequence(files, key):
    for records in (tfw.TFRecordFile("data"), tfw.TFRecordFiles(["data"])):
        with records, pytest.raises(TypeError, match="a sequence of record numbers, found"):
            records[key]


def test_sequences_of_all_kinds_are_keys(files):
    import array
    from collections import deque

    import numpy as np

    with tfw.TFRecordFile("data") as records:
        for key in (range(2), (0, 1), deque([0, 1]), array.array("q", [0, 1]), np.arange(2), [-3]):
            assert [EXAMPLE] * len(key) == records[key]


# ---- Constructors of errors ---------------------------------------------------------------------

ERRORS = [tfw.Error, tfw.DataLossError, tfw.ParseError, errors.NotFoundError, errors.InternalError]


@pytest.mark.parametrize("error", ERRORS)
def test_errors_drop_no_argument(error):
    assert "text" == error("text").message
    theirs = error("node", "op", "text")
    assert ("node", "op", "text") == (theirs.node_def, theirs.op, theirs.message)
    assert 7 == error(None, None, "text", 7).error_code
    for wrong in [("a", "b"), ("a", "b", "c", "d"), (None, None, "c", 1, 2)]:
        with pytest.raises(TypeError, match=r"found|error_code"):
            error(*wrong)
    with pytest.raises(TypeError, match="no attribute 'pth'"):
        error("text", pth=Path("x"))
