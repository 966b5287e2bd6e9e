"""CRC-32C (Castagnoli) and the masked form that TFRecord files store."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire._base.aliases import BytesLike
from tfwire._base.arguments import as_index, integer
from tfwire._base.native import ffi, lib, text

__all__ = [
    "base64_crc32c",
    "combine_crc32c",
    "crc32c",
    "crc32c_kernel",
    "mask_crc",
    "masked_crc32c",
    "unmask_crc",
]

# Looked up once: for short data it is all overhead.
_crc32c: Callable[[int, Any, int], int] = lib.tfw_crc32c
_mask: Callable[[int], int] = lib.tfw_crc32c_mask
_unmask: Callable[[int], int] = lib.tfw_crc32c_unmask
_combine: Callable[[int, int, int], int] = lib.tfw_crc32c_combine


def crc32c(data: BytesLike, value: int = 0) -> int:
    """The CRC-32C of bytes. The GIL is released meanwhile.

    Args:
        data: A bytes-like object, a numpy array or an object with a ``numpy()`` method, of
            contiguous memory.
        value: The checksum of the bytes before, to continue from.

    Returns:
        The checksum, 0 <= crc < 2**32.

    Raises:
        TypeError: ``data`` is not bytes-like.
        ValueError: ``data`` is not contiguous.
        OverflowError: ``value`` is not an unsigned 32-bit number.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
        >>> crc32c(b"6789", crc32c(b"12345")) == crc32c(b"123456789")
        True
    """
    memory: Any = data if type(data) is bytes else _memory(data)
    if value and type(value) is not int:
        value = _index("value", value)
    try:
        return _crc32c(value, memory, len(memory))
    except (TypeError, OverflowError):
        _check_numbers(value=value)
        raise


def masked_crc32c(data: BytesLike) -> int:
    """The masked CRC-32C of bytes, as TFRecord files store it.

    Args:
        data: As for crc32c.

    Returns:
        ``mask_crc(crc32c(data))``.

    Raises:
        TypeError, ValueError: As crc32c.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'
    """
    return _mask(crc32c(data))


def mask_crc(crc: int) -> int:
    """A checksum in masked form: rotated right by 15 bits, plus 0xa282ead8.

    Without the mask, the CRC of data that holds its own CRC would be poor.

    Args:
        crc: A CRC-32C.

    Returns:
        The masked checksum, 0 <= crc < 2**32.

    Raises:
        OverflowError: ``crc`` is not an unsigned 32-bit number.

    Example:
        >>> hex(mask_crc(0))
        '0xa282ead8'
    """
    if type(crc) is not int:
        crc = _index("crc", crc)
    try:
        return _mask(crc)
    except (TypeError, OverflowError):
        _check_numbers(crc=crc)
        raise


def unmask_crc(crc: int) -> int:
    """The inverse of mask_crc.

    Args:
        crc: A masked CRC-32C.

    Returns:
        The checksum, 0 <= crc < 2**32.

    Raises:
        OverflowError: ``crc`` is not an unsigned 32-bit number.

    Example:
        >>> unmask_crc(mask_crc(42))
        42
    """
    if type(crc) is not int:
        crc = _index("crc", crc)
    try:
        return _unmask(crc)
    except (TypeError, OverflowError):
        _check_numbers(crc=crc)
        raise


def combine_crc32c(a: int, b: int, len_b: int) -> int:
    """The CRC-32C of A followed by B, from their checksums alone.

    Args:
        a: The checksum of A.
        b: The checksum of B.
        len_b: The length of B in bytes, below 2**64; any length takes the same time.

    Returns:
        The checksum of both, 0 <= crc < 2**32.

    Raises:
        OverflowError: An argument is negative or too large.

    Example:
        >>> combine_crc32c(crc32c(b"12345"), crc32c(b"6789"), 4) == crc32c(b"123456789")
        True
    """
    a, b, len_b = _index("a", a), _index("b", b), _index("len_b", len_b)
    try:
        return _combine(a, b, len_b)
    except (TypeError, OverflowError):
        _check_numbers(a=a, b=b)
        _check_numbers(64, len_b=len_b)
        raise


def crc32c_kernel() -> str:
    """The implementation in use, the fastest that this CPU supports.

    Returns:
        "avx512", "avx2", "sse42", "armv8" or "portable". The environment variable TFWIRE_CRC32C,
        read at import, forces one.
    """
    return text(lib.tfw_crc32c_kernel())


def base64_crc32c(crc: int) -> str:
    """A CRC-32C as Google Cloud Storage and S3 show it: base64 of four bytes, big-endian.

    Args:
        crc: The CRC-32C, not masked.

    Raises:
        TypeError: ``crc`` is not an integer.
        ValueError: ``crc`` is not an unsigned 32-bit number.

    Example:
        >>> base64_crc32c(0xe3069283)
        '4waSgw=='
    """
    crc = integer("crc", crc, least=0)
    if crc >= 1 << 32:
        raise ValueError(f"crc must be below 2**32, found {crc}")
    return binascii.b2a_base64(crc.to_bytes(4, "big"), newline=False).decode()


def _check_numbers(bits: int = 32, **numbers: Any) -> None:
    """Names the number that C has refused. Only then: most data are short."""
    for name, value in numbers.items():
        number = _index(name, value)
        if not 0 <= number < 1 << bits:
            raise OverflowError(f"{name} must be from 0 to 2**{bits} - 1, found {number}")


def _index(name: str, value: Any) -> int:
    """An integer of any type as Python's. C would cut scalars of numpy that are not integers."""
    try:
        return as_index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, found {type(value).__name__}") from None


def _memory(data: Any) -> Any:
    """The memory of an object as a cffi buffer of bytes."""
    if isinstance(data, str):
        raise TypeError("data must be bytes-like, found str; encode it first")
    if hasattr(data, "numpy"):
        data = data.numpy()
    if isinstance(data, np.ndarray):
        data = _array_bytes(data)
    try:
        return ffi.from_buffer("uint8_t[]", data)
    except TypeError:
        found = type(data).__name__
        raise TypeError(f"data must be bytes-like, found {found}") from None
    except BufferError:
        raise ValueError("data must be contiguous, found a view with gaps") from None


def _array_bytes(array: np.ndarray[Any, Any]) -> Any:
    """The memory of an array, or the one object of an array of rank 0."""
    if array.dtype.hasobject:
        if array.ndim == 0 and isinstance(array[()], (bytes, bytearray, memoryview)):
            return array[()]
        raise TypeError(f"an array of {array.dtype} holds no bytes; take the checksum of an item")
    if not array.flags.c_contiguous:
        raise ValueError("data must be a C-contiguous array; numpy.ascontiguousarray makes one")
    return array.reshape(-1).view(np.uint8)
