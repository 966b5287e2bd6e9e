"""Errors of tfwire.compat are TensorFlow's and Python's; see also tests/oracle/test_errors.py."""

import copy
import errno
import gzip
import pickle

import numpy as np
import pytest

import tfwire.compat as tf

Dataset = tf.data.Dataset
NUMBERS, WORDS = Dataset.range(3), Dataset.from_tensors("a")


def graph(build):
    def run():
        with tf.Session() as session:
            session.run(build())

    return run


def queue():
    return tf.train.string_input_producer(["nowhere"], num_epochs=1)


MISSING = {
    "elements": lambda: list(tf.data.TFRecordDataset("nowhere")),
    "numpy": lambda: list(tf.data.TFRecordDataset("nowhere").as_numpy_iterator()),
    "in turn": lambda: list(tf.data.TFRecordDataset(["nowhere"], num_parallel_reads=2)),
    "prefetch": lambda: list(tf.data.TFRecordDataset("nowhere").batch(2).prefetch(1)),
    "cache": lambda: list(tf.data.TFRecordDataset("nowhere").cache()),
    "flat_map": lambda: list(Dataset.from_tensors("nowhere").flat_map(tf.data.TFRecordDataset)),
    "map": lambda: list(Dataset.from_tensors("nowhere").map(tf.io.read_file)),
    "spec": lambda: tf.data.TFRecordDataset("nowhere").map(lambda x: x).element_spec,
    "reduce": lambda: tf.data.TFRecordDataset("nowhere").reduce(0, lambda state, x: state),
    "get_next": lambda: iter(tf.data.TFRecordDataset("nowhere")).get_next(),
    "lines": lambda: list(tf.data.TextLineDataset("nowhere")),
    "one length": lambda: list(tf.data.FixedLengthRecordDataset("nowhere", 3)),
    "load": lambda: Dataset.load("nowhere"),
    "save": lambda: tf.data.TFRecordDataset("nowhere").save("saved"),
    "iterator": lambda: tf.compat.v1.io.tf_record_iterator("nowhere"),
    "writer": lambda: tf.io.TFRecordWriter("nowhere/file"),
    "dataset writer": lambda: tf.data.experimental.TFRecordWriter("nowhere/a").write(
        Dataset.from_tensors("a")
    ),
    "read_file": lambda: tf.io.read_file("nowhere"),
    "GFile": lambda: tf.io.gfile.GFile("nowhere").read(),
    "GFile lines": lambda: list(tf.io.gfile.GFile("nowhere")),
    "GFile write": lambda: tf.io.gfile.GFile("nowhere/file", "w").write("x"),
    "stat": lambda: tf.io.gfile.stat("nowhere"),
    "listdir": lambda: tf.io.gfile.listdir("nowhere"),
    "reader": graph(lambda: tf.TFRecordReader().read(queue())),
    "whole file": graph(lambda: tf.WholeFileReader().read(queue())),
    "batch": graph(lambda: tf.train.batch(tf.TFRecordReader().read(queue()), 2)),
    "one shot": graph(
        lambda: tf.data.TFRecordDataset("nowhere").make_one_shot_iterator().get_next()
    ),
}


@pytest.mark.parametrize("way", MISSING)
def test_a_missing_file(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere") as raised:
        MISSING[way]()
    assert isinstance(raised.value, tf.errors.OpError)
    assert isinstance(raised.value, FileNotFoundError)
    assert tf.errors.NOT_FOUND == raised.value.error_code
    if raised.value.filename is not None:
        assert errno.ENOENT == raised.value.errno


def test_a_folder_is_both_errors(tmp_path):
    for cls in (tf.errors.FailedPreconditionError, IsADirectoryError):
        with pytest.raises(cls) as raised:
            list(tf.data.TFRecordDataset(str(tmp_path)))
    for found in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert type(raised.value) is type(found)
        assert str(raised.value) == str(found)
        assert (errno.EISDIR, str(tmp_path)) == (found.errno, found.filename)


def test_errors_can_be_pickled():
    found = {name: getattr(tf.errors, name) for name in dir(tf.errors)}
    classes = [each for each in found.values() if isinstance(each, type)]
    for cls in (each for each in classes if issubclass(each, Exception)):
        twin = pickle.loads(pickle.dumps(cls(None, None, "text")))
        assert (cls, "text") == (type(twin), twin.message)
        assert tf.errors.UNKNOWN <= twin.error_code or cls is tf.errors.CancelledError


@pytest.mark.posix("no /dev/full")
def test_a_full_disk():
    for cls in (tf.errors.ResourceExhaustedError, OSError):
        writer = tf.io.TFRecordWriter("/dev/full")
        writer.write(b"x")
        with pytest.raises(cls):
            writer.flush()
        with pytest.raises(cls):
            writer.close()


def test_a_closed_writer(tmp_path):
    writer = tf.io.TFRecordWriter(str(tmp_path / "file"))
    writer.close()
    for cls in (tf.errors.FailedPreconditionError, ValueError):
        with pytest.raises(cls, match=r"^Writer is closed\.$"):
            writer.write(b"x")


@pytest.mark.parametrize(
    ("build", "cls"),
    [
        (lambda: NUMBERS.unbatch(), ValueError),
        (lambda: NUMBERS.rebatch(2), ValueError),
        (lambda: Dataset.from_tensors(([1, 2, 3], [1, 2])).unbatch(), ValueError),
        (lambda: NUMBERS.concatenate(WORDS), TypeError),
        (lambda: NUMBERS.concatenate(Dataset.zip((NUMBERS,))), TypeError),
        (lambda: Dataset.choose_from_datasets([NUMBERS, WORDS], NUMBERS), TypeError),
        (lambda: Dataset.sample_from_datasets([NUMBERS, WORDS]), TypeError),
    ],
)
def test_arguments_are_refused_at_the_call(build, cls):
    with pytest.raises(cls, match=r"unbatch needs|one structure and the same dtypes"):
        build()


@pytest.mark.parametrize("result", [1, "a", [True], (True, True), np.array([True]), None])
@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_predicates_return_one_bool(method, result):
    with pytest.raises(ValueError, match=r"scalar bool|cannot be converted"):
        list(getattr(NUMBERS, method)(lambda x: result))
    for right in (True, np.True_, tf.constant(True)):
        assert 3 == len(list(getattr(NUMBERS, method)(lambda x, right=right: right)))


def test_datasets_of_other_shapes_are_concatenated():
    assert [0, 1, 2] == [int(x) for x in NUMBERS.concatenate(NUMBERS.take(0))]
    assert 5 == len(list(NUMBERS.concatenate(NUMBERS.batch(2))))


def test_a_folder_is_not_copied(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a directory"):
        tf.io.gfile.copy(tmp_path, tmp_path / "new")


def test_a_compressed_file_of_other_sizes(tmp_path):
    (tmp_path / "file").write_bytes(gzip.compress(b"12345"))
    with pytest.raises(tf.errors.DataLossError, match="found 5 bytes") as raised:
        list(tf.data.FixedLengthRecordDataset(tmp_path / "file", 2, compression_type="GZIP"))
    assert (tmp_path / "file", "truncated") == (raised.value.path, raised.value.reason)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: tf.decode_csv, "csv"),
        (lambda: tf.string_split, r"tf\.strings\.split"),
        (lambda: tf.train.AdamOptimizer, "Keras"),
        (lambda: tf.train.Supervisor, "MonitoredSession"),
        (lambda: tf.train.get_or_create_global_step, "count"),
        (lambda: tf.image.adjust_hue, "numpy"),
        (lambda: tf.strings.ngrams, "bytes"),
        (lambda: tf.math.top_k, "numpy"),
        (lambda: tf.train.Message, "Keras"),
        (lambda: tf.data.TFRecordDataset(tf.compat.v1.placeholder(tf.string)), "not a placeholder"),
        (lambda: tf.Variable(0), "numpy arrays"),
        (lambda: tf.RandomShuffleQueue(9, 1, [tf.int32]), "dataset"),
        (lambda: tf.contrib.slim, "library"),
        (lambda: tf.keras.utils.get_file("a", "b"), "Keras"),
        (lambda: tf.compat.v1.get_variable("x"), "numpy arrays"),
        (lambda: tf.io.nonsense, "porting"),
        (lambda: Dataset.range(4).shuffle(4).sparse_batch, "instead: "),
        (lambda: Dataset.from_sparse_tensor_slices, "instead: "),
        (lambda: tf.data.experimental.make_batched_features_dataset, "instead: "),
        (lambda: tf.Session().partial_run, "instead: "),
    ],
)
def test_what_is_not_here_says_what_is(use, words):
    with pytest.raises((AttributeError, TypeError), match=words):
        use()
