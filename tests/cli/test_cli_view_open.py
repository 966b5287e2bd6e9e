"""tfwire view opens a browser whose command line, which everybody may read, holds no secret."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, heed_interrupts
from helpers.threads import wait_for
from helpers.view.browser import CHROMIUM, Browser
from helpers.view.viewing import get
from tfwire.cli.view import in_browser

# A browser that notes its command line, and follows the pages as browsers do.
BROWSER = r"""
import json, os, re, sys, urllib.request
from html import unescape
from urllib.request import Request, url2pathname, urlopen

def refresh(page):
    return unescape(re.search(r'http-equiv="refresh" content="0;url=([^"]*)"', page)[1])

words, log = sys.argv[1:], os.environ["BROWSER_LOG"]
path = url2pathname(words[-1].removeprefix("file://"))
modes = [os.stat(each).st_mode & 0o777 for each in (path, os.path.dirname(path))]
with open(path, encoding="utf-8") as file:
    entrance = refresh(file.read())
cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
pages = refresh(urlopen(Request(entrance, headers=cross)).read().decode())
body = urlopen(Request(pages, headers={"Sec-Fetch-Site": "same-origin"})).read().decode()
found = {"words": words, "modes": modes, "path": path, "entrance": entrance, "pages": pages}
found["title"] = re.search("<title>(.*?)</title>", body)[1]
with open(log + ".new", "w") as file:
    json.dump(found, file)
os.rename(log + ".new", log)
"""


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.tfrecord"
    tfw.write_records(path, [{"a": i} for i in range(3)])
    return path


def viewing(records, browser, log):
    command = [sys.executable, "-m", "tfwire", "view", str(records)]
    environment = {**ENVIRONMENT, "BROWSER": browser, "BROWSER_LOG": str(log)}
    environment["TMPDIR"] = str(log.parent)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, preexec_fn=heed_interrupts, **pipes)


def ended(process):
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    return process.returncode, errors


def test_the_command_line_of_a_browser_holds_no_token(records, tmp_path):
    script, log = tmp_path / "browser.py", tmp_path / "log"
    script.write_text(BROWSER)
    browser = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} %s"
    with viewing(records, browser, log) as process:
        try:
            url = process.stdout.readline().strip()
            assert wait_for(log.exists)
            found = json.loads(log.read_text())
            assert url == found["pages"]
            assert str(records) == found["title"]
            (word,) = found["words"]
            entrance = urlsplit(found["entrance"]).path.strip("/")
            for secret in (urlsplit(url).path.strip("/"), entrance):
                assert len(secret) >= 32
                assert secret not in word
            assert [0o600, 0o700] == found["modes"]
            assert not os.path.exists(os.path.dirname(found["path"]))
            assert (0, "") == ended(process)
        finally:
            process.kill()


@pytest.mark.parametrize(
    "browser",
    ["false %s", *(pytest.param(f"{x} %s", marks=pytest.mark.slow) for x in ("true", "/no/such"))],
)
def test_no_file_is_left_by_a_browser_that_does_not_come(records, tmp_path, browser):
    with viewing(records, browser, tmp_path / "log") as process:
        try:
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            assert wait_for(lambda: list(tmp_path.glob("tfwire-view-*")))
            status, errors = ended(process)
            assert 0 == status
            assert "Traceback" not in errors
            assert [] == list(tmp_path.glob("tfwire-view-*"))
        finally:
            process.kill()


def test_an_entrance_leads_in_once(records, serve):
    viewer, passed = serve(records), []
    path = urlsplit(viewer.entrance(lambda: passed.append(1))).path
    assert 403 == get(viewer, path=path, method="HEAD")[0].status
    for wrong in (path + "/", path + "x", path[:-1], "/"):
        assert 403 == get(viewer, path=wrong)[0].status
    for host in ("evil.example", f"evil.example:{viewer.server_port}"):
        assert 403 == get(viewer, path=path, Host=host)[0].status
    assert [] == passed
    response, body = get(viewer, path=path, Sec_Fetch_Site="cross-site")
    assert 200 == response.status
    assert "no-store" == response.headers["Cache-Control"]
    assert re.findall('content="0;url=([^"]*)"', body.decode()) == [viewer.url]
    assert b"records.tfrecord" not in body
    assert 403 == get(viewer, path=path, Sec_Fetch_Site="cross-site")[0].status
    assert [1] == passed


def test_a_folder_that_cannot_be_made_is_said(records, serve, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(OSError, match="No space"), in_browser(serve(records)):
        pass


def test_a_file_that_is_private(records, serve, monkeypatch):
    """And has no secret in its name."""
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    viewer = serve(records)
    before = os.umask(0)
    try:
        with in_browser(viewer):
            assert wait_for(lambda: opened)
            path = Path(urlsplit(opened[0]).path)
            assert 0o600 == stat.S_IMODE(path.stat().st_mode)
            assert viewer.token not in path.read_text()
            assert viewer.token not in opened[0]
    finally:
        os.umask(before)
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_chromium_comes_through_the_file(records, serve, tmp_path, monkeypatch):
    viewer, opened = serve(records), []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    browser = Browser(tmp_path / "profile")
    try:
        with in_browser(viewer):
            assert wait_for(lambda: opened)
            browser.call("Page.navigate", url=opened[0])
            browser.until(f"location.href === {json.dumps(viewer.url)}")
            browser.until("document.querySelectorAll('.records tbody tr').length === 3")
            assert not os.path.exists(urlsplit(opened[0]).path)
            assert [] == browser.complaints
    finally:
        browser.close()
