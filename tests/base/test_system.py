"""What Windows does in another way, here on Linux: reading, writing, locks, files that are open."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from helpers.command import WITH_HELPERS
from helpers.paths import ROOT, TESTS
from tfwire._base import system

# Tests over the package as on Windows (helpers/processes/without_posix.py), and those of them that
# ask for what Windows does not have.
QUICK = ["writer", "index_writing", "sharded_writer"]
SLOW = [
    "append",
    "publishing",
    "index",
    "corruption",
    "parallel_writing",
    "inflate_ahead",
    "repair",
]
NOT_THERE = {
    "forks": ["test_a_forked_process", "fork"],
    "permissions and owners": ["ordinary_permissions", "marker_of_another_user"],
    "files that are open are removed or renamed by the test": [
        *("replaced_while_it_is_checked", "renamed-", "is_waited_for"),
        "old_or_new_at_every_instant and interrupt",
    ],
    "folders that are synced, which are calls that may be hit": [
        "sees_the_old_set_or_the_new_one and empty",
    ],
    "the double of open files needs a descriptor": ["for_want_of_descriptors"],
}
WITHOUT = " and ".join(f"not ({name})" for names in NOT_THERE.values() for name in names)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
    pytest.mark.outside_c,
]


@pytest.mark.parametrize("names", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)], ids=str)
def test_files_are_written_and_read_without_posix(names):
    """In one process, which takes as long to start as one file of tests to run."""
    plugins = ["-p", "helpers.processes.without_posix", "-p", "no:cacheprovider"]
    plugins += ["--hypothesis-profile=emulated"]  # a few cases of each search
    files = [str(path) for name in names for path in TESTS.rglob(f"test_{name}.py")]
    assert len(files) == len(names)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "-m", "not slow", "-k", WITHOUT, *files],
        cwd=ROOT,
        env=WITH_HELPERS,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert 0 == run.returncode, run.stdout[-5000:] + run.stderr
    assert " passed" in run.stdout.splitlines()[-1]


@pytest.fixture
def fd(tmp_path):
    found = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT | system.BINARY)
    os.write(found, bytes(range(100)))
    yield found
    os.close(found)


@pytest.mark.parametrize("read", [system.pread, system._pread])
def test_bytes_at_an_offset(fd, read):
    os.lseek(fd, 7, os.SEEK_SET)
    for offset in (0, 1, 50, 99, 100, 1000):
        for size in (0, 1, 30, 200):
            assert bytes(range(100))[offset : offset + size] == read(fd, size, offset)
    assert 7 == os.lseek(fd, 0, os.SEEK_CUR)
    with pytest.raises(OSError, match="Bad file descriptor"):
        read(-1, 5, 0)


def test_a_buffer_is_filled_as_far_as_the_file_goes(fd):
    room = bytearray(30)
    assert 30 == system.pread_into(fd, room, 10)
    assert 20 == system.pread_into(fd, memoryview(room)[:25], 80)
    assert bytes([*range(80, 100), *range(30, 40)]) == room
    assert 0 == system.pread_into(fd, bytearray(), 0)
    with pytest.raises((BufferError, TypeError, ValueError)):
        system.pread_into(fd, bytes(5), 0)


def test_one_buffer_at_a_time(fd):
    os.lseek(fd, 95, os.SEEK_SET)
    room = bytearray(10)
    assert 5 == system._readv(fd, [room])
    assert bytes([95, 96, 97, 98, 99, 0, 0, 0, 0, 0]) == room
    assert 3 == system._writev(fd, [b"abc", b"def"])
    assert b"abc" == system.pread(fd, 10, 100)


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_keeps_out_other_openings_of_the_file(fd, tmp_path, shared):
    other = os.open(tmp_path / "data", os.O_RDONLY)
    system.try_lock(fd, shared)
    with pytest.raises(BlockingIOError):
        system.try_lock(other)
    if shared:
        system.try_lock(other, shared)
    assert b"\0\1" == system.pread(other, 2, 0)  # whoever reads asks for no lock
    assert 1 == os.write(fd, b"x")
    system.unlock(fd)
    system.unlock(other)
    system.unlock(other)  # again, which is no error
    system.lock(other)
    with pytest.raises(BlockingIOError):
        system.try_lock(fd, shared)
    os.close(other)  # which unlocks it
    system.lock(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.try_lock(other)
