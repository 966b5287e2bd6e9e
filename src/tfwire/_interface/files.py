"""Files as the library knows them, for neighbours that open, list or write files themselves.

* Names: ``is_path`` and ``is_url`` tell them from other inputs, ``absolute`` is independent of the
  working folder, ``index_beside`` names the index of a file.
* Inputs for any reader: an ``ObjectSource`` is a file object with a name for errors, a
  ``SectionSource`` one up to an offset.
* An index whose bytes another library has read: ``offsets_of_index``.
* Readers: ``compression_name`` of an argument, the policy ``AS_TENSORFLOW`` at damage, and
  ``check_ends`` of compressed streams as TensorFlow has it.
* Records as bytes of a file: ``as_record`` of what writers take, ``Packer`` frames, ``FRAME`` is
  the size of a frame.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tfwire._records.files.byte_sources import (
    ObjectSource as ObjectSource,
    SectionSource as SectionSource,
    check_ends as check_ends,
)
from tfwire._records.files.compression import compression_name as compression_name
from tfwire._records.files.paths import absolute as absolute, is_path as is_path
from tfwire._records.files.urls import is_url as is_url
from tfwire._records.frames import FRAME as FRAME, Packer as Packer, as_record as as_record
from tfwire._records.index.index_files import (
    index_beside as index_beside,
    offsets_of_lengths,
    read_contents,
    stale,
)
from tfwire._records.reading.options import AS_TENSORFLOW as AS_TENSORFLOW

if TYPE_CHECKING:
    from tfwire.typing import Array


def offsets_of_index(data: bytes, path: str, size: int) -> tuple[Array, str]:
    """The offsets in an index, and the compression of its file.

    Args:
        data: The index, which lies beside the file.
        path, size: The file of records.

    Raises:
        DataLossError: It is stale or damaged.
    """
    index_path = index_beside(path)
    contents = read_contents(io.BytesIO(data), len(data), index_path, path, size)
    if contents.size != size:
        raise stale(path, index_path, f"{contents.size} bytes", f"{size} bytes")
    return offsets_of_lengths(contents.lengths), contents.compression
