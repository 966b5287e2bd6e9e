"""Exceptions: where TensorFlow raises an OpError, so does tfwire.compat, of the same class."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow
from compared import LIBRARIES, queues

from tfwire.compat import errors

CASES = Path(__file__).with_name("error_cases.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder for each library, with a few files."""
    for library in LIBRARIES:
        here = tmp_path / library.__name__
        (here / "folder").mkdir(parents=True)
        (here / "file").write_bytes(b"no record here, just text\n" * 2)
        (here / "file2").write_bytes(b"")
        (here / "bin").write_bytes(b"\xff\xfe")
        (here / "file.gz").write_bytes(gzip.compress(b"12345678"))
        (here / "bad").write_bytes(b"x" * 100)

    def enter(library):
        monkeypatch.chdir(tmp_path / library.__name__)

    return enter


def raised(run, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(library)
        except Exception as error:
            return error
    return None


def check(run, folder):
    """Both raise an OpError of one class and code; or one of Python; or nothing."""
    found = []
    for library in LIBRARIES:
        folder(library)
        found.append(raised(run, library))
    theirs, ours = found
    if isinstance(theirs, tensorflow.errors.OpError):
        assert isinstance(ours, errors.OpError), (theirs, ours)
        assert isinstance(ours, getattr(errors, type(theirs).__name__)), (theirs, ours)
        assert ours.error_code == theirs.error_code
        assert (None, None) == (ours.op, ours.node_def)
        assert ours.message == str(ours)
    elif theirs is None:
        assert ours is None, ours
    else:
        assert any(isinstance(ours, cls) for cls in type(theirs).__mro__[:-3]), (theirs, ours)


@pytest.mark.parametrize("code", CASES)
def test_case(code, folder):
    check(lambda library: eval(code, {"tf": library, "np": np}), folder)


def write_to_a_full_disk(tf):
    with tf.io.gfile.GFile("/dev/full", "w") as file:
        file.write("x")


def write_records_to_a_full_disk(tf):
    with tf.io.TFRecordWriter("/dev/full") as writer:
        writer.write(b"x")
        writer.flush()


def write_to_a_closed_writer(tf):
    writer = tf.io.TFRecordWriter("closed")
    writer.close()
    writer.write(b"x")
    writer.flush()


@pytest.mark.parametrize(
    "write", [write_to_a_full_disk, write_records_to_a_full_disk, write_to_a_closed_writer]
)
def test_writing(write, folder):
    check(write, folder)


def in_session(build):
    def run(tf):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            fetched = build(tf, tf.compat.v1)
            with queues(tf, session):
                session.run(fetched)

    return run


def read_with(reader):
    def build(tf, v1):
        queue = v1.train.string_input_producer(["nowhere"], num_epochs=1)
        return getattr(v1, reader)().read(queue)

    return in_session(build)


@pytest.mark.parametrize(
    "run",
    [
        read_with("TFRecordReader"),
        read_with("WholeFileReader"),
        read_with("TextLineReader"),
        in_session(
            lambda tf, v1: v1.data.make_one_shot_iterator(
                tf.data.TFRecordDataset("nowhere")
            ).get_next()
        ),
        in_session(
            lambda tf, v1: v1.data.make_initializable_iterator(tf.data.Dataset.range(1)).get_next()
        ),
        in_session(
            lambda tf, v1: v1.data.make_one_shot_iterator(tf.data.Dataset.range(0)).get_next()
        ),
        in_session(lambda tf, v1: v1.placeholder(tf.int32)),
    ],
)
def test_sessions(run, folder):
    found = [raised(run, library) for library in LIBRARIES]
    assert isinstance(found[0], tensorflow.errors.OpError)
    assert isinstance(found[1], getattr(errors, type(found[0]).__name__))
    assert found[0].error_code == found[1].error_code
