"""The addresses of the viewer's pages: links, and what their fields say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tfwire.view._dataset import TablePlace
from tfwire.view._html import Html, element
from tfwire.view._page import name_of_field
from tfwire.view._records import FeatureName

Fields = dict[str, str]


def link_to(kept: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """A link within the viewer."""
    return f"?{urlencode({**(kept or {}), **fields})}"


def turn(text: str, relation: str, kept: Mapping[str, Any], **fields: Any) -> Html:
    return element("a", text, rel=relation, href=link_to(kept, **fields))


def place_fields(place: TablePlace) -> dict[str, int]:
    """A place in the fields of an address; without an offset if that is not known."""
    file, (number, offset) = place
    at = {"file": file, "start": number}
    return {**at, "at": offset} if offset > 0 else at


def kept_fields(fields: Fields, *names: str) -> dict[str, str]:
    return {name: fields[name] for name in names if name in fields}


def feature_field(fields: Fields) -> FeatureName | None:
    field = fields.get("feature", "")
    return name_of_field(field) if field else None


def integer_field(fields: Fields, name: str) -> int:
    text = fields.get(name) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise LookupError(f"{name} must be a number")
    return int(text)
