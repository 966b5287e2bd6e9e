"""Datasets of the records of files: of TFRecord files, of text lines, of records of one length."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import tfwire as tfw
from tfwire import DataLossError
from tfwire._interface.files import AS_TENSORFLOW, check_ends, compression_name, tensorflow_paths
from tfwire._interface.messages import InvalidArgumentError, integer
from tfwire._interface.pipelines import Replayed, paths_of
from tfwire.compat._constants import to_numpy
from tfwire.compat._data.dataset import AUTOTUNE, Dataset
from tfwire.compat._errors import refusing_arguments, translating_files

if TYPE_CHECKING:
    from tfwire.typing import CompressionType, StorageOptions


def lines(path: str, compression: Any = None) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    with _opened(path, compression) as file:
        for line in file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def fixed_length_records(
    size: int, header: int, footer: int, hop: int, path: str, compression: Any = None
) -> Iterator[bytes]:
    """Records of one length, which begin ``hop`` bytes apart between the ends of a file."""
    with _opened(path, compression) as file:
        end = file.seek(0, os.SEEK_END) - footer
        for begin in range(header, end - size + 1, hop):
            file.seek(begin)
            yield file.read(size)


def _whole(size: int, header: int, footer: int, path: str, compression: Any) -> Iterator[bytes]:
    """The records of a file that holds nothing but whole ones between its ends."""
    with _opened(path, compression) as file:
        body = file.seek(0, os.SEEK_END) - header - footer
    if body < 0 or body % size:
        message = (
            f"{path}: expected records of {size} bytes between a header of {header} bytes and a "
            f"footer of {footer} bytes, found {body} bytes there"
        )
        if compression and body > 0:
            raise DataLossError(message, path=path, reason="truncated")
        raise InvalidArgumentError(message)
    return fixed_length_records(size, header, footer, size, path, compression)


@contextmanager
def _opened(path: str, compression: Any) -> Iterator[Any]:
    """A file to read, inflated; damage in a compressed one is a DataLossError."""
    name = compression_name(compression)
    try:
        with open(path, "rb") as file:
            check_ends(file, path)
            if name == "ZLIB":
                packed = file.read()
                yield io.BytesIO(zlib.decompress(packed) if packed else b"")
            elif name:
                with gzip.open(file) as inflated:
                    yield inflated
            else:
                yield file
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataLossError(f"{path}: {error}", path=path, reason="compressed stream") from error


class _FileDataset(Dataset):
    """The records of files, one file after another."""

    _further = Dataset

    def __init__(self, name: str, records: Callable[[str], Iterator[bytes]], paths: Any) -> None:
        generate = partial(_of_files, records, paths_of(paths, find=tensorflow_paths))
        super().__init__(Replayed(name, (), generate, spec="string[]"), name)


def _of_files(
    records: Callable[[str], Iterator[bytes]], paths: list[str], epoch: str
) -> Iterator[bytes]:
    for path in paths:
        yield from records(path)


class TextLineDataset(_FileDataset):
    """The lines of text files, without their ends.

    Args:
        filenames: As for :class:`tfwire.TFRecordDataset`.
        compression_type: None or "" for none, "GZIP", "ZLIB".
        buffer_size, num_parallel_reads: Accepted and ignored.
    """

    @refusing_arguments(ValueError)
    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression_name(compression_type)
        records = partial(lines, compression=compression_type)
        super().__init__("TextLineDataset", records, filenames)


class FixedLengthRecordDataset(_FileDataset):
    """Records of one length.

    Args:
        filenames: As for :class:`tfwire.TFRecordDataset`.
        record_bytes: Bytes of a record.
        header_bytes, footer_bytes: Bytes to skip at both ends of a file.
        compression_type: None or "" for none, "GZIP", "ZLIB".
        buffer_size, num_parallel_reads: Accepted and ignored.
    """

    @refusing_arguments(ValueError)
    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: Any = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        size = integer("record_bytes", to_numpy(record_bytes), 1)
        compression_name(compression_type)
        cut = partial(_whole, size, header_bytes or 0, footer_bytes or 0)
        super().__init__(
            "FixedLengthRecordDataset", partial(cut, compression=compression_type), filenames
        )


# ---- TFRecord files ------------------------------------------------------------------------------
class TFRecordDataset(Dataset, tfw.TFRecordDataset):
    """The records of files, as string tensors; see :class:`tfwire.TFRecordDataset`."""

    _further = Dataset

    @refusing_arguments(ValueError)
    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        cycle = num_parallel_reads if num_parallel_reads != AUTOTUNE else None
        if not options.get("indexed"):
            options.setdefault("on_corrupt", AS_TENSORFLOW)
            options.setdefault("max_record_size", None)
        kind = (
            to_numpy(compression_type) if hasattr(compression_type, "numpy") else compression_type
        )
        super().__init__(filenames, kind, buffer_size, cycle, **options)

    @staticmethod
    def _files(filenames: Any, storage_options: StorageOptions) -> list[Any]:
        return paths_of(filenames, storage_options, tensorflow_paths)


class DatasetWriter:
    """tf.data.experimental.TFRecordWriter: writes a whole dataset of strings."""

    def __init__(self, filename: Any, compression_type: CompressionType = None) -> None:
        self.filename = to_numpy(filename)
        self.compression_type = compression_type

    @translating_files()
    def write(self, dataset: Any) -> None:
        path = os.fsdecode(self.filename)
        tfw.write_records(path, dataset.as_numpy_iterator(), self.compression_type)
