"""More of TensorFlow 1: readers of compressed files, sparse tensors, and the record iterator, over
files that other code writes meanwhile."""

import gzip
import os
import pickle
import random
import zlib

import pytest

import tfwire
import tfwire.compat as tf
import tfwire.compat.v1 as v1
from helpers.reading import open_files
from helpers.reference import file_of, flip


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


# ---- Sparse tensors of a graph ------------------------------------------------------------------
def test_sparse_tensors_of_a_graph():
    numbers = v1.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    sparse = tf.SparseTensor([[0], [2]], [numbers, numbers + 1], dense_shape=[4])
    with v1.Session() as session:
        assert [0, 1] == session.run(sparse).values.tolist()
        assert [1, 0, 2, 0] == session.run(tf.sparse.to_dense(sparse)).tolist()
        assert [2, 3] == session.run(sparse.values).tolist()


def test_batches_of_sparse_tensors_of_a_graph():
    numbers = v1.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    sparse = tf.SparseTensor(tf.stack([[tf.cast(numbers, tf.int64)]]), [numbers], [5])
    batch = v1.train.batch([numbers, sparse], 2)
    with v1.Session() as session:
        found = [session.run(batch) for _ in range(2)]
    assert [[0, 1], [2, 3]] == [first.tolist() for first, _ in found]
    assert [[[0, 2], [1, 3]]] == [second.indices.tolist() for _, second in found[1:]]
    assert [2, 5] == found[0][1].dense_shape.tolist()


def test_a_sparse_tensor_of_values_is_one():
    sparse = tf.SparseTensor(indices=[[1]], values=[2], dense_shape=[3])
    assert isinstance(sparse, tf.SparseTensor)
    again = tf.SparseTensor.from_value(pickle.loads(pickle.dumps(sparse.plain)))
    assert [0, 2, 0] == tf.sparse.to_dense(again).numpy().tolist()


# ---- Sparse tensors by TensorFlow's functions ---------------------------------------------------
def test_sparse_tensors_in_order():
    sparse = tf.SparseTensor([[1, 0], [0, 2], [0, 1]], [3, 2, 1], [2, 3])
    assert [1, 2, 3] == tf.sparse.reorder(sparse).values.numpy().tolist()
    indicated = tf.sparse.to_indicator(sparse, 4).numpy()
    assert [[False, True, True, False], [False, False, False, True]] == indicated.tolist()
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of the range"):
        tf.sparse.to_indicator(sparse, 3)
    with pytest.raises(TypeError, match="SparseTensor, found int"):
        tf.sparse.reorder(3)


def test_ragged_tensors_of_sparse_ones():
    rows = tf.RaggedTensor.from_sparse(tf.SparseTensor([[2, 0], [0, 0], [0, 1]], [3, 1, 2], [4, 5]))
    assert [[1, 2], [], [3], []] == rows.to_list()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a gap"):
        tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 1]], [1], [1, 2]))
    with pytest.raises(ValueError, match="rank 2"):
        tf.RaggedTensor.from_sparse(tf.SparseTensor([[0]], [1], [1]))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([1, 3], [4], 7, 1), [1, 7, 1, 7]),
        ((2, [3], "a", ""), [b"", b"", b"a"]),
        (([[0, 1], [1, 0]], [2, 2], [5, 6]), [[0, 5], [6, 0]]),
        (([3, 1], [4], [5, 6], 0, False), [0, 6, 0, 5]),
    ],
    ids=str,
)
def test_dense_tensors_of_indices_and_values(arguments, expected):
    assert expected == tf.sparse_to_dense(*arguments).numpy().tolist()


@pytest.mark.parametrize(
    "arguments",
    [([4], [4], 1), ([-1], [4], 1), ([1, 1], [4], 1), ([2, 1], [4], 1), ([0], [2, 2], 1)]
    + [([0, 1], [4], [1, 2, 3])],
    ids=str,
)
def test_indices_that_do_not_fit(arguments):
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.sparse_to_dense(*arguments)


# ---- FIFOQueue ----------------------------------------------------------------------------------
def test_a_queue_that_acts_at_once_waits_for_nothing():
    queue = tf.queue.FIFOQueue(2, [tf.int64, tf.string], shapes=[(), ()], name="q")
    with pytest.raises(tf.errors.DeadlineExceededError, match=r"'q' has .* \(requested 1, current"):
        queue.dequeue()
    queue.enqueue([1, "a"])
    with pytest.raises(tf.errors.DeadlineExceededError, match=r"of capacity 2 has 1 .* for 2"):
        queue.enqueue_many([[2, 3], ["b", "c"]])
    queue.enqueue([2, "b"])
    with pytest.raises(tf.errors.DeadlineExceededError):
        queue.dequeue_many(3)
    assert [[1, 2], [b"a", b"b"]] == [x.numpy().tolist() for x in queue.dequeue_many(2)]
    queue.close()
    with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        queue.dequeue()


def test_sessions_have_queues_of_their_own():
    """A name of TensorFlow 1 alone makes a queue of a graph by default."""
    queue = tf.FIFOQueue(3, tf.int32)
    add, taken = queue.enqueue(5), queue.dequeue()
    for _ in range(2):
        with v1.Session() as session:
            assert session.run(add) is None
            assert [5, 6] == session.run([taken, taken + 1])
            add.run(session=session)
            assert 1 == session.run(queue.size())


def test_operations_that_add_nothing_do_not_fill_a_queue():
    queue = v1.FIFOQueue(3, tf.int32)
    v1.train.add_queue_runner(v1.train.QueueRunner(queue, [v1.no_op()]))
    with v1.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(queue.dequeue())


def test_a_runner_goes_on_after_an_error_and_closes_its_queue():
    numbers = v1.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
    queue, failing = v1.FIFOQueue(3, tf.int32), [False, True, False, False]

    def checked(number):
        if failing.pop(0):
            raise tf.errors.DataLossError(None, None, "of one")
        return number

    add = queue.enqueue(v1.py_func(checked, [numbers], v1.int32))
    runner = v1.train.QueueRunner(queue, [add])
    with v1.Session() as session:
        assert [] == runner.create_threads(session, start=True)
        assert 0 == session.run(queue.dequeue())
        with pytest.raises(tf.errors.DataLossError):
            session.run(queue.dequeue())
        assert 2 == session.run(queue.dequeue())
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue())
        assert session.run(queue.is_closed())


def test_a_reader_goes_on_once_its_queue_has_names(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    queue = v1.FIFOQueue(3, tf.string)
    _, line = v1.TextLineReader().read(queue)
    add = queue.enqueue([str(path)])
    with v1.Session() as session:
        for _ in range(2):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(line)
            session.run(add)
            assert [b"one", b"two"] == [session.run(line) for _ in range(2)]


# ---- The record iterator ---------------------------------------------------------------------


RECORDS = [b"one", b"", b"three\0", b"x" * 100, b"five"]


def available(iterator):
    """What the iterator gives now, and how that ends."""
    found = []
    try:
        for record in iterator:
            found.append(record)
    except tf.errors.DataLossError:
        return found, "damage"
    return found, "end"


@pytest.mark.parametrize("step", [1, 70])
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
