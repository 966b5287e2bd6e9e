"""What the machine allows: memory and checksums."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pytest

import peers
import tfwire as tfw

MIB = 1 << 20
SIZES = {"64 B": (64, 0.4), "4 KiB": (4096, 1), "64 KiB": (65536, 3), "1 MiB": (MIB, 3)}


def bench_memcpy(versus):
    """The ceiling of everything that moves bytes: numpy copying 64 MiB, 1 MiB at a time."""
    source, target = np.ones((64, MIB), np.uint8), np.empty((64, MIB), np.uint8)

    def ours():
        for a, b in zip(source, target, strict=True):
            np.copyto(b, a)
        return len(source)

    versus("memcpy", "64 x 1 MiB", ours, {}, MIB)


@pytest.mark.parametrize("size", SIZES)
def bench_crc32c(versus, size):
    """One call from Python, on the same bytes again and again."""
    length, target = SIZES[size]
    data = bytes(range(256)) * (length // 256) or bytes(length)
    calls = min(20_000, (64 * MIB) // length)

    def run(function):
        def calculate():
            for _ in repeat(None, calls):
                function(data)
            return calls

        return calculate

    rivals = {name: (run(function), target) for name, function in peers.CRC32C.items()}
    versus("crc32c", size, run(tfw.crc32c), rivals, length)
