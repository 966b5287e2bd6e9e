"""TFRecord files as datasets of Ray Data, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.files import either_word
from tfwire._interface.hive_folders import is_empty
from tfwire._interface.messages import integer
from tfwire._interface.new_files import StagedFiles
from tfwire._interface.partitions import (
    FilePartition,
    count_records,
    fitting_batch_size,
    open_no_files,
    plan_partitions,
    read_partition,
)
from tfwire.arrow import open_reader

try:
    import pyarrow
    from ray.data import Dataset, read_datasource
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasink, Datasource, ReadTask
except ImportError as _error:
    raise ImportError(
        "tfwire.ray needs ray[data] 2.50 or newer and pyarrow; pip install 'tfwire[ray]'"
    ) from _error

if TYPE_CHECKING:
    from tfwire.typing import (
        AnyPath,
        BinaryAs,
        CompressionType,
        DetectedCompressionType,
        OnCorrupt,
        RemotePath,
        StorageOptions,
        TableFeatures,
        Value,
    )

__all__ = ["TFRecordDatasink", "TFRecordDatasource", "read_tfrecord", "write_tfrecord"]

# Bytes of records in a block. Ray joins and cuts blocks to sizes of its own.
_RAY_BLOCK_BYTES = 16 << 20
_MOST_ROWS = 65536
_WHOLE = 1 << 62  # no file is that long
# The column of blocks without columns. A table without any has no rows once it is pickled or joined
# to others. Ray's own sources give it this name, and Ray hides it.
_ROWS_ALONE = "__bsp_stub"


class TFRecordDatasource(Datasource):
    """Record files for ``ray.data.read_datasource``. ``read_tfrecord`` is the shorter way.

    A task reads some small files, or a part of a long one that has an index beside it. A task that
    is tried again gives the same blocks. Columns that the dataset selects at once are parsed alone,
    and ``count`` parses nothing.

    Args:
        paths, features, columns, binary_as, compression_type, options, on_corrupt, \
storage_options: As for :func:`tfwire.arrow.open_reader`. Without features, the files are looked at
            now. With them, a folder without files, as of a dataset without rows, has no rows.

    Raises:
        ValueError, TypeError: As ``open_reader``.
        OSError: A file cannot be read.
    """

    def __init__(
        self,
        paths: RemotePath | Iterable[RemotePath],
        features: TableFeatures | None = None,
        *,
        columns: Iterable[str] | None = None,
        binary_as: BinaryAs = "auto",
        compression_type: DetectedCompressionType = "auto",
        on_corrupt: OnCorrupt = "raise",
        options: DetectedCompressionType = None,
        storage_options: StorageOptions = None,
    ) -> None:
        super().__init__()
        compression_type = either_word(compression_type, options, "auto")
        self._projection_map: dict[str, str] | None = None  # Ray's, which does not set it
        self._options: dict[str, Any] = {
            "binary_as": binary_as,
            "compression_type": compression_type,
            "on_corrupt": on_corrupt,
        }
        passed = {**self._options, "storage_options": storage_options}
        files = iter(()) if features is not None and is_empty(paths) else paths
        reader = open_reader(files, features, columns=columns, **passed)
        self._paths, self._features = reader.paths, reader.features
        # All, though None, so that workers warn of others.
        self._columns = None if columns is None else list(reader.types)
        self._plans: dict[int, list[FilePartition]] = {}
        self._num_bytes = sum(part.num_bytes for part in self._plan(_WHOLE))

    def _plan(self, partition_bytes: int) -> list[FilePartition]:
        """The partitions, which Ray asks for several times."""
        if partition_bytes not in self._plans:
            self._plans[partition_bytes] = plan_partitions(
                self._paths,
                partition_bytes=partition_bytes,
                compression_type=self._options["compression_type"],
                on_corrupt=self._options["on_corrupt"],
            )
        return self._plans[partition_bytes]

    def estimate_inmemory_data_size(self) -> int:
        """Bytes of the files."""
        return self._num_bytes

    def supports_projection_pushdown(self) -> bool:
        """True: only columns that are needed are parsed."""
        return True

    def get_name(self) -> str:
        """The name of the tasks."""
        return "ReadTFRecord"

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: object = None,
    ) -> list[ReadTask]:
        """The tasks, about ``parallelism`` of them. Ray calls this."""
        wanted = self._get_data_columns()
        columns = self._columns if wanted is None else wanted
        empty = open_no_files(self._features, columns=columns, **self._options)
        schema = pyarrow.schema(empty)
        return [
            ReadTask(
                partial(_blocks, partition, self._features, columns, self._options),
                BlockMetadata(
                    num_rows=partition.num_records,
                    size_bytes=partition.num_bytes,
                    input_files=tuple(os.fspath(path) for path in partition.paths),
                    exec_stats=None,
                ),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for partition in self._plan(max(1, -(-self._num_bytes // max(1, parallelism))))
        ]


def _blocks(
    partition: FilePartition,
    features: TableFeatures,
    columns: list[str] | None,
    options: dict[str, Any],
) -> Iterator[pyarrow.Table]:
    """The blocks of a partition, in a worker."""
    if columns is not None and not columns:
        compression, policy = options["compression_type"], options["on_corrupt"]
        number = count_records(partition, compression_type=compression, on_corrupt=policy)
        yield pyarrow.table({_ROWS_ALONE: pyarrow.nulls(number)})
        return
    fitting = fitting_batch_size(partition, _RAY_BLOCK_BYTES, options["compression_type"])
    size = min(_MOST_ROWS, fitting)
    reader = open_no_files(features, columns=columns, batch_size=size, **options)
    for batch in read_partition(partition, reader):
        yield pyarrow.Table.from_batches([pyarrow.record_batch(batch)])


def read_tfrecord(
    paths: RemotePath | Iterable[RemotePath],
    features: TableFeatures | None = None,
    *,
    columns: Iterable[str] | None = None,
    binary_as: BinaryAs = "auto",
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
    **ray_options: object,
) -> Dataset:
    """Record files as a dataset of Ray Data, in Arrow blocks.

    Args:
        paths, features, columns, binary_as, compression_type, options, on_corrupt, \
storage_options: As for :func:`tfwire.arrow.open_reader`. Without features, the files are looked at
            now. With them, a folder without files, as of a dataset without rows, has no rows. All
            workers must see the paths.
        ray_options: For ``ray.data.read_datasource``, for example ``override_num_blocks=``.

    Returns:
        A ``ray.data.Dataset``.

    Raises:
        ValueError, TypeError: As ``open_reader``.
        OSError: A file cannot be read.
        ray.exceptions.RayTaskError: From the dataset: a file is damaged, or a record does not fit.
    """
    compression_type = either_word(compression_type, options, "auto")
    source = TFRecordDatasource(
        paths,
        features,
        columns=columns,
        binary_as=binary_as,
        compression_type=compression_type,
        on_corrupt=on_corrupt,
        storage_options=storage_options,
    )
    return read_datasource(source, **ray_options)


class TFRecordDatasink(Datasink):
    """Record files for ``Dataset.write_datasink``. ``write_tfrecord`` is the shorter way.

    Tasks write into a folder of their own beside the files. When all have ended the files get their
    names; after a failure they are removed.

    Args:
        path: A folder that all workers see. It is made if it is missing.
        compression_type, options: Two words for one argument: None or "", "GZIP" or "ZLIB".
        min_rows_per_file: The fewest rows of a file, unless there are fewer in all.
        features: How lists in lists are written, as for ``encode_columns``.

    Raises:
        ValueError, TypeError: An argument is not valid.
    """

    def __init__(
        self,
        path: AnyPath,
        *,
        compression_type: CompressionType = None,
        min_rows_per_file: int | None = None,
        options: CompressionType = None,
        features: TableFeatures | None = None,
    ) -> None:
        compression_type = either_word(compression_type, options)
        self._files = StagedFiles(path, compression_type, features)
        if min_rows_per_file is not None:
            min_rows_per_file = integer("min_rows_per_file", min_rows_per_file, 1)
        self._min_rows = min_rows_per_file

    @property
    def min_rows_per_write(self) -> int | None:
        """The fewest rows of a file."""
        return self._min_rows

    def get_name(self) -> str:
        """The name of the tasks."""
        return "WriteTFRecord"

    def on_write_start(self, schema: object = None) -> None:
        """Makes the folders. Ray calls this on the driver."""
        self._files.make()

    def write(self, blocks: Iterable[Value], ctx: Value) -> tuple[str, str] | None:
        """Writes one file. Ray calls this in a worker, again if a task is tried again.

        Returns:
            The temporary path and the name of the file; None: there are no rows.
        """
        name = f"{ctx.kwargs['write_uuid']}_{ctx.task_idx:06}{self._files.ending}"
        attempt = self._files.write(BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return None if attempt is None else (attempt, name)

    def on_write_complete(self, write_result: Value) -> None:
        """Gives the files their names. Ray calls this on the driver."""
        self._files.publish(filter(None, write_result.write_returns))

    def on_write_failed(self, error: Exception) -> None:
        """Removes what was written. Ray calls this on the driver."""
        self._files.remove()


def write_tfrecord(
    dataset: Dataset,
    path: AnyPath,
    *,
    compression_type: CompressionType = None,
    min_rows_per_file: int | None = None,
    options: CompressionType = None,
    features: TableFeatures | None = None,
    **ray_options: object,
) -> None:
    """Writes a dataset of Ray Data as Examples. The files appear when all of them are written.

    Args:
        dataset: A ``ray.data.Dataset`` with columns that ``encode_columns`` takes.
        path, compression_type, options, min_rows_per_file, features: As for \
:class:`TFRecordDatasink`.
        ray_options: For ``Dataset.write_datasink``, for example ``concurrency=``.

    Raises:
        ValueError, TypeError: An argument is not valid.
        OSError: The folder cannot be written.
        ray.exceptions.RayTaskError: A task failed. No file has appeared.
    """
    compression_type = either_word(compression_type, options)
    sink = TFRecordDatasink(
        path,
        compression_type=compression_type,
        min_rows_per_file=min_rows_per_file,
        features=features,
    )
    dataset.write_datasink(sink, **ray_options)
