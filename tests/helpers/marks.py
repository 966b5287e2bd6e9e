"""Marks that tests of several files bear."""

import pytest

FORKS_BESIDE_THREADS = pytest.mark.unsanitized(
    "forks beside threads: one of them may hold a lock of ASan's allocator, for ever in the child"
)
