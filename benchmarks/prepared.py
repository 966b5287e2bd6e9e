"""tfwire.tfds beside TensorFlow Datasets (TFDS), on a folder that TFDS prepares.

    .venv-tfds/bin/python benchmarks/prepared.py [--images 2000] [--passes 3]

CPU seconds of processes of their own, in turn; the median of each counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

# Prepares a folder: jpegs of 256x256 with a label and a name.
PREPARE = """
import numpy as np
import tensorflow_datasets as tfds

folder, count = sys.argv[1], int(sys.argv[2])
features = tfds.features.FeaturesDict({
    "image": tfds.features.Image(encoding_format="jpeg"),
    "label": tfds.features.ClassLabel(names=["cat", "dog"]),
    "name": tfds.features.Text(),
})
random = np.random.default_rng(0)
blocks = random.integers(0, 255, (20, 32, 32, 3), np.uint8).repeat(8, 1).repeat(8, 2)
rows = [(n, {"image": blocks[n % 20], "label": n % 2, "name": f"{n}"}) for n in range(count)]
tfds.dataset_builders.store_as_tfds_dataset(
    name="pets", version="1.0.0", features=features, data_dir=folder,
    split_datasets={"train": rows}, disable_shuffling=True,
)
"""
# Each prints the CPU seconds of the steps: open and 32 examples, the same with imports, an epoch
# without decoding, one with decoding.
THEIRS = """
import tensorflow_datasets as tfds

imported = clock()
def examples(count=None, **options):
    data = tfds.builder_from_directory(sys.argv[1]).as_dataset(split="train", **options)
    data = data if count is None else data.take(count)
    return sum(1 for _ in tfds.as_numpy(data))
examples(32)
opened = clock()
examples(decoders={"image": tfds.decode.SkipDecoding()})
raw = clock()
examples()
"""
OURS = """
import tfwire.tfds

imported = clock()
def examples(count=None, **options):
    train = tfwire.tfds.open(sys.argv[1], **options)["train"]
    return len(train[:count]) if count else sum(1 for _ in train)
examples(32)
opened = clock()
examples(decoders={"image": tfwire.tfds.SkipDecoding()})
raw = clock()
examples()
"""
START = "import sys\nfrom time import process_time as clock\nbegin = clock()\n"
END = "\nprint(opened - imported, opened - begin, raw - opened, clock() - raw)\n"
ROWS = [
    "open, and the first 32 examples",
    "the same with imports",
    "an epoch without decoding",
    "an epoch with decoding",
]


def run(program: str, *arguments: str) -> str:
    source = str(Path(__file__).resolve().parent.parent / "src")
    env = {**os.environ, "PYTHONPATH": source, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run("import sys\n" + PREPARE, folder, str(options.images))
        version = str(next(Path(folder).rglob("features.json")).parent)
        found: dict[str, list[list[float]]] = {THEIRS: [], OURS: []}
        for _ in range(options.passes):
            for program, seconds in found.items():
                printed = run(START + program + END, version)
                seconds.append([float(word) for word in printed.split()])
    print(f"CPU seconds, {options.images} JPEGs of 256x256\n")
    print("| | TFDS | tfwire | |\n|---|---|---|---|")
    for number, row in enumerate(ROWS):
        theirs = median(seconds[number] for seconds in found[THEIRS])
        ours = median(seconds[number] for seconds in found[OURS])
        print(f"| {row} | {theirs:.3f} s | {ours:.3f} s | {theirs / ours:.1f} times |")


if __name__ == "__main__":
    main()
