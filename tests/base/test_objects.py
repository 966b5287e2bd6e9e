"""Objects of Python by its C API: what the functions of csrc/python/ take, give and hold."""

import gc
import operator
import sys
import weakref
from contextlib import suppress

import numpy as np
import pytest

import tfwire as tfw
from tfwire._base.native import address, ffi, lib, objects
from tfwire._base.strings import spans_of_bytes

DATA = np.arange(256, dtype=np.uint8)


def by_spans(spans):
    table = np.array(spans, np.uint64).reshape(-1, 2)
    memory = address(ffi.from_buffer(DATA)), len(DATA), address(ffi.from_buffer(table))
    return objects.tfw_bytes_of_spans(*memory, len(table))


def iterated(spans, owner=None):
    table = np.array(spans, np.uint64).reshape(-1, 2)
    memory = address(ffi.from_buffer(DATA)), len(DATA), address(ffi.from_buffer(table))
    return objects.tfw_iterate_spans((table, owner), *memory, len(table))


def by_offsets(offsets):
    ends = np.array(offsets, np.int64)
    memory = address(ffi.from_buffer(DATA)), len(DATA), address(ffi.from_buffer(ends))
    return objects.tfw_bytes_of_offsets(*memory, len(ends) - 1)


def test_strings_are_made_of_memory():
    whole = DATA.tobytes()
    assert [] == by_spans([]) == by_offsets([7])
    assert [whole[3:8], b"", whole, whole[255:]] == by_spans([(3, 5), (256, 0), (0, 256), (255, 1)])
    assert [b"", whole[2:9], whole[9:256]] == by_offsets([2, 2, 9, 256])


@pytest.mark.parametrize("spans", [[], [(3, 5)], [(256, 0), (0, 256), (255, 1)], [(7, 9)] * 100])
def test_strings_are_made_one_by_one(spans):
    strings = iterated(spans)
    for i, expected in enumerate(by_spans(spans)):
        assert (len(spans) - i, expected) == (operator.length_hint(strings), next(strings))
    assert ([], [], 0) == (list(strings), list(strings), operator.length_hint(strings))


def test_memory_is_held_until_the_last_string_was_made():
    class Owner:
        pass

    owner, dropped = Owner(), Owner()
    of_owner, of_dropped = weakref.ref(owner), weakref.ref(dropped)
    strings, other = iterated([(0, 1)] * 3, owner), iterated([(0, 1)] * 3, dropped)
    next(other)
    del owner, dropped, other
    assert of_owner() is not None
    assert of_dropped() is None
    assert 3 == len(list(strings))
    assert of_owner() is None


BEYOND = [1, 255, 256, 257, 1 << 31, 1 << 32, (1 << 63) - 1]


@pytest.mark.parametrize("by", BEYOND)
def test_no_string_leaves_its_memory(by):
    before = sys.getallocatedblocks()
    for spans in [(256, by)], [(0, 1), (by, 256)], [((1 << 64) - by, by)], [(0, (1 << 64) - by)]:
        with pytest.raises(ValueError, match="a string leaves its memory"):
            by_spans(spans)
        for strings in [iterated(spans)] * 2:  # it fails again
            with pytest.raises(ValueError, match="a string leaves its memory"):
                list(strings)
    for offsets in [0, max(by, 257)], [-by, 3], [by, by - 1, by], [0, by, -by]:
        with pytest.raises(ValueError, match="a string leaves its memory"):
            by_offsets(offsets)
    gc.collect()
    assert sys.getallocatedblocks() < before + 500


def test_memory_must_be_numbers():
    with pytest.raises(TypeError):
        objects.tfw_bytes_of_spans(None, 1, 1, 1)
    with pytest.raises(OverflowError):
        objects.tfw_bytes_of_offsets(address(ffi.from_buffer(DATA)), -1, 0, 0)
    with pytest.raises(TypeError):
        objects.tfw_iterate_spans(None, 1, 1, None, 1)
    with pytest.raises(TypeError):
        objects.tfw_hold_columns(1, None, [])
    with pytest.raises(TypeError):
        objects.tfw_cut_columns(1, 0, None, 1, [], [], [])
    with pytest.raises(ValueError, match="PyCapsule"):
        objects.tfw_set_array_types(None, np.dtype(np.int64), bytes)


class Refusing:
    def __getitem__(self, i):
        raise KeyError(i)


@pytest.mark.parametrize("keys", [["a"], list("abcdefgh")])
def test_batches_of_sequences_and_iterators(keys):
    like = dict.fromkeys(keys)
    sources = [[10, 11, 12] if i % 2 else iter([1, 2, 3]) for i in range(len(keys))]
    batches = objects.tfw_new_batches(like, keys, sources, 3)
    assert 3 == operator.length_hint(batches)
    assert {"a": 1, **dict(zip(keys, [1, 10] * 4, strict=False))} == next(batches)
    assert 2 == operator.length_hint(batches)
    found = list(batches)
    assert [keys] * 2 == list(map(list, found))
    assert [] == list(batches)
    assert 0 == operator.length_hint(batches)


def test_batches_that_cannot_be_made():
    with pytest.raises(ValueError, match="as many sources as keys"):
        objects.tfw_new_batches({"a": 1}, ["a"], [], 1)
    with pytest.raises(TypeError):
        objects.tfw_new_batches({"a": 1}, ["a"], [[1]], None)
    with pytest.raises(ValueError, match="fewer results than batches"):
        next(objects.tfw_new_batches({"a": 1}, ["a"], [iter([])], 1))
    with pytest.raises(KeyError):
        next(objects.tfw_new_batches({"a": 1}, ["a"], [Refusing()], 1))
    for kind in objects.Batches, objects.StringBatches, objects.HeldMemory:
        with pytest.raises(TypeError):
            kind()


class Bytes(bytes):
    pass


@pytest.mark.parametrize("other", [Bytes(b"a"), bytearray(b"a"), "a", 0, 10, 1 << 70, None, [], ()])
def test_only_bytes_objects_are_read_in_place(other):
    strings = [b"", b"a", bytes(300), bytes(70_000), b"last"]
    table, count = spans_of_bytes((*strings, other, b"behind"))
    found = [ffi.buffer(ffi.cast("char *", int(at)), int(size))[:] for at, size in table[:count]]
    assert strings == found
    assert 0 == spans_of_bytes((other,))[1] == spans_of_bytes(())[1]


def test_no_reference_is_gained_or_lost():
    string, other = bytes(1000), object()
    held = (string, string, other)
    before = sys.getrefcount(string), sys.getrefcount(other), sys.getrefcount(held)
    for _ in range(100):
        spans_of_bytes(held)
    assert before == (sys.getrefcount(string), sys.getrefcount(other), sys.getrefcount(held))
    made, other = by_spans([(0, 100)]), [DATA[:100].tobytes()]
    assert list(map(sys.getrefcount, made)) == list(map(sys.getrefcount, other))
    assert sys.getrefcount(made) == sys.getrefcount(other)


NAMES = [
    "",
    "caf\u00e9",
    "\udcff",
    "a\udc80",
    "\udced\udca0\udc80",
    "\udcc0\udc80",
    "\udce2\udc82",
    "k" * 300,
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_are_not_utf8_are_escaped(name):
    key = name.encode("utf-8", "surrogateescape")
    message = tfw.encode_example({key: 1, "b": 2.5})
    for _ in range(2):  # learned, and known
        assert {name, "b"} == tfw.decode_example(message).keys()
    assert [{name, "b"}] * 3 == [found.keys() for found in tfw.decode_examples([message] * 3)]


def test_names_beyond_those_that_are_remembered():
    rows = [{f"key {i} {k}": k for k in range(3)} for i in range(3000)]
    messages = tfw.encode_examples(rows)
    assert rows == tfw.decode_examples(messages) == list(map(tfw.decode_example, messages))
    shared = tfw.decode_examples(messages[:2] * 2)
    assert all(a is b for a, b in zip(*map(sorted, (shared[0], shared[2])), strict=True))


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_record_is_read_whole_or_not_at_all(tmp_path, is_cached):
    payload, long = bytes(range(100)), bytes(1 << 15)
    path = tmp_path / "a"
    tfw.write_records(path, [payload, long])
    places = [(0, 116), (0, 115), (1, 117), (0, 117), (0, 0), (1 << 40, (1 << 40) + 116), (-1, 115)]
    offsets = np.array([*places, (116, 116 + 16 + (1 << 15))], np.int64).ravel()
    native = ffi.new("tfw_indexed_file *")
    native.offsets, native.count = ffi.from_buffer("int64_t[]", offsets), len(offsets) - 1
    if is_cached:
        out = ffi.new("tfw_cache **")
        assert lib.TFW_OK == lib.tfw_cache_create(path.stat().st_size, out, ffi.NULL)
        native.cache = cache = ffi.gc(out[0], lib.tfw_cache_free)
    file = int(ffi.cast("uintptr_t", native))
    with path.open("rb") as opened:
        native.fd = opened.fileno()
        found = [objects.tfw_read_record(file, 2 * i) for i in range(len(places) + 1)]
        # One that is longer than the room for it is given out of a cache.
        assert [payload, *[None] * (len(places) - 1), long if is_cached else None] == found
        assert objects.tfw_read_record(file, len(offsets) - 1) is None
        with pytest.raises(OverflowError):
            objects.tfw_read_record(file, -1)
    native.fd = -1
    assert (payload if is_cached else None) == objects.tfw_read_record(file, 0)
    if is_cached:
        native.cache = ffi.NULL
        del cache


def held_by(call):
    """How many blocks 200 calls leave behind, in the best of some rounds: what is kept for later
    calls grows for a while."""
    grown = []
    for _ in range(4):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(200):
            call()
        gc.collect()
        grown.append(sys.getallocatedblocks() - before)
    return min(grown[1:])


VALUES = {"i": [1, 2], "f": [0.5], "s": [b"a", b"b"], "none": [], "one": 7, "text": "caf\u00e9"}
EXAMPLE = tfw.encode_example(VALUES)
SEQUENCE = tfw.encode_sequence_example(VALUES, {"l": [[1], [2, 3]], "t": ["a", "b"]})
LOOP: list[object] = []
LOOP.append(LOOP)
CALLS = {
    "an example": lambda: tfw.decode_example(EXAMPLE),
    "many": lambda: tfw.decode_examples([EXAMPLE] * 20),
    "a sequence": lambda: tfw.decode_sequence_example(SEQUENCE),
    "damaged": lambda: tfw.decode_example(EXAMPLE[:-1]),
    "damaged among many": lambda: tfw.decode_examples([EXAMPLE, EXAMPLE[:-1]]),
    "a row": lambda: tfw.encode_example(dict(VALUES)),
    "rows": lambda: tfw.encode_examples([dict(VALUES), {"x": np.arange(3)}, {b"y": (1, 2)}]),
    "a row with a null": lambda: tfw.encode_example({**VALUES, "x": [None]}),
    "a self-containing list": lambda: tfw.encode_example({"x": LOOP}),
    "text without UTF-8": lambda: tfw.encode_example({"x": 1, "y": "\ud800"}),
    "beyond int64": lambda: tfw.encode_examples([VALUES, {"x": 2**63}]),
    "no mapping": lambda: tfw.encode_examples([VALUES, 3]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_objects_behind(name):
    def call():
        with suppress(TypeError, ValueError, RecursionError, tfw.ParseError):
            CALLS[name]()

    assert held_by(call) < 100
