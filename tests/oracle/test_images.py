"""Images as TensorFlow decodes them."""

import io
import itertools
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from compared import LIBRARIES, check, outcome
from PIL import Image

import tfwire.compat as tfc
from helpers.view.pictures import others, pngs
from tfwire.images import decode

PNGS, OTHERS = pngs(), others()
BELOW_8_BITS = {"grey_1", "grey_2", "grey_4", "palette_2"}


@pytest.mark.parametrize("channels", [0, 1, 3, 4])
@pytest.mark.parametrize("name", PNGS)
def test_pngs_are_equal(name, channels):
    theirs = tf.io.decode_png(PNGS[name], channels).numpy()
    ours = decode(PNGS[name], channels)
    if channels == 4 and name in BELOW_8_BITS:
        assert theirs[..., 3].max() < 16  # row `png-alpha` of docs/differences.md
        assert (ours[..., 3] == 255).all()
        theirs, ours = theirs[..., :3], ours[..., :3]
    difference = np.abs(theirs.astype(int) - ours)
    # Pillow gives 8 of 16 bits; the grey of them may be one less: row `png-grey`.
    assert difference.max() <= (channels == 1 and name in ("rgb_16", "rgb_alpha_16"))


JPEGS = [name for name in OTHERS if name.startswith("jpeg")]
DCT_METHODS = ["", "INTEGER_FAST", "INTEGER_ACCURATE"]


@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("name", JPEGS)
def test_jpegs_are_those_of_the_accurate_transform(name, channels):
    if (name, channels) == ("jpeg_cmyk", 1):
        return  # TensorFlow refuses it
    theirs = tf.io.decode_jpeg(OTHERS[name], channels, dct_method="INTEGER_ACCURATE").numpy()
    ours = decode(OTHERS[name], channels)
    assert theirs.shape == ours.shape
    assert np.abs(theirs.astype(int) - ours).max() <= (name == "jpeg_cmyk")


def jpegs(subsampling):
    """JPEGs of noise, smooth and not, grey, in colour and of four inks."""
    draws = np.random.default_rng(1)
    for mode, quality in itertools.product(("L", "RGB", "CMYK"), (50, 75, 90)):
        for smooth in (False, True):
            image = Image.fromarray(draws.integers(0, 256, (37, 53, 3), np.uint8))
            image = image.resize((80, 90), Image.Resampling.BICUBIC) if smooth else image
            file = io.BytesIO()
            options = {"subsampling": subsampling, "progressive": smooth}
            image.convert(mode).save(file, "JPEG", quality=quality, **options)
            yield mode, file.getvalue()


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("fancy", [True, False])
@pytest.mark.parametrize("method", DCT_METHODS)
def test_the_options_of_jpegs(method, fancy, subsampling):
    """Row `jpeg-rounding`: they interpolate alike. Where colours are stored in a lower resolution,
    interpolation decides the transform too."""
    apart = []
    for mode, content in jpegs(subsampling):
        options = {"dct_method": method, "fancy_upscaling": fancy}
        theirs, ours = (lib.io.decode_jpeg(content, **options).numpy() for lib in (tf, tfc))
        difference = theirs.astype(int) - ours
        assert difference.shape == ours.shape
        if mode == "L" or not subsampling or (method == "INTEGER_ACCURATE") == fancy:
            assert np.abs(difference).max() <= (mode == "CMYK")
        else:
            assert np.abs(difference).max() <= 8
            assert abs(difference.mean()) < 1.5
            apart.append(np.abs(difference).max())
    assert not apart or max(apart) > 1  # if it fails, the row can go


@pytest.mark.parametrize("name", JPEGS)
@pytest.mark.parametrize("function", ["decode_png", "decode_image"])
def test_other_functions_decode_jpegs_by_default_options(function, name):
    theirs, ours = (getattr(lib.io, function)(OTHERS[name]).numpy() for lib in (tf, tfc))
    assert np.abs(theirs.astype(int) - ours).max() <= 5
    assert np.array_equal(ours, tfc.io.decode_jpeg(OTHERS[name]).numpy())


@pytest.mark.parametrize(
    "options",
    [
        {"dct_method": "nonsense"},
        {"dct_method": "integer_fast"},
        {"dct_method": b"INTEGER_FAST"},
        {"dct_method": None},
        {"dct_method": 5},
        {"fancy_upscaling": 2},
        {"fancy_upscaling": "no"},
        {"fancy_upscaling": None},
        {"ratio": 3},
        {"ratio": 0},
        {"ratio": "2"},
        {"ratio": None},
        {"acceptable_fraction": "all"},
        {"acceptable_fraction": 0.5},
        {"try_recover_truncated": 1},
        {"channels": 2},
        {"channels": 5},
        {"channels": "3"},
    ],
    ids=str,
)
def test_options_that_make_no_sense(options):
    run = partial(outcome, lambda lib: lib.io.decode_jpeg(OTHERS["jpeg_rgb"], **options).shape)
    check(*map(run, LIBRARIES))


@pytest.mark.parametrize("name", ["gif", "gif_frames", "bmp_grey", "bmp_rgb"])
def test_gifs_and_bmps_are_equal(name):
    theirs = tf.io.decode_image(OTHERS[name]).numpy()
    assert np.array_equal(theirs, decode(OTHERS[name], frames=True))
    first = tf.io.decode_image(OTHERS[name], expand_animations=False).numpy()
    assert np.array_equal(first, decode(OTHERS[name]))


@pytest.mark.parametrize("name", [*PNGS, "jpeg_rgb", "gif", "bmp_rgb"])
def test_what_is_truncated_is_refused_by_both(name):
    content = (PNGS | OTHERS)[name]
    content = content[: int(len(content) * 0.7)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.decode_image(content)
    with pytest.raises(ValueError, match="bytes"):
        decode(content)


PIXELS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "int64"]
PIXELS += ["float16", "float32", "float64", "bool"]
# The limits of the integers do not fit into the floats: TensorFlow's results overflow.
TOO_LARGE = {("float16", name) for name in PIXELS[2:7]} | {
    (name, "int64") for name in ("float32", "float64")
}


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("target", PIXELS)
@pytest.mark.parametrize("source", PIXELS)
def test_dtypes_of_pixels(source, target, saturate):
    if {(source, target), (target, source)} & TOO_LARGE:
        return
    dtype = np.dtype(source)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [0, 1, 2, 100, 127, info.max, info.min, info.max // 2, info.max - 3]
    else:  # beyond these, a cast that does not saturate has no defined result
        values = [0, 0.25, 0.5, 0.999, *([1, 2, -1] if saturate else [])]
    pixels = np.array(values, dtype)

    def run(lib):
        return lib.image.convert_image_dtype(pixels, getattr(lib, target), saturate=saturate)

    check(*(outcome(run, lib) for lib in LIBRARIES))
