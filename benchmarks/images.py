"""JPEGs to pixels: Pillow and torchvision by threads, and nvJPEG where there is a GPU.

    .venv-neighbours/bin/python benchmarks/images.py [--threads=1,2] [--seconds=2] [--rounds=2]

Images per second, the best of the rounds, of JPEGs of 384 by 384 pixels and some 60 KB: from
memory, decoded alone and resized to 224 by 224; and of TFRecord files, by one line of
decode_images, in the order of the files and shuffled. The second figure is per second of processor
time, which other programs on the machine do not disturb. It takes two minutes at most.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import tfwire as tfw
from tfwire.images import decode

COUNT, BATCH, FILES = 1024, 64, 4
SPEC = {"image": tfw.FixedLenFeature([], tfw.string), "label": tfw.FixedLenFeature([], tfw.int64)}


def stored() -> list[bytes]:
    """JPEGs whose content is between noise and a smooth surface."""
    random, found = np.random.default_rng(0), []
    for _ in range(BATCH):
        noise = random.integers(0, 256, (56, 56, 3), np.uint8)
        image = Image.fromarray(noise).resize((384, 384), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        image.save(file, "JPEG", quality=94)
        found.append(file.getvalue())
    return found


def write(folder: Path, images: list[bytes]) -> list[str]:
    pattern = str(folder / "images-{shard}-of-{shards}.tfrecord")
    with tfw.ShardedWriter(pattern, num_shards=FILES) as writer:
        for first in range(0, COUNT, BATCH):
            writer.write_columns({"image": images, "label": range(first, first + BATCH)})
    return [str(path) for path in writer.paths]


def decoders() -> Iterator[tuple[str, dict[str, Any]]]:
    """The names of decoders that are there, and the options that choose them."""
    yield "Pillow", {"library": "pillow"}
    try:
        decode([], library="torchvision")
    except ImportError as error:
        print(f"torchvision: {error}")
        return
    yield "torchvision", {"library": "torchvision"}
    import torch

    if torch.cuda.is_available():
        print(torch.cuda.get_device_name())
        yield "nvJPEG", {"device": "cuda"}


def rates(counts: Iterator[int], seconds: float, rounds: int) -> tuple[float, float]:
    """Images per second, and per second of the processors, of the best rounds.

    Args:
        counts: Makes images without end; gives how many it made in each step.
    """
    found = []
    next(counts)
    for _ in range(rounds):
        count, begin, used = 0, time.perf_counter(), time.process_time()
        while (passed := time.perf_counter() - begin) < seconds or not count:
            count += next(counts)
        found.append((count / passed, count / (time.process_time() - used)))
    by_clock, by_processor = map(max, zip(*found, strict=True))
    return by_clock, by_processor


def wait(pixels: Any) -> None:
    """Until a device has made them."""
    if getattr(pixels, "is_cuda", False):
        pixels[-1, -1, -1, -1].item()


def from_memory(images: list[bytes], **options: Any) -> Iterator[int]:
    ends = np.cumsum([0, *map(len, images)])
    column = tfw.BytesColumn(bytearray(b"".join(images)), ends)
    while True:
        wait(decode(column, 3, **options))
        yield len(images)


def from_files(dataset: tfw.Dataset[bytes], num_threads: int, **options: Any) -> Iterator[int]:
    batches = dataset.repeat().batch(BATCH).parse_example(SPEC, num_threads=num_threads)
    how = {"num_threads": num_threads, **options}
    for batch in batches.decode_images({"image": "image"}, 224, 3, **how):
        wait(batch["image"])
        yield len(batch["label"])


def rows(paths: list[str], images: list[bytes]) -> dict[str, Callable[..., Iterator[int]]]:
    """What is measured."""
    in_order = tfw.TFRecordDataset(paths)
    shuffled = tfw.TFRecordDataset(paths, indexed=True).shuffle(COUNT, seed=1)
    return {
        "memory, as they are": partial(from_memory, images),
        "memory, to 224": partial(from_memory, images, size=224),
        "files in order, to 224": partial(from_files, in_order),
        "shuffled, to 224": partial(from_files, shuffled),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    images = stored()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    print(f"{COUNT} JPEGs of {np.mean([*map(len, images)]):,.0f} bytes, batches of {BATCH}")
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), images)
        for name, chosen in decoders():
            for threads in map(int, options.threads.split(",")):
                for what, run in rows(paths, images).items():
                    counts = run(num_threads=threads, **chosen)
                    found = rates(counts, options.seconds, options.rounds)
                    shown = "".join(f"{each:12,.0f}" for each in found)
                    print(f"{name:12} {threads:2} threads  {what:24}{shown}", flush=True)


if __name__ == "__main__":
    main()
