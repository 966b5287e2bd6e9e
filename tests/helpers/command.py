"""The tfwire command, within this process and as one of its own; the commands that read files."""

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


def output_of(*command, cwd=None, **variables):
    """What a program prints, which ends well: with tfwire in its path, and these variables."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def output_of_python(*words, **options):
    """Of a program of Python, in a process of its own."""
    return output_of(sys.executable, *words, **options)


def tfwire_process(*words, **options):
    """A finished process, its output as text unless text=False is given: for what the interpreter
    and the system do, such as signals, pipes that break, and the end of the process."""
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "tfwire", *map(str, words)], **options)


def tfwire_command(*words, **options):
    """As tfwire_main, its output as text."""
    done = tfwire_main(*words, **options)
    output, errors = (
        text.decode().replace(os.linesep, "\n") for text in (done.stdout, done.stderr)
    )
    return subprocess.CompletedProcess(words, done.returncode, output, errors)


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
        file.raw.name = "<stdin>"
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


RECORDS = [tfwire.encode_example({"id": i, "name": f"name {i}"}) for i in range(100)]
# Every subcommand, with IN where a file is read and OUT where one is written.
READING = {
    "info": ["info", "IN"],
    "info --json": ["info", "--json", "IN"],
    "head": ["head", "IN"],
    "head json": ["head", "--format", "json", "IN"],
    "head protojson": ["head", "--format", "protojson", "IN"],
    "cat": ["cat", "IN"],
    "cat json": ["cat", "--format", "json", "IN"],
    "cat records": ["cat", "--records", "IN"],
    "cat raw": ["cat", "--format", "raw", "IN"],
    "count": ["count", "IN"],
    "count --json": ["count", "--json", "IN"],
    "schema": ["schema", "IN"],
    "schema json": ["schema", "--all", "--format", "json", "IN"],
    "stats": ["stats", "IN"],
    "stats --json": ["stats", "--json", "IN"],
    "verify": ["verify", "IN", "--crc32c", "--receipt"],
    "verify --json": ["verify", "IN", "--json", "--crc32c", "--receipt"],
    "verify --same-as": ["verify", "IN", "--same-as", "IN2"],
    "repair": ["repair", "IN", "OUT"],
    "repair --correct": ["repair", "--correct", "--accept-ambiguous", "--json", "IN", "OUT"],
    "index": ["index", "IN"],
    "index --text": ["index", "--text", "--json", "IN"],
    "index --check": ["index", "--check", "IN"],
    "split": ["split", "IN", "-o", "OUT-{shard}", "--shards", "2", "--index"],
    "merge": ["merge", "IN", "-o", "OUT", "--output-compression", "gzip"],
    "shuffle": ["shuffle", "IN", "-o", "OUT", "--seed", "1", "--json"],
    "convert": ["convert", "IN", "-o", "OUT", "--from", "tfrecord", "--to", "jsonl"],
    "convert --json": ["convert", "IN", "-o", "OUT", "--from", "tfrecord", "--to", "tar", "--json"],
    "bench": ["bench", "IN", "--seconds", "0.001"],
}


def words_of(name, path, out="out"):
    names = {"IN": path, "IN2": path, "OUT": out, "OUT-{shard}": out + "-{shard}"}
    return [names.get(word, word) for word in READING[name]]
