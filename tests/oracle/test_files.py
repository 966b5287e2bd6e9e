"""Record files both ways: what tfwire writes TensorFlow reads, and the reverse, byte for byte."""

from __future__ import annotations

import gzip
import zlib

import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from tfwire import compat

INFLATE = {None: bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}
COMPRESSIONS = list(INFLATE)

RECORDS = [b"", b"a", b"\x00" * 376, bytes(range(256)) * 100, b"x" * 300_000, b"", b"end"]


def tensorflow_write(path, records, compression):
    with tf.io.TFRecordWriter(str(path), options=compression) as writer:
        for record in records:
            writer.write(record)


def tensorflow_read(path, compression):
    dataset = tf.data.TFRecordDataset([str(path)], compression_type=compression)
    return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_what_tfwire_writes(tmp_path, compression):
    path = tmp_path / "ours"
    tfw.write_records(path, RECORDS, compression)
    assert RECORDS == tensorflow_read(path, compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_what_threads_write(tmp_path, compression):
    """With GZIP in several members."""
    path, columns = tmp_path / "ours", {"x": list(range(200_000))}
    with tfw.TFRecordWriter(path, compression, num_threads=3) as writer:
        writer.write_columns(columns)
    assert compression != "GZIP" or path.read_bytes().count(b"\x1f\x8b\x08\0\0\0\0\0") > 2
    assert tfw.encode_columns(columns) == tensorflow_read(path, compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tfwire_reads_what_tensorflow_writes(tmp_path, compression):
    path = tmp_path / "theirs"
    tensorflow_write(path, RECORDS, compression)
    assert RECORDS == list(tfw.read_records(path))
    assert RECORDS == list(tfw.read_records(path, compression_type=compression))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_both_write_the_same_bytes(tmp_path, compression):
    """Compressed streams may differ with the compressor; what they hold may not."""
    tfw.write_records(tmp_path / "ours", RECORDS, compression)
    tensorflow_write(tmp_path / "theirs", RECORDS, compression)
    inflate = INFLATE[compression]
    ours, theirs = (inflate((tmp_path / name).read_bytes()) for name in ("ours", "theirs"))
    assert theirs == ours


def test_one_record_at_a_time_and_in_bulk_give_the_same_file(tmp_path):
    tensorflow_write(tmp_path / "theirs", RECORDS, None)
    with tfw.TFRecordWriter(tmp_path / "singly") as writer:
        for record in RECORDS:
            writer.write(record)
    with tfw.TFRecordWriter(tmp_path / "bulk") as writer:
        writer.write_many(RECORDS)
    theirs = (tmp_path / "theirs").read_bytes()
    assert theirs == (tmp_path / "singly").read_bytes()
    assert theirs == (tmp_path / "bulk").read_bytes()


@settings(max_examples=25, deadline=None)
@given(
    records=st.lists(st.binary(max_size=2000), max_size=20),
    compression=st.sampled_from(COMPRESSIONS),
)
def test_random_files_go_both_ways(tmp_path_factory, records, compression):
    folder = tmp_path_factory.mktemp("random")
    tfw.write_records(folder / "ours", records, compression)
    tensorflow_write(folder / "theirs", records, compression)
    assert records == tensorflow_read(folder / "ours", compression)
    assert records == list(tfw.read_records(folder / "theirs", compression))


def test_tf_record_iterator_gives_the_same_records(tmp_path):
    path = tmp_path / "theirs"
    tensorflow_write(path, RECORDS, None)
    theirs = list(tf.compat.v1.io.tf_record_iterator(str(path)))
    assert theirs == list(compat.compat.v1.io.tf_record_iterator(path))
