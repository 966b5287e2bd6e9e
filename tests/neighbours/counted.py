"""Exports of Arrow data whose releases are counted, whichever thread calls them."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections import Counter
from itertools import count
from typing import Any

from helpers.arrow.structs import ffi, opened

_NAMES = {
    "struct ArrowSchema *": b"arrow_schema",
    "struct ArrowArray *": b"arrow_array",
    "struct ArrowArrayStream *": b"arrow_array_stream",
}

_POINTER = ctypes.c_void_p
_function = ctypes.PYFUNCTYPE(ctypes.py_object, _POINTER, ctypes.c_char_p, _POINTER)
_new_capsule = _function(("PyCapsule_New", ctypes.pythonapi))
_function = ctypes.PYFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)
_pointer_of = _function(("PyCapsule_GetPointer", ctypes.pythonapi))


class Counted:
    """A reader or a batch, whose structs are wrapped on the way to the consumer.

    A consumer moves a struct by copying it, so a struct is known by its private data: a number. The
    callbacks are Python's, so nothing may be released while an exception is set.

    Attributes:
        made: The numbers of the structs that went out, with what they are.
        released: How often each was released.
    """

    def __init__(self, exporter: Any) -> None:
        self._exporter = exporter
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._originals: dict[int, tuple[Any, Any]] = {}
        self._kept: list[Any] = []
        self._streams: dict[int, Any] = {}
        self.made: dict[int, str] = {}
        self.released: Counter[int] = Counter()
        self._release = {kind: ffi.callback(f"void({kind})", self._released) for kind in _NAMES}
        self._destructors = {kind: self._destructor(kind) for kind in _NAMES}
        self._get_schema = ffi.callback(
            "int(struct ArrowArrayStream *, struct ArrowSchema *)", self._next_schema
        )
        self._get_next = ffi.callback(
            "int(struct ArrowArrayStream *, struct ArrowArray *)", self._next_array
        )
        self._get_last_error = ffi.callback(
            "const char *(struct ArrowArrayStream *)", self._last_error
        )

    def __arrow_c_schema__(self) -> object:
        return self._wrapped(self._exporter.__arrow_c_schema__(), "struct ArrowSchema *")

    def _wrapped(self, exported: Any, kind: str) -> object:
        """A capsule with a copy of the struct in another, which is moved out of there."""
        original = opened(exported, _NAMES[kind])
        struct = ffi.new(kind, original[0])
        original.release = ffi.NULL
        self._kept.append(struct)
        if kind == "struct ArrowArrayStream *":
            inner = ffi.new(kind, struct[0])
            number = self._wrap(struct, kind)
            self._streams[number] = inner
            struct.get_schema, struct.get_next = self._get_schema, self._get_next
            struct.get_last_error = self._get_last_error
        else:
            self._wrap(struct, kind)
        address, destructor = int(ffi.cast("intptr_t", struct)), self._destructors[kind]
        return _new_capsule(address, _NAMES[kind], ctypes.cast(destructor, _POINTER))

    def _destructor(self, kind: str) -> Any:
        """Releases what was not moved out of a capsule."""

        def destroy(capsule: int) -> None:
            struct = ffi.cast(kind, _pointer_of(capsule, _NAMES[kind]))
            if struct.release != ffi.NULL:
                struct.release(struct)

        return ctypes.PYFUNCTYPE(None, _POINTER)(destroy)

    def _wrap(self, struct: Any, kind: str) -> int:
        with self._lock:
            number = next(self._numbers)
            self.made[number] = kind
            self._originals[number] = struct.release, struct.private_data
        struct.release, struct.private_data = self._release[kind], ffi.cast("void *", number)
        return number

    def _released(self, struct: Any) -> None:
        number = int(ffi.cast("intptr_t", struct.private_data))
        with self._lock:
            self.released[number] += 1
            struct.release, struct.private_data = self._originals.pop(number)
        struct.release(struct)
        assert struct.release == ffi.NULL

    def _stream(self, struct: Any) -> Any:
        return self._streams[int(ffi.cast("intptr_t", struct.private_data))]

    def _next_schema(self, struct: Any, out: Any) -> int:
        stream = self._stream(struct)
        status: int = stream.get_schema(stream, out)
        if status == 0:
            self._wrap(out, "struct ArrowSchema *")
        return status

    def _next_array(self, struct: Any, out: Any) -> int:
        stream = self._stream(struct)
        status: int = stream.get_next(stream, out)
        if status == 0 and out.release != ffi.NULL:
            self._wrap(out, "struct ArrowArray *")
        return status

    def _last_error(self, struct: Any) -> Any:
        stream = self._stream(struct)
        return stream.get_last_error(stream)

    def kinds(self) -> Counter[str]:
        """How many structs of each kind went out."""
        return Counter(kind.split()[1] for kind in self.made.values())

    def check(self) -> None:
        """Every struct was released once."""
        if len(self.released) < len(self.made):
            gc.collect()
        assert dict.fromkeys(self.made, 1) == dict(self.released), self.kinds()


class CountedReader(Counted):
    """Of an ArrowReader."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        return self._wrapped(self._exporter.__arrow_c_stream__(), "struct ArrowArrayStream *")


class CountedBatch(Counted):
    """Of a RecordBatch."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]:
        schema, array = self._exporter.__arrow_c_array__()
        return (
            self._wrapped(schema, "struct ArrowSchema *"),
            self._wrapped(array, "struct ArrowArray *"),
        )
