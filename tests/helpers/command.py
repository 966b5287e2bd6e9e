"""The tfwire command, within this process and as one of its own."""

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


def tfwire_process(*words, **options):
    """A finished process, its output as text unless text=False is given: for what the interpreter
    and the system do, such as signals, pipes that break, and the end of the process."""
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "tfwire", *map(str, words)], **options)


def tfwire_command(*words, **options):
    """As tfwire_main, its output as text."""
    done = tfwire_main(*words, **options)
    return subprocess.CompletedProcess(
        words, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def tfwire_main(*words, stdin=b"", cwd=None, encoding="utf-8"):
    """The command within this process, which is a hundred times as fast; its output as bytes.

    Args:
        words: After the name of the program.
        stdin: What it reads there: bytes, or a file.
        cwd: Where it runs.
        encoding: Of its output.
    """
    from tfwire.cli import main

    with contextlib.ExitStack() as stack:
        if isinstance(stdin, bytes):
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(stdin)
            file.seek(0)
        else:
            file = stdin
        streams = {
            "stdin": io.TextIOWrapper(io.BufferedReader(file.raw)),
            "stdout": io.TextIOWrapper(io.BytesIO(), encoding),
            "stderr": io.TextIOWrapper(io.BytesIO(), encoding, "backslashreplace"),
        }
        before = {name: getattr(sys, name) for name in streams}
        stack.callback(lambda: [setattr(sys, *item) for item in before.items()])
        for item in streams.items():
            setattr(sys, *item)
        if cwd is not None:
            stack.callback(os.chdir, os.getcwd())
            os.chdir(cwd)
        try:
            status = main(list(map(str, words)))
        except SystemExit as done:
            status = done.code
        for name in ("stdout", "stderr"):
            streams[name].flush()
        out, err = (streams[name].buffer.getvalue() for name in ("stdout", "stderr"))
        streams["stdin"].detach().detach()
        return subprocess.CompletedProcess(words, status, out, err)
