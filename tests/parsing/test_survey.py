"""Survey, beside a plain loop over decoded records."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from tfwire import train
from tfwire._examples.decode import decode_sequence_example
from tfwire._parsing.survey import survey_files

FEATURES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6).map(lambda v: np.array(v, np.int64)),
    st.lists(st.floats(width=32), max_size=6).map(lambda v: np.array(v, np.float32)),
    st.lists(st.binary(max_size=4), max_size=3).map(lambda v: np.array(v, object)),
)
NAMES = st.sampled_from(["a", "b", "c", "\N{SNOWMAN}", ""])
CONTEXTS = st.dictionaries(NAMES, FEATURES, max_size=4)
LISTS = st.dictionaries(NAMES, st.lists(FEATURES, max_size=3), max_size=3)


def message_of(context, lists):
    message = train.SequenceExample()
    for name, values in context.items():
        fill(message.context.feature[name], values)
    for name, steps in lists.items():
        feature_list = message.feature_lists.feature_list[name]
        for values in steps:
            fill(feature_list.feature.add(), values)
    return message.SerializeToString()


def fill(feature, values):
    kind = {"int64": "int64_list", "float32": "float_list"}.get(str(values.dtype), "bytes_list")
    getattr(feature, kind).SetInParent()
    getattr(feature, kind).value.extend(values.tolist())


def kind_of(values):
    strings = isinstance(values, list) or values.dtype == object
    return "string" if strings else str(values.dtype)


def model(records, lists):
    """Of every feature: the numbers of its steps, and the values of each kind by record."""
    found = {}
    for record in records:
        for name, value in decode_sequence_example(record)[lists].items():
            found.setdefault(name, []).append(value if lists else [value])
    return found


def check(features, expected, lists):
    assert sorted(expected) == list(features)
    for name, by_record in expected.items():
        feature, steps = features[name], [step for steps in by_record for step in steps]
        assert feature.records == len(by_record)
        assert feature.min_count == min(map(len, steps), default=0)
        assert feature.max_count == max(map(len, steps), default=0)
        numbers = list(map(len, by_record))
        assert (feature.min_steps, feature.max_steps) == (
            (min(numbers), max(numbers)) if lists else (None, None)
        )
        assert set(feature.kinds) == {kind_of(step) for step in steps}
        for kind, found in feature.kinds.items():
            check_kind(found, kind, by_record)


def check_kind(found, kind, by_record):
    of_kind = [[step for step in steps if kind_of(step) == kind] for steps in by_record]
    values = [value for steps in of_kind for step in steps for value in step]
    numbers = [len(value) if kind == "string" else value.item() for value in values]
    numbers = [number for number in numbers if not math.isnan(number)]
    assert found.records == sum(map(bool, of_kind))
    assert (found.values, found.nans) == (len(values), len(values) - len(numbers))
    assert found.min == min(numbers, default=None)
    assert found.max == max(numbers, default=None)
    exact = sum(numbers) if not all(map(math.isfinite, numbers)) else math.fsum(numbers)
    size = math.fsum(abs(number) for number in numbers if math.isfinite(number))
    assert found.sum == pytest.approx(exact, rel=0, abs=1e-12 * size, nan_ok=True)


@given(st.lists(st.tuples(CONTEXTS, LISTS), min_size=1, max_size=8))
def test_a_survey_is_a_loop_over_the_records(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "survey.tfrecord"
    records = [message_of(*row) for row in rows]
    tfw.write_records(path, records)
    survey, complete = survey_files([path], None, "auto", "raise")
    assert (survey.num_records, complete) == (len(records), True)
    for lists in (False, True):
        check(survey.features(lists=lists), model(records, lists), lists)


def test_several_files_and_how_many_records_of_each(tmp_path):
    for name in "ab":
        tfw.write_records(tmp_path / name, [{name: i} for i in range(5000)], "GZIP")
    files = [tmp_path / "a", tmp_path / "b"]
    assert [False, True] == [survey_files(files, n, "auto", "raise")[1] for n in (4999, 5000)]
    survey, _ = survey_files(files, 4000, "auto", "raise")
    features = survey.features()
    assert survey.num_records == 8000
    assert {"a": 4000, "b": 4000} == {name: seen.records for name, seen in features.items()}
    assert features["a"].kinds["int64"] == (4000, 4000, 0, 3999, sum(range(4000)), 0)


def test_a_record_that_is_no_example_is_named(tmp_path):
    tfw.write_records(tmp_path / "x", [b"", tfw.encode_example({"a": 1}), b"\xff"])
    with pytest.raises(tfw.ParseError, match=r"x: record 2 is not an Example: ") as caught:
        survey_files([tmp_path / "x"], None, "auto", "raise")
    assert (2, "malformed") == (caught.value.record_index, caught.value.reason)
