"""Specifications that change between two calls: the parse functions notice every change."""

import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest

import tfwire as tfw
from helpers.search import search
from helpers.specs import compilations

MESSAGE = tfw.encode_example({"a": [1, 2], "b": 0.5, "c": [b"x", b"y"], "i": [0, 1], "z": [0, 2]})
SEQUENCE = tfw.encode_sequence_example(
    {"a": [1, 2], "b": 0.5, "c": [b"x", b"y"]}, {"a": [[1, 2], [3, 4]], "c": ["x", "y"]}
)


def told(function, *arguments):
    """What a call gives, comparable: keys in order, dtypes, bits; or the error."""
    try:
        return pickle.dumps(plain(function(*arguments)))
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)


def plain(value):
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, tfw.RaggedTensor):
        return "ragged", plain(value.values), plain(value.row_splits)
    if isinstance(value, tuple):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        shown = value.tolist() if value.dtype == object else value.tobytes()
        return str(value.dtype), value.shape, shown
    return value


# What defaults and shapes hold: values that are equal and yet do not mean the same.
VALUES = [0, 1, 2, True, False, 1.0, 0.0, -0.0, float("nan"), np.int64(1), np.float32(1)]
VALUES += ["x", b"x", bytearray(b"x"), None, 2**63]


def random_default(rng):
    value = rng.choice(VALUES)
    form = rng.randrange(6)
    if form == 0:
        return [value]
    if form == 1:
        return [[rng.choice(VALUES)], [value]]
    if form == 2:
        return np.array([rng.randrange(3), 1], rng.choice([np.int64, np.float32]))
    if form == 3:
        return np.array([b"x", "y"], object)
    return value


def random_shape(rng):
    return rng.choice([list, list, tuple, np.array])(
        [rng.choice([0, 1, 2, 2, 1.0, True]) for _ in range(rng.choice([0, 0, 1, 2]))]
    )


def random_feature(rng):
    dtype = rng.choice([tfw.int64, tfw.float32, tfw.string, "int64", np.float32])
    kind = rng.randrange(7)
    if kind < 3:
        return tfw.FixedLenFeature(random_shape(rng), dtype, random_default(rng))
    if kind == 3:
        return tfw.FixedLenSequenceFeature(random_shape(rng), dtype, True, rng.choice(VALUES))
    if kind == 4:
        return rng.choice(
            [tfw.VarLenFeature(dtype), (dtype,), tfw.SparseFeature(["i"], "a", tfw.int64, [2])]
        )
    if kind == 5:
        ragged = tfw.RaggedFeature
        partition = rng.choice([ragged.RowStarts, ragged.RowLimits, ragged.RowSplits])("z")
        return ragged(tfw.int64, "a", [partition])
    return tfw.FixedLenFeature([], dtype)


def change(rng, features):
    """Changes a specification in place, in one of many ways."""
    key = rng.choice("abcx")
    kind = rng.randrange(6)
    if kind == 0:
        features[key] = random_feature(rng)
    elif kind == 1 and len(features) > 1:
        features.pop(next(iter(features)))
    elif kind == 2:  # equal, in another order
        items = list(features.items())
        rng.shuffle(items)
        features.clear()
        features.update(items)
    elif kind == 3 and key in features:
        features[key] = copy.deepcopy(features[key])
    else:
        fields = [f for feature in features.values() for f in feature]
        changeable = [f for f in fields if isinstance(f, (list, np.ndarray, bytearray))]
        if changeable:
            change_inside(rng, rng.choice(changeable))


def change_inside(rng, value):
    if isinstance(value, np.ndarray):
        if value.size:
            value.flat[rng.randrange(value.size)] = rng.randrange(3)
    elif isinstance(value, bytearray):
        value[0] ^= 1
    elif value and isinstance(value[0], list):
        change_inside(rng, rng.choice(value))
    elif not value or rng.randrange(3) == 0:
        value.append(rng.choice(VALUES))
    elif rng.randrange(2):
        value.pop()
    else:
        value[rng.randrange(len(value))] = rng.choice(VALUES)


def test_every_change_of_a_specification_is_noticed():
    """After every change, the same dict gives what a copy gives that was never seen before."""

    def case(rng):
        features = {key: random_feature(rng) for key in rng.sample("abcx", rng.randrange(1, 4))}
        for _ in range(8):
            fresh = copy.deepcopy(features)
            for function, serialized in [
                (tfw.parse_single_example, MESSAGE),
                (tfw.parse_example, [MESSAGE, b""]),
                (tfw.parse_single_sequence_example, SEQUENCE),
                (tfw.parse_sequence_example, [SEQUENCE]),
            ]:
                expected = told(function, serialized, fresh)
                assert expected == told(function, serialized, features), features
                assert expected == told(function, serialized, features), features
            change(rng, features)

    search(case, seconds=0, least=50)


@pytest.mark.parametrize(
    ("features", "change"),
    [
        ({"a": tfw.FixedLenFeature([2], tfw.int64)}, lambda f: f["a"].shape.append(1)),
        ({"a": tfw.FixedLenFeature([], tfw.int64, 5)}, lambda f: f["a"].shape.append(2)),
        ({"x": tfw.FixedLenFeature([1], tfw.int64, [5])}, lambda f: f["x"].default_value.append(6)),
        (
            {"x": tfw.FixedLenFeature([1], tfw.int64, np.array([5]))},
            lambda f: f["x"].default_value.__setitem__(0, 6),
        ),
        (
            {"x": tfw.FixedLenFeature([1], tfw.float32, [0.0])},
            lambda f: f["x"].default_value.__setitem__(0, -0.0),
        ),
        (
            {"x": tfw.FixedLenFeature([], tfw.int64, 1)},
            lambda f: f.update(x=tfw.FixedLenFeature([], tfw.int64, 1.0)),
        ),
        (
            {"a": tfw.VarLenFeature(tfw.int64), "c": tfw.VarLenFeature(tfw.string)},
            lambda f: f.update(a=f.pop("a")),
        ),
        (
            {"s": tfw.SparseFeature(["i"], "a", tfw.int64, [2])},
            lambda f: f["s"].size.__setitem__(0, 9),
        ),
        # Equal, as tuples are compared.
        (
            {"r": tfw.RaggedFeature(tfw.int64, "a", [tfw.RaggedFeature.RowStarts("z")])},
            lambda f: f.update(
                r=tfw.RaggedFeature(tfw.int64, "a", [tfw.RaggedFeature.RowLimits("z")])
            ),
        ),
        ({"a": tfw.VarLenFeature(tfw.int64)}, lambda f: f.update(a=(tfw.int64,))),
        (
            {"x": tfw.FixedLenFeature([80], tfw.int64, [5] * 80)},
            lambda f: f["x"].default_value.__setitem__(70, 6),
        ),
    ],
)
def test_a_change_inside_is_noticed(features, change):
    before = told(tfw.parse_single_example, MESSAGE, features)
    change(features)
    after = told(tfw.parse_single_example, MESSAGE, features)
    assert told(tfw.parse_single_example, MESSAGE, copy.deepcopy(features)) == after != before


@pytest.mark.parametrize("make", [lambda f: tfw.Parser(f), lambda f: tfw.SequenceParser(f)])
def test_a_parser_keeps_what_it_was_made_of(make):
    """Also what it is pickled as."""
    shape, default = [2], np.array([3, 4])
    features = {"x": tfw.FixedLenFeature(shape, tfw.int64, default)}
    parser = make(features)
    shape[0], default[0] = 1, 9
    features.clear()
    for found in (parser, pickle.loads(pickle.dumps(parser))):
        result = found.parse_single(b"")
        assert [3, 4] == (result if isinstance(result, dict) else result[0])["x"].tolist()


def test_a_feature_that_makes_up_its_fields_is_asked_at_every_call():
    """What it says then holds for the whole call."""
    sizes = []

    class FixedLenFeature(tfw.FixedLenFeature):
        @property
        def shape(self):
            sizes.append(len(sizes))
            return [sizes[-1]]

    features = {"x": FixedLenFeature(None, tfw.int64)}
    for _ in range(3):
        known = len(sizes)
        with pytest.raises(tfw.ParseError, match="required"):
            tfw.parse_single_example(b"", features)
        assert len(sizes) > known


def test_a_list_in_a_feature_of_tensorflow_is_watched():
    """Its RaggedFeature keeps the list of partitions that it was given."""
    fields = ["dtype", "value_key", "partitions", "row_splits_dtype", "validate"]
    theirs = namedtuple("RaggedFeature", fields)
    theirs.__module__ = "tensorflow.python.ops.parsing_ops"
    partitions = [tfw.RaggedFeature.RowLengths("i")]
    features = {"r": theirs("int64", "a", partitions, "int64", False)}
    message = tfw.encode_example({"a": [1, 2], "i": [2, 0], "j": [1, 1]})
    with compilations() as made:
        assert [[1, 2], []] == tfw.parse_single_example(message, features)["r"].to_list()
        tfw.parse_single_example(message, features)
    assert len(made) == 1
    partitions[0] = tfw.RaggedFeature.RowLengths("j")
    assert [[1], [2]] == tfw.parse_single_example(message, features)["r"].to_list()
