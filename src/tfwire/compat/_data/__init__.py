"""``tf.data`` and ``tf.data.experimental``: names for datasets."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from tfwire.compat._data import generators, transformations
from tfwire.compat._data.dataset import AUTOTUNE, Dataset, Iterator, Optional, get_next_as_optional
from tfwire.compat._data.file_datasets import (
    DatasetWriter,
    FixedLengthRecordDataset,
    TextLineDataset,
    TFRecordDataset,
)
from tfwire.compat._data.specs import DatasetSpec
from tfwire.compat._data.transformations import INFINITE, UNKNOWN
from tfwire.compat._errors import Namespace


def _applying(method: str) -> Any:
    """A function of ``tf.data.experimental`` whose result is for ``dataset.apply``."""

    def transformation(*args: Any, **kwargs: Any) -> Any:
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    transformation.__name__ = method
    transformation.__doc__ = f"What ``dataset.apply`` makes ``dataset.{method}(...)`` of."
    return transformation


def _map_and_batch(
    map_func: Any,
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Any:
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def _shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Any:
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def _parallel_interleave(
    map_func: Any,
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Any:
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def _parse_example_dataset(
    features: Any, num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Any:
    return lambda dataset: dataset.parse_example(features)


def _assert_cardinality(expected_cardinality: Any) -> Any:
    expected = int(expected_cardinality)
    return lambda dataset: dataset.apply(partial(_checked, expected))


def _checked(expected: int, dataset: Any) -> Any:
    """A dataset with a stated number of elements, which raises if the number is wrong."""
    checking = partial(generators.counted, expected)
    facts = {"length": expected if expected >= 0 else None, "endless": expected == INFINITE}
    name = "assert_endless" if expected == INFINITE else "assert_cardinality"
    return dataset._generated(name, checking, **facts, given=(dataset._stage,))


def _prefetch_to_device(device: Any, buffer_size: int | None = None) -> Any:
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


_METHODS = (
    "bucket_by_sequence_length",
    "group_by_window",
    "ignore_errors",
    "rejection_resample",
    "scan",
    "snapshot",
    "take_while",
    "unbatch",
    "unique",
)

experimental: Namespace = Namespace(
    "data.experimental",
    Optional,
    get_next_as_optional,
    AUTOTUNE=AUTOTUNE,
    **{name: _applying(name) for name in _METHODS},
    AutoShardPolicy=SimpleNamespace(OFF=-1, AUTO=0, FILE=1, DATA=2, HINT=3),
    AutotuneAlgorithm=SimpleNamespace(
        DEFAULT=0, HILL_CLIMB=1, GRADIENT_DESCENT=2, MAX_PARALLELISM=3
    ),
    AutotuneOptions=transformations.AutotuneOptions,
    Counter=Dataset.counter,
    DistributeOptions=transformations.DistributeOptions,
    ExternalStatePolicy=SimpleNamespace(WARN=0, IGNORE=1, FAIL=2),
    INFINITE_CARDINALITY=INFINITE,
    OptimizationOptions=transformations.OptimizationOptions,
    RandomDataset=Dataset.random,
    TFRecordWriter=DatasetWriter,
    ThreadingOptions=transformations.ThreadingOptions,
    UNKNOWN_CARDINALITY=UNKNOWN,
    assert_cardinality=_assert_cardinality,
    cardinality=lambda dataset: dataset.cardinality(),
    choose_from_datasets=Dataset.choose_from_datasets,
    dense_to_ragged_batch=_applying("ragged_batch"),
    enumerate_dataset=_applying("enumerate"),
    get_single_element=lambda dataset: dataset.get_single_element(),
    get_structure=lambda dataset_or_iterator: dataset_or_iterator.element_spec,
    load=Dataset.load,
    map_and_batch=_map_and_batch,
    parallel_interleave=_parallel_interleave,
    parse_example_dataset=_parse_example_dataset,
    prefetch_to_device=_prefetch_to_device,
    sample_from_datasets=Dataset.sample_from_datasets,
    save=lambda dataset, *args, **kwargs: dataset.save(*args, **kwargs),
    shuffle_and_repeat=_shuffle_and_repeat,
)

data: Namespace = Namespace(
    "data",
    Dataset,
    DatasetSpec,
    FixedLengthRecordDataset,
    Iterator,
    TFRecordDataset,
    TextLineDataset,
    AUTOTUNE=AUTOTUNE,
    experimental=experimental,
    INFINITE_CARDINALITY=INFINITE,
    Options=transformations.Options,
    ThreadingOptions=transformations.ThreadingOptions,
    UNKNOWN_CARDINALITY=UNKNOWN,
)
