"""Standard streams, locales, terminals and interrupts: what the command does about them."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, heed_interrupts, tfwire_command
from helpers.command_words import words_of

RECORDS = [tfw.encode_example({"id": i, "name": f"name {i}"}) for i in range(100)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def path(folder):
    tfw.write_records("in", RECORDS)
    return "in"


# ---- Standard streams ----------------------------------------------------------------------------


STREAMS = {
    "closed stdin": "<&-",
    "closed stdout": ">&-",
    "closed stderr": "2>&-",
    "all closed": "<&- >&- 2>&-",
    "full stdout": ">/dev/full",
    "full stderr": "2>/dev/full",
    "nobody reads stdout": "| true",
    "nobody reads either": "2>&1 | true",
    "a reader that leaves": "| head -1",
}
STREAMED = ["info", "head json", "cat", "cat raw", "count", "verify", "repair", "split", "bench"]
STREAMED = {**{name: words_of(name, "in") for name in STREAMED}, "--help": ["--help"]}
STREAMED |= {"verify --help": ["verify", "--help"], "usage": ["nonsense"]}
QUICK = {"cat", "--help", "split"}
STREAMED_CASES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in STREAMED
]


@pytest.mark.unsanitized("starts processes")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", STREAMED_CASES)
@pytest.mark.parametrize("streams", STREAMS)
def test_standard_streams_that_do_not_work(path, command, streams):
    tfw.write_records(path, RECORDS * 30)
    words = " ".join(f"'{word}'" for word in STREAMED[command])
    script = f"'{sys.executable}' -m tfwire {words} {STREAMS[streams]}"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, env=ENVIRONMENT, timeout=60
    )
    text = result.stderr.decode()
    assert "Traceback" not in text
    assert "Exception ignored" not in text
    assert "unexpected" not in text
    stdout_fails = streams in ("closed stdout", "all closed", "full stdout")
    if command == "usage":
        assert 2 == result.returncode
    elif stdout_fails:
        assert 1 == result.returncode
        assert streams == "all closed" or (1, True) == (
            text.count("\n"),
            ": standard output: " in text,
        )
    else:
        assert (0, "") == (result.returncode, text)


@pytest.mark.unsanitized("starts processes")
def test_a_closed_stdin_is_no_empty_file():
    script = f"'{sys.executable}' -m tfwire verify - <&-"
    result = subprocess.run(["bash", "-c", script], capture_output=True, env=ENVIRONMENT)
    assert (1, b"") == (result.returncode, result.stdout)
    assert b"tfwire verify: standard input: Bad file descriptor\n" == result.stderr


@pytest.mark.unsanitized("starts processes")
def test_raw_records_do_not_reach_a_terminal(path):
    ours, theirs = pty.openpty()
    for words in (["cat"], ["head"], ["cat", "--follow"]):
        result = tfwire_command(
            *words, "--format", "raw", path, capture_output=False, stdout=theirs, stderr=-1
        )
        assert 2 == result.returncode
        assert "not for a terminal" in result.stderr
    os.close(theirs)
    os.close(ours)


ENVIRONMENTS = {
    "C locale": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ASCII": {"PYTHONIOENCODING": "ascii"},
    "Latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
    "UTF-16": {"PYTHONIOENCODING": "utf-16"},
    "width 0": {"COLUMNS": "0", "LINES": "0"},
    "width 1": {"COLUMNS": "1", "TERM": "dumb"},
    "width of nonsense": {"COLUMNS": "x" * 100, "TERM": ""},
    "huge width": {"COLUMNS": "9" * 30},
}


QUICK_ENVIRONMENTS = {"C locale", "width 0"}
ENVIRONMENT_CASES = [
    name if name in QUICK_ENVIRONMENTS else pytest.param(name, marks=pytest.mark.slow)
    for name in ENVIRONMENTS
]


@pytest.mark.unsanitized("starts processes")
@pytest.mark.parametrize("name", ENVIRONMENT_CASES)
def test_locales_and_terminals(name, folder):
    tfw.write_records("東京é\x1b", [{"東京é\x1b\ud800".encode("utf-8", "ignore").decode(): "é"}])
    environment = {**ENVIRONMENT, **ENVIRONMENTS[name]}
    for words in (
        ["info"],
        ["info", "--json"],
        ["head"],
        ["cat", "--format", "json"],
        ["verify", "--json"],
        ["count", "missing é"],
        ["--help"],
        ["verify", "--help"],
        ["nonsense é"],
    ):
        inputs = [] if words[-1][:4] in ("--he", "nons") else ["東京é\x1b"]
        result = tfwire_command(*words, *inputs, env=environment, text=False)
        shown = result.stdout + result.stderr
        assert result.returncode == (2 if "nonsense é" in words else int("missing é" in words))
        assert b"Traceback" not in shown
        assert b"\x1b" not in shown
        if "--json" in words and name != "UTF-16":
            path = json.loads(result.stdout)["path"]
            assert "東京é\x1b".encode() == path.encode("utf-8", "surrogateescape")


@pytest.mark.unsanitized("starts processes")
def test_a_terminal_of_no_width(path):
    """Progress is shown on a terminal that says that it has no columns."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tfwire", "verify", path],
        env={**ENVIRONMENT, "COLUMNS": "0"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        assert process.stdout.read().startswith(b"in: intact")
    assert 0 == process.returncode
    os.close(theirs)
    os.close(ours)


# ---- Interrupts ----------------------------------------------------------------------------------


INTERRUPTED = [
    ["info", "fifo"],
    ["verify", "fifo", "in"],
    ["verify", "fifo", "fifo", "--same-as", "fifo"],
    ["merge", "fifo", "-o", "out"],
    ["repair", "fifo", "out"],
    ["cat", "--follow", "in"],
    ["bench", "in", "--seconds", "1000"],
]


@pytest.mark.unsanitized("starts processes")
@pytest.mark.parametrize("words", INTERRUPTED, ids=lambda words: " ".join(words[:3]))
def test_an_interrupt_ends_every_command(path, words):
    """Also while files that nobody writes to are opened by threads."""
    os.mkfifo("fifo")
    with subprocess.Popen(
        [sys.executable, "-m", "tfwire", *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    ) as process:
        wait_until_busy(process.pid)
        interrupts, out, err = interrupted(process)
    assert 130 == process.returncode
    assert interrupts > 1 or b"" == err
    assert b"Traceback" not in out
    assert ["fifo", "in"] == sorted(os.listdir())


def interrupted(process):
    """How many interrupts a process takes, and what it prints. Python drops an interrupt, with a
    word, that arrives while it runs a finalizer, which is rare: the next one must do."""
    for interrupts in (1, 2):
        process.send_signal(signal.SIGINT)
        try:
            return interrupts, *process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return 3, *process.communicate()


def wait_until_busy(pid):
    """Waits until the command has imported what it works with."""
    while b"_native" not in read(f"/proc/{pid}/maps"):
        time.sleep(0.02)
    time.sleep(0.5)


def read(path):
    with open(path, "rb") as file:
        return file.read()
