"""Bytes of a regular file at an offset, of any number."""

from __future__ import annotations

import io
import os

__all__ = ["read_at"]

# Linux reads at most 2 GiB less a page at a time, macOS refuses more than 2 GiB.
_AT_ONCE = 1 << 30


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Bytes of a file, fewer only where the file ends.

    Args:
        fd: A regular file.
        size: How many.
        offset: Where they begin.

    Raises:
        OSError: The file cannot be read.
    """
    if size <= _AT_ONCE:
        data = os.pread(fd, size, offset)
        if len(data) == size or not data:
            return data
    return _read_patiently(fd, size, offset)


def _read_patiently(fd: int, size: int, offset: int) -> bytes:
    """As read_at, in pieces. BytesIO gives away the memory that the pieces were read into, where
    joining them would take as much again."""
    room = io.BytesIO()
    room.seek(size - 1)
    room.write(b"\0")
    done = 0
    with room.getbuffer() as view:
        while got := os.preadv(fd, [view[done : done + _AT_ONCE]], offset + done):
            done += got
            if done == size:
                break
    room.truncate(done)
    return room.getvalue()
