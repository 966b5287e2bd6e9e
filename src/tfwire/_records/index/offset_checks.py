"""Does an index fit its file as that is now, and do records have the offsets that it says?

A record at an offset of the index may verify and still have another number, if the file was
replaced by one of the same size, in which one earlier record is longer and another one shorter, or
if somebody edited the index. So the headers before a record are compared with the index, once,
unless these offsets were certainly found in this very file.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import Any, NoReturn, Protocol

import numpy as np

from tfwire._base import system
from tfwire._base.aliases import Array, Compression
from tfwire._base.errors import DataLossError
from tfwire._base.native import DAMAGE_REASONS, check, damaged_record_error, lib
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.paths import Path
from tfwire._records.frames import FRAME
from tfwire._records.index.find_offsets import WALK_RECORDS, Walk
from tfwire._records.remote.random_ranges import RemoteFile

# Two changes within this many nanoseconds may leave the same time: the clock of files ticks every
# 1 to 10 ms.
_TICK = 50_000_000
# The extended attribute of an index that names the file it was saved for, and its own checksum.
_ATTRIBUTE = "user.tfwire.indexed"


class Layout:
    """Compares the headers of plain records with the offsets of an index, as far as needed.

    Args:
        offsets: Of all records, and the end of the last. Anybody may change them.
        known: True if the offsets were found in this very file: nothing needs to be compared.

    Attributes:
        checked: How many records are known to lie where the index says.
    """

    def __init__(self, offsets: Array, known: bool) -> None:
        self._offsets = offsets
        self._end = int(offsets[-1])
        self.checked = len(offsets) - 1 if known else 0
        self._wrong: int | None = None  # the first record of another length

    def first_wrong(self, number: int) -> int | None:
        """The first record, up to ``number``, that is not where the index says; None: all are."""
        while self._wrong is None and self.checked <= number:
            first = self.checked
            if self._may_begin(first):
                self._step(first, number)
            if self._wrong is None and self.checked == first:
                self._wrong = first
        wrong = self._wrong
        return wrong if wrong is not None and wrong <= number else None

    def check(self, number: int, path: Path) -> None:
        """Refuses a record that verifies but has another number: one before it is not where the
        index says."""
        wrong = self.first_wrong(number)
        if wrong is not None:
            text = f"record {wrong} is of another length than the index says"
            raise stale_at(path, number, text, int(self._offsets[number]))

    def take_read(self, first: int, end: int) -> None:
        """Notes that these records were read one after the other, with the lengths that the index
        says: nothing else needs to be compared."""
        if first <= self.checked < end and self._may_begin(first):
            self.checked = end

    def _may_begin(self, number: int) -> bool:
        """Whether a record may have this offset, after the records that were compared."""
        begin, least = int(self._offsets[number]), 0
        if number:
            least = int(self._offsets[number - 1]) + int(FRAME)
        return least <= begin < self._end and (number > 0 or begin == 0)

    @abstractmethod
    def _step(self, first: int, number: int) -> None:
        """Compares some records from ``first`` on, at least up to ``number`` in the end: sets
        ``checked`` or ``_wrong``. If a header is damaged, the index is trusted for the end of its
        record: nothing else says where that is."""


class FileLayout(Layout):
    """A Layout of a local file, which is read in one stretch."""

    def __init__(self, source: FileSource, offsets: Array, known: bool) -> None:
        super().__init__(offsets, known)
        self._source = source

    def _step(self, first: int, number: int) -> None:
        walk = Walk(self._source.fd, self._source.path, self._end)
        begins = np.empty(WALK_RECORDS, np.int64)
        walk.start(int(self._offsets[first]))
        count, status = walk.step(begins, 0)
        found = np.append(begins[:count], walk.offset)
        expected = self._offsets[first : first + len(found)]
        other = np.flatnonzero(found[: len(expected)] != expected)
        if len(other):
            self._wrong = max(first + int(other[0]) - 1, 0)
        elif len(found) > len(expected) or status in (lib.TFW_E_TRUNCATED, lib.TFW_E_TOO_LARGE):
            self._wrong = first + len(expected) - 1
        else:
            self.checked = first + count + (status == lib.TFW_E_LENGTH_CRC)


def file_identity(status: os.stat_result) -> str | None:
    """Identifies a file in its present state, by a time that nobody can set. None: it was changed
    so recently that another change might not show."""
    if time.time_ns() - status.st_ctime_ns < _TICK:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_ctime_ns}"


def is_unchanged(status: os.stat_result, other: os.stat_result) -> bool:
    """Whether a file is the same, and unchanged as far as its times can tell."""
    return os.path.samestat(status, other) and all(
        getattr(status, name) == getattr(other, name)
        for name in ("st_size", "st_mtime_ns", "st_ctime_ns")
    )


def save_identity(index_path: Path, identity: str | None, checksum: int) -> None:
    """Notes at a saved index which file it is for, if the file system allows it.

    Args:
        index_path: The index.
        identity: Of the file; None: unknown.
        checksum: Of the index: the note does not hold for one that is edited.
    """
    if identity is not None:
        system.set_attribute(index_path, _ATTRIBUTE, f"{identity} {checksum:08x}".encode())


def identity_saved(fd: int, checksum: int) -> str | None:
    """What ``save_identity`` noted at an open index with this checksum, or None."""
    noted = system.get_attribute(fd, _ATTRIBUTE)
    if noted is None:
        return None
    identity, _, noted_checksum = noted.decode("ascii", "replace").partition(" ")
    return identity if noted_checksum == f"{checksum:08x}" else None


def stale(path: Any, index_path: Any, expected: str, found: str) -> DataLossError:
    """The error for an index that does not fit its file."""
    return DataLossError(
        f"{os.fspath(path)}: {os.fspath(index_path)} is stale: it is for {expected}, the file has "
        f"{found}",
        path=path,
        reason="index",
    )


def raise_unverified(status: int, error: Any, path: Path | None) -> NoReturn:
    """Raises the error for a record that cannot be read, or does not verify."""
    if status not in DAMAGE_REASONS:
        check(status, error, path)
    found = damaged_record_error(status, error, path)
    if status != lib.TFW_E_DATA_CRC:
        found.args = (f"{found}; the index is stale, or the record is damaged",)
    try:
        raise found
    finally:
        del found  # its traceback would keep the file open


def stale_at(path: Path, number: int, text: str, offset: int | None = None) -> DataLossError:
    """The error for a record that is not what the index says."""
    return DataLossError(
        f"{os.fspath(path)}: record {number}: {text}; the index is stale",
        path=path,
        offset=offset,
        record_index=number,
        reason="index",
    )


# ---- Whether an index fits its file, or its object, as that is now -----------------------------


_SAMPLES = 64  # places that the fingerprint of a file is computed from
_SAMPLE_BYTES = 16  # bytes of each


class _Index(Protocol):
    """What a RecordIndex says of its file."""

    offsets: Array
    compression: Compression
    size: int
    mtime_ns: int
    fingerprint: int
    version: str | None
    _identity: str | None


def check_index(
    index: _Index,
    source: FileSource | RemoteFile,
    index_path: Any = None,
    ignore_mtime: bool = False,
) -> bool:
    """Checks by samples that an index fits an open file as it is now.

    Args:
        index: The index.
        source: The file, or the object.
        index_path: The name of the index in messages; None: "the index".
        ignore_mtime: As for ``RecordIndex.load``.

    Returns:
        Whether it is certainly the same file as was indexed, unchanged.

    Raises:
        DataLossError: With the reason "index": it is stale.
    """
    if isinstance(source, RemoteFile):
        return _check_object(index, source, index_path or "the index")
    status = os.fstat(source.fd)
    identity = file_identity(status)
    path, name = source.path, index_path or "the index"
    if index.size != status.st_size:
        raise stale(path, name, f"{index.size} bytes", f"{status.st_size} bytes")
    if not index.compression and index.offsets[-1] != index.size:
        raise stale(path, name, f"records of {index.offsets[-1]} bytes", f"{index.size} bytes")
    if index.mtime_ns != status.st_mtime_ns and not ignore_mtime:
        raise stale(path, name, f"mtime {index.mtime_ns} ns", f"{status.st_mtime_ns} ns")
    found = fingerprint_of_file(source.fd, index.offsets, index.compression, index.size)
    if index.fingerprint != found:
        raise stale(path, name, f"fingerprint 0x{index.fingerprint:08x}", f"0x{found:08x}")
    return identity is not None and identity == index._identity


def _check_object(index: _Index, file: RemoteFile, name: Any) -> bool:
    """As check_index. The fingerprint takes many requests: it is compared only where the version
    says too little."""
    if index.size != file.size:
        file.confirm_size()
    if index.version not in (None, file.version):
        raise stale(file.path, name, str(index.version), file.version)
    if index.size != file.size:
        raise stale(file.path, name, f"{index.size} bytes", f"{file.size} bytes")
    if not index.compression and index.offsets[-1] != index.size:
        raise stale(file.path, name, f"records of {index.offsets[-1]} bytes", file.version)
    if index.version is None or not file.has_version:
        found = fingerprint_of_object(file, index.offsets, index.compression)
        if index.fingerprint != found:
            expected = f"fingerprint 0x{index.fingerprint:08x}"
            raise stale(file.path, name, expected, f"0x{found:08x}")
    # The samples of the fingerprint leave room for records of other numbers between them.
    return file.has_version and index._identity == file.version


def fingerprint_of_file(fd: int, offsets: Array, compression: Compression, size: int) -> int:
    """CRC-32C of 16 bytes at each of some places throughout a file."""
    places = _sampled(offsets, compression, size)
    data = b"".join([system.pread(fd, _SAMPLE_BYTES, place) for place in places])
    return int(lib.tfw_crc32c(0, data, len(data)))


def fingerprint_of_object(file: RemoteFile, offsets: Array, compression: Compression) -> int:
    """As fingerprint_of_file; equal for equal bytes."""
    size = file.size
    places = _sampled(offsets, compression, size)
    ranges = [(place, min(place + _SAMPLE_BYTES, size)) for place in places]
    data = b"".join(file.read([part for part in ranges if part[0] < part[1]]))
    file.check_size(size)
    return int(lib.tfw_crc32c(0, data, len(data)))


def _sampled(offsets: Array, compression: Compression, size: int) -> list[int]:
    """The places that a fingerprint is computed from: a payload's checksum and the next record's
    header; in a compressed file, any bytes."""
    last, end = size - _SAMPLE_BYTES, len(offsets) - 1
    steps = range(_SAMPLES)
    if compression:
        return [step * max(last, 0) // (_SAMPLES - 1) for step in steps]
    numbers = sorted({step * end // (_SAMPLES - 1) for step in steps})
    begins = offsets[numbers] - lib.TFW_FOOTER_SIZE
    places: list[int] = np.clip(begins, 0, max(last, 0)).tolist()
    return places
