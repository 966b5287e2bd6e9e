"""How tfwire.beam splits files, and what it does at damage."""

from __future__ import annotations

import itertools
import os
import pickle
import zlib

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.io import source_test_utils, tfrecordio
from apache_beam.io.localfilesystem import LocalFileSystem
from apache_beam.io.range_trackers import OffsetRangeTracker
from apache_beam.testing.util import assert_that, equal_to
from beam_files import (
    FEATURES,
    LONG,
    RECORDS,
    SIZE,
    check_read,
    read,
    read_all,
    row,
    run,
    source_of,
    write,
)

import tfwire as tfw
from helpers.search import search
from tfwire.beam import ReadAllFromTFRecord, ReadBatchesFromTFRecord, ReadFromTFRecord

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

# ---- Splits ------------------------------------------------------------------------------------


def transforms(path):
    return {
        "records": ReadFromTFRecord(path),
        "filenames": ReadFromTFRecord(path, with_filename=True),
        "skip": ReadFromTFRecord(path, on_corrupt="skip"),
    }


@pytest.mark.parametrize("kind", ["records", "filenames", "skip"])
def test_every_split_while_reading_gives_every_record_once(tmp_path, kind):
    path = write(tmp_path / "long", LONG, index=True)
    source = source_of(transforms(path)[kind])
    assert len(read(source)) == len(LONG)
    source_test_utils.assert_split_at_fraction_exhaustive(source)


def test_every_split_of_batches_gives_every_record_once(tmp_path):
    path = write(tmp_path / "rows", map(tfw.encode_example, map(row, range(60))), index=True)
    transform = ReadBatchesFromTFRecord(path, FEATURES, batch_size=7)
    source = source_of(transform)
    assert [batch.num_rows for batch in read(source)] == [7] * 8 + [4]

    class Lists(type(source)):  # which the tests can hash
        def read(self, tracker):
            return (tuple(batch["id"].to_pylist()) for batch in super().read(tracker))

    source.__class__ = Lists
    source_test_utils.assert_split_at_fraction_exhaustive(source)


def read_as_a_runner(source, ranges, draw):
    """Reads ranges of a source, and gives parts of them to others in mid-reading; a bundle may die
    and is tried again. Returns the elements of each bundle that succeeded, by where it begins."""
    done = {}
    while ranges:
        start, stop = ranges.pop(draw.randrange(len(ranges)))
        source = pickle.loads(pickle.dumps(source))
        tracker = source.get_range_tracker(start, stop)
        elements, found = source.read(tracker), []
        dies = draw.random() < 0.2
        for element in elements:
            found.append(element)
            if draw.random() < 0.3:
                begin, end = tracker.start_position(), tracker.stop_position()
                if tracker.try_split(draw.randrange(begin, end + 1)):
                    ranges.append((tracker.stop_position(), end))
            if dies and draw.random() < 0.3:
                elements.close()
                ranges.append((tracker.start_position(), tracker.stop_position()))
                break
        else:
            done[start] = found
    return [element for start in sorted(done) for element in done[start]]


def test_random_splits_and_retries_give_every_record_once_and_in_order(tmp_path):
    def case(draw):
        most = draw.choice([50, 5_000, 90_000])
        count = draw.randrange(1, 40 if most > 50 else 9000)
        records = [bytes([i % 256]) * draw.randrange(most) for i in range(count)]
        path = write(tmp_path / "random", records, index=True)
        source = source_of(ReadFromTFRecord(path))
        bundles = source.split(draw.choice([1000, 100_000, 10**9]))
        ranges = [(bundle.start_position, bundle.stop_position) for bundle in bundles]
        assert read_as_a_runner(source, ranges, draw) == records

    search(case, least=2)


def test_random_splits_of_batches(tmp_path):
    rows = [tfw.encode_example({"id": i}) for i in range(2000)]
    path = write(tmp_path / "rows", rows, index=True)

    def case(draw):
        size, kind = draw.randrange(1, 700), draw.choice(["arrow", "numpy"])
        features = {"id": FEATURES["id"]}
        transform = ReadBatchesFromTFRecord(path, features, batch_size=size, batches_as=kind)
        source = source_of(transform)
        batches = read_as_a_runner(source, [(0, source.estimate_size())], draw)
        assert [len(batch["id"]) for batch in batches[:-1]] == [size] * (len(batches) - 1)
        assert [int(i) for batch in batches for i in np.asarray(batch["id"])] == [*range(2000)]

    search(case, least=2)


def test_ranges_that_end_anywhere_give_every_record_once(tmp_path):
    path = write(tmp_path / "long", RECORDS, index=True)
    source, end = source_of(ReadFromTFRecord(path)), (tmp_path / "long").stat().st_size
    offsets = tfw.RecordIndex.load(path).offsets.tolist()
    cuts = sorted({min(max(o + d, 0), end) for o in offsets for d in (-1, 0, 1)})
    found = [record for a, b in itertools.pairwise(cuts) for record in read(source, a, b)]
    assert found == RECORDS


@pytest.mark.parametrize("size", [1000, 70_000, 200_000, 10**9])
def test_initial_splits_give_every_record_once(tmp_path, size):
    path = write(tmp_path / "long", RECORDS, index=True)
    source = ReadFromTFRecord(path)._source
    bundles = list(source.split(size))
    assert (len(bundles) > 1) == (size < 10**9)
    assert sum(bundle.weight for bundle in bundles) == source.estimate_size()
    source_test_utils.assert_sources_equal_reference_source(
        (source, None, None), [(b.source, b.start_position, b.stop_position) for b in bundles]
    )


def test_without_an_index_a_file_is_one_bundle(tmp_path):
    path = write(tmp_path / "long", LONG)
    [bundle] = ReadFromTFRecord(path)._source.split(1000)
    assert bundle.stop_position == OffsetRangeTracker.OFFSET_INFINITY
    tracker = bundle.source.get_range_tracker(bundle.start_position, bundle.stop_position)
    elements = bundle.source.read(tracker)
    assert next(elements) == LONG[0]
    assert tracker.try_split(SIZE) is None
    assert list(elements) == LONG[1:]


@pytest.mark.parametrize("policy", ["tail", "stop"])
def test_a_file_whose_parts_depend_on_each_other_is_one_bundle(tmp_path, policy):
    path = write(tmp_path / "long", LONG, index=True)
    assert len([*ReadFromTFRecord(path, on_corrupt=policy)._source.split(1000)]) == 1


def test_a_split_off_part_goes_to_another_worker(tmp_path):
    """What is claimed after a split is only what lies before it."""
    path = write(tmp_path / "long", LONG, index=True)
    source = source_of(ReadFromTFRecord(path))
    tracker = source.get_range_tracker(None, None)
    elements = source.read(tracker)
    first = [next(elements), next(elements)]
    offsets = tfw.RecordIndex.load(path).offsets.tolist()
    assert tracker.try_split(0) is None  # it is read already
    assert tracker.try_split(offsets[6]) is not None
    assert first + list(elements) == LONG[:6]
    other = pickle.loads(pickle.dumps(source))
    assert read(other, offsets[6], offsets[-1]) == LONG[6:]
    assert read(other, offsets[6], offsets[-1]) == LONG[6:]  # a bundle that is tried again


def test_compressed_files_with_an_index_are_read_whole(tmp_path):
    path = write(tmp_path / "no-suffix", LONG, index=True, compression="GZIP")
    bundles = ReadFromTFRecord(path)._source.split(1000)
    found = [read(bundle.source, bundle.start_position, bundle.stop_position) for bundle in bundles]
    assert [records for records in found if records] == [LONG]


def test_a_stale_index(tmp_path, caplog):
    path = write(tmp_path / "long", LONG, index=True)
    source = source_of(ReadFromTFRecord(path))
    write(path, LONG[:-1])
    with pytest.raises(tfw.DataLossError, match="tfwindex") as caught:
        read(source)
    assert caught.value.reason == "index"
    os.utime(path, (2**31, 2**31))
    assert len([*ReadFromTFRecord(path)._source.split(1000)]) == 1
    assert "is older than its file" in caplog.text
    check_read(ReadFromTFRecord(path), LONG[:-1])
    (tmp_path / "long.tfwindex").unlink()
    with pytest.raises(FileNotFoundError, match="tfwindex"):
        read(source, 0, 10)


class Elsewhere(LocalFileSystem):
    """Local files under another scheme, as those of gs:// and s3://."""

    @classmethod
    def scheme(cls):
        return "elsewhere"

    def match(self, patterns, limits=None):
        results = super().match([pattern.removeprefix("elsewhere://") for pattern in patterns])
        for file in (file for result in results for file in result.metadata_list):
            file.path = "elsewhere://" + file.path
        return results

    def open(self, path, *arguments):
        return super().open(path.removeprefix("elsewhere://"), *arguments)


def test_an_index_of_another_filesystem(tmp_path):
    path = "elsewhere://" + write(tmp_path / "long", LONG, index=True)
    source = source_of(ReadFromTFRecord(path))
    offsets = tfw.RecordIndex.load(tmp_path / "long").offsets.tolist()
    assert read(source, offsets[2], offsets[7]) == LONG[2:7]
    [bundle, *others] = ReadFromTFRecord(path, with_filename=True)._source.split(200_000)
    assert others
    assert next(read_all(bundle.source)) == (path, LONG[0])
    write(tmp_path / "long", LONG[:-1])
    os.utime(tmp_path / "long.tfwindex", (2**31, 2**31))
    with pytest.raises(tfw.DataLossError, match=r"elsewhere://.*tfwindex") as caught:
        read(source_of(ReadFromTFRecord(path)))
    assert caught.value.reason == "index"


def test_indexes_that_match_are_left_out(tmp_path):
    write(tmp_path / "a", RECORDS[:3], index=True)
    pattern = str(tmp_path / "*")
    check_read(ReadFromTFRecord(pattern), RECORDS[:3])
    check_read(
        ReadAllFromTFRecord(on_corrupt="stop"), RECORDS[:3], lambda p: p | beam.Create([pattern])
    )
    assert ReadBatchesFromTFRecord(pattern, FEATURES)


# ---- Damage ------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["whole", "split"])
def damaged(tmp_path, request):
    """Record 4 is damaged, and the file was cut within the last."""
    path = tmp_path / "damaged"
    write(path, LONG, index=request.param)
    data = bytearray(path.read_bytes())
    offsets = tfw.RecordIndex.build(path).offsets
    data[offsets[4] + 100] ^= 4
    if not request.param:  # an index of a file that is cut is stale
        del data[-7:]
    path.write_bytes(data)
    if request.param:
        os.utime(str(path) + ".tfwindex", (2**31, 2**31))
    return str(path), request.param


def test_damage_ends_the_pipeline(damaged):
    path, _ = damaged
    source = source_of(ReadFromTFRecord(path))
    elements = source.read(source.get_range_tracker(None, None))
    assert [next(elements) for _ in range(4)] == LONG[:4]
    with pytest.raises(tfw.DataLossError, match="damaged: record 4 at byte 264000") as caught:
        next(elements)
    assert caught.value.offset == 4 * SIZE
    with pytest.raises(Exception, match="record 4 at byte 264000"):
        check_read(ReadFromTFRecord(path), LONG)


@pytest.mark.parametrize("policy", ["skip", "tail", "stop"])
def test_policies_for_damage(damaged, policy):
    path, split = damaged
    source = source_of(ReadFromTFRecord(path, on_corrupt=policy))
    if policy == "tail":
        with pytest.raises(tfw.DataLossError, match="record 4"):
            read(source)
        return
    expected = LONG[:4] if policy == "stop" else LONG[:4] + LONG[5 : 9 if split else 8]
    with pytest.warns(tfw.TfwireWarning, match="left out"):
        assert read(source) == expected


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_what_is_left_out_is_counted(damaged):
    path, split = damaged
    pipeline = run()
    assert_that(
        pipeline | ReadFromTFRecord(path, on_corrupt="skip"),
        equal_to(LONG[:4] + LONG[5 : 9 if split else 8]),
    )
    counters = pipeline.run().metrics().query()["counters"]
    found = {counter.key.metric.name: counter.committed for counter in counters}
    size = SIZE if split else 2 * SIZE - 7
    assert {"skipped_regions": 2 - split, "skipped_bytes": size}.items() <= found.items()


@pytest.mark.parametrize("name", ["a.gz", "a.deflate"])
def test_a_compressed_file_that_was_cut_between_records_is_damage(tmp_path, name):
    """Beam's own reads what is left, and says nothing."""
    tfw.write_records(tmp_path / "records", RECORDS[:2])
    data = (tmp_path / "records").read_bytes()
    make = zlib.compressobj(wbits=31 if name == "a.gz" else 15)
    cut = make.compress(data) + make.flush(zlib.Z_SYNC_FLUSH)
    (tmp_path / name).write_bytes(cut)
    check_read(tfrecordio.ReadFromTFRecord(str(tmp_path / name)), RECORDS[:2])
    with pytest.raises(tfw.DataLossError, match=name):
        read(source_of(ReadFromTFRecord(str(tmp_path / name))))
