"""Files that replace others: killed or failing at system calls, they are wholly old or new."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
import warnings

import pytest

import faults
import tfwire as tfw
from command import tfwire_command
from reference import file_of, read
from tfwire._records.markers import MARKER
from tfwire.sharding import recover_shards

OLD, NEW = [b"old"] * 3, [b"new"] * 5
LEFTOVER = ".tfwire-"  # how names begin that a killed process may leave


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(LEFTOVER)]


# ---- One file ---------------------------------------------------------------------------------


def write_atomically(folder):
    with tfw.TFRecordWriter(folder / "data", atomic=True) as writer:
        writer.write_many(NEW)


def write_gzip_atomically(folder):
    with tfw.TFRecordWriter(folder / "data", "GZIP", atomic=True) as writer:
        writer.write_many(NEW)


def save_index(folder):
    tfw.RecordIndex.build(folder / "records").save(folder / "data")


def save_text_index(folder):
    tfw.RecordIndex.build(folder / "records").write_text(folder / "data")


def repair(folder):
    tfw.repair_file(folder / "records", folder / "data", overwrite=True)


def write_schema(folder):
    tfw.write_schema({"a": tfw.FixedLenFeature([], tfw.int64)}, folder / "data")


SINGLE = [
    write_atomically,
    write_gzip_atomically,
    save_index,
    save_text_index,
    repair,
    write_schema,
]


@pytest.mark.parametrize("action", faults.ACTIONS)
@pytest.mark.parametrize("write", SINGLE)
@pytest.mark.parametrize("old", [b"old content", None])
def test_a_file_that_is_replaced_is_old_or_new_at_every_instant(tmp_path, write, action, old):
    path = tmp_path / "data"
    tfw.write_records(tmp_path / "records", NEW)
    write(tmp_path)
    new = path.read_bytes()
    ended = set()
    for n, status in faults.every(lambda: write(tmp_path), action):
        ended.add(status)
        found = path.read_bytes() if path.exists() else None
        assert found in (old, new) or n == 1, n
        assert found == new or status != faults.DONE
        if status == faults.RAISED:
            assert [] == hidden(tmp_path)
        assert {"data", "records"} >= {
            name for name in os.listdir(tmp_path) if not name.startswith(LEFTOVER)
        }
        for name in hidden(tmp_path):
            os.unlink(tmp_path / name)
        path.unlink(missing_ok=True)
        if old is not None:
            path.write_bytes(old)
    assert new == path.read_bytes()
    assert ended & {faults.KILLED, faults.RAISED}


# ---- A set of files ---------------------------------------------------------------------------

PATTERN = "p-{shard}-of-{shards}"


def write_set(folder, records, num_shards=3):
    with tfw.ShardedWriter(folder / PATTERN, num_shards=num_shards, index=True) as writer:
        writer.write_many(records)


def files_in(folder):
    return {
        name: (folder / name).read_bytes()
        for name in os.listdir(folder)
        if not name.startswith(LEFTOVER) and name != MARKER
    }


def records_in(files):
    """The records of all shards, without the indexes, which hold times."""
    return {name: read(data).records for name, data in files.items() if "tfwindex" not in name}


@pytest.fixture(params=["over another set", "over some of its files", "in an empty folder"])
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


# Of so many system calls one is hit; TFWIRE_FAULT_STRIDE=1 takes every one, in minutes.
SLOW_STRIDE = int(os.environ.get("TFWIRE_FAULT_STRIDE", "3"))


@pytest.mark.parametrize("stride", [pytest.param(SLOW_STRIDE, marks=pytest.mark.slow), 9])
@pytest.mark.parametrize(
    ("action", "forever"),
    [*((action, False) for action in faults.ACTIONS), (faults.fail, True), (faults.fill, True)],
)
def test_a_set_is_old_or_new_or_marked_at_every_instant(folder, action, forever, stride):
    """A kill shows what everybody sees at that instant. Unmarked it is the old set or the new one;
    a marked one becomes the old one, and the next writer finds nothing in its way."""
    folder, restore = folder
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


def parse_files(paths):
    parser = tfw.Parser({"a": tfw.FixedLenFeature([], tfw.string)})
    return [value for batch in parser.parse_file(paths, 2) for value in batch["a"]]


def records_by_number(paths):
    with tfw.TFRecordFiles(paths) as files:
        return list(files)


READERS = {
    "read_records": lambda paths: list(tfw.read_records(paths)),
    "one by one": lambda paths: [record for p in paths for record in tfw.read_records(p)],
    "files": records_by_number,
    "file by file": lambda paths: [record for p in paths for record in tfw.TFRecordFile(p)],
    "dataset": lambda paths: list(tfw.TFRecordDataset(paths)),
    "in turn": lambda paths: list(tfw.TFRecordDataset(paths, num_parallel_reads=9)),
    "indexed": lambda paths: list(tfw.TFRecordDataset(paths, indexed=True)),
    "shuffled": lambda paths: sorted(tfw.TFRecordDataset(paths).shuffle(9, seed=1)),
    "parse_file": parse_files,
    "threads": lambda paths: list(tfw.TFRecordDataset(paths).prefetch(1)),
}


def files_of(pattern):
    return sorted(map(str, pattern.parent.glob(pattern.name)))


def read_with_warnings(reader, paths):
    """What a reader gives, and its warnings of sets that are half published."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = reader(paths)
    assert {tfw.TfwireWarning} >= {each.category for each in caught}
    return found, [str(each.message) for each in caught]


@pytest.mark.parametrize("stride", [pytest.param(SLOW_STRIDE, marks=pytest.mark.slow), 9])
@pytest.mark.parametrize("action", [faults.kill, faults.kill_after])
def test_a_reader_sees_the_old_set_or_the_new_one_or_warns(folder, action, stride):
    folder, restore = folder
    old, new = ([tfw.encode_example({"a": a}) for a in records] for records in (OLD, NEW))
    pattern = folder / "p-?-of-?"
    names = set(restore())
    write_set(folder, old)
    for name in set(os.listdir(folder)) - names:
        (folder / name).unlink()
    before = files_in(folder)
    wanted = {name: [sorted(reader(files_of(pattern)))] for name, reader in READERS.items()}
    write_set(folder, new)
    for name, reader in READERS.items():
        wanted[name].append(sorted(reader(files_of(pattern))))
    seen = set()
    for n, _ in faults.every(lambda: write_set(folder, new), action, stride=stride):
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


@pytest.mark.parametrize("name", READERS.keys() - {"parse_file"})
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


def marker_of_another_folder(path):
    path.write_text(json.dumps([["x", "../p-0-of-2", 1, None]]))


def huge_marker(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


MARKERS = {
    "a pipe": (os.mkfifo, False),
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
    for _ in faults.every(lambda: write_set(tmp_path, NEW), faults.kill, stride=5):
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
    for n, _ in faults.every(lambda: write_set(tmp_path, NEW), faults.kill_after, stride=3):
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
    for _ in faults.every(lambda: write_set(tmp_path, NEW), faults.kill, stride=6):
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_marker_of_another_user_is_not_obeyed(tmp_path):
    (tmp_path / MARKER).write_bytes(b"")
    os.chown(tmp_path / MARKER, 12345, 12345)
    with pytest.raises(PermissionError, match="user 12345"):
        tfw.ShardedWriter(tmp_path / PATTERN, num_shards=2)


# ---- Names and permissions --------------------------------------------------------------------


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o640
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("write", SINGLE)
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, write, mode, umask):
    tfw.write_records(tmp_path / "records", NEW)
    (tmp_path / "data").write_bytes(b"old")
    (tmp_path / "data").chmod(mode)
    write(tmp_path)
    assert mode == mode_of(tmp_path / "data")
    assert b"old" != (tmp_path / "data").read_bytes()


@pytest.mark.parametrize("write", SINGLE)
def test_a_new_file_gets_permissions_by_the_umask(tmp_path, write, umask):
    tfw.write_records(tmp_path / "records", NEW)
    write(tmp_path)
    assert umask == mode_of(tmp_path / "data")


@pytest.mark.parametrize("write", [save_index, save_text_index, repair])
def test_what_is_made_of_a_private_file_is_private(tmp_path, write):
    tfw.write_records(tmp_path / "records", NEW)
    (tmp_path / "records").chmod(0o600)
    write(tmp_path)
    assert 0o600 == mode_of(tmp_path / "data")


def test_shards_keep_the_permissions_of_those_they_replace(tmp_path, umask):
    write_set(tmp_path, OLD)
    assert {umask} == {mode_of(path) for path in tmp_path.iterdir()}
    modes = [0o600, 0o664, 0o444]
    for i, mode in enumerate(modes):
        (tmp_path / f"p-{i}-of-3").chmod(mode)
        (tmp_path / f"p-{i}-of-3.tfwindex").chmod(0o600)
    write_set(tmp_path, NEW)
    assert modes == [mode_of(tmp_path / f"p-{i}-of-3") for i in range(3)]
    assert {0o600} == {mode_of(path) for path in tmp_path.glob("*.tfwindex")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("write", SINGLE)
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path, write):
    tfw.write_records(tmp_path / "records", NEW)
    (tmp_path / "data").write_bytes(b"old")
    os.chown(tmp_path / "data", 12345, 54321)
    write(tmp_path)
    status = (tmp_path / "data").stat()
    assert (12345, 54321) == (status.st_uid, status.st_gid)


def test_where_the_group_cannot_be_kept_its_rights_are_not_given_to_another(tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_bytes(b"old")
    path.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    else:
        pytest.skip("only root can give files away")

    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    write_atomically(tmp_path)
    assert 0o644 == mode_of(path)


def test_a_temporary_file_is_private_and_its_name_is_not_that_of_a_link(tmp_path, monkeypatch):
    """Whoever may guess the name cannot have us write somewhere else."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("secrets.token_hex", lambda size: "guessed")
    (tmp_path / ".tfwire-guessed.tmp").symlink_to(victim)
    for begin in (
        lambda: tfw.TFRecordWriter(tmp_path / "a", atomic=True),
        lambda: tfw.ShardedWriter(tmp_path / "{shard}", num_shards=1),
    ):
        with pytest.raises(FileExistsError):
            begin()
    monkeypatch.undo()
    with tfw.TFRecordWriter(tmp_path / "a", atomic=True) as writer:
        writer.write(b"secret")
        writer.flush()
        (temporary,) = set(hidden(tmp_path)) - {".tfwire-guessed.tmp"}
        assert 0o600 == mode_of(tmp_path / temporary)
    assert b"precious" == victim.read_bytes()


def test_a_shard_that_became_a_link_is_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    writer = tfw.ShardedWriter(tmp_path / "{shard}", num_shards=1)
    (temporary,) = hidden(tmp_path)
    os.unlink(tmp_path / temporary)
    (tmp_path / temporary).symlink_to(victim)
    writer.write(b"x")
    with pytest.raises(OSError, match="symbolic links") as raised:
        writer.close()
    assert str(tmp_path / "0") == raised.value.filename
    assert b"precious" == victim.read_bytes()


def test_a_shard_that_became_another_name_of_a_file_is_not_written_to(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    victim.chmod(0o640)
    for step in ("write", "close", "publish"):
        folder = tmp_path / step
        folder.mkdir()
        writer = tfw.ShardedWriter(folder / "{shard}", num_shards=1)
        if step == "close":
            writer.write(b"x")
        (temporary,) = hidden(folder)
        replaced = threading.Event()

        def put_a_link(temporary=folder / temporary, replaced=replaced):
            os.unlink(temporary)
            os.link(victim, temporary)
            replaced.set()

        if step == "publish":
            sync = writer._sinks[0].close
            writer._sinks[0].close = lambda sync=sync, put=put_a_link: (sync(), put())
        else:
            put_a_link()
        use = (lambda w=writer: w.write(bytes(2**20))) if step == "write" else writer.close
        with pytest.raises(OSError, match="has another name") as raised:
            use()
        writer._discard()
        assert replaced.is_set()
        assert str(folder / "0") == raised.value.filename
        assert b"precious" == victim.read_bytes()
        assert 0o640 == mode_of(victim)


def write_shards(folder):
    write_set(folder, NEW)


@pytest.mark.parametrize("write", [*SINGLE, write_shards])
def test_nobody_reads_what_is_to_be_private_while_it_is_written(tmp_path, write, monkeypatch):
    """Also not by opening the file in the instant when its permissions are not set yet."""
    tfw.write_records(tmp_path / "records", NEW)
    before = os.open
    peeking = []

    def opened(path, *arguments, **options):
        fd = before(path, *arguments, **options)
        if os.path.basename(path).startswith(LEFTOVER) and os.fstat(fd).st_mode & 0o077:
            peeking.append(before(path, os.O_RDONLY))
        return fd

    monkeypatch.setattr(os, "open", opened)
    umask = os.umask(0o022)
    try:
        write(tmp_path)
    finally:
        os.umask(umask)
    assert {b""} == {os.pread(fd, 1, 0) for fd in peeking}
    for fd in peeking:
        os.close(fd)


@pytest.mark.parametrize("name", ["a.tmp", ".tfwire-0.tmp", "{shard}.tmp.tmp", ".index.tmp"])
def test_folders_may_have_the_names_of_temporary_files(tmp_path, name):
    (tmp_path / name).mkdir()
    write_set(tmp_path / name, NEW)
    assert {f"p-{i}-of-3": NEW[i::3] for i in range(3)} == records_in(files_in(tmp_path / name))
    assert [] == hidden(tmp_path / name)


@pytest.mark.parametrize("write", SINGLE)
def test_the_longest_name_can_be_replaced(tmp_path, write, monkeypatch):
    tfw.write_records(tmp_path / "records", NEW)
    monkeypatch.setattr(type(tmp_path), "__truediv__", _long_data(type(tmp_path).__truediv__))
    write(tmp_path)
    assert {255} == {len(name) for name in os.listdir(tmp_path) if name != "records"}


def _long_data(join):
    return lambda folder, name: join(folder, "x" * 255 if name == "data" else name)


def test_the_longest_names_of_shards(tmp_path):
    name = "{shard}" + "x" * (254 - len(".tfwindex"))
    with tfw.ShardedWriter(tmp_path / name, num_shards=2, index=True) as writer:
        writer.write_many(NEW)
    assert 255 == max(map(len, os.listdir(tmp_path)))
    with pytest.raises(OSError, match="too long"):
        tfw.ShardedWriter(tmp_path / f"{name}x", num_shards=2, index=True)
    with pytest.raises(OSError, match="too long"):
        tfw.ShardedWriter(tmp_path / ("{shard}" + "x" * 255), shard_size=100)


def test_another_working_directory_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with tfw.ShardedWriter("{shard}", shard_size=30, index=True) as writer:
        writer.write_many(NEW)
        os.chdir("elsewhere")
        writer.write_many(NEW)
    with tfw.TFRecordWriter("a", atomic=True) as one:
        os.chdir("..")
        one.write_many(NEW)
    assert file_of(NEW) == (tmp_path / "elsewhere" / "a").read_bytes()
    assert ["a"] == os.listdir(tmp_path / "elsewhere")
    assert [str(i) for i in range(10)] == writer.paths
    assert [b"new"] == list(tfw.read_records(writer.paths[9]))


# ---- The command ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["verify", "info", "count", "cat", "head"])
def test_commands_report_a_half_published_set(half, command):
    result = tfwire_command(command, "another", cwd=half)
    assert (0, "") == (result.returncode, result.stderr)
    result = tfwire_command(command, "p-0-of-2", "p-1-of-2", cwd=half)
    assert 1 == result.returncode
    assert 1 == result.stderr.count(HALF)
    assert f"tfwire {command}: p-0-of-2: {HALF}" in result.stderr
    assert "recover_shards('.')" in result.stderr
    assert result.stdout


@pytest.mark.parametrize("command", ["split --shards=3", "merge", "shuffle --shards=3"])
def test_no_set_is_made_of_a_half_published_one(half, command):
    (half / "new").mkdir()
    output = "new/file" if command == "merge" else f"new/{PATTERN}"
    words = [*command.split(), "p-0-of-2", "p-1-of-2", "-o", output]
    result = tfwire_command(*words, cwd=half)
    assert (1, "", 1) == (result.returncode, result.stdout, result.stderr.count(HALF))
    assert [] == os.listdir(half / "new")
