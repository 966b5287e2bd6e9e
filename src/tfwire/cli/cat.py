"""tfwire cat: all records."""

from __future__ import annotations

import argparse

from tfwire.cli import _show

add_arguments = _show.add_arguments


def run(options: argparse.Namespace) -> int:
    """Shows every record whole."""
    return _show.show(options, limit=None, shorten=False)
