"""tfwire demo: a walk through the library on real data, in a folder of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import tfwire as tfw
from tfwire._interface.messages import show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError
from tfwire.cli.bench import PARSE, READ, READERS, MeasuredReader, Subject, compare, tensorflow

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    Array = np.ndarray[Any, Any]

_MARK = ".tfwire-demo"  # marks a folder that a demo created
_PACKAGES = {"PIL": "Pillow", "sklearn": "scikit-learn"}
_MOST_RECORDS = 10**8  # of the speed table, which are in memory as columns


def add_demo(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire demo."""
    parser.add_argument(
        "--folder",
        default="tfwire-demo",
        help="where to write: a new or empty folder, or that of an earlier demo (%(default)s)",
    )
    parser.add_argument(
        "--records",
        type=_arguments.positive,
        default=100_000,
        help="number of records for the speed table (%(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Checks the folder and what must be installed, then walks."""
    if options.records > _MOST_RECORDS:
        raise UsageError(f"--records must be at most {_MOST_RECORDS:,}")
    from pathlib import Path

    missing = [name for module, name in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise ImportError(f"needs {' and '.join(missing)}; pip install 'tfwire[demo]'")
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _MARK).exists() and os.listdir(folder):
        raise UsageError(f"{folder}: holds other files; name a new folder")
    (folder / _MARK).touch()

    observations(folder / "test.tfrecord")
    photographs(folder / "images.tfrecords")
    clothes(folder / "fashion_mnist_train.tfrecord")
    segmentation(folder / "segmentation.tfrecords")
    sentence(folder / "sequence.tfrecord")
    heading("How fast")
    speed(folder / "speed.tfrecord", observation_columns(options.records))
    return 0


# ---- The steps: each checks what it read against what it wrote ----------------------------------


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def confirm(equal: bool, what: str) -> None:
    """Prints that a comparison succeeded, or stops the demo."""
    if not equal:
        raise ValueError(f"{what}: what was read differs from what was written")
    print(f"  equal: {what}")


def describe_size(path: Path) -> str:
    """A file's size, and its size in blocks of 4 KiB, as du shows it."""
    size = path.stat().st_size
    return f"{show_path(path)} holds {size:,} bytes ({-(-size // 4096) * 4} KiB on disk)"


# ---- 10,000 observations of four features -----------------------------------------------------


def observation_columns(count: int, seed: int = 0) -> dict[str, Array]:
    """The tutorial's data set: (bool, int, bytes, float) per observation."""
    import numpy as np

    rng = np.random.default_rng(seed)
    feature1 = rng.integers(0, 5, count, np.int64)
    animals = np.array([b"cat", b"dog", b"chicken", b"horse", b"goat"], dtype=object)
    return {
        "feature0": rng.integers(0, 2, count, np.int64).astype(bool),
        "feature1": feature1,
        "feature2": animals[feature1],
        "feature3": rng.standard_normal(count),
    }


def observation_spec() -> dict[str, Any]:
    return {
        "feature0": tfw.FixedLenFeature([], tfw.int64, default_value=0),
        "feature1": tfw.FixedLenFeature([], tfw.int64, default_value=0),
        "feature2": tfw.FixedLenFeature([], tfw.string, default_value=""),
        "feature3": tfw.FixedLenFeature([], tfw.float32, default_value=0.0),
    }


def observations(path: Path) -> None:
    """Columns to a file and back, and one record as a message."""
    import numpy as np

    heading("10,000 observations: columns to records and back")
    columns, spec = observation_columns(10_000), observation_spec()
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns)
    print(f"  {describe_size(path)}")

    first = next(tfw.read_records(path))
    print("  the first record, as a message:")
    for line in str(tfw.train.Example.FromString(first)).splitlines()[:7]:
        print(f"    {line}")
    print("    ...")

    parsed = next(iter(tfw.Parser(spec).parse_file(path, batch_size=10_000)))
    print("  the first ten rows, parsed:")
    for row in zip(*(parsed[name][:10] for name in spec), strict=True):
        cells = (f"{name}={value!s:11}" for name, value in zip(spec, row, strict=True))
        print(f"    {''.join(cells).rstrip()}")
    for name, column in columns.items():
        expected = column.astype(np.float32) if name == "feature3" else column
        confirm(np.array_equal(parsed[name], expected), f"all 10,000 values of {name}")


# ---- Photographs ------------------------------------------------------------------------------


def sample_photographs() -> dict[str, bytes]:
    """The JPEG files of scikit-learn: a temple and a flower."""
    from importlib import resources

    folder = resources.files("sklearn.datasets") / "images"
    return {name: (folder / name).read_bytes() for name in ("china.jpg", "flower.jpg")}


def photographs(path: Path) -> None:
    """Encoded images with their size and label; the size is read without decoding."""
    import io

    from PIL import Image

    heading("Photographs: JPEG bytes with height, width, depth and label")
    originals = sample_photographs()
    with tfw.TFRecordWriter(path) as writer:
        for label, (name, jpeg) in enumerate(originals.items()):
            image = Image.open(io.BytesIO(jpeg))  # reads the header only
            features = {
                "height": image.height,
                "width": image.width,
                "depth": len(image.getbands()),
                "label": label,
                "image_raw": jpeg,
            }
            print(f"  {name}: {image.height} x {image.width} x {features['depth']}, label {label}")
            writer.write(features)
    print(f"  {describe_size(path)}")

    spec = {
        name: tfw.FixedLenFeature([], tfw.int64) for name in ("height", "width", "depth", "label")
    }
    spec["image_raw"] = tfw.FixedLenFeature([], tfw.string)
    for record, (name, jpeg) in zip(tfw.read_records(path), originals.items(), strict=True):
        features = tfw.parse_single_example(record, spec)
        confirm(features["image_raw"] == jpeg, f"the {len(jpeg):,} JPEG bytes of {name}")


# ---- Fashion-MNIST: arrays as raw bytes -------------------------------------------------------


def clothes(path: Path) -> None:
    """28 x 28 float32 images and one-hot float64 labels, stored as raw bytes."""
    import numpy as np

    heading("Fashion-MNIST shapes: arrays as raw bytes, decode_raw")
    rng = np.random.default_rng(1)
    images = rng.random((1000, 784), dtype=np.float32)
    labels = np.eye(10, dtype=np.float64)[rng.integers(0, 10, 1000, np.int64)]
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(
            {
                "image": [image.tobytes() for image in images],
                "label": [label.tobytes() for label in labels],
            }
        )
    print(f"  {describe_size(path)}")

    spec = {
        "image": tfw.FixedLenFeature([], tfw.string),
        "label": tfw.FixedLenFeature([], tfw.string),
    }
    seen = 0
    for batch in tfw.Parser(spec).parse_file(path, batch_size=16):
        image = tfw.decode_raw(batch["image"], np.float32).reshape(-1, 28, 28, 1)
        label = tfw.decode_raw(batch["label"], np.float64).reshape(-1, 10)
        stop = seen + len(image)
        if not np.array_equal(image.reshape(-1, 784), images[seen:stop]):
            raise ValueError(f"images {seen} to {stop} differ")
        if not np.array_equal(label, labels[seen:stop]):
            raise ValueError(f"labels {seen} to {stop} differ")
        seen = stop
    confirm(seen == len(images), "1,000 images and labels, in batches of 16")


# ---- Image and mask pairs ---------------------------------------------------------------------


def segmentation_pairs() -> list[tuple[Array, Array]]:
    """Photographs of three sizes, each with a mask of its bright pixels."""
    import io

    import numpy as np
    from PIL import Image

    pairs = []
    for jpeg, size in zip(
        [*sample_photographs().values()] * 2, [(300, 420), (427, 640), (500, 333)], strict=False
    ):
        image = np.asarray(Image.open(io.BytesIO(jpeg)).resize(size[::-1]))
        pairs.append((image, (image.mean(axis=2) > 128).astype(np.uint8)))
    return pairs


def segmentation(path: Path) -> None:
    """Raw pixels with their sizes; for batches, all images are made one size."""
    import numpy as np

    heading("Images and masks: raw pixels with their sizes, restored and batched")
    pairs = segmentation_pairs()
    with tfw.TFRecordWriter(path) as writer:
        for image, mask in pairs:
            writer.write(
                {
                    "height": image.shape[0],
                    "width": image.shape[1],
                    "image_raw": image.tobytes(),
                    "mask_raw": mask.tobytes(),
                }
            )
    print(f"  {describe_size(path)}")

    images, masks = [], []
    for record, (image, mask) in zip(tfw.read_records(path), pairs, strict=True):
        example = tfw.decode_example(record)
        height, width = int(example["height"][0]), int(example["width"][0])
        pixels = tfw.decode_raw(example["image_raw"][0], np.uint8).reshape(height, width, 3)
        classes = tfw.decode_raw(example["mask_raw"][0], np.uint8).reshape(height, width)
        confirm(np.array_equal(pixels, image), f"image of {height} x {width}")
        confirm(np.array_equal(classes, mask), f"mask of {height} x {width}")
        images.append(tfw.images.crop_or_pad(pixels, 384, 384))
        masks.append(tfw.images.crop_or_pad(classes, 384, 384))
    print(f"  cropped or padded: images {np.stack(images).shape}, masks {np.stack(masks).shape}")


# ---- A SequenceExample ------------------------------------------------------------------------


def sentence(path: Path) -> None:
    """Words of different lengths: context and feature lists."""
    heading("A SequenceExample: a context and lists of steps")
    words = ["the", "speed", "of", "memory"]
    context = {"length": len(words), "language": "en"}
    lists = {"words": words, "letters": [[ord(letter) for letter in word] for word in words]}
    tfw.write_records(path, [tfw.encode_sequence_example(context, lists)])

    read_context, read_lists = tfw.decode_sequence_example(next(tfw.read_records(path)))
    print(f"  context {read_context}")
    codes = [list(map(int, step)) for step in read_lists["letters"]]
    for word, letters in zip(read_lists["words"], codes, strict=True):
        print(f"  step {word} {letters}")
    spelled = [bytes(letters).decode() for letters in codes]
    confirm(spelled == words, "the letters of every word")


# ---- The speed of this machine ------------------------------------------------------------------

WRITE = "write a file"
SECONDS = 0.5  # for each row of the table


def speed(path: Path, columns: dict[str, Array]) -> None:
    """The table of tfwire bench, on one thread, with rows for writing before it."""
    file = Subject(str(path), "", observation_spec())
    sum(_write_columns(columns, file))
    writers = [
        MeasuredReader(WRITE, "tfwire", partial(_write_columns, columns)),
        MeasuredReader(WRITE, "TensorFlow", partial(_write_tensorflow, columns), "tensorflow"),
        MeasuredReader(WRITE, "protobuf messages", partial(_write_messages, columns)),
    ]
    readers = [reader for reader in READERS if reader.operation in (READ, PARSE)]
    installed = [each for each in (*writers, *readers) if each.installed]
    compare(tfw.verify_file(path), file, installed, SECONDS)
    if find_spec("tensorflow") is None:
        print("(TensorFlow is not installed here; with it, the table has more rows.)")


def _write_columns(columns: dict[str, Array], file: Subject) -> Iterator[int]:
    with tfw.TFRecordWriter(file.path) as writer:
        writer.write_columns(columns)
    yield len(columns["feature0"])


def _write_messages(columns: dict[str, Array], file: Subject) -> Iterator[int]:
    """Messages of protobuf, which has no record files: tfwire frames them."""
    with tfw.TFRecordWriter(f"{file.path}.protobuf") as writer:
        for message in _messages(tfw.train, columns):
            writer.write(message)
    yield len(columns["feature0"])


def _write_tensorflow(columns: dict[str, Array], file: Subject) -> Iterator[int]:
    tf = tensorflow()
    with tf.io.TFRecordWriter(f"{file.path}.tensorflow") as writer:
        for message in _messages(tf.train, columns):
            writer.write(message)
    yield len(columns["feature0"])


def _messages(train: Any, columns: dict[str, Array]) -> Iterator[bytes]:
    """Serialized messages, built as the tutorials build them."""
    for f0, f1, f2, f3 in zip(*(column.tolist() for column in columns.values()), strict=True):
        feature = {
            "feature0": train.Feature(int64_list=train.Int64List(value=[int(f0)])),
            "feature1": train.Feature(int64_list=train.Int64List(value=[f1])),
            "feature2": train.Feature(bytes_list=train.BytesList(value=[f2])),
            "feature3": train.Feature(float_list=train.FloatList(value=[f3])),
        }
        yield train.Example(features=train.Features(feature=feature)).SerializeToString()
