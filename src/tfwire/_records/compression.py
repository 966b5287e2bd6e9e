"""Compression of whole files: names, TensorFlow's options, and which one a file has."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import Any, NamedTuple

from tfwire._arguments import integer
from tfwire._core import lib
from tfwire._public import public

try:
    fast_zlib: Any = import_module("isal.isal_zlib")
except ImportError:  # no wheel for this platform
    fast_zlib = zlib

__all__ = [
    "DETECT_SIZE",
    "Compressor",
    "TFRecordOptions",
    "compression_name",
    "compressor",
    "detect_compression",
    "fast_zlib",
    "window_bits",
]

# TensorFlow's enumeration TFRecordCompressionType beside the names.
_NAMES = {None: "", 0: "", 1: "ZLIB", 2: "GZIP", "": "", "ZLIB": "ZLIB", "GZIP": "GZIP"}

# Bytes that tell the compression of a file; fewer when the file is shorter.
DETECT_SIZE = 512


@public
class TFRecordOptions:
    """How a file is compressed, with TensorFlow's names and defaults.

    Args:
        compression_type: "", "GZIP" or "ZLIB" in any case, or None for "".
        flush_mode: zlib's flush mode after every block that is written; None: Z_NO_FLUSH.
        input_buffer_size, output_buffer_size: Accepted for TensorFlow's sake, without effect.
        window_bits: 9 to 15; None: 15. For GZIP also TensorFlow's 25 to 31.
        compression_level: 0 (none) to 9 (best), -1 or None: fast. None, -1 and 1 to 3 are left to
            isal, where it is installed; it writes several times as fast as zlib, and about as much
            as that does at level 1 to 3. 0 and 4 to 9 are zlib's: 6 is what TensorFlow writes.
        compression_method: zlib knows one, zlib.DEFLATED.
        mem_level: 1 to 9; None: 9.
        compression_strategy: zlib's strategy; None: Z_DEFAULT_STRATEGY.

    Everything but ``compression_type`` matters only when writing compressed files.

    Raises:
        ValueError: An unknown compression_type.
    """

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        compression_name(compression_type)  # checked here, kept as it was given
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The compression type of options, or of a name, as "", "GZIP" or "ZLIB"."""
        return compression_name(options)

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"TFRecordOptions({', '.join(given)})"


def compression_name(options: Any, auto: bool = False) -> str:
    """The compression type that a name or an options object (also TensorFlow's) stands for.

    Every function that takes ``options`` or a ``compression_type`` checks it here.

    Args:
        options: "", "GZIP" or "ZLIB" in any case, None for "", a number of TensorFlow's
            TFRecordCompressionType, or an object with such a ``compression_type``.
        auto: "auto" is allowed too.

    Returns:
        "", "GZIP", "ZLIB" or "auto".

    Raises:
        ValueError: Anything else.
    """
    found = getattr(options, "compression_type", options)
    found = getattr(found, "compression_type", found)  # TensorFlow nests options
    if isinstance(found, (bytes, bytearray)):
        found = found.decode("ascii", "replace")
    key = str(found).upper() if isinstance(found, str) else found
    # By type, since True == 1.
    if type(key) in (str, int, type(None)) and key in _NAMES:
        return _NAMES[key]
    if auto and key == "AUTO":
        return "auto"
    expected = '"auto", "", "GZIP" or "ZLIB"' if auto else '"", "GZIP" or "ZLIB"'
    shown = f'"{found}"' if type(found) in (str, int, bool) else type(found).__name__
    raise ValueError(f"Not a valid compression_type: {shown}; expected {expected}")


def window_bits(name: str) -> int:
    """The wbits of zlib functions that read "GZIP" or "ZLIB"."""
    return 15 + 16 if name == "GZIP" else 15


# ---- Reading: which compression a file has ----------------------------------------------------


def detect_compression(head: bytes) -> str:
    """The compression type that the first DETECT_SIZE bytes of a file speak for.

    A length whose checksum is right means a plain file, whatever it looks like: files can begin
    with a record of 376, 24184, 40056, 55928 or 559903 bytes, whose length is a valid beginning
    of zlib or gzip. Only otherwise the magic numbers decide; zlib's says little, so the stream
    must also begin to inflate to a record. What nothing fits is read as plain and reported there.
    """
    if _begins_record(head):
        return ""
    if head[:3] == b"\x1f\x8b\x08":
        return "GZIP"
    if len(head) >= 2 and head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0:
        try:
            inflated = zlib.decompressobj().decompress(head, lib.TFW_HEADER_SIZE)
        except zlib.error:
            return ""
        if len(inflated) < lib.TFW_HEADER_SIZE or _begins_record(inflated):
            return "ZLIB"
    return ""


def _begins_record(data: bytes) -> bool:
    """Whether the first 12 bytes are a record's length and its checksum."""
    stored = int.from_bytes(data[8 : lib.TFW_HEADER_SIZE], "little")
    masked: int = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data[:8], min(8, len(data))))
    return len(data) >= lib.TFW_HEADER_SIZE and stored == masked


# ---- Writing ----------------------------------------------------------------------------------


# zlib's levels that isal has something like, and its own ones. It has no better ones, and makes
# Huffman codes where level 0 of zlib just copies.
_ISAL_FLUSH_MODES = zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH
_FAST_LEVELS = {-1: 2, 1: 1, 2: 2, 3: 3}

# Z_FINISH is not among them: it would end the stream after the first block.
_FLUSH_MODES = *_ISAL_FLUSH_MODES, zlib.Z_PARTIAL_FLUSH, zlib.Z_BLOCK


class Compressor(NamedTuple):
    """What compresses one stream.

    Attributes:
        deflater: A compressobj.
        flush_mode: How the stream is flushed after every block.
    """

    deflater: Any
    flush_mode: int


def compressor(options: Any, level: int | None) -> Compressor | None:
    """What compresses as options say; None where they ask for no compression.

    Raises:
        ValueError, TypeError: Options that zlib does not know.
    """
    if level is not None:
        level = integer("compression_level", level)
    if not compression_name(options):
        return None
    flush_mode = _parameter(options, "flush_mode", zlib.Z_NO_FLUSH)
    if flush_mode not in _FLUSH_MODES:
        raise ValueError(f"flush_mode must be one of zlib's {_FLUSH_MODES}, found {flush_mode!r}")
    return Compressor(_deflater(options, level), flush_mode)


def _deflater(options: Any, level: int | None) -> Any:
    """A compressobj with TensorFlow's parameters; ``level`` takes precedence.

    It is isal's for fast levels, unless other parameters that are zlib's own ask for zlib. The gzip
    header holds no time, so files are reproducible.

    Raises:
        ValueError: A parameter that zlib does not know; window_bits of a raw stream, which would
            have no checksum.
    """
    bits = _parameter(options, "window_bits", 15)
    if compression_name(options) == "GZIP":
        bits += 16 if bits <= 15 else 0
        valid = 25 <= bits <= 31
    else:
        valid = 9 <= bits <= 15
    if not valid:
        raise ValueError(f"window_bits must be 9 to 15, found {options.window_bits}")
    if level is None:
        level = _parameter(options, "compression_level", zlib.Z_DEFAULT_COMPRESSION)
    if fast_zlib is not zlib and level in _FAST_LEVELS and _suits_isal(options):
        return fast_zlib.compressobj(_FAST_LEVELS[level], zlib.DEFLATED, bits)
    parameters = (
        level,
        _parameter(options, "compression_method", zlib.DEFLATED),
        bits,
        _parameter(options, "mem_level", 9),
        _parameter(options, "compression_strategy", zlib.Z_DEFAULT_STRATEGY),
    )
    try:
        return zlib.compressobj(*parameters)
    except (ValueError, OverflowError):
        raise ValueError(
            "zlib does not know these parameters: level {}, method {}, window_bits {}, "
            "mem_level {}, strategy {}".format(*parameters)
        ) from None


def _suits_isal(options: Any) -> bool:
    """Whether options ask for nothing that only zlib does in its way."""
    own = ("compression_method", "mem_level", "compression_strategy")
    return (
        all(getattr(options, name, None) is None for name in own)
        and getattr(options, "window_bits", None) in (None, 15, 31)
        and getattr(options, "flush_mode", None) in (None, *_ISAL_FLUSH_MODES)
    )


def _parameter(options: Any, name: str, default: int) -> int:
    """A number that options hold, or else the default."""
    value = getattr(options, name, None)
    return default if value is None else integer(name, value)
