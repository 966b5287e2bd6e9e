"""Marks and names of tests in several files."""

import pytest

FORKS_BESIDE_THREADS = pytest.mark.unsanitized(
    "forks beside threads: one of them may hold a lock of ASan's allocator, for ever in the child"
)


def label(value):
    """How `value` is written, without its address: processes that share the tests must agree."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text
