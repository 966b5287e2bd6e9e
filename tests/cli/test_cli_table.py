"""tfwire head and cat on a terminal: the table, one record under the other; and plain rows."""

import json
import os
import re
import struct
import subprocess
import sys
import unicodedata
from itertools import pairwise

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, tfwire_command, tfwire_main
from tfwire import train

JPEG = b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 17, 8, 256, 320, 3) + bytes(21_000)
TEXTS = [
    "図書館の本",
    "e\u0301 a\u0308",
    "\U0001f600 \U0001f389",
    "한국어",
    "☺\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "z" + "\u0301" * 500,
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def table(*words, columns=80, encoding="utf-8"):
    """The cells of a table, line by line, whose lines are all of one width; and what follows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        done = tfwire_main("head", "--format", "table", *words, encoding=encoding)
    assert (0, b"") == (done.returncode, done.stderr)
    lines = done.stdout.decode(encoding).splitlines()
    drawn = [line for line in lines if line[0] in "┌│├└|+"]
    assert {width_of(drawn[0])} == set(map(width_of, drawn))
    assert max(map(width_of, lines)) <= columns
    rows = [re.split(" *[│|] *", line)[1:-1] for line in drawn if line[0] in "│|"]
    return rows, lines[len(drawn) :]


def width_of(text):
    """Independent of the command: the columns of a text without controls and joiners."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me") for c in text)


def example(**features):
    """A message with features that encode_example does not write."""
    message = train.Example()
    for name, feature in features.items():
        message.features.feature[name].CopyFrom(feature)
    return message.SerializeToString()


def test_features_are_columns_with_their_types():
    rows = [
        {"label": 3, "name": "cat", "image": JPEG, "box": np.arange(4, dtype="f"), "ids": [1]},
        {"label": -1, "name": "dog", "image": JPEG, "box": np.ones(4, "f"), "ids": [1, 2]},
    ]
    tfw.write_records("in", rows)
    assert [
        ["#", "box", "ids", "image", "label", "name"],
        ["", "float32[4]", "int64[]", "string", "int64", "string"],
        ["0", "[0, 1, 2, 3]", "[1]", "JPEG 320x256 21 kB", "3", "cat"],
        ["1", "[1, 1, 1, 1]", "[1, 2]", "JPEG 320x256 21 kB", "-1", "dog"],
    ] == table("in")[0]


def test_absent_is_told_from_empty():
    none, no_text = train.Feature(int64_list={}), train.Feature(bytes_list={"value": [b""]})
    one = train.Feature(int64_list={"value": [1]})
    dash = train.Feature(bytes_list={"value": [b"-"]})
    records = [
        example(a=one, s=dash),
        example(a=none, s=no_text),
        example(a=train.Feature()),
        example(),
    ]
    tfw.write_records("in", records)
    shown = [["1", '"-"'], ["[]", '""'], ["[]", "—"], ["—", "—"]]
    assert shown == [row[1:] for row in table("in")[0][2:]]


def test_lists_are_shortened_and_counted():
    tfw.write_records("in", [{"n": list(range(1000)), "x": np.zeros(n, "f")} for n in (50, 60)])
    (_, n, x), *_ = table("in")[0][2:]
    assert re.fullmatch(r"\[0, 1, 2, [\d, ]+…\]", n)  # the type says how many
    assert re.fullmatch(r"\(50\) \[0, 0, [0, ]+…\]", x)
    assert ["", "int64[1,000]", "float32[]"] == table("in")[0][1]


def test_feature_lists():
    lists = {"word": [["a"], ["b"]], "ids": [[1], [], [2, 3]], "none": []}
    many = {"word": [["a"]] * 30, "ids": [[1]], "none": []}
    records = [tfw.encode_sequence_example({"n": 1}, each) for each in (lists, many)]
    tfw.write_records("in", records)
    (head, types, first, second), _ = table("in", columns=120)
    assert ["#", "n", "ids[]", "none[]", "word[]"] == head
    assert ["", "int64", "int64[]", "empty", "string"] == types
    assert ["0", "1", "[[1], [], [2, 3]]", "[]", '["a", "b"]'] == first
    assert re.fullmatch(r'\(30\) \[("a", )+…\]', second[-1])


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_it_fits_the_width(columns, encoding):
    rows = [
        {f"名前/{i}": t * (i + 1) for i in range(9)}
        | {"n": 2**62, "f": 0.1, "w": [0.123456789] * 9}
        for t in TEXTS
    ]
    tfw.write_records("in", rows)
    found, after = table("in", columns=columns, encoding=encoding)
    shown = len(found[0]) - 1
    assert (shown == 12) == (after == [])
    if after:
        assert after[0].startswith(f"and {12 - shown} more feature"[: columns - 3])


def test_an_empty_name_and_joined_emoji():
    tfw.write_records("in", [{"": 1, "s": TEXTS[-2]}, b"no Example"])
    found, _ = table("in")
    assert ["(record)", '""', "s"] == found[0][1:]
    assert ["—", "1", TEXTS[-2].replace("\u200d", "")] == found[2][1:]


def test_what_does_not_fit_is_summed_up():
    tfw.write_records("in", [{f"feature {i:02}": "x" * 30 for i in range(30)}])
    found, after = table("in")
    assert ["feature 00", "feature 01", "feature 02"] == found[0][1:]
    assert after[0].startswith("and 27 more features: feature 03, feature 04, ")
    assert after[0].endswith("…")
    assert "--records" in after[1]
    found, after = table("in", "--features", "feature 29,feature 07")
    assert (["feature 29", "feature 07"], []) == (found[0][1:], after)


def test_a_record_of_very_many_features():
    tfw.write_records("in", [{f"{i:05}": i for i in range(5000)}])
    found, after = table("in")
    count = 5000 - len(found[0]) + 1
    assert after[0].startswith(f"and at least {count:,} more features: 0")
    shown = tfwire_command("head", "--records", "in").stdout.splitlines()
    assert "  and 4,000 more features" == shown[1001]


def test_text_with_controls_stays_text():
    texts = ["\x1b[31mred\x07 and other text", "a\u202eb\u200bc", "line\nline\ttab", "\x9b31m" * 9]
    tfw.write_records("in", [{"a\x1b[2J\u202e": t} for t in texts])
    for words in (["--format", "table"], ["--records"], ["--records", "--full"], ["--json"]):
        for encoding in ("utf-8", "ascii"):
            shown = tfwire_main("head", *words, "in", encoding=encoding).stdout.decode(encoding)
            assert shown.replace("\n", "").isprintable()
    assert r"\x1b[31mred\x07 and other text" == table("in")[0][2][1]


def test_other_records():
    frame = b"\x08\x96\x01\x12\x03abc\x12\x00"
    records = [b"plain text, which is no message", b"\xff\xfe\0\1" * 9, JPEG, frame]
    tfw.write_records("in", records)
    rows = [row[1] for row in table("in")[0]]
    assert ["(record)", "string", "plain text, which is no message"] == rows[:3]
    assert rows[3].startswith("36 B: ff fe 00 01 ff")
    assert ["JPEG 320x256 21 kB", "10 B: maybe another protocol buffer, with fields 1, 2"] == rows[
        4:
    ]


def on_terminal(*words, columns=60, **environment):
    """What the command prints in a process of its own, on a terminal of so many columns."""
    fcntl = pytest.importorskip("fcntl")
    termios = pytest.importorskip("termios")
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment.setdefault("COLUMNS", "")
    variables = {**ENVIRONMENT, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment}
    command = [sys.executable, "-m", "tfwire", *words]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    text = b""
    try:
        while data := os.read(ours, 1 << 16):
            text += data
    except OSError:  # the end of a terminal, on Linux
        pass
    os.close(ours)
    assert 0 == process.wait(60)
    return text.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_table_and_a_pipe_text():
    rows = [{"n": i, "text": "word " * 40} for i in range(300)]
    tfw.write_records("in", rows)
    head = on_terminal("head", "in", NO_COLOR="1")
    assert [60] * 15 == list(map(len, head.splitlines()))
    assert "\x1b[1m" in on_terminal("head", "in")
    cat = on_terminal("cat", "in", NO_COLOR="1").splitlines()
    assert 305 == len(cat)  # one table, whatever the first records decide
    assert {60} == set(map(len, cat))
    assert tfwire_command("head", "in").stdout.startswith("# in: record 0, byte 0, ")
    assert "word " * 40 in on_terminal("head", "-n", "1", "--full", "in")


def test_several_files_and_files_without_records():
    tfw.write_records("a", [{"x": 1}])
    tfw.write_records("b", [])
    done = tfwire_command("head", "--format", "table", "a", "b", "a")
    assert 2 == done.stdout.count("a:\n┌")
    assert "b: no records\n" in done.stdout


def test_records_one_under_the_other(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = " ".join(["word"] * 40)
    record = tfw.encode_example({"label": 3, "name": text, "w": [0.5] * 30})
    tfw.write_records("in", [record])
    title, *lines = tfwire_command("head", "--records", "in").stdout.splitlines()
    assert f"# in: record 0, byte 0, {len(record)} bytes: Example" == title
    assert "  label  int64        3" == lines[0]
    assert "  name   string       word word word wo…" == lines[1]
    assert "  w      float32[30]  [0.5, 0.5, 0.5, …]" == lines[2]
    assert text in tfwire_command("head", "--records", "--full", "in").stdout
    assert text in tfwire_command("cat", "--records", "in").stdout


def test_plain_rows():
    row = {
        "n": 2**62,
        "x": [0.1, float("nan"), float("-inf")],
        "name": "図",
        "raw": b"\xff",
        "e": [],
    }
    steps = {"words": [["a"], [], [b"\xfe", "c"]]}
    tfw.write_records("in", [tfw.encode_example(row), tfw.encode_sequence_example({"n": 1}, steps)])
    done = tfwire_command("cat", "--json", "in")
    assert done.stdout.isascii()
    assert [
        {**row, "x": [0.1, "NaN", "-Infinity"], "raw": {"base64": "/w=="}},
        {"context": {"n": 1}, "feature_lists": {"words": [["a"], [], [{"base64": "/g=="}, "c"]]}},
    ] == [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stdout == tfwire_command("cat", "--format", "json", "in").stdout


def test_plain_rows_convert_back(folder):
    rows = [{"n": 1, "raw": b"\xff", "x": [0.5, float("inf")]}, {"n": 2, "raw": "t"}]
    tfw.write_records("in", rows)
    (folder / "rows.jsonl").write_text(tfwire_command("cat", "--json", "in").stdout)
    assert 0 == tfwire_command("convert", "rows.jsonl", "-o", "back.tfrecord").returncode
    assert list(tfw.read_records("in")) == list(tfw.read_records("back.tfrecord"))
    (folder / "rows.jsonl").write_text('{"raw": {"base64": "?"}}')
    done = tfwire_command("convert", "rows.jsonl", "-o", "back.tfrecord", "--force")
    assert "line 1: 'raw': expected base64" in done.stderr


def test_what_limits_are_called():
    tfw.write_records("in", [{"n": i} for i in range(20)])
    for words in (
        ["-n", "3"],
        ["--limit", "3"],
        ["--limit=3"],
        ["--records", "3"],
        ["--records=3"],
    ):
        done = tfwire_command("head", *words, "--json", "in")
        assert 3 == len(done.stdout.splitlines()), words


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["haed", "in"], "did you mean head?"),
        (["head", "--recrods", "in"], "unrecognized arguments: --recrods, did you mean --records?"),
        (
            ["split", "--shrads=2", "--shards=2", "in", "-o", "x"],
            "--shrads=2, did you mean --shards?",
        ),
        (["head", "--format", "tabel", "in"], "did you mean table? (choose from 'table'"),
        (["in"], "invalid choice: 'in', a file; tfwire head in shows its records (choose from"),
        (["zzzzzz"], "invalid choice: 'zzzzzz' (choose from"),
    ],
)
def test_the_nearest_word_is_named(words, meant):
    tfw.write_records("in", [])
    done = tfwire_command(*words)
    assert (2, "") == (done.returncode, done.stdout)
    assert meant in done.stderr
    assert f"usage: tfwire {words[0]}" in done.stderr or "COMMAND" in done.stderr


def test_the_bare_command_prints_its_help():
    done = tfwire_command()
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout == tfwire_command("--help").stdout


def test_info_of_several_files_sums_up():
    tfw.write_records("a", [{"x": 1}] * 3)
    tfw.write_records("b.gz", [{"x": 1}] * 4, "GZIP")
    size = sum(map(os.path.getsize, ("a", "b.gz")))
    total = f"total: 2 files, 7 records, {size} bytes, intact"
    done = tfwire_command("info", "a", "b.gz")
    assert total == done.stdout.splitlines()[-1]
    assert "compression  none, gzip\n" in done.stdout
    assert "    x  int64  1 value" not in done.stdout
    assert "  x  int64  1 value\n" in done.stdout
    lines = tfwire_command("info", "--verbose", "a", "b.gz").stdout.splitlines()
    assert ["a:", "b.gz:"] == [line for line in lines if line.endswith(":")]
    assert total == lines[-1]
    with open("a", "ab") as file:
        file.write(b"stray")
    done = tfwire_command("info", "b.gz", "a", "missing")
    assert 1 == done.returncode
    assert done.stdout.startswith("a:\n  intact       NO\n")
    assert done.stdout.endswith(", 1 DAMAGED\n")


def test_lines_keep_their_order():
    """Those of a table that waits for its first records, and of complaints."""
    tfw.write_records("in", [{"n": i} for i in range(3)])
    with open("in", "ab") as file:
        file.write(b"stray")
    done = tfwire_command("head", "--format", "table", "in")
    numbers = [int(number) for number in re.findall(r"^│ +(\d)", done.stdout, re.MULTILINE)]
    assert all(a < b for a, b in pairwise(numbers))
    assert (1, 3) == (done.returncode, len(numbers))
