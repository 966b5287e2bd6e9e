"""Records of gigabytes whose payloads are holes of sparse files, which take no room on a disk."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from helpers.reference import header
from tfwire.checksum import combine_crc32c, crc32c, mask_crc


def crc_of_zeros(size: int) -> int:
    """The CRC-32C of so many zeros, by doubling."""
    crc, done = 0, 0
    for bit in bin(size)[2:]:
        crc, done = combine_crc32c(crc, crc, done), 2 * done
        if bit == "1":
            crc, done = combine_crc32c(crc, crc32c(b"\0"), 1), done + 1
    return crc


def append_sparse(path: Path, size: int, head: bytes = b"") -> None:
    """Appends a record of a head and zeros."""
    zeros = size - len(head)
    crc = combine_crc32c(crc32c(head), crc_of_zeros(zeros), zeros)
    with path.open("ab") as file:
        file.write(header(size) + head)
        file.truncate(file.tell() + zeros)
        file.seek(0, os.SEEK_END)
        file.write(struct.pack("<I", mask_crc(crc)))


def is_zeros(data: bytes, size: int) -> bool:
    return len(data) == size and not data[0] and crc32c(data) == crc_of_zeros(size)
