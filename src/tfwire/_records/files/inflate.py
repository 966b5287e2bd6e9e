"""Concatenated gzip members and zlib streams, inflated as one stream of bytes.

Every checksum is verified, the output of a call is bounded, and everything that can be inflated
before damage is delivered. isal inflates two to three times faster than zlib, but loses the output
of the call that meets damage; then zlib inflates the stream again and finds the place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from tfwire._base.native import ffi, lib
from tfwire._records.files.byte_sources import Source
from tfwire._records.files.compression import fast_zlib as _fast, window_bits

_CHUNK = 1 << 16

# Bytes of input for the first call; they double while the stream goes on. The unused rest is copied
# when a stream ends, so short streams should get little.
_FIRST_INPUT = 1 << 9

# Bytes that must inflate where a member is said to begin: the header of a record. If more were
# asked for, a short member with a damaged end would lose its records.
_PROBE = 1 << 10
_PROOF = lib.TFW_HEADER_SIZE

# Bytes of input in the first step of the search for a fault; a gzip header takes 10 bytes.
_FIRST_TAKEN = 16

# Largest output of one byte of input: 8 copies of 258 bytes.
_MOST_OF_A_BYTE = 8 * 258
_GZIP_MAGIC = b"\x1f\x8b\x08"
_RAW = -15  # zlib's window_bits for a stream without header and checksum


class StreamDamage(Exception):
    """Raised where a compressed stream cannot be inflated further.

    Attributes:
        offset: Where in the compressed file.
        cut: True if the file only ends too early.
    """

    def __init__(self, text: str, offset: int, cut: bool = False) -> None:
        super().__init__(text)
        self.offset = offset
        self.cut = cut


class _Input:
    """A window that moves over a source of compressed bytes.

    Args:
        source: The compressed bytes.

    Attributes:
        offset: Where the window begins in the source.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._chunk = bytearray(_CHUNK)
        self._data = b""
        self._at = 0  # the window is _data[_at:]
        self._pulled = 0  # offset of the end of the window
        self._crc, self._crc_end = 0, 0  # CRC-32C of the source up to an offset

    def __len__(self) -> int:
        """The number of bytes in the window."""
        return len(self._data) - self._at

    @property
    def offset(self) -> int:
        return self._pulled - len(self._data) + self._at

    @property
    def crc32c(self) -> int | None:
        """The CRC-32C of everything read; None if a part was read twice."""
        return self._crc if self._crc_end == self._pulled else None

    def pull(self) -> bool:
        """Extends the window; False at the end of the source."""
        got = self._source.readinto(memoryview(self._chunk))
        if self._crc_end == self._pulled:
            self._crc = lib.tfw_crc32c(self._crc, ffi.from_buffer(self._chunk), got)
            self._crc_end += got
        self._pulled += got
        if got:
            self._data, self._at = self._data[self._at :] + self._chunk[:got], 0
        return got != 0

    def reach(self, size: int) -> bytes:
        """The first bytes of the window; fewer than size only where the source ends."""
        while len(self) < size and self.pull():
            pass
        return self._data[self._at : self._at + size]

    def view(self, size: int = _CHUNK) -> memoryview:
        """At most size bytes of the window, not copied."""
        return memoryview(self._data)[self._at : self._at + size]

    def drop(self, size: int) -> None:
        """Removes this many bytes from the beginning of the window."""
        self._at += size

    def drop_zeros(self) -> None:
        if self._data.startswith(b"\0", self._at):
            self._data, self._at = self._data[self._at :].lstrip(b"\0"), 0

    def find(self, pattern: bytes) -> int:
        """Where a pattern begins in the window; -1: it is not there."""
        found = self._data.find(pattern, self._at)
        return found - self._at if found >= 0 else -1

    def seek(self, offset: int) -> None:
        """Moves the window to an offset of the source."""
        begin = self._pulled - len(self._data)
        if begin <= offset <= self._pulled:
            self._at = offset - begin
            return
        self._source.rewind(offset)
        self._pulled = offset
        self._data, self._at = b"", 0


class InflatedSource:
    """The decompressed bytes of a source.

    Args:
        source: The compressed bytes; this object closes it.
        name: "GZIP" or "ZLIB".
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self._input = _Input(source)
        self._name = name
        self._bits = window_bits(name)
        self._member = 0  # where the current stream begins
        self._produced = 0  # bytes inflated from it
        self._step = _FIRST_INPUT
        self._inflater: Any = None  # None between streams
        self._exact = not source.rewindable or _fast is zlib  # zlib, ready for salvage
        self._damage: StreamDamage | None = None
        self._repeated = 0  # bytes searched again after they were inflated

    def read(self, size: int) -> bytes:
        """The next bytes, at most ``size``; b"" at the end.

        Raises:
            StreamDamage: After everything before the damage was delivered; again on every further
                call, unless ``resume`` found a place to go on.
        """
        while self._damage is None:
            if self._inflater is None and not self._begin():
                return b""
            ended = not self._input and not self._input.pull()
            piece = self._inflate(size)
            if piece:
                self._produced += len(piece)
                return piece
            if ended and self._inflater is not None and self._damage is None:
                self._fail_cut(f"the {self._name} stream ends too early")
        raise self._damage

    def resume(self) -> int | None:
        """Goes on after damage, at the next gzip member that inflates.

        The search begins just after the start of the damaged member, because the damage may hide
        its end. It begins at the damage if the source cannot be rewound, or if searching again
        would no longer take linear time.

        Returns:
            Where that member begins in the compressed source; None: there is none.
        """
        if self._damage is None or self._name != "GZIP":
            return None
        again = self.offset - self._member - 1
        if self._source.rewindable and self._repeated + again < self.offset:
            self._repeated += again
            self._input.seek(self._member)
        if not self._search():
            return None
        self._damage = None
        self._begin_here()
        return self._member

    def size(self) -> int | None:
        """Bytes of the compressed source, where known."""
        return self._source.size()

    @property
    def crc32c(self) -> int | None:
        """The CRC-32C of everything read from the source; None if some was read twice."""
        return self._input.crc32c

    @property
    def offset(self) -> int:
        """How much of the compressed source has been used."""
        return self._input.offset

    def close(self) -> None:
        self._inflater = None
        self._source.close()

    # ---- Streams ------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Begins the next stream, after any padding with zeros; False at the end."""
        while True:
            if self.offset > 0:  # padding at the start of a file is refused
                self._input.drop_zeros()
            if self._input:
                self._begin_here()
                return True
            if not self._input.pull():
                return False

    def _begin_here(self) -> None:
        self._member = self.offset
        self._produced = 0
        self._step = _FIRST_INPUT
        make = zlib if self._exact or self._has_reserved_flags() else _fast
        self._inflater = make.decompressobj(wbits=self._bits)

    def _has_reserved_flags(self) -> bool:
        """True if zlib refuses the header, as RFC 1952 demands, while isal does not."""
        if self._name != "GZIP":
            return False
        header = self._input.reach(4)
        return len(header) == 4 and header[3] & 0xE0 != 0

    # ---- Inflating ----------------------------------------------------------------------------

    def _inflate(self, size: int) -> bytes:
        """At most ``size`` bytes of the current stream; b"": it needs input, or has ended."""
        inflater, data = self._inflater, self._input.view(self._step)
        fresh = self.offset == self._member
        before = inflater.copy() if self._exact and not fresh else None
        try:
            piece = inflater.decompress(data, size)
        except (zlib.error, _fast.error) as error:
            if not self._exact:
                return self._again_with_zlib(size)
            if before is None:
                return self._salvage_short(data, size, error)
            return self._salvage(before, data, size, error)
        return self._advance(len(data), piece)

    def _advance(self, given: int, piece: bytes) -> bytes:
        """Drops the input that the inflater used, and the inflater if its stream ended."""
        inflater = self._inflater
        left = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        self._input.drop(given - len(left))
        self._inflater = None if inflater.eof else inflater
        self._step = min(2 * self._step, _CHUNK)
        return piece

    def _again_with_zlib(self, size: int) -> bytes:
        """Inflates the current stream again with zlib, up to the current place and further."""
        self._exact = True
        left = produced = self._produced
        self._input.seek(self._member)
        self._begin_here()
        self._produced = produced
        while left:
            if self._inflater is None or not (self._input or self._input.pull()):
                self._fail_cut("the file changed while it was read")
                return b""
            data = self._input.view(self._step)
            try:
                piece = self._inflater.decompress(data, left)
            except zlib.error as error:  # zlib may find the fault at an earlier place than isal
                self._fail(error)
                return b""
            left -= len(self._advance(len(data), piece))
        if self._inflater is None:
            return b""
        if not self._input:
            self._input.pull()
        return self._inflate(size)

    def _salvage_short(self, data: memoryview, size: int, error: Exception) -> bytes:
        """As ``_salvage``, for a stream that fails in its first call. If only the checksum or the
        length after its content is wrong, one call inflates all of the content."""
        if not str(error).endswith(("data check", "length check")):
            return self._salvage(zlib.decompressobj(wbits=self._bits), data, size, error)
        inflater = zlib.decompressobj(wbits=_RAW)
        piece = inflater.decompress(data[_header_size(data, self._name) :], size)
        self._input.drop(len(data) - len(inflater.unused_data))
        self._fail(error)
        return piece

    def _salvage(self, inflater: Any, data: memoryview, size: int, error: Exception) -> bytes:
        """What the failed call would have returned up to its fault.

        Takes as much input as possible, then as much output as possible: symbols may share a byte
        with the fault.
        """
        pieces: list[bytes] = []
        left = data

        def take(count: int, room: int) -> bool:
            nonlocal inflater, left
            attempt, some = inflater.copy(), left[:count]
            try:
                pieces.append(attempt.decompress(some, room))
            except zlib.error:
                return False
            inflater, left = attempt, left[len(some) - len(attempt.unconsumed_tail) :]
            return True

        _take_most(lambda count: take(count, size), len(left), _FIRST_TAKEN)
        self._input.drop(len(data) - len(left))
        left = left[:1]
        _take_most(lambda room: take(1, room), _MOST_OF_A_BYTE)
        self._fail(error)
        return b"".join(pieces)

    def _fail(self, error: Exception) -> None:
        text = f"inflating failed ({error})"
        offset = self.offset
        if self._produced == 0:
            text = f"this is no {self._name} stream ({error})"
            if str(error).endswith("header check"):  # of which zlib has taken the first byte
                offset = self._member
        self._damage = StreamDamage(text, offset)

    def _fail_cut(self, text: str) -> None:
        self._damage = StreamDamage(text, self.offset + len(self._input), cut=True)

    # ---- Searching for the next gzip member ---------------------------------------------------

    def _search(self) -> bool:
        """Moves the window to the next member after the start of this one; False at the end."""
        if self.offset == self._member and (self._input or self._input.pull()):
            self._input.drop(1)
        start = self.offset
        while True:
            self._source.check_searched(self.offset - start)
            begin = self._input.find(_GZIP_MAGIC)
            if begin >= 0:
                self._input.drop(begin)
                if self._inflates():
                    return True
                self._input.drop(1)
            else:
                self._input.drop(max(0, len(self._input) + 1 - len(_GZIP_MAGIC)))
                if not self._input.pull():
                    self._input.drop(len(self._input))
                    return False

    def _inflates(self) -> bool:
        """True if a member seems to begin at the window: its first bytes inflate."""
        try:
            zlib.decompressobj(wbits=self._bits).decompress(self._input.reach(_PROBE), _PROOF)
        except zlib.error:
            return False
        return True


def _header_size(data: memoryview, name: str) -> int:
    """The size in bytes of a stream's header that zlib accepts."""
    if name != "GZIP":
        return 2
    size, flags = 10, data[3] if len(data) > 3 else 0
    if flags & 4:  # extra fields, after their size
        size += 2 + int.from_bytes(data[10:12], "little")
    for flag in (8, 16):  # a file name, a comment
        if flags & flag:
            size = bytes(data).find(b"\0", size) + 1
    return size + (flags & 2)  # a checksum of the header


def _take_most(take: Callable[[int], bool], most: int, step: int = 1) -> None:
    """Takes as much as possible, in steps that double while they succeed and then halve, so that
    the work is proportional to the result."""
    while step <= most and take(step):
        step *= 2
    while step := step >> 1:
        take(step)
