"""What a page may cost. All that is read, decoded, drawn and written for it comes from one budget.

Records come from anywhere, and a few kilobytes can ask for gigabytes: of objects, of pixels, of
HTML. So nothing here depends on their kind. What a budget leaves out, the page says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tfwire._interface.contents import Extent

Text = TypeVar("Text", bound=str)
RECORD_LIMITS = Extent(features=1000, objects=200_000, num_bytes=64 << 20)
"""What is decoded of a record, whatever it holds."""

# A browser needs some 4 bytes for each pixel.
_PIXELS = 256 << 20
_PIXELS_OF_PICTURE = 64 << 20
_CHARACTERS = 4_000_000
_CHARACTERS_OF_RECORD = 20_000  # in a page with as many as its reader wants
_PIXELS_OF_BYTE = 64  # of a picture in such a page
_OBJECTS_OF_RECORD = 2000
_EFFORT = 2_000_000
_EFFORT_OF_RECORD = 40_000
_BYTES = 32 << 20  # of payload, or of what is decoded from it if that takes more
_CHARACTERS_OF_PICTURE = 64 << 10
_DETAILS = 16  # boxes of a picture, and the like, take one part of so many


class Allowance:
    """How much of one thing a page may have.

    Args:
        total: All that it may.
        largest: At once.

    Attributes:
        spent: How much it has. What is measured only afterwards may go beyond the total: once.
        refused: How often something was too much.
    """

    def __init__(self, total: int, largest: int | None = None) -> None:
        self.total = total
        self.spent = self.refused = 0
        self._largest = total if largest is None else largest
        self._kept = 0
        self._begin = total

    @property
    def left(self) -> int:
        """What may be spent now."""
        return self.total - self._kept - self.spent

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def take(self, amount: int) -> bool:
        """Spends as much as that, if it may."""
        if amount > min(self.left, self._largest):
            self.refused += 1
            return False
        self.spent += amount
        return True

    def spend(self, amount: int) -> None:
        """Spends what is there already."""
        self.spent += amount

    def write(self, make: Callable[[], Text]) -> Text:
        """Text, whose parts may have spent some of it while it was made."""
        before = self.spent
        text = make()
        self.spent = max(self.spent, before + len(text))
        return text

    def fill(self, parts: Iterable[Callable[[], Text]]) -> list[Text]:
        """The first of several texts, as many as there is room for, one at least."""
        found: list[Text] = []
        for make in parts:
            if found and self.is_spent:
                break
            found.append(self.write(make))
        return found

    @property
    def detail(self) -> int:
        """What one of many details may take: the first do not leave the others without any, and all
        of them together leave half of what there was when the part at hand began."""
        return max(0, self.left - self._begin // 2) // _DETAILS

    @contextmanager
    def keeping(self, part: float) -> Iterator[None]:
        """Keeps a part of what is left for what comes afterwards."""
        kept, begin = int(max(0, self.left) * part), self._begin
        self._kept += kept
        self._begin = self.left
        try:
            yield
        finally:
            self._kept -= kept
            self._begin = begin


class Budget:
    """What one page may cost.

    Args:
        html: Characters of the page.
        objects: Of Python, that records are decoded to.
        num_bytes: Of their memory.
        pixels: Of its pictures.
        effort: Steps of Python, of about half a microsecond, to look into pictures.
        seconds: Of reading ahead and searching.
        html_at_once: Of one picture within the page.

    Attributes:
        html, objects, memory, pixels, effort: What there is of each.
    """

    def __init__(
        self,
        *,
        html: int = _CHARACTERS,
        objects: int = RECORD_LIMITS.objects,
        num_bytes: int = _BYTES,
        pixels: int = _PIXELS,
        effort: int = _EFFORT,
        seconds: float = 1.5,
        html_at_once: int | None = None,
    ) -> None:
        self.html = Allowance(html, html_at_once)
        self.objects = Allowance(objects)
        self.memory = Allowance(num_bytes)
        self.pixels = Allowance(pixels, _PIXELS_OF_PICTURE)
        self.effort = Allowance(effort)
        self._deadline = time.monotonic() + seconds

    @classmethod
    def of_file(cls, num_records: int, num_bytes: int) -> Budget:
        """That of a page in a file, with so many records and bytes of pictures."""
        return cls(
            html=_CHARACTERS + _CHARACTERS_OF_RECORD * num_records + 3 * num_bytes // 2,
            objects=max(RECORD_LIMITS.objects, _OBJECTS_OF_RECORD * num_records),
            num_bytes=_BYTES + num_bytes,
            pixels=max(_PIXELS, _PIXELS_OF_BYTE * num_bytes),
            effort=max(_EFFORT, _EFFORT_OF_RECORD * num_records),
            seconds=60,
        )

    @classmethod
    def of_cell(cls) -> Budget:
        """That of a table in a notebook."""
        return cls(html_at_once=_CHARACTERS_OF_PICTURE, pixels=_PIXELS_OF_PICTURE)

    def spend(self, objects: int, memory: int) -> None:
        """Spends what a record was decoded to."""
        self.objects.spend(objects)
        self.memory.spend(memory)

    @property
    def is_full(self) -> bool:
        """Whether the page has as many records as it may."""
        return self.objects.is_spent or self.memory.is_spent

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline
