"""How many records damage has lost: what is said is true, of files that lost known records."""

import gzip
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.reading import write_anew
from helpers.reference import flip, frame
from tfwire._interface.damage import lost_records, total_lost

COUNT = 400
RECORDS = [random.Random(i).randbytes(50 + i * 37 % 30) for i in range(COUNT)]


@pytest.fixture
def whole(tmp_path):
    """A file, its bytes and where its records begin."""
    path = tmp_path / "file"
    tfw.write_records(path, RECORDS)
    return path, bytearray(path.read_bytes()), tfw.RecordIndex.build(path)


def found_in(path, data):
    write_anew(path, data)
    report = tfw.verify_file(path)
    return report, lost_records(report, path)


def check(report, lost, path):
    """What is said is true of a file whose records are some of RECORDS."""
    kept = list(tfw.read_records(path, on_corrupt="skip"))
    numbers = [RECORDS.index(record) for record in kept]
    missing = COUNT - len(kept)
    total = total_lost(report, lost)
    assert total.certainty != "exact" or total.num_records == missing
    assert total.certainty != "at least" or total.num_records <= missing
    before = 0
    for gap in lost:
        begin = numbers[gap.kept - 1] + 1 if gap.kept else 0
        end = COUNT if gap.is_last else numbers[gap.kept]
        assert gap.kept > before or gap is lost[0]
        assert gap.is_last == (gap.kept == len(kept))
        if gap.first_is_exact:
            assert begin == gap.first
        if gap.certainty == "exact":
            assert end - begin == gap.num_records
        elif gap.certainty == "at least":
            assert gap.num_records <= end - begin
        elif gap.certainty == "about":
            assert abs(end - begin - gap.num_records) <= 2 + 0.2 * gap.num_records
        before = gap.kept
    return missing


@st.composite
def faults(draw):
    """Places and what happens to the bytes there: a bit is flipped, or bytes are overwritten."""
    places = draw(st.lists(st.floats(0, 0.999), min_size=1, max_size=6))
    return [(place, draw(st.sampled_from([0, 0, 1, 40, 300, 3000]))) for place in places]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@settings(max_examples=60)
@given(faults())
def test_what_is_said_is_true(tmp_path_factory, some):
    path = tmp_path_factory.getbasetemp() / "faults"
    tfw.write_records(path, RECORDS)
    index, data = tfw.RecordIndex.build(path), bytearray(path.read_bytes())
    for place, size in some:
        at = int(place * len(data))
        if size:
            data[at : at + size] = b"\xa5" * len(data[at : at + size])
        else:
            data[at] ^= 4
    report, lost = found_in(path, data)
    check(report, lost, path)
    index.save()
    lost = lost_records(report, path)
    if report.num_records and report.skipped:
        assert {"exact"} == {gap.certainty for gap in lost}
        assert check(report, lost, path) == sum(gap.num_records for gap in lost)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("with_index", [False, True])
def test_bytes_that_were_removed(whole, with_index):
    """Nothing shows how many records they held, but an index does."""
    path, data, index = whole
    report, lost = found_in(path, data[:9000] + data[20_000:])
    if with_index:
        index.save()
        lost = lost_records(report, path)
    assert ["exact" if with_index else "at least"] == [gap.certainty for gap in lost]
    check(report, lost, path)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_was_cut(whole, compressed):
    path, data, index = whole
    if compressed:
        write_anew(path, gzip.compress(data))
        index = tfw.RecordIndex.build(path)
        data = path.read_bytes()
    report, lost = found_in(path, data[: len(data) // 2])
    assert lost[-1].is_last
    assert "at least" == lost[-1].certainty
    check(report, lost, path)
    index.save()
    lost = lost_records(report, path)
    assert COUNT - report.num_records == sum(gap.num_records for gap in lost)
    check(report, lost, path)


def test_zeros_at_the_end_are_no_records(whole):
    path, data, index = whole
    report, lost = found_in(path, data + bytes(4000) + b"\x10" + bytes(999))  # a bit was flipped
    assert ["zeros"] == [gap.certainty for gap in lost]
    report, lost = found_in(path, data + bytes(5000))
    assert ["zeros"] == [gap.certainty for gap in lost]
    assert "5,000 bytes after record 399 of the original are zeros" in str(lost[0])
    assert "no record is known to be lost" == str(total_lost(report, lost))
    index.save()
    (gap,) = lost_records(report, path)
    assert (0, "exact") == (gap.num_records, gap.certainty)


def test_an_index_of_another_file_says_nothing(whole):
    path, data, _ = whole
    other = path.with_name("other")
    tfw.write_records(other, [*RECORDS[:200], b"?", *RECORDS[200:]])
    tfw.RecordIndex.build(other).save(f"{path}.tfwindex")
    data[20_000] ^= 1
    _, lost = found_in(path, data)
    assert [False] == [gap.by_index for gap in lost]
    path.with_name("file.tfwindex").write_bytes(b"no index")
    assert [False] == [gap.by_index for gap in found_in(path, data)[1]]


def test_an_index_of_what_the_file_held_before_says_nothing(tmp_path):
    """Records of one size begin where those of before did."""
    path = tmp_path / "file"
    tfw.write_records(path, [b"%08d" % i for i in range(1000)])
    tfw.RecordIndex.build(path).save()
    tfw.write_records(path, [b"%08d" % i for i in range(600)])
    data = bytearray(path.read_bytes())
    data[24 * 300 + 14] ^= 1
    (gap,) = found_in(path, data)[1]
    assert (300, 1, "exact", False) == (gap.first, gap.num_records, gap.certainty, gap.by_index)


def test_words(whole):
    path, data, index = whole
    begin = index.offsets
    data[begin[10] + 20] ^= 1
    data[begin[20] + 20] ^= 1
    data[begin[21] + 20] ^= 1
    data[begin[30]] ^= 1
    data[begin[40] : begin[60]] = bytes(begin[60] - begin[40])
    data[begin[70] + 20] ^= 1
    report, lost = found_in(path, data)
    sizes = np.diff(begin)
    assert [
        f"record 10 of the original (1 record, {sizes[10]} bytes) is lost; "
        "record 11 is record 10 of the repaired file",
        f"records 20 to 21 of the original (2 records, {sizes[20:22].sum()} bytes) are lost; "
        "record 22 is record 19 of the repaired file",
        f"record 30 of the original (1 record, {sizes[30]} bytes) is lost; "
        "record 31 is record 27 of the repaired file",
        f"about {lost[3].num_records} records ({sizes[40:60].sum():,} bytes) from record 40 of the "
        "original on are lost; the next one is record 36 of the repaired file",
        f"about record {lost[4].first} of the original (1 record, {sizes[70]} bytes) is lost; "
        "the next one is record 46 of the repaired file",
    ] == list(map(str, lost))
    assert f"about {5 + lost[3].num_records} records are lost" == str(total_lost(report, lost))


def test_what_has_no_file_is_estimated_by_its_records(whole):
    path, data, index = whole
    data[index.offsets[40] : index.offsets[60]] = bytes(index.offsets[60] - index.offsets[40])
    report, _ = found_in(path, data)
    (gap,) = lost_records(report)
    assert "about" == gap.certainty
    assert 18 <= gap.num_records <= 22


@pytest.mark.parametrize("junk", [b"\x07", b"junk" * 3])
def test_bytes_that_are_too_few_for_a_record_lose_none(whole, junk):
    path, data, index = whole
    at = int(index.offsets[40])
    report, [gap] = found_in(path, data[:at] + junk + data[at:])
    assert (40, 0, "at least") == (gap.first, gap.num_records, gap.certainty)
    size = f"{len(junk)} byte" + "s" * (len(junk) > 1)
    said = f"{size} before record 40 of the original are none: no record is known to be lost"
    assert said == str(gap)
    assert COUNT == report.num_records


@settings(deadline=None)
@given(st.data())
def test_a_record_in_two_members_counts_once(tmp_path_factory, data):
    """Of members whose ends lie anywhere one has a wrong checksum: a record that it cuts is met
    twice."""
    path = tmp_path_factory.mktemp("members") / "file.gz"
    records = RECORDS[:20]
    content = b"".join(map(frame, records))
    inside = st.lists(st.integers(1, len(content) - 1), min_size=2, max_size=2, unique=True)
    first, last = sorted(data.draw(inside))
    members = [
        gzip.compress(part) for part in (content[:first], content[first:last], content[last:])
    ]
    number = data.draw(st.integers(0, 2))
    members[number] = flip(members[number], 8 * (len(members[number]) - 8))
    report, lost = found_in(path, b"".join(members))
    total = total_lost(report, lost)
    missing = len(records) - report.num_records
    assert total.certainty == "about" or total.num_records <= missing
    assert total.certainty != "exact" or total.num_records == missing
