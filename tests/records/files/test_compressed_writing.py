"""Compressed files as isal and zlib write them."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import tfwire as tfw
from helpers.reference import frame

SOURCE = str(Path(tfw.__file__).parents[1])

RECORDS = [bytes([i % 251]) * (i * 37 % 1999) + b"%d" % i for i in range(400)]
CONTENT = b"".join(map(frame, RECORDS))


def content(path, name: str) -> bytes:
    """What the standard library makes of a file."""
    data = path.read_bytes()
    return gzip.decompress(data) if name == "GZIP" else zlib.decompress(data)


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("level", [None, -1, *range(10)])
def test_every_level_is_read_by_the_standard_library(tmp_path, name, level):
    with tfw.TFRecordWriter(tmp_path / "data", name, compression_level=level) as writer:
        writer.write_many(RECORDS)
    assert CONTENT == content(tmp_path / "data", name)
    assert RECORDS == list(tfw.read_records(tmp_path / "data"))


@pytest.mark.parametrize(
    "options",
    [
        {"window_bits": 9},
        {"window_bits": 15},
        {"mem_level": 1},
        {"compression_strategy": zlib.Z_HUFFMAN_ONLY},
        {"compression_method": zlib.DEFLATED},
        {"flush_mode": zlib.Z_NO_FLUSH},
        {"flush_mode": zlib.Z_PARTIAL_FLUSH},
        {"flush_mode": zlib.Z_SYNC_FLUSH},
        {"flush_mode": zlib.Z_FULL_FLUSH},
    ],
)
@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_other_parameters_change_no_content(tmp_path, name, options):
    with tfw.TFRecordWriter(tmp_path / "data", tfw.TFRecordOptions(name, **options)) as writer:
        writer.write_many(RECORDS)
    assert CONTENT == content(tmp_path / "data", name)


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_equal_records_make_equal_files(tmp_path, name):
    """A header with the time in it would change them."""
    for file in ("one", "two"):
        tfw.write_records(tmp_path / file, RECORDS, name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_better_levels_are_zlibs(tmp_path):
    pytest.importorskip("isal")
    sizes = {}
    for level in (1, 3, 6, 9):
        with tfw.TFRecordWriter(tmp_path / "data", "GZIP", compression_level=level) as writer:
            writer.write_many(RECORDS)
        sizes[level] = (tmp_path / "data").stat().st_size
    assert sizes[9] <= sizes[6] < min(sizes[1], sizes[3])


def test_a_continued_file_is_a_member_more(tmp_path):
    path = tmp_path / "data"
    for level in (None, 6, 2):
        with tfw.TFRecordWriter(path, "GZIP", compression_level=level, append=True) as writer:
            writer.write_many(RECORDS)
    assert 3 * CONTENT == content(path, "GZIP")
    with pytest.raises(ValueError, match="ZLIB"):
        tfw.TFRecordWriter(path, "ZLIB", append=True)


def test_without_isal_everything_is_written_by_zlib(tmp_path):
    code = (
        "import sys; sys.modules['isal'] = None; sys.modules['isal.isal_zlib'] = None\n"
        "import tfwire as tfw\n"
        "tfw.write_records(sys.argv[1], [b'a record'] * 9, 'GZIP')\n"
    )
    command = [sys.executable, "-c", code, tmp_path / "plain zlib"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": SOURCE})
    options = tfw.TFRecordOptions("GZIP", compression_level=6)
    tfw.write_records(tmp_path / "zlib", [b"a record"] * 9, options)
    assert (tmp_path / "zlib").read_bytes() == (tmp_path / "plain zlib").read_bytes()
