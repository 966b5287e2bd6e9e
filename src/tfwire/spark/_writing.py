"""Writes the rows of Spark's tasks to files, which get their names when all tasks have ended."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from tfwire._interface.hive_folders import files_of_table, folder_name
from tfwire._interface.messages import quoted
from tfwire._interface.new_files import StagedFiles

if TYPE_CHECKING:
    import pyarrow

_LONGEST_NAME = 255  # bytes, in all usual filesystems


@dataclass
class _Written(WriterCommitMessage):
    """The files that a task wrote.

    Attributes:
        files: Of each, the temporary path, and the name to be given when all tasks have ended.
    """

    files: list[tuple[str, str]]


class SparkWriter(DataSourceArrowWriter):
    """Writes a file per task, or per task and partition, and gives them their names at the end."""

    def __init__(self, files: StagedFiles, overwrite: bool, partition_by: list[str]) -> None:
        self._files, self._overwrite, self._partition_by = files, overwrite, partition_by
        self._files.make()  # on the driver: a task that outlives its job must not make them again

    def write(self, iterator: Iterable[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Writes the rows of a task. Spark calls this in a worker, again if it is tried again."""
        pieces = (piece for batch in iterator for piece in _parts(batch, self._partition_by))
        name = f"part-{uuid.uuid4().hex}"
        written = enumerate(self._files.write_apart(pieces))
        ending = self._files.ending
        return _Written(
            [
                (attempt, os.path.join(folder, f"{name}-{i}{ending}"))
                for i, (attempt, folder) in written
            ]
        )

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Gives the files their names; then removes those that are overwritten."""
        folder = self._files.folder
        before = files_of_table(folder) if self._overwrite else []
        written = [message for message in messages if isinstance(message, _Written)]
        self._files.publish(file for message in written for file in message.files)
        for path in before:
            os.unlink(path)
            with contextlib.suppress(OSError):
                while (path := os.path.dirname(path)) != folder:
                    os.rmdir(path)  # raises unless it is empty

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what was written."""
        self._files.remove()


def _parts(batch: pyarrow.RecordBatch, names: list[str]) -> Iterator[tuple[str, Any]]:
    """The rows of each partition, without its columns, and its folder."""
    import pyarrow

    if not names:
        yield "", batch
        return
    columns = [batch.column(batch.schema.get_field_index(name)) for name in names]
    texts = [_texts(column, name) for column, name in zip(columns, names, strict=True)]
    keys = [str(i) for i in range(len(names))]
    rows = pyarrow.array(range(batch.num_rows), pyarrow.int64())
    numbered = pyarrow.table([*texts, rows], names=[*keys, "row"])
    found = numbered.group_by(keys, use_threads=False).aggregate([("row", "list")])
    rest = batch.select([name for name in batch.schema.names if name not in names])
    for number in range(found.num_rows):
        values = [found.column(key)[number].as_py() for key in keys]
        chosen = rest.take(found.column("row_list")[number].values)
        folder = folder_name(dict(zip(names, values, strict=True)))
        for name, part in zip(names, folder.split("/"), strict=True):
            if (length := len(os.fsencode(part))) > _LONGEST_NAME:
                raise ValueError(
                    f"option partition_by: column {quoted(name)}: a value makes the name of a "
                    f"folder {length} bytes long, where {_LONGEST_NAME} are possible"
                )
        yield folder, chosen


def _texts(column: pyarrow.Array, name: str) -> pyarrow.Array:
    """The values of a column as Spark's own sources name folders by them."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if types.is_floating(kind):
        texts = [_float_text(number) for number in column.to_numpy(zero_copy_only=False)]
        return pyarrow.array(texts, pyarrow.string(), mask=np.asarray(column.is_null(), bool))
    if types.is_decimal(kind):
        values = column.to_pylist()
        texts = ["" if value is None else f"{value:f}" for value in values]  # "" is null, too
        return pyarrow.array(texts, pyarrow.string())
    try:
        if types.is_timestamp(kind):
            local = column if kind.tz is None else compute.local_timestamp(column)
            text = local.cast(pyarrow.timestamp("us")).cast(pyarrow.string())
            return compute.replace_substring_regex(text, r"\.0*$|(\.[0-9]*[1-9])0+$", r"\1")
        return column.cast(pyarrow.string())
    except pyarrow.ArrowException:
        raise TypeError(
            f"option partition_by: column {quoted(name)} of {kind} cannot name folders"
        ) from None


def _float_text(number: np.floating[Any]) -> str:
    """A float as Java has it: NaN, Infinity, 0.1, 1.0E10."""
    if not np.isfinite(number):
        return str(number).replace("inf", "Infinity").replace("nan", "NaN")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    digits, exponent = np.format_float_scientific(number, trim="0").split("e")
    return f"{digits}E{int(exponent)}"
