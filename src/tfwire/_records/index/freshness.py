"""Whether an index fits its file, or its object, as that is now."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from tfwire._base import system
from tfwire._base.aliases import Compression
from tfwire._base.native import lib
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.index.index_files import stale
from tfwire._records.index.offset_checks import file_identity
from tfwire._records.remote.random_ranges import RemoteFile

Array = np.ndarray[Any, Any]
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
