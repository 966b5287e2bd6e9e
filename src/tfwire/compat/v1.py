"""``import tfwire.compat.v1 as tf``: the names of TensorFlow 1.

Input pipelines of queues and readers, sessions and iterators of datasets run with the import
changed; ``tfwire.compat`` has the same names. Variables, layers and training are not here.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tfwire.compat._data.options import Options
from tfwire.compat._graph import batching, iterators, mode, queues
from tfwire.compat._graph.coordinator import Coordinator
from tfwire.compat._graph.deferred import Operation
from tfwire.compat._graph.mode import (
    Graph,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    get_default_graph,
    reset_default_graph,
)
from tfwire.compat._graph.readers import (
    FixedLengthRecordReader,
    TextLineReader,
    TFRecordReader,
    WholeFileReader,
)
from tfwire.compat._graph.session import (
    InteractiveSession,
    Session,
    get_default_session,
    group,
    no_op,
    placeholder,
    placeholder_with_default,
)
from tfwire.compat._missing import Namespace, missing

__all__ = [
    "ConfigProto",
    "FixedLengthRecordReader",
    "GPUOptions",
    "Graph",
    "InteractiveSession",
    "Session",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
    "disable_eager_execution",
    "disable_v2_behavior",
    "enable_eager_execution",
    "executing_eagerly",
    "get_default_graph",
    "get_default_session",
    "global_variables_initializer",
    "group",
    "initialize_all_variables",
    "initialize_local_variables",
    "local_variables_initializer",
    "no_op",
    "placeholder",
    "placeholder_with_default",
    "reset_default_graph",
    "tables_initializer",
]

disable_v2_behavior = disable_eager_execution


# ---- What there is nothing of -----------------------------------------------------------------


def global_variables_initializer() -> Operation:
    """An operation without effect: there are no variables."""
    return no_op()


local_variables_initializer = tables_initializer = global_variables_initializer
initialize_all_variables = initialize_local_variables = global_variables_initializer


class ConfigProto(SimpleNamespace):
    """Settings of a session: accepted and ignored."""


GPUOptions = ConfigProto


# ---- Namespaces -------------------------------------------------------------------------------

TRAIN: dict[str, Any] = {
    "Coordinator": Coordinator,
    "input_producer": queues.input_producer,
    "match_filenames_once": queues.match_filenames_once,
    "range_input_producer": queues.range_input_producer,
    "slice_input_producer": queues.slice_input_producer,
    "start_queue_runners": queues.start_queue_runners,
    "string_input_producer": queues.string_input_producer,
    **{name: getattr(batching, name) for name in batching.__all__},
}

_DATA: dict[str, Any] = {
    "Iterator": iterators.GraphIterator,
    "Options": Options,
    "get_output_shapes": lambda dataset: dataset.output_shapes,
    "get_output_types": lambda dataset: dataset.output_types,
    "make_initializable_iterator": mode.make_initializable_iterator,
    "make_one_shot_iterator": mode.make_one_shot_iterator,
}


class _DataNamespace(Namespace):
    """tf.compat.v1.data: the names of tf.data, and those of its own."""

    def __getattr__(self, name: str) -> Any:
        from tfwire import compat

        return getattr(compat.data, name)


data = _DataNamespace("data", **_DATA)


def __getattr__(name: str) -> Any:
    from tfwire import compat

    if name in vars(compat):
        return vars(compat)[name]
    raise missing(name)
