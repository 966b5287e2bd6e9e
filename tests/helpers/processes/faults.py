"""System calls that fail, or at which the process is killed.

The functions of ``os`` through which the package changes files are replaced by ones that count
their calls; the n-th one does something else. A scenario runs in a forked process, for every n.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import traceback
import warnings

from tfwire._base import system

CALLS = [
    *["open", "close", "write", "ftruncate", "fsync", "fchmod", "fchown"],
    *["replace", "rename", "mkdir", "link", "unlink", "stat", "fstat", "dup"],
]
SYSTEM_CALLS = ["pread", "pread_into", "writev", "try_lock"]

KILLED, RAISED, DONE, BROKEN = 77, 1, 0, 2


def kill(call, *arguments, **options):
    os._exit(KILLED)


def kill_after(call, *arguments, **options):
    call(*arguments, **options)
    os._exit(KILLED)


def kill_halfway(call, *arguments, **options):
    """Of what is written, half reaches the file."""
    if call.__name__ in ("write", "writev"):
        half(call, *arguments)
    os._exit(KILLED)


def fail(call, *arguments, **options):
    if call.__name__ == "close":
        call(*arguments)  # it is closed all the same
    raise OSError(errno.EIO, "the disk is broken")


def fill(call, *arguments, **options):
    """As a full disk: some bytes are taken, then none."""
    if call.__name__ not in ("write", "writev"):
        return fail(call, *arguments, **options)
    half(call, *arguments)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half(call, fd, data):
    data = b"".join(data) if isinstance(data, (list, tuple)) else bytes(data)
    fitting = data[: len(data) // 2]
    return call(fd, [fitting] if call.__name__ == "writev" else fitting)


def interrupt(call, *arguments, **options):
    raise KeyboardInterrupt


def interrupt_after(call, *arguments, **options):
    call(*arguments, **options)
    raise KeyboardInterrupt


def two(first, second, gap):
    """An action for ``forever``: a call is the first's, another one ``gap`` calls later the
    second's, and all others are as usual."""
    made = 0

    def action(call, *arguments, **options):
        nonlocal made
        made += 1
        chosen = {1: first, 1 + gap: second}.get(made)
        return chosen(call, *arguments, **options) if chosen else call(*arguments, **options)

    return action


ACTIONS = [kill, kill_after, kill_halfway, fail, fill]


def _no_fsync(fd):
    pass


def inject(n, action, forever=False):
    """The n-th call from now on is the action's; with forever all after it too."""
    calls = {"made": 0}
    os.fsync = _no_fsync  # it takes most of the time, and only matters to a machine that stops

    def faulty(call):
        def replaced(*arguments, **options):
            calls["made"] += 1
            if calls["made"] == n or (forever and calls["made"] > n):
                return action(call, *arguments, **options)
            return call(*arguments, **options)

        return replaced

    for module, names in ((os, CALLS), (system, SYSTEM_CALLS)):
        for name in names:
            setattr(module, name, faulty(getattr(module, name)))
    return calls


def run(scenario, n, action, forever=False):
    """Runs a scenario in a process of its own, and says how that ended.

    Returns:
        KILLED, RAISED (an OSError or an interrupt), DONE, and whether the n-th call was reached.
    """
    reached, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if child == 0:
        status = BROKEN
        write, exit_ = os.write, os._exit
        try:
            calls = inject(n, lambda *a, **o: (write(tell, b"x"), action(*a, **o))[1], forever)
            try:
                scenario()
                status = DONE
            except (OSError, KeyboardInterrupt):
                status = RAISED
            del calls
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        exit_(status)
    os.close(tell)
    with contextlib.closing(os.fdopen(reached, "rb", buffering=0)) as pipe:
        was_reached = bool(pipe.read(1))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (KILLED, RAISED, DONE), status
    return status, was_reached


def every(scenario, action, forever=False, stride=1, first=1, limit=2000):
    """Runs a scenario for n = first, first + 1, ... until it makes fewer than n calls; with a
    stride, for some of these.

    Yields:
        n, and how it ended.
    """
    for n in range(first + random.randrange(stride), limit, stride):
        status, reached = run(scenario, n, action, forever)
        if not reached:
            assert status == DONE
            return
        yield n, status
    raise AssertionError(f"no end after {limit} calls")
