"""Specifications and dtypes, ours and those that look like TensorFlow's."""

import copy
import pickle
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw
from tfwire._parsing import features
from tfwire._parsing.features import as_feature, int32, to_dtype

RAGGED = tfw.RaggedFeature(
    tfw.int64,
    "v",
    [tfw.RaggedFeature.RowSplits("s"), tfw.RaggedFeature.UniformRowLength(2)],
)

FEATURES = [
    tfw.FixedLenFeature([2], tfw.int64, [1, 2]),
    tfw.VarLenFeature(tfw.string),
    tfw.FixedLenSequenceFeature([], tfw.float32, True),
    tfw.SparseFeature("i", "v", tfw.float32, 4),
    RAGGED,
]


def foreign_dtype(name, numpy_type):
    """A dtype as TensorFlow's, by what is visible of it."""
    return SimpleNamespace(name=name, as_numpy_dtype=numpy_type)


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        (tfw.int64, [np.int64, "int64", np.dtype("<i8"), np.dtype(">i8"), int]),
        (tfw.float32, [np.float32, "float32", np.dtype(">f4"), float, "float"]),
        (tfw.string, [bytes, str, object, "string", "S", "S5", "object", np.bytes_, np.str_]),
        (tfw.int64, [foreign_dtype("int64", np.int64)]),
        (tfw.string, [foreign_dtype("string", object)]),
    ],
)
def test_a_dtype_equals_whatever_names_the_same_type(dtype, names):
    for name in names:
        assert dtype is to_dtype(name)
        assert dtype == name


@pytest.mark.parametrize("other", [np.int32, "uint8", bool, None, 5, "no dtype", tfw.float32])
def test_a_dtype_differs_from_anything_else(other):
    assert tfw.int64 != other


def test_numpy_takes_a_dtype_as_its_own():
    assert np.dtype("int64") == np.zeros(0, tfw.int64).dtype
    assert np.dtype(object) == np.dtype(tfw.string)


def test_equal_dtypes_have_equal_hashes_and_pickle_to_themselves():
    assert 1 == len({tfw.int64, to_dtype("int64")})
    assert tfw.string is pickle.loads(pickle.dumps(tfw.string))
    assert tfw.string is copy.deepcopy(tfw.string)


def test_other_dtypes_keep_their_names():
    """The functions that decode raw bytes know more types than specifications do."""
    assert ("uint8", np.uint8) == (to_dtype("uint8").name, to_dtype("uint8").as_numpy_dtype)


@pytest.mark.parametrize("feature", FEATURES)
def test_features_pickle_and_copy(feature):
    for other in (pickle.loads(pickle.dumps(feature)), copy.deepcopy(feature)):
        assert feature == other
        assert type(feature) is type(other)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_namedtuple_of_the_same_name_and_fields_is_taken(feature):
    """This is how TensorFlow's own objects look."""
    cls = namedtuple(type(feature).__name__, feature._fields)
    found = as_feature("a", cls(*feature))
    assert feature == found
    assert type(feature) is type(found)


def test_partitions_of_another_library_are_taken():
    cls = namedtuple("RowLengths", ["key"])
    ragged = tfw.RaggedFeature(tfw.int64, partitions=[cls("k")])
    assert (tfw.RaggedFeature.RowLengths("k"),) == ragged.partitions
    assert type(ragged.partitions[0]) is tfw.RaggedFeature.RowLengths


@pytest.mark.parametrize(
    "value", [5, None, "int64", tfw.int64, namedtuple("VarLenFeature", "x")(1)]
)
def test_anything_else_is_no_feature(value):
    with pytest.raises(ValueError, match=r"Unsupported .* for key 'a'"):
        as_feature("a", value)


def test_fields_have_the_names_order_and_defaults_of_tensorflow():
    assert ("shape", "dtype", "default_value") == tfw.FixedLenFeature._fields
    assert ([], "int64", None) == tfw.FixedLenFeature([], "int64")
    assert ([], "int64", False, None) == tfw.FixedLenSequenceFeature([], "int64")
    assert ("i", "v", "int64", 3, False) == tfw.SparseFeature("i", "v", "int64", 3)
    assert ("index_key", "value_key", "dtype", "size", "already_sorted") == (
        tfw.SparseFeature._fields
    )
    assert (tfw.int64, None, (), int32, False) == tfw.RaggedFeature("int64")
    assert ("dtype", "value_key", "partitions", "row_splits_dtype", "validate") == (
        tfw.RaggedFeature._fields
    )


@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (ValueError, {"dtype": np.int32}),
        (ValueError, {"value_key": ""}),
        (ValueError, {"value_key": 3}),
        (ValueError, {"row_splits_dtype": np.uint32}),
        (TypeError, {"partitions": "s"}),
        (TypeError, {"partitions": ["s"]}),
        (TypeError, {"validate": 1}),
        (TypeError, {"dtype": None}),
    ],
)
def test_a_ragged_feature_checks_its_fields_when_it_is_made(error, arguments):
    with pytest.raises(error, match=r"Argument|dtype"):
        tfw.RaggedFeature(**{"dtype": tfw.int64} | arguments)


@pytest.mark.parametrize("dtype", [tfw.int64, features.int32, tfw.float32, tfw.string])
def test_a_dtype_is_the_numpy_type_also_as_a_key(dtype):
    scalar = dtype.as_numpy_dtype
    assert dtype == scalar == dtype
    assert hash(dtype) == hash(scalar)
    assert 1 == {scalar: 1}[dtype] == {dtype: 1}[scalar]
    assert {dtype} == {scalar}


def test_equal_dtypes_have_equal_hashes():
    """np.longlong and np.int64 can be two types of one name."""
    dtypes = [to_dtype(code) for code in "?bBhHiIlLqQefdgFDG"]
    dtypes += [to_dtype(name) for name in ("bool", "uint64", "float64", "S3", "U3", "O")]
    for one in dtypes:
        for other in dtypes:
            assert one != other or hash(one) == hash(other), (one, other)


@pytest.mark.parametrize("value", [",", "i4,,", "", "nonsense", 5, None, object(), [1], {"a": 1}])
def test_what_names_no_dtype_is_equal_to_none_and_refused(value):
    assert tfw.int64 != value
    with pytest.raises(TypeError, match="dtype"):
        to_dtype(value)
