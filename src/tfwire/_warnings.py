"""Warnings of the library, which point to the code that uses it."""

from __future__ import annotations

import sys
import warnings

from tfwire.errors import TfwireWarning

__all__ = ["warn"]


def warn(message: str) -> None:
    """Warns with a TfwireWarning that names the first line outside of tfwire."""
    warnings.warn(message, TfwireWarning, stacklevel=_stack_level())


def _stack_level() -> int:
    """How many frames above ``warn`` the first one is that does not belong to tfwire."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: object) -> bool:
    """Code run by ``exec`` may have globals without a name, or with any object as one."""
    return isinstance(module, str) and module.startswith("tfwire.")
