"""The tfwire command, run as a user runs it."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import tfwire
from helpers.paths import TESTS

# Wherever the tests found the package, from whatever folder the command runs in.
SOURCE = Path(tfwire.__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
# For programs that import helpers.
WITH_HELPERS = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, TESTS)))}


def heed_interrupts():
    """A process that was started in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def tfwire_command(*words, **options):
    """A finished process, its output as text unless text=False is given."""
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "tfwire", *map(str, words)], **options)


def tfwire_main(*words, stdin=b""):
    """The same within this process, which is a hundred times as fast; its output as bytes."""
    from tfwire.cli import main

    with contextlib.ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        file.write(stdin)
        file.seek(0)
        streams = {
            "stdin": io.TextIOWrapper(io.BufferedReader(file.raw)),
            "stdout": io.TextIOWrapper(io.BytesIO(), "utf-8"),
            "stderr": io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace"),
        }
        before = {name: getattr(sys, name) for name in streams}
        stack.callback(lambda: [setattr(sys, *item) for item in before.items()])
        for item in streams.items():
            setattr(sys, *item)
        try:
            status = main(list(map(str, words)))
        except SystemExit as done:
            status = done.code
        for name in ("stdout", "stderr"):
            streams[name].flush()
        out, err = (streams[name].buffer.getvalue() for name in ("stdout", "stderr"))
        streams["stdin"].detach().detach()
        return subprocess.CompletedProcess(words, status, out, err)
