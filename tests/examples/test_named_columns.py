"""Which columns a specification names, and those of a SparseFeature: dicts, or its features."""

import warnings

import numpy as np
import pytest

import tfwire as tfw
from helpers.arrow.columns import Batch, lay_out, table_of

RAGGED = tfw.RaggedFeature


def test_a_misspelt_name_is_an_error_that_has_the_nearest():
    numbers = tfw.VarLenFeature("int64")
    said = r"^feature 'frmaes': the specification does not name this column, but 'frames', which"
    tables = [{"id": [1], "frmaes": value} for value in ([[1]], [[[1]]], [None])]
    for table in (*tables, Batch(table_of({"frmaes": lay_out("l", [1], 0)}))):
        for features in ({"frames": numbers, "size": numbers}, (None, {"frames": numbers})):
            with pytest.raises(ValueError, match=said):
                tfw.encode_columns(table, features=features)
    with pytest.raises(ValueError, match="needs a value in every record; is 'ids' meant"):
        tfw.encode_columns({"ids": [1]}, features={"id": tfw.FixedLenFeature([], "int64")})


def test_sparse_features_are_written_from_dicts_or_from_their_parts():
    sparse = tfw.SparseFeature("at", "value", "float32", 10)
    grid = tfw.SparseFeature(["row", "column"], "text", "string", [5, 5])
    expected = tfw.encode_examples(
        [
            {"at": [1], "value": [2.0], "row": [1, 2], "column": [0, 3], "text": ["a", "b"]},
            {},
        ]
    )
    cells = {
        "x": [{"indices": [1], "values": [2]}, None],
        "y": [{"indices": [[1, 0], [2, 3]], "values": ["a", "b"]}, None],
    }
    parts = {"at": [[1], None], "value": [[2], None], "row": [[1, 2], None]}
    parts |= {"column": [[0, 3], None], "text": [["a", "b"], None]}
    for columns in (
        cells,
        {name: np.array(column, object) for name, column in cells.items()},
        parts,
        {**parts, "x": cells["x"]},
    ):
        assert expected == tfw.encode_columns(columns, features={"x": sparse, "y": grid})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfw.encode_columns(
            {"z": [1]}, features={"z": tfw.VarLenFeature("int64"), "x": sparse}
        )
    for wrong, said in [
        ([{"indices": [1, 2], "values": [1.0]}], "record 0: expected as many indices as values"),
        (
            [{"indices": [1]}],
            "record 0: expected a struct of 'indices' and 'values', .* other keys",
        ),
        ([None, 1.5], "record 1: expected a struct of .*, found float"),
        ([{"indices": [1], "values": ["a"]}], "expected float32, .* found string"),
        ([{"indices": 1, "values": 1.0}], "expected lists of indices and of values"),
        ([{"indices": [None], "values": [1.0]}], "record 0: a null inside a list"),
    ]:
        with pytest.raises((TypeError, ValueError), match=f"^feature '(x|at|value)': {said}"):
            tfw.encode_columns({"x": wrong}, features={"x": sparse})
    with pytest.raises(ValueError, match="does not name this column, but 'value', which"):
        tfw.encode_columns({"at": [[1]], "values": [[1.0]]}, features={"x": sparse})


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"i": [[1], [2, 3]], "v": [[2.0], [1.0]]}, "1: .* found 2 in 'i' and 1 in 'v'$"),
        ({"i": [[], [2]]}, "1: expected as .* found 1 in 'i' and 0 in 'v' .there is no such"),
        ({"v": [[], [2.0]]}, "1: .* found 0 in 'i' .there is no such column. and 1 in 'v'$"),
        ({"i": [[0], [9, 10]], "v": [[1], [1, 1]]}, "1: the index 10 in 'i' .* the size 10$"),
        ({"i": [3, -1], "v": [1.0, 1.0]}, "1: the index -1 in 'i' is outside of the size 10$"),
        ({"sp": [None, {"indices": [10], "values": [1.0]}]}, "1: the index 10 in 'i'"),
        ({"g": [{"indices": [[0, 1], [1, 5]], "values": [1, 2]}]}, "0: the index 5 in 'c'"),
    ],
)
def test_sparse_columns_fit_each_other_and_the_size(columns, said):
    features = {
        "sp": tfw.SparseFeature("i", "v", "float32", 10),
        "g": tfw.SparseFeature(["r", "c"], "n", "int64", [2, 5]),
    }
    with pytest.raises(ValueError, match=f"^feature '(sp|g)': record {said}"):
        tfw.encode_columns(columns, features=features)


def test_sparse_columns_may_repeat_indices_or_be_empty():
    features = {"sp": tfw.SparseFeature("i", "v", "float32", 10)}
    for columns in ({"i": [[3, 3]], "v": [[1, 2]]}, {"i": [[], None]}, {"i": [], "v": []}):
        written = tfw.encode_columns(columns, features=features)
        assert len(written) == len(columns["i"])
        tfw.parse_example(written, features)


def test_columns_that_are_not_named_are_a_warning_where_others_are_not_there():
    frames = tfw.VarLenFeature("int64")
    with pytest.warns(tfw.TfwireWarning, match=r"names 'frames', .*do(es)? not name them: 'id'$"):
        assert len(tfw.encode_columns({"id": [1]}, features=(None, {"frames": frames}))) == 1
    with pytest.warns(tfw.TfwireWarning, match=r"names 'box1', .*not name them: 'box2'$"):
        tfw.encode_columns({"box2": [1]}, features={"box1": frames})
    made = Batch(table_of({name: lay_out("l", [1], 0) for name in "abcde"}))
    with pytest.warns(tfw.TfwireWarning, match=r"names 'x', .*: 'a', 'b', 'c', 2 others$"):
        tfw.encode_columns(made, features={"x": frames})
    ragged = {"x": RAGGED("int64", "v", [RAGGED.RowLengths("n")]), "z": frames}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfw.encode_columns({"z": [1]}, features={"z": frames, "optional": frames})
        tfw.encode_columns({"v": [1], "n": [1]}, features=ragged)  # its features, one by one
        tfw.encode_columns({"z": [1], "a": [1]}, features={"z": frames})
