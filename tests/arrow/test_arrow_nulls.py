"""What is null in tables: a feature that a record does not have, and one without a kind, which is
how others write null. A list that has a kind and no values is empty, as decode_example tells it."""

import random

import numpy as np
import pytest

import tfwire as tfw
from helpers.arrow.structs import rows_of_batch, rows_of_stream, written
from tfwire.arrow import open_reader

INT64, STRING = tfw.int64, tfw.string
LISTS = [
    tfw.VarLenFeature(STRING),
    tfw.RaggedFeature(STRING),
    tfw.FixedLenSequenceFeature([], STRING, allow_missing=True),
]


def table(tmp_path, rows, features, **options):
    return rows_of_stream(open_reader(written(tmp_path, rows), features, **options))


@pytest.mark.parametrize("feature", LISTS, ids=lambda feature: type(feature).__name__)
def test_without_a_kind_is_null_and_empty_is_empty(tmp_path, feature):
    values = [["x", "y"], None, [], np.empty(0, object), [""], [], None]
    expected = [[b"x", b"y"], None, None, [], [b""], None, None]
    rows = [{"a": value, "b": 1} for value in values]
    for batch_size in (1, 3, 100):
        found = table(tmp_path, rows, {"a": feature}, batch_size=batch_size)
        assert [{"a": value} for value in expected] == found


def test_elements_of_a_shape(tmp_path):
    pairs = tfw.FixedLenSequenceFeature([2], INT64, allow_missing=True)
    rows = [{}, {"a": []}, {"a": np.empty(0, np.int64)}, {"a": [1, 2, 3, 4]}]
    found = table(tmp_path, rows, {"a": pairs})
    assert [{"a": value} for value in (None, None, [], [[1, 2], [3, 4]])] == found


def test_rows_of_rows_are_null_if_all_of_their_features_are(tmp_path):
    lengths, ones = tfw.RaggedFeature.RowLengths("p"), tfw.RaggedFeature.UniformRowLength(1)
    feature = tfw.RaggedFeature(INT64, "v", [lengths, ones])
    empty = np.empty(0, np.int64)
    rows = [{}, {"v": [], "p": []}, {"v": empty, "p": []}, {"v": [], "p": empty}, {"p": empty}]
    rows += [{"v": [1, 2], "p": [2]}, {"p": [0, 0]}]
    expected = [None, None, [], [], [], [[[1], [2]]], [[], []]]
    found = table(tmp_path, rows, {"rows": feature})
    assert [{"rows": value} for value in expected] == found


def test_the_context_of_sequence_examples(tmp_path):
    records = [
        tfw.encode_sequence_example({"a": value} if value is not None else {}, {})
        for value in (["x"], [], np.empty(0, object), None)
    ]
    found = table(tmp_path, records, ({"a": tfw.VarLenFeature(STRING)}, {}))
    assert [[b"x"], None, [], None] == [row["a"] for row in found]


# ---- Steps of feature lists ---------------------------------------------------------------------


def feature_list(steps):
    """A FeatureList whose steps are None, without a kind, or integers."""
    features = [tfw.train.Feature() if s is None else tfw.int64_feature(s) for s in steps]
    return tfw.train.FeatureList(feature=features)


def sequence(**lists):
    """A SequenceExample with these feature lists; those that are None are left out."""
    given = {name: feature_list(steps) for name, steps in lists.items() if steps is not None}
    return tfw.train.SequenceExample(
        feature_lists=tfw.train.FeatureLists(feature_list=given)
    ).SerializeToString()


LIST_OF_STEPS = [None, [], [[1, 2], None, [], [3]], [None], [None, None, [4]], [[]], [[5]] * 9]


@pytest.mark.parametrize("feature", [tfw.VarLenFeature(INT64), tfw.RaggedFeature(INT64)])
@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_steps_without_a_kind_are_null(tmp_path, feature, batch_size):
    records = [sequence(w=steps) for steps in LIST_OF_STEPS]
    found = table(tmp_path, records, ({}, {"w": feature}), batch_size=batch_size)
    assert [{"w": steps} for steps in LIST_OF_STEPS] == found


def test_steps_of_rows_of_rows(tmp_path):
    rows = tfw.RaggedFeature(INT64, "v", [tfw.RaggedFeature.RowLengths("p")])
    records = [sequence(v=[[1, 2], None, None, []], p=[[2], None, [], None])]
    assert [{"r": [[[1, 2]], None, [], []]}] == table(tmp_path, records, ({}, {"r": rows}))


def test_steps_of_records_that_fail_and_of_entries_that_are_replaced(tmp_path):
    """Of an entry that comes again, and of a record that is left out, nothing is null."""
    words = tfw.VarLenFeature(INT64)
    twice = sequence(w=[None, None, [1]]) + sequence(w=[[2], None])
    wrong = sequence(w=[None, [1]], z=[[1], None])
    path = written(tmp_path, [sequence(w=[[1]]), twice, wrong, sequence(w=[[1], [2]])])
    features = ({}, {"w": words, "z": tfw.VarLenFeature(STRING)})
    reader = open_reader(path, features)
    found = []
    with pytest.raises(tfw.ParseError):
        found.extend(row for batch in reader for row in rows_of_batch(batch))
    assert [[[1]], [[2], None]] == [row["w"] for row in found]
    good = written(tmp_path, [twice, sequence(w=[[1], [2]])], "good")
    found = rows_of_stream(open_reader(good, features))
    assert [[[2], None], [[1], [2]]] == [row["w"] for row in found]


# ---- Any messages -------------------------------------------------------------------------------

KINDS = {INT64: np.int64, tfw.float32: np.float32, STRING: object}


def drawn_cell(rng, dtype):
    count = rng.choice([0, 0, 1, 2, 5])
    values = np.empty(count, KINDS[dtype])
    values[:] = [b"x" * i if dtype == STRING else i for i in range(count)]
    return rng.choice([None, [], values, values])


def as_in_tables(cell):
    """What decode_example gives of a feature, as tables have it."""
    return cell.tolist() if isinstance(cell, np.ndarray) else cell or None


@pytest.mark.parametrize("seed", range(20))
def test_tables_have_what_decode_example_gives(tmp_path, seed):
    """And what is written of the table has the same table again."""
    rng = random.Random(seed)
    types, counts = [tfw.VarLenFeature, tfw.RaggedFeature], [1]
    if seed % 2:  # an entry of a key replaces the one before, also if it has no kind
        types, counts = [tfw.VarLenFeature], [1, 2]
    dtypes = {name: rng.choice(list(KINDS)) for name in "abcd"}
    records = []
    for _ in range(rng.randrange(1, 40)):
        parts = [
            tfw.encode_example({name: drawn_cell(rng, dtype) for name, dtype in dtypes.items()})
            for _ in range(rng.choice(counts))
        ]
        records.append(b"".join(parts))
    features = {name: rng.choice(types)(dtype) for name, dtype in dtypes.items()}
    decoded = tfw.decode_examples(records)
    expected = [{name: as_in_tables(row.get(name, [])) for name in features} for row in decoded]
    path = written(tmp_path, records)
    for options in ({}, {"batch_size": rng.randrange(1, 9)}, {"num_threads": 2}):
        assert expected == rows_of_stream(open_reader(path, features, **options))
    again = tfw.encode_columns(open_reader(path, features))
    assert expected == table(tmp_path, again, features)
    kept = [{k: v for k, v in row.items() if as_in_tables(v) is not None} for row in decoded]
    assert tfw.encode_examples(kept) == again


@pytest.mark.parametrize("seed", range(20))
def test_steps_in_tables_are_what_decode_sequence_example_gives(tmp_path, seed):
    rng = random.Random(seed)
    shapes = ["v", "w"]

    def steps():
        cells = [[], [1], [2, 3], None]
        return rng.choice([None, rng.choices(cells, k=rng.randrange(5))])

    records = [
        b"".join(sequence(**{name: steps() for name in shapes}) for _ in range(rng.choice([1, 2])))
        for _ in range(rng.randrange(1, 30))
    ]
    decoded = [tfw.decode_sequence_example(record)[1] for record in records]
    expected = [
        {name: [as_in_tables(s) for s in row[name]] if name in row else None for name in shapes}
        for row in decoded
    ]
    features = ({}, {name: tfw.RaggedFeature(INT64) for name in shapes})
    for batch_size in (1, 7, 100):
        assert expected == table(tmp_path, records, features, batch_size=batch_size)
