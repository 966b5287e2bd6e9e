"""Which files an argument names: the same for all that read files, locally and by URLs."""

import inspect
import io
import operator
import os
import socket
from contextlib import closing, suppress
from pathlib import Path

import fsspec
import numpy as np
import pytest

import tfwire as tfw
from helpers.reference import frame
from tfwire.arrow import open_reader

# Beside the records, as Spark, Hadoop, TFDS and we ourselves leave it there.
BESIDE = ["_SUCCESS", "_committed_17", ".part-0.crc", "part-0.crc", "part-0.tfwindex"]
BESIDE += ["features.json", "label.labels.txt", ".tfwire-1/part-7", "_temporary/0/part-8"]
FILES = ["part-0", "part-1", "part-10", "_late.tfrecord", "x@2", "y[1]", "y1"]
FILES += [f"set-{i:05}-of-00003" for i in range(3)] + ["deep/part-9"]
FILES += ["set-00003-of-00003", "set-abcde-of-00003"]  # of no set
BRACKETS = [f"{stem}-{i:05}-of-00002" for stem in ("[x]/p", "a[1]") for i in range(2)]
FILES += BRACKETS
TOP = sorted(name for name in FILES if "/" not in name)
SET = [f"set-{i:05}-of-00003" for i in range(3)]

# What is asked for, in the folder of these files, and what that is.
ASKED = {
    "part-0": ["part-0"],
    "part-*": ["part-0", "part-1", "part-10"],
    "part-?": ["part-0", "part-1"],
    "*": TOP,
    "": TOP,
    "deep": ["deep/part-9"],
    "deep/": ["deep/part-9"],
    "**": sorted(FILES),
    "*/part-*": ["deep/part-9"],
    "set@3": SET,
    "s*@3": SET,
    "x@2": ["x@2"],
    "[x]": BRACKETS[:2],
    "[x]/p*": BRACKETS[:2],
    "[x]/p@2": BRACKETS[:2],
    "[x]/*@2": BRACKETS[:2],
    "a[1]@2": BRACKETS[2:],
    "y[1]": ["y[1]"],
    "y[12]": ["y1"],
    "*.json": ["features.json"],
    "_*": ["_SUCCESS", "_committed_17", "_late.tfrecord"],
    "*.tfwindex": ["part-0.tfwindex"],
}
MISSING = {
    "none-*": "no (file|object) matches the pattern",
    "none@2": r"no (file|object) matches the pattern .*none-\?{5}-of-00002",
    "empty": "no file of records is in the folder, but 1 file that lies beside .*'_SUCCESS'",
    "q.*": "matches the pattern, but 2 files that lie beside records, as 'q.crc'",
    "nested": r"but 1 folder: the pattern .*nested/\*\* takes",
    "part@3": "2 of 3 shards missing, the first .*part-00001-of-00003",
}
WRONG = ["nested/a=1/part-0", "part-00000-of-00003", "empty/_SUCCESS", "q.json", "q.crc"]


@pytest.fixture(scope="module", params=["local", "memory"])
def place(request, tmp_path_factory):
    """A folder of all these files, each with its name in a record; on disk, or of URLs."""
    is_local = request.param == "local"
    fs = fsspec.filesystem("file" if is_local else "memory")
    root = str(tmp_path_factory.mktemp("files")) if is_local else "/find_files"
    for name in [f"all/{n}" for n in FILES + BESIDE] + [f"wrong/{n}" for n in WRONG]:
        fs.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
        fs.pipe_file(
            f"{root}/{name}", frame(tfw.encode_example({"name": name.removeprefix("all/")}))
        )
    yield root if is_local else f"memory:/{root}"
    fs.rm(root, recursive=True)


def names(records):
    return [tfw.decode_example(record)["name"][0].decode() for record in records]


@pytest.mark.parametrize("asked", ASKED)
def test_names_patterns_folders_and_sets(place, asked):
    assert ASKED[asked] == names(tfw.read_records(f"{place}/all/{asked}"))


def test_a_folder_is_no_missing_shard(tmp_path):
    (tmp_path / "part-00000-of-00002").write_bytes(b"")
    (tmp_path / "part-00001-of-00002").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"1 of 2 shards missing or no files, the first .*part-00001"
    ):
        tfw.read_records(tmp_path / "part@2")


@pytest.mark.parametrize("asked", MISSING)
def test_nothing_is_an_error_that_shows_what_was_asked(place, asked):
    path = f"{place}/wrong/{asked}"
    for find in (tfw.read_records, tfw.TFRecordFiles, tfw.TFRecordDataset, tfw.infer_schema):
        with pytest.raises(FileNotFoundError, match=MISSING[asked]) as caught:
            find(path)
        assert path == caught.value.filename


NAME = tfw.Parser({"name": tfw.FixedLenFeature([], tfw.string)})
MANY = {
    "read_records": lambda paths: names(tfw.read_records(paths)),
    "TFRecordFiles": lambda paths: names(tfw.TFRecordFiles(paths)),
    "TFRecordDataset": lambda paths: names(tfw.TFRecordDataset(paths)),
    "TFRecordDataset, indexed": lambda paths: names(tfw.TFRecordDataset(paths, indexed=True)),
    "Parser.parse_file": lambda paths: [
        row["name"].item().decode() for row in NAME.parse_file(paths, batch_size=1)
    ],
    "verify_files": lambda paths: [r.path for r in tfw.verify_files(paths, num_threads=2)],
    "RecordIndex.build_many": lambda paths: [i.path for i in tfw.RecordIndex.build_many(paths)],
    "arrow.open_reader": lambda paths: open_reader(paths, {}).paths,
}
# What these give is made of what one of the others has found.
DERIVED = {"infer_schema", "arrow.read_table", "tensorboard.scalars"}


def test_no_function_is_forgotten():
    """Of those that take several files: by the names of their arguments."""
    found = {"Parser.parse_file"}
    for module in (tfw, tfw.arrow, tfw.tensorboard):
        for name in module.__all__:
            value = getattr(module, name)
            methods = vars(value) if isinstance(value, type) else ()
            for dotted in (name, *(f"{name}.{each}" for each in methods if each[0] != "_")):
                called = operator.attrgetter(dotted)(module)
                with suppress(TypeError, ValueError):
                    if {"paths", "filenames"} & inspect.signature(called).parameters.keys():
                        found.add(f"{module.__name__}.{dotted}".removeprefix("tfwire."))
    found.discard("arrow.ArrowReader")
    assert found == {name.split(",")[0] for name in MANY} | DERIVED


@pytest.mark.parametrize("read", MANY)
def test_all_that_reads_takes_all_of_it(place, read):
    root = f"{place}/all"
    part = ["part-0", "part-1", "part-10"]
    several = [f"{root}/deep", f"{root}/part-*", f"{root}/y[1]"]
    if "://" in root:  # of several, a folder has a slash: nothing is asked of its filesystem
        several[0] += "/"
    for paths, expected in (
        (f"{root}/part-*", part),
        (several, ["deep/part-9", *part, "y[1]"]),
        (tuple(several), ["deep/part-9", *part, "y[1]"]),
        (np.array(several), ["deep/part-9", *part, "y[1]"]),
        (iter([f"{root}/set@3"]), SET),
        ([f"{root}/part-0", f"{root}/part-0.tfwindex"], ["part-0"]),
    ):
        assert expected == [str(name).split("/all/")[-1] for name in MANY[read](paths)]


def test_loops_of_links_are_no_folders_below(tmp_path, monkeypatch):
    """Of ``**``; a link that is named is followed."""
    monkeypatch.chdir(tmp_path)
    for name in ("a/b/part", "part", ".hidden/part"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        tfw.write_records(name, [name.encode()])
    for link in ("a/loop", "a/b/again"):
        (tmp_path / link).symlink_to("..", target_is_directory=True)
    both = [b"a/b/part", b"part"]
    for asked in ("**", "**/part", "./**", "**/**/p*", str(tmp_path / "**"), "a/loop/**"):
        assert both == list(tfw.read_records(asked))
    for asked in (
        "a/**",
        "a/**/b/*",
        "*/**/part",
        f"file://{tmp_path}/a/**",
        f"file://{tmp_path}/a/b/",
    ):
        assert both[:1] == list(tfw.read_records(asked))


def test_fifos_and_sockets_are_no_files_of_folders_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    tfw.write_records("folder/a", [b"a"])
    os.mkfifo("folder/fifo")
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind("folder/socket")
    for root in ("folder", f"file://{tmp_path}/folder"):
        for asked in ("/", "/*", "/**"):
            assert [b"a"] == list(tfw.read_records(root + asked))
    Path("folder/link").symlink_to("nothing")
    with pytest.raises(FileNotFoundError, match="folder/link"):
        list(tfw.read_records("folder"))


def test_a_schema_is_that_of_all_files(place):
    assert 3 == tfw.infer_schema(f"{place}/all/part-*").num_records


def test_paths_of_other_kinds(tmp_path):
    for name in ("a", "b"):
        tfw.write_records(tmp_path / name, [name.encode()])
    both = [tmp_path / "a", bytes(tmp_path / "b")]
    for paths in (tmp_path, bytes(tmp_path), tmp_path / "?", both):
        assert [b"a", b"b"] == list(tfw.read_records(paths))
    assert [b"a", b"b"] == list(tfw.read_records([tmp_path / "[a]", io.BytesIO(frame(b"b"))]))
    assert [tmp_path / "a"] == tfw.TFRecordFiles(tmp_path / "a").paths


@pytest.mark.parametrize("empty", [[], (), np.array([])], ids=["list", "tuple", "array"])
def test_an_empty_list_is_a_warning(empty):
    for name, read in MANY.items():
        with pytest.warns(tfw.TfwireWarning, match=r"(paths|filenames) is empty"):
            assert [] == list(read(empty)), name


ONE = {
    "TFRecordFile": (lambda path: list(tfw.TFRecordFile(path)), r"TFRecordFiles\(paths\)"),
    "RecordIndex.build": (tfw.RecordIndex.build, r"RecordIndex.build_many\(paths\)"),
    "verify_file": (tfw.verify_file, r"verify_files\(paths\)"),
    "follow_records": (lambda path: tfw.follow_records(path, timeout=0), r"read_records\(paths\)"),
}


@pytest.mark.parametrize("name", ONE)
def test_what_takes_one_file_names_what_takes_several(place, name):
    read, instead = ONE[name]
    for asked in ("part-*", "set@3"):
        with pytest.raises(ValueError, match=f"path must be one file, found .* 3; use {instead}"):
            read(f"{place}/all/{asked}")
    for asked in ("",) if "://" in place else ("", "deep"):  # of URLs, opening it says so
        folder = f"{place}/all/{asked}"
        with pytest.raises((IsADirectoryError, ValueError), match=f"a folder|use {instead}"):
            read(folder)
    for asked in ("part-1", "part-1?", "y[1]"):
        read(f"{place}/all/{asked}")
    with pytest.raises(FileNotFoundError, match="matches the pattern"):
        read(f"{place}/all/none-*")


def test_the_files_are_those_of_the_beginning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "bc":
        tfw.write_records(name, [name.encode()])
    records, dataset = tfw.read_records("?"), tfw.TFRecordDataset("?")
    iterator = iter(dataset)
    assert b"b" == next(records) == next(iterator)
    for name in "ad":
        tfw.write_records(name, [name.encode()])
    assert [b"c"] == list(records) == list(iterator)
    assert [b"b", b"c"] == list(dataset)
    assert [b"a", b"b", b"c", b"d"] == list(tfw.TFRecordDataset(Path("?")))
