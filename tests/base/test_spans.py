"""Lists of byte strings become one buffer with spans, by whichever path."""

import array
import gc
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import tfwire as tfw
from tfwire._base.native import ffi, lib
from tfwire._base.strings import as_message, message_slices

pytestmark = pytest.mark.short_strings

MESSAGES = [b"", b"one", b"two\0", b"\0\xff", b"x" * 300]


def read(serialized):
    """The strings that C would see."""
    count, slices = message_slices(serialized)
    strings = []
    for spans in slices:
        assert len(strings) == spans.first
        assert spans.data_len == len(ffi.buffer(spans.data, spans.data_len))
        strings += [spans.message(i)[:] for i in range(spans.num_spans)]
    assert count == len(strings)
    return strings


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        iter,
        lambda messages: np.array(messages, object),
        lambda messages: [bytearray(m) for m in messages],
        lambda messages: [memoryview(m) for m in messages],
        lambda messages: [np.array(m, object) for m in messages],
        lambda messages: [SimpleNamespace(numpy=lambda m=m: m) for m in messages],
        lambda messages: SimpleNamespace(numpy=lambda: np.array(messages, object)),
        lambda messages: [type("Bytes", (bytes,), {})(m) for m in messages],
    ],
    ids=[
        "list",
        "tuple",
        "iterator",
        "object array",
        "bytearray",
        "memoryview",
        "0-d array",
        "numpy()",
        "numpy() of all",
        "subclass",
    ],
)
def test_every_holder_of_bytes_gives_the_same_strings(wrap):
    assert MESSAGES == read(wrap(MESSAGES))


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_any_number_of_messages(count):
    messages = [b"m%d" % i for i in range(count)]
    assert messages == read(messages)


def test_long_messages_are_joined():
    messages = [b"a" * 5000, b"b" * 6000]
    assert messages == read(messages)


@pytest.mark.parametrize("sizes", [[300] * 5000, [0] * 9000, [5000] * 400, [300_000] * 3])
def test_many_bytes_come_in_slices(sizes):
    messages = [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    assert messages == read(messages)
    slices = len(list(message_slices(messages)[1]))
    assert slices == -(-len(sizes) // 4096)


def test_a_view_of_wider_items_counts_bytes():
    """len() of a memoryview is its number of items, not of bytes."""
    words = array.array("i", [1, 2])
    assert [words.tobytes()] * 2 == read([memoryview(words)] * 2)
    assert [words.tobytes(), b"x"] == read([words, b"x"])


def test_a_strided_view_is_copied():
    assert [b"ace", b"x"] == read([memoryview(b"abcdef")[::2], b"x"])


def test_bytes_objects_are_read_where_they_are():
    (spans,) = message_slices(MESSAGES)[1]
    assert spans.flags == lib.TFW_ADDRESSES
    begins = [ffi.cast("uintptr_t", ffi.from_buffer(message)) for message in MESSAGES]
    assert list(map(int, begins)) == [spans.spans[i].offset for i in range(len(MESSAGES))]


def test_messages_live_as_long_as_their_spans():
    (spans,) = message_slices([bytes([65 + i]) * 100 for i in range(3)])[1]
    gc.collect()
    assert [b"A" * 100, b"B" * 100, b"C" * 100] == [spans.message(i)[:] for i in range(3)]


@pytest.mark.parametrize("sizes", [[], [3, 0, 3], [300] * 5000, [0] * 9000, [400_000] * 4])
def test_a_column_is_copied_piece_by_piece(sizes):
    """Other threads may change its arrays while C reads."""
    data = np.random.default_rng(1).integers(256, size=sum(sizes) + 4, dtype=np.uint8)
    offsets = np.cumsum([2, *sizes])
    column = SimpleNamespace(data=data, offsets=offsets)
    expected = [data[i:j].tobytes() for i, j in pairwise(offsets)]
    assert expected == read(column)
    for spans in message_slices(column)[1]:
        assert spans.data_len <= 1 << 20
        begin = int(ffi.cast("uintptr_t", spans.data))
        assert not data.ctypes.data <= begin < data.ctypes.data + data.nbytes


@pytest.mark.parametrize("sizes", [[], [3, 0, 3], [300] * 5000])
def test_a_column_over_a_bytes_object_is_read_where_it_is(sizes):
    """Nobody can change it; but a read-only view of other memory is copied."""
    data = np.random.default_rng(1).bytes(sum(sizes) + 4)
    offsets = np.cumsum([2, *sizes])
    expected = [data[i:j] for i, j in pairwise(offsets)]
    copied = np.frombuffer(memoryview(bytearray(data)).toreadonly(), np.uint8)
    array = np.frombuffer(data, np.uint8)
    for found, in_place in [(array, True), (array[:], True), (copied, False)]:
        column = tfw.BytesColumn(found, offsets)
        assert expected == read(column)
        for spans in message_slices(column)[1]:
            begin = int(ffi.cast("uintptr_t", spans.data))
            assert in_place == (found.ctypes.data == begin)


def test_a_list_that_changes_is_the_one_that_was_given():
    messages = [b"a%d" % i for i in range(10_000)]
    count, slices = message_slices(messages)
    messages.clear()
    strings = [s.message(i)[:] for s in slices for i in range(s.num_spans)]
    assert strings == [b"a%d" % i for i in range(count)]


@pytest.mark.parametrize("message", [bytearray(b"abc"), memoryview(bytearray(b"abc"))])
def test_a_message_that_can_change_is_copied(message):
    owned = as_message(message)
    assert owned == b"abc"
    assert type(owned) is bytes
    message[0] = 0
    assert owned == b"abc"


def test_numbers_are_their_memory():
    """bytes(5) would be five zeros."""
    assert as_message(np.uint8(5)) == b"\5"
    assert [b"\5"] == read([np.array(5, np.uint8)])


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 3], [3, 2], []])
def test_offsets_that_leave_the_data_are_refused(offsets):
    column = SimpleNamespace(data=b"12345678", offsets=np.array(offsets, np.int64))
    column.data = np.frombuffer(column.data, np.uint8)
    with pytest.raises(ValueError, match="offsets"):
        read(column)


@pytest.mark.parametrize("single", [b"x", bytearray(b"x"), memoryview(b"x"), "x", 3, None])
def test_a_single_message_is_no_list(single):
    with pytest.raises(TypeError, match="expected a list of serialized messages, found"):
        read(single)


@pytest.mark.parametrize("item", ["text", 3, None, 1.5])
def test_an_item_that_is_not_bytes_is_named(item):
    with pytest.raises(TypeError, match="serialized message 1 must be bytes-like, found"):
        read([b"fine", item])


def test_an_item_after_the_first_slice_is_named_too():
    with pytest.raises(TypeError, match="serialized message 2000 must be bytes-like, found"):
        read([b"x" * 1000] * 2000 + ["text"])


def test_fixed_width_numpy_strings_are_refused():
    """numpy drops their trailing NULs, and messages often end with one."""
    with pytest.raises(TypeError, match="trailing NUL"):
        read(np.array([b"a\0", b"b"]))


def test_messages_have_rank_one():
    with pytest.raises(TypeError, match="rank 2"):
        read(np.array([[b"a"]], object))


def test_messages_are_taken_by_their_bytes():
    """Of tfwire.train or of TensorFlow: whatever serializes itself."""
    import tfwire as tfw

    example = tfw.train.Example.FromString(tfw.encode_example({"a": 1}))
    assert [1] == tfw.decode_example(example)["a"].tolist()
    spec = {"a": tfw.FixedLenFeature([], tfw.int64)}
    assert [1, 1] == tfw.parse_example([example, example], spec)["a"].tolist()
    assert 1 == tfw.parse_single_example(example, spec)["a"]
