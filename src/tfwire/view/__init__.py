"""Records, columns and specifications as HTML, for notebooks and pages of your own.

In a notebook, a TFRecordFile, an inferred schema, a Dataset and a column show themselves. A batch
is a plain dict: ``as_html`` makes its table. ``tfwire view FILE`` opens files in a browser.
"""

from tfwire.view._display import as_html

__all__ = ["as_html"]
