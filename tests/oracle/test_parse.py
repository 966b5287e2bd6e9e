"""Parsing beside TensorFlow: random specs and messages, and the standard workloads."""

from __future__ import annotations

import os
from itertools import islice

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

import tfwire as tfw
import workloads
from cases import generate
from cases.replay import Io, answer
from cases.results import plain_dict
from cases.strategies import cases, sequence_cases

EXAMPLES = int(os.environ.get("TFWIRE_ORACLE_EXAMPLES", "1000"))


def same(tensorflow, tfwire):
    """Equal values, or both an error of the data."""
    if "values" in tensorflow or "values" in tfwire:
        return tensorflow == tfwire
    return tensorflow["error"] == "InvalidArgumentError" and tfwire["error"] == "ParseError"


@settings(max_examples=EXAMPLES, deadline=None)
@given(case=cases(odd=False))
def test_random_examples_parse_as_in_tensorflow(case):
    expected, found = generate.answer(case), answer(case)
    assert same(expected, found), f"TensorFlow {expected}, tfwire {found}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(case=sequence_cases())
def test_random_sequence_examples_parse_as_in_tensorflow(case):
    expected, found = generate.answer(case), answer(case)
    assert same(expected, found), f"TensorFlow {expected}, tfwire {found}"


@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W4", "W5"])
@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_workloads_parse_to_the_same_columns(name, batch_size):
    """From file to batches, every dtype and shape; and the generator's own values."""
    work = workloads.Workload(name, 100, fields=workloads.FIELDS[name])
    parser = tfw.Parser(work.spec(Io))
    dataset = tf.data.TFRecordDataset([str(work.path)]).batch(batch_size)
    dataset = dataset.map(lambda s: tf.io.parse_example(s, work.spec(generate.Io)))
    ours = list(parser.parse_file(work.path, batch_size))
    assert -(-100 // batch_size) == len(ours)
    for theirs, batch in zip(dataset.as_numpy_iterator(), ours, strict=True):
        assert plain_dict(theirs) == plain_dict(batch)
    for key, column in work.columns.items():
        found = np.concatenate([batch[key] for batch in ours])
        # As lists, because numpy drops NULs from the end of strings.
        assert np.asarray(column, found.dtype).tolist() == found.tolist()


def test_sequence_workload_parses_to_the_same_columns():
    work = workloads.Sequences("W6", 50)
    parser = tfw.SequenceParser(*work.specs(Io))
    dataset = tf.data.TFRecordDataset([str(work.path)]).batch(16)
    context, lists = work.specs(generate.Io)
    dataset = dataset.map(lambda s: tf.io.parse_sequence_example(s, context, lists))
    ours = list(parser.parse_file(work.path, 16))
    for theirs, batch in zip(dataset.as_numpy_iterator(), ours, strict=True):
        assert [plain_dict(part) for part in theirs] == [plain_dict(part) for part in batch]


@pytest.mark.parametrize("name", ["W1", "W4", "W5"])
def test_workloads_parse_singly_to_the_same_values(name):
    work = workloads.Workload(name, 100, fields=workloads.FIELDS[name])
    for record in islice(tfw.read_records(work.path), 20):
        theirs = tf.io.parse_single_example(record, work.spec(generate.Io))
        ours = tfw.parse_single_example(record, work.spec(Io))
        assert plain_dict(theirs) == plain_dict(ours)


def test_tensorflows_own_specs_are_taken_as_they_are():
    work = workloads.Workload("W1", 100, fields=workloads.FIELDS["W1"])
    spec = work.spec(generate.Io)
    theirs = tf.io.parse_example(work.records, spec)
    assert plain_dict(theirs) == plain_dict(tfw.parse_example(work.records, spec))


def test_tensors_of_strings_are_taken_as_they_are():
    work = workloads.Workload("W1", 100, fields=workloads.FIELDS["W1"])
    expected = plain_dict(tfw.parse_example(work.records, work.spec(Io)))
    assert expected == plain_dict(tfw.parse_example(tf.constant(work.records), work.spec(Io)))
