"""What byte strings hold: images and sounds by their first bytes, text, other messages.

Nothing is decoded here. A browser decodes it, after the size that the header declares was checked.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tfwire.view._budget import Allowance

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_MOST_SEGMENTS = 300  # of a JPEG before its size: a profile of colors takes up to 255
_WAV_HEADER = 44
_SHOWN_BYTES = 640  # of text


class Media(NamedTuple):
    """An image or a sound.

    Attributes:
        type: The MIME type: one of five kinds of images, or of WAV.
        width, height: In pixels; 0 for sounds, and where the header does not say.
    """

    type: str
    width: int = 0
    height: int = 0

    @property
    def is_sound(self) -> bool:
        return self.type == "audio/wav"

    @property
    def num_pixels(self) -> int:
        return self.width * self.height

    def is_shown(self, pixels: Allowance, seen: int = 0) -> bool:
        """Whether a browser can show it without harm: a sound, or an image of known and moderate
        size, which is spent; but not if it takes the place of one of ``seen`` pixels."""
        size = self.num_pixels
        return self.is_sound or 0 < size <= seen or (size > 0 and pixels.take(size))

    @property
    def title(self) -> str:
        name = self.type.partition("/")[2].upper()
        return f"{name} {self.width} x {self.height}" if self.width else name


def find_media(contents: bytes) -> Media | None:
    """The kind of image or sound that bytes begin as; None for all others, such as SVG."""
    if contents.startswith(PNG_MAGIC) and contents[12:16] == b"IHDR":
        return Media("image/png", *big_endian(contents[16:24]))
    if contents.startswith(b"\xff\xd8\xff"):
        return Media("image/jpeg", *_jpeg_size(contents))
    if contents[:6] in (b"GIF87a", b"GIF89a") and len(contents) > 9:
        return Media("image/gif", *struct.unpack_from("<HH", contents, 6))
    if contents[:4] == b"RIFF" and contents[8:12] == b"WEBP":
        return Media("image/webp", *_webp_size(contents))
    if contents[:4] == b"RIFF" and contents[8:12] == b"WAVE" and len(contents) >= _WAV_HEADER:
        return Media("audio/wav")
    return None


def big_endian(data: bytes) -> tuple[int, int]:
    return struct.unpack(">II", data) if len(data) == 8 else (0, 0)


def _jpeg_size(contents: bytes) -> tuple[int, int]:
    """Of the first segment that holds the size of a frame."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if contents[at : at + 1] != b"\xff" or at + 9 > len(contents):
            break
        kind = contents[at + 1]
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", contents, at + 5)
            return width, height
        at += 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
    return 0, 0


def _webp_size(contents: bytes) -> tuple[int, int]:
    """Of the three forms of WebP: lossy, lossless and extended."""
    form = contents[12:16]
    if form == b"VP8 " and len(contents) >= 30:
        width, height = struct.unpack_from("<HH", contents, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L" and len(contents) >= 25:
        bits = int.from_bytes(contents[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X" and len(contents) >= 30:
        size = contents[24:27], contents[27:30]
        width, height = (int.from_bytes(part, "little") + 1 for part in size)
        return width, height
    return 0, 0


def likely_content(record: bytes) -> str | None:
    """What a record that is not an Example may be: an image, a sound or another protocol buffer;
    None if it looks like none of them."""
    media = find_media(record)
    if media is not None:
        return media.title
    from tfwire._interface.contents import likely_message

    message = likely_message(record)
    return None if message is None else message.name


def readable_text(contents: bytes, most: int = _SHOWN_BYTES) -> str | None:
    """The first ``most`` bytes as UTF-8; None unless they are, with few control characters."""
    try:
        text = contents[:most].decode()
    except UnicodeDecodeError as error:
        if len(contents) <= most or error.start < most - 3:  # else a character that was cut
            return None
        text = contents[: error.start].decode()
    controls = sum(not c.isprintable() and c not in "\t\r\n\u200d" for c in text)
    return text if controls * 8 <= len(text) else None


def data_uri(media: Media, contents: bytes) -> str:
    encoded = b2a_base64(contents, newline=False).decode("ascii")
    return f"data:{media.type};base64,{encoded}"
