"""The rows about graphs of docs/differences.md, a test each."""

import numpy as np
import pytest
import tensorflow as tf

import tfwire.compat as tfc


@pytest.fixture(params=[tf, tfc], ids=["tensorflow", "tfwire"], autouse=True)
def lib(request):
    with request.param.Graph().as_default():
        yield request.param


def rows(lib, *tensors):
    """What a slice_input_producer gives until its end."""
    v1 = lib.compat.v1
    fetches = v1.train.slice_input_producer(list(tensors), num_epochs=1, shuffle=False)
    found = []
    with v1.train.SingularMonitoredSession() as session:
        while not session.should_stop():
            found.append([int(x) for x in session.run(fetches)])
    return found


def test_queue_close(lib):
    v1 = lib.compat.v1
    queue = v1.train.string_input_producer(["a"], num_epochs=1)
    with v1.Session() as session:
        session.run(v1.local_variables_initializer())
        session.run(queue.close())
        if lib is tf:
            with pytest.raises(lib.errors.OutOfRangeError):
                session.run(queue.dequeue())
        else:
            assert b"a" == session.run(queue.dequeue())


def test_queue_waits(lib):
    """TensorFlow with a time limit, which it has not by default."""
    v1 = lib.compat.v1
    queue = v1.FIFOQueue(2, lib.int32, shapes=[()])
    config = v1.ConfigProto(operation_timeout_in_ms=200)
    for calls in (
        [queue.dequeue()],
        [queue.enqueue(1), queue.enqueue(2), queue.enqueue(3)],
        [queue.enqueue_many([[1, 2, 3]])],
        [queue.enqueue(1), queue.dequeue_many(2)],
        [queue.enqueue(1), queue.dequeue_up_to(2)],
    ):
        with v1.Session(config=config) as session:
            for call in calls[:-1]:
                session.run(call)
            with pytest.raises(lib.errors.DeadlineExceededError):
                session.run(calls[-1])


def test_queue_components(lib):
    queue = lib.compat.v1.FIFOQueue(2, lib.int32, shapes=[()])
    if lib is tf:
        queue.enqueue([1, 2])
    else:
        with pytest.raises(lib.errors.InvalidArgumentError, match="found 2"):
            queue.enqueue([1, 2])


def test_uneven_tensors(lib):
    lists = [[lib.constant(1)], [lib.constant(2), lib.constant(3)]]
    if lib is tf:
        assert [[1, 1], [2, 2]] == rows(lib, [1, 2], [1, 2, 3])
        assert isinstance(lib.compat.v1.train.batch_join(lists, 2), tf.Tensor)
    else:
        with pytest.raises(ValueError, match="first axis"):
            rows(lib, [1, 2], [1, 2, 3])
        with pytest.raises(ValueError, match="same length"):
            lib.compat.v1.train.batch_join(lists, 2)


def test_graph_shapes(lib):
    v1 = lib.compat.v1
    queue = v1.train.string_input_producer(["a", "bc"], num_epochs=1, shuffle=False)
    values = v1.decode_raw(queue.dequeue(), v1.uint8)
    if lib is tf:
        assert "uint8" == values.dtype.name
        with pytest.raises(ValueError, match="fully defined"):
            v1.train.batch([values], 2)
        return
    with pytest.raises(TypeError, match="dtype"):
        _ = values.dtype
    assert values.shape.rank is None
    with v1.Session() as session:
        assert [[97]] == session.run(v1.train.batch([values], 1)).tolist()
    with v1.Session() as session, pytest.raises(lib.errors.InvalidArgumentError):
        session.run(v1.train.batch([values], 2))


def test_fed_tensors(lib):
    v1 = lib.compat.v1
    constant, doubled = v1.constant(3), v1.placeholder(v1.int64) * 2
    with v1.Session() as session:
        if lib is tf:
            assert 10 == session.run(constant * 2, {constant: 5})
        else:
            with pytest.raises(TypeError, match="hashable"):
                session.run(constant * 2, {constant: 5})
        found = session.run(doubled + doubled, {doubled: 5})
    assert 10 == found
    assert np.asarray(found).dtype == (np.int64 if lib is tf else np.int32)


def test_dataset_of_placeholder(lib):
    v1 = lib.compat.v1
    names = v1.placeholder(v1.string, [None])
    if lib is tf:
        v1.data.make_initializable_iterator(v1.data.TFRecordDataset(names))
    else:
        for make in (v1.data.TFRecordDataset, v1.data.Dataset.from_tensor_slices):
            with pytest.raises(TypeError, match="datasets take the value itself"):
                make(names)
