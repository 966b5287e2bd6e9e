"""tfwire info, count, verify and repair."""

import base64
import contextlib
import gzip
import json
import os
import re
import struct
import subprocess
import zlib

import pytest

import tfwire as tfw
from helpers.command import tfwire_command
from helpers.reference import flip, frame
from tfwire.cli import main

RECORDS = [b"", b"one", *(bytes([i]) * 37 * i for i in range(5)), os.urandom(70_000)]


def lines_of_json(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def files(tmp_path):
    """One file of every kind, the commands run among them."""
    plain = tmp_path / "plain"
    tfw.write_records(plain, RECORDS)
    data = plain.read_bytes()
    (tmp_path / "gzip").write_bytes(gzip.compress(data))
    (tmp_path / "zlib").write_bytes(zlib.compress(data))
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("these are no records at all\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut").write_bytes(data[:-1])
    flipped = bytearray(data)
    flipped[16 + 12] ^= 0x40  # the first byte of record 1
    (tmp_path / "flipped").write_bytes(flipped)
    length = struct.pack("<Q", 2**63)
    (tmp_path / "huge").write_bytes(
        length + struct.pack("<I", tfw.checksum.masked_crc32c(length)) + b"x" * 40
    )
    return tmp_path


INTACT = ["plain", "gzip", "zlib", "empty"]
DAMAGED = {
    "text": (0, "length crc"),
    "cut": (len(RECORDS) - 1, "truncated"),
    "flipped": (1, "data crc"),
    "huge": (0, "too large"),
}
UNREADABLE = ["plain/x", "missing"]


# ---- verify -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flipped", "-a b'c", "a\nb\x1b\\c\u00e9'", os.fsdecode(b"\xff")])
def test_the_command_that_verify_names_repairs(files, name):
    (files / "flipped").rename(files / name)
    said = tfwire_command("verify", "--", name, cwd=files).stdout
    (command,) = re.findall("next: (tfwire .*)", said)
    words = subprocess.check_output(["bash", "-c", f"printf '%s\\0' {command}"]).split(b"\0")
    assert 0 == tfwire_command(*map(os.fsdecode, words[1:-1]), cwd=files).returncode
    assert RECORDS == list(tfw.read_records(files / f"repaired-{name}"))


def test_verify_of_an_intact_file(files):
    for name in INTACT:
        result = tfwire_command("verify", name, cwd=files)
        assert (0, "") == (result.returncode, result.stderr)
        count = 0 if name == "empty" else len(RECORDS)
        assert result.stdout.startswith(f"{name}: intact, {count} records")


@pytest.mark.parametrize(("begin", "end", "count"), [(0, 14, 14), (4, 20, 16)])
def test_verify_says_that_its_index_is_of_another_file(tmp_path, begin, end, count):
    path = tmp_path / "x"
    tfw.write_records(path, [b"%015d" % i for i in range(20)])
    assert 0 == tfwire_command("index", path).returncode
    assert "its index" not in tfwire_command("verify", path).stdout
    path.write_bytes(path.read_bytes()[31 * begin : 31 * end])
    done = tfwire_command("verify", path)
    assert f"intact, {count} records" in done.stdout
    assert "its index is that of a file of 20 records: some are missing" in done.stdout
    assert 20 == json.loads(tfwire_command("verify", "--json", path).stdout)["index_records"]


@pytest.mark.parametrize("name", DAMAGED)
def test_verify_lists_damage_and_exits_with_1(files, name):
    result = tfwire_command("verify", "--json", name, cwd=files)
    assert (1, "") == (result.returncode, result.stderr)
    (report,) = lines_of_json(result)
    record, reason = DAMAGED[name]
    assert not report["intact"]
    assert [(record, reason)] == [(r["record"], r["reason"]) for r in report["regions"]]
    assert f"record {record}: {reason}" in tfwire_command("verify", name, cwd=files).stdout


@pytest.mark.parametrize("jobs", [1, 7])
def test_verify_reports_files_in_their_order_and_sums_up(files, jobs):
    names = [*INTACT, *DAMAGED, *UNREADABLE]
    words = ["verify", "--jobs", str(jobs), *names]
    result = tfwire_command(*words, "--json", cwd=files)
    assert result.returncode == 1
    assert names == [report["path"] for report in lines_of_json(result)]
    text = tfwire_command(*words, cwd=files).stdout
    assert text.endswith("4 intact, 4 damaged, 2 not readable\n")


def test_verify_says_what_a_file_looks_like(files):
    assert "it begins like text" in tfwire_command("verify", "text", cwd=files).stdout


@pytest.mark.parametrize("name", ["plain", "gzip", "zlib", "empty", "cut", "text"])
def test_verify_gives_the_checksum_that_object_stores_show(files, name):
    result = tfwire_command("verify", "--crc32c", "--json", name, cwd=files)
    crc = tfw.crc32c((files / name).read_bytes())
    expected = base64.b64encode(crc.to_bytes(4, "big")).decode()
    assert expected == lines_of_json(result)[0]["crc32c"]
    text = tfwire_command("verify", "--crc32c", name, cwd=files).stdout
    assert f"crc32c {expected}" in text


@pytest.mark.parametrize("name", ["plain", "gzip"])
def test_verify_reads_a_pipe(files, name):
    with subprocess.Popen(["cat", files / name], stdout=subprocess.PIPE) as pipe:
        result = tfwire_command("verify", "-", stdin=pipe.stdout)
    assert result.returncode == 0
    assert f"<stdin>: intact, {len(RECORDS)} records" in result.stdout


@pytest.mark.parametrize("columns", ["80", "0"])
def test_verify_shows_progress_on_a_terminal_only(files, monkeypatch, capsys, columns):
    """The line is on stderr and is taken away at the end."""
    assert tfwire_command("verify", "plain", cwd=files).stderr == ""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("tfwire.cli._streams._INTERVAL", 0)
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal, contextlib.redirect_stderr(terminal):
        assert 0 == main(["verify", str(files / "plain")])
    shown = b""
    while not shown.endswith(b"\r\x1b[K") or b"MB/s" not in shown:
        shown += os.read(ours, 1 << 16)  # fails at the end
    os.close(ours)
    assert ": intact" in capsys.readouterr().out


# ---- count and info ---------------------------------------------------------------------------


def test_count_gives_a_line_per_file_and_the_total(files):
    result = tfwire_command("count", "plain", "gzip", "zlib", cwd=files)
    n = len(RECORDS)
    assert result.returncode == 0
    assert [f"{n} plain", f"{n} gzip", f"{n} zlib", f"{3 * n} total"] == [
        line.strip() for line in result.stdout.splitlines()
    ]


def test_count_of_damaged_files_counts_what_verifies(files):
    result = tfwire_command("count", "flipped", "missing", cwd=files)
    assert result.returncode == 1
    assert f"{len(RECORDS) - 1} flipped" in result.stdout
    assert "tfwire count: flipped: left out bytes 16 to 35 (19 bytes), record 1" in result.stderr
    assert "tfwire count: missing: No such file or directory" in result.stderr


def test_info_of_examples(files):
    tfw.write_records(
        files / "pets.gz", [{"name": ["cat", "dog"], "label": 1, "w": [0.5]}, {"label": 2}], "GZIP"
    )
    result = tfwire_command("info", "pets.gz", cwd=files)
    assert result.returncode == 0
    for words in ("compression  gzip", "records      2", "intact       yes"):
        assert words in result.stdout
    assert result.stdout.endswith(
        "  first record Example\n"
        "    label  int64    1 value\n"
        "    name   string   2 values, 6 bytes\n"
        "    w      float32  1 value\n"
    )


def test_info_of_sequences(files):
    record = tfw.encode_sequence_example({"length": 2}, {"words": [["a"], ["b", "cd"]]})
    tfw.write_records(files / "sequences", [record])
    result = tfwire_command("info", "sequences", cwd=files)
    assert "first record SequenceExample" in result.stdout
    assert "words   string  2 steps, 3 values, 4 bytes" in result.stdout


@pytest.mark.parametrize("name", [*INTACT, *DAMAGED])
def test_info_as_json(files, name):
    result = tfwire_command("info", "--json", name, cwd=files)
    (info,) = lines_of_json(result)
    assert int(name in DAMAGED) == result.returncode
    assert (name in INTACT) == info["intact"]
    if name in ("plain", "gzip", "zlib"):
        lengths = [len(record) for record in RECORDS]
        assert (min(lengths), max(lengths)) == (info["shortest"], info["longest"])
        assert sum(lengths) / len(lengths) == info["mean"]
        assert {"bytes": 0, "kind": "Example", "num_features": 0, "features": {}} == info[
            "first_record"
        ]


# ---- repair -----------------------------------------------------------------------------------


def test_repair_of_an_intact_file_copies_its_records(files):
    for name in INTACT:
        result = tfwire_command("repair", name, f"{name} copy", cwd=files)
        assert (0, "") == (result.returncode, result.stderr)
        copy = files / f"{name} copy"
        assert list(tfw.read_records(files / name)) == list(tfw.read_records(copy))


def test_repair_keeps_what_verifies_and_reports_what_is_lost(files):
    before = (files / "flipped").read_bytes()
    result = tfwire_command("repair", "--json", "flipped", "out", cwd=files)
    assert result.returncode == 1
    (report,) = lines_of_json(result)
    assert [{"begin": 16, "end": 35, "record": 1, "reason": "data crc"}] == report["lost"]
    assert [*RECORDS[:1], *RECORDS[2:]] == list(tfw.read_records(files / "out"))
    assert before == (files / "flipped").read_bytes()


def test_repair_corrects_on_demand(files):
    result = tfwire_command("repair", "--correct", "flipped", "out", cwd=files)
    assert result.returncode == 0
    assert "corrected: byte 28 bit 6, record 1" in result.stdout
    assert (files / "plain").read_bytes() == (files / "out").read_bytes()


@pytest.mark.parametrize(
    ("words", "noun", "key"),
    [
        (["verify", "very"], "region", "regions"),
        pytest.param(
            *(["repair", "very", "out", "--force"], "region", "lost"), marks=pytest.mark.slow
        ),
        (["repair", "very", "out", "--force", "--correct"], "flipped bit", "flipped_bits"),
    ],
    ids=["verify", "repair", "correct"],
)
def test_of_very_many_faults_the_first_are_listed_and_all_are_counted(files, words, noun, key):
    """A file of nothing but damage takes no more memory than another."""
    pair = flip(frame(b"x"), 8 * 12) + frame(b"")
    (files / "very").write_bytes(pair * 65_600)
    text = tfwire_command(*words, cwd=files).stdout
    assert f"of 65,600 {noun}s only 65,536 are listed" in text
    lines = [line for line in text.splitlines() if ": data crc" in line or "bit 0" in line]
    assert 65_536 == len(lines)
    assert len(text.splitlines()) < 65_536 + 30
    (report,) = lines_of_json(tfwire_command(*words, "--json", cwd=files))
    assert (65_600, 65_536) == (report[f"num_{key}"], len(report[key]))


def test_repair_refuses_to_overwrite(files):
    """Neither another file without --force nor ever the damaged one, under whatever name."""
    os.link(files / "flipped", files / "link")
    before = (files / "flipped").read_bytes(), (files / "plain").read_bytes()
    for words in (["plain"], ["flipped"], ["--force", "flipped"], ["--force", "link"]):
        result = tfwire_command("repair", "flipped", *words, cwd=files)
        assert result.returncode == 2, words
        assert result.stderr.count("\n") == 1
    assert before == ((files / "flipped").read_bytes(), (files / "plain").read_bytes())
    assert tfwire_command("repair", "--force", "flipped", "plain", cwd=files).returncode == 1
    assert len(RECORDS) - 1 == sum(1 for _ in tfw.read_records(files / "plain"))


def test_repair_writes_nothing_when_there_is_nothing(files):
    before = sorted(os.listdir(files))
    for name in ("text", "huge", "folder", "missing"):
        result = tfwire_command("repair", name, "out", cwd=files)
        assert (1, "") == (result.returncode, result.stdout)
        assert result.stderr.startswith(f"tfwire repair: {name}: ")
        assert before == sorted(os.listdir(files))


# ---- All of them ------------------------------------------------------------------------------


def test_info_indents_what_another_record_may_be(tmp_path):
    tfw.write_records(tmp_path / "other", [b"\x08\x96\x01\x12\x03abc"])
    lines = tfwire_command("info", tmp_path / "other").stdout.splitlines()
    assert [
        "    # 08 96 01 12 03 61 62 63 |.....abc|",
        "    # maybe another protocol buffer, with fields 1, 2",
    ] == lines[-2:]


def test_info_says_no_sizes_of_records_that_are_not_there(files):
    shown = tfwire_command("info", "text", cwd=files).stdout
    assert "records      0\n" in shown
    assert "it begins like text" in shown
    assert "per record" not in shown


def test_info_of_an_empty_file_says_its_size(tmp_path):
    (tmp_path / "empty").touch()
    assert "size         0 bytes\n" in tfwire_command("info", "empty", cwd=tmp_path).stdout
    (info,) = lines_of_json(tfwire_command("info", "--json", "empty", cwd=tmp_path))
    assert 0 == info["bytes"]
    (info,) = lines_of_json(tfwire_command("info", "--json", "-"))
    assert info["bytes"] is None


def test_a_damaged_copy_is_not_the_same(tmp_path):
    """Although all of its records are there."""
    tfw.write_records(tmp_path / "a", [b"one", b"two"])
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes() + b"damage")
    assert 1 == tfwire_command("verify", "a", "--same-as", "b", cwd=tmp_path).returncode
    assert 1 == tfwire_command("verify", "b", "--same-as", "a", cwd=tmp_path).returncode


def test_an_index_keeps_a_key(tmp_path):
    path = tmp_path / "x"
    tfw.write_records(path, [{"id": f"id {i}"} for i in range(20)])
    done = tfwire_command("index", "--key", "id", path)
    assert (0, f"{path}: 20 records, {path}.tfwindex saved\n") == (done.returncode, done.stdout)
    assert 7 == tfw.TFRecordFile(path).by_key.find("id 7")
    done = tfwire_command("index", "--key", "name", path)
    assert 1 == done.returncode
    assert "record 0 (at byte 0): Feature" in done.stderr
    assert "Feature: name (data type: int64 or string) is required" in done.stderr
    assert "The record has id." in done.stderr
    assert 2 == tfwire_command("index", "--key", "id", "--text", path).returncode
