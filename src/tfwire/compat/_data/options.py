"""tf.data.Options: accepted, without effect; they steer TensorFlow's runtime."""

from __future__ import annotations

from typing import Any, ClassVar

from tfwire.compat._errors import Explained

__all__ = [
    "AutotuneOptions",
    "DistributeOptions",
    "OptimizationOptions",
    "Options",
    "ThreadingOptions",
]


class _Settings(Explained):
    """Attributes of these names and no others; None until set."""

    _names: ClassVar[tuple[str, ...]] = ()
    _groups: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name in self._names:
            self.__dict__[name] = None
        for name, group in self._groups.items():
            self.__dict__[name] = group()

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names and name not in self._groups:
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
    _names = (
        "autotune_algorithm",
        "cpu_budget",
        "enabled",
        "initial_parallelism",
        "min_parallelism",
        "ram_budget",
    )


class DistributeOptions(_Settings):
    """Accepted and ignored: nothing is distributed."""

    _tf_name = "data.experimental.DistributeOptions"
    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Settings):
    """Accepted and ignored: pipelines run as they are written."""

    _tf_name = "data.experimental.OptimizationOptions"
    _names = (
        "apply_default_optimizations",
        "autotune",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
    )


class ThreadingOptions(_Settings):
    """Accepted and ignored: the order of elements never depends on threads."""

    _tf_name = "data.ThreadingOptions"
    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Settings):
    """The options of a dataset. All are accepted; none changes the elements or their order."""

    _tf_name = "data.Options"
    _names = (
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_external_state_policy",
        "experimental_service",
        "experimental_slack",
        "experimental_stateful_whitelist",
        "experimental_symbolic_checkpoint",
        "experimental_warm_start",
        "framework_type",
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
