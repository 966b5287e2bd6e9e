"""Small images of every kind: PNGs byte by byte, as Pillow writes few of their kinds."""

import io
import struct
import zlib

import numpy as np

GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6


def png(pixels, colour, depth, *chunks):
    """A PNG of pixels (height, width, values), of a colour type and a number of bits."""
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    rows = b"".join(b"\0" + _packed(row, depth) for row in pixels.reshape(height, -1))
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def _packed(row, depth):
    if depth == 16:
        return row.astype(">u2").tobytes()
    bits = "".join(f"{value:0{depth}b}" for value in row.tolist())
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def pngs():
    """PNGs by name: every colour type and depth, with and without transparency."""
    rng = np.random.default_rng(0)
    found = {}
    kinds = [("grey", GREY, (1, 2, 4, 8, 16), 1), ("grey_alpha", GREY_ALPHA, (8, 16), 2)]
    kinds += [("rgb", RGB, (8, 16), 3), ("rgb_alpha", RGB_ALPHA, (8, 16), 4)]
    for name, colour, depths, values in kinds:
        for depth in depths:
            pixels = rng.integers(0, 2**depth, (5, 7, values))
            found[f"{name}_{depth}"] = png(pixels, colour, depth)
    few = rng.integers(0, 4, (5, 7, 1))
    colours = b"PLTE", rng.integers(0, 256, 12).astype(np.uint8).tobytes()
    for depth in (2, 8):
        found[f"palette_{depth}"] = png(few, PALETTE, depth, colours)
    found["palette_8_clear"] = png(few, PALETTE, 8, colours, (b"tRNS", b"\0\x80"))
    found["grey_8_clear"] = png(few, GREY, 8, (b"tRNS", struct.pack(">H", 2)))
    found["grey_16_clear"] = png(few + 300, GREY, 16, (b"tRNS", struct.pack(">H", 302)))
    clear = b"tRNS", struct.pack(">HHH", 1, 0, 1)
    found["rgb_8_clear"] = png(rng.integers(0, 2, (5, 7, 3)), RGB, 8, clear)
    return found


def others():
    """JPEG, GIF and BMP files by name."""
    from PIL import Image

    grey = Image.fromarray((np.indices((40, 60)).sum(0) * 2).astype(np.uint8))
    rgb = Image.merge("RGB", [grey, grey.transpose(0), grey.transpose(1)])

    def saved(image, kind, **options):
        file = io.BytesIO()
        image.save(file, kind, **options)
        return file.getvalue()

    second = rgb.transpose(0).convert("P")
    return {
        "jpeg_grey": saved(grey, "JPEG"),
        "jpeg_rgb": saved(rgb, "JPEG", quality=95),
        "jpeg_cmyk": saved(rgb.convert("CMYK"), "JPEG"),
        "jpeg_progressive": saved(rgb, "JPEG", progressive=True),
        "gif": saved(rgb.convert("P"), "GIF"),
        "gif_frames": saved(rgb.convert("P"), "GIF", save_all=True, append_images=[second]),
        "bmp_grey": saved(grey, "BMP"),
        "bmp_rgb": saved(rgb, "BMP"),
        "bmp_alpha": saved(rgb.convert("RGBA"), "BMP"),
    }
