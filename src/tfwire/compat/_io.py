"""tf.io and tf.gfile: files and records."""

from __future__ import annotations

import errno
import glob as _glob
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tfwire as tfw
from tfwire import DataLossError, RecordPosition
from tfwire._interface.files import AS_TENSORFLOW, check_ends, without_indexes
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._calls import accepting
from tfwire.compat._constants import STRING, is_tensor, scalar_string, string_array, to_array
from tfwire.compat._errors import (
    ClosedError,
    Explained,
    FailedPreconditionError,
    Namespace,
    OutOfRangeError,
    errors,
    raise_translated,
    translating_files,
)
from tfwire.compat._tensor import Tensor


# ---- Whole files as tensors ---------------------------------------------------------------------
def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file, as a scalar string.

    Raises:
        NotFoundError: There is no such file.
    """
    path = scalar_string(filename, "filename")
    with translating_files(), open(path, "rb") as file:
        check_ends(file, path)
        return Tensor(file.read())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a file, and makes the directories that it needs."""
    path, data = scalar_string(filename, "filename"), scalar_string(contents, "contents")
    makedirs(os.path.dirname(path) or b".")
    with translating_files(), open(path, "wb") as file:
        file.write(data)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The sorted names of the files that match one pattern or several."""
    patterns = to_array(pattern, STRING).ravel()
    found = without_indexes([name for item in patterns for name in glob(item)])
    names = sorted(map(os.fsencode, found))
    return Tensor(string_array(names, (len(names),)))


# ---- tf.io.gfile --------------------------------------------------------------------------------
def _path(path: Any) -> str:
    """A path as str.

    Raises:
        TypeError: Not a str, bytes or PathLike.
    """
    if is_tensor(path):
        path = path.numpy()
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"a path must be a str, bytes or os.PathLike, found {type(path).__name__}")
    return os.fsdecode(path)


def exists(path: Any) -> bool:
    """True if there is a file or directory."""
    return os.path.exists(_path(path))


def isdir(path: Any) -> bool:
    """True if there is a directory."""
    return os.path.isdir(_path(path))


def glob(pattern: Any) -> list[str]:
    """The names that match a pattern, or one of several; without a folder they begin with "./"."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    found = []
    for text in map(_path, patterns):
        folder = "" if os.path.dirname(text) or not _glob.has_magic(text) else "./"
        found += _glob.glob(folder + text)
    return found


def listdir(path: Any) -> list[str]:
    """The names in a directory.

    Raises:
        NotFoundError: There is no such directory.
    """
    with translating_files():
        if not isdir(path):
            raise FileNotFoundError(errno.ENOENT, "not a directory", _path(path))
        return os.listdir(_path(path))


def makedirs(path: Any) -> None:
    """Makes a directory and those above it; it may exist already."""
    with translating_files():
        try:
            os.makedirs(_path(path), exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", _path(path)) from error


def mkdir(path: Any) -> None:
    """Makes a directory; it may exist already, the one above it must."""
    with translating_files():
        if not exists(path):
            os.mkdir(_path(path))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file.

    Raises:
        AlreadyExistsError: There is a file, and ``overwrite`` is False.
        NotFoundError: There is no ``src``, or no folder for ``dst``.
        InvalidArgumentError: ``src`` is a directory, or the same file as ``dst``.
    """
    source, target = _path(src), _path(dst)
    with translating_files():
        _check_free(dst, overwrite)
        os.stat(os.path.dirname(target) or ".")
        os.stat(source)
        if isdir(src):
            raise InvalidArgumentError(f"{source} is a directory")
        if exists(dst) and os.path.samefile(source, target):
            raise InvalidArgumentError(f"{source} and {target} are the same file")
        with open(source, "rb") as file:
            check_ends(file, source)
        shutil.copyfile(source, target)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Renames a file or directory.

    Raises:
        AlreadyExistsError: There is a file, and ``overwrite`` is False.
    """
    with translating_files():
        _check_free(dst, overwrite)
        os.replace(_path(src), _path(dst))


def _check_free(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise FileExistsError(errno.EEXIST, "file already exists", _path(path))


def remove(path: Any) -> None:
    """Removes a file.

    Raises:
        NotFoundError: There is no such file.
        FailedPreconditionError: It is a directory.
    """
    with translating_files():
        if isdir(path):
            raise FailedPreconditionError(f"{_path(path)} is a directory")
        os.remove(_path(path))


def rmtree(path: Any) -> None:
    """Removes a file, or a directory with everything in it."""
    with translating_files():
        if isdir(path):
            shutil.rmtree(_path(path))
        else:
            os.remove(_path(path))


class FileStatistics(NamedTuple):
    """What :func:`stat` returns."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Any) -> FileStatistics:
    """The size, time of change and kind of a file."""
    with translating_files():
        found = os.stat(_path(path))
    return FileStatistics(found.st_size, found.st_mtime_ns, isdir(path))


def walk(
    top: Any, topdown: bool = True, onerror: Any = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """The directories below one, each with the names of directories and files in it."""
    return os.walk(_path(top), topdown, onerror)


def join(path: Any, *paths: Any) -> Any:
    """Parts of a path as one; str or bytes."""
    return os.path.join(path, *paths)


_FILE_MODES = {"r", "w", "a", "r+", "w+", "a+"}


class GFile(Explained):
    """A file, read and written as ``tf.io.gfile.GFile`` does it.

    Args:
        name: The path.
        mode: "r", "w", "a", "r+", "w+" or "a+"; with "b" reading gives bytes, else str. Text and
            bytes may be written in either.

    Raises:
        InvalidArgumentError: Another mode.
    """

    _tf_name = "io.gfile.GFile"
    _file: Any = None  # opened at first use

    def __init__(self, name: Any, mode: str = "r") -> None:
        if not isinstance(mode, str):
            raise TypeError(f"mode must be a str, found {type(mode).__name__}")
        self.name = name
        self.mode = mode
        self._binary = "b" in mode
        self._plain_mode = mode.replace("b", "")
        if self._plain_mode not in _FILE_MODES:
            raise InvalidArgumentError(f"mode must be one of {sorted(_FILE_MODES)}, found {mode!r}")

    def _open(self, writing: bool = False) -> Any:
        """The file, opened at first use; it must have been opened for this."""
        allowed = self._plain_mode != "r" if writing else self._plain_mode not in ("w", "a")
        if not allowed:
            raise errors.PermissionDeniedError(
                f"the file is not open for {'writing' if writing else 'reading'}"
            )
        return self._opened()

    def _opened(self) -> Any:
        if self._file is None:
            mode = self._plain_mode[0] + "b" + self._plain_mode[1:]
            self._file = open(_path(self.name), mode)  # noqa: SIM115
        return self._file

    def _shown(self, data: bytes) -> Any:
        return data if self._binary else data.decode()

    def read(self, n: int = -1) -> Any:
        """``n`` bytes, or all that remain, as bytes or str."""
        file = self._ending() if n is None or n < 0 else self._open()
        return self._shown(file.read(n))

    def readline(self) -> Any:
        """The next line with its end, empty at the end of the file."""
        return self._shown(self._ending().readline())

    def readlines(self) -> list[Any]:
        """The remaining lines."""
        return list(self)

    def __iter__(self) -> Iterator[Any]:
        return map(self._shown, self._ending())

    def _ending(self) -> Any:
        """The file, for reading as far as a line or the file goes."""
        file = self._open()
        check_ends(file, _path(self.name))
        return file

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def write(self, file_content: Any) -> None:
        """Writes str (as UTF-8) or bytes."""
        if isinstance(file_content, str):
            file_content = file_content.encode()
        data = memoryview(file_content)  # refuses other types before the file is emptied
        self._open(writing=True).write(data)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to a byte of the file."""
        file = self._opened()
        if file.seek(position if offset is None else offset, whence) > self.size() and not (
            file.writable()
        ):
            raise OutOfRangeError(f"{_path(self.name)}: sought beyond the end of the file")

    def tell(self) -> int:
        """The offset of the next byte."""
        place: int = self._opened().tell()
        return place

    def size(self) -> int:
        """The size of the file in bytes."""
        return stat(self.name).length

    def seekable(self) -> bool:
        """True."""
        return True

    def flush(self) -> None:
        """Hands written data to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


for _name in (
    *("read", "readline", "readlines", "__iter__", "write"),
    *("seek", "tell", "flush", "close"),
):
    setattr(GFile, _name, translating_files()(getattr(GFile, _name)))

io_gfile: Namespace = Namespace(
    "io.gfile",
    *(GFile, copy, exists, glob, isdir, join, listdir, makedirs, mkdir),
    *(remove, rename, rmtree, stat, walk),
)
gfile: Namespace = Namespace(
    "gfile",
    GFile,
    FastGFile=GFile,
    Open=GFile,
    Copy=accepting(copy, oldpath="src", newpath="dst"),
    DeleteRecursively=accepting(rmtree, dirname="path"),
    Exists=accepting(exists, filename="path"),
    Glob=accepting(glob, filename="pattern"),
    IsDirectory=accepting(isdir, dirname="path"),
    ListDirectory=accepting(listdir, dirname="path"),
    MakeDirs=accepting(makedirs, dirname="path"),
    MkDir=accepting(mkdir, dirname="path"),
    Remove=accepting(remove, filename="path"),
    Rename=accepting(rename, oldname="src", newname="dst"),
    Stat=accepting(stat, filename="path"),
    Walk=accepting(walk, in_order="topdown"),
)


# ---- Records ------------------------------------------------------------------------------------


class TFRecordWriter(tfw.TFRecordWriter):
    """As :class:`tfwire.TFRecordWriter`, with the errors of TensorFlow."""

    @translating_files()
    def __init__(self, path: Any, options: Any = None, **others: Any) -> None:
        super().__init__(path, options, **others)

    def _run(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        with translating_files():
            return super()._run(operation, *arguments)

    def _fail(self, failure: Exception) -> None:
        super()._fail(ClosedError(str(failure)) if type(failure) is ValueError else failure)


class GrowingFileIterator:
    """Iterates over the records of one file, and continues when the file has grown.

    ``next`` raises StopIteration at the end of the file, and DataLossError within a record. It
    may be called again later. A file that replaces this one counts after ``close`` and ``reopen``.

    Args:
        path: The file.
        compression: As for ``tfwire.read_records``.

    Raises:
        NotFoundError: There is no such file.
    """

    def __init__(self, path: Any, compression: Any) -> None:
        self._path = path
        self._compression = compression
        self._position = RecordPosition()
        self._records: tfw.RecordIterator | None = None
        self._closed = False
        self._ending: Exception = StopIteration()
        self._identity = self._stat()

    def _stat(self) -> os.stat_result:
        """Of the file that the path names now."""
        with translating_files(), open(self._path, "rb") as file:
            return os.fstat(file.fileno())

    def _is_replaced(self) -> bool:
        try:
            return not os.path.samestat(self._identity, os.stat(self._path))
        except OSError:
            return True

    def __iter__(self) -> GrowingFileIterator:
        return self

    def __next__(self) -> bytes:
        if self._closed:
            raise StopIteration
        if self._records is None:
            if self._is_replaced():
                raise self._ending
            self._records = tfw.read_records(
                self._path,
                self._compression,
                on_corrupt=AS_TENSORFLOW,
                max_record_size=None,
                start=self._position,
            )
        try:
            return next(self._records)
        except (StopIteration, DataLossError) as ending:
            self._ending = ending.with_traceback(None)
            self._pause()
            raise
        except OSError as error:
            raise_translated(error)

    def _pause(self) -> None:
        """Closes the file; the next call looks at it again."""
        if self._records is not None:
            self._position = self._records.position
            self._records.close()
            self._records = None

    def close(self) -> None:
        """Closes the file: ``next`` raises StopIteration then. Closing again is allowed."""
        self._pause()
        self._closed = True

    def reopen(self) -> None:
        """Continues after ``close`` with the record after the last one, in the file that the path
        names then.

        Raises:
            FailedPreconditionError: The iterator is not closed.
            NotFoundError: There is no such file.
        """
        if not self._closed:
            raise FailedPreconditionError(None, None, "Reader is not closed.")
        self._identity = self._stat()
        self._closed, self._ending = False, StopIteration()


def tf_record_iterator(path: Any, options: Any = None) -> GrowingFileIterator:
    """Iterates over the records of one file; see :class:`GrowingFileIterator`.

    Args:
        path: The file.
        options: TFRecordOptions or a compression type; None looks at the file.
    """
    name = os.fsdecode(path.numpy() if hasattr(path, "numpy") else path)
    return GrowingFileIterator(name, "auto" if options is None else options)
