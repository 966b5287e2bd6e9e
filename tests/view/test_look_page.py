"""The page that shows a record file in a browser by the core as WebAssembly, in Chromium."""

import gzip
import runpy
import shutil

import numpy as np
import pytest

import tfwire as tfw
from helpers.paths import DOCS
from helpers.view.browser import CHROMIUM, Browser
from helpers.view.viewing import jpeg

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(shutil.which("wasm-ld") is None, reason="lld is not installed"),
]
TABLE = "[...document.querySelectorAll('.records tr')].map(r => [...r.cells].map(c => c.innerText))"
FACTS = "document.getElementById('facts').textContent"
CUT_OFF = """[...document.querySelectorAll("p, h1, h2, li, input, button, .record td")]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML)"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    runpy.run_path(str(DOCS / "make_look.py"))["main"](folder / "look.html")
    assert (folder / "look.html").stat().st_size < 1_000_000
    return (folder / "look.html").as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def look_at(browser, page, path, **how):
    """The facts of a file, once all of it was read."""
    browser.show(page, **how)
    root = browser.call("DOM.getDocument")["root"]["nodeId"]
    found = browser.call("DOM.querySelector", nodeId=root, selector="#file")
    browser.call("DOM.setFileInputFiles", files=[str(path)], nodeId=found["nodeId"])
    browser.until(f"/verified|cannot/.test({FACTS})")
    return browser.value(FACTS)


def go_to(browser, number):
    browser.value(f"document.getElementById('first').value = '{number}'")
    browser.value("document.getElementById('go').requestSubmit()")
    browser.until(f"document.querySelector('.records button')?.textContent === '{number:,}'")
    return browser.value(TABLE)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "mixed.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write({"n": [-1, 2**62], "x": np.float32([0.1, np.nan]), "text": "rosé <b>"})
        writer.write({"image": jpeg(), "raw": b"\x00\xff", "n": np.arange(300)})
        steps = {"token": [["a"], [], ["b", "c"]]}
        writer.write(tfw.encode_sequence_example({"id": 7}, steps))
        writer.write(b"\xff\xfe no message")
    return path


def test_every_kind_of_value_is_shown(browser, page, mixed):
    facts = look_at(browser, page, mixed)
    assert facts.startswith("4 records, ")
    assert facts.endswith("verified: no damage")
    head, first, second, sequence, other = browser.value(TABLE)
    columns = ["n", "x", "text", "image", "raw", "id", "token (steps)"]
    assert ["record", "byte", *sorted(columns)] == head[:2] + sorted(head[2:])
    row = dict(zip(head, first, strict=True))
    assert "-1, 4611686018427387904 2 values" == row["n"]
    assert "0.1, NaN 2 values" == row["x"]
    assert "rosé <b>" == row["text"].strip()
    row = dict(zip(head, second, strict=True))
    assert row["image"].startswith("JPEG")
    assert row["raw"] == "00 ff 2 bytes"
    assert row["n"].endswith("300 values")
    browser.until("document.querySelector('.records img').naturalWidth > 0")
    row = dict(zip(head, sequence, strict=True))
    assert row["id"] == "7"
    assert row["token (steps)"].endswith("3 steps")
    assert "no Example" in other[2]
    assert [] == browser.complaints


@pytest.mark.parametrize("dark", [False, True])
def test_one_record_is_shown_whole_and_fits_a_phone(browser, page, mixed, dark):
    look_at(browser, page, mixed, width=390, dark=dark)
    browser.value("document.querySelectorAll('.records button')[1].click()")
    assert "Record 1" == browser.value("document.activeElement.textContent")
    assert "198, 199" in browser.value("document.getElementById('record').innerText")
    assert [] == browser.value(CUT_OFF)


def test_a_large_file_is_read_from_the_middle(browser, page, tmp_path):
    path = tmp_path / "large.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_many({"n": i, "padding": b"\0" * 10_000} for i in range(2_000))
    assert look_at(browser, page, path).startswith("2,000 records")
    head, *rows = go_to(browser, 1_500)
    assert [str(i) for i in range(1_500, 1_510)] == [row[head.index("n")] for row in rows]
    head, *rows = go_to(browser, 1_995)
    assert 5 == len(rows)


def test_damage_is_listed_and_the_rest_is_shown(browser, page, mixed, tmp_path):
    data = bytearray(mixed.read_bytes())
    data[20] ^= 1
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(data[:-2])
    assert look_at(browser, page, path).endswith("verified: damaged at 2 places")
    _, first, second, *_ = browser.value(TABLE)
    assert "left out up to byte" in first[2]
    assert first[2].endswith("does not match its checksum")
    assert "1" == second[0]
    damage = browser.value("document.getElementById('damage').innerText")
    assert "the file ends within a record" in damage


def test_compressed_files_are_inflated(browser, page, mixed, tmp_path):
    path = tmp_path / "mixed.tfrecord.gz"
    path.write_bytes(gzip.compress(mixed.read_bytes()))
    assert "gzip; verified: no damage" in look_at(browser, page, path)
    assert "2" == go_to(browser, 2)[1][0]
    path.write_bytes(path.read_bytes()[:-30])
    assert look_at(browser, page, path).startswith("The file cannot be read")


def test_other_files_and_empty_ones_say_so(browser, page, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no records " * 100)
    assert look_at(browser, page, path).startswith("No record was found.")
    path.write_bytes(b"")
    assert look_at(browser, page, path).startswith("0 records")
