"""Standard streams, locales, terminals and interrupts: what the command does about them."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from glob import glob

import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, RECORDS, heed_interrupts, tfwire_main, words_of
from tfwire.cli import main

pytestmark = pytest.mark.usefixtures("folder")


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
QUICK = {*zip(STREAMED, itertools.cycle(STREAMS), strict=False)}  # each command, and each stream
STREAMED_CASES = [
    pytest.param(*case, marks=[pytest.mark.slow] * (case not in QUICK))
    for case in itertools.product(STREAMED, STREAMS)
]


@pytest.mark.unsanitized("starts processes")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize(("command", "streams"), STREAMED_CASES)
def test_standard_streams_that_do_not_work(path, command, streams):
    tfw.write_records(path, RECORDS * 10)
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


def test_raw_records_do_not_reach_a_terminal(path, capsys):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    for words in (["cat"], ["head"], ["cat", "--follow"]):
        with open(theirs, "w", closefd=False) as terminal, contextlib.redirect_stdout(terminal):
            assert 2 == main([*words, "--format", "raw", path])
        assert "not for a terminal" in capsys.readouterr().err
    os.close(theirs)
    os.close(ours)


NAME = "東京é\x1b"
IN_LOCALES = [["info", NAME], ["info", "--json", NAME], ["head", NAME], ["verify", "--json", NAME]]
IN_LOCALES += [["cat", "--format", "json", NAME], ["count", "missing é", NAME]]
IN_LOCALES += [["--help"], ["verify", "--help"], ["nonsense é"]]


def check_shown(words, status, shown, encoding="utf-8"):
    assert status == (2 if "nonsense é" in words else int("missing é" in words))
    text = shown.decode(encoding)
    assert "Traceback" not in text
    assert "\x1b" not in text
    if "--json" in words:
        path = json.loads(text)["path"]
        assert NAME.encode() == path.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_encodings_of_the_output(path, encoding):
    os.rename(path, NAME)
    for words in IN_LOCALES:
        done = tfwire_main(*words, encoding=encoding)
        check_shown(words, done.returncode, done.stdout or done.stderr, encoding)


TERMINALS = {
    "width 0": {"COLUMNS": "0", "LINES": "0"},
    "width 1": {"COLUMNS": "1", "TERM": "dumb"},
    "width of nonsense": {"COLUMNS": "x" * 100, "TERM": ""},
    "huge width": {"COLUMNS": "9" * 30},
}


@pytest.mark.parametrize("name", TERMINALS)
def test_terminals(path, name, monkeypatch):
    os.rename(path, NAME)
    for variable, value in TERMINALS[name].items():
        monkeypatch.setenv(variable, value)
    for words in IN_LOCALES:
        done = tfwire_main(*words)
        check_shown(words, done.returncode, done.stdout + done.stderr * (done.returncode != 0))


_IN_A_LOCALE = """
import json, os
from tfwire.cli import main
with open("words") as file:
    commands = json.load(file)
for words in commands:
    try:
        status = main([os.fsdecode(word.encode()) for word in words])
    except SystemExit as done:
        status = done.code
    print("\\0", status, "\\0", sep="", end="", flush=True)
"""


@pytest.mark.unsanitized("starts processes")
def test_the_c_locale(path):
    os.rename(path, NAME)
    with open("words", "w") as file:
        json.dump(IN_LOCALES, file)
    locale = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = subprocess.run(
        [sys.executable, "-c", _IN_A_LOCALE],
        env={**ENVIRONMENT, **locale},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert 0 == result.returncode
    *parts, rest = result.stdout.split(b"\0")
    assert (2 * len(IN_LOCALES), b"") == (len(parts), rest)
    for words, shown, status in zip(IN_LOCALES, parts[::2], parts[1::2], strict=True):
        check_shown(words, int(status), shown, "ascii")


# ---- Interrupts ----------------------------------------------------------------------------------


INTERRUPTED = [["info", "fifo"], ["cat", "-"], ["repair", "-", "out"], ["repair", "fifo", "out"]]
INTERRUPTED += [["verify", "fifo", "fifo", "--same-as", "fifo"], ["merge", "fifo", "-o", "out"]]
INTERRUPTED += [["cat", "--follow", "in"], ["bench", "in", "--seconds", "1000"]]


@pytest.mark.unsanitized("starts processes")
@pytest.mark.parametrize("words", INTERRUPTED, ids=lambda words: " ".join(words[:3]))
def test_an_interrupt_ends_every_command(path, words):
    """Also while it waits for more of stdin, and while threads open files that nobody writes to."""
    os.mkfifo("fifo")
    with subprocess.Popen(
        [sys.executable, "-m", "tfwire", *words],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    ) as process:
        process.stdin.write(b"?")
        process.stdin.flush()
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
    """Waits until the command has imported what it works with, and waits itself or computes."""
    while b"_native" not in read(f"/proc/{pid}/maps"):
        time.sleep(0.02)
    asleep = ticks = 0
    while asleep < 5 and ticks < 80:
        time.sleep(0.01)
        tasks = [
            read(path).rpartition(b") ")[2].split() for path in glob(f"/proc/{pid}/task/*/stat")
        ]
        asleep = asleep + 1 if all(task[0] == b"S" for task in tasks) else 0
        ticks = sum(int(task[11]) + int(task[12]) for task in tasks)  # of CPU time


def read(path):
    with open(path, "rb") as file:
        return file.read()
