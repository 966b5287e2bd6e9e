"""``tf.errors``: the errors of tfwire under TensorFlow's names.

OpError, DataLossError and InvalidArgumentError are tfwire's own classes, so that ``except`` clauses
written for TensorFlow catch what readers and parsers raise. Errors of the operating system are both
TensorFlow's and Python's: a missing file is a NotFoundError, an OpError and a FileNotFoundError.

Names that compat does not have are in the table ``INSTEAD``: the error says what to use.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn

from tfwire import DataLossError, Error
from tfwire._interface.messages import InvalidArgumentError, printable

# What to use instead of names after ``tf.``
_USE_FOR = {
    "a while statement": "while_loop",
    "tf.stack([f(x) for x in tensor])": "map_fn vectorized_map",
    "numpy arrays, or the variables of Keras, JAX or PyTorch": "Variable get_variable",
    "Keras, JAX or PyTorch, fed with numpy batches of "
    "tfwire.Parser(...).parse_file(...)": "GradientTape keras nn layers estimator train.* losses "
    "metrics initializers truncated_normal_initializer variable_scope gradients custom_gradient "
    "stop_gradient saved_model mixed_precision",
    "dataset.shard_source(num_shards, index)": "distribute data.experimental.service",
    "the library that took the part over": "contrib",
    "tf.train, which has the messages of Examples": "core",
    "the public name, without python": "python",
    "queues[index]": "FIFOQueue.from_list",
    "the queue itself": "FIFOQueue.queue_ref",
    "tf.queue.FIFOQueue": "QueueBase queue.QueueBase Queue.enqueue Queue.enqueue_many",
    "tf.train.shuffle_batch, or dataset.shuffle": "RandomShuffleQueue queue.RandomShuffleQueue",
    "tf.train.batch(..., dynamic_pad=True), or dataset.padded_batch": "PaddingFIFOQueue "
    "queue.PaddingFIFOQueue",
    "heapq": "queue.PriorityQueue",
    "urllib.request.urlretrieve(url, path)": "get_file",  # of tf.keras.utils
    "print(x.numpy())": "Print print",
    "nothing; no thread fills it": "Queue.size",
    "nothing; there is no graph": "get_collection add_to_collection GraphKeys Session.graph_def "
    "Session.list_devices Tensor.graph Tensor.name Tensor.op",
    "session.run": "Session.make_callable Session.partial_run",
    "a list, and tf.stack": "TensorArray",
    "a call in the loop around session.run": "train.SessionRunHook",
    "tf.train.MonitoredSession": "train.Supervisor",
    "a count in Python": "train.get_global_step train.get_or_create_global_step",
    "num_epochs= of tf.train.string_input_producer": "train.limit_epochs",
    "repr(dataset)": "data.Dataset.fingerprint",
    "tf.data.Dataset.from_tensor_slices": "data.Dataset.from_sparse_tensor_slices",
    "tf.data.Dataset.from_generator(lambda: elements)": "data.experimental.from_list",
    "dataset.map": "data.Dataset.map_with_legacy_function",
    "dataset.filter": "data.Dataset.filter_with_legacy_function",
    "tf.data.Options(): no option changes anything": "data.Dataset.options",
    "dataset.ragged_batch, or dataset.padded_batch": "data.Dataset.sparse_batch",
    "csv, and tf.data.Dataset.from_generator": "data.experimental.CsvDataset "
    "data.experimental.make_csv_dataset",
    "sqlite3, and tf.data.Dataset.from_generator": "data.experimental.SqlDataset",
    "nothing; everything runs on the CPU": "data.experimental.copy_to_device config tpu",
    "the function itself; nothing is compiled": "autograph",
    "soundfile, or the standard library's wave": "audio",
    "scipy.signal, on x.numpy()": "signal",
    "unittest": "test",
    "glob.glob": "io.match_filenames_once",
    "x.numpy()": "get_static_value",
    "isinstance(x, tf.Tensor)": "is_tensor",
    "a loop in Python": "foldl foldr scan",
    "x // y": "floor_div",
    "x / y, or x // y of integers": "div",
    "tf.SparseTensor": "SparseTensorValue",
    "time.time()": "timestamp",
    "tfwire.__version__": "version VERSION",
    "tf.data.experimental.dense_to_ragged_batch": "data.experimental.dense_to_sparse_batch",
    "TFRecordDataset(files).shuffle(n).repeat(epochs).batch(size)"
    ".parse_example(features)": "data.experimental.make_batched_features_dataset",
    "iterator.state_dict()": "data.experimental.make_saveable_from_iterator",
    "absl.app, or a main function": "app",
    "absl.flags, or argparse": "flags",
    "Python's logging": "logging get_logger",
    "numpy.random.default_rng(seed)": "random random_normal random_uniform",
    "numpy.random.default_rng(seed).permutation(x.numpy())": "random_shuffle",
    "seed= of dataset.shuffle, or numpy.random.default_rng(seed)": "set_random_seed",
    "csv, or numpy.loadtxt": "decode_csv io.decode_csv",
    "a dict, in a function of dataset.map": "lookup",
    "numpy, on x.numpy()": "argsort gather_nd linalg math.* sequence_mask sort unique bitcast "
    "linspace meshgrid repeat roll scatter_nd searchsorted segment_sum strided_slice "
    "tensor_scatter_nd_update unique_with_counts unsorted_segment_sum",
    "next(iter(dataset.skip(index)))": "data.experimental.at",
    "nothing; there are no variables": "global_variables trainable_variables",
    "x @ y": "matmul",
    "numpy, on x.indices.numpy() and x.values.numpy()": "sparse.* sparse_add sparse_concat "
    "sparse_reduce_sum sparse_reshape sparse_tensor_dense_matmul",
    "tf.io.SparseFeature in the specification": "sparse_merge",
    "the columns of tf.io.parse_example, and the preprocessing layers of Keras": "feature_column",
    "tf.cast(x, tf.float64)": "to_double",
    "tfwire.tensorboard.scalars(path)": "train.summary_iterator",
    "slices: image[top:bottom, left:right]": "image.central_crop image.crop_to_bounding_box",
    "slices: image[top:top + height, left:left + width], at places of "
    "numpy.random.default_rng(seed).integers": "random_crop image.random_crop "
    "image.stateless_random_crop",
    "tf.strings.split": "string_split",
    "the methods of bytes, in a function of dataset.map": "strings.*",
    "tensorboardX, or torch.utils.tensorboard": "summary",
    "tfwire.RaggedTensor(values, row_splits)": "ragged RaggedTensor.from_row_splits",
    "tfwire.RaggedTensor(values, numpy.cumsum([0, *row_lengths]))": "RaggedTensor.from_row_lengths",
    'base64.urlsafe_b64decode(x.numpy() + b"==")': "decode_base64 io.decode_base64",
    "tf.io.decode_image": "io.decode_bmp",
    "zlib or gzip, or compression_type= of readers": "io.decode_compressed",
    "Pillow, frame by frame": "io.decode_gif",
    'base64.urlsafe_b64encode(x.numpy()).rstrip(b"=")': "encode_base64 io.encode_base64",
    "Pillow, on x.numpy()": "io.encode_jpeg io.encode_png image.resize image.resize_images",
    "numpy or Pillow, on x.numpy()": "image.*",
    "PIL.Image.open(io.BytesIO(x.numpy())).size[::-1], of x with a "
    "JPEG": "image.extract_jpeg_shape io.extract_jpeg_shape",
    "tf.image.decode_jpeg(contents)[top:top + height, left:left + "
    "width]": "image.decode_and_crop_jpeg io.decode_and_crop_jpeg",
    "a box at places of numpy.random.default_rng(seed)": "image.sample_distorted_bounding_box",
    "x + numpy.random.default_rng(seed).uniform(-max_delta, max_delta), of x with floats from 0 "
    "to 1": "image.random_brightness image.stateless_random_brightness",
    "tf.reverse(image, [-2])": "image.flip_left_right",
    "tf.reverse(image, [-3])": "image.flip_up_down",
    "(x - x.mean()) / max(x.std(), x.size ** -0.5), of "
    "x.numpy()": "image.per_image_standardization",
    "tf.reverse(image, [-2]) if rng.random() < 0.5 else image, with "
    "rng = numpy.random.default_rng(seed)": "image.random_flip_left_right "
    "image.stateless_random_flip_left_right",
    "tf.reverse(image, [-3]) if rng.random() < 0.5 else image, with "
    "rng = numpy.random.default_rng(seed)": "image.random_flip_up_down "
    "image.stateless_random_flip_up_down",
    "ragged.to_tensor()": "RaggedTensor.to_sparse",
    "tf.transpose(x)": "Tensor.T",
    "tf.cast(x, dtype)": "Tensor.astype",
    "id(x)": "Tensor.ref",
    "tf.reshape(x, shape)": "Tensor.reshape",
    "tf.size(x)": "Tensor.size",
    "x.numpy().tolist()": "Tensor.tolist",
}
INSTEAD = {name: use for use, names in _USE_FOR.items() for name in names.split()}


class Namespace(SimpleNamespace):
    """Names under ``tf.``; the error of a missing name says what to use instead.

    Args:
        path: What comes between ``tf.`` and the names.
        named: Functions and classes, under their own names.
        names: What else there is.
    """

    def __init__(self, path: str, *named: Any, **names: Any) -> None:
        super().__init__(**{one.__name__: one for one in named}, **names)
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


_CODE_NAMES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE "
    "UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
)
_CODES = {name: code for code, name in enumerate(_CODE_NAMES.split())}


# ---- Classes ------------------------------------------------------------------------------------


class CancelledError(Error):
    """An operation was cancelled."""

    error_code = 1


class UnknownError(Error):
    """An error of another kind."""


class DeadlineExceededError(Error):
    """An operation took too long."""

    error_code = 4


class ResourceExhaustedError(Error):
    """A disk is full, or there are too many open files."""

    error_code = 8


class AbortedError(Error):
    """An operation gave way to another one."""

    error_code = 10


class OutOfRangeError(Error):
    """An iterator is at its end."""

    error_code = 11


class UnimplementedError(Error):
    """TensorFlow has no such operation for these dtypes."""

    error_code = 12


class FailedPreconditionError(Error):
    """A directory where a file is needed, or the other way round."""

    error_code = 9


class InternalError(Error):
    """A fault of the library itself."""

    error_code = 13


class UnavailableError(Error):
    """An operation that may work later."""

    error_code = 14


class UnauthenticatedError(Error):
    """A service does not know the user."""

    error_code = 16


class ClosedError(FailedPreconditionError, ValueError):
    """The writer is closed: a ValueError of tfwire."""


class DtypeError(InvalidArgumentError, TypeError):
    """A wrong dtype. TensorFlow raises one of the three, depending on the way to the operation."""


# ---- Errors of the operating system -------------------------------------------------------------

_SYSTEM = ("errno", "strerror", "filename", "filename2")


class _SystemError(Error, OSError):
    """An error of the operating system, with the attributes that Python gives it."""

    _parts: tuple[type[Error], type[OSError]] | None = None  # of a combined class

    def __str__(self) -> str:
        return printable(BaseException.__str__(self))

    def __reduce__(self) -> tuple[Any, ...]:
        known = [name for name in _SYSTEM if getattr(self, name) is not None]
        system = {name: getattr(self, name) for name in known}
        return _made, (self._parts or (type(self),), self.args), {**self.__dict__, **system}


class NotFoundError(_SystemError, FileNotFoundError):
    """There is no such file or directory."""

    error_code = 5


class AlreadyExistsError(_SystemError, FileExistsError):
    """There is such a file already."""

    error_code = 6


class PermissionDeniedError(_SystemError, PermissionError):
    """The operation is not permitted."""

    error_code = 7


@cache
def _combined(theirs: type[Error], python: type[OSError]) -> type[Error]:
    """The class of errors that are both of two."""
    if issubclass(theirs, python):
        return theirs
    names = {"__doc__": theirs.__doc__, "__module__": __name__, "_parts": (theirs, python)}
    return type(theirs.__name__, (theirs, _SystemError, python), names)


def _made(parts: tuple[Any, ...], arguments: tuple[Any, ...]) -> Error:
    cls = _combined(*parts) if len(parts) > 1 else parts[0]
    made: Error = cls(*arguments)
    return made


# As TensorFlow sorts them; all others are UNKNOWN.
_ERRNOS: dict[type[Error], tuple[int, ...]] = {
    InvalidArgumentError: (errno.EINVAL, errno.ENAMETOOLONG, errno.ESPIPE, errno.ENOTTY),
    DeadlineExceededError: (errno.ETIMEDOUT,),
    NotFoundError: (errno.ENOENT, errno.ENODEV, errno.ENXIO),
    AlreadyExistsError: (errno.EEXIST,),
    PermissionDeniedError: (errno.EPERM, errno.EACCES, errno.EROFS),
    FailedPreconditionError: (
        *(errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EBADF),
        *(errno.EBUSY, errno.EPIPE, errno.ETXTBSY),
    ),
    ResourceExhaustedError: (
        *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE),
        *(errno.EMLINK, errno.ENOMEM, errno.ENOBUFS),
    ),
    OutOfRangeError: (errno.EFBIG, errno.EOVERFLOW, errno.ERANGE),
    UnimplementedError: (errno.ENOSYS, errno.ENOTSUP, errno.EXDEV),
    UnavailableError: (errno.EAGAIN, errno.EINTR, errno.ENOLCK, errno.ECONNRESET),
    AbortedError: (errno.EDEADLK, errno.ESTALE),
}
_BY_ERRNO = {number: cls for cls, numbers in _ERRNOS.items() for number in numbers}
_BY_CLASS: dict[type[OSError], type[Error]] = {  # of errors without a number
    FileNotFoundError: NotFoundError,
    FileExistsError: AlreadyExistsError,
    PermissionError: PermissionDeniedError,
}


def as_tensorflow(error: OSError) -> OSError:
    """TensorFlow's error for one of the operating system; any other error as it is."""
    if isinstance(error, Error):
        return error
    python = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    theirs: Any = _BY_CLASS.get(python)
    if theirs is None and error.errno:
        theirs = _BY_ERRNO.get(error.errno, UnknownError)
    if theirs is None:
        return error
    message = str(error)
    if error.filename is not None:
        message = f"{os.fsdecode(error.filename)}: {error.strerror}"
    made: Any = _combined(theirs, python)(message)
    for name in _SYSTEM:
        if getattr(error, name) is not None:
            setattr(made, name, getattr(error, name))
    found: OSError = made
    return found


@contextmanager
def translating_files() -> Iterator[None]:
    """Raises the errors of the operating system as TensorFlow's. Also a decorator."""
    try:
        yield
    except OSError as error:
        raise_translated(error)


def raise_translated(error: OSError) -> NoReturn:
    """Raises an error of the operating system as TensorFlow's."""
    theirs = as_tensorflow(error)
    if theirs is error:
        raise error
    raise theirs from error


# ---- Arguments ----------------------------------------------------------------------------------


@contextmanager
def refusing_arguments(*kinds: type[Exception]) -> Iterator[None]:
    """Raises numpy's errors of shapes, axes and indices as InvalidArgumentError. Also a decorator.

    Args:
        kinds: The exceptions to translate; by default all that numpy raises for arguments.
    """
    try:
        yield
    except Error:
        raise
    except (ValueError, IndexError, TypeError) as error:
        if kinds and not isinstance(error, kinds):
            raise
        raise as_argument_error(error) from error


def as_argument_error(error: Exception) -> Error:
    """An error of numpy as InvalidArgumentError."""
    return error if isinstance(error, Error) else InvalidArgumentError(str(error))


errors: Namespace = Namespace(
    "errors",
    *(AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError),
    *(FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError),
    *(OutOfRangeError, PermissionDeniedError, ResourceExhaustedError),
    *(UnauthenticatedError, UnavailableError, UnimplementedError, UnknownError),
    OpError=Error,
    **_CODES,
)
