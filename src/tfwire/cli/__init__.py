"""The tfwire command: one module per subcommand, imported only when it runs."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tfwire._version import __version__
from tfwire.cli._files import OutputError, output
from tfwire.errors import DataLossError, Error

__all__ = ["main"]

# Subcommand and its line in --help; module tfwire.cli.NAME has add_arguments() and run().
_COMMANDS = {
    "info": "what files hold: compression, records, sizes, the first record's features",
    "head": "the first records, readable",
    "cat": "all records, readable, as JSON lines, or as they are",
    "count": "the number of records",
    "verify": "verify every record, list all damage",
    "repair": "write a new file of every record that verifies, or can be corrected",
    "index": "save where the records of files lie, for random access",
    "split": "write the records of files to others, of equal number or size",
    "merge": "write the records of files to one",
    "shuffle": "write the records of files in random order",
    "bench": "how fast a file is read here, by tfwire and by what else is installed",
    "demo": "walk through the library on real data, ending with a speed table",
}

_DAMAGED = "tfwire verify lists all damage; tfwire repair keeps the records that verify"


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser of the whole command; only the chosen subcommand's module is imported."""
    parser = argparse.ArgumentParser(
        prog="tfwire",
        description="Read, write and look into TFRecord files without TensorFlow.",
    )
    parser.add_argument("--version", action="version", version=f"tfwire {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_text in _COMMANDS.items():
        command = commands.add_parser(name, help=help_text, description=help_text)
        if name == chosen:
            import_module(f"tfwire.cli.{name}").add_arguments(command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: Words after the program's name; None takes them from the command line.

    Returns:
        The exit status: 0, 1 when the data is at fault, 2 for wrong usage.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may be any bytes
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    options = _parser(chosen).parse_args(words)
    try:
        status = int(import_module(f"tfwire.cli.{options.command}").run(options))
        with output():
            sys.stdout.flush()  # a broken pipe shows here at the latest
        return status
    except BrokenPipeError:
        _silence_output()  # its reader has left (tfwire ... | head)
        return 0
    except KeyboardInterrupt:
        return 130  # as a shell says it of a process that was interrupted
    except OSError as problem:
        text = f"{problem.filename}: {problem.strerror}" if problem.filename else problem
        print(f"tfwire {options.command}: {text}", file=sys.stderr)
        if isinstance(problem, OutputError):
            _silence_output()
        return 1
    except (Error, ValueError) as problem:
        print(f"tfwire {options.command}: {problem}", file=sys.stderr)
        if isinstance(problem, DataLossError) and options.command != "repair":
            print(_DAMAGED, file=sys.stderr)
        return 1


def _silence_output() -> None:
    """Sends what is still buffered nowhere: the interpreter flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
