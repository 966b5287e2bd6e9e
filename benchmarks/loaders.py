"""A DataLoader of one process, with threads, beside one with worker processes; in turn.

    .venv-neighbours/bin/python benchmarks/loaders.py [--number=2] [--rounds=5] [W1:1024 ...]
    .venv-neighbours/bin/python benchmarks/loaders.py --device=cuda [--threads=1,2,4,8,16]
        [--workers=8] [--seconds=2] [--rounds=2] [W4:1024 W5:1024]

Of each workload and batch size the shortest of the rounds: records per second that arrive as
tensors, of four files and several epochs, with the workers running already. "shuffled" goes through
a buffer of 10,000 records; "images" are JPEG of 256 by 256 pixels, which Pillow decodes one by one.

With a device ("cpu", too): gigabytes of columns per second that arrive on it, by ThreadLoader with
that device, by ThreadLoader whose tensors are copied one by one, pinned and not, and by a
DataLoader of processes with pin_memory. It takes some four minutes.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

import tfwire as tfw
import workloads
from tfwire.torch import StringTensor, TFRecordIterableDataset, ThreadLoader

CASES = ["W1:1024", "W1:128", "W4:1024", "W5:1024", "W3:64", "W1 shuffled:1024", "images:32"]
NUM_FILES = 4
NUM_IMAGES = 600
IMAGE = {"image": tfw.FixedLenFeature([], tfw.string), "label": tfw.FixedLenFeature([], tfw.int64)}


# ---- What is read -------------------------------------------------------------------------------


def parts(name: str) -> list[Path]:
    """Four files with the records of a workload."""
    if name == "images":
        return [part(name, i, NUM_IMAGES, photos) for i in range(NUM_FILES)]
    work = workloads.workloads()[name]
    return [part(name, i, work.count, lambda: work.records) for i in range(NUM_FILES)]


def part(name: str, number: int, count: int, records: Any) -> Path:
    file = f"{name}-{count}-{number}-of-{NUM_FILES}.tfrecord"
    return workloads.cached(
        file, lambda path: print(tfw.write_records(path, records()[number::NUM_FILES]), file)
    )


@functools.cache
def photos() -> list[bytes]:
    """Examples of smooth images with some noise."""
    from PIL import Image

    rng, records = np.random.default_rng(2026), []
    for label in range(NUM_IMAGES):
        coarse = Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8))
        smooth = np.asarray(coarse.resize((256, 256))) // 2
        noisy = smooth + rng.integers(0, 16, smooth.shape, np.uint8)
        file = io.BytesIO()
        Image.fromarray(noisy).save(file, "JPEG")
        records.append(tfw.encode_example({"image": file.getvalue(), "label": label}))
    return records


def decode(example: Any) -> Any:
    from PIL import Image

    image = np.array(Image.open(io.BytesIO(example["image"])))
    return {"image": image, "label": example["label"]}


def pipeline(case: str, batch_size: int, epochs: int, num_threads: int) -> tfw.Dataset[Any]:
    name, *shuffled = case.split()
    dataset: Any = tfw.TFRecordDataset(parts(name))
    if shuffled:
        dataset = dataset.shuffle(10_000, seed=1)
    if name == "images":
        calls = num_threads if num_threads > 1 else None
        dataset = dataset.parse_example(IMAGE).map(decode, calls).batch(batch_size)
    else:
        spec = workloads.workloads()[name].spec(tfw)
        dataset = dataset.batch(batch_size).parse_example(spec)
    repeated: tfw.Dataset[Any] = dataset.repeat(epochs)
    return repeated


def unchanged(batch: Any) -> Any:
    """In place of torch's function, which looks at every string of a batch."""
    return batch


# ---- Measuring ----------------------------------------------------------------------------------


def rate(case: str, batch_size: int, epochs: int, num_threads: int, num_workers: int) -> float:
    """Records per second, from the first batch on."""
    dataset = pipeline(case, batch_size, epochs, num_threads)
    source = TFRecordIterableDataset(dataset, num_threads=num_threads)
    loader = DataLoader(source, None, num_workers=num_workers, collate_fn=unchanged)
    batches = iter(loader)
    next(batches)
    start, count = time.perf_counter(), 0
    for batch in batches:
        count += len(next(iter(batch.values())))
    return count / (time.perf_counter() - start)


# ---- To a device --------------------------------------------------------------------------------


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, StringTensor):
        return [value.values, value.lengths]
    return [each for part in value.values() for each in tensors(part)]


def copied(loader: Any, device: str) -> Iterator[list[torch.Tensor]]:
    """The tensors of batches, copied to a device one by one."""
    for batch in loader:
        yield [tensor.to(device, non_blocking=True) for tensor in tensors(batch)]


def arriving(way: str, number: int, case: str, device: str) -> Iterator[list[torch.Tensor]]:
    """The tensors of batches on a device, for longer than anybody waits."""
    name, size = case.split(":")
    spec = workloads.workloads()[name].spec(tfw)
    # In one pass: an epoch of such files takes some milliseconds.
    dataset = tfw.TFRecordDataset(parts(name) * 2000).batch(int(size)).parse_example(spec)
    source = TFRecordIterableDataset(dataset, strings="tensor")
    if way == "processes":
        options = {"num_workers": number, "pin_memory": device != "cpu", "collate_fn": unchanged}
        return copied(DataLoader(source, None, **options), device)
    if way == "device":
        return map(tensors, ThreadLoader(source, None, num_threads=number, device=device))
    pins = way == "pinned" and device != "cpu"
    return copied(ThreadLoader(source, None, num_threads=number, pin_memory=pins), device)


def arrival_rate(seconds: float, device: str, batches: Iterator[list[torch.Tensor]]) -> float:
    """Gigabytes per second, after as many batches as are made ahead."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    for _ in range(40):
        next(batches)
    wait()
    begin = now = time.perf_counter()
    count = 0
    while now < begin + seconds:
        count += sum(tensor.nbytes for tensor in next(batches))
        now = time.perf_counter()
    wait()
    return count / (time.perf_counter() - begin) / 1e9


def to_device(given: Any) -> None:
    ways = [(way, number) for number in given.threads for way in ("device", "each", "pinned")]
    ways.append(("processes", given.workers))
    machine = torch.cuda.get_device_name() if given.device != "cpu" else "cpu"
    print(
        f"GB of columns per second on {machine}, {os.cpu_count()} cores, torch {torch.__version__}"
    )
    for case in given.cases or ["W4:1024", "W5:1024"]:
        best = dict.fromkeys(ways, 0.0)
        for _ in range(given.rounds or 2):
            for way in ways:
                found = arrival_rate(
                    given.seconds, given.device, arriving(*way, case, given.device)
                )
                best[way] = max(best[way], found)
        theirs = best["processes", given.workers]
        print(f"{case}: {given.workers} processes {theirs:.2f}")
        print(f"{'threads':>10}{'device':>10}{'each':>10}{'pinned':>10}   device over processes")
        for number in given.threads:
            found = [best[way, number] for way in ("device", "each", "pinned")]
            print(f"{number:10}" + "".join(f"{rate:10.2f}" for rate in found), end="")
            print(f"{found[0] / theirs:10.2f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*")
    options.add_argument("--number", type=int, default=2, help="of threads, and of workers")
    options.add_argument("--rounds", type=int)
    options.add_argument("--device", choices=["cpu", "cuda"])
    options.add_argument("--threads", type=lambda text: list(map(int, text.split(","))))
    options.add_argument("--workers", type=int, default=8)
    options.add_argument("--seconds", type=float, default=2)
    options.set_defaults(threads=[1, 2, 4, 8, 16])
    given = options.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "This DataLoader will create")
    if given.device:
        return to_device(given)
    ways = {"1 thread": (1, 0), f"{given.number} threads": (given.number, 0)}
    ways[f"{given.number} workers"] = (1, given.number)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; records per second")
    print(f"{'':20}" + "".join(f"{way:>14}" for way in ways) + "   threads over workers")
    for case in given.cases or CASES:
        name, size = case.split(":")
        best = dict.fromkeys(ways, 0.0)
        count = sum(1 for _ in tfw.read_records(parts(name.split()[0])))
        epochs = {}
        for way, (threads, workers) in ways.items():
            few = max(3, 2 * NUM_FILES * int(size) // count)
            epochs[way] = max(few, int(rate(name, int(size), few, threads, workers) / count))
        for _ in range(given.rounds or 5):
            for way, (threads, workers) in ways.items():
                found = rate(name, int(size), epochs[way], threads, workers)
                best[way] = max(best[way], found)
        one, two, theirs = best.values()
        print(f"{case:20}{one:14,.0f}{two:14,.0f}{theirs:14,.0f}{two / theirs:10.2f}", flush=True)


if __name__ == "__main__":
    main()
