"""Queues, sessions and iterators of TensorFlow 1, as far as no TensorFlow is needed to compare."""

import gzip
import os
import threading
import time

import numpy as np
import pytest

import tfwire
import tfwire.compat as tf
import tfwire.compat.v1 as v1
from helpers.command import output_of_python
from helpers.reading import open_files
from helpers.reference import file_of, flip

RECORDS = [b"one", b"two\0", b"", b"three"]


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "data.tfrecord")
    tfwire.write_records(found, RECORDS)
    return found


def until_end(session, fetches):
    found = []
    try:
        while len(found) < 1000:
            found.append(session.run(fetches))
    except tf.errors.OutOfRangeError:
        return found
    raise AssertionError("there is no end")


# ---- Graphs -------------------------------------------------------------------------------------


def test_a_node_is_evaluated_once_in_a_run(path):
    calls = []
    queue = v1.train.string_input_producer([path], num_epochs=1)
    _, record = v1.TFRecordReader().read(queue)
    length = tf.py_function(lambda r: calls.append(1) or len(r.numpy()), [record], tf.int64)
    with v1.Session() as session:
        assert [3, 6, b"one", 3] == session.run([length, length * 2, record, tf.abs(-length)])
        assert 1 == len(calls)
        assert (4, b"two\0") == session.run((length, record)), "no trailing zero is lost"


def test_operators_and_indexing():
    x = v1.placeholder(tf.int32)
    expressions = {
        "sum": 10 - x + 1,
        "product": 2 * x,
        "part": x[1:],
        "remainder": x % 2,
        "power": x**2,
        "less": x < 2,
        "negative": -x,
        "difference": tf.constant(5) - x,
        "comparison": tf.constant(2) > x,
    }
    with v1.Session() as session:
        found = session.run(expressions, feed_dict={x: [1, 2, 3]})
    assert {
        "sum": [10, 9, 8],
        "product": [2, 4, 6],
        "part": [2, 3],
        "remainder": [1, 0, 1],
        "power": [1, 4, 9],
        "less": [True, False, False],
        "negative": [-1, -2, -3],
        "difference": [4, 3, 2],
        "comparison": [True, False, False],
    } == {key: value.tolist() for key, value in found.items()}


def test_conditions_take_values_of_the_graph():
    flag, x = v1.placeholder(tf.bool), v1.placeholder(tf.int32)
    chosen = tf.cond(flag, lambda: x * 2, lambda: (x + 1) * 3)
    with v1.Session() as session:
        assert [8, 15] == [session.run(chosen, {flag: on, x: 4}) for on in (True, False)]


def test_a_graph_has_no_values_before_it_runs():
    x = v1.placeholder(tf.int32, [None, 3])
    assert [None, 3] == x.get_shape().as_list()
    assert isinstance(x, tf.Tensor)
    assert "Session.run" in f"{x} {x!r}"
    for use in (bool, list, len, int, float, np.asarray, lambda x: x.numpy(), lambda x: x.dtype):
        with pytest.raises(TypeError, match=r"Session\.run"):
            use(x + 1)
    with pytest.raises(AttributeError, match=r"tf\.cast"):
        x.astype(int)
    assert {x: 1} == {x: 1}, "hashable, as keys of feed_dict"


def test_sparse_features_have_parts(tmp_path):
    path = str(tmp_path / "data")
    tfwire.write_records(path, [tfwire.encode_example({"a": [5, 6]})])
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer([path]))
    sparse = v1.parse_single_example(record, {"a": v1.VarLenFeature(v1.int64)})["a"]
    with v1.Session() as session:
        values, dense, whole = session.run(
            [sparse.values, v1.sparse_tensor_to_dense(sparse), sparse]
        )
    assert [5, 6] == values.tolist() == dense.tolist() == whole.values.tolist()


def test_sequence_examples(tmp_path):
    path = str(tmp_path / "data")
    example = tfwire.encode_sequence_example({"n": 2}, {"w": [[1], [2]]})
    tfwire.write_records(path, [example])
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer([path]))
    context, lists = v1.parse_single_sequence_example(
        record,
        {"n": v1.FixedLenFeature([], v1.int64)},
        {"w": v1.FixedLenSequenceFeature([], v1.int64)},
    )
    with v1.Session() as session:
        n, w = session.run([context["n"], lists["w"]])
    assert (2, [1, 2]) == (n, w.tolist())


# ---- Sessions -----------------------------------------------------------------------------------


def test_every_session_begins_anew(path):
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer([path], num_epochs=1))
    for _ in range(2):
        with v1.Session() as session:
            assert RECORDS == until_end(session, record)


def test_the_default_session():
    x = v1.placeholder_with_default(tf.constant(3), [])
    with pytest.raises(ValueError, match="default session"):
        x.eval()
    with v1.Session() as outer:
        assert outer is v1.get_default_session()
        with v1.Session().as_default() as inner:
            assert inner is v1.get_default_session()
            assert 3 == x.eval()
        assert outer is v1.get_default_session()
    assert None is v1.get_default_session()
    interactive = v1.InteractiveSession()
    assert 4 == (x + 1).eval()
    interactive.close()
    with pytest.raises(RuntimeError, match="closed"):
        interactive.run(x)
    assert None is v1.get_default_session()


def test_a_session_closes_its_files(path):
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer([path]))
    before = open_files()
    with v1.Session() as session:
        session.run(record)
        assert 1 == len(open_files() - before)
    assert set() == open_files() - before


def test_threads_share_a_session(path):
    queue = v1.train.string_input_producer([path], num_epochs=50)
    batch = v1.train.batch([v1.TFRecordReader().read(queue)[1]], 4)
    found = []
    with v1.Session() as session:
        threads = [
            threading.Thread(target=lambda: found.extend(until_end(session, batch)))
            for _ in range(4)
        ]
        coordinator = v1.train.Coordinator()
        for thread in threads:
            thread.start()
        coordinator.join(threads, stop_grace_period_secs=60)
    assert sorted(RECORDS * 50) == sorted(r for one in found for r in one)


# ---- Queues -------------------------------------------------------------------------------------


def test_shuffled_epochs_have_every_file_once():
    queue = v1.train.string_input_producer(list("abcdefgh"), num_epochs=3, seed=1)
    with v1.Session() as session:
        names = until_end(session, queue.dequeue())
    epochs = [names[i : i + 8] for i in range(0, 24, 8)]
    assert [sorted(epoch) for epoch in epochs] == [[bytes([c]) for c in b"abcdefgh"]] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_shuffled_batches_mix_as_far_as_the_queue_is_long():
    (numbers,) = v1.train.slice_input_producer([np.arange(1000)], num_epochs=1, shuffle=False)
    batch = v1.train.shuffle_batch([numbers], 10, capacity=60, min_after_dequeue=50, seed=3)
    with v1.Session() as session:
        batches = until_end(session, batch)
    assert 100 == len(batches)
    assert sorted(np.concatenate(batches)) == list(range(1000))
    assert batches[0].max() < 60 + 10
    assert 20 < np.mean([abs(x - 10 * i) for i, one in enumerate(batches) for x in one]) < 100


def test_batches_of_several_readers_take_turns(tmp_path):
    reads = []
    for name in "ab":
        path = str(tmp_path / name)
        tfwire.write_records(path, [name.encode() * i for i in range(1, 4)])
        queue = v1.train.string_input_producer([path], num_epochs=1)
        reads.append([v1.TFRecordReader().read(queue)[1]])
    batch = v1.train.batch_join(reads, 2)
    with v1.Session() as session:
        assert [[b"a", b"b"], [b"aa", b"bb"], [b"aaa", b"bbb"]] == [
            one.tolist() for one in until_end(session, batch)
        ]
    mixed = v1.train.shuffle_batch_join(reads, 2, 10, 3, seed=1)
    with v1.Session() as session:
        assert 3 == len(until_end(session, mixed))


def test_names_that_match_are_looked_for_when_a_session_asks(tmp_path):
    names = v1.train.match_filenames_once(str(tmp_path / "*.rec"))
    queue = v1.train.string_input_producer(names, num_epochs=1, shuffle=False)
    _, record = v1.TFRecordReader().read(queue)
    for name in "ba":
        tfwire.write_records(str(tmp_path / f"{name}.rec"), [name.encode()])
    with v1.Session() as session:
        assert [b"a", b"b"] == until_end(session, record)


def test_readers_of_other_files(tmp_path):
    text, packed = tmp_path / "text", tmp_path / "packed.gz"
    text.write_bytes(b"head\none\r\ntwo")
    packed.write_bytes(gzip.compress(file_of(RECORDS)))
    texts = v1.train.string_input_producer([str(text)], num_epochs=1)
    files = v1.train.string_input_producer([str(packed)], num_epochs=1)
    options = v1.io.TFRecordOptions(v1.io.TFRecordCompressionType.GZIP)
    with v1.Session() as session:
        lines = v1.TextLineReader(skip_header_lines=1).read(texts)
        name = os.fsencode(text)
        assert [(name + b":2", b"one"), (name + b":3", b"two")] == until_end(session, lines)
        assert RECORDS == until_end(session, v1.TFRecordReader(options=options).read(files)[1])
    with v1.Session() as session:
        chunks = v1.FixedLengthRecordReader(4, header_bytes=1).read(texts)[1]
        assert [b"ead\n", b"one\r", b"\ntwo"] == until_end(session, chunks)
        _, values = v1.WholeFileReader().read_up_to(
            v1.train.string_input_producer([str(text)] * 3, num_epochs=1), 2
        )
        assert [1, 1, 1] == [len(one) for one in until_end(session, values)]


def test_damage_is_told_by_the_session(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(flip(file_of(RECORDS), 8 * (16 + 3 + 13)))
    queue = v1.train.string_input_producer([str(path)])
    batch = v1.train.batch([v1.TFRecordReader().read(queue)[1]], 2)
    with v1.Session() as session, pytest.raises(tf.errors.DataLossError, match="record 1"):
        session.run(batch)


def test_files_without_records_do_not_hang(tmp_path):
    """TensorFlow waits forever where no file of an endless queue has a record."""
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        tfwire.write_records(path, [])
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer(paths))
    with v1.Session() as session, pytest.raises(tf.errors.OutOfRangeError):
        session.run(record)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: v1.train.batch([], 2), ValueError, "at least one tensor"),
        (lambda: v1.train.batch(tf.constant([1]), 2), TypeError, "list or dict"),
        (lambda: v1.train.slice_input_producer([]), ValueError, "at least one tensor"),
        (lambda: v1.train.string_input_producer(["a"], num_epochs=0), ValueError, "num_epochs"),
        (lambda: v1.TFRecordReader().read(["a"]), TypeError, "string_input_producer returned"),
        (lambda: v1.FixedLengthRecordReader(0), ValueError, "record_bytes"),
        (lambda: v1.TFRecordReader().read(v1.FIFOQueue(2, tf.int32)), TypeError, "of strings"),
        (lambda: v1.FIFOQueue(2, tf.int32).queue_ref, AttributeError, "instead: the queue"),
        (lambda: v1.train.QueueRunner(["a"], []), ValueError, "needs a FIFOQueue"),
        (lambda: v1.train.string_input_producer(["a"]).enqueue, AttributeError, "tf.queue.FIFO"),
    ],
)
def test_wrong_arguments(build, error, words):
    with pytest.raises(error, match=words):
        build()


# ---- Iterators of datasets ----------------------------------------------------------------------


def test_methods_of_a_dataset_make_iterators_of_a_graph():
    dataset = tf.data.Dataset.range(3).map(lambda x: (x, {"y": x * 2}))
    number, parts = dataset.make_one_shot_iterator().get_next()
    with v1.Session() as session:
        assert [(0, 0), (1, 2), (2, 4)] == until_end(session, (number, parts["y"]))
    iterator = dataset.make_initializable_iterator()
    number, _ = iterator.get_next()
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(number)
        session.run(iterator.initializer)
        assert [0, 1, 2] == until_end(session, number)


MODES = """
import tfwire.compat.v1 as tf
dataset = tf.data.Dataset.range(2)
assert tf.executing_eagerly()
assert 0 == int(tf.data.make_one_shot_iterator(dataset).get_next())
try:
    tf.data.make_initializable_iterator(dataset)
except RuntimeError:
    pass
else:
    raise SystemExit("an initializable iterator while executing eagerly")
eager = tf.data.make_one_shot_iterator(dataset).get_next()
try:
    tf.Session().run(eager)
except RuntimeError as error:
    assert "disable_eager_execution" in str(error)
else:
    raise SystemExit("one element forever")
with tf.Graph().as_default():
    assert not tf.executing_eagerly()
assert tf.executing_eagerly()
tf.disable_v2_behavior()
assert not tf.executing_eagerly()
element = tf.data.make_one_shot_iterator(dataset).get_next()
with tf.Session() as session:
    assert [0, 1] == [session.run(element) for _ in range(2)]
tf.enable_eager_execution()
assert [0, 1] == [int(x) for x in dataset.make_one_shot_iterator()]
"""


def test_eager_execution_and_graphs():
    """In a process of its own: what is said holds from then on."""
    output_of_python("-c", MODES)


def test_tensors_of_values_can_be_fetched():
    x = v1.placeholder(tf.float32)
    with v1.Session() as session:
        assert [2.0, 3] == session.run([x, tf.constant(3)], {x: 2})
        with pytest.raises(tf.errors.InvalidArgumentError, match="feed"):
            session.run(x)
        with pytest.raises(TypeError, match="invalid type"):
            session.run([x, 3])


# ---- Names of later pipelines -------------------------------------------------------------------


def test_elements_of_a_queue_come_several_at_a_time():
    queue = v1.train.string_input_producer([b"a\0", b"\0", b"c"], num_epochs=1, shuffle=False)
    with v1.Session() as session:
        assert [[b"a\0", b"\0"], [b"c"]] == [
            some.tolist() for some in until_end(session, queue.dequeue_up_to(2))
        ]
    with v1.Session() as session:
        assert 1 == len(until_end(session, queue.dequeue_many(2)))
    with v1.Session() as session, pytest.raises(ValueError, match="n must be at least 1"):
        session.run(queue.dequeue_many(0))


def test_dicts_of_tensors_are_matched_by_their_keys():
    one, two = v1.placeholder_with_default(1, []), v1.placeholder_with_default(2, [])
    batch = v1.train.batch_join([{"a": one, "b": two}, {"b": two, "a": one}], 2)
    with v1.Session() as session:
        found = session.run(batch)
    assert ([1, 1], [2, 2]) == (found["a"].tolist(), found["b"].tolist())
    with pytest.raises(ValueError, match="keys"):
        v1.train.batch_join([{"a": one}, {"b": two}], 2)


def test_vectors_beside_a_source_that_ends():
    def numbers(count):
        return v1.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()

    vectors = [tf.constant([1, 2]), tf.constant([3, 4])]
    batch = v1.train.batch_join([[vectors[0], numbers(5)], [vectors[1], numbers(1)]], 2)
    with v1.Session() as session:
        found = until_end(session, batch)
    assert [[0, 0], [1, 2], [3, 4]] == [n.tolist() for _, n in found]


def test_what_is_not_kept_is_no_element(path):
    _, record = v1.TFRecordReader().read(v1.train.string_input_producer([path], num_epochs=1))
    batch = v1.train.maybe_shuffle_batch([record], 2, 10, 3, tf.strings.length(record) > 3)
    with v1.Session() as session:
        (found,) = until_end(session, batch)
    assert [b"three", b"two\0"] == sorted(found)


def test_monitored_sessions_end_cleanly():
    number = v1.train.range_input_producer(1, num_epochs=1).dequeue()
    with v1.train.MonitoredSession() as session:
        assert not session.should_stop()
        assert 0 == session.run(number)
        session.run(number)
        raise AssertionError("the end was not told")
    assert session.should_stop()
    with pytest.raises(ValueError, match="hooks"):
        v1.train.MonitoredTrainingSession(hooks=[object()])
    with pytest.raises(ValueError, match="checkpoint_dir"):
        v1.train.MonitoredTrainingSession(checkpoint_dir="folder")


def test_placeholders_know_the_shape_of_what_they_are_fed():
    x = v1.placeholder(tf.int32, [None, 2], name="x")
    with v1.Session() as session:
        assert [[1, 2]] == session.run(x, {x: [[1, 2]]}).tolist()
        with pytest.raises(ValueError, match=r"shape \(2,\) for Tensor x:0"):
            session.run(x, {x: [1, 2]})
        with pytest.raises(TypeError, match="feed_dict"):
            session.run(x, {"x": 1})


def test_settings_of_sessions_are_taken():
    config = v1.ConfigProto(log_device_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    with v1.Session(config=config):
        assert None is v1.local_variables_initializer().run()
        assert 3 == tf.constant(3).eval()
    assert 0.5 == config.gpu_options.per_process_gpu_memory_fraction
    with pytest.raises(ValueError, match="default session"):
        v1.no_op().run()


# ---- Coordinators -------------------------------------------------------------------------------


def test_a_coordinator_stops_threads_and_raises_what_they_met():
    coordinator = v1.train.Coordinator()

    def work():
        with coordinator.stop_on_exception():
            while not coordinator.wait_for_stop(0.001):
                pass
            raise KeyError("after the stop")

    def fail():
        with coordinator.stop_on_exception():
            raise ValueError("the first")

    threads = [threading.Thread(target=target) for target in (work, work, fail)]
    coordinator.register_thread(threads[0])
    for thread in threads:
        thread.start()
    with pytest.raises(ValueError, match="the first"):
        coordinator.join(threads[1:])
    assert coordinator.joined
    assert not any(thread.is_alive() for thread in threads)


def test_a_thread_that_goes_on_is_told():
    coordinator = v1.train.Coordinator()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    coordinator.request_stop()
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="still running"):
        coordinator.join([thread], stop_grace_period_secs=0.01)
    coordinator.join([thread], stop_grace_period_secs=0.01, ignore_live_threads=True)
    assert time.monotonic() - begin < 60
    done.set()
    thread.join()


def test_what_is_drawn_from_a_queue_is_named_by_that(path):
    queue = v1.train.string_input_producer([path])
    drawn = [queue.dequeue(), queue.dequeue_many(2), queue.dequeue_up_to(2)]
    assert [True, True, True] == ["'dequeued" in repr(tensor) for tensor in drawn]
    assert isinstance(v1.no_op(), v1.Operation)


def test_an_unknown_argument_of_a_producer_is_named():
    with pytest.raises(TypeError, match=r"^string_input_producer\(\) got an unexpected .* 'zz'$"):
        v1.train.string_input_producer(zz=1)
