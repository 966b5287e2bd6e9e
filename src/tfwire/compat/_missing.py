"""What compat does not have: one table of replacements, and the errors that name them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["Explained", "Namespace", "missing"]

_AT_ONCE = "nothing; everything runs at once"
_NO_GRAPH = "nothing; there is no graph"
_NO_VARIABLES = "nothing; there are no variables"
_MODELS = "Keras, JAX or PyTorch, fed with numpy batches of tfwire.Parser(...).parse_file(...)"
_RANDOM = "numpy.random.default_rng(seed)"
_PILLOW = "Pillow, on x.numpy()"

# What is not here, and what to use.
INSTEAD = {
    "Session": "everything runs at once; call functions and use what they return",
    "InteractiveSession": "everything runs at once; call functions and use what they return",
    "placeholder": "pass numpy arrays",
    "Graph": _AT_ONCE,
    "group": _AT_ONCE,
    "while_loop": "a while statement",
    "map_fn": "tf.stack([f(x) for x in tensor])",
    "vectorized_map": "tf.stack([f(x) for x in tensor])",
    "global_variables_initializer": _NO_VARIABLES,
    "local_variables_initializer": _NO_VARIABLES,
    "Variable": "numpy arrays, or the variables of Keras, JAX or PyTorch",
    "get_variable": "numpy arrays, or the variables of Keras, JAX or PyTorch",
    "GradientTape": _MODELS,
    "keras": _MODELS,
    "nn": _MODELS,
    "layers": _MODELS,
    "estimator": _MODELS,
    "distribute": "dataset.shard_source(num_shards, index)",
    "contrib": "the library that took the part over",
    "TFRecordReader": "tf.data.TFRecordDataset(paths), or tfwire.read_records(paths)",
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
    "app": "absl.app, or a main function",
    "flags": "absl.flags, or argparse",
    "logging": "Python's logging",
    "print": "print(x.numpy())",
    "random": _RANDOM,
    "random_normal": _RANDOM,
    "random_shuffle": "numpy.random.default_rng(seed).permutation(x.numpy())",
    "random_uniform": _RANDOM,
    "set_random_seed": "seed= of dataset.shuffle, or " + _RANDOM,
    "ragged": "tfwire.RaggedTensor(values, row_splits)",
    "io.decode_base64": "base64.urlsafe_b64decode",
    "io.decode_bmp": "tf.io.decode_image",
    "io.decode_compressed": "zlib or gzip, or compression_type= of readers",
    "io.decode_csv": "csv, or numpy.loadtxt",
    "io.decode_gif": "Pillow, frame by frame",
    "io.encode_base64": "base64.urlsafe_b64encode",
    "io.encode_jpeg": _PILLOW,
    "io.encode_png": _PILLOW,
    "image.central_crop": "slices: image[top:bottom, left:right]",
    "image.convert_image_dtype": "tf.cast(image, tf.float32) / 255",
    "image.crop_to_bounding_box": "slices: image[top:bottom, left:right]",
    "image.flip_left_right": "tf.reverse(image, [-2])",
    "image.flip_up_down": "tf.reverse(image, [-3])",
    "image.per_image_standardization": "(x - x.mean()) / x.std(), on x.numpy()",
    "image.random_crop": "slices: image[top:bottom, left:right]",
    "image.random_flip_left_right": "tf.reverse(image, [-2])",
    "image.resize": _PILLOW,
    "image.resize_images": _PILLOW,
    "RaggedTensor.from_row_lengths": "tfwire.RaggedTensor(values, row_splits)",
    "RaggedTensor.from_row_splits": "tfwire.RaggedTensor(values, row_splits)",
    "RaggedTensor.to_sparse": "ragged.to_tensor()",
    "Tensor.T": "tf.transpose(x)",
    "Tensor.astype": "tf.cast(x, dtype)",
    "Tensor.eval": "x.numpy()",
    "Tensor.graph": _NO_GRAPH,
    "Tensor.name": _NO_GRAPH,
    "Tensor.op": _NO_GRAPH,
    "Tensor.ref": "id(x)",
    "Tensor.reshape": "tf.reshape(x, shape)",
    "Tensor.size": "tf.size(x)",
    "Tensor.tolist": "x.numpy().tolist()",
}


class Namespace(SimpleNamespace):
    """Names under ``tf.``; a name that is not here says what to use instead."""

    def __init__(self, path: str, **names: Any) -> None:
        super().__init__(**names)
        self.__dict__["_path"] = path

    def __getattr__(self, name: str) -> Any:
        raise missing(f"{self.__dict__.get('_path', '?')}.{name}")


class _ExplainedType(type):
    _tf_name: str

    def __getattr__(cls, name: str) -> Any:
        raise missing(f"{cls._tf_name}.{name}")


class Explained(metaclass=_ExplainedType):
    """A class whose missing attributes, its own and its objects', say what to use instead.

    Attributes:
        _tf_name: The name of the class after ``tf.``.
    """

    __slots__ = ()
    _tf_name = "?"

    def __getattr__(self, name: str) -> Any:
        raise missing(f"{self._tf_name}.{name}")


def missing(name: str) -> AttributeError:
    """The error of a name after ``tf.`` that is not here."""
    replacement = INSTEAD.get(name)
    if replacement is None:
        return AttributeError(
            f"tf.{name} is not in tfwire.compat, which has the names around TFRecord files and "
            "Examples; see docs/porting.md"
        )
    return AttributeError(f"tf.{name} is not in tfwire.compat; instead: {replacement}")
