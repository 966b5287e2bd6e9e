"""tfwire view of several files, through the server: the table, searches, the page of damage."""

from __future__ import annotations

import json
import re
import shlex
import threading
from html import unescape

import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.threads import wait_for
from helpers.view.viewing import get
from tfwire.cli import main
from tfwire.view._search import Search

pytestmark = pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def paths(tmp_path):
    """Four files of 40 records."""
    found = [tmp_path / f"it's {i}.tfrecord" for i in range(4)]
    for i, path in enumerate(found):
        rows = [{"label": (7 * k) % 40, "name": f"item {40 * i + k}"} for k in range(40)]
        tfw.write_records(path, rows)
    return found


def page(viewer, target=""):
    response, body = get(viewer, target)
    assert 200 == response.status
    return body.decode()


def text(body):
    return unescape(re.sub("<.*?>", "", body.split("</style>")[1].split("<script>")[0]))


def link(body, word):
    (found,) = set(re.findall(rf'href="([^"]*)"[^>]*>{word}</a>', body))
    return unescape(found)


def rows(body):
    """The numbers in all files, and in each."""
    found = re.findall(r">([0-9,]+)</a></td><td><small>(.*?)</small>", body)
    return [(int(row.replace(",", "")), place) for row, place in found]


def is_checked(viewer):
    return wait_for(lambda: viewer.site.check.is_started and not viewer.site.check.is_running)


def test_rows_say_both_numbers(paths, serve):
    viewer = serve(*paths)
    first = page(viewer)
    assert [(i, f"{i // 40}: {i % 40}") for i in range(50)] == rows(first)
    assert 2 == first.count('rel="next"')  # above and below
    second = page(viewer, link(first, "next"))
    assert (50, "1: 10") == rows(second)[0]
    assert rows(first) == rows(page(viewer, link(second, "previous")))
    assert (120, "3: 0") == rows(page(viewer, "?file=3"))[0]
    assert (70, "1: 30") == rows(page(viewer, "?start=70"))[0]
    record = page(viewer, link(second, "79"))
    assert "<h2>Record 79</h2>" in record
    assert "record 39 of" in record
    assert "<h2>Record 80</h2>" in page(viewer, link(record, "next"))
    before = page(viewer, link(page(viewer, link(record, "next")), "previous"))
    assert "<h2>Record 79</h2>" in before
    assert rows(second) == rows(page(viewer, link(before, "back")))
    for target in ("?start=70", "?file=1&start=30", ""):
        there = page(viewer, target)
        alone = page(viewer, link(there, rows(there)[3][0]))
        assert rows(there) == rows(page(viewer, link(alone, "back")))


def test_the_header_says_what_is_known(paths, serve):
    viewer = serve(*paths)
    assert "4 files, " in text(page(viewer))
    assert is_checked(viewer)
    said = text(page(viewer))
    size = sum(path.stat().st_size for path in paths)
    assert f"160 records, 4 files, {size:,} bytes, not compressed; no damage" in said
    assert "it's *.tfrecord" in said


def test_rows_of_a_page_are_sorted(paths, serve):
    viewer = serve(*paths)
    field = b"label".hex()
    rising = page(viewer, f"?start=40&sort={field}")
    labels = re.findall(r'<span class="n">([0-9]+)</span>', rising)
    assert sorted(labels, key=int) == labels
    assert {i + 40 for i in range(50)} == {row for row, _ in rows(rising)}
    falling = page(viewer, link(rising, "\u2191"))
    assert labels != re.findall(r'<span class="n">([0-9]+)</span>', falling)
    assert "\u2193" in falling
    following = page(viewer, link(falling, "next"))
    assert "\u2193" in following
    assert {i + 90 for i in range(50)} == {row for row, _ in rows(following)}
    assert 404 == get(viewer, "?sort=nothing")[0].status


# ---- Searches -----------------------------------------------------------------------------------


def test_a_search_goes_through_all_files(paths, serve):
    viewer = serve(*paths)
    found = page(viewer, "?value=item+1")
    assert "71 records found in all" in text(found)
    assert [(1, "0: 1"), (10, "0: 10")] == rows(found)[:2]
    second = page(viewer, link(found, "next"))
    assert 21 == len(rows(second))
    assert rows(found) == rows(page(viewer, link(second, "previous")))
    last = page(viewer, link(second, "159"))
    assert "next found" not in last
    assert "<h2>Record 158</h2>" in page(viewer, link(last, "previous found"))
    assert rows(second) == rows(page(viewer, link(last, "back")))


def test_a_search_is_stopped_and_goes_on(paths, serve, monkeypatch):
    going, real = threading.Event(), Search._search

    def held(search, *arguments):
        assert wait_for(lambda: search.is_stopped or going.is_set())
        real(search, *arguments)

    monkeypatch.setattr(Search, "_search", held)
    viewer = serve(*paths)
    begin = page(viewer, "?value=item")
    assert "0 records found so far; searching, 0 of 4 files stop" in text(begin)
    assert '<noscript><meta http-equiv="refresh"' in begin
    told = json.loads(page(viewer, "status?value=item"))
    assert (told["searching"], told["rows"]) == (True, 0)
    assert "0 records found so far; searching, 0 of 4 files" == told["search"]
    stopped = page(viewer, link(begin, "stop"))
    assert "0 records found; stopped after 0 of 4 files search on" in text(stopped)
    assert "<noscript>" not in stopped
    assert not json.loads(page(viewer, "status?value=item"))["searching"]
    going.set()
    assert 50 == len(rows(page(viewer, link(stopped, "search on"))))
    assert wait_for(lambda: "160 records found in all" in text(page(viewer, "?value=item")))


def test_few_searches_are_kept(paths, serve):
    viewer = serve(*paths)
    for i in range(9):
        page(viewer, f"?value=item+{i}")
    assert 4 == len(viewer.site._searches)


# ---- Damage -------------------------------------------------------------------------------------


def test_the_page_of_damage(paths, serve, tmp_path):
    offsets = tfw.RecordIndex.build(paths[1]).offsets
    damage(paths[1], int(offsets[7]) + 20)
    paths[2].unlink()
    viewer = serve(*paths)
    page(viewer)
    assert is_checked(viewer)
    body = page(viewer, "?view=damage")
    said = text(body)
    assert "119 records, 4 files" in said
    assert "damaged in 1 place, 1 file cannot be read" in said
    assert "46 and 48; in the file 6 and 8" in said
    assert f"{offsets[8] - offsets[7]}" in said
    assert "about 1" in said
    assert "No such file" in said
    assert (48, "1: 8") in rows(page(viewer, link(body, "46 and 48; in the file 6 and 8")))
    (command,) = re.findall("tfwire repair .*", said)
    words = shlex.split(command)
    assert [str(paths[1]), str(paths[1].with_name(f"repaired-{paths[1].name}"))] == words[2:]
    assert 1 == main(words[1:])
    assert 39 == sum(1 for _ in tfw.read_records(words[3]))


def test_no_damage(paths, serve):
    viewer = serve(*paths)
    assert "damage" in page(viewer)
    assert is_checked(viewer)
    assert "No damage." in text(page(viewer, "?view=damage"))


def test_hostile_names_of_files(tmp_path, serve):
    folder = tmp_path / HOSTILE.replace("/", "_")
    folder.mkdir()
    for name in ("a", "b"):
        tfw.write_records(folder / f"{HOSTILE.replace('/', '_')}{name}", [{"a": 1}] * 3)
        damage(folder / f"{HOSTILE.replace('/', '_')}{name}", 20)
    viewer = serve(*sorted(folder.iterdir()))
    page(viewer)
    assert is_checked(viewer)
    for target in ("", "?view=damage", "?view=features", "?value=1", "?view=record&file=1&n=1"):
        body = page(viewer, target)
        assert "<script>alert" not in body
        assert "\x1b" not in body
    status = get(viewer, "status?value=1")
    assert "application/json" == status[0].headers["Content-Type"]
    assert "nosniff" == status[0].headers["X-Content-Type-Options"]
    assert 403 == get(viewer, path="/status")[0].status
    assert 403 == get(viewer, "status", Origin="http://evil.example")[0].status


def test_folders_patterns_and_sets(tmp_path, capsys):
    for i in range(3):
        tfw.write_records(tmp_path / f"set-{i:05}-of-00003", [{"i": i}])
    out = tmp_path / "out" / "page.html"
    out.parent.mkdir()
    for name in (f"{tmp_path}/set@3", f"{tmp_path}/set-*", f"{tmp_path}"):
        assert 0 == main(["view", "--force", "--html", str(out), name])
        assert 3 == out.read_text().count("<section>")
    assert 1 == main(["view", "--html", str(out), "--force", f"{tmp_path}/set@4"])
    assert "no file matches the pattern" in capsys.readouterr().err
