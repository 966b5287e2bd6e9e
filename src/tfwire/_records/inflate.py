"""gzip and zlib streams, one after the other, as one stream of bytes.

Every checksum is verified, output is bounded by the buffer it goes to, and all that can be inflated
before damage is delivered. isal inflates two to three times faster than zlib, but what it had made
of a call when it meets damage is lost; then zlib goes over the stream again and says where.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from tfwire._core import ffi, lib
from tfwire._records.compression import fast_zlib as _fast, window_bits
from tfwire._records.sources import Source

__all__ = ["InflatedSource", "StreamDamage"]

_CHUNK = 1 << 16

# Bytes that tell whether a member begins, and what they must hold: the header of a record. More
# would lose the records of a short member of which only the end is damaged.
_PROBE = 1 << 10
_PROOF = lib.TFW_HEADER_SIZE

# A byte of input gives at most 8 copies of 258 bytes.
_MOST_OF_A_BYTE = 8 * 258
_MAGIC = b"\x1f\x8b\x08"


class StreamDamage(Exception):
    """A compressed stream cannot be inflated further.

    Attributes:
        offset: Where in the compressed file.
        cut: Whether the file just ends too early.
    """

    def __init__(self, text: str, offset: int, cut: bool = False) -> None:
        super().__init__(text)
        self.offset = offset
        self.cut = cut


class InflatedSource:
    """What a compressed source holds.

    Args:
        source: The compressed bytes; this object takes it over.
        name: "GZIP" or "ZLIB".
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self._name = name
        self._bits = window_bits(name)
        self._position = 0  # in the source, behind what was pulled from it
        self._tail = b""  # pulled and not yet inflated
        self._chunk = bytearray(_CHUNK)
        self._crc, self._crc_end = 0, 0  # of the source up to there
        self._member = 0  # where the current stream begins
        self._produced = 0  # bytes that it has given
        self._inflater: Any = None  # None between streams
        self._exact = not source.rewindable or _fast is zlib  # zlib, ready for salvage
        self._damage: StreamDamage | None = None
        self._repeated = 0  # bytes that were searched though they had been inflated

    def read(self, size: int) -> bytes:
        """Some bytes, at most size of them; none at the end.

        Raises:
            StreamDamage: After all that comes before the damage was delivered; again on every
                further call, unless ``resume`` found a place to go on.
        """
        while self._damage is None:
            if self._inflater is None and not self._begin():
                return b""
            ended = not self._tail and not self._pull()
            piece = self._inflate(size)
            if piece:
                self._produced += len(piece)
                return piece
            if ended and self._inflater is not None and self._damage is None:
                text = f"the {self._name} stream ends too early"
                self._damage = StreamDamage(text, self._position, cut=True)
        raise self._damage

    def resume(self) -> int | None:
        """Goes on behind damage, at the next gzip member that inflates.

        The search begins behind the beginning of the damaged member, as its damage may have hidden
        where it ends. Where the source cannot be rewound, or has been searched twice already (so
        that all takes linear time), it begins at the damage.

        Returns:
            Where in the compressed source that member begins; None: there is none.
        """
        if self._damage is None or self._name != "GZIP":
            return None
        again = self.offset - self._member - 1
        if self._source.rewindable and self._repeated + again < self.offset:
            self._repeated += again
            self._seek(self._member)
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
        """The CRC-32C of what was taken from the source; None where some was taken twice."""
        return self._crc if self._crc_end == self._position else None

    @property
    def offset(self) -> int:
        """How far the compressed source has been used."""
        return self._position - len(self._tail)

    def close(self) -> None:
        self._inflater = None
        self._source.close()

    # ---- Compressed input ---------------------------------------------------------------------

    def _pull(self) -> bool:
        """Takes in more; False at the end of the source."""
        got = self._source.readinto(memoryview(self._chunk))
        if self._crc_end == self._position:
            self._crc = lib.tfw_crc32c(self._crc, ffi.from_buffer(self._chunk), got)
            self._crc_end += got
        self._position += got
        self._tail += self._chunk[:got]
        return got != 0

    def _seek(self, offset: int) -> None:
        self._source.rewind(offset)
        self._position = offset
        self._tail = b""

    def _begin(self) -> bool:
        """Begins the next stream; zeros between streams are padding. False at the end."""
        while True:
            if self._position > 0:
                self._tail = self._tail.lstrip(b"\0")
            if self._tail:
                break
            if not self._pull():
                return False
            if self._position == len(self._tail):  # the file may not begin with padding
                break
        self._begin_here()
        return True

    def _begin_here(self) -> None:
        self._member = self.offset
        self._produced = 0
        make = zlib if self._exact or self._has_reserved_flags() else _fast
        self._inflater = make.decompressobj(wbits=self._bits)

    def _has_reserved_flags(self) -> bool:
        """Whether the header is one that zlib refuses, as RFC 1952 demands, and isal takes."""
        while len(self._tail) < 4 and self._pull():
            pass
        return self._name == "GZIP" and len(self._tail) >= 4 and self._tail[3] & 0xE0 != 0

    # ---- Inflating ----------------------------------------------------------------------------

    def _inflate(self, size: int) -> bytes:
        """At most size bytes of the current stream; nothing says that it needs input or ended."""
        inflater, data = self._inflater, self._tail
        before = inflater.copy() if self._exact else None
        try:
            piece = inflater.decompress(data, size)
        except (zlib.error, _fast.error) as error:
            if before is not None:
                return self._salvage(before, size, error)
            return self._again_with_zlib(size)
        return self._advance(inflater, piece)

    def _advance(self, inflater: Any, piece: bytes) -> bytes:
        self._inflater = None if inflater.eof else inflater
        self._tail = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        return piece

    def _again_with_zlib(self, size: int) -> bytes:
        """Inflates the current stream anew, up to where it stood, and from there on by zlib."""
        self._exact = True
        produced = self._produced
        self._seek(self._member)
        self._begin_here()
        self._produced = produced
        while produced:
            if not self._tail:
                self._pull()
            try:
                piece = self._inflater.decompress(self._tail, produced)
            except zlib.error as error:  # earlier than isal met it
                self._fail(error)
                return b""
            self._advance(self._inflater, piece)
            produced -= len(piece)
        if not self._tail:
            self._pull()
        return self._inflate(size)

    def _salvage(self, inflater: Any, size: int, error: Exception) -> bytes:
        """What the call that failed would have given before its fault.

        First by input, and then by output, for symbols that share a byte with the fault.
        """
        pieces: list[bytes] = []
        left = memoryview(self._tail)

        def take(count: int, room: int) -> bool:
            nonlocal inflater, left
            attempt, data = inflater.copy(), left[:count]
            try:
                pieces.append(attempt.decompress(data, room))
            except zlib.error:
                return False
            inflater, left = attempt, left[len(data) - len(attempt.unconsumed_tail) :]
            return True

        _take_most(lambda count: take(count, size), len(left))
        self._tail, left = bytes(left), left[:1]
        _take_most(lambda room: take(1, room), _MOST_OF_A_BYTE)
        self._fail(error)
        return b"".join(pieces)

    def _fail(self, error: Exception) -> None:
        text = f"inflating failed ({error})"
        if self._produced == 0:
            text = f"this is no {self._name} stream ({error})"
        self._damage = StreamDamage(text, self.offset)

    # ---- Searching for the next gzip member ---------------------------------------------------

    def _search(self) -> bool:
        """Moves the tail to the next member, behind where this one began; False at the end."""
        while True:
            begin = self._tail.find(_MAGIC, max(0, self._member + 1 - self.offset))
            if begin >= 0:
                self._tail = self._tail[begin:]
                if self._inflates():
                    return True
                self._tail = self._tail[1:]
            else:
                self._tail = self._tail[1 - len(_MAGIC) :]
                if not self._pull():
                    self._tail = b""
                    return False

    def _inflates(self) -> bool:
        """Whether the tail begins a member, as far as its first bytes tell."""
        while len(self._tail) < _PROBE and self._pull():
            pass
        try:
            zlib.decompressobj(wbits=self._bits).decompress(self._tail[:_PROBE], _PROOF)
        except zlib.error:
            return False
        return True


def _take_most(take: Callable[[int], bool], most: int) -> None:
    """Takes as much as can be taken, in steps that double while they succeed and then halve: the
    work depends on how much that is."""
    step = 1
    while step <= most and take(step):
        step *= 2
    while step := step >> 1:
        take(step)
