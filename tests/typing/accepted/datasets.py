"""Datasets: where elements come from, what the methods make of them, iterators."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tfwire as tfw

# ---- Where elements come from ----

records = tfw.TFRecordDataset(["a", "b"], "GZIP", num_parallel_reads=2, on_corrupt="skip")
for record in records:
    assert_type(record, bytes)
numbers = tfw.Dataset.range(10)
assert_type(numbers, tfw.Dataset[np.int64])
names = tfw.Dataset.list_files("*.tfrecord", shuffle=False)
assert_type(names, tfw.Dataset[bytes])
tfw.TFRecordDataset(names)
tfw.TFRecordDataset("a", max_record_size=None).batch(2)


def pairs(count: int) -> Iterator[tuple[int, str]]:
    for i in range(count):
        yield i, str(i)


generated = tfw.Dataset.from_generator(pairs, args=(3,))
assert_type(generated, tfw.Dataset[tuple[int, str]])
assert_type(tfw.Dataset.from_tensor_slices(["a", "b"]), tfw.Dataset[bytes])
assert_type(tfw.Dataset.from_tensor_slices({"x": [1, 2]}), tfw.Dataset[dict[str, Any]])
assert_type(tfw.Dataset.from_tensor_slices(np.arange(3)), tfw.Dataset[Any])
assert_type(tfw.Dataset.zip(numbers, names), tfw.Dataset[tuple[np.int64, bytes]])
assert_type(tfw.Dataset.zip((numbers, names)), tfw.Dataset[tuple[Any, ...]])

# ---- What the methods make of them ----


def noisy(number: np.int64, generator: np.random.Generator) -> float:
    return float(number) + generator.random()


some = numbers.take(3).skip(1).repeat(2).shuffle(10, seed=1).shard(2, 0)
assert_type(some, tfw.Dataset[np.int64])
assert_type(records.map(len), tfw.Dataset[int])
assert_type(numbers.map(lambda x: int(x) * 2), tfw.Dataset[int])
assert_type(numbers.map(noisy, seed=1), tfw.Dataset[float])
assert_type(numbers.filter(lambda x: bool(x > 2)), tfw.Dataset[np.int64])


def joined(number: int, text: str) -> str:
    return f"{number} {text}"


assert_type(generated.map(joined), tfw.Dataset[str])
batches = records.shuffle(1000).batch(32, drop_remainder=True).prefetch(2)
batches.parse_example({"x": tfw.FixedLenFeature([], tfw.int64), "y": tfw.VarLenFeature(tfw.int64)})
for element in records.parse_example({"x": tfw.FixedLenFeature([], tfw.int64)}):
    assert_type(element, dict[str, Any])
for tags in records.parse_example({"tags": tfw.VarLenFeature(tfw.string)}):
    assert_type(tags["tags"], tfw.SparseTensor)
for batch in records.batch(2).parse_example({"x": tfw.FixedLenFeature([], tfw.int64)}):
    batch["x"].mean()
pictures = records.parse_example({"x": tfw.FixedLenFeature([], tfw.string)})
assert_type(
    pictures.decode_images({"x": "image"}, size=224, channels=3, num_threads=2, device="cuda"),
    tfw.Dataset[dict[str, Any]],
)
for row in pictures.pack({"x": 3}, num_bins=2, on_long="trim", padding_values={"x": b""}):
    row["x_positions"].tolist()
records.shard_source(4, 1, "pad").padded_batch(4, padded_shapes=[None], padding_values=-1)
records.shuffle_batch(32, capacity=1000, min_after_dequeue=100)
len(numbers)
numbers.set_epoch(3)
assert_type(numbers.concatenate(numbers), tfw.Dataset[np.int64])
assert_type(names.enumerate(), tfw.Dataset[tuple[np.int64, bytes]])
assert_type(numbers.cache().batch(2).unbatch(), tfw.Dataset[Any])
assert_type(
    tfw.Dataset.sample_from_datasets([names, names], [0.5, 0.5], seed=1), tfw.Dataset[bytes]
)
tfw.TFRecordDataset("a", shuffle_files=True, seed=1)

# ---- Iterators ----

records.parse_example({"x": tfw.FixedLenFeature([], tfw.int64)}, num_threads=2)
assert_type(numbers.map(float, num_parallel_calls=2), tfw.Dataset[float])
elements = iter(numbers)
assert_type(elements, tfw.DatasetIterator[np.int64])
assert_type(next(elements), np.int64)
assert_type(elements.state_dict(), dict[str, object])
elements.load_state_dict(json.loads(json.dumps(elements.state_dict())))
elements.load_state_dict(elements.state_dict())
elements.close()
with iter(numbers) as closing:
    assert_type(closing, tfw.DatasetIterator[np.int64])
for plain in numbers.as_numpy_iterator():
    assert_type(plain, np.int64)


def total(dataset: tfw.Dataset[npt.NDArray[np.int64]]) -> int:
    return sum(int(array.sum()) for array in dataset)
