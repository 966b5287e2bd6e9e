"""Patterns in file names: what a shell does not expand, the command does."""

import json

import fsspec
import pytest

import tfwire as tfw
from helpers.command import tfwire_main
from tfwire._records.reading.publishing_markers import MARKER


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the commands run."""
    monkeypatch.chdir(tmp_path)
    for i in range(3):
        tfw.write_records(f"a-{i}", [{"x": 1}] * (i + 1))
        tfw.RecordIndex.build(f"a-{i}").save()
    tfw.write_records("b[1]", [{"x": 1}] * 7)
    (tmp_path / "a-folder").mkdir()
    (tmp_path / "q.json").touch()
    return tmp_path


@pytest.fixture
def objects():
    """The same in a filesystem of URLs."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    for i in range(3):
        tfw.write_records(f"memory://bucket/a-{i}", [{"x": 1}] * (i + 1))
    memory.pipe("/bucket/a-1.tfwindex", b"not a record file")
    yield
    memory.store.clear()


def counts(*words):
    result = tfwire_main("count", "--json", *words)
    lines = map(json.loads, result.stdout.splitlines())
    return result.returncode, {line["path"]: line["records"] for line in lines}


@pytest.mark.parametrize(
    "words",
    [["a-*"], ["a-?"], ["a-[0-2]"], ["./a-*"], ["a-0", "a-0.tfwindex", "a-1", "a-2"]],
)
def test_files_that_match_in_the_order_of_their_names(words):
    status, found = counts(*words)
    pattern = words[0]
    prefix = "./" if pattern.startswith("./") else ""
    assert (0, [f"{prefix}a-{i}" for i in range(3)]) == (status, list(found))
    assert [1, 2, 3] == list(found.values())


def test_indexes_that_a_shell_has_found_are_left_out(folder):
    names = sorted(
        path.name for path in folder.iterdir() if path.name[0] in "ab" and path.is_file()
    )
    assert "a-0.tfwindex" in names
    expected = {"a-0": 1, "a-1": 2, "a-2": 3, "b[1]": 7}
    assert (0, expected) == counts(*names)
    assert (0, {"a-0": 1}) == counts("a-0.tfwindex", "a-0")
    (folder / "c.tfwindex").write_bytes(b"")  # beside no file that is named: it is asked for
    assert (0, {"c.tfwindex": 0}) == counts("c.tfwindex")


def test_a_file_whose_name_looks_like_a_pattern_is_itself(folder):
    assert (0, {"b[1]": 7}) == counts("b[1]")
    (folder / "a-*").write_bytes((folder / "a-0").read_bytes())
    assert (0, {"a-*": 1}) == counts("a-*")


def test_a_folder_is_the_files_in_it(folder):
    for name in ("_SUCCESS", ".part-0.crc", "part-1", "part-0"):
        tfw.write_records(folder / "a-folder" / name, [b"x"])
    expected = {f"a-folder/part-{i}": 1 for i in range(2)}
    assert (0, expected) == counts("a-folder")


NOTHING = {
    "c-*": "no file matches the pattern",
    "c@3": "no file matches the pattern c-?????-of-00003",
    "a-folder": "no file of records is in the folder",
    "q.*": "no file matches the pattern, but 1 file that lies beside records, as 'q.json'",
}


def complaints(command, names):
    return [
        f"tfwire {command}: {name}: {NOTHING.get(name, 'No such file or directory')}"
        for name in names
    ]


@pytest.mark.parametrize("command", ["count", "stats", "index", "verify", "info", "head", "cat"])
def test_a_name_without_files_is_an_error_in_its_turn(folder, command):
    names = [*NOTHING, "missing"]
    result = tfwire_main(command, names[0], "a-0", *names[1:], "b[1]")
    assert 1 == result.returncode
    lines = result.stderr.decode().splitlines()
    assert complaints(command, names) == [line for line in lines if line.startswith("tfwire")]
    assert tfwire_main(command, "a-0", "b[1]").stdout.splitlines()[1] in result.stdout


def test_a_name_without_files_is_in_json_as_a_missing_file_is():
    names = [*NOTHING, "missing"]
    result = tfwire_main("verify", "--json", "a-0", *names, "--same-as", "d-*", "a-0")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert (1, b"") == (result.returncode, result.stderr)
    assert ["a-0", *names, "d-*", "a-0"] == [each["path"] for each in found]
    assert [False, *[True] * 6, False] == ["error" in each for each in found]


@pytest.mark.parametrize("command", ["schema", "split", "merge", "shuffle", "convert", "view"])
def test_what_needs_all_files_names_the_first_without_any(command):
    more = ["-o", "out.jsonl"] if command in ("convert", "merge", "shuffle") else []
    more = ["-o", "out-{shard}", "--shards", "2"] if command == "split" else more
    for name in NOTHING:
        result = tfwire_main(command, "a-0", name, *more)
        assert (1, b"") == (result.returncode, result.stdout)
        assert complaints(command, [name]) == result.stderr.decode().splitlines()


def test_what_takes_one_file_speaks_as_a_command():
    for words in (["bench"], ["repair", "out"]):
        for name, found in {"a-folder": "a folder", "a-?": "a-?, which names 3"}.items():
            result = tfwire_main(words[0], name, *words[1:])
            assert (1, b"") == (result.returncode, result.stdout)
            line = result.stderr.decode()
            assert f"FILE must be one file, found {found}" in line
            assert "(" not in line


def test_objects_that_match(objects):
    status, found = counts("memory://bucket/a-*")
    assert (0, [f"memory:///bucket/a-{i}" for i in range(3)]) == (status, list(found))
    result = tfwire_main("verify", "memory://bucket/a-*", "--same-as", "a-*")
    assert (0, b"") == (result.returncode, result.stderr)


def test_objects_of_a_half_published_set_are_told_once(objects):
    steps = [["draft", f"a-{i}", [1], None] for i in (0, 1)]
    fsspec.filesystem("memory").pipe(f"/bucket/{MARKER}", json.dumps(steps).encode())
    for command in ("verify", "count", "cat", "info"):
        result = tfwire_main(command, "memory://bucket/a-*")
        assert 1 == result.returncode
        assert 1 == result.stderr.count(b"belongs to a set of shards")
        assert b"memory:///bucket/a-0: belongs" in result.stderr
        assert b"" != result.stdout
    assert 0 == tfwire_main("count", "memory://bucket/a-2").returncode
    result = tfwire_main("split", "memory://bucket/a-*", "-o", "b-{shard}", "--shards", "2")
    assert (1, b"") == (result.returncode, result.stdout)
    assert b"memory:///bucket/a-0: belongs" in result.stderr


def test_no_object_matches(objects):
    result = tfwire_main("verify", "memory://bucket/c-*")
    assert (1, b"") == (result.returncode, result.stdout)
    assert b"memory://bucket/c-*: no object matches the pattern" in result.stderr
