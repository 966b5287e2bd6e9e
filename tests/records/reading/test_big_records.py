"""Records above 2 and 4 GiB, where system calls read less than they are asked for and numbers no
longer fit 32 bits. The payloads are holes of sparse files, which take no room on a disk."""

from __future__ import annotations

import zlib

import pytest

import tfwire as tfw
import tfwire.compat as tf
from helpers.command import tfwire_command, tfwire_process
from helpers.records.sparse import append_sparse, is_zeros
from helpers.reference import frame
from tfwire._records.index.random_access import TFRecordFile
from tfwire._records.index.record_index import RecordIndex

pytestmark = pytest.mark.unsanitized("records of gigabytes")

# The first is long enough for those after it to be read by themselves.
SMALL = [b"small" * 10_000, b"another"]
ABOVE_2_GIB = 2**31 + 3
ABOVE_4_GIB = 2**32 + 5


def sparse_file(path, size: int):
    """A small record, a big one, a small one."""
    tfw.write_records(path, SMALL[:1])
    append_sparse(path, size)
    with path.open("ab") as file:
        file.write(frame(SMALL[1]))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return sparse_file(tmp_path_factory.mktemp("big") / "data", ABOVE_2_GIB)


def check_random_access(path, size):
    index = RecordIndex.build(path)
    index.save()
    assert [50_000, size, 7] == index.lengths.tolist()
    with TFRecordFile(path) as file:
        assert is_zeros(file[1], size)
        assert SMALL == file[[0, 2]]
        assert index == file.index


def test_the_neighbours_of_a_record_above_2_gib_are_read_by_number(path):
    with TFRecordFile(path) as file:
        assert [50_000, ABOVE_2_GIB, 7] == file.index.lengths.tolist()
        assert SMALL == file[[0, 2]]


@pytest.mark.slow
def test_a_record_above_2_gib_is_read_by_number(path):
    check_random_access(path, ABOVE_2_GIB)


@pytest.mark.slow
def test_a_record_above_2_gib_is_intact(path):
    report = tfw.verify_file(path)
    assert (3, True, ABOVE_2_GIB) == (report.num_records, report.intact, report.longest)
    limited = tfw.verify_file(path, max_record_size=2**31)
    assert ["too large"] == [region.reason for region in limited.skipped]


@pytest.mark.slow
def test_big_records_are_read_one_after_the_other(tmp_path):
    size = ABOVE_4_GIB
    path = sparse_file(tmp_path / "data", size)
    records = tfw.read_records(path, max_record_size=None)
    assert [SMALL[0], True, SMALL[1]] == [is_zeros(r, size) or r for r in records]
    with pytest.raises(tfw.DataLossError, match="above the limit") as caught:
        list(tfw.read_records(path))
    assert (1, "too large") == (caught.value.record_index, caught.value.reason)


@pytest.mark.slow
def test_the_compat_layer_has_no_limit_as_tensorflow(tmp_path):
    size = (1 << 30) + 1
    path = str(sparse_file(tmp_path / "data", size))
    readers = {
        "dataset": tf.data.TFRecordDataset(path).as_numpy_iterator(),
        "iterator": tf.compat.v1.io.tf_record_iterator(path),
    }
    for records in readers.values():
        assert [SMALL[0], True, SMALL[1]] == [is_zeros(r, size) or r for r in records]


@pytest.mark.slow
def test_a_big_record_after_short_ones_is_read(tmp_path):
    """Through the window of the reader, and then straight."""
    path = tmp_path / "data"
    tfw.write_records(path, SMALL[1:])
    append_sparse(path, ABOVE_2_GIB)
    append_sparse(path, ABOVE_2_GIB)
    records = tfw.read_records(path, max_record_size=None)
    found = []
    for record in records:
        found.append(is_zeros(record, ABOVE_2_GIB) or record)
        del record  # before the next one takes memory
    assert [SMALL[1], True, True] == found


@pytest.mark.slow
def test_a_record_above_4_gib_is_read_by_number_and_verified(tmp_path):
    path = sparse_file(tmp_path / "data", ABOVE_4_GIB)
    check_random_access(path, ABOVE_4_GIB)
    with TFRecordFile(path) as file:
        found = [is_zeros(record, ABOVE_4_GIB) or record for record in file]
    assert [SMALL[0], True, SMALL[1]] == found
    report = tfw.verify_file(path, file_crc32c=True, receipt=True)
    assert (3, True, ABOVE_4_GIB) == (report.num_records, report.intact, report.longest)
    assert ABOVE_4_GIB + 50_007 == report.receipt.payload_bytes


@pytest.mark.slow
def test_a_big_record_is_repaired_and_followed(tmp_path):
    path = sparse_file(tmp_path / "data", ABOVE_2_GIB)
    with path.open("ab") as file:
        file.write(b"torn")
    report = tfw.repair_file(path, tmp_path / "repaired")
    assert (3, 1) == (report.num_records, report.skipped.num_regions)
    assert tfw.verify_file(tmp_path / "repaired").intact
    followed = tfw.follow_records(path, max_record_size=None, timeout=0)
    assert [SMALL[0], True, SMALL[1]] == [is_zeros(r, ABOVE_2_GIB) or r for r in followed]


@pytest.mark.slow
def test_damage_in_a_big_record_costs_that_record(tmp_path):
    path = sparse_file(tmp_path / "data", ABOVE_2_GIB)
    with path.open("r+b") as file:
        file.seek(2**31)
        file.write(b"\1")
    report = tfw.verify_file(path)
    assert 2 == report.num_records
    assert [(1, "data crc")] == [(r.record_index, r.reason) for r in report.skipped]
    with TFRecordFile(path) as file, pytest.raises(tfw.DataLossError, match="checksum"):
        file[1]
    with pytest.warns(UserWarning, match="left out"):
        assert SMALL == list(tfw.read_records(path, max_record_size=None, on_corrupt="skip"))


@pytest.mark.slow
def test_damage_beyond_4_gib_costs_what_it_hits(tmp_path):
    """A byte of a big record, and one of the length of a small record after it."""
    path = tmp_path / "data"
    tfw.write_records(path, SMALL[:1])
    append_sparse(path, ABOVE_2_GIB)
    begin = path.stat().st_size
    append_sparse(path, ABOVE_2_GIB)
    end = path.stat().st_size
    small = frame(SMALL[1])
    with path.open("r+b") as file:
        file.seek(2**32 + 7)
        file.write(b"\1")
        file.seek(end)
        file.write(small + small[:3] + b"?" + small[4:] + small)
    regions = [(begin, end, 2, "data crc")]
    regions += [(end + len(small), end + 2 * len(small), 4, "length crc")]

    def found(lost):
        return [(each.begin, each.end, each.record_index, each.reason) for each in lost]

    report = tfw.verify_file(path)
    assert (4, regions) == (report.num_records, found(report.skipped))
    repaired = tmp_path / "repaired"
    report = tfw.repair_file(path, repaired)
    assert (4, regions) == (report.num_records, found(report.skipped))
    assert begin + 2 * len(small) == repaired.stat().st_size
    assert tfw.verify_file(repaired).intact
    repaired.unlink()
    records = tfw.read_records(path, max_record_size=None, on_corrupt="skip")
    with pytest.warns(UserWarning, match="left out 2 damaged"):
        left = [is_zeros(record, ABOVE_2_GIB) or record for record in records]
    assert [SMALL[0], True, SMALL[1], SMALL[1]] == left
    assert regions == found(records.skipped)


@pytest.mark.slow
@pytest.mark.parametrize("wbits", [15, 31])
def test_a_big_record_of_a_compressed_file_is_read(tmp_path, wbits):
    plain, path = sparse_file(tmp_path / "plain", ABOVE_2_GIB), tmp_path / "data"
    deflate = zlib.compressobj(1, wbits=wbits)
    with plain.open("rb") as source, path.open("wb") as file:
        while piece := source.read(1 << 24):
            file.write(deflate.compress(piece))
        file.write(deflate.flush())
    found = [len(record) for record in tfw.read_records(path, max_record_size=None)]
    assert [50_000, ABOVE_2_GIB, 7] == found
    assert found == RecordIndex.build(path).lengths.tolist()
    assert tfw.verify_file(path).intact


@pytest.mark.slow
def test_an_example_above_2_gib_is_parsed(tmp_path):
    """A feature of bytes, the zeros at its end."""
    zeros, head = ABOVE_2_GIB, b""
    for before in (b"\x0a", b"\x0a", b"\x0a\x01k\x12", b"\x0a", b"\x0a"):
        length = len(head) + zeros
        head = before + bytes(length >> 7 * i & 127 | 128 * (i < 4) for i in range(5)) + head
    path = tmp_path / "data"
    append_sparse(path, len(head) + zeros, head)
    [record] = tfw.read_records(path, max_record_size=None)
    parsed = tfw.parse_single_example(record, {"k": tfw.FixedLenFeature([], tfw.string)})
    value = parsed["k"]
    assert is_zeros(value if isinstance(value, bytes) else value.item(), zeros)


# ---- The command ------------------------------------------------------------------------------


def test_head_takes_no_big_record_for_damage(path):
    found = tfwire_command("head", "-n", "1", path)
    assert (0, "") == (found.returncode, found.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["cat", "split"])
def test_the_command_takes_records_of_any_length(tmp_path, command):
    """As long as verify says that they are intact."""
    path, out = sparse_file(tmp_path / "data", 2**30 + 1), tmp_path / "out"
    if command == "cat":
        with out.open("wb") as file:
            options = {"capture_output": False, "stdout": file}
            found = tfwire_process("cat", "--format", "raw", path, **options)
    else:
        found = tfwire_process("split", path, "--shards", "1", "-o", out)
    assert 0 == found.returncode
    size = path.stat().st_size
    assert out.stat().st_size == (size - 3 * 16 if command == "cat" else size)
