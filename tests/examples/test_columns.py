"""Sparse, ragged and string columns as values of their own."""

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw

pytestmark = pytest.mark.short_strings

STRINGS = [b"", b"one", b"two\0", b"\0\xff", b"x" * 5000]


def column_of(strings, shape=None):
    offsets = np.cumsum([0, *map(len, strings)])
    return tfw.BytesColumn(np.frombuffer(b"".join(strings), np.uint8), offsets, shape)


@pytest.fixture
def sparse():
    indices = np.array([[0, 0], [0, 1], [2, 0]])
    return tfw.SparseTensor(indices, np.array([3, 4, 5]), np.array([3, 2]))


@pytest.fixture
def ragged():
    inner = tfw.RaggedTensor(np.arange(6), np.array([0, 2, 2, 3, 6]))
    return tfw.RaggedTensor(inner, np.array([0, 1, 1, 4]))


@given(st.lists(st.binary(max_size=6)))
def test_strings_come_back_one_by_one_and_as_objects(strings):
    column = column_of(strings)
    assert len(strings) == len(column)
    assert strings == [column[i] for i in range(len(strings))]
    assert strings == column.to_list()
    assert strings == np.asarray(column).tolist()
    assert np.dtype(object) == np.asarray(column).dtype


@pytest.mark.parametrize("strings", [STRINGS, STRINGS[:4], STRINGS[4:] * 3, []])
def test_long_and_short_strings_become_the_same_objects(strings):
    assert strings == column_of(strings).to_list()


def test_a_column_of_higher_rank_has_rows():
    column = column_of(STRINGS[:4], (2, 2))
    assert [STRINGS[:2], STRINGS[2:4]] == column.to_list()
    assert STRINGS[2:4] == column[1].to_list()
    assert STRINGS[3] == column[-1][1]
    assert [STRINGS[2:4]] == column[1:].to_list()
    assert (0, 2) == column[2:].shape


@given(st.lists(st.binary(max_size=6), min_size=1), st.data())
def test_strings_can_be_taken_in_any_order(strings, data):
    indices = data.draw(st.lists(st.integers(0, len(strings) - 1)))
    taken = column_of(strings).take(np.array(indices, np.int64))
    assert [strings[i] for i in indices] == taken.to_list()


def test_objects_made_of_a_column_are_writable():
    array = column_of(STRINGS).to_numpy()
    array[0] = b"new"
    assert b"new" == array[0]


@pytest.mark.parametrize(("offsets", "shape"), [([0, 1], (2,)), ([], None), ([[0, 1]], None)])
def test_offsets_that_do_not_fit_the_shape_are_refused(offsets, shape):
    with pytest.raises(ValueError, match=r"fit|1-dimensional|rank"):
        tfw.BytesColumn(b"abcd", offsets, shape)


def test_a_column_is_encoded_where_it_is():
    """A parsed column can be written again without Python objects."""
    expected = tfw.encode_columns({"s": STRINGS})
    assert expected == tfw.encode_columns({"s": column_of(STRINGS)})


@pytest.mark.parametrize("index", [5, -6])
def test_a_row_beyond_the_end_is_an_index_error(index):
    with pytest.raises(IndexError, match="of 5 rows"):
        column_of(STRINGS)[index]


def test_a_sparse_tensor_becomes_dense(sparse):
    assert [[3, 4], [0, 0], [5, 0]] == sparse.to_dense().tolist()
    assert [[3, 4], [-1, -1], [5, -1]] == sparse.to_dense(-1).tolist()
    assert ((3, 2), np.dtype("int64")) == (sparse.shape, sparse.dtype)


@pytest.mark.parametrize("column", [False, True])
def test_a_sparse_tensor_of_strings_becomes_dense(sparse, column):
    values = column_of(STRINGS[1:4])
    strings = sparse._replace(values=values if column else values.to_numpy())
    assert np.dtype(object) == strings.dtype
    assert [[b"one", b"two\0"], [b"", b""], [b"\0\xff", b""]] == strings.to_dense().tolist()


@pytest.mark.parametrize("index", [[-1, 0], [3, 0], [0, 2]])
def test_a_sparse_index_outside_of_the_shape_is_reported(sparse, index):
    wrong = sparse._replace(indices=np.array([[0, 0], index, [2, 0]]))
    with pytest.raises(ValueError, match=rf"index \{index} is outside".replace("\\[", r"\[")):
        wrong.to_dense()


def test_a_sparse_tensor_becomes_scipys(sparse):
    pytest.importorskip("scipy")
    assert sparse.to_dense().tolist() == sparse.to_scipy().toarray().tolist()
    with pytest.raises(TypeError, match="strings"):
        sparse._replace(values=np.array([b"a", b"b", b"c"], object)).to_scipy()


def test_a_ragged_tensor_has_levels_of_rows(ragged):
    assert [[[0, 1]], [], [[], [2], [3, 4, 5]]] == ragged.to_list()
    assert [[0, 1, 1, 4], [0, 2, 2, 3, 6]] == [s.tolist() for s in ragged.nested_row_splits]
    assert list(range(6)) == ragged.flat_values.tolist()
    assert (2, (3, None, None)) == (ragged.ragged_rank, ragged.shape)
    assert [1, 0, 3] == ragged.row_lengths().tolist()
    assert np.dtype("int64") == ragged.dtype


def test_a_ragged_tensor_holds_strings_and_reshaped_values():
    splits = np.array([0, 2, 2, 4])
    strings = tfw.RaggedTensor(column_of(STRINGS[:4]), splits)
    assert [STRINGS[:2], [], STRINGS[2:4]] == strings.to_list()
    assert (np.dtype(object), (3, None)) == (strings.dtype, strings.shape)
    pairs = tfw.RaggedTensor(np.arange(8).reshape(4, 2), splits)
    assert [[[0, 1], [2, 3]], [], [[4, 5], [6, 7]]] == pairs.to_list()
    assert (3, None, 2) == pairs.shape


def test_columns_pickle_and_copy(sparse, ragged):
    for copied in (lambda c: pickle.loads(pickle.dumps(c)), copy.deepcopy):
        assert sparse.to_dense().tolist() == copied(sparse).to_dense().tolist()
        assert ragged.to_list() == copied(ragged).to_list()
        assert STRINGS[:4] == copied(column_of(STRINGS[:4])).to_list()


def test_columns_show_their_shape_and_only_few_values(ragged):
    assert "RaggedTensor(shape=(3, None, None), dtype=int64, [[[0, 1]]" in repr(ragged)
    long = tfw.RaggedTensor(np.arange(100), np.array([0, 100]))
    assert "RaggedTensor(shape=(1, None), dtype=int64, 100 values)" == repr(long)
    assert "BytesColumn(shape=(5,), 5009 bytes)" == repr(column_of(STRINGS))


def test_offsets_at_the_ends_of_int64_are_shown_without_a_warning():
    column = tfw.BytesColumn(b"catdog", np.array([0, 3, 6]))
    column.offsets[0], column.offsets[-1] = -(2**63), 2**63 - 1
    assert f"BytesColumn(shape=(2,), {2**64 - 1} bytes)" == repr(column)


ROWS = {
    "strings": column_of(STRINGS),
    "rows of strings": column_of(STRINGS[:4] * 3, (6, 2)),
    "rows without strings": column_of([], (3, 0)),
    "numbers": tfw.RaggedTensor(np.arange(6), np.array([0, 2, 2, 5, 6], np.int32)),
    "pairs": tfw.RaggedTensor(np.arange(8).reshape(4, 2), [0, 1, 1, 4]),
    "ragged strings": tfw.RaggedTensor(column_of(STRINGS), [0, 2, 2, 3, 5]),
    "rows of rows": tfw.RaggedTensor(
        tfw.RaggedTensor(np.arange(6), [0, 2, 2, 3, 6]), np.array([0, 1, 1, 4])
    ),
    "none": tfw.RaggedTensor(np.arange(0), [0]),
}


@given(st.sampled_from(sorted(ROWS)), st.data())
def test_rows_are_chosen_as_those_of_a_list_and_of_an_array(name, data):
    column = ROWS[name]
    rows, count = column.to_list(), len(column)
    part = data.draw(st.slices(count))
    assert rows[part] == column[part].to_list()
    numbers = data.draw(st.lists(st.integers(-count, count - 1)) if count else st.just([]))
    mask = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    for index in (numbers, np.array(numbers, np.int32), mask, np.array(mask, bool)):
        chosen = np.arange(count)[index] if len(index) else []
        found = column[index]
        assert [rows[i] for i in chosen] == found.to_list()
        assert type(column) is type(found)
    if numbers and isinstance(column, tfw.RaggedTensor):
        assert column.row_splits.dtype == column[numbers].row_splits.dtype
    for number in numbers:
        found = column[np.int16(number)]
        assert rows[number] == (
            found
            if isinstance(found, bytes)
            else found.tolist()
            if isinstance(found, np.ndarray)
            else found.to_list()
        )


@pytest.mark.parametrize("column", ROWS.values(), ids=ROWS)
def test_rows_next_to_each_other_are_views(column):
    part = column[1:3] if len(column) else column[:]
    whole, part = (getattr(each, "flat_values", each) for each in (column, part))
    if isinstance(whole, tfw.BytesColumn):
        assert part.data is whole.data
        assert np.shares_memory(part.offsets, whole.offsets)
    else:
        assert part.size == 0 or np.shares_memory(part, whole)


@pytest.mark.parametrize("column", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize(
    ("index", "error"),
    [
        *((index, TypeError) for index in (None, 1.0, "a", (0, 1), np.bool_(True), slice(0.5))),
        *((index, IndexError) for index in (99, -99, [99], np.array([0.5]), [True] * 99)),
        (slice(None, None, 0), ValueError),
    ],
)
def test_what_chooses_no_rows_is_refused(column, index, error):
    with pytest.raises(error) as caught:
        column[index]
    if isinstance(index, (list, np.ndarray)):
        kind = "an array of float64" if isinstance(index, np.ndarray) else "a list"
        assert f" rows, or a mask of them, found {kind}: " in str(caught.value)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_rows_are_chosen_with_row_splits_of_any_integers(dtype):
    ragged = tfw.RaggedTensor(np.arange(5), np.array([0, 2, 2, 5], dtype))
    for index in (slice(None, None, -1), [2, 0], np.array([True, False, True])):
        chosen = ragged[index]
        assert np.dtype(dtype) == chosen.row_splits.dtype
        expected = np.array(ragged.to_list(), object)[index].tolist()
        assert expected == chosen.to_list()


def test_row_splits_that_cannot_count_the_chosen_values_are_refused():
    ragged = tfw.RaggedTensor(np.zeros(100, np.int8), np.array([0, 100], np.int8))
    assert [100] == ragged[[0]].row_lengths().tolist()
    with pytest.raises(ValueError, match="row_splits of int8 cannot count 200 values"):
        ragged[[0, 0]]


@pytest.mark.parametrize("other", [b"two\0", STRINGS[::-1], column_of(STRINGS), None, "one", 3])
def test_strings_of_a_column_are_compared_one_by_one(other):
    """As objects, of which numpy's type for bytes would lose the last b"\\0"."""
    column, each = column_of(STRINGS), other if isinstance(other, list) else [other] * len(STRINGS)
    if isinstance(other, tfw.BytesColumn):
        each = other.to_list()
    expected = [string == value for string, value in zip(STRINGS, each, strict=True)]
    for found in (column == other, ~(column != other), other == column):
        assert np.dtype(bool) == found.dtype
        assert expected == found.tolist()
    assert [b"two\0"] == column[column == b"two\0"].to_list()
    assert [[True, False], [False, False]] == (column_of(STRINGS[:4], (2, 2)) == b"").tolist()


def test_columns_of_two_shapes_are_not_compared():
    with pytest.raises(ValueError, match="broadcast"):
        column_of(STRINGS) == column_of(STRINGS[:3])  # noqa: B015  # raises


def test_tensors_are_not_compared_as_a_whole(sparse, ragged):
    """An answer for each value has no shape, and one for all would be silent of the difference."""
    for tensor, use in ((sparse, "to_dense"), (ragged, "to_list")):
        for compare in (operator.eq, operator.ne):
            for other in (tensor, copy.copy(tensor), 3, None):
                with pytest.raises(TypeError, match=rf"have no ==; compare {use}\(\), or"):
                    compare(tensor, other)
        assert tensor in [tensor]  # by identity
    of_hashables = tfw.SparseTensor((0,), (1,), (1,))  # as torch's tensors are
    for column in (sparse, of_hashables, ragged, column_of(STRINGS)):
        with pytest.raises(TypeError, match=f"unhashable type: '{type(column).__name__}'"):
            hash(column)


def test_tensors_may_be_made_of_lists():
    words = tfw.RaggedTensor([b"a\0", "b", "é"], [0, 2, 3])
    assert [[b"a\0", b"b"], ["é".encode()]] == words.to_list()
    numbers = tfw.RaggedTensor(tfw.RaggedTensor([1, 2, 3], [0, 2, 3]), [0, 1, 2])
    assert (2, None, None) == numbers.shape
    assert [[[1, 2]], [[3]]] == numbers.to_list()
    sparse = tfw.SparseTensor([[0, 0], [1, 2]], [1, 2], [2, 3])
    assert (2, 3) == sparse.shape
    assert [[1, 0, 0], [0, 0, 2]] == sparse.to_dense().tolist()
    assert np.int64 == sparse.dtype


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_slice_pickles_its_own_bytes_only(protocol):
    whole = column_of([b"x" * 100_000, b"cat", b"dog", b"y" * 100_000], (2, 2))
    flat = tfw.BytesColumn(whole.data, whole.offsets)
    for part, expected in [
        (flat[1:3], [b"cat", b"dog"]),
        (flat[1:1], []),
        (flat[:0], []),
        (flat[4:], []),
        (tfw.RaggedTensor(flat, np.array([0, 1, 3, 4]))[1:2], [[b"cat", b"dog"]]),
    ]:
        pickled = pickle.dumps(part, protocol)
        assert len(pickled) < 1000
        assert expected == pickle.loads(pickled).to_list() == copy.copy(part).to_list()
    row = whole[0]
    assert len(pickle.dumps(row, protocol)) < 110_000
    assert row.to_list() == pickle.loads(pickle.dumps(row, protocol)).to_list()


@pytest.mark.parametrize("offsets", [[-1, 2], [0, 9], [3, 1], [5, 5, 9]])
def test_wrong_offsets_are_refused_at_once_or_when_they_are_used(offsets):
    """Also those of a column that was changed, of its slices and of its pickle."""
    with pytest.raises(ValueError, match="offsets must not decrease and stay within the 5 bytes"):
        tfw.BytesColumn(b"catdo", offsets)
    column = tfw.BytesColumn(b"catdo", [0] * len(offsets))
    column.offsets[:] = offsets
    nested = tfw.BytesColumn(b"catdo", [0] * len(offsets), (1, len(offsets) - 1))
    nested.offsets[:] = offsets
    for use in (
        column.to_numpy,
        lambda: [column[i] for i in range(len(column))],
        lambda: column[:].to_list(),
        lambda: [text for i in range(len(column)) for text in column[i : i + 1].to_list()],
        lambda: nested[0].to_list(),
        lambda: column.take(np.arange(len(column))),
        lambda: pickle.loads(pickle.dumps(column)),
        lambda: copy.copy(column),
    ):
        with pytest.raises(ValueError, match="offsets must not decrease"):
            use()


@pytest.mark.parametrize("splits", [[-1, 2], [0, 9], [3, 1], [0, -1], [2, 2, 9], [], [[0, 1]]])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_wrong_row_splits_are_refused(splits, dtype):
    splits = np.array(splits, dtype)
    for values in (np.arange(3), tfw.BytesColumn(b"abc", [0, 1, 2, 3]), list("abc")):
        with pytest.raises(ValueError, match="row_splits must"):
            tfw.RaggedTensor(values, splits)
    with pytest.raises(ValueError, match="row_splits must"):
        tfw.RaggedTensor(tfw.RaggedTensor(np.arange(3), [0, 1, 2, 3]), splits)


@pytest.mark.parametrize("shape", [(2, -1, -1), (-1, -2), (1, 2**32, 2**32), (2**64,), ()])
def test_a_shape_must_fit_and_has_no_negative_sizes(shape):
    with pytest.raises(ValueError, match="do not fit the shape"):
        tfw.BytesColumn(b"", np.zeros(3, np.int64), shape)


@pytest.mark.parametrize("shape", [(0, 2**40, 2**40), (0, 2**32, 2**32), (0, 2**70)])
def test_a_column_without_records_of_any_shape_encodes_to_nothing(shape):
    column = tfw.BytesColumn(b"", np.zeros(1, np.int64), shape)
    assert [] == tfw.encode_columns({"a": column})


def test_a_dense_array_of_gigabytes_of_padding_needs_a_word():
    indices = np.array([[0, 0], [1000, 200_000]])
    sparse = tfw.SparseTensor(indices, np.array([1, 2]), np.array([1001, 200_001]))
    with pytest.raises(ValueError, match="max_padding allows 1073741824"):
        sparse.to_dense()
    small = sparse._replace(dense_shape=np.array([2, 3]), indices=np.array([[0, 0], [1, 2]]))
    assert [[1, 0, 0], [0, 0, 2]] == small.to_dense(max_padding=32).tolist()
    assert [[1, 0, 0], [0, 0, 2]] == small.to_dense(max_padding=None).tolist()
    with pytest.raises(ValueError, match="32 bytes of padding; max_padding allows 31"):
        small.to_dense(max_padding=31)
