"""Compressed files as isal and zlib write them."""

from __future__ import annotations

import gzip
import zlib

import pytest

import tfwire as tfw
from helpers.reference import frame

RECORDS = [bytes([i % 251]) * (i * 37 % 1999) + b"%d" % i for i in range(400)]
CONTENT = b"".join(map(frame, RECORDS))


def content(path, name: str) -> bytes:
    """What the standard library makes of a file."""
    data = path.read_bytes()
    return gzip.decompress(data) if name == "GZIP" else zlib.decompress(data)


OPTIONS = [{"compression_level": level} for level in (None, -1, *range(10))]
OPTIONS += [{"window_bits": 9}, {"window_bits": 15}, {"mem_level": 1}]
OPTIONS += [{"compression_strategy": zlib.Z_HUFFMAN_ONLY}, {"compression_method": zlib.DEFLATED}]
OPTIONS += [
    {"flush_mode": mode}
    for mode in (zlib.Z_NO_FLUSH, zlib.Z_PARTIAL_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH)
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_what_any_options_give_is_read_by_the_standard_library(path, name, options):
    with tfw.TFRecordWriter(path, tfw.TFRecordOptions(name, **options)) as writer:
        writer.write_many(RECORDS)
    assert CONTENT == content(path, name)
    assert RECORDS == list(tfw.read_records(path))


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


def test_a_continued_file_is_a_member_more(path):
    for level in (None, 6, 2):
        with tfw.TFRecordWriter(path, "GZIP", compression_level=level, append=True) as writer:
            writer.write_many(RECORDS)
    assert 3 * CONTENT == content(path, "GZIP")
