"""tfwire view: the server, what it refuses, and the pages as a browser shows them."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
from html import unescape
from urllib.parse import urlsplit

import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.threads import wait_for
from helpers.view.viewing import get, jpeg, links
from tfwire.cli import main

LABEL = b"label".hex()
HOSTILE = "<script>document.title='owned'</script>\x1b]0;x\x07\u202e\"'"


@pytest.fixture
def photos(tmp_path):
    path = tmp_path / "photos <b>.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for i in range(120):
            writer.write({"image": jpeg(i), "label": i % 10, HOSTILE: HOSTILE, "raw": b"<svg>"})
        writer.write({"film/image": [jpeg(10 * i) for i in range(5)]})
        writer.write(b"\xff no example")
    return path


# ---- Who may read -------------------------------------------------------------------------------


def test_only_the_address_with_the_token_answers(photos, serve):
    viewer = serve(photos)
    assert 200 == get(viewer)[0].status
    for path in ("/", "/wrong/", viewer.url[:-2], "//", "/../", "/" + "x" * 5000):
        response, body = get(viewer, path=urlsplit(path).path or "/")
        assert 403 == response.status
        assert b"photos" not in body
    assert len(viewer.token) >= 32


@pytest.mark.parametrize("target", ["*", "/\xff/", "http://[/", "/%ff/", "?", "//[", "x"])
def test_an_odd_address_is_forbidden(photos, serve, capfd, target):
    viewer = serve(photos)
    host = f"127.0.0.1:{viewer.server_port}"
    with socket.create_connection(viewer.server_address) as browser:
        browser.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
        assert " 403 " in browser.makefile(encoding="latin-1").readline()
    assert "" == capfd.readouterr().err


def test_a_browser_may_leave_before_the_answer(photos, serve, capfd, monkeypatch):
    viewer = serve(photos)
    threads = threading.active_count()
    asked, left = threading.Event(), threading.Event()
    monkeypatch.setattr(viewer.site, "page", lambda fields: (asked.set(), left.wait(10), "page")[2])
    browser = socket.create_connection(viewer.server_address)
    host = f"127.0.0.1:{viewer.server_port}"
    browser.sendall(f"GET /{viewer.token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert asked.wait(10)
    browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    browser.close()  # with a reset
    left.set()
    assert wait_for(lambda: threading.active_count() == threads)
    assert "" == capfd.readouterr().err


def test_other_hosts_and_origins_get_nothing(photos, serve):
    viewer = serve(photos)
    for headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{viewer.server_port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ):
        assert 403 == get(viewer, **headers)[0].status, headers
    assert 200 == get(viewer, Host=f"localhost:{viewer.server_port}")[0].status
    assert 501 == get(viewer, method="POST")[0].status
    assert "127.0.0.1" == viewer.server_address[0]


def test_every_answer_has_its_policy(photos, serve):
    viewer = serve(photos)
    picture = links(get(viewer)[1], "src")[0]
    for target in ("", picture, "?view=features", "nothing", "?file=9"):
        response, _ = get(viewer, target)
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none';")
        assert "nosniff" == response.headers["X-Content-Type-Options"]
        assert "no-referrer" == response.headers["Referrer-Policy"]


# ---- Pages --------------------------------------------------------------------------------------


def test_pages_lead_from_one_to_the_next(photos, serve):
    viewer = serve(photos)
    _, first = get(viewer)
    (after,) = set(re.findall(r'rel="next" href="([^"]*)"', first.decode()))
    _, second = get(viewer, unescape(after))
    assert b">50</a>" in second
    assert b">49</a>" not in second
    (before,) = set(re.findall(r'rel="prev" href="([^"]*)"', second.decode()))
    assert re.findall(rb"<td.*?</td>", first) == re.findall(
        rb"<td.*?</td>", get(viewer, unescape(before))[1]
    )
    _, last = get(viewer, "?start=121")
    assert b"not an Example" in last
    assert b'rel="next"' not in last


def test_pictures_are_served_as_what_they_are(photos, serve):
    viewer = serve(photos)
    addresses = links(get(viewer)[1], "src")
    assert 50 == len(addresses)
    response, body = get(viewer, addresses[7])
    assert ("image/jpeg", jpeg(7)) == (response.headers["Content-Type"], body)
    response, body = get(viewer, addresses[7], method="HEAD")
    assert (200, b"") == (response.status, body)


def test_what_is_no_picture_is_not_served(photos, serve):
    """The raw bytes of other values never reach the browser."""
    viewer = serve(photos)
    for name in ("raw", "label", "missing", HOSTILE):
        target = f"picture?file=0&n=3&feature={name.encode().hex()}&step=0&value=0"
        response, body = get(viewer, target)
        assert 404 == response.status
        assert b"<svg>" not in body
    for fields in ("n=999", "file=3", "n=121", "n=-1", "n=x", "value=7", "feature=zz", "step=9"):
        target = f"picture?n=0&feature={b'image'.hex()}&value=0&{fields}"
        assert 404 == get(viewer, target)[0].status, fields


def test_a_record_has_a_page(photos, serve):
    viewer = serve(photos)
    _, body = get(viewer, "?view=record&n=120")
    assert 5 == len(links(body, "src"))
    assert b'max="4"' in body
    assert b"Not an Example" in get(viewer, "?view=record&n=121")[1]
    response, body = get(viewer, "?view=record&n=122")
    assert 404 == response.status
    assert b"record 122 was not found" in body


def test_a_search_finds_records(photos, serve):
    viewer = serve(photos)
    _, body = get(viewer, f"?feature={LABEL}&value=7")
    assert [str(n) for n in range(7, 120, 10)] == re.findall(r">(\d+)</a></td>", body.decode())
    assert b"12 records found in all" in body
    assert b"0 records found" in get(viewer, f"?feature={LABEL}&value=x%22%3E")[1]


def test_features_have_histograms(photos, serve):
    _, body = get(serve(photos), "?view=features")
    assert b"0 to 9, mean 4.5" in body
    assert b"image/jpeg" in body
    assert b"<script>document" not in body


def test_features_have_their_specification_as_code(tmp_path, serve):
    path = tmp_path / "a.tfrecord"
    rows = [{"label": i, HOSTILE: ["x"] * (i % 3), 'a "b" <i>': [0.5, 1.5]} for i in range(9)]
    tfw.write_records(path, rows)
    body = get(serve(path), "?view=features")[1].decode()
    (code,) = re.findall(r"<h2>Specification</h2><pre>(.*?)</pre>", body, re.DOTALL)
    assert "<" not in code
    names = {"tfw": tfw}
    exec(unescape(code), names)
    assert tfw.infer_schema(path) == names["features"]


def test_records_that_are_no_examples_have_no_specification(photos, serve):
    assert b"Specification" not in get(serve(photos), "?view=features")[1]


def test_wrong_addresses_say_what_is_wrong(photos, serve):
    viewer = serve(photos)
    for target in ("?file=1", "?start=x", "?start=9" + "9" * 30, "?start=500", "?view=record&n=a"):
        response, body = get(viewer, target)
        assert 404 == response.status
        assert b"Traceback" not in body
    assert b"record 500 was not found: the file has 122" in get(viewer, "?start=500")[1]


def test_text_of_files_is_escaped(photos, serve):
    viewer = serve(photos)
    for target in ("", "?view=features", "?view=record&n=0"):
        _, body = get(viewer, target)
        text = body.decode()
        assert "<script>document" not in text
        assert "photos &lt;b&gt;.tfrecord" in text
        assert not set(text) & set("\x1b\x07\u202e")


def test_a_file_that_vanishes_is_said(photos, serve):
    viewer = serve(photos)
    photos.unlink()
    response, body = get(viewer)
    assert 404 == response.status
    assert b"No such file" in body


# ---- The command --------------------------------------------------------------------------------


def test_a_page_is_written(photos, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert 0 == main(["view", "--html", str(out), str(photos)])
    page = out.read_text()
    assert 100 == page.count("<section>")
    assert 2 == main(["view", "--html", str(out), str(photos)])
    assert "--force" in capsys.readouterr().err
    assert 0 == main(["view", "--force", "--limit", "3", "--html", str(out), str(photos)])
    assert 3 == out.read_text().count("<section>")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_pipes_are_refused(photos, tmp_path, capsys):
    os.mkfifo(pipe := str(tmp_path / "pipe"))
    for words in (["view", pipe], ["view", str(photos), pipe], ["bench", pipe]):
        assert 1 == main(words)
        assert f"tfwire {words[0]}: {pipe}: not a regular file" in capsys.readouterr().err


def test_wrong_usage(photos, tmp_path, capsys):
    out = str(tmp_path / "out.html")
    assert 2 == main(["view", "-"])
    assert 2 == main(["view", "--boxes", "a,b", str(photos)])
    assert 2 == main(["view", "--html", str(photos), str(photos)])
    assert 1 == main(["view", "--html", out, str(tmp_path / "missing")])
    assert "missing" in capsys.readouterr().err
    assert not os.path.exists(out)


def test_damage_is_a_red_row_and_is_said(photos, tmp_path, capsys):
    damage(photos, 5000)
    out = tmp_path / "out.html"
    assert 1 == main(["view", "--html", str(out), str(photos)])
    assert 1 == out.read_text().count('<tr class="bad">')
    said = f"tfwire view: {photos}: left out bytes "
    assert [said] == re.findall(f"^{re.escape(said)}", capsys.readouterr().err, re.MULTILINE)
