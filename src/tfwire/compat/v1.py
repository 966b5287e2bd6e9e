"""``import tfwire.compat.v1 as tf``: the names of TensorFlow 1.

Input pipelines of queues and readers, sessions and iterators of datasets run with the import
changed; ``tfwire.compat`` has the same names. Variables, layers and training are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as _SimpleNamespace
from typing import Any

from tfwire.compat._data import data as _tf_data
from tfwire.compat._data.transformations import Options as _Options
from tfwire.compat._errors import Namespace as _Namespace, missing as _missing
from tfwire.compat._graph import (
    fifo as _fifo,
    graph_inputs as _graph_inputs,
    queues as _queues,
)
from tfwire.compat._graph.fifo import GraphFIFOQueue as _GraphFIFOQueue
from tfwire.compat._graph.graph_inputs import (
    Graph as Graph,
    disable_eager_execution as disable_eager_execution,
    enable_eager_execution as enable_eager_execution,
    executing_eagerly as executing_eagerly,
    get_default_graph as get_default_graph,
    placeholder as placeholder,
    placeholder_with_default as placeholder_with_default,
    reset_default_graph as reset_default_graph,
)
from tfwire.compat._graph.queues import Coordinator as _Coordinator
from tfwire.compat._graph.readers import (
    FixedLengthRecordReader as FixedLengthRecordReader,
    IdentityReader as IdentityReader,
    TextLineReader as TextLineReader,
    TFRecordReader as TFRecordReader,
    WholeFileReader as WholeFileReader,
)
from tfwire.compat._graph.session import (
    InteractiveSession as InteractiveSession,
    Operation as Operation,
    Session as Session,
    get_default_session as get_default_session,
    group as group,
    no_op as no_op,
)

FIFOQueue: type[_GraphFIFOQueue] = _GraphFIFOQueue
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


class ConfigProto(_SimpleNamespace):
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
    *("match_filenames_once", "start_queue_runners"),
]

_TRAIN: dict[str, Any] = {
    "Coordinator": _Coordinator,
    "QueueRunner": _fifo.QueueRunner,
    "add_queue_runner": _fifo.add_queue_runner,
    **{name: getattr(_queues, name) for name in _QUEUES},
    **_queues.PRODUCERS,
    **_graph_inputs.BATCHES,
}

_DATA: dict[str, Any] = {
    "Iterator": _graph_inputs.GraphIterator,
    "Options": _Options,
    "get_output_shapes": lambda dataset_or_iterator: dataset_or_iterator.output_shapes,
    "get_output_types": lambda dataset_or_iterator: dataset_or_iterator.output_types,
    "make_initializable_iterator": _graph_inputs.make_initializable_iterator,
    "make_one_shot_iterator": _graph_inputs.make_one_shot_iterator,
}


class _DataNamespace(_Namespace):
    """tf.compat.v1.data: the names of tf.data, and some of its own."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_tf_data, name)


data: _DataNamespace = _DataNamespace("data", **_DATA)


# The names of tfwire.compat, set there: it imports this module.
_COMPAT: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name in _COMPAT:
        return _COMPAT[name]
    raise _missing(name)


__all__ = sorted(
    {name for name in globals() if name[0] != "_"} - {"Any", "Callable", "annotations"}
)
