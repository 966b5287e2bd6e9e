"""What compat does not have: one table of replacements, and the errors that name them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["Namespace", "missing"]

INSTEAD = {
    "Session": "everything runs at once; call functions and use what they return",
    "InteractiveSession": "everything runs at once; call functions and use what they return",
    "placeholder": "pass numpy arrays",
    "Graph": "everything runs at once",
    "TFRecordReader": "tf.data.TFRecordDataset(paths), or tfwire.read_records(paths)",
    "keras": "Keras itself; feed it numpy batches of tfwire.Parser(...).parse_file(...)",
    "contrib": "the library that took the part over",
    "global_variables_initializer": "nothing; there are no variables",
    "local_variables_initializer": "nothing; there are no variables",
    "group": "nothing; everything runs at once",
    "function": "nothing; drop the decorator, everything runs as Python",
    "train.string_input_producer": "tf.data.TFRecordDataset(paths).repeat(num_epochs)",
    "train.batch": "dataset.batch(batch_size)",
    "train.shuffle_batch": "dataset.shuffle(capacity).batch(batch_size)",
    "train.Coordinator": "nothing; iterate over the dataset",
    "train.start_queue_runners": "nothing; iterate over the dataset",
    "data.experimental.save": "tf.io.TFRecordWriter, or tfwire.write_records",
    "data.experimental.load": "tf.data.TFRecordDataset, or tfwire.read_records",
    "data.Dataset.cache": "list(dataset), or the file itself",
    "data.Dataset.interleave": "TFRecordDataset(paths, num_parallel_reads=n)",
    "data.Dataset.padded_batch": "dataset.batch(n), then a FixedLenSequenceFeature",
    "data.Dataset.make_one_shot_iterator": "iter(dataset)",
    "io.read_file": "open(path, 'rb').read()",
    "io.gfile": "open() and os, or fsspec",
    "gfile": "open() and os, or fsspec",
}


class Namespace(SimpleNamespace):
    """Names under ``tf.``; a name that is not here says what to use instead."""

    def __init__(self, path: str, **names: Any) -> None:
        super().__init__(**names)
        self.__dict__["_path"] = path

    def __getattr__(self, name: str) -> Any:
        raise missing(f"{self.__dict__.get('_path', '?')}.{name}")


def missing(name: str) -> AttributeError:
    replacement = INSTEAD.get(name)
    if replacement is None:
        return AttributeError(
            f"tf.{name} is not part of tfwire.compat, which has the names around TFRecord files "
            "and Examples; see docs/porting.md"
        )
    return AttributeError(f"tf.{name} lies outside a codec; instead: {replacement}")
