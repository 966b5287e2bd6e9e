"""Specifications written inside the functions that parse, as tutorials do: a new dict at each call.

They give what a specification that is kept gives, are compiled once, and are never taken for
another one.
"""

import pickle
from collections import OrderedDict, UserDict
from contextlib import suppress
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, strategies as st
from test_spec_changes import MESSAGE, SEQUENCE, told

import tfwire as tfw
import tfwire.compat as tf
from helpers.products import diagonals
from helpers.specs import compilations, forget
from helpers.threads import at_once
from tfwire._parsing import spec_cache


def features():
    """Every kind of feature and of default value that a program may write."""
    return {
        "a": tfw.FixedLenFeature([2], tfw.int64, [1, 2]),
        "b": tfw.FixedLenFeature([], tfw.float32, default_value=0.0),
        "nan": tfw.FixedLenFeature((), "float32", float("nan")),
        "c": tfw.FixedLenFeature([2], tf.string),
        "d": tfw.FixedLenFeature([2], np.float32, np.array([0.5, -0.0])),
        "text": tfw.FixedLenFeature([1], str, np.array(["x"], object)),
        "mutable": tfw.FixedLenFeature([], tfw.string, bytearray(b"x")),
        "scalar": tfw.FixedLenFeature([], np.dtype("int64"), np.int64(4)),
        "tensor": tfw.FixedLenFeature(tf.TensorShape([1]), tf.int64, tf.constant([4], tf.int64)),
        "long": tfw.FixedLenFeature([100], tfw.float32, [0.5] * 100),
        "longer": tfw.FixedLenFeature([200], tfw.int64, [7] * 200),
        "v": tfw.VarLenFeature(tfw.string),
        "p": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True, default_value=-1),
        "s": tfw.SparseFeature(["i"], "z", tfw.int64, [9]),
        "r": tfw.RaggedFeature(tfw.int64, "q", [tfw.RaggedFeature.RowLengths("n")]),
        b"key": tfw.RaggedFeature(tfw.float32),
    }


def context():
    return {"a": tfw.FixedLenFeature([2], tfw.int64), "b": tfw.VarLenFeature(tfw.float32)}


def lists():
    return {"a": tfw.FixedLenSequenceFeature([2], tfw.int64), "c": tfw.RaggedFeature(tfw.string)}


ELEMENTS = [MESSAGE] * 5
CALLS = {
    "parse_single_example": lambda f, c, s: tfw.parse_single_example(MESSAGE, f()),
    "parse_example": lambda f, c, s: tfw.parse_example([MESSAGE, MESSAGE], f()),
    "Parser": lambda f, c, s: tfw.Parser(f()).parse_single(MESSAGE),
    "Parser.parse": lambda f, c, s: tfw.Parser(f(), bytes_as="column").parse([MESSAGE])["a"],
    "parse_single_sequence_example": lambda f, c, s: tfw.parse_single_sequence_example(
        SEQUENCE, c(), s()
    ),
    "parse_sequence_example": lambda f, c, s: tfw.parse_sequence_example([SEQUENCE], c(), s()),
    "only a context": lambda f, c, s: tfw.parse_single_sequence_example(SEQUENCE, c()),
    "only lists": lambda f, c, s: tfw.parse_single_sequence_example(SEQUENCE, {}, s()),
    "SequenceParser": lambda f, c, s: tfw.SequenceParser(c(), s()).parse_single(SEQUENCE),
    "Dataset.map": lambda f, c, s: list(
        tfw.Dataset.from_tensor_slices(ELEMENTS).map(lambda x: tfw.parse_single_example(x, f()))
    ),
    "Dataset.parse_example": lambda f, c, s: list(
        tfw.Dataset.from_tensor_slices(ELEMENTS).batch(2).parse_example(f())
    ),
    "compat": lambda f, c, s: tf.io.parse_single_example(MESSAGE, f())["a"].numpy(),
    "compat, a batch": lambda f, c, s: tf.io.parse_example([MESSAGE], f())["c"].numpy(),
    "compat, a sequence": lambda f, c, s: tf.io.parse_single_sequence_example(SEQUENCE, c(), s())[
        1
    ]["a"].numpy(),
    "compat, a dataset": lambda f, c, s: [
        element["a"].numpy()
        for element in tf.data.Dataset.from_tensor_slices(ELEMENTS).map(
            lambda x: tf.io.parse_single_example(x, f())
        )
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_an_inline_specification_gives_what_a_kept_one_gives_and_is_compiled_once(name):
    kept = features(), context(), lists()
    expected = told(CALLS[name], *(lambda spec=spec: spec for spec in kept))
    with compilations() as made:
        for _ in range(4):
            assert told(CALLS[name], features, context, lists) == expected
    is_pair = "sequence" in name.lower()
    assert len(made) == (2 if is_pair else 1)


@pytest.mark.parametrize("kind", [MappingProxyType, UserDict, OrderedDict])
def test_a_mapping_that_is_no_dict_is_found_too(kind):
    with compilations() as made:
        for _ in range(4):
            tfw.parse_single_example(MESSAGE, kind(features()))
    assert len(made) == 1


# ---- Near each other, and never mixed up ------------------------------------------------------
NAN = float("nan")
# Values that are equal, or look so, and do not all mean the same.
TWINS = [
    [0, False, 0.0, -0.0, np.int64(0), np.int32(0), np.float32(0), np.float32(-0.0), np.float64(0)],
    [1, True, 1.0, np.int64(1), np.uint8(1), np.float32(1), np.bool_(True), tf.constant(1), 2],
    [NAN, -NAN, np.float32("nan"), np.float64(-NAN), 0.1, float(np.float32(0.1)), np.float32(0.1)],
    ["a", b"a", np.str_("a"), np.bytes_(b"a"), bytearray(b"a"), "b", bytearray(b"b"), "", None],
    [2**53, float(2**53), 2**53 + 1, 2**63, float("inf"), -float("inf")],
]
FORMS = [
    lambda value: value,
    lambda value: [value],
    lambda value: (value,),
    lambda value: [[value]],
    lambda value: np.array([value], object),
    lambda value: np.array([value]),
    lambda value: np.array([value], np.float32) if isinstance(value, float) else [value],
    lambda value: [value] * 70,
]
SIZES = {
    0: [[], (), np.array([], np.int64), tf.TensorShape([]), [0], [1]],
    1: [[1], (1,), 1, [True], [1.0], [np.int64(1)], np.array([1]), np.array([1.0]), [[1]], [2]],
    70: [[70], (70,), [7, 10], tf.TensorShape([70]), [70.0]],
}
SAME_TYPES = [
    [tfw.int64, "int64", int, np.int64, np.dtype("int64"), np.dtype("int64").newbyteorder(), "i4"],
    [tfw.float32, "float", "float32", float, np.float32, np.dtype("float32"), np.float64],
    [tfw.string, "string", str, bytes, np.dtype("O"), np.dtype("S3"), np.object_],
]


@st.composite
def fixed(draw):
    """Two FixedLenFeatures, most of them valid, that differ in little or nothing."""
    group = draw(st.integers(0, len(TWINS) - 1))
    number = 2 if group == 3 else draw(st.integers(0, 1))
    form = draw(st.sampled_from(FORMS))
    sizes = SIZES[(form is not FORMS[0]) * (70 if form is FORMS[-1] else 1)]
    made = []
    for kind in (tfw.FixedLenFeature, draw(st.sampled_from([tfw.FixedLenFeature, None]))):
        value = draw(st.sampled_from(TWINS[group]))
        shape = draw(st.sampled_from(sizes + sizes[:1] * 5))
        dtype = draw(st.sampled_from(SAME_TYPES[number] + SAME_TYPES[number][:1] * 5))
        default = value if value is None else form(value)
        if kind is not None:
            made.append(kind(shape, dtype, default))
        else:
            made.append(tfw.FixedLenSequenceFeature(shape, dtype, True, default))
    return made


DTYPES = st.sampled_from([dtype for same in SAME_TYPES for dtype in same])
RAGGED = st.builds(
    lambda value_key, kind, splits: tfw.RaggedFeature(tfw.int64, value_key, [kind], splits),
    st.sampled_from(["a", None, "i"]),
    st.sampled_from(
        [getattr(tfw.RaggedFeature, name)("z") for name in ("RowStarts", "RowLimits", "RowSplits")]
        + [tfw.RaggedFeature.UniformRowLength(size) for size in (1, 2, True)]
    ),
    st.sampled_from([tf.int32, tfw.int64, "int64"]),
)
OTHERS = st.one_of(
    st.builds(tfw.VarLenFeature, DTYPES),
    st.builds(
        tfw.FixedLenSequenceFeature,
        st.just([]),
        st.just(tfw.int64),
        st.sampled_from([True, False, 1, np.bool_(True)]),
        st.none(),
    ),
    st.builds(
        tfw.SparseFeature,
        st.sampled_from(["i", ["i"], ("i",), [b"i"]]),
        st.sampled_from(["a", b"a"]),
        st.just(tfw.int64),
        st.sampled_from([2, [2], (2,), [True], [2.0], [3]]),
        st.sampled_from([False, True, 0]),
    ),
    RAGGED,
    st.tuples(DTYPES),  # equal to a VarLenFeature
)


class Key(str):
    """A str with something more."""


KEYS = st.sampled_from(["a", b"a", "x", "c", Key("x"), np.str_("x"), "b"])


@st.composite
def near(draw):
    """Two specifications that differ in little or nothing."""
    first, second = draw(st.one_of(fixed(), fixed(), st.tuples(OTHERS, OTHERS)))
    key = draw(KEYS)
    other = draw(st.sampled_from([key] * 5 + ["x", Key("x")]))
    specs = {key: first}, {other: second}
    for spec in specs:
        spec["v"] = tfw.VarLenFeature(tfw.int64)
    if draw(st.integers(0, 5)) == 0:
        specs[0][key] = specs[0].pop(key)  # the same in another order
    return specs


def results(spec):
    keys = lambda message: list(map(type, tfw.parse_single_example(message, spec)))  # noqa: E731
    return [
        told(tfw.parse_single_example, MESSAGE, spec),
        told(tfw.parse_single_example, b"", spec),
        told(tfw.parse_example, [MESSAGE, b""], spec),
        told(tfw.parse_single_sequence_example, SEQUENCE, spec),
        told(lambda: tfw.Parser(spec).parse([MESSAGE])),
        told(keys, MESSAGE),
    ]


@given(near())
def test_specifications_near_each_other_are_never_mixed_up(specs):
    """Whatever was parsed before, a specification gives what it gives when nothing was."""
    expected = []
    for spec in specs:
        forget()
        expected.append(results(spec))
    forget()
    for _ in range(3):  # the second time it is found by its content, the third by its keys
        for spec, result in zip(specs, expected, strict=True):
            assert results(spec) == result
            copied = pickle.loads(pickle.dumps(spec))
            assert results(copied) == result


@pytest.mark.parametrize(
    ("twins", "dtype", "form"), diagonals(0, 3, TWINS, [tfw.int64, tfw.float32, tfw.string], FORMS)
)
def test_every_default_value_is_told_from_its_twins(twins, dtype, form):
    """Whichever was parsed just before."""
    shape = {0: [], 1: [1], 70: [70]}[(form is not FORMS[0]) * (70 if form is FORMS[-1] else 1)]
    specs, expected = [], []
    for value in twins:
        with suppress(OverflowError, TypeError):  # no such array
            default = value if value is None else form(value)
            specs.append({"x": tfw.FixedLenFeature(shape, dtype, default)})
    for spec in specs:
        forget()
        expected.append(told(tfw.parse_single_example, b"", spec))
    for first in specs:
        for spec, result in zip(specs, expected, strict=True):
            told(tfw.parse_single_example, b"", first)
            assert told(tfw.parse_single_example, b"", spec) == result, (first, spec)


def test_a_key_of_a_subclass_is_the_callers():
    spec = {Key("a"): tfw.VarLenFeature(tfw.int64)}
    for _ in range(3):
        tfw.parse_single_example(MESSAGE, {"a": tfw.VarLenFeature(tfw.int64)})
        [key] = tfw.parse_single_example(MESSAGE, spec)
        assert key is next(iter(spec))


def test_what_says_that_it_is_equal_is_not_believed():
    class Everything(list):
        def __eq__(self, other):
            return True

        __hash__ = None

    def spec(shape, default):
        return {"x": tfw.FixedLenFeature(shape, tfw.int64, default)}

    for _ in range(3):
        assert tfw.parse_single_example(b"", spec([], 5)) == {"x": 5}
        wrong = Everything([6])
        assert tfw.parse_single_example(b"", spec([1], wrong))["x"].tolist() == [6]
        assert tfw.parse_single_example(b"", spec(wrong, [7] * 6))["x"].tolist() == [7] * 6


def test_a_list_that_changes_while_it_is_compiled_changes_no_later_call(monkeypatch):
    """What is compiled is what was compared."""
    default = [1]
    real = spec_cache.thawed

    def meanwhile(content):
        default[0] = 2
        return real(content)

    monkeypatch.setattr(spec_cache, "thawed", meanwhile)
    forget()
    spec = {"x": tfw.FixedLenFeature([1], tfw.int64, default)}
    assert tfw.parse_single_example(b"", spec)["x"] == [1]
    for value in (1, 2, 1, 2):
        fresh = {"x": tfw.FixedLenFeature([1], tfw.int64, [value])}
        assert tfw.parse_single_example(b"", fresh)["x"] == [value]


# ---- Bounds -----------------------------------------------------------------------------------
def test_few_specifications_are_kept_and_those_in_use_stay():
    """A program that makes another one per call does not grow without end."""
    with compilations() as made:
        for i in range(3 * spec_cache._MAX_KNOWN):
            tfw.parse_single_example(MESSAGE, {"a": tfw.FixedLenFeature([2], tfw.int64, [i, i])})
            tfw.parse_single_example(MESSAGE, {"c": tfw.FixedLenFeature([2], tfw.string)})
    assert len(made) == 3 * spec_cache._MAX_KNOWN + 1
    assert len(spec_cache._known) <= spec_cache._MAX_KNOWN
    assert len(spec_cache._met) <= spec_cache._MAX_KNOWN


def test_large_default_values_are_not_kept():
    forget()
    size = 1 << 17
    for i in range(20):
        default = np.full(size, i)
        spec = {"x": tfw.FixedLenFeature([size], tfw.int64, default)}
        for _ in range(3):
            assert tfw.parse_single_example(b"", spec)["x"][0] == i
    assert spec_cache._kept_bytes() <= spec_cache._MAX_BYTES
    assert len(spec_cache._known) * default.nbytes * 4 <= spec_cache._MAX_BYTES


def test_threads_share_what_was_compiled():
    """Each finds its own specification, though all make new ones and drop others' at any time."""

    def work(number):
        for i in range(150):
            value = number * 1000 + i % 60
            spec = {"x": tfw.FixedLenFeature([], tfw.int64, value)}
            assert {"x": value} == tfw.parse_single_example(b"", spec)

    at_once(work)
