"""The tfwire command as a whole: its help, its version and its demo."""

import subprocess
import sys

import pytest

import tfwire
from helpers.command import ENVIRONMENT, tfwire_command
from tfwire.cli import _COMMANDS
from tfwire.images import crop_or_pad


def test_version():
    assert f"tfwire {tfwire.__version__}\n" == tfwire_command("--version").stdout


def test_help_names_every_command():
    result = tfwire_command("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout


_LOADED = """
import sys
before = set(sys.modules)  # what the environment loads by itself
from tfwire.cli import _COMMANDS, main
for command in (None, *_COMMANDS):
    try:
        main([*filter(None, [command]), "--help"])
    except SystemExit:
        pass
    print(command, {heavy} & (set(sys.modules) - before), file=sys.stderr)
"""


def test_help_loads_little():
    """It must be there within 60 ms. numpy alone takes twice that; the others a few ms each."""
    heavy = {"numpy", "tfwire._native", "shutil", "bz2", "lzma", "glob", "threading", "pathlib"}
    program = [sys.executable, "-c", _LOADED.replace("{heavy}", repr(heavy))]
    result = subprocess.run(program, env=ENVIRONMENT, capture_output=True, text=True)
    expected = [f"{command} set()" for command in (None, *_COMMANDS)]
    assert (0, expected) == (result.returncode, result.stderr.splitlines())
    assert all(f"usage: tfwire {command}" in result.stdout for command in _COMMANDS)


def test_what_verifies_loads_nothing_that_parses(tmp_path):
    """Nor what opens remote objects; counting few records takes hardly longer than loading."""
    path = tmp_path / "data.tfrecord"
    tfwire.write_records(path, [b"record"])
    for command in ("count", "verify"):
        code = (
            "import sys; from tfwire.cli import main; main(sys.argv[1:]); "
            "print(sum('._parsing' in m or '.remote.' in m for m in sys.modules), file=sys.stderr)"
        )
        program = [sys.executable, "-c", code, command, str(path)]
        result = subprocess.run(program, env=ENVIRONMENT, capture_output=True, text=True)
        assert (0, "0") == (result.returncode, result.stderr.strip())


@pytest.mark.parametrize("columns", [None, "70", "120", "wide"])
def test_help_is_as_wide_as_the_terminal(columns, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    lines = tfwire_command("stats", "--help").stdout.splitlines()
    width = int(columns) if columns in ("70", "120") else 80
    assert width - 12 < max(map(len, lines)) <= width - 2


def test_demo_walks_all_steps(tmp_path, monkeypatch):
    """Every step compares what it read with what it wrote."""
    monkeypatch.setattr("tfwire.cli.demo.SECONDS", 0.01)
    result = tfwire_command("demo", "--folder", str(tmp_path / "demo"), "--records", "2000")
    assert result.returncode == 0, result.stderr
    assert "china.jpg" in result.stdout
    assert "images (3, 384, 384, 3), masks (3, 384, 384)" in result.stdout
    assert result.stdout.count("equal:") == 14
    size = (tmp_path / "demo" / "test.tfrecord").stat().st_size
    assert 980 * 1024 <= size <= 984 * 1024


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
