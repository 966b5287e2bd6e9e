"""Files that replace others: killed or failing at system calls, they are wholly old or new."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import warnings

import pytest

import tfwire as tfw
from helpers.command import tfwire_main
from helpers.processes import faults
from helpers.products import diagonals
from helpers.records.published_readers import READERS, files_of, read_with_warnings
from helpers.records.replacing import (
    LEFTOVER,
    NEW,
    OLD,
    PATTERN,
    SINGLE,
    files_in,
    hidden,
    kills,
    records_in,
    write_set,
)
from helpers.users import only_root
from tfwire._records.reading.publishing_markers import MARKER, Markers
from tfwire.sharding import recover_shards

# ---- One file -----------------------------------------------------------------------------------

# Of so many system calls one is hit by day; by night each of a single file, and of a set each
# third. TFWIRE_FAULT_STRIDE=1 takes each of a set too, in minutes.
SLOW_STRIDE = int(os.environ.get("TFWIRE_FAULT_STRIDE", "3"))


def strides(day, night=SLOW_STRIDE):
    return pytest.mark.parametrize("stride", [day, pytest.param(night, marks=pytest.mark.slow)])


ACTIONS = [*faults.ACTIONS, faults.interrupt, faults.interrupt_after]
OF_ONE_FILE = diagonals(0, 2, SINGLE, ACTIONS, [b"old content", None])


@strides(9, night=1)
@pytest.mark.parametrize(("write", "action", "old"), OF_ONE_FILE)
def test_a_file_that_is_replaced_is_old_or_new_at_every_instant(
    tmp_path, write, action, old, stride
):
    path = tmp_path / "data"
    tfw.write_records(tmp_path / "records", NEW)
    write(tmp_path)
    new = path.read_bytes()
    ended = set()
    for n, status in faults.every(lambda: write(tmp_path), action, stride=stride):
        ended.add(status)
        found = path.read_bytes() if path.exists() else None
        assert found in (old, new) or n == 1, n
        assert found == new or status != faults.DONE
        if status == faults.RAISED:
            assert [] == hidden(tmp_path)
        names = {name for name in os.listdir(tmp_path) if not name.startswith(LEFTOVER)}
        assert names <= {"data", "records"}
        for name in hidden(tmp_path):
            os.unlink(tmp_path / name)
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)
    assert new == path.read_bytes()
    assert ended & {faults.KILLED, faults.RAISED}


# ---- A set of files -----------------------------------------------------------------------------


FOLDERS = ["over another set", "over some of its files", "in an empty folder"]


def in_folders(name, values):
    """Each value in one of the folders by day, in all by night."""
    rows = diagonals(0, 3, values, FOLDERS)
    return pytest.mark.parametrize((name, "folder"), rows, indirect=["folder"])


@pytest.fixture
def folder(request, tmp_path):
    """Where a set is to be published, as a function that gives it back as it was."""
    write_set(tmp_path, OLD)
    before = files_in(tmp_path)
    if request.param == "over some of its files":
        before = dict(sorted(before.items())[2:5])
    if request.param == "in an empty folder":
        before = {}

    def restore():
        for name in os.listdir(tmp_path):
            (tmp_path / name).unlink()
        for name, data in before.items():
            (tmp_path / name).write_bytes(data)
        return before

    restore()
    return tmp_path, restore


@strides(18)
@in_folders(
    "fault",
    [*((action, False) for action in faults.ACTIONS), (faults.fail, True), (faults.fill, True)],
)
def test_a_set_is_old_or_new_or_marked_at_every_instant(folder, fault, stride):
    """A kill shows what everybody sees at that instant. Unmarked it is the old set or the new one;
    a marked one becomes the old one, and the next writer finds nothing in its way."""
    (folder, restore), (action, forever) = folder, fault
    wanted = {f"p-{i}-of-3": NEW[i::3] for i in range(3)}
    marked = 0
    before = restore()
    for n, status in faults.every(lambda: write_set(folder, NEW), action, forever, stride):
        if os.path.exists(folder / MARKER):
            marked += 1
            interrupted = recover_shards(folder)
            assert not interrupted or before == files_in(folder), n
        found = files_in(folder)
        if status == faults.DONE or found != before:
            assert wanted == records_in(found), n
            assert all(tfw.RecordIndex.load(folder / name).path for name in wanted)
        if status == faults.RAISED and not forever:
            assert before == found, n
            assert [] == hidden(folder), n
        assert not os.path.exists(folder / MARKER)
        if n % 5 == 0:
            write_set(folder, NEW)
            assert wanted == records_in(files_in(folder))
        restore()
    assert marked or stride > 1 or "kill" not in action.__name__


INTERRUPTS = [faults.interrupt, faults.interrupt_after]
PAIRS = [
    (first, second)
    for first in (faults.fail, *INTERRUPTS)
    for second in (faults.kill, faults.kill_halfway, faults.fail, faults.interrupt_after)
]


@pytest.mark.parametrize("tries", [4, pytest.param(150, marks=pytest.mark.slow)])
@in_folders("pair", PAIRS)
def test_a_second_fault_finds_the_set_old_or_new_or_marked(folder, pair, tries):
    """What a failure begins to undo, a kill or another failure may stop at any call."""
    (folder, restore), (first, second) = folder, pair
    wanted = {f"p-{i}-of-3": NEW[i::3] for i in range(3)}
    before = restore()
    for _ in range(tries):
        n, gap = random.randint(1, 300), random.randint(1, 60)
        faults.run(lambda: write_set(folder, NEW), n, faults.two(first, second, gap), True)
        with contextlib.suppress(OSError):
            recover_shards(folder)
        found = files_in(folder)
        assert found == before or records_in(found) == wanted, (n, gap)
        assert not os.path.exists(folder / MARKER), (n, gap)
        restore()


def test_a_marker_is_written_again_before_a_complete_set_is_undone(tmp_path, monkeypatch):
    """The set is complete, but the disk does not take it; nor can all of it be undone."""
    write_set(tmp_path, OLD)
    before = files_in(tmp_path)
    truncate, replace, made = os.ftruncate, os.replace, []

    def replace_once(*arguments):
        if made:
            raise OSError("the disk is broken")
        made.append(arguments)
        replace(*arguments)

    def fail_from_now_on(fd, size):
        truncate(fd, size)
        monkeypatch.setattr(os, "replace", replace_once)
        raise OSError("the disk is broken")

    monkeypatch.setattr(os, "ftruncate", fail_from_now_on)
    with pytest.raises(OSError, match="broken"):
        write_set(tmp_path, NEW)
    monkeypatch.undo()
    assert made
    assert before != files_in(tmp_path)
    with pytest.warns(tfw.TfwireWarning, match="half published"):
        list(tfw.read_records(tmp_path / "p-0-of-3"))
    assert recover_shards(tmp_path)
    assert before == files_in(tmp_path)


@in_folders("action", [faults.kill, faults.kill_after, faults.fail, *INTERRUPTS])
def test_a_recovery_that_is_stopped_is_done_again(folder, action):
    folder, restore = folder
    before = restore()
    stopped = 0
    for n, _ in kills(folder, 11):
        left = {path: path.stat().st_size for path in folder.glob(MARKER)}
        if any(left.values()):
            for m in (1, 5, 9, random.randrange(10, 40)):
                faults.run(lambda: recover_shards(folder), m, action)
                stopped += any(folder.glob(MARKER))
            recover_shards(folder)
            assert before == files_in(folder), n
        restore()
    assert stopped


@strides(9)
@in_folders("action", [faults.kill, faults.kill_after])
def test_a_reader_sees_the_old_set_or_the_new_one_or_warns(folder, action, stride):
    folder, restore = folder
    old, new = ([tfw.encode_example({"a": a}) for a in records] for records in (OLD, NEW))
    pattern = folder / "p-?-of-?"
    names = set(restore())
    write_set(folder, old)
    for name in set(os.listdir(folder)) - names:
        (folder / name).unlink()
    before = files_in(folder)
    wanted = {name: [] for name in READERS}
    for records in old, new:
        if records is new:
            write_set(folder, new)
        for name, reader in READERS.items():
            wanted[name].append(sorted(read_with_warnings(reader, files_of(pattern))[0]))
    seen = set()
    for n, _ in kills(folder, stride, action, new):
        for name, reader in READERS.items():
            found, problems = read_with_warnings(reader, files_of(pattern))
            assert problems or sorted(found) in wanted[name], (n, name)
            assert all("recover_shards" in problem for problem in problems)
            seen.add("warned" if problems else wanted[name].index(sorted(found)))
        for path in folder.iterdir():
            path.unlink()
        for name, data in before.items():
            (folder / name).write_bytes(data)
    assert {0, "warned"} <= seen


HALF = "belongs to a set of shards that is half published"


@pytest.fixture
def half(tmp_path):
    """Two sets in a folder of which one is half published."""
    write_set(tmp_path, OLD, 2)
    tfw.write_records(tmp_path / "another", OLD)
    steps = [[f".tfwire-{i}.tmp", f"p-{i}-of-2", 1, None] for i in range(2)]
    (tmp_path / MARKER).write_text(json.dumps(steps))
    return tmp_path


@pytest.mark.parametrize("name", sorted(READERS.keys() - {"parse_file"}))
def test_a_half_published_set_is_said_once_and_only_of_its_files(half, name, monkeypatch):
    reader = READERS[name]
    paths = [half / "another", half / "p-0-of-2", half / "p-1-of-2"]
    monkeypatch.chdir(half)
    once = 2 if name in ("one by one", "file by file") else 1
    for names in (paths, [path.name for path in paths]):
        found, problems = read_with_warnings(reader, names)
        assert OLD * 2 == found
        assert once == len(problems)
        assert all(HALF in problem for problem in problems)
    assert (OLD, []) == read_with_warnings(reader, paths[:1])
    (half / MARKER).write_bytes(b"")  # all are renamed
    assert (OLD * 2, []) == read_with_warnings(reader, paths)


def test_a_half_published_set_can_be_an_error(half):
    files = files_of(half / "p-?-of-2")
    for reader in READERS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(tfw.TfwireWarning, match=HALF):
                reader(files)


def test_a_missing_file_of_a_half_published_set_is_explained(half):
    os.unlink(half / "p-0-of-2")
    with pytest.warns(tfw.TfwireWarning, match=HALF), pytest.raises(FileNotFoundError):
        list(tfw.read_records(files_of(half / "p-?-of-2") + [half / "p-0-of-2"]))


def test_a_half_published_set_is_found_by_names_with_backslashes(half, monkeypatch):
    monkeypatch.setattr(os, "sep", "\\")
    problem = Markers().find_problem(f"{half}\\p-1-of-2")
    monkeypatch.undo()
    assert HALF in problem


def marker_of_another_folder(path):
    path.write_text(json.dumps([["x", "../p-0-of-2", 1, None]]))


def huge_marker(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


MARKERS = {
    "a pipe": (lambda path: os.mkfifo(path), False),
    "a folder": (os.mkdir, False),
    "a link": (lambda path: path.symlink_to("p-0-of-2"), False),
    "another folder": (marker_of_another_folder, False),
    "no JSON": (lambda path: path.write_bytes(b"[[1, 2"), False),
    "other JSON": (lambda path: path.write_bytes(b"[5]"), False),
    "names that are none": (lambda path: path.write_bytes(b"[[1, 2, 3, 4]]"), False),
    "deep": (lambda path: path.write_bytes(b"[" * 10**5), False),
    "huge": (huge_marker, True),
}


@pytest.mark.parametrize("name", MARKERS)
def test_readers_bear_with_any_marker(half, name):
    make, warned = MARKERS[name]
    os.unlink(half / MARKER)
    make(half / MARKER)
    found, problems = read_with_warnings(READERS["read_records"], files_of(half / "p-?-of-2"))
    assert OLD == found
    assert warned == bool(problems)


def test_the_next_writer_cleans_up(tmp_path):
    write_set(tmp_path, OLD)
    before = files_in(tmp_path)
    wanted = {f"p-{i}-of-3": NEW[i::3] for i in range(3)}
    restored = 0
    for _ in kills(tmp_path, 11):
        if os.path.exists(tmp_path / MARKER):
            with tfw.ShardedWriter(tmp_path / "other-{shard}", num_shards=1) as writer:
                found = files_in(tmp_path)
                assert before == found or wanted == records_in(found)
                restored += before == found
                writer.write(b"x")
            os.unlink(tmp_path / "other-0")
            assert not os.path.exists(tmp_path / MARKER)
        for name, data in before.items():
            (tmp_path / name).write_bytes(data)
    assert restored


def test_a_folder_in_the_way_keeps_the_old_set(tmp_path):
    write_set(tmp_path, OLD, 2)
    os.unlink(tmp_path / "p-1-of-2")
    (tmp_path / "p-1-of-2").mkdir()
    before = (tmp_path / "p-0-of-2").read_bytes()
    with pytest.raises(IsADirectoryError):
        write_set(tmp_path, NEW, 2)
    assert before == (tmp_path / "p-0-of-2").read_bytes()
    assert [] == hidden(tmp_path)


def test_where_files_cannot_have_two_names_the_set_is_safe_all_the_same(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", fail)
    write_set(tmp_path, OLD)
    before = files_in(tmp_path)
    for n, _ in kills(tmp_path, 8, faults.kill_after):
        if recover_shards(tmp_path):
            assert before == files_in(tmp_path), n
        for name, data in before.items():
            (tmp_path / name).write_bytes(data)
    write_set(tmp_path, NEW)
    assert {f"p-{i}-of-3": NEW[i::3] for i in range(3)} == records_in(files_in(tmp_path))


def replace(path, data):
    path.with_name("mine").write_bytes(data)
    os.replace(path.with_name("mine"), path)


def remove_and_write(path, data):
    """The new file often gets the number of the old one."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize("write", [replace, remove_and_write])
def test_files_of_somebody_else_survive_a_recovery(tmp_path, write):
    """They were written after the kill, by a program that knows of no marker."""
    write_set(tmp_path, OLD)
    recovered = 0
    for _ in kills(tmp_path, 13):
        if os.path.exists(tmp_path / MARKER):
            write(tmp_path / "p-0-of-3", b"somebody else's")
            recovered += bool(recover_shards(tmp_path))
            assert b"somebody else's" == (tmp_path / "p-0-of-3").read_bytes()
            write_set(tmp_path, OLD)
    assert recovered


def test_a_set_that_is_being_published_is_waited_for(tmp_path):
    marker = tmp_path / MARKER
    marker.write_bytes(b"")
    done = []
    with marker.open("rb") as file:
        fcntl = pytest.importorskip("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: done.append(recover_shards(tmp_path)))
        thread.start()
        thread.join(0.2)
        assert [] == done
        marker.unlink()
    thread.join(60)
    assert [[]] == done


UNFINISHED = [b"", b"{", b"5", b'[["a"]]', b"[[1,2,3,4]]", b"\xff", b"[" * 10**5]


@pytest.mark.parametrize("text", UNFINISHED, ids=range(len(UNFINISHED)))
def test_a_marker_that_was_not_finished_means_that_nothing_was_renamed(tmp_path, text):
    (tmp_path / MARKER).write_bytes(text)
    (tmp_path / "a").write_bytes(b"kept")
    assert [] == recover_shards(tmp_path)
    assert ["a"] == os.listdir(tmp_path)


def test_a_marker_cannot_name_files_elsewhere(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    status = victim.stat()
    steps = [["x", "../victim", [status.st_ino, status.st_mtime_ns], None]]
    (folder / MARKER).write_text(json.dumps(steps))
    with pytest.raises(ValueError, match="another folder"):
        recover_shards(folder)
    assert b"precious" == victim.read_bytes()


@only_root
def test_a_marker_of_another_user_is_not_obeyed(tmp_path):
    (tmp_path / MARKER).write_bytes(b"")
    os.chown(tmp_path / MARKER, 12345, 12345)
    with pytest.raises(PermissionError, match="user 12345"):
        tfw.ShardedWriter(tmp_path / PATTERN, num_shards=2)


# ---- The command ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["verify", "info", "count", "cat", "head"])
def test_commands_report_a_half_published_set(half, command, monkeypatch):
    monkeypatch.chdir(half)
    result = tfwire_main(command, "another")
    assert (0, b"") == (result.returncode, result.stderr)
    result = tfwire_main(command, "p-0-of-2", "p-1-of-2")
    told = result.stderr.decode()
    assert 1 == result.returncode
    assert 1 == told.count(HALF)
    assert f"tfwire {command}: p-0-of-2: {HALF}" in told
    assert "recover_shards('.')" in told
    assert result.stdout


@pytest.mark.parametrize("command", ["split --shards=3", "merge", "shuffle --shards=3"])
def test_no_set_is_made_of_a_half_published_one(half, command, monkeypatch):
    monkeypatch.chdir(half)
    (half / "new").mkdir()
    output = "new/file" if command == "merge" else f"new/{PATTERN}"
    words = [*command.split(), "p-0-of-2", "p-1-of-2", "-o", output]
    result = tfwire_main(*words)
    told = result.stderr.decode()
    assert (1, b"", 1) == (result.returncode, result.stdout, told.count(HALF))
    assert [] == os.listdir(half / "new")
