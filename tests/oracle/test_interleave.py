"""The order of records of files read in turn, beside tf.data."""

import random

import pytest
import tensorflow as tf

import tfwire as tfw

SIZES = (0, 0, 1, 2, 3, 5, 9)


@pytest.mark.parametrize("seed", range(60))
def test_files_read_in_turn_come_in_the_order_of_tf_data(tmp_path, seed):
    """Files of random sizes, also empty ones, and any number of them in turn."""
    chance = random.Random(seed)
    paths = []
    for i in range(chance.randint(1, 8)):
        paths.append(str(tmp_path / str(i)))
        size = chance.choice(SIZES)
        tfw.write_records(paths[-1], [b"%d of %d" % (j, i) for j in range(size)])
    cycle = chance.randint(1, len(paths) + 2)
    expected = tf.data.TFRecordDataset(paths, num_parallel_reads=cycle).as_numpy_iterator()
    found = tfw.TFRecordDataset(paths, num_parallel_reads=cycle)
    assert list(expected) == list(found)


@pytest.mark.parametrize("count", [0, -2])
def test_both_refuse_to_read_no_files_at_a_time(tmp_path, count):
    path = str(tmp_path / "a")
    tfw.write_records(path, [b"1"])
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(tf.data.TFRecordDataset(path, num_parallel_reads=count))
    with pytest.raises(ValueError, match="num_parallel_reads"):
        tfw.TFRecordDataset(path, num_parallel_reads=count)
