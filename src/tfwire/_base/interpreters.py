"""Subinterpreters, in which tfwire does not work."""

from __future__ import annotations

import sys
from importlib import import_module


def refuse_subinterpreters() -> None:
    """Called before anything else is imported.

    Raises:
        ImportError: In a subinterpreter: threads that read ahead cannot start there, and numpy and
            cffi share state with the main interpreter.
    """
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    try:
        interpreters = import_module(name)
    except ImportError:  # built without them
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "tfwire does not work in subinterpreters; import it in the main interpreter (for "
            "mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
        )
