"""The files of a ShardedWriter."""

from __future__ import annotations


def filled_in_turn(records, size):
    """What files of a size should hold."""
    files, filled = [[]], 0
    for record in records:
        if filled and filled + len(record) + 16 > size:
            files.append([])
            filled = 0
        files[-1].append(record)
        filled += len(record) + 16
    return files
