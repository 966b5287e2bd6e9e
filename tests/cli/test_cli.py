"""The tfwire command, run as a user runs it."""

import subprocess
import sys

import pytest

import tfwire
from command import ENVIRONMENT, tfwire_command
from tfwire.images import crop_or_pad


def test_version():
    assert f"tfwire {tfwire.__version__}\n" == tfwire_command("--version").stdout


def test_help_names_every_command():
    result = tfwire_command("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout


def test_help_loads_neither_numpy_nor_the_native_module():
    """--help must be there within 60 ms; numpy alone takes twice that."""
    code = (
        "import sys\n"
        "from tfwire.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('numpy' in sys.modules or 'tfwire._native' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT).returncode == 0


@pytest.mark.parametrize("words", [[], ["nonsense"], ["demo", "--nonsense"]])
def test_wrong_usage_exits_with_2(words):
    result = tfwire_command(*words)
    assert result.returncode == 2
    assert "usage: tfwire" in result.stderr


def test_demo_walks_all_steps(tmp_path):
    """Every step compares what it read with what it wrote."""
    result = tfwire_command("demo", "--folder", str(tmp_path / "demo"), "--records", "2000")
    assert result.returncode == 0, result.stderr
    assert "china.jpg" in result.stdout
    assert "images (3, 384, 384, 3), masks (3, 384, 384)" in result.stdout
    assert result.stdout.count("equal:") == 14
    size = (tmp_path / "demo" / "test.tfrecord").stat().st_size
    assert 980 * 1024 <= size <= 984 * 1024


def test_demo_in_an_unwritable_place_fails_with_one_line(tmp_path):
    (tmp_path / "file").touch()
    result = tfwire_command("demo", "--folder", str(tmp_path / "file" / "demo"))
    assert result.returncode == 1
    assert result.stderr.startswith("tfwire demo: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("size", "target", "first", "last"),
    [((2, 2), (5, 5), 1, 2), ((5, 5), (2, 2), 0, 1), ((3, 3), (3, 3), 0, 2)],
)
def test_crop_or_pad_puts_the_odd_row_last(size, target, first, last):
    """As tf.image.resize_with_crop_or_pad: 2 x 2 into 5 x 5 lands at row 1, column 1."""
    import numpy as np

    image = np.arange(1, size[0] * size[1] + 1).reshape(*size, 1)
    result = crop_or_pad(image, *target)
    assert (*target, 1) == result.shape
    rows = np.flatnonzero(result.any(axis=(1, 2)))
    assert (first, last) == (rows[0], rows[-1])
