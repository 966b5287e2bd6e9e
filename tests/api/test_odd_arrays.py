"""Arrays that C cannot take as they are: subclasses, misaligned, of other dtypes, of objects."""

import warnings

import numpy as np
import pytest

import tfwire as tfw
from tfwire._base.arrays import is_constant
from tfwire._records.index import random_access

SPEC = {"i": tfw.FixedLenFeature([], tfw.int64), "f": tfw.FixedLenFeature([2], tfw.float32)}
ROWS = [{"i": n, "f": [n, n + 0.5]} for n in range(20)]
MESSAGES = tfw.encode_examples(ROWS)


def misaligned(array):
    """The same values, one byte past where they should begin."""
    room = bytearray(array.nbytes + 1)
    moved = np.frombuffer(room, array.dtype, offset=1).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


# ---- Memory that is not aligned: undefined in C (make check-sanitized stops there) ---------------


def test_columns_that_are_misaligned():
    columns = {"i": np.arange(20), "f": np.arange(40, dtype=np.float32).reshape(20, 2)}
    moved = {key: misaligned(array) for key, array in columns.items()}
    assert tfw.encode_columns(moved) == tfw.encode_columns(columns)
    for n in range(20):
        row = {key: array[n] for key, array in moved.items()}
        assert tfw.encode_example(row) == tfw.encode_columns(columns)[n]


def test_offsets_and_splits_that_are_misaligned():
    offsets = misaligned(np.array([0, 1, 3]))
    column = tfw.BytesColumn(b"abc", offsets)
    later = tfw.BytesColumn(b"abc", [0, 1, 3])
    later.offsets = offsets
    for strings in (column, later):
        assert strings.to_list() == [b"a", b"bc"]
        assert tfw.encode_columns({"s": strings}) == tfw.encode_columns({"s": [b"a", b"bc"]})
        assert tfw.decode_raw(strings[:1], np.uint8).tolist() == [[97]]
    ragged = tfw.RaggedTensor(misaligned(np.arange(3)), offsets)
    assert tfw.encode_columns({"r": ragged}) == tfw.encode_columns({"r": [[0], [1, 2]]})


def test_out_must_be_aligned():
    with pytest.raises(ValueError, match="aligned"):
        tfw.Parser(SPEC).parse(MESSAGES, out={"i": misaligned(np.zeros(20, np.int64))})


# ---- Subclasses of ndarray -----------------------------------------------------------------------


def test_a_default_value_has_the_size_of_its_memory():
    """C copies as many values as the shape says."""

    class Long(np.ndarray):
        shape, size, ndim = (1000,), 1000, 1

        def __len__(self):
            return 1000

        def ravel(self, *_):
            return self

        copy = ravel

    for dtype, kind in ((np.int64, tfw.int64), (np.float32, tfw.float32)):
        spec = {"x": tfw.FixedLenFeature([1000], kind, np.zeros(2, dtype).view(Long))}
        with pytest.raises(ValueError, match="2 values"):
            tfw.Parser(spec)


def test_a_matrix_holds_all_of_its_values():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix([[1, 2], [3, 4]])
    plain = np.asarray(matrix)
    assert tfw.encode_example({"m": matrix}) == tfw.encode_example({"m": plain})
    assert tfw.encode_columns({"m": matrix}) == tfw.encode_columns({"m": plain})
    for value in (matrix, plain):
        message = tfw.encode_sequence_example({"m": value}, {"l": [value]})
        context, lists = tfw.decode_sequence_example(message)
        assert context["m"].tolist() == [1, 2, 3, 4]
        assert [step.tolist() for step in lists["l"]] == [[1, 2, 3, 4]]


def test_memory_is_constant_if_a_bytes_object_owns_it():
    class Lying(np.ndarray):
        base = b"x"

    assert is_constant(np.frombuffer(b"abc", np.uint8)[1:])
    assert not is_constant(np.frombuffer(bytearray(b"abc"), np.uint8))
    array = np.ndarray.__new__(Lying, (3,), np.uint8)
    assert array.base == b"x"
    assert not is_constant(np.frombuffer(np.ascontiguousarray(array), np.uint8))


# ---- Memory that holds objects: no bytes ---------------------------------------------------------

OBJECTS = {
    "objects": np.array([b"x", b"y"], object),
    "records": np.zeros(2, [("n", "i8"), ("o", object)]),
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    "call",
    [
        tfw.decode_example,
        tfw.decode_sequence_example,
        tfw.Parser(SPEC).parse_single,
        tfw.crc32c,
        tfw.example_to_json,
        lambda array: tfw.parse_tensor(array, "int64"),
        lambda array: tfw.BytesColumn(array, [0, 1]),
        lambda array: tfw.decode_examples([array]),
    ],
)
def test_addresses_of_objects_are_no_bytes(call, name):
    with pytest.raises((TypeError, ValueError)):
        call(OBJECTS[name])


@pytest.mark.parametrize("name", OBJECTS)
def test_a_record_of_objects_is_refused(name, tmp_path):
    path = tmp_path / "a"
    with tfw.TFRecordWriter(path) as writer, pytest.raises(TypeError):
        writer.write(OBJECTS[name])
    assert list(tfw.read_records(path)) == []


@pytest.mark.parametrize("name", OBJECTS)
def test_a_column_whose_data_became_objects(name):
    column = tfw.BytesColumn(b"abc", [0, 1, 3])
    column.data = OBJECTS[name]
    for call in (
        column.to_numpy,
        lambda: tfw.encode_columns({"s": column}),
        lambda: tfw.decode_examples(column),
        lambda: tfw.decode_raw(column[:1], "uint8"),
    ):
        with pytest.raises(TypeError, match="bytes-like"):
            call()


# ---- Integers of other dtypes, and what is none --------------------------------------------------

INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint64", ">i8", ">u4", object]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_any_dtype(dtype):
    numbers = np.array([0, 1, 3], dtype)
    column = tfw.BytesColumn(b"abc", numbers)
    assert column.to_list() == [b"a", b"bc"]
    column.offsets = numbers
    assert column.to_list() == [b"a", b"bc"]
    assert tfw.encode_columns({"s": column}) == tfw.encode_columns({"s": [b"a", b"bc"]})
    ragged = tfw.RaggedTensor(np.arange(3), numbers)
    assert tfw.encode_columns({"r": ragged}) == tfw.encode_columns({"r": [[0], [1, 2]]})


NO_INTEGERS = {
    "nan": np.array([0, np.nan, 3]),
    "halves": [0, 1.5, 3],
    "complex": np.array([0, 1, 3j]),
    "text": ["0", "1", "3"],
    "times": np.array([0, 1, 3], "m8[s]"),
}


@pytest.mark.parametrize("name", NO_INTEGERS)
def test_offsets_and_splits_must_be_integers(name):
    """Without a warning of numpy's, which casts NaN to some integer."""
    numbers = NO_INTEGERS[name]
    with pytest.raises(TypeError, match="offsets must be integers"):
        tfw.BytesColumn(b"abc", numbers)
    with pytest.raises(TypeError, match="row_splits must be integers"):
        tfw.RaggedTensor(np.arange(3), numbers)
    column = tfw.BytesColumn(b"abc", [0, 1, 3])
    ragged = tfw.RaggedTensor(np.arange(3), [0, 1, 3])
    column.offsets = ragged.row_splits = np.asarray(numbers)
    for call in (
        column.to_numpy,
        lambda: tfw.encode_columns({"s": column}),
        lambda: tfw.decode_examples(column),
        lambda: tfw.encode_columns({"r": ragged}),
    ):
        with pytest.raises(TypeError, match="must be integers"):
            call()


@pytest.mark.parametrize("numbers", [[0, 2**63], [0, 2**70], [0, -(2**70)], [0, 2**63, -1]])
def test_offsets_and_splits_are_within_64_bits(numbers):
    with pytest.raises(ValueError, match="within int64"):
        tfw.BytesColumn(b"abc", numbers)
    with pytest.raises(ValueError, match="within int64"):
        tfw.RaggedTensor(np.arange(3), numbers)


# Each is larger than the one before it, by a difference that overflows or not.
AROUND = np.array([0, 2**63 - 1, -2, 3])


def test_offsets_and_splits_that_go_around():
    column = tfw.BytesColumn(b"abc", np.zeros(4, np.int64))
    column.offsets = AROUND
    ragged = tfw.RaggedTensor(np.arange(3), np.zeros(4, np.int64))
    ragged.row_splits = AROUND
    for call in (
        column.to_numpy,
        lambda: column.take(np.arange(3)),
        lambda: column.take(np.array([2])),
        lambda: tfw.decode_examples(column),
        lambda: tfw.encode_columns({"s": column}),
        lambda: tfw.encode_columns({"r": ragged}),
    ):
        with pytest.raises(ValueError, match="decrease"):
            call()


def test_a_ragged_tensor_that_is_its_own_values():
    ragged = tfw.RaggedTensor(np.arange(1), np.array([0, 1]))
    ragged.values = ragged
    with pytest.raises(ValueError, match="lists in lists"):
        tfw.encode_columns({"r": ragged})


@pytest.mark.parametrize("dtype", ["int32", ">i8", "uint64", object])
def test_an_index_whose_offsets_have_another_dtype(dtype, tmp_path):
    """As a user makes them smaller, say: C reads them all the same."""
    path = tmp_path / "a"
    tfw.write_records(path, MESSAGES)
    index = tfw.RecordIndex.build(path)
    index.offsets = index.offsets.astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_access, "check_index", lambda *_: True)
        file = tfw.TFRecordFile(path, index)
    assert file[list(range(20))] == MESSAGES
    assert [file[n] for n in range(20)] == MESSAGES


def test_an_index_whose_offsets_are_no_integers(tmp_path):
    path = tmp_path / "a"
    tfw.write_records(path, MESSAGES)
    index = tfw.RecordIndex.build(path)
    with pytest.raises(TypeError, match="offsets must be integers, found an array of float64"):
        index.offsets = index.offsets.astype(float)
    assert MESSAGES == list(tfw.TFRecordFile(path, index))


@pytest.mark.parametrize("value", [-1, -(2**63), 0, 2**62, 2**63 - 1])
def test_an_index_whose_offsets_were_changed(value, tmp_path):
    """They are read-only, unless someone insists."""
    path = tmp_path / "a"
    tfw.write_records(path, MESSAGES)
    file = tfw.TFRecordFile(path, tfw.RecordIndex.build(path))
    offsets = file.index.offsets
    offsets.flags.writeable = True
    offsets[5] = value
    for number in (4, 5):
        with pytest.raises(tfw.DataLossError):
            file[number]
        with pytest.raises((tfw.DataLossError, ValueError)):
            file[[number]]
    assert file[3] == MESSAGES[3]


# ---- Lists that change while their items are converted ------------------------------------------


class Calling:
    """An array whose conversion calls something."""

    def __init__(self, call, values):
        self._call, self._values = call, values

    def __array__(self, dtype=None, copy=None):
        self._call()
        return np.asarray(self._values)


@pytest.mark.parametrize(
    "change",
    [lambda held: held.append(9), list.clear, list.reverse],
    ids=["longer", "none", "other"],
)
def test_a_row_keeps_its_values_when_the_list_of_another_changes(change):
    """The values of a feature are counted and joined at different times."""
    held, others = [1, 2, 3], [[10], [20, 20], [30] * 3]
    calling = Calling(lambda: change(held), [7, 7])
    rows = [{"a": values} for values in (held, calling, *others)]
    found = [row["a"].tolist() for row in tfw.decode_examples(tfw.encode_examples(rows))]
    assert found[1:] == [[7, 7], *others]
    steps = {"l": [held, calling, *others]}
    _, lists = tfw.decode_sequence_example(tfw.encode_sequence_example(None, steps))
    assert [list(step) for step in lists["l"][1:]] == [[7, 7], *others]
