"""CRC-32C (Castagnoli) and the masked form that TFRecord files store."""

from __future__ import annotations

import binascii
import operator
from typing import Any

import numpy as np

from tfwire._arguments import integer
from tfwire._core import ffi, lib, text

__all__ = [
    "base64_crc32c",
    "combine_crc32c",
    "crc32c",
    "crc32c_kernel",
    "mask_crc",
    "masked_crc32c",
    "unmask_crc",
]

_crc32c = lib.tfw_crc32c  # looked up once: short data are all overhead


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of bytes.

    Args:
        data: A bytes-like object; a numpy array or anything with a ``numpy()`` method gives its
            memory. It must be contiguous.
        value: The checksum of what came before, to continue from.

    Returns:
        The checksum, 0 <= crc < 2**32. The GIL is released meanwhile.

    Raises:
        TypeError: ``data`` is no bytes-like object.
        ValueError: ``data`` is not contiguous.
        OverflowError: ``value`` is no unsigned 32-bit number.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    >>> crc32c(b"6789", crc32c(b"12345")) == crc32c(b"123456789")
    True
    """
    if type(data) is not bytes:
        data = _memory(data)
    try:
        return _crc32c(value, data, len(data))  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        _check_numbers(value=value)
        raise


def masked_crc32c(data: Any) -> int:
    """The masked CRC-32C of bytes, as TFRecord files store it.

    Arguments and errors are those of `crc32c`.

    Returns:
        ``mask_crc(crc32c(data))``.

    >>> hex(masked_crc32c(b"123456789"))
    '0xc78ab0e5'
    """
    return lib.tfw_crc32c_mask(crc32c(data))  # type: ignore[no-any-return]


def mask_crc(crc: int) -> int:
    """A checksum in masked form: rotated right by 15 bits, plus 0xa282ead8.

    Data that holds its own CRC would make a poor CRC of the whole; the mask prevents that.

    Returns:
        The masked checksum, 0 <= crc < 2**32.

    Raises:
        OverflowError: ``crc`` is no unsigned 32-bit number.

    >>> hex(mask_crc(0))
    '0xa282ead8'
    """
    try:
        return lib.tfw_crc32c_mask(crc)  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        _check_numbers(crc=crc)
        raise


def unmask_crc(crc: int) -> int:
    """The checksum that `mask_crc` masked.

    Returns:
        The checksum, 0 <= crc < 2**32.

    Raises:
        OverflowError: ``crc`` is no unsigned 32-bit number.

    >>> unmask_crc(mask_crc(42))
    42
    """
    try:
        return lib.tfw_crc32c_unmask(crc)  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        _check_numbers(crc=crc)
        raise


def combine_crc32c(a: int, b: int, len_b: int) -> int:
    """The CRC-32C of A followed by B, from their checksums, without reading them again.

    Args:
        a: The checksum of A.
        b: The checksum of B.
        len_b: The length of B in bytes, below 2**64. The time does not depend on it.

    Returns:
        The checksum of both, 0 <= crc < 2**32.

    Raises:
        OverflowError: An argument is negative or too large.

    >>> combine_crc32c(crc32c(b"12345"), crc32c(b"6789"), 4) == crc32c(b"123456789")
    True
    """
    try:
        return lib.tfw_crc32c_combine(a, b, len_b)  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        _check_numbers(a=a, b=b)
        _check_numbers(64, len_b=len_b)
        raise


def crc32c_kernel() -> str:
    """The name of the code that computes checksums here: the best that this CPU supports.

    "avx512", "sse42", "armv8" or "portable". The environment variable TFWIRE_CRC32C, read at
    import, forces one.
    """
    return text(lib.tfw_crc32c_kernel())


def _check_numbers(bits: int = 32, **numbers: Any) -> None:
    """Names the number that C has refused. Only then: most data are short."""
    for name, value in numbers.items():
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} must be an integer, found {type(value).__name__}") from None
        if not 0 <= number < 1 << bits:
            raise OverflowError(f"{name} must be from 0 to 2**{bits} - 1, found {number}")


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
    """What an array consists of: its memory, or the one object that it holds."""
    if array.dtype.hasobject:
        if array.ndim == 0 and isinstance(array[()], (bytes, bytearray, memoryview)):
            return array[()]
        raise TypeError(f"an array of {array.dtype} holds no bytes; take the checksum of an item")
    if not array.flags.c_contiguous:
        raise ValueError("data must be a C-contiguous array; numpy.ascontiguousarray makes one")
    return array.reshape(-1).view(np.uint8)


def base64_crc32c(crc: int) -> str:
    """A CRC-32C as Google Cloud Storage and S3 show it: base64 of four bytes, big-endian.

    Args:
        crc: The CRC-32C, not masked.

    Raises:
        TypeError: Not an integer.
        ValueError: Not within 32 bits.

    Example:
        >>> base64_crc32c(0xe3069283)
        '4waSgw=='
    """
    crc = integer("crc", crc, least=0)
    if crc >= 1 << 32:
        raise ValueError(f"crc must be below 2**32, found {crc}")
    return binascii.b2a_base64(crc.to_bytes(4, "big"), newline=False).decode()
