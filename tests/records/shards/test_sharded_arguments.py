"""The arguments of a ShardedWriter: patterns, sizes and numbers of files."""

from __future__ import annotations

import itertools
import os
import random
import tracemalloc
import warnings

import pytest

import tfwire as tfw
from helpers.records.writing import filled_in_turn
from tfwire._records.reading.publishing_markers import MARKER
from tfwire._records.shards.shard_files import some_names_of_shards
from tfwire._records.shards.sharded_writer import ShardedWriter
from tfwire.sharding import recommend_num_shards, recover_shards

pytestmark = pytest.mark.outside_c


def contents(writer):
    return [list(tfw.read_records(path)) for path in writer.paths]


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
    for spec in random.Random(1).sample(list(specs), 70):
        pattern = f"{{shard:{''.join(spec)}}}"
        names = {pattern.format(shard=i) for i in range(4500)}
        try:
            some_names_of_shards(pattern, 4500)
            checked = True
        except ValueError:
            checked = False
        assert checked == (len(names) == 4500), pattern


@pytest.mark.posix("its names are longer than Windows takes")
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


@pytest.mark.posix("it makes a link")
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
