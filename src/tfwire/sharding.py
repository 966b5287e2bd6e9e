"""Datasets in several files: writing them, how many to write, and recovery after a crash."""

from __future__ import annotations

import os

from tfwire._base.aliases import RemotePath, StorageOptions
from tfwire._base.arguments import file_path, integer
from tfwire._base.errors import warn
from tfwire._records.files.paths import absolute
from tfwire._records.files.temporary_files import NO_DESCRIPTORS, errors_naming
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.reading.publishing_markers import MARKER
from tfwire._records.shards.publishing import restore_objects, restore_set
from tfwire._records.shards.sharded_writer import ShardedWriter

__all__ = ["MARKER", "ShardedWriter", "recommend_num_shards", "recover_shards"]

# The advice of TensorFlow's TFRecord tutorial.
_FILES_PER_HOST = 10
_LARGEST_FILE_BYTES = 200_000_000
_SMALLEST_FILE_BYTES = 10_000_000


def recommend_num_shards(total_bytes: int, num_hosts: int = 1) -> int:
    """The number of files to split a dataset into, by the rule of TensorFlow's tutorial.

    Ten files for every host, so that it can read several at once; more if they would be larger than
    200 MB; fewer, with a warning, if they would be smaller than 10 MB. The number is a multiple of
    the number of hosts, unless there are fewer files than hosts.

    Args:
        total_bytes: Size of all records.
        num_hosts: How many machines read the dataset at the same time.

    Returns:
        The number of files, 1 or more.

    Raises:
        ValueError: A negative size, or less than one host.

    Example:
        >>> recommend_num_shards(5_000_000_000, num_hosts=2)
        26
    """
    total, hosts = integer("total_bytes", total_bytes, 0), integer("num_hosts", num_hosts, 1)
    wanted = max(_FILES_PER_HOST * hosts, -(-total // _LARGEST_FILE_BYTES))
    wanted = -(-wanted // hosts) * hosts
    most = max(1, total // _SMALLEST_FILE_BYTES)
    if wanted <= most:
        return wanted
    count = most // hosts * hosts or most
    warn(
        f"{total} bytes in {wanted} files, {_FILES_PER_HOST} per host, would be less than 10 MB "
        f"each, too little for reading ahead: {count} instead"
    )
    return count


def recover_shards(
    folder: RemotePath = ".", *, storage_options: StorageOptions = None
) -> list[str]:
    """Puts back the files that a killed ShardedWriter was replacing.

    A ShardedWriter gives its files their names one by one. During these few milliseconds, a file
    called ``.tfwire-publishing`` (``MARKER``) is in the folder. If the writer is killed in
    that time, the marker stays, and the files of the set may be partly old and partly new: tfwire's
    readers warn of it. This function, and the next ShardedWriter in the folder, restores the old
    files and removes the marker. If a ShardedWriter is publishing its files right now, this waits
    until it is done.

    Object stores have no locks: call this for a URL only when no ShardedWriter runs there. The old
    objects are copied back, and new ones that replaced none are removed.

    Args:
        folder: The folder of the files, also a URL.
        storage_options: fsspec's options of the filesystem of a URL.

    Returns:
        The names of the files in the interrupted set; an empty list if there was none.

    Raises:
        PermissionError: The set belongs to another user.
        OSError: The old files cannot be restored.

    Example:
        >>> recover_shards(".")
        []
    """
    folder = with_storage_options(folder, storage_options)
    if isinstance(folder, ObjectPath):
        return restore_objects(folder)
    path = absolute(file_path("folder", os.curdir if folder in ("", b"") else folder))
    with errors_naming(path, *NO_DESCRIPTORS):
        return restore_set(path)
