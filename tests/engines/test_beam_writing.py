"""WriteToTFRecord beside Beam's own: names, contents, sizes, and pipelines that fail."""

from __future__ import annotations

import errno
import os
import pickle
import zlib

import apache_beam as beam
import pytest
from apache_beam.io import filesystems, tfrecordio
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing import test_stream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.display import DisplayData
from apache_beam.transforms.window import TimestampedValue

import tfwire as tfw
from tfwire.beam import WriteToTFRecord

# Beam leaves the files of a bundle that fails open until they are dropped.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

TWO_WORKERS = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
RECORDS = [b"", b"a", b"bc" * 500, bytes(range(256)), b"d" * 70_000, b"\xff\x00"]


def write(transform, records=RECORDS, options=TWO_WORKERS):
    with beam.Pipeline("FnApiRunner", PipelineOptions(options)) as pipeline:
        pipeline | beam.Create(records, reshuffle=False) | transform


def files_in(folder):
    """The records of every file below a folder."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.name: list(tfw.read_records(path)) for path in paths}


def contents(folder, kind):
    """The bytes of every file, inflated."""
    inflate = {
        "": bytes,
        ".gz": lambda data: zlib.decompress(data, 31),
        ".deflate": zlib.decompress,
    }
    return {path.name: inflate[kind](path.read_bytes()) for path in folder.iterdir()}


@pytest.mark.parametrize("suffix", ["", ".gz", ".deflate"])
@pytest.mark.parametrize(
    "options",
    [
        {"num_shards": 1},
        {"num_shards": 3},
        {"shard_name_template": ""},
        {"shard_name_template": "_SS.of.NN", "num_shards": 2},
        {"compression_type": CompressionTypes.GZIP, "num_shards": 1},
        {"compression_type": CompressionTypes.UNCOMPRESSED, "num_shards": 1},
    ],
    ids=str,
)
def test_files_are_those_that_beam_writes(tmp_path, suffix, options):
    for make in (tfrecordio.WriteToTFRecord, WriteToTFRecord):
        prefix = str(tmp_path / make.__module__ / "out")
        write(make(prefix, file_name_suffix=suffix, **options))
    theirs, ours = tmp_path / tfrecordio.__name__, tmp_path / "tfwire.beam"
    names = sorted(os.listdir(theirs))
    assert names == sorted(os.listdir(ours))
    assert names[0].startswith("out")
    assert names[0].endswith(suffix)
    found = [record for records in files_in(ours).values() for record in records]
    assert sorted(found) == sorted(RECORDS)
    if len(names) == 1:  # the order of others is drawn
        kind = {CompressionTypes.GZIP: ".gz", CompressionTypes.UNCOMPRESSED: ""}
        kind = kind.get(options.get("compression_type"), suffix)
        assert contents(theirs, kind) == contents(ours, kind)


@pytest.mark.parametrize("num_shards", [0, 2])
def test_every_record_is_written_once(tmp_path, num_shards):
    records = [b"%d" % i * (i % 90) for i in range(5000)]
    with beam.Pipeline("FnApiRunner", PipelineOptions(TWO_WORKERS)) as pipeline:
        transform = WriteToTFRecord(str(tmp_path / "out"), num_shards=num_shards)
        pipeline | beam.Create(records) | transform
    found = files_in(tmp_path)
    assert sorted(r for records in found.values() for r in records) == sorted(records)
    assert not num_shards or len(found) == num_shards


class Words(beam.coders.Coder):
    def __init__(self, kind):
        self.kind = kind

    def encode(self, value):
        return self.kind(value.encode())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (tfrecordio.WriteToTFRecord, bytes),
        (WriteToTFRecord, bytes),
        (WriteToTFRecord, bytearray),
        (WriteToTFRecord, memoryview),
    ],
)
def test_a_coder_encodes_every_element(tmp_path, make, kind):
    write(make(str(tmp_path / "a"), Words(kind), shard_name_template=""), ["to", "bé"])
    assert files_in(tmp_path) == {"a": [b"to", "bé".encode()]}


def test_rows_and_columns_are_written_as_examples(tmp_path):
    rows = [{"label": i} for i in range(10)]
    write(beam.Map(tfw.encode_example) | WriteToTFRecord(str(tmp_path / "a"), num_shards=1), rows)
    write(WriteToTFRecord(tmp_path / "rows", num_shards=1), rows)
    messages = beam.Map(tfw.encode_example) | beam.Map(tfw.train.Example.FromString)
    write(messages | WriteToTFRecord(tmp_path / "messages", shard_name_template=""), rows)
    columns = [{"label": list(range(10))}]
    write(
        beam.FlatMap(tfw.encode_columns) | WriteToTFRecord(str(tmp_path / "b"), num_shards=1),
        columns,
    )
    for name, records in files_in(tmp_path).items():
        labels = [tfw.decode_example(record)["label"].item() for record in records]
        assert labels == list(range(10)), name


def test_no_elements(tmp_path):
    write(WriteToTFRecord(str(tmp_path / "a"), num_shards=2), [])
    assert files_in(tmp_path) == {f"a-0000{i}-of-00002": [] for i in range(2)}
    write(WriteToTFRecord(str(tmp_path / "b"), skip_if_empty=True), [])
    assert len(files_in(tmp_path)) == 2


# ---- Sizes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_shard_ends_with_the_record_that_fills_it(tmp_path, suffix):
    records = [bytes([i]) * 84 for i in range(100)]
    write(
        WriteToTFRecord(str(tmp_path / "a"), file_name_suffix=suffix, max_bytes_per_shard=1000),
        records,
        options=[],
    )
    found = files_in(tmp_path)
    assert sorted(r for records in found.values() for r in records) == records
    sizes = sorted(sum(len(record) + 16 for record in records) for records in found.values())
    assert max(sizes) == 1000  # ten records
    assert len([size for size in sizes if size < 1000]) <= 1


def test_max_records_per_shard(tmp_path):
    write(WriteToTFRecord(str(tmp_path / "a"), max_records_per_shard=4), [b"x"] * 10, options=[])
    assert sorted(map(len, files_in(tmp_path).values())) == [2, 4, 4]


def test_a_record_longer_than_a_shard_is_a_shard(tmp_path):
    write(WriteToTFRecord(str(tmp_path / "a"), max_bytes_per_shard=1), RECORDS, options=[])
    assert sorted(files_in(tmp_path).values()) == sorted([record] for record in RECORDS)


# ---- Faults ------------------------------------------------------------------------------------


def fail(element):
    if element == b"bad":
        raise ZeroDivisionError("as the test wants it")
    return element


@pytest.mark.parametrize("options", [{}, {"num_shards": 1}, {"max_bytes_per_shard": 100}])
def test_a_pipeline_that_fails_leaves_no_file(tmp_path, options):
    (tmp_path / "out").mkdir()
    transform = beam.Map(fail) | WriteToTFRecord(str(tmp_path / "out" / "a"), **options)
    with pytest.raises(Exception, match="as the test wants it"):
        write(transform, [*RECORDS, b"bad"], options=[])
    assert [path for path in (tmp_path / "out").iterdir() if path.is_file()] == []


class Full:
    """A file of a disk that is full after some bytes."""

    def __init__(self, room):
        self.room, self.closed = room, False

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        self.closed = True


@pytest.mark.parametrize("room", [0, 70_000])
@pytest.mark.parametrize("num_shards", [0, 1])
def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch, room, num_shards):
    opened = []

    def create(*_):
        opened.append(Full(room))
        return opened[-1]

    monkeypatch.setattr(filesystems.FileSystems, "create", create)
    with pytest.raises(Exception, match="No space left on device"):
        write(WriteToTFRecord(str(tmp_path / "a"), num_shards=num_shards), RECORDS * 9, options=[])
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []
    assert opened


def test_a_disk_that_is_full_at_close_closes_the_file(tmp_path, monkeypatch):
    file = Full(0)
    monkeypatch.setattr(filesystems.FileSystems, "create", lambda *_: file)
    sink = WriteToTFRecord(str(tmp_path / "a"))._sink
    writer = sink.open_writer(str(tmp_path), "b")
    writer.write(b"record")
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    assert file.closed


def test_a_bundle_that_is_tried_again_is_written_once(tmp_path):
    """Beam renames the files of the tries that succeeded, and removes the others."""
    sink = pickle.loads(pickle.dumps(WriteToTFRecord(str(tmp_path / "a"))._sink))
    folder = sink.initialize_write()
    results = []
    for number in range(3):  # the second dies half-way, the third is the second again
        writer = sink.open_writer(folder, f"try-{number}")
        writer.write(b"first" if number == 0 else b"second")
        if number != 1:
            results.append(writer.close())
        else:
            writer.temp_handle.close()
    list(sink.finalize_write(folder, results, sink.pre_finalize(folder, results)))
    expected = {"a-00000-of-00002": [b"first"], "a-00001-of-00002": [b"second"]}
    assert files_in(tmp_path) == expected
    assert sorted(os.listdir(tmp_path)) == sorted(expected)
    list(sink.finalize_write(folder, results, None))  # tried again too
    assert files_in(tmp_path) == expected


def test_an_element_that_is_no_record(tmp_path):
    for element in (3, None, [b"a"], 2.5):
        message = f"a record must be bytes-like, .* found {type(element).__name__}"
        with pytest.raises(Exception, match=message):
            write(WriteToTFRecord(str(tmp_path / "a")), [element], options=[])
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


# ---- Streams and arguments ---------------------------------------------------------------------


def test_unbounded_input_is_written_by_window(tmp_path):
    stream = test_stream.TestStream()
    for second in (1, 2, 11):
        stream = stream.add_elements([TimestampedValue(b"%d" % second, second)])
    options = PipelineOptions(["--streaming"])  # FnApiRunner has no TestStream
    with beam.Pipeline("BundleBasedDirectRunner", options) as pipeline:
        elements = pipeline | stream.advance_watermark_to_infinity()
        elements | WriteToTFRecord(str(tmp_path / "a"), triggering_frequency=10)
    found = files_in(tmp_path)
    assert sorted(map(sorted, found.values())) == [[b"1", b"2"], [b"11"]]
    assert all("-of-00001" in name and "[" in name for name in found)


def test_what_runners_show(tmp_path):
    for transform in (WriteToTFRecord("a", num_shards=3), WriteToTFRecord("a", num_shards=3)._sink):
        items = {item.key: item.value for item in DisplayData.create_from(transform).items}
        assert items["shards"] == 3
        assert items["compression"] == "auto"
        assert "a-%(shard_num)05d" in items["file_pattern"]


def test_paths_are_given_on(tmp_path):
    with beam.Pipeline("FnApiRunner") as pipeline:
        paths = pipeline | beam.Create(RECORDS) | WriteToTFRecord(str(tmp_path / "a"), num_shards=2)
        assert_that(paths, equal_to([str(tmp_path / f"a-0000{i}-of-00002") for i in range(2)]))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3,), {}, TypeError, "file_path_prefix must be a string"),
        (("a", "bytes"), {}, TypeError, "coder must be a Coder"),
        (("a",), {"file_name_suffix": 3}, TypeError, "file_name_suffix must be a string"),
        (("a",), {"num_shards": -1}, ValueError, "num_shards must be at least 0"),
        (("a",), {"num_shards": "2"}, TypeError, "num_shards must be an integer"),
        (("a",), {"shard_name_template": "-N"}, ValueError, "S\\+ not found"),
        (("a",), {"compression_type": "best"}, TypeError, "compression_type must be"),
        (("a",), {"max_bytes_per_shard": 0}, ValueError, "max_bytes_per_shard must be at least 1"),
        (("a",), {"max_bytes_per_shard": "1MB"}, TypeError, "max_bytes_per_shard must be an int"),
        (("a",), {"max_bytes_per_shard": 9, "num_shards": 2}, ValueError, "num_shards must be 0"),
        (
            ("a",),
            {"max_records_per_shard": 9, "shard_name_template": ""},
            ValueError,
            "max_records_per_shard",
        ),
        (("a",), {"skip_if_empty": "no"}, TypeError, "skip_if_empty must be a bool"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message):
        WriteToTFRecord(*arguments, **options)
