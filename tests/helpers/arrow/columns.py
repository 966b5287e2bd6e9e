"""Arrow data without a library of Arrow's: columns laid out by hand, in capsules, with every
release counted."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from helpers.arrow.structs import ffi

NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
NUMBERS |= {"e": "f2", "f": "f4", "g": "f8"}


# ---- Layouts --------------------------------------------------------------------------------


@dataclass
class Node:
    """An array of some type, as the structs say it. Tests change it before it is exported."""

    format: str
    length: int
    buffers: list[Any]
    children: list[Any] = field(default_factory=list)
    dictionary: Any = None
    null_count: int = 0
    offset: int = 0
    name: str | None = "x"
    metadata: bytes | None = None


def lay_out(format: Any, values: Sequence[Any], before: int = 0) -> Node:
    """Values as an array of a type.

    Args:
        format: Arrow's format; of lists a pair, or for "+w:n" too, of the format and that of the
            elements; of a dictionary ("dictionary", format of indices, format of values).
        values: None is null.
        before: How many elements lie before them, in its buffers.
    """
    padding = [next((value for value in values if value is not None), None)] * before
    node = _laid_out(format, [*padding, *values])
    node.offset, node.length = before, len(values)
    node.null_count = sum(value is None for value in values)
    return node


def _laid_out(format: Any, values: list[Any]) -> Node:
    count = len(values)
    valid = np.array([value is not None for value in values], bool)
    bitmap = None if valid.all() else np.packbits(valid, bitorder="little")
    if isinstance(format, tuple) and format[0] == "dictionary":
        distinct = list(dict.fromkeys(value for value in values if value is not None))
        indices = [77 if value is None else distinct.index(value) for value in values]
        node = _laid_out(format[1], indices)
        node.buffers[0], node.dictionary = bitmap, lay_out(format[2], distinct)
        return node
    if isinstance(format, tuple):
        return _lists(format, values, bitmap)
    if format == "n":
        return Node("n", count, [])
    if format == "b":
        bits = np.packbits(np.array([bool(value) for value in values], bool), bitorder="little")
        return Node("b", count, [bitmap, bits])
    if format in NUMBERS:
        dtype = np.dtype(NUMBERS[format])
        garbage = np.iinfo(dtype).max if dtype.kind in "iu" else 9.0
        filled = [garbage if value is None else value for value in values]
        with np.errstate(over="ignore"):
            return Node(format, count, [bitmap, np.array(filled, dtype)])
    return _strings(format, [value or b"" for value in values], bitmap)


def _offsets(lengths: Sequence[int], dtype: str) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def _strings(format: str, values: list[bytes], bitmap: Any) -> Node:
    data = np.frombuffer(b"".join(values), np.uint8)
    if format[0] == "w":
        width = int(format[2:])
        data = np.frombuffer(b"".join(value.ljust(width) for value in values), np.uint8)
        return Node(format, len(values), [bitmap, data])
    if format[0] == "v":
        views = b""
        for i, value in enumerate(values):
            inline = np.int32(len(value)).tobytes() + value.ljust(12, b"\0")
            begin = sum(map(len, values[:i]))
            far = np.array([len(value), 0, 0, begin], np.int32).tobytes()
            views += inline if len(value) <= 12 else far
        sizes = np.array([len(data)], np.int64)
        return Node(format, len(values), [bitmap, np.frombuffer(views, "i4"), data, sizes])
    offsets = _offsets(list(map(len, values)), "i4" if format in "uz" else "i8")
    return Node(format, len(values), [bitmap, offsets, data])


def _lists(format: tuple[str, Any], values: list[Any], bitmap: Any) -> Node:
    kind, inner = format
    lists = [value or [] for value in values]
    if kind.startswith("+w"):
        width = int(kind[3:])
        lists = [value or [None] * width for value in lists]
    elif kind.startswith("+v"):
        lists = lists[::-1]
    lengths = [len(value) for value in lists]
    child = lay_out(inner, [item for value in lists for item in value], before=1)
    dtype = "i8" if kind[-1] == "L" else "i4"
    offsets = _offsets(lengths, dtype)
    buffers: list[Any] = [bitmap]
    if kind.startswith("+v"):  # in the opposite order
        buffers += [offsets[:-1][::-1].copy(), np.array(lengths[::-1], dtype)]
    elif not kind.startswith("+w"):
        buffers.append(offsets)
    return Node(kind, len(values), buffers, [child])


def table_of(columns: dict[str, Node], length: int | None = None) -> Node:
    """A batch of these columns."""
    for name, node in columns.items():
        node.name = name
    count = next((node.length for node in columns.values()), 0) if length is None else length
    return Node("+s", count, [None], list(columns.values()))


# ---- Structs --------------------------------------------------------------------------------


class Exporter:
    """Makes structs of nodes, keeps their memory, and counts the releases of the outermost ones.

    Attributes:
        made, released: How many structs were handed over, and how many releases there were.
        copies: The memory that was exported for an array, by the array's id.
    """

    def __init__(self) -> None:
        self.made = 0
        self.released = 0
        self.keep: list[Any] = []
        self.copies: dict[int, Any] = {}
        self._release_schema = ffi.callback("void(struct ArrowSchema *)", self._release)
        self._release_array = ffi.callback("void(struct ArrowArray *)", self._release)

    def _release(self, struct: Any) -> None:
        assert struct.release != ffi.NULL
        struct.release = ffi.NULL
        self.released += 1

    def schema(self, node: Node, out: Any = None) -> Any:
        out = self._struct("struct ArrowSchema", out)
        children = [self.schema(child) if child else ffi.NULL for child in node.children]
        out.format = self._kept(ffi.new("char[]", node.format.encode()))
        out.name = (
            ffi.NULL if node.name is None else self._kept(ffi.new("char[]", node.name.encode()))
        )
        if node.metadata is not None:
            out.metadata = self._kept(ffi.new("char[]", node.metadata))
        out.n_children = len(children)
        out.children = self._kept(ffi.new("struct ArrowSchema *[]", children))
        out.dictionary = ffi.NULL if node.dictionary is None else self.schema(node.dictionary)
        out.release = self._release_schema
        return out

    def array(self, node: Node, out: Any = None) -> Any:
        out = self._struct("struct ArrowArray", out)
        children = [self.array(child) if child else ffi.NULL for child in node.children]
        buffers = [ffi.NULL if b is None else self._buffer(b) for b in node.buffers]
        out.length, out.null_count, out.offset = node.length, node.null_count, node.offset
        out.n_buffers, out.n_children = len(buffers), len(children)
        out.buffers = self._kept(ffi.new("const void *[]", buffers))
        out.children = self._kept(ffi.new("struct ArrowArray *[]", children))
        out.dictionary = ffi.NULL if node.dictionary is None else self.array(node.dictionary)
        out.release = self._release_array
        return out

    def _struct(self, ctype: str, out: Any) -> Any:
        return self._kept(ffi.new(f"{ctype} *")) if out is None else out

    def _buffer(self, array: Any) -> Any:
        copy = np.concatenate([np.zeros(8, np.uint8), array.view(np.uint8)])[8:]  # never NULL
        self.copies[id(array)] = self._kept(copy)
        return ffi.cast("void *", copy.ctypes.data)

    def _kept(self, value: Any) -> Any:
        self.keep.append(value)
        return value


def capsule(struct: Any, name: bytes) -> Any:
    """A capsule without a destructor: a table that is never moved out of it stays unreleased."""
    arguments = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, *arguments)
    make = prototype(("PyCapsule_New", ctypes.pythonapi))
    return make(int(ffi.cast("intptr_t", struct)), name, None)


_NAMES = {"schema": b"arrow_schema", "array": b"arrow_array", "stream": b"arrow_array_stream"}


class Batch(Exporter):
    """A table that is one batch.

    Attributes:
        node: The batch.
        edit: Called with the structs of schema and array before they are handed over.
    """

    def __init__(self, node: Node, edit: Any = None) -> None:
        super().__init__()
        self.node, self.edit = node, edit

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]:
        schema, array = self.schema(self.node), self.array(self.node)
        self.made += 2
        if self.edit is not None:
            self.edit(schema, array)
        return capsule(schema, _NAMES["schema"]), capsule(array, _NAMES["array"])


class Stream(Exporter):
    """A table that is a stream of batches. An exception among them ends it: (errno, message)."""

    def __init__(self, batches: Sequence[Any], schema: Node | None = None) -> None:
        super().__init__()
        self.batches = list(batches)
        self.node = schema or self.batches[0]
        self._message = ffi.new("char[]", b"")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        struct = self._kept(ffi.new("struct ArrowArrayStream *"))
        left = iter(self.batches)
        self.made += 1

        def get_schema(stream: Any, out: Any) -> int:
            if isinstance(self.node, tuple):
                return self._fail(self.node)
            self.made += 1
            self.schema(self.node, out)
            return 0

        def get_next(stream: Any, out: Any) -> int:
            batch = next(left, None)
            if isinstance(batch, tuple):
                return self._fail(batch)
            out.release = ffi.NULL
            if batch is not None:
                self.made += 1
                self.array(batch, out)
            return 0

        struct.get_schema = self._kept(
            ffi.callback("int(struct ArrowArrayStream *, struct ArrowSchema *)", get_schema)
        )
        struct.get_next = self._kept(
            ffi.callback("int(struct ArrowArrayStream *, struct ArrowArray *)", get_next)
        )
        struct.get_last_error = self._kept(
            ffi.callback("const char *(struct ArrowArrayStream *)", lambda stream: self._message)
        )
        struct.release = self._kept(ffi.callback("void(struct ArrowArrayStream *)", self._release))
        return capsule(struct, _NAMES["stream"])

    def _fail(self, failure: tuple[int, bytes]) -> int:
        self._message = ffi.new("char[]", failure[1])
        return failure[0]
