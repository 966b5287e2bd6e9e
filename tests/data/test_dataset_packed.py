"""Records that are shuffled, batched and parsed without an object for each."""

import gzip
import itertools
import os
import random
import threading
import warnings

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from helpers.processes.forks import forked
from helpers.reference import file_of
from helpers.threads import at_once, quick_switches
from tfwire import Dataset, TFRecordDataset
from tfwire._base.native import ffi
from tfwire._data import packed_records, parsed_ahead
from tfwire._data.record_sources import Records

SPEC = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "more": tfw.VarLenFeature(tfw.float32),
}
COUNT = 300


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of 0 to 100 records of different lengths; memory is given back again and again."""
    monkeypatch.setattr(packed_records, "_SLACK", 1000)
    paths = []
    for first, end in [(0, 100), (100, 100), (100, 101), (101, 200), (200, COUNT)]:
        paths.append(tmp_path / f"{first}-{end}.tfrecord")
        rows = [
            {"n": [i], "name": [b"x" * (i % 70)], "more": [float(i)] * (i % 3)}
            for i in range(first, end)
        ]
        tfw.write_records(paths[-1], [tfw.encode_example(row) for row in rows])
    return paths


def parsed(records):
    return tfw.parse_example(list(records), SPEC)


def packs(dataset):
    """Whether a pass over the dataset makes no objects of its records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfwire._records.reading.read_records.read_records", None)
        return sum(len(batch["n"]) for batch in dataset)


def same(expected, found):
    expected, found = list(expected), list(found)
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_equal(one, other)


@pytest.mark.parametrize("buffer_size", [1, 17, 299, 300, 5000])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_are_those_of_records_that_are_objects(files, buffer_size, batch_size):
    batches = TFRecordDataset(files).shuffle(buffer_size, 3, False).batch(batch_size)
    assert COUNT == packs(batches.parse_example(SPEC))
    same(batches.map(parsed), batches.parse_example(SPEC))


STAGES = {
    "repeat": lambda dataset: dataset.repeat(3),
    "take": lambda dataset: dataset.take(123),
    "skip": lambda dataset: dataset.skip(123),
    "shard": lambda dataset: dataset.shard(3, 1),
    "all": lambda dataset: dataset.skip(5).repeat(3).shard(2, 0).take(400),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("drop", [False, True])
def test_stages_between_give_the_records_on(files, stage, drop):
    dataset = STAGES[stage](TFRecordDataset(files).shuffle(40, 3, False))
    batches = dataset.batch(9, drop_remainder=drop)
    assert packs(batches.parse_example(SPEC)) == sum(map(len, batches))
    same(batches.map(parsed), batches.parse_example(SPEC))


def test_batches_at_the_thresholds_of_shuffle_batch(files):
    batches = TFRecordDataset(files).shuffle_batch(8, 50, 20, 3, allow_smaller_final_batch=True)
    same(batches.map(parsed), batches.parse_example(SPEC))


def test_a_pass_goes_on_where_it_was_left(files):
    dataset = TFRecordDataset(files).shuffle(50, seed=1, reshuffle_each_iteration=False)
    dataset = dataset.repeat(2).batch(20).parse_example(SPEC)
    goes_on_everywhere(lambda: dataset, step=5)


@pytest.mark.parametrize("few_blocks", [0, 32])
def test_memory_is_that_of_what_is_used(few_blocks, tmp_path, monkeypatch):
    """Records stay what they are where they move, and blocks with few of them go."""
    monkeypatch.setattr(packed_records, "_SLACK", 1000)
    monkeypatch.setattr(packed_records, "_FEW_BLOCKS", few_blocks)
    monkeypatch.setattr(packed_records, "_READ_AT_ONCE", 1 << 12)
    random_of, path = random.Random(1), tmp_path / "data"
    records = [b"%d" % i * random_of.choice([0, 1, 9]) for i in range(9000)]
    tfw.write_records(path, records)
    stage = Records([path], None, 1, max_record_size=None).with_threads(2)
    packed = packed_records.PackedRecords(stage, None)
    table, numbers, given, moves = packed_records.NO_RECORDS, [], 0, 0
    while piece := packed.take(random_of.randrange(1, 300)):
        table = np.concatenate([table, piece.table])
        numbers += range(given, given + len(piece))
        given += len(piece)
        kept = sorted(random_of.sample(range(len(table)), min(len(table), 500)))
        table, numbers = table[kept], [numbers[i] for i in kept]
        before = table.copy()
        packed.settle(table)
        moves += bool((before != table).any())
        memory = [len(held.memory) for held in packed._blocks]
        assert packed._size == sum(memory)
        assert packed._size <= packed._limit + max(memory[-1:], default=0)
        assert [records[i] for i in numbers] == [
            bytes(ffi.buffer(ffi.cast("char *", int(at)), int(size))) for at, size in table
        ]
    packed.close()
    assert given == len(records)
    assert moves > 10
    assert len(memory) < 30


def test_batches_outlive_their_pass(files):
    """Rows of batches that were taken together do not share bytes with records that moved."""
    batches = TFRecordDataset(files).shuffle(30, 1, False).batch(10)
    expected = [parsed(batch) for batch in batches]
    found = []
    elements = iter(batches.parse_example(SPEC))
    found.extend(elements)
    elements.close()
    del elements
    same(expected, found)


@pytest.mark.parametrize("reader", ["gzip", "long", "in turn", "generator", "indexed"])
def test_other_records_become_objects(reader, tmp_path):
    records = [tfw.encode_example({"n": [i], "name": [b"x"]}) for i in range(50)]
    if reader == "long":
        records = [tfw.encode_example({"n": [i], "name": [b"x" * 3000]}) for i in range(50)]
    path = tmp_path / "data"
    tfw.write_records(path, records, "GZIP" if reader == "gzip" else None)
    options = {
        "gzip": {"compression_type": "GZIP"},
        "in turn": {"num_parallel_reads": 2},
        "indexed": {"indexed": True},
    }
    dataset = TFRecordDataset([path, path], **options.get(reader, {}))
    if reader == "generator":
        dataset = Dataset.from_generator(lambda: records)
    batches = dataset.shuffle(10, 2, False).batch(8)
    same(batches.map(parsed), batches.parse_example(SPEC))


@pytest.mark.parametrize("parse", [False, True])
def test_threads_share_an_iterator_and_every_record_is_given_once(files, parse):
    dataset = TFRecordDataset(files).shuffle(30, 1).repeat(20).batch(7)
    elements = iter(dataset.parse_example(SPEC) if parse else dataset.map(parsed))
    with quick_switches():
        drawn = at_once(lambda _: [n for batch in elements for n in batch["n"].tolist()])
    assert sorted(list(range(COUNT)) * 20) == sorted(itertools.chain(*drawn))


def test_a_look_at_the_first_record_takes_nothing_out_of_a_pipe(files, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread = threading.Thread(target=fifo.write_bytes, args=(files[0].read_bytes(),))
    thread.start()
    batches = TFRecordDataset(fifo).shuffle(10).batch(7).parse_example(SPEC)
    assert list(range(100)) == sorted(n for batch in batches for n in batch["n"].tolist())
    thread.join()


def test_a_pass_over_a_compressed_file_goes_on_after_damage(tmp_path):
    data = bytearray(file_of([tfw.encode_example({"n": [i]}) for i in range(60)]))
    for offset in (200, 500, 900):
        data[offset] ^= 1
    (tmp_path / "data").write_bytes(gzip.compress(data))
    dataset = TFRecordDataset(tmp_path / "data", "GZIP", on_corrupt="skip").batch(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 15 == len(goes_on_everywhere(lambda: dataset))


def until_damage(dataset):
    found = []
    with pytest.raises(tfw.DataLossError, match=r"101-200.tfrecord: record 98"):
        found.extend(batch["n"].tolist() for batch in dataset)
    return found


def test_a_damaged_record_is_an_error_after_the_records_that_were_drawn(files):
    with open(files[3], "r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    batches = TFRecordDataset(files).shuffle(20, 1, False).batch(4)
    expected, found = until_damage(batches.map(parsed)), until_damage(batches.parse_example(SPEC))
    assert expected == found
    assert len(found) > 40
    skipped = TFRecordDataset(files, on_corrupt="skip").shuffle(20, 1, False).batch(4)
    with pytest.warns(UserWarning, match="left out"):
        assert COUNT - 1 == packs(skipped.parse_example(SPEC))


def test_a_record_that_does_not_fit_is_an_error_of_its_batch(tmp_path):
    records = [tfw.encode_example({"n": [i] * (1 + (i == 30)), "name": [b""]}) for i in range(40)]
    tfw.write_records(tmp_path / "data", records)
    batches = TFRecordDataset(tmp_path / "data").shuffle(10, 4, False).batch(3)
    expected = next(i for i, batch in enumerate(batches) if records[30] in batch.tolist())
    elements = iter(batches.parse_example(SPEC))
    for _ in range(expected):
        next(elements)
    with pytest.raises(tfw.ParseError, match="Key: n") as caught:
        next(elements)
    assert list(batches)[expected].tolist().index(records[30]) == caught.value.record_index


def test_a_missing_file_is_named(files):
    dataset = TFRecordDataset([*files, "nowhere"]).shuffle(10).batch(10).parse_example(SPEC)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(dataset)


# ---- By native threads ------------------------------------------------------------------------


THREADS = [2, 3, 8]


@pytest.fixture
def small_reads(monkeypatch):
    """Threads read a few records at a time."""
    monkeypatch.setattr(packed_records, "_READ_AT_ONCE", 1000)


SHUFFLED = {
    "small": lambda records: records.shuffle(1, 3).batch(7),
    "usual": lambda records: records.shuffle(40, 3).batch(7),
    "remainder": lambda records: records.shuffle(40, 3).batch(7, drop_remainder=True),
    "one by one": lambda records: records.shuffle(40, 3).batch(1),
    "all": lambda records: records.shuffle(5000, 3).batch(5000),
    "repeated": lambda records: records.shuffle(40, 3).repeat(3).batch(64),
    "parts": lambda records: records.shuffle(40, 3).skip(5).repeat(2).shard(3, 1).take(90).batch(9),
    "thresholds": lambda records: records.shuffle_batch(8, 50, 20, 3, True),
    "shuffled files": lambda records: records.shuffle(17, 3).batch(8),
}


def shuffled(files, name, num_threads, **options):
    options |= {"shuffle_files": True, "seed": 4} if name == "shuffled files" else {}
    records = SHUFFLED[name](TFRecordDataset(files, **options))
    return records.parse_example(SPEC, num_threads=num_threads)


def outcome(elements):
    """All batches, and the error that ends them."""
    found, error = [], None
    try:
        found.extend(repr(batch) for batch in elements)
    except (tfw.DataLossError, tfw.ParseError, OSError) as raised:
        error = type(raised), str(raised), vars(raised)
    return found, error


def is_parsed_ahead(elements):
    return isinstance(elements._pieces._cursor._ahead, parsed_ahead.ParsedAhead)


@pytest.mark.parametrize("name", SHUFFLED)
def test_threads_give_what_one_gives(files, small_reads, name):
    expected = outcome(shuffled(files, name, 1))
    assert expected[1] is None
    for num_threads in THREADS:
        elements = iter(shuffled(files, name, num_threads))
        first = repr(next(elements))
        assert is_parsed_ahead(elements)
        found, error = outcome(elements)
        assert expected == ([first, *found], error)


@pytest.mark.parametrize("name", ["usual", "repeated", "parts"])
def test_a_pass_goes_on_with_any_number_of_threads(files, small_reads, name):
    for before, after in ((1, 2), (2, 1), (3, 8)):
        make = [lambda n=n: shuffled(files, name, n) for n in (before, after)]
        goes_on_everywhere(*make, step=6)


def damage_payload(data, begin, end):
    data[end - 5] ^= 1


def damage_header(data, begin, end):
    data[begin + 1] ^= 1


def make_misfit(data, begin, end):
    data[begin:end] = file_of([b"no message" + bytes(end - begin - 26)])


@pytest.mark.parametrize("on_corrupt", ["raise", "skip", "stop"])
@pytest.mark.parametrize("damage", [damage_payload, damage_header, make_misfit, None])
def test_errors_are_those_of_one_thread(files, small_reads, damage, on_corrupt):
    """Two records of a file are wrong, or it is cut."""
    offsets, data = tfw.RecordIndex.build(files[3]).offsets, bytearray(files[3].read_bytes())
    for number in (20, 60) if damage else ():
        damage(data, int(offsets[number]), int(offsets[number + 1]))
    files[3].write_bytes(data if damage else data[:-100])
    for name in ("usual", "remainder", "repeated"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = outcome(shuffled(files, name, 1, on_corrupt=on_corrupt))
            assert (expected[1] is None) == (on_corrupt != "raise" and damage is not make_misfit)
            for num_threads in THREADS:
                found = outcome(shuffled(files, name, num_threads, on_corrupt=on_corrupt))
                assert expected == found


def test_columns_that_do_not_fit_each_other(files):
    spec = {"values": tfw.SparseFeature("n", "more", tfw.float32, 2000)}
    batches = TFRecordDataset(files).shuffle(30, 1).batch(1)
    expected = outcome(batches.parse_example(spec))
    assert expected[0]
    assert expected[1] is not None
    for num_threads in THREADS:
        assert expected == outcome(batches.parse_example(spec, num_threads=num_threads))


def test_a_forked_child_has_none_of_the_threads(files, small_reads):
    elements = iter(shuffled(files, "usual", 3))
    next(elements)

    def fails():
        with pytest.raises(RuntimeError, match="did not survive the fork"):
            list(elements)
        return True

    assert forked(fails)()
    assert 42 == len(list(elements))


def test_closed_and_dropped_at_any_time(files, small_reads):
    chance = random.Random(1)
    for _ in range(40):
        elements = iter(shuffled(files, "repeated", chance.choice(THREADS)))
        kept = list(itertools.islice(elements, chance.randrange(10)))
        before = repr(kept)
        if chance.random() < 0.5:
            elements.close()
            assert next(elements, None) is None
        del elements
        assert before == repr(kept)
