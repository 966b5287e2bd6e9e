"""tfwire stats --plot: distributions drawn by matplotlib."""

import xml.etree.ElementTree as ElementTree
from io import BytesIO

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import tfwire_main

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    with tfw.TFRecordWriter("in") as writer:
        writer.write_columns(
            {
                "number": rng.standard_normal(500).astype(np.float32),
                "kind": [b"cat", b"dog $x_", b"\x1b[31m", "<b>&\u6771".encode()] * 125,
                "always": [1] * 500,
                "text": [bytes(300 + i) for i in range(500)],
            }
        )
    return tmp_path


def test_a_picture_of_every_feature_that_varies(folder):
    result = tfwire_main("stats", "--plot", "plot.png", "in")
    assert (0, b"") == (result.returncode, result.stderr)
    image = Image.open(BytesIO((folder / "plot.png").read_bytes())).convert("RGB")
    width, height = image.size
    assert width > 1000
    colors = {color for _, color in image.getcolors(width * height)}
    assert {(31, 119, 180), (44, 160, 44), (255, 127, 14)} <= colors  # numbers, strings, lengths


def test_titles_and_strings_of_files_are_text(folder):
    assert 0 == tfwire_main("stats", "--plot", "plot.svg", "in").returncode
    svg = (folder / "plot.svg").read_text()
    assert len(ElementTree.fromstring(svg))  # well-formed
    for shown in ("in: 500 of 500 records", "number", "kind", "text", "length in bytes"):
        assert f"<!-- {shown} -->" in svg
    assert "<!-- always -->" not in svg
    assert "\x1b" not in svg
    assert "<b>" not in svg.replace("<!-- <b>&amp; -->", "")


def test_the_same_file_gives_the_same_plot(folder):
    for name in ("one.svg", "two.svg", "one.pdf", "two.pdf"):
        assert 0 == tfwire_main("stats", "--plot", name, "in").returncode
    assert (folder / "one.pdf").read_bytes() == (folder / "two.pdf").read_bytes()
    lines = [(folder / name).read_text().splitlines() for name in ("one.svg", "two.svg")]
    assert len(lines[0]) == len(lines[1])


def test_an_existing_file_is_kept(folder):
    (folder / "plot.png").write_bytes(b"mine")
    result = tfwire_main("stats", "--plot", "plot.png", "in")
    assert (2, b"") == (result.returncode, result.stdout)
    assert b"plot.png: exists; --force replaces it" in result.stderr
    assert b"mine" == (folder / "plot.png").read_bytes()
    assert 0 == tfwire_main("stats", "--plot", "plot.png", "--force", "in").returncode
    assert b"mine" != (folder / "plot.png").read_bytes()


def test_a_file_without_records_gives_a_plot_of_nothing(folder):
    (folder / "empty").write_bytes(b"")
    assert 0 == tfwire_main("stats", "--plot", "plot.png", "empty").returncode
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
