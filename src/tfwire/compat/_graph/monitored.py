"""tf.train.MonitoredSession and its relatives: sessions that stop where their sources end."""

from __future__ import annotations

from typing import Any

from tfwire.compat._errors import OutOfRangeError
from tfwire.compat._graph.session import Session

__all__ = ["MonitoredSession", "MonitoredTrainingSession", "SingularMonitoredSession"]


class MonitoredSession(Session):
    """A session whose ``with`` statement ends cleanly where a source has come to its end.

    Args:
        session_creator, stop_grace_period_secs, config: Accepted and ignored.
        hooks: None or empty: hooks are not run.

    Raises:
        ValueError: There are hooks.

    Example:
        >>> import tfwire.compat as tf
        >>> numbers = tf.train.range_input_producer(2, num_epochs=1, shuffle=False).dequeue()
        >>> with tf.train.MonitoredSession() as session:
        ...     while not session.should_stop():
        ...         print(session.run(numbers))
        0
        1
    """

    _tf_name = "train.MonitoredSession"

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Any = None,
        stop_grace_period_secs: float = 120,
        config: Any = None,
    ) -> None:
        if hooks:
            raise ValueError("hooks are not run: call them in the loop around `session.run`")
        super().__init__()
        self._ended = False

    def should_stop(self) -> bool:
        """True once a source has come to its end, or the session was closed."""
        return self._ended or self._closed

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """As :meth:`Session.run`; the end of a source is a reason to stop."""
        try:
            return super().run(fetches, feed_dict)
        except OutOfRangeError:
            self._ended = True
            raise

    def __enter__(self) -> MonitoredSession:
        super().__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> bool | None:
        super().__exit__(*exc_info)
        return isinstance(exc_info[1], (OutOfRangeError, StopIteration))


class SingularMonitoredSession(MonitoredSession):
    """As :class:`MonitoredSession`.

    Args:
        hooks: None or empty.
        others: Accepted and ignored.
    """

    def __init__(self, hooks: Any = None, **others: Any) -> None:
        super().__init__(hooks=hooks)


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    **others: Any,
) -> MonitoredSession:
    """A :class:`MonitoredSession`.

    Args:
        checkpoint_dir: None: there are no variables to save.
        hooks, chief_only_hooks: None or empty.
        master, is_chief, scaffold, others: Accepted and ignored.

    Raises:
        ValueError: There are hooks, or a folder for checkpoints.
    """
    if checkpoint_dir is not None:
        raise ValueError("`checkpoint_dir` must be None: there are no variables to save")
    return MonitoredSession(hooks=[*(hooks or ()), *(chief_only_hooks or ())])
