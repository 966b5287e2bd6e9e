"""The tfwire command as a process of its own: ``tfwire``, ``python -m tfwire``."""

from __future__ import annotations

import os
import sys

from tfwire.cli import main

__all__ = ["run"]


def run() -> int:
    """Runs the command and returns its exit status.

    Ends the process at once if threads are left: one that waits for a silent pipe cannot be
    interrupted, and the interpreter would wait for it.
    """
    status = main()
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    raise SystemExit(run())
