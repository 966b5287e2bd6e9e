"""The same code with TensorFlow and with tfwire.compat: equal results, or the same exception."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import numpy as np
import tensorflow

import tfwire.compat

LIBRARIES = (tensorflow, tfwire.compat)


@contextmanager
def queues(library, session):
    """Runs the queues of a graph's session; gives their coordinator and threads, which end with the
    block, whatever error they had."""
    v1 = library.compat.v1
    with suppress(library.errors.OpError):
        session.run(v1.local_variables_initializer())
    coordinator = v1.train.Coordinator()  # else errors end TensorFlow's threads
    threads = v1.train.start_queue_runners(session, coordinator)
    try:
        yield coordinator, threads
    finally:
        coordinator.request_stop()
        with suppress(library.errors.OpError):
            coordinator.join(threads)


def outcome(run, library):
    """What a function of the library returns or raises."""
    try:
        return plain(run(library))
    except Exception as error:
        return error


def plain(value):
    """A result as numpy and Python values; where it was a tensor, with its dtype."""
    if isinstance(value, (tensorflow.Tensor, tfwire.compat.Tensor)):
        found = value.numpy()
        assert tuple(value.shape) == np.shape(found)
        return value.dtype.name, found
    if isinstance(value, (tensorflow.RaggedTensor, tfwire.compat.RaggedTensor)):
        return "ragged", value.to_list(), [plain(splits) for splits in value.nested_row_splits]
    if isinstance(value, (tensorflow.SparseTensor, tfwire.compat.SparseTensor)):
        return "sparse", plain(value.indices), plain(value.values), plain(value.dense_shape)
    if isinstance(value, (tensorflow.DType, tfwire.compat.DType)):
        return value.name
    if isinstance(value, (tensorflow.TensorShape, tfwire.compat.TensorShape)):
        return repr(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def check(expected, found):
    """Raises AssertionError where tfwire.compat does not do what TensorFlow does."""
    if not is_answer(expected):
        return
    if isinstance(expected, Exception):
        assert isinstance(found, Exception), f"expected {expected!r:.200}"
        assert isinstance(found, counterpart(type(expected))), f"expected {expected!r:.200}"
        return
    if isinstance(found, Exception):
        raise AssertionError(f"expected {expected!r:.200}") from found
    assert same(expected, found), f"expected {expected!r:.300}, found {found!r:.300}"


def is_answer(expected):
    """False where TensorFlow fails to print its error, or has no kernel for a dtype."""
    if isinstance(expected, tensorflow.errors.NotFoundError):
        return "Could not find device" not in str(expected)
    if isinstance(expected, tensorflow.errors.UnimplementedError):
        return "Cast" in str(expected)
    return not isinstance(expected, (SystemError, UnicodeDecodeError))


def counterpart(cls):
    """TensorFlow's exception as tfwire.compat has it; Python's own are the same."""
    if issubclass(cls, tensorflow.errors.OpError):
        return getattr(tfwire.compat.errors, cls.__name__)
    return next(base for base in cls.__mro__ if base.__module__ == "builtins")


def same(expected, found):
    if isinstance(expected, dict):
        return expected.keys() == found.keys() and all(
            same(expected[key], found[key]) for key in expected
        )
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(expected) == len(found)
            and all(map(same, expected, found))
        )
    if isinstance(expected, (np.ndarray, np.generic)):
        return same_arrays(expected, found)
    return type(expected) is type(found) and expected == found


def same_arrays(expected, found):
    """Equal in dtype and shape, and in values up to the rounding of float32."""
    if type(expected) is not type(found) or expected.dtype != found.dtype:
        return False
    if expected.shape != found.shape:
        return False
    if expected.dtype.kind == "c":  # of a division by zero TensorFlow makes nan, numpy inf
        expected, found = (np.where(np.isfinite(x), x, np.nan) for x in (expected, found))
    if expected.dtype.kind in "fc":
        return np.allclose(expected, found, rtol=1e-5, equal_nan=True)
    return bool(np.array_equal(expected, found))
