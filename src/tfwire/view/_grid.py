"""Records as a grid of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tfwire.view._cells import label_of
from tfwire.view._html import Html, element, join, small, too_long
from tfwire.view._page import damage_text
from tfwire.view._pictures import Look, Picture, first_picture, picture_of_payload, shown
from tfwire.view._records import Record


def has_pictures(records: Sequence[Record]) -> bool:
    return any(_picture(record) is not None for record in records)


def record_grid(records: Sequence[Record], look: Look) -> tuple[Html, int]:
    """A tile for each record: its first picture, its number and its label; damage in red.

    Returns:
        HTML, and how many records there was room for, one at least.
    """
    tiles = look.budget.html.fill(partial(_tile, record, look) for record in records)
    return element("ol", Html("".join(tiles)), class_="grid"), len(tiles)


def _tile(record: Record, look: Look) -> Html:
    picture = _picture(record)
    if picture is None:
        why = too_long(record) if record.kind == "long" else damage_text(record)
        content = small("no picture" if record.is_read else why)
    else:
        content = shown(picture, look, record if record.is_decoded else None)
    address = look.link(record) if record.is_read else ""
    row = record.number if record.row is None else record.row
    number: object = f"{row:,}"
    if picture is not None and picture.media.is_sound and address:
        number = element("a", number, href=address)
        address = ""
    said = join(element("b", number), " ", label_of(record))
    tile = join(content, element("span", said))
    inner = element("a", tile, href=address) if address else tile
    is_bad = record.kind in ("damage", "unreadable")
    return element("li", inner, class_="bad" if is_bad else None)


def _picture(record: Record) -> Picture | None:
    """The first one; a sound if there is none."""
    named = (first_picture(record, name) for name in sorted(record.names))
    found = [each for each in (*named, picture_of_payload(record)) if each is not None]
    return min(found, key=lambda each: each.media.is_sound, default=None)
