"""Input queues of TensorFlow 1 give what they give in a graph of TensorFlow.

TFWIRE_ORACLE_CASES says how many random ones, TFWIRE_ORACLE_SEED with which seed they begin.
"""

import os
import random

import numpy as np
import pytest
import tensorflow
from compared import queues

import tfwire
import tfwire.compat
from tfwire.compat._graph.session import Session

CASES = int(os.environ.get("TFWIRE_ORACLE_CASES", "150")) // 10
SEED = int(os.environ.get("TFWIRE_ORACLE_SEED", "0"))


@pytest.fixture(autouse=True)
def no_eager_iterator(monkeypatch):
    """Another test may have made one: then constants cannot be told from its elements."""
    monkeypatch.setattr(Session, "eager_elements", False)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Files of 3, 0, 5 and 1 Examples with a number each."""
    monkeypatch.chdir(tmp_path)
    for name, count in {"a": 3, "b": 0, "c": 5, "d": 1}.items():
        numbers = [{"x": ord(name) * 100 + i, "s": name * i} for i in range(count)]
        tfwire.write_records(f"{name}.tfrecord", map(tfwire.encode_example, numbers))


def run(tf, build, limit=40):
    """What a session gives until its queues end."""
    found = []
    with tf.Graph().as_default():
        fetches = build(tf.compat.v1)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            with queues(tf, session) as (coordinator, _):
                try:
                    while not coordinator.should_stop() and len(found) < limit:
                        found.append(session.run(fetches))
                except tf.errors.OutOfRangeError:
                    found.append("end")
    return [plain(values) for values in found]


def plain(value):
    if hasattr(value, "dense_shape"):
        return [plain(part) for part in (value.indices, value.values, value.dense_shape)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (str, bytes)):
        return value
    return np.asarray(value).tolist(), np.asarray(value).dtype.str


def check(build, limit=40):
    assert run(tensorflow, build, limit) == run(tfwire.compat, build, limit)


def file_queue(v1, names="abcd", **options):
    paths = [f"{name}.tfrecord" for name in names]
    return v1.train.string_input_producer(paths, **{"num_epochs": 1, "shuffle": False, **options})


def example(v1, queue):
    _, serialized = v1.TFRecordReader().read(queue)
    features = {
        "x": v1.FixedLenFeature([], v1.int64),
        "s": v1.FixedLenFeature([], v1.string),
    }
    return v1.parse_single_example(serialized, features=features)


def number(v1, limit):
    return v1.train.range_input_producer(limit, num_epochs=1, shuffle=False).dequeue()


def sparse(v1):
    _, serialized = v1.TFRecordReader().read(file_queue(v1))
    return v1.parse_single_example(serialized, features={"x": v1.VarLenFeature(v1.int64)})["x"]


def drawn(seed):
    """A pipeline with options drawn at random."""
    rng = random.Random(seed)
    names = rng.choices("abcd", k=rng.randint(1, 4))
    epochs = rng.randint(1, 3)
    size = rng.randint(1, 5)
    options = {
        "allow_smaller_final_batch": rng.random() < 0.5,
        "capacity": rng.randint(5, 20),
    }
    many, as_dict, arithmetic = (rng.random() < 0.5 for _ in range(3))

    def build(v1):
        row = example(v1, file_queue(v1, names, num_epochs=epochs))
        x = row["x"] * 2 + 1 if arithmetic else v1.cast(row["x"], v1.int32)
        tensors = {"number": x, "text": row["s"]}
        if many:
            tensors = {key: v1.expand_dims(value, 0) for key, value in tensors.items()}
        if not as_dict:
            tensors = list(tensors.values())
        return v1.train.batch(tensors, size, enqueue_many=many, **options)

    return build


@pytest.mark.parametrize("seed", range(SEED, SEED + CASES))
def test_random_queues(seed):
    check(drawn(seed))


@pytest.mark.parametrize(
    "build",
    [
        lambda v1: v1.TFRecordReader().read(file_queue(v1)),
        lambda v1: v1.WholeFileReader().read(file_queue(v1)),
        lambda v1: example(v1, file_queue(v1)),
        lambda v1: v1.IdentityReader().read(file_queue(v1)),
        lambda v1: file_queue(v1, num_epochs=3).dequeue(),
        lambda v1: file_queue(v1, num_epochs=2, capacity=1).dequeue_many(3),
        lambda v1: file_queue(v1).dequeue_up_to(3),
        lambda v1: v1.train.maybe_batch(
            [(row := example(v1, file_queue(v1)))["x"], row["s"]],
            row["x"] % 2 < 1,
            2,
            allow_smaller_final_batch=True,
        ),
        lambda v1: v1.train.maybe_batch(
            {"n": v1.stack([n := number(v1, 6), n + 10])},
            v1.stack([v1.equal(n % 2, 0), v1.equal(n % 3, 0)]),
            2,
            enqueue_many=True,
            allow_smaller_final_batch=True,
        ),
        lambda v1: v1.train.batch([sparse(v1), number(v1, 9)], 4, allow_smaller_final_batch=True),
        lambda v1: v1.train.batch(
            [v1.train.batch([number(v1, 7)], 3, allow_smaller_final_batch=True)],
            2,
            enqueue_many=True,
        ),
        lambda v1: v1.py_func(lambda s: s + b"\0", [example(v1, file_queue(v1))["s"]], v1.string),
        lambda v1: v1.string_to_number(
            v1.strings.split([v1.as_string(number(v1, 3)) + ",7"], ",").values, v1.int32
        ),
        lambda v1: v1.train.range_input_producer(4, num_epochs=2, shuffle=False).dequeue(),
        lambda v1: v1.train.slice_input_producer(
            [np.arange(4), ["a", "b", "c", "d\0"]], num_epochs=2, shuffle=False
        ),
        lambda v1: v1.train.batch([example(v1, file_queue(v1))["x"]], 2),
        lambda v1: v1.train.batch(
            v1.train.slice_input_producer([np.arange(5), np.eye(5)], num_epochs=1, shuffle=False), 2
        ),
        lambda v1: v1.data.TFRecordDataset(["a.tfrecord"]).make_one_shot_iterator().get_next(),
        lambda v1: v1.data.make_one_shot_iterator(
            v1.data.Dataset.range(3).map(lambda x: (x, {"y": x * 2}))
        ).get_next(),
    ],
)
def test_pipelines(build):
    check(build)


def test_without_end():
    check(lambda v1: example(v1, file_queue(v1, num_epochs=None)), 30)


def test_variable_lengths_are_padded():
    def build(v1):
        row = example(v1, file_queue(v1))
        bytes_of = v1.decode_raw(row["s"], v1.uint8)
        return v1.train.batch([bytes_of], 4, dynamic_pad=True, allow_smaller_final_batch=True)

    check(build)


def test_shuffled_batches_have_the_same_elements():
    def build(v1):
        row = example(v1, file_queue(v1, num_epochs=2, shuffle=True))
        return v1.train.shuffle_batch(
            [row["x"]], 4, 10, 3, num_threads=2, allow_smaller_final_batch=True
        )

    found = []
    for tf in (tensorflow, tfwire.compat):
        *batches, end = run(tf, build)
        assert "end" == end
        sizes = [len(numbers) for numbers, _ in batches]
        found.append((sizes, sorted(number for numbers, _ in batches for number in numbers)))
    assert found[0] == found[1]


@pytest.mark.parametrize("way", ["maybe_shuffle_batch", "maybe_batch_join", "batch_join"])
def test_batches_in_any_order_have_the_same_elements(way):
    def build(v1):
        rows = [{"x": example(v1, file_queue(v1, names))["x"]} for names in ("ab", "cd")]
        train, last = v1.train, {"allow_smaller_final_batch": True}
        if way == "maybe_shuffle_batch":
            return train.maybe_shuffle_batch(rows[1], 2, 10, 3, rows[1]["x"] % 2 < 1, **last)
        if way == "maybe_batch_join":
            return train.maybe_batch_join(rows, v1.constant(True), 4, **last)
        return train.batch_join(rows, 4, **last)

    found = []
    for tf in (tensorflow, tfwire.compat):
        *batches, end = run(tf, build)
        assert "end" == end
        found.append(sorted(number for batch in batches for number in batch["x"][0]))
    assert found[0] == found[1] != []


def test_rows_to_keep_of_what_is_no_batch():
    for tf in (tensorflow, tfwire.compat):
        with pytest.raises(ValueError, match="enqueue_many"):
            run(tf, lambda v1: v1.train.maybe_batch([number(v1, 3)], v1.constant([True, False]), 2))


@pytest.mark.parametrize(
    "name", ["MonitoredSession", "SingularMonitoredSession", "MonitoredTrainingSession"]
)
def test_monitored_sessions(name):
    for tf in (tensorflow, tfwire.compat):
        v1, found = tf.compat.v1, []
        with tf.Graph().as_default():
            batch = v1.train.batch([example(v1, file_queue(v1))["x"]], 2)
            with getattr(v1.train, name)() as session:
                while not session.should_stop():
                    found.append(session.run(batch).tolist())
                    assert len(found) < 10
            assert [[9700, 9701], [9702, 9900], [9901, 9902], [9903, 9904]] == found
        with tf.Graph().as_default(), pytest.raises(KeyError):
            fail_in_session(getattr(v1.train, name), v1.constant(1))


def fail_in_session(session_class, fetches):
    with session_class() as session:
        session.run(fetches)
        assert not session.should_stop()
        raise KeyError("of the user")


def test_operations_run_and_sessions_have_settings():
    for tf in (tensorflow, tfwire.compat):
        v1 = tf.compat.v1
        config = v1.ConfigProto(allow_soft_placement=True)
        config.gpu_options.allow_growth = True
        with tf.Graph().as_default(), v1.Session(config=config) as session:
            assert v1.local_variables_initializer().run() is None
            assert v1.no_op().run(session=session) is None
            assert [1, 2] == v1.constant([1, 2]).eval().tolist()
            x = v1.placeholder(v1.int32, [None, 2])
            assert [[1, 2]] == session.run(x, {x: [[1, 2]]}).tolist()
            with pytest.raises(ValueError, match="Cannot feed value of shape"):
                session.run(x, {x: [1, 2, 3]})


def test_an_error_of_the_loop_stops_the_coordinator():
    for tf in (tensorflow, tfwire.compat):
        v1, found = tf.compat.v1, []
        with tf.Graph().as_default(), v1.Session() as session:
            x = number(v1, 5)
            session.run(v1.local_variables_initializer())
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            with coordinator.stop_on_exception():
                while not coordinator.should_stop():
                    found.append(int(session.run(x)))
                    if len(found) == 2:
                        raise KeyError("of the user")
            with pytest.raises(KeyError):
                coordinator.join(threads)
        assert [0, 1] == found


def test_initializable_iterators_begin_anew():
    for tf in (tensorflow, tfwire.compat):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            dataset = tf.compat.v1.data.Dataset.range(3).map(lambda x: (x, x + 1))
            iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
            first, second = iterator.get_next()
            with pytest.raises(tf.errors.FailedPreconditionError):
                session.run(first)
            for _ in range(2):
                session.run(iterator.initializer)
                assert [0, 1] == session.run([first, second])
                assert 1 == session.run(first)


def test_reinitializable_iterators():
    for tf in (tensorflow, tfwire.compat):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            v1 = tf.compat.v1
            train = v1.data.Dataset.range(3)
            types, shapes = v1.data.get_output_types(train), v1.data.get_output_shapes(train)
            iterator = v1.data.Iterator.from_structure(types, shapes)
            element = iterator.get_next()
            session.run(iterator.make_initializer(train))
            assert 0 == session.run(element)
            session.run(iterator.make_initializer(v1.data.Dataset.range(5, 9)))
            assert [5, 6] == [session.run(element) for _ in range(2)]


def test_placeholders():
    for tf in (tensorflow, tfwire.compat):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x = tf.compat.v1.placeholder(tf.float32, [None])
            assert [3.0, 5.0] == session.run(x * 2 + 1, {x: [1, 2]}).tolist()
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(x)


def test_fetches_and_what_is_none():
    for tf in (tensorflow, tfwire.compat):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x = tf.compat.v1.placeholder_with_default(tf.constant([1, 2, 3]), [3])
            fetched = session.run({"a": x, "b": [x[1], (x - 1,)], "c": tf.no_op()})
            assert [1, 2, 3] == fetched["a"].tolist()
            assert (2, [0, 1, 2]) == (fetched["b"][0], fetched["b"][1][0].tolist())
            assert fetched["c"] is None
            for nonsense in (1, None, "x"):
                with pytest.raises((TypeError, ValueError)):
                    session.run(nonsense)
            with pytest.raises(TypeError):
                bool(x)


def test_errors_of_queues():
    for tf in (tensorflow, tfwire.compat):
        v1 = tf.compat.v1
        with tf.Graph().as_default():
            with pytest.raises(ValueError, match="non-null"):
                v1.train.string_input_producer([])
            with pytest.raises(ValueError, match="bigger"):
                v1.train.shuffle_batch([tf.constant(1)], 2, 2, 4)
            with pytest.raises(ValueError, match="default session"):
                v1.train.start_queue_runners()
            _, record = v1.TFRecordReader().read(file_queue(v1, ["nowhere"]))
            with v1.Session() as session:
                session.run(v1.local_variables_initializer())
                coordinator = v1.train.Coordinator()
                threads = v1.train.start_queue_runners(session, coordinator)
                with pytest.raises(tf.errors.NotFoundError):
                    session.run(record)
                coordinator.request_stop()
                coordinator.join(threads)


def test_coordinators():
    for tf in (tensorflow, tfwire.compat):
        clean, failed = tf.train.Coordinator(), tf.train.Coordinator()
        with clean.stop_on_exception():
            raise tf.errors.OutOfRangeError(None, None, "the end")
        assert clean.should_stop()
        clean.join()
        assert clean.joined
        with failed.stop_on_exception():
            raise KeyError("x")
        failed.request_stop(ValueError("the second one"))
        with pytest.raises(KeyError):
            failed.join([])
        failed.clear_stop()
        assert not failed.should_stop()
        assert not failed.wait_for_stop(0.001)
        failed.join()
