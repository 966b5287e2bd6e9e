"""Arrow's C structs read by hand, as a consumer without an Arrow library would."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
from cffi import FFI

import tfwire as tfw
from helpers.paths import CSRC
from helpers.reading import flip_byte

ffi = FFI()
_header = (CSRC / "arrow" / "abi.h").read_text(encoding="ascii")
ffi.cdef("\n".join(line for line in _header.splitlines() if not line.startswith("#")))

_prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_pointer = _prototype(("PyCapsule_GetPointer", ctypes.pythonapi))

NUMBERS = {"l": "int64_t", "f": "float", "i": "int32_t"}
STRINGS = {"Z": "int64_t", "z": "int32_t", "U": "int64_t", "u": "int32_t"}


class StreamError(Exception):
    """What a stream's get_last_error says; ``number`` is what get_next returned."""

    def __init__(self, number, message):
        super().__init__(message)
        self.number = number


def opened(capsule, name):
    """The struct in a capsule."""
    kind = {b"arrow_schema": "ArrowSchema", b"arrow_array": "ArrowArray"}
    address = _pointer(capsule, name)
    return ffi.cast(f"struct {kind.get(name, 'ArrowArrayStream')} *", address)


def release(node):
    """Releases a struct, which must have marked itself."""
    assert node.release != ffi.NULL
    node.release(node)
    assert node.release == ffi.NULL


def metadata_of(schema):
    """The metadata of a type as a dict."""
    if schema.metadata == ffi.NULL:
        return {}
    data, at = ffi.buffer(schema.metadata, 1 << 16), 4

    def text():
        nonlocal at
        (size,) = struct.unpack("=i", data[at : at + 4])
        at += 4 + size
        return data[at - size : at].decode()

    (count,) = struct.unpack("=i", data[:4])
    return {text(): text() for _ in range(count)}


def type_of(schema):
    """A type as nested tuples: format, and names with the types of children."""
    children = [schema.children[i] for i in range(schema.n_children)]
    kind = ffi.string(schema.format).decode()
    if schema.dictionary != ffi.NULL:
        return kind, type_of(schema.dictionary)
    return (kind, *((ffi.string(c.name).decode(), type_of(c)) for c in children))


def values_of(schema, array, first=0, count=None):
    """The values of an array as Python objects, by its own offsets."""
    kind = ffi.string(schema.format).decode()
    count = array.length if count is None else count
    assert array.length >= first + count
    begin = array.offset + first
    nulls = [False] * count
    if array.n_buffers and array.buffers[0] != ffi.NULL:
        bits = ffi.cast("uint8_t *", array.buffers[0])
        nulls = [not bits[i // 8] >> i % 8 & 1 for i in range(begin, begin + count)]
        whole = array.null_count >= 0 and not first and count == array.length
        assert not whole or array.null_count == sum(nulls)
    else:
        assert array.null_count == 0
    values = _values(kind, schema, array, begin, count)
    assert len(values) == count
    return [None if null else value for null, value in zip(nulls, values, strict=True)]


def _values(kind, schema, array, begin, count):
    children = [(schema.children[i], array.children[i]) for i in range(schema.n_children)]
    assert array.n_children == schema.n_children
    if schema.dictionary != ffi.NULL:
        known = values_of(schema.dictionary, array.dictionary)
        numbers = ffi.cast(f"{NUMBERS[kind]} *", array.buffers[1])
        return [known[numbers[i]] for i in range(begin, begin + count)]
    if kind in NUMBERS:
        numbers = ffi.cast(f"{NUMBERS[kind]} *", array.buffers[1])
        return [numbers[i] for i in range(begin, begin + count)]
    if kind in STRINGS:
        ends = ffi.cast(f"{STRINGS[kind]} *", array.buffers[1])
        data = ffi.cast("char *", array.buffers[2])
        found = [
            ffi.buffer(data + ends[i], ends[i + 1] - ends[i])[:]
            for i in range(begin, begin + count)
        ]
        return [value.decode() for value in found] if kind in "uU" else found
    if kind.startswith("+w:"):
        (child,) = children
        size = int(kind[3:])
        flat = values_of(*child, begin * size, count * size)
        return [flat[i * size : (i + 1) * size] for i in range(count)]
    if kind == "+L":
        (child,) = children
        ends = ffi.cast("int64_t *", array.buffers[1])
        assert all(ends[i] <= ends[i + 1] for i in range(begin, begin + count))
        return [
            values_of(*child, ends[i], ends[i + 1] - ends[i]) for i in range(begin, begin + count)
        ]
    assert kind == "+s"
    names = [ffi.string(child.name).decode() for child, _ in children]
    columns = [values_of(*child, begin, count) for child in children]
    rows = zip(*columns, strict=True) if columns else [()] * count
    return [dict(zip(names, row, strict=True)) for row in rows]


def rows_of_batch(batch):
    """The rows of a RecordBatch as dicts."""
    schema_capsule, array_capsule = batch.__arrow_c_array__()
    schema = opened(schema_capsule, b"arrow_schema")
    array = opened(array_capsule, b"arrow_array")
    rows = values_of(schema, array)
    release(array)
    release(schema)
    return rows


def schema_type(exporter):
    """The type that an object with __arrow_c_schema__ exports."""
    capsule = exporter.__arrow_c_schema__()
    return type_of(opened(capsule, b"arrow_schema"))


class Stream:
    """A stream from its capsule; iterating gives the rows of every array."""

    def __init__(self, exporter):
        self.capsule = exporter.__arrow_c_stream__()
        self.native = opened(self.capsule, b"arrow_array_stream")
        self.schema = ffi.new("struct ArrowSchema *")
        assert self.native.get_schema(self.native, self.schema) == 0

    def __iter__(self):
        return self

    def __next__(self):
        array = ffi.new("struct ArrowArray *")
        number = self.native.get_next(self.native, array)
        if number:
            message = self.native.get_last_error(self.native)
            raise StreamError(number, ffi.string(message).decode())
        if array.release == ffi.NULL:
            raise StopIteration
        rows = values_of(self.schema, array)
        release(array)
        return rows

    def close(self):
        release(self.schema)
        release(self.native)


def rows_of_stream(exporter):
    """All rows of a new stream."""
    stream = Stream(exporter)
    rows = [row for batch in stream for row in batch]
    stream.close()
    return rows


# ---- Files ---------------------------------------------------------------------------------------

INT64, FLOAT, STRING = tfw.int64, tfw.float32, tfw.string
ROWS = [
    {"n": 1, "xs": [0.5, 1.5], "name": "cat", "tags": [1, 2]},
    {"n": 2, "xs": [2.5, 3.5], "name": "", "tags": np.empty(0, np.int64)},
    {"n": 3, "xs": [4.5, 5.5], "name": "dög"},
]
FEATURES = {
    "n": tfw.FixedLenFeature([], INT64),
    "xs": tfw.FixedLenFeature([2], FLOAT),
    "name": tfw.FixedLenFeature([], STRING),
    "tags": tfw.VarLenFeature(INT64),
}
EXPECTED = [
    {"n": 1, "xs": [0.5, 1.5], "name": b"cat", "tags": [1, 2]},
    {"n": 2, "xs": [2.5, 3.5], "name": b"", "tags": []},
    {"n": 3, "xs": [4.5, 5.5], "name": "dög".encode(), "tags": None},
]
SEQUENCE = (
    {"id": tfw.FixedLenFeature([], INT64), "notes": tfw.VarLenFeature(STRING)},
    {
        "words": tfw.VarLenFeature(STRING),
        "frames": tfw.FixedLenSequenceFeature([2], FLOAT, allow_missing=True),
        "rows": tfw.RaggedFeature(INT64, "v", [tfw.RaggedFeature.RowLengths("p")]),
    },
)


def written(tmp_path, rows, name="data", **options):
    path = tmp_path / name
    tfw.write_records(path, rows, kinds="any", **options)
    return str(path)


def damage(path, number):
    """Flips a bit in the payload of a record."""
    places = list(tfw.read_records(path).with_positions())  # the file is closed
    flip_byte(path, places[number][2] + 12)
