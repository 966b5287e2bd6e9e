"""Writes the manual page of the command from the texts of --help: ``make man``.

argparse-manpage leaves out what stands below the options of a command, such as when its exit status
is 1, and dates the page.

Usage: ``python packaging/make_man.py OUT``
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tfwire import __version__
from tfwire.cli.completion import command_parsers

HEADER = """\
.TH TFWIRE 1 "" "tfwire {version}" "User commands"
.SH NAME
tfwire \\- read, write and look into TFRecord files without TensorFlow
.SH SYNOPSIS
.B tfwire
.I COMMAND
[\\fIOPTION\\fR ...] [\\fIFILE\\fR ...]
.SH DESCRIPTION
Every checksum is verified. Compressed files are detected. A FILE may be a URL of fsspec where that
is installed, and \\- is standard input where a command reads once.
.SH COMMANDS
"""
FOOTER = """\
.SH EXIT STATUS
.TP
0
All went well.
.TP
1
The data is at fault: damage, a record that does not fit, a file that cannot be read.
.TP
2
Wrong usage.
.TP
130
Interrupted.
"""


def roff(text: str) -> str:
    """Text without what roff would obey."""
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def entry(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    value = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    title = ", ".join(rf"\fB{roff(each)}\fR" for each in action.option_strings)
    if action.nargs != 0:
        title = f"{title} \\fI{roff(str(value))}\\fR".strip()
    help_text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return f".TP\n{title}\n{roff(help_text)}\n"


def page() -> str:
    parts = [HEADER.format(version=roff(__version__))]
    for name, (help_text, parser) in command_parsers().items():
        parts.append(f".SS tfwire {name}\n{roff(help_text[:1].upper() + help_text[1:])}.\n")
        parts += [entry(parser, action) for action in parser._actions if action.dest != "help"]
        if parser.epilog:
            parts.append(f".PP\n{roff(parser.epilog)}\n")
    return "".join([*parts, FOOTER])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
