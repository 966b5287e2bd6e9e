"""Objects that say something else than the memory that they show: sizes are those of the memory."""

from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw

MESSAGE = tfw.encode_example({"i": 1})
SPEC = {"i": tfw.FixedLenFeature([], tfw.int64)}


class Long(bytes):
    """A byte string that says it is far longer than it is."""

    def __len__(self):
        return 1 << 40

    def __bytes__(self):
        return self


class LongText(str):
    """Text whose bytes are others than those it has."""

    def encode(self, *_):
        return Long(b"other")


def test_a_key_has_the_length_of_its_bytes():
    plain = tfw.encode_columns({b"key": np.arange(2)})
    for key in (Long(b"key"), LongText("key")):
        assert tfw.encode_columns({key: np.arange(2)}) == plain
        assert tfw.encode_example({key: 1}) == tfw.encode_example({"key": 1})


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_record_has_the_length_of_its_bytes(size, tmp_path):
    path, payload = tmp_path / "a", b"x" * size
    message = SimpleNamespace(SerializeToString=lambda: Long(payload))
    for record in (Long(payload), LongText("x" * size), message):
        with tfw.TFRecordWriter(path) as writer:
            writer.write(record)
            writer.write_many([record, b"y", record])
        assert list(tfw.read_records(path)) == [payload, payload, b"y", payload]


def test_a_message_has_the_length_of_its_bytes():
    lying = Long(MESSAGE)
    assert tfw.decode_example(lying)["i"].tolist() == [1]
    assert tfw.decode_examples([lying])[0]["i"].tolist() == [1]
    assert tfw.parse_example([MESSAGE, lying], SPEC)["i"].tolist() == [1, 1]
    assert tfw.parse_single_example(lying, SPEC)["i"] == 1


def test_a_string_has_the_length_of_its_bytes():
    plain = tfw.encode_columns({"s": [b"abc"] * 3})
    for lying in (Long(b"abc"), LongText("abc")):
        assert tfw.encode_columns({"s": [lying] * 3}) == plain
        assert tfw.encode_columns({"s": [b"abc", lying, b"abc"]}) == plain
        assert tfw.encode_examples([{"s": lying}] * 3) == plain
        assert tfw.encode_example({"s": lying}) == plain[0]


@pytest.mark.parametrize("shape", [(4, 0), (2, 2), ()])
def test_row_splits_have_rank_one(shape):
    ragged = tfw.RaggedTensor(np.arange(3), np.zeros(4, np.int64))
    ragged.row_splits = np.zeros(shape, np.int64)
    with pytest.raises(ValueError, match="row_splits"):
        tfw.encode_columns({"r": ragged})


@pytest.mark.parametrize("name", ["data", "offsets"])
def test_a_column_whose_arrays_have_no_memory(name):
    column = tfw.BytesColumn(MESSAGE * 3, np.arange(4) * len(MESSAGE))
    setattr(column, name, np.zeros((100, 0), getattr(column, name).dtype))
    for call in (
        column.to_numpy,
        lambda: tfw.parse_example(column, SPEC),
        lambda: tfw.decode_examples(column),
        lambda: tfw.encode_columns({"s": column}),
    ):
        with pytest.raises(ValueError, match=r"offsets|records|rank"):
            call()


def test_an_array_that_lies_about_its_shape():
    class Lying(np.ndarray):
        shape = (1000, 1000)
        ndim = 2
        size = 10**6

        def __len__(self):
            return 1000

        def ravel(self, *_):
            return np.arange(3)

    plain = np.arange(6)
    array = plain.view(Lying)
    assert tfw.encode_columns({"a": array}) == tfw.encode_columns({"a": plain})
    assert tfw.encode_example({"a": array}) == tfw.encode_example({"a": plain})
    spec = {"x": tfw.FixedLenFeature([6], tfw.int64, array)}
    assert tfw.parse_single_example(MESSAGE, spec)["x"].tolist() == plain.tolist()
