"""numpy's scalars as arguments: the same answer as Python's numbers, and no warning of numpy's.

pytest makes errors of all warnings: numpy's integers warn when they overflow, its casts of floats
that do not fit, and its conversions of complex numbers.
"""

import math

import numpy as np
import pytest

import tfwire as tfw
from helpers.products import check_each
from tfwire import checksum, train
from tfwire._base.arguments import as_index, seconds

COUNT = 300
PARSED = [tfw.encode_example({"i": n}) for n in range(COUNT)]
SPEC = {"i": tfw.FixedLenFeature([], tfw.int64)}
COLUMN = tfw.BytesColumn(b"x" * 2 * COUNT, np.arange(COUNT + 1) * 2)
MATRIX = tfw.BytesColumn(b"x" * 2 * COUNT, np.arange(COUNT + 1) * 2, (COUNT // 3, 3))
RAGGED = tfw.RaggedTensor(np.arange(COUNT), np.arange(COUNT + 1))
INTEGERS = tfw.SparseTensor(np.array([[0, 0]]), np.array([1]), np.array([2, 2]))
FLOATS = INTEGERS._replace(values=np.array([1.5], np.float32))

# Numbers at the edges of their types, and numbers that no integer is.
NUMBERS = [np.int8(3), np.int8(-1), np.int8(127), np.uint8(200), np.int16(-3), np.uint64(3)]
NUMBERS += [np.uint64(2**64 - 1), np.int64(2**63 - 1), np.int64(-(2**63)), np.bool_(True)]
NUMBERS += [np.float16(60000), np.float32(3), np.float64(1e300), np.float64(np.nan)]
NUMBERS += [np.longdouble("1e400"), np.complex64(1), np.array(3), np.array([3]), np.array(3.5)]
NUMBERS += [np.array(1j), 1e300, 5e-324, math.inf, 2**63, 10**400]


def sparse(index, size):
    return tfw.SparseTensor(np.array([[index]]), np.array([1]), np.array([size]))


def ragged(split):
    rows = tfw.RaggedTensor(np.arange(3), np.array([0, split]))
    return repr(rows), rows[0], rows[:1], rows.row_lengths(), rows.to_list()


def parse_with(feature):
    return tfw.parse_example(PARSED[:3], {"x": feature})


def padded(value):
    rows = [np.ones(n, np.float32) for n in (1, 2)]
    dataset = tfw.Dataset.range(2).map(lambda n: rows[n])
    return list(dataset.padded_batch(2, padding_values=value))


CALLS = {
    "a row of a column": lambda n: COLUMN[n],
    "a row of rows": lambda n: MATRIX[n],
    "rows of a column": lambda n: MATRIX[n:],
    "a ragged row": lambda n: RAGGED[n],
    "ragged rows": lambda n: RAGGED[:n],
    "take": lambda n: COLUMN.take(np.array([n])),
    "offsets": lambda n: tfw.BytesColumn(b"abc", [0, n]),
    "an array of offsets": lambda n: tfw.BytesColumn(b"abc", np.array([0, n])),
    "shape": lambda n: tfw.BytesColumn(b"", np.zeros(4, int), (n,)),
    "row_splits": ragged,
    "encode row_splits": lambda n: tfw.encode_columns(
        {"a": tfw.RaggedTensor(np.arange(3), np.array([0, n]))}
    ),
    "fill integers": INTEGERS.to_dense,
    "fill floats": FLOATS.to_dense,
    "max_padding": lambda n: FLOATS.to_dense(max_padding=n),
    "dense_shape": lambda n: sparse(0, n).to_dense(max_padding=100),
    "index": lambda n: sparse(n, 3).to_dense(),
    "show a sparse one": lambda n: repr(sparse(n, n)),
    "encode": lambda n: tfw.encode_example({"a": n}),
    "encode a list": lambda n: tfw.encode_example({"a": [n, 1.5]}),
    "encode an array": lambda n: tfw.encode_example({"a": np.array([n])}),
    "encode a column": lambda n: tfw.encode_columns({"a": [n, n]}),
    "encode lists": lambda n: tfw.encode_columns({"a": [[n], [n, n]]}),
    "encode steps": lambda n: tfw.encode_sequence_example({"a": n}, {"b": [n, n]}),
    "int64_feature": tfw.int64_feature,
    "float_feature": tfw.float_feature,
    "Int64List": lambda n: train.Int64List(value=[n]),
    "serialize": tfw.serialize_tensor,
    "serialize a list": lambda n: tfw.serialize_tensor([n, n]),
    "fixed_length": lambda n: tfw.decode_raw([b"abcdefgh"], "int8", True, n),
    "a default float": lambda n: parse_with(tfw.FixedLenFeature([], tfw.float32, n)),
    "a default integer": lambda n: parse_with(tfw.FixedLenFeature([], tfw.int64, n)),
    "padding": lambda n: parse_with(tfw.FixedLenSequenceFeature([], tfw.float32, True, n)),
    "a shape": lambda n: parse_with(tfw.FixedLenSequenceFeature([n], tfw.int64, True)),
    "a sparse size": lambda n: parse_with(tfw.SparseFeature("i", "i", tfw.int64, n)),
    "padding_values": padded,
    "range": lambda n: list(tfw.Dataset.range(n).take(2)),
    "skip": lambda n: list(tfw.Dataset.range(10).skip(n)),
    "batch": lambda n: list(tfw.Dataset.range(10).batch(n)),
    "shuffle": lambda n: list(tfw.Dataset.range(10).shuffle(n)),
    "seed": lambda n: list(tfw.Dataset.range(10).shuffle(5, seed=n)),
    "shard": lambda n: list(tfw.Dataset.range(10).shard(500, n)),
    "prefetch": lambda n: list(tfw.Dataset.range(10).prefetch(n)),
    "slices": lambda n: list(tfw.Dataset.from_tensor_slices({"a": [n, n]})),
    "crc32c": lambda n: tfw.crc32c(b"abc", n),
    "mask_crc": checksum.mask_crc,
    "unmask_crc": checksum.unmask_crc,
    "combine_crc32c": lambda n: checksum.combine_crc32c(n, n, n),
    "base64_crc32c": checksum.base64_crc32c,
    "seconds": lambda n: seconds("timeout", n),
}

# Documented ones; those of checksums are C's.
ERRORS = (TypeError, ValueError, IndexError, MemoryError, tfw.Error)
OVERFLOWS = {"crc32c", "mask_crc", "unmask_crc", "combine_crc32c"}


@pytest.mark.parametrize("state", ["warn", "raise"])
@pytest.mark.parametrize("name", CALLS)
def test_numbers_at_the_edges_give_no_warning(name, state):
    """``np.seterr`` is the program's, for its own numbers."""
    for number in NUMBERS:
        try:
            with np.errstate(all=state):
                CALLS[name](number)
        except OverflowError:
            assert name in OVERFLOWS
        except ERRORS:
            pass


def outcome(call, number):
    try:
        return repr(call(number))
    except (*ERRORS, OverflowError) as error:
        return type(error)


WITH_INTEGERS = ["a row of a column", "a row of rows", "rows of a column", "a ragged row", "shape"]
WITH_INTEGERS += ["max_padding", "fixed_length", "crc32c", "mask_crc", "base64_crc32c"]


TAKING_ARRAYS = {"a row of a column", "a row of rows", "a ragged row"}  # of rows


@pytest.mark.parametrize("name", WITH_INTEGERS)
def test_integers_of_numpy_are_those_of_python(name):
    def check(number):
        try:
            plain = as_index(number)
        except TypeError:
            plain = "not an integer"
        assert outcome(CALLS[name], number) == outcome(CALLS[name], plain)

    numbers = [number for number in NUMBERS if hasattr(number, "dtype")]
    check_each(check, [n for n in numbers if not (n.ndim and name in TAKING_ARRAYS)])


def test_shapes_of_small_integers_do_not_overflow():
    column = tfw.BytesColumn(b"", np.zeros(257, int), np.array([16, 16], np.uint8))
    assert column.shape == (16, 16)
    with pytest.raises(ValueError, match="do not fit"):
        tfw.BytesColumn(b"", [0], np.array([2**32, 2**32]))
    column.shape = (np.uint8(16), np.uint8(16))
    assert len(tfw.encode_columns({"a": column})) == 16


@pytest.mark.parametrize("number", [1e300, np.float64(1e300), np.longdouble("1e400"), 10**39])
def test_a_float_beyond_float32_is_infinite(number):
    assert tfw.decode_example(tfw.encode_example({"a": [number, 1.5]}))["a"].tolist() == [
        math.inf,
        1.5,
    ]
    assert tfw.float_feature([number]).float_list.value[:] == [math.inf]
    assert FLOATS.to_dense(number)[1, 1] == math.inf
    assert padded(number)[0][0, 1] == math.inf


def test_checksums_are_integers():
    for number in (np.float32(3.7), np.complex64(3), 3.0):
        for call in (lambda n: tfw.crc32c(b"abc", n), checksum.mask_crc, checksum.unmask_crc):
            with pytest.raises(TypeError, match="must be an integer"):
                call(number)


def test_bools_of_numpy_are_no_numbers():
    """Before numpy 2 they have an index, and a warning."""
    with pytest.raises(TypeError, match="not an integer"):
        as_index(np.bool_(True))
    with pytest.raises(TypeError, match="args must be integers, found bool"):
        tfw.Dataset.range(np.bool_(True))


def test_bools_of_numpy_choose_no_record(tmp_path):
    path = tmp_path / "a"
    tfw.write_records(path, [b"x", b"y"])
    true = np.bool_(True)
    with tfw.TFRecordFile(path) as file:
        for key in (true, slice(true, None), slice(None, None, true), [true]):
            with pytest.raises(TypeError):
                file[key]


def test_following_may_wait_any_time(tmp_path):
    path = tmp_path / "a"
    tfw.write_records(path, [b"x"])
    followed = tfw.follow_records(path, interval=math.inf, timeout=0.01)
    assert list(followed) == [b"x"]
