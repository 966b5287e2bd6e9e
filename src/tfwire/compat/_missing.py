"""Names that compat does not have: the table of replacements, and the errors that name them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["Explained", "Namespace", "missing"]

_NO_GRAPH = "nothing; there is no graph"
_MODELS = "Keras, JAX or PyTorch, fed with numpy batches of tfwire.Parser(...).parse_file(...)"
_RANDOM = "numpy.random.default_rng(seed)"
_NUMPY = "numpy, on x.numpy()"
_PILLOW = "Pillow, on x.numpy()"

# Names after ``tf.``, and what to use instead.
INSTEAD = {
    "while_loop": "a while statement",
    "map_fn": "tf.stack([f(x) for x in tensor])",
    "vectorized_map": "tf.stack([f(x) for x in tensor])",
    "Variable": "numpy arrays, or the variables of Keras, JAX or PyTorch",
    "get_variable": "numpy arrays, or the variables of Keras, JAX or PyTorch",
    "GradientTape": _MODELS,
    "keras": _MODELS,
    "nn": _MODELS,
    "layers": _MODELS,
    "estimator": _MODELS,
    "distribute": "dataset.shard_source(num_shards, index)",
    "contrib": "the library that took the part over",
    "FIFOQueue": "tf.train.string_input_producer, tf.train.batch, or a dataset",
    "QueueBase": "tf.train.string_input_producer, tf.train.batch, or a dataset",
    "RandomShuffleQueue": "tf.train.shuffle_batch, or dataset.shuffle",
    "PaddingFIFOQueue": "tf.train.batch(..., dynamic_pad=True), or dataset.padded_batch",
    "Print": "print(x.numpy())",
    "Queue.enqueue": "a dataset",
    "Queue.enqueue_many": "a dataset",
    "Queue.size": "nothing; no thread fills it",
    "Session.graph_def": _NO_GRAPH,
    "Session.list_devices": _NO_GRAPH,
    "Session.make_callable": "session.run",
    "Session.partial_run": "session.run",
    "TensorArray": "a list, and tf.stack",
    "TFRecordReader.num_records_produced": "a count in Python",
    "TFRecordReader.num_work_units_completed": "a count in Python",
    "TFRecordReader.reset": "another session, which reads from the beginning",
    "train.*": _MODELS,
    "train.QueueRunner": "tf.train.batch, or a dataset",
    "train.SessionRunHook": "a call in the loop around session.run",
    "train.Supervisor": "tf.train.MonitoredSession",
    "train.add_queue_runner": "tf.train.batch, or a dataset",
    "train.get_global_step": "a count in Python",
    "train.get_or_create_global_step": "a count in Python",
    "train.limit_epochs": "num_epochs= of tf.train.string_input_producer",
    "data.Dataset.fingerprint": "repr(dataset)",
    "data.Dataset.from_sparse_tensor_slices": "tf.data.Dataset.from_tensor_slices",
    "data.Dataset.map_with_legacy_function": "dataset.map",
    "data.Dataset.filter_with_legacy_function": "dataset.filter",
    "data.Dataset.options": "tf.data.Options(): no option changes anything",
    "data.Dataset.sparse_batch": "dataset.ragged_batch, or dataset.padded_batch",
    "data.experimental.CsvDataset": "csv, and tf.data.Dataset.from_generator",
    "data.experimental.SqlDataset": "sqlite3, and tf.data.Dataset.from_generator",
    "data.experimental.copy_to_device": "nothing; everything runs on the CPU",
    "data.experimental.dense_to_sparse_batch": "tf.data.experimental.dense_to_ragged_batch",
    "data.experimental.make_batched_features_dataset": "TFRecordDataset(files).shuffle(n)"
    ".repeat(epochs).batch(size).parse_example(features)",
    "data.experimental.make_csv_dataset": "csv, and tf.data.Dataset.from_generator",
    "data.experimental.make_saveable_from_iterator": "iterator.state_dict()",
    "data.experimental.service": "dataset.shard_source(num_shards, index)",
    "app": "absl.app, or a main function",
    "flags": "absl.flags, or argparse",
    "logging": "Python's logging",
    "print": "print(x.numpy())",
    "random": _RANDOM,
    "random_normal": _RANDOM,
    "random_shuffle": "numpy.random.default_rng(seed).permutation(x.numpy())",
    "random_uniform": _RANDOM,
    "set_random_seed": "seed= of dataset.shuffle, or " + _RANDOM,
    "decode_csv": "csv, or numpy.loadtxt",
    "lookup": "a dict, in a function of dataset.map",
    "argsort": _NUMPY,
    "data.experimental.from_list": "tf.data.Dataset.from_tensor_slices",
    "gather_nd": _NUMPY,
    "get_logger": "Python's logging",
    "global_variables": "nothing; there are no variables",
    "linalg": _NUMPY,
    "math.*": _NUMPY,
    "matmul": "x @ y",
    "sequence_mask": _NUMPY,
    "sort": _NUMPY,
    "sparse.*": "numpy, on x.indices.numpy() and x.values.numpy()",
    "to_double": "tf.cast(x, tf.float64)",
    "train.summary_iterator": "tf.compat.v1.io.tf_record_iterator, and protobuf messages of events",
    "trainable_variables": "nothing; there are no variables",
    "unique": _NUMPY,
    "random_crop": "slices: image[top:bottom, left:right]",
    "string_split": "tf.strings.split",
    "strings.*": "the methods of bytes, in a function of dataset.map",
    "summary": "tensorboardX, or torch.utils.tensorboard",
    "ragged": "tfwire.RaggedTensor(values, row_splits)",
    "io.decode_base64": "base64.urlsafe_b64decode",
    "io.decode_bmp": "tf.io.decode_image",
    "io.decode_compressed": "zlib or gzip, or compression_type= of readers",
    "io.decode_csv": "csv, or numpy.loadtxt",
    "io.decode_gif": "Pillow, frame by frame",
    "io.encode_base64": "base64.urlsafe_b64encode",
    "io.encode_jpeg": _PILLOW,
    "io.encode_png": _PILLOW,
    "image.*": "numpy or Pillow, on x.numpy()",
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
    "Tensor.graph": _NO_GRAPH,
    "Tensor.name": _NO_GRAPH,
    "Tensor.op": _NO_GRAPH,
    "Tensor.ref": "id(x)",
    "Tensor.reshape": "tf.reshape(x, shape)",
    "Tensor.size": "tf.size(x)",
    "Tensor.tolist": "x.numpy().tolist()",
}


class Namespace(SimpleNamespace):
    """Names under ``tf.``; the error of a missing name says what to use instead."""

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
    namespace = name.rpartition(".")[0]
    replacement = INSTEAD.get(name) or INSTEAD.get(f"{namespace}.*")
    if replacement is None:
        return AttributeError(
            f"tf.{name} is not in tfwire.compat, which has the names around TFRecord files and "
            "Examples; see docs/porting.md"
        )
    return AttributeError(f"tf.{name} is not in tfwire.compat; instead: {replacement}")
