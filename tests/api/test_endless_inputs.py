"""Inputs without an end: every function that opens a path refuses them or reads a bounded part."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tfwire as tfw
import tfwire.compat as tf
from helpers.command import ENVIRONMENT, tfwire_command
from helpers.reference import frame
from tfwire._parsing.schema_files import read_schema
from tfwire._records.index.random_access import TFRecordFile
from tfwire._records.index.record_index import RecordIndex
from tfwire._records.reading.verify_files import verify_file
from tfwire._records.writing.repair_file import repair_file

pytestmark = pytest.mark.outside_c

ZERO = "/dev/zero"
SPEC = {"a": tfw.VarLenFeature(tfw.int64)}

# By name: a function of the path of a device and of a directory for outputs.
CALLS = {
    "read": lambda path, _: list(tfw.read_records(path)),
    "read, no verify": lambda path, _: list(tfw.read_records(path, verify=False)),
    "read, GZIP": lambda path, _: list(tfw.read_records(path, "GZIP")),
    "read, ZLIB": lambda path, _: list(tfw.read_records(path, "ZLIB")),
    "read, tail": lambda path, _: list(tfw.read_records(path, on_corrupt="tail")),
    "read, skip": lambda path, _: list(tfw.read_records(path, on_corrupt="skip")),
    "GZIP, skip": lambda path, _: list(tfw.read_records(path, "GZIP", on_corrupt="skip")),
    "dataset": lambda path, _: list(tfw.TFRecordDataset(path)),
    "infer": lambda path, _: tfw.infer_schema(path),
    "verify": lambda path, _: verify_file(path),
    "verify, crc32c": lambda path, _: verify_file(path, file_crc32c=True),
    "verify, object": lambda path, _: verify_object(path),
    "repair": lambda path, folder: repair_file(path, folder / "out"),
    "repair, correct": lambda path, folder: repair_file(path, folder / "out", correct=True),
    "index": lambda path, _: RecordIndex.build(path),
    "index, GZIP": lambda path, _: RecordIndex.build(path, "GZIP"),
    "load": lambda path, _: RecordIndex.load(path),
    "file": lambda path, _: TFRecordFile(path),
    "append": lambda path, _: tfw.TFRecordWriter(path, append=True),
    "schema": lambda path, _: read_schema(path),
    "tf.read_file": lambda path, _: tf.io.read_file(path),
    "tf.copy": lambda path, folder: tf.io.gfile.copy(path, folder / "out"),
    "tf.lines": lambda path, _: list(tf.data.TextLineDataset(path)),
    "tf.chunks": lambda path, _: list(tf.data.FixedLengthRecordDataset(path, 8)),
    "tf.records": lambda path, _: list(tf.data.TFRecordDataset(path)),
}


def verify_object(path):
    with open(path, "rb") as file:
        verify_file(file)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_endless_device_is_refused(call, tmp_path):
    with pytest.raises((tfw.DataLossError, ValueError)):
        call(ZERO, tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_what_looks_for_records_up_to_the_end_says_why_it_does_not():
    with pytest.raises(ValueError, match="/dev/zero: expected an input that ends"):
        verify_file(ZERO)


def test_stop_ends_at_the_first_zeros():
    with pytest.warns(tfw.TfwireWarning, match="512 bytes"):
        assert [] == list(tfw.read_records(ZERO, on_corrupt="stop"))


def test_the_null_device_ends(tmp_path):
    assert [] == list(tfw.read_records("/dev/null", on_corrupt="skip"))
    assert verify_file("/dev/null").intact


def test_the_schema_of_a_pipe_is_read(tmp_path):
    schema = tmp_path / "schema.json"
    tfw.write_schema(SPEC, schema)
    code = "import sys, tfwire._parsing.schema_files as s; print(*s.read_schema('/dev/stdin'))"
    data = schema.read_bytes()
    command = [sys.executable, "-c", code]
    assert b"a" == subprocess.check_output(command, input=data, env=ENVIRONMENT).strip()


@pytest.mark.parametrize("command", ["info", "verify", "count", "head", "cat", "index"])
@pytest.mark.parametrize("name", [ZERO, "-"])
def test_the_command_refuses_an_endless_device(command, name):
    with open(ZERO, "rb") as zeros:
        found = tfwire_command(command, name, stdin=zeros)
    assert found.returncode in (1, 2)
    assert "Traceback" not in found.stderr


def test_zeros_after_records_are_damage_and_no_wait_for_more():
    """Of a pipe that its writer never closes."""
    writer = subprocess.Popen(["cat", "-", ZERO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with writer:
        writer.stdin.write(frame(b"intact"))
        writer.stdin.close()
        records = tfw.read_records(writer.stdout)
        assert b"intact" == next(records)
        with pytest.raises(tfw.DataLossError):
            next(records)
        writer.kill()
        writer.stdout.close()
