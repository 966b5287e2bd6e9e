"""tfwire index, split, merge and shuffle."""

import itertools
import json
import os

import pytest

import tfwire as tfw
from helpers.command import tfwire_command

FILES = {f"in-{k}": [b"%d of %d" % (i, k) * (i % 9) for i in range(300)] for k in range(3)}
RECORDS = [record for records in FILES.values() for record in records]


@pytest.fixture
def folder(tmp_path):
    """Three files, the second of them compressed."""
    for name, records in FILES.items():
        tfw.write_records(tmp_path / name, records, "GZIP" if name == "in-1" else "")
    return tmp_path


def contents(folder, pattern):
    """The records of every file of a pattern, in the order of the names."""
    return [list(tfw.read_records(path)) for path in sorted(folder.glob(pattern))]


def run(folder, *words):
    """The output of a command that goes well."""
    result = tfwire_command(*words, cwd=folder)
    assert (0, "") == (result.returncode, result.stderr)
    return result.stdout


# ---- index ------------------------------------------------------------------------------------


def test_indexes_are_saved_where_random_access_looks_for_them(folder):
    output = run(folder, "index", *FILES)
    assert "in-0: 300 records, in-0.tfwindex saved" == output.splitlines()[0]
    for name, records in FILES.items():
        assert len(records) == len(tfw.RecordIndex.load(folder / name))


def test_the_check_of_an_index_tells_fresh_from_stale(folder):
    run(folder, "index", "in-0", "in-2")
    assert "in-0: 300 records, in-0.tfwindex fresh\n" == run(folder, "index", "--check", "in-0")
    tfw.write_records(folder / "in-0", [b"changed"])
    result = tfwire_command("index", "--check", "in-0", "in-1", "in-2", cwd=folder)
    assert 1 == result.returncode
    assert "in-2: 300 records, in-2.tfwindex fresh\n" == result.stdout
    stale, missing = result.stderr.splitlines()
    assert "in-0.tfwindex is stale" in stale
    assert "no such index" in missing


def test_an_index_in_text_is_that_of_tfrecord2idx(folder):
    output = run(folder, "index", "--text", "--json", "in-0")
    assert {"path": "in-0", "records": 300, "index": "in-0.idx"} == json.loads(output)
    index = tfw.RecordIndex.read_text(folder / "in-0", folder / "in-0.idx")
    with tfw.TFRecordFile(folder / "in-0", index) as records:
        assert FILES["in-0"] == list(records)


@pytest.mark.parametrize("name", ["missing", "cut"])
def test_what_cannot_be_indexed_is_named_and_leaves_no_index(folder, name):
    (folder / "cut").write_bytes((folder / "in-0").read_bytes()[:-1])
    result = tfwire_command("index", name, "in-0", cwd=folder)
    assert 1 == result.returncode
    assert result.stderr.startswith(f"tfwire index: {name}: ")
    assert "in-0: 300 records" in result.stdout
    assert not (folder / f"{name}.tfwindex").exists()


# ---- split and merge --------------------------------------------------------------------------


def test_split_deals_records_to_files(folder):
    output = run(folder, "split", *FILES, "-o", "new-{shard}-of-{shards}", "--shards", "4")
    assert [RECORDS[i::4] for i in range(4)] == contents(folder, "new-*")
    assert [*(f"new-{i}-of-4" for i in range(4)), "4 files, 900 records"] == output.splitlines()


@pytest.mark.parametrize("jobs", [1, 2])
def test_split_fills_files_of_a_size(folder, jobs):
    (folder / "out").mkdir()
    words = ["split", *FILES, "-o", "out/{shard:03d}.gz", "--shard-size", "4kB", "--index"]
    output = run(folder, *words, "--output-compression", "gzip", "--jobs", jobs, "--json")
    report = json.loads(output)
    assert 900 == report["records"]
    files = contents(folder / "out", "*.gz")
    assert RECORDS == [record for records in files for record in records]
    assert [f"out/{i:03d}.gz" for i in range(len(files))] == report["files"]
    assert all(sum(len(record) + 16 for record in records) <= 4000 for records in files)
    for path in report["files"]:
        assert "GZIP" == tfw.RecordIndex.load(folder / path).compression


def test_merge_joins_what_split_has_taken_apart(folder):
    run(folder, "split", *FILES, "-o", "{shard:02d}.part", "--shard-size", "2kB")
    parts = sorted(path.name for path in folder.glob("*.part"))
    assert "all\n1 file, 900 records\n" == run(folder, "merge", *parts, "-o", "all")
    assert [RECORDS] == contents(folder, "all")


def test_merge_reads_stdin(folder):
    with open(folder / "in-1", "rb") as stdin:
        result = tfwire_command("merge", "in-0", "-", "-o", "all", cwd=folder, stdin=stdin)
    assert 0 == result.returncode
    assert [RECORDS[:600]] == contents(folder, "all")


def test_damage_is_named_and_nothing_appears(folder):
    (folder / "cut").write_bytes((folder / "in-0").read_bytes()[:-1])
    for words in (["merge"], ["split", "--shard-size", "1kB"], ["shuffle"]):
        result = tfwire_command(*words, "in-2", "cut", "-o", "new-{shard}", cwd=folder)
        assert (1, "") == (result.returncode, result.stdout)
        assert result.stderr.startswith(f"tfwire {words[0]}: cut: record 299")
        assert "tfwire repair" in result.stderr
    assert sorted([*FILES, "cut"]) == sorted(os.listdir(folder))


def test_files_are_replaced_on_demand_only(folder):
    run(folder, "split", "in-0", "-o", "new-{shard}", "--shards", "3")
    words = ["split", "in-2", "-o", "new-{shard}", "--shards", "2"]
    result = tfwire_command(*words, cwd=folder)
    assert (2, "") == (result.returncode, result.stdout)
    assert "exists; --force replaces it" in result.stderr
    run(folder, *words, "--force")
    assert [FILES["in-2"][0::2], FILES["in-2"][1::2]] == contents(folder, "new-[01]")


@pytest.mark.parametrize(
    "words",
    [
        ["merge", "in-1", "in-0", "-o", "in-0"],
        ["merge", "in-0", "-o", "./in-0"],
        ["merge", "in-0", "-o", "link"],
        ["merge", "link", "-o", "in-0"],
        ["merge", "-", "-o", "in-0"],
        ["shuffle", "in-0", "-o", "in-0"],
        ["split", "in-0", "in-1", "-o", "in-{shard}", "--shards", "2"],
        ["split", "in-0", "-o", "in-{shard}", "--shard-size", "1kB"],
        ["repair", "in-0", "in-0"],
        ["repair", "in-0", "link"],
        ["repair", "-", "in-0"],
    ],
)
def test_an_output_that_is_an_input_is_refused(folder, words):
    os.link(folder / "in-0", folder / "link")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with open(folder / "in-0", "rb") as stdin:
        result = tfwire_command(*words, "--force", cwd=folder, stdin=stdin)
    assert (2, "", 1) == (result.returncode, result.stdout, result.stderr.count("\n"))
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_index_is_not_written_over_an_input(folder):
    os.rename(folder / "in-2", folder / "in-0.idx")
    before = (folder / "in-0.idx").read_bytes()
    result = tfwire_command("index", "--text", "in-0", "in-0.idx", cwd=folder)
    assert (2, "") == (result.returncode, result.stdout)
    assert before == (folder / "in-0.idx").read_bytes()
    run(folder, "index", "in-0", "in-0.idx")


COMMANDS = {
    "merge": ["merge", "IN", "-o", "OUT"],
    "split": ["split", "IN", "-o", "OUT", "--shards", "1"],
    "shuffle": ["shuffle", "IN", "-o", "OUT"],
    "repair": ["repair", "IN", "OUT"],
}


def words_of(command, **names):
    return [names.get(word, word) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_is_replaced_only_when_all_is_done(folder, command):
    """Nothing that goes wrong before touches the file that is there."""
    (folder / "text").write_text("no records at all")
    keep = folder / "keep"
    keep.write_bytes(b"mine")
    for words in (
        [*words_of(command, IN="in-0", OUT="keep")],
        [*words_of(command, IN="in-0", OUT="keep"), "--force", "--nonsense"],
        [*words_of(command, IN="missing", OUT="keep"), "--force"],
        [*words_of(command, IN="text", OUT="keep"), "--force"],
        [*words_of(command, IN=".", OUT="keep"), "--force"],
        [*words_of(command, IN="memory://missing", OUT="keep"), "--force"],
    ):
        result = tfwire_command(*words, cwd=folder)
        assert result.returncode in (1, 2), words
        assert b"mine" == keep.read_bytes(), words
    assert sorted([*FILES, "keep", "text"]) == sorted(os.listdir(folder))
    run(folder, *words_of(command, IN="in-0", OUT="keep"), "--force")
    assert sorted(FILES["in-0"]) == sorted(tfw.read_records(keep))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_is_no_file_is_refused_before_anything_is_read(folder, command):
    (folder / "dir").mkdir()
    os.mkfifo(folder / "fifo")
    before = sorted(os.listdir(folder))
    for output in ("dir", "fifo", "", ".", "..", "dir/", "memory://x", "-"):
        words = words_of(command, IN="missing", OUT=output)  # whose status would be 1
        result = tfwire_command(*words, "--force", cwd=folder)
        assert (2, "", 1) == (result.returncode, result.stdout, result.stderr.count("\n")), output
        assert before == sorted(os.listdir(folder))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_in_no_folder_is_named(folder, command):
    for output in ("missing/out", "in-1/out"):
        result = tfwire_command(*words_of(command, IN="in-0", OUT=output), cwd=folder)
        assert 1 == result.returncode
        assert result.stderr.startswith(f"tfwire {command}: {output}: No")
        assert ".tmp" not in result.stderr


WRONG_PATTERNS = ["a{b}", "{0}", "{", "{shard:s}", "{shard.x}", "{shard[0]}", "{shard:/>3}"]
WRONG_PATTERNS += ["{shard!x}", "{shard:0999999999}", "{shard:{shards}}", "{shard:x<9999999999}"]
WRONG_PATTERNS += ["{shard:0999}" * 9999]


def test_a_pattern_is_checked_before_anything_is_read(folder):
    for pattern, words in itertools.product(
        WRONG_PATTERNS, (["merge"], ["shuffle"], ["split", "--shards", "2"])
    ):
        result = tfwire_command(*words, "missing", "-o", pattern, cwd=folder)
        assert (2, "", 1) == (result.returncode, result.stdout, result.stderr.count("\n")), pattern
    assert sorted(FILES) == sorted(os.listdir(folder))


def test_files_of_like_names_are_no_outputs(folder):
    """in-0 and new-x cannot be a shard of new-{shard}."""
    (folder / "new-x").write_bytes((folder / "in-0").read_bytes())
    run(folder, "split", "new-x", "-o", "new-{shard:03d}", "--shards", "2")
    assert [FILES["in-0"][0::2], FILES["in-0"][1::2]] == contents(folder, "new-0*")


# ---- shuffle ----------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["1B", "3kB", "1GB"])
def test_shuffle_loses_and_doubles_nothing(folder, memory):
    """However little is held at a time; the seed alone makes the order."""
    run(folder, "shuffle", *FILES, "-o", "all", "--seed", "5", "--memory", memory)
    (records,) = contents(folder, "all")
    assert sorted(RECORDS) == sorted(records)
    assert records != RECORDS
    run(folder, "shuffle", *FILES, "-o", "again", "--seed", "5")
    run(folder, "shuffle", *FILES, "-o", "other", "--seed", "6")
    assert [records] == contents(folder, "again")
    assert [records] != contents(folder, "other")


def test_shuffle_tells_its_seed(folder):
    output = run(folder, "shuffle", *FILES, "-o", "new-{shard}", "--shards", "2", "--json")
    report = json.loads(output)
    assert {"records": 900, "files": ["new-0", "new-1"], "seed": report["seed"]} == report
    run(folder, "shuffle", *FILES, "-o", "again", "--seed", report["seed"])
    first, second = contents(folder, "new-*")
    (again,) = contents(folder, "again")
    assert [again[0::2], again[1::2]] == [first, second]


def test_shuffle_of_nothing(tmp_path):
    (tmp_path / "empty").touch()
    assert "1 file, 0 records" in run(tmp_path, "shuffle", "empty", "-o", "out")
