"""Records by number in gzip files, by rapidgzip from the middle: as without it."""

import os
import signal
import sys

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import output_of_python
from tfwire._records.files import seekable_gzip
from tfwire._records.index import local_records

COUNT = 1500


@pytest.fixture(autouse=True)
def far(monkeypatch):
    """Little content is passed over to find a record."""
    monkeypatch.setattr(local_records, "_FAR", 1 << 16)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("gzip") / "records.gz"
    with tfw.TFRecordWriter(path, "GZIP") as writer:
        for length in rng.integers(0, 3000, COUNT):
            writer.write(rng.bytes(int(length)))
    assert path.stat().st_size > 2 * seekable_gzip._LEAST_BYTES
    return path


@pytest.fixture(scope="module")
def records(path):
    return list(tfw.read_records(path))


def test_records_in_any_order(path, records):
    numbers = np.random.default_rng(2).integers(0, COUNT, 100)
    with tfw.TFRecordFile(path) as file:
        assert [records[number] for number in numbers] == [file[number] for number in numbers]
        assert file._kept._content is not None
        assert [records[number] for number in numbers] == file[numbers]
        first, second = iter(file), iter(file)  # which have positions of their own
        assert records[:50] == [next(first) for _ in range(50)]
        assert records == list(second)


def test_an_exact_shuffle(path, records):
    dataset = tfw.TFRecordDataset(str(path), indexed=True).shuffle(COUNT, seed=1)
    assert sorted(records) == sorted(dataset)


def cut(content):
    return content[: len(content) * 2 // 3]


def without_footer(content):
    return content[:-4]


def flipped(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]


def with_other_checksum(content):
    return content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]


@pytest.mark.parametrize("damage", [cut, without_footer, flipped, with_other_checksum])
def test_damage_is_reported_as_without_it(path, records, tmp_path, monkeypatch, damage):
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(path.read_bytes())
    index = tfw.RecordIndex.build(damaged)
    damaged.write_bytes(damage(path.read_bytes()))
    index.size, index.mtime_ns = damaged.stat().st_size, damaged.stat().st_mtime_ns
    monkeypatch.setattr("tfwire._records.index.random_access.check_index", lambda *_: False)

    def outcomes():
        with tfw.TFRecordFile(damaged, index) as file:
            for number in (COUNT - 1, 10, COUNT // 2, COUNT * 3 // 4, COUNT - 1, 0):
                try:
                    yield file[number] == records[number]
                except tfw.DataLossError as error:
                    yield str(error)

    found = list(outcomes())
    monkeypatch.setattr(seekable_gzip, "_rapidgzip", None)
    assert list(outcomes()) == found
    assert damage not in (cut, flipped) or any(isinstance(outcome, str) for outcome in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_reads_by_itself(path, records):
    with tfw.TFRecordFile(path) as file:
        assert records[COUNT - 1] == file[COUNT - 1]
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            os._exit(7 if file[COUNT - 1] == records[COUNT - 1] else 8)
        assert 7 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert records[COUNT // 2] == file[COUNT // 2]


PROGRAM = """
import os, sys
import tfwire as tfw
from tfwire._records.index import local_records
local_records._FAR = 1 << 16
file = tfw.TFRecordFile(sys.argv[1])
file[-1]
assert file._kept._content is not None
if sys.argv[2] == "fork":
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
    else:
        file[-2]
if sys.argv[2] == "drop":
    del file
print("done", flush=True)
"""


@pytest.mark.parametrize("end", ["exit", "drop", "fork"])
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_the_interpreter_ends(path, end):
    assert output_of_python("-c", PROGRAM, path, end).startswith("done\n")
