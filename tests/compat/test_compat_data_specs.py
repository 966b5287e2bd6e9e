"""Options, specs and lengths of tf.data, and what is refused there."""

import operator
import pickle
import threading
import time

import numpy as np
import pytest

import tfwire
import tfwire.compat as tf
from helpers.data.iterators_with_threads import LIMIT, Gate, within_limit

Dataset = tf.data.Dataset


def values(dataset):
    """The elements as Python values."""
    return [element.tolist() for element in dataset.as_numpy_iterator()]


def test_options_are_accepted_and_others_refused():
    options = tf.data.Options()
    options.experimental_deterministic = False
    options.deterministic = True
    options.autotune.enabled = True
    options.threading.private_threadpool_size = 4
    options.experimental_optimization.map_parallelization = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.threading = tf.data.ThreadingOptions()
    assert [0, 1] == values(Dataset.range(2).with_options(options))
    with pytest.raises(AttributeError, match="Cannot set the property nonsense"):
        options.nonsense = 1
    with pytest.raises(AttributeError, match="Cannot set the property nonsense"):
        options.autotune.nonsense = 1
    with pytest.raises(TypeError, match=r"tf\.data\.Options, found int"):
        Dataset.range(2).with_options(3)
    merged = options.merge(tf.data.Options())
    assert merged.autotune.enabled
    assert merged == options


def test_specs():
    spec = tf.TensorSpec([None, 2], tf.int64)
    assert spec.is_compatible_with(np.zeros((5, 2), np.int64))
    assert not spec.is_compatible_with(np.zeros((5, 3), np.int64))
    assert not spec.is_compatible_with(np.zeros((5, 2), np.int32))
    assert "TensorSpec(shape=(None, 2), dtype=tf.int64, name=None)" == repr(spec)
    assert tf.TensorSpec([2], tf.string) == tf.TensorSpec.from_tensor(["a", "b\0"])


def test_element_spec_of_a_function_is_that_of_its_first_elements():
    assert None is Dataset.range(0).map(lambda x: x).element_spec
    uneven = Dataset.range(1, 3).map(lambda n: tf.fill([n], 0))
    assert tf.TensorSpec([None], tf.int32) == uneven.element_spec
    parsed = Dataset.from_tensors([tfwire.encode_example({"a": 1})]).map(
        lambda x: tf.io.parse_example(x, {"a": tf.io.VarLenFeature(tf.int64)})
    )
    assert "SparseTensorSpec(TensorShape([1, 1]), tf.int64)" == repr(parsed.element_spec["a"])
    shuffled = Dataset.range(9).shuffle(9, seed=1)
    before = values(shuffled)
    shuffled = Dataset.range(9).shuffle(9, seed=1)
    assert shuffled.map(lambda x: x).element_spec == tf.TensorSpec([], tf.int64)
    assert before == values(shuffled), "looking at the spec is no pass"


def test_the_last_ragged_batch_of_scalars_may_be_shorter():
    numbers = Dataset.range(5)
    assert tf.TensorSpec([None], tf.int64) == numbers.ragged_batch(2).element_spec
    assert tf.TensorSpec([2], tf.int64) == numbers.ragged_batch(2, True).element_spec


def test_no_element_and_no_spec():
    nothing = Dataset.range(0).map(lambda x: x)
    assert Dataset.zip((nothing, Dataset.range(3))).element_spec is None
    assert Dataset.zip({"a": nothing.batch(2), "b": Dataset.range(3)}).batch(2).element_spec is None


def test_lengths():
    assert 5 == len(Dataset.range(5).repeat().take(5))
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(5).repeat())
    with pytest.raises(TypeError, match="not known"):
        len(Dataset.range(5).filter(lambda x: True))
    assert -2 == Dataset.range(5).filter(lambda x: True).cardinality()
    checked = (
        Dataset.range(5).filter(lambda x: True).apply(tf.data.experimental.assert_cardinality(5))
    )
    assert 5 == len(checked) == len(values(checked))
    for wrong in (4, 6):
        with pytest.raises(tf.errors.FailedPreconditionError, match=f"of {wrong} elements"):
            values(Dataset.range(5).apply(tf.data.experimental.assert_cardinality(wrong)))


def test_a_single_element():
    assert 7 == Dataset.from_tensors(7).get_single_element()
    for dataset in (Dataset.range(0), Dataset.range(2)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            dataset.get_single_element()


def of_sparse():
    return tf.SparseTensor([[0, 1]], tf.constant([5], tf.int64), [2, 3])


def of_ragged():
    return tf.RaggedTensor(tfwire.RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 3])))


@pytest.mark.parametrize(
    ("make", "spec"),
    [
        (of_sparse, tf.SparseTensorSpec([None, 3], tf.int64)),
        (of_ragged, tf.RaggedTensorSpec([None, None], tf.int64)),
    ],
)
def test_sparse_and_ragged_elements_of_generators(make, spec):
    signature = {"a": spec, "n": tf.TensorSpec([], tf.int64)}
    dataset = Dataset.from_generator(lambda: [{"a": make(), "n": 7}], output_signature=signature)
    assert signature == dataset.element_spec
    assert [repr(make())] == [repr(element["a"]) for element in dataset]
    (batch,) = dataset.batch(2)
    assert (1, 7) == (len(batch["n"]), int(batch["n"][0]))
    assert dataset.batch(2).element_spec["a"].is_compatible_with(batch["a"])
    assert not spec.is_compatible_with(tf.zeros([2, 3], tf.int64))
    other = Dataset.from_generator(lambda: [tf.zeros([2, 3], tf.int64)], output_signature=spec)
    with pytest.raises(TypeError, match=r"TensorSpec.* was expected|found"):
        list(other)


def test_sizes_of_batches_of_what_a_function_returns():
    dataset = Dataset.range(5).map(lambda x: tf.stack([x, x]))
    assert tf.TensorSpec([None, 2], tf.int64) == dataset.batch(2).element_spec
    assert tf.TensorSpec([2, 2], tf.int64) == dataset.batch(2, True).take(1).cache().element_spec
    longer = Dataset.from_tensors(tf.zeros(3, tf.int64))
    assert tf.TensorSpec([None], tf.int64) == dataset.concatenate(longer).element_spec
    pairs = Dataset.zip({"a": dataset.batch(2), "b": longer})
    assert [None, 2] == pairs.element_spec["a"].shape.as_list()
    assert Dataset.range(0).map(lambda x: x).batch(2).element_spec is None


@pytest.mark.parametrize(
    ("signature", "element", "words"),
    [
        (tf.TensorSpec([], tf.int32), 1.5, "tf.int32"),
        (tf.TensorSpec([2], tf.int32), [1, 2, 3], r"shape \(3,\)"),
        (tf.TensorSpec([], tf.string), 1, "tf.string"),
        ((tf.TensorSpec([], tf.int32),) * 2, (1,), "a tuple of 2, found a tuple of 1"),
        ({"a": tf.TensorSpec([], tf.int32)}, {"b": 1}, "keys"),
    ],
)
def test_generated_elements_are_checked(signature, element, words):
    dataset = Dataset.from_generator(lambda: [element], output_signature=signature)
    with pytest.raises(TypeError, match=words):
        list(dataset)


def add(state, x):
    return state + x, state


def odd(x):
    return x % 2


def pairs(key, window):
    return window.batch(2)


def vector(x):
    return tf.fill([x], x)


def size(x):
    return tf.size(x)


@pytest.mark.parametrize(
    "build",
    [
        lambda d: d.map(abs).filter(bool),
        lambda d: d.flat_map(Dataset.range).concatenate(d),
        lambda d: d.interleave(Dataset.range, 2),
        lambda d: d.scan(np.int64(0), add).take_while(operator.not_),
        lambda d: d.group_by_window(odd, pairs, 3).unbatch(),
        lambda d: d.map(vector).bucket_by_sequence_length(size, [2], [2, 2]).unbatch(),
        lambda d: d.enumerate().batch(2).cache(),
        lambda d: Dataset.zip({"a": d, "b": d.unique()}),
        lambda d: Dataset.sample_from_datasets([d, d], seed=1),
        lambda d: d.rejection_resample(odd, [0.5, 0.5], seed=1),
        lambda d: d.map(abs).ignore_errors(),
    ],
)
def test_pipelines_pickle_with_their_functions(build):
    dataset = build(Dataset.range(6))
    copy = pickle.loads(pickle.dumps(dataset))
    assert str(list(dataset)) == str(list(copy))


def gated(gate):
    return Dataset.range(40).map(lambda n: tf.py_function(lambda x: gate(int(x)), [n], tf.int64))


WAITING = {
    "one below": lambda source: source.enumerate().batch(2),
    "opened by the function": lambda source: Dataset.range(1).flat_map(lambda _: source),
    "one of several": lambda source: Dataset.range(1).interleave(lambda _: source, cycle_length=2),
    "kept": lambda source: source.cache(),
    "two deep": lambda source: Dataset.range(1).flat_map(lambda _: source.enumerate()).enumerate(),
}


@pytest.mark.parametrize("name", WAITING)
def test_closing_wakes_a_prefetch_at_any_depth(name, monkeypatch):
    monkeypatch.setattr("tfwire._base.workers.PATIENCE", 0.01)
    gate, found = Gate(3), []
    elements = iter(WAITING[name](gated(gate).prefetch(2)))
    consumer = threading.Thread(target=lambda: found.extend(elements), daemon=True)
    consumer.start()
    assert gate.reached.wait(LIMIT)
    time.sleep(0.02)  # until it waits, most probably
    within_limit(elements.close)
    consumer.join(LIMIT / 3)
    woken = not consumer.is_alive()
    gate.opened.set()
    assert woken


def test_arrays_of_text_become_tensors_of_bytes():
    arrays = [np.array(["a", "é"]), np.array(["a", "é"], object), np.array([b"a", "é"], object)]
    for tensor in tf.data.Dataset.from_generator(lambda: iter(arrays)):
        assert tensor.numpy().tolist() == [b"a", "é".encode()]


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.0, 0.0]])
def test_a_dataset_of_weight_zero_is_left_out(weights):
    """As in TensorFlow: it would never be drawn, and so never end."""
    datasets = [tf.data.Dataset.range(3), tf.data.Dataset.range(5)]
    sampled = tf.data.Dataset.sample_from_datasets(datasets, weights)
    assert [0, 1, 2] == [int(x) for x in sampled]


@pytest.mark.parametrize(
    "build",
    [
        lambda d: tf.data.Dataset.sample_from_datasets([d, tf.data.Dataset.range(2)]),
        lambda d: tf.data.Dataset.choose_from_datasets([d, d], tf.data.Dataset.range(2)),
        lambda d: d.window(2),
        lambda d: d.cache(),
        lambda d: d.batch(2).unbatch(),
        lambda d: d.ragged_batch(2),
        lambda d: d.apply(tf.data.experimental.assert_cardinality(-1)),
    ],
)
def test_what_is_endless_stays_endless(build):
    assert -1 == build(tf.data.Dataset.range(3).repeat()).cardinality()
    assert -1 != build(tf.data.Dataset.range(3).repeat()).map(abs).take(3).cardinality()


def test_sparse_features_have_the_specs_of_their_features():
    """Not those of the first elements, which may be of one size by chance."""
    features = {
        "v": tf.io.VarLenFeature(tf.int64),
        "s": tf.io.SparseFeature("v", "v", tf.int64, 9),
    }
    records = [tfwire.encode_example({"v": [1]})] * 4
    parsed = tf.data.Dataset.from_tensor_slices(records).batch(2).parse_example(features)
    for dataset in (parsed, parsed.prefetch(1), parsed.repeat(2)):
        spec = dataset.element_spec
        assert tf.SparseTensorSpec([None, None], tf.int64) == spec["v"]
        assert tf.SparseTensorSpec([None, 9], tf.int64) == spec["s"]
    one = tf.data.Dataset.from_tensor_slices(records).parse_example(features).element_spec
    assert [[None], [9]] == [one[key].shape.as_list() for key in "vs"]
