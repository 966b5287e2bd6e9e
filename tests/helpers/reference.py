"""TFRecord framing in plain Python, slow and direct: what the tests compare with.

Written from docs/internals/format.md and the policies of ``read_records``, not from the C code.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

HEADER, FOOTER = 12, 4
FRAME = HEADER + FOOTER


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


@lru_cache(10_000)
def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


# ---- Making files, whole and damaged ----------------------------------------------------------


def header(length: int) -> bytes:
    """A header whose checksum is right, whatever the length."""
    return struct.pack("<Q", length) + masked(struct.pack("<Q", length))


@lru_cache(1000)
def frame(record: bytes) -> bytes:
    return header(len(record)) + record + masked(record)


def file_of(records: list[bytes]) -> bytes:
    return b"".join(map(frame, records))


def flip(data: bytes, bit: int) -> bytes:
    """The data with one bit turned over, bit 0 the lowest of the first byte."""
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


# ---- Reading ----------------------------------------------------------------------------------


class Damage(NamedTuple):
    record_index: int
    offset: int
    reason: str


class Region(NamedTuple):
    begin: int
    end: int
    record_index: int
    reason: str


class Outcome(NamedTuple):
    """What reading gives: records, the regions left out, and the damage that is reported."""

    records: list[bytes]
    skipped: list[Region]
    damage: Damage | None = None


def header_is_right(data: bytes, at: int) -> bool:
    return len(data) - at >= HEADER and masked(data[at : at + 8]) == data[at + 8 : at + HEADER]


def fault(data: bytes, at: int, most: int = 2**30) -> str | None:
    """What is wrong with the record at an offset, or None."""
    if len(data) - at < HEADER:
        return "truncated"
    if not header_is_right(data, at):
        return "length crc"
    length = struct.unpack_from("<Q", data, at)[0]
    if length > most:
        return "too large"
    if length + FRAME > len(data) - at:
        return "truncated"
    begin = at + HEADER
    if masked(data[begin : begin + length]) != data[begin + length : begin + length + FOOTER]:
        return "data crc"
    return None


def read(data: bytes, on_corrupt: str = "raise", most: int = 2**30) -> Outcome:
    """Reads a file by one of the policies. Records of more than ``most`` bytes are damage."""
    records: list[bytes] = []
    skipped: list[Region] = []
    at = index = 0
    while at < len(data):
        reason = fault(data, at, most)
        if reason is None:
            length = struct.unpack_from("<Q", data, at)[0]
            records.append(data[at + HEADER : at + HEADER + length])
            at += length + FRAME
        elif on_corrupt == "skip":
            end = _after_damage(data, at, reason, most)
            _note(skipped, Region(at, end, index, reason))
            at = end
        elif on_corrupt == "stop" or (on_corrupt == "tail" and reason == "truncated"):
            return Outcome(records, [Region(at, len(data), index, reason)])
        else:
            return Outcome(records, [], Damage(index, at, reason))
        index += 1
    return Outcome(records, skipped)


def _after_damage(data: bytes, at: int, reason: str, most: int) -> int:
    """Where reading goes on: after exactly this record, or at the next one that verifies."""
    if reason == "data crc":
        end = at + struct.unpack_from("<Q", data, at)[0] + FRAME
        if len(data) - end < HEADER or header_is_right(data, end):
            return int(end)
    return next((p for p in range(at + 1, len(data)) if fault(data, p, most) is None), len(data))


def _note(regions: list[Region], region: Region) -> None:
    if regions and regions[-1].end == region.begin and region.reason != "truncated":
        regions[-1] = regions[-1]._replace(end=region.end)
    else:
        regions.append(region)
