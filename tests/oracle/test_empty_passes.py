"""Passes without elements, repeated through tf.data and through tfwire.compat."""

import random

import pytest
import tensorflow

import tfwire.compat

# TensorFlow's optimizer joins a shuffle and a repeat: then it fails for a count of 0, and never
# returns for an endless one.
PASSING = {
    "none": lambda dataset, rng: dataset.repeat(0),
    "repeat": lambda dataset, rng: dataset.repeat(rng.randint(1, 6)),
    "endless": lambda dataset, rng: dataset.repeat(),
    "filter": lambda dataset, rng: dataset.filter(lambda x: x % 2 == 1),
    "batch": lambda dataset, rng: dataset.batch(2, rng.random() < 0.5).unbatch(),
    "take": lambda dataset, rng: dataset.take(rng.randint(0, 9)),
    "skip": lambda dataset, rng: dataset.skip(rng.randint(0, 3)),
    "shard": lambda dataset, rng: dataset.shard(2, rng.randrange(2)),
    "concatenate": lambda dataset, rng: dataset.concatenate(dataset),
    "cache": lambda dataset, rng: dataset.cache(),
    "map": lambda dataset, rng: dataset.map(lambda x: x + 1),
    "flat_map": lambda dataset, rng: dataset.flat_map(
        lambda x: tensorflow_or_ours(dataset).data.Dataset.range(x % 3)
    ),
    "shuffle": lambda dataset, rng: dataset.shuffle(3),
}


def tensorflow_or_ours(dataset):
    return tensorflow if isinstance(dataset, tensorflow.data.Dataset) else tfwire.compat


def of_passes(tf, seed):
    """The numbers of a dataset that has another number of elements in each pass, often none."""
    rng = random.Random(seed)
    left = iter([rng.choice([0, 0, 0, 1, 2, 5]) for _ in range(40)])
    dataset = tf.data.Dataset.from_generator(
        lambda: range(next(left, 0)), output_signature=tf.TensorSpec((), tf.int64)
    )
    names = []
    for _ in range(rng.randint(1, 5)):
        names.append(rng.choice([name for name in PASSING if allowed(name, names)]))
        dataset = PASSING[names[-1]](dataset, rng)
    found = [int(x) for x in dataset.take(50)]
    return sorted(found) if "shuffle" in names else found


def allowed(name, before):
    """Whether a step may follow others: nothing that depends on the order follows a shuffle, and
    nothing that needs the end a pass without one."""
    if "endless" in before:
        return name in ("map", "take", "filter", "batch")
    if "shuffle" in before:
        return name in ("repeat", "map", "concatenate")
    return True


@pytest.mark.parametrize("first", range(0, 150, 10))
def test_passes_without_elements(first):
    for seed in range(first, first + 10):
        assert of_passes(tensorflow, seed) == of_passes(tfwire.compat, seed), seed
