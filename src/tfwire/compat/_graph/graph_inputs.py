"""The inputs of a graph: placeholders, iterators of datasets, batches of the values of tensors; and
eager execution, which decides between two kinds of iterators.

Everything runs at once except queues, readers, placeholders and the iterators of
``dataset.make_one_shot_iterator()``, which belong to a graph. After ``enable_eager_execution``
those iterators are eager. The functions of ``tf.compat.v1.data`` return eager iterators unless
``disable_eager_execution`` was called, as in TensorFlow 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tfwire._interface.messages import InvalidArgumentError, integer
from tfwire._interface.pipelines import map_structure
from tfwire.compat._calls import parts, signed
from tfwire.compat._constants import to_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Deferred, Evaluation, Operation, Session, SessionEffect
from tfwire.compat._ops import boolean_mask
from tfwire.compat._tensor import Tensor


# ---- Placeholders -------------------------------------------------------------------------------
class Placeholder(Deferred):
    """A value that is fed to every run that needs it."""

    def __init__(self, dtype: Any, default: Any = None) -> None:
        super().__init__(Placeholder)
        self.fed_dtype: Any = dtype
        self._default = default

    def _evaluate(self, evaluation: Evaluation) -> Any:
        if self._default is None:
            raise InvalidArgumentError(
                None, None, f"You must feed a value for the placeholder {self.name!r}"
            )
        return Tensor(self._default)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Placeholder:
    """A value that ``Session.run`` takes from ``feed_dict``."""
    made = Placeholder(dtype)
    made.set_shape(shape)
    made.name = f"{name or 'Placeholder'}:0"
    return made


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Placeholder:
    """A placeholder with a default value, for runs that do not feed it."""
    made = Placeholder(None, input)
    made.set_shape(shape)
    return made


# ---- Iterators ----------------------------------------------------------------------------------
class GraphIterator(SessionSource):
    """The elements of a dataset as values of a graph: each run takes the next element.

    Args:
        dataset: The dataset, or None if only its structure is known yet.
        needs_initializer: Every session must run its ``initializer`` first; running it again starts
            over.
        structure: The structure of an element if there is no dataset yet: None for every tensor.
    """

    _tf_name = "data.Iterator"

    def __init__(self, dataset: Any, needs_initializer: bool, structure: Any = None) -> None:
        super().__init__("the iterator")
        self._dataset = dataset
        self.needs_initializer = needs_initializer
        self._structure = structure

    @classmethod
    def from_structure(
        cls, output_types: Any, output_shapes: Any = None, shared_name: Any = None, **others: Any
    ) -> GraphIterator:
        """An iterator that ``make_initializer`` gives datasets with elements of a structure."""
        return cls(None, True, map_structure(lambda dtype: None, output_types))

    def open(self, session: Any) -> Iterator[Any]:
        return iter(self._dataset)

    def get_next(self, name: str | None = None) -> Any:
        """The next element, in its structure."""
        structure = self._structure
        if self._dataset is not None:
            structure = map_structure(lambda spec: None, self._dataset.element_spec)
        return parts(self.drawn(), structure)

    @property
    def initializer(self) -> Operation:
        """The operation that starts again with the first element."""
        return self.make_initializer(self._dataset)

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins with the elements of a dataset."""
        return SessionEffect(lambda session: session.begin(self, iter(dataset)))

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec


class _Mode:
    eager: bool | None = None  # None: neither was called


def executing_eagerly() -> bool:
    """True if the iterators of ``tf.compat.v1.data`` give values at once."""
    return _Mode.eager is not False


def graphs_by_default() -> bool:
    """True unless ``enable_eager_execution`` was called: the default of TensorFlow 1."""
    return not _Mode.eager


def enable_eager_execution(config: Any = None, **others: Any) -> None:
    """Makes all iterators of datasets eager."""
    _Mode.eager = True


def disable_eager_execution() -> None:
    """Makes the iterators of ``tf.compat.v1.data`` those of a graph."""
    _Mode.eager = False
    Session.eager_elements = False


def make_one_shot_iterator(dataset: Any) -> Any:
    """tf.compat.v1.data.make_one_shot_iterator."""
    if executing_eagerly():
        Session.eager_elements = _Mode.eager is None
        return iter(dataset)
    return GraphIterator(dataset, needs_initializer=False)


def make_initializable_iterator(dataset: Any, shared_name: str | None = None) -> Any:
    """tf.compat.v1.data.make_initializable_iterator.

    Raises:
        RuntimeError: While executing eagerly, as in TensorFlow.
    """
    if executing_eagerly():
        raise RuntimeError(
            "make_initializable_iterator is for graphs: call tf.compat.v1.disable_eager_execution "
            "first, or use iter(dataset)"
        )
    return GraphIterator(dataset, needs_initializer=True)


def graph_iterator(dataset: Any, needs_initializer: bool) -> Any:
    """The iterator of a dataset's own method, of TensorFlow 1."""
    if _Mode.eager and not needs_initializer:
        return iter(dataset)
    return GraphIterator(dataset, needs_initializer)


class Graph:
    """A graph, for code that asks for one; deferred values do not need it."""

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes iterators of a graph within the ``with`` statement."""
        before, _Mode.eager = _Mode.eager, False
        try:
            yield self
        finally:
            _Mode.eager = before

    def finalize(self) -> None:
        """Does nothing."""


_graph = Graph()


def get_default_graph() -> Graph:
    """The only graph."""
    return _graph


def reset_default_graph() -> None:
    """Does nothing: a graph holds nothing."""


# ---- Batches of the values of tensors -----------------------------------------------------------
class _Evaluations(SessionSource):
    """The values of tensors, evaluated again and again, and gathered by a pipeline.

    Args:
        tensor_sets: Tuples of deferred values; more than one are evaluated in turn.
        gather: Makes a dataset of batches of a dataset of the tuples.
        many: The values are batches, whose rows are gathered.
        keep: Whether to keep the values or, of batches, which rows; may be deferred.
        name: Its name in errors.
    """

    def __init__(
        self,
        tensor_sets: list[tuple[Any, ...]],
        gather: Callable[[Dataset], Any],
        many: bool,
        keep: Any,
        name: str,
    ) -> None:
        super().__init__(name)
        self._tensor_sets = tensor_sets
        self._gather = gather
        self._many = many
        self._keep = keep

    def open(self, session: Any) -> Iterator[Any]:
        rows: Any = Dataset.from_generator(partial(self._evaluate, session))
        return iter(self._gather(rows.unbatch() if self._many else rows))

    def _evaluate(self, session: Any) -> Iterator[Any]:
        left = list(self._tensor_sets)
        while left:
            for tensors in list(left):
                try:
                    values, keep = Evaluation(session).value((tensors, self._keep))
                except OutOfRangeError:
                    left = [one for one in left if one is not tensors]
                else:
                    yield from self._kept(values, to_array(keep, np.dtype(bool)))

    def _kept(self, values: Any, keep: Any) -> Iterator[Any]:
        if keep.ndim and not self._many:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        if keep.ndim:
            yield tuple(boolean_mask(value, keep) for value in values)
        elif keep:
            yield values


def _batched(
    tensors_list: Any,
    gather: Callable[[Dataset], Any],
    many: bool,
    name: str,
    keep: Any,
) -> Any:
    """Batches of tensors, in the structure that the tensors came in."""
    if not tensors_list or not all(tensors_list):
        raise ValueError(f"Must provide at least one tensor in {name}()")
    named = list(map(_as_dict, tensors_list))
    keys = list(named[0])
    if any(one.keys() != named[0].keys() for one in named):
        raise ValueError(f"the lists or dicts of {name}() must have the same length or keys")
    sets = [tuple(one[key] for key in keys) for one in named]
    batches = _Evaluations(sets, gather, many, keep, name)
    following = parts(batches.drawn(), tuple(None for _ in keys))
    if isinstance(tensors_list[0], dict):
        return dict(zip(keys, following, strict=True))
    return list(following) if len(following) > 1 else following[0]


def _as_dict(tensors: Any) -> dict[Any, Any]:
    if isinstance(tensors, dict):
        return tensors
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"`tensors` must be a list or dict, found {type(tensors).__name__}")
    return dict(enumerate(tensors))


# ---- tf.train.batch and its relatives ------------------------------------------------------------
def _in_order(arguments: dict[str, Any], dataset: Any) -> Any:
    size = integer("batch_size", to_numpy(arguments["batch_size"]), 1)
    gather = dataset.padded_batch if arguments["dynamic_pad"] else dataset.batch
    return gather(size, drop_remainder=not arguments["allow_smaller_final_batch"])


def _shuffled(arguments: dict[str, Any], dataset: Any) -> Any:
    size, capacity, seed = (arguments[name] for name in ("batch_size", "capacity", "seed"))
    least, keep_last = arguments["min_after_dequeue"], arguments["allow_smaller_final_batch"]
    return dataset.shuffle_batch(size, capacity, max(1, least), seed, keep_last)


def _batches(name: str, arguments: dict[str, Any]) -> Any:
    """The result of one of the functions, whose arguments are complete."""
    if "shuffle" in name:
        capacity, least = arguments["capacity"], arguments["min_after_dequeue"]
        if capacity <= least:
            raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {least}.")
    gather = partial(_shuffled if "shuffle" in name else _in_order, arguments)
    sets = arguments["tensors_list"] if "join" in name else [arguments["tensors"]]
    keep = arguments.get("keep_input", True)
    return _batched(sets, gather, arguments["enqueue_many"], name.removeprefix("maybe_"), keep)


# The required parameters of every function in TensorFlow's order, and its first optional ones. All
# have those of _LAST, but for what shuffling has no use for.
_BATCH_FUNCTIONS = {
    "batch": ("tensors batch_size", "num_threads capacity"),
    "batch_join": ("tensors_list batch_size", "capacity"),
    "maybe_batch": ("tensors keep_input batch_size", "num_threads capacity"),
    "maybe_batch_join": ("tensors_list keep_input batch_size", "capacity"),
    "shuffle_batch": ("tensors batch_size capacity min_after_dequeue", "num_threads seed"),
    "shuffle_batch_join": ("tensors_list batch_size capacity min_after_dequeue", "seed"),
    "maybe_shuffle_batch": (
        "tensors batch_size capacity min_after_dequeue keep_input",
        "num_threads seed",
    ),
    "maybe_shuffle_batch_join": (
        "tensors_list batch_size capacity min_after_dequeue keep_input",
        "seed",
    ),
}
_LAST = "enqueue_many shapes dynamic_pad allow_smaller_final_batch shared_name name"
_BATCH_PARAMETERS: dict[str, tuple[Any, str]] = {
    "tensors": (None, "A list or dict of tensors."),
    "tensors_list": (None, "Several of them."),
    "batch_size": (None, "Elements of a batch."),
    "num_threads": (1, "Ignored."),
    "capacity": (32, "Most elements held for mixing; ignored without."),
    "min_after_dequeue": (None, "Elements that are left for mixing, until the source ends."),
    "keep_input": (
        None,
        "A bool, evaluated with the tensors; with ``enqueue_many`` one for every row, or one for "
        "all of them.",
    ),
    "seed": (None, "Makes the order repeat; not the order that TensorFlow makes of it."),
    "enqueue_many": (False, "The tensors are batches, whose rows are the elements."),
    "dynamic_pad": (False, "Pad the elements of a batch to the longest of them."),
    "allow_smaller_final_batch": (False, "Keep a last batch of fewer elements."),
}


def _summary(name: str) -> str:
    if name.startswith("maybe_"):
        plain = name.removeprefix("maybe_")
        return f"As ``{plain}``, of the values for which ``keep_input`` is True."
    if name.endswith("_join"):
        return f"As ``{name.removesuffix('_join')}``, of several lists of tensors in turn."
    if name == "shuffle_batch":
        return "As ``batch``, in random order; see ``tfwire.Dataset.shuffle_batch``."
    return "Batches of the values of tensors, in their structure, evaluated again and again."


def _made(name: str) -> Callable[..., Any]:
    required, optional = _BATCH_FUNCTIONS[name]
    last = _LAST.replace("dynamic_pad ", "") if "shuffle" in name else _LAST
    parameters = (required, f"{optional} {last}")
    return signed(_batches, name, parameters, _summary(name), _BATCH_PARAMETERS)


BATCHES = {name: _made(name) for name in _BATCH_FUNCTIONS}
