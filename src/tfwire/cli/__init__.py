"""The tfwire command and the table of its subcommands, whose modules are imported when needed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from tfwire import DataLossError, __version__
from tfwire._interface.messages import printable
from tfwire.cli._arguments import (
    INPUT_COMPRESSIONS,
    UsageError,
    check_files,
    error_line,
    expand_patterns,
    print_error,
)
from tfwire.cli._printing.terminal import terminal_width
from tfwire.cli._streams import OutputError, silence_output, standard_streams

__all__ = ["main"]


# Subcommand: the module with its add_SUBCOMMAND(), and its line in --help.
_COMMANDS = {
    "info": ("info", "show compression, number and sizes of records, features of the first record"),
    "head": ("show", "print the first records as a table, text or JSON"),
    "cat": ("show", "print all records as a table, text, JSON or raw bytes"),
    "count": ("info", "count the records"),
    "schema": ("schema", "print the specification that parses files, as code or a schema file"),
    "stats": ("stats", "show how many records have each feature, and the ranges of its values"),
    "view": (
        "view",
        "look at records, images and damage in the browser, or write them as one page",
    ),
    "verify": ("verify", "verify every record and list all damage"),
    "diff": ("diff", "show which records of two files or data sets differ, and in which features"),
    "repair": ("verify", "write the records that verify, or can be corrected, to a new file"),
    "index": ("index", "save the positions of records, for random access"),
    "split": ("reshard", "write the records of files to several files of equal number or size"),
    "merge": ("reshard", "write the records of files to one file"),
    "shuffle": ("reshard", "write the records of files in random order"),
    "convert": (
        "convert",
        "convert between TFRecord, Parquet, Arrow, JSON lines, CSV and tar files",
    ),
    "port": ("port", "list what of a TensorFlow program runs by changing one import, and the rest"),
    "bench": ("bench", "measure how fast tfwire and other installed packages read a file"),
    "completion": ("completion", "print a script that completes commands and options in a shell"),
    "demo": ("demo", "walk through the library on real data, with a speed table at the end"),
}
_DAMAGED = "tfwire verify lists all damage; tfwire repair keeps the records that verify"
_INTERRUPTED = 130  # the exit status that shells give an interrupted process


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps lines to the width of the terminal, as that of argparse does by importing shutil, whose
    modules of compression take a tenth of the time of --help."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": terminal_width() - 2, **options})


class _Parser(argparse.ArgumentParser):
    """A parser whose errors show control characters of the command line escaped, and name what may
    be meant by a word that it does not know."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does; its suggestions are those of Python 3.14."""
        if action.choices is not None and value not in action.choices:
            among = list(map(str, action.choices))
            words = ", ".join(map(repr, among))
            if action.dest == "command" and os.path.exists(value):
                meant = f", a file; tfwire head {value} shows its records"
            else:
                meant = _nearest(value, among)
            said = f"invalid choice: {value!r}{meant} (choose from {words})"
            raise argparse.ArgumentError(action, said)

    def parse_command(self, words: Sequence[str], parsers: dict[str, _Parser]) -> Any:
        """The options of a command line. A subcommand says which options it does not know."""
        options, unknown = self.parse_known_args(words)
        if unknown:
            parser = parsers.get(options.command, self)
            known = list(parser._option_string_actions)
            said = (word + _nearest(word.partition("=")[0], known) for word in unknown)
            parser.error(f"unrecognized arguments: {' '.join(said)}")
        return options


def _nearest(word: Any, known: Iterable[str]) -> str:
    """Which of the words that are known is meant."""
    from difflib import get_close_matches

    found = get_close_matches(str(word), known, 1)
    return f", did you mean {found[0]}?" if found else ""


def command_parser(
    names: Iterable[str] = _COMMANDS, filled: Collection[str] = _COMMANDS
) -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of the whole command, and those of subcommands by their names.

    Args:
        names: Of the subcommands that it has.
        filled: Those with their options, whose modules are imported.
    """
    parser = _Parser(
        prog="tfwire",
        description="Read, write and look into TFRecord files without TensorFlow.",
    )
    parser.add_argument("--version", action="version", version=f"tfwire {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in names:
        module, text = _COMMANDS[name]
        command = commands.add_parser(name, help=text, description=text)
        if name in filled:
            getattr(import_module(f"tfwire.cli.{module}"), f"add_{name}")(command)
    return parser, commands.choices


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: The words after the program's name; None: those of the command line.

    Returns:
        The exit status: 0, also of the help that is printed without any words; 1 when the data is
        at fault, 2 for wrong usage.

    Raises:
        SystemExit: After --help and --version, and for wrong usage found by argparse.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if word in _COMMANDS), None)
    with standard_streams():
        try:
            try:
                return _run(words, chosen)
            finally:
                sys.stdout.flush()  # raises at the latest if the pipe is broken
        except OutputError as error:
            silence_output()
            if error.broken_pipe:
                return 0  # its reader has seen enough (tfwire ... | head)
            print(f"{_name(chosen)}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return _INTERRUPTED
        except UsageError as error:
            print_error(chosen, error)
            return 2
        except Exception as error:
            print_error(chosen, error_line(error))
            # Of another file, repair would keep nothing.
            other = "not a TFRecord file?" in str(error)
            if isinstance(error, DataLossError) and not other and chosen != "repair":
                print_error(None, _DAMAGED)
            return 1


def _name(chosen: str | None) -> str:
    return "tfwire" if chosen is None else f"tfwire {chosen}"


def _run(words: list[str], chosen: str | None) -> int:
    filled = [] if chosen is None else [chosen]
    # If that is the first word, nothing asks for the others.
    parser, parsers = command_parser(filled if words[:1] == filled != [] else _COMMANDS, filled)
    options = parser.parse_command(_renewed(words), parsers)
    if options.command is None:
        parser.print_help()
        return 0
    in_turn = getattr(options, "in_turn", False)  # a fault of a file does not end the command
    for name in ("files", "same_as"):
        if hasattr(options, name):
            found = expand_patterns(getattr(options, name))
            for file in () if in_turn else found:
                check_files(file)
            setattr(options, name, found)
    if hasattr(options, "compression"):
        options.compression = INPUT_COMPRESSIONS[options.compression]
    return int(options.run(options))


def _renewed(words: list[str]) -> list[str]:
    """Words with head --limit N for head --records N, as it was called: --records has no value."""
    renewed = list(words)
    for i, word in enumerate(words if words[:1] == ["head"] else []):
        name, equals, count = word.partition("=")
        if name == "--records" and (equals or "".join(words[i + 1 : i + 2]).isdecimal()):
            renewed[i] = f"--limit{equals}{count}"
    return renewed
