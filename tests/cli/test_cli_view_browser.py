"""The viewer's pages in Chromium, with their policies in force."""

from __future__ import annotations

import struct
import threading
import zlib

import numpy as np
import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.threads import wait_for
from helpers.view.browser import CHROMIUM, Browser
from helpers.view.viewing import jpeg
from tfwire.cli import main
from tfwire.view._search import Search

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning"),
]

LOADED = (
    "[...document.images].filter(i => i.checkVisibility() && i.complete && i.naturalWidth).length"
)
SHOWN = "[...document.images].filter(i => i.checkVisibility()).length"
FITS = "document.documentElement.scrollWidth <= innerWidth"
ON = "[...document.querySelectorAll('.records tbody tr')].findIndex(r => r.matches('.on'))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def photos(tmp_path):
    path = tmp_path / "photos.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for i in range(8):
            writer.write({"image": jpeg(20 * i), "label": i, "vector": np.linspace(0, 1, 40)})
        writer.write({"film": [jpeg(10 * i) for i in range(5)]})
        writer.write({"text": "word " * 200, "name" * 12: 7})
        writer.write(jpeg(3))
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_served_pages(photos, serve, browser, width, dark):
    viewer = serve(photos)
    browser.show(viewer.url, width, dark=dark)
    browser.until(f"{SHOWN} === 10 && {LOADED} === 10")
    assert browser.value(FITS)
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    assert ("rgb(23, 25, 27)" if dark else "rgb(253, 253, 252)") == paper
    for target in ("?view=record&n=8", "?view=record&n=9", "?view=record&n=10", "?view=features"):
        browser.show(viewer.url + target, width, dark=dark)
        browser.until(f"{LOADED} === {SHOWN}")
        assert browser.value(FITS), target
    assert [] == browser.complaints


def test_keys(photos, serve, browser):
    viewer = serve(photos)
    browser.show(f"{viewer.url}?feature={b'image'.hex()}")
    for key in ("j", "j", "ArrowDown", "k"):
        browser.press(key)
    assert 1 == browser.value(ON)
    browser.press("Enter")
    browser.until("document.querySelector('h2')?.textContent === 'Record 1'")
    browser.press("n")
    browser.until("document.querySelector('h2')?.textContent === 'Record 2'")
    browser.press("Escape")
    browser.until("location.search.includes('feature=') && !!document.querySelector('.records')")
    assert "feature=" in browser.value("location.search")
    browser.press("/")
    assert "search" == browser.value("document.activeElement.type")


def test_texts_are_kept_up_to_date(photos, tmp_path, serve, browser, monkeypatch):
    """By the script: a check that ends, and a search that goes on."""
    going, real = threading.Event(), Search._search

    def held(search, *arguments):
        assert wait_for(lambda: search.is_stopped or going.is_set())
        real(search, *arguments)

    monkeypatch.setattr(Search, "_search", held)
    other = tmp_path / "other.tfrecord"
    tfw.write_records(other, [{"label": 7}] * 60)
    viewer = serve(photos, other)
    browser.show(viewer.url)
    browser.until("document.querySelector('[data-status=check]')?.textContent === 'no damage'")
    browser.show(f"{viewer.url}?feature={b'label'.hex()}&value=7")
    text = "document.querySelector('[data-status=search]')?.textContent"
    browser.until(f"{text}?.includes('searching, 0 of 2 files')")
    going.set()
    browser.until(f"{text} === '61 records found in all'")
    browser.until("document.querySelectorAll('.records tbody tr').length === 50")
    assert [] == browser.complaints


def test_a_search_is_stopped_by_a_link(photos, serve, browser, monkeypatch):
    monkeypatch.setattr(Search, "_search", lambda self, *_: wait_for(lambda: self.is_stopped))
    viewer = serve(photos)
    browser.show(viewer.url + "?value=word")
    browser.value("[...document.links].find(a => a.textContent === 'stop').click()")
    browser.until("document.querySelector('[data-status=search]')?.textContent.includes('stopped')")


def test_arrows_scroll_pages_without_rows(tmp_path, serve, browser):
    path = tmp_path / "wide"
    tfw.write_records(path, [{f"f{i:03}": i for i in range(200)}])
    viewer = serve(path)
    browser.show(viewer.url + "?view=record&n=0")
    browser.press("ArrowDown")
    browser.until("scrollY > 0")


def test_a_film_shows_the_frame_of_its_slider(photos, serve, browser):
    browser.show(serve(photos).url + "?view=record&n=8")
    browser.value("document.querySelector('.film input').focus()")
    for _ in range(3):
        browser.press("ArrowRight")
    browser.until(f"{SHOWN} === 1 && {LOADED} === 1")
    assert "4 of 5" == browser.value("document.querySelector('output').textContent")
    assert "value=3" in browser.value("[...document.images].find(i => i.checkVisibility()).src")


@pytest.mark.parametrize("width", [1200, 390])
def test_a_page_in_one_file(photos, tmp_path, browser, width):
    """Rows show the pictures of the records below, and Escape leads back to them."""
    out = tmp_path / "out.html"
    assert 0 == main(["view", "--html", str(out), str(photos)])
    browser.show(out.as_uri(), width)
    browser.value("for (const i of document.images) i.loading = 'eager'")
    browser.until(f"{SHOWN} === 20 && {LOADED} === 20")
    assert browser.value(FITS)
    browser.press("j")
    browser.press("Enter")
    browser.until("location.hash === '#f0r0'")
    browser.press("Escape")
    browser.until("location.hash === '#f0'")
    assert [] == browser.complaints


def bomb():
    """A PNG whose header declares 10^9 pixels."""

    def chunk(name, data):
        crc = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + crc

    header = struct.pack(">IIBBBBB", 40_000, 25_000, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(10_000_000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def jpeg_bomb():
    """A JPEG whose header declares 65,535 by 65,535 pixels."""
    contents = bytearray(jpeg())
    size = contents.index(b"\xff\xc0") + 5
    contents[size : size + 4] = b"\xff" * 4
    return bytes(contents)


def test_a_hostile_file(tmp_path, serve, browser):
    """Scripts, terminal codes, a bomb, pictures that are none, and damage."""
    script = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'>"
    path = tmp_path / "hostile <img src=x onerror=window.owned=1>.tfrecord"
    records = [
        {script: script, "\x1b[31mred\u202e": "\x1b]0;owned\x07", '"><b>': 1},
        {
            "bomb": bomb(),
            "jpeg": jpeg_bomb(),
            "cut": jpeg(3)[:60],
            "svg": "<svg onload='window.owned = 1'>",
        },
        {"damaged": 1},
        {"image": jpeg(7) + script.encode()},
    ]
    tfw.write_records(path, records)
    offset = int(tfw.RecordIndex.build(path).offsets[2])
    damage(path, offset + 14)
    viewer = serve(path)
    for target in ("", *(f"?view=record&n={n}" for n in range(4)), "?view=features", "?x"):
        browser.show(viewer.url + target)
        assert browser.value("window.owned") is None
        assert browser.value("document.title").startswith(str(path))
        text = browser.value("document.documentElement.outerHTML")
        assert not set("\x1b\x07\u202e") & set(text)
        assert [] == [each for each in browser.complaints if "Content Security" in each]
    browser.show(viewer.url)
    assert "not shown" in browser.value("document.body.textContent")
    assert 1 == browser.value("document.querySelectorAll('tr.bad').length")
    browser.until(f"{LOADED} === 1")


@pytest.mark.slow
def test_a_million_features_and_a_record_of_500_mb(tmp_path, serve, browser):
    path = tmp_path / "huge"
    tfw.write_records(
        path, [{f"{i:07}": i for i in range(1_002_000)}, bytes(500 * 10**6), {"a": 1}]
    )
    viewer = serve(path)
    for target, text in (
        ("", "500,000,000 bytes: too long to show"),
        ("?view=record&n=0", "1,001,000 more features"),
        ("?view=record&n=1", "500,000,000 bytes: too long to show"),
        ("?view=record&n=2", "Example, "),
        ("?view=features", "0000000"),
    ):
        browser.show(viewer.url + target)
        assert text in browser.value("document.body.textContent"), target
        assert browser.value("document.documentElement.outerHTML.length") < 1_000_000
        assert [] == browser.complaints


def test_another_page_gets_nothing(photos, serve, tmp_path, browser):
    """Even if it knew the address: no script, no picture and no frame of it."""
    viewer = serve(photos)
    picture = f"{viewer.url}picture?file=0&n=0&feature={b'image'.hex()}&step=0&value=0"
    other = tmp_path / "other.html"
    other.write_text(f'<img src="{picture}"><iframe src="{viewer.url}"></iframe>')
    browser.show(other.as_uri())
    assert 0 == browser.value("document.images[0].naturalWidth")
    read = f"fetch({viewer.url!r}).then(r => r.text()).then(() => 'read', () => 'refused')"
    assert "refused" == browser.value(read)
    send = f"fetch({viewer.url!r}, {{mode: 'no-cors'}}).then(r => r.type, () => 'refused')"
    assert "refused" == browser.value(send)
    assert any("frame-ancestors" in each for each in browser.complaints)
    browser.show(picture)
    assert 64 == browser.value("document.images[0].naturalWidth")
