"""The command, with everything wrong that can be: arguments, files, standard streams, terminals."""

import gzip
import itertools
import json
import os
import re
import socket
import sys

import pytest

import tfwire as tfw
from helpers.command import READING, RECORDS, tfwire_main, words_of
from helpers.products import check_each, rotated
from helpers.reference import frame
from helpers.users import not_root
from tfwire._base.text import printable

NASTY = "\x1b[31m\x07\r\x9b\u202e\u2066\u200b\x7f\nz" + os.fsdecode(b"\xff")


pytestmark = pytest.mark.usefixtures("folder")


def text_of(result):
    """What was shown; nothing of it may control a terminal."""
    text = (result.stdout + result.stderr).decode()
    assert all(line.isprintable() for line in text.split("\n"))
    assert "Traceback" not in text
    assert "unexpected" not in text
    return text


def check_complaint(result, command, status=1):
    """One line on stderr, which names the command, and nothing else."""
    text_of(result)
    assert (status, b"") == (result.returncode, result.stdout)
    assert result.stderr.decode().startswith(f"tfwire {command}: ")
    assert b"\n" == result.stderr[-1:]


# ---- Files that cannot be read ------------------------------------------------------------------


def make_loop(folder):
    os.symlink("loop", "loop")
    return "loop"


def make_socket(folder):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    return "socket"


def make_folder(folder):
    os.mkdir("folder")
    return "folder"


UNREADABLE = {
    "missing": "missing",
    "pattern": "*.tfrecord",
    "no name": "",
    "below a file": __file__ + "/x",
    "name too long": "x" * 5000,
    "NUL": "a\0b",
    "no UTF-8": os.fsdecode(b"caf\xe9"),
    "control characters": NASTY,
    "lone surrogate": "\ud800",
    "unknown protocol": "foo://x",
    "missing URL": "memory://missing",
    "missing file URL": "file:///missing/file",
    "nasty URL": "memory://" + NASTY,
    "loop": make_loop,
    "socket": make_socket,
    "folder": make_folder,
}


@pytest.mark.parametrize("command", READING)
def test_files_that_cannot_be_read(folder, command):
    paths = [made(folder) if callable(made) else made for made in UNREADABLE.values()]
    before = sorted(os.listdir())

    def check(path):
        result = tfwire_main(*words_of(command, path))
        if command == "verify --json":  # for programs, on stdout
            text_of(result)
            assert result.returncode == 1
            assert path == json.loads(result.stdout)["path"]
        else:
            check_complaint(result, command.split()[0])
        assert before == sorted(os.listdir())

    check_each(check, paths)


@pytest.mark.parametrize("name", ["", "a"])
def test_complaints_name_the_file(folder, name):
    """Also one without a name, and one whose name is in every complaint."""
    if name:
        (folder / name).write_bytes(b"x" * 40)

    def check(command):
        complaint = tfwire_main(*words_of(command, name)).stderr.decode()
        assert not complaint or re.search(f": {name or repr(name)}(.tfwindex)?[:;] ", complaint)

    check_each(check, READING.keys() - {"split"})  # whose output is refused first


@not_root
def test_a_file_that_may_not_be_read(path):
    os.chmod(path, 0)
    for command in READING.keys() - {"verify --json"}:
        check_complaint(tfwire_main(*words_of(command, path)), command.split()[0])


def test_a_url_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)

    def check(command):
        result = tfwire_main(*words_of(command, "gs://bucket/file"))
        assert result.returncode == 1
        if not command.startswith(("index", "shuffle")):  # which need a file of their own
            assert "pip install 'tfwire[remote]'" in text_of(result)

    check_each(check, READING)


def test_the_other_files_get_their_turn(path):
    for command in ("info", "head", "cat", "count", "verify", "index"):
        result = tfwire_main(command, "missing", "foo://x", "a\0b", path)
        assert 1 == result.returncode
        assert 3 == text_of(result).count(f"tfwire {command}: ")
        assert b"in" in result.stdout


# ---- Files that can be read, but hold something else --------------------------------------------


CONTENTS = {
    "text": b"name,age\nAda,36\n" * 20,
    "control characters": NASTY.encode("utf-8", "surrogateescape") * 20,
    "zeros": bytes(1000),
    "ones": b"\xff" * 1000,
    "cut": b"".join(map(frame, RECORDS))[:-1],
    "flipped": b"".join(map(frame, RECORDS[:5])) + b"?" + b"".join(map(frame, RECORDS)),
    "gzip magic": b"\x1f\x8b\x08" + bytes(50),
    "zlib magic": b"\x78\x9c" + bytes(50),
    "npz": b"PK\x03\x04" + bytes(100),
    "huge length": frame(b"x" * 100)[:8] + bytes(50),
}


COMPRESSIONS = ["auto", "none", "gzip", "zlib"]
WHOLE = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])


@WHOLE
@pytest.mark.parametrize("command", READING)
def test_files_of_something_else(folder, monkeypatch, command, whole):
    def check(kind, compression):
        (folder / kind / compression).mkdir(parents=True)
        monkeypatch.chdir(folder / kind / compression)
        with open("in", "wb") as file:
            file.write(CONTENTS[kind])
        words = words_of(command, "in")
        if words[0] != "shuffle":
            words[1:1] = ["--compression", compression]
        result = tfwire_main(*words)
        first_are_whole = words[0] == "head" and compression in ("auto", "none") and kind == "cut"
        assert (0 if first_are_whole else 1) == result.returncode
        text = result.stderr.decode() if command == "cat raw" else text_of(result)
        if not first_are_whole and "json" not in command:
            said = (f"tfwire {words[0]}: ", "DAMAGED", "NO\n", "lost")
            assert any(word in text for word in said)

    number = list(READING).index(command)
    pairs = rotated(number, CONTENTS, COMPRESSIONS)
    check_each(check, itertools.product(CONTENTS, COMPRESSIONS) if whole else pairs)


@pytest.mark.parametrize("command", READING)
def test_names_of_files_are_escaped(command):
    tfw.write_records(NASTY, RECORDS)
    if command == "index --check":
        tfwire_main("index", NASTY)
    result = tfwire_main(*words_of(command, NASTY, "out" + NASTY))
    if command == "cat raw":
        assert b"".join(RECORDS) == result.stdout
        return
    text = text_of(result)
    assert 0 == result.returncode, text
    if "json" not in command and command not in ("verify --same-as", "schema"):
        assert printable(NASTY) in text or json.dumps(NASTY)[1:-1] in text


BENCH_IS_SLOW = [  # it compiles the 1501 features
    pytest.param(name, marks=[pytest.mark.slow] * (name == "bench")) for name in READING
]


@pytest.mark.parametrize("command", BENCH_IS_SLOW)
def test_keys_of_features_are_escaped_and_short(command, folder):
    key = NASTY[:-1] + "k" * 100_000 + "\u202eend"
    record = {key: 1, **{f"{i}\x1b]0;title\x07": "v\x9b" for i in range(1500)}}
    tfw.write_records("in", [record])
    if command == "index --check":
        tfwire_main("index", "in")
    result = tfwire_main(*words_of(command, "in"))
    assert 0 == result.returncode
    if command == "cat raw":
        return
    text = text_of(result)
    if command in ("info", "head"):
        assert max(map(len, text.split("\n"))) < 300
        assert len(text) < 300_000
        assert "1501 features" in text.replace(",", "") or "more lines" in text
    else:
        assert len(text) < 2_000_000


# ---- Wrong numbers and words --------------------------------------------------------------------


NUMBERS = {
    ("head", "-n"): {"0", "7", "\uff17"},
    ("verify", "--jobs"): {"7", "\uff17"},
    ("index", "--jobs"): {"7", "\uff17"},
    ("split", "--shards"): {"7", "\uff17"},
    ("split", "--shard-size"): {"7"},
    ("merge", "--jobs"): {"7", "\uff17"},
    ("shuffle", "--seed"): {"0", "7", "\uff17"},
    ("shuffle", "--memory"): {"7"},
    ("bench", "--seconds"): {"7", "\uff17", "1e3", "1e-9"},
    ("demo", "--records"): {"7", "\uff17"},
}
TEXTS = ["", " ", "x", "-1", "0", "7", "\uff17", "1e3", "1e-9", "1e400", "nan", "inf", "-inf"]
TEXTS += ["0x10", "1.5.2", "7MX", "9" * 30, "9" * 400 + "TB", "9" * 5000, "7\x1b[31m"]
TEXTS += ["\ud800", "7\n8"]


@pytest.mark.parametrize(("command", "option"), NUMBERS)
def test_wrong_numbers_are_refused(path, command, option):
    """And right ones are not; where both work and time would be spent, --help ends the command."""
    outputs = {"split": ["-o", "out-{shard}"], "merge": ["-o", "out"], "shuffle": ["-o", "out"]}
    words = [command, *([] if command == "demo" else [path]), *outputs.get(command, [])]

    def check(text):
        if text in NUMBERS[command, option]:
            assert 0 == tfwire_main(*words, f"{option}={text}", "--help").returncode
            return
        result = tfwire_main(*words, f"{option}={text}")
        assert (2, b"") == (result.returncode, result.stdout)
        assert option in text_of(result)
        assert len(text_of(result)) < 2000 + len(text)
        assert ["in"] == os.listdir()

    check_each(check, TEXTS)


def test_very_large_numbers_are_taken_where_they_do_no_harm(path):
    most = str(2**63 - 1)
    for words in (
        ["head", "-n", most, path],
        ["verify", "--jobs", most, path, path],
        ["merge", "--jobs", most, path, "-o", "merged"],
        ["shuffle", "--seed", most, "--memory", "1000TB", path, "-o", "shuffled"],
        ["split", "--shard-size", "1000TB", path, "-o", "part-{shard}"],
    ):
        assert 0 == tfwire_main(*words).returncode, words
    result = tfwire_main("demo", "--records", most)
    check_complaint(result, "demo", 2)


WRONG_USAGE = [
    ["nonsense"],
    ["\x1b[31m"],
    ["info"],
    ["info", "in", "--\x1b[31m\u202e"],
    ["info", "--compression", "\x1b[31m", "in"],
    ["info", "--compression", "lz4", "in"],
    ["head", "--format", "\x9b", "in"],
    ["cat", "--follow", "-"],
    ["cat", "--follow", "in", "in"],
    ["verify"],
    ["merge", "in"],
    ["merge", "in", "-o", "-"],
    ["split", "in", "-o", "out-{shard}"],
    ["split", "in", "-o", "{shard}", "--shards", "2", "--shard-size", "1MB"],
    ["split", "in", "-o", "out", "--shards", "2"],
    ["split", "in", "-o", "{number}", "--shards", "2"],
    ["index"],
    ["index", "--text", "--check", "in"],
    ["repair", "in"],
    ["repair", "in", "-"],
    ["repair", "--accept-ambiguous", "in", "out"],
    ["index", "-"],
    ["shuffle", "-", "-o", "out"],
    ["bench", "-"],
    ["demo", "--nonsense"],
    *([command, "-", "-"] for command in ("info", "head", "cat", "count", "verify")),
    ["verify", "-", "--same-as", "-"],
    ["merge", "-", "-", "-o", "out"],
    ["split", "-", "-", "-o", "out-{shard}", "--shards", "2"],
]


def test_wrong_usage(path):
    def check(words):
        result = tfwire_main(*words)
        text_of(result)
        assert (2, b"") == (result.returncode, result.stdout)
        assert b"tfwire" in result.stderr
        assert words[:1] not in (["nonsense"], ["demo"]) or b"usage: tfwire" in result.stderr
        assert ["in"] == os.listdir()

    check_each(check, WRONG_USAGE)


# ---- What is not installed, or may not be written ------------------------------------------------


def test_the_demo_names_the_packages_that_it_lacks(monkeypatch):
    monkeypatch.setattr("tfwire.cli.demo.find_spec", {"sklearn": True}.get)
    result = tfwire_main("demo")
    check_complaint(result, "demo")
    assert b"Pillow; pip install 'tfwire[demo]'" in result.stderr
    assert [] == os.listdir()


def test_the_demo_where_nothing_can_be_written(folder):
    (folder / "file").touch()
    for place in ("file", "file/below", "a\0b", "x" * 300, "/proc/nowhere"):
        check_complaint(tfwire_main("demo", "--folder", place), "demo")
        assert ["file"] == os.listdir()


def test_the_demo_touches_no_other_files(folder):
    (folder / "test.tfrecord").write_bytes(b"mine")
    check_complaint(tfwire_main("demo", "--folder", "."), "demo", 2)
    assert b"mine" == (folder / "test.tfrecord").read_bytes()
    assert ["test.tfrecord"] == os.listdir()


@not_root
def test_a_folder_that_cannot_be_written_to(path, folder):
    (folder / "locked").mkdir(mode=0o555)
    for command in ("merge", "repair"):
        check_complaint(tfwire_main(*words_of(command, path, "locked/out")), command)
    check_complaint(tfwire_main("demo", "--folder", "locked"), "demo")


def test_out_of_memory_is_said(path, monkeypatch):
    def exhausted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("tfwire.verify_file", exhausted)
    monkeypatch.setattr("tfwire._interface.damage.verify_inputs", exhausted)
    for command in ("info", "count", "verify", "bench"):
        result = tfwire_main(command, path)
        check_complaint(result, command)
        assert b"Cannot allocate memory" in result.stderr


def test_a_fault_of_the_command_is_one_line(path, monkeypatch):
    """No known one is left; whatever comes is said without a traceback."""

    def broken(*arguments, **options):
        raise KeyError("\x1b[31m" + "x" * 10_000)

    monkeypatch.setattr("tfwire.verify_file", broken)
    result = tfwire_main("count", path)
    assert (1, b"") == (result.returncode, result.stdout)
    assert result.stderr.startswith(b"tfwire count: unexpected KeyError: '\\x1b[31m")
    assert len(result.stderr) < 300


# ---- Words ---------------------------------------------------------------------------------------

OF_PYTHON = r"[a-z]+_[a-z_]*(=| is )|on_corrupt|compression_type|=(True|False|None)|Traceback"
DATA = b"".join(map(frame, RECORDS))
MISREAD = {"plain": DATA, "text": b"no records, but a text of some length", "torn": DATA[:-3]}
MISREAD |= {"gzip": gzip.compress(DATA), "damaged": b"\xff" + DATA[1:]}


@WHOLE
@pytest.mark.parametrize("content", MISREAD)
def test_messages_have_the_flags_of_the_command_and_not_pythons_arguments(folder, content, whole):
    (folder / "in").write_bytes(MISREAD[content])
    number = list(MISREAD).index(content)
    commands = [name for name in READING if "json" not in name]
    pairs = itertools.product(commands, COMPRESSIONS)
    for name, compression in pairs if whole else rotated(number, commands, COMPRESSIONS):
        command, *words = words_of(name, "in", f"out-{name}-{compression}")
        if command != "shuffle":  # it has no such flag
            words += ["--compression", compression]
        result = tfwire_main(command, *words)
        shown = result.stdout if command in ("info", "verify") else b""
        said = (shown + result.stderr).decode()
        assert [] == [line for line in said.splitlines() if re.search(OF_PYTHON, line)]
        if content == "text" and command in ("info", "verify"):
            found = "tried plain records, GZIP and ZLIB, and nothing fits"
            wrong = f"--compression is {compression}; --compression auto detects"
            assert (found if compression == "auto" else wrong) in said
