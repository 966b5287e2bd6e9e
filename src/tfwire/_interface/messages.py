"""Checks of arguments, and the text of messages."""

from tfwire._base.arguments import (
    as_index as as_index,
    check_callable as check_callable,
    integer as integer,
)
from tfwire._base.errors import InvalidArgumentError as InvalidArgumentError, warn as warn
from tfwire._base.text import printable as printable
from tfwire._examples.dtypes import data_type_number as data_type_number
from tfwire._parsing.features import to_dtype as to_dtype
