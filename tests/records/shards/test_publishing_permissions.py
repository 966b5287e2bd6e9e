"""Names, owners and permissions of files that replace others."""

from __future__ import annotations

import os
import stat
import threading

import pytest

import tfwire as tfw
from helpers.records.replacing import (
    LEFTOVER,
    NEW,
    OLD,
    SINGLE,
    files_in,
    hidden,
    records_in,
    repair,
    save_index,
    save_text_index,
    write_atomically,
    write_set,
)
from helpers.reference import file_of
from helpers.users import only_root

pytestmark = pytest.mark.posix("Windows has other permissions")


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


@only_root
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
