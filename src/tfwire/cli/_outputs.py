"""Checks of the files that a command is to write, made before any file is read or written."""

from __future__ import annotations

import argparse
import errno
import os
import re
import stat
from collections.abc import Callable, Sequence

from tfwire.cli import _files

__all__ = ["problem_of_output", "problem_of_pattern"]

_FIELD = re.compile(r"(\{[^{}]*\})")
_DECIMAL = re.compile(r"\{\w+(?::\d*d?)?\}")


def problem_of_output(
    options: argparse.Namespace, inputs: Sequence[str], pattern: bool
) -> str | None:
    """Why the output cannot be written; None: it can.

    Args:
        options: With ``output`` and ``force``.
        inputs: The files that are read.
        pattern: The output is a pattern of {shard} and {shards}.

    Raises:
        OSError: The output has no folder.
    """
    from tfwire._records.sources import is_url

    output, found = options.output, ""
    if output == "-":
        return "OUT must be a file, as it appears only when it is complete"
    if is_url(output):
        return f"{output}: OUT must be a file: it gets its name by renaming, URLs cannot"
    folder, name = os.path.split(output)
    if name in ("", os.curdir, os.pardir):
        return f"{output!r}: OUT must be the name of a file"
    if not stat.S_ISDIR(_status_of_folder(output).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), output)
    is_output = _matcher(name) if pattern else name.__eq__
    for name in sorted(filter(is_output, os.listdir(folder or os.curdir))):
        found = os.path.join(folder, name)
        if _files.same_file(found, inputs):
            return f"{found}: is one of the inputs, and may be one of the new files"
        if os.path.exists(found) and not os.path.isfile(found):
            return f"{found}: is no regular file, and not replaced"
    return f"{found}: exists; --force replaces it" if found and not options.force else None


def _status_of_folder(path: str) -> os.stat_result:
    try:
        return os.stat(os.path.dirname(path) or os.curdir)
    except OSError as error:
        error.filename = path  # what was asked for
        raise


def _matcher(pattern: str) -> Callable[[str], object]:
    """Tells the names that the files of a pattern may have: they might replace, or mix with, those
    that are there."""
    parts = _FIELD.split(pattern)  # text, a field, text, ...
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [r"\d+" if _DECIMAL.fullmatch(part) else ".*" for part in parts[1::2]]
    return re.compile("".join(parts), re.DOTALL).fullmatch


def problem_of_pattern(pattern: str, num_shards: int | None) -> str | None:
    """Why a pattern gives files no names, or several files one name; None: it does not.

    Args:
        pattern: The path of the files.
        num_shards: How many there are; None: that is not known.
    """
    from tfwire._records.shard_arguments import some_names_of_shards

    try:
        some_names_of_shards(os.path.basename(pattern), num_shards)
    except (OSError, ValueError) as error:
        return _files.reason_of(error, pattern)
    return None
