"""tf.data by tfwire.compat, as far as no TensorFlow is needed to know what is right."""

import json
import random
import threading
import warnings
import zlib

import numpy as np
import pytest

import tfwire
import tfwire.compat as tf
from helpers.reference import file_of

Dataset = tf.data.Dataset
RECORDS = [b"one", b"two\0", b"", b"three"]


def values(dataset):
    """The elements as Python values."""
    return [element.tolist() for element in dataset.as_numpy_iterator()]


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "data.tfrecord")
    tfwire.write_records(found, RECORDS)
    return found


# ---- Transformations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (Dataset.from_tensors([1, 2]), [[1, 2]]),
        (Dataset.range(2).concatenate(Dataset.range(3)), [0, 1, 0, 1, 2]),
        (Dataset.range(4).flat_map(Dataset.range), [0, 0, 1, 0, 1, 2]),
        (Dataset.range(4).interleave(Dataset.range, 2, 1), [0, 0, 1, 0, 1, 2]),
        (Dataset.range(5).batch(2).unbatch(), [0, 1, 2, 3, 4]),
        (Dataset.range(5).batch(2).rebatch(4), [[0, 1, 2, 3], [4]]),
        (Dataset.range(2).prefetch(None), [0, 1]),
        (Dataset.range(1).shuffle(tf.data.UNKNOWN_CARDINALITY), [0]),
        (Dataset.from_tensors([1]).padded_batch(1, tf.constant([2])), [[[1, 0]]]),
        (Dataset.range(2).map(abs, synchronous=True, use_unbounded_threadpool=True), [0, 1]),
        (Dataset.range(6).batch(4).rebatch([1, 0, 2]), [[0], [], [1, 2], [3], [], [4, 5]]),
        (Dataset.range(5).batch(4).rebatch([3, 1], drop_remainder=True), [[0, 1, 2], [3]]),
        (Dataset.range(9).take_while(lambda x: x < 3), [0, 1, 2]),
        (Dataset.from_tensor_slices([3, 1, 3, 2, 1]).unique(), [3, 1, 2]),
        (Dataset.range(4).scan(np.int64(1), lambda s, x: (s * 2, s + x)), [1, 3, 6, 11]),
        (Dataset.range(4).apply(tf.data.experimental.unique()).skip(2), [2, 3]),
        (Dataset.range(3).enumerate(5).map(lambda i, x: i * 10 + x), [50, 61, 72]),
        (Dataset.counter(3, -1).take(3), [3, 2, 1]),
        (
            Dataset.range(7).window(3, 2, drop_remainder=True).flat_map(lambda w: w.batch(3)),
            [[0, 1, 2], [2, 3, 4], [4, 5, 6]],
        ),
        (
            Dataset.range(7).group_by_window(lambda x: x % 2, lambda k, w: w.batch(2), 2),
            [[0, 2], [1, 3], [4, 6], [5]],
        ),
        (
            Dataset.choose_from_datasets(
                [Dataset.range(2), Dataset.range(5, 9)], Dataset.from_tensor_slices([1, 0, 1, 0, 0])
            ),
            [5, 0, 6, 1],
        ),
    ],
)
def test_transformations(dataset, expected):
    """The oracle tests compare them all with TensorFlow."""
    assert expected == values(dataset)
    assert expected == values(dataset), "a second pass gives the same"


def test_a_window_is_a_dataset_for_every_leaf():
    dataset = Dataset.from_tensor_slices({"a": [1, 2, 3], "b": ["x\0", "y", "z"]}).window(2)
    first, second = dataset
    assert ([1, 2], [b"x\0", b"y"]) == tuple(
        list(first[key].as_numpy_iterator()) for key in ("a", "b")
    )
    assert [3] == list(second["a"].as_numpy_iterator())


def test_buckets_are_batches_of_similar_length():
    lengths = [1, 5, 3, 2, 7, 1, 4]
    dataset = Dataset.from_generator(
        lambda: [[1] * n for n in lengths], output_signature=tf.TensorSpec([None], tf.int32)
    )
    plain = dataset.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2])
    assert [(2, 5), (2, 2), (1, 1), (1, 4), (1, 7)] == [batch.shape for batch in plain]
    short = dataset.take(3).bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True
    )
    assert [(2, 5), (1, 2)] == [batch.shape for batch in short]
    with pytest.raises(ValueError, match="bucket_batch_sizes"):
        dataset.bucket_by_sequence_length(lambda x: 1, [3], [2])


def test_zip_takes_any_structure():
    parts = {"a": Dataset.range(3), "b": (Dataset.range(2), Dataset.from_tensor_slices(["x", "y"]))}
    assert [
        {"a": 0, "b": (0, b"x")},
        {"a": 1, "b": (1, b"y")},
    ] == list(Dataset.zip(parts).as_numpy_iterator())
    assert {"a": "int64[]", "b": ("int64[]", "string[]")} == Dataset.zip(parts)._stage.spec


def test_samples_come_as_often_as_their_weights_say():
    parts = [Dataset.from_tensors(np.int64(i)).repeat() for i in range(3)]
    drawn = values(Dataset.sample_from_datasets(parts, [0.5, 0.3, 0.2], seed=1).take(3000))
    counts = np.bincount(drawn) / 3000
    assert np.abs(counts - [0.5, 0.3, 0.2]).max() < 0.05
    assert drawn == values(Dataset.sample_from_datasets(parts, [0.5, 0.3, 0.2], seed=1).take(3000))
    assert drawn != values(Dataset.sample_from_datasets(parts, [0.5, 0.3, 0.2], seed=2).take(3000))


def test_samples_lose_nothing():
    parts = [Dataset.range(20), Dataset.range(100, 105), Dataset.range(0)]
    found = values(Dataset.sample_from_datasets(parts, seed=3))
    assert [*range(20)] == [x for x in found if x < 100]
    assert [*range(100, 105)] == [x for x in found if x >= 100]
    stopping = Dataset.sample_from_datasets(parts, seed=3, stop_on_empty_dataset=True)
    assert values(stopping) == found[: len(values(stopping))]


def test_resampling_changes_the_share_of_classes():
    dataset = Dataset.range(4000).map(lambda x: x % 4 == 0)
    for initial in ([0.75, 0.25], None):
        resampled = dataset.rejection_resample(
            lambda rare: tf.cast(rare, tf.int32), [0.5, 0.5], initial, seed=1
        )
        found = [bool(rare) for _, rare in resampled]
        assert abs(np.mean(found) - 0.5) < 0.06
        assert 1500 < len(found) <= 2100


def test_a_function_that_returns_no_dataset_is_told():
    with pytest.raises(TypeError, match="result of map_func must be a Dataset"):
        list(Dataset.range(3).flat_map(lambda x: x))
    with pytest.raises(TypeError, match="dataset must be a Dataset, found list"):
        Dataset.range(3).concatenate([1])
    with pytest.raises(TypeError, match="must be a Dataset, found int"):
        Dataset.range(3).apply(lambda dataset: 1)
    with pytest.raises(ValueError, match="either"):
        Dataset.range(3).group_by_window(lambda x: x, lambda k, w: w)


# ---- What is kept -------------------------------------------------------------------------------


def counting(calls):
    def count(x):
        calls.append(int(x))
        return x * 2

    return count


@pytest.mark.parametrize("where", ["memory", "file", "snapshot"])
def test_a_cache_is_filled_by_a_whole_pass(tmp_path, where):
    calls = []
    mapped = Dataset.range(4).map(counting(calls))
    if where == "snapshot":
        dataset = mapped.snapshot(str(tmp_path / "kept"))
    else:
        dataset = mapped.cache("" if where == "memory" else str(tmp_path / "kept"))
    assert [0, 2] == values(dataset.take(2))
    assert [0, 2, 4, 6] == values(dataset)
    done = len(calls)
    assert [0, 2, 4, 6] == values(dataset) == values(dataset)
    assert done == len(calls)
    kept = [path.name for path in tmp_path.rglob("*") if path.name.startswith(".tfwire")]
    assert [] == kept, "temporary files are gone"


def test_kept_elements_are_those_of_before(tmp_path):
    """Structure, dtypes, trailing zeros, sparse and ragged tensors."""
    example = tfwire.encode_example({"a": [1, 2], "b": [b"x\0"], "c": [1.5]})
    spec = {
        "a": tf.io.VarLenFeature(tf.int64),
        "b": tf.io.FixedLenFeature([1], tf.string),
        "c": tf.io.RaggedFeature(tf.float32),
    }
    dataset = Dataset.from_tensors([example, example]).map(
        lambda records: (tf.io.parse_example(records, spec), (np.float64(1), np.uint8([3])))
    )
    dataset.save(str(tmp_path / "saved"))
    (before,), (after,) = (
        dataset.as_numpy_iterator(),
        Dataset.load(str(tmp_path / "saved")).as_numpy_iterator(),
    )
    assert str(before) == str(after)
    assert before[0]["b"].tolist() == after[0]["b"].tolist() == [[b"x\0"], [b"x\0"]]
    assert after[1][0].dtype == np.float64


def test_saving_again_keeps_the_permissions(tmp_path):
    Dataset.range(4).save(str(tmp_path / "saved"))
    file = tmp_path / "saved" / "elements.tfrecord"
    file.chmod(0o600)
    Dataset.range(5).save(str(tmp_path / "saved"))
    assert 0o600 == file.stat().st_mode & 0o777
    assert [*range(5)] == values(Dataset.load(str(tmp_path / "saved")))
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {file.name, f"{file.name}.tfwindex"} == names


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_how_many_elements_were_saved(tmp_path, compression):
    """By an index; without one that fits the file nobody knows, and nobody fails."""
    folder, index = str(tmp_path), tmp_path / "elements.tfrecord.tfwindex"
    for count in (0, 3):
        Dataset.range(count).save(folder, compression=compression)
        loaded = Dataset.load(folder)
        assert count == loaded.cardinality() == len(loaded.map(lambda x: x))
    Dataset.range(5).save(folder)
    assert [*range(5)] == values(loaded) == values(loaded.repeat(2).skip(5))
    index.write_bytes(index.read_bytes()[:10])
    assert -2 == Dataset.load(folder).cardinality()
    index.unlink()
    assert -2 == Dataset.load(folder).cardinality()


def test_a_cache_of_a_failing_pass_keeps_nothing(tmp_path):
    failing = [True]

    def fail_once(x):
        if failing and x == 2:
            failing.clear()
            raise KeyError("once")
        return x

    for filename in ("", str(tmp_path / "kept")):
        failing.append(True)
        dataset = Dataset.range(4).map(fail_once).cache(filename)
        with pytest.raises(KeyError):
            list(dataset)
        assert [0, 1, 2, 3] == values(dataset) == values(dataset)


# ---- Iterators ----------------------------------------------------------------------------------


def test_get_next_and_optionals():
    iterator = iter(Dataset.range(2))
    assert 0 == iterator.get_next()
    assert 1 == iterator.get_next_as_optional().get_value()
    missing = tf.data.experimental.get_next_as_optional(iterator)
    assert not missing.has_value()
    with pytest.raises(tf.errors.InvalidArgumentError):
        missing.get_value()
    for _ in range(2):
        with pytest.raises(tf.errors.OutOfRangeError):
            iterator.get_next()


SCALARS = {
    "flat_map": lambda d: d.flat_map(lambda x: Dataset.range(x % 3).shuffle(3, seed=2)),
    "interleave": lambda d: d.interleave(lambda x: Dataset.range(x % 4).map(lambda y: y + x), 3, 2),
    "concatenate": lambda d: d.concatenate(Dataset.range(5).shuffle(5, seed=4)),
    "scan": lambda d: d.scan(np.int64(0), lambda s, x: (s + 1, s + x)),
    "take_while": lambda d: d.take_while(lambda x: x < 15),
    "unique": lambda d: d.unique(),
    "windows": lambda d: d.window(3, 2).flat_map(lambda w: w),
    "grouped": lambda d: d.group_by_window(lambda x: x % 3, lambda k, w: w.skip(1), 3),
    "cache": lambda d: d.cache(),
    "shuffle": lambda d: d.shuffle(5, seed=3),
    "batched": lambda d: d.batch(3).unbatch(),
    "enumerate": lambda d: d.enumerate().map(lambda i, x: i + x),
    "sample": lambda d: Dataset.sample_from_datasets([d, Dataset.range(7)], seed=5),
    "zip": lambda d: Dataset.zip({"a": d, "b": d}).map(lambda e: e["a"] + e["b"]),
    "repeat": lambda d: d.repeat(2),
    "prefetch": lambda d: d.prefetch(2),
}


@pytest.mark.parametrize("seed", range(60))
def test_any_place_of_any_pipeline_can_be_resumed(seed):
    rng = random.Random(seed)
    names = [rng.choice(sorted(SCALARS)) for _ in range(rng.randint(1, 3))]

    def build():
        dataset = Dataset.range(12)
        for name in names:
            dataset = SCALARS[name](dataset)
        return dataset

    expected = values(build())
    place = rng.randint(0, len(expected))
    iterator = iter(build())
    assert expected[:place] == [int(next(iterator)) for _ in range(place)], names
    state = json.loads(json.dumps(iterator.state_dict()))
    resumed = iter(build())
    resumed.load_state_dict(state)
    assert expected[place:] == [int(x) for x in resumed], names
    iterator.close()


def test_an_error_comes_after_the_elements_before_it():
    def failing(x):
        if x == 3:
            raise KeyError("three")
        return Dataset.range(x, x + 1)

    for dataset in (Dataset.range(5).flat_map(failing), Dataset.range(5).interleave(failing, 1)):
        iterator = iter(dataset)
        assert [0, 1, 2] == [int(next(iterator)) for _ in range(3)]
        with pytest.raises(KeyError):
            next(iterator)


# ---- Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [1, 3, [2, 0, 1]])
def test_sparse_batches_are_cut_and_joined(sizes):
    sparse = tf.SparseTensor([[0, 0], [1, 1], [2, 0]], [1, 2, 3], [3, 2])
    rows = Dataset.from_tensor_slices(sparse)
    for dataset in (rows.batch(2), Dataset.zip((rows, Dataset.range(4))).batch(2)):
        batches = list(dataset.rebatch(sizes))
        parts = [batch[0] if isinstance(batch, tuple) else batch for batch in batches]
        found = [tf.sparse.to_dense(part).numpy() for part in parts]
        assert [[1, 0], [0, 2], [3, 0]] == np.concatenate(found).tolist()
    assert [] == list(rows.take(0).batch(2).rebatch(sizes))


def test_errors_can_be_ignored(tmp_path, path):
    def parse(record):
        if not record.numpy():
            raise ValueError("nothing there")
        return record

    dataset = tf.data.TFRecordDataset(path).map(parse)
    with pytest.raises(ValueError, match="nothing"):
        list(dataset)
    assert [b"one", b"two\0", b"three"] == list(dataset.ignore_errors().as_numpy_iterator())
    with pytest.warns(UserWarning, match="left out: nothing there"):
        list(dataset.ignore_errors(log_warning=True))
    with pytest.raises(ValueError, match="cannot follow flat_map, which ends"):
        Dataset.range(3).flat_map(Dataset.from_tensors).batch(2).ignore_errors()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda d, f: d.map(f).prefetch(2), [1, 3, 1, 3]),
        (lambda d, f: d.map(f).map(lambda x: 6 // (x - 1)), [3, 3]),
        (lambda d, f: d.filter(lambda x: f(x) > 1), [2, 5]),
        (lambda d, f: d.map(f).take(3).repeat(2), [1, 3, 1, 1, 3, 1]),
        (lambda d, f: d.map(f).shuffle(1), [1, 3, 1, 3]),
        (lambda d, f: d, [0, 1, 2, 3, 4, 5]),
        (lambda d, f: d.map(f).batch(2), [[1, 3], [1, 3]]),
        (lambda d, f: d.map(f).batch(3).map(lambda x: x[1:]).unbatch(), [3, 3]),
        (lambda d, f: d.batch(1).map(lambda x: f(x[0])).batch(2), [[1, 3], [1, 3]]),
        (lambda d, f: Dataset.zip((d.map(f), d)).map(lambda x, y: y), [1, 2, 4, 5]),
        (lambda d, f: d.map(f).enumerate().map(lambda i, x: i), [1, 2, 4, 5]),
        (lambda d, f: d.map(f).concatenate(d.map(f)).skip(3), [3, 1, 3, 1, 3]),
    ],
)
def test_errors_below_other_stages_can_be_ignored(build, expected):
    dataset = build(Dataset.range(6), lambda x: [][0] if x % 3 == 0 else 2 * (x % 3) - 1)
    assert expected == values(dataset.ignore_errors())
    assert -2 == dataset.ignore_errors().cardinality()


def test_ragged_batches_of_several_axes():
    shapes = [(1, 2, 3), (2, 2, 1), (0, 2, 5), (2, 2, 2), (1, 2, 1)]
    batches = list(Dataset.from_generator(lambda: map(np.ones, shapes)).ragged_batch(2))
    assert [3, 3, 3] == [batch.ragged_rank for batch in batches]  # of the last, of one, too
    assert [np.ones(shape).tolist() for shape in shapes] == [
        row for batch in batches for row in batch.to_list()
    ]


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("parallel", [None, 2])
def test_a_file_that_was_flushed_and_not_closed_ends(tmp_path, kind, parallel):
    paths = [str(tmp_path / name) for name in "ab"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in paths:
            writer = tfwire.TFRecordWriter(path, kind)
            writer.write_many(RECORDS)
            writer.flush()
            dataset = tf.data.TFRecordDataset([path, path], kind, num_parallel_reads=parallel)
            assert sorted(RECORDS * 2) == sorted(dataset.as_numpy_iterator())
            batches = dataset.batch(3).map(lambda batch: tf.shape(batch)[0])
            assert 8 == sum(values(batches))
            writer.close()


def test_a_record_that_is_cut_is_damage(tmp_path):
    path = tmp_path / "data"
    stream = zlib.compressobj(wbits=31)
    path.write_bytes(stream.compress(file_of(RECORDS)[:-3]) + stream.flush(zlib.Z_SYNC_FLUSH))
    for records in (
        tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator(),
        tf.compat.v1.io.tf_record_iterator(str(path), "GZIP"),
    ):
        assert RECORDS[:3] == [next(records) for _ in range(3)]
        with pytest.raises(tf.errors.DataLossError):
            next(records)


def test_a_buffer_of_all_elements_shuffles_them_all():
    dataset = Dataset.range(1000).filter(lambda x: x >= 0)
    found = values(dataset.shuffle(dataset.cardinality(), seed=1))
    assert list(range(1000)) == sorted(found)
    assert max(found[:100]) > 900
    with pytest.raises(tf.errors.InvalidArgumentError, match="endless"):
        Dataset.range(3).repeat().shuffle(tf.data.UNKNOWN_CARDINALITY)


def test_loading_can_wait(tmp_path):
    folder = str(tmp_path / "kept")
    saving = threading.Timer(0.2, Dataset.range(3).save, [folder])
    saving.start()
    assert [0, 1, 2] == values(Dataset.load(folder, wait=True))
    saving.join()


def test_names_of_files_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").touch()
    for pattern, name in [("*", b"./a"), ("a", b"a"), (b"./*", b"./a"), (tf.constant("?"), b"./a")]:
        assert [name] == list(Dataset.list_files(pattern).as_numpy_iterator())
    path = tmp_path / "*"
    assert [str(tmp_path / "a").encode()] == list(Dataset.list_files(path).as_numpy_iterator())
