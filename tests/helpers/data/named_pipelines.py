"""Pipelines of every source and stage over numbered files, by name; and how each goes on."""

from __future__ import annotations

import itertools
import json

import numpy as np

import tfwire.compat as tf
from helpers.data.files import SPEC, number_of
from tfwire import Dataset, TFRecordDataset


def indexed(files):
    return TFRecordDataset(files.plain, indexed=True)


def buffered(files):
    return TFRecordDataset(files.plain).shuffle(9, seed=1)


def sampled(**options):
    datasets = [Dataset.range(12), Dataset.range(100, 104), Dataset.range(200, 208).shuffle(5, 1)]
    return Dataset.sample_from_datasets(datasets, [0.5, 0.2, 0.3], **options)


NUMBERED = {  # their shards read only what is theirs
    "range": lambda files: Dataset.range(files.total),
    "arrays": lambda files: Dataset.from_tensor_slices(np.arange(files.total)),
    "indexed": indexed,
    "shuffled": lambda files: indexed(files).shuffle(1000, 1, reshuffle_each_iteration=False),
    "reshuffled": lambda files: indexed(files).shuffle(1000, seed=1),
    "mapped": lambda files: indexed(files).map(number_of, num_parallel_calls=2).prefetch(3),
    "parsed": lambda files: indexed(files).parse_example(SPEC),
    "padded shard": lambda files: indexed(files).shard_source(1, 0, "pad"),
}
STREAMS = {
    "files": lambda files: TFRecordDataset(files.plain),
    "files in turn": lambda files: TFRecordDataset(files.plain, num_parallel_reads=3),
    "shuffled files": lambda files: TFRecordDataset(files.plain, shuffle_files=True, seed=2),
    "generator": lambda files: Dataset.from_generator(lambda: range(files.total)),
    "buffer": buffered,
    "repeated": lambda files: indexed(files).shuffle(1000, seed=1).repeat(2),
    "batches": lambda files: indexed(files).batch(1).parse_example(SPEC),
    "shuffled batches": lambda files: buffered(files).batch(1).parse_example(SPEC),
    "padded batches": lambda files: (
        buffered(files).padded_batch(1).parse_example(SPEC, num_threads=2)
    ),
    "filtered": lambda files: TFRecordDataset(files.plain).filter(lambda x: number_of(x) % 3),
    "zip": lambda files: Dataset.zip(Dataset.range(files.total), indexed(files)),
}
COMBINED = {
    "concatenate": lambda files: Dataset.range(7).concatenate(
        TFRecordDataset(files.plain).map(number_of)
    ),
    "three": lambda files: (
        Dataset.range(0).concatenate(Dataset.range(5)).concatenate(Dataset.range(3).shuffle(3, 1))
    ),
    "enumerate": lambda files: buffered(files).enumerate(5),
    "unbatch": lambda files: buffered(files).batch(4).parse_example(SPEC).unbatch(),
    "unbatched arrays": lambda files: Dataset.from_generator(
        lambda: [np.arange(n) for n in (3, 0, 5, 0, 1)]
    ).unbatch(),
    "cache": lambda files: TFRecordDataset(files.plain).map(number_of).cache().shuffle(10, seed=1),
    "cached shuffle": lambda files: buffered(files).cache().repeat(2),
    "sample": lambda files: sampled(seed=3),
    "sample to the first end": lambda files: sampled(seed=3, stop_on_empty_dataset=True),
    "all": lambda files: (
        sampled(seed=3).batch(4).concatenate(Dataset.range(3).batch(2)).unbatch().enumerate()
    ),
}
OTHERS = {
    "gzip": lambda files: TFRecordDataset(files.gzip, "GZIP"),
    "parsed gzip": lambda files: TFRecordDataset(files.gzip, "GZIP").parse_example(SPEC),
    "skipping": lambda files: TFRecordDataset(files.plain, on_corrupt="skip"),
    "damaged": lambda files: TFRecordDataset(files.damaged, on_corrupt="skip").parse_example(SPEC),
    "damaged in turn": lambda files: TFRecordDataset(
        files.damaged, num_parallel_reads=2, on_corrupt="skip"
    ),
    "all in turn": lambda files: TFRecordDataset(files.plain, num_parallel_reads=9).batch(3),
    "parsed batches": lambda files: TFRecordDataset(files.plain).batch(4).parse_example(SPEC),
    "packed": lambda files: buffered(files).repeat().batch(4).parse_example(SPEC),
    "by threads": lambda files: buffered(files).batch(4).parse_example(SPEC, num_threads=2),
    "one by one": lambda files: TFRecordDataset(files.plain).parse_example(SPEC).batch(4),
    "endless": lambda files: Dataset.range(30).repeat().shuffle(9, 1).batch(2),
    "shuffled twice": lambda files: Dataset.range(files.total).shuffle(5, 1).shuffle(7, 2),
    "thresholds": lambda files: Dataset.range(files.total).shuffle_batch(3, 9, 5, 1),
    "generated twice": lambda files: (
        Dataset.from_generator(lambda: range(files.total)).take(50).repeat(2)
    ),
    "shard": lambda files: TFRecordDataset(files.plain).shard(3, 1).skip(2).take(9),
    "source shard": lambda files: indexed(files).shard_source(3, 2, "pad"),
    "mapped and filtered": lambda files: (
        Dataset.range(files.total).map(abs).filter(bool).batch(5).prefetch(1)
    ),
    "zip of shuffles": lambda files: Dataset.zip(
        Dataset.range(50).shuffle(9, 3).prefetch(1), TFRecordDataset(files.plain)
    ).repeat(2),
    "interleave": lambda files: Dataset.range(4).interleave(Dataset.range, 3, 2),
    "window": lambda files: tf.data.Dataset.range(73).window(4, 2).flat_map(lambda w: w),
    "grouped": lambda files: (
        tf.data.TFRecordDataset(files.plain)
        .shuffle(9, 2)
        .enumerate()
        .group_by_window(lambda i, r: i % 3, lambda k, w: w.batch(4), 4)
    ),
}
PIPELINES = NUMBERED | STREAMS | COMBINED | OTHERS


def goes_on_everywhere(make, other=None, show=repr, step=1, most=60):
    """Checks that a pass goes on, in a dataset of ``make`` or of ``other``, after each of its
    elements, or each so many, of the first ones; returns these."""
    make_other, few = other or make, 9

    def first(elements):
        return list(map(show, itertools.islice(elements, few)))

    def resumed(elements, make):
        following = iter(make())
        following.load_state_dict(json.loads(json.dumps(elements.state_dict())))
        return following

    expected = list(map(show, itertools.islice(make(), most + 2 * few)))
    elements = iter(make())
    for place in range(0, min(len(expected) + 1, most), step):
        following = resumed(elements, make_other)
        again = resumed(following, make)  # before anything is read
        assert first(following) == first(again) == expected[place : place + few]
        third = resumed(following, make_other)
        assert first(third) == expected[place + few : place + 2 * few]
        for each in (following, again, third):
            each.close()
        for _ in range(step):
            next(elements, None)
    elements.close()
    return expected
