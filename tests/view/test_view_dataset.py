"""Files as one table: numbers, pages over the ends of files, searches, the check for damage."""

from __future__ import annotations

import errno
import os
import random
import re
import threading

import numpy as np
import pytest

import tfwire as tfw
from helpers.reading import damage
from helpers.threads import wait_for
from tfwire.view import _search
from tfwire.view._budget import Budget
from tfwire.view._damage import Check
from tfwire.view._dataset import DataSet, TablePlace
from tfwire.view._frozen import frozen_page
from tfwire.view._page import Order
from tfwire.view._records import BrowsedFile, FeatureName, Record, decoded_record
from tfwire.view._search import Search, search_for
from tfwire.view._site import Site

pytestmark = pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")


@pytest.fixture
def paths(tmp_path):
    """Seven files of 0 to 6 times 10 records."""
    found = [tmp_path / f"part-{i:05}-of-00007" for i in range(7)]
    for i, path in enumerate(found):
        tfw.write_records(path, [{"n": 10 * i + k, "name": f"{i}: {k}"} for k in range(10 * i)])
    return found


def dataset_of(paths, **options):
    return DataSet([BrowsedFile(str(path), **options) for path in paths])


def numbers(records):
    return [int(record.features["n"][0]) for record in records]


# ---- One table ----------------------------------------------------------------------------------


def test_pages_go_over_the_ends_of_files(paths):
    dataset, place, found, sizes = dataset_of(paths), TablePlace(), [], []
    while place is not None:
        page = dataset.page(place, 50, Budget())
        found += page.records
        sizes.append(len(page.records))
        place = page.next
    assert [50, 50, 50, 50, 10] == sizes
    assert list(range(210)) == [record.row for record in found]
    assert [(i, k) for i in range(7) for k in range(10 * i)] == [(r.file, r.number) for r in found]
    assert 210 == dataset.num_records


@pytest.mark.parametrize("indexed", [False, True])
def test_a_record_is_found_by_its_number_in_all_files(paths, indexed):
    for path in paths:
        if indexed:
            tfw.RecordIndex.build(path).save()
    for row, expected in [(0, (0, 0)), (29, (2, 19)), (30, (3, 0)), (209, (6, 59))]:
        dataset = dataset_of(paths)
        file, position = dataset.find(row, Budget())
        if row:
            assert expected == (file, position.record_index)
        (record,) = dataset.page(TablePlace(file, position), 1, Budget()).records
        assert row == record.row
    with pytest.raises(LookupError, match="record 210 was not found: there are 210"):
        dataset.find(210, Budget())


def test_numbers_that_are_not_known_are_left_out(paths, monkeypatch):
    dataset = dataset_of(paths)
    monkeypatch.setattr(BrowsedFile, "count", lambda self, budget: None)
    page = dataset.page(TablePlace(5), 3, Budget())
    assert [None] * 3 == [record.row for record in page.records]
    assert [0, 1, 2] == [record.number for record in page.records]
    with pytest.raises(LookupError, match="too far"):
        dataset.find(100, Budget())


def test_names_and_labels(paths, tmp_path):
    dataset = dataset_of(paths)
    assert f"{tmp_path}/part-*-of-00007" == dataset.name
    assert [f"{i:05}" for i in range(7)] == dataset.labels
    other = DataSet([BrowsedFile("a"), BrowsedFile("b" * 99)])
    assert ("2 files", ["0", "1"]) == (other.name, other.labels)
    assert "x" == DataSet([BrowsedFile("x")]).name


def test_mixed_content(tmp_path):
    """Examples, SequenceExamples, raw records and compression, one after the other."""
    paths = [tmp_path / name for name in "abcd"]
    tfw.write_records(paths[0], [{"n": 1}])
    tfw.write_records(paths[1], [tfw.encode_sequence_example({"n": 2}, {"s": [[1], [2]]})], "GZIP")
    tfw.write_records(paths[2], [b"raw needle", b"\xff\xfe"])
    tfw.write_records(paths[3], [])
    page = dataset_of(paths).page(TablePlace(), 50, Budget())
    kinds = ["Example", "SequenceExample", "other", "other"]
    assert kinds == [record.kind for record in page.records]
    assert [(2, 0)] == keys(found(paths, None, "needle"))
    site = Site([BrowsedFile(str(path)) for path in paths])
    text = site.page({})
    assert "raw needle" in text
    site.close()


def test_newer_searches_end_older_ones(paths):
    site = Site([BrowsedFile(str(path)) for path in paths])
    targets = [{"value": str(i)} for i in range(5)]
    for target in targets:
        site.page(target)
    assert "ended by newer searches" in site.status(targets[0])["search"]
    assert "found" in site.status(targets[1])["search"]
    assert "found" in site.page(targets[0])
    site.close()


def test_a_file_that_vanishes_has_a_row(paths):
    dataset = dataset_of(paths)
    paths[2].unlink()
    page = dataset.page(TablePlace(), 50, Budget())
    assert ["Example"] * 10 + ["unreadable"] == [record.kind for record in page.records[:11]]
    assert "No such file" in page.records[10].reason
    assert (10, 0) == (page.records[11].row, page.records[11].number)  # of the next file
    tfw.write_records(paths[2], [{"n": 0}] * 5)
    page = dataset.page(TablePlace(3), 1, Budget())
    dataset.page(TablePlace(2), 1, Budget())
    assert 15 == dataset.page(TablePlace(3), 1, Budget()).records[0].row


def test_pages_say_that_a_file_vanished(paths):
    site = Site([BrowsedFile(str(path)) for path in paths])
    site.check.start = lambda asked=False: None
    site.page({})
    paths[6].unlink()
    for view in ("rows", "grid"):
        page = site.page({"file": "6", "as": view})
        assert "the file cannot be read: No such file or directory" in page
        assert "1 file cannot be read" in page
    assert "No such file" in site.page({"view": "damage"})
    for ask, number in ((site.page, "0"), (site.page, "7"), (site.payload, "7")):
        with pytest.raises(FileNotFoundError) as error:
            ask({"view": "record", "file": "6", "n": number})
        page = site.problem_page(error.value)
        assert f"{paths[6]}: the file cannot be read: No such file or directory" in page
        assert "1 file cannot be read" in page
    tfw.write_records(paths[6], [{"n": 1, "name": "new"}])
    assert "cannot be read" not in site.page({"file": "6"})
    site.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_file_that_becomes_a_pipe_is_not_waited_for(paths):
    """Also the first one, which a check begins with."""
    site = Site([BrowsedFile(str(path)) for path in paths])
    for number in (0, 6):
        paths[number].unlink()
        os.mkfifo(paths[number])
    site.check.start()
    wait_for(lambda: not site.check.is_running)
    for target in ({}, {"file": "6"}, {"file": "6", "as": "grid"}, {"value": "3"}):
        assert "2 files cannot be read" in site.page(target), target
    assert "150 records" in site.dataset.facts()
    assert "not a regular file" in site.page({"view": "damage"})
    with pytest.raises(OSError, match="not a regular file"):
        site.payload({"file": "6", "n": "1"})
    paths[6].unlink()
    tfw.write_records(paths[6], [{"n": 1}])
    assert "1 file cannot be read" in site.page({"file": "6"})
    site.close()


def test_a_file_that_could_not_be_read_for_a_moment_is_read_again(paths, monkeypatch):
    site = Site([BrowsedFile(str(path)) for path in paths[1:3]])
    site.check.start = lambda asked=False: None
    site.dataset.files[0].num_damaged = 3  # it was checked
    with monkeypatch.context() as patch:
        patch.setattr(BrowsedFile, "page", refuse)
        assert "2 files cannot be read" in site.page({})
        assert "-" not in site.dataset.facts()
    assert "cannot be read" not in site.page({})
    site.close()


def refuse(*arguments):
    raise PermissionError(errno.EACCES, "Permission denied")


def test_what_is_before_lies_in_the_files_before(paths):
    dataset, place = dataset_of(paths), TablePlace(2)

    def before(count):
        file, (number, _) = dataset.before(place, count, Budget()) or (None, (0, 0))
        return file, number

    assert [(1, 9), (1, 0), (0, 0)] == [before(count) for count in (1, 10, 50)]
    place = TablePlace(2, tfw.RecordPosition(5))
    assert [(2, 4), (1, 9), (0, 0)] == [before(count) for count in (1, 6, 50)]
    place = TablePlace(1)  # before it is a file without records
    assert (None, 0) == before(1)
    place = TablePlace(3)
    assert [(2, 19), (1, 5)] == [before(count) for count in (1, 25)]
    tfw.write_records(paths[4], [])
    dataset = dataset_of(paths)
    place = TablePlace(5)
    assert (3, 29) == before(1)
    assert TablePlace(5) == dataset.without_empty(TablePlace(4))
    damage(paths[3], -20)
    place = TablePlace(4)
    assert (3, 29) == before(1)  # the damaged one
    assert 30 == dataset.page(dataset.find(59, Budget()), 2, Budget()).records[1].row - 30


def test_features_are_those_of_files_that_can_be_read(paths):
    paths[1].unlink()
    assert 200 == len(list(dataset_of(paths).first(0, 1000, Budget())))
    with pytest.raises(FileNotFoundError):
        list(dataset_of(paths[1:2]).first(0, 1000, Budget()))


@pytest.mark.parametrize("indexed", [False, True])
def test_a_file_that_grows(paths, indexed):
    if indexed:
        tfw.RecordIndex.build(paths[6]).save()
    dataset = dataset_of(paths)
    assert dataset.page(dataset.find(209, Budget()), 50, Budget()).next is None
    with tfw.TFRecordWriter(paths[6], append=True) as writer:
        writer.write_many([{"n": 1000}] * 5)
    os.utime(paths[6], ns=(1, 1))
    page = dataset.page(dataset.find(212, Budget()), 50, Budget())
    assert [212, 213, 214] == [record.row for record in page.records]
    assert 215 == dataset.num_records


def test_a_frozen_page_has_the_numbers_of_all_files(paths):
    page = frozen_page([BrowsedFile(str(path)) for path in paths], 8, 1000).text
    assert f">210 records, 7 files, {sum(map(os.path.getsize, paths)):,} bytes<" in page
    for record, place in (("0", f"record 0 of {paths[1]}"), ("30", f"record 0 of {paths[3]}")):
        assert f'>Record {record}</h2><p class="facts">{place}</p>' in page
    assert "record 0 of" not in frozen_page([BrowsedFile(str(paths[3]))], 8, 1000).text


# ---- Searches -----------------------------------------------------------------------------------


def found(paths, name, text, *, is_list=False):
    feature = None if name is None else FeatureName(name, is_list)
    search = Search(dataset_of(paths), feature, text)
    search.start()
    search.wait(10**6, 60)
    assert search.is_done
    return search.found(0, 10**6)


def keys(places):
    return [(place.file, place.position.record_index) for place in places]


def test_all_files_are_searched(paths):
    assert [(3, 17), (4, 7)] == keys(found(paths, "n", "47"))
    expected = [(i, k) for i in range(7) for k in range(10 * i) if f"{i}: {k}".startswith("3: 1")]
    assert expected == keys(found(paths, "name", "3: 1"))
    assert 210 == len(found(paths, "name", ""))
    assert [] == found(paths, "none", "")


def test_a_search_stops_and_goes_on(paths, monkeypatch):
    """Where it was, without losing or repeating a record."""
    halted, going = threading.Event(), threading.Event()
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    search = Search(dataset_of(paths), FeatureName("n"), "")
    matches = search._matches

    def slow(record):
        if search.num_found == 40:
            halted.set()
            going.wait(60)
        return matches(record)

    search._matches = slow
    search.start()
    assert halted.wait(60)
    assert search.is_running
    assert "40 records found so far; searching, 3 of 7 files" == search.note()
    threading.Thread(target=lambda: wait_for(lambda: search.is_stopped) and going.set()).start()
    search.stop()
    assert not search.is_running
    assert "stopped after " in search.note()
    search._matches = matches
    search.start()
    search.wait(10**6, 60)
    assert "210 records found in all" == search.note()
    assert [(i, k) for i in range(7) for k in range(10 * i)] == keys(search.found(0, 1000))
    assert [(2, 5), (2, 6)] == keys(search.found(15, 2))
    before, after = search.beside(3, 0)
    assert [(2, 19), (3, 1)] == keys([before, after])
    assert (None, (1, 1)) == (search.beside(1, 0)[0], *keys([search.beside(1, 0)[1]]))
    assert search.beside(6, 59)[1] is None


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB", ""])
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_search_of_one_file_stops_and_goes_on(tmp_path, monkeypatch, compression, share):
    """Wherever it was: a place in the content of a compressed file is none in its bytes."""
    path, count = tmp_path / "x", 20_000
    tfw.write_records(path, [{"n": i, "name": "abc" * 10} for i in range(count)], compression)
    search = Search(dataset_of([path]), FeatureName("n"), "")
    monkeypatch.setattr(_search, "_MOST_FOUND", count + 1)
    matches = search._matches

    def stopping(record):
        search._wanted.is_stopped |= search.num_found == int(share * count)
        return matches(record)

    search._matches = stopping
    search.start()
    wait_for(lambda: not search.is_running)
    assert "stopped after " in search.note()
    search._matches = matches
    search.start()
    search.wait(10**6, 60)
    assert f"{count:,} records found in all" == search.note()
    assert [(0, i) for i in range(count)] == keys(search.found(0, count))


def test_a_search_has_an_end(paths, monkeypatch):
    monkeypatch.setattr(_search, "_MOST_FOUND", 20)
    search = Search(dataset_of(paths), FeatureName("n"), "")
    search.start()
    search.wait(10**6, 60)
    note = search.note()
    assert re.fullmatch("the first [0-9]+ records found", note)
    search.start()
    search.wait(10**6, 60)
    assert note == search.note()


def test_files_that_cannot_be_searched_are_counted(paths):
    paths[2].unlink()
    damage(paths[5], 200)
    search = Search(dataset_of(paths), FeatureName("n"), "")
    search.start()
    search.wait(10**6, 60)
    assert re.fullmatch("18[0-9] records found in all; 1 file cannot be read", search.note())


def test_what_c_finds_is_what_python_finds(tmp_path):
    """Random records, of every kind, and searches of every kind."""
    rng, random_bytes = random.Random(3), np.random.default_rng(3)
    words = ["cat", "dog", "7", "300", "é", "", "a b"]

    def values():
        kind = rng.choice(["text", "int", "float", "bytes", "none"])
        count = rng.randint(0, 3)
        return {
            "text": [rng.choice(words) for _ in range(count)],
            "int": [rng.choice([0, 7, 300, -1, 2**40]) for _ in range(count)],
            "float": [rng.choice([0.0, -0.0, 7.0, 2.5, 300.0]) for _ in range(count)],
            "bytes": [b"\xff\xd8cat" + random_bytes.bytes(9) for _ in range(count)],
            "none": [],
        }[kind]

    records = []
    for _ in range(400):
        context = {name: values() for name in rng.sample("abc", rng.randint(0, 3))}
        lists = {name: [values()] for name in rng.sample("ab", rng.randint(0, 2))}
        record = tfw.encode_sequence_example(context, lists)
        if rng.random() < 0.1:
            record = rng.choice([record[:-1], b"a cat", b"\xff cat", record + b"\x18\x01"])
        records.append(record)
    path = tmp_path / "random"
    tfw.write_records(path, records)
    decoded = [decoded_record(i, 0, record) for i, record in enumerate(records)]
    names = [None, *(FeatureName(n, is_list) for n in "abd" for is_list in (False, True))]
    for name in names:
        for text in ("cat", "7", "300", "-1", "0", "2.5", "é", "1e3", "", "nan"):
            if name is None and not text:
                continue
            matches = search_for(name, text)
            expected = [(0, record.number) for record in decoded if matches(record)]
            is_list, key = (name.is_list, name.text) if name else (False, None)
            assert expected == keys(found([path], key, text, is_list=is_list)), (name, text)


# ---- The check ----------------------------------------------------------------------------------


def checked(dataset):
    check = Check(dataset)
    check.start()
    assert wait_for(lambda: not check.is_running)
    return check


def test_the_check_counts_and_finds_damage(paths):
    damage(paths[3], 200)
    damage(paths[5], 300)
    dataset = dataset_of(paths)
    check = checked(dataset)
    assert "damaged in 2 places" == check.note()
    assert 210 == dataset.num_records
    assert "not compressed" == check.compressions
    found = check.of(dataset.files[3])
    assert 1 == len(found.damage) == found.num_damaged
    assert found.lost_bytes == found.damage[0].size
    paths[3].unlink()
    tfw.write_records(paths[3], [{"n": 0}])
    dataset.page(TablePlace(3), 1, Budget())
    assert "damaged in 1 place, 6 of 7 files checked for damage" == check.note()
    check.start(asked=True)
    assert wait_for(lambda: not check.is_running)
    assert "damaged in 1 place" == check.note()
    check.stop()


def test_the_check_goes_on_after_files_that_cannot_be_read(paths):
    dataset = dataset_of(paths)
    paths[1].unlink()
    paths[4].unlink()
    assert "2 files cannot be read" == checked(dataset).note()
    assert 160 == dataset.num_records


def test_no_damage_is_said_once_all_is_checked(paths):
    check = Check(dataset_of(paths))
    assert "0 of 7 files checked for damage" == check.note()
    assert "no damage" == checked(dataset_of(paths)).note()
    check.stop()
    check.start()
    assert not check.is_running


def test_files_elsewhere_are_checked_when_somebody_asks():
    check = Check(DataSet([BrowsedFile("memory://none")]))
    check.start()
    assert not check.is_started


# ---- Rows in order ------------------------------------------------------------------------------


def test_rows_are_sorted():
    values = [3.0, [], "b", -1.0, [float("nan")], 2, "a"]
    records = [decoded_record(i, 0, tfw.encode_example({"x": x})) for i, x in enumerate(values)]
    records.append(Record(7, 0, 5, "damage"))
    field = b"x".hex()
    assert [3, 5, 0, 6, 2, 1, 4, 7] == [r.number for r in Order(field).of(records)]
    assert [2, 6, 0, 5, 3, 1, 4, 7] == [r.number for r in Order(field, True).of(records)]
    assert list(range(8)) == [r.number for r in Order().of(records)]
    assert [7, 6] == [r.number for r in Order("row", True).of(records)][:2]
    assert 7 == Order("size").of(records)[0].number
    with pytest.raises(ValueError, match="hex"):
        Order("no field").of(records)
