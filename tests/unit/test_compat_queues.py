"""More of the queues and readers of TensorFlow 1."""

import gzip
import zlib

import pytest

import tfwire.compat as tf
import tfwire.compat.v1 as v1


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB", "", None])
def test_records_of_one_length_of_compressed_files(tmp_path, kind):
    path, body = tmp_path / "file", b"h" + b"abcdef" + b"ff"
    pack = {"GZIP": gzip.compress, "ZLIB": zlib.compress}.get(kind, bytes)
    path.write_bytes(pack(body))
    queue = v1.train.string_input_producer([str(path)], num_epochs=1)
    options = {"header_bytes": 1, "footer_bytes": 2, "encoding": kind}
    _, overlapping = v1.FixedLengthRecordReader(4, hop_bytes=2, **options).read(queue)
    with v1.Session() as session:
        assert [b"abcd", b"cdef"] == [session.run(overlapping) for _ in range(2)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(overlapping)
