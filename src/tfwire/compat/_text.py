"""``tf.compat.as_bytes`` and its relatives: text as bytes, and back."""

from __future__ import annotations

import codecs
from typing import Any

__all__ = ["TEXT"]


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text, encoded; bytes as they are.

    Raises:
        TypeError: Neither is given.
        LookupError: There is no such encoding.

    Example:
        >>> as_bytes("cat")
        b'cat'
    """
    codecs.lookup(encoding)
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    return _require_text(bytes_or_text).encode(encoding)


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes, decoded; text as it is.

    Raises:
        TypeError: Neither is given.
        LookupError: There is no such encoding.
        UnicodeDecodeError: The bytes are not of this encoding.
    """
    codecs.lookup(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    return _require_text(bytes_or_text)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Bytes, decoded; ``str`` of all else."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected bytes or str, found {type(value).__name__}")
    return value


# By the names after ``tf.compat.``
TEXT = {"as_bytes": as_bytes, "as_str": as_text, "as_str_any": as_str_any, "as_text": as_text}
