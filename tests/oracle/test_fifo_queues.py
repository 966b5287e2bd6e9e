"""tf.queue.FIFOQueue, at once and in sessions, behind readers and filled by runners."""

import pytest
import tensorflow
from test_queues import check, file_queue, files, no_eager_iterator, number, plain

import tfwire.compat

__all__ = ["files", "no_eager_iterator"]  # fixtures


def filled(tf, count=3, **options):
    queue = tf.queue.FIFOQueue(10, tf.int32, **{"shapes": [()], **options})
    queue.enqueue_many([list(range(count))])
    return queue


def closed(tf, count=3, **options):
    queue = filled(tf, count, **options)
    queue.close()
    return queue


def pairs(tf, **options):
    return tf.queue.FIFOQueue(9, [tf.int32, tf.string], **options)


def last(queue, *calls):
    """The result of the last of several calls, each a method and its arguments."""
    for name, *args in calls:
        found = getattr(queue, name)(*args)
    return found


def mapped(tf):
    queue = filled(tf)
    return list(tf.data.Dataset.range(3).map(lambda _: queue.dequeue()))


@pytest.mark.parametrize(
    "program",
    [
        lambda tf: [filled(tf).dequeue(), filled(tf).dequeue_many(2), filled(tf).size()],
        lambda tf: last(filled(tf), ("dequeue",), ("dequeue_many", 2)),
        lambda tf: [filled(tf).dequeue_many(0), closed(tf).dequeue_up_to(0)],
        lambda tf: [filled(tf).is_closed(), closed(tf).is_closed(), closed(tf).dequeue_up_to(5)],
        lambda tf: last(closed(tf), ("close", True), ("dequeue",)),
        lambda tf: last(pairs(tf), ("enqueue", [1, "a"]), ("dequeue",)),
        lambda tf: last(
            pairs(tf, shapes=[(), (2,)]),
            ("enqueue_many", ([1, 2], [["a", "b"], ["c", "d"]])),
            ("enqueue", (3, ["e", "f\0"])),
            ("dequeue_many", 3),
        ),
        lambda tf: last(pairs(tf, names=["n", "s"]), ("enqueue", {"s": "x", "n": 3}), ("dequeue",)),
        lambda tf: last(tf.queue.FIFOQueue(2, tf.string), ("enqueue", ["abc"]), ("dequeue",)),
        lambda tf: last(tf.queue.FIFOQueue(2, tf.float16), ("enqueue", [[1, 2]]), ("dequeue",)),
        lambda tf: last(tf.queue.FIFOQueue(-1, tf.bool), ("enqueue", True), ("size",)),
        lambda tf: [dtype.name for dtype in pairs(tf).dtypes],
        lambda tf: [str(shape) for shape in pairs(tf, shapes=([], [2, 3])).shapes],
        lambda tf: [str(shape) for shape in tf.queue.FIFOQueue(2, tf.int32, (3, 2)).shapes],
        lambda tf: [pairs(tf).names is None, pairs(tf, names=("a", "b")).names],
        lambda tf: [filled(tf, n, shared_name="s").size() for n in (1, 2)],
        mapped,
    ],
)
def test_queues_that_act_at_once(program):
    assert plain(program(tensorflow)) == plain(program(tfwire.compat))


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (lambda tf: closed(tf).enqueue(1), "CancelledError"),
        (lambda tf: closed(tf).enqueue_many([[1]]), "CancelledError"),
        (lambda tf: closed(tf).close(), "CancelledError"),
        (lambda tf: closed(tf, 0).dequeue(), "OutOfRangeError"),
        (lambda tf: closed(tf).dequeue_many(4), "OutOfRangeError"),
        (lambda tf: closed(tf, 0).dequeue_up_to(4), "OutOfRangeError"),
        (lambda tf: filled(tf, shapes=None).dequeue_many(2), "InvalidArgumentError"),
        (lambda tf: closed(tf, shapes=None).dequeue_up_to(2), "InvalidArgumentError"),
        (lambda tf: filled(tf).dequeue_many(-1), "InvalidArgumentError"),
        (lambda tf: filled(tf).enqueue("x"), TypeError),
        (lambda tf: filled(tf).enqueue(1.5), TypeError),
        (lambda tf: filled(tf).enqueue(tf.constant(1, tf.int64)), ValueError),
        (lambda tf: filled(tf).enqueue(None), ValueError),
        (lambda tf: filled(tf).enqueue([[1, 2]]), ValueError),
        (lambda tf: filled(tf).enqueue_many(7), ValueError),
        (lambda tf: filled(tf).enqueue_many([[[1, 2]]]), ValueError),
        (lambda tf: filled(tf).enqueue({"a": 1}), ValueError),
        (lambda tf: pairs(tf, names=["a", "b"]).enqueue([1, "x"]), ValueError),
        (lambda tf: pairs(tf, names=["a", "b"]).enqueue({"a": 1}), ValueError),
        (lambda tf: pairs(tf, names=["a"]), ValueError),
        (lambda tf: pairs(tf).enqueue([1]), "InvalidArgumentError"),
        (lambda tf: pairs(tf).enqueue_many([[1, 2], ["x"]]), ValueError),
        (lambda tf: pairs(tf, shapes=[()]), "InvalidArgumentError"),
        (lambda tf: pairs(tf, shapes=[(), (None,)]), ValueError),
        (lambda tf: tf.queue.FIFOQueue(3, []), "InvalidArgumentError"),
        (lambda tf: tf.queue.FIFOQueue("3", tf.int32), TypeError),
    ],
)
def test_errors_of_queues_that_act_at_once(program, error):
    for tf in (tensorflow, tfwire.compat):
        with pytest.raises(getattr(tf.errors, error) if isinstance(error, str) else error):
            program(tf)


# ---- In sessions ------------------------------------------------------------------------------
def results(tf, build):
    """What a session gives for the fetches and feeds that ``build`` makes, errors by name."""
    found = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for fetches, feed in build(tf.compat.v1):
            try:
                value = session.run(fetches, feed)
                found.append(None if value is None else plain(value))
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
    return found


def of_readers(reader):
    """No step waits in TensorFlow: there are files for each of them."""

    def build(v1):
        queue, reading = v1.FIFOQueue(9, v1.string, shapes=()), getattr(v1, reader)()
        names = v1.placeholder(v1.string, [None])
        add, size = queue.enqueue_many([names]), queue.size()
        record, some = reading.read(queue), reading.read_up_to(queue, 2)
        counts = reading.num_records_produced(), reading.num_work_units_completed()
        yield add, {names: [f"{name}.tfrecord" for name in "abcc"]}
        yield from [(record, None), (record, None), (counts, None)]
        yield from [(some, None), (some, None), (counts, None)]
        yield reading.reset(), None
        yield add, {names: ["nowhere", "d.tfrecord"]}
        yield queue.close(), None
        yield from [(record, None), (some, None), (counts, None)] * 5
        yield size, None

    return build


def of_shared_names(v1):
    first, second = (v1.FIFOQueue(3, v1.int32, shapes=[()], shared_name="s") for _ in range(2))
    x = second.dequeue()
    yield first.enqueue(4), None
    yield [x, x + 1], None
    yield v1.FIFOQueue(4, v1.int32, shapes=[()], shared_name="s").size(), None
    yield v1.FIFOQueue(3, v1.int64, shapes=[()], shared_name="s").size(), None
    yield v1.FIFOQueue(3, v1.int32, shared_name="s").size(), None


def of_fed_values(v1):
    queue = v1.queue.FIFOQueue(5, [v1.int32, v1.float32], shapes=[(2,), ()], names=["a", "b"])
    a, b, n = v1.placeholder(v1.int32), v1.placeholder(v1.float32), v1.placeholder(v1.int32)
    add, many = queue.enqueue({"a": a, "b": b + 1}), queue.enqueue_many({"a": a, "b": b})
    taken, several = queue.dequeue(), queue.dequeue_many(2)
    assert [str(x.shape) for x in several.values()] == ["(2, 2)", "(2,)"]
    assert [str(x.shape) for x in taken.values()] == ["(2,)", "()"]
    yield add, {a: [1, 2], b: 3}
    yield add, {a: [1, 2, 3], b: 3}
    yield many, {a: [[1, 2]], b: [3, 4]}
    yield many, {a: [[3, 4], [5, 6], [7, 8]], b: [3, 4, 5]}
    yield taken, None
    yield several, None
    yield queue.close(), None
    yield queue.dequeue_up_to(n), {n: 2}
    yield [queue.size(), queue.is_closed()], None


@pytest.mark.parametrize(
    "build",
    [of_readers(name) for name in ("TFRecordReader", "WholeFileReader", "IdentityReader")]
    + [of_shared_names, of_fed_values],
)
def test_queues_of_sessions(build):
    assert results(tensorflow, build) == results(tfwire.compat, build)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_queues_filled_by_runners(size):
    """Of more elements at once than the first queue holds, and of elements of another queue."""

    def build(v1):
        first, second = v1.FIFOQueue(2, v1.int32, [()]), v1.FIFOQueue(9, v1.int32, [()])
        x = number(v1, 7)
        for queue, add in [(first, [x, x, x * 2]), (second, [first.dequeue()])]:
            v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue_many([add])]))
        return second.dequeue_up_to(size)

    check(build)


def test_readers_of_queues_filled_by_runners():
    def build(v1):
        queue = v1.FIFOQueue(2, v1.string)
        add = queue.enqueue(file_queue(v1).dequeue())
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [add]))
        return v1.TFRecordReader().read(queue)[1]

    check(build)
