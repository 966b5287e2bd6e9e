"""The rows of "tfwire.compat: datasets and queues" in docs/differences.md, a test each."""

import gzip

import numpy as np
import pytest
import tensorflow as tf
from compared import queues

import tfwire
import tfwire.compat as tfc


def numbers(dataset):
    return [int(x) for x in dataset]


def test_map_spec():
    """TensorFlow traces the function; tfwire calls it with elements."""

    def build(lib):
        return lib.data.Dataset.range(4).batch(2).map(lambda x: x + 1).element_spec

    assert [None] == build(tf).shape.as_list()
    assert [2] == build(tfc).shape.as_list()
    assert tfc.data.Dataset.range(0).map(lambda x: x).element_spec is None


def outcomes(lib, build):
    """The elements of a dataset that fails at 1 and 4, with "error" and "given up" among them."""

    def fail(x):
        if x in (1, 4):
            raise ValueError("one or four")
        return x

    dataset = lib.data.Dataset.range(8).map(lambda x: lib.py_function(fail, [x], lib.int64))
    elements, found = iter(build(lib, dataset)), []
    while True:
        try:
            found.append(np.asarray(next(elements)).tolist())
        except StopIteration:
            return found
        except (tfc.errors.FailedPreconditionError, tf.errors.FailedPreconditionError):
            found.append("given up")
        except (ValueError, tf.errors.InvalidArgumentError):
            found.append("error")


def test_error_in_map():
    """After an error TensorFlow goes on, and so does tfwire where nothing else would be lost."""
    for build in (
        lambda lib, d: d,
        lambda lib, d: d.map(lambda x: x + 1),
        lambda lib, d: d.filter(lambda x: x < 6).prefetch(2),
        lambda lib, d: d.take(4).repeat(2),
        lambda lib, d: d.shuffle(1).concatenate(d),
        lambda lib, d: d.enumerate().map(lambda i, x: i * 10 + x),
        lambda lib, d: lib.data.Dataset.zip((d, lib.data.Dataset.range(8))).map(lambda x, y: y),
        lambda lib, d: lib.data.Dataset.zip((lib.data.Dataset.range(8), d)).map(lambda x, y: x),
        lambda lib, d: d.shard(2, 0).map(lambda x: x, num_parallel_calls=2),
    ):
        assert outcomes(tf, build) == outcomes(tfc, build)
    batched = [outcomes(lib, lambda lib, d: d.batch(2)) for lib in (tf, tfc)]
    assert ["error", [2, 3], "error", [6, 7]] == batched[0]
    assert [[0], "error", [2, 3], "error", [5, 6], [7]] == batched[1]
    skipped = [outcomes(lib, lambda lib, d: d.skip(2)) for lib in (tf, tfc)]
    assert [["error", "error", 5, 6, 7], ["error", 3, "error", 5, 6, 7]] == skipped
    cached = [outcomes(lib, lambda lib, d: d.cache()) for lib in (tf, tfc)]
    assert [[0, "error", 2, 3, "error", 5, 6, 7], [0, "error", "given up"]] == cached


@pytest.mark.parametrize(
    ("build", "later"),
    [
        (lambda d: d.shuffle(9, seed=1), [0, 1]),
        (lambda d: d.batch(9), []),
        (lambda d: d.window(9).flat_map(lambda w: w), []),
        (
            lambda d: d.group_by_window(lambda x: x * 0, lambda k, w: w, 9),
            [0, 1],
        ),
    ],
    ids=["shuffle", "batch", "window", "group_by_window"],
)
def test_held_elements(build, later):
    def failing():
        yield from (0, 1)
        raise ValueError("two")

    theirs, ours = (
        iter(build(lib.data.Dataset.from_generator(failing, lib.int64))) for lib in (tf, tfc)
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(theirs)
    assert later == sorted(int(x) for x in theirs)
    found = []
    with pytest.raises(ValueError, match="two"):
        found.extend(np.ravel(x).tolist() for x in ours)
    assert [0, 1] == sorted(np.concatenate(found).tolist())


@pytest.mark.parametrize(
    ("method", "result"),
    [("filter", 1), ("take_while", 1), ("flat_map", (1, 2)), ("interleave", (1, 2))],
)
def test_untraced_functions(method, result):
    def build(lib, size):
        return getattr(lib.data.Dataset.range(size), method)(lambda x: result)

    with pytest.raises((ValueError, TypeError), match="must return"):
        build(tf, 0)
    assert [] == list(build(tfc, 0))
    with pytest.raises((ValueError, TypeError), match="must"):
        list(build(tfc, 3))
    check_states()


def check_states():
    for run, nothing in [
        (lambda dataset: dataset.reduce(0, lambda state, x: 1.5), 0),
        (lambda dataset: list(dataset.scan(0, lambda state, x: ("a", x))), []),
    ]:
        with pytest.raises(TypeError, match="must match"):
            run(tf.data.Dataset.range(0))
        assert nothing == run(tfc.data.Dataset.range(0))
        with pytest.raises(TypeError, match="must return a state of"):
            run(tfc.data.Dataset.range(3))


def test_mixed_elements():
    def build(lib):
        numbers = lib.data.Dataset.range(2).map(lambda x: x)
        return numbers.concatenate(lib.data.Dataset.from_tensors("a"))

    with pytest.raises(TypeError):
        build(tf)
    assert [0, 1, b"a"] == list(build(tfc).as_numpy_iterator())


def test_fixed_length_files(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 10)

    def read(lib, *args):
        return list(lib.data.FixedLengthRecordDataset(str(tmp_path / "file"), 2, *args))

    for compression in ("GZIP", "ZLIB"):
        assert [] == read(tf, None, None, None, compression)
        with pytest.raises(tfc.errors.DataLossError):
            read(tfc, None, None, None, compression)
        folder = str(tmp_path), 2, None, None, None, compression
        assert [] == list(tf.data.FixedLengthRecordDataset(*folder))
        with pytest.raises(tfc.errors.FailedPreconditionError):
            list(tfc.data.FixedLengthRecordDataset(*folder))
    with pytest.raises(tf.errors.InternalError):
        read(tf, 100)
    with pytest.raises(tfc.errors.InvalidArgumentError):
        read(tfc, 100)


def test_generator_cast():
    def build(lib):
        signature = lib.TensorSpec([], lib.int32)
        return lib.data.Dataset.from_generator(lambda: [1.5], output_signature=signature)

    assert [1] == numbers(build(tf))
    with pytest.raises(TypeError, match=r"not a tf\.int32"):
        list(build(tfc))


def test_empty_passes():
    """TensorFlow asks for one pass after the other."""

    def build(lib):
        def generate():
            if (size := next(left, None)) is None:
                raise ValueError("there was one pass after the other")
            yield from range(size)

        left = iter([2, *[0] * 100])
        return lib.data.Dataset.from_generator(generate, lib.int64).shuffle(9).repeat()

    with pytest.raises(tf.errors.InvalidArgumentError, match="one pass after the other"):
        numbers(build(tf))
    assert [0, 1] == sorted(numbers(build(tfc)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="count must be"):
        list(tf.data.Dataset.range(2).shuffle(9).repeat(0))
    assert [] == list(tfc.data.Dataset.range(2).shuffle(9).repeat(0))


def test_random_choices():
    def build(lib):
        parts = [lib.data.Dataset.from_tensors(np.int64(i)).repeat() for i in (0, 1)]
        return lib.data.Dataset.sample_from_datasets(parts, seed=1).take(60)

    assert numbers(build(tf)) != numbers(build(tfc)) == numbers(build(tfc))


def test_kept_files(tmp_path):
    for name, lib in {"theirs": tf, "ours": tfc}.items():
        lib.data.Dataset.range(2).save(str(tmp_path / name))
    assert [0, 1] == numbers(tfc.data.Dataset.load(str(tmp_path / "ours")))
    for name, lib in {"theirs": tf, "ours": tfc}.items():
        assert 2 == lib.data.Dataset.load(str(tmp_path / name)).cardinality()
    with pytest.raises(FileNotFoundError):
        list(tfc.data.Dataset.load(str(tmp_path / "theirs")))
    with pytest.raises(tf.errors.OpError):
        tf.data.Dataset.load(str(tmp_path / "ours"))


def test_snapshot_changes(tmp_path):
    """TensorFlow compares graphs, which name files and hold functions of Python by a number."""
    path = str(tmp_path / "file")

    def after_replacing(lib):
        for word in (b"one", b"three"):
            tfwire.write_records(path, [word])
            kept = lib.data.TFRecordDataset(path).snapshot(str(tmp_path / lib.__name__))
            found = list(kept.as_numpy_iterator())
        return found

    assert [[b"one"], [b"three"]] == [after_replacing(lib) for lib in (tf, tfc)]

    def calls(lib):
        called = []

        def count(x):
            called.append(int(x))
            return x

        def build():
            dataset = lib.data.Dataset.range(2)
            dataset = dataset.map(lambda x: lib.py_function(count, [x], lib.int64))
            return numbers(dataset.snapshot(str(tmp_path / f"{lib.__name__} of a function")))

        assert [0, 1] == build()
        first, called[:] = len(called), []
        assert [0, 1] == build()
        return first, len(called)

    assert [(2, 2), (2, 0)] == [calls(lib) for lib in (tf, tfc)]


def test_ragged_elements():
    def build(lib):
        dataset = lib.data.Dataset.range(1, 3).map(lambda n: lib.fill([n], n)).ragged_batch(2)
        return next(dataset.as_numpy_iterator())

    assert isinstance(build(tf), np.ndarray)
    assert isinstance(build(tfc), tfwire.RaggedTensor)


def test_cut_stream(tmp_path):
    """As TensorFlow here, unlike tfwire's own readers (gzip-cut)."""
    path = str(tmp_path / "cut")
    tfwire.write_records(path, [b"one", b"two"])
    data = gzip.compress((tmp_path / "cut").read_bytes())[:-4]
    (tmp_path / "cut").write_bytes(data)
    for lib in (tf, tfc):
        assert 2 == len(list(lib.data.TFRecordDataset(path, "GZIP")))
    with pytest.raises(tfwire.DataLossError):
        list(tfwire.TFRecordDataset(path, "GZIP"))


# ---- Queues of TensorFlow 1 ---------------------------------------------------------------------


def in_session(lib, build, use):
    """What a function of a session and fetches gives, with started queues."""
    with lib.Graph().as_default():
        fetches = build(lib.compat.v1)
        with lib.compat.v1.Session() as session, queues(lib, session) as (_, threads):
            return use(session, fetches), threads


def records(v1, *paths):
    queue = v1.train.string_input_producer(list(map(str, paths)), num_epochs=1, shuffle=False)
    return v1.TFRecordReader().read(queue)[1]


def test_queue_threads(path):
    threads = {}
    for lib in (tf, tfc):
        record, threads[lib] = in_session(
            lib, lambda v1: records(v1, path), lambda session, fetched: session.run(fetched)
        )
        assert b"first" == record
    assert threads[tf]
    assert [] == threads[tfc]


def test_queue_initializer(path):
    """num_epochs is a variable in TensorFlow, which must be initialized."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        record = records(tf.compat.v1, path)
        coordinator = tf.compat.v1.train.Coordinator()
        threads = tf.compat.v1.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(record)
        with pytest.raises(tf.errors.OpError):
            coordinator.join(threads)
    with tfc.Session() as session:
        assert b"first" == session.run(records(tfc.compat.v1, path))


def test_queue_error(tmp_path):
    """An error of a reader that a batch draws on: TensorFlow raises it when threads are joined."""

    def build(v1):
        return v1.train.batch([records(v1, tmp_path / "nowhere")], 1)

    def error_of(session, fetches):
        with pytest.raises((tf.errors.OpError, OSError)) as raised:
            session.run(fetches)
        return raised.type.__name__

    assert "OutOfRangeError" == in_session(tf, build, error_of)[0]
    assert "NotFoundError" == in_session(tfc, build, error_of)[0]
