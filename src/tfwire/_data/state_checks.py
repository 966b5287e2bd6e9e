"""Saved states of iterators: their form, and the check of one that is loaded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from tfwire._base.text import show_path

COUNT = range(2**63)
INT64 = range(-(2**63), 2**63)
RESUMED = "resumed"  # a key of positions of Resumed only
MISSING = "the elements before the position of the state are missing"


def check_state(state: Any, form: Any) -> None:
    """Checks that a part of a saved state has a form.

    Args:
        state: Anything, as it may come from a file.
        form: A range: an int within it. A type: an instance; ``object`` excludes None. A list: one
            item of each form. A set of one form: a list of any length. A dict: the same keys, and a
            value of each form. None: anything.

    Raises:
        ValueError: It does not.
    """
    if not _fits(state, form):
        if isinstance(state, dict) and RESUMED in state:
            raise ValueError(
                "the state is of a pass that went on from states of other shards: go on by "
                "Dataset.resume, with the states of all its shards"
            )
        raise ValueError(f"the state is damaged: unexpected {type(state).__name__} in it")
    if isinstance(form, dict):
        for key in form:
            check_state(state[key], form[key])
    elif isinstance(form, (list, set)):
        forms = form if isinstance(form, list) else len(state) * list(form)
        for part, part_form in zip(state, forms, strict=True):
            check_state(part, part_form)


def _fits(state: Any, form: Any) -> bool:
    """True if a state has this form, without looking into its parts."""
    if isinstance(form, range):
        return type(state) is int and state in form
    if isinstance(form, set):
        return isinstance(state, list)
    if isinstance(form, list):
        return isinstance(state, list) and len(state) == len(form)
    if isinstance(form, dict):
        return isinstance(state, dict) and state.keys() == form.keys()
    return form is None or (state is not None and form in (object, type(state)))


def state_or(state: Any, form: Any, first: Any) -> Any:
    """A part of a saved state, checked; None stands for the state at the beginning."""
    if state is None:
        return first
    check_state(state, form)
    return state


def after(elements: Iterator[Any], count: int) -> Iterator[Any]:
    """The elements after the first count, which a saved state says were given.

    Raises:
        ValueError: When the first is asked for: there are fewer.
    """
    return chain.from_iterable(_skipped(elements, count)) if count else elements


def _skipped(elements: Iterator[Any], count: int) -> Iterator[Iterator[Any]]:
    missing = object()
    if next(islice(elements, count - 1, None), missing) is missing:
        raise ValueError(MISSING)
    yield elements


def plain(value: Any) -> Any:
    """A state in JSON's types."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def file_id(path: Any) -> list[Any]:
    """The name and size of a file, by which a saved state identifies it; size None if unknown.

    Raises:
        ValueError: A file object or a pipe, which cannot be read again.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a TFRecordDataset of a {type(path).__name__} cannot be resumed")
    name = os.path.basename(os.fspath(path))
    try:
        status = os.stat(path)
    except OSError:
        return [name, None]  # a URL
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(
            f"a TFRecordDataset of {show_path(path)}, not a regular file, cannot be resumed"
        )
    return [name, status.st_size]
