"""The compression of new files: that of the option, or else of their names, in every command."""

import os
import re

import pytest

import tfwire as tfw
from helpers.command import tfwire_command

RECORDS = [tfw.encode_example({"id": i}) for i in range(20)]
COMMANDS = {
    "split": ["split", "IN", "--shards", "2", "-o", "{shard}-OUT"],
    "split by size": ["split", "IN", "--shard-size", "300", "-o", "{shard}-OUT"],
    "merge": ["merge", "IN", "-o", "OUT"],
    "shuffle": ["shuffle", "IN", "-o", "OUT"],
    "convert": ["convert", "IN", "--from", "tfrecord", "--to", "tfrecord", "-o", "OUT"],
    "convert shards": ["convert", "IN", "--num-shards", "2", "-o", "{shard}-OUT"],
    "repair": ["repair", "IN", "OUT"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("in.tfrecord", RECORDS)
    tfw.write_records("gz.tfrecord", RECORDS, "GZIP")


def run(command, path, out, *options):
    words = [re.sub("OUT", out, word.replace("IN", path)) for word in COMMANDS[command]]
    return tfwire_command(*words, *options)


def compressions(out):
    """Those of the new files, which hold all records."""
    paths = [name for name in os.listdir() if name.endswith(out)]
    found = [record for path in paths for record in tfw.read_records(path)]
    assert sorted(RECORDS) == sorted(found)
    return {tfw.verify_file(path).compression for path in paths}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", ["in.tfrecord", "gz.tfrecord"])
@pytest.mark.parametrize(
    ("out", "options", "expected"),
    [
        ("a.tfrecord.gz", [], "GZIP"),
        ("a.tfrecord.GZIP", [], "GZIP"),
        ("a.tfrecord.zlib", [], "ZLIB"),
        ("b.tfrecord", ["--output-compression", "gzip"], "GZIP"),
        ("b.tfrecord", ["--output-compression", "zlib"], "ZLIB"),
        ("b.tfrecord.gz", ["--output-compression", "none"], ""),
        ("b.tfrecord.gz", ["--output-compression", "gzip"], "GZIP"),
    ],
)
def test_the_name_says_the_compression_where_no_option_does(
    folder, command, path, out, options, expected
):
    result = run(command, path, out, *options)
    assert (0, "") == (result.returncode, result.stderr)
    assert {expected} == compressions(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_says_nothing_is_plain_and_of_a_repair_as_before(folder, command):
    assert 0 == run(command, "gz.tfrecord", "out.tfrecord").returncode
    assert {"GZIP" if command == "repair" else ""} == compressions("out.tfrecord")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_contradicts_the_name_is_refused(folder, command):
    result = run(command, "in.tfrecord", "a.tfrecord.gz", "--output-compression", "zlib")
    assert (2, "") == (result.returncode, result.stdout)
    assert "a.tfrecord.gz: the name says gzip, and --output-compression zlib" in result.stderr
    assert ["gz.tfrecord", "in.tfrecord"] == sorted(os.listdir())


@pytest.mark.parametrize("out", ["a.csv.zlib", "a.jsonl.zlib", "a.tar.zlib"])
def test_a_compression_that_the_format_does_not_have_is_refused(folder, out):
    result = tfwire_command("convert", "in.tfrecord", "-o", out)
    assert 2 == result.returncode
    assert f"{out}: the name says zlib" in result.stderr


@pytest.mark.parametrize("out", ["a.csv", "a.tsv", "a.jsonl", "a.tar"])
@pytest.mark.parametrize("ending", ["gz", "gzip"])
def test_other_formats_follow_their_names_too(folder, out, ending):
    assert 0 == tfwire_command("convert", "in.tfrecord", "-o", f"{out}.{ending}").returncode
    with open(f"{out}.{ending}", "rb") as file:
        assert b"\x1f\x8b" == file.read(2)
    assert 0 == tfwire_command("convert", f"{out}.{ending}", "-o", "back.tfrecord").returncode
    assert RECORDS == list(tfw.read_records("back.tfrecord"))


@pytest.mark.parametrize("command", ["split", "shuffle", "convert"])
@pytest.mark.parametrize("option", ["--shards", "--num-shards"])
def test_the_number_of_files_has_two_names(folder, command, option):
    words = [command, "in.tfrecord", option, "2", "-o", "{shard}.tfrecord"]
    assert 0 == tfwire_command(*words).returncode
    assert ["0.tfrecord", "1.tfrecord"] == sorted(os.listdir())[:2]
