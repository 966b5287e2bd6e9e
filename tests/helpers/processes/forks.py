"""What a forked process does with what it shares with its parent."""

from __future__ import annotations

import os
import signal
import traceback
import warnings
from collections.abc import Callable

import pytest


def forked(work: Callable[[], object]) -> Callable[[], bool]:
    """Begins a forked process that calls a function; one that hangs is killed. Gives a function
    that waits for it, and says whether the result was true."""
    if not hasattr(os, "fork"):
        pytest.skip("Windows does not fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(2)
    return lambda: (child, 0) == os.waitpid(child, 0)
