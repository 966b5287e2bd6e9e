"""tfwire head and cat."""

import gzip
import json
import os
import re
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from google.protobuf import text_format

import tfwire as tfw
from helpers.command import tfwire_command, tfwire_main, tfwire_process
from helpers.reading import damage
from tfwire import train

EXAMPLES = [tfw.encode_example({"i": i, "name": f"record {i}", "w": [i / 2]}) for i in range(20)]
SEQUENCE = tfw.encode_sequence_example({"length": 2}, {"words": [[1], [2, 3]]})
OTHER = b"plain text, which is no message " * 40


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records"
    tfw.write_records(path, [*EXAMPLES, SEQUENCE, OTHER], "GZIP")
    return path


def test_head_shows_the_first_records(path):
    result = tfwire_command("head", "-n", "2", path)
    assert (0, "") == (result.returncode, result.stderr)
    titles = [line for line in result.stdout.splitlines() if line.startswith("# ")]
    size = len(EXAMPLES[0])
    assert [
        f"# {path}: record 0, byte 0, {size} bytes: Example",
        f"# {path}: record 1, byte {size + 16}, {len(EXAMPLES[1])} bytes: Example",
    ] == titles


def test_head_shows_ten_records_of_each_file(path):
    result = tfwire_command("head", path, path)
    assert result.stdout.count("# ") == 20


def test_text_is_protobufs_text_format(path):
    """With comments, so that a message parses back as it is shown."""
    result = tfwire_command("head", "-n", "1", path)
    message = text_format.Parse(result.stdout, train.Example())
    assert EXAMPLES[0] == message.SerializeToString(deterministic=True)


def test_strings_that_are_utf8_are_shown_as_text(tmp_path):
    """Names, too; what could control a terminal stays escaped, and all of it parses back."""
    texts = ["图像_0.png", "é\n", "\\\\303\\251", '"ü"', "\u202e\u200b\x1bé", "\U0001f600", "a\0é"]
    others = [b"\xff\xd8\xc3\xa9", "图".encode()[:-1], "é".encode() + b"\xff", b"\\\xff"]
    record = tfw.encode_example({"名前": texts, "bytes": others, "long": "图" * 200})
    tfw.write_records(tmp_path / "records", [record])
    for words in (["cat"], ["head", "--full"]):
        shown = tfwire_command(*words, tmp_path / "records").stdout
        message = text_format.Parse(shown, train.Example())
        assert record == message.SerializeToString(deterministic=True)
        for text in ("名前", "图像_0.png", "é\\n", '\\"ü\\"', "\U0001f600"):
            assert text in shown
        assert r'"\377\330\303\251"' in shown
        assert not {"\u202e", "\u200b", "\x1b"} & set(shown)
    assert "图" * 100 in tfwire_command("head", tmp_path / "records").stdout


def test_cat_shows_sequences_and_unknown_payload(path):
    result = tfwire_command("cat", path)
    assert result.returncode == 0
    assert f"{len(SEQUENCE)} bytes: SequenceExample" in result.stdout
    assert 'key: "words"' in result.stdout
    assert f"{len(OTHER)} bytes: other" in result.stdout
    last = result.stdout.splitlines()[-2]
    assert last.startswith("# 70 6c 61 69 6e 20 74 65 78 74 ")
    assert len(last) < 250


def test_protobufs_json_reads_back(path):
    lines = tfwire_command("cat", "--format", "protojson", path).stdout.splitlines()
    assert EXAMPLES == list(tfw.decode_json_example(lines[: len(EXAMPLES)]))
    assert "featureLists" in json.loads(lines[-2])
    assert {"other": {"bytes": len(OTHER), "hex": OTHER[:48].hex()}} == json.loads(lines[-1])


def test_what_another_record_may_be(tmp_path):
    frame = b"\x08\x96\x01\x12\x03abc\x12\x00\x25\x00\x00\x00\x00"  # fields 1, 2, 2 and 4
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03" + bytes(9)
    far = b"\xfa\xff\xff\x07\x00"  # a field number that nobody chooses
    cut = [frame[:-1], b"\x12\x09abc", b"\x08" + b"\xff" * 20, b"\x0b\x0c", b"\x00\x00"]
    tfw.write_records(tmp_path / "others", [frame, png, far, b"", b"text", *cut])
    lines = tfwire_command("cat", tmp_path / "others").stdout.splitlines()
    assert [
        "# maybe another protocol buffer, with fields 1, 2, 4",
        "# maybe PNG 2 x 3",
    ] == [line for line in lines if line.startswith("# maybe")]
    result = tfwire_command("cat", "--format", "json", tmp_path / "others")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert {} == found.pop(3)  # an Example without features
    maybe = [each["other"].get("maybe") for each in found]
    assert ["another protocol buffer, with fields 1, 2, 4", "PNG 2 x 3", *[None] * 7] == maybe


def test_a_large_record_of_short_fields_is_not_walked_whole(tmp_path):
    tfw.write_records(tmp_path / "others", [b"\x08\x01" * (4 << 20) + b"\xff"])
    tracemalloc.start()
    try:
        done = tfwire_command("head", tmp_path / "others")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert (0, "") == (done.returncode, done.stderr)
    assert "# maybe another protocol buffer, with fields 1\n" in done.stdout


def test_raw_is_the_records_as_they_are(path):
    result = tfwire_main("cat", "--format", "raw", path)
    assert b"".join([*EXAMPLES, SEQUENCE, OTHER]) == result.stdout


def test_head_shortens_and_says_so(tmp_path):
    record = tfw.encode_example({"many": list(range(1000)), "long": "x" * 5000, "one": 1})
    path = tmp_path / "records"
    tfw.write_records(path, [record])
    short = tfwire_command("head", path).stdout
    assert "# 990 more values" in short
    assert "more characters" in short
    assert max(map(len, short.splitlines())) < 200
    for words in (["head", "--full"], ["cat"]):
        message = text_format.Parse(tfwire_command(*words, path).stdout, train.Example())
        assert record == message.SerializeToString(deterministic=True)


def test_damage_is_said_and_the_rest_is_shown(tmp_path):
    path = tmp_path / "records"
    tfw.write_records(path, EXAMPLES)
    damage(path, 20)
    result = tfwire_command("cat", "--format", "protojson", path, tmp_path / "missing")
    assert result.returncode == 1
    assert EXAMPLES[1:] == list(tfw.decode_json_example(result.stdout.splitlines()))
    first, second = result.stderr.splitlines()
    assert first.startswith(f"tfwire cat: {path}: left out bytes 0 to ")
    assert f"tfwire cat: {tmp_path / 'missing'}: No such file or directory" == second


@pytest.mark.parametrize(
    "command", ["cat", "count", "info", "stats", "verify", "convert", "repair"]
)
def test_damage_in_a_compressed_file_says_which_bytes_are_counted(tmp_path, monkeypatch, command):
    """Those of the file where it does not inflate, else those of its content."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("whole", EXAMPLES)
    content = bytearray(Path("whole").read_bytes())
    content[20] ^= 1
    Path("bit").write_bytes(gzip.compress(content))
    Path("cut").write_bytes(gzip.compress(Path("whole").read_bytes())[:-60])
    words = {
        "convert": ["--on-corrupt", "skip", "--from", "tfrecord", "-o", "out.jsonl"],
        "repair": ["out"],
    }.get(command, [])
    for name, *wanted in ("bit", "decompressed"), ("cut", "compressed", "decompressed"):
        result = tfwire_command(command, name, *words)
        assert result.returncode == 1
        shown = result.stdout + result.stderr
        assert wanted == re.findall(r"(\w+) bytes \d+ to \d+ \(\d+ bytes\), record", shown)
        for path in tmp_path.glob("out*"):
            path.unlink()


def test_head_stops_before_later_damage(tmp_path):
    path = tmp_path / "records"
    tfw.write_records(path, EXAMPLES)
    with open(path, "ab") as file:
        file.write(b"stray")
    result = tfwire_command("head", "-n", "3", path)
    assert (0, "") == (result.returncode, result.stderr)


def test_stdin_is_read(path):
    with open(path, "rb") as file:
        result = tfwire_main("cat", "--format", "raw", "-", stdin=file)
    assert b"".join([*EXAMPLES, SEQUENCE, OTHER]) == result.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_an_output_that_is_full_is_blamed_and_not_the_input(path):
    """Once, and not again when the interpreter ends."""
    with open("/dev/full", "wb") as full:
        options = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        result = tfwire_process("cat", "--format", "raw", path, path, **options)
    assert result.returncode == 1
    assert "tfwire cat: standard output: No space left on device\n" == result.stderr


@pytest.mark.parametrize("command", ["head", "cat", "count"])
def test_a_file_without_records_is_said_to_look_like_something_else(tmp_path, command):
    path = tmp_path / "table.csv"
    path.write_text("name,age\nAda,36\nAlan,41\n")
    result = tfwire_command(command, path)
    assert result.returncode == 1
    assert "left out bytes 0 to 24 (24 bytes)" in result.stderr
    assert "not a TFRecord file? it begins like text" in result.stderr
