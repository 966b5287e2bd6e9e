"""The tfwire command: one module per subcommand, imported only when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from tfwire._text import printable
from tfwire._version import __version__
from tfwire.cli._files import complain_of, reason_of
from tfwire.cli._streams import OutputError, silence_output, standard_streams
from tfwire.errors import DataLossError

__all__ = ["main"]

# Subcommand and its line in --help; module tfwire.cli.NAME has add_arguments() and run().
_COMMANDS = {
    "info": "show compression, number and sizes of records, features of the first record",
    "head": "print the first records as text or JSON",
    "cat": "print all records as text, JSON or raw bytes",
    "count": "count the records",
    "verify": "verify every record and list all damage",
    "repair": "write the records that verify, or can be corrected, to a new file",
    "index": "save the positions of records, for random access",
    "split": "write the records of files to several files of equal number or size",
    "merge": "write the records of files to one file",
    "shuffle": "write the records of files in random order",
    "bench": "measure how fast a file is read, by tfwire and by other installed packages",
    "demo": "walk through the library on real data, with a speed table at the end",
}

_DAMAGED = "tfwire verify lists all damage; tfwire repair keeps the records that verify"
_INTERRUPTED = 130  # as a shell says it of a process that was interrupted


class _Parser(argparse.ArgumentParser):
    """A parser that repeats no control characters of the command line."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser of the whole command; only the chosen subcommand's module is imported."""
    parser = _Parser(
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

    Raises:
        SystemExit: After --help and --version, and for wrong usage that argparse finds.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if word in _COMMANDS), None)
    with standard_streams():
        try:
            try:
                return _run(words, chosen)
            finally:
                sys.stdout.flush()  # a broken pipe shows here at the latest
        except OutputError as error:
            silence_output()
            if error.broken_pipe:
                return 0  # its reader has seen enough (tfwire ... | head)
            print(f"{_name(chosen)}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
        except Exception as error:
            complain_of(chosen, reason_of(error))
            if isinstance(error, DataLossError) and chosen != "repair":
                complain_of(None, _DAMAGED)
            return 1


def _name(chosen: str | None) -> str:
    return "tfwire" if chosen is None else f"tfwire {chosen}"


def _run(words: list[str], chosen: str | None) -> int:
    options: Any = _parser(chosen).parse_args(words)
    return int(import_module(f"tfwire.cli.{options.command}").run(options))
