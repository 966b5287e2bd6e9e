"""Objects that are replaced by others of equal size, whose records have other numbers."""

from __future__ import annotations

import pytest

import tfwire as tfw
from helpers.records.indexed import other_records
from helpers.remote.object_server import RECORDS, ObjectFileSystem, file_of

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(params=["copied", "saved again", "without a version"])
def replaced(request, server, tmp_path, monkeypatch):
    """The URL of an object, its records, and the index of another one of equal size and samples."""
    records = [b"%020d" % i for i in range(1000)]
    (tmp_path / "a").write_bytes(file_of(records))
    index = tmp_path / "index"
    tfw.RecordIndex.build(tmp_path / "a").save(index)
    url = server.url("/many")
    server.add("/many", file_of(records))
    if request.param == "saved again":
        tfw.RecordIndex.load(url, index).save(index)
    if request.param == "without a version":
        info = ObjectFileSystem.info
        monkeypatch.setattr(
            ObjectFileSystem, "info", lambda self, path: {**info(self, path), "ETag": None}
        )
        tfw.RecordIndex.build(url).save(index)
    sampled = sorted({i * len(records) // 63 for i in range(64)})
    new = other_records(records, sampled[5] + 2, sampled[6] - 2)
    server.add("/many", file_of(new))
    assert len(file_of(records)) == len(file_of(new))
    return url, new, index


def test_an_index_that_is_bound_to_no_version_never_gives_another_number(replaced):
    url, records, index = replaced
    shift = next(i for i, record in enumerate(records) if record != b"%020d" % i)
    with tfw.TFRecordFile(url, index) as file:
        for number in [*range(0, 1000, 97), shift - 1, shift, shift + 1, 999]:
            for key in (number, [0, number], slice(number, number + 2)):
                if number < shift:
                    expected = records[key] if key != [0, number] else [records[0], records[number]]
                    if not isinstance(key, slice) or number + 1 < shift:
                        assert expected == file[key]
                    continue
                with pytest.raises(tfw.DataLossError, match="index is stale") as caught:
                    file[key]
                assert caught.value.reason in ("index", "length crc")
        with pytest.raises(tfw.DataLossError, match="index is stale"):
            list(file)
    assert records == list(tfw.TFRecordFile(url))


def test_the_index_of_a_file_is_compared_once_and_as_far_as_needed(server, tmp_path):
    (tmp_path / "a").write_bytes(file_of(RECORDS))
    tfw.RecordIndex.build(tmp_path / "a").save(tmp_path / "index")
    index = tfw.RecordIndex.load(server.url("/a"), tmp_path / "index")
    server.ranges.clear()
    with tfw.TFRecordFile(server.url("/a"), index) as file:
        assert RECORDS[60] == file[60]
        assert max(end for _, end in server.ranges) <= index.offsets[61]
        assert RECORDS[399] == file[399]
        compared = len(server.ranges)
        assert RECORDS[7::50] == file[7::50]
        assert len(server.ranges) - compared <= 8
    server.ranges.clear()
    with tfw.TFRecordFile(server.url("/a"), index) as file:
        assert RECORDS == list(file)  # which compares all there is
    assert index.size == sum(end - begin for begin, end in server.ranges)
    bound = tfw.RecordIndex.build(server.url("/a"))
    server.ranges.clear()
    with tfw.TFRecordFile(server.url("/a"), bound) as file:
        assert RECORDS[399] == file[399]
    assert 1 == len(server.ranges)


def test_damaged_headers_of_an_object_say_nothing_of_its_records(server, tmp_path):
    (tmp_path / "a").write_bytes(file_of(RECORDS))
    tfw.RecordIndex.build(tmp_path / "a").save(tmp_path / "index")
    index = tfw.RecordIndex.load(server.url("/a"), tmp_path / "index")
    data = bytearray(server.objects["/a"])
    for number in (3, 50, 51):
        data[index.offsets[number] + 2] ^= 1
    server.add("/a", bytes(data))
    with tfw.TFRecordFile(server.url("/a"), index) as file:
        for number in (2, 3, 4, 49, 50, 51, 52, 399):
            if number in (3, 50, 51):
                with pytest.raises(tfw.DataLossError, match="length checksum"):
                    file[number]
            else:
                assert RECORDS[number] == file[number]


def test_a_replacement_between_two_ranges_is_told(server):
    index = tfw.RecordIndex.build(server.url("/a"))
    records = tfw.TFRecordFile(server.url("/a"), index)

    def replace(path, begin, end):
        if begin > 200_000 and '"1"' == server.etags["/a"]:
            server.add("/a", server.objects["/a"], '"2"')

    server.faults = replace
    with pytest.raises(OSError, match=r'changed while it was read: .*"1", and is .*"2"'):
        records[::-1]
