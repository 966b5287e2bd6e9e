"""The differences from TensorFlow in files and messages that are read and written."""

from __future__ import annotations

import gzip
import os
import re
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
import tensorflow as tf

import tfwire as tfw
from tfwire import compat

TensorFlowDataLoss = tf.errors.DataLossError


def dataset_records(path, compression=None):
    return list(tf.data.TFRecordDataset([str(path)], compression).as_numpy_iterator())


# ---- Reading files --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 11])
def test_stray_bytes(path, size):
    path.write_bytes(path.read_bytes() + bytes(size))
    assert [b"first", b"second", b"third"] == dataset_records(path)
    with pytest.raises(tfw.DataLossError) as ours:
        list(tfw.read_records(path))
    assert ("truncated", 3) == (ours.value.reason, ours.value.record_index)


def test_hostile_length(path):
    """TensorFlow's part runs in a process with a limit of memory: there it ends."""
    length = struct.pack("<Q", 2**40)
    path.write_bytes(length + struct.pack("<I", tfw.checksum.masked_crc32c(length)) + bytes(100))
    code = (
        "import resource, tensorflow as tf\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))\n"
        f"try: list(tf.data.TFRecordDataset([{str(path)!r}]))\n"
        "except tf.errors.DataLossError: pass\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert run.returncode != 0
    with pytest.raises(tfw.DataLossError) as ours:
        list(tfw.read_records(path))
    assert ours.value.reason in ("too large", "truncated")


def test_file_name(path):
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(TensorFlowDataLoss) as theirs:
        dataset_records(path)
    assert str(path) not in str(theirs.value)
    with pytest.raises(tfw.DataLossError, match=re.escape(str(path))) as ours:
        list(tfw.read_records(path))
    assert (2, 43) == (ours.value.record_index, ours.value.offset)


def test_compression_detected(tmp_path):
    tfw.write_records(tmp_path / "file", [b"record"], "GZIP")
    with pytest.raises(TensorFlowDataLoss, match="Is this even a TFRecord file"):
        dataset_records(tmp_path / "file")
    with pytest.raises(TensorFlowDataLoss, match="Is this even a TFRecord file"):
        list(tf.compat.v1.io.tf_record_iterator(str(tmp_path / "file")))
    assert [b"record"] == list(tfw.read_records(tmp_path / "file"))
    assert [b"record"] == list(compat.compat.v1.io.tf_record_iterator(tmp_path / "file"))


def test_compression_name(tmp_path):
    tfw.write_records(tmp_path / "file", [b"record"], "GZIP")
    for name in ("gzip", "LZ4"):
        with pytest.raises(TensorFlowDataLoss, match="Is this even a TFRecord file"):
            dataset_records(tmp_path / "file", name)
    assert [b"record"] == list(tfw.read_records(tmp_path / "file", "gzip"))
    assert [b"record"] == list(
        compat.data.TFRecordDataset(str(tmp_path / "file"), "gzip").as_numpy_iterator()
    )
    with pytest.raises(ValueError, match="LZ4"):
        list(tfw.read_records(tmp_path / "file", "LZ4"))
    with pytest.raises(compat.errors.InvalidArgumentError, match="LZ4"):
        compat.data.TFRecordDataset(str(tmp_path / "file"), "LZ4")


def test_zlib_members(tmp_path, path):
    data = path.read_bytes()
    twice = tmp_path / "twice"
    twice.write_bytes(zlib.compress(data) + zlib.compress(data))
    assert 3 == len(dataset_records(twice, "ZLIB"))
    assert 6 == len(list(tfw.read_records(twice)))


def test_gzip_cut(tmp_path, path):
    cut = tmp_path / "cut"
    cut.write_bytes(gzip.compress(path.read_bytes())[:-4])
    assert 3 == len(dataset_records(cut, "GZIP"))
    with pytest.raises(tfw.DataLossError) as ours:
        list(tfw.read_records(cut))
    assert "compressed stream" == ours.value.reason


# ---- Writing files and messages -------------------------------------------------------------


def test_accepted_records(tmp_path):
    example = tf.train.Example()
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in (memoryview(b"a"), example, {"a": 1}):
            with pytest.raises(TypeError):
                writer.write(record)
    with tfw.TFRecordWriter(tmp_path / "ours") as writer:
        for record in (memoryview(b"a"), example, {"a": 1}):
            writer.write(record)
    expected = [b"a", b"", tfw.encode_example({"a": 1})]
    assert expected == list(tfw.read_records(tmp_path / "ours"))


def test_accepted_paths(tmp_path):
    with pytest.raises(TypeError):
        tf.io.TFRecordWriter(tmp_path / "theirs")
    with tfw.TFRecordWriter(tmp_path / "ours"):
        pass
    assert 0 == (tmp_path / "ours").stat().st_size
    tfw.write_records(tmp_path / "set-00000-of-00001", [b"record"])
    for name in ("set-*", "set@1"):
        with pytest.raises(tf.errors.NotFoundError):
            dataset_records(tmp_path / name)
        dataset = compat.data.TFRecordDataset([str(tmp_path / name)])
        assert [b"record"] == list(dataset.as_numpy_iterator())


FORK = """
import os, sys
{imports}
writer = {writer}({path!r})
writer.write(b"record")
pid = os.fork()
if pid == 0:
    try:
        writer.close()
    finally:
        os._exit(0)
os.waitpid(pid, 0)
writer.close()
"""


def test_fork_while_writing(tmp_path):
    """The child closes the writer that it inherited with a record in its buffer."""
    writers = {
        "theirs": ("import tensorflow as tf", "tf.io.TFRecordWriter"),
        "ours": ("import tfwire", "tfwire.TFRecordWriter"),
    }
    sizes = {}
    for name, (imports, writer) in writers.items():
        path = str(tmp_path / name)
        code = FORK.format(imports=imports, writer=writer, path=path)
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        sizes[name] = os.path.getsize(path)
    assert {"theirs": 2 * 22, "ours": 22} == sizes


def test_coercion():
    for value in (True, np.bool_(True)):
        with pytest.raises(TypeError):
            tf.train.Int64List(value=[value])
        assert [1] == list(tfw.train.Int64List(value=[value]).value)
        assert [1] == tfw.decode_example(tfw.encode_example({"a": value}))["a"].tolist()
    with pytest.raises(TypeError):
        tf.train.BytesList(value=["é"])
    assert ["é".encode()] == list(tfw.train.BytesList(value=["é"]).value)


def test_mixed_types():
    with pytest.raises(ValueError, match="mixed types"):
        tf.io.serialize_tensor([True, 2.5])
    assert tf.io.serialize_tensor([1.0, 2.5]).numpy() == tfw.serialize_tensor([True, 2.5])


def test_prefix_keys():
    theirs = tf.train.Example()
    for key in ("a", "ab"):
        theirs.features.feature[key].int64_list.value.append(1)
    serialized = theirs.SerializeToString(deterministic=True)
    assert serialized.index(b"\x02ab") < serialized.index(b"\x01a\x12")
    ours = tfw.encode_example({"ab": 1, "a": 1})
    assert ours.index(b"\x01a\x12") < ours.index(b"\x02ab")
    assert theirs == tf.train.Example.FromString(ours)


def test_feature_order():
    ours, theirs = tfw.train.Example(), tf.train.Example()
    keys = [f"key{i:02d}" for i in range(30)]
    for key in keys:
        ours.features.feature[key].int64_list.value.append(1)
        theirs.features.feature[key].int64_list.value.append(1)
    assert keys != re.findall(r"key\d\d", str(theirs))
    assert keys == re.findall(r"key\d\d", str(ours))
    assert [key.encode() for key in keys] != re.findall(rb"key\d\d", theirs.SerializeToString())
    assert [key.encode() for key in keys] == re.findall(rb"key\d\d", ours.SerializeToString())


def test_message_classes():
    ours, theirs = tfw.train.Example(), tf.train.Example()
    assert not isinstance(ours, tf.train.Example)
    assert theirs.SerializeToString() == ours.SerializeToString()
