"""More transformations of tf.data, the options of datasets (without effect) and cardinality."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from tfwire._interface.messages import InvalidArgumentError, check_callable, integer, warn
from tfwire._interface.pipelines import (
    Cursor,
    Derived,
    Filter,
    GatheringPieces,
    Map,
    Records,
    Replayed,
    Stage,
    Through,
    num_cpus,
    zip_structures,
)
from tfwire.compat._constants import dtype_of, to_numpy
from tfwire.compat._data import generators, specs
from tfwire.compat._data.caching import Keeping
from tfwire.compat._data.generators import as_seed, require_dataset, scalar_bool, scalar_integer
from tfwire.compat._data.grouping import Grouping
from tfwire.compat._errors import Explained, refusing_arguments
from tfwire.compat._tensor import Tensor


class _Settings(Explained):
    """Attributes of these names and no others; None until set."""

    _names = ""
    _groups: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name in self._names.split():
            self.__dict__[name] = None
        for name, group in self._groups.items():
            self.__dict__[name] = group()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        self.__dict__[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = {name: value for name, value in self.__dict__.items() if value is not None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in told.items())})"


class AutotuneOptions(_Settings):
    """Accepted and ignored: nothing is tuned."""

    _tf_name = "data.experimental.AutotuneOptions"
    _names = "autotune_algorithm cpu_budget enabled initial_parallelism min_parallelism ram_budget"


class DistributeOptions(_Settings):
    """Accepted and ignored: nothing is distributed."""

    _tf_name = "data.experimental.DistributeOptions"
    _names = "auto_shard_policy num_devices"


class OptimizationOptions(_Settings):
    """Accepted and ignored: pipelines run as they are written."""

    _tf_name = "data.experimental.OptimizationOptions"
    _names = (
        "apply_default_optimizations autotune autotune_buffers autotune_cpu_budget "
        "filter_fusion filter_parallelization inject_prefetch map_and_batch_fusion "
        "map_and_filter_fusion map_fusion map_parallelization map_vectorization "
        "noop_elimination parallel_batch seq_interleave_prefetch shuffle_and_repeat_fusion"
    )


class ThreadingOptions(_Settings):
    """Accepted and ignored: the order of elements never depends on threads."""

    _tf_name = "data.ThreadingOptions"
    _names = "max_intra_op_parallelism private_threadpool_size"


class Options(_Settings):
    """The options of a dataset. All are accepted; none changes the elements or their order."""

    _tf_name = "data.Options"
    _names = (
        "dataset_name deterministic experimental_deterministic "
        "experimental_external_state_policy experimental_service experimental_slack "
        "experimental_stateful_whitelist experimental_symbolic_checkpoint "
        "experimental_warm_start framework_type"
    )
    _groups: ClassVar[dict[str, Any]] = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_threading": ThreadingOptions,
        "threading": ThreadingOptions,
    }

    def merge(self, options: Options) -> Options:
        """New options: those that the other has set, and these for the rest."""
        merged = Options()
        for one in (self, options):
            merged._take(one)
        return merged

    def _take(self, other: _Settings) -> None:
        for name, value in other.__dict__.items():
            if isinstance(value, _Settings):
                mine = self.__dict__[name]
                mine.__dict__.update({k: v for k, v in value.__dict__.items() if v is not None})
            elif value is not None:
                self.__dict__[name] = value


P = TypeVar("P", bound="FurtherTransformations")
_AUTO = -1


class FurtherTransformations(Grouping, Keeping):
    """The methods of ``tf.data.Dataset`` that :class:`tfwire.Dataset` does not have.

    They return new datasets and read nothing, except those that return tensors.
    """

    # ---- One dataset of several ---------------------------------------------------------------

    def concatenate(self: P, dataset: Any, name: str | None = None) -> P:
        """The elements of this dataset, then those of another.

        Raises:
            TypeError: The structures or dtypes of their elements are known and differ.
        """
        require_dataset("dataset", dataset)
        specs.check_dtypes([self._stage, dataset._stage])
        return cast("P", super().concatenate(dataset))

    def flat_map(self: P, map_func: Callable[..., Any], name: str | None = None) -> P:
        """The elements of the datasets that ``map_func`` makes, one dataset after another."""
        check_callable("map_func", map_func)
        opening = partial(generators.open_inner, self._calling(map_func))
        return self._generated("flat_map", generators.flat_map, opening)

    def interleave(
        self: P,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> P:
        """Elements of several of the datasets that ``map_func`` makes, in turn.

        Args:
            map_func: Makes a dataset of an element.
            cycle_length: Number of datasets in turn; None or AUTOTUNE: one for each CPU, as in
                TensorFlow.
            block_length: Elements per turn; None: one.
            num_parallel_calls, deterministic: Accepted; the order is always the same.
        """
        check_callable("map_func", map_func)
        cycle = _AUTO if cycle_length is None else integer("cycle_length", cycle_length)
        cycle = num_cpus() if cycle == _AUTO else cycle
        block = integer("block_length", 1 if block_length is None else block_length, 1)
        if cycle < 1:
            raise ValueError(f"`cycle_length` must be at least 1, found {cycle}")
        return cast("P", super().interleave(map_func, cycle, block))

    # ---- Elements one by one ------------------------------------------------------------------

    def enumerate(self: P, start: int = 0, name: str | None = None) -> P:
        """Pairs of a number (int64) and an element."""
        return cast("P", super().enumerate(start))

    def scan(
        self: P, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> P:
        """The outputs of ``scan_func(state, element)``, which returns (next state, output).

        Raises:
            TypeError: While iterating: it returns something else, or a state of other dtypes.
        """
        check_callable("scan_func", scan_func)
        state, step = self._hidden(initial_state), partial(self._step, scan_func)
        facts = {"length": self._stage.length, "endless": self._stage.endless}
        return self._generated("scan", generators.scan, step, state, **facts)

    def _step(self, function: Callable[..., Any], state: Any, element: Any) -> tuple[Any, Any]:
        result = function(self._shown(state), self._shown(element))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError("`scan_func` must return a pair: the next state, and the output")
        following, output = map(self._hidden, result)
        return _next_state("scan_func", state, following), output

    def filter(self: P, predicate: Callable[..., Any], name: str | None = None) -> P:
        """The elements for which ``predicate`` is true.

        Raises:
            InvalidArgumentError: While iterating: ``predicate`` does not return a scalar bool.
        """
        check_callable("predicate", predicate)
        decide = partial(scalar_bool, self._calling(predicate))
        return self._next(Filter(self._stage, decide), "filter")

    def take_while(self: P, predicate: Callable[..., Any], name: str | None = None) -> P:
        """The elements before the first for which ``predicate`` is false.

        Raises:
            InvalidArgumentError: While iterating: ``predicate`` does not return a scalar bool.
        """
        check_callable("predicate", predicate)
        decide = partial(scalar_bool, self._calling(predicate))
        return self._generated("take_while", generators.take_while, decide, given=(self._stage,))

    def ignore_errors(self: P, log_warning: bool = False, name: str | None = None) -> P:
        """Leaves out elements that raise.

        After damage in a file, reading continues with the next file, as in TensorFlow.

        Args:
            log_warning: Warn of each error of a function.

        Raises:
            ValueError: Something below is ``flat_map``, ``interleave``, ``window``, ``scan``,
                ``cache`` or another generator, which loses what follows an error.
        """
        stage = _tolerant(self._stage, bool(log_warning))
        if cardinality(stage) != UNKNOWN:
            stage = Replayed("ignore_errors", (stage,), generators.passed, spec=stage.spec)
        return self._next(stage, "ignore_errors")

    def unique(self: P, name: str | None = None) -> P:
        """The elements without repetitions; each is kept in memory."""
        return self._generated("unique", generators.unique, given=(self._stage,), quiet=True)

    def rejection_resample(
        self: P,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> P:
        """Pairs (class, element), some elements left out at random.

        Args:
            class_func: The class of an element, from 0.
            target_dist: The probability of each class in the result.
            initial_dist: The probability of each class in this dataset; None: estimated.
            seed: Makes the choice reproducible.
        """
        class_of = partial(scalar_integer, self._calling(class_func))
        target = np.asarray(to_numpy(target_dist), np.float64)
        initial = None if initial_dist is None else np.asarray(to_numpy(initial_dist), np.float64)
        arguments = (class_of, target, initial, as_seed(seed))
        return self._generated(
            "rejection_resample", generators.resample, *arguments, endless=self._stage.endless
        )

    # ---- Values -------------------------------------------------------------------------------

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: Any = None) -> Any:
        """The last state of ``reduce_func(state, element)``, which returns the next state.

        Raises:
            TypeError: It returns a state of other dtypes than the initial one.
        """
        check_callable("reduce_func", reduce_func)
        state = self._hidden(initial_state)
        for element in self.as_numpy_iterator():
            result = reduce_func(self._shown(state), self._shown(element))
            following = self._hidden(tuple(result) if isinstance(result, list) else result)
            state = _next_state("reduce_func", state, following)
        return self._shown(state)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element of a dataset.

        Raises:
            InvalidArgumentError: It has none, or more than one.
        """
        found = list(self.take(2))
        if len(found) != 1:
            how_many = "more than one element" if found else "no elements"
            raise InvalidArgumentError(None, None, f"the dataset had {how_many}, expected one")
        return found[0]

    def cardinality(self, name: str | None = None) -> Tensor:
        """The number of elements, as int64; -1 for endless ones, -2 if unknown."""
        return Tensor(np.int64(cardinality(self._stage)))

    # ---- The rest -----------------------------------------------------------------------------

    def apply(self, transformation_func: Callable[[Any], Any], name: str | None = None) -> Any:
        """``transformation_func(self)``, which must return a dataset."""
        check_callable("transformation_func", transformation_func)
        result = transformation_func(self)
        require_dataset("the result of transformation_func", result)
        return result

    def with_options(self: P, options: Any, name: str | None = None) -> P:
        """The same dataset: no option changes the elements or their order."""
        if not isinstance(options, Options):
            raise TypeError(f"`options` must be a tf.data.Options, found {type(options).__name__}")
        return self


INFINITE, UNKNOWN = -1, -2


def cardinality(stage: Stage) -> int:
    """The number of elements, INFINITE or UNKNOWN; nothing is read."""
    if stage.length is not None:
        return stage.length
    return INFINITE if stage.endless else UNKNOWN


def _next_state(function: str, state: Any, following: Any) -> Any:
    """A state that a function returned; it must have the structure and dtypes of the one before."""

    def checked(before: Any, after: Any) -> Any:
        expected, found = dtype_of(before), dtype_of(after)
        if expected != found:
            raise TypeError(f"`{function}` must return a state of {expected!r}, found {found!r}")
        return after

    with refusing_arguments(ValueError):
        return zip_structures(checked, state, following)


# ---- ignore_errors ------------------------------------------------------------------------------
def _tolerant(stage: Stage, warns: bool) -> Stage:
    """A stage without the elements that raise; damage in records ends a file without an error."""
    if isinstance(stage, (Map, Filter)) and not isinstance(stage, generators.Arranged):
        below = _tolerant(stage.source, warns)
        call = generators.tolerant_map if isinstance(stage, Map) else generators.tolerant_filter
        generate = partial(call, stage.arguments[0], warns)
        return Replayed("ignore_errors", (below,), generate, spec=stage.spec)
    if isinstance(stage, Derived) and stage.passes_errors:
        return stage.over(_tolerant(stage.source, warns))
    if isinstance(stage, Records):
        return stage.with_options(**{**stage.options, "on_corrupt": "stop"})
    for below in stage.chain():
        if isinstance(below, Replayed) and below.name != "ignore_errors":
            name = below.name.partition("(")[0]
            raise ValueError(f"ignore_errors cannot follow {name}, which ends at an error")
    if stage.sources or not stage.quiet:
        return Tolerant(stage, warns)
    return stage  # values in memory


class Tolerant(Derived):
    """The elements that do not raise. An error after which the source cannot go on is raised.

    Args:
        source: The stage below.
        warns: Warn of each error.
    """

    def __init__(self, source: Stage, warns: bool) -> None:
        super().__init__(source, warns)
        self.length = None

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _TolerantCursor(self.source.open(epoch, at), self.arguments[0])


class _TolerantCursor(Through, GatheringPieces):
    goes_on = True

    def __init__(self, below: Cursor, warns: bool) -> None:
        super().__init__(below)
        self._warns = warns

    def piece(self, count: int) -> list[Any] | None:
        try:
            return self._below.take(count) or None
        except Exception as error:
            if not self._below.recover():
                raise
            if self._warns:
                warn(f"an element was left out: {error}")
            return []
