"""What a file without records is, by its first and last bytes, and what to do with it."""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from typing import NamedTuple

from tfwire._base import system
from tfwire._base.native import lib
from tfwire._base.strings import read_varint
from tfwire._records.files.compression import DETECT_SIZE, begins_record, window_bits

_TAIL_SIZE = 8


class Format(NamedTuple):
    """A format, as messages name it, and what to do with such a file, if that is known."""

    name: str
    advice: str


def _unpacked(name: str, command: str, opener: str) -> Format:
    return Format(name, f"'{command}' unpacks it; read_records({opener}(path)) reads what it holds")


def _converted(name: str, source: str) -> Format:
    return Format(name, f"'tfwire convert --from {source}' makes records of it")


_GZIP = Format("gzip", "it was compressed twice: 'gzip -d' once, and tfwire reads the rest")
_TAR, _ZIP = "a tar archive", "a zip archive"
_RIEGELI = bytes.fromhex("83af70d10d884a3f000000000000000040")
_AGAIN = "a server gave it in place of the file: fetch the file again, signed in if need be"
_ARROW = _converted("Arrow", "arrow")
_TABLE = Format("a table of LevelDB", "a library of LevelDB, such as plyvel, reads its folder")

# By the bytes at the beginning.
_FORMATS = {
    b"version https://git-lfs": Format("a pointer of Git LFS", "'git lfs pull' fetches the file"),
    b"PAR1": _converted("Parquet", "parquet"),
    b"ARROW1": _ARROW,
    b"\xff\xff\xff\xff": _ARROW,
    b"\xfd7zXZ\0": _unpacked("xz", "xz -d", "lzma.open"),
    b"\x28\xb5\x2f\xfd": _unpacked("zstd", "zstd -d", "zstandard.open"),
    b"\x04\x22\x4d\x18": _unpacked("lz4", "lz4 -d", "lz4.frame.open"),
    b"BZh": _unpacked("bzip2 (bz2)", "bzip2 -d", "bz2.open"),
    b"7z\xbc\xaf\x27\x1c": Format("7z", "'7z x' unpacks it"),
    b"\xff\x06\0\0sNaPpY": Format("snappy", "python-snappy unpacks it"),
    b"\x89HDF\r\n\x1a\n": Format("HDF5", "h5py.File reads it; write_columns makes records of it"),
    b"\x93NUMPY": Format("an array of NumPy", "numpy.load reads it"),
    b"Obj\x01": Format("Avro", "fastavro reads it"),
    b"ORC": Format("ORC", "pyarrow.orc reads it"),
    b"SQLite format 3\0": Format("a database of SQLite", "the module sqlite3 reads it"),
    _RIEGELI: Format("ArrayRecord or Riegeli", "the package array_record reads it"),
    b"\x0a\x23\xd7\xce": Format("RecordIO of MXNet", "mxnet.recordio reads it"),
}
_JSON_TEXT = re.compile(r'\s*(\{\s*["}]|\[\s*[][{"\d.tfn-])')
_CONTROL = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def ends_of_file(fd: int) -> tuple[bytes, bytes]:
    """The first and the last bytes of a regular file."""
    size = os.fstat(fd).st_size
    begin = max(0, size - _TAIL_SIZE)
    return system.pread(fd, DETECT_SIZE, 0), system.pread(fd, _TAIL_SIZE, begin)


def inflated(head: bytes, compression: str) -> bytes:
    """What the first bytes of a compressed file inflate to."""
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(window_bits(compression)).decompress(head, DETECT_SIZE)
    return b""


def other_format(head: bytes, tail: bytes = b"", inside: bool = False) -> Format | None:
    """The format of a file in which no record begins at the beginning; None if unknown.

    Args:
        head: Its first bytes, DETECT_SIZE if there are as many.
        tail: Its last ones, or none.
        inside: It was compressed itself.
    """
    if begins_record(head):
        return None
    for begin, found in _FORMATS.items():
        if head.startswith(begin):
            return found
    if inside and head.startswith(b"\x1f\x8b\x08"):
        return _GZIP
    return _archive(head) or _message(head) or _store(head, tail) or _text(head)


def _archive(head: bytes) -> Format | None:
    if head[257:262] == b"ustar":
        return _members(_TAR, head[:100], "tarfile.open(path).extractfile(name)")
    if head[:4] == b"PK\x03\x04":
        name = head[30:][: int.from_bytes(head[26:28], "little")]
        if name.endswith(b".npy"):
            return Format("arrays of NumPy (zip)", "numpy.load reads it")
        if name.endswith(b"data.pkl"):
            return Format("a checkpoint of PyTorch (zip)", "torch.load reads it")
        return _members(_ZIP, name, "zipfile.ZipFile(path).open(name)")
    # From protocol 2 on; since 4 with frames.
    if head[:1] == b"\x80" and (head[1:2] in (b"\2", b"\3") or head[2:3] == b"\x95"):
        return Format("a pickle", "pickle.load reads it, and runs what code it holds")
    return None


def _members(what: str, first: bytes, opener: str) -> Format:
    name = first.split(b"\0")[0].decode("utf-8", "replace")
    return Format(f"{what} of '{name}'", f"for record files in it: read_records({opener})")


def _store(head: bytes, tail: bytes) -> Format | None:
    """A file of a key-value store, or the index of a checkpoint of TensorFlow."""
    if tail == b"\x57\xfb\x80\x8b\x24\x75\x47\xdb":
        return _TABLE
    end = 7 + int.from_bytes(head[4:6], "little")
    if 7 < end <= len(head) and head[6] in (1, 2, 3, 4):  # a block of its log
        crc = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, head[6:end], end - 6))
        if crc == int.from_bytes(head[:4], "little"):
            return Format("a log of LevelDB", _TABLE.advice)
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return Format("a database of LMDB", "the package lmdb reads its folder")
    return None


def _text(head: bytes) -> Format | None:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if len(head) - error.start > 3 or len(head) < DETECT_SIZE:  # else a character is cut
            return None
        text = head[: error.start].decode()
    if not text or _CONTROL.search(text):
        return None
    begin = text.lstrip("\ufeff \t\r\n").lower()
    if begin.startswith(("<!doctype html", "<html", "<head", "<body")) or "<html" in begin:
        return Format("HTML", _AGAIN)
    if begin.startswith("<?xml"):
        return Format("XML", _AGAIN)
    if _JSON_TEXT.match(text):
        return _converted("JSON, which is text", "jsonl")
    return Format("text", "")


# ---- Messages without frames --------------------------------------------------------------------


def _message(head: bytes) -> Format | None:
    """A message that was written as it is, or several after their lengths."""
    if _is_example(head):
        kind, decode = "an Example or SequenceExample", "decode_example"
        if head[:2] == b"\n\0" or head[0] == 0x12 or _has_lists(head):
            kind, decode = "a SequenceExample", "decode_sequence_example"
        return Format(
            f"a bare message, {kind} without a record around it",
            f"{decode}(bytes) decodes the file's bytes, and TFRecordWriter writes a record",
        )
    with contextlib.suppress(ValueError):
        length, at = read_varint(head, 0)
        if length > 1 and _is_example(head[at : at + length]):
            return Format(
                "messages after their lengths, as protobuf's writeDelimitedTo writes them",
                "read each length, a varint, and the message, and write it with TFRecordWriter",
            )
    return None


def _has_lists(head: bytes) -> bool:
    """Whether feature lists follow the features that bytes begin with, as far as these go."""
    size, at = read_varint(head, 1)
    return head[at + size : at + size + 1] == b"\x12"


def _is_example(head: bytes) -> bool:
    """Whether bytes begin like features or feature lists: an entry of a map in a field 1 or 2."""
    try:
        if head[:2] == b"\n\0":  # an empty context
            head = head[2:]
        size, at = read_varint(head, 1)
        end = at + size
        entry, key_at = read_varint(head, at + 1)
        entry_end = key_at + entry
        length, begin = read_varint(head, key_at + 1)
        value = begin + length
        return (
            head[0] in b"\n\x12"
            and head[at] == head[key_at] == 10
            and value < entry_end <= end
            and head[value] == 0x12
        )
    except (IndexError, ValueError):
        return False
