"""Images and sounds, known by their bytes, and pixels as PNG."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from helpers.view.viewing import encoded, wav
from tfwire.view._budget import Budget
from tfwire.view._media import find_media
from tfwire.view._pictures import png_of_pixels, raw_image_shape

pytestmark = pytest.mark.outside_c

BOMB = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\0\xff\xff" * 2 + b"\x08\x06\0\0\0"


@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp"])
def test_images_are_known_by_their_bytes(kind):
    media = find_media(encoded(kind))
    assert (f"image/{kind}", 40, 30) == media
    assert media.is_shown(Budget().pixels)
    assert f"{kind.upper()} 40 x 30" == media.title


def test_lossless_webp_is_known():
    out = io.BytesIO()
    Image.new("RGBA", (70, 20)).save(out, "webp", lossless=True)
    assert (70, 20) == find_media(out.getvalue())[1:]


def test_other_bytes_are_no_media():
    assert find_media(wav()).type == "audio/wav"
    others = [b"", b"<svg xmlns='x'>", b"<html>", b"\x89PNG", b"RIFF", b"GIF89a", b"BM" * 40]
    for contents in others:
        assert find_media(contents) is None


def test_a_header_that_declares_too_many_pixels_is_not_shown():
    assert not find_media(BOMB).is_shown(Budget().pixels)
    assert not find_media(b"\xff\xd8\xff\xe0").is_shown(Budget().pixels)  # of unknown size


def test_no_beginning_of_an_image_crashes():
    for kind in ("jpeg", "png", "gif", "webp"):
        contents = encoded(kind)
        for length in range(64):
            find_media(contents[:length])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_raw_pixels_become_a_png_of_the_same_pixels(channels):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), np.uint8)
    shape = raw_image_shape(pixels.size, 5, 7)
    assert (5, 7, channels) == shape
    found = np.asarray(Image.open(io.BytesIO(png_of_pixels(pixels.tobytes(), shape))))
    assert np.array_equal(pixels.reshape(found.shape), found)


def test_a_mask_has_a_color_per_class():
    mask = np.arange(6, dtype=np.uint8).reshape(2, 3)
    image = Image.open(io.BytesIO(png_of_pixels(mask.tobytes(), (2, 3, 1))))
    assert image.mode == "P"
    assert np.array_equal(mask, np.asarray(image))
    colors = np.asarray(image.convert("RGB")).reshape(-1, 3)
    assert [0, 0, 0] == colors[0].tolist()
    assert [128, 0, 0] == colors[1].tolist()  # as PASCAL VOC
    assert len({tuple(color) for color in colors}) == 6


def test_bytes_of_another_length_are_no_pixels():
    for size, height, width in [(10, 3, 3), (0, 2, 2), (4, None, 2), (4, -2, -2), (8, 2, 2)]:
        assert raw_image_shape(size, height, width) is None
