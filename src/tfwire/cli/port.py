"""tfwire port: what of a TensorFlow program runs with tfwire.compat, found without running it."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, printable, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import colored

if TYPE_CHECKING:
    from tfwire.cli._porting.uses import Import, Use

_PROGRAM_ENDINGS = (".py", ".ipynb")
_PROGRAM_BYTES = 256 << 20  # of a program; notebooks hold pictures
# Lines of a notebook that are no Python: %time f(), files = !ls, name?
_MAGIC = re.compile(r"^([ \t]*)(?:\w+ *= *)?[%!?].*$|^.*\?$", re.MULTILINE)


class _Trouble(Exception):
    """A program that cannot be read."""


class _Source(NamedTuple):
    """A program: its text, and of a notebook, the cell and its line that each line is."""

    text: str
    cells: list[tuple[int, int]]


def add_port(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire port."""
    parser.add_argument(
        "programs",
        nargs="+",
        metavar="FILE",
        help="a Python program or a notebook, a folder of them, - for stdin",
    )
    parser.add_argument(
        "--all", action="store_true", help="list what runs and what is not followed, too"
    )
    _arguments.add_shared(parser, "--json", help="print JSON, a line for each program")
    parser.epilog = (
        "Names are followed from the imports of TensorFlow through attributes, assignments and the "
        "methods of datasets and tensors, as far as they can be without running the program. Exit "
        "status: 0 if all of that runs, 1 if something does not, 2 if a program cannot be read."
    )
    parser.set_defaults(run=_port)


def _port(options: argparse.Namespace) -> int:
    _arguments.check_stdin(options.programs)
    status = 0
    for name in options.programs:
        try:
            for path in _programs(name):
                status = max(status, _report(path, options))
        except (_Trouble, OSError) as error:
            text = str(error) if isinstance(error, _Trouble) else _arguments.error_line(error, name)
            _arguments.print_error("port", text)
            status = 2
    return status


def _programs(name: str) -> Iterator[str]:
    """The programs of a folder, also in its folders, but for hidden ones; else the name itself."""
    if not os.path.isdir(name):
        yield name
        return
    is_empty = True
    for folder, folders, files in os.walk(name):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for each in sorted(files):
            if each.endswith(_PROGRAM_ENDINGS):
                is_empty = False
                yield os.path.join(folder, each)
    if is_empty:
        raise _Trouble(f"{show_path(name)}: a folder without {' or '.join(_PROGRAM_ENDINGS)} files")


def _report(path: str, options: argparse.Namespace) -> int:
    """Prints what a program needs; returns an exit status."""
    from tfwire.cli._porting.uses import find_uses

    shown = "standard input" if path == "-" else show_path(path)
    try:
        program = _read(path)
        imports, uses, lost = find_uses(_parsed(program))
    except _Trouble as error:
        _arguments.print_error("port", f"{shown}{error}")
        return 2
    except RecursionError:
        _arguments.print_error("port", f"{shown}: it is nested too deeply")
        return 2
    if options.json:
        _print_json(path, program, imports, uses, lost)
    else:
        _print_text(shown, program, imports, uses, lost, options.all)
    return int(any(use.fault for use in uses))


# ---- Reading -------------------------------------------------------------------------------------
def _read(path: str) -> _Source:
    with contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
        data = file.read(_PROGRAM_BYTES + 1)
    if len(data) > _PROGRAM_BYTES:
        raise _Trouble(f": has more than {_PROGRAM_BYTES:,} bytes")
    if path.endswith(".ipynb"):
        return _notebook(data)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return _Source(data.decode(encoding), [])
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Trouble(f":{line}: not {error.encoding}: byte {data[error.start]:#04x}") from None
    except SyntaxError as error:  # an encoding that Python does not know, or bytes before it
        raise _Trouble(f":1: {printable(str(error.msg))}") from None


def _notebook(data: bytes) -> _Source:
    """The code of a notebook's cells, one after the other."""
    try:
        cells = enumerate(json.loads(data)["cells"], 1)
        sources = [(n, "".join(cell["source"])) for n, cell in cells if cell["cell_type"] == "code"]
        "".join(source for _, source in sources).encode()  # Python reads no half of a pair
    except (ValueError, KeyError, TypeError) as error:
        raise _Trouble(f": not a notebook of format 4: {printable(str(error))}") from None
    lines, places = [], []
    for number, source in sources:
        code = "" if source.startswith("%%") else _without_magic(source)
        for line, text in enumerate(code.splitlines(), 1):
            lines.append(text)
            places.append((number, line))
    return _Source("\n".join(lines), places)


def _without_magic(source: str) -> str:
    """The code of a cell, as Python."""
    try:
        _tree(source)
    except SyntaxError:
        return _MAGIC.sub(r"\1pass", source)
    return source


def _parsed(program: _Source) -> ast.Module:
    try:
        return _tree(program.text)
    except SyntaxError as error:
        place = _place(program, error.lineno or 1)
        raise _Trouble(f"{place}: not Python 3: {printable(str(error.msg))}") from None
    except ValueError as error:  # a zero byte, before Python 3.12
        raise _Trouble(f": {error}") from None
    except MemoryError:
        raise _Trouble(": expressions are nested too deeply") from None


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the program
        return ast.parse(text)


def _place(program: _Source, line: int) -> str:
    """A line, as it is named after the name of a file."""
    if not program.cells:
        return f":{line}"
    cell, line = program.cells[min(line, len(program.cells)) - 1]
    return f":cell {cell}:{line}"


# ---- Printing ------------------------------------------------------------------------------------
def _print_text(
    shown: str,
    program: _Source,
    imports: list[Import],
    uses: list[Use],
    lost: list[int],
    everything: bool,
) -> None:
    lines = [
        (each.line, 0, colored("change", "cyan", sys.stdout) + f" {each.old}  ->  {each.new}")
        for each in imports
    ]
    for use in uses:
        if use.fault:
            missing = colored(use.name, "red", sys.stdout)
            lines.append((use.line, use.column, f"{missing} does not run; {use.fault}"))
        elif everything:
            lines.append((use.line, use.column, f"{use.name} runs"))
    if everything:
        lines += [(line, 0, "what becomes of this is not followed") for line in lost]
    for line, _, text in sorted(lines):
        print(f"{shown}{_place(program, line)}: {text}")
    left = f"; what becomes of them at {plural(len(lost), 'line')} is not followed" if lost else ""
    print(f"{shown}: {_summary(imports, uses)}{left}")


def _summary(imports: list[Import], uses: list[Use]) -> str:
    faults = sum(bool(use.fault) for use in uses)
    used, changed = plural(len(uses), "use"), plural(len(imports), "import")
    if not uses and not imports:
        return "does not use TensorFlow"
    if not faults:
        return f"runs with {changed} changed ({used} of TensorFlow)"
    verb = "does" if faults == 1 else "do"
    return f"{faults:,} of {used} of TensorFlow {verb} not run; {changed} to change"


def _print_json(
    path: str, program: _Source, imports: list[Import], uses: list[Use], lost: list[int]
) -> None:
    def place(line: int) -> dict[str, Any]:
        if not program.cells:
            return {"line": line}
        cell, line = program.cells[line - 1]
        return {"cell": cell, "line": line}

    _arguments.print_json(
        {
            "path": path,
            "runs": not any(use.fault for use in uses),
            "imports": [{**place(i.line), "old": i.old, "new": i.new} for i in imports],
            "uses": [
                {
                    **place(use.line),
                    "column": use.column,
                    "name": use.name,
                    "runs": not use.fault,
                    "fault": use.fault or None,
                }
                for use in uses
            ],
            "not_followed": [place(line) for line in lost],
        }
    )
