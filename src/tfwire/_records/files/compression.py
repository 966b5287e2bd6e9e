"""Compression of whole files: names, TensorFlow's options, and which one a file has."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal, NamedTuple, overload

from tfwire._base.aliases import Compression, CompressionType
from tfwire._base.arguments import integer
from tfwire._base.errors import public, warn
from tfwire._base.native import lib
from tfwire._base.text import show_key, show_path

try:
    fast_zlib: Any = import_module("isal.isal_zlib")
except ImportError:  # no wheel for this platform
    fast_zlib = zlib

# The names, and the numbers of TensorFlow's TFRecordCompressionType.
_COMPRESSION_NAMES: dict[str | int | None, Compression] = {
    None: "",
    0: "",
    1: "ZLIB",
    2: "GZIP",
    "": "",
    "ZLIB": "ZLIB",
    "GZIP": "GZIP",
}

# Bytes that detect_compression needs; fewer if the file is shorter.
DETECT_SIZE = 512
_PROBED_BYTES = 1 << 16  # of those inflated to find out whether that fails


@public
@dataclass(eq=False, repr=False)
class TFRecordOptions:
    """How a file is compressed, with TensorFlow's names and defaults.

    Args:
        compression_type: "", "GZIP" or "ZLIB" in any case, or None for "".
        flush_mode: zlib's flush mode after every block that is written; None: Z_NO_FLUSH.
        input_buffer_size, output_buffer_size: Accepted as in TensorFlow, without effect.
        window_bits: 9 to 15; None: 15. For GZIP also TensorFlow's 25 to 31.
        compression_level: 0 (none) to 9 (best), -1 or None: fast. isal compresses at None, -1 and 1
            to 3 if it is installed: several times as fast as zlib, to about the size of zlib's
            levels 1 to 3. zlib compresses at 0 and 4 to 9; TensorFlow writes at 6.
        compression_method: zlib.DEFLATED, the only one that zlib has.
        mem_level: 1 to 9; None: 9.
        compression_strategy: zlib's strategy; None: Z_DEFAULT_STRATEGY.

    Everything but ``compression_type`` matters only when writing compressed files.

    Raises:
        ValueError: An unknown compression_type, or a parameter that zlib does not know.
        TypeError: A parameter is not an integer.
    """

    compression_type: CompressionType = None
    flush_mode: int | None = None
    input_buffer_size: int | None = None
    output_buffer_size: int | None = None
    window_bits: int | None = None
    compression_level: int | None = None
    compression_method: int | None = None
    mem_level: int | None = None
    compression_strategy: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_buffer_size", "output_buffer_size"):
            _parameter(self, name, 0)
        _compressor(self, compression_name(self.compression_type) or "GZIP", None)  # checks

    @classmethod
    def get_compression_type_string(cls, options: CompressionType) -> Compression:
        """The compression type of options, or of a name: "", "GZIP" or "ZLIB"."""
        return compression_name(options)

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"TFRecordOptions({', '.join(given)})"


def either_word(compression_type: Any, options: Any, default: Any = None) -> Any:
    """The compression of a call that takes both of TensorFlow's words for it: that of its readers
    and that of its writers.

    Args:
        compression_type, options: As they were given; ``options`` is None if it was not.
        default: The ``compression_type`` that means that it was not given.

    Raises:
        TypeError: Both were given.
    """
    if options is None:
        return compression_type
    if compression_type != default:
        given = f"compression_type={_shown(compression_type)} and options={_shown(options)}"
        raise TypeError(f"{given} are two words for one argument; give one")
    return options


@overload
def compression_name(options: Any) -> Compression: ...
@overload
def compression_name(
    options: Any, auto: bool, argument: str = ...
) -> Compression | Literal["auto"]: ...
def compression_name(
    options: Any, auto: bool = False, argument: str = "compression_type"
) -> Compression | Literal["auto"]:
    """The compression type named by an argument ``options`` or ``compression_type``, checked.

    Args:
        options: "", "GZIP" or "ZLIB" in any case, None for "", a number of TensorFlow's
            TFRecordCompressionType, or an object with such a ``compression_type``.
        auto: "auto" is allowed too.
        argument: Its name, for the error.

    Returns:
        "", "GZIP", "ZLIB" or "auto".

    Raises:
        ValueError: Anything else.
    """
    found = _unwrapped(options)
    if isinstance(found, (bytes, bytearray)):
        found = found.decode("ascii", "replace")
    key = str(found).upper() if isinstance(found, str) else found
    # By type, since True == 1.
    if type(key) in (str, int, type(None)) and key in _COMPRESSION_NAMES:
        return _COMPRESSION_NAMES[key]
    if auto and key == "AUTO":
        return "auto"
    expected = '"auto", "", "GZIP" or "ZLIB"' if auto else '"", "GZIP" or "ZLIB"'
    raise ValueError(f"Not a valid {argument}: {_shown(found)}; expected {expected}")


def _unwrapped(options: Any) -> Any:
    """The compression type in options, which TensorFlow nests."""
    found = getattr(options, "compression_type", options)
    return getattr(found, "compression_type", found)


def _shown(value: Any) -> str:
    """A compression for a message."""
    if isinstance(value, str):
        return f'"{show_key(value)}"'
    plain = value is None or type(value) in (int, bool)
    return repr(value) if plain else type(value).__name__


def window_bits(name: str) -> int:
    """The wbits of zlib functions that read "GZIP" or "ZLIB"."""
    return 15 + 16 if name == "GZIP" else 15


# ---- What the name of a file says -------------------------------------------------------------

_SHARD = re.compile(r"-(\d+|\{[^{}]*\})-of-(\d+|\{[^{}]*\})")
_NAMED_COMPRESSIONS: dict[str, Compression] = {".gz": "GZIP", ".gzip": "GZIP", ".zlib": "ZLIB"}


def split_name(path: Any) -> tuple[str, Compression]:
    """The name of a file in lower case, without its shard and its compression, and that
    compression: "train.tfrecord.gz-00000-of-00010" is ("train.tfrecord", "GZIP"). The fields of a
    pattern are a shard, too.
    """
    name = _SHARD.sub("", os.path.basename(os.fsdecode(path)).lower())
    if name.endswith(".tgz"):
        name = name.removesuffix(".tgz") + ".tar.gz"
    stem, ending = os.path.splitext(name)
    return (stem, _NAMED_COMPRESSIONS[ending]) if ending in _NAMED_COMPRESSIONS else (name, "")


def warn_of_name(path: Any, options: Any) -> None:
    """Warns that a new file has another compression than its name says. TensorFlow goes by no
    names, and nobody who asks for "" is warned; file objects may compress by themselves.
    """
    said = split_name(path)[1] if isinstance(path, (str, os.PathLike)) else ""
    found = compression_name(options)
    if not said or found == said:
        return
    where = f"{show_path(path)}: the name says {said}, but"
    if found:
        warn(f'{where} compression_type is "{found}"')
    elif _unwrapped(options) is None:
        warn(
            f'{where} the records are not compressed; give compression_type="{said}", or "" if '
            "that is meant"
        )


# ---- Reading: detecting the compression -------------------------------------------------------


class Detected(NamedTuple):
    """What the first bytes of a file look like.

    Attributes:
        compression: "", "GZIP" or "ZLIB".
        sure: Whether they can be nothing else. If not, either the stream is damaged at its start,
            or a plain file is, whose length looks like such a stream.
    """

    compression: Compression
    sure: bool = True


def detect_compression(head: bytes) -> Detected:
    """The compression type of a file, detected from its first DETECT_SIZE bytes.

    A length with a correct checksum means a plain file, whatever it looks like: the length of a
    first record of 376, 24184, 40056, 55928 or 559903 bytes looks like the start of zlib or gzip.
    Otherwise the magic numbers decide. zlib's is weak, so the stream must also inflate to the
    beginning of a record. Anything else is read as plain, and damage is reported there.
    """
    if begins_record(head):
        return Detected("")
    if head[:3] == b"\x1f\x8b\x08":
        return Detected("GZIP", _inflates(head, "GZIP") in ("record", "bytes"))
    if len(head) >= 2 and head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0:
        found = _inflates(head, "ZLIB")
        if found in ("record", "little"):
            return Detected("ZLIB", found == "record")
    return Detected("")


def _inflates(head: bytes, name: str) -> Literal["record", "bytes", "little", "failed"]:
    """What the beginning of a stream inflates to: the header of a record, other bytes, or too few
    to tell; or whether it fails somewhere."""
    inflater, first = zlib.decompressobj(wbits=window_bits(name)), b""
    with contextlib.suppress(zlib.error):
        first = inflater.decompress(head, lib.TFW_HEADER_SIZE)
        inflater.decompress(inflater.unconsumed_tail, _PROBED_BYTES)
        if not begins_record(first):
            return "bytes" if len(first) == lib.TFW_HEADER_SIZE else "little"
    return "record" if begins_record(first) else "failed"


def begins_record(data: bytes) -> bool:
    """Whether the first 12 bytes are a record's length and its checksum."""
    stored = int.from_bytes(data[8 : lib.TFW_HEADER_SIZE], "little")
    masked: int = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data[:8], min(8, len(data))))
    return len(data) >= lib.TFW_HEADER_SIZE and stored == masked


# ---- Writing ----------------------------------------------------------------------------------


_ISAL_FLUSH_MODES = zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH
# From zlib's levels to isal's. isal has no better ones, and does not just copy as zlib's level 0.
_FAST_LEVELS = {-1: 2, 1: 1, 2: 2, 3: 3}

# Z_FINISH is not among them: it would end the stream after the first block.
_FLUSH_MODES = *_ISAL_FLUSH_MODES, zlib.Z_PARTIAL_FLUSH, zlib.Z_BLOCK


class Compressor(NamedTuple):
    """The compressor of one stream.

    Attributes:
        deflater: A compressobj.
        flush_mode: zlib's mode of the flush after every block.
        new_member: Makes a compressobj for one more gzip member; None: a file is one stream.
    """

    deflater: Any
    flush_mode: int
    new_member: Callable[[], Any] | None


def compressor(options: Any, level: int | None) -> Compressor | None:
    """A Compressor for these options; None: they ask for no compression.

    Raises:
        ValueError, TypeError: Options that zlib does not know, or a level without a compression.
    """
    if level is not None and not -1 <= integer("compression_level", level) <= 9:
        raise ValueError(f"compression_level must be -1 to 9, found {level}")
    name = compression_name(options)
    if not name:
        if level is not None:
            raise ValueError('compression_level needs options="GZIP" or "ZLIB"')
        return None
    return _compressor(options, name, level)


def _compressor(options: Any, name: str, level: int | None) -> Compressor:
    """As compressor, for "GZIP" or "ZLIB"."""
    flush_mode = _parameter(options, "flush_mode", zlib.Z_NO_FLUSH)
    if flush_mode not in _FLUSH_MODES:
        raise ValueError(f"flush_mode must be one of zlib's {_FLUSH_MODES}, found {flush_mode!r}")
    make = partial(_deflater, copy.copy(options), name, level)  # the options may change later
    return Compressor(make(), flush_mode, make if name == "GZIP" else None)


def _deflater(options: Any, name: str, level: int | None) -> Any:
    """A compressobj with TensorFlow's parameters; ``level`` takes precedence.

    It is isal's at fast levels, unless a parameter needs zlib. The gzip header holds no time, so
    files are reproducible.

    Raises:
        ValueError: A parameter that zlib does not know; window_bits of a raw stream, which would
            have no checksum.
    """
    bits = _parameter(options, "window_bits", 15)
    if name == "GZIP":
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
        deflater = zlib.compressobj(*parameters)
        return _AsOfUnix(deflater) if name == "GZIP" and _names_another_system() else deflater
    except (ValueError, OverflowError):
        raise ValueError(
            "zlib does not know these parameters: level {}, method {}, window_bits {}, "
            "mem_level {}, strategy {}".format(*parameters)
        ) from None


_PLACE_OF_SYSTEM, _UNIX = 9, b"\x03"  # in the header of a gzip member


@cache
def _names_another_system() -> bool:
    """Whether zlib names another system than Unix in gzip headers, as on Windows and macOS."""
    empty = zlib.compressobj(wbits=31).flush()
    return empty[_PLACE_OF_SYSTEM : _PLACE_OF_SYSTEM + 1] != _UNIX


class _AsOfUnix:
    """A compressobj of a gzip member whose header names Unix: the same bytes on every system."""

    def __init__(self, deflater: Any) -> None:
        self._deflater = deflater
        self._before = _PLACE_OF_SYSTEM

    def compress(self, data: Any, /) -> bytes:
        return self._renamed(self._deflater.compress(data))

    def flush(self, mode: int = zlib.Z_FINISH, /) -> bytes:
        return self._renamed(self._deflater.flush(mode))

    def _renamed(self, piece: bytes) -> bytes:
        before, self._before = self._before, self._before - len(piece)
        if 0 <= before < len(piece):
            return b"".join([piece[:before], _UNIX, piece[before + 1 :]])
        return piece


def _suits_isal(options: Any) -> bool:
    """Whether no option needs zlib."""
    own = ("compression_method", "mem_level", "compression_strategy")
    return (
        all(getattr(options, name, None) is None for name in own)
        and getattr(options, "window_bits", None) in (None, 15, 31)
        and getattr(options, "flush_mode", None) in (None, *_ISAL_FLUSH_MODES)
    )


def _parameter(options: Any, name: str, default: int) -> int:
    """A number of the options, or the default."""
    value = getattr(options, name, None)
    return default if value is None else integer(name, value)
