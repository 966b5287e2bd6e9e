"""The table of docs/data-that-exists.md, and its lines run."""

from __future__ import annotations

import lzma
import re
import tarfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import tfwire
import tfwire.tensorboard
import tfwire.tfds
from helpers.documents import page_text

_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| `([^|`]+)` \|$", re.MULTILINE)
LINES: dict[str, str] = dict(_ROW.findall(page_text("data-that-exists.md")))
_NAMES = {"tfw": tfwire, "tfwire": tfwire, "lzma": lzma, "tarfile": tarfile, "zipfile": zipfile}


def read(name: str, **names: Any) -> Any:
    """What the line of a row finds, as lists and dicts.

    Args:
        name: The first cell of the row.
        names: What the line needs beside tfwire and the standard library.
    """
    *statements, expression = LINES[name].split("; ")
    known: dict[str, Any] = {**_NAMES, **names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tfwire.TfwireWarning)  # of damage that was left out
        exec("\n".join(statements), known)
        found = as_lists(eval(expression, known))
    if "archive" in known:
        known["archive"].close()
    return found


def as_lists(found: Any) -> Any:
    """A result without arrays and iterators, to compare it."""
    if isinstance(found, np.ndarray | np.generic):
        return as_lists(found.tolist()) if found.dtype == object else found.tolist()
    if isinstance(found, Mapping):
        return {key: as_lists(value) for key, value in found.items()}
    if isinstance(found, tuple):
        return tuple(map(as_lists, found))
    if isinstance(found, Iterable) and not isinstance(found, str | bytes):
        return list(map(as_lists, found))
    return found
