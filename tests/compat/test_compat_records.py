"""The record iterator of TensorFlow 1, over files that other code writes meanwhile."""

import os
import random

import pytest

import tfwire
import tfwire.compat as tf
from helpers.reading import open_files
from helpers.reference import file_of, flip

RECORDS = [b"one", b"", b"three\0", b"x" * 1000, b"five"]


def available(iterator):
    """What the iterator gives now, and how that ends."""
    found = []
    try:
        for record in iterator:
            found.append(record)
    except tf.errors.DataLossError:
        return found, "damage"
    return found, "end"


@pytest.mark.parametrize("step", [1, 7, 100])
def test_it_goes_on_when_the_file_has_grown(tmp_path, step):
    """Cut at any byte: whole records come once each, an incomplete one is damage for now."""
    path = tmp_path / "events"
    data = file_of(RECORDS)
    path.write_bytes(b"")
    iterator = tf.compat.v1.io.tf_record_iterator(str(path))
    ends = [len(file_of(RECORDS[: i + 1])) for i in range(len(RECORDS))]
    given = []
    for size in [*range(0, len(data), step), len(data)]:
        path.write_bytes(data[:size])
        for _ in range(2):  # the end and the damage are repeated
            found, how = available(iterator)
            given += found
            assert RECORDS[: sum(end <= size for end in ends)] == given
            assert ("end" if size in (0, *ends) else "damage") == how


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_what_a_writer_flushes_comes(tmp_path, kind):
    path = str(tmp_path / "events")
    rng = random.Random(1)
    options = tf.io.TFRecordOptions(compression_type=kind)
    with tf.io.TFRecordWriter(path, options) as writer:
        iterator = tf.python_io.tf_record_iterator(path, options)
        for number in range(20):
            records = [b"%d" % number * rng.randint(0, 50) for _ in range(rng.randint(0, 4))]
            for record in records:
                writer.write(record)
            writer.flush()
            assert (records, "end") == available(iterator)
    assert ([], "end") == available(iterator)


def test_damage_is_repeated(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(flip(file_of(RECORDS), 8 * (len(file_of(RECORDS[:2])) + 13)))
    iterator = tf.compat.v1.io.tf_record_iterator(str(path))
    assert (RECORDS[:2], "damage") == available(iterator)
    for _ in range(3):
        with pytest.raises(tf.errors.DataLossError, match="record 2 "):
            next(iterator)
    path.write_bytes(file_of(RECORDS))
    assert (RECORDS[2:], "end") == available(iterator)


def test_closing_and_reopening(tmp_path):
    path = str(tmp_path / "data")
    tfwire.write_records(path, RECORDS)
    iterator = tf.compat.v1.io.tf_record_iterator(path)
    assert iterator is iter(iterator)
    assert RECORDS[0] == next(iterator)
    with pytest.raises(tf.errors.FailedPreconditionError, match="not closed"):
        iterator.reopen()
    before = open_files()
    iterator.close()
    iterator.close()
    assert 1 == len(before - open_files())
    assert ([], "end") == available(iterator)
    iterator.reopen()
    assert (RECORDS[1:], "end") == available(iterator)
    with tfwire.TFRecordWriter(path, append=True) as writer:
        writer.write(b"six")
    assert ([b"six"], "end") == available(iterator)


def test_no_file_is_open_at_the_end(tmp_path):
    """Many iterators can wait for their files to grow."""
    path = str(tmp_path / "data")
    tfwire.write_records(path, RECORDS)
    before = open_files()
    iterators = [tf.compat.v1.io.tf_record_iterator(path) for _ in range(50)]
    for iterator in iterators:
        assert (RECORDS, "end") == available(iterator)
    assert set() == open_files() - before


def test_a_missing_file_is_told_at_once(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        tf.compat.v1.io.tf_record_iterator(str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="nothing"):
        tf.python_io.tf_record_iterator(path=str(tmp_path / "nothing"))


def test_a_file_that_became_shorter_is_damage(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(file_of(RECORDS))
    iterator = tf.compat.v1.io.tf_record_iterator(str(path))
    assert (RECORDS, "end") == available(iterator)
    path.write_bytes(file_of(RECORDS[:2]))
    assert ([], "damage") == available(iterator)


@pytest.mark.parametrize("replacement", [[b"one", b"two", b"three"], [b"other"], None])
def test_a_replaced_file_counts_after_reopen(tmp_path, replacement):
    path, new = str(tmp_path / "data"), str(tmp_path / "new")
    tfwire.write_records(path, [b"one", b"two"])
    iterator = tf.compat.v1.io.tf_record_iterator(path)
    assert b"one" == next(iterator)
    if replacement is None:
        os.remove(path)
    else:
        tfwire.write_records(new, replacement)
        os.replace(new, path)
    assert [b"two"] == list(iterator)
    assert [] == list(iterator)
    iterator.close()
    assert [] == list(iterator)
    if replacement is None:
        with pytest.raises(tf.errors.NotFoundError):
            iterator.reopen()
        return
    iterator.reopen()
    if len(replacement) > 1:
        assert [b"three"] == list(iterator)
    else:
        with pytest.raises(tf.errors.DataLossError, match="cut or replaced"):
            next(iterator)


def test_a_cut_file_that_is_replaced_stays_cut_until_reopen(tmp_path):
    path, new = tmp_path / "data", tmp_path / "new"
    tfwire.write_records(new, [b"one", b"two"])
    path.write_bytes(new.read_bytes()[:-1])
    iterator = tf.compat.v1.io.tf_record_iterator(str(path))
    assert b"one" == next(iterator)
    for _ in range(2):
        with pytest.raises(tf.errors.DataLossError):
            next(iterator)
    os.replace(new, path)
    with pytest.raises(tf.errors.DataLossError):
        next(iterator)
    iterator.close()
    iterator.reopen()
    assert [b"two"] == list(iterator)
