"""Images as pixels; tests/oracle compares them with TensorFlow's."""

import io
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

import tfwire.compat as tf
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.threads import together
from helpers.view.pictures import GREY, GREY_ALPHA, RGB, others, png, pngs
from tfwire.images import _pillow as images, decode

PNGS, OTHERS = pngs(), others()


def test_16_bits_keep_the_upper_ones():
    values = np.array([[[0], [255], [256]], [[33427], [65280], [65535]]])
    expected = [[[0], [0], [1]], [[130], [255], [255]]]
    assert expected == decode(png(values, GREY, 16)).tolist()
    rgb = decode(png(values, GREY, 16), 3)
    assert expected == rgb[:, :, :1].tolist() == rgb[:, :, 1:2].tolist()
    assert expected == decode(png(np.repeat(values, 3, 2), RGB, 16))[:, :, 2:].tolist()


@pytest.mark.parametrize("depth", [8, 16])
def test_grey_with_alpha_keeps_both(depth):
    values = np.array([[[3, 200], [90, 0]]]) << (depth - 8)
    content = png(values, GREY_ALPHA, depth)
    assert [[[3, 200], [90, 0]]] == decode(content).tolist()
    assert [[[3], [90]]] == decode(content, 1).tolist()
    assert [[[3, 3, 3], [90, 90, 90]]] == decode(content, 3).tolist()
    assert [[[3, 3, 3, 200], [90, 90, 90, 0]]] == decode(content, 4).tolist()


@pytest.mark.parametrize("name", [*PNGS, *OTHERS])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_kind_has_the_channels_asked_for(name, channels):
    pixels = decode((PNGS | OTHERS)[name], channels)
    assert (3, channels, np.uint8) == (pixels.ndim, pixels.shape[2], pixels.dtype)


@pytest.mark.parametrize("name", [*PNGS, *OTHERS])
def test_an_image_cut_anywhere_is_refused_or_whole(name):
    """Never a part of it, with made up pixels for the rest."""
    content = (PNGS | OTHERS)[name]
    whole = decode(content)
    for length in range(0, len(content), 1 + len(content) // 100):
        try:
            found = decode(content[:length])
        except ValueError:
            continue
        assert np.array_equal(whole, found), length


@pytest.mark.parametrize("name", ["jpeg_rgb", "jpeg_progressive", "gif", "bmp_rgb"])
@pytest.mark.parametrize("part", [0.7, 0.9])
def test_a_truncated_image_is_refused(name, part):
    content = OTHERS[name][: int(len(OTHERS[name]) * part)]
    with pytest.raises(ValueError, match=rf"image of {len(content)} bytes is truncated or damaged"):
        decode(content)


def test_all_frames_of_an_animation():
    assert (2, 40, 60, 3) == decode(OTHERS["gif_frames"], frames=True).shape
    assert (40, 60, 3) == decode(OTHERS["gif_frames"]).shape
    assert (40, 60, 3) == decode(OTHERS["bmp_rgb"], frames=True).shape


def test_the_names_of_tensorflow():
    assert (2, 40, 60, 3) == tf.io.decode_image(OTHERS["gif_frames"]).shape
    assert (40, 60, 3) == tf.io.decode_image(OTHERS["gif"], expand_animations=False).shape
    assert (5, 7, 1) == tf.io.decode_png(PNGS["grey_16"]).shape
    with pytest.raises(ValueError, match="decoded to uint8"):
        tf.io.decode_png(PNGS["grey_16"], dtype=tf.uint16)
    with pytest.raises(ValueError, match="try_recover_truncated are not available"):
        tf.io.decode_jpeg(OTHERS["jpeg_rgb"][:-2], try_recover_truncated=True)


@pytest.mark.parametrize("subsampling", [0, 2])
def test_options_of_jpegs_decide(subsampling):
    pixels = np.random.default_rng(1).integers(0, 256, (20, 30, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", subsampling=subsampling)

    def decoded(**options):
        return tf.io.decode_jpeg(file.getvalue(), **options).numpy().astype(int)

    fast, exact = decoded(), decoded(dct_method="INTEGER_ACCURATE")
    assert np.array_equal(fast, decoded(dct_method="INTEGER_FAST"))
    assert np.array_equal(exact, decode(file.getvalue()))
    repeated = decoded(fancy_upscaling=False)
    if subsampling:
        assert np.array_equal(fast, exact)
        assert np.abs(fast - repeated).max() > 20
    else:
        assert 0 < np.abs(fast - exact).max() < 8
        assert np.array_equal(fast, repeated)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (tf.errors.InvalidArgumentError, {"dct_method": "nonsense"}),
        (tf.errors.InvalidArgumentError, {"ratio": 3}),
        (ValueError, {"ratio": 2}),
        (TypeError, {"dct_method": 5}),
        (TypeError, {"fancy_upscaling": 2}),
        (TypeError, {"acceptable_fraction": "all"}),
    ],
    ids=str,
)
def test_options_of_jpegs_are_checked(error, options):
    with pytest.raises(error, match=next(iter(options))):
        tf.io.decode_jpeg(OTHERS["jpeg_rgb"], **options)


def test_dtypes_of_pixels():
    def converted(values, source, target, **options):
        pixels = np.array(values, source)
        return tf.image.convert_image_dtype(pixels, target, **options).numpy().tolist()

    assert [0.0, 1.0] == converted([0, 255], np.uint8, tf.float32)
    assert [0, 127, 255] == converted([0.0, 0.5, 1.0], np.float32, tf.uint8)
    assert [0, 255] == converted([-1.0, 7.0], np.float32, tf.uint8, saturate=True)
    assert [0, 255 * 256] == converted([0, 255], np.uint8, tf.uint16)
    assert [0, 1] == converted([255, 256], np.uint16, tf.uint8)
    assert [2**63 - 1024] == converted([1.0], np.float64, tf.int64, saturate=True)
    with pytest.raises(AttributeError, match="integers or floats"):
        converted([True], bool, tf.uint8)


def gif_of(count, size):
    """A GIF of frames of which all but two take 20 bytes of the file each."""
    first, second = (Image.new("L", size, grey) for grey in (1, 2))
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=[second])
    pixel = b"\x21\xf9\x04\0\5\0\0\0" + b"\x2c\0\0\0\0\1\0\1\0\0" + b"\2\2\x4c\1\0"
    return file.getvalue()[:-1] + pixel * (count - 2) + b";"


def test_frames_out_of_proportion_are_refused(monkeypatch):
    assert (5, 40, 30, 3) == decode(gif_of(5, (30, 40)), frames=True).shape
    monkeypatch.setattr(images, "_MOST_FRAMES", 1000)
    content = gif_of(500, (60, 80))
    with pytest.raises(ValueError, match=f"its frames take more than {256 * len(content)} bytes"):
        decode(content, frames=True, channels=4)
    assert (100, 4, 3, 3) == decode(gif_of(100, (3, 4)), frames=True).shape
    monkeypatch.undo()
    assert (500, 80, 60, 3) == decode(content, frames=True).shape


def test_an_image_of_too_many_pixels_is_refused():
    content = bytearray(png(np.zeros((1, 1, 1), int), GREY, 8))
    content[16:24] = (20_000).to_bytes(4, "big") * 2
    with pytest.raises(ValueError, match="not an image that Pillow knows"):
        decode(bytes(content))


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_up_to_the_limit_no_warning_of_another_library_comes_out(kind, frames, monkeypatch):
    """Pillow warns from half the pixels on that it refuses."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, kind)
    for limit in (300, 599, 600, None):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (20, 30, 3) == decode(file.getvalue(), 3, frames=frames).shape[-3:]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 299)
    with pytest.raises(ValueError, match="not an image that Pillow knows"):
        decode(file.getvalue())


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
def test_images_of_usual_size_leave_the_filters_of_warnings_alone(kind, monkeypatch):
    """Else a warning that is given once is given again after every image."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, kind)
    monkeypatch.setattr(warnings, "catch_warnings", None)
    monkeypatch.setattr(warnings, "simplefilter", None)
    assert (20, 30, 3) == decode(file.getvalue(), 3).shape


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_threads_decode_at_once(kind, monkeypatch):
    """Although the filters of warnings are changed by one at a time."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, kind)
    together, pixels = threading.Barrier(3, timeout=20), images._pixels
    monkeypatch.setattr(images, "_pixels", lambda *a: together.wait() * 0 or pixels(*a))
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(decode, [file.getvalue()] * 3))
    assert [(20, 30, 3)] * 3 == [array.shape for array in found]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP"])
def test_the_size_is_looked_for_within_the_bytes(kind):
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, kind)
    for end in range(200):
        assert images._num_pixels(file.getvalue()[:end]) in (None, 600)


@FORKS_BESIDE_THREADS
def test_a_large_image_may_be_decoded_in_the_midst_of_another(monkeypatch):
    """By a signal handler, and in a process that was forked while a thread decoded one."""
    file = io.BytesIO()
    Image.new("RGB", (30, 20)).save(file, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 300)
    shapes = []

    def decode_in_a_thread():  # another one than the one that was inside
        together(lambda: decode(file.getvalue(), 3))
        return True

    with images._no_warning_of_size(600):
        thread = threading.Thread(target=lambda: shapes.append(decode(file.getvalue(), 3).shape))
        thread.start()
        assert forked(decode_in_a_thread)()
        assert (20, 30, 3) == decode(file.getvalue(), 3).shape
        assert not shapes
    thread.join()
    assert [(20, 30, 3)] == shapes
