"""From Python values to framed records: values as bytes, in chunks, with lengths and checksums."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

import numpy as np

from tfwire._base.aliases import FeatureKinds
from tfwire._base.arguments import wrong_type
from tfwire._base.arrays import holds_objects
from tfwire._base.native import call, ffi, lib, new_error
from tfwire._base.strings import spans_of_bytes

Array = np.ndarray[Any, Any]
FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE
# Larger blocks gain little, and every open writer keeps one in memory.
_PACKED_BYTES = 3 << 16
_CHUNK_RECORDS = 4096  # at most
_CHUNK_BYTES = 1 << 18  # about


def as_record(value: Any, encode: Callable[[Any], bytes] | None = None) -> bytes:
    """One record: a bytes-like object, a str (as UTF-8), a mapping (encoded as an Example, by this
    function if there is one), a protobuf message, or an object whose ``numpy()`` is one of them.

    Raises:
        TypeError: Anything else.
    """
    if isinstance(value, bytes):
        return memoryview(value).tobytes()  # bytes(value) may be of a subclass, with its own len()
    if isinstance(value, str):
        return str.encode(value)
    if type(value) is dict or isinstance(value, Mapping):
        if encode is None:
            from tfwire._examples.encode import encode_example

            encode = encode_example
        return encode(value)
    if hasattr(value, "SerializeToString"):
        return memoryview(value.SerializeToString()).tobytes()
    if hasattr(value, "numpy"):
        return as_record(value.numpy(), encode)
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 0:
        return as_record(value[()], encode)
    if not isinstance(value, np.generic):  # scalars have buffers too, but are not strings
        try:
            view = memoryview(value)
        except TypeError:
            pass
        else:
            if not holds_objects(value, view):
                return view.tobytes()
    raise wrong_type("a record", value, "bytes-like, a str, a mapping or a protobuf message")


def as_records(values: Sequence[Any], kinds: FeatureKinds | None = "any") -> Sequence[bytes]:
    """Many records. Exact bytes objects are returned as they are; rows are encoded together.

    Args:
        kinds: As for ``encode_examples``, of rows.

    Raises:
        TypeError, ValueError: As ``as_record``, for some of the values.
    """
    types = set(map(type, values))
    if types <= {bytes}:
        return values
    if are_rows(types):
        from tfwire._examples.encode import encode_examples

        return encode_examples(values, kinds=kinds)
    return [as_record(value) for value in values]


def are_rows(types: set[type]) -> bool:
    """Whether values of these types are rows."""
    return all(issubclass(cls, Mapping) for cls in types)


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """An iterable in lists, which hold more items when items are short.

    Raises:
        TypeError: One record instead of many, or columns.
    """
    if isinstance(values, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"expected an iterable of records, found {type(values).__name__}")
    if isinstance(values, Mapping):
        raise TypeError(
            "expected an iterable of records, found a mapping: see TFRecordWriter.write_columns"
        )
    if isinstance(values, np.ndarray) and values.dtype.kind == "S":
        raise TypeError("numpy 'S' arrays drop trailing NUL bytes; use dtype=object for records")
    try:
        iterator = iter(values)
    except TypeError:
        found = type(values).__name__
        raise TypeError(f"expected an iterable of records, found {found}") from None
    return _chunks(iterator)


def _chunks(iterator: Iterator[Any]) -> Iterator[list[Any]]:
    count = 1
    while chunk := list(islice(iterator, count)):
        yield chunk
        last = chunk[-4:]
        size = max(1, sum(map(_size, last)))
        count = min(2 * count, _CHUNK_RECORDS, max(1, _CHUNK_BYTES * len(last) // size))


def _size(value: Any) -> int:
    """About how long a record is; the ``len`` of scalar tensors and arrays raises."""
    try:
        return len(value)
    except TypeError:
        return 1


class Packer:
    """Frames records into a buffer that is reused by every call."""

    def __init__(self) -> None:
        self._out = np.empty(0, np.uint8)  # made at first use: a set may have many writers
        self._count, self._size = ffi.new("size_t *"), ffi.new("size_t *")

    def blocks(self, records: Sequence[Any]) -> Iterator[tuple[memoryview, int]]:
        """Frames records up to the first that is not a bytes object or does not fit into a block.
        C looks at types and lengths: one Python pass over the records would cost as much as
        everything else.

        Yields:
            Framed records side by side, valid until the next block, and their number.
        """
        if not len(self._out):
            self._out = np.empty(_PACKED_BYTES, np.uint8)
        held = tuple(records)
        table, count = spans_of_bytes(held)
        spans, done = ffi.from_buffer("tfw_span[]", table), 0
        while done < count:
            out = ffi.from_buffer("uint8_t[]", self._out)
            packed, size = self._count, self._size
            lib.tfw_pack_addresses(spans + done, count - done, out, len(out), packed, size)
            if not packed[0]:
                return
            yield self._out.data[: size[0]], packed[0]
            done += packed[0]

    def framed(self, records: Sequence[bytes]) -> Iterator[bytes]:
        """All records with their frames, in pieces of many or of a long one."""
        while records:
            done = 0
            for block, count in self.blocks(records):
                yield bytes(block)
                done += count
            if done < len(records):  # longer than a block
                header, footer, _ = frame_apart(records[done])
                yield b"".join((header, records[done], footer))
                done += 1
            records = records[done:]


class Framed:
    """Framed records that lie side by side; slices are of the same kind.

    Args:
        data: Their bytes.
        ends: Where each ends.
        begin: Where the first one begins.
        tally: Their ``tfw_tally *``, if it is known.

    Attributes:
        data, tally: As given.
    """

    def __init__(self, data: memoryview, ends: Array, begin: int = 0, tally: Any = None) -> None:
        self.data, self.tally = data, tally
        self._ends, self._begin = ends, begin

    @classmethod
    def of(cls, block: Any) -> Framed:
        """The records of an EncodedBlock."""
        spans = block.spans.view(np.int64)
        ends = spans[:, 0] + spans[:, 1] + lib.TFW_FOOTER_SIZE
        return cls(block.view, ends, 0, block.tally)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, key: slice) -> Framed:
        ends, before = self._ends[key], self._ends[: key.start][-1:]
        begin = int(before[0]) if len(before) else self._begin
        size = int(ends[-1]) - begin if len(ends) else 0
        first = begin - self._begin
        tally = self.tally if len(ends) == len(self) else None
        return Framed(self.data[first : first + size], ends, begin, tally)

    def ends(self) -> Array:
        """Where each ends, in bytes from the first."""
        return self._ends - self._begin


def pack(data: Any, data_len: int, spans: Any, count: int, size: int) -> memoryview:
    """Payloads as the records of a file.

    Args:
        data, data_len: ``uint8_t *``, the memory that holds them.
        spans, count: ``tfw_span *``, where they are.
        size: Bytes of the records, with their frames.
    """
    out = np.empty(size, np.uint8)
    room, written = ffi.from_buffer("uint8_t[]", out), ffi.new("size_t *")
    call(lib.tfw_pack, data, data_len, spans, count, room, size, written)
    return out.data


def scanned(data: Any, most: int, flags: int = 0) -> Array:
    """The spans of the payloads of framed records, up to damage: uint64 of shape (records, 2).

    Args:
        data: The records, side by side.
        most: How many there may be.
        flags: Of ``tfw_scan``.
    """
    spans = np.empty((most, 2), np.uint64)
    found, taken = ffi.new("size_t *"), ffi.new("size_t *")
    lib.tfw_scan(
        *(ffi.from_buffer("uint8_t[]", data), len(data), np.iinfo(np.int64).max, flags),
        *(ffi.from_buffer("tfw_span[]", spans), most, found, taken, new_error()),
    )
    return spans[: found[0]]


def frame_apart(record: bytes) -> tuple[bytes, bytes, int]:
    """Header and footer of a payload, which is not copied, and its CRC-32C."""
    crc = lib.tfw_crc32c(0, record, len(record))
    length = struct.pack("<Q", len(record))
    return length + _masked(lib.tfw_crc32c(0, length, len(length))), _masked(crc), crc


def _masked(crc: int) -> bytes:
    """A checksum as it is stored in files."""
    return struct.pack("<I", lib.tfw_crc32c_mask(crc))


def ends_of_payloads(payloads: Sequence[bytes]) -> list[int]:
    """Where the record of each would end in a file that holds them all."""
    return list(accumulate(len(payload) + FRAME for payload in payloads))


def ends_of_records(block: memoryview) -> list[int]:
    """0, and the offsets at which the framed records in a block end."""
    ends = [0]
    while ends[-1] < len(block):
        ends.append(ends[-1] + struct.unpack_from("<Q", block, ends[-1])[0] + FRAME)
    return ends
