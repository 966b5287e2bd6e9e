"""Encoding in Python alone, as it is done where C declines."""

import pytest

from tfwire._examples import encode_rows as row_encoding
from tfwire._examples.encode import encode_examples


def refuse(_):
    raise RuntimeError


def encode_without(forms, rows, **options):
    """encode_examples as if some forms of rows could not be used."""
    with pytest.MonkeyPatch.context() as patch:
        for form in forms:
            patch.setattr(row_encoding, form, refuse)
        return encode_examples(rows, **options)


def encode_in_python(rows, **options):
    return encode_without(["_as_it_is", "_plain"], rows, **options)
