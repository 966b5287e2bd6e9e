"""Records that are small, and ask a viewer of records for as much as they can."""

import struct
import zlib

import numpy as np

import tfwire as tfw
from cases.wire import field

PNG = b"\x89PNG\r\n\x1a\n"


def feature(kind, values):
    return field(kind, values)


def entry(key, value):
    return field(1, field(1, key) + field(2, value))


def example(*entries):
    return field(1, b"".join(entries))


def chunk(name, data):
    crc = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + crc


def png(width, height, *, lines=b"", kind=0, bits=8, chunks=b""):
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(lines))
    return PNG + chunk(b"IHDR", header) + chunks + body + chunk(b"IEND", b"")


def mask(width, height, filter_type=0):
    """A mask whose lines have one of PNG's filters."""
    line = bytes([filter_type]) + bytes([1]) + bytes(width - 1)
    return png(width, height, lines=line * height)


def bomb(kind, side=8000):
    """A small file whose header declares many pixels."""
    if kind == "png":
        return png(side, side)
    if kind == "jpeg":
        frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, side, side, 3) + bytes(9)
        return b"\xff\xd8" + frame + b"\xff\xd9"
    if kind == "gif":
        return b"GIF89a" + struct.pack("<HH", side, side) + bytes(3) + b";"
    data = b"VP8X" + struct.pack("<I", 10) + bytes(4) + struct.pack("<I", side - 1)[:3]
    data += struct.pack("<I", side - 1)[:3] + bytes(8)
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data


def boxes(count, fill=0.5):
    names = ("xmin", "ymin", "xmax", "ymax")
    found = {f"image/object/bbox/{name}": np.full(count, fill, np.float32) for name in names}
    return {**found, "image/object/class/text": [b"<label>" * 6] * count}


def _repeated(unit, size):
    return unit * (size // len(unit))


def _varied(size, key_bytes):
    """Features with keys of their own."""
    count = size // (key_bytes + 6)
    return example(*(entry(b"%0*x" % (key_bytes, i), b"") for i in range(count)))


def hostile_records(size):
    """Names to records of about ``size`` bytes each."""
    picture, large_mask, part = mask(8, 8), mask(1000, 1000, 4), size // 4
    strings = field(1, feature(1, b"\n\0" * 9))
    empty_steps = field(1, field(1, b"") + field(2, _repeated(b"\n\0", size)))
    records = {
        "pictures and boxes": tfw.encode_example(
            {**{f"p{i:03}": picture for i in range(300)}, **boxes(size // 60)}
        ),
        "boxes of NaN": tfw.encode_example({"p": picture, **boxes(size // 60, np.nan)}),
        "boxes of four": tfw.encode_example(
            {**{f"p{i:03}": picture for i in range(300)},
             "objects/bbox": np.zeros(size // 16 * 4, np.float32)}
        ),
        "unknown fields": _repeated(b"\x18\1", size),
        "unknown fields of a feature": example(entry(b"a", _repeated(b"\x28\1", size))),
        "unknown fields of an entry": example(
            field(1, field(1, b"a") + _repeated(b"\x18\1", size))
        ),
        "empty maps": _repeated(b"\n\0", size),
        "empty lists of features": _repeated(b"\x12\0", size),
        "empty entries": example(_repeated(b"\n\0", size)),
        "empty features": example(_repeated(field(1, field(1, b"a") + field(2, b"")), size)),
        "pieces of a feature": example(
            field(1, field(1, b"a") + _repeated(field(2, feature(3, b"\n\1\1")), size))
        ),
        "kinds that change": example(
            entry(b"a", _repeated(feature(3, b"\n\1\1") + feature(1, b"\n\1x"), size))
        ),
        "empty steps": field(2, empty_steps),
        "lists without steps": field(2, _repeated(b"\n\0", size)),
        "steps of strings": field(
            2, field(1, field(1, b"s") + field(2, _repeated(strings, size)))
        ),
        "empty strings": example(entry(b"s", feature(1, _repeated(b"\n\0", size)))),
        "strings of one byte": example(entry(b"s", feature(1, _repeated(b"\n\1x", size)))),
        "packed integers": example(entry(b"i", feature(3, field(1, b"\1" * size)))),
        "integers one by one": example(entry(b"i", feature(3, _repeated(b"\x08\1", size)))),
        "floats of NaN": tfw.encode_example({"f": np.full(part, np.nan, np.float32)}),
        "features of three bytes": _varied(size, 3),
        "features of eight bytes": _varied(size, 8),
        "long keys": tfw.encode_example(
            {f"{i:02}\x1b" * (size // 120): [picture] * 20 for i in range(40)}
        ),
        "a long key that is not UTF-8": example(entry(b"\xff" * size, feature(3, b"\n\1\1"))),
        "groups": _repeated(b"\x1b" * 99 + b"\x1c" * 99, size),
        "too many groups": b"\x1b" * size,
        "a film": tfw.encode_example({"film": [picture] * (size // len(picture))}),
        "a film of steps": tfw.encode_sequence_example(
            {}, {"film": [[picture]] * (size // len(picture))}
        ),
        "a mask of width 1": tfw.encode_example({"m": [mask(1, 1 << 20, k) for k in range(5)]}),
        "a wide mask": tfw.encode_example({"m": [mask(1 << 20, 1, k) for k in range(5)]}),
        "masks": tfw.encode_example({f"m{i:03}": large_mask for i in range(99)}),
        "raw pixels of width 1": tfw.encode_example(
            {"image": bytes(size), "height": size, "width": 1}
        ),
        "a JPEG of segments": tfw.encode_example(
            {f"j{i}": b"\xff\xd8" + _repeated(b"\xff\xe0\0\2", part) for i in range(4)}
        ),
        "a JPEG of segments without a length": tfw.encode_example(
            {"j": b"\xff\xd8" + _repeated(b"\xff\xe0\0\0", size)}
        ),
        "a PNG of chunks": tfw.encode_example(
            {"p": png(9, 9, chunks=_repeated(chunk(b"teXt", b""), size))}
        ),
        "control characters": tfw.encode_example({f"k{i}": b"\x01" * part for i in range(4)}),
        "a message of another type": _repeated(field(9, b"x" * 20), size),
    }  # fmt: skip
    for kind in ("png", "jpeg", "gif", "webp"):
        records[f"bombs of {kind}"] = tfw.encode_example(
            {**{f"b{i:03}": bomb(kind) for i in range(300)}, "film": [bomb(kind)] * 300}
        )
    return records
