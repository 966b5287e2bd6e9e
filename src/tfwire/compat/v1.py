"""``import tfwire.compat.v1 as tf``: the names of TensorFlow 1.

Input pipelines of queues and readers, sessions and iterators of datasets run with the import
changed; ``tfwire.compat`` has the same names. Variables, layers and training are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tfwire.compat._data.namespace import data as _tf_data
from tfwire.compat._data.transformations import Options
from tfwire.compat._errors import Namespace, missing
from tfwire.compat._graph import batch_queues, fifo, graph_inputs, queues
from tfwire.compat._graph.fifo import GraphFIFOQueue
from tfwire.compat._graph.graph_inputs import (
    Graph,
    disable_eager_execution,
    enable_eager_execution,
    executing_eagerly,
    get_default_graph,
    placeholder,
    placeholder_with_default,
    reset_default_graph,
)
from tfwire.compat._graph.queues import Coordinator
from tfwire.compat._graph.readers import (
    FixedLengthRecordReader,
    IdentityReader,
    TextLineReader,
    TFRecordReader,
    WholeFileReader,
)
from tfwire.compat._graph.session import (
    InteractiveSession,
    Operation,
    Session,
    get_default_session,
    group,
    no_op,
)

__all__ = [
    "ConfigProto",
    "FIFOQueue",
    "FixedLengthRecordReader",
    "GPUOptions",
    "Graph",
    "IdentityReader",
    "InteractiveSession",
    "Session",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
    "disable_eager_execution",
    "disable_v2_behavior",
    "enable_eager_execution",
    "enable_v2_behavior",
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

FIFOQueue: type[GraphFIFOQueue] = GraphFIFOQueue
disable_v2_behavior = disable_eager_execution
enable_v2_behavior = enable_eager_execution


# ---- Without effect ---------------------------------------------------------------------------
def global_variables_initializer() -> Operation:
    """An operation without effect: there are no variables."""
    return no_op()


local_variables_initializer: Callable[[], Operation] = global_variables_initializer
tables_initializer: Callable[[], Operation] = global_variables_initializer
initialize_all_variables: Callable[[], Operation] = global_variables_initializer
initialize_local_variables: Callable[[], Operation] = global_variables_initializer


class ConfigProto(SimpleNamespace):
    """Settings of a session, and parts with more of them: accepted and ignored."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        part = ConfigProto()
        setattr(self, name, part)
        return part


GPUOptions = ConfigProto


# ---- Namespaces -------------------------------------------------------------------------------
_QUEUES = [
    *("MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession"),
    *("input_producer", "range_input_producer", "slice_input_producer", "string_input_producer"),
    *("match_filenames_once", "start_queue_runners"),
]

TRAIN: dict[str, Any] = {
    "Coordinator": Coordinator,
    "QueueRunner": fifo.QueueRunner,
    "add_queue_runner": fifo.add_queue_runner,
    **{name: getattr(queues, name) for name in _QUEUES},
    **batch_queues.BATCHES,
}

_DATA: dict[str, Any] = {
    "Iterator": graph_inputs.GraphIterator,
    "Options": Options,
    "get_output_shapes": lambda dataset_or_iterator: dataset_or_iterator.output_shapes,
    "get_output_types": lambda dataset_or_iterator: dataset_or_iterator.output_types,
    "make_initializable_iterator": graph_inputs.make_initializable_iterator,
    "make_one_shot_iterator": graph_inputs.make_one_shot_iterator,
}


class _DataNamespace(Namespace):
    """tf.compat.v1.data: the names of tf.data, and some of its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_tf_data, name)


data: _DataNamespace = _DataNamespace("data", **_DATA)


# The names of tfwire.compat, set there: it imports this module.
_COMPAT: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name in _COMPAT:
        return _COMPAT[name]
    raise missing(name)
