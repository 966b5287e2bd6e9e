"""Images as TensorFlow decodes them."""

import numpy as np
import pytest
import tensorflow as tf

from pictures import others, pngs
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


@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("name", [name for name in OTHERS if name.startswith("jpeg")])
def test_jpegs_differ_by_rounding_only(name, channels):
    if (name, channels) == ("jpeg_cmyk", 1):
        return  # TensorFlow refuses it
    theirs = tf.io.decode_jpeg(OTHERS[name], channels).numpy().astype(int)
    ours = decode(OTHERS[name], channels)
    assert theirs.shape == ours.shape
    assert np.abs(theirs - ours).max() <= 5  # row `jpeg-rounding`


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
