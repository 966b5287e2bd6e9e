"""WebDataset's tar files: a sample is the members of one key, KEY.EXTENSION, one after another.

A feature of one string is the member KEY.NAME, with its bytes, or KEY.NAME.jpg and the like: by the
last extension, WebDataset knows how to decode. Numbers and lists are JSON in
KEY.NAME.json; an integer of a feature "cls" and its like is text in KEY.cls, as WebDataset has it.
What a name of a file cannot hold is percent-encoded in it.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tfwire._interface.messages import quoted
from tfwire.cli._row_survey import NON_FINITE, RowColumn, RowValue
from tfwire.cli._rows import Encoder, OpenedFile, Row, RowAndKinds, json_value, plain_value

# WebDataset's extensions of integers as text.
_INTEGER_EXTENSIONS = ("cls", "cls2", "class", "count", "index", "inx", "id")
_INTEGER_FILE = re.compile(rb"\s*-?[0-9]{1,19}\s*")
_PRINTABLE = "".join(chr(c) for c in range(0x20, 0x7F) if chr(c) not in "%/\\")
_JSON = ".json"
# What images and sounds begin with, and the extensions that say so; the first is added to others.
_MEDIA_EXTENSIONS = {
    rb"\xff\xd8\xff": ("jpg", "jpeg"),
    rb"\x89PNG\r\n\x1a\n": ("png",),
    rb"GIF8[79]a": ("gif",),
    rb"RIFF....WEBP": ("webp",),
    rb"RIFF....WAVE": ("wav",),
    rb"fLaC": ("flac",),
}
# The owner of members whose last extension is no part of the feature's name, to be read back.
_OWNER_OF_ADDED = "tfwire"
_TAR_READ_SIZE = 1 << 16


def sample_rows(source: OpenedFile, key_name: str | None = None) -> Iterator[RowAndKinds]:
    """The samples of a tar file as rows. Members are read one by one; none is extracted, so it does
    not matter what their names are. Folders, links and devices are left out.

    Args:
        source: The file.
        key_name: The column that gets the keys.

    Raises:
        ValueError: Not a tar file, or two members of a sample have one extension.
    """
    stream: Any = _ArchiveStream(source.file)
    try:
        archive = tarfile.open(fileobj=stream, mode="r|")  # noqa: SIM115  # closed below
    except tarfile.TarError as error:
        raise ValueError(f"not a tar file: {error}") from None
    try:
        with archive:
            for row in _samples(archive, key_name):
                yield row, None
        stream.check_end()
    except tarfile.TarError as error:
        raise ValueError(str(error)) from None


class _ArchiveStream:
    """An archive that is read; tarfile says nothing of one that is cut between two members."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._end = b""

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self._end = (self._end + data)[-tarfile.BLOCKSIZE :]
        return data

    def check_end(self) -> None:
        """Raises ValueError unless the archive ends with a block of zeros."""
        while self.read(_TAR_READ_SIZE):
            pass
        if self._end.strip(b"\0") or len(self._end) < tarfile.BLOCKSIZE:
            raise ValueError("the archive has no end; it was cut off")


def _samples(archive: tarfile.TarFile, key_name: str | None) -> Iterator[Row]:
    last: str | None = None
    row: Row = {}
    value: RowValue
    for member in archive:
        archive.members = []  # type: ignore[attr-defined]  # else all headers stay in memory
        folder, slash, name = member.name.rpartition("/")
        stem, dot, extension = name.partition(".")
        file = archive.extractfile(member) if member.isreg() else None
        if file is None or not dot:
            continue
        key = folder + slash + stem
        if key != last:
            if last is not None:
                yield row
            last, row = key, {}
            if key_name is not None:
                row[key_name] = unquote_to_bytes(key)
        if member.uname == _OWNER_OF_ADDED and "." in extension:
            feature, value = _name(extension.rpartition(".")[0]), file.read()
        else:
            feature, value = _feature(extension, file.read())
        if feature in row:
            raise ValueError(f"sample {quoted(key)}: {quoted(feature)} occurs twice")
        row[feature] = value
    if last is not None:
        yield row


def _feature(extension: str, data: bytes) -> tuple[str, RowValue]:
    """The name and value of a feature from a member."""
    if extension in _INTEGER_EXTENSIONS and _INTEGER_FILE.fullmatch(data):
        number = int(data)
        return extension, number if -(2**63) <= number < 2**63 else data
    name = extension.removesuffix(_JSON)
    if name != extension:
        try:
            value = json.loads(data)
            if isinstance(value, str) and value in NON_FINITE:
                return _name(name), NON_FINITE[value]
            if not isinstance(value, (str, dict, bool, type(None))):
                return _name(name), plain_value(name, value)
        except (ValueError, RecursionError):
            pass
    return _name(extension), data


def _name(extension: str) -> str:
    return unquote_to_bytes(extension).decode("utf-8", "surrogateescape")


def sample_encoder(columns: Sequence[RowColumn], key_name: str | None) -> Encoder:
    """Rows as members of a tar file.

    Args:
        columns: Of the rows.
        key_name: The column with the keys; None: they are the numbers of the rows.
    """
    return Encoder(_Samples(columns, key_name).encode, footer=bytes(2 * tarfile.BLOCKSIZE))


class _Samples:
    """Encodes rows; it knows the last key."""

    def __init__(self, columns: Sequence[RowColumn], key_name: str | None) -> None:
        self._columns = {column.name: column for column in columns}
        self._key_name = key_name
        self._last: str | None = None
        self._number = 0

    def encode(self, row: Row) -> bytes:
        """A row as members.

        Raises:
            ValueError: It has no key, or that of the row before it.
        """
        key = self._key(row)
        if key == self._last:
            raise ValueError(f"two rows in turn have the key {quoted(key)}")
        self._last = key
        self._number += 1
        members = bytearray()
        for name, value in row.items():
            if name != self._key_name:
                extension, data = self._member(name, value)
                added = _added_extension(extension, value)
                added = "" if name + added in row else added  # another feature's
                owner = _OWNER_OF_ADDED if added else ""
                members += _member(f"{key}.{extension}{added}", data, owner)
        return bytes(members)

    def _key(self, row: Row) -> str:
        if self._key_name is None:
            return f"{self._number:09d}"
        value = row.get(self._key_name)
        if not isinstance(value, (bytes, int)) or value == b"":
            raise ValueError(f"row {self._number} has no key in {quoted(self._key_name)}")
        text = value if isinstance(value, bytes) else str(value).encode()
        parts = text.split(b"/")
        inside = len(parts) > 1 and all(parts)  # else a path from the root, or a folder
        encoded = map(_encoded, parts) if inside else [_encoded(text)]
        return "/".join(part.replace(".", "%2E") for part in encoded)

    def _member(self, name: str, value: RowValue) -> tuple[str, bytes]:
        extension = _encoded(name.encode("utf-8", "surrogateescape"))
        if name in _INTEGER_EXTENSIONS:
            if isinstance(value, int):
                return extension, str(value).encode()
            extension = f"%{ord(name[0]):02X}{name[1:]}"
        if isinstance(value, bytes):
            if extension.endswith(_JSON):
                extension = f"{extension.removesuffix(_JSON)}%2Ejson"
            return extension, value
        column = self._columns[name]
        return extension + _JSON, json.dumps(json_value(value, column.text)).encode()


def _added_extension(extension: str, value: RowValue) -> str:
    """The extension of an image or a sound, unless it is there."""
    if isinstance(value, bytes):
        for begin, known in _MEDIA_EXTENSIONS.items():
            if re.match(begin, value, re.DOTALL):
                return "" if extension.lower().rpartition(".")[2] in known else f".{known[0]}"
    return ""


def _encoded(name: bytes) -> str:
    """A name without slashes and control characters, percent-encoded; UTF-8 stays."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(name, safe=_PRINTABLE)
    return "".join(
        character
        if character in _PRINTABLE or (character.isprintable() and not character.isascii())
        else quote_from_bytes(character.encode(), safe="")
        for character in text
    )


def _member(name: str, data: bytes, owner: str) -> bytes:
    info = tarfile.TarInfo(name)
    info.uname = owner
    info.size = len(data)
    header = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    return header + data + bytes(-len(data) % tarfile.BLOCKSIZE)
