"""Columns of images: each as it is alone, whatever the column and the threads are."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import accumulate

import numpy as np
import pytest
from PIL import Image

import tfwire as tfw
from helpers.command import ENVIRONMENT
from helpers.view.pictures import RGB, others, png, pngs
from tfwire.images import decode

PNGS, OTHERS = pngs(), others()
STORED = [*PNGS.values(), *OTHERS.values()]


def jpeg(height, width, **options):
    pixels = np.random.default_rng(height).integers(0, 256, (height, width, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


SAME = [jpeg(20, 30, quality=quality) for quality in (50, 80, 95)]


def column(images, shape=None):
    offsets = np.array(list(accumulate(map(len, images), initial=0)))
    return tfw.BytesColumn(b"".join(images), offsets, shape)


def objects(images, shape=(-1,)):
    found = np.empty(len(images), object)
    found[:] = images
    return found.reshape(shape)


WAYS = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "column": column,
    "memory": lambda images: list(map(memoryview, images)),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("channels", [0, 1, 3, 4])
def test_each_is_as_it_is_alone(way, threads, channels):
    found = decode(WAYS[way](STORED), channels, num_threads=threads)
    assert (object, (len(STORED),)) == (found.dtype, found.shape)
    for stored, pixels in zip(STORED, found, strict=True):
        assert np.array_equal(decode(stored, channels), pixels)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_images_of_one_shape_are_one_array(way, threads):
    found = decode(WAYS[way](SAME), num_threads=threads)
    assert (np.uint8, (3, 20, 30, 3)) == (found.dtype, found.shape)
    assert all(np.array_equal(decode(a), b) for a, b in zip(SAME, found, strict=True))


@pytest.mark.parametrize(("size", "shape"), [(8, (8, 8)), ((40, 7), (40, 7)), ([20, 30], (20, 30))])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_size_makes_one_array(size, shape, channels):
    found = decode(STORED, channels, size=size, num_threads=2)
    assert (len(STORED), *shape, channels) == found.shape
    for stored, pixels in zip(STORED, found, strict=True):
        alone = decode(stored, channels)
        assert np.array_equal(decode(stored, channels, size=size), pixels)
        whole = Image.fromarray(alone[:, :, 0] if channels == 1 else alone)
        expected = np.array(whole.resize(shape[::-1], Image.Resampling.BILINEAR))
        assert np.array_equal(expected.reshape(*shape, channels), pixels)


def test_columns_of_several_axes_keep_them():
    found = decode(objects(SAME + SAME, (2, 3)), size=4)
    assert (2, 3, 4, 4, 3) == found.shape
    assert np.array_equal(found, decode(column(SAME + SAME, (2, 3)), size=4))
    mixed = decode(objects(STORED[:6], (3, 2)))
    assert (object, (3, 2)) == (mixed.dtype, mixed.shape)
    assert (5, 7, 3) == decode(objects([PNGS["rgb_8"]], ())).shape


def test_a_column_without_images():
    assert (0, 5, 6, 3) == decode([], 3, size=(5, 6)).shape
    for found in (decode([]), decode(column([])), decode([], size=5), decode([], 3)):
        assert (object, (0,)) == (found.dtype, found.shape)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (None, TypeError, "image 7 must be bytes-like, found NoneType"),
        ("text", TypeError, "image 7 must be bytes-like, found str"),
        (b"", tfw.ParseError, "image 7: 0 bytes are not an image: it is empty.* by filter"),
        (b"text", tfw.ParseError, "image 7: 4 bytes are not an image that Pillow knows"),
        (SAME[0][:-50], tfw.ParseError, r"image 7: JPEG image of \d+ bytes is truncated"),
        (PNGS["rgb_8"][:60], tfw.ParseError, r"image 7: PNG image of 60 bytes is truncated"),
    ],
)
def test_an_error_names_the_image(wrong, error, message, threads):
    stored = [SAME[0]] * 9
    stored[7] = wrong
    with pytest.raises(error, match=message) as caught:
        decode(stored, num_threads=threads)
    if error is tfw.ParseError:
        assert (7, "image") == (caught.value.record_index, caught.value.reason)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.arange(3), "contents holds int64, not strings"),
        (np.zeros((2, 4, 4), np.uint8), "contents holds uint8, not strings"),
        (np.array(SAME), "drops zero bytes at the ends of images; give an array of dtype object"),
    ],
)
def test_arrays_of_no_strings_are_refused(wrong, message):
    with pytest.raises(TypeError, match=message):
        decode(wrong)
    assert (20, 30, 3) == decode(np.frombuffer(SAME[0], np.uint8)).shape


def test_the_first_error_is_told():
    stored = [b"a"] * 50
    for threads in (1, 4):
        with pytest.raises(tfw.ParseError, match="image 0: 1 bytes"):
            decode(stored, num_threads=threads)


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        (0, ValueError, "size must be at least 1, found 0"),
        ((5, -1), ValueError, "size must be at least 1, found -1"),
        ((1, 2, 3), ValueError, "size must be a height and a width, found 3 numbers"),
        (2**20, ValueError, "size must be of at most 178956970 pixels"),
        (2**70, ValueError, "size must fit into 64 bits"),
        ("3", TypeError, "size must be an integer, or a height and a width, found str"),
        (1.5, TypeError, "size must be an integer, or a height and a width, found float"),
        (True, TypeError, "size must be an integer"),
        ((1.5, 2), TypeError, "size must be an integer, found float"),
    ],
)
@pytest.mark.parametrize("contents", [SAME, SAME[0]], ids=["column", "image"])
def test_sizes_are_checked(contents, size, error, message):
    with pytest.raises(error, match=message):
        decode(contents, size=size)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"channels": 2}, ValueError, "channels must be one of 0, 1, 3, 4, found 2"),
        ({"num_threads": 0}, ValueError, "num_threads must be at least 1"),
        ({"library": "opencv"}, ValueError, "library must be 'torchvision' or 'pillow'"),
        ({"library": 3}, ValueError, "library must be"),
        ({"frames": True}, ValueError, "frames=True is for one image"),
        ({"device": "cuda", "library": "pillow"}, ValueError, "device must be None .*'cuda'"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        decode(SAME, **options)
    with pytest.raises(error, match=message):
        decode(SAME[0], **{"size": 3, **options})


def test_what_differs_in_kind():
    """A GIF among JPEGs, 16 bits, four inks."""
    wide = png(np.full((4, 4, 3), 0x8001), RGB, 16)
    found = decode([SAME[0], OTHERS["gif"], wide, OTHERS["jpeg_cmyk"]], 3, size=4, num_threads=2)
    assert (4, 4, 4, 3) == found.shape
    assert (128 == found[2]).all()


def test_the_orientation_of_a_camera_is_left_alone():
    plain = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 16, 3), np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    turned, straight = io.BytesIO(), io.BytesIO()
    plain.save(straight, "JPEG")
    plain.save(turned, "JPEG", exif=exif)
    assert np.array_equal(decode(straight.getvalue()), decode(turned.getvalue()))
    assert (1, 8, 16, 3) == decode([turned.getvalue()]).shape


def test_what_is_missing_is_named():
    """Pillow with its extra; torch, which is not imported unless it is asked for."""
    code = """
import sys
from tfwire import images
for missing, options in (("torchvision", {"library": "torchvision"}), ("torch", {"device": "cuda"}),
                         ("PIL", {}), ("PIL", {"size": 3})):
    sys.modules[missing] = None
    for contents in (b"x", [b"x"]):
        try:
            images.decode(contents, **options)
        except ImportError as error:
            print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    lines = run.stdout.splitlines()
    assert 8 == len(lines)
    assert all("torchvision" in line for line in lines[:4])
    assert all(line.endswith("pip install 'tfwire[images]'") for line in lines[4:])
