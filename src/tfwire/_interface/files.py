"""Files as the library knows them, for neighbours that open, list or write files themselves.

* Names: ``is_path`` and ``is_url`` tell them from other inputs, ``absolute`` is independent of the
  working folder, ``index_beside`` names the index of a file. ``input_paths`` finds those that an
  argument names, ``one_input`` the one that it must name,
  ``tensorflow_paths`` those by TensorFlow's rule; ``without_indexes`` leaves out what
  lies beside files in a list. Who lists files by other means takes ``as_pattern`` of a name, its
  ``meanings`` in turn, and ``files_that_match`` of what it has listed; ``raise_naming`` makes the
  errors of a store name the URL.
* Inputs for any reader: an ``ObjectSource`` is a file object with a name for errors, a
  ``SectionSource`` one up to an offset.
* Readers: ``make_options`` checks how to read; ``compression_name`` of an argument,
  ``either_word`` of two; the policy ``AS_TENSORFLOW`` at damage, ``check_ends``, which refuses
  a device whose bytes never end, and ``check_rereadable``, which refuses pipes and devices.
* ``problems_of_sets`` of shards that are half published.
* Records as bytes of a file: ``as_record`` of what writers take, ``Packer`` frames, ``FRAME`` is
  the size of a frame; ``chunks`` of many records.

Importing this imports nothing that parses, and nothing remote: the command counts and verifies.
"""

from __future__ import annotations

from collections.abc import Iterable

from tfwire._records.files.byte_sources import (
    ObjectSource as ObjectSource,
    SectionSource as SectionSource,
    check_ends as check_ends,
    check_rereadable as check_rereadable,
)
from tfwire._records.files.compression import (
    compression_name as compression_name,
    either_word as either_word,
)
from tfwire._records.files.find_files import (
    as_pattern as as_pattern,
    files_that_match as files_that_match,
    input_paths as input_paths,
    meanings as meanings,
    one_input as one_input,
    tensorflow_paths as tensorflow_paths,
    without_indexes as without_indexes,
)
from tfwire._records.files.paths import (
    absolute as absolute,
    index_beside as index_beside,
    is_path as is_path,
)
from tfwire._records.files.urls import ObjectPath, is_url as is_url, raise_naming as raise_naming
from tfwire._records.frames import (
    FRAME as FRAME,
    Packer as Packer,
    as_record as as_record,
    chunks as chunks,
)
from tfwire._records.reading.options import (
    AS_TENSORFLOW as AS_TENSORFLOW,
    make_options as make_options,
)
from tfwire._records.reading.publishing_markers import Markers


def problems_of_sets(paths: Iterable[str]) -> list[str]:
    """Why files and URLs are not to be read: a line for each set of shards that was renamed in part
    when its writer died."""
    markers = Markers()
    places = [ObjectPath(path, listed=True) if is_url(path) else path for path in paths]
    return [problem for path in places if (problem := markers.find_problem(path)) is not None]
