"""Checks of arguments, and the text of messages: neighbours speak as the library does.

* Checks, which return the argument as a plain value: ``boolean``, ``choice``, ``integer``,
  ``as_index`` (an integer without a name), ``size_in_bytes``, ``column_names`` of a list of names;
  and ``check_callable``; ``as_device`` and ``numbered_device`` of torch.
* Text for terminals, logs and pages: ``printable`` escapes what a terminal would obey, ``shorten``
  leaves out the middle; ``show_key``, ``show_path`` and ``quoted`` show a key, a path and a repr,
  ``show_size`` a number of bytes. ``column_name`` is a key as tables have it, ``plural`` a number
  with its noun, ``parser_said`` why text could not be parsed.
* ``warn`` as TfwireWarning, with the user's line; ``InvalidArgumentError`` is TensorFlow's.

Importing this imports no numpy: the command is to start at once.
"""

from tfwire._base.arguments import (
    as_device as as_device,
    as_index as as_index,
    boolean as boolean,
    check_callable as check_callable,
    choice as choice,
    column_names as column_names,
    integer as integer,
    numbered_device as numbered_device,
    size_in_bytes as size_in_bytes,
)
from tfwire._base.errors import (
    InvalidArgumentError as InvalidArgumentError,
    parser_said as parser_said,
    warn as warn,
)
from tfwire._base.text import (
    column_name as column_name,
    plural as plural,
    printable as printable,
    quoted as quoted,
    shorten as shorten,
    show_key as show_key,
    show_path as show_path,
    show_size as show_size,
)
