"""tfwire view with large records, many files, searches and downloads, through the server."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from functools import partial
from html import unescape
from urllib.parse import urlsplit

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT
from helpers.reading import damage
from helpers.reference import header
from helpers.threads import wait_for
from helpers.view.viewing import get, links
from tfwire.cli import main
from tfwire.view._budget import Budget


def link(body, word):
    """The address of a link by its text."""
    (found,) = set(re.findall(rf'href="([^"]*)">{word}</a>', body.decode()))
    return unescape(found)


def numbers(body):
    return [int(n) for n in re.findall(r">([0-9,]+)</a></td>", body.decode())]


# ---- Memory -------------------------------------------------------------------------------------


def memory_of_pages(path, *targets):
    """The most memory of a command in kB, after it has served pages. Each is asked for when the
    thread of the one before has ended: until then, malloc has another heap for a new thread. That
    of the check may go on."""
    command = [sys.executable, "-m", "tfwire", "view", "--no-open", str(path)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
        try:
            url = urlsplit(process.stdout.readline().decode().strip())
            num_threads = len(os.listdir(f"/proc/{process.pid}/task"))
            for target in ("", *targets):
                connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
                connection.request("GET", url.path + target)
                response = connection.getresponse()
                assert 200 == response.status
                response.read()
                connection.close()
                assert wait_for(
                    lambda: len(os.listdir(f"/proc/{process.pid}/task")) <= num_threads + 1
                )
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                (line,) = (line for line in status if line.startswith("VmHWM"))
            return int(line.split()[1])
        finally:
            process.kill()


@pytest.mark.unsanitized("weighs a process")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="VmHWM is Linux")
def test_large_records_take_little_memory(tmp_path):
    """120 MB, of which a page holds some 32, and the check beside it some records."""
    path = tmp_path / "large.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        for i in range(10):
            writer.write({"x": bytes(12 << 20), "i": i})
    assert memory_of_pages(path, "?view=features", "?start=7") < 260_000


@pytest.mark.slow
@pytest.mark.unsanitized("weighs a process")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="VmHWM is Linux")
def test_many_features_take_little_memory(tmp_path):
    path = tmp_path / "wide.tfrecord"
    tfw.write_records(path, [{f"{i:06}": i for i in range(100_000)}] * 2)
    assert memory_of_pages(path, "?view=features", "?view=record&n=1") < 90_000


@pytest.mark.unsanitized("weighs a process")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="VmHWM is Linux")
def test_a_large_file_takes_little_memory(tmp_path):
    """10 GB, of which all but 2,000 records are one that is sparse."""
    path = tmp_path / "large.tfrecord"
    tfw.write_records(path, [{"x": i} for i in range(2000)])
    with open(path, "ab") as file:
        file.write(header(10**10))
        file.truncate(file.tell() + 10**10 + 4)
    assert memory_of_pages(path, "?start=1900", "?view=record&n=1999", "?view=features") < 60_000


def test_pages_of_large_records_lead_back(tmp_path, serve, monkeypatch):
    monkeypatch.setattr("tfwire.view._site.Budget", partial(Budget, num_bytes=32_000))
    path = tmp_path / "large.tfrecord"
    tfw.write_records(path, [{"x": bytes(12_000), "i": i} for i in range(8)])
    viewer = serve(path)
    _, first = get(viewer)
    _, second = get(viewer, link(first, "next"))
    _, third = get(viewer, link(second, "next"))
    assert [[0, 1, 2], [3, 4, 5], [6, 7]] == [numbers(first), numbers(second), numbers(third)]
    assert [3, 4, 5] == numbers(get(viewer, link(third, "previous"))[1])
    assert b"of the first 3 records" in get(viewer, "?view=features")[1]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_a_record_that_is_too_long_is_no_damage(tmp_path, serve, monkeypatch):
    monkeypatch.setattr("tfwire.view._records.LONGEST_RECORD", 5000)
    path = tmp_path / "long.tfrecord"
    record = tfw.encode_example({"x": bytes(9000)})
    tfw.write_records(path, [{"a": 1}, record, {"a": 2}])
    viewer = serve(path)
    _, body = get(viewer)
    assert f"{len(record):,} bytes: too long to show" in body.decode()
    assert b'class="bad"' not in body
    response, body = get(viewer, "?view=record&n=1")
    assert 200 == response.status
    assert b"too long to show" in body
    assert b"payload?" not in body
    assert 404 == get(viewer, "payload?n=1")[0].status


# ---- Many files ---------------------------------------------------------------------------------


def test_every_file_of_many_is_reached(tmp_path, serve):
    paths = [tmp_path / f"shard-{i:03}" for i in range(300)]
    for i, path in enumerate(paths):
        tfw.write_records(path, [{"i": i}])
    viewer = serve(*paths)
    _, body = get(viewer, "?file=150")
    (files,) = re.findall('<select name="file".*?</select>', body.decode())
    assert 300 == files.count("<option")
    assert '<option value="150" selected>' in files
    assert b"<small>151: 0</small>" in get(viewer, link(body, "next file"))[1]
    assert b"<small>149: 0</small>" in get(viewer, link(body, "previous file"))[1]
    assert b"previous file" not in get(viewer)[1]
    assert b"next file" not in get(viewer, "?file=299")[1]
    assert len(get(viewer)[1]) < 60_000


# ---- Searches -----------------------------------------------------------------------------------


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.tfrecord"
    tfw.write_records(path, [{"label": i % 7, "name": f"item {i}"} for i in range(1000)])
    return path


def test_a_record_leads_back_to_the_search_and_the_page(labels, serve):
    viewer = serve(labels)
    _, first = get(viewer, f"?feature={b'label'.hex()}&value=3")
    _, page = get(viewer, link(first, "next"))
    assert 353 == numbers(page)[0]
    _, record = get(viewer, link(page, "360"))
    assert b"<h2>Record 360</h2>" in record
    _, back = get(viewer, link(record, "back"))
    assert numbers(page) == numbers(back)
    assert b'value="3"' in back
    assert b"<h2>Record 367</h2>" in get(viewer, link(record, "next found"))[1]
    assert b"<h2>Record 353</h2>" in get(viewer, link(record, "previous found"))[1]
    assert numbers(first) == numbers(get(viewer, link(page, "previous"))[1])
    assert b"next found" not in get(viewer, link(page, "360").replace("n=360", "n=997"))[1]


def test_a_record_leads_back_to_its_page(labels, serve):
    viewer = serve(labels)
    _, page = get(viewer, link(get(viewer)[1], "next"))
    _, record = get(viewer, link(page, "70"))
    _, after = get(viewer, link(record, "next"))
    assert b"<h2>Record 71</h2>" in after
    assert numbers(page) == numbers(get(viewer, link(after, "back"))[1])
    assert b">next</a>" not in get(viewer, "?view=record&n=999")[1]


def test_a_value_is_searched_in_all_features(labels, serve):
    viewer = serve(labels)
    assert [0, 7, 10] == numbers(get(viewer, "?value=0")[1])[:3]  # label 0, and the text "item 10"
    assert [21] == numbers(get(viewer, "?value=item+21")[1])[:1]


def test_steps_of_lists_are_searched(tmp_path, serve):
    path = tmp_path / "lists"
    records = [tfw.encode_sequence_example({"w": i}, {"w": [["a"], [f"b{i}"]]}) for i in range(5)]
    tfw.write_records(path, records)
    viewer = serve(path)
    _, body = get(viewer)
    fields = re.findall(r'<option value="([^"]+)"', body.decode())
    assert [b"w".hex(), b"w".hex() + "[]"] == fields
    assert [3] == numbers(get(viewer, f"?feature={fields[1]}&value=b3")[1])
    assert [3] == numbers(get(viewer, f"?feature={fields[0]}&value=3")[1])
    assert 404 == get(viewer, "?feature=[]x&value=3")[0].status


# ---- Payloads and pictures ----------------------------------------------------------------------


def test_payloads_are_saved_and_never_shown(tmp_path, serve):
    path = tmp_path / "pages"
    tfw.write_records(path, [b"<script>", b"\xff\xd8\xff<html>"])
    viewer = serve(path)
    _, body = get(viewer, "?view=record&n=1")
    response, contents = get(viewer, link(body, "payload"))
    assert b"\xff\xd8\xff<html>" == contents
    headers = response.headers
    assert "application/octet-stream" == headers["Content-Type"]
    assert 'attachment; filename="record-1.bin"' == headers["Content-Disposition"]
    assert "default-src 'none'; sandbox" == headers["Content-Security-Policy"]
    assert "nosniff" == headers["X-Content-Type-Options"]
    for target in ("payload?n=2", "payload?n=x", "payload?file=1"):
        assert 404 == get(viewer, target)[0].status
    assert 403 == get(viewer, path="/payload?n=0")[0].status
    assert 403 == get(viewer, "payload?n=0", Origin="http://evil.example")[0].status


def test_records_that_are_pictures_are_shown(tmp_path, serve):
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(np.eye(4, dtype=np.uint8)).save(out, "png")
    path = tmp_path / "pictures"
    tfw.write_records(path, [out.getvalue(), b"plain"])
    viewer = serve(path)
    (source,) = links(get(viewer)[1], "src")
    assert [source] == links(get(viewer, "?view=record&n=0")[1], "src")
    response, contents = get(viewer, source)
    assert "image/png" == response.headers["Content-Type"]
    assert "P" == Image.open(io.BytesIO(contents)).mode  # a mask: its classes have colors
    assert 404 == get(viewer, source.replace("n=0", "n=1"))[0].status


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_damage_is_told_in_words(labels, serve):
    damage(labels, 30)
    assert b"the checksum of the payload is wrong at byte 0" in get(serve(labels))[1]


def test_boxes_that_do_not_exist_are_told(labels, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert 0 == main(["view", "--html", str(out), "--boxes", "label,a,b,name", str(labels)])
    assert "lack a, b\n" in capsys.readouterr().err
