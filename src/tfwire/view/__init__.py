"""Records, columns and specifications as HTML, for notebooks and pages of your own.

In a notebook, a TFRecordFile, an inferred schema, a Dataset and a column show themselves. A batch
is a plain dict: ``as_html`` makes its table. ``tfwire view FILE`` opens files in a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfwire.view._display import as_html

__all__ = ["as_html"]


def __getattr__(name: str) -> Any:
    """Imports what makes pages when it is used: tfwire head only looks at headers of images."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tfwire.view import _display

    return _display.as_html
