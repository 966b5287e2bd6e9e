"""Batches of the values of tensors of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tfwire._interface.messages import integer
from tfwire.compat._calls import parts
from tfwire.compat._constants import to_array, to_numpy
from tfwire.compat._data.dataset import Dataset
from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.queues import SessionSource
from tfwire.compat._graph.session import Evaluation
from tfwire.compat._ops import boolean_mask


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
_BATCH_DEFAULTS = {"num_threads": 1, "capacity": 32}
_BATCH_DEFAULTS |= dict.fromkeys(
    ("enqueue_many", "dynamic_pad", "allow_smaller_final_batch"), False
)
_BATCH_PARAMETERS = {
    "tensors": "A list or dict of tensors.",
    "tensors_list": "Several of them.",
    "batch_size": "Elements of a batch.",
    "min_after_dequeue": "Elements that are left for mixing, until the source ends.",
    "keep_input": "A bool, evaluated with the tensors; with ``enqueue_many`` one for every row, or "
    "one for all of them.",
    "seed": "Makes the order repeat; not the order that TensorFlow makes of it.",
    "enqueue_many": "The tensors are batches, whose rows are the elements.",
    "dynamic_pad": "Pad the elements of a batch to the longest of them.",
    "allow_smaller_final_batch": "Keep a last batch of fewer elements.",
}


def _summary(name: str) -> str:
    if name.startswith("maybe_"):
        plain = name.removeprefix("maybe_")
        return f"As ``{plain}``, of the values for which ``keep_input`` is True."
    if name.endswith("_join"):
        return f"As ``{name.removesuffix('_join')}``, of several lists of tensors in turn."
    if name == "shuffle_batch":
        return "As ``batch``, in random order; see ``tfwire.Dataset.shuffle_batch``."
    return "Batches of the values of tensors, evaluated again and again."


_RETURNS = """Returns:
    Deferred values in the structure of the tensors; of a list of one, the value alone."""


def _made(name: str) -> Callable[..., Any]:
    required, optional = _BATCH_FUNCTIONS[name]
    last = _LAST.replace("dynamic_pad ", "") if "shuffle" in name else _LAST
    parameters = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in required.split()]
    for one in f"{optional} {last}".split():
        default = _BATCH_DEFAULTS.get(one)
        parameters.append(Parameter(one, Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature = Signature(parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        return _batches(name, bound.arguments)

    told = [
        f"    {one}: {_BATCH_PARAMETERS[one]}"
        for one in signature.parameters
        if one in _BATCH_PARAMETERS
    ]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "\n".join([_summary(name), "", "Args:", *told, "", _RETURNS])
    call.__signature__ = signature  # type: ignore[attr-defined]  # which inspect reads
    return call


BATCHES = {name: _made(name) for name in _BATCH_FUNCTIONS}
