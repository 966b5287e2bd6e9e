"""Messages that tell a newcomer where, what was expected and what was found."""

import io
import os
import warnings

import pytest

import tfwire as tfw
from tfwire import checksum


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, [b"cat", b"dog"])
    return path


def test_a_writer_that_was_not_closed_is_not_called_closed(path):
    writers = [tfw.TFRecordWriter(path)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        writers.clear()
    assert [f"<TFRecordWriter {path!r}> was not closed"] == [str(each.message) for each in found]


def test_appending_to_a_text_advises_no_word_that_writers_refuse(path):
    path.write_text("no records at all, just a text")
    with pytest.raises(tfw.DataLossError, match="readers detect others") as raised:
        tfw.TFRecordWriter(path, append=True)
    assert "begins like text" in str(raised.value)


@pytest.mark.parametrize("records", [5, None, io.BytesIO])
def test_what_is_no_iterable_of_records_is_named(path, records):
    refused = pytest.raises(TypeError, match="expected an iterable of records, found")
    with tfw.TFRecordWriter(path) as writer, refused:
        writer.write_many(records)
    with pytest.raises(TypeError, match="expected an iterable of records, found"):
        tfw.Receipt.of(records)


@pytest.mark.parametrize("crc", ["4waSgw==", b"1", 1.0, None, -1, 1 << 32])
def test_what_is_no_crc_is_named(crc):
    with pytest.raises((TypeError, ValueError), match=r"^crc must be"):
        checksum.base64_crc32c(crc)


def test_a_position_past_the_end_tells_how_long_the_file_is(path):
    start = tfw.RecordPosition(5, 10**9)
    with pytest.raises(tfw.DataLossError, match="the file has 38 bytes; the file was cut"):
        list(tfw.read_records(path, start=start))


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")
@pytest.mark.parametrize("num_threads", [0, 1, 2])
def test_a_read_that_fails_names_its_file(num_threads):
    path = "/proc/self/mem"  # EIO at its beginning
    if num_threads:
        parser = tfw.Parser({"x": tfw.VarLenFeature(tfw.int64)})
        records = parser.parse_file(path, batch_size=1, num_threads=num_threads)
    else:
        records = tfw.read_records(path)
    with pytest.raises(OSError, match="/proc/self/mem"):
        list(records)
