"""Writing several files that appear together."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import pickle
import random
import resource
import subprocess
import sys
import threading
import tracemalloc
import warnings

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from command import ENVIRONMENT
from tfwire._records.index import RecordIndex
from tfwire._records.markers import MARKER
from tfwire._records.random_access import TFRecordFiles
from tfwire._records.shard_set import some_names_of_shards
from tfwire._records.sharded_writer import ShardedWriter
from tfwire.sharding import recommend_num_shards, recover_shards

RECORDS = [bytes([i]) * (i * 7 % 50) for i in range(60)]
PATTERN = "train-{shard:05d}-of-{shards:05d}.tfrecord"


def contents(writer):
    return [list(tfw.read_records(path)) for path in writer.paths]


def test_records_are_dealt_round_robin(tmp_path):
    with ShardedWriter(tmp_path / PATTERN, num_shards=7) as writer:
        assert 60 == writer.write_many(RECORDS)
    assert [RECORDS[i::7] for i in range(7)] == contents(writer)
    expected = [str(tmp_path / f"train-{i:05d}-of-00007.tfrecord") for i in range(7)]
    assert expected == writer.paths
    assert sorted(expected) == sorted(str(path) for path in tmp_path.iterdir())


def test_round_robin_goes_on_from_call_to_call(tmp_path):
    with ShardedWriter(tmp_path / PATTERN, num_shards=4) as writer:
        writer.write(RECORDS[0])
        writer.write_many(RECORDS[1:10])
        writer.write_many([])
        writer.write_many(iter(RECORDS[10:13]))
        for record in RECORDS[13:]:
            writer.write(record)
        assert 60 == writer.num_records
    assert [RECORDS[i::4] for i in range(4)] == contents(writer)


def filled_in_turn(records, size):
    """What files of a size should hold."""
    files, filled = [[]], 0
    for record in records:
        if filled and filled + len(record) + 16 > size:
            files.append([])
            filled = 0
        files[-1].append(record)
        filled += len(record) + 16
    return files


@given(
    lengths=st.lists(st.integers(0, 60), max_size=40),
    size=st.integers(1, 300),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    threads=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_files_are_filled_in_turn(lengths, size, cuts, threads, tmp_path_factory):
    """However the records arrive, whatever their sizes, and by however many threads."""
    folder = tmp_path_factory.mktemp("data")
    records = [bytes([i]) * length for i, length in enumerate(lengths)]
    with ShardedWriter(folder / PATTERN, shard_size=size, num_threads=threads) as writer:
        bounds = [0, *sorted(cuts), len(records)]
        for begin, end in itertools.pairwise(bounds):
            writer.write_many(records[begin:end])
    assert filled_in_turn(records, size) == contents(writer)
    assert sorted(os.listdir(folder)) == sorted(map(os.path.basename, writer.paths))


def test_without_records_there_is_one_file_or_as_many_as_asked_for(tmp_path):
    with ShardedWriter(tmp_path / "a{shard}", shard_size=100) as one:
        pass
    with ShardedWriter(tmp_path / "b{shard}", num_shards=3) as three:
        pass
    assert [[]] == contents(one)
    assert [[], [], []] == contents(three)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_files_may_be_compressed_and_indexed(tmp_path, compression):
    with ShardedWriter(
        tmp_path / PATTERN, num_shards=3, options=compression, compression_level=1, index=True
    ) as writer:
        writer.write_many(RECORDS)
    indexes = [RecordIndex.load(path) for path in writer.paths]
    assert [compression] * 3 == [index.compression for index in indexes]
    assert RECORDS[1::3] == contents(writer)[1]


def test_indexes_belong_to_the_files_written(tmp_path):
    with ShardedWriter(tmp_path / PATTERN, shard_size=300, index=True) as writer:
        writer.write_many(RECORDS)
    assert len(writer.paths) * 2 == len(os.listdir(tmp_path))
    for path in writer.paths:
        assert RecordIndex.build(path).offsets.tolist() == RecordIndex.load(path).offsets.tolist()
    assert RECORDS == list(TFRecordFiles(writer.paths))


def test_everything_that_a_writer_takes(tmp_path):
    with ShardedWriter(tmp_path / "{shard}", num_shards=2) as writer:
        writer.write({"a": 1})
        writer.write("text")
        writer.write(bytearray(b"bytes"))
        writer.write_columns({"a": [2, 3, 4]})
    first, second = contents(writer)
    assert [tfw.encode_example({"a": 1}), b"bytes", tfw.encode_example({"a": 3})] == first
    assert [b"text", tfw.encode_example({"a": 2}), tfw.encode_example({"a": 4})] == second


def test_records_before_a_faulty_one_are_written(tmp_path):
    with ShardedWriter(tmp_path / "{shard}", num_shards=2) as writer:
        with pytest.raises(TypeError, match="found int"):
            writer.write_many([b"a", b"b", b"c", 4, b"e"])
        writer.write(b"d")
    assert [[b"a", b"c"], [b"b", b"d"]] == contents(writer)


def test_threads_lose_and_double_nothing(tmp_path):
    with ShardedWriter(tmp_path / "{shard}", shard_size=2000) as writer:
        parts = [[f"{i} {k}".encode() for k in range(300)] for i in range(4)]
        threads = [threading.Thread(target=writer.write_many, args=[part]) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [record for file in contents(writer) for record in file]
    assert sorted(itertools.chain.from_iterable(parts)) == sorted(found)


# ---- Failure -----------------------------------------------------------------------------------


def write_until_an_exception(folder):
    with ShardedWriter(folder / PATTERN, shard_size=100, index=True) as writer:
        writer.write_many(RECORDS)
        assert [] == [name for name in os.listdir(folder) if name.startswith("train")]
        raise RuntimeError("of the user")


def test_nothing_appears_before_close_and_nothing_stays_after_an_exception(tmp_path):
    (tmp_path / "old").write_bytes(b"")
    with pytest.raises(RuntimeError, match="of the user"):
        write_until_an_exception(tmp_path)
    assert ["old"] == os.listdir(tmp_path)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_full_disk_leaves_no_files(tmp_path, threads):
    """A limit of the size of a file stands in for the disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, num_threads=threads)
        writer.write_many([bytes(500)] * 20)
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("counts", [{"num_shards": 5}, {"shard_size": 100_000}])
@pytest.mark.parametrize("threads", [2, 3, 9])
def test_threads_change_nothing_in_the_files(tmp_path, counts, threads):
    """Nor is a thread left when they are closed."""
    records = [os.urandom(i * 37 % 5000) for i in range(300)]
    before = threading.active_count()
    files = []
    for count in (1, threads):
        folder = tmp_path / str(count)
        folder.mkdir()
        with ShardedWriter(
            folder / PATTERN, **counts, options="GZIP", index=True, num_threads=count
        ) as writer:
            for begin in range(0, 300, 7):
                writer.write_many(records[begin : begin + 7])
        assert before == threading.active_count()
        files.append({path.name: path.read_bytes() for path in folder.glob("*.tfrecord")})
        assert all(len(RecordIndex.load(path)) for path in writer.paths)
    assert files[0] == files[1]


def test_a_failure_in_a_thread_ends_the_writing(tmp_path, monkeypatch):
    """It is raised by the next call, or the one after, and by close."""

    def fail(*_):
        raise OSError(errno.ENOSPC, "no room")

    before = threading.active_count()
    writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, num_threads=2)
    monkeypatch.setattr("tfwire._records.writer.TFRecordWriter.write_many", fail)
    with pytest.raises(OSError, match="no room"):
        writer.write_many(itertools.cycle(RECORDS))
    with pytest.raises(OSError, match="no room"):
        writer.close()
    assert [] == os.listdir(tmp_path)
    assert before == threading.active_count()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("write_many", {"num_shards": 2}),
        ("write_many", {"shard_size": 3000}),
        ("close", {"shard_size": 3000}),
        ("__init__", {"shard_size": 3000}),
    ],
)
def test_what_failed_once_is_reported_by_close_too(tmp_path, monkeypatch, method, counts, threads):
    """Were the files completed, they would lack records."""
    errors = [OSError(errno.EIO, "broken")]
    real = getattr(tfw.TFRecordWriter, method)

    def fail_once(*args, **options):
        if errors:
            raise errors.pop()
        return real(*args, **options)

    writer = ShardedWriter(tmp_path / PATTERN, **counts, num_threads=threads)
    monkeypatch.setattr(tfw.TFRecordWriter, method, fail_once)
    for _ in range(3):
        with contextlib.suppress(OSError):
            writer.write_many([bytes(500)] * 20)
    with pytest.raises(OSError, match="broken"):
        writer.close()
    assert writer.paths is None
    assert [] == os.listdir(tmp_path)


def test_a_folder_that_cannot_be_synced_leaves_no_files(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "not on disk")

    writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, index=True)
    monkeypatch.setattr("tfwire._records.shard_set.sync_folder", fail)
    with pytest.raises(OSError, match="not on disk"):
        writer.close()
    assert [] == os.listdir(tmp_path)


def test_a_name_that_cannot_be_taken_leaves_no_files(tmp_path):
    taken = tmp_path / "b1"
    taken.mkdir()
    writer = ShardedWriter(tmp_path / "b{shard}", num_shards=3, index=True)
    writer.write_many(RECORDS)
    with pytest.raises(IsADirectoryError):
        writer.close()
    assert ["b1"] == os.listdir(tmp_path)


def test_a_pipe_or_device_is_not_replaced(tmp_path):
    """A user with the permission, root say, would lose /dev/null."""
    pipe = tmp_path / "b1"
    os.mkfifo(pipe)
    writer = ShardedWriter(tmp_path / "b{shard}", num_shards=3, index=True)
    writer.write_many(RECORDS)
    with pytest.raises(FileExistsError, match=r"cannot be replaced.*b1"):
        writer.close()
    with pytest.raises(FileExistsError, match=r"cannot be replaced.*b1"):
        tfw.TFRecordWriter(pipe, atomic=True)
    assert pipe.is_fifo()
    assert ["b1"] == os.listdir(tmp_path)


@contextlib.contextmanager
def few_files(spare):
    """Lets the process open so many more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_there_may_be_more_shards_than_files_that_a_process_may_open(tmp_path, options):
    with (
        few_files(8),
        ShardedWriter(tmp_path / "{shard}", num_shards=100, options=options, index=True) as writer,
    ):
        writer.write_many([b"%d" % i for i in range(1000)])
    assert [[b"%d" % k for k in range(i, 1000, 100)] for i in range(100)] == contents(writer)
    assert 200 == len(os.listdir(tmp_path))


def test_a_file_that_cannot_be_opened_leaves_no_others(tmp_path, monkeypatch):
    opened, really_open = [], os.open

    def fail_at_the_tenth(path, *arguments, **options):
        opened.append(path)
        if len(opened) == 10:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", fail_at_the_tenth)
    with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        ShardedWriter(tmp_path / "{shard}", num_shards=20)
    assert [] == os.listdir(tmp_path)


def test_an_error_for_want_of_descriptors_names_the_files_and_not_the_marker(tmp_path):
    failed = set()
    for spare in range(2):
        writer = ShardedWriter(tmp_path / "b-{shard}", num_shards=2, index=True)
        for name, use in {
            "a-0": lambda: ShardedWriter(tmp_path / "a-{shard}", num_shards=2)._discard(),
            "a-{shard}": lambda: ShardedWriter(tmp_path / "a-{shard}", shard_size=9)._discard(),
            "b-0": writer.close,
            "": lambda: recover_shards(tmp_path),
        }.items():
            try:
                with few_files(spare):
                    use()
            except OSError as error:
                failed.add((name, spare, error.errno, error.filename))
            assert not (tmp_path / MARKER).exists()
    wanted = [("a-0", 0), ("a-{shard}", 0), ("b-0", 0), ("b-0", 1), ("", 0)]
    assert {(name, spare, errno.EMFILE, str(tmp_path / name)) for name, spare in wanted} == failed


def test_a_writer_that_is_forgotten_warns_and_leaves_nothing(tmp_path):
    writer = ShardedWriter(tmp_path / "{shard}", num_shards=2)
    with pytest.warns(ResourceWarning, match="was not closed"):
        del writer
    assert [] == os.listdir(tmp_path)


def test_a_closed_writer_takes_no_records(tmp_path):
    writer = ShardedWriter(tmp_path / "{shard}", num_shards=2)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(writer)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_disturbs_nothing(tmp_path, threads):
    with ShardedWriter(tmp_path / "{shard}", shard_size=200, num_threads=threads) as writer:
        writer.write_many(RECORDS[:30])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            pid = os.fork()
        if pid == 0:
            try:
                writer.write(b"child")
            except RuntimeError:
                writer.close()
                writer.__del__()
                os._exit(0)
            os._exit(1)
        assert (pid, 0) == os.waitpid(pid, 0)
        writer.write_many(RECORDS[30:])
    assert filled_in_turn(RECORDS, 200) == contents(writer)


# ---- Arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "expected"),
    [("150MB", 150_000_000), ("1.5 kb", 1500), ("2KiB", 2048), ("100", 100), ("7B", 7), (5, 5)],
)
def test_sizes_have_units(tmp_path, size, expected):
    records = [bytes(84)] * 30  # 100 bytes each
    with ShardedWriter(tmp_path / "{shard}", shard_size=size) as writer:
        writer.write_many(records)
    assert filled_in_turn(records, expected) == contents(writer)


@pytest.mark.parametrize("size", ["", "MB", "15 parsecs", "-1", 0, "0.5B", "1e3"])
def test_sizes_that_are_none_are_refused(tmp_path, size):
    with pytest.raises(ValueError, match="size"):
        ShardedWriter(tmp_path / "{shard}", shard_size=size)
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["data", "{shards}", "{other}", "{}", "{shard", "{shard:x"])
def test_patterns_that_tell_no_files_apart_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="shard"):
        ShardedWriter(tmp_path / name, num_shards=2)


def test_urls_are_refused_before_anything_is_written():
    with pytest.raises(ValueError, match="renaming"):
        ShardedWriter("memory://folder/{shard}", num_shards=2)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        ShardedWriter(tmp_path / "nowhere" / "{shard}", num_shards=2)
    assert str(tmp_path / "nowhere") == raised.value.filename


def test_one_file_needs_no_pattern_and_folders_may_have_braces(tmp_path):
    folder = tmp_path / "{shard}"
    folder.mkdir()
    with ShardedWriter(os.fsencode(folder / "data"), num_shards=1) as writer:
        writer.write(b"x")
    assert [str(folder / "data")] == writer.paths


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"num_shards": 2, "shard_size": 10},
        {"num_shards": 0},
        {"num_shards": 1, "num_threads": 0},
    ],
)
def test_shards_must_be_told_in_one_way(tmp_path, counts):
    with pytest.raises(ValueError, match=r"num_(shards|threads)"):
        ShardedWriter(tmp_path / "{shard}", **counts)


# ---- How many ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "hosts", "expected"),
    [
        (1_000_000_000, 1, 10),  # 100 MB each
        (2_000_000_000, 1, 10),  # 200 MB each
        (2_000_000_001, 1, 11),
        (10_000_000_000, 1, 50),
        (10_000_000_000, 3, 51),  # a multiple of the hosts
        (400_000_000, 4, 40),  # 10 MB each
    ],
)
def test_files_per_host_and_size_agree_with_the_rule(total, hosts, expected):
    assert expected == recommend_num_shards(total, hosts)


@pytest.mark.parametrize(
    ("total", "hosts", "expected"),
    [(399_999_999, 4, 36), (99_999_999, 1, 9), (5_000_000, 1, 1), (0, 1, 1), (30_000_000, 8, 3)],
)
def test_small_files_are_warned_of(total, hosts, expected):
    with pytest.warns(UserWarning, match="less than 10 MB"):
        assert expected == recommend_num_shards(total, hosts)


def test_files_are_never_smaller_than_need_be():
    generator = random.Random(1)
    for _ in range(2000):
        total, hosts = generator.randrange(1, 10**12), generator.randrange(1, 200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = recommend_num_shards(total, hosts)
        assert count == 1 or total >= 10_000_000 * count
        assert count % hosts == 0 or count < hosts


@pytest.mark.parametrize("arguments", [(-1, 1), (1, 0)])
def test_impossible_datasets_are_refused(arguments):
    with pytest.raises(ValueError, match=r"(total_bytes|num_hosts) must be at least"):
        recommend_num_shards(*arguments)


@pytest.mark.parametrize("name", ["{shard:1>2}", "{shard:a>2x}", "{shards}", "a"])
def test_a_pattern_that_would_give_two_files_one_name_is_refused_before_the_work(tmp_path, name):
    with pytest.raises(ValueError, match="to tell one file from another"):
        ShardedWriter(tmp_path / name, shard_size=10)


@pytest.mark.parametrize("name", ["{shard:0999999999}", "{shard:0999}" * 9999], ids=["one", "many"])
@pytest.mark.parametrize("count", [{"num_shards": 2}, {"num_shards": 10**15}, {"shard_size": 10}])
def test_checking_a_pattern_takes_little_memory(tmp_path, name, count):
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, OSError), match=r"pattern|too long"):
            ShardedWriter(tmp_path / name, **count)
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()
    assert [] == os.listdir(tmp_path)


def test_the_names_that_are_checked_stand_for_all():
    """Patterns with fields of all kinds: names agree among all files where they do among some."""
    fills = ["", *(digit + way for digit in "0123456789abcdefABCDEF+-_, " for way in "<>^=")]
    specs = itertools.product(fills, ["", "#"], "2359", "bdoxX")
    for spec in random.Random(1).sample(list(specs), 200):
        pattern = f"{{shard:{''.join(spec)}}}"
        names = {pattern.format(shard=i) for i in range(4500)}
        try:
            some_names_of_shards(pattern, 4500)
            checked = True
        except ValueError:
            checked = False
        assert checked == (len(names) == 4500), pattern


def test_a_name_that_would_become_too_long_is_refused_before_the_work(tmp_path):
    with pytest.raises(OSError, match="name too long"):
        ShardedWriter(tmp_path / ("x" * 253 + "{shard}"), shard_size=10)
    ShardedWriter(tmp_path / ("x" * 249 + "{shard}"), shard_size=10).close()
    assert ["x" * 249 + "0"] == os.listdir(tmp_path)


def test_the_message_names_the_field(tmp_path):
    with pytest.raises(ValueError, match=r"expected fields .*, found {shard!r:x}"):
        ShardedWriter(tmp_path / "{shard:d}{shard!r:x}", num_shards=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("{shard:>5}", "    1"),
        ("{shard:0>5}", "00001"),
        ("{shard:_}", "1"),
        ("{shard:#x}-{shards:o}", "0x1-2"),
        ("{{{shard}}}", "{1}"),
        ("{shard:\N{BULLET}^3d}", "\N{BULLET}1\N{BULLET}"),
    ],
)
def test_formats_of_integers(tmp_path, name, expected):
    with ShardedWriter(tmp_path / name, num_shards=2) as writer:
        writer.write(b"x")
    assert os.path.basename(writer.paths[1]) == expected


@pytest.mark.parametrize("size", ["9" * 400 + "TB", "9" * 30, 1 << 63])
def test_a_size_fits_into_64_bits(tmp_path, size):
    with pytest.raises(ValueError, match="64 bits") as caught:
        ShardedWriter(tmp_path / "{shard}", shard_size=size)
    assert len(str(caught.value)) < 200


_FEW_DESCRIPTORS = """
import contextlib, json, os, resource, sys
from tfwire.sharding import ShardedWriter
left, index, counts = json.loads(sys.argv[1])

def write(writer):
    with writer:
        writer.write_many([b"x", b"y", b"z"])

write(ShardedWriter("first-{shard}", index=index, **counts))  # imports all that is needed
writer = ShardedWriter("p-{shard}-of-{shards}", index=index, **counts)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
with contextlib.suppress(OSError):
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
for _ in range(left):
    os.close(taken.pop())
try:
    write(writer)
except OSError as error:
    os.close(taken.pop())
    print(json.dumps([str(error), os.fspath(error.filename)]))
"""


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize(
    ("counts", "expected"), [({"num_shards": 2}, "p-0-of-2"), ({"shard_size": 9}, "p-{shard}-of-")]
)
def test_errors_name_the_file_and_not_its_temporary_name(tmp_path, counts, expected, index, left):
    """In a process of its own: what other tests left open may be closed at any time."""
    command = [sys.executable, "-c", _FEW_DESCRIPTORS, json.dumps([left, index, counts])]
    done = subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, timeout=60
    )
    assert (0, "") == (done.returncode, done.stderr)
    message, filename = json.loads(done.stdout)
    assert "Too many open files" in message
    assert ".tmp" not in message
    if left == 0:
        assert filename.startswith(expected)


def test_the_folder_is_the_one_that_the_system_finds(tmp_path, monkeypatch):
    """Also of "link/..", which is not the current directory."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    os.symlink("../there/deep", "link")
    with ShardedWriter("link/../a-{shard}", num_shards=1) as writer:
        writer.write(b"cat")
    assert ["link/../a-0"] == writer.paths
    assert [b"cat"] == list(tfw.read_records(writer.paths))
    assert ["link"] == os.listdir()
    os.close(os.open(f"link/../{MARKER}", os.O_CREAT))
    assert [] == recover_shards("link/..")
    assert ["a-0", "deep"] == sorted(os.listdir(tmp_path / "there"))
