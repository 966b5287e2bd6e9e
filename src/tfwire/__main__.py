"""The tfwire command as a process of its own: ``tfwire``, ``python -m tfwire``."""

from __future__ import annotations

import os
import sys
import threading

from tfwire.cli import main

__all__ = ["run"]


def run() -> int:
    """Runs the command and returns its exit status, or ends the process with it.

    A thread that waits for a pipe that nobody writes to cannot be interrupted, and the interpreter
    would wait for it.
    """
    status = main()
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    raise SystemExit(run())
