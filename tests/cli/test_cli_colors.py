"""Colors: on terminals only, and of the command's own words only."""

import os
import re

import pytest

import tfwire as tfw
from helpers.command import tfwire_main
from tfwire.cli import main

PLAIN = {"NO_COLOR": "", "TERM": "xterm"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("good", [{"a": "\x1b[31m"}])
    (tmp_path / "bad").write_bytes((tmp_path / "good").read_bytes()[:-1] + b"x")
    return tmp_path


def shown(*words, **environment):
    """What a command prints on a terminal, on both streams."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, open(theirs, "w") as terminal:
        for name, value in {**PLAIN, **environment}.items():
            patch.setenv(name, value)
        patch.setattr("sys.stdout", terminal)
        patch.setattr("sys.stderr", terminal)
        main(words)
    text = b""
    try:
        while data := os.read(ours, 1 << 16):
            text += data
    except OSError:  # the end of a terminal, on Linux
        pass
    os.close(ours)
    return text.replace(b"\r\x1b[K", b"")  # the progress line is taken away


def test_verify_and_head_on_a_terminal():
    assert b"good: \x1b[32mintact\x1b[m, 1 record" in shown("verify", "good")
    assert b"bad: \x1b[31mDAMAGED\x1b[m, 0 records" in shown("verify", "bad")
    assert shown("verify", "none").startswith(b"\x1b[31mtfwire verify:\x1b[m none: No such file")
    text = shown("head", "--format", "text", "good")
    assert text.startswith(b"\x1b[36m# good: record 0, byte 0, ")
    assert rb'value: "\033[31m"' in text  # of the file: escaped as ever
    assert 2 == text.count(b"\x1b")
    text = re.sub(rb"\x1b\[[12]?m", b"", shown("head", "good"))  # a table, bold and dim
    assert b"\x1b" not in text
    assert rb"\x1b[31m" in text or b"5 B: 1b 5b 33 31 6d" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_terminals_without_colors(environment):
    for words in (["verify", "good", "bad", "none"], ["head", "good"]):
        assert b"\x1b" not in shown(*words, **environment)


def test_pipes_have_no_colors(monkeypatch):
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)
    for words in (["verify", "good", "bad", "none"], ["head", "good"]):
        done = tfwire_main(*words)
        assert b"\x1b" not in done.stdout + done.stderr
